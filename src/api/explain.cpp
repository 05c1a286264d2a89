// ql_explain_schedule, ql_describe_schedule, ql_explain_trigger, and what the view qinglong.schedules shows
// of a cursor.

#include "qinglong_sched/core/explain.hpp"
#include "qinglong_sched/core/describe.hpp"
#include "qinglong_sched/pg/datum.hpp"
#include "qinglong_sched/pg/zone.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/store/explanation.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

using namespace qinglong;

namespace {

core::CronExpression expression_argument(FunctionCallInfo fcinfo) {
    const std::string text = pg::text_argument(fcinfo, 0, "expression");
    core::CronExpression expression;
    core::CronError error;
    if (!core::parse_cron(text, expression, error))
        throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, "cron expression is not valid",
                           core::cron_error_text(error), std::string(error.hint)};
    return expression;
}

std::size_t count_argument(FunctionCallInfo fcinfo, int index) {
    if (PG_ARGISNULL(index) || PG_GETARG_INT32(index) < 1 || PG_GETARG_INT32(index) > 10000)
        throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, "count must be between 1 and 10000"};
    return static_cast<std::size_t>(PG_GETARG_INT32(index));
}

void add_rows(FunctionCallInfo fcinfo, const std::vector<core::Explained>& rows) {
    constexpr std::int64_t kLastMs = 9224318015999999; // the end of timestamptz, 294276-12-31
    for (const core::Explained& row : rows) {
        pg::Value fields[4];
        if (row.occurrence_ms) {
            if (*row.occurrence_ms > kLastMs)
                return;
            fields[0] = pg::Value(TimestampTzGetDatum(pg::from_epoch_ms(*row.occurrence_ms)));
            fields[2] = pg::interval_value(row.offset);
        }
        fields[1] = pg::value(core::print_local(row.local_ms));
        if (!row.note.empty())
            fields[3] = pg::value(row.note);
        pg::add_result_row(fcinfo, fields);
    }
}

} // namespace

QL_FUNCTION(ql_explain_schedule) {
    core::Schedule schedule;
    schedule.expression = expression_argument(fcinfo);
    schedule.zone = *pg::find_zone(pg::canonical_zone_name(pg::text_argument(fcinfo, 1, "timezone")));
    const std::int64_t after_ms = pg::finite_epoch_seconds_argument(fcinfo, 2, "after") * 1000;
    const std::size_t count = count_argument(fcinfo, 3);
    pg::begin_result_set(fcinfo);
    add_rows(fcinfo, core::explain(schedule, after_ms, count));
    return 0;
}

QL_FUNCTION(ql_describe_schedule) {
    return pg::value(core::describe(expression_argument(fcinfo))).datum;
}

QL_FUNCTION(ql_explain_trigger) {
    const std::string project_id = pg::text_argument(fcinfo, 0, "project_id");
    const std::string trigger_id = pg::text_argument(fcinfo, 1, "trigger_id");
    const std::size_t count = count_argument(fcinfo, 2);
    pg::begin_result_set(fcinfo);
    pg::with_spi([&] {
        add_rows(fcinfo, store::explain_trigger(project_id, trigger_id, count, settings::misfire_grace_ms));
    });
    return 0;
}

QL_FUNCTION(ql_cursor_occurrence) {
    const std::int64_t cursor_ms = PG_GETARG_INT64(1);
    store::TriggerSpec spec;
    store::Damage damage;
    if (!store::read_trigger_spec(store::parse_stored_spec(pg::json_text(PG_GETARG_DATUM(0))), spec, damage))
        PG_RETURN_INT64(cursor_ms);
    const auto occurrence = spec.schedule.next(cursor_ms - 1);
    if (!occurrence) {
        fcinfo->isnull = true;
        return Datum{0};
    }
    PG_RETURN_INT64(*occurrence);
}
