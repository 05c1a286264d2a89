#pragma once
// What the work in a transaction and the schedulers of its database tell each other without knowing each
// other.

#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::scheduling {

// When the current transaction commits, the schedulers of this database look for work at once; a database
// without schedulers gets them. A rollback to a savepoint may leave a spare wake-up behind, which is
// harmless; so is a call where the library is not preloaded. May ereport: call it through pgcall().
void request_wakeup();

// Asked by a cycle before each claim: true means claim no more, finish what is claimed. Always false in a
// client's session.
bool stop_requested();

// Set by worker/: how to wake the schedulers of a database, and the flag of this process that ends its cycle
// early.
using Wake = void (*)(Oid database);
extern Wake wake_schedulers;
extern volatile sig_atomic_t stop_flag;

} // namespace qinglong::scheduling
