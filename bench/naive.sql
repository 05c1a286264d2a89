-- The naive protocol's schema, with the same projects, tasks and triggers as the extension's.
\set ON_ERROR_STOP on
CREATE SCHEMA naive;
SET search_path = naive, pg_catalog;
CREATE TABLE projects AS SELECT * FROM qinglong.projects;
ALTER TABLE projects ADD PRIMARY KEY (id);
CREATE TABLE task_definitions AS SELECT * FROM qinglong.task_definitions;
ALTER TABLE task_definitions ADD PRIMARY KEY (project_id, task_id);
CREATE TABLE task_definition_revisions AS SELECT * FROM qinglong.task_definition_revisions;
ALTER TABLE task_definition_revisions ADD PRIMARY KEY (project_id, task_id, revision), ADD UNIQUE (mutation_id);
CREATE INDEX ON task_definition_revisions (project_id, kind, enabled, task_id, revision);
CREATE TABLE task_execution_revisions AS SELECT * FROM qinglong.task_execution_revisions;
ALTER TABLE task_execution_revisions ADD PRIMARY KEY (project_id, task_id, source_revision, executor_type);
CREATE TABLE triggers AS SELECT * FROM qinglong.triggers;
ALTER TABLE triggers ADD PRIMARY KEY (project_id, trigger_id), ADD UNIQUE (project_id, trigger_id, task_id);
CREATE TABLE trigger_revisions AS SELECT * FROM qinglong.trigger_revisions;
ALTER TABLE trigger_revisions ADD PRIMARY KEY (project_id, trigger_id, revision), ADD UNIQUE (mutation_id);
CREATE INDEX ON trigger_revisions (project_id, enabled, trigger_id, revision);
CREATE INDEX ON trigger_revisions (project_id, task_id, task_revision, trigger_id, revision);

CREATE TABLE trigger_schedules (
    project_id varchar(128) NOT NULL, trigger_id varchar(128) NOT NULL,
    trigger_revision integer NOT NULL CHECK (trigger_revision >= 1),
    next_fire_at_ms bigint CHECK (next_fire_at_ms >= 0), last_scheduled_at_ms bigint CHECK (last_scheduled_at_ms >= 0),
    state_version integer NOT NULL DEFAULT 0 CHECK (state_version >= 0),
    claim_owner varchar(128) CHECK (claim_owner ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'), claim_token uuid,
    claim_version integer NOT NULL DEFAULT 0 CHECK (claim_version >= 0), claim_expires_at_ms bigint,
    updated_at_ms bigint NOT NULL CHECK (updated_at_ms >= 0),
    CHECK ((claim_owner IS NULL AND claim_token IS NULL AND claim_expires_at_ms IS NULL)
           OR (claim_owner IS NOT NULL AND claim_token IS NOT NULL AND claim_expires_at_ms IS NOT NULL
               AND claim_version >= 1 AND claim_expires_at_ms > updated_at_ms)));
CREATE TABLE runs (
    id varchar(36), project_id varchar(128) NOT NULL, task_id varchar(255) NOT NULL, task_revision varchar(128) NOT NULL,
    task_name varchar(255), task_snapshot_ref varchar(512), legacy_cron_id integer CHECK (legacy_cron_id >= 1),
    parent_run_id varchar(36), retry_of_run_id varchar(36), trigger_id varchar(128), trigger_type varchar(64) NOT NULL,
    execution_origin varchar(64) NOT NULL, execution_owner varchar(16) NOT NULL CHECK (execution_owner = 'runtime'),
    triggered_by varchar(255), request_id varchar(128), scheduled_for_ms bigint CHECK (scheduled_for_ms >= 0),
    status varchar(32) NOT NULL CHECK (status IN ('created', 'queued', 'dispatching', 'running', 'waiting_approval',
        'retry_wait', 'lost', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    version integer NOT NULL DEFAULT 0 CHECK (version >= 0),
    event_sequence integer NOT NULL DEFAULT 0 CHECK (event_sequence >= 0), priority integer NOT NULL DEFAULT 0,
    idempotency_key varchar(255), input_ref varchar(512), output_ref varchar(512), created_at_ms bigint NOT NULL,
    queued_at_ms bigint, started_at_ms bigint, finished_at_ms bigint, cancel_requested_at_ms bigint,
    cancel_reason varchar(16) CHECK (cancel_reason IN ('user', 'policy', 'shutdown', 'reconcile', 'timeout')),
    error_code varchar(128), error_summary varchar(1024));
CREATE TABLE run_attempts (
    id varchar(36), run_id varchar(36) NOT NULL, step_run_id varchar(36), attempt integer NOT NULL CHECK (attempt >= 1),
    status varchar(32) NOT NULL, executor_type varchar(64) NOT NULL, worker_id varchar(128),
    worker_session_id varchar(36), worker_generation integer CHECK (worker_generation >= 1),
    executor_handle varchar(2048), pid integer CHECK (pid >= 1), log_artifact_id varchar(36), lease_token varchar(128),
    lease_token_digest char(64), lease_generation integer CHECK (lease_generation >= 1),
    lease_version integer CHECK (lease_version >= 0), lease_expires_at_ms bigint, offer_id varchar(128),
    deadline_at_ms bigint, callback_token_hash varchar(128), callback_sequence integer NOT NULL DEFAULT 0,
    created_at_ms bigint NOT NULL, started_at_ms bigint, finished_at_ms bigint, exit_code integer,
    error_code varchar(128), error_summary varchar(1024));
CREATE TABLE run_events (
    id varchar(36), run_id varchar(36) NOT NULL, sequence integer NOT NULL CHECK (sequence >= 1),
    type varchar(128) NOT NULL, dedupe_key varchar(255), actor_type varchar(32) NOT NULL CHECK (actor_type IN ('user',
        'api_app', 'trigger', 'agent', 'mcp_client', 'worker', 'executor', 'system', 'legacy_shell', 'scheduler',
        'reconciler', 'compatibility')),
    actor_id varchar(255), attempt_id varchar(36), step_run_id varchar(36),
    payload jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object'), created_at_ms bigint NOT NULL);
\ir naive_indexes.sql
ALTER TABLE trigger_schedules ADD FOREIGN KEY (project_id, trigger_id, trigger_revision)
    REFERENCES trigger_revisions (project_id, trigger_id, revision);
ALTER TABLE runs ADD FOREIGN KEY (parent_run_id) REFERENCES runs, ADD FOREIGN KEY (retry_of_run_id) REFERENCES runs;
ALTER TABLE run_attempts ADD FOREIGN KEY (run_id) REFERENCES runs;
ALTER TABLE run_events ADD FOREIGN KEY (run_id) REFERENCES runs, ADD FOREIGN KEY (attempt_id) REFERENCES run_attempts;
