-- Whether a newer Attempt exists is asked once for each waiting Attempt. No admission writes here.
CREATE INDEX run_attempts_retry_idx ON qinglong.run_attempts (run_id, attempt) WHERE attempt > 1;

-- What a starting runtime must look at: Runs and Attempts that may have died with their worker.
--
-- Security definer: a monitor may see the candidates' ids and statuses, but not the Runs themselves.
-- Access paths are pinned: three ordered, bounded index reads. The third walks past every untouched queued Attempt,
-- with one look-up of its Run each; a plan chosen by estimates would sort or hash whole tables.
CREATE FUNCTION qinglong.recovery_candidates(page_size integer DEFAULT 16,
    OUT target_kind text, OUT target_id uuid, OUT run_id uuid, OUT target_status text, OUT created_at_ms bigint,
    OUT observed_at_ms bigint)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER ROWS 16
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_material = off SET enable_memoize = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    IF page_size IS NULL OR page_size NOT BETWEEN 1 AND 128 THEN
        RAISE EXCEPTION 'page_size must be between 1 and 128' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    WITH run_candidates AS (
        SELECT 'run'::text AS target_kind, r.id, r.id AS run_id, r.status, r.created_at_ms
          FROM qinglong.runs r
         WHERE r.execution_owner = 'runtime'
           AND r.trigger_type NOT IN ('plugin_package_workflow', 'copilot_failure_diagnosis')
           AND r.status IN ('created', 'dispatching', 'running')
           AND (r.status = 'created'
                OR NOT EXISTS (SELECT FROM qinglong.run_attempts a
                                WHERE a.run_id = r.id AND a.status IN ('claimed', 'starting', 'running')
                                  AND a.lease_expires_at_ms > now))
         ORDER BY r.created_at_ms, r.id
         LIMIT page_size
    ), attempt_candidates AS (
        SELECT 'attempt'::text AS target_kind, a.id, a.run_id, a.status, a.created_at_ms
          FROM qinglong.run_attempts a
         WHERE a.status IN ('claimed', 'starting', 'running')
           AND (a.lease_expires_at_ms IS NULL OR a.lease_expires_at_ms <= now)
           -- An untouched Attempt of an untouched queued Run is waiting, not dead: every line must hold.
           AND NOT (a.status = 'claimed' AND a.executor_type = 'remote_worker'
                    AND num_nonnulls(a.worker_id, a.worker_session_id, a.worker_generation, a.executor_handle, a.pid,
                                     a.log_artifact_id, a.lease_token, a.lease_token_digest, a.lease_generation,
                                     a.lease_version, a.lease_expires_at_ms, a.offer_id, a.deadline_at_ms,
                                     a.callback_token_hash, a.started_at_ms, a.finished_at_ms, a.exit_code,
                                     a.error_code, a.error_summary) = 0
                    AND a.callback_sequence = 0
                    AND EXISTS (SELECT FROM qinglong.runs r
                                 WHERE r.id = a.run_id AND r.execution_owner = 'runtime' AND r.status = 'queued'
                                   AND r.cancel_requested_at_ms IS NULL AND r.queued_at_ms IS NOT NULL)
                    AND NOT EXISTS (SELECT FROM qinglong.run_attempts newer
                                     WHERE newer.run_id = a.run_id AND newer.attempt > a.attempt AND newer.attempt > 1))
         ORDER BY a.created_at_ms, a.id
         LIMIT page_size
    )
    SELECT c.target_kind, c.id, c.run_id, c.status, c.created_at_ms, now
      FROM (SELECT * FROM run_candidates UNION ALL SELECT * FROM attempt_candidates) c
     ORDER BY c.created_at_ms, c.target_kind, c.id
     LIMIT page_size;
END
$$;
COMMENT ON FUNCTION qinglong.recovery_candidates(integer) IS
    'The oldest Runs and Attempts (1..128) that may need recovery; an untouched queued Attempt is none';
