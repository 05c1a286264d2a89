-- Days on which schedulers are known to go wrong, in the zones where it happened. Instants are in UTC.
CREATE EXTENSION qinglong_sched;
SET search_path = qinglong;
CREATE TEMP TABLE cases (n int GENERATED ALWAYS AS IDENTITY, expression text, timezone text, after timestamptz,
                         expected timestamptz[]);
INSERT INTO cases (expression, timezone, after, expected) VALUES
    ('0 17 * * *', 'America/New_York', '2016-03-12T22:00Z', '{2016-03-13T21:00Z}'),
    ('30 2 * * *', 'America/New_York', '2026-03-08T06:30Z', '{2026-03-08T07:30Z}'),
    ('0 2 * * *', 'America/Los_Angeles', '2025-03-09T07:59Z', '{2025-03-09T10:00Z}'),
    ('0 0 1 4 11 *', 'America/Sao_Paulo', '2018-11-04T02:00Z', '{2018-11-04T03:00Z}'),
    ('0 0 12 11,26 * *', 'America/Sao_Paulo', '2014-10-12T15:00Z', '{2014-10-26T14:00Z}'),
    ('0 6 * * *', 'America/Santiago', '2018-08-12T00:00Z', '{2018-08-12T09:00Z}'),
    ('* * * * *', 'America/Sao_Paulo', '2016-02-21T02:00Z', '{2016-02-21T02:01Z}'),
    ('0 7-8 * * *', 'America/Los_Angeles', '2020-03-08T07:59Z', '{2020-03-08T14:00Z,2020-03-08T15:00Z}'),
    ('20 */4 * * *', 'America/Los_Angeles', '2023-03-12T07:59Z',
     '{2023-03-12T08:20Z,2023-03-12T11:20Z,2023-03-12T15:20Z,2023-03-12T19:20Z,2023-03-12T23:20Z}'),
    ('0 */2 * * *', 'America/Toronto', '2023-03-12T04:59Z',
     '{2023-03-12T05:00Z,2023-03-12T07:00Z,2023-03-12T08:00Z,2023-03-12T10:00Z,2023-03-12T12:00Z}'),
    ('30 2 * * *', 'Europe/Amsterdam', '2023-03-25T12:00Z', '{2023-03-26T01:30Z}'),
    ('0 9 * * mon,tue,wed,thu,fri', 'UTC', '2010-08-07T00:00Z', '{2010-08-09T09:00Z,2010-08-10T09:00Z}'),
    ('1 1 1 1 1', 'UTC', '2027-01-01T00:00Z',
     '{2027-01-01T01:01Z,2027-01-04T01:01Z,2027-01-11T01:01Z,2027-01-18T01:01Z,2027-01-25T01:01Z}'),
    ('0 0 10,14,16 ? * MON-FRI', 'UTC', '2026-01-17T12:00Z', '{2026-01-19T10:00Z}'),
    ('0 1/4 * * *', 'UTC', '2026-01-15T00:00Z',
     '{2026-01-15T01:00Z,2026-01-15T05:00Z,2026-01-15T09:00Z,2026-01-15T13:00Z,2026-01-15T17:00Z,2026-01-15T21:00Z}'),
    ('0 9 15 1 *', 'America/St_Johns', '2026-01-01T00:00Z', '{2026-01-15T12:30Z}'),
    ('0 9 15 1 *', 'Pacific/Marquesas', '2026-01-01T00:00Z', '{2026-01-15T18:30Z}'),
    ('0 9 15 1 *', 'Asia/Kathmandu', '2026-01-01T00:00Z', '{2026-01-15T03:15Z}'),
    ('0 9 15 1 *', 'Pacific/Chatham', '2026-01-01T00:00Z', '{2026-01-14T19:15Z}'),
    ('0 9 15 1 *', 'Pacific/Kiritimati', '2026-01-01T00:00Z', '{2026-01-14T19:00Z}');
