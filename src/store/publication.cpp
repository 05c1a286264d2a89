#include "qinglong_sched/store/publication.hpp"

#include "qinglong_sched/core/canonical_json.hpp"
#include "qinglong_sched/core/digests.hpp"
#include "qinglong_sched/core/identifiers.hpp"
#include "qinglong_sched/core/stable_hash.hpp"
#include "qinglong_sched/pg/zone.hpp"
#include "qinglong_sched/store/eligibility.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"
#include "qinglong_sched/store/upkeep.hpp"

#include <algorithm>

namespace qinglong::store {

using core::TaskContent;
using core::TriggerContent;
using pg::SqlError;
using pg::value;

namespace {

constexpr std::int32_t kLastRevision = 2147483647;

// --- what is refused
// --------------------------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
    return '"' + text + '"';
}
std::string task_name(const std::string& project_id, const std::string& task_id) {
    return "task " + quoted(task_id) + " of project " + quoted(project_id);
}
std::string trigger_name(const std::string& project_id, const std::string& trigger_id) {
    return "trigger " + quoted(trigger_id) + " of project " + quoted(project_id);
}
std::string project_name(const std::string& project_id) {
    return "project " + quoted(project_id);
}

[[noreturn]] void refuse_argument(const std::string& message, const std::string& detail,
                                  const std::string& hint) {
    throw SqlError{ERRCODE_INVALID_PARAMETER_VALUE, message, detail, hint};
}
[[noreturn]] void conflict(const std::string& message, const std::string& detail, const std::string& hint) {
    throw SqlError{pg::kConflict, message, detail, hint};
}
[[noreturn]] void damaged(const std::string& message, const std::string& detail) {
    throw SqlError{
        pg::kDamaged, message, detail,
        "qinglong.ql_check() shows all that is damaged; publish the next revision with the right content."};
}

void check_argument(const char* name, const core::Fault& fault, const char* hint) {
    if (fault)
        refuse_argument(std::string(name) + ' ' + std::string(*fault), {}, hint);
}
void check_id(const char* name, const std::string& id) {
    check_argument(name, core::check_id(id), "Choose a short name such as nightly-backup.");
}
void check_expected(const std::optional<std::int32_t>& expected) {
    if (!expected)
        return;
    check_argument("expected_revision", core::check_revision(*expected),
                   "Give the current revision, or NULL to create.");
    if (*expected == kLastRevision)
        throw SqlError{ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                       "no revision follows revision 2147483647",
                       {},
                       "Publish under another id."};
}

// Runs the rules of a spec and names the argument that breaks them.
template<typename F>
auto checked_json(const char* argument, F rules) -> decltype(rules()) {
    try {
        return rules();
    } catch (const core::InvalidSpec& error) {
        refuse_argument("invalid " + std::string(argument),
                        error.path == argument ? "It " + std::string(error.what()) + '.'
                                               : "At " + error.path + ": it " + error.what() + '.',
                        error.hint);
    }
}

std::string sentence(std::string text) {
    if (text.empty())
        return text;
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text + '.';
}

// Completes a cron schedule with the instants of an expression in a zone, both replaced by their normal form.
void evaluate(core::Schedule& schedule, std::string& expression, std::string& timezone) {
    core::CronError error;
    expression = core::normalize_cron(expression);
    if (!core::parse_cron(expression, schedule.expression, error))
        refuse_argument("cron expression is not valid", sentence(core::cron_error_text(error)),
                        sentence(std::string(error.hint)));
    timezone = pg::canonical_zone_name(timezone);
    const auto zone = pg::find_zone(timezone);
    if (!zone)
        refuse_argument("time zone " + quoted(timezone) + " is not known to this server", {}, {});
    schedule.zone = *zone;
}

void refuse_if_never_firing(const core::Schedule& schedule) {
    if (schedule.next(pg::clock_ms()))
        return;
    if (schedule.kind == core::ScheduleKind::once)
        refuse_argument("the instant of the trigger has passed", "At config.at: nothing would ever be due.",
                        "Give an instant in the future, or publish the trigger disabled.");
    if (schedule.ends() && schedule.next(std::max<std::int64_t>(schedule.begin_ms, 1) - 1))
        refuse_argument("the schedule has ended", "No occurrence lies between now and config.endAt.",
                        "Give a later endAt, or publish the trigger disabled.");
    refuse_argument("cron expression never fires",
                    schedule.ends() ? "No occurrence lies between config.startAt and config.endAt."
                                    : "No day of any calendar matches it.",
                    "Check the day-of-month, month and day-of-week fields.");
}

// --- stored revisions
// -------------------------------------------------------------------------------------------------

struct StoredTask {
    TaskContent content;
    std::string content_digest;
};
struct StoredTrigger {
    TriggerContent content;
    std::string content_digest;
};

// Reads a row's content with read(), which may find that it cannot have been published, and compares its
// digest.
template<typename Stored, typename F>
Stored verified(const std::string& what, const std::string& stored_digest, F read) {
    Stored stored;
    std::string digest;
    try {
        read(stored.content);
        if constexpr (std::is_same_v<Stored, StoredTask>)
            digest = pg::sha256_hex(core::task_digest_input(stored.content));
        else
            digest = pg::sha256_hex(core::trigger_digest_input(stored.content));
    } catch (const core::InvalidSpec&) {
        damaged(what + " is damaged", "Its stored content cannot be read.");
    }
    if (digest != stored_digest)
        damaged(what + " is damaged", "Its content digest does not match its content.");
    stored.content_digest = digest;
    return stored;
}

core::Json stored_json(const pg::Row& row, int column) {
    return core::parse_json(pg::json_text(row.datum(column)), core::stored_limits);
}

std::optional<StoredTask> find_task_revision(const std::string& project_id, const std::string& task_id,
                                             std::int32_t revision) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID, INT4OID>(
        "SELECT name, description, kind, spec_json, labels_json, enabled, content_digest"
        "  FROM qinglong.task_definition_revisions"
        " WHERE project_id = $1 AND task_id = $2 AND revision = $3");
    const pg::Rows rows = pg::execute(select, {value(project_id), value(task_id), value(revision)});
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return verified<StoredTask>("revision " + std::to_string(revision) + " of " +
                                    task_name(project_id, task_id),
                                row.string(6), [&](TaskContent& task) {
                                    task = {project_id,
                                            task_id,
                                            revision,
                                            row.string(0),
                                            row.maybe_string(1),
                                            row.string(2),
                                            core::read_spec(stored_json(row, 3)),
                                            stored_json(row, 4),
                                            row.boolean(5)};
                                });
}

