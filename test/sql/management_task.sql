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
SELECT id FROM qinglong.ql_project_put('p');
\set shell '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "echo S3CRET"}}}'
\set argv '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "argv", "file": "/bin/true", "args": []}, "timeoutMs": 1000}}'
\set tool '{"schema": "example.org/tool@v1", "config": {"any": [1, 2.50, null]}}'

-- Created, then updated: head, immutable revisions, execution revisions.
SELECT * FROM qinglong.ql_task_publish('p', 't', 'Task', :'shell');
SELECT status, revision FROM qinglong.ql_task_publish('p', 't', 'Task', :'argv', 1,
    description => 'Does nothing', labels => '{"team/name": "core"}');
SELECT status, revision FROM qinglong.ql_task_publish('p', 't', 'Task', :'argv', 2, enabled => false);
SELECT status, revision FROM qinglong.ql_task_publish('p', 'tool', 'Tool', :'tool', kind => 'tool');
SELECT task_id, current_revision FROM qinglong.task_definitions ORDER BY 1;
SELECT task_id, revision, name, description, kind, spec_json, labels_json, enabled
  FROM qinglong.task_definition_revisions ORDER BY 1, 2;
SELECT task_id, source_revision, executor_type, plan_schema, plan_json,
       task_revision = 'qltd:v1:' || source_revision || ':' || source_content_digest AS named
  FROM qinglong.task_execution_revisions ORDER BY 1, 2;
SELECT bool_and(created_at_ms > before) AS later_than_before, bool_and(head_at = last) AS head_is_latest
  FROM (SELECT r.created_at_ms, lag(r.created_at_ms, 1, 0::bigint) OVER w AS before, h.updated_at_ms AS head_at,
               max(r.created_at_ms) OVER (PARTITION BY r.task_id) AS last
          FROM qinglong.task_definition_revisions r JOIN qinglong.task_definitions h USING (project_id, task_id)
        WINDOW w AS (PARTITION BY r.task_id ORDER BY r.revision)) x;
-- The first publication made this database the owner of the state.
SELECT system_identifier ~ '^[0-9]+$' AS system, database_oid = (SELECT oid FROM pg_database WHERE datname = current_database())
       AS database, held_reason FROM qinglong.identity;
-- A clock that falls back: later than the previous revision all the same.
UPDATE qinglong.task_definitions SET updated_at_ms = 9000000000000000 WHERE task_id = 'tool';
SELECT status FROM qinglong.ql_task_publish('p', 'tool', 'Tool', :'tool', 1, kind => 'tool');
SELECT max(created_at_ms) FROM qinglong.task_definition_revisions WHERE task_id = 'tool';

-- A mutation is replayed, also after later revisions and in an archived project.
\set m 11111111-1111-4111-8111-111111111111
SELECT status, revision, content_digest AS digest FROM qinglong.ql_task_publish('p', 'm', 'M', :'shell', NULL, :'m') \gset
SELECT status, revision, content_digest = :'digest' AS same FROM qinglong.ql_task_publish('p', 'm', 'M', :'shell', NULL, :'m');
SELECT status, revision FROM qinglong.ql_task_publish('p', 'm', 'M2', :'argv', 1);
SELECT status, revision, content_digest = :'digest' AS same FROM qinglong.ql_task_publish('p', 'm', 'M', :'shell', NULL, :'m');
SELECT status FROM qinglong.ql_project_put('p', status => 'archived');
SELECT status, revision, content_digest = :'digest' AS same FROM qinglong.ql_task_publish('p', 'm', 'M', :'shell', NULL, :'m');
SELECT status FROM qinglong.ql_project_put('p');
-- The same JSON in another spelling is the same content.
SELECT status, revision FROM qinglong.ql_task_publish('p', 'm', 'M',
    '{"config": {"command": {"command": "echo S3CRET", "shell": "/bin/sh", "kind": "shell"}}, "schema": "qinglong/command@v1"}', NULL, :'m');

