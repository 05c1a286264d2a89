-- Who may do what, by trying: every verb on every table and every function, for each kind of role, for a role with all
-- kinds, for a stranger, and for a stranger who was let into the schema (that is: what PUBLIC has).
\set QUIET 1
\pset format unaligned
\pset tuples_only true
\pset pager off
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
CREATE EXTENSION pgtap;
CREATE EXTENSION qinglong_sched;
BEGIN;
SELECT no_plan();

CREATE ROLE regress_m_runtime;
CREATE ROLE regress_m_admin;
CREATE ROLE regress_m_worker_ingress;
CREATE ROLE regress_m_monitor;
CREATE ROLE regress_m_stranger;
CREATE ROLE regress_m_guest;
CREATE ROLE regress_m_member;
SELECT qinglong.ql_grant(('regress_m_' || kind)::regrole, kind)
  FROM unnest(ARRAY['runtime', 'admin', 'worker_ingress', 'monitor']) kind \g /dev/null
GRANT USAGE ON SCHEMA qinglong TO regress_m_guest;
GRANT regress_m_monitor TO regress_m_member;
-- Rows, so that a table is not just empty.
SELECT qinglong.ql_schedule('t', '0 3 * * *', 'echo secret-command') \g /dev/null
-- Where any of them may create a table, to try REFERENCES.
CREATE SCHEMA yard;
GRANT ALL ON SCHEMA yard TO PUBLIC;

