#pragma once
// What the processes of the extension share: who runs where, wake-up latches, counters. Nothing here decides
// what is scheduled: losing it all costs a restart of the processes and nothing else.

#include "qinglong_sched/pg/pg.hpp"

namespace qinglong::worker {

constexpr int kMostSlots = 16; // the upper bound of workers_per_database

enum class Extension : std::uint8_t { kUnknown, kInstalled, kAbsent };

// One scheduler process, or the place for it.
struct Slot {
    pid_t pid;            // 0: nobody
    Latch* latch;         // of that process
    bool permit;          // the launcher has asked for a process; taken back when the database must be left
    bool told;            // it has been asked to stop
    std::uint64_t cycles; // of this process
};

// A database in which the extension is known to be, or whose workers somebody has asked to stop.
struct Database {
    Oid oid; // InvalidOid: a free entry; entries never move
    Extension extension;
    int stops;              // commands that want the database to itself
    std::uint32_t requests; // wake-ups so far: latches alone can be lost in other waits
    Slot slots[kMostSlots];
};

struct Shared {
    LWLock* lock;
    ConditionVariable left; // a process has left its slot
    Latch* launcher;
    Oid probing;  // the database that the one probe looks into
    pid_t prober; // 0 until it runs
    Oid probed;   // the database in which a probe last found no extension
    bool slots_exhausted;
    bool databases_exhausted;
};
static_assert(std::is_trivially_copyable_v<Shared> && std::is_trivially_copyable_v<Database>);

extern Shared* shared;      // nullptr where the library is not preloaded
extern Database* databases; // settings::max_databases entries

void install_shared_memory(); // from _PG_init, at preload

Database* find_database(Oid oid); // with the lock held

// The extension is there, and there may be work: wakes the schedulers of the database, or else the launcher.
void wake(Oid database);
void wake_launcher();

// A scheduler takes its slot before it connects; nullptr when it is not wanted any more. Left at exit.
Database* enter_slot(Oid database, int slot);
std::uint32_t requests(const Database& database);
void count_cycle(Database& database, int slot);
// The extension was not found, unless it has been created since `seen` was read.
void report_absent(Database& database, std::uint32_t seen);

// The same for the probe.
bool enter_probe(Oid database);
void report_probe(Oid database, bool found);

// Asks all processes in a database to leave, and lets none in until as many calls of resume() have followed.
void stop_workers(Oid database);
// Waits until they have left; ends those that have not at the deadline.
void wait_for_workers(Oid database, int timeout_ms);
void resume(Oid database);

// Milliseconds of a clock that never jumps, for pauses of processes only.
std::int64_t ticks_ms();

} // namespace qinglong::worker
