#pragma once
// Occurrences with what a change of the clocks did to them. The instants are those of Schedule::next(); this
// only says how they came about.

#include "qinglong_sched/core/schedule.hpp"

#include <string>
#include <vector>

namespace qinglong::core {

struct Explained {
    std::optional<std::int64_t> occurrence_ms; // nothing: a local time that the schedule loses
    std::int64_t local_ms = 0;                 // the local reading, as milliseconds since 1970-01-01T00:00
    std::int32_t offset = 0;                   // of an occurrence: seconds east of UTC
    std::string note;                          // may be empty
};

// Up to `count` occurrences after a time, and before each the local times that were lost since the one before
// (at most `count` of one gap).
std::vector<Explained> explain(const Schedule& schedule, std::int64_t after_ms, std::size_t count);

// "2026-03-29 02:30:00", with milliseconds where there are any.
std::string print_local(std::int64_t local_ms);

} // namespace qinglong::core
