-- What is promised by name: tables, columns, types, functions with their arguments, defaults and results, comments.
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

SELECT is(n.nspname::text, 'qinglong', 'the extension lives in schema qinglong')
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'qinglong_sched';
SELECT ok(NOT extrelocatable, 'it is not relocatable') FROM pg_extension WHERE extname = 'qinglong_sched';
SELECT is((superuser, trusted), (true, false), 'only a superuser may create it')
  FROM pg_available_extension_versions v JOIN pg_extension e ON e.extname = v.name AND e.extversion = v.version
 WHERE v.name = 'qinglong_sched';

-- Columns in order; "!" marks NOT NULL.
CREATE TEMP TABLE shape (relation text, columns text);
INSERT INTO shape VALUES
('projects', 'id varchar(128)!, name varchar(255)!, slug varchar(128)!, status text!, version integer!, created_at_ms bigint!, updated_at_ms bigint!'),
('task_definitions', 'project_id varchar(128)!, task_id varchar(128)!, current_revision integer!, created_at_ms bigint!, updated_at_ms bigint!'),
('task_definition_revisions', 'project_id varchar(128)!, task_id varchar(128)!, revision integer!, mutation_id uuid!, name varchar(255)!, description varchar(4096), kind text!, spec_json jsonb!, labels_json jsonb!, enabled boolean!, content_digest character(64)!, created_at_ms bigint!'),
('task_execution_revisions', 'project_id varchar(128)!, task_id varchar(128)!, source_revision integer!, executor_type varchar(32)!, task_revision varchar(96)!, source_content_digest character(64)!, plan_schema varchar(64)!, plan_json jsonb!, content_digest character(64)!, created_at_ms bigint!'),
('triggers', 'project_id varchar(128)!, trigger_id varchar(128)!, task_id varchar(128)!, current_revision integer!, created_at_ms bigint!, updated_at_ms bigint!'),
('trigger_revisions', 'project_id varchar(128)!, trigger_id varchar(128)!, revision integer!, mutation_id uuid!, task_id varchar(128)!, task_revision integer!, task_content_digest character(64)!, spec_json jsonb!, enabled boolean!, content_digest character(64)!, created_at_ms bigint!'),
('trigger_schedules', 'project_id varchar(128)!, trigger_id varchar(128)!, trigger_revision integer!, next_fire_at_ms bigint, last_scheduled_at_ms bigint, state_version bigint!, claim_owner varchar(128), claim_token uuid, claim_version bigint!, claim_expires_at_ms bigint, updated_at_ms bigint!, admitted_total bigint!, skipped_total bigint!, coalesced_total bigint!'),
('runs', 'id uuid!, project_id varchar(128)!, task_id varchar(255)!, task_revision varchar(128)!, task_name varchar(255), task_snapshot_ref varchar(512), legacy_cron_id integer, parent_run_id uuid, retry_of_run_id uuid, trigger_id varchar(128), trigger_type varchar(64)!, execution_origin varchar(64)!, execution_owner varchar(16)!, triggered_by varchar(255), request_id varchar(128), scheduled_for_ms bigint, status text!, version integer!, event_sequence integer!, priority integer!, idempotency_key varchar(255), input_ref varchar(512), output_ref varchar(512), created_at_ms bigint!, queued_at_ms bigint, started_at_ms bigint, finished_at_ms bigint, cancel_requested_at_ms bigint, cancel_reason text, error_code varchar(128), error_summary varchar(1024)'),
('run_attempts', 'id uuid!, run_id uuid!, step_run_id uuid, attempt integer!, status text!, executor_type varchar(64)!, worker_id varchar(128), worker_session_id uuid, worker_generation integer, executor_handle varchar(2048), pid integer, log_artifact_id varchar(36), lease_token varchar(128), lease_token_digest character(64), lease_generation integer, lease_version integer, lease_expires_at_ms bigint, offer_id varchar(128), deadline_at_ms bigint, callback_token_hash varchar(128), callback_sequence integer!, created_at_ms bigint!, started_at_ms bigint, finished_at_ms bigint, exit_code integer, error_code varchar(128), error_summary varchar(1024)'),
('run_events', 'id uuid!, run_id uuid!, sequence integer!, type varchar(128)!, dedupe_key varchar(255), actor_type text!, actor_id varchar(255), attempt_id uuid, step_run_id uuid, payload jsonb!, created_at_ms bigint!'),
('schedule_claim', 'project_id text, trigger_id text, trigger_revision integer, trigger_content_digest text, trigger_updated_at_ms bigint, task_id text, task_revision integer, task_content_digest text, expression text, timezone text, misfire_policy text, state_version bigint, next_fire_at_ms bigint, claim_owner text, claim_token uuid, claim_version bigint, claim_acquired_at_ms bigint, claim_expires_at_ms bigint, spec jsonb'),
('schedule_decision', 'disposition text, observed_at_ms bigint, next_fire_at_ms bigint, scheduled_for_ms bigint'),
('schedule_admission', 'project_id text, trigger_id text, status text, disposition text, scheduled_for_ms bigint, next_fire_at_ms bigint, run_id uuid, attempt_id uuid, sqlstate text, message text'),
('cycle_summary', 'first_claim_acquired_at_ms bigint, last_claim_acquired_at_ms bigint, claimed integer, initialized integer, skipped integer, admitted integer, raced integer, quarantined integer, saturated boolean'),
('schedules', 'project_id varchar(128), trigger_id varchar(128), state text, expression text, timezone text, misfire_policy text, next_fire_at timestamptz, last_scheduled_at timestamptz, claimed_by varchar(128), claim_expires_at timestamptz, fault text, admitted_total bigint, skipped_total bigint, coalesced_total bigint');
SELECT is((SELECT string_agg(a.attname || ' '
                             || replace(replace(format_type(a.atttypid, a.atttypmod), 'character varying', 'varchar'),
                                        'timestamp with time zone', 'timestamptz')
                             || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ', ' ORDER BY a.attnum)
             FROM pg_attribute a
            WHERE a.attrelid = ('qinglong.' || s.relation)::regclass AND a.attnum > 0 AND NOT a.attisdropped),
          s.columns, 'columns of ' || s.relation)
  FROM shape s WHERE relation <> 'trigger_schedules';
