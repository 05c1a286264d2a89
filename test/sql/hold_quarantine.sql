-- ql_release_quarantine: the cursor and the totals stay, every older claim is dead, nothing else is touched.
CREATE EXTENSION qinglong_sched;
SELECT status FROM qinglong.ql_schedule('a', '* * * * *', 'true');
SELECT status FROM qinglong.ql_schedule('b', '* * * * *', 'true');

-- Not quarantined: a healthy row, one that backs off, one that does not exist.
SELECT qinglong.ql_release_quarantine('default', 'a');
UPDATE qinglong.trigger_schedules SET fault_code = 'run_insert', fault_count = 3, retry_at_ms = 4102444800000
 WHERE trigger_id = 'b';
SELECT qinglong.ql_release_quarantine('default', 'b');
SELECT qinglong.ql_release_quarantine('default', 'missing');
-- Ids that nothing can have.
\set SHOW_CONTEXT never
SELECT qinglong.ql_release_quarantine(NULL, NULL);
SELECT qinglong.ql_release_quarantine('default', NULL);
SELECT qinglong.ql_release_quarantine('default', '');
SELECT qinglong.ql_release_quarantine(repeat('x', 129), 'a');
SELECT qinglong.ql_release_quarantine('default', E'a\nb');
\set VERBOSITY sqlstate
SELECT qinglong.ql_release_quarantine(NULL, NULL);
\set VERBOSITY default
SELECT trigger_id, state_version, claim_version, fault_code, fault_count, retry_at_ms FROM qinglong.trigger_schedules ORDER BY 1;

-- A quarantined row with a claim (an owner may have made one by hand), a cursor and totals.
UPDATE qinglong.trigger_schedules
   SET fault_code = 'spec_damaged', fault_count = 2, next_fire_at_ms = 60000, skipped_total = 5,
       claim_owner = 'x', claim_token = gen_random_uuid(), claim_version = 7, state_version = 9,
       claim_expires_at_ms = updated_at_ms + 1000, eligible = true
 WHERE trigger_id = 'a';
SELECT state, fault FROM qinglong.schedules ORDER BY trigger_id;
SELECT count(*) FROM qinglong.ql_claim('r');
SELECT qinglong.ql_release_quarantine('default', 'a');
SELECT next_fire_at_ms, skipped_total, state_version, claim_version, claim_owner, claim_token, claim_expires_at_ms,
       fault_code, fault_count, retry_at_ms, schedulable
  FROM qinglong.trigger_schedules WHERE trigger_id = 'a';
SELECT state, fault FROM qinglong.schedules WHERE trigger_id = 'a';
SELECT qinglong.ql_release_quarantine('default', 'a');

-- The clock floor never goes back.
UPDATE qinglong.trigger_schedules SET fault_code = 'spec_damaged', updated_at_ms = 4102444800000 WHERE trigger_id = 'a';
SELECT qinglong.ql_release_quarantine('default', 'a');
SELECT updated_at_ms FROM qinglong.trigger_schedules WHERE trigger_id = 'a';
SELECT * FROM qinglong.ql_check();
