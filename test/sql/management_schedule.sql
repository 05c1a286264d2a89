-- The one-line way in.
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
SELECT status, trigger_revision, next_fire_at = date_trunc('year', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '1 year' AS new_year
  FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo one');
SELECT id, name, status FROM qinglong.projects;
SELECT name, description, kind, spec_json, labels_json, enabled FROM qinglong.task_definition_revisions;
SELECT task_id, task_revision, spec_json, enabled FROM qinglong.trigger_revisions;
-- The same call again changes nothing.
CREATE TEMP TABLE before AS SELECT * FROM qinglong.trigger_schedules;
SELECT status, trigger_revision, next_fire_at > now() AS ahead FROM qinglong.ql_schedule('nightly', ' 0 0  1 1 * ', 'echo one', 'utc', 'skip', 'default');
SELECT count(*) AS changed FROM (TABLE before EXCEPT TABLE qinglong.trigger_schedules) x;
-- A different one publishes the next revision of what differs.
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo one', misfire_policy => 'fire_once');
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo two', misfire_policy => 'fire_once');
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo two', 'Asia/Shanghai', 'fire_once');
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo two', 'Asia/Shanghai', 'fire_once');
SELECT revision, task_revision, spec_json -> 'config' ->> 'timezone' AS zone, spec_json -> 'config' ->> 'misfirePolicy' AS policy
  FROM qinglong.trigger_revisions ORDER BY 1;
SELECT current_revision FROM qinglong.task_definitions;
-- Off, and on again.
SELECT qinglong.ql_unschedule('nightly');
SELECT qinglong.ql_unschedule('nightly');
SELECT qinglong.ql_unschedule('unknown');
SELECT qinglong.ql_unschedule('nightly', 'nowhere');
SELECT enabled FROM qinglong.trigger_revisions ORDER BY revision DESC LIMIT 1;
SELECT eligible FROM qinglong.trigger_schedules;
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo two', 'Asia/Shanghai', 'fire_once');
SELECT eligible FROM qinglong.trigger_schedules;
-- A trigger whose task moved on its own follows with the next call, and a stale one can be switched off.
SELECT status, revision FROM qinglong.ql_task_publish('default', 'nightly', 'other', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "x"}}}', 2);
SELECT eligible FROM qinglong.trigger_schedules;
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 0 1 1 *', 'echo two', 'Asia/Shanghai', 'fire_once');
SELECT eligible FROM qinglong.trigger_schedules;
SELECT status, revision FROM qinglong.ql_task_publish('default', 'nightly', 'other', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "x"}}}', 4);
SELECT qinglong.ql_unschedule('nightly');
SELECT task_revision, enabled FROM qinglong.trigger_revisions ORDER BY revision DESC LIMIT 1;
-- All or nothing.
BEGIN;
SELECT status FROM qinglong.ql_schedule('gone', '0 0 1 1 *', 'true', project_id => 'gone');
ROLLBACK;
SELECT count(*) FROM qinglong.projects WHERE id = 'gone';
-- Names of any script, many at once.
SELECT status, trigger_revision FROM qinglong.ql_schedule('每晚 “é”', '0 0 1 1 *', 'echo 你好', project_id => '项目');
SELECT s.status, count(*) FROM generate_series(1, 200) n, LATERAL qinglong.ql_schedule('many-' || n, '0 0 1 1 *', 'true', project_id => 'many') s GROUP BY 1;
SELECT s.status, count(*) FROM generate_series(1, 200) n, LATERAL qinglong.ql_schedule('many-' || n, '0 0 1 1 *', 'true', project_id => 'many') s GROUP BY 1;

\x
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule(NULL, '0 0 1 1 *', 'true') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', NULL, 'true') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', 'true', NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', 'true', 'UTC', NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', 'true', 'UTC', 'skip', NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('', '0 0 1 1 *', 'true') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', '') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1', 'true') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 31 6 *', 'true') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', 'true', 'Berlin') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('x', '0 0 1 1 *', 'true', misfire_policy => 'run') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_unschedule(NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_unschedule('x', '') $$);
SELECT count(*) FROM qinglong.triggers WHERE trigger_id = 'x';
-- In an archived project nothing is published.
SELECT status FROM qinglong.ql_project_put('many', status => 'archived');
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('many-1', '0 0 1 1 *', 'true', project_id => 'many') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_unschedule('many-1', 'many') $$);
-- A trigger of another task does not become ours.
SELECT status FROM qinglong.ql_trigger_publish('default', 'borrowed', 'nightly', 5,
    (SELECT content_digest FROM qinglong.task_definition_revisions WHERE task_id = 'nightly' AND revision = 5),
    '{"schema": "qinglong/cron@v1", "config": {"expression": "0 0 1 1 *", "timezone": "UTC", "misfirePolicy": "skip"}}');
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_schedule('borrowed', '0 0 1 1 *', 'true') $$);
\x
SELECT count(*) FROM qinglong.task_definitions WHERE task_id = 'borrowed';

-- Also at the higher isolation levels.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status FROM qinglong.ql_schedule('serial', '0 0 1 1 *', 'true');
SELECT status FROM qinglong.ql_schedule('serial', '0 0 1 1 *', 'false');
COMMIT;
BEGIN READ ONLY;
SELECT status FROM qinglong.ql_schedule('serial', '0 0 1 1 *', 'false');
SELECT status FROM qinglong.ql_schedule('serial', '0 0 2 1 *', 'false');
ROLLBACK;
SELECT count(*) FROM qinglong.ql_check();
