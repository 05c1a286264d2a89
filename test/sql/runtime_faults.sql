-- Each step of an admission made to fail: nothing of it remains, and once the obstacle is gone the occurrence is admitted, once.
CREATE EXTENSION qinglong_sched;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/lib/runtime.psql'
\set ECHO none
\i :helpers
\set ECHO all
\set SHOW_CONTEXT never
\pset null NULL
\set serializable 'BEGIN ISOLATION LEVEL SERIALIZABLE;'
CREATE FUNCTION obstacle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'obstacle' USING ERRCODE = TG_ARGV[0]; END $$;
CREATE FUNCTION counts(s text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(s::qinglong.cycle_summary) - '{first_claim_acquired_at_ms,last_claim_acquired_at_ms}'::text[] $$;

-- D11.1: INSERT of the Run, of the Attempt, of an Event, and the cursor's UPDATE, stopped by a trigger. The single form raises
-- what was raised, the batch reports it, a cycle backs off; none of them writes anything else.
SELECT t.publish('a', '* * * * *', 'fire_once', 60000);
CREATE TABLE steps (n int, obstacle text, tab text);
INSERT INTO steps VALUES
    (1, $$CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION obstacle('22012')$$, 'runs'),
    (2, $$CREATE TRIGGER obstacle AFTER INSERT ON qinglong.runs FOR EACH STATEMENT EXECUTE FUNCTION obstacle('22012')$$, 'runs'),
    (3, $$CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.run_attempts FOR EACH ROW EXECUTE FUNCTION obstacle('22012')$$, 'run_attempts'),
    (4, $$CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.run_events FOR EACH ROW WHEN (NEW.sequence = 1) EXECUTE FUNCTION obstacle('22012')$$, 'run_events'),
    (5, $$CREATE TRIGGER obstacle AFTER INSERT ON qinglong.run_events FOR EACH ROW WHEN (NEW.sequence = 2) EXECUTE FUNCTION obstacle('22012')$$, 'run_events'),
    (6, $$CREATE TRIGGER obstacle BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (NEW.admitted_total > OLD.admitted_total) EXECUTE FUNCTION obstacle('22012')$$, 'trigger_schedules'),
    (7, $$CREATE TRIGGER obstacle AFTER UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (NEW.admitted_total > OLD.admitted_total) EXECUTE FUNCTION obstacle('22012')$$, 'trigger_schedules');
CREATE PROCEDURE try_direct() LANGUAGE plpgsql AS $$
DECLARE
    s steps;
    claim qinglong.schedule_claim;
    before text;
    single text;
    batch text;
BEGIN
    FOR s IN SELECT * FROM steps ORDER BY n LOOP
        EXECUTE s.obstacle;
        PERFORM t.claim('a', 'a', 61000);
        SELECT (c).* INTO claim FROM t.claims WHERE name = 'a';
        before := t.fingerprint();
        COMMIT;
        BEGIN
            single := (qinglong.ql_admit(claim)).status;
        EXCEPTION WHEN OTHERS THEN single := SQLSTATE || ' ' || SQLERRM;
        END;
        COMMIT;
        SELECT status || ' ' || sqlstate || ' ' || message INTO batch FROM qinglong.ql_admit_batch(ARRAY[claim]);
        COMMIT;
        RAISE NOTICE 'step %: single: %, batch: %, unchanged: %', s.n, single, batch, before = t.fingerprint();
        EXECUTE format('DROP TRIGGER obstacle ON qinglong.%I', s.tab);
        COMMIT;
    END LOOP;
END $$;
SET default_transaction_isolation = 'serializable';
CALL try_direct();
RESET default_transaction_isolation;
SELECT * FROM t.counts();
-- the very claim is good for the rest of its lease
:serializable
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a;
COMMIT;
SELECT t.consistent();

-- A constraint instead: each table in turn, in a cycle. The row waits with a reason, then succeeds; the wait doubles.
SELECT t.publish('b', '* * * * *', 'fire_once', 60000);
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000 WHERE trigger_id = 'a';
ALTER TABLE qinglong.runs ADD CONSTRAINT obstacle CHECK (trigger_id <> 'b');
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT fault_code, fault_count, retry_at_ms - updated_at_ms AS delay, next_fire_at_ms, num_nonnulls(claim_owner, claim_token, claim_expires_at_ms) AS claim
  FROM qinglong.trigger_schedules WHERE trigger_id = 'b';
SELECT state, fault FROM qinglong.schedules WHERE trigger_id = 'b';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary') ->> 'claimed' AS not_before_its_time;
ALTER TABLE qinglong.runs DROP CONSTRAINT obstacle;
ALTER TABLE qinglong.run_attempts ADD CONSTRAINT obstacle CHECK (status <> 'claimed') NOT VALID;
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'b';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT fault_code, fault_count, retry_at_ms - updated_at_ms AS delay FROM qinglong.trigger_schedules WHERE trigger_id = 'b';
ALTER TABLE qinglong.run_attempts DROP CONSTRAINT obstacle;
ALTER TABLE qinglong.run_events ADD CONSTRAINT obstacle CHECK (sequence <> 2) NOT VALID;
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'b';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT fault_code, fault_count, retry_at_ms - updated_at_ms AS delay FROM qinglong.trigger_schedules WHERE trigger_id = 'b';
ALTER TABLE qinglong.run_events DROP CONSTRAINT obstacle;
ALTER TABLE qinglong.trigger_schedules ADD CONSTRAINT obstacle CHECK (next_fire_at_ms <= 60000) NOT VALID;
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'b';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT fault_code, fault_count, retry_at_ms - updated_at_ms AS delay FROM qinglong.trigger_schedules WHERE trigger_id = 'b';
ALTER TABLE qinglong.trigger_schedules DROP CONSTRAINT obstacle;
SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'b';
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'b';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT fault_code, fault_count, retry_at_ms, admitted_total FROM qinglong.trigger_schedules WHERE trigger_id = 'b';
SELECT scheduled_for_ms, count(*) FROM qinglong.runs WHERE trigger_id = 'b' GROUP BY 1;
SELECT t.consistent();
-- The wait is bounded.
SELECT t.publish('bound', '* * * * *', 'fire_once', 60000);
UPDATE qinglong.trigger_schedules SET fault_code = 'error_22012', fault_count = 2147483646, retry_at_ms = 0 WHERE trigger_id = 'bound';
CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION obstacle('22012');
CALL qinglong.ql_schedule_once('r1') \gset
SELECT fault_count, retry_at_ms - updated_at_ms AS delay FROM qinglong.trigger_schedules WHERE trigger_id = 'bound';
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'bound';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT fault_code, fault_count, claim_owner FROM qinglong.trigger_schedules WHERE trigger_id = 'bound';
DROP TRIGGER obstacle ON qinglong.runs;
UPDATE qinglong.trigger_schedules SET retry_at_ms = NULL, fault_code = NULL, next_fire_at_ms = 4102444800000, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL WHERE trigger_id = 'bound';

-- Errors of every kind back off with their SQLSTATE in lower case; 40001, 40P01 and 55P03 after three tries; classes 53 and 57 too (I7).
SELECT t.publish('c', '* * * * *', 'fire_once', 60000);
CREATE SEQUENCE tries;
CREATE FUNCTION counting_obstacle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.tries'); RAISE EXCEPTION 'obstacle' USING ERRCODE = TG_ARGV[0]; END $$;
CREATE PROCEDURE try_cycle(states text[]) LANGUAGE plpgsql AS $$
DECLARE
    state text;
    s qinglong.cycle_summary;
    r record;
BEGIN
    FOREACH state IN ARRAY states LOOP
        EXECUTE format('CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION counting_obstacle(%L)', state);
        UPDATE qinglong.trigger_schedules SET fault_code = NULL, fault_count = 0, retry_at_ms = NULL WHERE trigger_id = 'c';
        PERFORM setval('tries', 1, false);
        COMMIT;
        CALL qinglong.ql_schedule_once('r1', s);
        SELECT fault_code, fault_count, retry_at_ms IS NOT NULL AS retry, claim_owner INTO r FROM qinglong.trigger_schedules WHERE trigger_id = 'c';
        RAISE NOTICE '%: claimed %, fault % x %, retry %, claim %, three tries %', state, s.claimed, r.fault_code, r.fault_count, r.retry, r.claim_owner, (SELECT last_value >= 3 FROM tries);
        DROP TRIGGER obstacle ON qinglong.runs;
        COMMIT;
    END LOOP;
END $$;
SET client_min_messages = notice;
CALL try_cycle('{23505,40001,40P01,55P03,53100,53200,42501,P0001,QL003,XX000,XX001,0A000,25006}');
SELECT t.fingerprint() IS NOT NULL, count(*) FROM qinglong.runs WHERE trigger_id = 'c';
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE trigger_id = 'c';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary'), count(*) FROM qinglong.runs WHERE trigger_id = 'c';

-- A permission revoked: a replica's role without INSERT on one of the tables.
CREATE ROLE regress_ql_replica;
SELECT qinglong.ql_grant('regress_ql_replica', 'runtime');
GRANT USAGE ON SCHEMA t TO regress_ql_replica;
GRANT SELECT ON t.claims TO regress_ql_replica;
SELECT t.publish('p', '* * * * *', 'fire_once', 60000);
SELECT t.claim('p', 'p', 61000);
REVOKE INSERT ON qinglong.run_events FROM regress_ql_replica;
SELECT t.fingerprint() AS before \gset
\set VERBOSITY sqlstate
:serializable
SET LOCAL ROLE regress_ql_replica;
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'p';
ROLLBACK;
REVOKE UPDATE ON qinglong.trigger_schedules FROM regress_ql_replica;
:serializable
SET LOCAL ROLE regress_ql_replica;
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'p';
ROLLBACK;
\set VERBOSITY default
SELECT t.fingerprint() = :'before' AS unchanged;
SELECT qinglong.ql_grant('regress_ql_replica', 'runtime');
:serializable
SET LOCAL ROLE regress_ql_replica;
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'p';
COMMIT;
SELECT qinglong.ql_revoke('regress_ql_replica', 'runtime');
DROP OWNED BY regress_ql_replica;
DROP ROLE regress_ql_replica;

-- A cancelled statement: an INSERT that takes too long. Cancellation is nobody's fault: it ends the call, nothing of it remains.
SELECT t.publish('k', '* * * * *', 'fire_once', 60000);
SELECT t.claim('k', 'k', 61000);
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.run_attempts FOR EACH ROW EXECUTE FUNCTION slow();
SELECT t.fingerprint() AS before \gset
\set VERBOSITY sqlstate
:serializable
SET LOCAL statement_timeout = '100ms';
SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = 'k';
ROLLBACK;
:serializable
SET LOCAL statement_timeout = '100ms';
SELECT status FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM t.claims WHERE name = 'k'));
ROLLBACK;
\set VERBOSITY default
SELECT t.fingerprint() = :'before' AS unchanged;
-- in a cycle the claim is committed already and stays until its lease ends, which another replica then takes over
UPDATE qinglong.trigger_schedules SET claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL WHERE trigger_id = 'k';
SET statement_timeout = '1s';
CALL qinglong.ql_schedule_once('r1');
RESET statement_timeout;
SELECT claimed, fault, cursor, admitted FROM t.rows WHERE trigger_id = 'k';
DROP TRIGGER obstacle ON qinglong.run_attempts;
CALL qinglong.ql_schedule_once('r2') \gset
SELECT counts(:'summary') ->> 'claimed' AS claimed;
UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1 WHERE trigger_id = 'k';
CALL qinglong.ql_schedule_once('r2') \gset
SELECT counts(:'summary');