\x
-- With other content it is a conflict that names what differs and shows none of it.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'm', 'other', :'shell', :'m'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L, %L, %L, %L, false)',
    'p', 'm', 'other', :'tool', :'m', 'd', 'tool', '{"a": "b"}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 1, %L)', 'p', 'm', 'M', :'shell', :'m'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'other', 'M', :'shell', :'m'));
-- Also where a trigger used it.
SELECT status FROM qinglong.ql_trigger_publish('p', 'tr', 'm', 2,
    (SELECT content_digest FROM qinglong.task_definition_revisions WHERE task_id = 'm' AND revision = 2),
    '{"schema": "qinglong/cron@v1", "config": {"expression": "0 0 1 1 *", "timezone": "UTC", "misfirePolicy": "skip"}}',
    NULL, '22222222-2222-4222-8222-222222222222');
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'tr', 'M', :'shell',
    '22222222-2222-4222-8222-222222222222'));

-- The expected revision.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 2)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 4)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 1)', 'p', 'new', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 0)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, 2147483647)', 'p', 't', 'T', :'shell'));

-- The project.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'nowhere', 't', 'T', :'shell'));
SELECT status FROM qinglong.ql_project_put('old', status => 'archived');
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'old', 't', 'T', :'shell'));

-- Wrong arguments, before anything is looked at.
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', NULL, 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', NULL, 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', NULL, :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T', NULL));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, kind => NULL)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, labels => NULL)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, enabled => NULL)', 'p', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', '', 't', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', E'a\tb', 'T', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', '', :'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, description => %L)', 'p', 't', 'T', :'shell', ''));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, kind => %L)', 'p', 't', 'T', :'tool', 'shell'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, kind => %L)', 'p', 't', 'T', :'shell', 'script'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, labels => %L)', 'p', 't', 'T', :'shell', '{"Bad Key": "x"}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, labels => %L)', 'p', 't', 'T', :'shell', '[]'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T', '"text"'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T', '{"schema": "qinglong/command@v2", "config": {}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T', '{"schema": "qinglong/command@v1", "config": {}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T',
    '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "S3CRET", "shell": "S3CRET"}}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T',
    '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "x"}, "environment": [{"name": "QL3_X", "kind": "public", "value": "S3CRET"}]}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T',
    '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "x"}, "placement": {"required": {"executors": ["local"]}}}}'));
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L)', 'p', 't', 'T',
    jsonb_build_object('schema', 'qinglong/command@v1', 'config', jsonb_build_object('command', jsonb_build_object('kind', 'shell', 'command', repeat('x', 65537))))));
\x
-- Limits that are just kept, and unicode.
SELECT status FROM qinglong.ql_task_publish('p', repeat('é', 64), repeat('名', 85),
    jsonb_build_object('schema', 'qinglong/command@v1', 'config', jsonb_build_object('command', jsonb_build_object('kind', 'shell', 'command', repeat('x', 65000)))),
    description => repeat('说', 1365));
SELECT octet_length(task_id) AS id, octet_length(name) AS name, octet_length(description) AS description,
       octet_length(spec_json::text) AS spec FROM qinglong.task_definition_revisions WHERE octet_length(task_id) > 100;
-- Refusals wrote nothing.
SELECT left(task_id, 8) AS task_id, max(revision) FROM qinglong.task_definition_revisions GROUP BY 1 ORDER BY 1;

-- Damage is not replayed as if nothing were wrong.
ALTER TABLE qinglong.task_execution_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.task_execution_revisions SET plan_json = jsonb_set(plan_json, '{command,command}', '"echo bad"') WHERE task_id = 'm' AND source_revision = 1;
\x
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'm', 'M', :'shell', :'m'));
DELETE FROM qinglong.task_execution_revisions WHERE task_id = 'm' AND source_revision = 1;
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'm', 'M', :'shell', :'m'));
ALTER TABLE qinglong.task_definition_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.task_definition_revisions SET name = 'changed' WHERE task_id = 'm' AND revision = 1;
SELECT * FROM pg_temp.refused(format('SELECT qinglong.ql_task_publish(%L, %L, %L, %L, NULL, %L)', 'p', 'm', 'M', :'shell', :'m'));
