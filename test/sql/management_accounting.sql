-- Every occurrence that a publication leaves behind is counted as skipped, once.
CREATE EXTENSION qinglong_sched;
-- Publishes the same trigger again, every time another expression, and says what was counted.
CREATE FUNCTION pg_temp.republish(trigger_id text, expression text, OUT skipped bigint, OUT published_at_ms bigint)
LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT skipped_total FROM qinglong.trigger_schedules s WHERE s.trigger_id = $1);
BEGIN
    PERFORM qinglong.ql_schedule($1, $2, 'true');
    SELECT skipped_total - before, updated_at_ms INTO skipped, published_at_ms
      FROM qinglong.trigger_schedules s WHERE s.trigger_id = $1;
END
$$;
CREATE FUNCTION pg_temp.minutes(from_ms bigint, until_ms bigint) RETURNS bigint LANGUAGE sql AS
    $$ SELECT (until_ms + 59999) / 60000 - (from_ms + 59999) / 60000 $$;
SELECT trunc(extract(epoch FROM clock_timestamp()))::bigint * 1000 AS now_ms \gset

-- From the old cursor to the publication; the claim in hand does not matter.
SELECT status FROM qinglong.ql_schedule('t', '* * * * *', 'true');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 3600000, claim_owner = 'me', claim_version = 1,
       claim_token = gen_random_uuid(), claim_expires_at_ms = updated_at_ms + 1;
SELECT skipped = pg_temp.minutes(:now_ms - 3600000, published_at_ms) AS counted FROM pg_temp.republish('t', '0 0 3 1 *');
SELECT state_version, claim_version, claim_owner FROM qinglong.trigger_schedules;
-- A NULL cursor: from the birth of the old revision, in which nothing was due yet.
SELECT skipped FROM pg_temp.republish('t', '0 0 1 1 *');
-- A cursor in the future: nothing was due.
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 9000000000000000;
SELECT skipped FROM pg_temp.republish('t', '0 0 2 1 *');
-- The instant of the publication belongs to the new revision. A floor a little ahead of the clock makes it certain.
SELECT (trunc(extract(epoch FROM clock_timestamp()) / 10)::bigint + 4) * 10000 AS then_ms \gset
UPDATE qinglong.trigger_schedules SET last_scheduled_at_ms = :then_ms - 1, next_fire_at_ms = 9000000000000000;
SELECT skipped, published_at_ms - :then_ms AS at FROM pg_temp.republish('t', '*/10 * * * * *');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :then_ms - 20000, last_scheduled_at_ms = NULL;
UPDATE qinglong.triggers SET updated_at_ms = :then_ms - 1;
ALTER TABLE qinglong.trigger_revisions DISABLE TRIGGER immutable_row;
UPDATE qinglong.trigger_revisions SET created_at_ms = least(created_at_ms, :then_ms - 1);
SELECT skipped, published_at_ms - :then_ms AS at FROM pg_temp.republish('t', '*/5 * * * * *');
SELECT skipped, published_at_ms - :then_ms AS at FROM pg_temp.republish('t', '* * * * * *'); -- a ms later that instant is left behind
SELECT skipped, published_at_ms - :then_ms AS at FROM pg_temp.republish('t', '*/2 * * * * *');
-- Where a clock that was far ahead left its mark, only what was due by now is counted: the rest is still to come.
UPDATE qinglong.triggers SET updated_at_ms = 9000000000000000;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 3600000, updated_at_ms = 0;
SELECT skipped BETWEEN 1800 AND 2400 AS counted FROM pg_temp.republish('t', '* * * * *');
SELECT skipped <= 1 AS counted FROM pg_temp.republish('t', '0 0 1 1 *');

-- Quarantined rows are counted too.
SELECT status FROM qinglong.ql_schedule('q', '* * * * *', 'true');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 600000, fault_code = 'execution_missing' WHERE trigger_id = 'q';
SELECT skipped = pg_temp.minutes(:now_ms - 600000, published_at_ms) AS counted FROM pg_temp.republish('q', '0 0 1 1 *');
SELECT fault_code FROM qinglong.trigger_schedules WHERE trigger_id = 'q';

