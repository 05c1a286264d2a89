#include "qinglong_sched/store/admission.hpp"

#include "qinglong_sched/core/digests.hpp"
#include "qinglong_sched/pg/row_writer.hpp"
#include "qinglong_sched/store/heads.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace qinglong::store {

namespace {

using Status = Admission::Status;

// What is read of a schedule row.
constexpr const char* kScheduleColumns[] = {
    "trigger_revision", "next_fire_at_ms",     "state_version",   "claim_owner", "claim_token",
    "claim_version",    "claim_expires_at_ms", "updated_at_ms",   "uncounted",   "last_scheduled_at_ms",
    "admitted_total",   "skipped_total",       "coalesced_total", "fault_count"};
enum ScheduleColumn : int {
    trigger_revision,
    next_fire_at_ms,
    state_version,
    claim_owner,
    claim_token,
    claim_version,
    claim_expires_at_ms,
    updated_at_ms,
    uncounted,
    last_scheduled_at_ms,
    admitted_total,
    skipped_total,
    coalesced_total,
    fault_count
};

// One claim on its way through an admission.
struct Work {
    const ScheduleClaim* claim;
    Admission* result;
    bool done = false; // the result is final, nothing more to do

    // Evaluated before anything is locked.
    bool readings_hold = false; // expression, timezone and misfire_policy are those of the claim's spec
    bool digest_holds = false;  // the trigger's content digest is that of the claim's spec
    bool has_uncounted = false; // spans of the row are still to be counted
    std::optional<Damage> damage;
    TriggerSpec spec = {};
    core::Timing timing = {};
    core::Decision decision = {};
    core::Passed passed = {};

    pg::Version row = {}; // the version of its schedule row that was found, in kScheduleColumns

