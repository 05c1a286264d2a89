CREATE TYPE qinglong.schedule_claim AS (
    project_id              text,
    trigger_id              text,
    trigger_revision        integer,
    trigger_content_digest  text,
    trigger_updated_at_ms   bigint,
    task_id                 text,
    task_revision           integer,
    task_content_digest     text,
    expression              text,
    timezone                text,
    misfire_policy          text,
    state_version           bigint,
    next_fire_at_ms         bigint,
    claim_owner             text,
    claim_token             uuid,
    claim_version           bigint,
    claim_acquired_at_ms    bigint,
    claim_expires_at_ms     bigint,
    spec                    jsonb
);
COMMENT ON TYPE qinglong.schedule_claim IS
    'A lease on one schedule row: the 19 facts that an admission compares again; times in milliseconds since the epoch';

CREATE TYPE qinglong.schedule_decision AS (
    disposition             text,
    observed_at_ms          bigint,
    next_fire_at_ms         bigint,
    scheduled_for_ms        bigint
);
COMMENT ON TYPE qinglong.schedule_decision IS
    'What a claim leads to: initialize, skip or admit, and the cursor that follows';

CREATE TYPE qinglong.schedule_admission AS (
    project_id              text,
    trigger_id              text,
    status                  text,
    disposition             text,
    scheduled_for_ms        bigint,
    next_fire_at_ms         bigint,
    run_id                  uuid,
    attempt_id              uuid,
    sqlstate                text,
    message                 text
);
COMMENT ON TYPE qinglong.schedule_admission IS
    'Outcome of one claim: admitted, advanced, raced, already_admitted, quarantined or failed';

CREATE TYPE qinglong.cycle_summary AS (
    first_claim_acquired_at_ms bigint,
    last_claim_acquired_at_ms  bigint,
    claimed                 integer,
    initialized             integer,
    skipped                 integer,
    admitted                integer,
    raced                   integer,
    quarantined             integer,
    saturated               boolean
);
COMMENT ON TYPE qinglong.cycle_summary IS
    'Counts of one bounded scheduling cycle; saturated means that the budget was used up';
