-- Times are milliseconds since the Unix epoch (suffix _ms): fences compare them exactly.
-- Identifiers sort by bytes (COLLATE "C"), so that every node of every locale agrees on the claim order.

CREATE TABLE qinglong.identity (
    singleton           boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    system_identifier   text NOT NULL CHECK (system_identifier ~ '^[0-9]{1,20}$'),
    database_oid        bigint NOT NULL CHECK (database_oid BETWEEN 1 AND 4294967295),
    held_reason         text CHECK (octet_length(held_reason) BETWEEN 1 AND 1024),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    updated_at_ms       bigint NOT NULL CHECK (updated_at_ms >= created_at_ms)
);
COMMENT ON TABLE qinglong.identity IS
    'The database that this state belongs to; a copy whose identity differs is held until ql_release_hold()';

CREATE TABLE qinglong.projects (
    id                  varchar(128) COLLATE "C" PRIMARY KEY
                        CHECK (octet_length(id) BETWEEN 1 AND 128 AND id !~ '[[:cntrl:]]'),
    name                varchar(255) NOT NULL CHECK (char_length(name) >= 1),
    slug                varchar(128) COLLATE "C" NOT NULL UNIQUE
                        CHECK (slug ~ '^[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?$'),
    status              text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    version             integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    updated_at_ms       bigint NOT NULL CHECK (updated_at_ms >= created_at_ms)
);
COMMENT ON TABLE qinglong.projects IS 'Projects; the triggers of an archived project do not fire';

CREATE TABLE qinglong.task_definitions (
    project_id          varchar(128) COLLATE "C" NOT NULL REFERENCES qinglong.projects (id) ON DELETE RESTRICT,
    task_id             varchar(128) COLLATE "C" NOT NULL
                        CHECK (octet_length(task_id) BETWEEN 1 AND 128 AND task_id !~ '[[:cntrl:]]'),
    current_revision    integer NOT NULL CHECK (current_revision >= 1),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    updated_at_ms       bigint NOT NULL CHECK (updated_at_ms >= created_at_ms),
    PRIMARY KEY (project_id, task_id)
);
COMMENT ON TABLE qinglong.task_definitions IS 'Task heads: which immutable revision of a task is current';

CREATE TABLE qinglong.task_definition_revisions (
    project_id          varchar(128) COLLATE "C" NOT NULL,
    task_id             varchar(128) COLLATE "C" NOT NULL,
    revision            integer NOT NULL CHECK (revision >= 1),
    mutation_id         uuid NOT NULL UNIQUE,
    name                varchar(255) NOT NULL CHECK (char_length(name) >= 1),
    description         varchar(4096) CHECK (char_length(description) >= 1),
    kind                text NOT NULL CHECK (kind IN ('script', 'command', 'workflow', 'agent', 'tool')),
    spec_json           jsonb NOT NULL
                        CHECK (jsonb_typeof(spec_json) = 'object'
                               AND octet_length(spec_json::text) BETWEEN 2 AND 131072),
    labels_json         jsonb NOT NULL
                        CHECK (jsonb_typeof(labels_json) = 'object'
                               AND octet_length(labels_json::text) BETWEEN 2 AND 16384),
    enabled             boolean NOT NULL,
    content_digest      char(64) COLLATE "C" NOT NULL CHECK (content_digest ~ '^[0-9a-f]{64}$'),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    PRIMARY KEY (project_id, task_id, revision),
    FOREIGN KEY (project_id, task_id)
        REFERENCES qinglong.task_definitions (project_id, task_id) ON DELETE RESTRICT
);
COMMENT ON TABLE qinglong.task_definition_revisions IS 'Immutable task revisions: what to run';
CREATE INDEX task_definition_revisions_kind_idx
    ON qinglong.task_definition_revisions (project_id, kind, enabled, task_id, revision);

