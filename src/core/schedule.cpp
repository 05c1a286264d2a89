#include "qinglong_sched/core/schedule.hpp"

#include <algorithm>

namespace qinglong::core {

namespace {

std::int64_t floor_seconds(std::int64_t ms) {
    return ms / 1000 - ((ms % 1000 != 0 && ms < 0) ? 1 : 0);
}

// The first instant strictly after a time that is not before begin_ms - 1, with no regard to end_ms.
bool find_next(const Schedule& schedule, std::int64_t after_ms, std::int64_t& result) {
    std::int64_t second = 0;
    switch (schedule.kind) {
    case ScheduleKind::cron:
        if (!next_occurrence(schedule.expression, schedule.zone, floor_seconds(after_ms), second,
                             schedule.rules))
            return false;
        result = second * 1000;
        return true;
    case ScheduleKind::interval:
        result = schedule.begin_ms +
                 (after_ms < schedule.begin_ms
                      ? 0
                      : ((after_ms - schedule.begin_ms) / schedule.every_ms + 1) * schedule.every_ms);
        return true;
    case ScheduleKind::once:
        break;
    }
    result = schedule.begin_ms;
    return after_ms < schedule.begin_ms;
}

} // namespace

std::optional<std::int64_t> Schedule::next(std::int64_t after_ms) const {
    if (after_ms >= kMaxTimeMs)
        return std::nullopt;
    std::int64_t found = 0;
    const std::int64_t from =
        begin_ms > std::numeric_limits<std::int64_t>::min() ? std::max(after_ms, begin_ms - 1) : after_ms;
    if (!find_next(*this, from, found) || found >= end_ms || found > kMaxTimeMs)
        return std::nullopt;
    return found;
}

std::uint64_t Schedule::count(std::int64_t from_ms, std::int64_t until_ms, std::uint64_t cap) const {
    const std::int64_t from = std::max(from_ms, begin_ms);
    const std::int64_t until = std::min({until_ms, end_ms, kMaxTimeMs + 1});
    if (until <= from)
        return 0;
    switch (kind) {
    case ScheduleKind::cron:
        // Instants are whole seconds, so [a, b) in milliseconds is (floor(a - 1), floor(b - 1)] in seconds.
        return count_occurrences(expression, zone, floor_seconds(from - 1), floor_seconds(until - 1), cap,
                                 rules);
    case ScheduleKind::interval: {
        const auto before = [&](std::int64_t at) { // instants in [begin_ms, at)
            return static_cast<std::uint64_t>((at - begin_ms + every_ms - 1) / every_ms);
        };
        return std::min(before(until) - before(from), cap);
    }
    case ScheduleKind::once:
        break;
    }
    return from == begin_ms ? std::min<std::uint64_t>(1, cap) : 0;
}

Schedule interval_schedule(std::int64_t anchor_ms, std::int64_t every_ms) {
    Schedule schedule;
    schedule.kind = ScheduleKind::interval;
    schedule.begin_ms = anchor_ms;
    schedule.every_ms = every_ms;
    return schedule;
}

Schedule once_schedule(std::int64_t at_ms) {
    Schedule schedule;
    schedule.kind = ScheduleKind::once;
    schedule.begin_ms = at_ms;
    schedule.end_ms = at_ms + 1;
    return schedule;
}

} // namespace qinglong::core
