#pragma once

#include "qinglong_sched/core/cron_expression.hpp"
#include "qinglong_sched/core/zone_spans.hpp"

#include <cstdint>

namespace qinglong::core {

// What becomes of local times that do not exist, or exist twice. Both concern wall-clock expressions only;
// one whose hour field holds all 24 hours follows real time: skipped hours are lost, repeated ones count.
enum class Gap : std::uint8_t { shift, skip };
enum class Overlap : std::uint8_t { first, both, second };

// `either`: a day that matches one of two restricted day fields counts. `both`: it must match each of them.
enum class DayMatch : std::uint8_t { either, both };

struct InstantRules {
    Gap gap = Gap::shift;
    Overlap overlap = Overlap::first;
    DayMatch day_match = DayMatch::either;
};

bool is_wall_clock(const CronExpression& expression);

// The smallest element strictly after `after` (epoch seconds) of the fixed set of instants that expression,
// zone and rules describe. False: none within 400 years, or `after` outside kMinInstant..kMaxInstant.
// `steps`, if given, receives the cost, which never exceeds search_step_bound().
bool next_occurrence(const CronExpression& expression, const ZoneView& zone, std::int64_t after,
                     std::int64_t& result, const InstantRules& rules = {}, std::uint32_t* steps = nullptr);

std::uint64_t search_step_bound(const ZoneView& zone);

// How many elements lie in (after, until], as far as that is inside kMinInstant..kMaxInstant: exact up to
// `cap`, and never more than it. Whole days are counted, not visited.
std::uint64_t count_occurrences(const CronExpression& expression, const ZoneView& zone, std::int64_t after,
                                std::int64_t until, std::uint64_t cap, const InstantRules& rules = {});

} // namespace qinglong::core
