// ql_project_put, ql_task_publish, ql_trigger_publish, ql_schedule, ql_unschedule.

#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/store/publication.hpp"
#include "qinglong_sched/store/readiness.hpp"

using namespace qinglong;

namespace {

[[noreturn]] void refuse_null(const char* name) {
    throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, std::string(name) + " must not be null"};
}

std::string json_argument(FunctionCallInfo fcinfo, int index, const char* name) {
    if (PG_ARGISNULL(index))
        refuse_null(name);
    return pg::json_text(PG_GETARG_DATUM(index));
}

bool flag_argument(FunctionCallInfo fcinfo, int index, const char* name) {
    if (PG_ARGISNULL(index))
        refuse_null(name);
    return PG_GETARG_BOOL(index);
}

std::optional<std::int32_t> maybe_integer_argument(FunctionCallInfo fcinfo, int index) {
    return PG_ARGISNULL(index) ? std::nullopt : std::optional<std::int32_t>(PG_GETARG_INT32(index));
}

std::optional<pg_uuid_t> maybe_uuid_argument(FunctionCallInfo fcinfo, int index) {
    return PG_ARGISNULL(index) ? std::nullopt : std::optional<pg_uuid_t>(*PG_GETARG_UUID_P(index));
}

// Runs a publication; the schedulers of this database look at what it changed as soon as it commits.
template<typename F>
auto publish(F body) -> decltype(body()) {
    try {
        auto result = pg::with_spi([&] {
            store::require_matching_version();
            return body();
        });
        pg::pgcall([] { scheduling::request_wakeup(); });
        return result;
    } catch (const pg::PgError& error) {
        // Where a constraint refuses a row, the server shows the row, which may hold a command or a secret.
        if (error.data->sqlerrcode == ERRCODE_CHECK_VIOLATION ||
            error.data->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION)
            error.data->detail = nullptr;
        throw;
    }
}

Datum result_of(FunctionCallInfo fcinfo, const store::Publication& publication) {
    const pg::Value fields[] = {pg::value(std::string_view(store::to_text(publication.status))),
                                pg::value(publication.revision), pg::value(publication.content_digest)};
    return pg::make_composite(fcinfo, fields);
}

} // namespace

QL_FUNCTION(ql_project_put) {
    const std::string project_id = pg::text_argument(fcinfo, 0, "project_id");
    const auto name = pg::maybe_text_argument(fcinfo, 1);
    const std::string status = pg::text_argument(fcinfo, 2, "status");
    const store::Project project = publish([&] { return store::put_project(project_id, name, status); });
    const pg::Value fields[] = {pg::value(project.id),           pg::value(project.name),
                                pg::value(project.slug),         pg::value(project.status),
                                pg::value(project.version),      pg::value(project.created_at_ms),
                                pg::value(project.updated_at_ms)};
    return pg::make_composite(fcinfo, fields);
}

QL_FUNCTION(ql_task_publish) {
    store::TaskCommand command;
    command.project_id = pg::text_argument(fcinfo, 0, "project_id");
    command.task_id = pg::text_argument(fcinfo, 1, "task_id");
    command.name = pg::text_argument(fcinfo, 2, "name");
    command.spec = json_argument(fcinfo, 3, "spec");
    command.expected_revision = maybe_integer_argument(fcinfo, 4);
    command.mutation_id = maybe_uuid_argument(fcinfo, 5);
    command.description = pg::maybe_text_argument(fcinfo, 6);
    command.kind = pg::text_argument(fcinfo, 7, "kind");
    command.labels = json_argument(fcinfo, 8, "labels");
    command.enabled = flag_argument(fcinfo, 9, "enabled");
    return result_of(fcinfo, publish([&] { return store::publish_task(command); }));
}

QL_FUNCTION(ql_trigger_publish) {
    store::TriggerCommand command;
    command.project_id = pg::text_argument(fcinfo, 0, "project_id");
    command.trigger_id = pg::text_argument(fcinfo, 1, "trigger_id");
    command.task_id = pg::text_argument(fcinfo, 2, "task_id");
    const auto task_revision = maybe_integer_argument(fcinfo, 3);
    if (!task_revision)
        refuse_null("task_revision");
    command.task_revision = *task_revision;
    command.task_content_digest = pg::text_argument(fcinfo, 4, "task_content_digest");
    command.spec = json_argument(fcinfo, 5, "spec");
    command.expected_revision = maybe_integer_argument(fcinfo, 6);
    command.mutation_id = maybe_uuid_argument(fcinfo, 7);
    command.enabled = flag_argument(fcinfo, 8, "enabled");
    return result_of(fcinfo, publish([&] { return store::publish_trigger(command); }));
}

QL_FUNCTION(ql_schedule) {
    store::ScheduleRequest request;
    request.trigger_id = pg::text_argument(fcinfo, 0, "trigger_id");
    request.expression = pg::text_argument(fcinfo, 1, "expression");
    request.command = pg::text_argument(fcinfo, 2, "command");
    request.timezone = pg::text_argument(fcinfo, 3, "timezone");
    request.misfire_policy = pg::text_argument(fcinfo, 4, "misfire_policy");
    request.project_id = pg::text_argument(fcinfo, 5, "project_id");
    const store::Scheduled scheduled = publish([&] { return store::schedule(request); });

    constexpr std::int64_t kLastMs = 9224318015999999; // the end of timestamptz, 294276-12-31
    pg::Value next_fire_at;
    if (scheduled.next_fire_at_ms && *scheduled.next_fire_at_ms <= kLastMs)
        next_fire_at = pg::Value(TimestampTzGetDatum(pg::from_epoch_ms(*scheduled.next_fire_at_ms)));
    const pg::Value fields[] = {pg::value(std::string_view(store::to_text(scheduled.status))),
                                pg::value(scheduled.trigger_revision), next_fire_at};
    return pg::make_composite(fcinfo, fields);
}

QL_FUNCTION(ql_unschedule) {
    const std::string trigger_id = pg::text_argument(fcinfo, 0, "trigger_id");
    const std::string project_id = pg::text_argument(fcinfo, 1, "project_id");
    PG_RETURN_BOOL(publish([&] { return store::unschedule(project_id, trigger_id); }));
}

// SECURITY DEFINER: locks the one project row for a publisher who may only read projects.
QL_FUNCTION(ql_begin_publication) {
    const std::string project_id = pg::text_argument(fcinfo, 0, "project_id");
    const auto status = pg::with_spi([&] { return store::begin_publication(project_id); });
    if (!status) {
        fcinfo->isnull = true;
        return Datum{0};
    }
    return pg::value(*status).datum;
}
