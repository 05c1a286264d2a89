-- D6: the fourteen worked examples, decided and admitted.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set set_grace :abs_srcdir '/lib/grace.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL

CREATE TABLE examples (no int, policy text, updated bigint, cursor bigint, observed bigint, grace int,
                       disposition text, next bigint, scheduled_for bigint, PRIMARY KEY (no, policy));
INSERT INTO examples VALUES
    (1, 'skip', 201, 60000, 61000, 5, 'admit', 120000, 60000),
    (2, 'skip', 201, 60000, 65000, 5, 'admit', 120000, 60000),
    (3, 'skip', 201, 60000, 65001, 5, 'skip', 120000, NULL),
    (4, 'skip', 201, 60000, 630000, 5, 'skip', 660000, NULL),
    (5, 'fire_once', 201, 60000, 630000, 5, 'admit', 660000, 60000),
    (6, 'skip', 201, 60000, 900000, 0, 'skip', 960000, NULL),
    (7, 'skip', 201, 60000, 60000, 0, 'admit', 120000, 60000),
    (10, 'skip', 30000, NULL, 65000, 5, 'admit', 120000, 60000),
    (11, 'skip', 30000, NULL, 65001, 5, 'skip', 120000, NULL);
INSERT INTO examples
SELECT e.no, p.policy, e.updated, e.cursor, e.observed, e.grace, e.disposition, e.next, e.scheduled_for
  FROM (VALUES (8, 30000, NULL::bigint, 40000, 5, 'initialize', 60000, NULL::bigint),
               (9, 30000, NULL, 60000, 5, 'admit', 120000, 60000),
               (12, 60000, NULL, 60001, 5, 'admit', 120000, 60000),
               (13, 60001, NULL, 60002, 5, 'initialize', 120000, NULL),
               (14, 0, NULL, 10, 0, 'initialize', 60000, NULL))
           e (no, updated, cursor, observed, grace, disposition, next, scheduled_for),
       (VALUES ('skip'), ('fire_once')) p (policy);
SELECT count(*), count(DISTINCT no) FROM examples;

-- A claim that no table knows: ql_decide reads none.
CREATE FUNCTION made(policy text, updated bigint, cursor bigint, observed bigint, expression text DEFAULT '* * * * *',
                     zone text DEFAULT 'UTC') RETURNS qinglong.schedule_claim LANGUAGE sql AS $$
    SELECT ROW('p', 'x', 1, repeat('0', 64), updated, 'x', 1, repeat('0', 64), expression, zone, policy, 1, cursor, 'o',
               '00000000-0000-4000-8000-000000000000', 1, observed, observed + 30000,
               jsonb_build_object('schema', 'qinglong/cron@v1', 'config',
                   jsonb_build_object('expression', expression, 'timezone', zone, 'misfirePolicy', policy)))::qinglong.schedule_claim
$$;
CREATE VIEW decided AS
SELECT e.*, d AS decision FROM examples e, LATERAL qinglong.ql_decide(made(policy, updated, cursor, observed)) d;
CREATE VIEW wrong AS
SELECT * FROM decided
 WHERE decision IS DISTINCT FROM ROW(disposition, observed, next, scheduled_for)::qinglong.schedule_decision;

\set grace 5s
\set ECHO none
\i :set_grace
\set ECHO all
SHOW qinglong_sched.misfire_grace;
SELECT count(*) FROM decided WHERE grace = 5;
SELECT * FROM wrong WHERE grace = 5;

