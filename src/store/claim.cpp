#include "qinglong_sched/store/claim.hpp"

#include "qinglong_sched/pg/row_version.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

#include <algorithm>
#include <tuple>

namespace qinglong::store {

namespace {

// Rows that were due and are now locked.
struct Locked {
    std::vector<pg::Value> row_ids;
    std::vector<std::string> projects;
    std::vector<std::string> triggers;
    std::vector<std::int32_t> revisions;
};

// How far the due rows have been read.
struct Place {
    std::int64_t due = -2; // before all
    std::string project;
    std::string trigger;
    bool at_end = false;
};

// Reads due rows on from a place, in the order of the index and in portions, and locks them until there are
// enough.
Locked lock_due(std::int64_t now, std::size_t most, Place& place) {
    // The clock arrives as a parameter: as a sub-select it would cost the planner its index.
    static pg::Statement statement = pg::statement<INT8OID, INT8OID, INT8OID, TEXTOID, TEXTOID>(R"(
SELECT s.ctid, s.project_id, s.trigger_id, s.trigger_revision,
       COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint)
  FROM qinglong.trigger_schedules s
 WHERE s.schedulable
   AND COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint) <= $1
   AND (COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint), s.project_id, s.trigger_id) > ($3, $4, $5)
   AND (s.claim_expires_at_ms IS NULL OR s.claim_expires_at_ms <= $1)
   AND s.updated_at_ms <= $1
   AND (s.retry_at_ms IS NULL OR s.retry_at_ms <= $1)
 ORDER BY COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint), s.project_id, s.trigger_id
 LIMIT $2)");
    constexpr std::size_t kLeastPortion = 16; // of which others may hold some
    constexpr std::size_t kMostPortion = 1024;

    Locked locked;
    const Oid table = pg::table_oid("qinglong", "trigger_schedules");
    for (std::size_t portion = std::max(most, kLeastPortion);;
         portion = std::min(2 * portion, kMostPortion)) {
        const pg::Rows rows = pg::execute(
            statement, {pg::value(now), pg::value(static_cast<std::int64_t>(portion)), pg::value(place.due),
                        pg::value(place.project), pg::value(place.trigger)});
        std::vector<pg::Row> due_rows;
        std::vector<Datum> row_ids;
        for (std::uint64_t i = 0; i < rows.size(); ++i) {
            due_rows.emplace_back(rows, i);
            row_ids.push_back(due_rows.back().datum(0));
        }
        const std::vector<std::size_t> indexes =
            pg::lock_versions(table, row_ids, most - locked.row_ids.size());
        for (const std::size_t index : indexes) {
            const pg::Row& row = due_rows[index];
            locked.row_ids.emplace_back(row.datum(0));
            locked.projects.push_back(row.string(1));
            locked.triggers.push_back(row.string(2));
            locked.revisions.push_back(row.integer(3));
        }
        const bool enough = locked.row_ids.size() == most;
        place.at_end = !enough && rows.size() < portion;
        if (place.at_end)
            return locked;
        const pg::Row& last = due_rows[enough ? indexes.back() : due_rows.size() - 1];
        place.due = last.bigint(4);
        place.project = last.string(1);
        place.trigger = last.string(2);
        if (enough)
            return locked;
    }
}

} // namespace