    // Read under the row lock.
    std::string task_name;
    std::string task_reference;
    std::string execution_digest;
    bool existed = false; // the Run was already there
};

using Set = std::span<Work*>;

void finish(Work& work, Status status) {
    work.result->status = status;
    work.done = true;
}

core::ClaimTimes times_of(const ScheduleClaim& claim) {
    return {claim.next_fire_at_ms, claim.trigger_updated_at_ms, claim.claim_acquired_at_ms};
}

void fail(Work& work, const pg::SqlError& error) {
    work.result->failure = pg::to_pg_error(error);
    finish(work, Status::failed);
}

// Decides a claim whose spec can be read.
std::optional<Damage> evaluate(const ScheduleClaim& claim, std::int64_t grace_ms, const StoredSpec& stored,
                               TriggerSpec& spec, core::Timing& timing, core::Decision& decision) {
    Damage damage{};
    if (!read_trigger_spec(stored, spec, damage))
        return damage;
    timing = spec.timing(claim.trigger_id, grace_ms);
    const auto decided = core::decide(spec.schedule, timing, times_of(claim));
    if (!decided)
        return Damage{"no_occurrence", "the schedule has no further occurrence"};
    decision = *decided;
    return std::nullopt;
}

StoredSpec stored_spec_of(const ScheduleClaim& claim) {
    if (claim.spec.empty())
        return std::nullopt;
    return parse_stored_spec(pg::json_text(pg::jsonb_from_bytes(claim.spec).datum));
}

bool trigger_digest_holds(const ScheduleClaim& claim, const core::Json& stored) {
    try {
        const core::TriggerContent content{
            claim.project_id,    claim.trigger_id,          claim.trigger_revision,  claim.task_id,
            claim.task_revision, claim.task_content_digest, core::read_spec(stored), true};
        return pg::sha256_hex(core::trigger_digest_input(content)) == claim.trigger_content_digest;
    } catch (const core::InvalidSpec&) {
        return false;
    }
}

std::string idempotency_key(const ScheduleClaim& claim, std::int64_t scheduled_for_ms) {
    return "ql3:cron:v1:" + claim.trigger_id + ":" + std::to_string(claim.trigger_revision) + ":" +
           std::to_string(scheduled_for_ms);
}

std::vector<Work*> undone(Set set) {
    std::vector<Work*> works;
    for (Work* work : set)
        if (!work->done)
            works.push_back(work);
    return works;
}

// Finds the rows, without a lock. A claim of this very transaction is refused, because a claim that is not
// committed fences nobody off.
void find_rows(const std::vector<Work*>& works) {
    std::vector<pg::Value> keys;
    keys.reserve(2 * works.size());
    for (const Work* work : works)
        keys.insert(keys.end(), {pg::value(work->claim->project_id), pg::value(work->claim->trigger_id)});
    const std::vector<pg::Version> versions =
        pg::find_rows(pg::Find::latest, schedules(), kScheduleColumns, keys);
    for (std::size_t i = 0; i < works.size(); ++i) {
        Work& work = *works[i];
        work.row = versions[i];
        const pg::Row& row = work.row.row;
        if (work.row.row_id == 0 || row.null(claim_token) ||
            !pg::operator_equal(row.uuid(claim_token), work.claim->claim_token))
            continue; // the lock will tell
        if (TransactionIdIsCurrentTransactionId(work.row.writer))
            fail(work,
                 {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "claim must be committed first",
                  "The claim of trigger \"" + work.claim->trigger_id + "\" was taken in this transaction.",
                  "Commit the transaction that called ql_claim(), then admit the claim in the next one."});
        work.has_uncounted = !pg::is_empty_multirange(row.datum(uncounted));
    }
}

// Decides, and counts what the decision passes over; all before any lock.
void prepare(Work& work, std::int64_t grace_ms, const core::Decision* given) {
    static pg::Statement spans = pg::statement<TEXTOID, TEXTOID, INT8OID>(R"(
SELECT lower(r), upper(r)
  FROM qinglong.trigger_schedules s, unnest(s.uncounted) r
 WHERE s.project_id = $1 AND s.trigger_id = $2 AND s.state_version = $3)");

    const ScheduleClaim& claim = *work.claim;
    const StoredSpec stored = stored_spec_of(claim);
    work.readings_hold =
        read_spec_readings(stored) == SpecReadings{claim.expression, claim.timezone, claim.misfire_policy};
    work.damage = evaluate(claim, grace_ms, stored, work.spec, work.timing, work.decision);
    if (work.damage)
        return;
    work.digest_holds = trigger_digest_holds(claim, *stored);
    if (given != nullptr && *given != work.decision) {
        fail(work, {ERRCODE_INVALID_PARAMETER_VALUE, "decision does not follow from the claim",
                    "It differs from what ql_decide() answers for the claim of trigger \"" +
                        claim.trigger_id + "\".",
                    "Call ql_admit(claim) without a decision."});
        return;
    }
    const core::Schedule& schedule = work.spec.schedule;
    work.passed = core::count_passed(schedule, work.timing, times_of(claim), work.decision);
    if (!work.has_uncounted)
        return;
    // The state version ties the spans to the claim, which is compared again under the lock.
    const pg::Rows rows =
        pg::execute(spans, {pg::value(std::string_view(claim.project_id)),
                            pg::value(std::string_view(claim.trigger_id)), pg::value(claim.state_version)});
    for (std::uint64_t k = 0; k < rows.size(); ++k) {
        const pg::Row span(rows, k);
        work.passed.skipped += schedule.count(span.bigint(0), span.bigint(1));
    }
}

bool same_row(const ScheduleClaim& claim, const pg::Version& version) {
    const pg::Row& row = version.row;
    return version.row_id != 0 && version.visible &&
           row.integer(trigger_revision) == claim.trigger_revision &&
           row.maybe_bigint(next_fire_at_ms) == claim.next_fire_at_ms &&
           row.bigint(state_version) == claim.state_version &&
           row.maybe_string(claim_owner) == claim.claim_owner && !row.null(claim_token) &&
           pg::operator_equal(row.uuid(claim_token), claim.claim_token) &&
           row.bigint(claim_version) == claim.claim_version &&
           row.maybe_bigint(claim_expires_at_ms) == claim.claim_expires_at_ms &&
           row.bigint(updated_at_ms) == claim.claim_acquired_at_ms;
}

// Locks in key order the rows that are as the claims say; one that is not, is busy, or has changed since it
// was found, is raced. Answers the clock, read once the locks are held.
std::int64_t lock_rows(Set set) {
    const std::vector<Work*> all = undone(set);
    std::vector<std::size_t> matching;
    std::vector<Datum> row_ids;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (same_row(*all[i]->claim, all[i]->row)) {
            matching.push_back(i);
            row_ids.push_back(all[i]->row.row_id);
        }
    std::vector<bool> held(all.size(), false);
    const std::vector<std::size_t> locked = pg::lock_versions(schedules(), row_ids);
    const std::int64_t now = pg::clock_ms();
    for (const std::size_t index : locked)
        held[matching[index]] = now < all[matching[index]]->claim->claim_expires_at_ms;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!held[i])
            finish(*all[i], Status::raced);
    return now;
}

