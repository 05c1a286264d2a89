-- Identity and hold: a copy of the state (restored dump, template copy) must not schedule beside the original.

CREATE FUNCTION qinglong._library_version() RETURNS text
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_library_version';
COMMENT ON FUNCTION qinglong._library_version() IS 'Internal: the version of the loaded library';

CREATE FUNCTION qinglong._system_identifier() RETURNS text
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'ql_system_identifier';
COMMENT ON FUNCTION qinglong._system_identifier() IS 'Internal: the identifier of this database cluster';

-- What a change waits for longer than a second is an error that names the object, as with the other management functions.
CREATE FUNCTION qinglong.ql_hold(reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
BEGIN
    IF reason IS NULL OR octet_length(reason) NOT BETWEEN 1 AND 1024 THEN
        RAISE EXCEPTION 'reason must have 1 to 1024 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A copy keeps its foreign identity: only a release makes it this database's own.
    INSERT INTO qinglong.identity AS i
           (system_identifier, database_oid, held_reason, created_at_ms, updated_at_ms)
    SELECT qinglong._system_identifier(), d.oid::bigint, reason, c.now, c.now
      FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) c,
           pg_catalog.pg_database d
     WHERE d.datname = current_database()
        ON CONFLICT (singleton) DO UPDATE
       SET held_reason = EXCLUDED.held_reason, updated_at_ms = GREATEST(i.updated_at_ms, EXCLUDED.updated_at_ms);
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'the identity of this database is locked by another transaction'
        USING ERRCODE = 'lock_not_available',
              DETAIL = 'A row that the change needs was not free within the lock timeout.', HINT = 'Repeat the call.';
END
$$;
COMMENT ON FUNCTION qinglong.ql_hold(text) IS
    'Stops all scheduling in this database until ql_release_hold(); the reason is shown to whoever tries';

CREATE FUNCTION qinglong.ql_release_hold() RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    was_held boolean;
BEGIN
    SELECT i.held_reason IS NOT NULL
           OR (i.system_identifier, i.database_oid) <> (qinglong._system_identifier(), d.oid::bigint)
      INTO was_held
      FROM qinglong.identity i, pg_catalog.pg_database d
     WHERE d.datname = current_database()
       FOR UPDATE OF i;
    IF was_held THEN
        UPDATE qinglong.identity i
           SET system_identifier = qinglong._system_identifier(), database_oid = d.oid::bigint, held_reason = NULL,
               updated_at_ms = GREATEST(i.updated_at_ms, c.now)
          FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) c,
               pg_catalog.pg_database d
         WHERE d.datname = current_database();
        PERFORM qinglong._wake_launcher();
    END IF;
    RETURN COALESCE(was_held, false);
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'the identity of this database is locked by another transaction'
        USING ERRCODE = 'lock_not_available',
              DETAIL = 'A row that the change needs was not free within the lock timeout.', HINT = 'Repeat the call.';
END
$$;
COMMENT ON FUNCTION qinglong.ql_release_hold() IS
    'Lets this database schedule: ends ql_hold(), and makes a copy''s state its own; true when something was held';

CREATE FUNCTION qinglong.ql_release_quarantine(project_id text, trigger_id text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    wrong text := (
        SELECT a.name || f.fault
          FROM (VALUES (1, 'project_id', $1), (2, 'trigger_id', $2)) a (place, name, id),
               LATERAL (SELECT CASE WHEN a.id IS NULL THEN ' must not be null'
                               WHEN octet_length(a.id) NOT BETWEEN 1 AND 128 THEN ' must be 1 to 128 bytes of UTF-8'
                               WHEN a.id ~ '[[:cntrl:]]' THEN ' must not contain control characters' END) f (fault)
         WHERE f.fault IS NOT NULL
         ORDER BY a.place LIMIT 1);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The cursor stays: what was due meanwhile is decided by the misfire policy. Any older claim is dead.
    UPDATE qinglong.trigger_schedules s
       SET fault_code = NULL, fault_count = 0, retry_at_ms = NULL,
           claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL,
           claim_version = s.claim_version + 1, state_version = s.state_version + 1,
           updated_at_ms = GREATEST(s.updated_at_ms, c.now)
      FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) c
     WHERE s.project_id = $1 AND s.trigger_id = $2
       AND s.fault_code IS NOT NULL AND s.retry_at_ms IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM qinglong._wake_launcher();
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'trigger "%" of project "%" is locked by another transaction', $2, $1
        USING ERRCODE = 'lock_not_available',
              DETAIL = 'A row that the change needs was not free within the lock timeout.', HINT = 'Repeat the call.';
END
$$;
COMMENT ON FUNCTION qinglong.ql_release_quarantine(text, text) IS
    'Lets a quarantined trigger schedule again from its kept cursor; false when it is not quarantined';
