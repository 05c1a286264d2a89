// Content digests over SQL: what the checks and the tests compare stored rows with. NULL where a spec cannot
// be read.

#include "qinglong_sched/core/digests.hpp"
#include "qinglong_sched/pg/datum.hpp"

namespace qinglong {

namespace {

core::Json json_argument(FunctionCallInfo fcinfo, int index) {
    return core::parse_json(pg::json_text(PG_GETARG_DATUM(index)), core::stored_limits);
}

std::string text_of(FunctionCallInfo fcinfo, int index) {
    return pg::to_string(PG_GETARG_DATUM(index));
}

// The digest of what make_input() returns; NULL where that finds something that cannot have been published.
template<typename F>
Datum digest_or_null(FunctionCallInfo fcinfo, F make_input) {
    std::string input;
    try {
        input = make_input();
    } catch (const core::InvalidSpec&) {
        fcinfo->isnull = true;
        return Datum{0};
    }
    return pg::value(pg::sha256_hex(input)).datum;
}

} // namespace

} // namespace qinglong

using namespace qinglong;

QL_FUNCTION(ql_task_digest) {
    constexpr int kDescription = 4; // the only argument that may be NULL
    for (int i = 0; i < fcinfo->nargs; ++i) {
        if (i != kDescription && PG_ARGISNULL(i))
            PG_RETURN_NULL();
    }
    return digest_or_null(fcinfo, [&] {
        return core::task_digest_input({text_of(fcinfo, 0), text_of(fcinfo, 1), PG_GETARG_INT32(2),
                                        text_of(fcinfo, 3), pg::maybe_text_argument(fcinfo, kDescription),
                                        text_of(fcinfo, 5), core::read_spec(json_argument(fcinfo, 6)),
                                        json_argument(fcinfo, 7), PG_GETARG_BOOL(8)});
    });
}

QL_FUNCTION(ql_trigger_digest) {
    return digest_or_null(fcinfo, [&] {
        return core::trigger_digest_input({text_of(fcinfo, 0), text_of(fcinfo, 1), PG_GETARG_INT32(2),
                                           text_of(fcinfo, 3), PG_GETARG_INT32(4), text_of(fcinfo, 5),
                                           core::read_spec(json_argument(fcinfo, 6)), PG_GETARG_BOOL(7)});
    });
}

QL_FUNCTION(ql_execution_digest) {
    return digest_or_null(fcinfo, [&] {
        return core::execution_digest_input({text_of(fcinfo, 0), text_of(fcinfo, 1), PG_GETARG_INT32(2),
                                             text_of(fcinfo, 3), text_of(fcinfo, 4), text_of(fcinfo, 5),
                                             json_argument(fcinfo, 6)});
    });
}
