-- ql_check(): empty on a healthy database in all its legal states, one row for each thing that is broken.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never
CREATE FUNCTION ms() RETURNS bigint LANGUAGE sql AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
SELECT count(*) FROM qinglong.ql_check();

-- Every minute; its cursor is moved onto a past instant of the schedule, so that an admission follows.
SELECT status FROM qinglong.ql_schedule('minutely', '* * * * *', 'true', misfire_policy => 'fire_once');
SELECT status FROM qinglong.ql_schedule('fresh', '0 3 * * *', 'true', 'Europe/Berlin');
SELECT status FROM qinglong.ql_schedule('off', '0 4 * * *', 'true');
SELECT qinglong.ql_unschedule('off');
SELECT status FROM qinglong.ql_schedule('stale', '0 5 * * *', 'true');
SELECT status FROM qinglong.ql_task_publish('default', 'stale', 'stale',
    (SELECT spec_json FROM qinglong.task_definition_revisions WHERE task_id = 'stale'), 1, description => 'moved on');
SELECT status FROM qinglong.ql_task_publish('default', 'workflow', 'a workflow', '{"schema": "acme/flow@v1", "config": {}}', kind => 'workflow');
SELECT status FROM qinglong.ql_project_put('old');
SELECT status FROM qinglong.ql_schedule('in-old', '0 6 * * *', 'true', project_id => 'old');
SELECT status FROM qinglong.ql_project_put('old', status => 'archived');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200000 WHERE trigger_id = 'minutely';
SELECT trigger_id, project_id, trigger_revision FROM qinglong.ql_claim('r1', max_claims => 16);
SELECT count(*) FROM qinglong.ql_check();
-- That replica stops; its claims expire and another takes over.
UPDATE qinglong.trigger_schedules SET updated_at_ms = ms() - 90000, claim_expires_at_ms = ms() - 1 WHERE claim_token IS NOT NULL;
CALL qinglong.ql_schedule_once('r2') \gset
SELECT trigger_id, next_fire_at_ms > 1704067200000 AS ahead, admitted_total, claim_token FROM qinglong.trigger_schedules ORDER BY 1;
SELECT count(*) FROM qinglong.runs;
SELECT * FROM qinglong.ql_check();

-- Legal states: a cursor in the past that is no occurrence (a mark), a moved one that is; rows in quarantine.
BEGIN;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200123 WHERE trigger_id = 'minutely';
SELECT * FROM qinglong.ql_check();
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444860000 WHERE trigger_id = 'minutely';
SELECT * FROM qinglong.ql_check();
UPDATE qinglong.trigger_schedules SET fault_code = 'spec_damaged', fault_count = 1;
SELECT * FROM qinglong.ql_check();
SELECT qinglong.ql_hold('by hand');
SELECT * FROM qinglong.ql_check();
ROLLBACK;
-- Work that goes on, and whole Runs that an owner removed.
BEGIN;
UPDATE qinglong.runs SET status = 'succeeded', version = 9, event_sequence = 3, finished_at_ms = ms();
UPDATE qinglong.run_attempts SET status = 'succeeded', worker_id = 'w', exit_code = 0;
INSERT INTO qinglong.run_events (id, run_id, sequence, type, dedupe_key, actor_type, attempt_id, payload, created_at_ms)
SELECT gen_random_uuid(), run_id, 3, 'run.succeeded', 'k', 'worker', id, '{}', ms() FROM qinglong.run_attempts;
SELECT * FROM qinglong.ql_check();
ALTER TABLE qinglong.run_events DISABLE TRIGGER immutable_row;
DELETE FROM qinglong.run_events;
DELETE FROM qinglong.run_attempts;
DELETE FROM qinglong.runs;
SELECT * FROM qinglong.ql_check();
ROLLBACK;

-- damage(STATEMENT): applies it as an owner who lifts every guard, shows what the check says, and rolls it back.
CREATE PROCEDURE damage(statement text) LANGUAGE plpgsql AS $$
DECLARE
    line text;
    lines text[] := '{}';
BEGIN
    BEGIN
        EXECUTE statement;
        lines := ARRAY(SELECT concat_ws(' | ', project_id, trigger_id, code,
                              regexp_replace(detail, '[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', 'g')) FROM qinglong.ql_check()
                        ORDER BY code, project_id, trigger_id, detail);
        RAISE EXCEPTION USING ERRCODE = 'R0001';
    EXCEPTION WHEN SQLSTATE 'R0001' THEN
        NULL;
    END;
    FOREACH line IN ARRAY lines LOOP
        RAISE NOTICE '%', line;
    END LOOP;
END
$$;
\set VERBOSITY terse
\set unguard 'ALTER TABLE qinglong.task_definition_revisions DISABLE TRIGGER ALL; ALTER TABLE qinglong.trigger_revisions DISABLE TRIGGER ALL; ALTER TABLE qinglong.task_execution_revisions DISABLE TRIGGER ALL; ALTER TABLE qinglong.run_events DISABLE TRIGGER ALL; ALTER TABLE qinglong.trigger_schedules DISABLE TRIGGER ALL; ALTER TABLE qinglong.triggers DISABLE TRIGGER ALL; '

