#include "qinglong_sched/store/claim.hpp"

#include "qinglong_sched/pg/row_writer.hpp"
#include "qinglong_sched/store/heads.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

#include <algorithm>

namespace qinglong::store {

namespace {

// What is read of a schedule row.
constexpr const char* kScheduleColumns[] = {
    "project_id",      "trigger_id",    "trigger_revision",    "state_version", "claim_version",
    "next_fire_at_ms", "updated_at_ms", "claim_expires_at_ms", "retry_at_ms",   "due_delay_ms"};
enum ScheduleColumn : int {
    project_id,
    trigger_id,
    trigger_revision,
    state_version,
    claim_version,
    next_fire_at_ms,
    updated_at_ms,
    claim_expires_at_ms,
    retry_at_ms,
    due_delay_ms
};
constexpr const char* kDueIndex = "trigger_schedules_due_idx";

// The key of a row in that index: when it is due; before all others without a cursor.
std::int64_t due_at(const pg::Row& row) {
    return row.null(next_fire_at_ms) ? -1 : row.bigint(next_fire_at_ms) + row.integer(due_delay_ms);
}

// A row that was due and is now locked.
struct Due {
    Datum row_id;
    std::string project_id;
    std::string trigger_id;
    std::int32_t trigger_revision;
    std::int64_t state_version;
    std::int64_t claim_version;
    std::optional<std::int64_t> next_fire_at_ms;
};

// When a row that is due by its cursor can be claimed: not before its lease and its back-off have ended.
std::int64_t free_at(const pg::Row& row) {
    return std::max(row.maybe_bigint(claim_expires_at_ms).value_or(0),
                    row.maybe_bigint(retry_at_ms).value_or(0));
}

// Whose claims are made, and for how long.
struct Lease {
    const std::string& owner;
    const pg_uuid_t& token;
    std::int64_t acquired_at_ms;
    std::int64_t expires_at_ms;
};

// Where an old snapshot is held, entries of rows that have moved on pile up before the first due row, and
// each claim would pass all of them. A session that has passed many begins for a second where it found the
// first row; what comes to stand before that one meanwhile waits so long.
struct Front {
    static constexpr std::size_t kLongestId = 128;
    std::int64_t seen_at_ms; // 0: nothing is remembered
    std::int64_t due_ms;
    char project_id[kLongestId + 1];
    char trigger_id[kLongestId + 1];
};
constexpr std::uint64_t kManyDead = 1000;
constexpr std::int64_t kFrontMs = 1000;
Front front = {};

void remember(Front& place, std::int64_t now, const pg::Row& row) {
    const std::string project = row.string(project_id);
    const std::string trigger = row.string(trigger_id);
    if (project.size() > Front::kLongestId || trigger.size() > Front::kLongestId)
        return;
    place.seen_at_ms = now;
    place.due_ms = due_at(row);
    std::memcpy(place.project_id, project.c_str(), project.size() + 1);
    std::memcpy(place.trigger_id, trigger.c_str(), trigger.size() + 1);
}

// Reads due rows on from where the scan stands and locks them, until there are enough or no more. Notes the
// first row that it sees.
std::vector<Due> lock_due(pg::RowScan& scan, std::int64_t now, std::size_t most, Front& first) {
    std::vector<Due> locked;
    for (bool more = true; more && locked.size() < most;) {
        std::vector<pg::Row> rows;
        std::vector<Datum> row_ids;
        pg::Version version;
        while (row_ids.size() < most - locked.size() && (more = scan.next(version))) {
            const pg::Row& row = version.row;
            if (first.seen_at_ms == 0)
                remember(first, now, row);
            // Changed at a time still ahead, or not free.
            if (row.bigint(updated_at_ms) > now || free_at(row) > now)
                continue;
            rows.push_back(row);
            row_ids.push_back(version.row_id);
        }
        for (const std::size_t index : pg::lock_versions(schedules(), row_ids)) {
            const pg::Row& row = rows[index];
            locked.push_back({row_ids[index], row.string(project_id), row.string(trigger_id),
                              row.integer(trigger_revision), row.bigint(state_version),
                              row.bigint(claim_version), row.maybe_bigint(next_fire_at_ms)});
        }
    }
    return locked;
}

// Makes claims of due rows until there are enough, from a place in their order or from the first.
void claim_from(const std::optional<pg::RowScan::Start>& start, const Lease& lease, std::size_t most,
                std::vector<ScheduleClaim>& claims) {
    static constexpr const char* kColumns[] = {"claim_owner",         "claim_token",   "claim_version",
                                               "claim_expires_at_ms", "state_version", "updated_at_ms"};
    // A row that is due by its hint but not eligible costs its own place only: the next ones follow.
    const std::int64_t now = lease.acquired_at_ms;
    Front first = {};
    pg::RowScan scan(schedules(), kDueIndex, kScheduleColumns, pg::RowScan::Bound::at_most, now, start);
    while (claims.size() < most) {
        const std::vector<Due> due = lock_due(scan, now, most - claims.size(), first);
        if (due.empty())
            break;
        std::vector<RevisionKey> keys;
        keys.reserve(due.size());
        for (const Due& row : due)
            keys.push_back({row.project_id, row.trigger_id, row.trigger_revision});
        const std::vector<Heads> heads = read_heads(keys, false);
        std::vector<ScheduleClaim> made;
        SpecReadings readings;
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
            claim.claim_owner = lease.owner;
            claim.claim_token = lease.token;
            claim.claim_version = found.claim_version + 1;
            claim.claim_acquired_at_ms = now;
            claim.claim_expires_at_ms = lease.expires_at_ms;
            claim.spec = pg::jsonb_bytes(head.spec);
            // A row is claimed even if its spec is damaged, so that an admission can quarantine it.
            // Neighbours in the order of being due often have the same spec.
            if (made.empty() || made.back().spec != claim.spec)
                readings = read_spec_readings(parse_stored_spec(pg::json_text(head.spec)));
            claim.expression = readings.expression;
            claim.timezone = readings.timezone;
            claim.misfire_policy = readings.misfire_policy;
            row_ids.push_back(found.row_id);
            values.insert(values.end(), {pg::value(claim.claim_owner), pg::value(lease.token),
                                         pg::value(claim.claim_version), pg::value(claim.claim_expires_at_ms),
                                         pg::value(claim.state_version), pg::value(now)});
            made.push_back(std::move(claim));
        }
        for (const std::size_t index : pg::update_rows(schedules(), kColumns, row_ids, values))
            claims.push_back(std::move(made[index]));
    }
    scan.close();
    if (!start)
        front = scan.dead() >= kManyDead ? first : Front{};
}

} // namespace

