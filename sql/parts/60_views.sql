-- Milliseconds since the epoch as people read them; a time beyond the calendar must not break a view.
CREATE FUNCTION qinglong._instant(ms bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.to_timestamp(0) OPERATOR(pg_catalog.+)
             (GREATEST(LEAST($1, 253402300799999), 0) OPERATOR(pg_catalog.*) '1 millisecond'::pg_catalog.interval) $$;
COMMENT ON FUNCTION qinglong._instant(bigint) IS 'Internal: milliseconds since the epoch as timestamptz, from 1970 to the year 9999';

CREATE FUNCTION qinglong._misfire_grace_ms() RETURNS integer
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_misfire_grace_ms';
COMMENT ON FUNCTION qinglong._misfire_grace_ms() IS 'Internal: the setting qinglong_sched.misfire_grace';

-- A due cursor need not be an occurrence: after a reactivation, a change of zone data or a clock that was set back it
-- means "the first one from here on" until a scheduler derives it. People are shown what that scheduler will find.
CREATE FUNCTION qinglong._cursor_occurrence(spec jsonb, cursor_ms bigint) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_cursor_occurrence';
COMMENT ON FUNCTION qinglong._cursor_occurrence(jsonb, bigint) IS
    'Internal: the first occurrence at or after a cursor, NULL when there is none; the cursor itself when the spec cannot be read';

-- Truth comes from the heads, not from the hint on the row. The view runs with its owner's rights and shows of a spec
-- only the three readings; no row is hidden from whoever may read it, so there is nothing to guard by a barrier.
CREATE VIEW qinglong.schedules AS
SELECT x.project_id, x.trigger_id, x.state,
       CASE WHEN pg_catalog.jsonb_typeof(x.config -> 'expression') = 'string' THEN x.config ->> 'expression' END AS expression,
       CASE WHEN pg_catalog.jsonb_typeof(x.config -> 'timezone') = 'string' THEN x.config ->> 'timezone' END AS timezone,
       CASE WHEN pg_catalog.jsonb_typeof(x.config -> 'misfirePolicy') = 'string' THEN x.config ->> 'misfirePolicy' END
           AS misfire_policy,
       CASE WHEN x.state NOT IN ('archived', 'disabled', 'stale') THEN qinglong._instant(x.occurrence_ms) END
           AS next_fire_at,
       qinglong._instant(x.last_scheduled_at_ms) AS last_scheduled_at,
       x.claim_owner AS claimed_by,
       qinglong._instant(x.claim_expires_at_ms) AS claim_expires_at,
       x.fault_code AS fault,
       x.admitted_total, x.skipped_total, x.coalesced_total
  FROM (SELECT s.*, n.occurrence_ms,
               CASE WHEN r.spec_json ->> 'schema' IN ('qinglong/cron@v1', 'qinglong/cron@v2',
                                                      'qinglong/interval@v1', 'qinglong/once@v1')
                    THEN r.spec_json -> 'config' END AS config,
               CASE
               WHEN p.status <> 'active' THEN 'archived'
               WHEN NOT r.enabled THEN 'disabled'
               WHEN s.trigger_revision <> t.current_revision OR h.current_revision <> r.task_revision
                    OR v.content_digest <> r.task_content_digest THEN 'stale'
               WHEN s.fault_code IS NOT NULL AND s.retry_at_ms IS NULL THEN 'quarantined'
               WHEN s.finished OR (s.next_fire_at_ms IS NOT NULL AND n.occurrence_ms IS NULL) THEN 'done'
               WHEN s.updated_at_ms > o.now THEN 'clock_ahead'
               WHEN s.claim_expires_at_ms > o.now THEN 'claimed'
               WHEN n.occurrence_ms + s.due_delay_ms
                    < o.now - CASE WHEN pg_catalog.jsonb_typeof(r.spec_json #> '{config,misfireGraceMs}') = 'number'
                                   THEN (r.spec_json #> '{config,misfireGraceMs}')::numeric ELSE o.grace END
                   THEN 'overdue'
               WHEN n.occurrence_ms + s.due_delay_ms <= o.now THEN 'due'
               ELSE 'waiting'
               END AS state
          FROM qinglong.trigger_schedules s
          JOIN qinglong.triggers t ON t.project_id = s.project_id AND t.trigger_id = s.trigger_id
          JOIN qinglong.trigger_revisions r
            ON r.project_id = t.project_id AND r.trigger_id = t.trigger_id AND r.revision = t.current_revision
          JOIN qinglong.task_definitions h ON h.project_id = r.project_id AND h.task_id = r.task_id
          JOIN qinglong.task_definition_revisions v
            ON v.project_id = r.project_id AND v.task_id = r.task_id AND v.revision = r.task_revision
          JOIN qinglong.projects p ON p.id = s.project_id,
               -- One observation of the clock for all rows (a volatile sub-select is not pulled up).
               (SELECT pg_catalog.floor(EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint AS now,
                       qinglong._misfire_grace_ms() AS grace) o,
               LATERAL (SELECT CASE WHEN s.eligible AND s.next_fire_at_ms <= o.now
                                    THEN qinglong._cursor_occurrence(r.spec_json, s.next_fire_at_ms)
                                    ELSE s.next_fire_at_ms END AS occurrence_ms OFFSET 0) n) x;
COMMENT ON VIEW qinglong.schedules IS 'Each trigger''s schedule: what state it is in, when it fires next, and its totals';
COMMENT ON COLUMN qinglong.schedules.state IS
    'waiting, due, claimed, overdue, done (its schedule has ended), quarantined, disabled, stale (task pin not current), archived or clock_ahead (its floor lies after the server''s clock)';
COMMENT ON COLUMN qinglong.schedules.next_fire_at IS
    'The next occurrence, or the one that is due; NULL where there is none, and until a scheduler has computed it';
COMMENT ON COLUMN qinglong.schedules.last_scheduled_at IS 'The last admitted occurrence';
COMMENT ON COLUMN qinglong.schedules.fault IS 'Why the trigger is quarantined, or waits before another try';
COMMENT ON COLUMN qinglong.schedules.admitted_total IS 'Occurrences that became Runs';
COMMENT ON COLUMN qinglong.schedules.skipped_total IS 'Occurrences skipped by the misfire policy or a publication';
COMMENT ON COLUMN qinglong.schedules.coalesced_total IS 'Occurrences jumped over by an admission';