// A task revision's execution plan as it is stored, with its verdict.
struct Execution {
    std::optional<Damage> damage;
    std::string task_reference;
    std::string digest;
};

Execution read_execution(const ScheduleClaim& claim, const std::optional<pg::Row>& row) {
    if (!row)
        return {Damage{"execution_missing", "the task revision has no execution plan"}, {}, {}};
    Execution execution{std::nullopt, row->string(0), row->string(4)};
    try {
        const core::ExecutionContent content{
            claim.project_id,
            claim.task_id,
            claim.task_revision,
            row->string(1),
            std::string(core::executor_type),
            row->string(2),
            core::parse_json(pg::json_text(row->datum(3)), core::stored_limits)};
        if (content.source_content_digest == claim.task_content_digest &&
            execution.task_reference ==
                core::task_reference(claim.task_revision, claim.task_content_digest) &&
            pg::sha256_hex(core::execution_digest_input(content)) == execution.digest)
            return execution;
    } catch (const core::InvalidSpec&) { // NOLINT(bugprone-empty-catch): the plan has a shape that was never
                                         // published
    }
    execution.damage = Damage{"execution_digest", "the execution plan does not match its digest"};
    return execution;
}

// Compares the remaining facts with the heads, as they stand now that the schedule row is locked: whoever
// changes one of them must first update that row, so none can be half-changed.
void compare_heads(Set set, std::int64_t now) {
    const std::vector<Work*> works = undone(set);
    if (works.empty())
        return;
    std::vector<RevisionKey> keys;
    keys.reserve(works.size());
    for (const Work* work : works)
        keys.push_back({work->claim->project_id, work->claim->trigger_id, work->claim->trigger_revision});
    constexpr std::size_t kMany = 4; // from which on the predicate locks of single rows cost more
    if (works.size() >= kMany)
        pg::read_as_whole("qinglong", {"triggers", "trigger_revisions", "task_definitions",
                                       "task_definition_revisions", "task_execution_revisions"});
    const std::vector<Heads> heads = read_heads(keys, true);

    std::map<std::tuple<std::string, std::string, std::int32_t>, Execution> executions;
    for (std::size_t i = 0; i < works.size(); ++i) {
        Work& work = *works[i];
        const Heads& head = heads[i];
        const ScheduleClaim& claim = *work.claim;
        if (!head.current || !work.readings_hold || head.trigger_digest != claim.trigger_content_digest ||
            head.published_at_ms != claim.trigger_updated_at_ms || head.task_id != claim.task_id ||
            head.task_revision != claim.task_revision || head.task_digest != claim.task_content_digest ||
            pg::jsonb_bytes(head.spec) != claim.spec) {
            finish(work, Status::raced);
            continue;
        }
        if (now < claim.claim_acquired_at_ms) {
            fail(work, {pg::kClockBackwards, "the server's clock moved backwards",
                        "The claim of trigger \"" + claim.trigger_id + "\" was taken " +
                            std::to_string(claim.claim_acquired_at_ms - now) +
                            " ms after the present reading of the server's clock.",
                        "Nothing was written; the trigger is claimed again once the clock has caught up."});
            continue;
        }
        if (!work.damage && !work.digest_holds)
            work.damage = Damage{"trigger_digest", "the trigger revision does not match its digest"};
        if (work.damage || work.decision.disposition != core::Disposition::admit)
            continue;
        auto [found, fresh] = executions.try_emplace({claim.project_id, claim.task_id, claim.task_revision});
        if (fresh)
            found->second = read_execution(claim, head.execution);
        work.damage = found->second.damage;
        work.task_reference = found->second.task_reference;
        work.execution_digest = found->second.digest;
        work.task_name = head.task_name;
    }
}