CREATE TABLE qinglong.task_execution_revisions (
    project_id            varchar(128) COLLATE "C" NOT NULL,
    task_id               varchar(128) COLLATE "C" NOT NULL,
    source_revision       integer NOT NULL CHECK (source_revision >= 1),
    executor_type         varchar(32) COLLATE "C" NOT NULL CHECK (executor_type = 'remote_worker'),
    task_revision         varchar(96) COLLATE "C" NOT NULL,
    source_content_digest char(64) COLLATE "C" NOT NULL CHECK (source_content_digest ~ '^[0-9a-f]{64}$'),
    plan_schema           varchar(64) COLLATE "C" NOT NULL CHECK (plan_schema = 'qinglong/command-execution@v1'),
    plan_json             jsonb NOT NULL
                          CHECK (jsonb_typeof(plan_json) = 'object'
                                 AND octet_length(plan_json::text) BETWEEN 2 AND 196608),
    content_digest        char(64) COLLATE "C" NOT NULL CHECK (content_digest ~ '^[0-9a-f]{64}$'),
    created_at_ms         bigint NOT NULL CHECK (created_at_ms >= 0),
    PRIMARY KEY (project_id, task_id, source_revision, executor_type),
    UNIQUE (project_id, task_id, task_revision, executor_type),
    CHECK (task_revision = 'qltd:v1:' || source_revision::text || ':' || source_content_digest),
    FOREIGN KEY (project_id, task_id, source_revision)
        REFERENCES qinglong.task_definition_revisions (project_id, task_id, revision) ON DELETE RESTRICT
);
COMMENT ON TABLE qinglong.task_execution_revisions IS
    'Immutable execution plans compiled from enabled qinglong/command@v1 task revisions';

CREATE TABLE qinglong.triggers (
    project_id          varchar(128) COLLATE "C" NOT NULL REFERENCES qinglong.projects (id) ON DELETE RESTRICT,
    trigger_id          varchar(128) COLLATE "C" NOT NULL
                        CHECK (octet_length(trigger_id) BETWEEN 1 AND 128 AND trigger_id !~ '[[:cntrl:]]'),
    task_id             varchar(128) COLLATE "C" NOT NULL,
    current_revision    integer NOT NULL CHECK (current_revision >= 1),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    updated_at_ms       bigint NOT NULL CHECK (updated_at_ms >= created_at_ms),
    PRIMARY KEY (project_id, trigger_id),
    UNIQUE (project_id, trigger_id, task_id),
    FOREIGN KEY (project_id, task_id)
        REFERENCES qinglong.task_definitions (project_id, task_id) ON DELETE RESTRICT
);
COMMENT ON TABLE qinglong.triggers IS 'Trigger heads: which immutable revision of a trigger is current';
-- The eligibility sweep of a task publication finds the triggers of a task here.
CREATE INDEX triggers_task_idx ON qinglong.triggers (project_id, task_id, trigger_id);

CREATE TABLE qinglong.trigger_revisions (
    project_id          varchar(128) COLLATE "C" NOT NULL,
    trigger_id          varchar(128) COLLATE "C" NOT NULL,
    revision            integer NOT NULL CHECK (revision >= 1),
    mutation_id         uuid NOT NULL UNIQUE,
    task_id             varchar(128) COLLATE "C" NOT NULL,
    task_revision       integer NOT NULL CHECK (task_revision >= 1),
    task_content_digest char(64) COLLATE "C" NOT NULL CHECK (task_content_digest ~ '^[0-9a-f]{64}$'),
    spec_json           jsonb NOT NULL
                        CHECK (jsonb_typeof(spec_json) = 'object'
                               AND octet_length(spec_json::text) BETWEEN 2 AND 32768),
    enabled             boolean NOT NULL,
    content_digest      char(64) COLLATE "C" NOT NULL CHECK (content_digest ~ '^[0-9a-f]{64}$'),
    created_at_ms       bigint NOT NULL CHECK (created_at_ms >= 0),
    PRIMARY KEY (project_id, trigger_id, revision),
    FOREIGN KEY (project_id, trigger_id, task_id)
        REFERENCES qinglong.triggers (project_id, trigger_id, task_id) ON DELETE RESTRICT,
    FOREIGN KEY (project_id, task_id, task_revision)
        REFERENCES qinglong.task_definition_revisions (project_id, task_id, revision) ON DELETE RESTRICT
);
COMMENT ON TABLE qinglong.trigger_revisions IS 'Immutable trigger revisions: when to run which task revision';
CREATE INDEX trigger_revisions_enabled_idx
    ON qinglong.trigger_revisions (project_id, enabled, trigger_id, revision);
CREATE INDEX trigger_revisions_pin_idx
    ON qinglong.trigger_revisions (project_id, task_id, task_revision, trigger_id, revision);

