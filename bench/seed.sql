-- Fills a database that has the extension with :triggers triggers on :tasks tasks, all due at :due_ms, as a publication
-- would have left them. Set-wise, because publishing a million triggers one by one takes an hour.
\set ON_ERROR_STOP on
\if :{?tasks} \else \set tasks 100 \endif
\if :{?project} \else \set project bench \endif
\if :{?policy} \else \set policy fire_once \endif
\if :{?expression} \else \set expression '* * * * *' \endif
SELECT (qinglong.ql_project_put(:'project')).id \gset
SELECT status FROM generate_series(1, :tasks) n,
    qinglong.ql_task_publish(:'project', 'task-' || n, 'task ' || n,
        '{"schema":"qinglong/command@v1","config":{"command":{"kind":"shell","command":"true"}}}'::jsonb) \g /dev/null
BEGIN;
CREATE TEMP TABLE seed ON COMMIT DROP AS
SELECT 'trigger-' || lpad(n::text, 8, '0') AS trigger_id, h.task_id, h.current_revision AS task_revision,
       v.content_digest AS task_digest, :due_ms::bigint - 600000 AS published_ms,
       jsonb_build_object('schema', 'qinglong/cron@v1', 'config', jsonb_build_object(
           'expression', :'expression'::text, 'timezone', 'UTC', 'misfirePolicy', :'policy'::text)) AS spec
  FROM generate_series(1, :triggers) n
  JOIN qinglong.task_definitions h ON h.project_id = :'project' AND h.task_id = 'task-' || (1 + n % :tasks)
  JOIN qinglong.task_definition_revisions v
    ON v.project_id = :'project' AND v.task_id = h.task_id AND v.revision = h.current_revision;
INSERT INTO qinglong.triggers (project_id, trigger_id, task_id, current_revision, created_at_ms, updated_at_ms)
SELECT :'project', trigger_id, task_id, 1, published_ms, published_ms FROM seed;
INSERT INTO qinglong.trigger_revisions (project_id, trigger_id, revision, mutation_id, task_id, task_revision,
                                        task_content_digest, spec_json, enabled, content_digest, created_at_ms)
SELECT :'project', trigger_id, 1, gen_random_uuid(), task_id, task_revision, task_digest, spec, true,
       qinglong._trigger_digest(:'project', trigger_id, 1, task_id, task_revision, task_digest, spec, true), published_ms
  FROM seed;
INSERT INTO qinglong.trigger_schedules (project_id, trigger_id, trigger_revision, next_fire_at_ms, updated_at_ms, eligible)
SELECT :'project', trigger_id, 1, :due_ms, published_ms, true FROM seed;
COMMIT;