-- One bad row among 256: the other 255 are admitted in the same call; with seven bad ones the other 249.
SELECT t.publish('w' || lpad(i::text, 3, '0'), '* * * * *', 'fire_once', 60000) FROM generate_series(1, 256) i \g /dev/null
CREATE FUNCTION bad_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.trigger_id ~ TG_ARGV[0] THEN RAISE EXCEPTION 'bad row' USING ERRCODE = '22012'; END IF; RETURN NEW; END $$;
CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION bad_rows('^w100$');
CREATE TABLE batch (c qinglong.schedule_claim);
INSERT INTO batch SELECT c FROM qinglong.ql_claim('r1', 60000, 256) c;
:serializable
SELECT status, sqlstate, message, count(*), min(trigger_id) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM batch)) GROUP BY 1, 2, 3 ORDER BY 1;
COMMIT;
SELECT t.consistent(), count(*), count(DISTINCT trigger_id) FROM qinglong.runs WHERE trigger_id ~ '^w';
DROP TRIGGER obstacle ON qinglong.runs;
:serializable
SELECT status, count(*) FROM qinglong.ql_admit_batch((SELECT array_agg(c) FROM batch)) GROUP BY 1 ORDER BY 1;
COMMIT;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 120000 WHERE trigger_id ~ '^w';
CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION bad_rows('^w(001|256|.[37]7)$');
SET client_min_messages = error;
CALL qinglong.ql_schedule_once('r1', max_claims => 256) \gset
RESET client_min_messages;
SELECT counts(:'summary');
SELECT fault, faults, retry, claimed, count(*), min(trigger_id), max(trigger_id) FROM t.rows WHERE trigger_id ~ '^w' GROUP BY 1, 2, 3, 4 ORDER BY 1;
DROP TRIGGER obstacle ON qinglong.runs;
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE retry_at_ms IS NOT NULL;
CALL qinglong.ql_schedule_once('r1', max_claims => 256) \gset
SELECT counts(:'summary');
SELECT scheduled_for_ms, count(*), count(DISTINCT trigger_id) FROM qinglong.runs WHERE trigger_id ~ '^w' GROUP BY 1 ORDER BY 1;
SELECT t.consistent();

