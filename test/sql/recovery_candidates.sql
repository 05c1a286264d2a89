-- recovery_candidates(): both branches, the pristine queued Attempt line by line, order and page size.
CREATE EXTENSION qinglong_sched;
\set VERBOSITY sqlstate

-- Ids are told by their last digits: run 1 is ...01, its attempt ...a1.
CREATE FUNCTION run_id(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT ('00000000-0000-7000-8000-0000000000' || lpad(n::text, 2, '0'))::uuid $$;
CREATE FUNCTION attempt_id(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT ('00000000-0000-7000-8000-00000000a0' || lpad(n::text, 2, '0'))::uuid $$;
CREATE FUNCTION ms() RETURNS bigint LANGUAGE sql AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
-- What an admission writes.
CREATE PROCEDURE admitted(n integer) LANGUAGE sql AS $$
    INSERT INTO qinglong.runs (id, project_id, task_id, task_revision, trigger_id, trigger_type, execution_origin,
                               execution_owner, scheduled_for_ms, status, version, event_sequence, idempotency_key,
                               created_at_ms, queued_at_ms)
    VALUES (run_id(n), 'default', 't', 'r', 't', 'cron', 'scheduled_system', 'runtime', n, 'queued', 2, 2,
            'ql3:cron:v1:t:1:' || n, 1000 + n, 1000 + n);
    INSERT INTO qinglong.run_attempts (id, run_id, attempt, status, executor_type, created_at_ms)
    VALUES (attempt_id(n), run_id(n), 1, 'claimed', 'remote_worker', 1000 + n);
$$;
CREATE VIEW candidates AS
SELECT target_kind, right(target_id::text, 4) AS target, right(run_id::text, 2) AS run, target_status, created_at_ms
  FROM qinglong.recovery_candidates();

CALL admitted(1);
CALL admitted(2);
SELECT * FROM candidates;

-- Any drift in any field of the Attempt or the Run makes it one; put back, it is none again.
CREATE PROCEDURE drift(statement text) LANGUAGE plpgsql AS $$
DECLARE
    found text;
BEGIN
    BEGIN
        EXECUTE statement;
        SELECT string_agg(format('%s %s %s', target_kind, target, target_status), ', ') INTO found FROM candidates;
        RAISE EXCEPTION USING ERRCODE = 'R0001';
    EXCEPTION WHEN SQLSTATE 'R0001' THEN
        NULL;
    END;
    RAISE NOTICE '%', COALESCE(found, 'none');
END
$$;
\set VERBOSITY terse
\set fence 'worker_session_id = gen_random_uuid(), worker_generation = 1, lease_generation = 1, lease_version = 0, lease_token_digest = repeat(''a'', 64), offer_id = ''o'', worker_id = ''w'''
CALL drift($$UPDATE qinglong.run_attempts SET executor_type = 'local' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET worker_id = 'w' WHERE id = attempt_id(1)$$);
-- The remote fence is all or nothing: a whole one, without a lease expiry.
CALL drift($$UPDATE qinglong.run_attempts SET $$ || :'fence' || $$ WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET executor_handle = 'h' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET pid = 1 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET log_artifact_id = 'l' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET lease_token = 't' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET lease_expires_at_ms = 0 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET deadline_at_ms = 0 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET callback_token_hash = 'c' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET callback_sequence = 1 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET started_at_ms = 0 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET finished_at_ms = 0 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET exit_code = 0 WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET error_code = 'e' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET error_summary = 'e' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET status = 'starting' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET status = 'running' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET cancel_requested_at_ms = 1 WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET queued_at_ms = NULL WHERE id = run_id(1)$$);
-- A newer Attempt, whatever its state.
CALL drift($$INSERT INTO qinglong.run_attempts (id, run_id, attempt, status, executor_type, created_at_ms) VALUES (attempt_id(50), run_id(1), 2, 'claimed', 'remote_worker', 5000)$$);
CALL drift($$INSERT INTO qinglong.run_attempts (id, run_id, attempt, status, executor_type, created_at_ms) VALUES (attempt_id(50), run_id(1), 2, 'lost', 'remote_worker', 5000)$$);
-- No Run at all.
CALL drift($$DELETE FROM qinglong.runs WHERE id = run_id(1)$$);
-- Not tested: the step, the priority, how it came to be.
CALL drift($$UPDATE qinglong.run_attempts SET step_run_id = gen_random_uuid() WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET priority = 9, task_name = 'x', trigger_type = 'manual', idempotency_key = NULL WHERE id = run_id(1)$$);

-- Each status of the Run with its untouched Attempt; where the Run itself is a candidate too, both are there.
CALL drift($$UPDATE qinglong.runs SET status = 'created' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'dispatching' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'running' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'waiting_approval' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'retry_wait' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'lost' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'succeeded' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'failed' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'cancelled' WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'timed_out' WHERE id = run_id(1)$$);
-- Finished Attempts never are.
CALL drift($$UPDATE qinglong.run_attempts SET status = 'lost', worker_id = 'w' WHERE id = attempt_id(1)$$);
CALL drift($$UPDATE qinglong.run_attempts SET status = 'succeeded', worker_id = 'w' WHERE id = attempt_id(1)$$);

-- A live lease protects the Attempt, and the active Run with it; expired to the millisecond does not.
\set working 'UPDATE qinglong.runs SET status = ''running'' WHERE id = run_id(1); UPDATE qinglong.run_attempts SET status = ''running'', '
CALL drift(:'working' || :'fence' || $$, lease_expires_at_ms = ms() + 60000 WHERE id = attempt_id(1)$$);
CALL drift(:'working' || :'fence' || $$, lease_expires_at_ms = ms() WHERE id = attempt_id(1)$$);
CALL drift(:'working' || :'fence' || $$, lease_expires_at_ms = NULL WHERE id = attempt_id(1)$$);
-- Runs of two trigger types have recoveries of their own; their Attempts are still looked at.
CALL drift($$UPDATE qinglong.runs SET status = 'created', trigger_type = 'plugin_package_workflow', idempotency_key = NULL WHERE id = run_id(1)$$);
CALL drift($$UPDATE qinglong.runs SET status = 'created', trigger_type = 'copilot_failure_diagnosis', idempotency_key = NULL WHERE id = run_id(1)$$);
SELECT * FROM candidates;

-- Oldest first, then kind, then id; bounded; one observation.
CALL admitted(3);
CALL admitted(4);
UPDATE qinglong.runs SET status = 'created', created_at_ms = 5000 WHERE id IN (run_id(3), run_id(4));
UPDATE qinglong.run_attempts SET created_at_ms = 5000 WHERE id IN (attempt_id(3), attempt_id(4));
UPDATE qinglong.run_attempts SET worker_id = 'w' WHERE id = attempt_id(2);
SELECT * FROM candidates;
SELECT target_kind, right(target_id::text, 4) AS target FROM qinglong.recovery_candidates(3);
SELECT target_kind, right(target_id::text, 4) AS target FROM qinglong.recovery_candidates(page_size => 1);
SELECT count(*), count(DISTINCT observed_at_ms), bool_and(observed_at_ms BETWEEN ms() - 60000 AND ms())
  FROM qinglong.recovery_candidates(128);
\set VERBOSITY sqlstate
SELECT * FROM qinglong.recovery_candidates(0);
SELECT * FROM qinglong.recovery_candidates(129);
SELECT * FROM qinglong.recovery_candidates(NULL);

-- Runtime and monitor may ask, an admin and a worker may not.
CREATE ROLE regress_monitor;
CREATE ROLE regress_admin;
SELECT qinglong.ql_grant('regress_monitor', 'monitor'), qinglong.ql_grant('regress_admin', 'admin'),
       qinglong.ql_grant('regress_admin', 'worker_ingress');
SET ROLE regress_monitor;
SELECT count(*) FROM qinglong.recovery_candidates();
SET ROLE regress_admin;
SELECT count(*) FROM qinglong.recovery_candidates();
RESET ROLE;
DROP OWNED BY regress_monitor, regress_admin;
DROP ROLE regress_monitor, regress_admin;
