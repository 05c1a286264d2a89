-- Every kind of trigger through claim, decide and admit; the owner moves cursors instead of waiting.
CREATE EXTENSION qinglong_sched;
SET search_path = qinglong;
SELECT id FROM ql_project_put('p');
SELECT content_digest AS task FROM ql_task_publish('p', 'task', 'task',
    '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "true"}}}') \gset
SELECT set_config('test.task', :'task', false) = :'task' AS pinned;
CREATE FUNCTION pg_temp.publish(id text, schema text, config text, expected int DEFAULT NULL, enabled bool DEFAULT true)
RETURNS text LANGUAGE sql AS $$
    SELECT status || ' ' || revision
      FROM qinglong.ql_trigger_publish('p', id, 'task', 1, current_setting('test.task'),
           format('{"schema": "qinglong/%s", "config": %s}', schema, config)::jsonb, expected, enabled => enabled) $$;
CREATE FUNCTION pg_temp.in_ms(ms bigint) RETURNS text LANGUAGE sql AS $$
    SELECT to_char((to_timestamp(ms / 1000.0)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now \gset
-- Claims one trigger, then decides and admits; times as distances from its cursor at the claim.
CREATE TEMP TABLE claim (c schedule_claim);
CREATE PROCEDURE pg_temp.claim() LANGUAGE sql AS $$
    TRUNCATE claim;
    INSERT INTO claim SELECT c FROM qinglong.ql_claim('test', 60000, 1) c $$;
CREATE FUNCTION pg_temp.decision(OUT disposition text, OUT next_ms bigint, OUT scheduled_ms bigint, OUT observed bool)
LANGUAGE sql AS $$
    SELECT d.disposition, d.next_fire_at_ms - (c).next_fire_at_ms, d.scheduled_for_ms - (c).next_fire_at_ms,
           d.observed_at_ms = (c).claim_acquired_at_ms
      FROM claim, qinglong.ql_decide(c) d $$;

-- Once: admitted once, then done, and kept.
SELECT pg_temp.publish('once', 'once@v1', format('{"at": "%s", "misfirePolicy": "fire_once"}', pg_temp.in_ms(:now + 86400250)));
SELECT (spec_json #>> '{config,at}')::timestamptz = pg_temp.in_ms(:now + 86400250)::timestamptz AS kept FROM trigger_revisions;
CALL ql_schedule_once('test') \gset
SELECT next_fire_at_ms - :now AS in_ms, finished FROM trigger_schedules;
-- There is no way to make the day pass: republished close to now.
SELECT pg_temp.publish('once', 'once@v1', format('{"at": "%s", "misfirePolicy": "fire_once"}',
       pg_temp.in_ms((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3000)), 1);
SELECT pg_sleep_until((spec_json #>> '{config,at}')::timestamptz) FROM trigger_revisions WHERE revision = 2;
CALL pg_temp.claim();
SELECT (c).expression, (c).timezone, (c).misfire_policy, (c).spec ->> 'schema' AS schema, (c).next_fire_at_ms FROM claim;
SELECT disposition, next_fire_at_ms, scheduled_for_ms = (SELECT (extract(epoch FROM (spec_json #>> '{config,at}')::timestamptz)
       * 1000)::bigint FROM trigger_revisions WHERE revision = 2) AS at
  FROM claim, ql_decide(c);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status, disposition, next_fire_at_ms, run_id IS NOT NULL AS run FROM claim, ql_admit(c, ql_decide(c));
COMMIT;
SELECT state, next_fire_at, admitted_total FROM schedules;
SELECT finished, schedulable, next_fire_at_ms FROM trigger_schedules;
SELECT count(*) FROM ql_claim('test');
SELECT count(*) FROM ql_explain_trigger('p', 'once');
SELECT * FROM ql_check();
-- Archiving and reactivating does not start it again; nor does it count anything.
SELECT status FROM ql_project_put('p', status => 'archived');
SELECT status FROM ql_project_put('p', status => 'active');
SELECT state, skipped_total FROM schedules;
SELECT count(*) FROM ql_claim('test');
SELECT * FROM ql_check();
-- The same instant again is in the past: refused, unless it is switched off.
SELECT pg_temp.publish('once', 'once@v1', '{"at": "2020-01-01T00:00:00Z", "misfirePolicy": "skip"}', 2);
SELECT pg_temp.publish('once', 'once@v1', '{"at": "2020-01-01T00:00:00Z", "misfirePolicy": "skip"}', 2, false);
SELECT state, admitted_total FROM schedules;
-- A publication starts it again.
SELECT pg_temp.publish('once', 'once@v1', '{"at": "9999-12-31T00:00:00+00:00", "misfirePolicy": "skip"}', 3);
CALL ql_schedule_once('test') \gset
SELECT state, next_fire_at FROM schedules;
SELECT ql_unschedule('once', 'p');

-- Interval: a grid from its anchor, to the millisecond.
SELECT pg_temp.publish('interval', 'interval@v1', '{"everyMs": 86400250, "anchorAt": "2026-01-01T00:00:00.125Z", "misfirePolicy": "fire_once"}');
CALL ql_schedule_once('test') \gset
SELECT (next_fire_at_ms - 1767225600125) % 86400250 AS off_grid, next_fire_at_ms - :now BETWEEN 0 AND 86460250 AS next
  FROM trigger_schedules WHERE trigger_id = 'interval';
UPDATE trigger_schedules SET next_fire_at_ms = next_fire_at_ms - 3::bigint * 86400250 WHERE trigger_id = 'interval';
CALL pg_temp.claim();
SELECT * FROM pg_temp.decision();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status, disposition FROM claim, ql_admit(c);
COMMIT;
SELECT admitted_total, skipped_total, coalesced_total FROM schedules WHERE trigger_id = 'interval';
SELECT local_time ~ '\.\d{3}$' AS milliseconds, utc_offset, note FROM ql_explain_trigger('p', 'interval', 1);
SELECT pg_temp.publish('future', 'interval@v1', '{"everyMs": 1000, "anchorAt": "2999-01-01T00:00:00Z", "misfirePolicy": "skip"}');
CALL ql_schedule_once('test') \gset
SELECT state, next_fire_at FROM schedules WHERE trigger_id = 'future';
SELECT pg_temp.publish('short', 'interval@v1', '{"everyMs": 999, "anchorAt": "2999-01-01T00:00:00Z", "misfirePolicy": "skip"}');
SELECT pg_temp.publish('short', 'interval@v1', '{"everyMs": 1000, "anchorAt": "2999-01-01", "misfirePolicy": "skip"}');

-- cron@v2: start inclusive, end exclusive.
SELECT pg_temp.publish('bounded', 'cron@v2', '{"expression": "0 0 1 * *", "timezone": "utc", "misfirePolicy": "fire_once",
    "startAt": "2100-02-01T01:00:00+01:00", "endAt": "2100-03-01T00:00:00Z"}');
SELECT spec_json -> 'config' AS config FROM trigger_revisions WHERE trigger_id = 'bounded';
SELECT occurrence, local_time, note FROM ql_explain_trigger('p', 'bounded');
CALL ql_schedule_once('test') \gset
SELECT state, next_fire_at FROM schedules WHERE trigger_id = 'bounded';
SELECT pg_temp.publish('never', 'cron@v2', '{"expression": "0 0 1 * *", "timezone": "UTC", "misfirePolicy": "skip",
    "startAt": "2100-02-02T00:00:00Z", "endAt": "2100-03-01T00:00:00Z"}');
SELECT pg_temp.publish('never', 'cron@v2', '{"expression": "0 0 1 * *", "timezone": "UTC", "misfirePolicy": "skip",
    "endAt": "2020-03-01T00:00:00Z"}');
SELECT pg_temp.publish('never', 'cron@v2', '{"expression": "0 0 1 * *", "timezone": "UTC", "misfirePolicy": "skip",
    "overlap": "third"}');
SELECT pg_temp.publish('never', 'cron@v1', '{"expression": "0 0 1 * *", "timezone": "UTC", "misfirePolicy": "skip",
    "gap": "skip"}');
-- The end is reached by the admission of the last occurrence, or by skipping it.
SELECT pg_temp.in_ms((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 4000) AS soon \gset
SELECT pg_temp.publish('last', 'cron@v2', format('{"expression": "* * * * * *", "timezone": "UTC", "misfirePolicy": "fire_once",
    "endAt": "%s"}', :'soon'));
SELECT pg_temp.publish('missed', 'cron@v2', format('{"expression": "* * * * * *", "timezone": "UTC", "misfirePolicy": "skip",
    "misfireGraceMs": 0, "endAt": "%s"}', :'soon'));
SELECT pg_sleep_until(:'soon'::timestamptz + interval '10 ms');
CALL pg_temp.claim();
SELECT disposition, next_ms FROM pg_temp.decision();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status, disposition, next_fire_at_ms FROM claim, ql_admit_batch(ARRAY[c]);
COMMIT;
CALL ql_schedule_once('test') \gset
SELECT trigger_id, state, next_fire_at, admitted_total, skipped_total > 0 AS skipped
  FROM schedules WHERE trigger_id IN ('last', 'missed') ORDER BY trigger_id;
SELECT * FROM ql_check();

-- Jitter: due later, the instant unchanged; the same delay each time.
SELECT pg_temp.publish('jitter', 'cron@v2', '{"expression": "0 0 1 1 *", "timezone": "UTC", "misfirePolicy": "skip",
    "jitterMs": 300000, "misfireGraceMs": 1000}');
SELECT due_delay_ms FROM trigger_schedules WHERE trigger_id = 'jitter';
CALL ql_schedule_once('test') \gset
SELECT note FROM ql_explain_trigger('p', 'jitter', 1);
-- A cursor that passed less than the delay ago is not due; with the delay it is, and then not late.
SELECT pg_temp.publish('jitter', 'cron@v2', '{"expression": "* * * * * *", "timezone": "UTC", "misfirePolicy": "skip",
    "jitterMs": 300000, "misfireGraceMs": 60000}', 1);
CALL ql_schedule_once('test') \gset
UPDATE trigger_schedules SET next_fire_at_ms = (floor(extract(epoch FROM clock_timestamp())) * 1000 - 60000)::bigint
 WHERE trigger_id = 'jitter' RETURNING due_delay_ms BETWEEN 70000 AND 300000 AS far;
SELECT count(*) FROM ql_claim('test');
SELECT state FROM schedules WHERE trigger_id = 'jitter';
UPDATE trigger_schedules SET next_fire_at_ms = (floor(extract(epoch FROM clock_timestamp())) * 1000)::bigint - due_delay_ms / 1000 * 1000 - 1000
 WHERE trigger_id = 'jitter';
CALL pg_temp.claim();
SELECT disposition, next_ms > 0 AND next_ms <= 60000 AS next, scheduled_ms FROM pg_temp.decision();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status FROM claim, ql_admit(c);
COMMIT;
-- Beyond the delay and its own grace: late.
UPDATE trigger_schedules SET next_fire_at_ms = (floor(extract(epoch FROM clock_timestamp())) * 1000)::bigint - due_delay_ms / 1000 * 1000 - 100000
 WHERE trigger_id = 'jitter';
SELECT state FROM schedules WHERE trigger_id = 'jitter';
CALL pg_temp.claim();
SELECT disposition FROM pg_temp.decision();
SELECT ql_unschedule('jitter', 'p');

-- A grace of its own overrides the server's thirty seconds, both ways.
SELECT pg_temp.publish('grace', 'cron@v2', '{"expression": "* * * * * *", "timezone": "UTC", "misfirePolicy": "skip", "misfireGraceMs": 300000}');
UPDATE trigger_schedules SET next_fire_at_ms = (floor(extract(epoch FROM clock_timestamp())) * 1000 - 200000)::bigint WHERE trigger_id = 'grace';
SELECT state FROM schedules WHERE trigger_id = 'grace';
CALL pg_temp.claim();
SELECT disposition, scheduled_ms FROM pg_temp.decision();
SELECT pg_temp.publish('grace', 'cron@v2', '{"expression": "* * * * * *", "timezone": "UTC", "misfirePolicy": "skip", "misfireGraceMs": 0}', 1);
UPDATE trigger_schedules SET next_fire_at_ms = (floor(extract(epoch FROM clock_timestamp())) * 1000 - 2000)::bigint WHERE trigger_id = 'grace';
SELECT state FROM schedules WHERE trigger_id = 'grace';
CALL pg_temp.claim();
SELECT disposition, scheduled_ms FROM pg_temp.decision();

-- The choices for gaps, passes and days, as decided: from a cursor just before them.
CREATE FUNCTION pg_temp.next_after(expression text, rules jsonb, after timestamptz) RETURNS timestamptz LANGUAGE sql AS $$
    SELECT to_timestamp(d.next_fire_at_ms / 1000)
      FROM qinglong.ql_decide(ROW('p', 'x', 1, repeat('0', 64), 0, 'task', 1, repeat('0', 64), NULL, NULL, NULL, 1,
               extract(epoch FROM after)::bigint * 1000 + 1, 'o', gen_random_uuid(), 1,
               extract(epoch FROM after)::bigint * 1000, extract(epoch FROM after)::bigint * 1000 + 1000,
               jsonb_build_object('schema', 'qinglong/cron@v2', 'config',
                   jsonb_build_object('expression', expression, 'timezone', 'America/New_York', 'misfirePolicy', 'skip')
                   || rules))::qinglong.schedule_claim) d $$;
SELECT rules, pg_temp.next_after('30 2 * * *', rules::jsonb, '2026-03-08T05:00Z') AS gap,
       pg_temp.next_after('30 1 * * *', rules::jsonb, '2026-11-01T04:00Z') AS first_pass,
       pg_temp.next_after('30 1 * * *', rules::jsonb, '2026-11-01T05:30Z') AS second_pass,
       pg_temp.next_after('0 0 13 * 5', rules::jsonb, '2026-03-13T04:00Z') AS days
  FROM (VALUES ('{}'), ('{"gap": "skip"}'), ('{"overlap": "both"}'), ('{"overlap": "second"}'), ('{"dayMatch": "and"}')) v (rules);
SELECT * FROM ql_check();
