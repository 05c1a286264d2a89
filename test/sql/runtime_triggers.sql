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
RESET enable_seqscan;

-- One that looks for the rows before its own: of two only the first is let in.
DROP TRIGGER change ON qinglong.runs;
CREATE FUNCTION only_one_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN (SELECT count(*) FROM qinglong.runs) < 3 THEN NEW END;
END
$$;
CREATE TRIGGER quota BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION only_one_more();
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '2025-01-01 00:00+00') * 1000 WHERE trigger_id <> 'b';
CALL qinglong.ql_schedule_once('hand', max_claims => 2) \gset
SELECT trigger_id, admitted_total, fault_code FROM qinglong.trigger_schedules ORDER BY trigger_id;
DROP TRIGGER quota ON qinglong.runs;

-- A column and a constraint of one's own: the default is filled in, and the constraint sees the Run of its Attempt.
ALTER TABLE qinglong.runs ADD tenant text NOT NULL DEFAULT lower('ACME'), ADD number bigint GENERATED ALWAYS AS IDENTITY;
CREATE FUNCTION run_known(id uuid) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM qinglong.runs r WHERE r.id = $1) $$;
ALTER TABLE qinglong.run_attempts ADD CHECK (run_known(run_id));
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '2026-01-01 00:00+00') * 1000, fault_code = NULL, retry_at_ms = NULL;
CALL qinglong.ql_schedule_once('hand', max_claims => 3) \gset
SELECT trigger_id, tenant, number IS NOT NULL AS numbered FROM qinglong.runs WHERE scheduled_for_ms = extract(epoch FROM timestamptz '2026-01-01 00:00+00') * 1000 ORDER BY trigger_id;

-- One that drops an update of a schedule row. Of the claim: there is no claim of that row. Of the admission: nothing is written.
CREATE FUNCTION drop_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER drop_claim BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW
    WHEN (NEW.trigger_id = 'a' AND NEW.claim_token IS NOT NULL) EXECUTE FUNCTION drop_row();
CREATE TRIGGER drop_admission BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW
    WHEN (NEW.trigger_id = 'b' AND NEW.admitted_total > OLD.admitted_total) EXECUTE FUNCTION drop_row();
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '2023-01-01 00:00+00') * 1000;
CALL qinglong.ql_schedule_once('hand', max_claims => 3) \gset
SELECT s.claimed, s.admitted FROM (SELECT (:'summary'::qinglong.cycle_summary).*) s;
SELECT s.trigger_id, s.fault_code, s.claim_token IS NOT NULL AS claimed,
       (SELECT count(*) FROM qinglong.runs r WHERE r.trigger_id = s.trigger_id
           AND r.scheduled_for_ms = extract(epoch FROM timestamptz '2023-01-01 00:00+00') * 1000) AS runs
  FROM qinglong.trigger_schedules s ORDER BY s.trigger_id;
