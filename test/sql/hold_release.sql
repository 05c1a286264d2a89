-- Hold by hand and by identity: nothing schedules, publication goes on, a release makes the state this database's own.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never

-- Before the first publication there is nothing to hold, and it may be held all the same.
SELECT count(*) FROM qinglong.identity;
SELECT qinglong.ql_release_hold();
SELECT ready, code FROM qinglong.ql_readiness();
SELECT qinglong.ql_hold('before the first publication');
SELECT qinglong.ql_hold('another reason');
SELECT ready, code, findings FROM qinglong.ql_readiness();
SELECT held_reason, system_identifier = (SELECT system_identifier::text FROM pg_control_system()) AS own_system,
       database_oid = (SELECT oid FROM pg_database WHERE datname = current_database())::bigint AS own_database
  FROM qinglong.identity;
SELECT status, trigger_revision FROM qinglong.ql_schedule('nightly', '0 3 * * *', 'echo secret-command');
\set VERBOSITY default
SELECT * FROM qinglong.ql_claim('r1');
\set VERBOSITY sqlstate
CALL qinglong.ql_schedule_once('r1');
SELECT claim_token, next_fire_at_ms FROM qinglong.trigger_schedules;
-- What reads no table and no clock still answers.
SELECT qinglong.ql_next_occurrence('0 3 * * *', 'UTC', '2024-01-01 00:00Z') AT TIME ZONE 'UTC';
SELECT state FROM qinglong.schedules;
SELECT qinglong.ql_release_hold(), qinglong.ql_release_hold();
SELECT ready, code, findings FROM qinglong.ql_readiness();
SELECT claim FROM qinglong.ql_claim('r1') claim \gset

-- A claim from before the hold is not admitted, and is once the hold is gone.
SELECT qinglong.ql_hold('meanwhile');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT qinglong.ql_admit(:'claim');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM qinglong.ql_admit_batch(ARRAY[:'claim'::qinglong.schedule_claim]);
ROLLBACK;
SELECT qinglong.ql_release_hold();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT status, disposition FROM qinglong.ql_admit(:'claim');
COMMIT;
-- Uninitialised again, so that there is something to claim.
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = NULL;

-- Wrong reasons.
SELECT qinglong.ql_hold(NULL);
SELECT qinglong.ql_hold('');
SELECT qinglong.ql_hold(repeat('x', 1025));
SELECT qinglong.ql_hold(repeat('x', 1024));
SELECT qinglong.ql_release_hold();

-- A copy: its state belongs to another database, or to the same database of another cluster.
SELECT * INTO TEMP own FROM qinglong.identity;
UPDATE qinglong.identity SET database_oid = 1;
SELECT ready, code, findings FROM qinglong.ql_readiness();
\set VERBOSITY default
SELECT * FROM qinglong.ql_claim('r1');
\set VERBOSITY sqlstate
-- Holding a copy does not make it this database's own.
SELECT qinglong.ql_hold('look first');
SELECT database_oid, held_reason FROM qinglong.identity;
SELECT qinglong.ql_release_hold();
SELECT count(*) FROM qinglong.identity NATURAL JOIN (SELECT system_identifier, database_oid FROM own) o;
UPDATE qinglong.identity SET system_identifier = '1';
SELECT ready, code FROM qinglong.ql_readiness();
SELECT * FROM qinglong.ql_claim('r1');
SELECT qinglong.ql_release_hold();
SELECT ready, code FROM qinglong.ql_readiness();
SELECT count(*) FROM qinglong.ql_claim('r1', max_claims => 2);
SELECT count(*) FROM qinglong.ql_check();

-- A hold that is rolled back never was.
BEGIN;
SELECT qinglong.ql_hold('no');
SELECT * FROM qinglong.ql_claim('r1');
ROLLBACK;
SELECT count(*) FROM qinglong.ql_claim('r1');
