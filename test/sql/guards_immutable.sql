-- Revisions and events cannot be changed, whatever a role was granted and however triggers are switched off.
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
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '0 3 1 1 *', 'true');
INSERT INTO qinglong.run_events (id, run_id, sequence, type, actor_type, payload, created_at_ms)
    VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'x', 'system', '{}', 0);

SET client_min_messages = warning; -- TRUNCATE CASCADE announces its way in no fixed order
CREATE TEMP VIEW attempts AS
    SELECT t.name AS table_name, a.verb, r.*
      FROM (VALUES ('task_definition_revisions', 'created_at_ms'), ('task_execution_revisions', 'created_at_ms'),
                   ('trigger_revisions', 'created_at_ms'), ('run_events', 'created_at_ms')) t (name, col),
           LATERAL (VALUES ('update', format('UPDATE qinglong.%I SET %I = %2$I', t.name, t.col)),
                           ('delete', format('DELETE FROM qinglong.%I', t.name)),
                           ('truncate', format('TRUNCATE qinglong.%I CASCADE', t.name))) a (verb, command),
           LATERAL pg_temp.refused(a.command) r;
SELECT * FROM attempts;

-- A replication role switches ordinary triggers off, not these.
SET session_replication_role = replica;
SELECT verb, code, count(*) FROM attempts GROUP BY 1, 2 ORDER BY 1, 2;
RESET session_replication_role;

-- No grant helps.
CREATE ROLE regress_guards_all;
GRANT USAGE ON SCHEMA qinglong TO regress_guards_all;
GRANT ALL ON ALL TABLES IN SCHEMA qinglong TO regress_guards_all;
SET ROLE regress_guards_all;
UPDATE qinglong.trigger_revisions SET enabled = false;
DELETE FROM qinglong.run_events;
TRUNCATE qinglong.run_events;
RESET ROLE;

-- Only the owner can lift it, and only on purpose.
SET ROLE regress_guards_all;
ALTER TABLE qinglong.run_events DISABLE TRIGGER ALL;
RESET ROLE;
BEGIN;
ALTER TABLE qinglong.run_events DISABLE TRIGGER immutable_row;
DELETE FROM qinglong.run_events;
ROLLBACK;
SELECT count(*) FROM qinglong.run_events;
REVOKE ALL ON ALL TABLES IN SCHEMA qinglong FROM regress_guards_all;
REVOKE ALL ON SCHEMA qinglong FROM regress_guards_all;
DROP ROLE regress_guards_all;

-- The trigger functions are good for nothing else.
SELECT qinglong._refuse_change();
CREATE TABLE plain (id int, current_revision int);
CREATE TRIGGER misuse AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION qinglong._sweep_task();
INSERT INTO plain VALUES (1, 1);
DROP TABLE plain;