-- Spans in which the trigger was still eligible are counted; while it was not, nothing was due.
SELECT status FROM qinglong.ql_schedule('u', '*/10 * * * *', 'true');
UPDATE qinglong.trigger_schedules SET eligible = false, next_fire_at_ms = 86400000,
       uncounted = '{[0,3600000),[7200000,7800001),[86400000,86400001),[90000001,90600000)}' WHERE trigger_id = 'u';
SELECT skipped FROM pg_temp.republish('u', '0 0 1 1 *'); -- 6 + 2 + 1 + 0
SELECT uncounted, eligible, next_fire_at_ms FROM qinglong.trigger_schedules WHERE trigger_id = 'u';
-- Both: spans and the time since a reactivation.
SELECT skipped FROM pg_temp.republish('u', '* * * * *');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 300000, uncounted = '{[0,120000)}' WHERE trigger_id = 'u';
SELECT skipped = pg_temp.minutes(:now_ms - 300000, published_at_ms) + 2 AS counted FROM pg_temp.republish('u', '0 0 1 1 *');

-- Capped in total.
SELECT status FROM qinglong.ql_schedule('c', '* * * * * *', 'true');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 50000, uncounted = '{[0,99990000)}' WHERE trigger_id = 'c';
SELECT skipped FROM pg_temp.republish('c', '*/2 * * * * *');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 0 WHERE trigger_id = 'c';
SELECT skipped FROM pg_temp.republish('c', '0 0 1 1 *');

-- A spec that cannot be read any more, or whose zone is gone, counts nothing and can be replaced.
SELECT status FROM qinglong.ql_schedule('z', '* * * * *', 'true');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 0 WHERE trigger_id = 'z';
UPDATE qinglong.trigger_revisions SET spec_json = jsonb_set(spec_json, '{config,timezone}', '"Nowhere/Gone"') WHERE trigger_id = 'z';
UPDATE qinglong.trigger_revisions SET content_digest = qinglong._trigger_digest(project_id, trigger_id, revision, task_id,
       task_revision, task_content_digest, spec_json, enabled) WHERE trigger_id = 'z';
SELECT skipped FROM pg_temp.republish('z', '*/2 * * * *');
-- ... and can be switched off.
UPDATE qinglong.trigger_revisions SET spec_json = jsonb_set(spec_json, '{config,timezone}', '"Nowhere/Gone"') WHERE trigger_id = 'z';
UPDATE qinglong.trigger_revisions SET content_digest = qinglong._trigger_digest(project_id, trigger_id, revision, task_id,
       task_revision, task_content_digest, spec_json, enabled) WHERE trigger_id = 'z';
SELECT qinglong.ql_unschedule('z');
SELECT spec_json -> 'config' ->> 'timezone' AS zone, enabled FROM qinglong.trigger_revisions WHERE trigger_id = 'z' ORDER BY revision DESC LIMIT 1;

-- The whole way: due since an hour, the task moves, time passes, the trigger follows.
SELECT status FROM qinglong.ql_schedule('w', '* * * * *', 'true');
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = :now_ms - 3600000 WHERE trigger_id = 'w';
SELECT status FROM qinglong.ql_task_publish('default', 'w', 'w', '{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "false"}}}', 1);
SELECT eligible, next_fire_at_ms = :now_ms - 3600000 AS cursor_stays, uncounted = int8multirange(int8range(:now_ms - 3600000, updated_at_ms)) AS noted,
       updated_at_ms AS moved_ms, skipped_total FROM qinglong.trigger_schedules WHERE trigger_id = 'w' \gset w_
SELECT :'w_eligible' AS eligible, :'w_cursor_stays' AS cursor_stays, :'w_noted' AS noted, :w_skipped_total AS skipped_total;
SELECT skipped = pg_temp.minutes(:now_ms - 3600000, :w_moved_ms) AS counted FROM pg_temp.republish('w', '*/7 * * * *');
