-- An admin, who owns nothing and may only read projects, can do all of it; another role nothing.
CREATE EXTENSION qinglong_sched;
CREATE ROLE regress_management_admin;
CREATE ROLE regress_management_other;
SELECT qinglong.ql_grant('regress_management_admin', 'admin');
GRANT USAGE ON SCHEMA qinglong TO regress_management_other;

SET ROLE regress_management_admin;
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '0 0 1 1 *', 'true');
SELECT status, trigger_revision FROM qinglong.ql_schedule('t', '0 0 1 1 *', 'false');
SELECT id, status FROM qinglong.ql_project_put('p');
SELECT content_digest AS digest FROM qinglong.ql_task_publish('p', 'task', 'T',
    '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "true"}}}') \gset
SELECT status, revision FROM qinglong.ql_trigger_publish('p', 'tr', 'task', 1, :'digest',
    '{"schema": "qinglong/cron@v1", "config": {"expression": "0 0 1 1 *", "timezone": "UTC", "misfirePolicy": "skip"}}');
SELECT id, status FROM qinglong.ql_project_put('p', status => 'archived');
SELECT trigger_id, eligible FROM qinglong.trigger_schedules ORDER BY 1;
SELECT id, status FROM qinglong.ql_project_put('p');
SELECT trigger_id, eligible FROM qinglong.trigger_schedules ORDER BY 1;
SELECT qinglong.ql_unschedule('t');
-- Not past the functions.
UPDATE qinglong.projects SET status = 'archived';
SELECT FROM qinglong.projects FOR SHARE;
UPDATE qinglong.trigger_revisions SET enabled = true;
DELETE FROM qinglong.trigger_schedules;
RESET ROLE;

SET ROLE regress_management_other;
SELECT qinglong.ql_project_put('q');
SELECT qinglong.ql_schedule('q', '0 0 1 1 *', 'true');
SELECT qinglong.ql_unschedule('t');
SELECT qinglong.ql_task_publish('p', 'q', 'T', '{}');
SELECT qinglong.ql_trigger_publish('p', 'q', 'task', 1, '', '{}');
SELECT qinglong._begin_publication('p');
RESET ROLE;

SELECT qinglong.ql_revoke('regress_management_admin', 'admin');
REVOKE USAGE ON SCHEMA qinglong FROM regress_management_other;
DROP ROLE regress_management_admin, regress_management_other;
