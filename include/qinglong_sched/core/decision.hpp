#pragma once
// What a claim leads to. Pure: the moment of the claim is the only "now".

#include "qinglong_sched/core/schedule.hpp"

namespace qinglong::core {

enum class Disposition { initialize, skip, admit };
enum class MisfirePolicy { skip, fire_once };

struct ClaimTimes {
    std::optional<std::int64_t> cursor_ms;
    std::int64_t trigger_updated_at_ms;
    std::int64_t acquired_at_ms;
};

// What besides its instants makes a trigger due or late.
struct Timing {
    MisfirePolicy policy = MisfirePolicy::skip;
    std::int64_t grace_ms = 0;
    std::int64_t delay_ms = 0; // occurrences become due, and late, this much later than they are
};

struct Decision {
    Disposition disposition;
    std::int64_t observed_at_ms;
    std::optional<std::int64_t> next_fire_at_ms;  // nothing: the schedule has ended
    std::optional<std::int64_t> scheduled_for_ms; // admit only

    friend bool operator==(const Decision&, const Decision&) = default;
};

// Where the search for the due occurrence begins: the first one after this time.
std::int64_t search_start(const ClaimTimes& claim);

// Nothing when a schedule that was never meant to end has no further occurrence.
std::optional<Decision> decide(const Schedule& schedule, const Timing& timing, const ClaimTimes& claim);

// What the decision passes over, to be counted on the schedule row (each capped).
struct Passed {
    std::uint64_t skipped = 0;
    std::uint64_t coalesced = 0;
};
Passed count_passed(const Schedule& schedule, const Timing& timing, const ClaimTimes& claim,
                    const Decision& decision);

} // namespace qinglong::core
