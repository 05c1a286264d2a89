-- The view qinglong.schedules: each state, in its precedence, and what it does not show.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never
SELECT attnum, attname, format_type(atttypid, atttypmod) FROM pg_attribute
 WHERE attrelid = 'qinglong.schedules'::regclass AND attnum > 0 ORDER BY 1;

CREATE FUNCTION ms() RETURNS bigint LANGUAGE sql AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
CREATE VIEW shown AS
SELECT trigger_id, state, next_fire_at IS NOT NULL AS next, claimed_by, claim_expires_at IS NOT NULL AS expires, fault
  FROM qinglong.schedules;

SELECT count(*) FROM qinglong.ql_schedule('t', '0 3 * * *', 'echo hidden-command', 'Europe/Berlin', 'fire_once');
SELECT * FROM qinglong.schedules;

-- A cursor in the future, with everything that is shown of a row.
UPDATE qinglong.trigger_schedules
   SET next_fire_at_ms = 4102455600000, last_scheduled_at_ms = 1704074400123, admitted_total = 3, skipped_total = 2,
       coalesced_total = 1;
SET timezone = 'UTC';
\x
SELECT * FROM qinglong.schedules;
\x
-- Due; later than the grace (the server's 30 s): overdue.
SELECT status FROM qinglong.ql_schedule('t', '* * * * * *', 'echo hidden-command', 'Europe/Berlin', 'fire_once');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = ms() - 1000;
SELECT * FROM shown;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = ms() - 31000;
SELECT * FROM shown;
-- Backing off: the fault is shown, and it stays due.
UPDATE qinglong.trigger_schedules SET fault_code = 'run_insert', fault_count = 1, retry_at_ms = ms() + 60000;
SELECT * FROM shown;
-- A live claim; one that has expired leaves it due.
UPDATE qinglong.trigger_schedules SET claim_owner = 'replica-1', claim_token = gen_random_uuid(), claim_version = 1,
       updated_at_ms = ms(), claim_expires_at_ms = ms() + 60000;
SELECT * FROM shown;
UPDATE qinglong.trigger_schedules SET updated_at_ms = ms() - 90000, claim_expires_at_ms = ms() - 1;
SELECT * FROM shown;
-- Its floor lies after the server's clock: nobody can claim it.
UPDATE qinglong.trigger_schedules SET updated_at_ms = ms() + 60000, claim_expires_at_ms = ms() + 90000;
SELECT * FROM shown;
SELECT count(*) FROM qinglong.ql_claim('r');
-- Quarantined.
UPDATE qinglong.trigger_schedules SET fault_code = 'spec_damaged', retry_at_ms = NULL;
SELECT * FROM shown;
-- Stale: its task has moved on.
SELECT status FROM qinglong.ql_task_publish('default', 't', 't',
    (SELECT spec_json FROM qinglong.task_definition_revisions), 1, description => 'another');
SELECT * FROM shown;
-- Disabled.
SELECT qinglong.ql_unschedule('t');
SELECT * FROM shown;
-- Archived.
SELECT status FROM qinglong.ql_project_put('default', status => 'archived');
SELECT * FROM shown;
SELECT status FROM qinglong.ql_project_put('default');
SELECT * FROM shown;

-- A cursor need not be an occurrence: after a reactivation it is that moment, until a scheduler derives it. Shown is what
-- that scheduler will find.
SELECT count(*) FROM qinglong.ql_schedule('yearly', '0 0 1 1 *', 'true', 'UTC', 'fire_once', 'marks');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200000 WHERE project_id = 'marks';
SELECT state, next_fire_at FROM qinglong.schedules WHERE project_id = 'marks';
SELECT status FROM qinglong.ql_project_put('marks', status => 'archived');
SELECT state, next_fire_at FROM qinglong.schedules WHERE project_id = 'marks';
SELECT status FROM qinglong.ql_project_put('marks');
CREATE VIEW marks AS
SELECT state, s.next_fire_at_ms <= ms() AS marked, v.next_fire_at = qinglong.ql_next_occurrence('0 0 1 1 *', 'UTC') AS true_next,
       v.next_fire_at = (SELECT occurrence FROM qinglong.ql_explain_trigger('marks', 'yearly', 1)) AS explained
  FROM qinglong.schedules v JOIN qinglong.trigger_schedules s USING (project_id, trigger_id) WHERE v.project_id = 'marks';
SELECT * FROM marks;
CALL qinglong.ql_schedule_once('r') \gset
SELECT * FROM marks;
SELECT qinglong._instant(qinglong._cursor_occurrence(spec::jsonb, 1704067200001))
  FROM (VALUES ('{"schema": "qinglong/interval@v1", "config": {"everyMs": 60000, "anchorAt": "2000-01-01T00:00:00Z", "misfirePolicy": "skip"}}'),
               ('{"schema": "qinglong/once@v1", "config": {"at": "2024-01-01T00:00:00Z", "misfirePolicy": "skip"}}'),
               ('{}')) v (spec);
DROP VIEW marks;
SELECT status FROM qinglong.ql_project_put('marks', status => 'archived');

-- The truth comes from the heads, whatever the hint on the row says.
SELECT count(*) FROM qinglong.ql_schedule('u', '* * * * *', 'true');
UPDATE qinglong.trigger_schedules SET eligible = NOT eligible;
SELECT trigger_id, state FROM shown ORDER BY 1;
UPDATE qinglong.trigger_schedules SET eligible = NOT eligible;

-- Times beyond the calendar, and a spec whose readings are no texts, do not break the view.
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 9223372036854775807 WHERE trigger_id = 'u';
SELECT extract(year FROM next_fire_at) FROM qinglong.schedules WHERE trigger_id = 'u';
ALTER TABLE qinglong.trigger_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.trigger_revisions SET spec_json = '{"schema": "qinglong/cron@v1", "config": {"expression": {"a": 1}, "timezone": 5}}' WHERE trigger_id = 'u';
SELECT expression, timezone, misfire_policy FROM qinglong.schedules WHERE trigger_id = 'u';
UPDATE qinglong.trigger_revisions SET spec_json = '{"schema": "other/kind@v1", "config": {"expression": "secret"}}' WHERE trigger_id = 'u';
SELECT expression, timezone, misfire_policy FROM qinglong.schedules WHERE trigger_id = 'u';

\set VERBOSITY terse
-- The grace is the server's setting; people who may read the view see no spec and no command.
SHOW qinglong_sched.misfire_grace;
SELECT qinglong._misfire_grace_ms();
CREATE ROLE regress_monitor;
SELECT qinglong.ql_grant('regress_monitor', 'monitor');
SET ROLE regress_monitor;
SELECT count(*) FROM qinglong.schedules;
SELECT count(*) FROM qinglong.schedules s WHERE s::text ~ 'hidden-command';
SELECT spec_json FROM qinglong.trigger_revisions;
SELECT * FROM qinglong.trigger_schedules;
UPDATE qinglong.schedules SET state = 'due';
RESET ROLE;
DROP OWNED BY regress_monitor;
DROP ROLE regress_monitor;
