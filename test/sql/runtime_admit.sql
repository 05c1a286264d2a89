-- ql_admit and ql_admit_batch: what they write, every outcome, every refusal.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL
\set serializable 'BEGIN ISOLATION LEVEL SERIALIZABLE;'

-- D11.5, D11.1: an admission. A trigger id of 128 bytes with colons in it, a cursor at 60 s, a claim at 61 s.
SELECT 'nightly:' || repeat('x', 120) AS long \gset
SELECT t.publish(:'long', '* * * * *', 'fire_once', 60000);

SELECT t.claim('a', :'long', 61000);
CREATE TABLE took AS SELECT t.now_ms() AS before;
:serializable
CREATE TABLE answer AS SELECT a.* FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'a';
COMMIT;
SELECT project_id, trigger_id = :'long' AS trigger, status, disposition, scheduled_for_ms, next_fire_at_ms, run_id IS NOT NULL AS run,
       attempt_id IS NOT NULL AS attempt, sqlstate, message FROM answer;
-- D7.5: the Run. What is NULL stays NULL.
\x on
SELECT r.id = a.run_id AS id, r.project_id, r.task_id = :'long' AS task_id, r.task_revision = 'qltd:v1:1:' || (c.c).task_content_digest AS task_revision,
       r.task_snapshot_ref = r.task_revision AS snapshot, r.task_name = :'long' AS name, r.trigger_id = :'long' AS trigger_id, r.triggered_by = r.trigger_id AS triggered_by,
       r.trigger_type, r.execution_origin, r.execution_owner, r.scheduled_for_ms, r.status, r.version, r.event_sequence, r.priority,
       r.idempotency_key = 'ql3:cron:v1:' || :'long' || ':1:60000' AS key, r.queued_at_ms = r.created_at_ms AS queued_when_created,
       r.created_at_ms BETWEEN took.before AND t.now_ms() AS created_now, substr(r.id::text, 15, 1) AS uuid_version,
       ('x' || left(replace(r.id::text, '-', ''), 12))::bit(48)::bigint BETWEEN took.before AND t.now_ms() AS time_ordered,
       num_nonnulls(legacy_cron_id, parent_run_id, retry_of_run_id, request_id, input_ref, output_ref, started_at_ms, finished_at_ms,
                    cancel_requested_at_ms, cancel_reason, error_code, error_summary) AS others
  FROM qinglong.runs r, answer a, t.claims c, took;
-- D7.6: the Attempt.
SELECT t.id = a.attempt_id AS id, t.run_id = a.run_id AS run_id, t.attempt, t.status, t.executor_type, t.callback_sequence,
       t.created_at_ms = r.created_at_ms AS created, substr(t.id::text, 15, 1) AS uuid_version,
       num_nonnulls(step_run_id, worker_id, worker_session_id, worker_generation, executor_handle, pid, log_artifact_id, lease_token,
                    lease_token_digest, lease_generation, lease_version, lease_expires_at_ms, offer_id, deadline_at_ms,
                    callback_token_hash, t.started_at_ms, t.finished_at_ms, exit_code, t.error_code, t.error_summary) AS others
  FROM qinglong.run_attempts t, qinglong.runs r, answer a;
-- D7.7, D3.3: the two Events.
SELECT e.run_id = a.run_id AS run_id, e.sequence, e.type, e.dedupe_key = CASE e.sequence WHEN 1 THEN 'cluster-schedule-created:' ELSE 'cluster-schedule-queued:' END || r.idempotency_key AS dedupe,
       e.actor_type, e.actor_id, e.attempt_id = a.attempt_id AS attempt, e.step_run_id, e.created_at_ms = r.created_at_ms AS created, substr(e.id::text, 15, 1) AS uuid_version,
       e.payload - '{execution_revision_digest,trigger_content_digest}'::text[] AS payload,
       e.payload ->> 'execution_revision_digest' = x.content_digest AS execution, e.payload ->> 'trigger_content_digest' = (c.c).trigger_content_digest AS trigger
  FROM qinglong.run_events e, qinglong.runs r, answer a, t.claims c, qinglong.task_execution_revisions x
 WHERE x.task_id = :'long' ORDER BY e.sequence;
