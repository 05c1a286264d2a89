-- ql_schedule_once: one bounded cycle; its summary, its arguments, where it may be called.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL

-- Nothing to do.
CALL qinglong.ql_schedule_once('r1');
-- A new trigger: initialize. The claim's clock is in the summary.
SELECT t.publish('new', '0 0 29 2 *', 'skip');
SELECT t.now_ms() AS before \gset
CALL qinglong.ql_schedule_once('r1') \gset
SELECT (:'summary'::qinglong.cycle_summary).first_claim_acquired_at_ms BETWEEN :before AND t.now_ms() AS first,
       (:'summary'::qinglong.cycle_summary).last_claim_acquired_at_ms >= (:'summary'::qinglong.cycle_summary).first_claim_acquired_at_ms AS last,
       (to_jsonb(:'summary'::qinglong.cycle_summary) - '{first_claim_acquired_at_ms,last_claim_acquired_at_ms}'::text[]) AS rest;
SELECT trigger_id, cursor, claimed, cv, sv, admitted, skipped FROM t.rows;
-- Two replicas, the second finds nothing: one claim in total (D11.5).
SELECT t.publish('new2', '0 0 29 2 *', 'skip');
CREATE FUNCTION counts(s text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(s::qinglong.cycle_summary) - '{first_claim_acquired_at_ms,last_claim_acquired_at_ms}'::text[] $$;
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
CALL qinglong.ql_schedule_once('r2') \gset
SELECT counts(:'summary'), :'summary'::qinglong.cycle_summary;

-- Everything at once: admitted, skipped, initialized, quarantined, already admitted (counts as raced).
SELECT t.publish('m-admit', '* * * * *', 'fire_once', 60000), t.publish('m-skip', '0 0 29 2 *', 'skip', 68169600000),
       t.publish('m-init', '0 0 29 2 *', 'fire_once'), t.publish('m-bad', '* * * * *', 'fire_once', 60000), t.publish('m-dup', '* * * * *', 'fire_once', 60000);
SELECT t.damage('trigger_revisions', 'spec_json = ''{}''', 'trigger_id = ''m-bad''');
SELECT t.claim('dup', 'm-dup', 61000);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a;
COMMIT;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE trigger_id = 'm-dup';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT trigger_id, cursor, last, claimed, fault, admitted, skipped > 0 AS skipped, coalesced > 0 AS coalesced FROM t.rows WHERE trigger_id ~ '^m-' ORDER BY 1;
SELECT * FROM t.counts();
-- The skipped: exactly the occurrences since 1972.
SELECT skipped_total = (SELECT count(*) FROM qinglong.ql_occurrences('0 0 29 2 *', 'UTC', '1972-02-28Z', 100) o WHERE o <= now()) AS exact
  FROM qinglong.trigger_schedules WHERE trigger_id = 'm-skip';

-- Budget: max_claims, else the setting; saturated when it is used up.
SELECT t.publish('bud-' || i, '0 0 29 2 *', 'fire_once', 68169600000) FROM generate_series(1, 20) i \g /dev/null
CALL qinglong.ql_schedule_once('r1', max_claims => 2) \gset
SELECT counts(:'summary');
SHOW qinglong_sched.max_claims_per_cycle;
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
CALL qinglong.ql_schedule_once('r1', NULL, 60000, 3) \gset
SELECT counts(:'summary');
SELECT * FROM t.counts();
SELECT count(*) FROM qinglong.runs WHERE trigger_id ~ '^bud';

-- Works whatever the session's defaults are.
SELECT t.publish('iso-' || i, '0 0 29 2 *', 'fire_once', 68169600000) FROM generate_series(1, 5) i \g /dev/null
SET default_transaction_isolation = 'serializable';
CALL qinglong.ql_schedule_once('r1', max_claims => 1) \gset
SELECT counts(:'summary');
SET default_transaction_isolation = 'repeatable read';
CALL qinglong.ql_schedule_once('r1', max_claims => 1) \gset
SELECT counts(:'summary');
RESET default_transaction_isolation;
SET search_path = '';
SET lock_timeout = '10ms';
SET enable_indexscan = off;
SET statement_timeout = '20s';
SET TimeZone = 'Asia/Tokyo';
CALL qinglong.ql_schedule_once('r1', max_claims => 1) \gset
SELECT public.counts(:'summary');
-- and leaves them as they were
SHOW lock_timeout;
SHOW enable_indexscan;
SHOW search_path;
SHOW join_collapse_limit;
SHOW transaction_isolation;
SHOW default_transaction_isolation;
RESET ALL;
SET default_transaction_read_only = on;
\set VERBOSITY sqlstate
CALL qinglong.ql_schedule_once('r1', max_claims => 1);
\set VERBOSITY default
RESET default_transaction_read_only;
CALL qinglong.ql_schedule_once('r1', max_claims => 1) \gset
SELECT counts(:'summary');
SELECT count(*) FROM qinglong.runs WHERE trigger_id ~ '^iso';

-- Where it may not be called: a block, a function, DO that began a block, another procedure in one. Nothing is claimed.
SELECT t.fingerprint() AS before \gset
BEGIN;
CALL qinglong.ql_schedule_once('r1');
ROLLBACK;
BEGIN;
DO $$ DECLARE s qinglong.cycle_summary; BEGIN CALL qinglong.ql_schedule_once('r1', s); END $$;
ROLLBACK;
CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS $$
DECLARE s qinglong.cycle_summary;
BEGIN CALL qinglong.ql_schedule_once('r1', s); END $$;
SELECT in_function();
\set VERBOSITY sqlstate
DO $$ DECLARE s qinglong.cycle_summary; BEGIN CALL qinglong.ql_schedule_once('r1', s); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
BEGIN;
CALL qinglong.ql_schedule_once('r1');
ROLLBACK;
\set VERBOSITY default
SELECT t.fingerprint() = :'before' AS unchanged;
-- A DO or a procedure called in autocommit may.
DO $$ DECLARE s qinglong.cycle_summary; BEGIN CALL qinglong.ql_schedule_once('r1', s, NULL, 1); RAISE NOTICE 'admitted %', s.admitted; CALL qinglong.ql_schedule_once('r1', s, NULL, 1); RAISE NOTICE 'admitted %', s.admitted; END $$;

-- Arguments.
CALL qinglong.ql_schedule_once(NULL);
CALL qinglong.ql_schedule_once('');
CALL qinglong.ql_schedule_once('r1', NULL, 999);
CALL qinglong.ql_schedule_once('r1', NULL, 60001);
CALL qinglong.ql_schedule_once('r1', max_claims => 0);
CALL qinglong.ql_schedule_once('r1', max_claims => 257);
-- What is passed in the summary does not matter.
CALL qinglong.ql_schedule_once('r1', '(1,2,3,4,5,6,7,8,t)');
SELECT qinglong.ql_hold('test');
\set VERBOSITY sqlstate
CALL qinglong.ql_schedule_once('r1');
\set VERBOSITY default
SELECT qinglong.ql_release_hold();
SELECT * FROM qinglong.ql_check() x WHERE x::text !~ 'm-bad';
