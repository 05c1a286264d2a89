-- ql_claim: arguments, eligibility rule by rule, order, effect, the 19 facts.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL

-- Nothing there: no row.
SELECT count(*) FROM qinglong.ql_claim('r1');

-- Arguments, each checked before any table is touched.
SELECT * FROM qinglong.ql_claim(NULL);
SELECT * FROM qinglong.ql_claim('');
SELECT * FROM qinglong.ql_claim('-r1');
SELECT * FROM qinglong.ql_claim('r 1');
SELECT * FROM qinglong.ql_claim('r1é');
SELECT * FROM qinglong.ql_claim(repeat('r', 129));
SELECT * FROM qinglong.ql_claim(E'r1\n');
SELECT count(*) FROM qinglong.ql_claim('A.b_c:d-9');
SELECT count(*) FROM qinglong.ql_claim(repeat('r', 128));
SELECT * FROM qinglong.ql_claim('r1', 999);
SELECT * FROM qinglong.ql_claim('r1', 60001);
SELECT * FROM qinglong.ql_claim('r1', 0);
SELECT * FROM qinglong.ql_claim('r1', -1);
SELECT * FROM qinglong.ql_claim('r1', max_claims => 0);
SELECT * FROM qinglong.ql_claim('r1', max_claims => -5);
SELECT * FROM qinglong.ql_claim('r1', max_claims => 257);
SELECT (SELECT count(*) FROM qinglong.ql_claim('r1', 1000, 256)), (SELECT count(*) FROM qinglong.ql_claim('r1', 60000, NULL));
-- There is no way to pass a time in.
SELECT * FROM qinglong.ql_claim('r1', observed_at_ms => 0);
SELECT pg_get_function_arguments('qinglong.ql_claim'::regproc);
\set VERBOSITY sqlstate
SELECT * FROM qinglong.ql_claim('');
SELECT * FROM qinglong.ql_claim('r1', 999);
SELECT * FROM qinglong.ql_claim('r1', max_claims => 257);
BEGIN; -- no table is touched: a lock on it does not matter
LOCK TABLE qinglong.trigger_schedules IN ACCESS EXCLUSIVE MODE;
SELECT * FROM qinglong.ql_claim('r1', 999);
ROLLBACK;
\set VERBOSITY default

-- A new trigger has no cursor and is due at once. What a claim returns and what it leaves on the row.
SELECT t.publish('a', '30 4 * * MON-FRI', 'fire_once', NULL, 'Europe/Berlin');
CREATE TABLE took AS SELECT t.now_ms() AS before;
INSERT INTO t.claims SELECT 'a', c FROM qinglong.ql_claim('replica-1', 5000, 1, '01234567-89ab-4cde-8f01-23456789abcd') c;
SELECT (c).project_id, (c).trigger_id, (c).trigger_revision, (c).task_id, (c).task_revision, (c).expression, (c).timezone,
       (c).misfire_policy, (c).state_version, (c).next_fire_at_ms, (c).claim_owner, (c).claim_token, (c).claim_version,
       (c).claim_expires_at_ms - (c).claim_acquired_at_ms AS lease, (c).spec
  FROM t.claims;
SELECT (c).trigger_content_digest = r.content_digest AS trigger_digest, (c).trigger_updated_at_ms = r.created_at_ms AS updated,
       (c).task_content_digest = v.content_digest AS task_digest, (c).spec::text = r.spec_json::text AS spec,
       (c).claim_acquired_at_ms BETWEEN took.before AND t.now_ms() AS acquired
  FROM t.claims, took, qinglong.trigger_revisions r, qinglong.task_definition_revisions v;
SELECT s.claim_owner = (c).claim_owner AND s.claim_token = (c).claim_token AND s.claim_version = (c).claim_version
       AND s.claim_expires_at_ms = (c).claim_expires_at_ms AND s.state_version = (c).state_version
       AND s.updated_at_ms = (c).claim_acquired_at_ms AND s.next_fire_at_ms IS NULL AS row_shows_it
  FROM qinglong.trigger_schedules s, t.claims;
