-- All digests of test/data/digests.jsonl, through SQL: by the digest functions, and as publication stores them.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set file :abs_srcdir '/data/digests.jsonl'
CREATE TEMP TABLE cases (line int GENERATED ALWAYS AS IDENTITY, data jsonb NOT NULL);
-- Neither quote nor delimiter occurs in the file, so that each line is one value as it stands.
COPY cases (data) FROM :'file' (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02');
CREATE TEMP VIEW inputs AS
    SELECT line, data ->> 'kind' AS kind, data -> 'input' AS i, data ->> 'sha256' AS sha256 FROM cases;

SELECT kind, count(*) AS cases,
       count(*) FILTER (WHERE sha256 = CASE kind
           WHEN 'task' THEN qinglong._task_digest(i ->> 'projectId', i ->> 'taskId', (i ->> 'revision')::int,
               i ->> 'name', i ->> 'description', i ->> 'kind', i -> 'spec', i -> 'labels', (i ->> 'enabled')::bool)
           WHEN 'trigger' THEN qinglong._trigger_digest(i ->> 'projectId', i ->> 'triggerId', (i ->> 'revision')::int,
               i ->> 'taskId', (i ->> 'taskRevision')::int, i ->> 'taskContentDigest', i -> 'spec',
               (i ->> 'enabled')::bool)
           ELSE qinglong._execution_digest(i ->> 'projectId', i ->> 'taskId', (i ->> 'sourceRevision')::int,
               i ->> 'sourceContentDigest', i ->> 'executorType', i ->> 'planSchema', i -> 'plan')
       END) AS equal
  FROM inputs GROUP BY kind ORDER BY kind;

-- Publication: earlier revisions are filled up first. An enabled trigger on a disabled task is not publishable.
CREATE TEMP TABLE published (kind text, line int, digest text);
DO $$
DECLARE
    c record;
    expected int;
    r record;
BEGIN
    PERFORM qinglong.ql_project_put(p) FROM (SELECT DISTINCT i ->> 'projectId' AS p FROM inputs) projects;
    FOR c IN SELECT * FROM inputs WHERE kind = 'task' ORDER BY line LOOP
        FOR n IN 1 .. (c.i ->> 'revision')::int LOOP
            expected := nullif(n - 1, 0);
            r := qinglong.ql_task_publish(c.i ->> 'projectId', c.i ->> 'taskId', c.i ->> 'name', c.i -> 'spec', expected,
                kind => c.i ->> 'kind', labels => c.i -> 'labels', description => c.i ->> 'description',
                enabled => (c.i ->> 'enabled')::bool);
        END LOOP;
        INSERT INTO published VALUES ('task', c.line, r.content_digest);
    END LOOP;
    FOR c IN SELECT * FROM inputs WHERE kind = 'trigger' ORDER BY line LOOP
        SELECT current_revision INTO expected FROM qinglong.triggers
         WHERE project_id = c.i ->> 'projectId' AND trigger_id = c.i ->> 'triggerId';
        FOR n IN coalesce(expected, 0) + 1 .. (c.i ->> 'revision')::int LOOP
            CONTINUE WHEN (c.i ->> 'enabled')::bool AND NOT (
                SELECT v.enabled FROM qinglong.task_definition_revisions v
                 WHERE v.project_id = c.i ->> 'projectId' AND v.task_id = c.i ->> 'taskId'
                   AND v.revision = (c.i ->> 'taskRevision')::int);
            r := qinglong.ql_trigger_publish(c.i ->> 'projectId', c.i ->> 'triggerId', c.i ->> 'taskId',
                (c.i ->> 'taskRevision')::int, c.i ->> 'taskContentDigest', c.i -> 'spec', nullif(n - 1, 0),
                enabled => (c.i ->> 'enabled')::bool);
            IF r.revision = (c.i ->> 'revision')::int THEN
                INSERT INTO published VALUES ('trigger', c.line, r.content_digest);
            END IF;
        END LOOP;
    END LOOP;
    INSERT INTO published
        SELECT 'execution', t.line, x.content_digest
          FROM inputs t JOIN qinglong.task_execution_revisions x
            ON x.project_id = t.i ->> 'projectId' AND x.task_id = t.i ->> 'taskId'
           AND x.source_revision = (t.i ->> 'sourceRevision')::int
         WHERE t.kind = 'execution';
END
$$;
SELECT p.kind, count(*) AS published, count(*) FILTER (WHERE p.digest = i.sha256) AS equal
  FROM published p JOIN inputs i USING (kind, line) GROUP BY p.kind ORDER BY p.kind;

-- The order of keys and blanks in the given JSON does not matter, numbers have one form.
SELECT qinglong._task_digest('p', 't', 1, 'n', NULL, 'tool', '{"schema": "a/b@v1", "config": {"b": 1.50, "a": 1e2}}', '{}', true)
     = qinglong._task_digest('p', 't', 1, 'n', NULL, 'tool', '{"config":{"a":100,"b":1.5},"schema":"a/b@v1"}', '{}', true)
       AS equal;
-- What cannot have been published has no digest.
SELECT qinglong._task_digest('p', 't', 1, 'n', NULL, 'tool', '{"schema": "a/b@v1"}', '{}', true) AS no_config,
       qinglong._task_digest('p', 't', 1, NULL, NULL, 'tool', '{"schema": "a/b@v1", "config": 1}', '{}', true) AS no_name,
       qinglong._task_digest('p', 't', 1, 'n', NULL, 'tool', '{"schema": "a/b@v1", "config": 12345678901234567890}', '{}', true)
           AS inexact_number,
       qinglong._trigger_digest('p', 't', 1, 't', 1, repeat('0', 64), '[]', true) AS no_object,
       qinglong._execution_digest('p', 't', 1, repeat('0', 64), 'remote_worker', 'x', '{"command": 1}') AS no_environment;
SELECT count(*) FROM qinglong.ql_check();
