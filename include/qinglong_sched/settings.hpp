#pragma once
// All settings. Read them here; store/ gets what it needs as parameters.

namespace qinglong::settings {

enum AdmissionIsolation : int { kSerializable, kReadCommitted };

extern bool enabled;
extern char* databases;
extern int workers_per_database;
extern int cadence_ms;
extern int claim_lease_ms;
extern int max_claims_per_cycle;
extern int misfire_grace_ms;
extern int stop_timeout_ms;
extern int admission_isolation;
extern int max_databases; // 0 unless preloaded

void define();

} // namespace qinglong::settings
