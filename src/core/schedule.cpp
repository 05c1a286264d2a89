#include "qinglong_sched/core/schedule.hpp"

namespace qinglong::core {

namespace {

std::int64_t floor_seconds(std::int64_t ms) {
    return ms / 1000 - ((ms % 1000 != 0 && ms < 0) ? 1 : 0);
}

} // namespace

std::optional<std::int64_t> Schedule::next(std::int64_t after_ms) const {
    std::int64_t second = 0;
    if (!next_occurrence(expression, zone, floor_seconds(after_ms), second) || second > kMaxTimeMs / 1000)
        return std::nullopt;
    return second * 1000;
}

std::uint64_t Schedule::count(std::int64_t from_ms, std::int64_t until_ms, std::uint64_t cap) const {
    if (until_ms <= from_ms)
        return 0;
    // Instants are whole seconds, so [a, b) in milliseconds is (floor(a - 1), floor(b - 1)] in seconds.
    return count_occurrences(expression, zone, floor_seconds(from_ms - 1), floor_seconds(until_ms - 1), cap);
}

} // namespace qinglong::core