-- All 19 facts survive the way through a driver as text.
SELECT count(*) FROM pg_attribute WHERE attrelid = 'qinglong.schedule_claim'::regclass AND attnum > 0;
SELECT c::text::qinglong.schedule_claim IS NOT DISTINCT FROM c AS round_trip, (c::text::qinglong.schedule_claim)::text = c::text AS same_text FROM t.claims;
-- While it lives nobody else gets it.
SELECT count(*) FROM qinglong.ql_claim('replica-2', max_claims => 256);
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000;
-- The helper of these tests claims the same way.
SELECT t.publish('b');
INSERT INTO t.claims SELECT 'real', c FROM qinglong.ql_claim('hand', 60000) c;
SELECT t.claim('hand', 'b', (c).claim_acquired_at_ms, (c).claim_expires_at_ms) FROM t.claims WHERE name = 'real';
SELECT (to_jsonb(h.c) - '{claim_token,claim_version,state_version}'::text[]) = (to_jsonb(r.c) - '{claim_token,claim_version,state_version}'::text[]) AS same,
       (h.c).claim_version - (r.c).claim_version AS cv, (h.c).state_version - (r.c).state_version AS sv
  FROM t.claims h, t.claims r WHERE h.name = 'hand' AND r.name = 'real';

ALTER TABLE qinglong.triggers SET (autovacuum_enabled = off);
ALTER TABLE qinglong.trigger_revisions SET (autovacuum_enabled = off);
ALTER TABLE qinglong.task_definitions SET (autovacuum_enabled = off);
-- The server makes a version 4 token where none is given; a batch shares it, the lease is the server's setting.
SELECT t.publish('many-' || lpad(i::text, 3, '0')) FROM generate_series(1, 260) i \g /dev/null
-- Without statistics it takes milliseconds all the same.
SET statement_timeout = '5s';
CREATE TABLE batch AS SELECT * FROM qinglong.ql_claim('r3', max_claims => 256);
RESET statement_timeout;
SELECT count(*), count(DISTINCT claim_token), bool_and(claim_token::text ~ '^.{14}4.{4}[89ab]') AS v4,
       count(DISTINCT claim_acquired_at_ms) AS observations, min(claim_expires_at_ms - claim_acquired_at_ms) AS lease,
       min(trigger_id), max(trigger_id) FROM batch;
SELECT count(*) FROM qinglong.ql_claim('r3', max_claims => 256);

-- Order: cursor with NULL first, project, trigger, all by bytes.
SELECT qinglong.ql_project_put(p) IS NOT NULL FROM unnest('{p1,P2}'::text[]) p;
SELECT t.publish('o-2', cursor_ms => 60000), t.publish('o-1', cursor_ms => 60000), t.publish('O-3', cursor_ms => 60000),
       t.publish('o-1', cursor_ms => 60000, project => 'p1'), t.publish('o-9', cursor_ms => 60000, project => 'P2'),
       t.publish('o-z'), t.publish('o-y', project => 'p1'), t.publish('o-0', cursor_ms => 120000), t.publish('o-a', cursor_ms => 0);
SELECT project_id, trigger_id, next_fire_at_ms FROM qinglong.ql_claim('r4', max_claims => 4);
SELECT project_id, trigger_id, next_fire_at_ms FROM qinglong.ql_claim('r4', max_claims => 256);

-- Eligibility, one rule at a time: the others hold. Each change is undone before the next.
SELECT t.publish('e', cursor_ms => 60000);
CREATE FUNCTION claimable() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    found boolean;
BEGIN
    SELECT EXISTS (SELECT FROM qinglong.ql_claim('probe', max_claims => 256) WHERE trigger_id = 'e') INTO found;
    RAISE EXCEPTION USING ERRCODE = 'QLTST', MESSAGE = found::text; -- undoes the claim
EXCEPTION WHEN SQLSTATE 'QLTST' THEN
    RETURN SQLERRM::boolean;
