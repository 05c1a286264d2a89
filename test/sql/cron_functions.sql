-- ql_next_occurrence and ql_occurrences: arguments, defaults, errors, the edges of time.
CREATE EXTENSION qinglong_sched;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET search_path = qinglong, public;
\pset null NULL

-- Defaults: after = now(), count = 5.
SELECT ql_next_occurrence('* * * * *', 'UTC') = date_trunc('minute', now()) + interval '1 minute' AS next_minute;
SELECT count(*), min(o) = date_trunc('minute', now()) + interval '1 minute' AS from_now FROM ql_occurrences('* * * * *', 'UTC') o;
SELECT provolatile, proparallel, proretset, prosecdef, proname FROM pg_proc
 WHERE pronamespace = 'qinglong'::regnamespace AND proname IN ('ql_next_occurrence', 'ql_occurrences') ORDER BY proname;
SELECT * FROM ql_occurrences('0 12 * * MON-FRI', 'Europe/Berlin', '2026-03-26 00:00Z', 4);
SELECT * FROM ql_occurrences('*/15 * * * * *', 'UTC', '2026-01-01 00:00Z', 3);

-- Neither the session's time zone nor its date style has a say.
SET TimeZone = 'Asia/Tokyo';
SELECT ql_next_occurrence('0 0 * * *', 'UTC', '2026-01-01 12:00Z') = timestamptz '2026-01-02 00:00Z' AS same;
SET TimeZone = 'UTC';

-- Strictly after, and a fraction of a second counts exactly.
SELECT a, ql_next_occurrence('* * * * * *', 'UTC', a::timestamptz)
  FROM (VALUES ('2026-01-01 00:00:00Z'), ('2026-01-01 00:00:00.000001Z'), ('2026-01-01 00:00:00.999999Z'),
               ('2025-12-31 23:59:59.999999Z'), ('1969-12-31 23:59:58.5Z'), ('1969-12-31 23:59:59.999999Z'),
               ('1960-02-28 23:59:59.25Z')) v (a);
-- Ask again from the answer, and from just before it.
SELECT ql_next_occurrence('30 2 * * *', 'America/New_York', o - interval '1 microsecond') = o AS again,
       ql_next_occurrence('30 2 * * *', 'America/New_York', o) > o AS later
  FROM ql_occurrences('30 2 * * *', 'America/New_York', '2024-03-08 00:00Z', 4) o;

-- The documented gap and fold of New York.
SELECT ql_next_occurrence('30 2 * * *', 'America/New_York', '2024-03-10 05:00Z') AS gap;
SELECT * FROM ql_occurrences('15,45 2 * * *', 'America/New_York', '2024-03-10 05:00Z', 2);
SELECT * FROM ql_occurrences('30 1 * * *', 'America/New_York', '2024-11-03 04:00Z', 2);
SELECT count(*) FROM ql_occurrences('*/15 * * * *', 'America/New_York', '2024-11-03 04:59:59Z', 8) o WHERE o < '2024-11-03 07:00Z';

-- The edges of time.
SELECT ql_next_occurrence('0 0 1 1 *', 'UTC', '4713-01-01 00:00Z BC');
SELECT ql_next_occurrence('0 0 29 2 *', 'UTC', '1896-03-01 00:00Z');
SELECT ql_next_occurrence('0 0 1 1 *', 'UTC', '294276-01-01 00:00Z') AS beyond_timestamptz;
SELECT ql_next_occurrence('* * * * *', 'UTC', '294276-12-31 23:57:00Z'), ql_next_occurrence('* * * * *', 'UTC', '294276-12-31 23:59:00Z');
SELECT * FROM ql_occurrences('* * * * *', 'UTC', '294276-12-31 23:57:00Z', 10);
SELECT ql_next_occurrence('0 2 * * *', 'Europe/Berlin', '5000-07-01 00:00Z');
-- Sparse and impossible.
SELECT ql_next_occurrence('0 0 29 2 1', 'UTC', '2025-01-01 00:00Z');
SELECT ql_next_occurrence('0 0 30 2 *', 'UTC', '2025-01-01 00:00Z');
SELECT count(*) FROM ql_occurrences('0 0 31 4,6,9,11 *', 'UTC', '2025-01-01 00:00Z', 10000);