pg::SqlError rows_dropped(const char* table) {
    return {ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION, "a trigger kept rows of an admission from being written",
            std::string("The table is \"qinglong.") + table + "\".",
            "Let the table's BEFORE triggers return the row."};
}

void update_schedules(pg::Columns columns, const std::vector<Datum>& row_ids,
                      const std::vector<pg::Value>& values) {
    if (pg::update_rows(schedules(), columns, row_ids, values).size() != row_ids.size())
        throw rows_dropped("trigger_schedules");
}

void quarantine(const std::vector<Work*>& works, std::int64_t now) {
    static constexpr const char* kColumns[] = {"fault_code",    "fault_count",  "retry_at_ms",
                                               "claim_owner",   "claim_token",  "claim_expires_at_ms",
                                               "state_version", "updated_at_ms"};
    const pg::Value null;
    std::vector<Datum> row_ids;
    std::vector<pg::Value> values;
    for (Work* work : works) {
        const pg::Row& row = work->row.row;
        row_ids.push_back(work->row.row_id);
        values.insert(values.end(), {pg::value(std::string_view(work->damage->code)),
                                     pg::value(row.integer(fault_count) + 1), null, null, null, null,
                                     pg::value(row.bigint(state_version) + 1), pg::value(now)});
    }
    update_schedules(kColumns, row_ids, values);
    for (Work* work : works) {
        work->result->fault_code = work->damage->code;
        finish(*work, Status::quarantined);
    }
}

// Looks for Runs of these occurrences that are already there, whoever wrote them.
void find_existing(const std::vector<Work*>& works) {
    static pg::Statement statement = pg::statement<TEXTARRAYOID, TEXTARRAYOID, INT8ARRAYOID>(R"(
SELECT i.ord, r.id, a.id
  FROM unnest($1, $2, $3) WITH ORDINALITY AS i (project_id, trigger_id, scheduled_for_ms, ord)
  JOIN qinglong.runs r ON r.project_id = i.project_id AND r.trigger_id = i.trigger_id
       AND r.scheduled_for_ms = i.scheduled_for_ms AND r.trigger_type = 'cron'
  LEFT JOIN qinglong.run_attempts a ON a.run_id = r.id AND a.attempt = 1)");
    std::vector<std::string> projects, triggers;
    std::vector<std::int64_t> instants;
    for (const Work* work : works) {
        projects.push_back(work->claim->project_id);
        triggers.push_back(work->claim->trigger_id);
        instants.push_back(*work->decision.scheduled_for_ms);
    }
    const pg::Rows rows =
        pg::execute_latest(statement, {pg::array(projects), pg::array(triggers), pg::array(instants)});
    for (std::uint64_t i = 0; i < rows.size(); ++i) {
        const pg::Row row(rows, i);
        Work& work = *works[static_cast<std::size_t>(row.bigint(0) - 1)];
        work.existed = true;
        work.result->run_id = row.uuid(1);
        if (!row.null(2))
            work.result->attempt_id = row.uuid(2);
    }
}

void insert(const char* table, pg::Columns columns, const std::vector<pg::Value>& values) {
    if (pg::insert_rows(pg::table_oid("qinglong", table), columns, values) != values.size() / columns.size())
        throw rows_dropped(table);
}

std::string created_payload(const Work& work, std::int64_t scheduled_for_ms) {
    const ScheduleClaim& claim = *work.claim;
    return R"({"status":"created","version":1,"execution_owner":"runtime","executor_type":"remote_worker",)"
           R"("execution_revision_digest":")" +
           work.execution_digest + R"(","trigger_revision":)" + std::to_string(claim.trigger_revision) +
           R"(,"trigger_content_digest":")" + claim.trigger_content_digest + R"(","scheduled_for_ms":)" +
           std::to_string(scheduled_for_ms) + "}";
}

