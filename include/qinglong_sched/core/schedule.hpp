#pragma once
// The instants of one trigger, of whatever kind, in the milliseconds of the tables. Whatever is shown,
// decided, counted or admitted comes from here.

#include "qinglong_sched/core/occurrence.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace qinglong::core {

// The largest time of the tables: 2^53 - 1.
inline constexpr std::int64_t kMaxTimeMs = 9007199254740991;

// Counting is exact up to here and stops: no decision may take long.
inline constexpr std::uint64_t kCountCap = 100000;

inline constexpr ZoneSpan kUtcSpans[] = {{std::numeric_limits<std::int64_t>::min(), 0}};
inline constexpr ZoneView kUtcZone{kUtcSpans, 0};

enum class ScheduleKind : std::uint8_t { cron, interval, once };

struct Schedule {
    ScheduleKind kind = ScheduleKind::cron;
    CronExpression expression;
    ZoneView zone = kUtcZone; // of an interval or a single instant, for display only
    InstantRules rules;
    // Instants lie in [begin_ms, end_ms): of a cron schedule its start and end, of an interval its anchor, of
    // a single instant that instant.
    std::int64_t begin_ms = std::numeric_limits<std::int64_t>::min();
    std::int64_t end_ms = std::numeric_limits<std::int64_t>::max();
    std::int64_t every_ms = 0; // of an interval

    // The first instant strictly after; nothing when there is none.
    std::optional<std::int64_t> next(std::int64_t after_ms) const;
    // How many instants lie in [from, until), at most cap.
    std::uint64_t count(std::int64_t from_ms, std::int64_t until_ms, std::uint64_t cap = kCountCap) const;
    // Whether running out of instants is what was asked for.
    bool ends() const { return end_ms != std::numeric_limits<std::int64_t>::max(); }
};
static_assert(std::is_trivially_copyable_v<Schedule>);

Schedule interval_schedule(std::int64_t anchor_ms, std::int64_t every_ms);
Schedule once_schedule(std::int64_t at_ms);

} // namespace qinglong::core