-- Content and its digests.
CALL damage(:'unguard' || $$UPDATE qinglong.task_definition_revisions SET description = 'changed' WHERE task_id = 'fresh'$$);
CALL damage(:'unguard' || $$UPDATE qinglong.task_definition_revisions SET content_digest = repeat('0', 64) WHERE task_id = 'off'$$);
CALL damage(:'unguard' || $$UPDATE qinglong.trigger_revisions SET enabled = false WHERE trigger_id = 'fresh'$$);
CALL damage(:'unguard' || $$UPDATE qinglong.trigger_revisions SET spec_json = '{"a": [1, null]}' WHERE trigger_id = 'off' AND revision = 1$$);
CALL damage(:'unguard' || $$UPDATE qinglong.task_execution_revisions SET plan_json = plan_json || '{"x": 1}' WHERE task_id = 'fresh'$$);
CALL damage(:'unguard' || $$UPDATE qinglong.task_execution_revisions SET content_digest = repeat('0', 64) WHERE task_id = 'fresh'$$);
CALL damage(:'unguard' || $$DELETE FROM qinglong.task_execution_revisions WHERE task_id = 'fresh'$$);
-- Heads and schedule rows.
CALL damage(:'unguard' || $$UPDATE qinglong.task_definitions SET current_revision = 7 WHERE task_id = 'workflow'$$);
CALL damage(:'unguard' || $$UPDATE qinglong.triggers SET current_revision = 1 WHERE trigger_id = 'off'$$);
CALL damage(:'unguard' || $$DELETE FROM qinglong.trigger_schedules WHERE trigger_id = 'fresh'$$);
CALL damage($$UPDATE qinglong.trigger_schedules SET eligible = true WHERE trigger_id = 'stale'$$);
CALL damage($$UPDATE qinglong.trigger_schedules SET eligible = false WHERE trigger_id = 'fresh'$$);
CALL damage($$ALTER TABLE qinglong.trigger_schedules DROP CONSTRAINT trigger_schedules_claim_shape;
              UPDATE qinglong.trigger_schedules SET claim_owner = 'x' WHERE trigger_id = 'fresh'$$);
CALL damage($$UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800001 WHERE trigger_id = 'minutely'$$);
CALL damage($$UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444801000 WHERE trigger_id = 'minutely'$$);
-- Runs.
CALL damage($$DROP INDEX qinglong.runs_occurrence_key; INSERT INTO qinglong.runs SELECT (r).* FROM (SELECT jsonb_populate_record(r, '{"id": "00000000-0000-7000-8000-000000000001"}') AS r FROM qinglong.runs r) x$$);
CALL damage($$ALTER TABLE qinglong.runs DROP CONSTRAINT runs_scheduled_shape; UPDATE qinglong.runs SET idempotency_key = idempotency_key || '0'$$);
CALL damage($$DELETE FROM qinglong.run_attempts$$);
CALL damage($$UPDATE qinglong.run_attempts SET run_id = gen_random_uuid()$$);
CALL damage(:'unguard' || $$DELETE FROM qinglong.run_events WHERE sequence = 2$$);
CALL damage(:'unguard' || $$UPDATE qinglong.run_events SET dedupe_key = 'cluster-schedule-created:x' WHERE sequence = 1$$);
CALL damage(:'unguard' || $$UPDATE qinglong.run_events SET attempt_id = gen_random_uuid() WHERE sequence = 2$$);
CALL damage($$UPDATE qinglong.runs SET parent_run_id = gen_random_uuid()$$);
CALL damage($$UPDATE qinglong.runs SET retry_of_run_id = gen_random_uuid()$$);
CALL damage($$INSERT INTO qinglong.run_events SELECT gen_random_uuid(), gen_random_uuid(), 1, 'x', NULL, 'system', NULL, NULL, NULL, '{}', 0$$);
CALL damage($$DROP INDEX qinglong.run_events_dedupe_key; INSERT INTO qinglong.run_events SELECT gen_random_uuid(), id, n, 'x', 'same', 'system', NULL, NULL, NULL, '{}', 0 FROM qinglong.runs, generate_series(3, 4) n$$);
-- Several triggers, several rows.
CALL damage(:'unguard' || $$UPDATE qinglong.trigger_revisions SET enabled = NOT enabled$$);

-- A monitor may ask and sees identifiers only, never a command; a runtime role may not.
CREATE ROLE regress_monitor;
CREATE ROLE regress_runtime;
SELECT qinglong.ql_grant('regress_monitor', 'monitor'), qinglong.ql_grant('regress_runtime', 'runtime');
SET ROLE regress_monitor;
SELECT count(*) FROM qinglong.ql_check();
SET ROLE regress_runtime;
SELECT count(*) FROM qinglong.ql_check();
RESET ROLE;
DROP OWNED BY regress_monitor, regress_runtime;
DROP ROLE regress_monitor, regress_runtime;
