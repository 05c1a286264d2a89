-- The indexes of the naive protocol's written tables.
ALTER TABLE trigger_schedules ADD PRIMARY KEY (project_id, trigger_id);
CREATE INDEX ON trigger_schedules (next_fire_at_ms NULLS FIRST, claim_expires_at_ms, project_id, trigger_id);
CREATE INDEX ON trigger_schedules (claim_expires_at_ms, project_id, trigger_id) WHERE claim_token IS NOT NULL;
ALTER TABLE runs ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX ON runs (project_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX ON runs (project_id, created_at_ms, id);
CREATE INDEX ON runs (task_id, created_at_ms, id);
CREATE INDEX ON runs (priority DESC, queued_at_ms, id)
    WHERE execution_owner = 'runtime' AND status IN ('queued', 'dispatching')
      AND cancel_requested_at_ms IS NULL AND queued_at_ms IS NOT NULL;
CREATE INDEX ON runs (execution_owner, status, id);
CREATE INDEX ON runs (created_at_ms, id)
    WHERE execution_owner = 'runtime' AND status IN ('created', 'dispatching', 'running');
ALTER TABLE run_attempts ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX ON run_attempts (run_id, attempt);
CREATE UNIQUE INDEX ON run_attempts (run_id, id);
CREATE INDEX ON run_attempts (status, run_id, created_at_ms, id);
CREATE INDEX ON run_attempts (lease_expires_at_ms, created_at_ms, id) WHERE status IN ('claimed', 'starting', 'running');
ALTER TABLE run_events ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX ON run_events (run_id, sequence);
CREATE UNIQUE INDEX ON run_events (run_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX ON run_events (run_id, created_at_ms, id);
