#pragma once
// What schedule rows need when time itself changed under them: the server's time zone data, or its clock.
// Both are looked at once per backend and then only when there is a reason to. Call these with SPI open, in a
// READ COMMITTED transaction (in any other they do nothing), before and after claim_due().

#include "qinglong_sched/store/claim.hpp"

namespace qinglong::store {

// A floor may lie this far after the clock: no lease is longer, so a row is waiting for nothing else.
inline constexpr std::int64_t kLongestLeaseMs = 60000;

// Where zone data differs from that with which the stored cursors were computed, the cursors of that zone
// that lie ahead are derived again; where the clock was set back, rows that lived ahead of it come back.
void settle_time();

// Remembers the zone data with which the claims will be decided.
void note_zones(const std::vector<ScheduleClaim>& claims);

} // namespace qinglong::store
