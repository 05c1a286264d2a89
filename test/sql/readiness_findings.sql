-- ql_readiness(): each way of not being as shipped has a finding, and nothing schedules until it is gone.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_runtime;
CREATE ROLE regress_other;
SELECT qinglong.ql_grant('regress_runtime', 'runtime');
SELECT qinglong.ql_grant('regress_other', 'monitor');
SELECT * FROM qinglong.ql_readiness();

-- drift(STATEMENT): applies it, shows what the readiness says first and whether a claim is refused, and rolls it back.
CREATE PROCEDURE drift(statement text, most integer DEFAULT 3) LANGUAGE plpgsql AS $$
DECLARE
    answer record;
    claim text := 'claims';
BEGIN
    BEGIN
        EXECUTE statement;
        SELECT * INTO answer FROM qinglong.ql_readiness();
        BEGIN
            PERFORM qinglong.ql_claim('r');
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            claim := 'refuses to claim';
        END;
        RAISE EXCEPTION USING ERRCODE = 'R0001';
    EXCEPTION WHEN SQLSTATE 'R0001' THEN
        NULL;
    END;
    RAISE WARNING '% % %, %', CASE WHEN answer.ready THEN 'ready' ELSE 'NOT ready' END, answer.code, answer.findings[1:most], claim;
END
$$;
\set VERBOSITY terse
CALL drift('SELECT 1');

-- Tables and columns.
CALL drift('ALTER TABLE qinglong.runs ENABLE ROW LEVEL SECURITY');
CALL drift('ALTER TABLE qinglong.trigger_schedules OWNER TO regress_other', 1);
CALL drift('ALTER TABLE qinglong.runs ALTER status DROP NOT NULL');
CALL drift('ALTER TABLE qinglong.runs ALTER error_summary TYPE varchar(2048)');
CALL drift('ALTER TABLE qinglong.runs RENAME error_summary TO summary');
CALL drift('ALTER TABLE qinglong.projects ALTER status SET DEFAULT ''archived''');
-- Indexes.
CALL drift('DROP INDEX qinglong.runs_occurrence_key');
CALL drift('DROP INDEX qinglong.trigger_schedules_due_idx; CREATE INDEX trigger_schedules_due_idx ON qinglong.trigger_schedules (project_id)');
CALL drift('DROP INDEX qinglong.runs_occurrence_key; CREATE UNIQUE INDEX runs_occurrence_key ON qinglong.runs (project_id, trigger_id, scheduled_for_ms) WHERE trigger_type = ''manual''');
CALL drift('UPDATE pg_index SET indisvalid = false WHERE indexrelid = ''qinglong.runs_pkey''::regclass');
-- Constraints.
CALL drift('ALTER TABLE qinglong.trigger_schedules DROP CONSTRAINT trigger_schedules_claim_shape');
CALL drift('ALTER TABLE qinglong.trigger_schedules DROP CONSTRAINT trigger_schedules_claim_shape, ADD CONSTRAINT trigger_schedules_claim_shape CHECK (claim_version >= 0)');
CALL drift('ALTER TABLE qinglong.run_attempts DROP CONSTRAINT run_attempts_attempt_key');
-- Triggers.
CALL drift('ALTER TABLE qinglong.run_events DISABLE TRIGGER immutable_row');
CALL drift('ALTER TABLE qinglong.run_events ENABLE TRIGGER immutable_row');
CALL drift('DROP TRIGGER immutable_row ON qinglong.run_events');
CALL drift('ALTER TABLE qinglong.triggers DISABLE TRIGGER ALL');
-- Functions.
CALL drift('ALTER FUNCTION qinglong.ql_check() SECURITY INVOKER');
CALL drift('ALTER FUNCTION qinglong.ql_check() RESET search_path');
CALL drift('ALTER FUNCTION qinglong.ql_check() VOLATILE');
CALL drift('ALTER FUNCTION qinglong.ql_claim(text, integer, integer, uuid) OWNER TO regress_other', 1);
CALL drift('ALTER FUNCTION qinglong.ql_claim(text, integer, integer, uuid) SECURITY DEFINER');
CALL drift('CREATE OR REPLACE FUNCTION qinglong._grants(OUT kind text, OUT class text, OUT object text, OUT privilege text) RETURNS SETOF record LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 200 SET search_path = pg_catalog, pg_temp AS ''SELECT 1,2,3,4 WHERE false''', 1);
CALL drift('ALTER VIEW qinglong.schedules SET (security_invoker = true)');
-- Grants: PUBLIC has nothing, and a role exactly what its kinds have.
CALL drift('GRANT SELECT ON qinglong.runs TO PUBLIC');
CALL drift('GRANT USAGE ON SCHEMA qinglong TO PUBLIC');
CALL drift('GRANT EXECUTE ON FUNCTION qinglong.ql_occurrences(text, text, timestamptz, integer) TO PUBLIC');
CALL drift('GRANT USAGE ON TYPE qinglong.runs TO PUBLIC');
CALL drift('GRANT CREATE ON SCHEMA qinglong TO regress_other');
CALL drift('GRANT DELETE ON qinglong.trigger_schedules TO regress_runtime');
CALL drift('GRANT INSERT ON qinglong.trigger_schedules TO regress_runtime');
CALL drift('GRANT TRIGGER, REFERENCES, TRUNCATE ON qinglong.runs TO regress_runtime');
CALL drift('GRANT SELECT (spec_json) ON qinglong.trigger_revisions TO regress_other');
CALL drift('GRANT SELECT ON qinglong.schedules TO regress_other WITH GRANT OPTION');
CALL drift('REVOKE UPDATE ON qinglong.trigger_schedules FROM regress_runtime');
CALL drift('REVOKE EXECUTE ON FUNCTION qinglong._kind_runtime() FROM regress_runtime', 2);
-- Several at once: the first names the state.
CALL drift('GRANT DELETE ON qinglong.runs TO regress_runtime; ALTER TABLE qinglong.runs ALTER status DROP NOT NULL; SELECT qinglong.ql_hold(''by hand'')');

