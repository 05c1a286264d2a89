#include "qinglong_sched/worker/launcher.hpp"

#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/worker/process.hpp"
#include "qinglong_sched/worker/shared_state.hpp"

// The launcher keeps the schedulers that should run running. It sees shared catalogs only; what runs where is
// in shared memory, so a new launcher takes over where the old one ended. Each round looks at everything
// again: the causes of a round (an exit, a reload, a new extension, a time) need no telling apart.

namespace qinglong::worker {

namespace {

constexpr int kRestartPauseMs = 1000;   // between two starts of one scheduler
constexpr int kMostPauseMs = 60000;     // for one that never gets to work
constexpr int kMostSlotPauseMs = 10000; // between attempts while max_worker_processes are in use
constexpr int kSweepMs = 60000;         // between two looks into databases that gave no answer

struct Start {
    BackgroundWorkerHandle* handle;
    std::int64_t not_before;
    int pause;
};

struct Candidate {
    Oid oid;
    char* name;
};

struct Launcher {
    MemoryContext round_context;
    Start (*starts)[kMostSlots]; // of each entry in shared memory
    std::int64_t now;
    std::int64_t next_round;

    int slot_pause; // 0: slots can be had
    std::int64_t next_slot_attempt;

    BackgroundWorkerHandle* probe;
    Oid probed;
    List* answered; // databases without the extension
    List* tried;    // in this sweep
    std::int64_t next_sweep;
    bool databases_warned;
};

void no_later_than(Launcher& self, std::int64_t when) {
    self.next_round = Min(self.next_round, when);
}

// Databases that can be connected to and are wanted by the settings, with their names.
List* candidates() {
    List* found = NIL;
    // No setting of a database or a role reaches the launcher: this one makes the whole server read-only, as
    // that of a fenced primary does.
    if (!settings::enabled || DefaultXactReadOnly)
        return NIL;
    MemoryContext const context = CurrentMemoryContext;
    StartTransactionCommand();
    (void)GetTransactionSnapshot();
    Relation const catalog = table_open(DatabaseRelationId, AccessShareLock);
    TableScanDesc const scan = table_beginscan_catalog(catalog, 0, nullptr);
    while (HeapTuple const tuple = heap_getnext(scan, ForwardScanDirection)) {
        const auto* const row = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
        if (row->datistemplate || !row->datallowconn || row->datconnlimit < -1)
            continue;
        MemoryContext const transaction = MemoryContextSwitchTo(context);
        if (listed(NameStr(row->datname))) {
            auto* const candidate = static_cast<Candidate*>(palloc(sizeof(Candidate)));
            candidate->oid = row->oid;
            candidate->name = pstrdup(NameStr(row->datname));
            found = lappend(found, candidate);
        }
        MemoryContextSwitchTo(transaction);
    }
    table_endscan(scan);
    table_close(catalog, AccessShareLock);
    CommitTransactionCommand();
    MemoryContextSwitchTo(context);
    return found;
}

const Candidate* find_candidate(const List* list, Oid oid) {
    ListCell* cell;
    foreach (cell, list) {
        const auto* const candidate = static_cast<const Candidate*>(lfirst(cell));
        if (candidate->oid == oid)
            return candidate;
    }
    return nullptr;
}

BackgroundWorkerHandle* start_process(const char* kind, const char* function, Oid database, int slot) {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    strlcpy(worker.bgw_library_name, kExtensionName, sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, function, sizeof worker.bgw_function_name);
    snprintf(worker.bgw_type, sizeof worker.bgw_type, "qinglong_sched %s", kind);
    snprintf(worker.bgw_name, sizeof worker.bgw_name, "qinglong_sched %s %d for database %u", kind, slot,
             database);
    std::memcpy(worker.bgw_extra, &slot, sizeof slot);

    BackgroundWorkerHandle* handle = nullptr;
    MemoryContext const context = MemoryContextSwitchTo(TopMemoryContext);
    if (!RegisterDynamicBackgroundWorker(&worker, &handle))
        handle = nullptr;
    MemoryContextSwitchTo(context);
    return handle;
}

bool ended(BackgroundWorkerHandle* handle) {
    pid_t pid;
    return GetBackgroundWorkerPid(handle, &pid) == BGWH_STOPPED;
}

// Starts a process, or notes and says once that no slot of max_worker_processes is free.
BackgroundWorkerHandle* start_or_wait(Launcher& self, const char* kind, const char* function, Oid database,
                                      int slot) {
    if (self.now < self.next_slot_attempt) {
        no_later_than(self, self.next_slot_attempt);
        return nullptr;
    }
    BackgroundWorkerHandle* const handle = start_process(kind, function, database, slot);
    if (handle != nullptr) {
        self.slot_pause = 0;
        self.next_slot_attempt = 0;
        return handle;
    }
    if (self.slot_pause == 0 && !shared->slots_exhausted)
        ereport(WARNING,
                (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                 errmsg("no background worker slot is free for a scheduler of qinglong_sched"),
                 errhint("Consider increasing the configuration parameter \"max_worker_processes\".")));
    shared->slots_exhausted = true;
    self.slot_pause = self.slot_pause == 0 ? 1000 : Min(2 * self.slot_pause, kMostSlotPauseMs);
    self.next_slot_attempt = self.now + self.slot_pause;
    no_later_than(self, self.next_slot_attempt);
    return nullptr;
}

// Brings one scheduler to what should be; answers whether it should run and does not even start for want of a
// slot.
bool keep_scheduler(Launcher& self, int index, int number, bool wanted) {
    Start& start = self.starts[index][number];
    Slot& slot = databases[index].slots[number];

    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    const Oid oid = databases[index].oid;
    const bool free = databases[index].stops == 0;
    const bool running = slot.pid != 0;
    const bool worked = slot.cycles > 0;
    if (!wanted)
        slot.permit = false;
    if (running && !wanted && free && !slot.told) {
        (void)kill(slot.pid, SIGTERM);
        slot.told = true;
    }
    LWLockRelease(shared->lock);

    if (start.handle != nullptr && ended(start.handle)) {
        pfree(start.handle);
        start.handle = nullptr;
        start.pause = worked ? kRestartPauseMs : Min(2 * start.pause, kMostPauseMs);
    }
    if (!wanted || !free || running || start.handle != nullptr)
        return false;
    if (self.now < start.not_before) {
        no_later_than(self, start.not_before);
        return false;
    }

    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    slot.permit = databases[index].stops == 0;
    slot.cycles = 0;
    const bool permitted = slot.permit;
    LWLockRelease(shared->lock);
    if (!permitted)
        return false;
    start.handle = start_or_wait(self, "scheduler", "ql_scheduler_main", oid, number);
    if (start.handle == nullptr)
        return true;
    start.pause = Max(start.pause, kRestartPauseMs);
    start.not_before = self.now + start.pause;
    return false;
}

// Forgets an entry that nobody needs any more; answers whether it is still in use.
bool keep_entry(Launcher& self, int index, bool wanted) {
    Database& database = databases[index];
    bool pending = false;
    for (const Start& start : self.starts[index])
        pending = pending || start.handle != nullptr;
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    const Oid oid = database.oid;
    const Extension extension = database.extension;
    bool used = pending || database.stops > 0 || (wanted && extension == Extension::kInstalled);
    for (const Slot& slot : database.slots)
        used = used || slot.pid != 0;
    if (!used)
        database.oid = InvalidOid;
    LWLockRelease(shared->lock);
    if (!used) {
        std::memset(static_cast<void*>(self.starts[index]), 0, sizeof self.starts[index]);
        // Otherwise what a probe has said may be out of date.
        MemoryContext const context = MemoryContextSwitchTo(TopMemoryContext);
        self.answered = extension == Extension::kAbsent ? list_append_unique_oid(self.answered, oid)
                                                        : list_delete_oid(self.answered, oid);
        MemoryContextSwitchTo(context);
        self.tried = list_delete_oid(self.tried, oid);
    }
    return used;
}

bool known(Oid oid) {
    LWLockAcquire(shared->lock, LW_SHARED);
    const bool found = find_database(oid) != nullptr;
    LWLockRelease(shared->lock);
    return found;
}

// At the start of a sweep all databases that gave no answer are tried again, and dropped ones forgotten.
void begin_sweep(Launcher& self, const List* list) {
    list_free(self.tried);
    self.tried = NIL;
    ListCell* cell;
    List* kept = NIL;
    foreach (cell, self.answered) {
        if (find_candidate(list, lfirst_oid(cell)) != nullptr)
            kept = lappend_oid(kept, lfirst_oid(cell));
    }
    list_free(self.answered);
    self.answered = kept;
    self.next_sweep = self.now + kSweepMs;
    if (!shared->databases_exhausted)
        self.databases_warned = false;
    shared->databases_exhausted = false;
}

// Looks into one database at a time; answers whether no slot could be had.
bool probe(Launcher& self, const List* list) {
    MemoryContext const context = MemoryContextSwitchTo(TopMemoryContext);
    bool blocked = false;
    if (self.probe != nullptr && ended(self.probe)) {
        pfree(self.probe);
        self.probe = nullptr;
        LWLockAcquire(shared->lock, LW_EXCLUSIVE);
        const bool absent = shared->probed == self.probed;
        shared->probed = InvalidOid;
        LWLockRelease(shared->lock);
        if (absent)
            self.answered = list_append_unique_oid(self.answered, self.probed);
    }
    if (self.now >= self.next_sweep)
        begin_sweep(self, list);
    no_later_than(self, self.next_sweep);
    ListCell* cell;
    foreach (cell, list) {
        const Oid oid = static_cast<const Candidate*>(lfirst(cell))->oid;
        if (self.probe != nullptr)
            break;
        if (known(oid) || list_member_oid(self.answered, oid) || list_member_oid(self.tried, oid))
            continue;
        LWLockAcquire(shared->lock, LW_EXCLUSIVE);
        const bool permitted = shared->prober == 0 && find_database(oid) == nullptr;
        if (permitted)
            shared->probing = oid;
        LWLockRelease(shared->lock);
        if (!permitted)
            break;
        self.probe = start_or_wait(self, "probe", "ql_probe_main", oid, 0);
        if (self.probe == nullptr) {
            blocked = true;
            break;
        }
        self.probed = oid;
        self.tried = lappend_oid(self.tried, oid);
    }
    MemoryContextSwitchTo(context);
    return blocked;
}

void run_round(Launcher& self) {
    self.now = ticks_ms();
    self.next_round = self.now + kSweepMs;
    const List* const list = candidates();
    bool blocked = false;
    // Every database gets its first scheduler before any gets its second.
    for (int number = 0; number < kMostSlots; ++number) {
        for (int i = 0; i < settings::max_databases; ++i) {
            const Oid oid = databases[i].oid;
            if (!OidIsValid(oid))
                continue;
            const bool wanted = number < settings::workers_per_database &&
                                databases[i].extension == Extension::kInstalled &&
                                find_candidate(list, oid) != nullptr;
            blocked = keep_scheduler(self, i, number, wanted) || blocked;
        }
    }
    for (int i = 0; i < settings::max_databases; ++i)
        if (OidIsValid(databases[i].oid))
            (void)keep_entry(self, i, find_candidate(list, databases[i].oid) != nullptr);
    blocked = probe(self, list) || blocked;

    if (!blocked && shared->slots_exhausted) {
        shared->slots_exhausted = false;
        self.slot_pause = 0;
        self.next_slot_attempt = 0;
        ereport(LOG, (errmsg("qinglong_sched has the background worker slots that it needs")));
    }
    if (shared->databases_exhausted && !self.databases_warned) {
        self.databases_warned = true;
        ereport(
            WARNING,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("more than %d databases have the extension qinglong_sched", settings::max_databases),
             errdetail("Background workers schedule in %d of them.", settings::max_databases),
             errhint("Consider increasing the configuration parameter \"qinglong_sched.max_databases\".")));
    }
}

void forget_latch(int, Datum) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    shared->launcher = nullptr;
    LWLockRelease(shared->lock);
}

} // namespace

