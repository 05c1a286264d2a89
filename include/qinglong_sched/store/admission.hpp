#pragma once
// Turning claims into durable Runs, under the full fence of each.

#include "qinglong_sched/core/decision.hpp"
#include "qinglong_sched/pg/boundary.hpp"
#include "qinglong_sched/store/claim.hpp"

namespace qinglong::store {

struct Admission {
    enum class Status { admitted, advanced, raced, already_admitted, quarantined, failed };
    Status status = Status::raced;
    std::optional<core::Decision> decision; // admitted, advanced, already_admitted
    std::optional<pg_uuid_t> run_id;
    std::optional<pg_uuid_t> attempt_id;
    std::optional<pg::PgError> failure; // failed
    const char* fault_code = nullptr;   // quarantined
};

// Evaluates the decision of a claim; throws QL002 where its spec cannot be read.
core::Decision decide_claim(const ScheduleClaim& claim, std::int64_t grace_ms);

// One result per claim, in the order given. Each claim stands by itself; only an SSI abort (40001) and a
// cancellation are thrown. A decision that is given must be the one that follows from the claim.
std::vector<Admission> admit_claims(const std::vector<ScheduleClaim>& claims, std::int64_t grace_ms,
                                    const core::Decision* given = nullptr);

// Gives a claim back under its own fence; nothing happens when it is no longer valid or its row is still
// busy.
void release_claim(const ScheduleClaim& claim);

// Under the fence of its claim, lets a row that failed wait until now + delay; false when the claim is no
// longer valid.
bool back_off(const ScheduleClaim& claim, const std::string& fault_code, std::int64_t least_delay_ms);

bool is_serialization_abort(const pg::PgError& error);

} // namespace qinglong::store
