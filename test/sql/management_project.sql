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
-- The extension brings no project.
SELECT count(*) FROM qinglong.projects;
SELECT id, name, slug, status, version, created_at_ms = updated_at_ms AS fresh,
       abs(created_at_ms / 1000.0 - extract(epoch FROM clock_timestamp())) < 60 AS now FROM qinglong.ql_project_put('web');
-- Nothing differs, nothing is written.
SELECT xmin AS before FROM qinglong.projects WHERE id = 'web' \gset
SELECT version FROM qinglong.ql_project_put('web');
SELECT version FROM qinglong.ql_project_put('web', 'web', 'active');
SELECT xmin = :before AS untouched FROM qinglong.projects WHERE id = 'web';
-- A name is kept unless given.
SELECT name, status, version FROM qinglong.ql_project_put('web', 'The web site');
SELECT name, status, version, updated_at_ms >= created_at_ms AS later FROM qinglong.ql_project_put('web', status => 'archived');
SELECT name, status, version FROM qinglong.ql_project_put('web', NULL, 'archived');
SELECT name, status, version FROM qinglong.ql_project_put('web', 'Site', 'active');
-- The slug is the id where that is one, else made of it.
SELECT id, name, slug FROM qinglong.ql_project_put('a');
SELECT id, name, slug FROM qinglong.ql_project_put('a-1-z');
SELECT id, name, slug FROM qinglong.ql_project_put('Web');
SELECT id, name, slug FROM qinglong.ql_project_put('-web');
SELECT id, name, slug FROM qinglong.ql_project_put('项目-α', '项目');
SELECT slug = 'p-' || left(encode(sha256(convert_to('项目-α', 'UTF8')), 'hex'), 32) AS from_the_id
  FROM qinglong.projects WHERE id = '项目-α';
SELECT octet_length(id), octet_length(slug) FROM qinglong.ql_project_put(repeat('x', 128));
SELECT octet_length(id), octet_length(slug) FROM qinglong.ql_project_put(repeat('ä', 64));
-- An archived project can be created as such.
SELECT status FROM qinglong.ql_project_put('old', status => 'archived');
-- A clock that was ahead does not let updated_at_ms fall back.
UPDATE qinglong.projects SET updated_at_ms = 9000000000000000 WHERE id = 'a';
SELECT name, updated_at_ms FROM qinglong.ql_project_put('a', 'A');

\x
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put(NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put(repeat('x', 129)) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put(repeat('ä', 65)) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put(E'a\nb') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('web', '') $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('web', repeat('x', 256)) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('web', status => NULL) $$);
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('web', status => 'deleted') $$);
-- Somebody took the slug that this id leads to.
SELECT id FROM qinglong.ql_project_put('p-' || left(encode(sha256('X'), 'hex'), 32));
SELECT * FROM pg_temp.refused($$ SELECT qinglong.ql_project_put('X') $$);
\x

-- A hostile search_path changes nothing.
CREATE SCHEMA evil;
CREATE FUNCTION evil.hijack(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked'; END $$;
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.hijack);
CREATE FUNCTION evil.lower(anyrange) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'hijacked'; END $$;
SET search_path = evil, pg_catalog;
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '0 0 1 1 *', 'true', project_id => 'safe');
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '0 0 2 1 *', 'true', project_id => 'safe');
SELECT status FROM qinglong.ql_project_put('safe', status => 'archived');
RESET search_path;