END $$;
SELECT claimable();
-- due
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = NULL WHERE trigger_id = 'e';
SELECT claimable() AS no_cursor;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = t.now_ms() + 60000 WHERE trigger_id = 'e';
SELECT claimable() AS not_due;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = t.now_ms() WHERE trigger_id = 'e';
SELECT claimable() AS just_due;
-- claims: alive, expired, expired long ago
UPDATE qinglong.trigger_schedules SET claim_owner = 'x', claim_token = gen_random_uuid(), claim_version = 7, claim_expires_at_ms = t.now_ms() + 60000 WHERE trigger_id = 'e';
SELECT claimable() AS claimed;
UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = t.now_ms() WHERE trigger_id = 'e';
SELECT claimable() AS expired_just_now;
UPDATE qinglong.trigger_schedules SET claim_expires_at_ms = 1 WHERE trigger_id = 'e';
SELECT claimable() AS expired;
UPDATE qinglong.trigger_schedules SET claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL WHERE trigger_id = 'e';
-- clock floor
UPDATE qinglong.trigger_schedules SET updated_at_ms = t.now_ms() + 60000 WHERE trigger_id = 'e';
SELECT claimable() AS floor_ahead;
UPDATE qinglong.trigger_schedules SET updated_at_ms = t.now_ms() WHERE trigger_id = 'e';
SELECT claimable() AS floor_reached;
-- faults
UPDATE qinglong.trigger_schedules SET fault_code = 'error_x', fault_count = 1, retry_at_ms = t.now_ms() + 60000 WHERE trigger_id = 'e';
SELECT claimable() AS backing_off;
UPDATE qinglong.trigger_schedules SET retry_at_ms = t.now_ms() WHERE trigger_id = 'e';
SELECT claimable() AS retry_due;
UPDATE qinglong.trigger_schedules SET retry_at_ms = NULL WHERE trigger_id = 'e';
SELECT claimable() AS quarantined;
UPDATE qinglong.trigger_schedules SET fault_code = NULL, fault_count = 0 WHERE trigger_id = 'e';
SELECT claimable();
-- the joins are the authority, whatever the hint says
BEGIN;
SELECT (qinglong.ql_project_put('default', status => 'archived')).status;
SELECT claimable() AS archived;
UPDATE qinglong.trigger_schedules SET eligible = true WHERE trigger_id = 'e';
SELECT claimable() AS archived_with_wrong_hint;
ROLLBACK;
BEGIN;
SELECT status, revision FROM qinglong.ql_task_publish('default', 'e', 'e', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "false"}}}', 1);
SELECT claimable() AS stale_pin;
UPDATE qinglong.trigger_schedules SET eligible = true WHERE trigger_id = 'e';
SELECT claimable() AS stale_pin_with_wrong_hint;
ROLLBACK;
BEGIN;
SELECT qinglong.ql_unschedule('e');
SELECT claimable() AS disabled;
UPDATE qinglong.trigger_schedules SET eligible = true WHERE trigger_id = 'e';
SELECT claimable() AS disabled_with_wrong_hint;
ROLLBACK;
BEGIN; -- head moved without its row
INSERT INTO qinglong.trigger_revisions SELECT project_id, trigger_id, 2, gen_random_uuid(), task_id, task_revision, task_content_digest, spec_json, enabled, content_digest, created_at_ms
  FROM qinglong.trigger_revisions WHERE trigger_id = 'e';
UPDATE qinglong.triggers SET current_revision = 2 WHERE trigger_id = 'e';
SELECT claimable() AS old_revision;
UPDATE qinglong.trigger_schedules SET eligible = true WHERE trigger_id = 'e';
SELECT claimable() AS old_revision_with_wrong_hint;
ROLLBACK;
BEGIN; -- a pin whose digest is not the task revision's
SELECT t.damage('trigger_revisions', $$task_content_digest = repeat('0', 64)$$, $$trigger_id = 'e'$$);
SELECT claimable() AS wrong_pin_digest;
ROLLBACK;
BEGIN; -- such a row, first in line, costs nobody else its place
SELECT t.publish('f');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = CASE trigger_id WHEN 'e' THEN 60000 WHEN 'f' THEN 120000 ELSE 4102444800000 END;
SELECT t.damage('trigger_revisions', $$task_content_digest = repeat('0', 64)$$, $$trigger_id = 'e'$$);
SELECT trigger_id FROM qinglong.ql_claim('r5');
ROLLBACK;
SELECT claimable();

