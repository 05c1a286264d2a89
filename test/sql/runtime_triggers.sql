-- Triggers of one's own on what claims and admissions write: they fire, may change rows, and may refuse one.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
SELECT t.publish(id, '0 0 1 1 *', 'fire_once', 60000) FROM unnest('{a,b,c}'::text[]) id \g /dev/null
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '2024-01-01 00:00+00') * 1000;

CREATE TABLE heard (what text, n bigint);
CREATE FUNCTION hear_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.heard SELECT format('%s %s %s, new rows', TG_TABLE_NAME, TG_WHEN, TG_OP), count(*) FROM new_rows;
    RETURN NULL;
END
$$;
CREATE FUNCTION hear_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.heard VALUES (format('%s %s %s, row', TG_TABLE_NAME, TG_WHEN, TG_OP), 1);
    RETURN NEW;
END
$$;
CREATE FUNCTION change_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.priority := 7;
    RETURN CASE WHEN NEW.trigger_id <> 'b' THEN NEW END;
END
$$;
CREATE TRIGGER statement AFTER INSERT ON qinglong.runs REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION hear_statement();
CREATE TRIGGER row AFTER INSERT ON qinglong.run_events FOR EACH ROW EXECUTE FUNCTION hear_row();
CREATE TRIGGER row BEFORE INSERT ON qinglong.run_attempts FOR EACH ROW EXECUTE FUNCTION hear_row();
CREATE TRIGGER row AFTER UPDATE ON qinglong.trigger_schedules FOR EACH ROW EXECUTE FUNCTION hear_row();
CREATE TRIGGER change BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION change_row();

-- The Run of b is refused: b alone fails and waits, the others are admitted.
CALL qinglong.ql_schedule_once('hand', max_claims => 3) \gset
SELECT s.claimed, s.admitted, s.saturated FROM (SELECT (:'summary'::qinglong.cycle_summary).*) s;
SELECT what, sum(n) FROM heard GROUP BY what ORDER BY what;
SELECT trigger_id, priority FROM qinglong.runs ORDER BY trigger_id;
SELECT trigger_id, admitted_total, fault_code, retry_at_ms > 0 AS retried_later FROM qinglong.trigger_schedules ORDER BY trigger_id;
SELECT * FROM qinglong.ql_check();
-- An index finds the row as the trigger made it.
SET enable_seqscan = off;
SELECT count(*) FROM qinglong.runs WHERE status IN ('queued', 'dispatching') AND cancel_requested_at_ms IS NULL
   AND queued_at_ms IS NOT NULL AND priority = 7;