SELECT c.n, c.expression, c.timezone, found.instants = c.expected AS next, shown.instants = c.expected AS explained
  FROM cases c,
       LATERAL (SELECT array_agg(o ORDER BY o) AS instants
                  FROM ql_occurrences(c.expression, c.timezone, c.after, cardinality(c.expected)) o) found,
       LATERAL (SELECT array_agg(e.occurrence ORDER BY e.occurrence) FILTER (WHERE e.occurrence IS NOT NULL) AS instants
                  FROM ql_explain_schedule(c.expression, c.timezone, c.after, cardinality(c.expected)) e) shown
 ORDER BY c.n;

-- Every 15 seconds go on through the hour that comes twice.
SELECT count(*) FILTER (WHERE o < '2025-10-26T02:00Z') AS second_pass, count(DISTINCT o) AS different
  FROM ql_occurrences('*/15 * * * * *', 'Europe/London', '2025-10-26T00:59:59Z', 480) o;
-- No instant twice, around the gap of Toronto.
SELECT count(*), count(DISTINCT o) FROM ql_occurrences('0 */2 * * *', 'America/Toronto', '2023-03-11T00:00Z', 100) o;
-- One day in January 2027 has both the date and the weekday; none counts twice.
SELECT array_agg(extract(day FROM o)) AS days
  FROM ql_occurrences('1 1 1 1 1', 'UTC', '2026-12-31T00:00Z', 5) o;

-- What is refused, and how.
SELECT ql_next_occurrence(repeat('1,', 499) || '1 * * * *', 'UTC');
SELECT ql_next_occurrence('* * * * *', 'GMT+24');
SELECT ql_next_occurrence('* * * * *', 'UTC+5');
SELECT ql_next_occurrence('* * * * *', 'FOO+3');

-- A trigger's zone is changed while a cursor is stored: the next occurrence is the new zone's.
SELECT status, trigger_revision FROM ql_schedule('moved', '0 9 1 1 *', 'true', 'Asia/Tokyo');
CALL ql_schedule_once('test') \gset
SELECT to_char(next_fire_at AT TIME ZONE 'Asia/Tokyo', 'MM-DD HH24:MI') AS local FROM schedules;
SELECT status, trigger_revision FROM ql_schedule('moved', '0 9 1 1 *', 'true', 'America/New_York');
CALL ql_schedule_once('test') \gset
SELECT to_char(next_fire_at AT TIME ZONE 'America/New_York', 'MM-DD HH24:MI') AS local FROM schedules;

-- An instant that was admitted is never admitted again, whichever zone it is then read in: the last one is admitted
-- in one zone, then asked for again in another that is twelve hours away.
SELECT status, trigger_revision FROM ql_schedule('again', '0 */12 * * *', 'true', 'UTC', 'fire_once');
CALL ql_schedule_once('test') \gset
UPDATE trigger_schedules SET next_fire_at_ms = next_fire_at_ms - 43200000 WHERE trigger_id = 'again'
RETURNING next_fire_at_ms AS first_ms \gset
CALL ql_schedule_once('test') \gset
SELECT count(*), min(scheduled_for_ms) = :first_ms AS the_first FROM runs;
SELECT status, trigger_revision FROM ql_schedule('again', '0 */12 * * *', 'true', 'Pacific/Wallis', 'fire_once');
CALL ql_schedule_once('test') \gset
UPDATE trigger_schedules SET next_fire_at_ms = :first_ms WHERE trigger_id = 'again';
CREATE TEMP TABLE claims AS SELECT c FROM ql_claim('test', max_claims => 5) c;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT a.status, a.scheduled_for_ms = :first_ms AS the_first FROM claims, ql_admit(claims.c) a;
COMMIT;
SELECT count(*), admitted_total FROM runs, trigger_schedules s WHERE s.trigger_id = 'again' GROUP BY admitted_total;
SELECT * FROM ql_check();