-- End to end: a trigger of that moment, its cursor, and a claim acquired at the observation. Cursor and Run follow.
SELECT count(t.publish(no || '-' || policy, '* * * * *', policy, cursor)) FROM examples;
SELECT count(t.born(no || '-' || policy, updated)) FROM examples;
SELECT count(t.claim(no || '-' || policy, no || '-' || policy, observed)) FROM examples WHERE grace = 5;
CREATE VIEW admission_of AS
SELECT e.no, e.policy, a.status, a.disposition, a.scheduled_for_ms, a.next_fire_at_ms, a.run_id IS NOT NULL AS run,
       a.sqlstate, a.message,
       a.disposition = e.disposition AND a.next_fire_at_ms = e.next
       AND a.scheduled_for_ms IS NOT DISTINCT FROM e.scheduled_for AS as_written
  FROM examples e JOIN t.claims c ON c.name = e.no || '-' || e.policy, LATERAL qinglong.ql_admit(c.c) a;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM admission_of ORDER BY no, policy;
COMMIT;
SELECT * FROM t.counts();

\set grace 0
\set ECHO none
\i :set_grace
\set ECHO all
SHOW qinglong_sched.misfire_grace;
SELECT count(*) FROM decided WHERE grace = 0;
SELECT * FROM wrong WHERE grace = 0;
DELETE FROM t.claims;
SELECT count(t.claim(no || '-' || policy, no || '-' || policy, observed)) FROM examples WHERE grace = 0;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM admission_of ORDER BY no, policy;
COMMIT;
SELECT trigger_id, cursor, last, claimed, admitted, skipped, coalesced FROM t.rows
 ORDER BY split_part(trigger_id, '-', 1)::int, trigger_id;
SELECT trigger_id, scheduled_for_ms, idempotency_key FROM qinglong.runs ORDER BY split_part(trigger_id, '-', 1)::int, trigger_id;
SELECT t.consistent();

-- The setting and nothing else is the grace: at 0 every lateness is a misfire.
SELECT (qinglong.ql_decide(made('skip', 0, 60000, 60001))).disposition, (qinglong.ql_decide(made('fire_once', 0, 60000, 60001))).disposition;
\set grace 300s
\set ECHO none
\i :set_grace
\set ECHO all
SELECT (qinglong.ql_decide(made('skip', 0, 60000, 360000))).disposition, (qinglong.ql_decide(made('skip', 0, 60000, 360001))).disposition;
\set grace 30s
\set ECHO none
\i :set_grace
\set ECHO all
ALTER SYSTEM RESET qinglong_sched.misfire_grace;

-- The spec decides, not its readings beside it; in the text form of a claim too.
SELECT d FROM qinglong.ql_decide(made('fire_once', 0, 60000, 61000)::text::qinglong.schedule_claim) d;
SELECT d FROM made('fire_once', 0, 60000, 61000, '0 0 1 1 *', 'America/New_York') c, qinglong.ql_decide(c) d;
-- D11.2: bad shape, bad cron, a schedule that never fires.
SELECT qinglong.ql_decide(NULL);
SELECT qinglong.ql_decide(made('skip', 0, 60000, 61000, '@daily'));
SELECT qinglong.ql_decide(made('skip', 0, 60000, 61000, '61 * * * *'));
SELECT qinglong.ql_decide(made('skip', 0, 60000, 61000, '* * * * *', 'Mars/Olympus'));
SELECT qinglong.ql_decide(made('skip', 0, 60000, 61000, '0 0 30 2 *'));
SELECT qinglong.ql_decide(made('never', 0, 60000, 61000));
\set VERBOSITY sqlstate
SELECT qinglong.ql_decide(made('skip', 0, 60000, 61000, '61 * * * *'));
SELECT qinglong.ql_decide(NULL);
SELECT qinglong.ql_decide(made('skip', -1, 60000, 61000));
SELECT qinglong.ql_decide(made('skip', 0, 60000, NULL));
SELECT qinglong.ql_decide(ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::qinglong.schedule_claim);
\set VERBOSITY default
SELECT qinglong.ql_decide(made('skip', 0, 60000, NULL));
SELECT qinglong.ql_decide(made('skip', 0, 9007199254740992, 61000));
-- Pure: no relation is opened (its plan needs none, and a read-only parallel worker may call it).
SELECT provolatile, proparallel FROM pg_proc WHERE oid = 'qinglong.ql_decide(qinglong.schedule_claim)'::regprocedure;
