"""The benchmarks. Every figure is set against a competitor (or against itself in another state) that was measured in the
same run, alternately; medians, with the smallest and largest value beside them."""

import json
import os
import statistics
import sys
import time

from replicas import batch_replica, limit_writer, naive_replica, single_replica
from server import (Database, Session, Workers, admin, configure, cpu_ns, load, midnight_ms, now_ms, private_kib, race, say,
                    wait_for, wal_position)

QUICK = bool(os.environ.get("QUICK"))
TINY = bool(os.environ.get("TINY"))


def size(full, quick, tiny):
    return tiny if TINY else quick if QUICK else full


SMALL = size(10_000, 10_000, 2_000)
MEDIUM = size(100_000, 100_000, 4_000)
LARGE = size(1_000_000, 200_000, 20_000)
REPEATS = size(5, 3, 2)
DAILY, EACH_SECOND = "0 0 * * *", "* * * * * *"

results = []
_databases = {}


def database(n, expression=DAILY):
    """The database of n triggers; made when it is first asked for."""
    key = (n, expression)
    if key not in _databases:
        _databases[key] = Database(n, expression)
    return _databases[key]


# --- reporting --------------------------------------------------------------------------------------------------------

def number(value):
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}"


def spread(samples):
    if isinstance(samples, (int, float)):
        samples = [samples]
    if len(samples) == 1:
        return number(samples[0])
    return f"{number(statistics.median(samples))} ({number(min(samples))}..{number(max(samples))})"


def result(question, values, goal=None, at_least=None, at_most=None, unit="", **details):
    """One line of the table: values are samples of what the goal is about; details are further samples by name."""
    values = values if isinstance(values, list) else [values]
    value = statistics.median(values)
    met = None
    if at_least is not None or at_most is not None:
        met = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        goal = goal or (f">= {at_least:g}" if at_least is not None else f"<= {at_most:g}")
    results.append({"benchmark": current, "question": question, "unit": unit, "median": value, "samples": values,
                    "goal": goal, "met": met, "details": details})
    mark = {None: "", True: "met", False: "NOT MET"}[met]
    extra = "; ".join(f"{k.replace('_', ' ')} {spread(v)}" for k, v in details.items())
    say(f"  {question}: {spread(values)} {unit}".rstrip() + (f"   goal {goal}: {mark}" if goal else "")
        + (f"\n      {extra}" if extra else ""))


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def alternate(repeats, **competitors):
    """Measures each competitor once a round, in changing order; answers the samples by name."""
    samples = {name: [] for name in competitors}
    names = list(competitors)
    for k in range(repeats):
        for name in names[k % len(names):] + names[:k % len(names)]:
            samples[name].append(competitors[name]())
    return samples


# --- competitors ------------------------------------------------------------------------------------------------------

def has_schema(db, schema):
    return db.value("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", schema)