-- D7.8: the cursor moves on, beyond the observation; the claim is clear; claim_version stays, state_version counts.
SELECT s.next_fire_at_ms, s.last_scheduled_at_ms, s.state_version - (c.c).state_version AS sv, s.claim_version - (c.c).claim_version AS cv,
       num_nonnulls(s.claim_owner, s.claim_token, s.claim_expires_at_ms) AS claim, s.updated_at_ms = r.created_at_ms AS updated,
       s.admitted_total, s.skipped_total, s.coalesced_total, s.fault_code, s.fault_count
  FROM qinglong.trigger_schedules s, t.claims c, qinglong.runs r WHERE s.trigger_id = :'long';
\x off
SELECT t.consistent();
-- No message and no column of the scheduler shows the command.
SELECT count(*) FROM qinglong.run_events WHERE payload::text ~ 'secret-argument';

-- The same claim again: raced, and no row differs.
SELECT t.fingerprint() AS before \gset
:serializable
SELECT a.status, a.disposition, a.run_id FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'a';
COMMIT;
SELECT t.fingerprint() = :'before' AS unchanged;

-- D11.1: skip (acquired 900 s) and initialize write no Run and no identity; both keep last_scheduled_at_ms.
SELECT t.publish('s', '* * * * *', 'skip', 60000), t.publish('i', '0 0 1 1 *', 'skip', NULL);
SELECT t.born('i', 500);
UPDATE qinglong.trigger_schedules SET last_scheduled_at_ms = 77 WHERE trigger_id IN ('s', 'i');
SELECT t.claim('s', 's', 900000), t.claim('i', 'i', 900);
:serializable
SELECT name, a.* FROM t.claims, qinglong.ql_admit(c) a WHERE name IN ('s', 'i') ORDER BY name;
COMMIT;
SELECT trigger_id, cursor, last, claimed, admitted, skipped, coalesced FROM t.rows WHERE trigger_id IN ('s', 'i') ORDER BY 1;
SELECT t.consistent();

-- A decision that is given must be the one that follows.
SELECT t.publish('d', '* * * * *', 'fire_once', 60000);
SELECT t.claim('d', 'd', 630000);
CREATE FUNCTION admit_with(name text, decision qinglong.schedule_decision) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT a.status FROM t.claims c, qinglong.ql_admit(c.c, decision) a WHERE c.name = admit_with.name);
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT t.fingerprint() AS before \gset
:serializable
SELECT x, admit_with('d', x::qinglong.schedule_decision)
  FROM unnest('{"(admit,630000,660000,120000)", "(admit,630000,720000,60000)", "(admit,630001,660000,60000)", "(admit,630000,660000,)",
                "(skip,630000,660000,)", "(skip,630000,660000,60000)", "(initialize,630000,660000,)", "(maybe,630000,660000,60000)",
                "(,630000,660000,60000)", "(admit,,660000,60000)", "(ADMIT,630000,660000,60000)"}'::text[]) x;
SELECT qinglong.ql_admit(c, '(admit,630000,660000,120000)') FROM t.claims WHERE name = 'd';
ROLLBACK;
SELECT t.fingerprint() = :'before' AS unchanged;
:serializable
SELECT a.status, a.disposition FROM t.claims, qinglong.ql_admit(c, qinglong.ql_decide(c)) a WHERE name = 'd';
COMMIT;
-- A wrong decision for a claim that is stale anyway is refused too: it is judged before any row is looked at.
:serializable
SELECT admit_with('d', '(skip,630000,660000,)'), admit_with('d', '(admit,630000,660000,60000)');
COMMIT;
-- An all-NULL decision is not "no decision".
:serializable
SELECT admit_with('d', ROW(NULL, NULL, NULL, NULL)::qinglong.schedule_decision), admit_with('d', NULL);
COMMIT;

