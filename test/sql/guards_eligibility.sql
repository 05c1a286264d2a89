-- What makes a trigger ineligible reaches its schedule row by table triggers, so also through a plain UPDATE.
CREATE EXTENSION qinglong_sched;
CREATE TEMP VIEW rows AS
    SELECT trigger_id, trigger_revision AS rev, next_fire_at_ms AS cursor, eligible, claim_owner, claim_version AS cv,
           state_version AS sv, fault_code AS fault, schedulable,
           (SELECT string_agg(CASE WHEN lower(u) > 1000000000000 THEN 'birth' ELSE lower(u)::text END || ' to '
                              || CASE WHEN upper(u) = updated_at_ms THEN 'now' ELSE upper(u)::text END, ', ')
              FROM unnest(uncounted) u) AS uncounted
      FROM qinglong.trigger_schedules ORDER BY trigger_id;
SELECT status FROM qinglong.ql_schedule('a', '*/10 * * * *', 'true');
SELECT status FROM qinglong.ql_schedule('b', '*/10 * * * *', 'true');
SELECT status FROM qinglong.ql_schedule('c', '*/10 * * * *', 'true');
SELECT status FROM qinglong.ql_schedule('other', '*/10 * * * *', 'true', project_id => 'other');
-- b also starts task a; c is claimed and in the future, a has waited since 1970, b is new.
SELECT status FROM qinglong.ql_trigger_publish('default', 'b2', 'a', 1,
    (SELECT content_digest FROM qinglong.task_definition_revisions WHERE task_id = 'a' AND project_id = 'default'),
    '{"schema": "qinglong/cron@v1", "config": {"expression": "0 * * * *", "timezone": "UTC", "misfirePolicy": "skip"}}');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 600000, updated_at_ms = 1000, claim_owner = 'me',
       claim_token = gen_random_uuid(), claim_expires_at_ms = 2000, claim_version = 5, state_version = 7
 WHERE trigger_id = 'a';
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 9000000000000000, fault_code = 'zone_unknown'
 WHERE trigger_id = 'c';
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 3600000 WHERE trigger_id = 'b2';
SELECT * FROM rows;

-- A task head that moves: every row that pins another revision.
UPDATE qinglong.task_definitions SET updated_at_ms = updated_at_ms + 1 WHERE task_id = 'a'; -- nothing
SELECT trigger_id, eligible FROM rows;
INSERT INTO qinglong.task_definition_revisions
    SELECT project_id, task_id, 2, gen_random_uuid(), name, description, kind, spec_json, labels_json, enabled,
           content_digest, created_at_ms
      FROM qinglong.task_definition_revisions WHERE task_id = 'a' AND project_id = 'default';
UPDATE qinglong.task_definitions SET current_revision = 2 WHERE task_id = 'a' AND project_id = 'default';
SELECT * FROM rows;
-- Once is enough: rows that are ineligible are not touched again.
UPDATE qinglong.task_definitions SET current_revision = 1 WHERE task_id = 'a' AND project_id = 'default';
SELECT trigger_id, eligible, sv FROM rows;

-- A project that is archived: all its rows. Cursor, fault and totals stay.
UPDATE qinglong.projects SET status = 'archived' WHERE id = 'default';
SELECT * FROM rows;
-- Active again: the rows whose facts are current go on from now; what is to come keeps its cursor.
UPDATE qinglong.projects SET status = 'active' WHERE id = 'default';
SELECT trigger_id, eligible, claim_version, state_version, fault_code, schedulable,
       next_fire_at_ms = updated_at_ms AS from_now, next_fire_at_ms > updated_at_ms AS ahead
  FROM qinglong.trigger_schedules ORDER BY trigger_id;
-- A stale pin and a disabled revision stay out.
UPDATE qinglong.projects SET status = 'archived' WHERE id = 'default';
UPDATE qinglong.task_definitions SET current_revision = 2 WHERE task_id = 'a' AND project_id = 'default';
UPDATE qinglong.projects SET status = 'active' WHERE id = 'default';
SELECT trigger_id, eligible FROM rows;
SELECT qinglong.ql_unschedule('b');
UPDATE qinglong.projects SET status = 'archived' WHERE id = 'default';
UPDATE qinglong.projects SET status = 'active' WHERE id = 'default';
SELECT trigger_id, eligible FROM rows;

-- A trigger head that moves away from the row.
SELECT trigger_id, eligible, cv, sv FROM rows WHERE trigger_id = 'other';
UPDATE qinglong.triggers SET current_revision = 2 WHERE trigger_id = 'other';
SELECT trigger_id, eligible, cv, sv FROM rows WHERE trigger_id = 'other';
UPDATE qinglong.triggers SET current_revision = 1 WHERE trigger_id = 'other';

-- Also where ordinary triggers are off, and without a search_path.
SELECT status, trigger_revision FROM qinglong.ql_schedule('d', '0 0 1 1 *', 'true');
SET session_replication_role = replica;
SET search_path = '';
UPDATE qinglong.projects SET status = 'archived' WHERE id = 'default';
RESET search_path;
RESET session_replication_role;
SELECT trigger_id, eligible FROM rows WHERE trigger_id IN ('c', 'd');

-- Sweeps go by key, also where there are no statistics: a few rows are read for each trigger, not the project's.
SELECT count(*) FROM generate_series(1, 300) n, LATERAL qinglong.ql_schedule('t' || n, '0 0 1 1 *', 'true', project_id => 'big');
CREATE TEMP VIEW read_now AS
    SELECT sum(idx_tup_fetch)::bigint AS rows FROM pg_stat_xact_user_tables WHERE schemaname = 'qinglong';
SELECT FROM pg_stat_force_next_flush(); -- else what was read before may be among it
BEGIN;
UPDATE qinglong.projects SET status = 'archived' WHERE id = 'big';
SELECT rows BETWEEN 300 AND 20 * 300 AS archived FROM read_now;
UPDATE qinglong.projects SET status = 'active' WHERE id = 'big';
SELECT rows BETWEEN 600 AND 40 * 300 AS active_again FROM read_now;
UPDATE qinglong.task_definitions SET current_revision = 2 WHERE project_id = 'big' AND task_id = 't7';
SELECT rows BETWEEN 600 AND 41 * 300 AS moved FROM read_now;
SELECT count(*) FILTER (WHERE eligible) AS eligible FROM qinglong.trigger_schedules WHERE project_id = 'big';
COMMIT;
