// ql_claim, ql_decide, ql_admit, ql_admit_batch, ql_schedule_once.

#include "qinglong_sched/core/identifiers.hpp"
#include "qinglong_sched/pg/datum.hpp"
#include "qinglong_sched/scheduling/cycle.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/store/admission.hpp"
#include "qinglong_sched/store/readiness.hpp"
#include "qinglong_sched/store/upkeep.hpp"

using namespace qinglong;

namespace {

constexpr int kMostClaims = 256;

pg::SqlError invalid(std::string message, std::string detail = {}, std::string hint = {}) {
    return pg::SqlError{ERRCODE_INVALID_PARAMETER_VALUE, std::move(message), std::move(detail),
                        std::move(hint)};
}

std::string owner_argument(FunctionCallInfo fcinfo, int index) {
    std::string owner = pg::text_argument(fcinfo, index, "owner_id");
    if (const auto fault = core::check_owner_id(owner))
        throw invalid("owner_id " + std::string(*fault));
    return owner;
}

int bounded_argument(FunctionCallInfo fcinfo, int index, const char* name, int fallback, int least,
                     int most) {
    if (PG_ARGISNULL(index))
        return fallback;
    const int given = PG_GETARG_INT32(index);
    if (given < least || given > most)
        throw invalid(std::string(name) + " must be between " + std::to_string(least) + " and " +
                      std::to_string(most));
    return given;
}

int lease_argument(FunctionCallInfo fcinfo, int index) {
    return bounded_argument(fcinfo, index, "lease_ms", settings::claim_lease_ms, 1000, 60000);
}

// The fields of qinglong.schedule_claim, in its order.
constexpr const char* kClaimFields[] = {"project_id",
                                        "trigger_id",
                                        "trigger_revision",
                                        "trigger_content_digest",
                                        "trigger_updated_at_ms",
                                        "task_id",
                                        "task_revision",
                                        "task_content_digest",
                                        "expression",
                                        "timezone",
                                        "misfire_policy",
                                        "state_version",
                                        "next_fire_at_ms",
                                        "claim_owner",
                                        "claim_token",
                                        "claim_version",
                                        "claim_acquired_at_ms",
                                        "claim_expires_at_ms",
                                        "spec"};
constexpr int kClaimFieldCount = 19;

bool may_be_null(int field) {
    return (field >= 8 && field <= 10) || field == 12 || field == 18;
}

store::ScheduleClaim read_claim(Datum composite) {
    const pg::Composite fields(composite);
    for (int i = 0; i < kClaimFieldCount; ++i)
        if (fields.null(i) && !may_be_null(i))
            throw invalid("claim is incomplete", std::string("Field ") + kClaimFields[i] + " is null.",
                          "Pass a claim exactly as ql_claim() returned it.");
    store::ScheduleClaim claim;
    claim.project_id = *fields.string(0);
    claim.trigger_id = *fields.string(1);
    claim.trigger_revision = *fields.integer(2);
    claim.trigger_content_digest = *fields.string(3);
    claim.trigger_updated_at_ms = *fields.bigint(4);
    claim.task_id = *fields.string(5);
    claim.task_revision = *fields.integer(6);
    claim.task_content_digest = *fields.string(7);
    claim.expression = fields.string(8);
    claim.timezone = fields.string(9);
    claim.misfire_policy = fields.string(10);
    claim.state_version = *fields.bigint(11);
    claim.next_fire_at_ms = fields.bigint(12);
    claim.claim_owner = *fields.string(13);
    claim.claim_token = *DatumGetUUIDP(fields.datum(14));
    claim.claim_version = *fields.bigint(15);
    claim.claim_acquired_at_ms = *fields.bigint(16);
    claim.claim_expires_at_ms = *fields.bigint(17);
    if (!fields.null(18))
        claim.spec = pg::jsonb_bytes(fields.datum(18));
    for (const std::int64_t time : {claim.trigger_updated_at_ms, claim.claim_acquired_at_ms,
                                    claim.claim_expires_at_ms, claim.next_fire_at_ms.value_or(0)})
        if (time < 0 || time > core::kMaxTimeMs)
            throw invalid("claim is not valid", "A time lies outside 0 to 9007199254740991 milliseconds.",
                          "Pass a claim exactly as ql_claim() returned it.");
    return claim;
}

const char* name_of(core::Disposition disposition) {
    switch (disposition) {
    case core::Disposition::initialize:
        return "initialize";
    case core::Disposition::skip:
        return "skip";
    case core::Disposition::admit:
        break;
    }
    return "admit";
}

const char* name_of(store::Admission::Status status) {
    switch (status) {
    case store::Admission::Status::admitted:
        return "admitted";
    case store::Admission::Status::advanced:
        return "advanced";
    case store::Admission::Status::raced:
        return "raced";
    case store::Admission::Status::already_admitted:
        return "already_admitted";
    case store::Admission::Status::quarantined:
        return "quarantined";
    case store::Admission::Status::failed:
        break;
    }
    return "failed";
}

core::Decision read_decision(Datum composite) {
    const pg::Composite fields(composite);
    const std::string disposition = fields.string(0).value_or("");
    core::Decision decision{core::Disposition::initialize, 0, 0, fields.bigint(3)};
    if (disposition == "admit")
        decision.disposition = core::Disposition::admit;
    else if (disposition == "skip")
        decision.disposition = core::Disposition::skip;
    else if (disposition != "initialize")
        throw invalid("decision has no valid disposition", "It is one of initialize, skip and admit.",
                      "Call ql_admit(claim) without a decision.");
    if (fields.null(1))
        throw invalid("decision is incomplete", "observed_at_ms is required.",
                      "Call ql_admit(claim) without a decision.");
    decision.observed_at_ms = *fields.bigint(1);
    decision.next_fire_at_ms = fields.bigint(2);
    return decision;
}

std::array<pg::Value, kClaimFieldCount> claim_fields(const store::ScheduleClaim& claim) {
    const auto text = [](const std::string& s) { return pg::value(std::string_view(s)); };
    return {text(claim.project_id),
            text(claim.trigger_id),
            pg::value(claim.trigger_revision),
            text(claim.trigger_content_digest),
            pg::value(claim.trigger_updated_at_ms),
            text(claim.task_id),
            pg::value(claim.task_revision),
            text(claim.task_content_digest),
            pg::value(claim.expression),
            pg::value(claim.timezone),
            pg::value(claim.misfire_policy),
            pg::value(claim.state_version),
            pg::value(claim.next_fire_at_ms),
            text(claim.claim_owner),
            pg::value(claim.claim_token),
            pg::value(claim.claim_version),
            pg::value(claim.claim_acquired_at_ms),
            pg::value(claim.claim_expires_at_ms),
            claim.spec.empty() ? pg::Value() : pg::jsonb_from_bytes(claim.spec)};
}

std::array<pg::Value, 10> admission_fields(const store::ScheduleClaim& claim,
                                           const store::Admission& admission) {
    std::array<pg::Value, 10> fields;
    if (!claim.project_id.empty())
        fields[0] = pg::value(std::string_view(claim.project_id));
    if (!claim.trigger_id.empty())
        fields[1] = pg::value(std::string_view(claim.trigger_id));
    fields[2] = pg::value(std::string_view(name_of(admission.status)));
    if (admission.decision) {
        fields[3] = pg::value(std::string_view(name_of(admission.decision->disposition)));
        fields[4] = pg::value(admission.decision->scheduled_for_ms);
        fields[5] = pg::value(admission.decision->next_fire_at_ms);
    }
    if (admission.run_id)
        fields[6] = pg::value(*admission.run_id);
    if (admission.attempt_id)
        fields[7] = pg::value(*admission.attempt_id);
    if (admission.failure) {
        fields[8] = pg::value(std::string_view(unpack_sql_state(admission.failure->data->sqlerrcode)));
        fields[9] = pg::value(std::string_view(admission.failure->data->message));
    }
    return fields;
}

void require_admission_isolation() {
    const bool any = settings::admission_isolation == settings::kReadCommitted;
    if (XactIsoLevel == XACT_SERIALIZABLE || (any && XactIsoLevel == XACT_READ_COMMITTED))
        return;
    throw pg::SqlError{ERRCODE_ACTIVE_SQL_TRANSACTION,
                       any ? "admission requires isolation level SERIALIZABLE or READ COMMITTED"
                           : "admission requires isolation level SERIALIZABLE",
                       {},
                       "Start the transaction with BEGIN ISOLATION LEVEL SERIALIZABLE."};
}

} // namespace