-- Isolation: 25001 outside SERIALIZABLE, whatever the claims.
BEGIN; SELECT * FROM qinglong.ql_admit((SELECT c FROM t.claims WHERE name = 'd')); ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM qinglong.ql_admit_batch('{}'); ROLLBACK;
\set VERBOSITY sqlstate
SELECT * FROM qinglong.ql_admit((SELECT c FROM t.claims WHERE name = 'd'));
SELECT * FROM qinglong.ql_admit_batch('{}');
SELECT * FROM qinglong.ql_admit(NULL);
\set VERBOSITY default

-- A claim of the same transaction is refused, in a savepoint too, and after other changes.
SELECT t.publish('u', '* * * * *', 'fire_once', 60000);
:serializable
SELECT a.status FROM qinglong.ql_claim('same', max_claims => 256) c, qinglong.ql_admit(c) a WHERE c.trigger_id = 'u';
ROLLBACK;
:serializable
INSERT INTO t.claims SELECT 'u', c FROM qinglong.ql_claim('same', max_claims => 256) c WHERE c.trigger_id = 'u' AND false;
SAVEPOINT one;
SELECT t.claim('u', 'u', 61000);
SAVEPOINT two;
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'u';
ROLLBACK TO two;
RELEASE SAVEPOINT one;
SAVEPOINT three;
SELECT trigger_id, status, sqlstate, message FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims WHERE name = 'u'));
COMMIT;
SELECT trigger_id, claimed FROM t.rows WHERE trigger_id = 'u';
:serializable
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'u';
-- its effects are there; the same claim is no longer one of this transaction but stale
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'u';
COMMIT;

-- The batch: input order, duplicates, NULL, limits, each by itself.
SELECT t.publish('b' || i, '* * * * *', 'fire_once', 60000) FROM generate_series(1, 5) i \g /dev/null
SELECT bool_and(t.claim('b' || i, 'b' || i, 61000)) FROM generate_series(1, 5) i;
:serializable
SELECT ord, trigger_id, status, disposition, scheduled_for_ms, next_fire_at_ms, run_id IS NOT NULL AS run
  FROM ROWS FROM (qinglong.ql_admit_batch((SELECT array_agg(c ORDER BY n) FROM t.claims JOIN unnest('{b4,b2,b4,d,b5,b1,b4}'::text[]) WITH ORDINALITY AS w (name, n) USING (name)))) WITH ORDINALITY
       AS a (project_id, trigger_id, status, disposition, scheduled_for_ms, next_fire_at_ms, run_id, attempt_id, sqlstate, message, ord) ORDER BY ord;
COMMIT;
SELECT trigger_id, count(*) FROM qinglong.runs WHERE trigger_id ~ '^b' GROUP BY 1 ORDER BY 1;
:serializable
SELECT count(*) FROM qinglong.ql_admit_batch('{}');
SELECT count(*) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims, generate_series(1, 256) WHERE name = 'd'));
SAVEPOINT s;
SELECT * FROM qinglong.ql_admit_batch(NULL);
ROLLBACK TO s;
SELECT * FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims, generate_series(1, 257) WHERE name = 'd'));
ROLLBACK TO s;
SELECT * FROM qinglong.ql_admit_batch((SELECT array_agg(c) || NULL::qinglong.schedule_claim FROM t.claims WHERE name = 'b3'));
ROLLBACK TO s;
-- a claim that cannot be read fails by itself
SELECT project_id, trigger_id, status, sqlstate, message
  FROM qinglong.ql_admit_batch((SELECT ARRAY[ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::qinglong.schedule_claim,
                                             c, jsonb_populate_record(c, '{"next_fire_at_ms": -1}')] FROM t.claims WHERE name = 'b3'));
ROLLBACK TO s;
SELECT status FROM qinglong.ql_admit_batch((SELECT ARRAY[[c], [c]] FROM t.claims WHERE name = 'b3')); -- any shape of array
COMMIT;
SELECT t.consistent();

