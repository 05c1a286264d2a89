-- The limit: what an admission makes durable, written set-wise into copies of the shipped tables, and nothing else: no
-- fence, no join, no cron. :schema names the copies; with :naive they get the index set of the naive protocol.
\set ON_ERROR_STOP on
CREATE SCHEMA :schema;
SET search_path = :schema, pg_catalog;
CREATE TABLE trigger_schedules (LIKE qinglong.trigger_schedules INCLUDING ALL);
CREATE TABLE runs (LIKE qinglong.runs INCLUDING ALL);
CREATE TABLE run_attempts (LIKE qinglong.run_attempts INCLUDING ALL);
CREATE TABLE run_events (LIKE qinglong.run_events INCLUDING ALL);
-- LIKE leaves the fill factors out.
SELECT format('ALTER TABLE %I SET (%s)', relname, array_to_string(reloptions, ', '))
  FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND reloptions IS NOT NULL
   AND relname IN ('trigger_schedules', 'runs', 'run_attempts', 'run_events') \gexec
\if :naive
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
  FROM pg_constraint WHERE connamespace = :'schema'::regnamespace AND contype IN ('p', 'u') \gexec
SELECT format('DROP INDEX %s', oid::regclass)
  FROM pg_class WHERE relnamespace = :'schema'::regnamespace AND relkind = 'i' \gexec
ALTER TABLE trigger_schedules RESET (fillfactor);
\ir naive_indexes.sql
\endif

-- Batches part, part + parts, ... of size rows, each in a transaction of its own.
CREATE PROCEDURE write(part integer, parts integer, batches integer, size integer)
LANGUAGE plpgsql AS $$
DECLARE
    low text;
    high text;
    digest text := repeat('0123456789abcdef', 4);
    row_ids tid[];
    now_ms bigint;
BEGIN
    FOR batch IN part .. batches - 1 BY parts LOOP
        low := 'trigger-' || lpad((batch * size + 1)::text, 8, '0');
        high := 'trigger-' || lpad(((batch + 1) * size)::text, 8, '0');
        now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
        WITH claimed AS (
            UPDATE trigger_schedules
               SET claim_owner = 'bench:limit', claim_token = '00000000-0000-4000-8000-000000000000',
                   claim_version = claim_version + 1, claim_expires_at_ms = now_ms + 30000,
                   state_version = state_version + 1, updated_at_ms = now_ms
             WHERE project_id = 'bench' AND trigger_id BETWEEN low AND high
            RETURNING ctid)
        SELECT array_agg(ctid) INTO row_ids FROM claimed;
        INSERT INTO runs (id, project_id, task_id, task_revision, task_snapshot_ref, task_name, trigger_id,
                          triggered_by, trigger_type, execution_origin, execution_owner, scheduled_for_ms, status,
                          version, event_sequence, priority, idempotency_key, created_at_ms, queued_at_ms)
        SELECT lpad(to_hex(n), 32, '0')::uuid, 'bench', 'task-1', 'qltd:v1:1:' || digest, 'qltd:v1:1:' || digest,
               'task 1', t, t, 'cron', 'scheduled_system', 'runtime', 1700000000000, 'queued', 2, 2, 0,
               'ql3:cron:v1:' || t || ':1:1700000000000', now_ms, now_ms
          FROM generate_series(batch * size + 1, (batch + 1) * size) n,
               LATERAL (VALUES ('trigger-' || lpad(n::text, 8, '0'))) AS k (t);
        INSERT INTO run_attempts (id, run_id, attempt, status, executor_type, callback_sequence, created_at_ms)
        SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, 1, 'claimed', 'remote_worker', 0, now_ms
          FROM generate_series(batch * size + 1, (batch + 1) * size) n;
        INSERT INTO run_events (id, run_id, sequence, type, dedupe_key, actor_type, actor_id, attempt_id, payload,
                                created_at_ms)
        SELECT lpad(to_hex(2 * n + sequence), 32, '0')::uuid, id, sequence, type,
               prefix || 'ql3:cron:v1:trigger-' || lpad(n::text, 8, '0') || ':1:1700000000000', 'scheduler', 'cluster',
               CASE sequence WHEN 2 THEN id END, payload, now_ms
          FROM generate_series(batch * size + 1, (batch + 1) * size) n,
               LATERAL (VALUES (lpad(to_hex(n), 32, '0')::uuid)) AS i (id),
               (VALUES (1, 'run.created', 'cluster-schedule-created:',
                        jsonb_build_object('status', 'created', 'version', 1, 'execution_owner', 'runtime',
                            'executor_type', 'remote_worker', 'execution_revision_digest', digest,
                            'trigger_revision', 1, 'trigger_content_digest', digest,
                            'scheduled_for_ms', 1700000000000)),
                       (2, 'run.queued', 'cluster-schedule-queued:',
                        jsonb_build_object('from_status', 'created', 'to_status', 'queued', 'version', 2))
               ) AS e (sequence, type, prefix, payload);
        UPDATE trigger_schedules
           SET next_fire_at_ms = now_ms + 86400000, last_scheduled_at_ms = 1700000000000,
               admitted_total = admitted_total + 1, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
               state_version = state_version + 1, updated_at_ms = now_ms
         WHERE ctid = ANY (row_ids);
        COMMIT;
    END LOOP;
END
$$;
