#include "qinglong_sched/scheduling/cycle.hpp"
#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/worker/process.hpp"
#include "qinglong_sched/worker/shared_state.hpp"

#include "qinglong_sched/pg/datum.hpp"

// A scheduler runs the cycle that SQL can call as well, and sleeps in between. All of its state is
// disposable.

namespace qinglong::worker {

namespace {

constexpr int kTickMs = 50;
constexpr int kSliceMs =
    1000; // a sleep looks at the clock at least this often, because clocks are set at times
// So long before something is due a scheduler looks at the catalog, if that has changed: it may take 50 ms.
constexpr int kAheadMs = 100;
constexpr int kLeastPauseMs = 500;
constexpr int kMostPauseMs = 30000;

struct Scheduler {
    Database* database;
    int slot;
    Oid extension; // as first seen
    char database_name[NAMEDATALEN];
    char owner_id[128];
    MemoryContext context; // reset before each round
    TimeoutId stop_timer;
    std::uint32_t requests; // seen before the round
    int pause_ms;           // after the last failure; 0: none
    char idle_reason[256];  // as last said; empty: scheduling
};

struct Failure {
    int sqlstate;
    char message[256];
};

struct Round {
    std::int64_t started_at_ms;
    std::int64_t next_due_ms; // 0: none
    bool saturated;
};

// --- stopping ---

int ticks_while_stopping = 0;

// Ends a cycle that outlasts stop_timeout, whatever it waits for.
void on_tick() {
    if (stopping == 0 || ++ticks_while_stopping * kTickMs < settings::stop_timeout_ms)
        return;
    ProcDiePending = 1;
    InterruptPending = 1;
}

// --- errors ---

// HOLD_INTERRUPTS() and RESUME_INTERRUPTS() without ++ and -- of a volatile, which C++20 deprecates.
void hold_interrupts() {
    InterruptHoldoffCount = InterruptHoldoffCount + 1;
}
void resume_interrupts() {
    InterruptHoldoffCount = InterruptHoldoffCount - 1;
}

// Runs body, and ends what it raised: aborts its transaction and answers false with the failure. The place
// where every error of a scheduler ends. body may ereport and holds trivial objects only.
template<typename F>
[[gnu::noinline]] bool attempt(const Scheduler& self, F body, Failure& failure) {
    static_assert(std::is_trivially_copyable_v<F>);
    volatile bool done = false;
    PG_TRY();
    {
        body();
        done = true;
    }
    PG_CATCH();
    {
        hold_interrupts();
        MemoryContextSwitchTo(self.context);
        disable_timeout(self.stop_timer, false);
        const ErrorData* const error = CopyErrorData();
        failure.sqlstate = error->sqlerrcode;
        const char* const message = error->message != nullptr ? error->message : "";
        const int length =
            pg_mbcliplen(message, static_cast<int>(strlen(message)), sizeof failure.message - 1);
        strlcpy(failure.message, message, static_cast<Size>(length) + 1);
        FlushErrorState();
        AbortCurrentTransaction();
        LWLockReleaseAll();
        pgstat_report_activity(STATE_IDLE, nullptr);
        resume_interrupts();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(self.context);
    return done;
}

// --- a round ---

InstalledExtension look(Scheduler& self) {
    StartTransactionCommand();
    const InstalledExtension found = find_extension();
    const char* const name = get_database_name(MyDatabaseId);
    if (name != nullptr)
        strlcpy(self.database_name, name, sizeof self.database_name);
    CommitTransactionCommand();
    return found;
}

// Runs body, which may throw, in a transaction and an SPI session of its own; what they allocate lives in the
// context of the round.
template<typename F>
void in_session(const Scheduler& self, F body) {
    PortalContext = self.context;
    StartTransactionCommand();
    const int level = pg::begin_spi(true);
    PushActiveSnapshot(GetTransactionSnapshot());
    pg::boundary(body);
    PopActiveSnapshot();
    pg::end_spi(level);
    CommitTransactionCommand();
}

Round run_cycle(const Scheduler& self) {
    Round round = {};
    pgstat_report_activity(STATE_RUNNING, "scheduling cycle");
    enable_timeout_every(self.stop_timer, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), kTickMs),
                         kTickMs);
    in_session(self, [&] {
        // Before the first claim: what falls due during the cycle is due at once after it.
        round.started_at_ms = pg::clock_ms();
        const scheduling::CycleSummary summary = scheduling::run_cycle(
            {self.owner_id, settings::claim_lease_ms, settings::max_claims_per_cycle,
             settings::misfire_grace_ms, settings::admission_isolation == settings::kSerializable});
        round.saturated = summary.saturated;
        if (!round.saturated) // else the next cycle follows at once
            round.next_due_ms = scheduling::next_due_ms(round.started_at_ms).value_or(0);
    });
    disable_timeout(self.stop_timer, false);
    pgstat_report_activity(STATE_IDLE, nullptr);
    (void)pgstat_report_stat(!round.saturated); // before a sleep, else as often as any session does
    return round;
}

// Sleeps until something may be due, at most `most_ms`; a wake-up ends it early if the scheduler may be
// woken.
void sleep_until_due(const Scheduler& self, int most_ms, std::int64_t due_ms, bool wakeable) {
    static std::uint32_t event = 0;
    if (event == 0)
        event = pg::wait_event("QinglongSchedScheduler");
    const std::int64_t deadline = ticks_ms() + most_ms;
    for (;;) {
        if (scheduling::stop_flag != 0 || (wakeable && requests(*self.database) != self.requests))
            return;
        std::int64_t pause = Min(deadline - ticks_ms(), kSliceMs);
        if (due_ms != 0)
            pause = Min(pause, due_ms - pg::clock_ms());
        if (pause <= 0)
            return;
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, static_cast<long>(pause),
                        event);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
}

// --- what is said ---

void report_idle(Scheduler& self, const Failure& failure) {
    if (strcmp(self.idle_reason, failure.message) == 0)
        return;
    strlcpy(self.idle_reason, failure.message, sizeof self.idle_reason);
    ereport(LOG, (errmsg("background workers of qinglong_sched idle in database \"%s\": %s",
                         self.database_name, failure.message)));
}

void report_success(Scheduler& self) {
    if (self.idle_reason[0] != '\0')
        ereport(LOG, (errmsg("background workers of qinglong_sched schedule in database \"%s\" again",
                             self.database_name)));
    self.idle_reason[0] = '\0';
    self.pause_ms = 0;
}

int report_failure(Scheduler& self, const Failure& failure) {
    self.pause_ms = self.pause_ms == 0 ? kLeastPauseMs : Min(2 * self.pause_ms, kMostPauseMs);
    ereport(WARNING, (errcode(failure.sqlstate),
                      errmsg("scheduling cycle in database \"%s\" failed with SQLSTATE %s: %s",
                             self.database_name, unpack_sql_state(failure.sqlstate), failure.message),
                      errdetail("The next one follows in %d ms.", self.pause_ms)));
    return self.pause_ms;
}

// --- the process ---

// Nothing that is set for a database or a role may change how a scheduler works.
void pin_session() {
    static constexpr const char* kPinned[][2] = {
        {"search_path", "pg_catalog, pg_temp"},
        {"application_name", "qinglong_sched scheduler"},
        {"session_replication_role", "origin"},
        {"row_security", "on"},
        {"default_transaction_isolation", "read committed"},
        {"default_transaction_read_only", "off"},
        {"default_transaction_deferrable", "off"},
        // Shorter than a deadlock takes to be found: a client's LOCK TABLE should not be the victim.
        {"lock_timeout", "500ms"},
    };
    for (const auto& setting : kPinned)
        SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
}

// Held until the process ends in whatever way: there is one scheduler in each slot, whoever started it. It is
// a lock of the method that survives an abort, and of a tag that no SQL function can name.
bool lock_slot(int slot) {
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, InvalidOid, static_cast<std::uint16_t>(slot));
    tag.locktag_lockmethodid = USER_LOCKMETHOD;
    return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

// One cycle and the sleep after it.
void run_round(Scheduler& self) {
    self.requests = requests(*self.database);
    InstalledExtension extension = {};
    Round round = {};
    Failure failure = {};
    const auto look_up = [&] { extension = look(self); };
    bool looked = attempt(self, look_up, failure);
    bool done = looked;
    if (looked && !OidIsValid(self.extension))
        self.extension = extension.oid;
    if (looked && OidIsValid(extension.oid) && extension.oid == self.extension) {
        SetUserIdAndSecContext(extension.owner, SECURITY_LOCAL_USERID_CHANGE);
        done = attempt(
            self, [&] { round = run_cycle(self); }, failure);
        Failure ignored = {};
        if (!done) // an error of a cycle during DROP EXTENSION is none
            looked = attempt(self, look_up, ignored);
    }
    if (looked && (!OidIsValid(extension.oid) || extension.oid != self.extension)) {
        if (!OidIsValid(extension.oid))
            report_absent(*self.database, self.requests);
        proc_exit(0); // a newly created extension gets a new process
    }
    count_cycle(*self.database, self.slot);

    int most_ms = settings::cadence_ms;
    bool wakeable = true;
    if (done) {
        report_success(self);
        if (round.saturated)
            most_ms = 0;
    } else if (failure.sqlstate == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE) {
        report_idle(self, failure);
    } else {
        most_ms = report_failure(self, failure);
        wakeable = false;
    }
    const auto sleep_until = [&](std::int64_t ms) {
        (void)attempt(
            self, [&] { sleep_until_due(self, most_ms, ms, wakeable); }, failure);
    };
    const std::int64_t ahead = round.next_due_ms - pg::clock_ms();
    if (done && ahead > kAheadMs && ahead < most_ms) {
        sleep_until(round.next_due_ms - kAheadMs);
        if (scheduling::stop_flag == 0 && requests(*self.database) == self.requests)
            (void)attempt( // an answer of no is left to the cycle
                self, [&] { in_session(self, [] { scheduling::look_ahead(); }); }, failure);
    }
    sleep_until(round.next_due_ms);
}

} // namespace

} // namespace qinglong::worker