Oid schedules() {
    return pg::table_oid("qinglong", "trigger_schedules");
}

std::vector<ScheduleClaim> claim_due(const std::string& owner, const pg_uuid_t& token, std::int64_t lease_ms,
                                     int max_claims) {
    const std::int64_t now = pg::clock_ms();
    const Lease lease{owner, token, now, now + lease_ms};
    const auto most = static_cast<std::size_t>(max_claims);
    std::vector<ScheduleClaim> claims;
    if (front.seen_at_ms != 0 && now >= front.seen_at_ms && now < front.seen_at_ms + kFrontMs)
        claim_from(pg::RowScan::Start{front.due_ms, front.project_id, front.trigger_id}, lease, most, claims);
    if (const auto beyond = static_cast<std::ptrdiff_t>(claims.size()); claims.size() < most) {
        claim_from(std::nullopt, lease, most, claims);
        std::rotate(claims.begin(), claims.begin() + beyond, claims.end()); // these stand before the others
    }
    return claims;
}

std::optional<std::int64_t> earliest_due_after(std::int64_t after_ms) {
    // A row that is due already and still there is leased to somebody, or backs off. Few are: a look at the
    // first of them is enough, and bounded.
    constexpr int kMostDue = 256;
    std::optional<std::int64_t> earliest;
    const auto consider = [&](std::int64_t ms) { earliest = std::min(earliest.value_or(ms), ms); };
    pg::Version version;
    pg::RowScan due(schedules(), kDueIndex, kScheduleColumns, pg::RowScan::Bound::at_most, after_ms);
    for (int i = 0; i < kMostDue && due.next(version); ++i)
        if (free_at(version.row) > after_ms)
            consider(free_at(version.row));
    due.close();
    pg::RowScan later(schedules(), kDueIndex, kScheduleColumns, pg::RowScan::Bound::more_than, after_ms);
    if (later.next(version))
        consider(due_at(version.row));
    later.close();
    return earliest;
}

} // namespace qinglong::store
