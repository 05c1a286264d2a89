#include "qinglong_sched/store/upkeep.hpp"

#include "qinglong_sched/core/instant.hpp"
#include "qinglong_sched/core/stable_hash.hpp"
#include "qinglong_sched/pg/zone.hpp"

namespace qinglong::store {

namespace {

// Set when a look found nothing to do, never by the work itself: that may yet be rolled back.
bool rows_settled = false;
bool zones_settled = false;

// Rows whose floor lies ahead of the clock got it, and their cursor, from a clock that was ahead. They come
// back to now, and their next occurrence is derived from here. What was admitted ahead of time stays so: its
// Run is there, and keeps its instant from being admitted again. Answers whether there was nothing to do.
bool pull_back(std::int64_t now) {
    static pg::Statement look =
        pg::statement<INT8OID>("SELECT FROM qinglong.trigger_schedules s WHERE s.updated_at_ms > $1 LIMIT 1");
    static pg::Statement pull = pg::statement<INT8OID, INT8OID>(R"(
WITH ahead AS MATERIALIZED (
    SELECT s.ctid AS row_id, r.created_at_ms
      FROM qinglong.trigger_schedules s
      JOIN qinglong.trigger_revisions r
        ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision
     WHERE s.updated_at_ms > $2
     ORDER BY s.project_id, s.trigger_id
       FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE qinglong.trigger_schedules s
   SET next_fire_at_ms = CASE
           WHEN s.next_fire_at_ms <= $1 OR (s.next_fire_at_ms IS NULL AND NOT s.finished AND a.created_at_ms <= $1)
           THEN s.next_fire_at_ms ELSE $1 END,
       finished = false,
       last_scheduled_at_ms = CASE
           WHEN s.last_scheduled_at_ms > $1
           THEN (SELECT max(u.scheduled_for_ms) FROM qinglong.runs u
                  WHERE u.project_id = s.project_id AND u.trigger_id = s.trigger_id AND u.trigger_type = 'cron'
                    AND u.scheduled_for_ms <= $1)
           ELSE s.last_scheduled_at_ms END,
       uncounted = s.uncounted * int8multirange(int8range(NULL, $1)),
       retry_at_ms = CASE WHEN s.retry_at_ms > $1 THEN $1 ELSE s.retry_at_ms END,
       claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
       claim_version = s.claim_version + 1, state_version = s.state_version + 1, updated_at_ms = $1
  FROM ahead a
 WHERE s.ctid = a.row_id)");

    const pg::Value limit = pg::value(now + kLongestLeaseMs);
    if (pg::execute_scan(look, {limit}).empty())
        return true;
    (void)pg::execute(pull, {pg::value(now), limit});
    if (const std::uint64_t rows = pg::affected_rows(); rows > 0)
        pg::pgcall([&] {
            ereport(LOG, (errmsg("the server's clock was set back: " UINT64_FORMAT
                                 " schedules continue from the present time",
                                 rows)));
        });
    return false;
}

struct ChangedZones {
    std::vector<std::string> names;
    std::vector<std::string> fingerprints;
};

// Moves the cursors of these zones that lie ahead back to now, from where the next occurrence is derived with
// the present data. A cursor that is due needs nothing: it is derived again when it is claimed. Answers
// whether no row was busy.
bool derive_again(const ChangedZones& zones, std::int64_t now) {
    // A schedule that has ended may have got another occurrence before its end.
    static pg::Statement count = pg::statement<INT8OID, TEXTARRAYOID, TEXTOID>(R"(
SELECT count(*)
  FROM qinglong.trigger_schedules s
  JOIN qinglong.trigger_revisions r
    ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision
 WHERE r.spec_json #>> '{config,timezone}' = ANY ($2)
   AND (s.next_fire_at_ms > $1 OR (s.finished AND r.spec_json #>> '{config,endAt}' > $3)))");
    static pg::Statement update = pg::statement<INT8OID, TEXTARRAYOID, TEXTOID>(R"(
WITH ahead AS MATERIALIZED (
    SELECT s.ctid AS row_id
      FROM qinglong.trigger_schedules s
      JOIN qinglong.trigger_revisions r
        ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision
     WHERE r.spec_json #>> '{config,timezone}' = ANY ($2)
       AND (s.next_fire_at_ms > $1 OR (s.finished AND r.spec_json #>> '{config,endAt}' > $3))
     ORDER BY s.project_id, s.trigger_id
       FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE qinglong.trigger_schedules s
   SET next_fire_at_ms = $1, finished = false,
       claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
       claim_version = s.claim_version + 1, state_version = s.state_version + 1,
       updated_at_ms = GREATEST(s.updated_at_ms, $1)
  FROM ahead a
 WHERE s.ctid = a.row_id)");

    const std::initializer_list<pg::Value> values = {pg::value(now), pg::array(zones.names),
                                                     pg::value(core::print_instant(now))};
    const auto wanted = static_cast<std::uint64_t>(pg::Row(pg::execute(count, values), 0).bigint(0));
    (void)pg::execute(update, values);
    return pg::affected_rows() >= wanted;
}

// Answers whether the stored fingerprints are all those of this backend.
bool compare_zones(std::int64_t now) {
    static pg::Statement select =
        pg::statement("SELECT z.timezone, z.fingerprint FROM qinglong.zone_data z ORDER BY z.timezone");
    static pg::Statement lock =
        pg::statement<TEXTARRAYOID>("SELECT z.timezone FROM qinglong.zone_data z WHERE z.timezone = ANY ($1)"
                                    " ORDER BY z.timezone FOR NO KEY UPDATE SKIP LOCKED");
    static pg::Statement store = pg::statement<TEXTARRAYOID, TEXTARRAYOID, INT8OID>(
        "UPDATE qinglong.zone_data z SET fingerprint = i.fingerprint, updated_at_ms = $3"
        "  FROM unnest($1, $2) AS i (timezone, fingerprint) WHERE z.timezone = i.timezone");

    ChangedZones changed;
    const pg::Rows rows = pg::execute(select, {});
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
        const pg::Row row(rows, i);
        const std::string name = row.string(0);
        const auto fingerprint = pg::zone_fingerprint(name);
        if (!fingerprint ||
            *fingerprint == row.string(1)) // the cursors of a zone that is gone are quarantined
            continue;
        changed.names.push_back(name);
        changed.fingerprints.push_back(*fingerprint);
    }
    if (changed.names.empty())
        return true;
    // One scheduler does it; the others look again in their next cycle.
    if (pg::execute(lock, {pg::array(changed.names)}).size() < changed.names.size())
        return false;
    if (derive_again(changed, now)) {
        (void)pg::execute(store, {pg::array(changed.names), pg::array(changed.fingerprints), pg::value(now)});
        pg::pgcall([&] {
            ereport(LOG, (errmsg("the time zone data of the server changed: schedules in %zu time zones are "
                                 "derived again",
                                 changed.names.size())));
        });
    }
    return false;
}

bool may_look() {
    return XactIsoLevel == XACT_READ_COMMITTED || XactIsoLevel == XACT_READ_UNCOMMITTED;
}

} // namespace

void settle_time() {
    if (!may_look())
        return;
    const std::int64_t now = pg::clock_ms();
    if (pg::clock_was_set_back(kLongestLeaseMs))
        rows_settled = false;
    if (!rows_settled)
        rows_settled = pull_back(now);
    if (!zones_settled)
        zones_settled = compare_zones(now);
}

void note_zones(const std::vector<ScheduleClaim>& claims) {
    static pg::Statement select =
        pg::statement<TEXTOID>("SELECT z.fingerprint FROM qinglong.zone_data z WHERE z.timezone = $1");
    // Row locks are held: whoever is about to note the same zone is not waited for.
    static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, INT8OID, INT8OID>(
        "INSERT INTO qinglong.zone_data (timezone, fingerprint, updated_at_ms)"
        " SELECT $1, $2, $3 WHERE pg_try_advisory_xact_lock($4) ON CONFLICT DO NOTHING");
    if (!may_look())
        return;
    for (const ScheduleClaim& claim : claims) {
        if (!claim.timezone || pg::zone_is_noted(*claim.timezone))
            continue;
        const auto fingerprint = pg::zone_fingerprint(*claim.timezone);
        if (!fingerprint)
            continue;
        const pg::Rows rows = pg::execute(select, {pg::value(*claim.timezone)});
        if (rows.empty()) {
            const auto key =
                static_cast<std::int64_t>(core::stable_hash("qinglong.zone_data " + *claim.timezone));
            (void)pg::execute(insert, {pg::value(*claim.timezone), pg::value(*fingerprint),
                                       pg::value(claim.claim_acquired_at_ms), pg::value(key)});
        } else if (pg::Row(rows, 0).string(0) == *fingerprint) {
            pg::note_zone(*claim.timezone);
        } else {
            zones_settled = false;
        }
    }
}

} // namespace qinglong::store
