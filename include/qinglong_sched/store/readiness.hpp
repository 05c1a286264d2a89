#pragma once
// May this database be worked in? Nothing schedules while the answer is no. Call these with SPI open.

#include "qinglong_sched/pg/errors.hpp"

namespace qinglong::store {

// Throws SqlError 55000 when the extension's SQL objects are not those of this library.
void require_matching_version();

// Why nothing may be scheduled here now, if so: a standby, another version, held, or not as shipped. Cheap:
// the comparison with what was shipped is kept per backend until a catalogue change; the hold is read each
// time.
std::optional<pg::SqlError> why_not_ready();

// Throws what why_not_ready() answers.
void require_ready();

} // namespace qinglong::store
