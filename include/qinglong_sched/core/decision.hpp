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

struct Decision {
    Disposition disposition;
    std::int64_t observed_at_ms;
    std::int64_t next_fire_at_ms;
    std::optional<std::int64_t> scheduled_for_ms; // admit only

    friend bool operator==(const Decision&, const Decision&) = default;
};

// Nothing when the schedule has no further occurrence.
std::optional<Decision> decide(const Schedule& schedule, MisfirePolicy policy, const ClaimTimes& claim,
                               std::int64_t grace_ms);

// What the decision passes over, to be counted on the schedule row (each capped).
struct Passed {
    std::uint64_t skipped = 0;
    std::uint64_t coalesced = 0;
};
Passed count_passed(const Schedule& schedule, const ClaimTimes& claim, const Decision& decision);

} // namespace qinglong::core