std::optional<StoredTrigger> find_trigger_revision(const std::string& project_id,
                                                   const std::string& trigger_id, std::int32_t revision) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID, INT4OID>(
        "SELECT task_id, task_revision, task_content_digest, spec_json, enabled, content_digest"
        "  FROM qinglong.trigger_revisions"
        " WHERE project_id = $1 AND trigger_id = $2 AND revision = $3");
    const pg::Rows rows = pg::execute(select, {value(project_id), value(trigger_id), value(revision)});
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return verified<StoredTrigger>("revision " + std::to_string(revision) + " of " +
                                       trigger_name(project_id, trigger_id),
                                   row.string(5), [&](TriggerContent& trigger) {
                                       trigger = {project_id,
                                                  trigger_id,
                                                  revision,
                                                  row.string(0),
                                                  row.integer(1),
                                                  row.string(2),
                                                  core::read_spec(stored_json(row, 3)),
                                                  row.boolean(4)};
                                   });
}

// Who used a mutation id.
struct Mutation {
    bool of_task = false;
    std::string project_id;
    std::string id;
    std::int32_t revision = 0;
};

std::optional<Mutation> find_mutation(const pg_uuid_t& mutation_id) {
    static pg::Statement select =
        pg::statement<UUIDOID>("SELECT true, project_id, task_id, revision FROM "
                               "qinglong.task_definition_revisions WHERE mutation_id = $1"
                               " UNION ALL "
                               "SELECT false, project_id, trigger_id, revision FROM "
                               "qinglong.trigger_revisions WHERE mutation_id = $1");
    const pg::Rows rows = pg::execute(select, {value(mutation_id)});
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return Mutation{row.boolean(0), row.string(1), row.string(2), row.integer(3)};
}

[[noreturn]] void mutation_conflict(const pg_uuid_t& mutation_id, const Mutation& used,
                                    const std::string& difference) {
    const std::string what =
        used.of_task ? task_name(used.project_id, used.id) : trigger_name(used.project_id, used.id);
    conflict("mutation " + pg::uuid_text(mutation_id) + " was already used",
             "It published revision " + std::to_string(used.revision) + " of " + what + difference + '.',
             "Repeat a publication with exactly its first arguments, or use a new mutation_id.");
}

// The names of what differs, as the end of a sentence.
class Differences {
  public:
    Differences& add(bool differs, const char* name) {
        if (differs)
            names_.append(names_.empty() ? "" : ", ").append(name);
        return *this;
    }
    std::string text() const { return names_.empty() ? "" : ", with other values of: " + names_; }

  private:
    std::string names_;
};

[[noreturn]] void revision_conflict(const std::string& what, const std::optional<std::int32_t>& expected,
                                    const std::optional<std::int32_t>& current) {
    if (!current)
        conflict(what + " does not exist",
                 "Revision " + std::to_string(expected.value_or(0)) + " was expected.",
                 "Leave expected_revision out to create it.");
    const std::string now = std::to_string(*current);
    if (!expected)
        conflict(what + " already exists", "Its current revision is " + now + '.',
                 "Give expected_revision " + now + " to publish the next revision.");
    conflict(what + " has another current revision",
             "Revision " + std::to_string(*expected) + " was expected, the current one is " + now + '.',
             "Look at the current revision, then publish again with expected_revision " + now + '.');
}

void require_active_project(const std::string& project_id, const std::optional<std::string>& status) {
    if (!status)
        conflict(project_name(project_id) + " does not exist", {},
                 "Create it with qinglong.ql_project_put().");
    if (*status != "active")
        conflict(project_name(project_id) + " is not active", "Its status is " + *status + '.',
                 "Reactivate it with qinglong.ql_project_put().");
}

// Both kinds of publication: the locked part runs in a subtransaction and is repeated when the row moved
// since it was looked at, or when somebody else was faster with the same key. The locked part notes what it
// waits for, where that is not what is published.
template<typename Replay, typename Prepare, typename Locked>
Publication repeat_until_settled(const std::string& what, Replay replay, Prepare prepare, Locked locked) {
    constexpr int kAttempts = 5;
    for (int attempt = 1;; ++attempt) {
        if (const auto existing = replay())
            return *existing;
        prepare();
        Publication publication;
        bool moved = false;
        std::string awaited = what;
        pg::PgError failure{nullptr};
        if (pg::in_subtransaction([&] { publication = locked(moved, awaited); }, failure))
            return publication;
        const int code = failure.data->sqlerrcode;
        if (code == ERRCODE_LOCK_NOT_AVAILABLE)
            throw SqlError{ERRCODE_LOCK_NOT_AVAILABLE, awaited + " is locked by another transaction",
                           "A row that the publication needs was not free within the lock timeout.",
                           "Repeat the call."};
        if (!moved && code != ERRCODE_UNIQUE_VIOLATION)
            throw failure;
        if (attempt == kAttempts)
            throw SqlError{ERRCODE_T_R_SERIALIZATION_FAILURE,
                           what + " was changed while it was being published",
                           {},
                           "Repeat the transaction."};
    }
}

// The exception for "moved"; never seen outside repeat_until_settled.
[[noreturn]] void retry(bool& moved) {
    moved = true;
    throw SqlError{ERRCODE_T_R_SERIALIZATION_FAILURE, "the row moved"};
}

std::optional<std::string> project_status_for_share(const std::string& project_id) {
    // Its caller may only read projects; the function behind has the right to lock one.
    static pg::Statement begin = pg::statement<TEXTOID>("SELECT qinglong._begin_publication($1)");
    return pg::Row(pg::execute(begin, {value(project_id)}), 0).maybe_string(0);
}

// --- tasks
// ------------------------------------------------------------------------------------------------------------

std::optional<core::ExecutionContent> compile_execution(const TaskContent& task,
                                                        const std::string& content_digest) {
    if (!task.enabled || task.spec.schema != core::command_schema)
        return std::nullopt;
    return core::ExecutionContent{task.project_id,
                                  task.task_id,
                                  task.revision,
                                  content_digest,
                                  std::string(core::executor_type),
                                  std::string(core::plan_schema),
                                  core::compile_execution_plan(task.spec)};
}

