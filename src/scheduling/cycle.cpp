#include "qinglong_sched/scheduling/cycle.hpp"

#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/store/admission.hpp"
#include "qinglong_sched/store/claim.hpp"
#include "qinglong_sched/store/readiness.hpp"
#include "qinglong_sched/store/upkeep.hpp"

#include <algorithm>

namespace qinglong::scheduling {

namespace {

using store::Admission;
using store::ScheduleClaim;

constexpr int kTries = 3;
constexpr std::int64_t kLeastBackOffMs = 1000;

bool is_lock_conflict(const pg::PgError& error) {
    const int code = error.data->sqlerrcode;
    return code == ERRCODE_T_R_DEADLOCK_DETECTED || code == ERRCODE_LOCK_NOT_AVAILABLE;
}

bool worth_repeating(const pg::PgError& error) {
    return error.data->sqlerrcode == ERRCODE_T_R_SERIALIZATION_FAILURE || is_lock_conflict(error);
}

void pause_with_jitter(int tries) {
    const double fraction = pg_prng_double(&pg_global_prng_state);
    pg::pause_ms((1 << tries) * (1.0 + fraction));
}

// A transaction that another one has doomed raises at its end even when all of its work is rolled back.
void begin_again(pg::IsolationLevel isolation) {
    try {
        pg::pgcall([&] { pg::commit_and_begin(isolation); });
    } catch (const pg::PgError&) {
        pg::pgcall([&] { pg::commit_and_begin(isolation); });
    }
}

// Runs body in a transaction of its own, up to three times. The errors that a repetition cannot mend, and the
// last of those that it can, come back to the caller in failure; then nothing of body remains.
template<typename F>
bool in_transaction(pg::IsolationLevel isolation, F body, pg::PgError& failure) {
    pg::pgcall([&] { pg::commit_and_begin(isolation); });
    for (int tries = 1;; ++tries) {
        const auto locked = [&] {
            store::lock_extension();
            body();
        };
        bool done = pg::in_subtransaction(locked, failure);
        if (done) {
            try {
                pg::pgcall([&] { pg::commit_and_begin(pg::IsolationLevel::read_committed); });
                return true;
            } catch (const pg::PgError& error) {
                failure = error; // a serialization failure that the commit found
                done = false;
            }
        }
        begin_again(isolation);
        if (!worth_repeating(failure) || tries == kTries)
            return false;
        pause_with_jitter(tries);
    }
}

std::string state_of(const pg::PgError& error) {
    return unpack_sql_state(error.data->sqlerrcode);
}

void report(const ScheduleClaim& claim, const char* what, const std::string& code) {
    pg::pgcall([&] {
        ereport(WARNING, (errmsg("trigger \"%s\" of project \"%s\" %s", claim.trigger_id.c_str(),
                                 claim.project_id.c_str(), what),
                          errdetail("Reason: %s.", code.c_str())));
    });
}

// A row that could not be admitted waits a while, so that it neither blocks others nor is tried all the time.
void back_off(const ScheduleClaim& claim, const pg::PgError& error) {
    const std::string state = state_of(error);
    std::string code = "error_" + state;
    std::transform(code.begin(), code.end(), code.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    bool held = false;
    pg::PgError failure{};
    const bool done = in_transaction(
        pg::IsolationLevel::read_committed, [&] { held = store::back_off(claim, code, kLeastBackOffMs); },
        failure);
    // Where even that fails the claim stays until its lease ends, which is a back-off too.
    if (!done || held)
        report(claim, "failed and is tried again later", "SQLSTATE " + state);
}

// A claim that lost to somebody else's row lock may still be valid: the occurrence must not wait for its
// lease.
void give_back(std::span<const ScheduleClaim> claims, std::span<const Admission> results) {
    const auto raced = [](const Admission& result) { return result.status == Admission::Status::raced; };
    if (std::none_of(results.begin(), results.end(), raced))
        return;
    pg::PgError ignored{}; // then the lease ends it
    (void)in_transaction(
        pg::IsolationLevel::read_committed,
        [&] {
            for (std::size_t i = 0; i < claims.size(); ++i)
                if (raced(results[i]))
                    store::release_claim(claims[i]);
        },
        ignored);
}

// Admits a batch; when even repeated tries fail, in smaller ones, so that no claim is left to its lease.
void admit(std::span<const ScheduleClaim> claims, std::span<Admission> results, const CycleOptions& options) {
    const auto isolation =
        options.serializable ? pg::IsolationLevel::serializable : pg::IsolationLevel::read_committed;
    const std::vector<ScheduleClaim> batch(claims.begin(), claims.end());
    std::vector<Admission> admitted;
    pg::PgError failure{};
    if (in_transaction(
            isolation, [&] { admitted = store::admit_claims(batch, options.grace_ms); }, failure)) {
        std::move(admitted.begin(), admitted.end(), results.begin());
        return;
    }
    if (claims.size() == 1) {
        results[0].status = Admission::Status::failed;
        results[0].failure = failure;
        return;
    }
    const std::size_t half = claims.size() / 2;
    admit(claims.first(half), results.first(half), options);
    admit(claims.subspan(half), results.subspan(half), options);
}

// Rows that failed for somebody else's locks are tried again, together.
void admit_patiently(std::span<const ScheduleClaim> claims, std::span<Admission> results,
                     const CycleOptions& options) {
    admit(claims, results, options);
    for (int tries = 1; tries < kTries; ++tries) {
        std::vector<std::size_t> blocked;
        std::vector<ScheduleClaim> again;
        for (std::size_t i = 0; i < claims.size(); ++i)
            if (results[i].failure && is_lock_conflict(*results[i].failure)) {
                blocked.push_back(i);
                again.push_back(claims[i]);
            }
        if (again.empty())
            return;
        pause_with_jitter(tries);
        std::vector<Admission> admissions(again.size());
        admit(again, admissions, options);
        for (std::size_t k = 0; k < blocked.size(); ++k)
            results[blocked[k]] = admissions[k];
    }
}

void count(const ScheduleClaim& claim, const Admission& result, CycleSummary& summary) {
    using Status = Admission::Status;
    switch (result.status) {
    case Status::admitted:
        ++summary.admitted;
        break;
    case Status::already_admitted: // the Run is somebody else's work
    case Status::raced:
        ++summary.raced;
        break;
    case Status::advanced:
        ++(result.decision->disposition == core::Disposition::skip ? summary.skipped : summary.initialized);
        break;
    case Status::quarantined:
        ++summary.quarantined;
        report(claim, "was quarantined", result.fault_code);
        break;
    case Status::failed:
        ++summary.failed;
        back_off(claim, *result.failure);
        break;
    }
}

} // namespace

CycleSummary run_cycle(const CycleOptions& options) {
    CycleSummary summary;
    while (summary.claimed < options.max_claims && !stop_requested()) {
        std::vector<ScheduleClaim> claims;
        pg::PgError failure{};
        const bool claimed = in_transaction(
            pg::IsolationLevel::read_committed,
            [&] {
                // A crash that loses this commit loses the replica that would have admitted the claim with
                // it.
                pg::commit_asynchronously();
                store::require_ready();
                store::settle_time();
                claims = store::claim_due(options.owner, pg::new_uuid_v4(), options.lease_ms,
                                          options.max_claims - summary.claimed);
                store::note_zones(claims);
            },
            failure);
        if (!claimed)
            throw failure;
        if (claims.empty())
            break;
        if (!summary.first_claim_acquired_at_ms)
            summary.first_claim_acquired_at_ms = claims.front().claim_acquired_at_ms;
        summary.last_claim_acquired_at_ms = claims.front().claim_acquired_at_ms;
        summary.claimed += static_cast<int>(claims.size());

        std::vector<Admission> results(claims.size());
        admit_patiently(claims, results, options);
        give_back(claims, results);
        for (std::size_t i = 0; i < claims.size(); ++i)
            count(claims[i], results[i], summary);
    }
    summary.saturated = summary.claimed >= options.max_claims;
    return summary;
}

void look_ahead() {
    store::require_ready();
}

std::optional<std::int64_t> next_due_ms(std::int64_t after_ms) {
    store::lock_extension();
    return store::earliest_due_after(after_ms);
}

} // namespace qinglong::scheduling