-- The schedulers' own table may carry further columns.
SELECT is((SELECT string_agg(a.attname || ' ' || replace(format_type(a.atttypid, a.atttypmod), 'character varying', 'varchar')
                             || CASE WHEN a.attnotnull THEN '!' ELSE '' END, ', ' ORDER BY a.attnum)
             FROM pg_attribute a
            WHERE a.attrelid = 'qinglong.trigger_schedules'::regclass AND a.attnum > 0
              AND a.attname = ANY (SELECT split_part(c, ' ', 1) FROM string_to_table(s.columns, ', ') c)),
          s.columns, 'columns of trigger_schedules')
  FROM shape s WHERE relation = 'trigger_schedules';

-- Functions: arguments with defaults, result, volatility, parallel safety, security definer.
CREATE TEMP TABLE functions (name text, arguments text, result text, volatile "char", parallel "char", definer boolean);
INSERT INTO functions VALUES
('ql_project_put', 'project_id text, name text DEFAULT NULL::text, status text DEFAULT ''active''::text', 'qinglong.projects', 'v', 'u', true),
('ql_task_publish', 'project_id text, task_id text, name text, spec jsonb, expected_revision integer DEFAULT NULL::integer, mutation_id uuid DEFAULT NULL::uuid, description text DEFAULT NULL::text, kind text DEFAULT ''command''::text, labels jsonb DEFAULT ''{}''::jsonb, enabled boolean DEFAULT true, OUT status text, OUT revision integer, OUT content_digest text', 'record', 'v', 'u', false),
('ql_trigger_publish', 'project_id text, trigger_id text, task_id text, task_revision integer, task_content_digest text, spec jsonb, expected_revision integer DEFAULT NULL::integer, mutation_id uuid DEFAULT NULL::uuid, enabled boolean DEFAULT true, OUT status text, OUT revision integer, OUT content_digest text', 'record', 'v', 'u', false),
('ql_schedule', 'trigger_id text, expression text, command text, timezone text DEFAULT ''UTC''::text, misfire_policy text DEFAULT ''skip''::text, project_id text DEFAULT ''default''::text, OUT status text, OUT trigger_revision integer, OUT next_fire_at timestamp with time zone', 'record', 'v', 'u', false),
('ql_unschedule', 'trigger_id text, project_id text DEFAULT ''default''::text', 'boolean', 'v', 'u', false),
('ql_claim', 'owner_id text, lease_ms integer DEFAULT NULL::integer, max_claims integer DEFAULT 1, claim_token uuid DEFAULT NULL::uuid', 'SETOF qinglong.schedule_claim', 'v', 'u', false),
('ql_decide', 'claim qinglong.schedule_claim', 'qinglong.schedule_decision', 's', 's', false),
('ql_admit', 'claim qinglong.schedule_claim, decision qinglong.schedule_decision DEFAULT NULL::qinglong.schedule_decision', 'qinglong.schedule_admission', 'v', 'u', false),
('ql_admit_batch', 'claims qinglong.schedule_claim[]', 'SETOF qinglong.schedule_admission', 'v', 'u', false),
('ql_schedule_once', 'IN owner_id text, INOUT summary qinglong.cycle_summary DEFAULT NULL::qinglong.cycle_summary, IN lease_ms integer DEFAULT NULL::integer, IN max_claims integer DEFAULT NULL::integer', NULL, 'v', 'u', false),
('ql_next_occurrence', 'expression text, timezone text, after timestamp with time zone DEFAULT now()', 'timestamp with time zone', 's', 's', false),
('ql_explain_schedule', 'expression text, timezone text, after timestamp with time zone DEFAULT now(), count integer DEFAULT 10', 'TABLE(occurrence timestamp with time zone, local_time text, utc_offset interval, note text)', 's', 's', false),
('ql_describe_schedule', 'expression text', 'text', 'i', 's', false),
('ql_explain_trigger', 'project_id text, trigger_id text, count integer DEFAULT 10', 'TABLE(occurrence timestamp with time zone, local_time text, utc_offset interval, note text)', 'v', 'u', true),
('ql_occurrences', 'expression text, timezone text, after timestamp with time zone DEFAULT now(), count integer DEFAULT 5', 'SETOF timestamp with time zone', 's', 's', false),
('ql_grant', 'role regrole, kind text', 'void', 'v', 'u', false),
('ql_revoke', 'role regrole, kind text', 'void', 'v', 'u', false),
('ql_hold', 'reason text', 'void', 'v', 'u', false),
('ql_release_hold', '', 'boolean', 'v', 'u', false),
('ql_release_quarantine', 'project_id text, trigger_id text', 'boolean', 'v', 'u', false),
('ql_readiness', 'OUT ready boolean, OUT code text, OUT findings text[]', 'record', 's', 'u', false),
('ql_check', 'OUT project_id text, OUT trigger_id text, OUT code text, OUT detail text', 'SETOF record', 's', 'u', true),
('recovery_candidates', 'page_size integer DEFAULT 16, OUT target_kind text, OUT target_id uuid, OUT run_id uuid, OUT target_status text, OUT created_at_ms bigint, OUT observed_at_ms bigint', 'SETOF record', 'v', 'u', true);
SELECT is((SELECT array_agg((pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.provolatile, p.proparallel, p.prosecdef)::text)
             FROM pg_proc p WHERE p.pronamespace = 'qinglong'::regnamespace AND p.proname = f.name),
          ARRAY[(f.arguments, f.result, f.volatile, f.parallel, f.definer)::text], 'function ' || f.name)
  FROM functions f;