// Nothing when there is no execution revision; QL002 when it is not what its digest says.
std::optional<std::string> find_execution_digest(const StoredTask& task) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID, INT4OID, TEXTOID>(
        "SELECT source_content_digest, plan_schema, plan_json, content_digest FROM "
        "qinglong.task_execution_revisions"
        " WHERE project_id = $1 AND task_id = $2 AND source_revision = $3 AND executor_type = $4");
    const pg::Rows rows = pg::execute(select, {value(task.content.project_id), value(task.content.task_id),
                                               value(task.content.revision), value(core::executor_type)});
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    std::string digest;
    try {
        digest = pg::sha256_hex(core::execution_digest_input(
            {task.content.project_id, task.content.task_id, task.content.revision, row.string(0),
             std::string(core::executor_type), row.string(1), stored_json(row, 2)}));
    } catch (const core::InvalidSpec&) {
        digest.clear();
    }
    if (digest != row.string(3) || row.string(0) != task.content_digest)
        damaged("execution revision " + std::to_string(task.content.revision) + " of " +
                    task_name(task.content.project_id, task.content.task_id) + " is damaged",
                "Its content digest does not match its content.");
    return digest;
}

void insert_task_revision(const TaskContent& task, const std::string& digest, const pg_uuid_t& mutation_id,
                          std::int64_t published_at_ms) {
    static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, INT4OID, UUIDOID, TEXTOID, TEXTOID, TEXTOID,
                                                JSONBOID, JSONBOID, BOOLOID, TEXTOID, INT8OID>(
        "INSERT INTO qinglong.task_definition_revisions (project_id, task_id, revision, mutation_id, name,"
        " description, kind, spec_json, labels_json, enabled, content_digest, created_at_ms)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
    pg::execute(insert, {value(task.project_id), value(task.task_id), value(task.revision),
                         value(mutation_id), value(task.name), value(task.description), value(task.kind),
                         pg::jsonb_value(core::canonical_spec(task.spec)),
                         pg::jsonb_value(core::canonical_json(task.labels, core::stored_limits)),
                         value(task.enabled), value(digest), value(published_at_ms)});
}

void insert_execution_revision(const core::ExecutionContent& execution, const std::string& digest,
                               std::int64_t published_at_ms) {
    static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
                                                JSONBOID, TEXTOID, INT8OID>(
        "INSERT INTO qinglong.task_execution_revisions (project_id, task_id, source_revision, executor_type,"
        " task_revision, source_content_digest, plan_schema, plan_json, content_digest, created_at_ms)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
    pg::execute(insert,
                {value(execution.project_id), value(execution.task_id), value(execution.source_revision),
                 value(execution.executor_type),
                 value(core::task_reference(execution.source_revision, execution.source_content_digest)),
                 value(execution.source_content_digest), value(execution.plan_schema),
                 pg::jsonb_value(core::canonical_json(execution.plan, core::stored_limits)), value(digest),
                 value(published_at_ms)});
}

struct TaskHead {
    std::int32_t current_revision;
    std::int64_t updated_at_ms;
};

std::optional<TaskHead> lock_task_head(const std::string& project_id, const std::string& task_id) {
    static pg::Statement lock = pg::statement<TEXTOID, TEXTOID>(
        "SELECT current_revision, updated_at_ms FROM qinglong.task_definitions"
        " WHERE project_id = $1 AND task_id = $2 FOR UPDATE");
    const pg::Rows rows = pg::execute(lock, {value(project_id), value(task_id)});
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return TaskHead{row.integer(0), row.bigint(1)};
}

bool insert_task_head(const std::string& project_id, const std::string& task_id,
                      std::int64_t published_at_ms) {
    static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, INT8OID>(
        "INSERT INTO qinglong.task_definitions (project_id, task_id, current_revision, created_at_ms, "
        "updated_at_ms)"
        " VALUES ($1, $2, 1, $3, $3) ON CONFLICT (project_id, task_id) DO NOTHING");
    pg::execute(insert, {value(project_id), value(task_id), value(published_at_ms)});
    return pg::affected_rows() == 1;
}

class TaskPublication {
  public:
    TaskPublication(TaskContent content, std::optional<std::int32_t> expected,
                    std::optional<pg_uuid_t> mutation_id)
        : content_(std::move(content)), expected_(expected), mutation_id_(mutation_id) {
        content_.revision = expected_.value_or(0) + 1;
        digest_ = pg::sha256_hex(core::task_digest_input(content_));
        execution_ = compile_execution(content_, digest_);
        if (execution_)
            execution_digest_ = pg::sha256_hex(core::execution_digest_input(*execution_));
    }

    Publication run() {
        return repeat_until_settled(
            what(), [&] { return replay(); }, [] {},
            [&](bool&, std::string& awaited) { return publish(awaited); });
    }

  private:
    std::string what() const { return task_name(content_.project_id, content_.task_id); }

    // The publication that this mutation already made, which may be an old revision by now.
    std::optional<Publication> replay() const {
        if (!mutation_id_)
            return std::nullopt;
        const auto used = find_mutation(*mutation_id_);
        if (!used)
            return std::nullopt;
        if (!used->of_task || used->project_id != content_.project_id || used->id != content_.task_id ||
            used->revision != content_.revision)
            mutation_conflict(*mutation_id_, *used,
                              ", not revision " + std::to_string(content_.revision) + " of " + what());
        const auto stored = find_task_revision(used->project_id, used->id, used->revision);
        if (!stored)
            return std::nullopt;
        if (stored->content_digest != digest_) {
            const TaskContent& then = stored->content;
            const auto labels = [](const TaskContent& task) {
                return core::canonical_json(task.labels, core::stored_limits);
            };
            mutation_conflict(
                *mutation_id_, *used,
                Differences()
                    .add(then.name != content_.name, "name")
                    .add(then.description != content_.description, "description")
                    .add(then.kind != content_.kind, "kind")
                    .add(core::canonical_spec(then.spec) != core::canonical_spec(content_.spec), "spec")
                    .add(labels(then) != labels(content_), "labels")
                    .add(then.enabled != content_.enabled, "enabled")
                    .text());
        }
        if (find_execution_digest(*stored) !=
            (execution_ ? std::optional<std::string>(execution_digest_) : std::nullopt))
            damaged("execution revision " + std::to_string(content_.revision) + " of " + what() +
                        " is damaged",
                    "It is not what its task revision compiles to.");
        return Publication{PublicationStatus::existing, content_.revision, digest_};
    }

    Publication publish(std::string& awaited) const {
        // Nobody can pin the new revision yet, so these are all rows that its publication will make stale.
        if (expected_)
            lock_task_schedules(content_.project_id, content_.task_id, content_.revision);
        awaited = project_name(content_.project_id);
        require_active_project(content_.project_id, project_status_for_share(content_.project_id));
        awaited = what();
        auto head = lock_task_head(content_.project_id, content_.task_id);
        std::int64_t published_at_ms = pg::clock_ms();
        bool created = false;
        if (!head && !expected_) {
            created = insert_task_head(content_.project_id, content_.task_id, published_at_ms);
            if (!created)
                head = lock_task_head(content_.project_id, content_.task_id);
        }
        if (const auto existing = replay())
            return *existing;
        if (!created) {
            if (!head || !expected_ || head->current_revision != *expected_)
                revision_conflict(what(), expected_,
                                  head ? std::optional<std::int32_t>(head->current_revision) : std::nullopt);
            published_at_ms = std::max(pg::clock_ms(), head->updated_at_ms + 1);
        }
        insert_task_revision(content_, digest_, mutation_id_.value_or(pg::new_uuid_v7()), published_at_ms);
        if (execution_)
            insert_execution_revision(*execution_, execution_digest_, published_at_ms);
        if (!created) {
            static pg::Statement advance = pg::statement<TEXTOID, TEXTOID, INT4OID, INT8OID>(
                "UPDATE qinglong.task_definitions SET current_revision = $3, updated_at_ms = $4"
                " WHERE project_id = $1 AND task_id = $2");
            pg::execute(advance, {value(content_.project_id), value(content_.task_id),
                                  value(content_.revision), value(published_at_ms)});
        }
        return {created ? PublicationStatus::created : PublicationStatus::updated, content_.revision,
                digest_};
    }

    TaskContent content_;
    std::optional<std::int32_t> expected_;
    std::optional<pg_uuid_t> mutation_id_;
    std::string digest_;
    std::optional<core::ExecutionContent> execution_;
    std::string execution_digest_;
};

// --- triggers
// ---------------------------------------------------------------------------------------------------------

struct TriggerHead {
    std::string task_id;
    std::int32_t current_revision;
    std::int64_t updated_at_ms;
};

std::optional<TriggerHead> read_trigger_head(const pg::Rows& rows) {
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return TriggerHead{row.string(0), row.integer(1), row.bigint(2)};
}

std::optional<TriggerHead> find_trigger_head(const std::string& project_id, const std::string& trigger_id) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID>(
        "SELECT task_id, current_revision, updated_at_ms FROM qinglong.triggers"
        " WHERE project_id = $1 AND trigger_id = $2");
    return read_trigger_head(pg::execute(select, {value(project_id), value(trigger_id)}));
}

std::optional<TriggerHead> lock_trigger_head(const std::string& project_id, const std::string& trigger_id) {
    static pg::Statement lock = pg::statement<TEXTOID, TEXTOID>(
        "SELECT task_id, current_revision, updated_at_ms FROM qinglong.triggers"
        " WHERE project_id = $1 AND trigger_id = $2 FOR UPDATE");
    return read_trigger_head(pg::execute(lock, {value(project_id), value(trigger_id)}));
}

// What the publication leaves behind on the old revision's schedule, evaluated before anything is locked.
// Occurrences may pass until the publication time is known, so the ones that are near are kept as a list.
struct Leftover {
    std::optional<std::int64_t> state_version; // of the row that was looked at; nothing where there is none
    std::int64_t reached_ms = 0;               // counted before it, listed from it on
    std::uint64_t counted = 0;
    std::vector<std::int64_t> upcoming_ms;
    bool upcoming_complete = true; // no occurrence follows the list soon enough to matter

    // Occurrences before the next revision begins; nothing when that cannot be told without looking again.
    std::optional<std::int64_t> before(std::int64_t begin_ms) const {
        const auto passed = static_cast<std::uint64_t>(
            std::lower_bound(upcoming_ms.begin(), upcoming_ms.end(), begin_ms) - upcoming_ms.begin());
        if (begin_ms < reached_ms || (passed == upcoming_ms.size() && !upcoming_complete))
            return std::nullopt;
        return static_cast<std::int64_t>(std::min(counted + passed, core::kCountCap));
    }
};

class TriggerPublication {
  public:
    TriggerPublication(TriggerContent content, std::optional<std::int32_t> expected,
                       std::optional<pg_uuid_t> mutation_id)
        : content_(std::move(content)), expected_(expected), mutation_id_(mutation_id) {
        content_.revision = expected_.value_or(0) + 1;
        digest_ = pg::sha256_hex(core::trigger_digest_input(content_));
    }

    Publication run() {
        return repeat_until_settled(
            what(), [&] { return replay(); }, [&] { look_at_schedule(); },
            [&](bool& moved, std::string& awaited) { return publish(moved, awaited); });
    }

  private:
    std::string what() const { return trigger_name(content_.project_id, content_.trigger_id); }

    std::optional<Publication> replay() const {
        if (!mutation_id_)
            return std::nullopt;
        const auto used = find_mutation(*mutation_id_);
        if (!used)
            return std::nullopt;
        if (used->of_task || used->project_id != content_.project_id || used->id != content_.trigger_id ||
            used->revision != content_.revision)
            mutation_conflict(*mutation_id_, *used,
                              ", not revision " + std::to_string(content_.revision) + " of " + what());
        const auto stored = find_trigger_revision(used->project_id, used->id, used->revision);
        if (!stored)
            return std::nullopt;
        if (stored->content_digest != digest_) {
            const TriggerContent& then = stored->content;
            mutation_conflict(
                *mutation_id_, *used,
                Differences()
                    .add(then.task_id != content_.task_id, "task_id")
                    .add(then.task_revision != content_.task_revision, "task_revision")
                    .add(then.task_content_digest != content_.task_content_digest, "task_content_digest")
                    .add(core::canonical_spec(then.spec) != core::canonical_spec(content_.spec), "spec")
                    .add(then.enabled != content_.enabled, "enabled")
                    .text());
        }
        return Publication{PublicationStatus::existing, content_.revision, digest_};
    }

    void look_at_schedule() {
        leftover_ = {};
        // A trigger may have many revisions: OFFSET 0 keeps the join from asking for less than the whole key.
        static pg::Statement select = pg::statement<TEXTOID, TEXTOID>(R"(
SELECT s.state_version, s.eligible AND NOT s.finished, COALESCE(s.next_fire_at_ms, r.created_at_ms),
       GREATEST(t.updated_at_ms + 1, s.updated_at_ms, s.last_scheduled_at_ms + 1, r.created_at_ms + 1),
       r.spec_json, lower(u.span), upper(u.span)
  FROM qinglong.trigger_schedules s
  JOIN qinglong.triggers t ON t.project_id = s.project_id AND t.trigger_id = s.trigger_id
 CROSS JOIN LATERAL (SELECT v.created_at_ms, v.spec_json FROM qinglong.trigger_revisions v
                      WHERE v.project_id = s.project_id AND v.trigger_id = s.trigger_id
                        AND v.revision = s.trigger_revision OFFSET 0) r
  LEFT JOIN LATERAL unnest(s.uncounted) AS u (span) ON true
 WHERE s.project_id = $1 AND s.trigger_id = $2)");
        const pg::Rows rows = pg::execute(select, {value(content_.project_id), value(content_.trigger_id)});
        if (rows.empty())
            return;
        const pg::Row first(rows, 0);
        leftover_.state_version = first.bigint(0);
        TriggerSpec spec;
        Damage damage;
        if (!read_trigger_spec(parse_stored_spec(pg::json_text(first.datum(4))), spec, damage))
            return; // nobody can say any more what was due
        std::uint64_t room = core::kCountCap;
        const auto count = [&](std::int64_t from, std::int64_t until) {
            const std::uint64_t found = spec.schedule.count(from, until, room);
            leftover_.counted += found;
            room -= found;
        };
        for (std::uint64_t i = 0; i < rows.size(); ++i) {
            const pg::Row row(rows, i);
            if (!row.null(5) && !row.null(6))
                count(row.bigint(5), row.bigint(6));
        }
        if (!first.boolean(1))
            return;
        const std::int64_t base = first.bigint(2);
        const std::int64_t reached = begin_of(pg::clock_ms(), first.bigint(3));
        count(base, reached);
        leftover_.reached_ms = reached;
        constexpr std::size_t kList = 60;
        for (std::int64_t at = std::max(base, reached) - 1; leftover_.upcoming_ms.size() < kList;) {
            const auto next = spec.schedule.next(at);
            if (!next)
                return;
            at = *next;
            leftover_.upcoming_ms.push_back(at);
        }
        leftover_.upcoming_complete = false;
    }

    Publication publish(bool& moved, std::string& awaited) const {
        static pg::Statement lock = pg::statement<TEXTOID, TEXTOID>(
            "SELECT state_version, updated_at_ms, last_scheduled_at_ms FROM qinglong.trigger_schedules"
            " WHERE project_id = $1 AND trigger_id = $2 FOR UPDATE");
        const pg::Rows schedules =
            pg::execute(lock, {value(content_.project_id), value(content_.trigger_id)});
        std::optional<std::int64_t> state_version;
        std::int64_t floor_ms = 0;
        if (!schedules.empty()) {
            const pg::Row row(schedules, 0);
            state_version = row.bigint(0);
            floor_ms = std::max(row.bigint(1), row.maybe_bigint(2).value_or(-1) + 1);
        }
        if (state_version != leftover_.state_version)
            retry(moved);

        awaited = project_name(content_.project_id);
        require_active_project(content_.project_id, project_status_for_share(content_.project_id));
        awaited = task_name(content_.project_id, content_.task_id);
        const std::int32_t task_revision = share_task_head();
        awaited = what();
        auto head = lock_trigger_head(content_.project_id, content_.trigger_id);
        const bool missing = !head && !expected_;
        bool created = false;
        std::int64_t now = pg::clock_ms();
        std::int64_t published_at_ms = now;
        if (missing) {
            created = insert_head(published_at_ms);
            if (!created)
                head = lock_trigger_head(content_.project_id, content_.trigger_id);
        }
        if (const auto existing = replay())
            return *existing;
        if (!created) {
            if (!head || !expected_ || head->current_revision != *expected_)
                revision_conflict(what(), expected_,
                                  head ? std::optional<std::int32_t>(head->current_revision) : std::nullopt);
            if (head->task_id != content_.task_id)
                conflict(what() + " belongs to another task",
                         "It starts task " + quoted(head->task_id) + ", not " + quoted(content_.task_id) +
                             '.',
                         "A trigger keeps its task; create another trigger.");
        }
        require_pin(task_revision);

        if (!created) {
            now = pg::clock_ms();
            published_at_ms =
                std::max({now, head->updated_at_ms + 1, floor_ms, revision_time(head->current_revision) + 1});
        }
        const std::int64_t begin_ms = begin_of(now, published_at_ms);
        const auto skipped = leftover_.before(begin_ms);
        if (!skipped)
            retry(moved);

        insert_revision(published_at_ms);
        // The schedule row before the head: the head's table trigger then finds nothing left to do.
        put_schedule(state_version.has_value(), begin_ms, begin_ms != published_at_ms, *skipped);
        if (!created) {
            static pg::Statement advance = pg::statement<TEXTOID, TEXTOID, INT4OID, INT8OID>(
                "UPDATE qinglong.triggers SET current_revision = $3, updated_at_ms = $4"
                " WHERE project_id = $1 AND trigger_id = $2");
            pg::execute(advance, {value(content_.project_id), value(content_.trigger_id),
                                  value(content_.revision), value(published_at_ms)});
        }
        return {created ? PublicationStatus::created : PublicationStatus::updated, content_.revision,
                digest_};
    }

    // The task's current revision, which cannot move until we commit.
    std::int32_t share_task_head() const {
        static pg::Statement share =
            pg::statement<TEXTOID, TEXTOID>("SELECT current_revision FROM qinglong.task_definitions"
                                            " WHERE project_id = $1 AND task_id = $2 FOR SHARE");
        const pg::Rows rows = pg::execute(share, {value(content_.project_id), value(content_.task_id)});
        if (rows.empty())
            conflict(task_name(content_.project_id, content_.task_id) + " does not exist", {},
                     "Publish it first with qinglong.ql_task_publish().");
        return pg::Row(rows, 0).integer(0);
    }

    bool insert_head(std::int64_t published_at_ms) const {
        static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, TEXTOID, INT8OID>(
            "INSERT INTO qinglong.triggers (project_id, trigger_id, task_id, current_revision, created_at_ms,"
            " updated_at_ms) VALUES ($1, $2, $3, 1, $4, $4) ON CONFLICT (project_id, trigger_id) DO NOTHING");
        pg::execute(insert, {value(content_.project_id), value(content_.trigger_id), value(content_.task_id),
                             value(published_at_ms)});
        return pg::affected_rows() == 1;
    }

    // A disabled revision may keep an old pin, so that a stale trigger can always be switched off.
    void require_pin(std::int32_t current_task_revision) const {
        const std::string task = task_name(content_.project_id, content_.task_id);
        const std::string pin = "revision " + std::to_string(content_.task_revision) + " of " + task;
        const auto pinned = find_task_revision(content_.project_id, content_.task_id, content_.task_revision);
        if (!pinned)
            conflict(pin + " does not exist",
                     "The current revision is " + std::to_string(current_task_revision) + '.',
                     "Pin an existing revision of the task.");
        if (pinned->content_digest != content_.task_content_digest)
            conflict(pin + " has another content digest",
                     "Its digest is " + pinned->content_digest + ", the given one is " +
                         content_.task_content_digest + '.',
                     "Give task_revision and task_content_digest of the same revision.");
        if (!content_.enabled)
            return;
        if (content_.task_revision != current_task_revision)
            conflict(pin + " is not current",
                     "The current revision is " + std::to_string(current_task_revision) + '.',
                     "Pin the current revision, or publish the trigger disabled.");
        if (!pinned->content.enabled)
            conflict(pin + " is disabled", {},
                     "Publish an enabled revision of the task, or the trigger disabled.");
        if (pinned->content.spec.schema != core::command_schema)
            throw SqlError{ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, pin + " cannot be executed",
                           "Its spec has schema " + quoted(pinned->content.spec.schema) + '.',
                           "Only tasks of schema qinglong/command@v1 can have enabled triggers."};
        if (!find_execution_digest(*pinned))
            damaged("execution revision " + std::to_string(content_.task_revision) + " of " + task +
                        " is missing",
                    "Every enabled qinglong/command@v1 task revision has one.");
    }

    std::int64_t revision_time(std::int32_t revision) const {
        static pg::Statement select = pg::statement<TEXTOID, TEXTOID, INT4OID>(
            "SELECT created_at_ms FROM qinglong.trigger_revisions"
            " WHERE project_id = $1 AND trigger_id = $2 AND revision = $3");
        const pg::Rows rows =
            pg::execute(select, {value(content_.project_id), value(content_.trigger_id), value(revision)});
        return rows.empty() ? 0 : pg::Row(rows, 0).bigint(0);
    }

    void insert_revision(std::int64_t published_at_ms) const {
        static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, INT4OID, UUIDOID, TEXTOID, INT4OID,
                                                    TEXTOID, JSONBOID, BOOLOID, TEXTOID, INT8OID>(
            "INSERT INTO qinglong.trigger_revisions (project_id, trigger_id, revision, mutation_id, task_id,"
            " task_revision, task_content_digest, spec_json, enabled, content_digest, created_at_ms)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
        pg::execute(insert, {value(content_.project_id), value(content_.trigger_id), value(content_.revision),
                             value(mutation_id_.value_or(pg::new_uuid_v7())), value(content_.task_id),
                             value(content_.task_revision), value(content_.task_content_digest),
                             pg::jsonb_value(core::canonical_spec(content_.spec)), value(content_.enabled),
                             value(digest_), value(published_at_ms)});
    }

    // Where the schedule of a revision of that time begins: there, but it does not wait for the time of a
    // clock that was ahead; publications go on from that one all the same.
    static std::int64_t begin_of(std::int64_t now, std::int64_t published_at_ms) {
        return published_at_ms > now + kLongestLeaseMs ? now : std::max(now, published_at_ms);
    }

    // Every older claim of the trigger is dead once this commits.
    void put_schedule(bool exists, std::int64_t begin_ms, bool before_its_revision,
                      std::int64_t skipped) const {
        static pg::Statement insert =
            pg::statement<TEXTOID, TEXTOID, INT4OID, INT8OID, BOOLOID, INT8OID, INT4OID, INT8OID>(
                "INSERT INTO qinglong.trigger_schedules (project_id, trigger_id, trigger_revision, "
                "updated_at_ms, eligible,"
                " skipped_total, due_delay_ms, next_fire_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
        static pg::Statement update =
            pg::statement<TEXTOID, TEXTOID, INT4OID, INT8OID, BOOLOID, INT8OID, INT4OID, INT8OID>(
                "UPDATE qinglong.trigger_schedules"
                "   SET trigger_revision = $3, next_fire_at_ms = $8, finished = false, due_delay_ms = $7,"
                "       state_version = state_version + 1,"
                "       claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,"
                "       claim_version = claim_version + 1, updated_at_ms = $4, eligible = $5,"
                "       fault_code = NULL, fault_count = 0, retry_at_ms = NULL,"
                "       skipped_total = skipped_total + $6, uncounted = '{}'"
                " WHERE project_id = $1 AND trigger_id = $2");
        // Another kind of trigger has no instants that a scheduler of this library could compute.
        const bool eligible = content_.enabled && core::has_schedule(content_.spec.schema);
        const std::int64_t jitter_ms = eligible ? core::read_schedule(content_.spec).jitter_ms : 0;
        const auto delay_ms = static_cast<std::int32_t>(core::due_delay_ms(content_.trigger_id, jitter_ms));
        pg::execute(exists ? update : insert,
                    {value(content_.project_id), value(content_.trigger_id), value(content_.revision),
                     value(begin_ms), value(eligible), value(skipped), value(delay_ms),
                     before_its_revision ? value(begin_ms) : pg::Value()});
    }

    TriggerContent content_;
    std::optional<std::int32_t> expected_;
    std::optional<pg_uuid_t> mutation_id_;
    std::string digest_;
    Leftover leftover_;
};

} // namespace

const char* to_text(PublicationStatus status) {
    switch (status) {
    case PublicationStatus::created:
        return "created";
    case PublicationStatus::updated:
        return "updated";
    case PublicationStatus::existing:
        break;
    }
    return "existing";
}

Publication publish_task(const TaskCommand& command) {
    check_id("project_id", command.project_id);
    check_id("task_id", command.task_id);
    check_argument("name", core::check_name(command.name), "Give the task a short name.");
    if (command.description)
        check_argument("description", core::check_description(*command.description),
                       "Shorten the description, or leave it out.");
    check_argument("kind", core::check_task_kind(command.kind),
                   "The kind of a shell or argv task is command.");
    check_expected(command.expected_revision);
    TaskContent content{command.project_id,  command.task_id, 0,  command.name,
                        command.description, command.kind,    {}, {},
                        command.enabled};
    content.spec = checked_json("spec", [&] {
        return core::validate_task_spec(core::parse_json(command.spec, core::task_limits),
                                        {content.project_id, content.kind});
    });
    content.labels = checked_json(
        "labels", [&] { return core::validate_labels(core::parse_json(command.labels, core::task_limits)); });
    // Compiling finds what only shows in the plan.
    checked_json("spec", [&] { (void)compile_execution(content, {}); });
    return TaskPublication(std::move(content), command.expected_revision, command.mutation_id).run();
}

Publication publish_trigger(const TriggerCommand& command) {
    check_id("project_id", command.project_id);
    check_id("trigger_id", command.trigger_id);
    check_id("task_id", command.task_id);
    check_argument("task_revision", core::check_revision(command.task_revision),
                   "Give the revision that ql_task_publish() returned.");
    check_argument("task_content_digest", core::check_content_digest(command.task_content_digest),
                   "Give the content_digest that ql_task_publish() returned.");
    check_expected(command.expected_revision);
    TriggerContent content{command.project_id,    command.trigger_id,          0,  command.task_id,
                           command.task_revision, command.task_content_digest, {}, command.enabled};
    content.spec = checked_json("spec", [&] {
        return core::validate_trigger_spec(core::parse_json(command.spec, core::trigger_limits));
    });
    if (core::has_schedule(content.spec.schema)) {
        core::ScheduleSpec read = core::read_schedule(content.spec);
        if (read.schedule.kind == core::ScheduleKind::cron) {
            evaluate(read.schedule, read.expression, read.timezone);
            core::put_cron_texts(content.spec, read.expression, read.timezone);
        }
        // A schedule that has ended can still be switched off.
        if (content.enabled || !read.schedule.ends())
            refuse_if_never_firing(read.schedule);
    }
    return TriggerPublication(std::move(content), command.expected_revision, command.mutation_id).run();
}

std::optional<std::string> begin_publication(const std::string& project_id) {
    static pg::Statement own = pg::statement<TEXTOID, INT8OID, INT8OID>(
        "INSERT INTO qinglong.identity (system_identifier, database_oid, created_at_ms, updated_at_ms)"
        " VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING");
    pg::execute(own, {value(std::to_string(GetSystemIdentifier())),
                      value(static_cast<std::int64_t>(MyDatabaseId)), value(pg::clock_ms())});
    static pg::Statement share =
        pg::statement<TEXTOID>("SELECT status FROM qinglong.projects WHERE id = $1 FOR SHARE");
    const pg::Rows rows = pg::execute(share, {value(project_id)});
    if (rows.empty())
        return std::nullopt;
    return pg::Row(rows, 0).string(0);
}

// --- projects
// ---------------------------------------------------------------------------------------------------------

namespace {

std::optional<Project> read_project(const pg::Rows& rows) {
    if (rows.empty())
        return std::nullopt;
    const pg::Row row(rows, 0);
    return Project{row.string(0),  row.string(1), row.string(2), row.string(3),
                   row.integer(4), row.bigint(5), row.bigint(6)};
}

std::optional<Project> find_project(const std::string& project_id) {
    static pg::Statement select =
        pg::statement<TEXTOID>("SELECT id, name, slug, status, version, created_at_ms, updated_at_ms FROM "
                               "qinglong.projects WHERE id = $1");
    return read_project(pg::execute(select, {value(project_id)}));
}

std::optional<Project> lock_project(const std::string& project_id) {
    static pg::Statement lock =
        pg::statement<TEXTOID>("SELECT id, name, slug, status, version, created_at_ms, updated_at_ms FROM "
                               "qinglong.projects WHERE id = $1"
                               " FOR NO KEY UPDATE");
    return read_project(pg::execute(lock, {value(project_id)}));
}

std::string slug_of(const std::string& project_id) {
    const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool fits = alphanumeric(project_id.front()) && alphanumeric(project_id.back()) &&
                      std::all_of(project_id.begin(), project_id.end(),
                                  [&](char c) { return alphanumeric(c) || c == '-'; });
    return fits ? project_id : "p-" + pg::sha256_hex(project_id).substr(0, 32);
}

std::optional<Project> insert_project(const std::string& project_id, const std::string& name,
                                      const std::string& status) {
    static pg::Statement insert = pg::statement<TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID>(
        "INSERT INTO qinglong.projects (id, name, slug, status, created_at_ms, updated_at_ms)"
        " VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING"
        " RETURNING id, name, slug, status, version, created_at_ms, updated_at_ms");
    return read_project(pg::execute(insert, {value(project_id), value(name), value(slug_of(project_id)),
                                             value(status), value(pg::clock_ms())}));
}

Project put_project_now(const std::string& project_id, const std::optional<std::string>& name,
                        const std::string& status) {
    check_id("project_id", project_id);
    if (name)
        check_argument("name", core::check_name(*name), "Give the project a short name.");
    if (status != "active" && status != "archived")
        refuse_argument("status must be active or archived", {},
                        "Archive a project to stop all its triggers.");

    auto project = find_project(project_id);
    if (!project) {
        if (const auto created = insert_project(project_id, name.value_or(project_id), status))
            return *created;
        project = find_project(project_id); // somebody else was faster
        if (!project)
            conflict("the slug of project " + quoted(project_id) + " is taken",
                     "Another project has the slug " + quoted(slug_of(project_id)) + '.',
                     "Choose another id.");
    }
    const auto same = [&] { return (!name || *name == project->name) && status == project->status; };
    if (same())
        return *project;
    if (status != project->status)
        lock_project_schedules(project_id);
    project = lock_project(project_id);
    if (!project)
        conflict(project_name(project_id) + " does not exist", {}, "Repeat the call.");
    if (same())
        return *project;
    if (project->version == kLastRevision)
        throw SqlError{ERRCODE_PROGRAM_LIMIT_EXCEEDED, "no version follows version 2147483647"};
    static pg::Statement update = pg::statement<TEXTOID, TEXTOID, TEXTOID, INT8OID>(
        "UPDATE qinglong.projects SET name = $2, status = $3, version = version + 1,"
        "       updated_at_ms = GREATEST(updated_at_ms, $4)"
        " WHERE id = $1"
        " RETURNING id, name, slug, status, version, created_at_ms, updated_at_ms");
    const auto updated =
        read_project(pg::execute(update, {value(project_id), value(name.value_or(project->name)),
                                          value(status), value(pg::clock_ms())}));
    return updated.value_or(*project);
}

} // namespace

Project put_project(const std::string& project_id, const std::optional<std::string>& name,
                    const std::string& status) {
    Project project;
    pg::PgError failure{nullptr};
    if (pg::in_subtransaction([&] { project = put_project_now(project_id, name, status); }, failure))
        return project;
    if (failure.data->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
        throw SqlError{
            ERRCODE_LOCK_NOT_AVAILABLE, project_name(project_id) + " is locked by another transaction",
            "A row that the change needs was not free within the lock timeout.", "Repeat the call."};
    throw failure;
}

// --- one name for both
// ------------------------------------------------------------------------------------------------

namespace {

// Runs body until no other publication of the same name gets in between.
template<typename F>
void repeat_on_conflict(F body) {
    constexpr int kAttempts = 5;
    for (int attempt = 1;; ++attempt) {
        pg::PgError failure{nullptr};
        if (pg::in_subtransaction(body, failure))
            return;
        if (failure.data->sqlerrcode != pg::kConflict || attempt == kAttempts)
            throw failure;
    }
}

std::optional<std::string> project_status(const std::string& project_id) {
    const auto project = find_project(project_id);
    return project ? std::optional<std::string>(project->status) : std::nullopt;
}

std::optional<std::int32_t> find_task_head(const std::string& project_id, const std::string& task_id) {
    static pg::Statement select = pg::statement<TEXTOID, TEXTOID>(
        "SELECT current_revision FROM qinglong.task_definitions WHERE project_id = $1 AND task_id = $2");
    const pg::Rows rows = pg::execute(select, {value(project_id), value(task_id)});
    return rows.empty() ? std::nullopt : std::optional(pg::Row(rows, 0).integer(0));
}

// What read() finds; nothing where that is damaged: a damaged revision is replaced by the next one.
template<typename F>
auto unless_damaged(F read) -> decltype(read()) {
    try {
        return read();
    } catch (const SqlError& error) {
        if (error.sqlstate != pg::kDamaged)
            throw;
        return std::nullopt;
    }
}

// The task revision that does what is asked for, published if it is not the current one.
Publication settle_task(TaskContent task) {
    const auto head = find_task_head(task.project_id, task.task_id);
    if (head) {
        task.revision = *head;
        const auto current = unless_damaged([&] {
            auto stored = find_task_revision(task.project_id, task.task_id, *head);
            return stored && find_execution_digest(*stored) ? stored : std::nullopt;
        });
        if (current && pg::sha256_hex(core::task_digest_input(task)) == current->content_digest)
            return {PublicationStatus::existing, task.revision, current->content_digest};
    }
    return TaskPublication(std::move(task), head, std::nullopt).run();
}

Publication settle_trigger(TriggerContent trigger) {
    std::optional<std::int32_t> expected;
    if (const auto head = find_trigger_head(trigger.project_id, trigger.trigger_id)) {
        trigger.revision = head->current_revision;
        const auto current = unless_damaged(
            [&] { return find_trigger_revision(trigger.project_id, trigger.trigger_id, trigger.revision); });
        if (current && pg::sha256_hex(core::trigger_digest_input(trigger)) == current->content_digest)
            return {PublicationStatus::existing, trigger.revision, current->content_digest};
        expected = trigger.revision;
    }
    return TriggerPublication(std::move(trigger), expected, std::nullopt).run();
}

} // namespace

Scheduled schedule(const ScheduleRequest& request) {
    check_id("project_id", request.project_id);
    check_id("trigger_id", request.trigger_id);
    core::CronTrigger cron{request.expression, request.timezone, request.misfire_policy};
    if (cron.misfire_policy != "skip" && cron.misfire_policy != "fire_once")
        refuse_argument(
            "misfire_policy must be skip or fire_once", {},
            "skip leaves a missed occurrence out, fire_once makes up for the last ones with one Run.");
    core::Schedule instants;
    evaluate(instants, cron.expression, cron.timezone);
    refuse_if_never_firing(instants);

    TaskContent task{request.project_id,
                     request.trigger_id,
                     0,
                     request.trigger_id,
                     {},
                     "command",
                     {},
                     core::Json::object({}),
                     true};
    // Of this spec only the command is the caller's.
    task.spec = checked_json("command", [&] {
        try {
            return core::validate_task_spec(
                core::Json::object(
                    {{"schema", core::Json::string(std::string(core::command_schema))},
                     {"config",
                      core::Json::object(
                          {{"command",
                            core::Json::object({{"kind", core::Json::string("shell")},
                                                {"command", core::Json::string(request.command)}})}})}}),
                {task.project_id, task.kind});
        } catch (core::InvalidSpec& error) {
            error.path = "command";
            throw;
        }
    });

    Scheduled result;
    repeat_on_conflict([&] {
        if (!project_status(request.project_id)) {
            static pg::Statement put = pg::statement<TEXTOID>("SELECT FROM qinglong.ql_project_put($1)");
            pg::execute(put, {value(request.project_id)});
        }
        require_active_project(request.project_id, project_status(request.project_id));
        const Publication pinned = settle_task(task);
        const Publication trigger =
            settle_trigger({request.project_id, request.trigger_id, 0, request.trigger_id, pinned.revision,
                            pinned.content_digest, core::cron_trigger_spec(cron), true});
        result.status = trigger.status;
        result.trigger_revision = trigger.revision;
    });
    result.next_fire_at_ms = instants.next(pg::clock_ms());
    return result;
}

bool unschedule(const std::string& project_id, const std::string& trigger_id) {
    check_id("project_id", project_id);
    check_id("trigger_id", trigger_id);
    bool disabled = false;
    repeat_on_conflict([&] {
        disabled = false;
        const auto head = find_trigger_head(project_id, trigger_id);
        if (!head)
            return;
        auto current = find_trigger_revision(project_id, trigger_id, head->current_revision);
        if (!current || !current->content.enabled)
            return;
        // The stored spec is taken as it is: a trigger whose zone has vanished can be switched off too.
        current->content.enabled = false;
        TriggerPublication(std::move(current->content), head->current_revision, std::nullopt).run();
        disabled = true;
    });
    return disabled;
}

} // namespace qinglong::store