def limit(db, rows, naive=False, sessions=2, batch=256, measure=None, cpu=None):
    """Admissions a second when the same rows are only written; or their WAL bytes."""
    schema = "limit_naive" if naive else "limit_ours"
    if not has_schema(db, schema):
        db.script("limit.sql", schema=schema, naive=int(naive))
    columns = db.value("SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attnum > 0"
                       " AND NOT attisdropped AND attgenerated = '' AND attrelid = 'qinglong.trigger_schedules'::regclass")
    batches = max(rows // batch, sessions)
    db.sql(f"TRUNCATE {schema}.runs, {schema}.run_attempts, {schema}.run_events, {schema}.trigger_schedules")
    db.sql(f"INSERT INTO {schema}.trigger_schedules ({columns}) SELECT {columns} FROM qinglong.trigger_schedules"
           " ORDER BY trigger_id LIMIT %s", rows)
    db.sql("CHECKPOINT")
    before = wal_position()
    reports, seconds = race(sessions, limit_writer, db.name, schema, sessions, batches, batch)
    written = db.value(f"SELECT count(*) FROM {schema}.runs")
    assert written == batches * batch, (written, batches, batch)
    if cpu is not None:
        cpu.append(sum(r["cpu_ns"] for r in reports) / 1000 / written)
    return (wal_position() - before) / written if measure == "wal" else written / seconds


def naive_prepare(db, due):
    if not has_schema(db, "naive"):
        db.script("naive.sql")
        db.sql("VACUUM ANALYZE naive.triggers, naive.trigger_revisions, naive.task_definitions,"
               " naive.task_definition_revisions, naive.task_execution_revisions, naive.projects")
    db.sql("TRUNCATE naive.runs, naive.run_attempts, naive.run_events, naive.trigger_schedules")
    db.sql("INSERT INTO naive.trigger_schedules (project_id, trigger_id, trigger_revision, next_fire_at_ms, updated_at_ms)"
           " SELECT project_id, trigger_id, current_revision, CASE WHEN trigger_id <= 'trigger-' || lpad(%s::text, 8, '0')"
           "        THEN %s::bigint ELSE %s::bigint END, created_at_ms FROM naive.triggers ORDER BY trigger_id",
           due, midnight_ms(), midnight_ms() + 172_800_000)
    db.sql("VACUUM ANALYZE naive.trigger_schedules")
    db.sql("CHECKPOINT")


def naive(db, due, replicas, cycles=None):
    naive_prepare(db, due)
    reports, seconds = race(replicas, naive_replica, db.name, cycles)
    total = {k: sum(r[k] for r in reports) for k in ("admitted", "failures", "abandoned")}
    return total["admitted"] / seconds, total


def best_naive(db, due):
    """The rate of the replica count that does best, and what it cost."""
    found = {}
    for replicas in size((1, 2, 4, 8, 16), (1, 4), (1, 2)):
        found[replicas] = naive(db, due, replicas)
    return max(found.items(), key=lambda item: item[1][0])


def outside(db, due, replicas, max_claims=256, serializable=True):
    db.reset(due, rows=size(None, due, due))
    if max_claims == 1:
        reports, seconds = race(replicas, single_replica, db.name, serializable)
    else:
        reports, seconds = race(replicas, batch_replica, db.name, max_claims, serializable)
    total = {k: sum(r[k] for r in reports) for k in ("admitted", "failures", "abandoned")}
    total["held"] = db.held_claims()
    return total["admitted"] / seconds, total


def background(db, due, max_claims, seconds, cpu=None):
    """Admissions a second of two background workers; what an admission costs them in microseconds goes to cpu."""
    db.reset(due)
    with Workers(db, max_claims) as workers:
        rate = workers.rate(seconds)
    if cpu is not None:
        cpu.append(workers.cpu_us)
    return rate


SECONDS = size(600, 3, 2)


# --- benchmarks -------------------------------------------------------------------------------------------------------

def rate():
    """admissions/s of 2 background workers, 100,000 due at one instant, against the limit"""
    db = database(MEDIUM)
    rows = size(MEDIUM, 20_480, 2_048)
    cpu = {16: [], 256: [], "limit": []}
    s = alternate(REPEATS,
                  ours_16=lambda: background(db, MEDIUM, 16, SECONDS, cpu[16]),
                  limit=lambda: limit(db, rows, cpu=cpu["limit"]),
                  limit_16=lambda: limit(db, rows, batch=16),
                  ours_256=lambda: background(db, MEDIUM, 256, SECONDS, cpu[256]),
                  limit_naive=lambda: limit(db, rows, naive=True))
    for n in (16, 256):
        ours = s[f"ours_{n}"]
        note = " (default)" if n == 16 else ""
        result(f"{n} claims a cycle{note} / limit", ratios(ours, s["limit"]), at_least=0.6, ours=ours, limit=s["limit"])
        result(f"{n} claims a cycle{note} / limit of the naive index set", ratios(ours, s["limit_naive"]),
               at_least=1.2, ours=ours, limit=s["limit_naive"])
        result(f"{n} claims a cycle: CPU of an admission / limit", ratios(cpu[n], cpu["limit"]), ours_us=cpu[n],
               limit_us=cpu["limit"])
    result("16 claims a cycle / limit in batches of 16", ratios(s["ours_16"], s["limit_16"]), ours=s["ours_16"],
           limit=s["limit_16"])


def due_together(db, due, max_claims):
    """Lets rows fall due at an instant to come; answers the milliseconds until each was committed, in order."""
    with Workers(db, max_claims) as workers:
        at_ms = due_soon(db, due)
        workers.release()
        wait_for(lambda: now_ms() > at_ms + 50 and db.value(
            "SELECT count(*) FROM qinglong.runs WHERE scheduled_for_ms = %s", at_ms) == due, "the admissions")
    return lateness(db, at_ms, at_ms)


def due_soon(db, due):
    """Gives rows a cursor one to three seconds ahead, and answers it."""
    at_ms = now_ms() // 1000 * 1000 + 3000
    db.reset(due, at_ms, rows=due)
    return at_ms


def lateness(db, from_ms, to_ms):
    """How many milliseconds after their instant the Runs were committed, in order."""
    return [row[0] for row in db.sql("""
SELECT (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000 - scheduled_for_ms)::float8
  FROM qinglong.runs WHERE scheduled_for_ms BETWEEN %s AND %s ORDER BY 1""", from_ms, to_ms)]


def naive_100():
    """the same rate against naive at its best replica count, 100 due"""
    db, seconds = database(SMALL), database(SMALL, EACH_SECOND)
    s = alternate(REPEATS, ours=lambda: 100_000 / due_together(seconds, 100, 16)[99],
                  theirs=lambda: best_naive(db, 100)[1][0])
    result("100 due / naive", ratios(s["ours"], s["theirs"]), at_least=15, ours=s["ours"], naive=s["theirs"])


def naive_many():
    """the same rate against naive at its best replica count, 100,000 due"""
    db = database(MEDIUM)
    replicas, cycles = size((16, 2), (4, 1), (2, 2))
    s = alternate(size(3, 1, 1), theirs=lambda: naive(db, MEDIUM, replicas, cycles)[0],
                  ours=lambda: background(db, MEDIUM, 16, SECONDS))
    result(f"{MEDIUM:,} due / naive", ratios(s["ours"], s["theirs"]), at_least=5000, ours=s["ours"], naive=s["theirs"])


def million():
    """rate with 1,000,000 due / rate with 10,000 due"""
    large, small = database(LARGE), database(SMALL)
    s = alternate(size(3, 1, 1), many=lambda: background(large, LARGE, 256, size(60, 8, 2)),
                  few=lambda: statistics.median(background(small, SMALL, 256, 60) for _ in range(3)))
    result(f"{LARGE:,} due / {SMALL:,} due", ratios(s["many"], s["few"]), at_least=0.8, many=s["many"], few=s["few"])


def replicas():
    """outside replicas, ql_claim(max_claims => 256) + ql_admit_batch, in 1, 4 and 16 sessions"""
    db = database(MEDIUM)
    due = size(MEDIUM, 15_360, 3_072)
    s = alternate(REPEATS, one=lambda: outside(db, due, 1)[0], limit=lambda: limit(db, due),
                  four=lambda: outside(db, due, 4)[0], sixteen=lambda: outside(db, due, 16)[0])
    for name in ("one", "four", "sixteen"):
        result(f"{name} / limit", ratios(s[name], s["limit"]), at_least=0.6, ours=s[name], limit=s["limit"])
    best = [max(three) for three in zip(s["one"], s["four"], s["sixteen"])]
    result("sixteen / best", ratios(s["sixteen"], best), at_least=0.8)


def single():
    """outside replicas, one claim at a time, 16 sessions, against naive at its best with 100 due"""
    db = database(SMALL)
    due = size(5_000, 1_000, 200)
    totals = []

    def ours():
        value, total = outside(db, due, 16, max_claims=1)
        totals.append(total)
        return value

    s = alternate(REPEATS, ours=ours, theirs=lambda: best_naive(db, 100)[1][0])
    result("one at a time, 16 sessions / naive", ratios(s["ours"], s["theirs"]), at_least=2.5, ours=s["ours"],
           naive=s["theirs"])
    result("claims abandoned", sum(t["abandoned"] + t["held"] for t in totals), at_most=0,
           failures_per_admission=sum(t["failures"] for t in totals) / max(1, sum(t["admitted"] for t in totals)))


def claim_times(db, due, claims, rounds):
    """Milliseconds of claims of 256 rows; what was claimed is admitted before the next claim."""
    times = []
    for _ in range(rounds):
        db.reset(due)
        session = Session(db.name, claim="SELECT array_agg(c)::text, count(*) FROM qinglong.ql_claim('bench:claim', NULL, 256) c",
                          admit="SELECT count(*) FROM qinglong.ql_admit_batch($1)")
        for k in range(claims + 1):
            claimed, ms = session.timed("claim")
            assert claimed.get_value(0, 1) == b"256"
            session.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
            session.call("admit", claimed.get_value(0, 0))
            session.run("COMMIT")
            if k > 0:  # the first statement of a session looks at the catalogue
                times.append(ms)
    return times


def claim():
    """one claim of 256 rows at 1,000, 10,000 and 1,000,000 due"""
    small, large = database(SMALL), database(LARGE)
    few = claim_times(small, 1_024, 2, size(10, 6, 2))
    some = claim_times(small, SMALL, 5, size(4, 3, 1))
    many = claim_times(large, LARGE, 15, 1)
    naive_prepare(small, 1_000)
    result(f"{LARGE:,} due, one claim of 256 rows", many, at_most=6, unit="ms", few_due=few, some_due=some)
    result(f"{LARGE:,} due / 1,000 due", statistics.median(many) / statistics.median(few), at_most=1.3)


def idle_poll():
    """one poll with nothing due, 1,000,000 triggers"""
    db = database(LARGE)
    db.reset(0)
    session = Session(db.name, claim="SELECT count(*) FROM qinglong.ql_claim('bench:poll', NULL, 16)", nothing="SELECT 1")
    times, nothing = [], []
    for k in range(size(1000, 300, 50)):
        ms = session.timed("claim")[1]
        if k >= 10:
            times.append(ms)
            nothing.append(session.timed("nothing")[1])
    result("one poll, nothing due", times, at_most=0.2, unit="ms", an_empty_statement=nothing)


def behind():
    """1 due behind 100,000 disabled or stale triggers"""
    db = database(MEDIUM)
    due_ms = now_ms() - 60_000
    db.reset(MEDIUM, due_ms)
    # Stale by the product's own means: each task gets a new revision, which the triggers are not pinned to.
    db.sql("SELECT qinglong.ql_task_publish(project_id, task_id, 'renamed', spec_json, revision)"
           "  FROM qinglong.task_definition_revisions r JOIN qinglong.task_definitions h USING (project_id, task_id)"
           " WHERE h.current_revision = r.revision AND task_id <> 'single'")
    db.sql("SELECT qinglong.ql_schedule('single', '0 0 * * *', 'true', project_id => 'bench')")
    db.sql("UPDATE qinglong.trigger_schedules SET next_fire_at_ms = %s WHERE trigger_id = 'single'", due_ms + 1000)
    assert db.value("SELECT count(*) FROM qinglong.trigger_schedules WHERE eligible") == 1
    session = Session(db.name, claim="SELECT count(*) FROM qinglong.ql_claim('bench:behind')")
    times = []
    for k in range(size(200, 100, 20)):
        session.run("BEGIN")
        answer, ms = session.timed("claim")
        assert answer.get_value(0, 0) == b"1"
        session.run("ROLLBACK")
        times.append(ms)
    result(f"1 due behind {MEDIUM:,} stale, one claim", times[10:], at_most=0.3, unit="ms", the_first=times[0])
    del _databases[MEDIUM, DAILY]  # its triggers stay stale
    admin("postgres", f"DROP DATABASE {db.name} WITH (FORCE)")


def snapshot():
    """claim after 200,000 admissions of 20,000 triggers while another session holds a snapshot"""
    triggers, rounds = size((20_000, 10), (4_000, 10), (600, 3))
    db = database(triggers, EACH_SECOND)

    def claim_ms():
        session = Session(db.name, claim="SELECT count(*) FROM qinglong.ql_claim('bench:claim', NULL, 256)")
        times = []
        for _ in range(8):
            session.run("BEGIN")
            times.append(session.timed("claim")[1])
            session.run("ROLLBACK")
        return times[1:]

    db.reset(triggers)
    fresh = claim_ms()
    db.reset(triggers)
    holder = Session(db.name)
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    reports = []
    while sum(r["admitted"] for r in reports) < triggers * rounds:
        more, _ = race(2, batch_replica, db.name, 256, True, 20)
        reports += more
        if sum(r["admitted"] for r in more) == 0:
            time.sleep(0.2)  # everything is due again in the next second
    time.sleep(1.1)
    aged = claim_ms()
    holder.run("COMMIT")
    result(f"claim of 256 after {triggers * rounds:,} admissions / fresh", statistics.median(aged) / statistics.median(fresh),
           at_most=5, fresh_ms=fresh, aged_ms=aged)


def wal():
    """WAL bytes per admission, full_page_writes on and off"""
    db = database(MEDIUM)
    rows = size(40_960, 7_680, 2_048)

    def ours(max_claims):
        db.reset(rows, rows=rows)
        before = wal_position()
        _, total = outside_now(db, max_claims)
        return (wal_position() - before) / total

    def outside_now(db, max_claims):
        reports, seconds = race(1, batch_replica, db.name, max_claims)
        return seconds, sum(r["admitted"] for r in reports)

    for state in ("on", "off"):
        configure(full_page_writes=state)
        s = alternate(3, ours=lambda: ours(256), limit=lambda: limit(db, rows, sessions=1, measure="wal"),
                      ours_16=lambda: ours(16))
        result(f"WAL / limit, full_page_writes {state}", ratios(s["ours"], s["limit"]), at_most=1.15, ours=s["ours"],
               limit=s["limit"], in_batches_of_16=s["ours_16"])
        if state == "off":
            result("WAL bytes, full_page_writes off", s["ours"], at_most=2700, unit="B", in_batches_of_16=s["ours_16"])
    configure(full_page_writes="on")


def percentile(values, fraction):
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))]


