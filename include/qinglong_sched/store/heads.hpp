#pragma once
// The tables above a schedule row: the authority on whether a trigger's revision may be scheduled.

#include "qinglong_sched/pg/row_version.hpp"

namespace qinglong::store {

struct RevisionKey {
    std::string_view project_id;
    std::string_view trigger_id;
    std::int32_t revision;
};

struct Heads {
    // The revision is its trigger's head and enabled, it pins its task's head, and its project is active. The
    // rest is for such ones only.
    bool current = false;
    std::string trigger_digest;
    std::int64_t published_at_ms = 0;
    std::string task_id;
    std::int32_t task_revision = 0;
    std::string task_digest;
    Datum spec = 0; // jsonb
    std::string task_name;
    // task_revision, source_content_digest, plan_schema, plan_json and content_digest of the task revision's
    // execution plan; nothing where there is none.
    std::optional<pg::Row> execution;
};

// Reads them as they stand now, in the order of the keys; execution plans where they are wanted.
std::vector<Heads> read_heads(const std::vector<RevisionKey>& keys, bool with_executions);

} // namespace qinglong::store
