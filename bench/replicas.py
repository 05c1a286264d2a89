"""Replicas: the programs that schedule over SQL, ours and the naive protocol's. Each runs in a process of its own until
nothing can be claimed any more (or `cycles` are done), and reports what it did."""

import time
import uuid

from psycopg import pq

from server import Failure, Session, cpu_ns

RETRYABLE = ("40001", "40P01", "55P03")


def report(start, **counts):
    return {"start": start, "end": time.monotonic(), **counts}


def warm(session, *arguments):
    """A replica connects once: what the first claim of a session looks at is not part of the rate."""
    session.run("BEGIN")
    session.call("claim", *arguments)
    session.run("ROLLBACK")


def batch_replica(barrier, number, database, max_claims, serializable=True, cycles=None):
    """ql_claim, then ql_admit_batch; repeats an admission that lost a serialization conflict. The claims go back as they
    came, in binary form."""
    session = Session(
        database,
        claim="SELECT array_agg(c) FROM qinglong.ql_claim($1, NULL, $2) AS c",
        admit="SELECT count(*) FILTER (WHERE status = 'admitted') FROM qinglong.ql_admit_batch($1)")
    owner, limit = f"bench:{number}".encode(), str(max_claims).encode()
    admitted = failures = abandoned = 0
    warm(session, owner, b"1")
    barrier.wait()
    start = time.monotonic()
    while cycles is None or cycles > 0:
        claims = session.call("claim", owner, limit, result_format=pq.Format.BINARY).get_value(0, 0)
        if claims is None:
            break
        cycles = cycles and cycles - 1
        for _ in range(5):
            try:
                if serializable:
                    session.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
                result = session.call("admit", claims, values_format=pq.Format.BINARY)
                if serializable:
                    session.run("COMMIT")
                admitted += int(result.get_value(0, 0))
                break
            except Failure as failure:
                session.rollback()
                if failure.sqlstate not in RETRYABLE:
                    raise
                failures += 1
        else:
            abandoned += 1
    return report(start, admitted=admitted, failures=failures, abandoned=abandoned)


def single_replica(barrier, number, database, serializable=True):
    """ql_claim of one row, then ql_admit."""
    session = Session(
        database,
        claim="SELECT c::text FROM qinglong.ql_claim($1) AS c",
        admit="SELECT a.status FROM qinglong.ql_admit($1::qinglong.schedule_claim) AS a")
    owner = f"bench:{number}".encode()
    admitted = failures = abandoned = 0
    warm(session, owner)
    barrier.wait()
    start = time.monotonic()
    while True:
        claims = session.call("claim", owner)
        if claims.ntuples == 0:
            break
        for _ in range(5):
            try:
                if serializable:
                    session.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
                status = session.call("admit", claims.get_value(0, 0)).get_value(0, 0)
                if serializable:
                    session.run("COMMIT")
                admitted += status == b"admitted"
                break
            except Failure as failure:
                session.rollback()
                if failure.sqlstate not in RETRYABLE:
                    raise
                failures += 1
        else:
            abandoned += 1
    return report(start, admitted=admitted, failures=failures, abandoned=abandoned)


# The naive protocol: every join before LIMIT 1, one row a claim, ten round trips an admission.
_JOINS = """
  FROM c, naive.trigger_schedules s
  JOIN naive.triggers t ON t.project_id = s.project_id AND t.trigger_id = s.trigger_id
       AND t.current_revision = s.trigger_revision
  JOIN naive.trigger_revisions r ON r.project_id = t.project_id AND r.trigger_id = t.trigger_id
       AND r.revision = t.current_revision
  JOIN naive.task_definition_revisions v ON v.project_id = r.project_id AND v.task_id = r.task_id
       AND v.revision = r.task_revision AND v.content_digest = r.task_content_digest
  JOIN naive.task_definitions h ON h.project_id = v.project_id AND h.task_id = v.task_id AND h.current_revision = v.revision
  JOIN naive.projects p ON p.id = s.project_id
 WHERE p.status = 'active' AND r.enabled AND r.spec_json ->> 'schema' = 'qinglong/cron@v1'"""
