CREATE EXTENSION qinglong_sched;
CREATE FUNCTION pg_temp.refused(command text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE command;
    message := 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END
$$;
CREATE FUNCTION pg_temp.cron(expression text, timezone text DEFAULT 'UTC', policy text DEFAULT 'skip') RETURNS jsonb
LANGUAGE sql AS $$ SELECT jsonb_build_object('schema', 'qinglong/cron@v1', 'config',
    jsonb_build_object('expression', $1, 'timezone', $2, 'misfirePolicy', $3)) $$;
\set shell '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "true"}}}'
SELECT id FROM qinglong.ql_project_put('p');
SELECT content_digest AS d1 FROM qinglong.ql_task_publish('p', 'task', 'T', :'shell') \gset
SELECT content_digest AS other FROM qinglong.ql_task_publish('p', 'other', 'T', :'shell') \gset
SELECT content_digest AS tool FROM qinglong.ql_task_publish('p', 'tool', 'T', '{"schema": "example.org/x@v1", "config": {}}', kind => 'tool') \gset

-- Created: head, revision in normal form, and a schedule row that a scheduler has yet to initialise.
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('  */5   9-17 * *  MON-FRI ', 'europe/berlin'));
SELECT task_id, current_revision, created_at_ms = updated_at_ms AS fresh FROM qinglong.triggers;
SELECT revision, task_id, task_revision, task_content_digest = :'d1' AS pinned, spec_json, enabled,
       content_digest = qinglong._trigger_digest(project_id, trigger_id, revision, task_id, task_revision, task_content_digest, spec_json, enabled) AS digest
  FROM qinglong.trigger_revisions;
SELECT s.trigger_revision, next_fire_at_ms, last_scheduled_at_ms, state_version, claim_version, eligible, schedulable,
       s.updated_at_ms = r.created_at_ms AS published, admitted_total, skipped_total, coalesced_total, uncounted
  FROM qinglong.trigger_schedules s JOIN qinglong.trigger_revisions r ON r.revision = s.trigger_revision;

-- Updated: claim cleared, versions grow by one, last_scheduled_at_ms, totals stay, the fault goes.
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 9000000000000000, last_scheduled_at_ms = 777, state_version = 10,
       claim_owner = 'me', claim_token = gen_random_uuid(), claim_version = 20, claim_expires_at_ms = updated_at_ms + 30000,
       fault_code = 'transient', fault_count = 3, retry_at_ms = 5, admitted_total = 1, coalesced_total = 2, skipped_total = 3;
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *', policy => 'fire_once'), 1);
SELECT trigger_revision, next_fire_at_ms, last_scheduled_at_ms, state_version, claim_owner, claim_token, claim_version,
       claim_expires_at_ms, eligible, fault_code, fault_count, retry_at_ms, admitted_total, skipped_total, coalesced_total, uncounted
  FROM qinglong.trigger_schedules;
-- Disabled: not eligible.
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), 2, enabled => false);
SELECT trigger_revision, state_version, claim_version, eligible, skipped_total FROM qinglong.trigger_schedules;
-- Later than the previous revision, the head, what was admitted and the row, whatever the clock says.
UPDATE qinglong.trigger_schedules SET last_scheduled_at_ms = 9000000000000000;
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), 3);
SELECT max(created_at_ms) FROM qinglong.trigger_revisions;
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), 4);
UPDATE qinglong.trigger_schedules SET updated_at_ms = 9000000000000100; -- as a clock that was ahead leaves it
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), 5);
UPDATE qinglong.triggers SET updated_at_ms = 9000000000000200;
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), 6);
SELECT revision, created_at_ms FROM qinglong.trigger_revisions WHERE revision > 3 ORDER BY 1;
SELECT updated_at_ms FROM qinglong.triggers;
-- The schedule itself does not wait for a time that far ahead.
SELECT trigger_revision, next_fire_at_ms = updated_at_ms AS from_now, last_scheduled_at_ms,
       abs(updated_at_ms / 1000.0 - extract(epoch FROM clock_timestamp())) < 60 AS now FROM qinglong.trigger_schedules;

-- A trigger of another schema is kept, but nobody here can schedule it.
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'foreign', 'task', 1, :'d1', '{"schema": "example.org/webhook@v1", "config": {"path": "/x"}}');
SELECT eligible FROM qinglong.trigger_schedules WHERE trigger_id = 'foreign';
-- A disabled revision may pin what an enabled one may not.
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'off', 'tool', 1, :'tool', pg_temp.cron('0 0 1 1 *'), enabled => false);

