#include "qinglong_sched/core/zone_spans.hpp"

#include <algorithm>

namespace qinglong::core {

namespace {

// Far enough from the ends of int64 for any sum the engine makes.
constexpr std::int64_t kFarthestBegin = std::int64_t{1} << 60;

} // namespace

bool zone_is_valid(const ZoneView& zone) {
    const auto spans = zone.spans;
    if (spans.empty() || spans.front().begin != std::numeric_limits<std::int64_t>::min()) {
        return false;
    }
    if (zone.cycle_from < kMinInstant || zone.cycle_from > kMaxInstant) {
        return false;
    }
    const auto in_range = [](std::int32_t seconds) {
        return seconds >= -kMaxOffset && seconds <= kMaxOffset;
    };
    if (!in_range(spans.front().offset)) {
        return false;
    }
    for (std::size_t i = 1; i < spans.size(); ++i) {
        const ZoneSpan& span = spans[i];
        if (span.begin < -kFarthestBegin || span.begin > kFarthestBegin || !in_range(span.offset) ||
            !in_range(span.offset - spans[i - 1].offset)) {
            return false;
        }
        if (i > 1 && span.begin - spans[i - 1].begin < kMinSpanSeconds) {
            return false;
        }
    }
    return true;
}

std::size_t span_index(const ZoneView& zone, std::int64_t instant) {
    const auto after = std::upper_bound(zone.spans.begin(), zone.spans.end(), instant,
                                        [](std::int64_t t, const ZoneSpan& span) { return t < span.begin; });
    return static_cast<std::size_t>(after - zone.spans.begin()) - 1;
}

std::int64_t fold_instant(const ZoneView& zone, std::int64_t instant) {
    const std::int64_t beyond = instant - zone.cycle_from;
    return beyond < kCycleSeconds ? instant : zone.cycle_from + beyond % kCycleSeconds;
}

std::int32_t offset_at(const ZoneView& zone, std::int64_t instant) {
    return zone.spans[span_index(zone, fold_instant(zone, instant))].offset;
}

} // namespace qinglong::core