def latency():
    """scheduled instant to committed Run, 1 to 100 due per second"""
    db = database(size(5_000, 5_000, 600), EACH_SECOND)
    for due in (1, 10, 100):
        seconds = size(60, 7, 3)
        with Workers(db) as workers:
            at_ms = due_soon(db, due)
            workers.release()
            wait_for(lambda: now_ms() > at_ms + seconds * 1000 + 200, "the end")
        late = lateness(db, at_ms, at_ms + seconds * 1000)
        assert len(late) >= due * (seconds - 1), len(late)
        result(f"{due} due per second, p99", percentile(late, 0.99), at_most=15, unit="ms", p50=percentile(late, 0.5),
               most=max(late))
    session = Session(db.name, flush="INSERT INTO flush VALUES (1)") if flush_table(db) else None
    result("the flush of a commit, which comes on top", [session.timed("flush")[1] for _ in range(50)], unit="ms")


def flush_table(db):
    db.sql("CREATE TABLE IF NOT EXISTS flush (n int)")
    return True


def burst():
    """5,000 due in one second: when the last one is committed"""
    db = database(size(5_000, 5_000, 600), EACH_SECOND)
    last = [due_together(db, db.n, 16)[-1] / 1000 for _ in range(3)]
    result(f"{db.n:,} due at one instant, the last one committed after", last, at_most=1.5, unit="s")


