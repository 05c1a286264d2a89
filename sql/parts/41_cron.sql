CREATE FUNCTION qinglong.ql_next_occurrence(expression text, timezone text, after timestamptz DEFAULT now())
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'ql_next_occurrence'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION qinglong.ql_next_occurrence(text, text, timestamptz) IS
    'First occurrence of a cron expression in a time zone strictly after a moment; NULL when there is none';

CREATE FUNCTION qinglong.ql_occurrences(expression text, timezone text, after timestamptz DEFAULT now(),
                                        count integer DEFAULT 5)
RETURNS SETOF timestamptz
AS 'MODULE_PATHNAME', 'ql_occurrences'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION qinglong.ql_occurrences(text, text, timestamptz, integer) IS
    'The next occurrences (1 to 10,000) of a cron expression in a time zone strictly after a moment';
