-- The digests that a publication stores, computed again from a row's columns: for checks. NULL means that the spec has
-- a shape that cannot have been published.

CREATE FUNCTION qinglong._task_digest(project_id text, task_id text, revision integer, name text, description text,
                                      kind text, spec jsonb, labels jsonb, enabled boolean)
RETURNS text LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_task_digest';
COMMENT ON FUNCTION qinglong._task_digest(text, text, integer, text, text, text, jsonb, jsonb, boolean) IS
    'Content digest of a task revision';
REVOKE ALL ON FUNCTION qinglong._task_digest(text, text, integer, text, text, text, jsonb, jsonb, boolean) FROM PUBLIC;

CREATE FUNCTION qinglong._trigger_digest(project_id text, trigger_id text, revision integer, task_id text,
                                         task_revision integer, task_content_digest text, spec jsonb, enabled boolean)
RETURNS text LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_trigger_digest';
COMMENT ON FUNCTION qinglong._trigger_digest(text, text, integer, text, integer, text, jsonb, boolean) IS
    'Content digest of a trigger revision';
REVOKE ALL ON FUNCTION qinglong._trigger_digest(text, text, integer, text, integer, text, jsonb, boolean) FROM PUBLIC;

CREATE FUNCTION qinglong._execution_digest(project_id text, task_id text, source_revision integer,
                                           source_content_digest text, executor_type text, plan_schema text, plan jsonb)
RETURNS text LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_execution_digest';
COMMENT ON FUNCTION qinglong._execution_digest(text, text, integer, text, text, text, jsonb) IS
    'Content digest of an execution revision';
REVOKE ALL ON FUNCTION qinglong._execution_digest(text, text, integer, text, text, text, jsonb) FROM PUBLIC;
