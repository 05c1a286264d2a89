#include "qinglong_sched/settings.hpp"

#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::settings {

bool enabled = true;
char* databases = nullptr;
int workers_per_database = 1;
int cadence_ms = 1000;
int claim_lease_ms = 30000;
int max_claims_per_cycle = 16;
int misfire_grace_ms = 30000;
int stop_timeout_ms = 10000;
int admission_isolation = kSerializable;
int max_databases = 0;

namespace {

struct Integer {
    const char* name;
    const char* description;
    const char* detail;
    int* variable;
    int initial;
    int least;
    int most;
    GucContext context = PGC_SIGHUP;
    int flags = 0;
};

void define_integer(const Integer& setting) {
    DefineCustomIntVariable(setting.name, setting.description, setting.detail, setting.variable,
                            setting.initial, setting.least, setting.most, setting.context, setting.flags,
                            nullptr, nullptr, nullptr);
}

bool check_databases(char** value, void**, GucSource) {
    char* const copy = pstrdup(*value);
    List* names = NIL;
    const bool valid = SplitGUCList(copy, ',', &names);
    list_free(names);
    pfree(copy);
    if (!valid)
        GUC_check_errdetail("List syntax is invalid.");
    return valid;
}

} // namespace

void define() {
    static const config_enum_entry kIsolations[] = {{"serializable", kSerializable, false},
                                                    {"read committed", kReadCommitted, false},
                                                    {nullptr, 0, false}};

    DefineCustomBoolVariable("qinglong_sched.enabled", "Lets background workers schedule.",
                             "The SQL functions always work.", &enabled, true, PGC_SIGHUP, 0, nullptr,
                             nullptr, nullptr);
    DefineCustomStringVariable("qinglong_sched.databases", "Databases in which background workers schedule.",
                               "Comma-separated; empty means every database that has the extension.",
                               &databases, "", PGC_SIGHUP, GUC_LIST_INPUT, check_databases, nullptr, nullptr);
    define_integer({"qinglong_sched.workers_per_database", "Scheduler processes per database.", nullptr,
                    &workers_per_database, 1, 1, 16});
    define_integer({"qinglong_sched.cadence", "Longest pause between two cycles of a scheduler.", nullptr,
                    &cadence_ms, 1000, 250, 3600000, PGC_SIGHUP, GUC_UNIT_MS});
    define_integer({"qinglong_sched.claim_lease", "How long a claim is valid.", nullptr, &claim_lease_ms,
                    30000, 1000, 60000, PGC_SIGHUP, GUC_UNIT_MS});
    define_integer({"qinglong_sched.max_claims_per_cycle", "Most claims of one cycle.", nullptr,
                    &max_claims_per_cycle, 16, 1, 256});
    define_integer({"qinglong_sched.misfire_grace", "How late an occurrence may be without being a misfire.",
                    nullptr, &misfire_grace_ms, 30000, 0, 300000, PGC_SIGHUP, GUC_UNIT_MS});
    define_integer({"qinglong_sched.stop_timeout",
                    "How long a stopping scheduler may take to finish its cycle.", nullptr, &stop_timeout_ms,
                    10000, 100, 30000, PGC_SIGHUP, GUC_UNIT_MS});
    DefineCustomEnumVariable("qinglong_sched.admission_isolation",
                             "Isolation level that an admission demands.", "Safety does not rest on it.",
                             &admission_isolation, kSerializable, kIsolations, PGC_SIGHUP, 0, nullptr,
                             nullptr, nullptr);
    if (process_shared_preload_libraries_in_progress)
        define_integer({"qinglong_sched.max_databases",
                        "Most databases that have schedulers at the same time.", nullptr, &max_databases, 64,
                        1, 1024, PGC_POSTMASTER});
    MarkGUCPrefixReserved("qinglong_sched");
}

} // namespace qinglong::settings