SELECT set_eq($$SELECT proname::text FROM pg_proc WHERE pronamespace = 'qinglong'::regnamespace AND proname !~ '^_'$$,
              'SELECT name FROM functions', 'no function but these is public');

-- Few functions run with the owner's rights; each has a fixed path, without temporary objects first.
SELECT set_eq($$SELECT proname::text FROM pg_proc WHERE pronamespace = 'qinglong'::regnamespace AND prosecdef$$,
              ARRAY['ql_project_put', '_begin_publication', 'ql_check', 'recovery_candidates', 'ql_explain_trigger'],
              'the security definer functions are these');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'qinglong'::regnamespace
                     AND (prosecdef OR prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c'))
                     AND proname <> '_instant'
                     AND NOT COALESCE(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false)$$,
                'every one of them, and every function in SQL or PL/pgSQL, has a fixed search_path');

-- Everything is a member of the extension, has a comment, and gives nothing to PUBLIC.
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'qinglong'::regnamespace
                     AND obj_description(p.oid, 'pg_proc') IS NULL$$, 'every function has a comment');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c WHERE c.relnamespace = 'qinglong'::regnamespace
                     AND c.relkind IN ('r', 'v') AND obj_description(c.oid, 'pg_class') IS NULL$$,
                'every table and view has a comment');