def idle():
    """an idle scheduler with 100,000 triggers, none due for a minute"""
    db = database(MEDIUM)
    db.reset(0)
    seconds = size(60, 10, 3)
    shares = []
    with Workers(db) as workers:
        workers.release()
        time.sleep(2)
        before = {pid: cpu_ns(pid) for pid in workers.pids()}
        time.sleep(seconds)
        shares = [(cpu_ns(pid) - ns) / 1e7 / seconds for pid, ns in before.items()]
    result("CPU of an idle scheduler", shares, at_most=0.1, goal="< 0.1", unit="% of a core")


def memory():
    """scheduler memory over 1,000,000 admissions"""
    if QUICK:
        say("  left out of the quick run")
        return
    db = database(LARGE)
    db.reset(LARGE)
    samples = []
    with Workers(db, 256) as workers:
        workers.release()
        while (runs := db.value("SELECT coalesce(sum(admitted_total), 0) FROM qinglong.trigger_schedules")) < LARGE:
            samples.append((int(runs), [private_kib(pid) for pid in workers.pids()]))
            time.sleep(size(5, 5, 0.3))
    warm = [kib for runs, kib in samples if runs > LARGE // 10] or [kib for _, kib in samples]
    drift = [max(column) - min(column) for column in zip(*warm)]
    result("private memory after warm-up, largest - smallest", max(drift) / 1024, at_most=1, unit="MiB",
           MiB=[kib / 1024 for row in warm for kib in row])


def conflicts():
    """serialization failures with 16 replicas on neighbouring rows, and claims abandoned"""
    db = database(SMALL)
    for title, max_claims, due in (("batches of 256", 256, SMALL), ("batches of 16", 16, size(SMALL, 2_560, 1_280)),
                                   ("one at a time", 1, size(1_000, 320, 160))):
        totals = {}
        for serializable in (True, False):
            configure(qinglong_sched__admission_isolation="serializable" if serializable else "read committed")
            totals[serializable] = [outside(db, due, 16, max_claims, serializable) for _ in range(size(3, 1, 1))]
        failures = [t["failures"] / max(1, t["admitted"]) for _, t in totals[True]]
        result(f"failures per admission, {title}", failures, at_most=0.01,
               serializable_rate=[r for r, _ in totals[True]], read_committed_rate=[r for r, _ in totals[False]],
               read_committed_failures=[float(t["failures"]) for _, t in totals[False]])
        result(f"claims abandoned, {title}", sum(t["abandoned"] + t["held"] for v in totals.values() for _, t in v),
               at_most=0)
    configure(qinglong_sched__admission_isolation="serializable")
    rates = [naive(db, 100, 4) for _ in range(size(3, 1, 1))]
    result("naive, 100 due, 4 replicas: failures per admission", [t["failures"] / max(1, t["admitted"]) for _, t in rates],
           abandoned=[float(t["abandoned"]) for _, t in rates])


def pg_cron():
    """pg_cron: when the jobs of one minute start"""
    import psycopg
    jobs = size(500, 500, 20)
    db = database(size(5_000, 5_000, 600), EACH_SECOND)
    theirs, ours = [], []
    with psycopg.connect(host=os.environ["BENCH_PG_CRON"], dbname="postgres", autocommit=True) as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
        conn.execute("SELECT cron.schedule('job ' || n, '* * * * *', 'SELECT 1') FROM generate_series(1, %s) n", (jobs,))
        for _ in range(size(3, 1, 1)):
            # A minute that begins with all jobs known.
            minute = (now_ms() // 60_000 + (2 if now_ms() % 60_000 > 58_000 else 1)) * 60
            late = "SELECT (extract(epoch FROM start_time) - %s)::float8 * 1000 FROM cron.job_run_details" \
                   " WHERE start_time >= to_timestamp(%s) AND start_time < to_timestamp(%s)"
            wait_for(lambda: time.time() > minute and conn.execute(
                "SELECT count(*) FROM cron.job_run_details WHERE start_time >= to_timestamp(%s)", (minute,)
            ).fetchone()[0] >= jobs, "pg_cron", 120, 0.3)
            theirs.append(sorted(row[0] for row in conn.execute(late, (minute, minute, minute + 60)).fetchall()))
            ours.append(due_together(db, jobs, 16))
        conn.execute("SELECT cron.unschedule(jobid) FROM cron.job")
    result(f"start rate, {jobs} jobs of one minute / pg_cron", [b[-1] / a[-1] for a, b in zip(ours, theirs)],
           ours=[jobs * 1000 / x[-1] for x in ours], pg_cron=[jobs * 1000 / x[-1] for x in theirs])
    result("median start latency / pg_cron's", [statistics.median(a) / statistics.median(b) for a, b in zip(ours, theirs)],
           ours_ms=[statistics.median(x) for x in ours], pg_cron_ms=[statistics.median(x) for x in theirs])


BENCHMARKS = [rate, naive_100, naive_many, replicas, single, conflicts, wal, idle, behind, latency, burst, snapshot,
              million, claim, idle_poll, memory, pg_cron]


def print_table():
    say("\n" + "-" * 118)
    say(f"{'benchmark':<11}{'question':<62}{'median (smallest..largest)':<30}{'goal':<9}met")
    say("-" * 118)
    for r in results:
        met = {None: "", True: "yes", False: "NO"}[r["met"]]
        say(f"{r['benchmark']:<11}{r['question'][:61]:<62}{(spread(r['samples']) + ' ' + r['unit']).strip():<30}"
            f"{r['goal'] or '':<9}{met}")
    goals = [r for r in results if r["met"] is not None]
    say("-" * 118)
    say(f"{sum(r['met'] for r in goals)} of {len(goals)} goals met")


def main(names):
    global current
    known = {b.__name__: b for b in BENCHMARKS}
    if names == ["list"]:
        for b in BENCHMARKS:
            print(f"{b.__name__:<12}{b.__doc__}")
        return 0
    unknown = [n for n in names if n not in known and n != "all"]
    if unknown:
        print(f"no benchmark is named {unknown[0]}; bench/run list names them", file=sys.stderr)
        return 2
    started, failed = time.monotonic(), []
    for b in BENCHMARKS:
        if names and "all" not in names and b.__name__ not in names:
            continue
        if b is pg_cron and not os.environ.get("BENCH_PG_CRON"):
            continue
        current = b.__name__
        begin = time.monotonic()
        say(f"\n{current}: {b.__doc__}   (load {load()[0]:.1f})")
        try:
            b()
        except Exception as error:  # the others go on
            failed.append(current)
            say(f"  FAILED: {error!r}")
            if TINY:
                raise
        say(f"  took {time.monotonic() - begin:.0f} s")
    print_table()
    if failed:
        say(f"failed: {' '.join(failed)}")
    with open("results.json", "w", encoding="utf-8") as file:
        json.dump({"quick": QUICK, "tiny": TINY, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                   "server": admin("postgres", "SHOW server_version")[0][0], "load": load()[0], "cpus": load()[1],
                   "seconds": time.monotonic() - started, "failed": failed, "results": results}, file, indent=1)
    return 1 if failed else 0


current = ""
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