-- The clock behind the claim: QL003, nothing written, the claim stays.
SELECT t.publish('f', '* * * * *', 'fire_once', 60000);
SELECT t.claim('f', 'f', t.now_ms() + 3600000, t.now_ms() + 3660000);
SELECT t.fingerprint() AS before \gset
:serializable
\set VERBOSITY sqlstate
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'f';
ROLLBACK;
\set VERBOSITY default
:serializable
SELECT status, sqlstate, message FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims WHERE name = 'f'));
COMMIT;
SELECT t.fingerprint() = :'before' AS unchanged;

-- already_admitted: a Run of that trigger for that instant, of another revision, with its ids.
SELECT t.publish('r', '* * * * *', 'fire_once', 60000);
SELECT t.claim('r', 'r', 61000);
:serializable
CREATE TABLE first_run AS SELECT a.* FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'r';
COMMIT;
SELECT status FROM first_run;
SELECT qinglong.ql_schedule('r', '* * * * *', 'true', 'UTC', 'skip') IS NOT NULL;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE trigger_id = 'r';
SELECT t.claim('r', 'r', 61000);
:serializable
SELECT a.status, a.disposition, a.scheduled_for_ms, a.next_fire_at_ms, a.run_id = f.run_id AS run, a.attempt_id = f.attempt_id AS attempt
  FROM t.claims, first_run f, qinglong.ql_admit(c) a WHERE name = 'r';
COMMIT;
SELECT cursor, last, claimed, admitted, skipped, coalesced FROM t.rows WHERE trigger_id = 'r';
SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'r';
-- a Run that has lost its Attempt is still the Run
DELETE FROM qinglong.run_attempts WHERE run_id = (SELECT run_id FROM first_run);
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE trigger_id = 'r';
SELECT t.claim('r', 'r', 61000);
:serializable
SELECT a.status, a.run_id = f.run_id AS run, a.attempt_id FROM t.claims, first_run f, qinglong.ql_admit(c) a WHERE name = 'r';
COMMIT;
-- Two that already exist and one that does not, in one batch.
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE trigger_id IN ('b1', 'b3');
SELECT t.publish('b2-new', '* * * * *', 'fire_once', 60000);
SELECT t.claim(name, name, 630000) FROM unnest('{b1,b2-new,b3}'::text[]) name;
DELETE FROM qinglong.run_attempts a USING qinglong.runs r WHERE r.id = a.run_id AND r.trigger_id = 'r';
:serializable
SELECT trigger_id, status FROM qinglong.ql_admit_batch((SELECT array_agg(c ORDER BY name) FROM t.claims WHERE name IN ('b1', 'b2-new', 'b3')));
COMMIT;
SELECT trigger_id, cursor, admitted, coalesced FROM t.rows WHERE trigger_id IN ('b1', 'b2-new', 'b3') ORDER BY 1;

-- Odd names and a large spec go through the text form of a claim unharmed.
SELECT E'a"b\\c,(d) \u00e9''{}' AS odd, repeat('1,', 62) || '1' AS field \gset
SELECT t.publish(:'odd', concat_ws(' ', :'field', :'field', :'field', :'field', :'field', :'field'), 'fire_once', 60000);
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 3661000 WHERE trigger_id = :'odd';
SELECT t.claim('odd', :'odd', 3662000);
:serializable
SELECT a.trigger_id, a.status, a.scheduled_for_ms FROM t.claims, qinglong.ql_admit((c::text)::qinglong.schedule_claim) a WHERE name = 'odd';
COMMIT;
SELECT r.idempotency_key, octet_length(v.spec_json::text) > 768 AS large FROM qinglong.runs r JOIN qinglong.trigger_revisions v USING (project_id, trigger_id) WHERE trigger_id = :'odd';