-- A mutation is replayed, also after later revisions, a moved task and in an archived project.
\set m 11111111-1111-4111-8111-111111111111
SELECT status, revision, content_digest AS digest FROM qinglong.ql_trigger_publish('p', 'm', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), NULL, :'m') \gset
SELECT status, revision, content_digest = :'digest' AS same FROM qinglong.ql_trigger_publish('p', 'm', 'task', 1, :'d1', pg_temp.cron(' 0  0 1 1 *', 'utc'), NULL, :'m');
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'm', 'task', 1, :'d1', pg_temp.cron('0 0 2 1 *'), 1);
SELECT content_digest AS d2 FROM qinglong.ql_task_publish('p', 'task', 'T2', :'shell', 1) \gset
SELECT status FROM qinglong.ql_project_put('p', status => 'archived');
SELECT status, revision, content_digest = :'digest' AS same FROM qinglong.ql_trigger_publish('p', 'm', 'task', 1, :'d1', pg_temp.cron('0 0 1 1 *'), NULL, :'m');
SELECT state_version, claim_version, trigger_revision FROM qinglong.trigger_schedules WHERE trigger_id = 'm';
SELECT status FROM qinglong.ql_project_put('p');

\x
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, NULL, %L)', 'p', 'm', 'task', :'d1', pg_temp.cron('0 0 3 1 *'), :'m'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 2, %L, %L, NULL, %L, false)', 'p', 'm', 'other', :'other', pg_temp.cron('0 0 3 1 *'), :'m'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, 1, %L)', 'p', 'm', 'task', :'d1', pg_temp.cron('0 0 1 1 *'), :'m'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, NULL, %L)', 'p', 'x', 'task', :'d1', pg_temp.cron('0 0 1 1 *'), :'m'));

-- The expected revision, the task, the project.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 2, %L, %L)', 'p', 'm', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 2, %L, %L, 1)', 'p', 'm', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 2, %L, %L, 1)', 'p', 'new', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, 2)', 'p', 'm', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'new', 'nothing', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'nowhere', 'new', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT status FROM qinglong.ql_project_put('old', status => 'archived');
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'old', 'new', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));

-- The pin.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 3, %L, %L)', 'p', 'new', 'task', :'d2', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 2, %L, %L)', 'p', 'new', 'task', :'d1', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'new', 'task', :'d1', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, enabled => false)', 'p', 'switched-off', 'task', :'d1', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'new', 'tool', :'tool', pg_temp.cron('0 0 1 1 *')));
SELECT content_digest AS d3 FROM qinglong.ql_task_publish('p', 'task', 'T3', :'shell', 2, enabled => false) \gset
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 3, %L, %L)', 'p', 'new', 'task', :'d3', pg_temp.cron('0 0 1 1 *')));

-- Arguments.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', NULL, 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', NULL, 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', NULL, :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, NULL, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', NULL, pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', NULL));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, enabled => NULL)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', repeat('x', 129), 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 0, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', upper(:'other'), pg_temp.cron('0 0 1 1 *')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L, -1)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
-- Expression, zone, policy.
SELECT e, r.* FROM unnest(ARRAY['0 0 1 13 *', '* * * *', '0 0 30 2 *', '@daily', '*/61 * * * *', '']) e,
    LATERAL pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron(e))) r;
SELECT z, r.* FROM unnest(ARRAY['Europe/Berln', 'UTC+3', 'posix/UTC', 'localtime', '']) z,
    LATERAL pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *', z))) r;
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *', 'UTC', 'all')));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', '{"schema": "qinglong/cron@v1", "config": {"expression": "0 0 1 1 *", "timezone": "UTC"}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', '{"schema": "qinglong/lunar@v1", "config": {}}'));
\x
-- Refusals wrote nothing.
SELECT trigger_id, max(revision) FROM qinglong.trigger_revisions GROUP BY 1 ORDER BY 1;
SELECT count(*) = (SELECT count(*) FROM qinglong.trigger_schedules) AS one_row_each FROM qinglong.triggers;

\x
-- Damaged facts.
ALTER TABLE qinglong.task_execution_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.task_execution_revisions SET plan_json = plan_json || '{"timeoutMs": 5}' WHERE task_id = 'other';
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
DELETE FROM qinglong.task_execution_revisions WHERE task_id = 'other';
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
ALTER TABLE qinglong.task_definition_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.task_definition_revisions SET name = 'changed' WHERE task_id = 'other';
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
UPDATE qinglong.task_definition_revisions SET spec_json = '{}' WHERE task_id = 'other';
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_trigger_publish(%L, %L, %L, 1, %L, %L)', 'p', 'x', 'other', :'other', pg_temp.cron('0 0 1 1 *')));
