#include "qinglong_sched/worker/shared_state.hpp"

#include "qinglong_sched/pg/boundary.hpp"
#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/settings.hpp"

namespace qinglong::worker {

Shared* shared = nullptr;
Database* databases = nullptr;

namespace {

constexpr const char* kName = "qinglong_sched";

shmem_request_hook_type next_request = nullptr;
shmem_startup_hook_type next_startup = nullptr;

Size shared_size() {
    return add_size(MAXALIGN(sizeof(Shared)),
                    mul_size(sizeof(Database), static_cast<Size>(settings::max_databases)));
}

void request_memory() {
    if (next_request != nullptr)
        next_request();
    RequestAddinShmemSpace(shared_size());
    RequestNamedLWLockTranche(kName, 1);
}

void start_memory() {
    if (next_startup != nullptr)
        next_startup();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    bool found = false;
    auto* const memory = static_cast<char*>(ShmemInitStruct(kName, shared_size(), &found));
    shared = reinterpret_cast<Shared*>(memory);
    databases = reinterpret_cast<Database*>(memory + MAXALIGN(sizeof(Shared)));
    if (!found) {
        std::memset(memory, 0, shared_size());
        shared->lock = &GetNamedLWLockTranche(kName)->lock;
        ConditionVariableInit(&shared->left);
    }
    LWLockRelease(AddinShmemInitLock);
}

void set_launcher_latch() {
    if (shared->launcher != nullptr)
        SetLatch(shared->launcher);
}

Database* find_or_add(Oid oid) {
    if (Database* const known = find_database(oid); known != nullptr)
        return known;
    Database* const free = find_database(InvalidOid);
    if (free == nullptr) {
        shared->databases_exhausted = true;
        return nullptr;
    }
    std::memset(static_cast<void*>(free), 0, sizeof *free);
    free->oid = oid;
    return free;
}

// The slot or the probe of this process, for its exit.
Slot* own_slot = nullptr;

// Runs after the process has left the array of connected processes, so whoever waits finds the database free.
void leave(int, Datum) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    if (own_slot != nullptr) {
        own_slot->pid = 0;
        own_slot->latch = nullptr;
        own_slot->told = false;
    } else {
        shared->prober = 0;
        shared->probing = InvalidOid;
    }
    set_launcher_latch();
    LWLockRelease(shared->lock);
    ConditionVariableBroadcast(&shared->left);
}

template<typename F>
bool for_each_process(Oid oid, F visit) {
    bool any = false;
    if (shared->probing == oid && shared->prober != 0) {
        any = true;
        visit(shared->prober, nullptr);
    }
    if (Database* const database = find_database(oid); database != nullptr) {
        for (Slot& slot : database->slots) {
            if (slot.pid != 0) {
                any = true;
                visit(slot.pid, &slot);
            }
        }
    }
    return any;
}

} // namespace

void install_shared_memory() {
    next_request = shmem_request_hook;
    shmem_request_hook = request_memory;
    next_startup = shmem_startup_hook;
    shmem_startup_hook = start_memory;
    scheduling::wake_schedulers = wake;
}

Database* find_database(Oid oid) {
    for (int i = 0; i < settings::max_databases; ++i)
        if (databases[i].oid == oid)
            return &databases[i];
    return nullptr;
}

void wake(Oid oid) {
    if (shared == nullptr)
        return;
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    bool running = false;
    if (Database* const database = find_or_add(oid); database != nullptr) {
        database->extension = Extension::kInstalled;
        ++database->requests;
        for (const Slot& slot : database->slots) {
            if (slot.pid != 0) {
                running = true;
                SetLatch(slot.latch);
            }
        }
    }
    if (!running)
        set_launcher_latch();
    LWLockRelease(shared->lock);
}

void wake_launcher() {
    LWLockAcquire(shared->lock, LW_SHARED);
    set_launcher_latch();
    LWLockRelease(shared->lock);
}

