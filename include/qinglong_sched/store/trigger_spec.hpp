#pragma once
// A stored trigger spec, read: the instants and the misfire policy.

#include "qinglong_sched/core/decision.hpp"
#include "qinglong_sched/core/specs.hpp"
#include "qinglong_sched/pg/errors.hpp"

namespace qinglong::store {

// Why a row is quarantined; the code is stored and shown.
struct Damage {
    const char* code; // spec_damaged, zone_unknown, no_occurrence, trigger_digest, execution_missing, ...
    const char* message;
};

struct TriggerSpec {
    core::Schedule schedule;
    core::MisfirePolicy policy;
    std::int64_t jitter_ms = 0;
    std::optional<std::int64_t> grace_ms; // nothing: the server's setting

    core::Timing timing(const std::string& trigger_id, std::int64_t server_grace_ms) const;
};

// What the claim shows of a spec: the texts under these names, nothing where there are none.
struct SpecReadings {
    std::optional<std::string> expression;
    std::optional<std::string> timezone;
    std::optional<std::string> misfire_policy;

    friend bool operator==(const SpecReadings&, const SpecReadings&) = default;
};

// A stored spec as it is read; nothing where it cannot be.
using StoredSpec = std::optional<core::Json>;
StoredSpec parse_stored_spec(const std::string& json);

SpecReadings read_spec_readings(const StoredSpec& stored);

// False with the damage when it is no schedule that could have been published, or its zone is gone.
bool read_trigger_spec(const StoredSpec& stored, TriggerSpec& out, Damage& damage);

} // namespace qinglong::store
