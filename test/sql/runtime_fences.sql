-- I3: a claim of which any fact is not the row's any more writes nothing: raced, and no row differs.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL
\set serializable 'BEGIN ISOLATION LEVEL SERIALIZABLE;'

-- Each of the 19 facts altered in turn; the untouched claim is good until the end.
SELECT t.publish('a', '* * * * *', 'fire_once', 60000), t.publish('b', '* * * * *', 'fire_once', 60000);
SELECT t.claim('a', 'a', 61000);
CREATE FUNCTION altered(c qinglong.schedule_claim, field text, value text) RETURNS qinglong.schedule_claim LANGUAGE sql STABLE AS $$
    SELECT jsonb_populate_record(c, jsonb_build_object(field, value))
$$;
CREATE TABLE alterations (field text, value text);
INSERT INTO alterations VALUES
    ('project_id', 'other'), ('trigger_id', 'b'), ('trigger_id', 'none'), ('trigger_revision', '2'), ('trigger_content_digest', repeat('0', 64)),
    ('trigger_updated_at_ms', '0'), ('task_id', 'b'), ('task_revision', '2'), ('task_content_digest', repeat('0', 64)),
    ('expression', '*/2 * * * *'), ('expression', NULL), ('expression', '*  * * * *'), ('timezone', 'Etc/UTC'), ('timezone', NULL), ('timezone', 'utc'),
    ('misfire_policy', 'skip'), ('misfire_policy', NULL), ('state_version', '0'), ('state_version', '99'),
    ('next_fire_at_ms', '0'), ('next_fire_at_ms', NULL), ('next_fire_at_ms', '120000'), ('next_fire_at_ms', '60001'),
    ('claim_owner', 'other'), ('claim_owner', ''), ('claim_token', '00000000-0000-4000-8000-000000000000'), ('claim_version', '0'), ('claim_version', '2'),
    ('claim_acquired_at_ms', '61001'), ('claim_acquired_at_ms', '60999'), ('claim_acquired_at_ms', '0'),
    ('claim_expires_at_ms', '4102444800000'), ('claim_expires_at_ms', '9007199254740991'), ('claim_expires_at_ms', '1');
INSERT INTO alterations
SELECT 'spec', s FROM unnest(ARRAY[
    '{"config": {"timezone": "UTC", "expression": "*/2 * * * *", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v1"}',
    '{"config": {"timezone": "UTC", "expression": "* * * * *", "misfirePolicy": "skip"}, "schema": "qinglong/cron@v1"}',
    '{"config": {"timezone": "Etc/UTC", "expression": "* * * * *", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v1"}',
    '{"config": {"timezone": "UTC", "expression": "* * * * *", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v1", "x": 1}',
    '{"config": {"timezone": "UTC", "expression": "* * * * *", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v0"}',
    '{}', 'null', NULL]) s;
SELECT count(*), count(DISTINCT field) FROM alterations;
SELECT t.fingerprint() AS before \gset
:serializable
SELECT a.status, a.run_id, a.sqlstate, count(*), array_agg(DISTINCT field) FILTER (WHERE a.status <> 'raced') AS fields
  FROM alterations, t.claims, qinglong.ql_admit_batch(ARRAY[CASE field WHEN 'spec' THEN jsonb_populate_record(c, jsonb_build_object('spec', value::jsonb)) ELSE altered(c, field, value) END]) a
 WHERE name = 'a' GROUP BY 1, 2, 3;
