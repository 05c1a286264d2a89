#include "qinglong_sched/store/claim.hpp"

#include "qinglong_sched/pg/row_writer.hpp"
#include "qinglong_sched/store/heads.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

#include <algorithm>

namespace qinglong::store {

namespace {

// A row that was due and is now locked.
struct Due {
    Datum row_id;
    std::string project_id;
    std::string trigger_id;
    std::int32_t trigger_revision;
    std::optional<std::int64_t> next_fire_at_ms;
    std::int64_t claim_version;
    std::int64_t state_version;
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
std::vector<Due> lock_due(std::int64_t now, std::size_t most, Place& place) {
    // The clock arrives as a parameter: as a sub-select it would cost the planner its index.
    static pg::Statement statement = pg::statement<INT8OID, INT8OID, INT8OID, TEXTOID, TEXTOID>(R"(
SELECT s.ctid, s.project_id, s.trigger_id, s.trigger_revision,
       COALESCE(s.next_fire_at_ms + s.due_delay_ms, (-1)::bigint),
       s.next_fire_at_ms, s.claim_version, s.state_version
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

    std::vector<Due> locked;
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
            pg::lock_versions(schedules(), row_ids, most - locked.size());
        for (const std::size_t index : indexes) {
            const pg::Row& row = due_rows[index];
            locked.push_back({row.datum(0), row.string(1), row.string(2), row.integer(3), row.maybe_bigint(5),
                              row.bigint(6), row.bigint(7)});
        }
        const bool enough = locked.size() == most;
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

Oid schedules() {
    return pg::table_oid("qinglong", "trigger_schedules");
}

std::vector<ScheduleClaim> claim_due(const std::string& owner, const pg_uuid_t& token, std::int64_t lease_ms,
                                     int max_claims) {
    static constexpr const char* kColumns[] = {"claim_owner",         "claim_token",   "claim_version",
                                               "claim_expires_at_ms", "state_version", "updated_at_ms"};

    const std::int64_t now = pg::clock_ms();
    const auto most = static_cast<std::size_t>(max_claims);
    std::vector<ScheduleClaim> claims;
    // A row that is due by its hint but not eligible costs its own place only: the next ones follow.
    for (Place place; claims.size() < most && !place.at_end;) {
        const std::vector<Due> due = lock_due(now, most - claims.size(), place);
        if (due.empty())
            break;
        std::vector<RevisionKey> keys;
        keys.reserve(due.size());
        for (const Due& row : due)
            keys.push_back({row.project_id, row.trigger_id, row.trigger_revision});
        const std::vector<Heads> heads = read_heads(keys, false);
        std::vector<ScheduleClaim> made;
        std::vector<Datum> row_ids;
        std::vector<pg::Value> values;
        for (std::size_t i = 0; i < due.size(); ++i) {
            const Due& found = due[i];
            const Heads& head = heads[i];
            if (!head.current)
                continue;
            ScheduleClaim claim;
            claim.project_id = found.project_id;
            claim.trigger_id = found.trigger_id;
            claim.trigger_revision = found.trigger_revision;
            claim.trigger_content_digest = head.trigger_digest;
            claim.trigger_updated_at_ms = head.published_at_ms;
            claim.task_id = head.task_id;
            claim.task_revision = head.task_revision;
            claim.task_content_digest = head.task_digest;
            claim.state_version = found.state_version + 1;
            claim.next_fire_at_ms = found.next_fire_at_ms;
            claim.claim_owner = owner;
            claim.claim_token = token;
            claim.claim_version = found.claim_version + 1;
            claim.claim_acquired_at_ms = now;
            claim.claim_expires_at_ms = now + lease_ms;
            claim.spec = pg::jsonb_bytes(head.spec);
            // A row is claimed even if its spec is damaged, so that an admission can quarantine it.
            SpecReadings readings = read_spec_readings(parse_stored_spec(pg::json_text(head.spec)));
            claim.expression = std::move(readings.expression);
            claim.timezone = std::move(readings.timezone);
            claim.misfire_policy = std::move(readings.misfire_policy);
            row_ids.push_back(found.row_id);
            values.insert(values.end(), {pg::value(claim.claim_owner), pg::value(token),
                                         pg::value(claim.claim_version), pg::value(claim.claim_expires_at_ms),
                                         pg::value(claim.state_version), pg::value(now)});
            made.push_back(std::move(claim));
        }
        for (const std::size_t index : pg::update_rows(schedules(), kColumns, row_ids, values))
            claims.push_back(std::move(made[index]));
    }
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