std::vector<ScheduleClaim> claim_due(const std::string& owner, const pg_uuid_t& token, std::int64_t lease_ms,
                                     int max_claims) {
    // The joins are the authority for the rows that were locked. A row is claimed even if its spec is
    // damaged, so that an admission can quarantine it.
    static pg::Statement statement = pg::statement<TIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID,
                                                   INT8OID, TEXTOID, UUIDOID, INT8OID>(R"(
WITH eligible AS MATERIALIZED (
    SELECT i.row_id, r.content_digest, r.created_at_ms, r.task_id, r.task_revision, r.task_content_digest,
           r.spec_json
      FROM unnest($1, $2, $3, $4) AS i (row_id, project_id, trigger_id, trigger_revision)
      JOIN qinglong.triggers t
        ON t.project_id = i.project_id AND t.trigger_id = i.trigger_id AND t.current_revision = i.trigger_revision
      JOIN qinglong.trigger_revisions r
        ON r.project_id = i.project_id AND r.trigger_id = i.trigger_id AND r.revision = i.trigger_revision
      JOIN qinglong.task_definition_revisions v
        ON v.project_id = i.project_id AND v.task_id = r.task_id AND v.revision = r.task_revision
      JOIN qinglong.task_definitions h
        ON h.project_id = i.project_id AND h.task_id = r.task_id AND h.current_revision = r.task_revision
      JOIN qinglong.projects p ON p.id = i.project_id
     WHERE r.enabled AND p.status = 'active' AND v.content_digest = r.task_content_digest
)
UPDATE qinglong.trigger_schedules s
   SET claim_owner = $6, claim_token = $7, claim_version = s.claim_version + 1, claim_expires_at_ms = $5 + $8,
       state_version = s.state_version + 1, updated_at_ms = $5
  FROM eligible e
 WHERE s.ctid = e.row_id
RETURNING s.project_id, s.trigger_id, s.trigger_revision, e.content_digest, e.created_at_ms, e.task_id,
          e.task_revision, e.task_content_digest,
          s.state_version, s.next_fire_at_ms, s.claim_version, s.updated_at_ms, s.claim_expires_at_ms, e.spec_json,
          COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint))");

    const std::int64_t now = pg::clock_ms();
    const auto most = static_cast<std::size_t>(max_claims);
    std::vector<std::pair<std::int64_t, ScheduleClaim>> found;
    // A row that is due by its hint but not eligible costs its own place only: the next ones follow.
    for (Place place; found.size() < most && !place.at_end;) {
        const Locked locked = lock_due(now, most - found.size(), place);
        if (locked.row_ids.empty())
            break;
        const pg::Rows rows =
            pg::execute(statement, {pg::array(locked.row_ids, TIDOID), pg::array(locked.projects),
                                    pg::array(locked.triggers), pg::array(locked.revisions), pg::value(now),
                                    pg::value(owner), pg::value(token), pg::value(lease_ms)});
        for (std::uint64_t i = 0; i < rows.size(); ++i) {
            const pg::Row row(rows, i);
            ScheduleClaim claim;
            claim.project_id = row.string(0);
            claim.trigger_id = row.string(1);
            claim.trigger_revision = row.integer(2);
            claim.trigger_content_digest = row.string(3);
            claim.trigger_updated_at_ms = row.bigint(4);
            claim.task_id = row.string(5);
            claim.task_revision = row.integer(6);
            claim.task_content_digest = row.string(7);
            claim.state_version = row.bigint(8);
            claim.next_fire_at_ms = row.maybe_bigint(9);
            claim.claim_owner = owner;
            claim.claim_token = token;
            claim.claim_version = row.bigint(10);
            claim.claim_acquired_at_ms = row.bigint(11);
            claim.claim_expires_at_ms = row.bigint(12);
            claim.spec = row.bytes(13);
            SpecReadings readings = read_spec_readings(parse_stored_spec(pg::json_text(row.datum(13))));
            claim.expression = std::move(readings.expression);
            claim.timezone = std::move(readings.timezone);
            claim.misfire_policy = std::move(readings.misfire_policy);
            found.emplace_back(row.bigint(14), std::move(claim));
        }
    }
    // RETURNING promises no order.
    const auto key = [](const auto& entry) {
        return std::tuple(entry.first, std::string_view(entry.second.project_id),
                          std::string_view(entry.second.trigger_id));
    };
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    std::vector<ScheduleClaim> claims;
    claims.reserve(found.size());
    for (auto& entry : found)
        claims.push_back(std::move(entry.second));
    return claims;
}

std::optional<std::int64_t> earliest_due_after(std::int64_t after_ms) {
    // A row that is due already and still there is leased to somebody, or backs off. Few are: a look at the
    // first of them is enough, and bounded.
    static pg::Statement statement = pg::statement<INT8OID>(R"(
SELECT LEAST(
    (SELECT min(GREATEST(d.claim_expires_at_ms, d.retry_at_ms))
       FROM (SELECT s.claim_expires_at_ms, s.retry_at_ms
               FROM qinglong.trigger_schedules s
              WHERE s.schedulable AND COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint) <= $1
              ORDER BY COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint), s.project_id, s.trigger_id
              LIMIT 256) d
      WHERE GREATEST(d.claim_expires_at_ms, d.retry_at_ms) > $1),
    (SELECT s.next_fire_at_ms + s.due_delay_ms
       FROM qinglong.trigger_schedules s
      WHERE s.schedulable AND COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint) > $1
      ORDER BY COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint), s.project_id, s.trigger_id
      LIMIT 1)))");
    return pg::Row(pg::execute(statement, {pg::value(after_ms)}), 0).maybe_bigint(0);
}

} // namespace qinglong::store