-- What an owner adds on purpose is no finding, nor is bare USAGE of the schema.
CALL drift('CREATE INDEX mine ON qinglong.runs (task_id)');
CALL drift('ALTER TABLE qinglong.runs ADD CONSTRAINT mine CHECK (priority < 100)');
CALL drift('CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''; CREATE TRIGGER mine AFTER INSERT ON qinglong.runs EXECUTE FUNCTION mine()');
CALL drift('ALTER TABLE qinglong.runs SET (fillfactor = 70, autovacuum_enabled = off)');
CALL drift('CREATE ROLE regress_third; GRANT USAGE ON SCHEMA qinglong TO regress_third');
CALL drift('SELECT qinglong.ql_grant(''regress_other'', ''admin'')');

-- A version that is not the library's, and a read-only session.
CALL drift('UPDATE pg_extension SET extversion = ''0.0.9'' WHERE extname = ''qinglong_sched''');
\set VERBOSITY default
BEGIN;
UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'qinglong_sched';
SELECT qinglong.ql_claim('r');
ROLLBACK;
BEGIN;
UPDATE pg_extension SET extversion = '999.1' WHERE extname = 'qinglong_sched';
SELECT qinglong.ql_claim('r');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM qinglong.ql_readiness();
ROLLBACK;

-- Each kind may ask; the findings are bounded.
SELECT qinglong.ql_grant('regress_other', 'worker_ingress');
SELECT qinglong.ql_revoke('regress_other', 'monitor');
SET ROLE regress_other;
SELECT * FROM qinglong.ql_readiness();
RESET ROLE;
BEGIN;
GRANT DELETE ON ALL TABLES IN SCHEMA qinglong TO regress_other;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA qinglong TO regress_other;
SELECT ready, code, cardinality(findings), findings[1] FROM qinglong.ql_readiness();
ROLLBACK;
SELECT * FROM qinglong.ql_readiness();

DROP PROCEDURE drift(text, integer);
DROP EXTENSION qinglong_sched;
DROP OWNED BY regress_runtime, regress_other;
DROP ROLE regress_runtime, regress_other;
