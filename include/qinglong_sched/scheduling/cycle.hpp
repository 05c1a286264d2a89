#pragma once
// One bounded cycle: claim -> commit -> decide -> admit -> commit, used by CALL ql_schedule_once and by the
// workers.

#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::scheduling {

struct CycleOptions {
    std::string owner;
    int lease_ms;
    int max_claims;
    int grace_ms;
    bool serializable;
};

struct CycleSummary {
    std::optional<std::int64_t> first_claim_acquired_at_ms;
    std::optional<std::int64_t> last_claim_acquired_at_ms;
    int claimed = 0;
    int initialized = 0;
    int skipped = 0;
    int admitted = 0;
    int raced = 0;
    int quarantined = 0;
    int failed = 0; // backed off, logged; not part of the SQL type
    bool saturated = false;
};

// Call it in a transaction that has done nothing yet, with an SPI connection from begin_spi(true) and,
// where no portal runs it, an active snapshot; it commits several times and returns in a fresh transaction.
CycleSummary run_cycle(const CycleOptions& options);

// What the next cycle would look at first, so that it finds it done: see store::require_ready().
void look_ahead();

// When, after that time, a row can be claimed next: what the sleep between cycles waits for; needs SPI.
std::optional<std::int64_t> next_due_ms(std::int64_t after_ms);

} // namespace qinglong::scheduling
