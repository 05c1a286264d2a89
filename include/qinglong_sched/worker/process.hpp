#pragma once
// What launcher, scheduler and probe have in common.

#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::worker {

constexpr const char* kExtensionName = "qinglong_sched";

// SIGTERM so far. The first asks the process to stop when it can, a later one ends it like any backend.
extern volatile sig_atomic_t stopping;

// Signal handlers, from here on unblocked.
void accept_signals();

// Before connecting: no timeout that is set for clients ends this process, from 17 on not even while it
// starts.
void disable_timeouts();

// Whether the settings want schedulers in that database.
bool listed(const char* database);

struct InstalledExtension {
    Oid oid; // InvalidOid: not installed
    Oid owner;
};
// In a transaction.
InstalledExtension find_extension();

} // namespace qinglong::worker

extern "C" {
QL_EXPORT void ql_launcher_main(Datum);
QL_EXPORT void ql_scheduler_main(Datum database);
QL_EXPORT void ql_probe_main(Datum database);
}
