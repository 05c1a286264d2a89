"""The throwaway server: databases of triggers, sessions, replicas, background workers."""

import glob
import multiprocessing
import os
import subprocess
import time

import psycopg
from psycopg import pq

HOUR_MS = 3_600_000


def say(text):
    print(text, flush=True)


class Failure(Exception):
    def __init__(self, result):
        self.sqlstate = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        super().__init__(result.error_message.decode())


class Session:
    """A bare libpq session with prepared statements: little of the client in what is measured."""

    def __init__(self, database, **statements):
        self.conn = pq.PGconn.connect(b"dbname=" + database.encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise RuntimeError(self.conn.error_message.decode())
        for name, text in statements.items():
            self._done(self.conn.prepare(name.encode(), text.encode()))

    @staticmethod
    def _done(result):
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            raise Failure(result)
        return result

    def run(self, text):
        return self._done(self.conn.exec_(text.encode()))

    def call(self, name, *values, values_format=pq.Format.TEXT, result_format=pq.Format.TEXT):
        return self._done(self.conn.exec_prepared(name.encode(), list(values), [values_format] * len(values), result_format))

    def rollback(self):
        """Ends what a failure left; after a failed COMMIT that is nothing."""
        if self.conn.transaction_status != pq.TransactionStatus.IDLE:
            self.run("ROLLBACK")

    def timed(self, name, *values):
        """The result and how many milliseconds it took."""
        start = time.perf_counter()
        result = self.call(name, *values)
        return result, (time.perf_counter() - start) * 1000


class Database:
    """A database with the extension and n triggers, whose schedule rows reset() makes anew."""

    def __init__(self, n, expression):
        self.n = n
        self.name = f"triggers_{n}" + ("_seconds" if expression.count("*") == 6 else "")
        say(f"  seeding {n:,} triggers")
        start = time.monotonic()
        admin("postgres", f"CREATE DATABASE {self.name}")
        self.sql("CREATE EXTENSION qinglong_sched")
        # Foreign keys of a million consistent rows need not be looked up one by one.
        seed = ["psql", "-X", "-q", "-d", self.name, "-v", f"triggers={n}", "-v", f"due_ms={now_ms()}",
                "-v", f"expression={expression}", "-f", "seed.sql"]
        subprocess.run(seed, check=True, env={**os.environ, "PGOPTIONS": "-c session_replication_role=replica"})
        self.sql("VACUUM ANALYZE qinglong.triggers, qinglong.trigger_revisions")
        self.seed_s = time.monotonic() - start

    def sql(self, text, *values):
        return admin(self.name, text, *values)

    def value(self, text, *values):
        return self.sql(text, *values)[0][0]

    def script(self, file, **variables):
        options = [x for k, v in variables.items() for x in ("-v", f"{k}={v}")]
        subprocess.run(["psql", "-X", "-q", "-d", self.name, *options, "-f", file], check=True,
                       stdout=subprocess.DEVNULL)

    def reset(self, due, at_ms=None, rows=None):
        """Empty runs; schedule rows for the first `rows` triggers (or all): the first `due` have the cursor at_ms (an
        instant of their schedule; without one the last midnight), the others one far ahead."""
        with psycopg.connect(dbname=self.name, autocommit=True) as conn:
            guards = conn.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 'qinglong.run_events'::regclass"
                                  " AND NOT tgisinternal").fetchall()
            for (guard,) in guards:
                conn.execute(f"ALTER TABLE qinglong.run_events DISABLE TRIGGER {guard}")
            conn.execute("TRUNCATE qinglong.runs, qinglong.run_attempts, qinglong.run_events, qinglong.trigger_schedules")
            for (guard,) in guards:
                conn.execute(f"ALTER TABLE qinglong.run_events ENABLE ALWAYS TRIGGER {guard}")
            conn.execute("SET session_replication_role = replica")
            conn.execute("""
INSERT INTO qinglong.trigger_schedules (project_id, trigger_id, trigger_revision, next_fire_at_ms, updated_at_ms, eligible)
SELECT project_id, trigger_id, current_revision,
       CASE WHEN trigger_id <= 'trigger-' || lpad(%s::text, 8, '0') THEN %s::bigint ELSE %s::bigint END, created_at_ms, true
  FROM qinglong.triggers WHERE trigger_id <= 'trigger-' || lpad(%s::text, 8, '0') ORDER BY trigger_id""",
                         (due, at_ms or midnight_ms(), midnight_ms() + 48 * HOUR_MS, rows or self.n))
            conn.execute("CHECKPOINT")

    def runs(self):
        return self.value("SELECT count(*) FROM qinglong.runs")

    def held_claims(self):
        return self.value("SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL")