void ql_scheduler_main(Datum argument) {
    using namespace qinglong;
    using namespace qinglong::worker;
    const Oid database = DatumGetObjectId(argument);
    Scheduler self = {};
    std::memcpy(&self.slot, MyBgworkerEntry->bgw_extra, sizeof self.slot);
    self.database = enter_slot(database, self.slot);
    if (self.database == nullptr)
        proc_exit(0);
    pqsignal(SIGTERM, die); // connecting may wait for a lock
    BackgroundWorkerUnblockSignals();
    disable_timeouts();
    BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
    accept_signals();
    if (!lock_slot(self.slot))
        proc_exit(0);
    pin_session();
    self.context = pg::new_context(TopMemoryContext, "qinglong_sched round");
    self.stop_timer = RegisterTimeout(USER_TIMEOUT, on_tick);
    snprintf(self.owner_id, sizeof self.owner_id, "bgw:" UINT64_FORMAT ":%u:%d:" INT64_FORMAT,
             GetSystemIdentifier(), database, self.slot, pg::clock_ms());
    for (;;) {
        scheduling::stop_flag = 0;
        if (ConfigReloadPending != 0) {
            ConfigReloadPending = 0;
            ProcessConfigFile(PGC_SIGHUP);
        }
        if (stopping != 0 || !settings::enabled)
            proc_exit(0);
        MemoryContextReset(self.context);
        MemoryContextSwitchTo(self.context);
        run_round(self);
    }
}