// Writes Run, Attempt and both events. That a Run is already there is so rare that it is looked for only
// after the unique index has said so; then may_exist is set.
void write_runs(const std::vector<Work*>& works, std::int64_t now, bool may_exist) {
    static constexpr const char* kRun[] = {"id",
                                           "project_id",
                                           "task_id",
                                           "task_revision",
                                           "task_snapshot_ref",
                                           "task_name",
                                           "trigger_id",
                                           "triggered_by",
                                           "trigger_type",
                                           "execution_origin",
                                           "execution_owner",
                                           "scheduled_for_ms",
                                           "status",
                                           "version",
                                           "event_sequence",
                                           "priority",
                                           "idempotency_key",
                                           "created_at_ms",
                                           "queued_at_ms"};
    static constexpr const char* kAttempt[] = {
        "id", "run_id", "attempt", "status", "executor_type", "callback_sequence", "created_at_ms"};
    static constexpr const char* kEvent[] = {"id",         "run_id",       "sequence", "type",
                                             "dedupe_key", "actor_type",   "actor_id", "attempt_id",
                                             "payload",    "created_at_ms"};

    if (may_exist)
        find_existing(works);
    const auto text = [](std::string_view s) { return pg::value(s); };
    const auto number = [](std::int32_t n) { return pg::value(n); };
    const pg::Value at = pg::value(now);
    const pg::Value cron = text("cron"), origin = text("scheduled_system"), owner = text("runtime"),
                    queued = text("queued"), claimed = text("claimed"), remote_worker = text("remote_worker"),
                    created_type = text("run.created"), queued_type = text("run.queued"),
                    scheduler = text("scheduler"), cluster = text("cluster");
    const pg::Value queued_payload =
        pg::jsonb_value(R"({"from_status":"created","to_status":"queued","version":2})");
    std::vector<pg::Value> runs, attempts, events;
    const auto add = [](std::vector<pg::Value>& rows, std::initializer_list<pg::Value> row) {
        rows.insert(rows.end(), row);
    };
    for (const Work* work : works) {
        if (work->existed)
            continue;
        const ScheduleClaim& claim = *work->claim;
        const std::int64_t scheduled_for_ms = *work->decision.scheduled_for_ms;
        const std::string key = idempotency_key(claim, scheduled_for_ms);
        work->result->run_id = pg::new_uuid_v7();
        work->result->attempt_id = pg::new_uuid_v7();
        const pg::Value run = pg::value(*work->result->run_id);
        const pg::Value attempt = pg::value(*work->result->attempt_id);
        const pg::Value reference = pg::value(work->task_reference);
        const pg::Value trigger = pg::value(claim.trigger_id);
        add(runs,
            {run, pg::value(claim.project_id), pg::value(claim.task_id), reference, reference,
             pg::value(work->task_name), trigger, trigger, cron, origin, owner, pg::value(scheduled_for_ms),
             queued, number(2), number(2), number(0), pg::value(key), at, at});
        add(attempts, {attempt, run, number(1), claimed, remote_worker, number(0), at});
        add(events, {pg::value(pg::new_uuid_v7()), run, number(1), created_type,
                     text("cluster-schedule-created:" + key), scheduler, cluster, pg::Value(),
                     pg::jsonb_value(created_payload(*work, scheduled_for_ms)), at});
        add(events,
            {pg::value(pg::new_uuid_v7()), run, number(2), queued_type,
             text("cluster-schedule-queued:" + key), scheduler, cluster, attempt, queued_payload, at});
    }
    if (runs.empty())
        return;
    insert("runs", kRun, runs);
    insert("run_attempts", kAttempt, attempts);
    insert("run_events", kEvent, events);
}