_CLOCK = "WITH c AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)"
_FACTS = """r.content_digest, r.created_at_ms AS published_ms, r.task_id, r.task_revision, r.task_content_digest,
       r.spec_json #>> '{config,expression}' AS expression, r.spec_json #>> '{config,timezone}' AS timezone,
       r.spec_json #>> '{config,misfirePolicy}' AS policy, v.name"""

NAIVE = {
    "claim": _CLOCK + f""", k AS (
SELECT s.project_id, s.trigger_id, c.now, {_FACTS} {_JOINS}
   AND (s.next_fire_at_ms IS NULL OR s.next_fire_at_ms <= c.now)
   AND (s.claim_token IS NULL OR s.claim_expires_at_ms <= c.now)
   AND s.updated_at_ms <= c.now AND s.state_version < 2147483647 AND s.claim_version < 2147483647
 ORDER BY s.next_fire_at_ms NULLS FIRST, s.project_id, s.trigger_id LIMIT 1 FOR UPDATE OF s SKIP LOCKED)
UPDATE naive.trigger_schedules s
   SET claim_owner = $1, claim_token = $2, claim_version = s.claim_version + 1, claim_expires_at_ms = k.now + 30000,
       state_version = s.state_version + 1, updated_at_ms = k.now
  FROM k WHERE s.project_id = k.project_id AND s.trigger_id = k.trigger_id
RETURNING s.project_id, s.trigger_id, s.trigger_revision, s.state_version, s.next_fire_at_ms, s.claim_version,
          s.claim_expires_at_ms, k.now, k.content_digest, k.published_ms, k.task_id, k.task_revision,
          k.task_content_digest, k.expression, k.timezone, k.policy, k.name""",
    "lock": _CLOCK + f"""
SELECT s.trigger_revision, s.state_version, s.next_fire_at_ms, s.claim_version, s.claim_expires_at_ms, s.claim_owner,
       s.claim_token, {_FACTS}, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint {_JOINS}
   AND s.project_id = $1 AND s.trigger_id = $2 FOR UPDATE OF s""",
    "execution": """
SELECT task_revision, source_content_digest, plan_json, content_digest FROM naive.task_execution_revisions
 WHERE project_id = $1 AND task_id = $2 AND source_revision = $3 AND executor_type = 'remote_worker'""",
    "run": """
INSERT INTO naive.runs (id, project_id, task_id, task_revision, task_snapshot_ref, task_name, trigger_id, triggered_by,
                        trigger_type, execution_origin, execution_owner, scheduled_for_ms, status, version,
                        event_sequence, priority, idempotency_key, created_at_ms, queued_at_ms)
VALUES ($1, $2, $3, $4, $4, $5, $6, $6, 'cron', 'scheduled_system', 'runtime', $7, 'queued', 2, 2, 0, $8, $9, $9)""",
    "attempt": """
INSERT INTO naive.run_attempts (id, run_id, attempt, status, executor_type, callback_sequence, created_at_ms)
VALUES ($1, $2, 1, 'claimed', 'remote_worker', 0, $3)""",
    "event": """
INSERT INTO naive.run_events (id, run_id, sequence, type, dedupe_key, actor_type, actor_id, attempt_id, payload, created_at_ms)
VALUES ($1, $2, $3, $4, $5, 'scheduler', 'cluster', $6, $7, $8)""",
    "advance": """
UPDATE naive.trigger_schedules
   SET next_fire_at_ms = $3, last_scheduled_at_ms = $4, state_version = state_version + 1, claim_owner = NULL,
       claim_token = NULL, claim_expires_at_ms = NULL, updated_at_ms = $5
 WHERE project_id = $1 AND trigger_id = $2 AND trigger_revision = $6 AND state_version = $7
   AND next_fire_at_ms IS NOT DISTINCT FROM $4 AND claim_owner = $8 AND claim_token = $9 AND claim_version = $10
   AND claim_expires_at_ms = $11""",
}