-- A damaged row and a failing row in one batch: one quarantined, one failed, one admitted.
SELECT t.publish('x' || i, '* * * * *', 'fire_once', 60000) FROM generate_series(1, 3) i \g /dev/null
SELECT t.damage('task_execution_revisions', $$content_digest = repeat('0', 64)$$, $$task_id = 'x1'$$);
CREATE TRIGGER obstacle BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION bad_rows('^x2$');
SELECT bool_and(t.claim('x' || i, 'x' || i, 61000)) FROM generate_series(1, 3) i;
:serializable
SELECT trigger_id, status, sqlstate FROM qinglong.ql_admit_batch((SELECT array_agg(c ORDER BY name DESC) FROM t.claims WHERE name ~ '^x'));
COMMIT;
SELECT trigger_id, fault, retry, claimed, admitted FROM t.rows WHERE trigger_id ~ '^x' ORDER BY 1;

-- D11.1: a COMMIT that is answered with an error has not committed. A cycle tries again after 40001, up to three times; another
-- error backs off. Nothing of the failed tries remains.
DROP TRIGGER obstacle ON qinglong.runs;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000, retry_at_ms = NULL, fault_code = NULL WHERE fault_code IS NULL OR retry_at_ms IS NOT NULL;
SELECT t.publish('y', '* * * * *', 'fire_once', 60000);
CREATE FUNCTION late_obstacle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('public.tries') <= TG_ARGV[1]::int THEN RAISE EXCEPTION 'obstacle at commit' USING ERRCODE = TG_ARGV[0]; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER obstacle AFTER INSERT ON qinglong.runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late_obstacle('40001', 2);
SELECT setval('tries', 1, false);
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary'), last_value AS tries FROM tries;
SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'y';
DROP TRIGGER obstacle ON qinglong.runs;
CREATE CONSTRAINT TRIGGER obstacle AFTER INSERT ON qinglong.runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late_obstacle('40001', 1000);
SELECT setval('tries', 1, false);
SELECT t.publish('z' || i, '* * * * *', 'fire_once', 60000) FROM generate_series(1, 2) i \g /dev/null
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT trigger_id, fault, retry, claimed, admitted FROM t.rows WHERE trigger_id ~ '^z' ORDER BY 1;
DROP TRIGGER obstacle ON qinglong.runs;
CREATE CONSTRAINT TRIGGER obstacle AFTER INSERT ON qinglong.runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.trigger_id = 'z2') EXECUTE FUNCTION late_obstacle('22012', 1000);
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE retry_at_ms IS NOT NULL;
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT trigger_id, fault, faults, retry, claimed, admitted FROM t.rows WHERE trigger_id ~ '^z' ORDER BY 1;
DROP TRIGGER obstacle ON qinglong.runs;
UPDATE qinglong.trigger_schedules SET retry_at_ms = 0 WHERE retry_at_ms IS NOT NULL;
CALL qinglong.ql_schedule_once('r1') \gset
SELECT trigger_id, scheduled_for_ms, count(*) FROM qinglong.runs WHERE trigger_id ~ '^[yz]' GROUP BY 1, 2 ORDER BY 1;

