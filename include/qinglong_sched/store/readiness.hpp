#pragma once
// May this database be worked in? Nothing schedules while the answer is no. Call these with SPI open.

#include "qinglong_sched/pg/errors.hpp"

namespace qinglong::store {

// Until the end of the transaction no DROP EXTENSION begins; one that has begun is waited for. To be called
// before any lock on a table: DROP EXTENSION locks the extension first and then its tables in an order of its
// own, so whoever met it among the tables could deadlock with it.
void lock_extension();

// Throws SqlError 55000 when the extension's SQL objects are not those of this library. Locks the
// extension first, as require_ready() does.
void require_matching_version();

// Why nothing may be scheduled here now, if so: a standby, another version, held, or not as shipped. Cheap:
// the comparison with what was shipped is kept per backend until a catalogue change; the hold is read each
// time.
std::optional<pg::SqlError> why_not_ready();

// Throws what why_not_ready() answers.
void require_ready();

} // namespace qinglong::store