-- attempt(ROLE, STATEMENT): 'allowed' or 'refused'; whatever it did is rolled back.
CREATE FUNCTION attempt(role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    BEGIN
        EXECUTE format('SET LOCAL ROLE %I', role);
        EXECUTE statement;
        RAISE EXCEPTION USING ERRCODE = 'R0001';
    EXCEPTION
        WHEN SQLSTATE 'R0001' THEN answer := 'allowed';
        WHEN insufficient_privilege THEN
            -- Refused at the door; what a function's body meets is another matter.
            answer := CASE WHEN SQLERRM ~ '^permission denied for (schema|table|view|function|procedure|sequence|type)'
                           THEN 'refused' ELSE 'allowed' END;
        WHEN syntax_error OR undefined_function OR undefined_table OR undefined_column THEN answer := 'broken: ' || SQLERRM;
        WHEN OTHERS THEN answer := 'allowed';
    END;
    RETURN answer;
END
$$;

CREATE TEMP TABLE verb AS
SELECT verb, template, ord FROM (VALUES
    (1, 'S', 'SELECT count(*) FROM qinglong.%1$I'),
    (2, 'I', 'INSERT INTO qinglong.%1$I DEFAULT VALUES'),
    (3, 'U', 'UPDATE qinglong.%1$I SET %2$I = NULL WHERE false'),
    (4, 'D', 'DELETE FROM qinglong.%1$I WHERE false'),
    (5, 'T', 'TRUNCATE qinglong.%1$I'),
    (6, 't', 'CREATE TRIGGER mine BEFORE INSERT ON qinglong.%1$I EXECUTE FUNCTION suppress_redundant_updates_trigger()'),
    (7, 'R', 'CREATE TABLE yard.mine (a text REFERENCES qinglong.%1$I)')) v (ord, verb, template);

CREATE TEMP TABLE relation AS
SELECT c.relname::text AS name, c.relkind, (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = 1) AS column
  FROM pg_class c WHERE c.relnamespace = 'qinglong'::regnamespace AND c.relkind IN ('r', 'v');

-- What is expected: the verbs by role, in the order above; what is not named has none.
CREATE TEMP TABLE expected (role text, name text, verbs text);
INSERT INTO expected
SELECT role, string_to_table(names, ' '), verbs FROM (VALUES
    ('runtime', 'projects runs run_attempts zone_data', 'SIU'),
    ('runtime', 'run_events', 'SI'),
    ('runtime', 'trigger_schedules', 'SU'),
    ('runtime', 'task_definitions task_definition_revisions task_execution_revisions triggers trigger_revisions identity schedules', 'S'),
    ('admin', 'task_definitions triggers trigger_schedules identity', 'SIU'),
    ('admin', 'task_definition_revisions task_execution_revisions trigger_revisions', 'SI'),
    ('admin', 'projects schedules', 'S'),
    ('worker_ingress', 'run_attempts identity', 'S'),
    ('monitor', 'schedules identity', 'S'),
    ('member', 'schedules identity', 'S')) e (role, names, verbs);

CREATE TEMP TABLE actor AS
SELECT unnest(ARRAY['runtime', 'admin', 'worker_ingress', 'monitor', 'member', 'guest', 'stranger']) AS role;

SELECT is((SELECT COALESCE(string_agg(v.verb, '' ORDER BY v.ord), '')
             FROM verb v
            -- A view takes no TRUNCATE, FK or row trigger whoever asks.
            WHERE (r.relkind = 'r' OR v.verb IN ('S', 'I', 'U', 'D'))
              -- The view is not updatable: an error for everybody, before any privilege is looked at.
              AND NOT (r.relkind = 'v' AND v.verb <> 'S')
              AND attempt('regress_m_' || a.role, format(v.template, r.name, r.column)) = 'allowed'),
          COALESCE((SELECT e.verbs FROM expected e WHERE e.role = a.role AND e.name = r.name), ''),
          format('%s on %s', a.role, r.name))
  FROM actor a, relation r ORDER BY a.role, r.name;

-- Columns one by one are no way around.
SELECT is(attempt('regress_m_' || a.role, format('SELECT %I FROM qinglong.%I', c.attname, r.name)), 'refused',
          format('%s reads no column %s.%s', a.role, r.name, c.attname))
  FROM (VALUES ('monitor', 'trigger_revisions', 'spec_json'), ('monitor', 'task_definition_revisions', 'spec_json'),
               ('monitor', 'task_execution_revisions', 'plan_json'), ('worker_ingress', 'trigger_schedules', 'claim_token'),
               ('worker_ingress', 'runs', 'id'), ('admin', 'runs', 'id'), ('admin', 'run_events', 'payload')) a (role, name, attname),
       relation r, LATERAL (SELECT a.attname) c
 WHERE r.name = a.name;

-- Functions: called with NULLs, so that nothing happens where it is allowed. (OFFSET 0: as constants they would be
-- folded for strict functions, without a look at any privilege.)
CREATE TEMP TABLE function AS
SELECT p.proname::text AS name,
       CASE p.prokind
       WHEN 'p' THEN format('CALL qinglong.%I(%s)', p.proname, string_agg('NULL::' || t.type, ', ' ORDER BY t.ord))
       ELSE format('SELECT qinglong.%I(%s) FROM (SELECT %s OFFSET 0) x', p.proname, string_agg('x.a' || t.ord, ', ' ORDER BY t.ord),
                   string_agg('NULL::' || t.type || ' AS a' || t.ord, ', ' ORDER BY t.ord))
       END AS call
  FROM pg_proc p
  LEFT JOIN LATERAL (SELECT format_type(a.type, NULL) AS type, a.ord
                       FROM unnest(p.proargtypes) WITH ORDINALITY a (type, ord)) t ON true
 WHERE p.pronamespace = 'qinglong'::regnamespace AND p.prorettype <> 'trigger'::regtype
 GROUP BY p.oid, p.proname, p.prokind;

CREATE TEMP TABLE expected_functions AS
SELECT role, string_to_table(names, ' ') AS name FROM (VALUES
    ('runtime', 'ql_claim ql_decide ql_admit ql_admit_batch ql_schedule_once ql_explain_trigger recovery_candidates'),
    ('admin', 'ql_project_put ql_task_publish ql_trigger_publish ql_schedule ql_unschedule ql_release_quarantine ql_hold ql_release_hold ql_check ql_explain_trigger'),
    ('monitor', 'ql_check ql_explain_trigger recovery_candidates'),
    ('member', 'ql_check ql_explain_trigger recovery_candidates')) e (role, names)
UNION
SELECT role, string_to_table('ql_readiness ql_next_occurrence ql_occurrences ql_explain_schedule ql_describe_schedule', ' ') FROM actor WHERE role NOT IN ('guest', 'stranger');

SELECT is(attempt('regress_m_' || a.role, f.call),
          CASE WHEN EXISTS (SELECT FROM expected_functions e WHERE e.role = a.role AND e.name = f.name)
               THEN 'allowed' ELSE 'refused' END,
          format('%s calls %s', a.role, f.name))
  FROM actor a, function f WHERE f.name !~ '^_' ORDER BY a.role, f.name;

-- Internal functions: guests and strangers none; each kind only what its public functions need.
SELECT is((SELECT count(*) FROM function f WHERE attempt('regress_m_' || a.role, f.call) = 'allowed'), 0::bigint,
          format('%s calls no function at all', a.role))
  FROM actor a WHERE a.role IN ('guest', 'stranger');
SELECT is_empty(format($$SELECT name FROM function f WHERE name ~ '^_'
                            AND attempt('regress_m_%1$s', call) = 'allowed'
                            AND NOT EXISTS (SELECT FROM qinglong._grants() g
                                             WHERE g.kind = '%1$s' AND g.class = 'function' AND g.object = f.name)$$, a.role),
                format('%s calls no other internal function', a.role))
  FROM actor a WHERE a.role IN ('runtime', 'admin', 'worker_ingress', 'monitor');

-- Types; nobody creates anything in the schema.
SELECT is(attempt('regress_m_' || a.role, format('CREATE TABLE yard.mine (a qinglong.%I)', t.name)),
          CASE WHEN a.role = 'runtime' THEN 'allowed' ELSE 'refused' END, format('%s uses type %s', a.role, t.name))
  FROM actor a, unnest(ARRAY['schedule_claim', 'schedule_decision', 'schedule_admission', 'cycle_summary']) t (name);
SELECT is(attempt('regress_m_' || a.role, 'CREATE TABLE qinglong.mine ()'), 'refused', a.role || ' creates nothing in the schema')
  FROM actor a;

-- Each kind at its own work, from end to end.
CREATE FUNCTION works(role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE statement;
    RESET ROLE;
    RETURN 'works';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
SELECT is(works('regress_m_' || role, statement), 'works', role || ': ' || statement) FROM (VALUES
    (1, 'admin', $$SELECT qinglong.ql_project_put('p')$$),
    (2, 'admin', $$SELECT qinglong.ql_schedule('a', '* * * * *', 'true', project_id => 'p')$$),
    (3, 'admin', $$SELECT qinglong.ql_schedule('a', '*/2 * * * *', 'true', project_id => 'p')$$),
    (4, 'admin', $$SELECT qinglong.ql_schedule('fresh-project', '* * * * *', 'true', project_id => 'made-by-schedule')$$),
    (5, 'admin', $$SELECT qinglong.ql_unschedule('a', 'p')$$),
    (6, 'admin', $$SELECT qinglong.ql_project_put('p', status => 'archived')$$),
    (7, 'admin', $$SELECT qinglong.ql_release_quarantine('p', 'a')$$),
    (8, 'admin', $$SELECT qinglong.ql_hold('x')$$),
    (9, 'admin', $$SELECT qinglong.ql_release_hold()$$),
    (10, 'admin', $$SELECT * FROM qinglong.ql_check()$$),
    (11, 'admin', $$SELECT * FROM qinglong.schedules$$),
    (12, 'admin', $$SELECT * FROM qinglong.ql_readiness()$$),
    (13, 'runtime', $$SELECT * FROM qinglong.ql_claim('r', max_claims => 16)$$),
    (14, 'runtime', $$SELECT * FROM qinglong.schedules$$),
    (15, 'runtime', $$SELECT * FROM qinglong.recovery_candidates()$$),
    (16, 'runtime', $$SELECT * FROM qinglong.ql_readiness()$$),
    (17, 'runtime', $$UPDATE qinglong.projects SET status = 'archived' WHERE id = 'default'$$),
    (18, 'monitor', $$SELECT * FROM qinglong.schedules$$),
    (19, 'monitor', $$SELECT * FROM qinglong.ql_check()$$),
    (20, 'monitor', $$SELECT * FROM qinglong.recovery_candidates()$$),
    (21, 'monitor', $$SELECT * FROM qinglong.ql_readiness()$$),
    (22, 'worker_ingress', $$SELECT * FROM qinglong.run_attempts$$),
    (23, 'worker_ingress', $$SELECT * FROM qinglong.ql_readiness()$$)) s (ord, role, statement) ORDER BY ord;

SELECT is((SELECT ready FROM qinglong.ql_readiness()), true, 'and all this is as shipped');

SELECT * FROM finish();
ROLLBACK;