QL_FUNCTION(ql_claim) {
    const std::string owner = owner_argument(fcinfo, 0);
    const int lease = lease_argument(fcinfo, 1);
    const int most = bounded_argument(fcinfo, 2, "max_claims", 1, 1, kMostClaims);
    const pg_uuid_t token = PG_ARGISNULL(3) ? pg::new_uuid_v4() : *PG_GETARG_UUID_P(3);
    pg::begin_result_set(fcinfo);
    pg::with_spi([&] {
        store::require_ready();
        store::settle_time();
        const auto claims = store::claim_due(owner, token, lease, most);
        store::note_zones(claims);
        for (const store::ScheduleClaim& claim : claims)
            pg::add_result_row(fcinfo, claim_fields(claim));
    });
    return 0;
}

QL_FUNCTION(ql_decide) {
    if (PG_ARGISNULL(0))
        throw invalid("claim must not be null");
    const store::ScheduleClaim claim = read_claim(PG_GETARG_DATUM(0));
    const core::Decision decision = store::decide_claim(claim, settings::misfire_grace_ms);
    const std::array<pg::Value, 4> fields = {
        pg::value(std::string_view(name_of(decision.disposition))), pg::value(decision.observed_at_ms),
        pg::value(decision.next_fire_at_ms), pg::value(decision.scheduled_for_ms)};
    return pg::make_composite(fcinfo, fields);
}

