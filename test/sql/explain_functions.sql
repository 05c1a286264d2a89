-- The functions that explain schedules to people.
CREATE EXTENSION qinglong_sched;
SET search_path = qinglong;
-- A local time that does not exist is moved, one that comes twice counts once; a job of every hour follows real time.
SELECT * FROM ql_explain_schedule('30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', 2);
SELECT * FROM ql_explain_schedule('30 2,3 * * *', 'America/New_York', '2026-03-07T12:00Z', 2);
SELECT * FROM ql_explain_schedule('30 1 * * *', 'America/New_York', '2026-11-01T00:00Z', 2);
SELECT * FROM ql_explain_schedule('30 * * * *', 'America/New_York', '2026-03-08T06:00Z', 2);
SELECT * FROM ql_explain_schedule('30 * * * *', 'America/New_York', '2026-11-01T05:00Z', 3);
SELECT * FROM ql_explain_schedule('* * * * *', 'Australia/Lord_Howe', '2026-10-03T15:28Z', 3);
SELECT * FROM ql_explain_schedule('0 12 30 12 *', 'Pacific/Apia', '2011-12-01T00:00Z', 1);
SELECT * FROM ql_explain_schedule('0 0 30 2 *', 'UTC');
SELECT count(*), count(occurrence) FROM ql_explain_schedule('* * * * * *', 'UTC', count => 10000);
-- What is shown is what the other functions answer.
SELECT bool_and(e.occurrence = o.occurrence) AS same, count(*)
  FROM (SELECT occurrence, row_number() OVER () AS n
          FROM ql_explain_schedule('*/10 0-3 * * *', 'Europe/Berlin', '2026-01-01T00:00Z', 5000)
         WHERE occurrence IS NOT NULL) e
  FULL JOIN (SELECT o AS occurrence, row_number() OVER () AS n
               FROM ql_occurrences('*/10 0-3 * * *', 'Europe/Berlin', '2026-01-01T00:00Z', 5000) o) o USING (n);
SELECT bool_and(to_char(e.occurrence AT TIME ZONE 'Asia/Kathmandu', 'YYYY-MM-DD HH24:MI:SS') = e.local_time
                AND e.occurrence AT TIME ZONE 'Asia/Kathmandu' = e.occurrence AT TIME ZONE 'UTC' + e.utc_offset) AS right_reading
  FROM ql_explain_schedule('17 3 * * *', 'Asia/Kathmandu', '1980-01-01T00:00Z', 5000) e;

-- Wrong arguments.
SELECT * FROM ql_explain_schedule('61 * * * *', 'UTC');
SELECT * FROM ql_explain_schedule('* * * * *', 'Europe/Berlinn');
SELECT * FROM ql_explain_schedule('* * * * *', 'UTC', NULL);
SELECT * FROM ql_explain_schedule('* * * * *', 'UTC', 'infinity');
SELECT * FROM ql_explain_schedule('* * * * *', 'UTC', count => 0);
SELECT * FROM ql_explain_schedule(NULL, 'UTC');
SELECT ql_describe_schedule('@daily');
SELECT ql_describe_schedule(NULL);

SELECT e AS expression, ql_describe_schedule(e)
  FROM unnest(ARRAY['* * * * *', '*/15 * * * *', '0 9 * * 1-5', '30 2 1,15 * *', '0 0 1,15 * 1', '0 9-17 * * *',
                    '*/10 * * * * *', '0 0 L * *', '0 0 15W * *', '0 0 * * 5#2', '0 0 * * 1L', '0 0 1 */3 *',
                    '0 0 30 2 *']) e;

-- A published trigger, as schedulers would decide now.
SELECT status FROM ql_schedule('a', '0 9 1 1 *', 'true', 'Europe/Berlin');
SELECT to_char(occurrence AT TIME ZONE 'Europe/Berlin', 'MM-DD HH24:MI') AS at, local_time ~ '-01-01 09:00:00$' AS local,
       utc_offset, note FROM ql_explain_trigger('default', 'a', 2);
CALL ql_schedule_once('test') \gset
SELECT (SELECT occurrence FROM ql_explain_trigger('default', 'a', 1)) = next_fire_at AS one_truth FROM schedules;
-- One that is due is shown; one that will be skipped is not.
SELECT status FROM ql_schedule('b', '* * * * *', 'true', misfire_policy => 'fire_once');
CALL ql_schedule_once('test') \gset
UPDATE trigger_schedules SET next_fire_at_ms = next_fire_at_ms - 86400000 WHERE trigger_id = 'b';
SELECT occurrence < now() - interval '23 hours' AS due_long_ago, occurrence > now() AS ahead
  FROM ql_explain_trigger('default', 'b', 3) ORDER BY occurrence;
SELECT status FROM ql_schedule('b', '* * * * *', 'true', misfire_policy => 'skip');
CALL ql_schedule_once('test') \gset
UPDATE trigger_schedules SET next_fire_at_ms = next_fire_at_ms - 86400000 WHERE trigger_id = 'b';
SELECT occurrence > now() AS ahead FROM ql_explain_trigger('default', 'b', 2);
SELECT ql_unschedule('b');
SELECT count(*) AS disabled FROM ql_explain_trigger('default', 'b');
SELECT * FROM ql_explain_trigger('default', 'nosuch');
SELECT * FROM ql_explain_trigger('default', 'a', 10001);

-- Rights: a monitor may ask about a trigger; a role that only takes work may not.
CREATE ROLE regress_explain_monitor;
CREATE ROLE regress_explain_ingress;
SELECT ql_grant('regress_explain_monitor', 'monitor'), ql_grant('regress_explain_ingress', 'worker_ingress');
SET ROLE regress_explain_monitor;
SELECT count(*) FROM ql_explain_trigger('default', 'a', 1);
SELECT count(*) FROM ql_explain_schedule('* * * * *', 'UTC', count => 1);
SET ROLE regress_explain_ingress;
SELECT ql_describe_schedule('* * * * *');
SELECT count(*) FROM ql_explain_trigger('default', 'a', 1);
RESET ROLE;
SELECT ready FROM ql_readiness();
DROP EXTENSION qinglong_sched CASCADE;
DROP OWNED BY regress_explain_monitor, regress_explain_ingress;
DROP ROLE regress_explain_monitor, regress_explain_ingress;