def naive_replica(barrier, number, database, cycles=None):
    session = Session(database, **NAIVE)
    owner = f"bench:{number}".encode()
    admitted = failures = raced = abandoned = 0
    barrier.wait()
    start = time.monotonic()
    while cycles is None or cycles > 0:
        cycles = cycles and cycles - 1
        token = str(uuid.uuid4()).encode()
        result = session.call("claim", owner, token)
        if result.ntuples == 0:
            break
        claim = [result.get_value(0, i) for i in range(result.nfields)]
        due = int(claim[4])
        next_ms = str((int(claim[7]) // 86_400_000 + 1) * 86_400_000).encode()
        ids = [str(uuid.uuid4()).encode() for _ in range(4)]
        for _ in range(3):
            sent = False
            try:
                session.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
                if naive_commit(session, claim, owner, token, due, next_ms, ids):
                    sent = True
                    session.run("COMMIT")
                    admitted += 1
                else:
                    session.run("ROLLBACK")
                    raced += 1
                break
            except Failure as failure:
                if failure.sqlstate not in RETRYABLE:
                    raise
                session.rollback()
                failures += 1
                if sent:
                    abandoned += 1
                    break
        else:
            abandoned += 1
    return report(start, admitted=admitted, failures=failures, abandoned=abandoned, raced=raced)


def naive_commit(session, claim, owner, token, due, next_ms, ids):
    (project, trigger, revision, state, cursor, version, expires, _, digest, published, task, task_revision,
     task_digest, expression, timezone, policy, name) = claim
    row = session.call("lock", project, trigger)
    if row.ntuples == 0:
        return False
    facts = [row.get_value(0, i) for i in range(17)]
    now = facts[16]
    if facts[:16] != [revision, state, cursor, version, expires, owner, token, digest, published, task, task_revision,
                      task_digest, expression, timezone, policy, name] or int(now) >= int(expires):
        return False
    execution = session.call("execution", project, task, task_revision)
    reference, execution_digest = execution.get_value(0, 0), execution.get_value(0, 3)
    run, attempt, created, queued = ids
    key = b"ql3:cron:v1:%s:%s:%d" % (trigger, revision, due)
    session.call("run", run, project, task, reference, name, trigger, cursor, key, now)
    session.call("attempt", attempt, run, now)
    session.call("event", created, run, b"1", b"run.created", b"cluster-schedule-created:" + key, None,
                 b'{"status":"created","version":1,"execution_owner":"runtime","executor_type":"remote_worker",'
                 b'"execution_revision_digest":"%s","trigger_revision":%s,"trigger_content_digest":"%s",'
                 b'"scheduled_for_ms":%d}' % (execution_digest, revision, digest, due), now)
    session.call("event", queued, run, b"2", b"run.queued", b"cluster-schedule-queued:" + key, attempt,
                 b'{"from_status":"created","to_status":"queued","version":2}', now)
    moved = session.call("advance", project, trigger, next_ms, cursor, now, revision, state, owner, token, version,
                         expires)
    return moved.command_tuples == 1


def limit_writer(barrier, number, database, schema, sessions, batches, size):
    """Writes its share of the batches by raw statements inside the server."""
    session = Session(database)
    session.run(f"SET search_path = {schema}, pg_catalog")
    session.run("SET enable_seqscan = off")
    pid = session.conn.backend_pid
    before = cpu_ns(pid)
    barrier.wait()
    start = time.monotonic()
    session.run(f"CALL {schema}.write({number}, {sessions}, {batches}, {size})")
    return report(start, cpu_ns=cpu_ns(pid) - before)