COMMIT;
SELECT t.fingerprint() = :'before' AS unchanged;
-- A second fact to match: an altered spec with readings that agree, an altered reading pair.
:serializable
SELECT a.status FROM t.claims, jsonb_populate_record(c, '{"expression": "*/2 * * * *",
    "spec": {"config": {"timezone": "UTC", "expression": "*/2 * * * *", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v1"}}') x, qinglong.ql_admit(x) a WHERE name = 'a';
SELECT a.status FROM t.claims, jsonb_populate_record(c, '{"expression": "never", "spec": {"config": {"timezone": "UTC", "expression": "never", "misfirePolicy": "fire_once"}, "schema": "qinglong/cron@v1"}}') x,
    qinglong.ql_admit(x) a WHERE name = 'a';
COMMIT;
SELECT t.fingerprint() = :'before' AS unchanged;
:serializable
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'a';
COMMIT;
SELECT t.consistent();

-- The world changes after the claim. Each change happens in its own transaction; then the old claim is admitted.
CREATE TABLE changes (name text PRIMARY KEY, change text);
INSERT INTO changes VALUES
    ('republished', $$SELECT qinglong.ql_schedule('republished', '*/2 * * * *', 'true', 'UTC', 'fire_once')$$),
    ('other-command', $$SELECT qinglong.ql_schedule('other-command', '* * * * *', 'echo', 'UTC', 'fire_once')$$),
    ('disabled', $$SELECT qinglong.ql_unschedule('disabled')$$),
    ('task-published', $$SELECT qinglong.ql_task_publish('default', 'task-published', 'new', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "new"}}}', 1)$$),
    ('archived', $$SELECT qinglong.ql_project_put('p-archived', status => 'archived')$$),
    ('archived-and-back', $$SELECT qinglong.ql_project_put('p-archived-and-back', status => 'archived'); SELECT qinglong.ql_project_put('p-archived-and-back')$$),
    ('head-by-hand', $$INSERT INTO qinglong.trigger_revisions SELECT project_id, trigger_id, 2, gen_random_uuid(), task_id, task_revision, task_content_digest, spec_json, enabled, content_digest, created_at_ms
        FROM qinglong.trigger_revisions WHERE trigger_id = 'head-by-hand'; UPDATE qinglong.triggers SET current_revision = 2 WHERE trigger_id = 'head-by-hand'$$),
    ('status-by-hand', $$UPDATE qinglong.projects SET status = 'archived' WHERE id = 'p-status-by-hand'$$),
    ('taken-over', $$UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1 WHERE trigger_id = 'taken-over';
        SELECT count(*) FROM qinglong.ql_claim('heir', max_claims => 256)$$),
    ('expired', $$UPDATE qinglong.trigger_schedules SET claim_expires_at_ms = updated_at_ms + 1 WHERE trigger_id = 'expired'; UPDATE t.claims SET c.claim_expires_at_ms = (c).claim_acquired_at_ms + 1 WHERE name = 'expired'$$),
    ('admitted-by-other', $$SELECT 1$$), -- see below
    ('quarantined', $$UPDATE qinglong.trigger_schedules SET fault_code = 'x', claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL WHERE trigger_id = 'quarantined'$$),
    ('cursor-moved', $$UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 120000 WHERE trigger_id = 'cursor-moved'$$);
SELECT qinglong.ql_project_put('p-' || name) IS NOT NULL FROM changes WHERE name ~ '^(archived|status)' \g /dev/null
SELECT t.publish(name, '* * * * *', 'fire_once', 60000, 'UTC', CASE WHEN name ~ '^(archived|status)' THEN 'p-' || name ELSE 'default' END) FROM changes \g /dev/null
SELECT bool_and(t.claim(name, name, 61000, NULL, CASE WHEN name ~ '^(archived|status)' THEN 'p-' || name ELSE 'default' END)) FROM changes;
:serializable
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'admitted-by-other';
COMMIT;
\o /dev/null
\set ECHO none
SELECT change FROM changes WHERE name <> 'admitted-by-other' ORDER BY name \gexec
\set ECHO all
\o
SELECT t.fingerprint() AS before \gset
:serializable
SELECT name, a.status, a.run_id FROM changes JOIN t.claims USING (name), qinglong.ql_admit(c) a ORDER BY name;
SELECT status, count(*) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM changes JOIN t.claims USING (name))) GROUP BY 1;
COMMIT;
SELECT t.fingerprint() = :'before' AS unchanged;

-- D11.5: after a task's new revision its trigger is not claimable; republished, the claim shows the new pin and the Run names it.
UPDATE qinglong.trigger_schedules SET claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL;
SELECT count(*) FROM qinglong.ql_claim('r', max_claims => 256) WHERE trigger_id = 'task-published';
SELECT status, revision FROM qinglong.ql_trigger_publish('default', 'task-published', 'task-published', 2, (SELECT content_digest FROM qinglong.task_definition_revisions WHERE task_id = 'task-published' AND revision = 2),
    '{"schema": "qinglong/cron@v1", "config": {"expression": "* * * * *", "timezone": "UTC", "misfirePolicy": "fire_once"}}', 1);
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE trigger_id = 'task-published';
INSERT INTO t.claims SELECT 'repinned', c FROM qinglong.ql_claim('r', max_claims => 256) c WHERE c.trigger_id = 'task-published';
SELECT (c).task_revision, (c).trigger_revision FROM t.claims WHERE name = 'repinned';
:serializable
SELECT a.status, a.scheduled_for_ms FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'repinned';
SELECT left(task_revision, 10) AS reference, task_name, idempotency_key FROM qinglong.runs WHERE trigger_id = 'task-published';
COMMIT;

-- Expiry to the millisecond: an admission begun when the clock shows the expiry writes nothing; one a millisecond before may.
SELECT t.publish('x', '* * * * * *', 'fire_once', 60000);
CREATE TABLE tries (expiry bigint, early boolean, status text, created bigint);
CREATE PROCEDURE try_expiry(n int) LANGUAGE plpgsql AS $$
DECLARE
    expiry bigint;
    early boolean;
    claim qinglong.schedule_claim;
    result qinglong.schedule_admission;
