// Facts of the library and the server that the views, the readiness and the check in SQL need.

#include "qinglong_sched/pg/datum.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/store/trigger_spec.hpp"

using namespace qinglong;

QL_FUNCTION(ql_library_version) {
    return pg::value(std::string_view(QL_VERSION)).datum;
}

QL_FUNCTION(ql_system_identifier) {
    return pg::value(std::string_view(std::to_string(GetSystemIdentifier()))).datum;
}

QL_FUNCTION(ql_misfire_grace_ms) {
    PG_RETURN_INT32(settings::misfire_grace_ms);
}

// Whether a stored trigger spec has an occurrence at exactly that time; NULL where the spec cannot be read.
QL_FUNCTION(ql_is_occurrence) {
    store::TriggerSpec spec;
    store::Damage damage;
    if (!store::read_trigger_spec(store::parse_stored_spec(pg::json_text(PG_GETARG_DATUM(0))), spec, damage))
        PG_RETURN_NULL();
    const std::int64_t at_ms = PG_GETARG_INT64(1);
    PG_RETURN_BOOL(spec.schedule.next(at_ms - 1) == at_ms);
}
