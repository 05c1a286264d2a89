#include "qinglong_sched/worker/process.hpp"

#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/worker/shared_state.hpp"

namespace qinglong::worker {

volatile sig_atomic_t stopping = 0;

namespace {

// A postmaster that shuts down signals a process and then its group, to which it belongs as well: two signals
// at once are one request.
constexpr std::int64_t kOneRequestMs = 100;
volatile std::int64_t first_request = 0;

void on_terminate(SIGNAL_ARGS) {
    const int saved_errno = errno;
    const std::int64_t now = ticks_ms();
    if (stopping != 0) {
        if (now - first_request > kOneRequestMs)
            die(postgres_signal_arg);
        errno = saved_errno;
        return;
    }
    first_request = now;
    stopping = 1;
    scheduling::stop_flag = 1;
    SetLatch(MyLatch);
    errno = saved_errno;
}

// The cycle in hand ends early, so that new settings apply soon.
void on_reload(SIGNAL_ARGS) {
    scheduling::stop_flag = 1;
    SignalHandlerForConfigReload(postgres_signal_arg);
}

} // namespace

void accept_signals() {
    pqsignal(SIGHUP, on_reload);
    pqsignal(SIGTERM, on_terminate);
    BackgroundWorkerUnblockSignals();
}

void disable_timeouts() {
    static constexpr const char* kTimeouts[] = {"statement_timeout", "lock_timeout",
                                                "idle_in_transaction_session_timeout", "transaction_timeout"};
    for (const char* timeout : kTimeouts)
        if (GetConfigOption(timeout, true, false) != nullptr) // the last is younger than the oldest server
            SetConfigOption(timeout, "0", PGC_SUSET, PGC_S_OVERRIDE);
}

bool listed(const char* database) {
    if (settings::databases == nullptr || settings::databases[0] == '\0')
        return true;
    List* names = NIL;
    if (!SplitGUCList(pstrdup(settings::databases), ',', &names))
        return false;
    ListCell* cell;
    foreach (cell, names) {
        if (strcmp(static_cast<const char*>(lfirst(cell)), database) == 0)
            return true;
    }
    return false;
}

InstalledExtension find_extension() {
    Relation const catalog = table_open(ExtensionRelationId, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
                CStringGetDatum(kExtensionName));
    SysScanDesc const scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
    InstalledExtension found = {InvalidOid, InvalidOid};
    if (HeapTuple const tuple = systable_getnext(scan); HeapTupleIsValid(tuple)) {
        const auto* const row = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
        found = {row->oid, row->extowner};
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
}

} // namespace qinglong::worker

// Looks whether the extension is in a database, and leaves.
void ql_probe_main(Datum argument) {
    using namespace qinglong::worker;
    const Oid database = DatumGetObjectId(argument);
    if (!enter_probe(database))
        proc_exit(0);
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    disable_timeouts();
    BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
    StartTransactionCommand();
    const bool found = OidIsValid(find_extension().oid);
    CommitTransactionCommand();
    report_probe(database, found);
    proc_exit(0);
}
