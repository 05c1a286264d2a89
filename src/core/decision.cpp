#include "qinglong_sched/core/decision.hpp"

#include <algorithm>

namespace qinglong::core {

// The cursor is derived again rather than believed: after a change of the zone data, of the trigger's
// eligibility or of the clock, it may lie between two instants and then means "the first one from here on".
std::int64_t search_start(const ClaimTimes& claim) {
    return claim.cursor_ms ? *claim.cursor_ms - 1
                           : std::max<std::int64_t>(0, claim.trigger_updated_at_ms - 1);
}

std::optional<Decision> decide(const Schedule& schedule, const Timing& timing, const ClaimTimes& claim) {
    // Seen that much earlier, the schedule has no delay: what is due or late now is what was so then.
    const std::int64_t now = claim.acquired_at_ms - timing.delay_ms;
    const auto due = schedule.next(search_start(claim));
    if (!due && !schedule.ends())
        return std::nullopt;
    if (due && *due > now)
        return Decision{Disposition::initialize, claim.acquired_at_ms, due, std::nullopt};
    const auto next = due ? schedule.next(now) : std::nullopt;
    if (!next && !schedule.ends())
        return std::nullopt;
    if (!due || (timing.policy == MisfirePolicy::skip && now - *due > timing.grace_ms))
        return Decision{Disposition::skip, claim.acquired_at_ms, next, std::nullopt};
    return Decision{Disposition::admit, claim.acquired_at_ms, next, due};
}

Passed count_passed(const Schedule& schedule, const Timing& timing, const ClaimTimes& claim,
                    const Decision& decision) {
    const std::int64_t until = claim.acquired_at_ms - timing.delay_ms + 1;
    Passed passed;
    switch (decision.disposition) {
    case Disposition::initialize:
        break;
    case Disposition::skip:
        passed.skipped = schedule.count(search_start(claim) + 1, until);
        break;
    case Disposition::admit:
        passed.coalesced = schedule.count(*decision.scheduled_for_ms + 1, until);
        break;
    }
    return passed;
}

} // namespace qinglong::core
