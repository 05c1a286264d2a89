-- What the specs race_* share, loaded by own-db. Nothing here depends on the extension: one of them drops it.
CREATE TABLE claims (name text PRIMARY KEY, c text);

-- Gates: a session stops where it writes a Run (lock 1), or a claim of r2 (lock 2), until whoever holds the lock lets go of it.
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int);
    RETURN NEW;
END $$;

-- Each permutation has a project of its own, with three triggers that are due, and claims of r1 on them, if wanted. The rows
-- of the projects before it are never due again.
CREATE SEQUENCE permutation;
CREATE FUNCTION p() RETURNS text LANGUAGE sql AS $$ SELECT 'p' || last_value FROM permutation $$;
CREATE FUNCTION fresh(claimed boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL client_min_messages = error;
    CREATE EXTENSION IF NOT EXISTS qinglong_sched;
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'gate') THEN
        CREATE TRIGGER gate BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION gate(1);
        CREATE TRIGGER gate BEFORE UPDATE ON qinglong.trigger_schedules
            FOR EACH ROW WHEN (NEW.claim_owner = 'r2') EXECUTE FUNCTION gate(2);
    END IF;
    PERFORM nextval('permutation');
    UPDATE qinglong.trigger_schedules
       SET next_fire_at_ms = 4102444800000, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL
     WHERE next_fire_at_ms IS DISTINCT FROM 4102444800000;
    PERFORM qinglong.ql_schedule(id, '* * * * *', 'true', 'UTC', 'fire_once', p()) FROM unnest('{a,b,c}'::text[]) id;
    UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000 WHERE project_id = p();
    DELETE FROM claims;
    IF claimed THEN
        INSERT INTO claims SELECT c.trigger_id, c::text FROM qinglong.ql_claim('r1', 60000, 3) c;
    END IF;
END $$;

-- The lease of a has ended.
CREATE FUNCTION expire() RETURNS void LANGUAGE sql AS $$
    UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1 WHERE project_id = p() AND trigger_id = 'a'
$$;

-- Quarantined, as an admission does it.
CREATE FUNCTION quarantine() RETURNS void LANGUAGE sql AS $$
    UPDATE qinglong.trigger_schedules
       SET fault_code = 'spec_damaged', fault_count = 1, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
           state_version = state_version + 1 WHERE project_id = p() AND trigger_id = 'a'
$$;

CREATE FUNCTION task(id text) RETURNS text LANGUAGE sql AS $$
    SELECT status FROM qinglong.ql_task_publish(p(), id, id,
        '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "other"}}}', 1)
$$;

-- What a statement answers when its tables may vanish while it waits for them. The server opens the row type of a result
-- before it calls anything, and has no better word for one that is gone than an internal error with a number.
CREATE FUNCTION attempt(statement text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement INTO answer;
EXCEPTION
    WHEN undefined_table THEN answer := 'gone';
    WHEN object_not_in_prerequisite_state THEN
        answer := CASE WHEN SQLERRM = 'extension qinglong_sched is not installed in this database' THEN 'gone' ELSE SQLERRM END;
    WHEN internal_error THEN
        answer := CASE WHEN SQLERRM ~ '^could not open relation with OID [0-9]+$' THEN 'gone' ELSE SQLERRM END;
END $$;

-- All that a permutation left: each trigger's row, its Runs with Attempts and Events, and the findings of ql_check().
CREATE FUNCTION outcome(OUT id text, OUT rev int, OUT owner text, OUT cv bigint, OUT eligible boolean, OUT fault text,
                        OUT admitted bigint, OUT runs bigint, OUT attempts bigint, OUT events bigint, OUT findings bigint)
RETURNS SETOF record LANGUAGE sql AS $$
    SELECT s.trigger_id, s.trigger_revision, s.claim_owner, s.claim_version, s.eligible, s.fault_code, s.admitted_total,
           r.runs, r.attempts, r.events, (SELECT count(*) FROM qinglong.ql_check())
      FROM qinglong.trigger_schedules s,
           LATERAL (SELECT count(DISTINCT r.id) AS runs, count(DISTINCT t.id) AS attempts, count(DISTINCT e.id) AS events
                      FROM qinglong.runs r LEFT JOIN qinglong.run_attempts t ON t.run_id = r.id LEFT JOIN qinglong.run_events e ON e.run_id = r.id
                     WHERE r.project_id = p() AND r.trigger_id = s.trigger_id) r
     WHERE s.project_id = p()
     ORDER BY 1
$$;