-- How many.
SELECT count(*), count(DISTINCT o), max(o) FROM ql_occurrences('* * * * * *', 'UTC', '2026-01-01 00:00Z', 10000) o;
SELECT count(*) FROM ql_occurrences('* * * * *', 'UTC', '2026-01-01 00:00Z', 1);
SELECT o FROM ql_occurrences('* * * * *', 'UTC', '2026-01-01 00:00Z', 10000) o LIMIT 1;
SELECT ql_occurrences('0 0 1 1 *', 'UTC', '2026-01-01 00:00Z', 2);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', now(), 0);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', now(), -1);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', now(), 10001);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', now(), NULL);

-- What is refused.
\set SHOW_CONTEXT never
\set VERBOSITY default
SELECT ql_next_occurrence(NULL, 'UTC', now());
SELECT ql_next_occurrence('* * * * *', NULL, now());
SELECT ql_next_occurrence('* * * * *', 'UTC', NULL);
SELECT ql_next_occurrence('* * * * *', 'UTC', 'infinity');
SELECT ql_next_occurrence('* * * * *', 'UTC', '-infinity');
SELECT * FROM ql_occurrences(NULL, 'UTC');
SELECT * FROM ql_occurrences('* * * * *', NULL);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', NULL);
SELECT * FROM ql_occurrences('* * * * *', 'UTC', 'infinity');
SELECT ql_next_occurrence('', 'UTC');
SELECT ql_next_occurrence('* * * *', 'UTC');
SELECT ql_next_occurrence('60 * * * *', 'UTC');
SELECT ql_next_occurrence('@daily', 'UTC');
SELECT ql_next_occurrence('@hourly', 'UTC');
SELECT ql_next_occurrence('@reboot', 'UTC');
SELECT ql_next_occurrence(repeat('*', 100000), 'UTC');
SELECT ql_next_occurrence(repeat('1,', 60) || '1 * * * *', 'UTC', '2026-01-01 00:00Z');
SELECT ql_next_occurrence(repeat('1,', 70) || '1 * * * *', 'UTC', '2026-01-01 00:00Z');
SELECT ql_next_occurrence('* * * * *', '');
SELECT ql_next_occurrence('* * * * *', 'America/New York');
SELECT ql_next_occurrence('* * * * *', repeat('x', 2000));

-- Zones: names of the catalogue in any case; nothing else.
SELECT z, ql_next_occurrence('0 0 * * *', z, '2026-01-01 00:30Z')
  FROM unnest('{UTC,utc,Etc/UTC,GMT,US/Eastern,us/eastern,america/new_york,ASIA/KOLKATA,Asia/Kathmandu,Australia/Lord_Howe}'::text[]) z;
CREATE FUNCTION zone_verdict(zone text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN qinglong.ql_next_occurrence('* * * * *', zone, '2026-01-01 00:00Z')::text;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN 'refused';
END $$;
SELECT quote_literal(z) AS zone, zone_verdict(z)
  FROM unnest(ARRAY['UTC+3', 'FOO3BAR', 'EST5EDT4', 'posix/Europe/Berlin', 'Posix/UTC', 'right/Europe/Berlin', 'RIGHT/UTC', 'localtime',
                    'LocalTime', 'Factory', 'posixrules', '', ' ', ' UTC', 'UTC ', 'PST', 'CEST', 'BST', '+02', '-03:30', 'Z', 'default',
                    'Europe', 'Europe/', '/Europe/Berlin', 'Europe//Berlin', '../zoneinfo/UTC', './UTC', 'Europe/Berlin' || chr(10),
                    'zone.tab', 'tzdata.zi', 'leapseconds', '<+03>-3', E'UTC\u00e9']) z;
-- No text from outside is interpreted: an empty search path and planted operators change nothing.
CREATE FUNCTION public.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.never);
SET search_path = public, qinglong, pg_catalog;
SELECT zone_verdict('nonsense');
SET search_path = '';
SELECT qinglong.ql_next_occurrence('0 0 * * *', 'Europe/Berlin', '2026-01-01 00:00Z');
