-- Every row of test/data/cron through SQL; only counts and mismatches are shown.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set vectors :abs_srcdir '/data/cron/vectors.tsv'
\set invalid :abs_srcdir '/data/cron/invalid.tsv'

CREATE TABLE vectors (id text, expression text, timezone text, after_ms bigint,
                      next_1 text, next_2 text, next_3 text, next_4 text, next_5 text, tag text);
CREATE TABLE invalid (escaped text, why text);
COPY vectors FROM :'vectors' WITH (FORMAT csv, DELIMITER E'\t', QUOTE E'\x01', HEADER);
COPY invalid FROM :'invalid' WITH (FORMAT csv, DELIMITER E'\t', QUOTE E'\x01', NULL E'\x02', HEADER);
UPDATE vectors SET expression = COALESCE(expression, ''), timezone = COALESCE(timezone, '');

CREATE FUNCTION at_ms(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$ SELECT timestamptz 'epoch' + ms * interval '1 millisecond' $$;
CREATE FUNCTION to_ms(t timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT (extract(epoch FROM t) * 1000)::bigint::text $$;

-- What each function answers, five times: instants, NONE or ERROR.
CREATE FUNCTION chained(expression text, timezone text, after_ms bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    answers text[] := '{}';
    t timestamptz := at_ms(after_ms);
BEGIN
    FOR i IN 1..5 LOOP
        IF t IS NOT NULL THEN
            t := qinglong.ql_next_occurrence(expression, timezone, t);
        END IF;
        answers := answers || COALESCE(to_ms(t), 'NONE');
    END LOOP;
    RETURN answers;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN '{ERROR,ERROR,ERROR,ERROR,ERROR}';
END $$;
CREATE FUNCTION listed(expression text, timezone text, after_ms bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    answers text[];
BEGIN
    SELECT COALESCE(array_agg(to_ms(o) ORDER BY ord), '{}') INTO answers
      FROM qinglong.ql_occurrences(expression, timezone, at_ms(after_ms)) WITH ORDINALITY AS f (o, ord);
    RETURN answers || array_fill('NONE'::text, ARRAY[5 - cardinality(answers)]);
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN '{ERROR,ERROR,ERROR,ERROR,ERROR}';
END $$;

SELECT count(*), count(*) FILTER (WHERE next_1 = 'ERROR') AS errors, count(*) FILTER (WHERE next_1 = 'NONE') AS never,
       count(DISTINCT timezone) AS zones
  FROM vectors;
WITH asked AS (
    SELECT id, expression, timezone, after_ms, tag,
           CASE next_1 WHEN 'ERROR' THEN '{ERROR,ERROR,ERROR,ERROR,ERROR}'
                       ELSE ARRAY[next_1, COALESCE(next_2, 'NONE'), COALESCE(next_3, 'NONE'), COALESCE(next_4, 'NONE'),
                                  COALESCE(next_5, 'NONE')] END AS expected,
           chained(expression, timezone, after_ms) AS chained, listed(expression, timezone, after_ms) AS listed
      FROM vectors)
SELECT * FROM asked WHERE chained <> expected OR listed <> expected ORDER BY id;

-- A zone that cannot be used is refused whatever the expression.
SELECT DISTINCT timezone FROM vectors WHERE tag = 'invalid-zone' ORDER BY 1;

SELECT count(*) FROM invalid;
-- jsonb cannot hold U+0000, and neither can a text argument.
SELECT escaped, why
  FROM invalid
 WHERE escaped !~ '\\u0000'
   AND (chained(('"' || escaped || '"')::jsonb #>> '{}', 'UTC', 0) <> '{ERROR,ERROR,ERROR,ERROR,ERROR}'
        OR listed(('"' || escaped || '"')::jsonb #>> '{}', 'UTC', 0) <> '{ERROR,ERROR,ERROR,ERROR,ERROR}')
 ORDER BY 1;
