// ql_next_occurrence, ql_occurrences.

#include "qinglong_sched/core/cron_expression.hpp"
#include "qinglong_sched/core/schedule.hpp"
#include "qinglong_sched/pg/datum.hpp"
#include "qinglong_sched/pg/zone.hpp"

using namespace qinglong;

namespace {

core::Schedule schedule_argument(FunctionCallInfo fcinfo) {
    const std::string text = pg::text_argument(fcinfo, 0, "expression");
    const std::string zone_name = pg::text_argument(fcinfo, 1, "timezone");
    core::Schedule schedule;
    core::CronError error;
    if (!core::parse_cron(text, schedule.expression, error))
        throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, "cron expression is not valid",
                           core::cron_error_text(error), std::string(error.hint)};
    schedule.zone = *pg::find_zone(pg::canonical_zone_name(zone_name));
    return schedule;
}

// False also where the instant is beyond what a timestamptz can hold.
bool next(const core::Schedule& schedule, std::int64_t& second) {
    constexpr std::int64_t kLastSecond = 9224318015999; // the end of timestamptz, 294276-12-31
    return core::next_occurrence(schedule.expression, schedule.zone, second, second) && second <= kLastSecond;
}

} // namespace

QL_FUNCTION(ql_next_occurrence) {
    const core::Schedule schedule = schedule_argument(fcinfo);
    std::int64_t second = pg::finite_epoch_seconds_argument(fcinfo, 2, "after");
    if (!next(schedule, second)) {
        fcinfo->isnull = true;
        return 0;
    }
    return TimestampTzGetDatum(pg::from_epoch_ms(second * 1000));
}

QL_FUNCTION(ql_occurrences) {
    const core::Schedule schedule = schedule_argument(fcinfo);
    std::int64_t second = pg::finite_epoch_seconds_argument(fcinfo, 2, "after");
    if (PG_ARGISNULL(3) || PG_GETARG_INT32(3) < 1 || PG_GETARG_INT32(3) > 10000)
        throw pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, "count must be between 1 and 10000"};
    pg::begin_result_set(fcinfo, true);
    for (int left = PG_GETARG_INT32(3); left > 0 && next(schedule, second); --left) {
        const pg::Value value(TimestampTzGetDatum(pg::from_epoch_ms(second * 1000)));
        pg::add_result_row(fcinfo, {&value, 1});
    }
    return 0;
}
