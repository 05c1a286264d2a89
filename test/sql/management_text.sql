-- Text of every Unicode plane, specs of 64 KiB, and a command with quotes, newlines and umlauts come back byte for byte.
CREATE EXTENSION qinglong_sched;
SET client_min_messages = warning;
SHOW server_encoding;

-- Per plane its first characters, its last one, and some between; surrogates are no characters, and jsonb holds no NUL.
CREATE FUNCTION plane(p int) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(chr(p * 65536 + c), '' ORDER BY c)
      FROM unnest('{1,9,10,13,31,32,34,39,92,127,128,160,228,246,252,223,768,8232,8233,40679,40857,55295,57344,62464,65279,65533,65534,65535}'::int[]) c
$$;
CREATE FUNCTION shell(command text, comment text DEFAULT 'x') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('schema', 'qinglong/command@v1', 'config', jsonb_build_object('command', jsonb_build_object('kind', 'shell', 'command', command),
        'environment', jsonb_build_array(jsonb_build_object('name', 'TEXT', 'kind', 'public', 'value', comment))))
$$;
CREATE TABLE texts (id text PRIMARY KEY, command text);
INSERT INTO texts SELECT 'plane-' || p, plane(p) FROM generate_series(0, 16) p;
INSERT INTO texts VALUES
    ('quotes', E'echo "\'$(id)\' `x`" \\\n\t| sed \'s/\\"//g\' # Grüße, Ärger, Öl, Straße\r\n$$ ; printf "%s\\n" "${A:-"ä"}"'),
    ('all planes', (SELECT string_agg(plane(p), '' ORDER BY p) FROM generate_series(0, 16) p)),
    ('decomposed', 'a' || chr(776) || ' is not ' || chr(228)),
    -- The largest that a spec has room for: 65,536 bytes with its frame.
    ('largest', (SELECT repeat('ä', room / 2) || repeat('x', room % 2)
                   FROM (SELECT 65536 - octet_length('{"config":{"command":{"command":"","kind":"shell","shell":"/bin/sh"}},"schema":"qinglong/command@v1"}') AS room) r)),
    ('largest of four bytes', repeat(chr(128013), 16000));

-- By ql_schedule, in the spec and in the plan of execution.
SELECT count(*) AS published FROM texts, qinglong.ql_schedule(id, '* * * * *', command, 'UTC', 'fire_once') s WHERE s.status = 'created';
SELECT count(*) AS stored,
       count(*) FILTER (WHERE convert_to(v.spec_json #>> '{config,command,command}', 'UTF8') = convert_to(t.command, 'UTF8')) AS same,
       count(*) FILTER (WHERE convert_to(e.plan_json #>> '{command,command}', 'UTF8') = convert_to(t.command, 'UTF8')) AS same_plan
  FROM texts t JOIN qinglong.task_definition_revisions v ON v.task_id = t.id
  JOIN qinglong.task_execution_revisions e ON e.task_id = v.task_id AND e.source_revision = v.revision;
SELECT id, octet_length(command) FROM texts WHERE octet_length(command) > 60000 ORDER BY 1;
-- The same call again finds nothing that differs.
SELECT DISTINCT s.status FROM texts, qinglong.ql_schedule(id, '* * * * *', command, 'UTC', 'fire_once') s;

-- By ql_task_publish: name, description, labels, environment; and from there to the Run.
SELECT DISTINCT p.status FROM texts, qinglong.ql_task_publish('default', 'task ' || id, left(command, 60), shell('true', left(command, 16000)), NULL, NULL,
           left(command, 1000), 'command', jsonb_build_object('text', left(command, 60))) p
 WHERE id LIKE '%plane%' OR id IN ('quotes', 'decomposed');
SELECT count(*) AS stored, count(*) FILTER (WHERE v.name = left(t.command, 60)) AS names, count(*) FILTER (WHERE v.description = left(t.command, 1000)) AS descriptions,
       count(*) FILTER (WHERE v.labels_json ->> 'text' = left(t.command, 60)) AS labels,
       count(*) FILTER (WHERE v.spec_json #>> '{config,environment,0,value}' = left(t.command, 16000)) AS environments
  FROM texts t JOIN qinglong.task_definition_revisions v ON v.task_id = 'task ' || t.id;

-- Ids: every plane, without control characters; the claim and the admission carry them.
CREATE TABLE ids AS SELECT p, translate(plane(p), (SELECT string_agg(chr(c), '') FROM generate_series(1, 159) c WHERE c < 32 OR c > 126), '') AS id FROM generate_series(0, 16) p;
SELECT count(*) AS published FROM ids, qinglong.ql_schedule(id, '* * * * *', 'true', 'UTC', 'fire_once') s WHERE s.status = 'created';
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = CASE WHEN trigger_id IN (SELECT id FROM ids) THEN 60000 ELSE 4102444800000 END;
CREATE TABLE claims AS SELECT c::text FROM qinglong.ql_claim('r1', 60000, 256) c;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT a.status, count(*), count(i.id) AS same FROM qinglong.ql_admit_batch(ARRAY(SELECT c::qinglong.schedule_claim FROM claims)) a LEFT JOIN ids i ON i.id = a.trigger_id GROUP BY 1;
COMMIT;
SELECT count(*) AS runs, count(*) FILTER (WHERE r.idempotency_key = 'ql3:cron:v1:' || i.id || ':1:60000') AS keys, count(*) FILTER (WHERE convert_to(r.task_id, 'UTF8') = convert_to(i.id, 'UTF8')) AS tasks
  FROM qinglong.runs r JOIN ids i ON i.id = r.trigger_id;
SELECT * FROM qinglong.ql_check();

-- One byte more is refused, and says so without the text.
SELECT * FROM qinglong.ql_schedule('too large', '* * * * *', (SELECT command || 'x' FROM texts WHERE id = 'largest'));
