#pragma once
// The lease on a schedule row: taking it, and its 19 facts.

#include "qinglong_sched/pg/datum.hpp"

namespace qinglong::store {

struct ScheduleClaim {
    std::string project_id;
    std::string trigger_id;
    std::int32_t trigger_revision = 0;
    std::string trigger_content_digest;
    std::int64_t trigger_updated_at_ms = 0;
    std::string task_id;
    std::int32_t task_revision = 0;
    std::string task_content_digest;
    std::optional<std::string> expression;
    std::optional<std::string> timezone;
    std::optional<std::string> misfire_policy;
    std::int64_t state_version = 0;
    std::optional<std::int64_t> next_fire_at_ms;
    std::string claim_owner;
    pg_uuid_t claim_token = {};
    std::int64_t claim_version = 0;
    std::int64_t claim_acquired_at_ms = 0;
    std::int64_t claim_expires_at_ms = 0;
    std::string spec; // jsonb as stored; empty for NULL
};

// Claims up to max_claims due rows for owner, in claim order, over one observation of the clock.
std::vector<ScheduleClaim> claim_due(const std::string& owner, const pg_uuid_t& token, std::int64_t lease_ms,
                                     int max_claims);

// The table of the schedule rows.
Oid schedules();

// When, after that time, a row can be claimed next: its cursor, the end of its lease or of its back-off.
std::optional<std::int64_t> earliest_due_after(std::int64_t after_ms);

} // namespace qinglong::store