// Moves the cursors, counts, and clears the claims.
void move_cursors(const std::vector<Work*>& works, std::int64_t now) {
    static constexpr const char* kColumns[] = {
        "next_fire_at_ms", "finished",    "last_scheduled_at_ms", "admitted_total", "skipped_total",
        "coalesced_total", "uncounted",   "fault_code",           "fault_count",    "retry_at_ms",
        "claim_owner",     "claim_token", "claim_expires_at_ms",  "state_version",  "updated_at_ms"};
    const pg::Value no_spans = pg::empty_multirange(INT8MULTIRANGEOID);
    const pg::Value null;
    std::vector<Datum> row_ids;
    std::vector<pg::Value> values;
    for (const Work* work : works) {
        const pg::Row& row = work->row.row;
        const bool admits = work->decision.disposition == core::Disposition::admit && !work->existed;
        const auto plus = [&](int column, std::uint64_t more) {
            return pg::value(row.bigint(column) + static_cast<std::int64_t>(more));
        };
        row_ids.push_back(work->row.row_id);
        values.insert(
            values.end(),
            {pg::value(work->decision.next_fire_at_ms),
             pg::value(!work->decision.next_fire_at_ms.has_value()),
             pg::value(admits ? work->decision.scheduled_for_ms : row.maybe_bigint(last_scheduled_at_ms)),
             plus(admitted_total, admits ? 1 : 0), plus(skipped_total, work->passed.skipped),
             plus(coalesced_total, work->passed.coalesced), no_spans, null, pg::value(std::int32_t{0}), null,
             null, null, null, plus(state_version, 1), pg::value(now)});
    }
    update_schedules(kColumns, row_ids, values);
}

// The fenced part: lock, look at the clock, compare, write. All or nothing for the set. Where a Run may be
// there already it is looked for; else the unique index refuses the whole set.
void admit_set(Set set, bool may_exist) {
    const std::int64_t now = lock_rows(set);
    compare_heads(set, now);

    std::vector<Work*> damaged, advancing, admitting;
    for (Work* work : undone(set)) {
        if (work->damage) {
            damaged.push_back(work);
            continue;
        }
        advancing.push_back(work);
        if (work->decision.disposition == core::Disposition::admit)
            admitting.push_back(work);
    }
    if (!damaged.empty())
        quarantine(damaged, now);
    if (!admitting.empty())
        write_runs(admitting, now, may_exist);
    if (!advancing.empty())
        move_cursors(advancing, now);
    for (Work* work : advancing) {
        work->result->decision = work->decision;
        finish(*work, work->decision.disposition != core::Disposition::admit ? Status::advanced
                      : work->existed                                        ? Status::already_admitted
                                                                             : Status::admitted);
    }
}

// Failures of the server or of a whole table, not of a row: trying smaller sets would only repeat them.
bool concerns_all(const pg::PgError& error) {
    const int code = error.data->sqlerrcode;
    return ERRCODE_TO_CATEGORY(code) == ERRCODE_INSUFFICIENT_RESOURCES ||
           ERRCODE_TO_CATEGORY(code) == ERRCODE_OPERATOR_INTERVENTION || code == ERRCODE_LOCK_NOT_AVAILABLE ||
           code == ERRCODE_INSUFFICIENT_PRIVILEGE || code == ERRCODE_READ_ONLY_SQL_TRANSACTION;
}

// What a set had decided was rolled back with it.
void forget(const std::vector<Work*>& works) {
    for (Work* work : works) {
        work->done = false;
        work->existed = false;
        *work->result = Admission{};
        if (work->damage && (std::strcmp(work->damage->code, "trigger_digest") == 0 ||
                             std::strncmp(work->damage->code, "execution_", 10) == 0))
            work->damage.reset(); // found under the lock: to be found again
    }
}

// Admits a set in a subtransaction; when it fails, halves it until the bad row stands alone. Depth is at
// most 8.
void admit_or_split(Set set, bool may_exist) {
    const std::vector<Work*> works = undone(set);
    if (works.empty())
        return;
    pg::PgError failure{};
    if (pg::in_subtransaction([&] { admit_set(set, may_exist); }, failure))
        return;
    if (is_serialization_abort(failure))
        throw failure;
    forget(works);
    if (failure.data->sqlerrcode == ERRCODE_UNIQUE_VIOLATION && !may_exist) {
        admit_or_split(set, true);
        return;
    }
    if (works.size() == 1 || concerns_all(failure)) {
        for (Work* work : works) {
            work->result->failure = failure;
            finish(*work, Status::failed);
        }
        return;
    }
    const std::size_t half = set.size() / 2;
    admit_or_split(set.first(half), may_exist);
    admit_or_split(set.subspan(half), may_exist);
}

} // namespace

