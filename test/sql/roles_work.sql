-- Each kind does its work in sessions of its own, from publication to an admitted Run, with a hostile search_path.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never
CREATE ROLE regress_admin LOGIN;
CREATE ROLE regress_runtime LOGIN;
CREATE ROLE regress_monitor LOGIN;
CREATE ROLE regress_stranger LOGIN;
SELECT qinglong.ql_grant('regress_admin', 'admin'), qinglong.ql_grant('regress_runtime', 'runtime'),
       qinglong.ql_grant('regress_monitor', 'monitor');
-- Planted operators and functions that would be found first.
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE FUNCTION evil.trap(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE FUNCTION evil.trap(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.trap);
CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.trap);
CREATE OPERATOR evil.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.trap);
CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.trap);
CREATE FUNCTION evil.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_object';
CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;

SET SESSION AUTHORIZATION regress_admin;
SET search_path = evil, pg_catalog;
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '* * * * *', 'echo 1', misfire_policy => 'fire_once');
SELECT status, trigger_revision FROM qinglong.ql_schedule('u', '* * * * *', 'echo 1', misfire_policy => 'fire_once', project_id => 'other');
SELECT count(*) FROM qinglong.ql_claim('r');
RESET SESSION AUTHORIZATION;
RESET search_path;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200000;

SET SESSION AUTHORIZATION regress_runtime;
SET search_path = evil, pg_catalog;
CALL qinglong.ql_schedule_once('replica', max_claims => 1) \gset
SELECT (:'summary'::qinglong.cycle_summary).admitted;
SELECT claim FROM qinglong.ql_claim('replica') claim \gset
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT project_id, trigger_id, status, scheduled_for_ms FROM qinglong.ql_admit(:'claim'::qinglong.schedule_claim);
COMMIT;
SELECT project_id, trigger_id, status FROM qinglong.runs ORDER BY 1;
SELECT status FROM qinglong.ql_schedule('t', '* * * * *', 'echo 2');
DELETE FROM qinglong.runs;
SELECT * FROM qinglong.ql_check();
RESET SESSION AUTHORIZATION;

SET SESSION AUTHORIZATION regress_monitor;
SET search_path = evil, pg_catalog;
SELECT trigger_id, state, admitted_total FROM qinglong.schedules ORDER BY trigger_id;
SELECT * FROM qinglong.ql_check();
SELECT * FROM qinglong.recovery_candidates();
SELECT * FROM qinglong.ql_readiness();
SELECT * FROM qinglong.runs;
RESET SESSION AUTHORIZATION;

SET SESSION AUTHORIZATION regress_stranger;
SELECT * FROM qinglong.schedules;
SELECT qinglong.ql_next_occurrence('* * * * *', 'UTC');
RESET SESSION AUTHORIZATION;

-- The audit of the state after all that, as owner.
RESET search_path;
SELECT count(*) FROM qinglong.ql_check();
DROP OWNED BY regress_admin, regress_runtime, regress_monitor, regress_stranger;
DROP ROLE regress_admin, regress_runtime, regress_monitor, regress_stranger;
