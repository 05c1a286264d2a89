-- What nobody may change whatever was granted, and what must reach the schedule rows in the same transaction. All of it
-- also holds where session_replication_role switches ordinary triggers off; only the owner can lift it, with ALTER TABLE.

CREATE FUNCTION qinglong._refuse_change() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_refuse_change';
COMMENT ON FUNCTION qinglong._refuse_change() IS 'Refuses every change of a row of an immutable table';
REVOKE ALL ON FUNCTION qinglong._refuse_change() FROM PUBLIC;

CREATE TRIGGER immutable_row BEFORE UPDATE OR DELETE ON qinglong.task_definition_revisions
    FOR EACH ROW EXECUTE FUNCTION qinglong._refuse_change();
CREATE TRIGGER immutable_table BEFORE TRUNCATE ON qinglong.task_definition_revisions
    FOR EACH STATEMENT EXECUTE FUNCTION qinglong._refuse_change();
ALTER TABLE qinglong.task_definition_revisions ENABLE ALWAYS TRIGGER immutable_row;
ALTER TABLE qinglong.task_definition_revisions ENABLE ALWAYS TRIGGER immutable_table;

CREATE TRIGGER immutable_row BEFORE UPDATE OR DELETE ON qinglong.task_execution_revisions
    FOR EACH ROW EXECUTE FUNCTION qinglong._refuse_change();
CREATE TRIGGER immutable_table BEFORE TRUNCATE ON qinglong.task_execution_revisions
    FOR EACH STATEMENT EXECUTE FUNCTION qinglong._refuse_change();
ALTER TABLE qinglong.task_execution_revisions ENABLE ALWAYS TRIGGER immutable_row;
ALTER TABLE qinglong.task_execution_revisions ENABLE ALWAYS TRIGGER immutable_table;

CREATE TRIGGER immutable_row BEFORE UPDATE OR DELETE ON qinglong.trigger_revisions
    FOR EACH ROW EXECUTE FUNCTION qinglong._refuse_change();
CREATE TRIGGER immutable_table BEFORE TRUNCATE ON qinglong.trigger_revisions
    FOR EACH STATEMENT EXECUTE FUNCTION qinglong._refuse_change();
ALTER TABLE qinglong.trigger_revisions ENABLE ALWAYS TRIGGER immutable_row;
ALTER TABLE qinglong.trigger_revisions ENABLE ALWAYS TRIGGER immutable_table;

CREATE TRIGGER immutable_row BEFORE UPDATE OR DELETE ON qinglong.run_events
    FOR EACH ROW EXECUTE FUNCTION qinglong._refuse_change();
CREATE TRIGGER immutable_table BEFORE TRUNCATE ON qinglong.run_events
    FOR EACH STATEMENT EXECUTE FUNCTION qinglong._refuse_change();
ALTER TABLE qinglong.run_events ENABLE ALWAYS TRIGGER immutable_row;
ALTER TABLE qinglong.run_events ENABLE ALWAYS TRIGGER immutable_table;

CREATE FUNCTION qinglong._sweep_trigger() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_sweep_trigger';
COMMENT ON FUNCTION qinglong._sweep_trigger() IS
    'Makes the schedule row of a trigger ineligible when the head moves to a revision it is not bound to';
REVOKE ALL ON FUNCTION qinglong._sweep_trigger() FROM PUBLIC;
CREATE TRIGGER sweep_schedules BEFORE UPDATE ON qinglong.triggers
    FOR EACH ROW WHEN (OLD.current_revision IS DISTINCT FROM NEW.current_revision)
    EXECUTE FUNCTION qinglong._sweep_trigger();
ALTER TABLE qinglong.triggers ENABLE ALWAYS TRIGGER sweep_schedules;

CREATE FUNCTION qinglong._sweep_task() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_sweep_task';
COMMENT ON FUNCTION qinglong._sweep_task() IS
    'Makes the schedule rows ineligible that pin another revision of a task than the new current one';
REVOKE ALL ON FUNCTION qinglong._sweep_task() FROM PUBLIC;
CREATE TRIGGER sweep_schedules BEFORE UPDATE ON qinglong.task_definitions
    FOR EACH ROW WHEN (OLD.current_revision IS DISTINCT FROM NEW.current_revision)
    EXECUTE FUNCTION qinglong._sweep_task();
ALTER TABLE qinglong.task_definitions ENABLE ALWAYS TRIGGER sweep_schedules;

CREATE FUNCTION qinglong._sweep_project() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'ql_sweep_project';
COMMENT ON FUNCTION qinglong._sweep_project() IS
    'Makes all schedule rows of a project ineligible when it is archived, and the current ones eligible when it becomes active';
REVOKE ALL ON FUNCTION qinglong._sweep_project() FROM PUBLIC;
CREATE TRIGGER sweep_schedules BEFORE UPDATE ON qinglong.projects
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION qinglong._sweep_project();
ALTER TABLE qinglong.projects ENABLE ALWAYS TRIGGER sweep_schedules;
