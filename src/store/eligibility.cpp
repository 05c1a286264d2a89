#include "qinglong_sched/store/eligibility.hpp"

namespace qinglong::store {

// Statements here ask for other tables' rows by key, one sub-select each: joined tables would all be narrowed
// to the project, and where there are no statistics the planner takes that to be one row and never looks at
// the rest of the key.

namespace {

std::vector<std::string> trigger_ids(const pg::Rows& rows) {
    std::vector<std::string> ids;
    ids.reserve(rows.size());
    for (std::uint64_t i = 0; i < rows.size(); ++i)
        ids.push_back(pg::Row(rows, i).string(0));
    return ids;
}

// Occurrences between the cursor (or the revision's birth) and now were due: no cron evaluation may happen
// under a row lock, so the span is stored, and the next admission or publication counts it.
void revoke(const std::string& project_id, const std::vector<std::string>& ids) {
    if (ids.empty())
        return;
    static pg::Statement update = pg::statement<TEXTOID, TEXTARRAYOID, INT8OID>(R"(
UPDATE qinglong.trigger_schedules s
   SET eligible = false, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
       claim_version = s.claim_version + 1, state_version = s.state_version + 1,
       updated_at_ms = GREATEST(s.updated_at_ms, $3),
       uncounted = s.uncounted + CASE WHEN s.finished THEN '{}'::int8multirange ELSE int8multirange(int8range(
           LEAST($3, COALESCE(s.next_fire_at_ms,
                              (SELECT r.created_at_ms FROM qinglong.trigger_revisions r
                                WHERE r.project_id = s.project_id AND r.trigger_id = s.trigger_id
                                  AND r.revision = s.trigger_revision))), $3)) END
  FROM (SELECT $1 AS project_id, unnest($2) AS trigger_id) k
 WHERE s.project_id = k.project_id AND s.trigger_id = k.trigger_id AND s.eligible)");
    pg::execute_latest(update, {pg::value(project_id), pg::array(ids), pg::value(pg::clock_ms())});
}

} // namespace

std::vector<std::string> lock_task_schedules(const std::string& project_id, const std::string& task_id,
                                             std::int32_t revision) {
    static pg::Statement lock = pg::statement<TEXTOID, TEXTOID, INT4OID>(R"(
SELECT s.trigger_id
  FROM (SELECT t.project_id, t.trigger_id FROM qinglong.triggers t
         WHERE t.project_id = $1 AND t.task_id = $2 OFFSET 0) t
  JOIN qinglong.trigger_schedules s ON s.project_id = t.project_id AND s.trigger_id = t.trigger_id
 WHERE s.eligible
   AND (SELECT r.task_revision FROM qinglong.trigger_revisions r
         WHERE r.project_id = s.project_id AND r.trigger_id = s.trigger_id
           AND r.revision = s.trigger_revision) <> $3
 ORDER BY s.project_id, s.trigger_id
   FOR UPDATE OF s)");
    return trigger_ids(
        pg::execute_latest(lock, {pg::value(project_id), pg::value(task_id), pg::value(revision)}));
}

void lock_project_schedules(const std::string& project_id) {
    static pg::Statement lock = pg::statement<TEXTOID>("SELECT s.trigger_id FROM qinglong.trigger_schedules s"
                                                       " WHERE s.project_id = $1"
                                                       " ORDER BY s.project_id, s.trigger_id FOR UPDATE");
    pg::execute_latest(lock, {pg::value(project_id)});
}

void sweep_trigger(const std::string& project_id, const std::string& trigger_id, std::int32_t revision) {
    static pg::Statement lock =
        pg::statement<TEXTOID, TEXTOID, INT4OID>("SELECT s.trigger_id FROM qinglong.trigger_schedules s"
                                                 " WHERE s.project_id = $1 AND s.trigger_id = $2 AND "
                                                 "s.trigger_revision <> $3 AND s.eligible FOR UPDATE");
    revoke(project_id, trigger_ids(pg::execute_latest(
                           lock, {pg::value(project_id), pg::value(trigger_id), pg::value(revision)})));
}

void sweep_task(const std::string& project_id, const std::string& task_id, std::int32_t revision) {
    revoke(project_id, lock_task_schedules(project_id, task_id, revision));
}

void sweep_project(const std::string& project_id, bool active) {
    lock_project_schedules(project_id);
    if (!active) {
        static pg::Statement eligible = pg::statement<TEXTOID>(
            "SELECT s.trigger_id FROM qinglong.trigger_schedules s WHERE s.project_id = $1 AND s.eligible");
        revoke(project_id, trigger_ids(pg::execute_latest(eligible, {pg::value(project_id)})));
        return;
    }
    // Nothing was due while the project was archived: the row goes on with the first occurrence from now on,
    // which a scheduler derives from the cursor when it claims.
    static pg::Statement restore = pg::statement<TEXTOID, INT8OID>(R"(
UPDATE qinglong.trigger_schedules s
   SET eligible = true, state_version = s.state_version + 1,
       next_fire_at_ms = CASE WHEN NOT s.finished THEN GREATEST(s.next_fire_at_ms, $2) END,
       updated_at_ms = GREATEST(s.updated_at_ms, $2)
 WHERE s.project_id = $1 AND NOT s.eligible
   AND s.trigger_revision = (SELECT t.current_revision FROM qinglong.triggers t
                              WHERE t.project_id = s.project_id AND t.trigger_id = s.trigger_id)
   AND (SELECT r.enabled
               AND r.spec_json ->> 'schema' IN ('qinglong/cron@v1', 'qinglong/cron@v2', 'qinglong/interval@v1',
                                                'qinglong/once@v1')
               AND r.task_revision = (SELECT d.current_revision FROM qinglong.task_definitions d
                                       WHERE d.project_id = r.project_id AND d.task_id = r.task_id)
               AND r.task_content_digest = (SELECT v.content_digest FROM qinglong.task_definition_revisions v
                                             WHERE v.project_id = r.project_id AND v.task_id = r.task_id
                                               AND v.revision = r.task_revision)
          FROM qinglong.trigger_revisions r
         WHERE r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision))");
    pg::execute_latest(restore, {pg::value(project_id), pg::value(pg::clock_ms())});
}

} // namespace qinglong::store