bool is_serialization_abort(const pg::PgError& error) {
    return error.data->sqlerrcode == ERRCODE_T_R_SERIALIZATION_FAILURE;
}

core::Decision decide_claim(const ScheduleClaim& claim, std::int64_t grace_ms) {
    TriggerSpec spec;
    core::Timing timing;
    core::Decision decision{};
    if (const auto damage = evaluate(claim, grace_ms, stored_spec_of(claim), spec, timing, decision))
        throw pg::SqlError{pg::kDamaged, damage->message,
                           "The claim is of trigger \"" + claim.trigger_id + "\".",
                           "ql_admit() quarantines the trigger with this reason."};
    return decision;
}

std::vector<Admission> admit_claims(const std::vector<ScheduleClaim>& claims, std::int64_t grace_ms,
                                    const core::Decision* given) {
    std::vector<Admission> results(claims.size());
    std::vector<Work> works(claims.size());
    std::vector<Work*> order;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        works[i].claim = &claims[i];
        works[i].result = &results[i];
        order.push_back(&works[i]);
    }
    // Rows are locked in key order; of two claims of one row only one can be valid.
    const auto key = [](const Work* work) {
        return std::tuple(std::string_view(work->claim->project_id),
                          std::string_view(work->claim->trigger_id));
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const Work* a, const Work* b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < order.size(); ++i)
        if (key(order[i - 1]) == key(order[i]))
            finish(*order[i], Status::raced);

    find_rows(undone(order));
    for (Work* work : undone(order))
        prepare(*work, grace_ms, given);
    admit_or_split(order, false);
    return results;
}

void release_claim(const ScheduleClaim& claim) {
    static pg::Statement find = pg::statement<TEXTOID, TEXTOID, INT8OID, UUIDOID, INT8OID>(R"(
SELECT s.ctid
  FROM qinglong.trigger_schedules s
 WHERE s.project_id = $1 AND s.trigger_id = $2 AND s.state_version = $3 AND s.claim_token = $4
   AND s.claim_version = $5)");
    static pg::Statement release = pg::statement<TIDOID, INT8OID>(R"(
UPDATE qinglong.trigger_schedules s
   SET claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
       state_version = s.state_version + 1, updated_at_ms = GREATEST(s.updated_at_ms, $2)
 WHERE s.ctid = $1)");
    const pg::Rows rows = pg::execute(
        find, {pg::value(std::string_view(claim.project_id)), pg::value(std::string_view(claim.trigger_id)),
               pg::value(claim.state_version), pg::value(claim.claim_token), pg::value(claim.claim_version)});
    if (rows.empty())
        return;
    const Datum version = pg::Row(rows, 0).datum(0);
    if (!pg::lock_versions(schedules(), {version}).empty())
        (void)pg::execute(release, {pg::Value(version), pg::value(pg::clock_ms())});
}

bool back_off(const ScheduleClaim& claim, const std::string& fault_code, std::int64_t least_delay_ms) {
    static pg::Statement statement =
        pg::statement<TEXTOID, TEXTOID, INT8OID, UUIDOID, INT8OID, TEXTOID, INT8OID, INT8OID>(R"(
UPDATE qinglong.trigger_schedules s
   SET fault_code = $6, fault_count = LEAST(s.fault_count, 1000000) + 1,
       retry_at_ms = $7 + LEAST($8 << LEAST(s.fault_count, 16), 60000),
       claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
       state_version = s.state_version + 1, updated_at_ms = GREATEST(s.updated_at_ms, $7)
 WHERE s.project_id = $1 AND s.trigger_id = $2 AND s.state_version = $3 AND s.claim_token = $4
   AND s.claim_version = $5)");
    (void)pg::execute(statement, {pg::value(std::string_view(claim.project_id)),
                                  pg::value(std::string_view(claim.trigger_id)),
                                  pg::value(claim.state_version), pg::value(claim.claim_token),
                                  pg::value(claim.claim_version), pg::value(std::string_view(fault_code)),
                                  pg::value(pg::clock_ms()), pg::value(least_delay_ms)});
    return pg::affected_rows() == 1;
}

} // namespace qinglong::store