-- From here on ranges stand in one constraint a table: each constraint is prepared anew by each statement that writes,
-- which an admission of few rows would feel. LEAST() passes over nulls.
CREATE TABLE qinglong.trigger_schedules (
    project_id          varchar(128) COLLATE "C" NOT NULL,
    trigger_id          varchar(128) COLLATE "C" NOT NULL,
    trigger_revision    integer NOT NULL,
    next_fire_at_ms     bigint,
    due_delay_ms        integer NOT NULL DEFAULT 0,
    finished            boolean NOT NULL DEFAULT false,
    last_scheduled_at_ms bigint,
    state_version       bigint NOT NULL DEFAULT 0,
    claim_owner         varchar(128) COLLATE "C" CHECK (claim_owner ~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$'),
    claim_token         uuid,
    claim_version       bigint NOT NULL DEFAULT 0,
    claim_expires_at_ms bigint,
    updated_at_ms       bigint NOT NULL,
    eligible            boolean NOT NULL,
    fault_code          text CHECK (fault_code ~ '^[a-z0-9_]{1,64}$'),
    fault_count         integer NOT NULL DEFAULT 0,
    retry_at_ms         bigint,
    schedulable         boolean GENERATED ALWAYS AS
                        (eligible AND NOT finished AND (fault_code IS NULL OR retry_at_ms IS NOT NULL)) STORED,
    admitted_total      bigint NOT NULL DEFAULT 0,
    skipped_total       bigint NOT NULL DEFAULT 0,
    coalesced_total     bigint NOT NULL DEFAULT 0,
    uncounted           int8multirange NOT NULL DEFAULT '{}',
    PRIMARY KEY (project_id, trigger_id),
    CONSTRAINT trigger_schedules_ranges CHECK (
        trigger_revision >= 1 AND due_delay_ms BETWEEN 0 AND 300000
        AND LEAST(next_fire_at_ms, last_scheduled_at_ms, state_version, claim_version, updated_at_ms, fault_count,
                  retry_at_ms, admitted_total, skipped_total, coalesced_total) >= 0),
    CONSTRAINT trigger_schedules_claim_shape CHECK (
        (claim_owner IS NULL AND claim_token IS NULL AND claim_expires_at_ms IS NULL)
        OR (claim_owner IS NOT NULL AND claim_token IS NOT NULL AND claim_expires_at_ms IS NOT NULL
            AND claim_version >= 1 AND claim_expires_at_ms > updated_at_ms)),
    CONSTRAINT trigger_schedules_finished_shape CHECK (NOT finished OR next_fire_at_ms IS NULL),
    CONSTRAINT trigger_schedules_retry_shape CHECK (retry_at_ms IS NULL OR fault_code IS NOT NULL),
    FOREIGN KEY (project_id, trigger_id, trigger_revision)
        REFERENCES qinglong.trigger_revisions (project_id, trigger_id, revision) ON DELETE RESTRICT
) WITH (fillfactor = 40); -- room for the version that a claim makes beside the one that is due: a heap-only update, and in the
                           -- same page, so that serializable admissions of neighbours meet less often
COMMENT ON TABLE qinglong.trigger_schedules IS
    'The schedulers'' own table, one row per trigger: cursor, lease, fault and totals; the one lock of an admission';
COMMENT ON COLUMN qinglong.trigger_schedules.next_fire_at_ms IS
    'Cursor: the next occurrence; NULL until a scheduler has computed it, and when there is none any more';
COMMENT ON COLUMN qinglong.trigger_schedules.due_delay_ms IS
    'The trigger''s share of its jitter: its occurrences become due that much later';
COMMENT ON COLUMN qinglong.trigger_schedules.finished IS
    'The schedule has ended; only a publication starts it again';
COMMENT ON COLUMN qinglong.trigger_schedules.updated_at_ms IS
    'Clock floor of the row; while a claim lives it is the moment of the claim';
COMMENT ON COLUMN qinglong.trigger_schedules.eligible IS
    'Hint kept by table triggers: revision current and enabled, task pin current, project active';
COMMENT ON COLUMN qinglong.trigger_schedules.fault_code IS
    'Why the row was quarantined (no retry_at_ms) or backs off (until retry_at_ms)';
COMMENT ON COLUMN qinglong.trigger_schedules.schedulable IS
    'Eligible, not finished and not quarantined: the condition of the due index';
COMMENT ON COLUMN qinglong.trigger_schedules.uncounted IS
    'Spans in which occurrences were due when the trigger became ineligible; the next admit or publication counts them as skipped';

-- Exactly the claim's order, by the moment a row becomes due; -1 stands for a NULL cursor, so that one bounded range read finds both.
CREATE INDEX trigger_schedules_due_idx ON qinglong.trigger_schedules
    (COALESCE(next_fire_at_ms + due_delay_ms, (-1)::bigint), project_id, trigger_id) WHERE schedulable;

-- With which time zone data the cursors were computed; data that differs has them derived again.
CREATE TABLE qinglong.zone_data (
    timezone            varchar(128) COLLATE "C" PRIMARY KEY,
    fingerprint         text COLLATE "C" NOT NULL CHECK (fingerprint ~ '^[0-9a-f]{16}$'),
    updated_at_ms       bigint NOT NULL CHECK (updated_at_ms >= 0)
);
COMMENT ON TABLE qinglong.zone_data IS
    'Fingerprint of the server''s time zone data with which the cursors of each zone were computed';

CREATE TABLE qinglong.runs (
    id                  uuid PRIMARY KEY,
    project_id          varchar(128) COLLATE "C" NOT NULL,
    task_id             varchar(255) COLLATE "C" NOT NULL,
    task_revision       varchar(128) COLLATE "C" NOT NULL,
    task_name           varchar(255),
    task_snapshot_ref   varchar(512) COLLATE "C",
    legacy_cron_id      integer,
    parent_run_id       uuid,
    retry_of_run_id     uuid,
    trigger_id          varchar(128) COLLATE "C",
    trigger_type        varchar(64) COLLATE "C" NOT NULL,
    execution_origin    varchar(64) COLLATE "C" NOT NULL,
    execution_owner     varchar(16) COLLATE "C" NOT NULL CHECK (execution_owner = 'runtime'),
    triggered_by        varchar(255) COLLATE "C",
    request_id          varchar(128) COLLATE "C",
    scheduled_for_ms    bigint,
    status              text NOT NULL CHECK (status IN
                        ('created', 'queued', 'dispatching', 'running', 'waiting_approval', 'retry_wait',
                         'lost', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    version             integer NOT NULL DEFAULT 0,
    event_sequence      integer NOT NULL DEFAULT 0,
    priority            integer NOT NULL DEFAULT 0,
    idempotency_key     varchar(255) COLLATE "C",
    input_ref           varchar(512) COLLATE "C",
    output_ref          varchar(512) COLLATE "C",
    created_at_ms       bigint NOT NULL,
    queued_at_ms        bigint,
    started_at_ms       bigint,
    finished_at_ms      bigint,
    cancel_requested_at_ms bigint,
    cancel_reason       text CHECK (cancel_reason IN ('user', 'policy', 'shutdown', 'reconcile', 'timeout')),
    error_code          varchar(128) COLLATE "C",
    error_summary       varchar(1024),
    CONSTRAINT runs_ranges CHECK (
        COALESCE(legacy_cron_id, 1) >= 1
        AND LEAST(scheduled_for_ms, version, event_sequence, created_at_ms, queued_at_ms, started_at_ms, finished_at_ms,
                  cancel_requested_at_ms) >= 0),
    -- A scheduled Run names its trigger and instant, and its key says the same: with the unique occurrence below
    -- this makes the keys of scheduled Runs unique in a project without a second index.
    CONSTRAINT runs_scheduled_shape CHECK (
        CASE WHEN trigger_type <> 'cron' THEN idempotency_key IS NULL OR NOT starts_with(idempotency_key, 'ql3:cron:v1:')
        ELSE trigger_id IS NOT NULL AND scheduled_for_ms IS NOT NULL AND idempotency_key IS NOT NULL
             AND starts_with(idempotency_key, 'ql3:cron:v1:' || trigger_id || ':')
             AND substr(idempotency_key, length(trigger_id) + 14) ~ '^[1-9][0-9]{0,9}:[0-9]+$'
             AND split_part(substr(idempotency_key, length(trigger_id) + 14), ':', 2) = scheduled_for_ms::text END)
);
COMMENT ON TABLE qinglong.runs IS 'Durable work: one row per Run; scheduled Runs have trigger_type cron';
CREATE UNIQUE INDEX runs_occurrence_key ON qinglong.runs (project_id, trigger_id, scheduled_for_ms)
    WHERE trigger_type = 'cron';
CREATE UNIQUE INDEX runs_idempotency_key ON qinglong.runs (project_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND trigger_type <> 'cron';
-- Workers pull from here.
CREATE INDEX runs_dispatch_idx ON qinglong.runs (priority DESC, queued_at_ms, id)
    WHERE status IN ('queued', 'dispatching') AND cancel_requested_at_ms IS NULL AND queued_at_ms IS NOT NULL;
CREATE INDEX runs_recovery_idx ON qinglong.runs (created_at_ms, id)
    WHERE status IN ('created', 'dispatching', 'running');

CREATE TABLE qinglong.run_attempts (
    id                  uuid PRIMARY KEY,
    run_id              uuid NOT NULL,
    step_run_id         uuid,
    attempt             integer NOT NULL,
    status              text NOT NULL CHECK (status IN
                        ('claimed', 'starting', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'lost')),
    executor_type       varchar(64) COLLATE "C" NOT NULL,
    worker_id           varchar(128) COLLATE "C",
    worker_session_id   uuid,
    worker_generation   integer,
    executor_handle     varchar(2048),
    pid                 integer,
    log_artifact_id     varchar(36) COLLATE "C",
    lease_token         varchar(128) COLLATE "C",
    lease_token_digest  char(64) COLLATE "C",
    lease_generation    integer,
    lease_version       integer,
    lease_expires_at_ms bigint,
    offer_id            varchar(128) COLLATE "C",
    deadline_at_ms      bigint,
    callback_token_hash varchar(128) COLLATE "C",
    callback_sequence   integer NOT NULL DEFAULT 0,
    created_at_ms       bigint NOT NULL,
    started_at_ms       bigint,
    finished_at_ms      bigint,
    exit_code           integer,
    error_code          varchar(128) COLLATE "C",
    error_summary       varchar(1024),
    CONSTRAINT run_attempts_attempt_key UNIQUE (run_id, attempt),
    CONSTRAINT run_attempts_ranges CHECK (
        LEAST(attempt, worker_generation, pid, lease_generation) >= 1
        AND LEAST(lease_version, lease_expires_at_ms, deadline_at_ms, created_at_ms, started_at_ms, finished_at_ms) >= 0),
    CONSTRAINT run_attempts_remote_fence CHECK (
        num_nonnulls(worker_session_id, worker_generation, lease_generation, lease_version,
                     lease_token_digest, offer_id) = 0
        OR (num_nonnulls(worker_session_id, worker_generation, lease_generation, lease_version,
                         lease_token_digest, offer_id) = 6 AND worker_id IS NOT NULL))
);
COMMENT ON TABLE qinglong.run_attempts IS 'Attempts to carry out a Run; an admission writes the first, unstarted';
CREATE INDEX run_attempts_recovery_idx ON qinglong.run_attempts (created_at_ms, id)
    WHERE status IN ('claimed', 'starting', 'running');

CREATE TABLE qinglong.run_events (
    id                  uuid NOT NULL UNIQUE,
    run_id              uuid NOT NULL,
    sequence            integer NOT NULL,
    type                varchar(128) COLLATE "C" NOT NULL,
    dedupe_key          varchar(255) COLLATE "C",
    actor_type          text NOT NULL CHECK (actor_type IN
                        ('user', 'api_app', 'trigger', 'agent', 'mcp_client', 'worker', 'executor', 'system',
                         'legacy_shell', 'scheduler', 'reconciler', 'compatibility')),
    actor_id            varchar(255) COLLATE "C",
    attempt_id          uuid,
    step_run_id         uuid,
    payload             jsonb NOT NULL CHECK (jsonb_typeof(payload) = 'object'),
    created_at_ms       bigint NOT NULL,
    PRIMARY KEY (run_id, sequence),
    CONSTRAINT run_events_ranges CHECK (sequence >= 1 AND created_at_ms >= 0),
    -- The scheduler's two keys stand at fixed sequences, so (run_id, sequence) already makes them unique in a Run.
    CONSTRAINT run_events_scheduler_keys CHECK (
        dedupe_key IS NULL
        OR NOT starts_with(dedupe_key, 'cluster-schedule-')
        OR (sequence = 1 AND starts_with(dedupe_key, 'cluster-schedule-created:'))
        OR (sequence = 2 AND starts_with(dedupe_key, 'cluster-schedule-queued:')))
);
COMMENT ON TABLE qinglong.run_events IS 'Append-only history of each Run';
CREATE UNIQUE INDEX run_events_dedupe_key ON qinglong.run_events (run_id, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND NOT starts_with(dedupe_key, 'cluster-schedule-');

-- All state is dumped and restored (one call per statement: two in one SELECT fail).
SELECT pg_catalog.pg_extension_config_dump('qinglong.identity', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.projects', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.task_definitions', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.task_definition_revisions', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.task_execution_revisions', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.triggers', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.trigger_revisions', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.trigger_schedules', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.zone_data', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.runs', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.run_attempts', '');
SELECT pg_catalog.pg_extension_config_dump('qinglong.run_events', '');