BEGIN
    FOR i IN 1..n LOOP
        early := i % 2 = 0;
        COMMIT;
        UPDATE qinglong.trigger_schedules SET next_fire_at_ms = i * 60000 WHERE trigger_id = 'x';
        expiry := t.now_ms() + 5;
        PERFORM t.claim('x', 'x', 60000000, expiry);
        SELECT (c).* INTO claim FROM t.claims WHERE name = 'x';
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
        WHILE t.now_ms() < expiry - early::int LOOP
        END LOOP;
        result := qinglong.ql_admit(claim);
        INSERT INTO tries SELECT expiry, early, result.status, (SELECT created_at_ms FROM qinglong.runs WHERE id = result.run_id);
        COMMIT;
    END LOOP;
END $$;
CALL try_expiry(200);
SELECT early, count(*) FILTER (WHERE status NOT IN ('raced', 'admitted')) AS others, count(*) FILTER (WHERE NOT early AND status = 'admitted') AS at_expiry,
       count(*) FILTER (WHERE created >= expiry) AS after_expiry, early AND count(*) FILTER (WHERE created = expiry - 1) > 0 AS in_the_last_millisecond
  FROM tries GROUP BY early ORDER BY early;
SELECT count(*) = (SELECT count(*) FROM tries WHERE status = 'admitted') AS as_many_runs FROM qinglong.runs WHERE trigger_id = 'x';

-- Accounting: between cursors admitted + coalesced + skipped = occurrences, whatever the claims were like; capped at 100,000 each.
CREATE TABLE cases AS
SELECT 'c' || i AS id, (ARRAY['*/7 * * * *', '30 2 * * *', '15,45 1-3 * * SUN', '0 0 L * *', '* * * * * *'])[1 + i % 5] AS expression,
       (ARRAY['UTC', 'America/New_York', 'Australia/Lord_Howe'])[1 + i % 3] AS zone, (ARRAY['skip', 'fire_once'])[1 + i % 2] AS policy,
       1700000000000 + (i * 7919 % 1000) * 86400000::bigint + i AS start
  FROM generate_series(1, 30) i;
SELECT setseed(0.5);
SELECT t.publish(id, expression, policy, NULL, zone) FROM cases \g /dev/null
SELECT t.born(id, start) FROM cases \g /dev/null
ALTER TABLE cases ADD observed bigint;
UPDATE cases SET observed = start + (random() * 100000000)::bigint;
SELECT bool_and(t.claim(id, id, LEAST(observed, t.now_ms() - 1000))) FROM cases;
:serializable
SELECT count(*) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM cases JOIN t.claims ON name = id)) WHERE status IN ('admitted', 'advanced');
COMMIT;
SELECT bool_and(t.claim(id, id, LEAST((s.next_fire_at_ms + random() * 90000000)::bigint, t.now_ms() - 1000))) FROM cases JOIN qinglong.trigger_schedules s ON s.trigger_id = id
 WHERE s.next_fire_at_ms < t.now_ms() - 1000;
:serializable
SELECT bool_and(status IN ('admitted', 'advanced')) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM cases JOIN t.claims ON name = id JOIN qinglong.trigger_schedules s ON s.trigger_id = id WHERE s.claim_token = (c).claim_token));
COMMIT;
CREATE FUNCTION occurrences(expression text, zone text, from_ms bigint, to_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint := 0;
    got bigint;
    at timestamptz := to_timestamp(from_ms / 1000.0) - interval '1 millisecond';
BEGIN
    LOOP
        SELECT count(*), max(o) INTO got, at FROM qinglong.ql_occurrences(expression, zone, at, 10000) o WHERE o < to_timestamp(to_ms / 1000.0);
        n := n + got;
        IF got < 10000 THEN RETURN n; END IF;
    END LOOP;
END $$;
SELECT count(*), count(*) FILTER (WHERE admitted_total + coalesced_total + skipped_total = occurrences(expression, zone, start, next_fire_at_ms)) AS accounted,
       bool_or(admitted_total > 0) AS some_admitted, bool_or(skipped_total > 1) AS some_skipped, bool_or(coalesced_total > 0) AS some_coalesced
  FROM cases JOIN qinglong.trigger_schedules ON trigger_id = id;
SELECT t.publish('cap-skip', '* * * * * *', 'skip', 1000), t.publish('cap-once', '* * * * * *', 'fire_once', 1000), t.publish('exact', '* * * * * *', 'skip', 1000);
SELECT t.claim('cap-skip', 'cap-skip', 1000000000), t.claim('cap-once', 'cap-once', 1000000000), t.claim('exact', 'exact', 99999000);
:serializable
SELECT count(*) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims WHERE name ~ 'cap|exact'));
COMMIT;
SELECT trigger_id, cursor, last, admitted, skipped, coalesced FROM t.rows WHERE trigger_id ~ 'cap|exact' ORDER BY 1;
SELECT count(*) FROM qinglong.ql_check() x WHERE x::text !~ 'by-hand';
