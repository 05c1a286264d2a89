#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace qinglong::core {

// A time zone as the engine sees it: from the UTC second `begin` on, local time is UTC + `offset`.
struct ZoneSpan {
    std::int64_t begin;
    std::int32_t offset;
};

// 400 Gregorian years: 146,097 days, a whole number of weeks, so dates, weekdays and rules all repeat.
inline constexpr std::int64_t kCycleSeconds = std::int64_t{146097} * 86400;

// No zone is, or ever was, further from UTC than this, nor moved by more at once (Manila 1844, Juneau 1867).
inline constexpr std::int64_t kMaxOffset = 86400;

// Offsets change at least this far apart (the closest two known are 95 hours apart), so what one change
// does to local time is over before the next one begins.
inline constexpr std::int64_t kMinSpanSeconds = 2 * kMaxOffset;

// Instants beyond these are refused: some 6,700 BC and 559,000 AD, which is more than a timestamptz holds.
inline constexpr std::int64_t kMinInstant = -(std::int64_t{1} << 38);
inline constexpr std::int64_t kMaxInstant = std::int64_t{1} << 44;

// Non-owning. `spans` is ordered, its first begins at INT64_MIN, and it is complete for all instants
// before cycle_from + 2 * kCycleSeconds. From kMaxOffset before cycle_from on, the zone repeats every 400
// years, so that later instants can be folded back.
struct ZoneView {
    std::span<const ZoneSpan> spans;
    std::int64_t cycle_from;
};

// Whether the view keeps the promises above (all but completeness, which only its maker can know).
// The engine relies on them and does not look again.
bool zone_is_valid(const ZoneView& zone);

// Index of the span that contains `instant`.
std::size_t span_index(const ZoneView& zone, std::int64_t instant);

// The equal instant inside the first cycle; `instant` itself where it is not beyond it.
std::int64_t fold_instant(const ZoneView& zone, std::int64_t instant);

// Seconds east of UTC at `instant`.
std::int32_t offset_at(const ZoneView& zone, std::int64_t instant);

} // namespace qinglong::core
