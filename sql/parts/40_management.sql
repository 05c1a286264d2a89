-- Publication. A mismatch with the stored state is QL001, damaged state QL002, a wrong argument 22023.

CREATE FUNCTION qinglong.ql_project_put(project_id text, name text DEFAULT NULL, status text DEFAULT 'active')
RETURNS qinglong.projects
LANGUAGE c SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'ql_project_put';
COMMENT ON FUNCTION qinglong.ql_project_put(text, text, text) IS
    'Creates a project, or renames, archives or reactivates it; the triggers of an archived project do not fire';
REVOKE ALL ON FUNCTION qinglong.ql_project_put(text, text, text) FROM PUBLIC;

CREATE FUNCTION qinglong.ql_task_publish(
    project_id text, task_id text, name text, spec jsonb, expected_revision integer DEFAULT NULL,
    mutation_id uuid DEFAULT NULL, description text DEFAULT NULL, kind text DEFAULT 'command',
    labels jsonb DEFAULT '{}', enabled boolean DEFAULT true,
    OUT status text, OUT revision integer, OUT content_digest text)
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_task_publish';
COMMENT ON FUNCTION qinglong.ql_task_publish(text, text, text, jsonb, integer, uuid, text, text, jsonb, boolean) IS
    'Publishes the next immutable revision of a task; repeating a mutation_id returns what it published';
REVOKE ALL ON FUNCTION qinglong.ql_task_publish(text, text, text, jsonb, integer, uuid, text, text, jsonb, boolean)
    FROM PUBLIC;

CREATE FUNCTION qinglong.ql_trigger_publish(
    project_id text, trigger_id text, task_id text, task_revision integer, task_content_digest text, spec jsonb,
    expected_revision integer DEFAULT NULL, mutation_id uuid DEFAULT NULL, enabled boolean DEFAULT true,
    OUT status text, OUT revision integer, OUT content_digest text)
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_trigger_publish';
COMMENT ON FUNCTION qinglong.ql_trigger_publish(text, text, text, integer, text, jsonb, integer, uuid, boolean) IS
    'Publishes the next immutable revision of a trigger, which pins one task revision, and resets its schedule row';
REVOKE ALL ON FUNCTION qinglong.ql_trigger_publish(text, text, text, integer, text, jsonb, integer, uuid, boolean)
    FROM PUBLIC;

CREATE FUNCTION qinglong.ql_schedule(
    trigger_id text, expression text, command text, timezone text DEFAULT 'UTC', misfire_policy text DEFAULT 'skip',
    project_id text DEFAULT 'default',
    OUT status text, OUT trigger_revision integer, OUT next_fire_at timestamptz)
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_schedule';
COMMENT ON FUNCTION qinglong.ql_schedule(text, text, text, text, text, text) IS
    'Publishes a shell task and its cron trigger under one name; the same call again changes nothing';
REVOKE ALL ON FUNCTION qinglong.ql_schedule(text, text, text, text, text, text) FROM PUBLIC;

CREATE FUNCTION qinglong.ql_unschedule(trigger_id text, project_id text DEFAULT 'default')
RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_unschedule';
COMMENT ON FUNCTION qinglong.ql_unschedule(text, text) IS
    'Publishes a disabled revision of a trigger; false when there is nothing to disable';
REVOKE ALL ON FUNCTION qinglong.ql_unschedule(text, text) FROM PUBLIC;

-- Publishers may read projects but not lock one, and do not write the identity row themselves.
CREATE FUNCTION qinglong._begin_publication(project_id text)
RETURNS text
LANGUAGE c SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'ql_begin_publication';
COMMENT ON FUNCTION qinglong._begin_publication(text) IS
    'Locks a project FOR SHARE and returns its status; the first call makes this database the owner of the state';
REVOKE ALL ON FUNCTION qinglong._begin_publication(text) FROM PUBLIC;