QL_FUNCTION(ql_admit) {
    require_admission_isolation();
    if (PG_ARGISNULL(0))
        throw invalid("claim must not be null");
    const std::vector<store::ScheduleClaim> claims{read_claim(PG_GETARG_DATUM(0))};
    std::optional<core::Decision> decision;
    if (!PG_ARGISNULL(1))
        decision = read_decision(PG_GETARG_DATUM(1));
    MemoryContext const caller = CurrentMemoryContext;
    return pg::with_spi([&] {
        store::require_ready();
        const auto results =
            store::admit_claims(claims, settings::misfire_grace_ms, decision ? &*decision : nullptr);
        if (results[0].failure)
            throw *results[0].failure;
        MemoryContext const inner = MemoryContextSwitchTo(caller);
        const Datum result = pg::make_composite(fcinfo, admission_fields(claims[0], results[0]));
        MemoryContextSwitchTo(inner);
        return result;
    });
}

QL_FUNCTION(ql_admit_batch) {
    require_admission_isolation();
    if (PG_ARGISNULL(0))
        throw invalid("claims must not be null");
    Datum* elements = nullptr;
    bool* nulls = nullptr;
    int count = 0;
    pg::pgcall([&] {
        ArrayType* const array = PG_GETARG_ARRAYTYPE_P(0);
        deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &elements, &nulls, &count);
    });
    if (count > kMostClaims)
        throw invalid("too many claims", "At most 256 claims are admitted at once.");
    // A claim that cannot be read fails by itself, like any other.
    std::vector<store::ScheduleClaim> claims;
    std::vector<std::optional<pg::PgError>> unreadable(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        if (nulls[i])
            throw invalid("claims must not contain null");
        try {
            claims.push_back(read_claim(elements[i]));
        } catch (const pg::SqlError& error) {
            unreadable[static_cast<std::size_t>(i)] = pg::to_pg_error(error);
        }
    }
    pg::begin_result_set(fcinfo);
    if (count == 0)
        return 0;
    pg::with_spi([&] {
        store::require_ready();
        std::vector<store::Admission> results;
        if (!claims.empty())
            results = store::admit_claims(claims, settings::misfire_grace_ms);
        std::size_t next = 0;
        for (int i = 0; i < count; ++i) {
            const auto& failure = unreadable[static_cast<std::size_t>(i)];
            if (!failure) {
                pg::add_result_row(fcinfo, admission_fields(claims[next], results[next]));
                ++next;
                continue;
            }
            const pg::Composite fields(elements[i]);
            store::ScheduleClaim claim;
            claim.project_id = fields.string(0).value_or("");
            claim.trigger_id = fields.string(1).value_or("");
            store::Admission failed;
            failed.status = store::Admission::Status::failed;
            failed.failure = failure;
            pg::add_result_row(fcinfo, admission_fields(claim, failed));
        }
    });
    return 0;
}

QL_FUNCTION(ql_schedule_once) {
    const auto* const call = reinterpret_cast<const CallContext*>(fcinfo->context);
    if (call == nullptr || !IsA(call, CallContext) || call->atomic)
        throw pg::SqlError{ERRCODE_INVALID_TRANSACTION_TERMINATION,
                           "ql_schedule_once() cannot run inside a transaction block",
                           "It commits each claim before it admits it.",
                           "Call it in autocommit mode, outside BEGIN and outside other functions."};
    scheduling::CycleOptions options;
    options.owner = owner_argument(fcinfo, 0);
    options.lease_ms = lease_argument(fcinfo, 2);
    options.max_claims =
        bounded_argument(fcinfo, 3, "max_claims", settings::max_claims_per_cycle, 1, kMostClaims);
    options.grace_ms = settings::misfire_grace_ms;
    options.serializable = settings::admission_isolation == settings::kSerializable;

    MemoryContext const caller = CurrentMemoryContext;
    const int level = pg::pgcall([] { return pg::begin_spi(true); });
    const scheduling::CycleSummary summary = scheduling::run_cycle(options);
    pg::pgcall([&] { pg::end_spi(level); });
    MemoryContextSwitchTo(caller);
    const std::array<pg::Value, 9> fields = {pg::value(summary.first_claim_acquired_at_ms),
                                             pg::value(summary.last_claim_acquired_at_ms),
                                             pg::value(std::int32_t{summary.claimed}),
                                             pg::value(std::int32_t{summary.initialized}),
                                             pg::value(std::int32_t{summary.skipped}),
                                             pg::value(std::int32_t{summary.admitted}),
                                             pg::value(std::int32_t{summary.raced}),
                                             pg::value(std::int32_t{summary.quarantined}),
                                             pg::value(summary.saturated)};
    // The procedure's one output column is itself the composite.
    return pg::make_output_composite(fcinfo, fields);
}
