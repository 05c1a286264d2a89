-- What a schedule means, for people. All of it comes from the function that schedulers decide with.

CREATE FUNCTION qinglong.ql_explain_schedule(expression text, timezone text, after timestamptz DEFAULT now(),
                                             count integer DEFAULT 10)
RETURNS TABLE (occurrence timestamptz, local_time text, utc_offset interval, note text)
AS 'MODULE_PATHNAME', 'ql_explain_schedule'
LANGUAGE C STABLE PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION qinglong.ql_explain_schedule(text, text, timestamptz, integer) IS
    'The next occurrences (1 to 10,000) of a cron expression with their local time, and what clock changes do to them; a row without occurrence is a local time that the schedule loses';
REVOKE ALL ON FUNCTION qinglong.ql_explain_schedule(text, text, timestamptz, integer) FROM PUBLIC;

CREATE FUNCTION qinglong.ql_describe_schedule(expression text) RETURNS text
AS 'MODULE_PATHNAME', 'ql_describe_schedule'
LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION qinglong.ql_describe_schedule(text) IS 'What a cron expression means, in one English sentence';
REVOKE ALL ON FUNCTION qinglong.ql_describe_schedule(text) FROM PUBLIC;

-- Security definer: it reads a spec, which a monitor may not see; it shows its occurrences only.
CREATE FUNCTION qinglong.ql_explain_trigger(project_id text, trigger_id text, count integer DEFAULT 10)
RETURNS TABLE (occurrence timestamptz, local_time text, utc_offset interval, note text)
AS 'MODULE_PATHNAME', 'ql_explain_trigger'
LANGUAGE C VOLATILE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION qinglong.ql_explain_trigger(text, text, integer) IS
    'The next occurrences (1 to 10,000) of a published trigger as schedulers would decide now; none while it may not fire';
REVOKE ALL ON FUNCTION qinglong.ql_explain_trigger(text, text, integer) FROM PUBLIC;