def admin(database, text, *values):
    with psycopg.connect(dbname=database, autocommit=True) as conn:
        cursor = conn.execute(text, values or None)
        return cursor.fetchall() if cursor.description else None


def configure(**settings):
    with psycopg.connect(dbname="postgres", autocommit=True) as conn:
        for name, value in settings.items():
            conn.execute(f"ALTER SYSTEM SET {name.replace('__', '.')} = '{value}'")
        conn.execute("SELECT pg_reload_conf()")
    time.sleep(0.05)


def now_ms():
    return int(time.time() * 1000)


def midnight_ms():
    return now_ms() // (24 * HOUR_MS) * 24 * HOUR_MS


def wal_position():
    return int(admin("postgres", "SELECT pg_current_wal_insert_lsn() - '0/0'")[0][0])


def wait_for(condition, what, timeout=120.0, pause=0.02):
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"timed out waiting for {what}")
        time.sleep(pause)
    return answer


class Workers:
    """The background workers, in one database, from when they have started until they have ended."""

    def __init__(self, database, max_claims=16, workers=2):
        self.database, self.max_claims, self.workers = database, max_claims, workers
        self.watch = psycopg.connect(dbname=database.name, autocommit=True)  # a new session each time would cost more than it sees
        self.cpu_us = None  # of an admission, once rate() has measured

    def list(self):
        return self.watch.execute("SELECT pid, wait_event_type FROM pg_stat_activity WHERE datname = current_database()"
                                  " AND backend_type LIKE 'qinglong_sched%'").fetchall()

    def pids(self):
        return [pid for pid, _ in self.list()]

    def asleep(self):
        types = [kind for _, kind in self.list()]
        return len(types) == self.workers and all(kind == "Extension" for kind in types)

    def __enter__(self):
        self.database.sql("SELECT qinglong.ql_hold('not yet')")
        configure(qinglong_sched__databases=self.database.name, qinglong_sched__max_claims_per_cycle=self.max_claims,
                  qinglong_sched__workers_per_database=self.workers, qinglong_sched__enabled="on")
        wait_for(self.asleep, "the background workers")
        return self

    def release(self):
        self.database.sql("SELECT qinglong.ql_release_hold()")

    def __exit__(self, *_):
        self.stop()
        self.watch.close()

    def stop(self):
        configure(qinglong_sched__enabled="off")
        wait_for(lambda: not self.list(), "the end of the background workers")
        self.database.sql("SELECT qinglong.ql_release_hold()")

    def rate(self, seconds):
        """Admissions per second from the release on, until nothing is due or for some seconds."""
        before = {pid: cpu_ns(pid) for pid in self.pids()}
        self.release()
        wait_for(lambda: self.watch.execute("SELECT EXISTS (SELECT FROM qinglong.runs)").fetchone()[0], "the first Run")
        started = time.monotonic()
        calm = 0  # asleep twice in a row: not just between two cycles
        while calm < 2 and time.monotonic() - started < seconds:
            time.sleep(0.1)
            calm = calm + 1 if self.asleep() else 0
        cpu = sum(cpu_ns(pid) - ns for pid, ns in before.items())
        self.cpu_us = cpu / 1000 / self.database.runs()
        self.stop()
        rows = self.database.sql("SELECT count(*), max(created_at_ms) - min(created_at_ms),"
                                 " count(*) FILTER (WHERE created_at_ms = first) FROM qinglong.runs,"
                                 " (SELECT min(created_at_ms) AS first FROM qinglong.runs) f")
        count, ms, first = rows[0]
        return (count - first) * 1000 / max(ms, 1)


def race(replicas, target, *arguments):
    """Runs target(barrier, number, ...) in processes of their own; answers their reports and the seconds from the
    start of the first to the end of the last."""
    context = multiprocessing.get_context("fork")
    queue, barrier = context.Queue(), context.Barrier(replicas)

    def body(number):
        try:
            queue.put(target(barrier, number, *arguments))
        except BaseException as error:  # the others must not wait for it
            barrier.abort()
            queue.put({"error": repr(error)})

    processes = [context.Process(target=body, args=(n,)) for n in range(replicas)]
    for process in processes:
        process.start()
    reports = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    errors = [r["error"] for r in reports if "error" in r]
    if errors:
        raise RuntimeError(errors[0])
    return reports, max(r["end"] for r in reports) - min(r["start"] for r in reports)


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def private_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


def load():
    return os.getloadavg()[0], len(glob.glob("/sys/devices/system/cpu/cpu[0-9]*"))
