#include "qinglong_sched/core/decision.hpp"

#include <algorithm>

namespace qinglong::core {

namespace {

// The cursor is derived again rather than believed: after a change of the zone data, or of the trigger's
// eligibility, it may lie between two instants and then means "the first one from here on".
std::int64_t search_start(const ClaimTimes& claim) {
    return claim.cursor_ms ? *claim.cursor_ms - 1
                           : std::max<std::int64_t>(0, claim.trigger_updated_at_ms - 1);
}

} // namespace

std::optional<Decision> decide(const Schedule& schedule, MisfirePolicy policy, const ClaimTimes& claim,
                               std::int64_t grace_ms) {
    const auto due = schedule.next(search_start(claim));
    if (!due)
        return std::nullopt;
    const std::int64_t observed = claim.acquired_at_ms;
    if (*due > observed)
        return Decision{Disposition::initialize, observed, *due, std::nullopt};
    const auto next = schedule.next(observed);
    if (!next)
        return std::nullopt;
    const bool late = observed - *due > grace_ms;
    if (late && policy == MisfirePolicy::skip)
        return Decision{Disposition::skip, observed, *next, std::nullopt};
    return Decision{Disposition::admit, observed, *next, *due};
}

Passed count_passed(const Schedule& schedule, const ClaimTimes& claim, const Decision& decision) {
    Passed passed;
    switch (decision.disposition) {
    case Disposition::initialize:
        break;
    case Disposition::skip:
        passed.skipped = schedule.count(search_start(claim) + 1, decision.observed_at_ms + 1);
        break;
    case Disposition::admit:
        passed.coalesced = schedule.count(*decision.scheduled_for_ms + 1, decision.observed_at_ms + 1);
        break;
    }
    return passed;
}

} // namespace qinglong::core