SELECT is_empty($$SELECT t.oid::regtype FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
                   WHERE t.typnamespace = 'qinglong'::regnamespace AND obj_description(t.oid, 'pg_type') IS NULL$$,
                'every type has a comment');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'qinglong'::regnamespace
                     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')$$,
                'every function belongs to the extension');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p, aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) a
                   WHERE p.pronamespace = 'qinglong'::regnamespace AND a.grantee = 0$$, 'PUBLIC may execute nothing');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c, aclexplode(c.relacl) a
                   WHERE c.relnamespace = 'qinglong'::regnamespace AND a.grantee = 0$$, 'PUBLIC may touch no table');
SELECT is_empty($$SELECT t.oid::regtype FROM pg_type t, aclexplode(COALESCE(t.typacl, acldefault('T', t.typowner))) a
                   WHERE t.typnamespace = 'qinglong'::regnamespace AND t.typelem = 0 AND a.grantee = 0$$,
                'PUBLIC may use no type');
SELECT is_empty($$SELECT 1 FROM pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = 'qinglong' AND a.grantee = 0$$,
                'PUBLIC may not look into the schema');

-- The table of rights names only what exists, and every public function is in somebody's reach or the owner's alone.
SELECT is_empty($$SELECT DISTINCT object FROM qinglong._grants() g WHERE class = 'function'
                   AND NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'qinglong'::regnamespace AND p.proname = g.object)$$,
                'every function that a kind may execute exists');
SELECT is_empty($$SELECT DISTINCT object FROM qinglong._grants() g WHERE class = 'table' AND to_regclass('qinglong.' || object) IS NULL$$,
                'every table that a kind may use exists');
SELECT set_eq($$SELECT proname::text FROM pg_proc p WHERE pronamespace = 'qinglong'::regnamespace AND proname !~ '^_'
                EXCEPT SELECT object FROM qinglong._grants() WHERE class = 'function'$$,
              ARRAY['ql_grant', 'ql_revoke'], 'only these two public functions are the owner''s alone');

-- All state is dumped; the install script leaves no row.
SELECT set_eq($$SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'qinglong_sched'$$,
              $$SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND relkind = 'r'$$,
              'every table is dumped');
SELECT is((SELECT count(*) FROM qinglong.identity) + (SELECT count(*) FROM qinglong.projects), 0::bigint, 'no row is shipped');

-- Immutable tables and the sweeps hold also for replication sessions.
SELECT is_empty($$SELECT tgrelid::regclass, tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                   WHERE c.relnamespace = 'qinglong'::regnamespace AND NOT tgisinternal AND tgenabled <> 'A'$$,
                'every trigger is ENABLE ALWAYS');
SELECT set_eq($$SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'immutable_table'$$,
              ARRAY['qinglong.task_definition_revisions', 'qinglong.task_execution_revisions', 'qinglong.trigger_revisions',
                    'qinglong.run_events'], 'these tables are immutable');

-- Settings, with their defaults.
SELECT results_eq($$SELECT name, setting, unit, min_val, max_val, context FROM pg_settings WHERE name LIKE 'qinglong\_sched.%'
                       AND name NOT IN ('qinglong_sched.enabled', 'qinglong_sched.databases', 'qinglong_sched.admission_isolation') ORDER BY name COLLATE "C"$$,
$$VALUES ('qinglong_sched.cadence', '1000', 'ms', '250', '3600000', 'sighup'),
         ('qinglong_sched.claim_lease', '30000', 'ms', '1000', '60000', 'sighup'),
         ('qinglong_sched.max_claims_per_cycle', '16', NULL, '1', '256', 'sighup'),
         ('qinglong_sched.max_databases', '64', NULL, '1', '1024', 'postmaster'),
         ('qinglong_sched.misfire_grace', '30000', 'ms', '0', '300000', 'sighup'),
         ('qinglong_sched.stop_timeout', '10000', 'ms', '100', '30000', 'sighup'),
         ('qinglong_sched.workers_per_database', '1', NULL, '1', '16', 'sighup')$$, 'numeric settings');
SELECT results_eq($$SELECT name, boot_val, context FROM pg_settings WHERE name IN ('qinglong_sched.enabled', 'qinglong_sched.databases', 'qinglong_sched.admission_isolation') ORDER BY name COLLATE "C"$$,
$$VALUES ('qinglong_sched.admission_isolation', 'serializable', 'sighup'), ('qinglong_sched.databases', '', 'sighup'),
         ('qinglong_sched.enabled', 'on', 'sighup')$$, 'other settings');

SELECT * FROM finish();
ROLLBACK;
