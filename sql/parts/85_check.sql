-- The invariants, checked set-wise over what is stored. A healthy database has no violation, whatever its schedulers,
-- replicas and operators are doing; a quarantined trigger is visible in the view and not reported here.

CREATE FUNCTION qinglong._is_occurrence(spec jsonb, at_ms bigint) RETURNS boolean
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_is_occurrence';
COMMENT ON FUNCTION qinglong._is_occurrence(jsonb, bigint) IS
    'Internal: whether a trigger spec has an occurrence at exactly that time; NULL where it cannot be read';

-- Security definer: it reads specs and plans, which a monitor may not see. The details show identifiers only.
CREATE FUNCTION qinglong.ql_check(OUT project_id text, OUT trigger_id text, OUT code text, OUT detail text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    -- Immutable content: stored digests against the content itself.
    RETURN QUERY
    SELECT v.project_id::text, NULL::text, 'task_digest'::text,
           format('revision %s of task %I does not match its content digest', v.revision, v.task_id)
      FROM qinglong.task_definition_revisions v
     WHERE v.content_digest::text IS DISTINCT FROM
           qinglong._task_digest(v.project_id, v.task_id, v.revision, v.name, v.description, v.kind, v.spec_json,
                                 v.labels_json, v.enabled)
    UNION ALL
    SELECT r.project_id, r.trigger_id, 'trigger_digest',
           format('revision %s does not match its content digest', r.revision)
      FROM qinglong.trigger_revisions r
     WHERE r.content_digest::text IS DISTINCT FROM
           qinglong._trigger_digest(r.project_id, r.trigger_id, r.revision, r.task_id, r.task_revision,
                                    r.task_content_digest, r.spec_json, r.enabled)
    UNION ALL
    SELECT e.project_id, NULL, 'execution_digest',
           format('the execution plan of revision %s of task %I does not match its digests', e.source_revision, e.task_id)
      FROM qinglong.task_execution_revisions e
      JOIN qinglong.task_definition_revisions v
        ON v.project_id = e.project_id AND v.task_id = e.task_id AND v.revision = e.source_revision
     WHERE e.source_content_digest <> v.content_digest
        OR e.content_digest::text IS DISTINCT FROM
           qinglong._execution_digest(e.project_id, e.task_id, e.source_revision, e.source_content_digest,
                                      e.executor_type, e.plan_schema, e.plan_json)
    UNION ALL
    SELECT v.project_id, NULL, 'execution_missing',
           format('revision %s of task %I has no execution plan', v.revision, v.task_id)
      FROM qinglong.task_definition_revisions v
     WHERE v.enabled AND v.kind = 'command' AND v.spec_json ->> 'schema' = 'qinglong/command@v1'
       AND NOT EXISTS (SELECT FROM qinglong.task_execution_revisions e
                        WHERE e.project_id = v.project_id AND e.task_id = v.task_id AND e.source_revision = v.revision)
    UNION ALL
    SELECT r.project_id, r.trigger_id, 'task_pin',
           format('revision %s pins another content of revision %s of task %I', r.revision, r.task_revision, r.task_id)
      FROM qinglong.trigger_revisions r
      JOIN qinglong.task_definition_revisions v
        ON v.project_id = r.project_id AND v.task_id = r.task_id AND v.revision = r.task_revision
     WHERE v.content_digest <> r.task_content_digest;

    -- Heads, and the schedule rows bound to them.
    RETURN QUERY
    SELECT h.project_id::text, NULL::text, 'task_head'::text,
           format('the current revision %s of task %I is not its newest revision', h.current_revision, h.task_id)
      FROM qinglong.task_definitions h
     WHERE h.current_revision IS DISTINCT FROM
           (SELECT max(v.revision) FROM qinglong.task_definition_revisions v
             WHERE v.project_id = h.project_id AND v.task_id = h.task_id)
    UNION ALL
    SELECT t.project_id, t.trigger_id, 'trigger_head',
           format('the current revision %s is not the newest revision', t.current_revision)
      FROM qinglong.triggers t
     WHERE t.current_revision IS DISTINCT FROM
           (SELECT max(r.revision) FROM qinglong.trigger_revisions r
             WHERE r.project_id = t.project_id AND r.trigger_id = t.trigger_id)
    UNION ALL
    SELECT t.project_id, t.trigger_id, 'schedule_missing', 'the trigger has no schedule row'
      FROM qinglong.triggers t
     WHERE NOT EXISTS (SELECT FROM qinglong.trigger_schedules s
                        WHERE s.project_id = t.project_id AND s.trigger_id = t.trigger_id)
    UNION ALL
    SELECT s.project_id, s.trigger_id, 'schedule_revision',
           format('the schedule row is bound to revision %s, the current one is %s', s.trigger_revision, t.current_revision)
      FROM qinglong.trigger_schedules s
      JOIN qinglong.triggers t ON t.project_id = s.project_id AND t.trigger_id = s.trigger_id
     WHERE s.trigger_revision <> t.current_revision
    UNION ALL
    SELECT s.project_id, s.trigger_id, 'eligible_hint',
           format('the schedule row says %s, its trigger, task and project say %s', s.eligible, x.eligible)
      FROM qinglong.trigger_schedules s
      JOIN qinglong.triggers t ON t.project_id = s.project_id AND t.trigger_id = s.trigger_id
      JOIN qinglong.trigger_revisions r
        ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision
      JOIN qinglong.task_definitions h ON h.project_id = r.project_id AND h.task_id = r.task_id
      JOIN qinglong.task_definition_revisions v
        ON v.project_id = r.project_id AND v.task_id = r.task_id AND v.revision = r.task_revision
      JOIN qinglong.projects p ON p.id = s.project_id,
           LATERAL (SELECT s.trigger_revision = t.current_revision AND r.enabled
                           AND h.current_revision = r.task_revision AND v.content_digest = r.task_content_digest
                           AND p.status = 'active'
                           AND COALESCE(r.spec_json ->> 'schema' IN ('qinglong/cron@v1', 'qinglong/cron@v2',
                                                                     'qinglong/interval@v1', 'qinglong/once@v1'),
                                        false) AS eligible) x
     WHERE s.eligible <> x.eligible
    UNION ALL
    SELECT s.project_id, s.trigger_id, 'claim_shape', 'owner, token and expiry of the claim do not belong together'
      FROM qinglong.trigger_schedules s
     WHERE num_nonnulls(s.claim_owner, s.claim_token, s.claim_expires_at_ms) NOT IN (0, 3)
        OR s.claim_token IS NOT NULL AND (s.claim_version < 1 OR s.claim_expires_at_ms <= s.updated_at_ms);

    -- A cursor in the past may be a mark from which the next occurrence is derived; one in the future is an occurrence.
    RETURN QUERY
    SELECT s.project_id::text, s.trigger_id::text, 'cursor'::text,
           format('the cursor %s is no occurrence of the schedule', s.next_fire_at_ms)
      FROM qinglong.trigger_schedules s
      JOIN qinglong.trigger_revisions r
        ON r.project_id = s.project_id AND r.trigger_id = s.trigger_id AND r.revision = s.trigger_revision
     WHERE s.schedulable
       AND s.next_fire_at_ms > now
       AND NOT qinglong._is_occurrence(r.spec_json, s.next_fire_at_ms);

    -- Scheduled Runs: what one admission wrote, whole and once.
    RETURN QUERY
    SELECT r.project_id::text, r.trigger_id::text, 'duplicate_run'::text,
           format('%s runs for the instant %s', count(*), r.scheduled_for_ms)
      FROM qinglong.runs r
     WHERE r.trigger_type = 'cron'
     GROUP BY r.project_id, r.trigger_id, r.scheduled_for_ms
    HAVING count(*) > 1
    UNION ALL
    SELECT r.project_id, min(r.trigger_id), 'duplicate_key',
           format('%s runs have the idempotency key of run %s', count(*), min(r.id::text))
      FROM qinglong.runs r
     WHERE r.idempotency_key IS NOT NULL
     GROUP BY r.project_id, r.idempotency_key
    HAVING count(*) > 1
    UNION ALL
    SELECT r.project_id, r.trigger_id, 'idempotency_key', format('run %s does not have the key of its occurrence', r.id)
      FROM qinglong.runs r
     WHERE r.trigger_type = 'cron'
       AND (r.trigger_id IS NULL OR r.scheduled_for_ms IS NULL OR r.idempotency_key IS NULL
            OR NOT starts_with(r.idempotency_key, 'ql3:cron:v1:' || r.trigger_id || ':')
            OR substr(r.idempotency_key, length(r.trigger_id) + 14) !~ '^[1-9][0-9]{0,9}:[0-9]+$'
            OR split_part(substr(r.idempotency_key, length(r.trigger_id) + 14), ':', 2) <> r.scheduled_for_ms::text)
    UNION ALL
    SELECT r.project_id, r.trigger_id, 'first_attempt', format('run %s has no attempt 1', r.id)
      FROM qinglong.runs r
      LEFT JOIN qinglong.run_attempts a ON a.run_id = r.id AND a.attempt = 1
     WHERE r.trigger_type = 'cron' AND a.id IS NULL
    UNION ALL
    SELECT r.project_id, r.trigger_id, 'events',
           format('run %s lacks its events run.created and run.queued at sequences 1 and 2', r.id)
      FROM qinglong.runs r
      LEFT JOIN qinglong.run_events c ON c.run_id = r.id AND c.sequence = 1
      LEFT JOIN qinglong.run_events q ON q.run_id = r.id AND q.sequence = 2
      LEFT JOIN qinglong.run_attempts a ON a.run_id = r.id AND a.attempt = 1
     WHERE r.trigger_type = 'cron'
       AND (c.type, c.dedupe_key, q.type, q.dedupe_key, q.attempt_id, r.event_sequence >= 2)
           IS DISTINCT FROM
           ('run.created', 'cluster-schedule-created:' || r.idempotency_key,
            'run.queued', 'cluster-schedule-queued:' || r.idempotency_key, a.id, true);

    -- Runs, attempts and events have no foreign keys, for the speed of admissions.
    RETURN QUERY
    SELECT r.project_id::text, r.trigger_id::text, 'orphan_run'::text,
           format('run %s names a parent or a predecessor that does not exist', r.id)
      FROM qinglong.runs r
     WHERE r.parent_run_id IS NOT NULL AND NOT EXISTS (SELECT FROM qinglong.runs o WHERE o.id = r.parent_run_id)
        OR r.retry_of_run_id IS NOT NULL AND NOT EXISTS (SELECT FROM qinglong.runs o WHERE o.id = r.retry_of_run_id);
    RETURN QUERY
    SELECT NULL::text, NULL::text, 'orphan_attempt'::text, format('attempt %s belongs to no run', a.id)
      FROM qinglong.run_attempts a
      LEFT JOIN qinglong.runs r ON r.id = a.run_id
     WHERE r.id IS NULL
    UNION ALL
    SELECT NULL, NULL, 'orphan_event', format('event %s belongs to no run', e.id)
      FROM qinglong.run_events e
      LEFT JOIN qinglong.runs r ON r.id = e.run_id
     WHERE r.id IS NULL
    UNION ALL
    SELECT NULL, NULL, 'event_attempt', format('event %s names an attempt that its run does not have', e.id)
      FROM qinglong.run_events e
      LEFT JOIN qinglong.run_attempts a ON a.id = e.attempt_id AND a.run_id = e.run_id
     WHERE e.attempt_id IS NOT NULL AND a.id IS NULL
    UNION ALL
    SELECT NULL, NULL, 'duplicate_event', format('run %s has %s events of one dedupe key', e.run_id, count(*))
      FROM qinglong.run_events e
     WHERE e.dedupe_key IS NOT NULL
     GROUP BY e.run_id, e.dedupe_key
    HAVING count(*) > 1;
END
$$;
COMMENT ON FUNCTION qinglong.ql_check() IS
    'One row for each violated invariant or damaged digest; none on a healthy database';
