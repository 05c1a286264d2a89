-- A caller's search_path full of planted functions, operators, casts, types and tables reaches none of the functions:
-- each planted object raises when it is used. Which functions were called, the server counts itself: all of them.
\set QUIET 1
\pset format unaligned
\pset tuples_only true
\pset pager off
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
CREATE EXTENSION pgtap SCHEMA public;
CREATE EXTENSION qinglong_sched;
SET track_functions = 'all';
BEGIN;
SELECT no_plan();

CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE ROLE regress_h_admin;
CREATE ROLE regress_h_runtime;
CREATE ROLE regress_h_monitor;
SELECT qinglong.ql_grant('regress_h_admin', 'admin'), qinglong.ql_grant('regress_h_runtime', 'runtime'),
       qinglong.ql_grant('regress_h_monitor', 'monitor') \g /dev/null

-- A function that a planted object runs. It raises, which nothing here catches and survives.
CREATE FUNCTION evil.trap() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;

-- Every operator of the catalogue with the argument types that the functions use.
DO $$
DECLARE
    o record;
BEGIN
    FOR o IN
        SELECT DISTINCT p.oprname, p.oprleft::regtype AS l, p.oprright::regtype AS r, p.oprresult::regtype AS result
          FROM pg_catalog.pg_operator p
         WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprresult <> 0
           AND (p.oprleft = 0 OR p.oprleft = ANY ('{text,name,integer,bigint,boolean,jsonb,uuid,oid,bpchar,double precision,interval,timestamptz,numeric,tid,text[],int8multirange,"\"char\"",regclass,smallint}'::regtype[]))
           AND p.oprright = ANY ('{text,name,integer,bigint,boolean,jsonb,uuid,oid,bpchar,double precision,interval,timestamptz,numeric,tid,text[],int8multirange,"\"char\"",regclass,smallint}'::regtype[])
    LOOP
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
                       'op_' || md5(o::text), concat_ws(', ', CASE WHEN o.l <> 0 THEN o.l::text END, o.r), o.result,
                       'BEGIN PERFORM evil.trap(); RETURN NULL; END');
        EXECUTE format('CREATE OPERATOR evil.%s (%s RIGHTARG = %s, FUNCTION = evil.%I)', o.oprname,
                       CASE WHEN o.l <> 0 THEN format('LEFTARG = %s,', o.l) END, o.r, 'op_' || md5(o::text));
    END LOOP;
END
$$;
-- Every function of the catalogue that can be written in PL/pgSQL.
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT DISTINCT ON (p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
               p.proname, p.oid, p.proretset, pg_catalog.pg_get_function_result(p.oid) AS result,
               pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments
          FROM pg_catalog.pg_proc p
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
           AND p.prorettype <> 'internal'::regtype
           AND pg_catalog.pg_get_function_arguments(p.oid) !~ 'any|OUT|internal|cstring|pg_ddl_command|unknown|void'
           AND pg_catalog.pg_get_function_result(p.oid) !~ 'any|record|trigger|handler|internal|cstring'
    LOOP
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.arguments, f.result,
                       'BEGIN PERFORM evil.trap(); END');
    END LOOP;