void register_launcher() {
    BackgroundWorker worker = {};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = 1;
    strlcpy(worker.bgw_library_name, kExtensionName, sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, "ql_launcher_main", sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, "qinglong_sched launcher", sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, "qinglong_sched launcher", sizeof worker.bgw_type);
    RegisterBackgroundWorker(&worker);
}

} // namespace qinglong::worker

void ql_launcher_main(Datum) {
    using namespace qinglong::worker;
    accept_signals();
    pqsignal(SIGINT, SIG_IGN); // there is nothing to cancel
    disable_timeouts();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    SetConfigOption("application_name", "qinglong_sched launcher", PGC_USERSET, PGC_S_OVERRIDE);
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    shared->launcher = MyLatch;
    LWLockRelease(shared->lock);
    on_shmem_exit(forget_latch, 0);

    Launcher self = {};
    self.round_context = qinglong::pg::new_context(TopMemoryContext, "qinglong_sched launcher round");
    const Size size = sizeof(Start) * kMostSlots * static_cast<Size>(qinglong::settings::max_databases);
    self.starts = static_cast<Start(*)[kMostSlots]>(MemoryContextAllocZero(TopMemoryContext, size));
    const std::uint32_t event = qinglong::pg::wait_event("QinglongSchedLauncher");
    for (;;) {
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
        if (stopping != 0)
            proc_exit(1); // anything else would keep it from being restarted
        if (ConfigReloadPending != 0) {
            ConfigReloadPending = 0;
            ProcessConfigFile(PGC_SIGHUP);
        }
        MemoryContextReset(self.round_context);
        MemoryContextSwitchTo(self.round_context);
        run_round(self);
        const std::int64_t pause = self.next_round - ticks_ms();
        if (pause > 0)
            (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                            static_cast<long>(pause), event);
    }
}