-- A claim that fails is reported and takes nothing: here the first step of a cycle.
SELECT t.publish('claim', '* * * * *', 'fire_once', 60000);
CREATE TRIGGER obstacle BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (NEW.claim_token IS NOT NULL) EXECUTE FUNCTION obstacle('22012');
SELECT t.fingerprint() AS before \gset
CALL qinglong.ql_schedule_once('r1');
SELECT * FROM qinglong.ql_claim('r1');
SELECT t.fingerprint() = :'before' AS unchanged;
DROP TRIGGER obstacle ON qinglong.trigger_schedules;
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
-- Where even the back-off cannot be written the claim stays to the end of its lease, and the cycle goes on.
SELECT t.publish('stuck', '* * * * *', 'fire_once', 60000), t.publish('stuck-not', '* * * * *', 'fire_once', 60000);
CREATE TRIGGER obstacle BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (OLD.claim_token IS NOT NULL AND OLD.trigger_id = 'stuck') EXECUTE FUNCTION obstacle('22012');
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary');
SELECT trigger_id, claimed, fault, admitted FROM t.rows WHERE trigger_id ~ '^stuck' ORDER BY 1;
DROP TRIGGER obstacle ON qinglong.trigger_schedules;
UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1 WHERE trigger_id = 'stuck';
CALL qinglong.ql_schedule_once('r1') \gset
SELECT counts(:'summary') ->> 'admitted' AS admitted;
SELECT * FROM t.counts();