END
$$;
-- Tables and types of the same names, and the extension's own functions.
CREATE TABLE evil.trigger_schedules (trap integer);
CREATE TABLE evil.identity (trap integer);
CREATE TABLE evil.pg_extension (trap integer);
CREATE TABLE evil.pg_roles (trap integer);
CREATE TABLE evil.pg_proc (trap integer);
CREATE TEMP TABLE trigger_schedules (trap integer);
CREATE TEMP TABLE identity (trap integer);
CREATE TEMP TABLE pg_extension (trap integer);
CREATE TEMP TABLE pg_class (trap integer);
CREATE DOMAIN evil.text AS pg_catalog.int4;
CREATE DOMAIN evil.int8 AS pg_catalog.text;
CREATE TYPE evil.wicked AS (trap integer);
CREATE FUNCTION evil.cast(evil.wicked) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.trap(); END $$;
CREATE CAST (evil.wicked AS pg_catalog.text) WITH FUNCTION evil.cast(evil.wicked) AS IMPLICIT;
CREATE FUNCTION evil.ql_claim(pg_catalog.text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.trap(); END $$;

-- works(ROLE, STATEMENT): runs it with that search_path; NULL, or the error.
CREATE FUNCTION public.works(role pg_catalog.text, statement pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    SET LOCAL search_path = evil, pg_temp, pg_catalog;
    EXECUTE statement;
    SET LOCAL search_path = pg_catalog;
    RESET ROLE;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evil TO PUBLIC;

-- The trap works: an operator, a function, a type.
SELECT is(public.works(current_user::pg_catalog.text, $$SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text$$), 'P0001 trapped', 'a planted operator is used by a plain query');
SELECT is(public.works(current_user::pg_catalog.text, $$SELECT clock_timestamp()$$), 'P0001 trapped', 'and a planted function');

SELECT is(public.works(COALESCE('regress_h_' || role, current_user), statement), NULL, format('%s: %s', COALESCE(role, 'owner'), statement)) FROM (VALUES
    (1, 'admin', $$SELECT qinglong.ql_project_put('p', 'a project')$$),
    (2, 'admin', $$SELECT qinglong.ql_task_publish('p', 't', 'a task', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "true"}}}')$$),
    (3, 'admin', $$SELECT qinglong.ql_schedule('a', '* * * * *', 'true', 'Europe/Berlin', 'fire_once', 'p')$$),
    (4, 'admin', $$SELECT qinglong.ql_schedule('a', '*/2 * * * *', 'false', 'UTC', 'skip', 'p')$$),
    (5, 'admin', $$SELECT qinglong.ql_schedule('b', '* * * * *', 'true')$$),
    (6, 'admin', $$SELECT qinglong.ql_unschedule('b')$$),
    (7, 'admin', $$SELECT qinglong.ql_release_quarantine('p', 'a')$$),
    (8, 'admin', $$SELECT qinglong.ql_hold('x')$$),
    (9, 'admin', $$SELECT qinglong.ql_release_hold()$$),
    (10, 'admin', $$SELECT * FROM qinglong.ql_check()$$),
    (11, 'admin', $$SELECT * FROM qinglong.ql_readiness()$$),
    (12, 'admin', $$SELECT * FROM qinglong.schedules$$),
    (13, 'runtime', $$SELECT * FROM qinglong.ql_claim('r', 30000, 16)$$),
    (14, 'runtime', $$SELECT qinglong.ql_next_occurrence('0 3 * * *', 'Europe/Berlin')$$),
    (15, 'runtime', $$SELECT * FROM qinglong.ql_occurrences('0 3 * * *', 'Europe/Berlin')$$),
    (16, 'runtime', $$SELECT * FROM qinglong.recovery_candidates()$$),
    (17, 'runtime', $$SELECT * FROM qinglong.ql_readiness()$$),
    (18, 'runtime', $$UPDATE qinglong.projects SET status = 'archived'$$),
    (19, 'monitor', $$SELECT * FROM qinglong.ql_check()$$),
    (20, 'monitor', $$SELECT * FROM qinglong.recovery_candidates()$$),
    (21, 'monitor', $$SELECT * FROM qinglong.schedules$$),
    (22, NULL, $$SELECT qinglong.ql_grant('regress_h_monitor', 'worker_ingress')$$),
    (23, NULL, $$SELECT qinglong.ql_revoke('regress_h_monitor', 'worker_ingress')$$),
    (24, 'runtime', $$UPDATE qinglong.projects SET status = 'active'$$),
    (25, 'admin', $$SELECT qinglong.ql_trigger_publish('default', 'pinned', 'b', 1, (SELECT content_digest FROM qinglong.task_definition_revisions WHERE task_id OPERATOR(pg_catalog.=) 'b'), '{"schema": "qinglong/interval@v1", "config": {"everyMs": 60000, "anchorAt": "2024-01-01T00:00:00Z", "misfirePolicy": "skip"}}')$$),
    (26, 'admin', $$SELECT qinglong.ql_schedule('c', '0 3 * * *', 'true')$$),
    (27, 'admin', $$SELECT * FROM qinglong.ql_explain_trigger('default', 'c')$$),
    (28, 'admin', $$SELECT * FROM qinglong.ql_explain_schedule('0 3 * * *', 'Europe/Berlin')$$),
    (29, 'admin', $$SELECT qinglong.ql_describe_schedule('0 3 * * *')$$),
    (30, 'admin', $$SELECT qinglong.ql_schedule('c', '0 3 * * *', 'false')$$),
    (31, NULL, $$SELECT qinglong._instant(0), qinglong._kind_runtime(), qinglong._kind_admin(), qinglong._kind_monitor(), qinglong._kind_worker_ingress(), qinglong._grant_target('table', 'runs')$$),
    (32, NULL, $$SELECT qinglong._is_occurrence(spec_json, 0), qinglong._cursor_occurrence(spec_json, 0) FROM qinglong.trigger_revisions$$),
    (33, NULL, $$SELECT qinglong._freeze_shipped()$$)) s (ord, role, statement) ORDER BY ord;
SELECT is(public.works(current_user::pg_catalog.text, 'DELETE FROM qinglong.trigger_revisions'), '55000 cannot delete from table "trigger_revisions"',
          'owner: an immutable row');
SELECT is((SELECT count(*) FROM qinglong.ql_check()), 0::bigint, 'what they wrote is whole');
SELECT is((SELECT ready FROM qinglong.ql_readiness()), true, 'and the database is ready');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE project_id = 'default';
COMMIT;

-- What needs transactions of its own: a claim, its decision and admissions, and the procedure.
SET ROLE regress_h_runtime;
SET search_path = evil, pg_temp, pg_catalog;
SELECT qinglong.ql_claim('r', max_claims => 1) AS claim \gset
SELECT qinglong.ql_decide(:'claim'::qinglong.schedule_claim) AS decision \gset
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT qinglong.ql_admit(:'claim'::qinglong.schedule_claim, :'decision'::qinglong.schedule_decision) AS admission \gset
SELECT a AS batch FROM qinglong.ql_admit_batch(ARRAY[:'claim'::qinglong.schedule_claim]) a \gset
COMMIT;
CALL qinglong.ql_schedule_once('r') \gset
RESET search_path;
RESET ROLE;
SELECT matches(:'admission'::text, 'advanced', 'runtime: ql_claim, ql_decide, ql_admit');
SELECT matches(:'batch'::text, 'raced', 'runtime: ql_admit_batch');
SELECT is((:'summary'::qinglong.cycle_summary).claimed, 2, 'runtime: CALL ql_schedule_once');

-- Not counted: _instant(), which the planner inlines, and _refuse_change(), which ends with an error. Both stand above.
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT is(ARRAY(SELECT p.proname::text FROM pg_proc p
                 WHERE p.pronamespace = 'qinglong'::regnamespace AND COALESCE(pg_stat_get_function_calls(p.oid), 0) = 0
                   AND p.proname NOT IN ('_instant', '_refuse_change') ORDER BY 1), '{}'::text[], 'every function was called');

SELECT * FROM finish();
DROP OWNED BY regress_h_admin, regress_h_runtime, regress_h_monitor;
DROP ROLE regress_h_admin, regress_h_runtime, regress_h_monitor;
