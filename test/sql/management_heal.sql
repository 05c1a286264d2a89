-- ql_schedule() replaces what is damaged by the next revision, and the quarantine ends with it.
CREATE EXTENSION qinglong_sched;
\set SHOW_CONTEXT never
SELECT status, trigger_revision FROM qinglong.ql_schedule('spec', '0 0 1 1 *', 'true');
SELECT status, trigger_revision FROM qinglong.ql_schedule('plan', '0 0 1 1 *', 'true');
ALTER TABLE qinglong.trigger_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.trigger_revisions SET spec_json = '{"broken": true}' WHERE trigger_id = 'spec';
ALTER TABLE qinglong.trigger_revisions ENABLE ALWAYS TRIGGER immutable_row;
ALTER TABLE qinglong.task_execution_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.task_execution_revisions SET content_digest = repeat('0', 64) WHERE task_id = 'plan';
ALTER TABLE qinglong.task_execution_revisions ENABLE ALWAYS TRIGGER immutable_row;
SELECT trigger_id, code FROM qinglong.ql_check() ORDER BY trigger_id;

-- A trigger that cannot be read cannot be copied into a disabled revision: publish it anew first.
SELECT qinglong.ql_unschedule('spec');
SELECT status, trigger_revision FROM qinglong.ql_schedule('spec', '0 0 1 1 *', 'true');
SELECT status, trigger_revision FROM qinglong.ql_schedule('plan', '0 0 1 1 *', 'true');
SELECT status, trigger_revision FROM qinglong.ql_schedule('plan', '0 0 1 1 *', 'true');
SELECT trigger_id, state, fault FROM qinglong.schedules ORDER BY trigger_id;
SELECT qinglong.ql_unschedule('spec');