Database* enter_slot(Oid oid, int number) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    Database* const database = find_database(oid);
    Slot* const slot = database == nullptr ? nullptr : &database->slots[number];
    const bool entered = slot != nullptr && slot->permit && slot->pid == 0;
    if (entered) {
        slot->permit = false;
        slot->pid = MyProcPid;
        slot->latch = MyLatch;
        slot->told = false;
        own_slot = slot;
    }
    LWLockRelease(shared->lock);
    if (entered)
        on_shmem_exit(leave, 0);
    return entered ? database : nullptr;
}

std::uint32_t requests(const Database& database) {
    LWLockAcquire(shared->lock, LW_SHARED);
    const std::uint32_t count = database.requests;
    LWLockRelease(shared->lock);
    return count;
}

void count_cycle(Database& database, int slot) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    ++database.slots[slot].cycles;
    LWLockRelease(shared->lock);
}

void report_absent(Database& database, std::uint32_t seen) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    if (database.requests == seen)
        database.extension = Extension::kAbsent;
    LWLockRelease(shared->lock);
}

bool enter_probe(Oid database) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    const bool entered = shared->probing == database && shared->prober == 0;
    if (entered)
        shared->prober = MyProcPid;
    LWLockRelease(shared->lock);
    if (entered)
        on_shmem_exit(leave, 0);
    return entered;
}

void report_probe(Oid database, bool found) {
    if (found) {
        wake(database);
        return;
    }
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    shared->probed = database;
    LWLockRelease(shared->lock);
}

void stop_workers(Oid oid) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    if (Database* const database = find_or_add(oid); database != nullptr) {
        ++database->stops;
        for (Slot& slot : database->slots)
            slot.permit = false;
    }
    if (shared->probing == oid && shared->prober == 0)
        shared->probing = InvalidOid;
    // Under the lock a process id in the table is that of a living process of ours.
    for_each_process(oid, [](pid_t pid, Slot* slot) {
        if (slot == nullptr || !slot->told)
            (void)kill(pid, SIGTERM);
        if (slot != nullptr)
            slot->told = true;
    });
    LWLockRelease(shared->lock);
}

void wait_for_workers(Oid oid, int timeout_ms) {
    static std::uint32_t event = 0;
    if (event == 0)
        event = pg::wait_event("QinglongSchedStop");
    const std::int64_t deadline = ticks_ms() + timeout_ms;
    ConditionVariablePrepareToSleep(&shared->left);
    for (;;) {
        LWLockAcquire(shared->lock, LW_SHARED);
        const std::int64_t remaining = deadline - ticks_ms();
        const bool late = remaining <= 0;
        const bool any = for_each_process(oid, [late](pid_t pid, Slot*) {
            if (late) // a second request ends it whatever it does
                (void)kill(pid, SIGTERM);
        });
        LWLockRelease(shared->lock);
        if (!any || late)
            break;
        (void)ConditionVariableTimedSleep(&shared->left, static_cast<long>(remaining), event);
    }
    ConditionVariableCancelSleep();
}

void resume(Oid oid) {
    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    Database* const database = find_database(oid);
    if (database != nullptr && database->stops > 0)
        --database->stops;
    set_launcher_latch();
    LWLockRelease(shared->lock);
}

std::int64_t ticks_ms() {
    instr_time now;
    INSTR_TIME_SET_CURRENT(now);
    return static_cast<std::int64_t>(INSTR_TIME_GET_MILLISEC(now));
}

} // namespace qinglong::worker

QL_FUNCTION(ql_wake_launcher) {
    qinglong::pg::pgcall([] { qinglong::scheduling::request_wakeup(); });
    PG_RETURN_VOID();
}

QL_FUNCTION(ql_worker_slots_exhausted) {
    const auto* const state = qinglong::worker::shared;
    PG_RETURN_BOOL(state != nullptr && state->slots_exhausted);
}