-- quarantined: each kind of damage, with its reason; nothing else is written; republication heals.
CREATE TABLE damages (id text PRIMARY KEY, expression text, damage text);
INSERT INTO damages VALUES ('q-empty-spec', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = ''{}''', 'trigger_id = ''q-empty-spec''')$$),
    ('q-expression', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,expression}'', ''"61 * * * *"'')', 'trigger_id = ''q-expression''')$$),
    ('q-policy', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,misfirePolicy}'', ''"never"'')', 'trigger_id = ''q-policy''')$$),
    ('q-zone', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,timezone}'', ''"Mars/Olympus"'')', 'trigger_id = ''q-zone''')$$),
    ('q-never', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,expression}'', ''"0 0 30 2 *"'')', 'trigger_id = ''q-never''')$$),
    ('q-changed-spec', '* * * * *', $$SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,expression}'', ''"*/2 * * * *"'')', 'trigger_id = ''q-changed-spec''')$$),
    ('q-trigger-digest', '* * * * *', $$SELECT t.damage('trigger_revisions', 'content_digest = repeat(''0'', 64)', 'trigger_id = ''q-trigger-digest''')$$),
    ('q-plan', '* * * * *', $$SELECT t.damage('task_execution_revisions', 'plan_json = plan_json || ''{"timeoutMs": 1}''', 'task_id = ''q-plan''')$$),
    ('q-execution-digest', '* * * * *', $$SELECT t.damage('task_execution_revisions', 'content_digest = repeat(''0'', 64)', 'task_id = ''q-execution-digest''')$$),
    ('q-no-execution', '* * * * *', $$ALTER TABLE qinglong.task_execution_revisions DISABLE TRIGGER immutable_row; DELETE FROM qinglong.task_execution_revisions WHERE task_id = 'q-no-execution';
      ALTER TABLE qinglong.task_execution_revisions ENABLE ALWAYS TRIGGER immutable_row$$);
SELECT t.publish(id, expression, 'fire_once', 120000) FROM damages \g /dev/null
UPDATE qinglong.trigger_schedules SET last_scheduled_at_ms = 60000, skipped_total = 5 WHERE trigger_id ~ '^q-';
DO $$ DECLARE d damages; BEGIN FOR d IN SELECT * FROM damages LOOP EXECUTE d.damage; END LOOP; END $$;
SELECT bool_and(t.claim(id, id, 130000)) FROM damages;
SELECT count(*) AS runs_before FROM qinglong.runs \gset
:serializable
SELECT trigger_id, status, disposition, run_id, sqlstate FROM qinglong.ql_admit_batch((SELECT array_agg(c ORDER BY name) FROM t.claims WHERE name ~ '^q-'));
COMMIT;
SELECT trigger_id, cursor, last, claimed, cv, sv, fault, faults, retry, admitted, skipped, coalesced FROM t.rows WHERE trigger_id ~ '^q-' ORDER BY 1;
SELECT count(*) - :runs_before AS runs FROM qinglong.runs;
SELECT count(*) FROM qinglong.ql_claim('nobody', max_claims => 256) WHERE trigger_id ~ '^q-';
-- A wrong execution digest does not matter to an initialize or a skip, which take no plan.
SELECT t.publish('q-skips', '* * * * *', 'skip', 120000);
SELECT t.damage('task_execution_revisions', $$content_digest = repeat('0', 64)$$, $$task_id = 'q-skips'$$);
SELECT t.claim('q-skips', 'q-skips', 630000);
:serializable
SELECT a.status, a.disposition FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'q-skips';
COMMIT;
-- Republication heals: same name, other command.
SELECT qinglong.ql_schedule('q-zone', '* * * * *', 'echo healed', 'UTC', 'fire_once') IS NOT NULL;
SELECT fault, faults FROM t.rows WHERE trigger_id = 'q-zone';

-- Held: 55000.
SELECT qinglong.ql_hold('test');
\set VERBOSITY sqlstate
:serializable
SELECT * FROM qinglong.ql_admit((SELECT c FROM t.claims WHERE name = 'd'));
ROLLBACK;