-- D11.5: takeover of an expired claim is an ordinary claim with the next version; the old one is dead.
UPDATE qinglong.trigger_schedules SET claim_owner = 'gone', claim_token = gen_random_uuid(), claim_version = 7, updated_at_ms = 0, claim_expires_at_ms = 1 WHERE trigger_id = 'e';
SELECT claim_owner, claim_version FROM qinglong.ql_claim('heir', max_claims => 256) WHERE trigger_id = 'e';

-- A row whose stored spec cannot be read is handed out all the same; its readings are NULL.
SELECT t.publish('d1'), t.publish('d2'), t.publish('d3');
SELECT t.damage('trigger_revisions', $$spec_json = '{}'$$, $$trigger_id = 'd1'$$);
SELECT t.damage('trigger_revisions', $$spec_json = '{"schema": 1, "config": [1, {"expression": "* * * * *"}]}'$$, $$trigger_id = 'd2'$$);
SELECT t.damage('trigger_revisions', $$spec_json = '{"schema": "qinglong/cron@v1", "config": {"expression": 5, "timezone": "Mars/X"}}'$$, $$trigger_id = 'd3'$$);
SELECT trigger_id, expression, timezone, misfire_policy, spec FROM qinglong.ql_claim('r5', max_claims => 256) WHERE trigger_id ~ '^d';

-- Expiry to the millisecond: asked when the clock shows the expiry, the claim is expired; before, it is not.
CREATE PROCEDURE takeovers(tries int, INOUT at_expiry int, INOUT too_early int, INOUT exactly int)
LANGUAGE plpgsql AS $$
DECLARE
    expiry bigint;
    got bigint;
BEGIN
    FOR i IN 1..tries LOOP
        got := NULL;
        expiry := t.now_ms() + 3;
        UPDATE qinglong.trigger_schedules SET claim_owner = 'x', claim_token = gen_random_uuid(), claim_version = claim_version + 1,
               updated_at_ms = 0, claim_expires_at_ms = expiry WHERE trigger_id = 'e';
        COMMIT;
        WHILE t.now_ms() < expiry LOOP -- every answer before the expiry is "no"
            SELECT claim_acquired_at_ms INTO got FROM qinglong.ql_claim('y', max_claims => 256) WHERE trigger_id = 'e';
            EXIT WHEN FOUND;
        END LOOP;
        IF got IS NULL THEN
            SELECT claim_acquired_at_ms INTO got FROM qinglong.ql_claim('y', max_claims => 256) WHERE trigger_id = 'e';
        END IF;
        COMMIT;
        at_expiry := at_expiry + (got IS NOT NULL)::int;
        too_early := too_early + (got < expiry)::int;
        exactly := exactly + (got = expiry)::int;
    END LOOP;
END $$;
CREATE TABLE outcome (at_expiry int, too_early int, exactly int);
DO $$ DECLARE a int := 0; b int := 0; c int := 0; BEGIN CALL takeovers(100, a, b, c); INSERT INTO outcome VALUES (a, b, c); END $$;
SELECT at_expiry, too_early, exactly > 0 AS some_in_that_millisecond FROM outcome;

-- Held: 55000, nothing claimed.
SELECT qinglong.ql_hold('test');
\set VERBOSITY sqlstate
SELECT * FROM qinglong.ql_claim('r6');
\set VERBOSITY default
SELECT qinglong.ql_release_hold();

-- At a higher level it works too, and a claim rolled back never was.
UPDATE qinglong.trigger_schedules SET claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL WHERE trigger_id = 'e';
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM qinglong.ql_claim('r7', max_claims => 256) WHERE trigger_id = 'e';
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM qinglong.ql_claim('r7', max_claims => 256) WHERE trigger_id = 'e';
COMMIT;
BEGIN READ ONLY;
\set VERBOSITY sqlstate
SELECT * FROM qinglong.ql_claim('r7');
ROLLBACK;
