-- Four kinds of role. _grants() is the one table of what each may do; ql_grant(), ql_revoke() and the readiness read it.
-- That a role is of a kind is recorded in the privileges themselves, so that a dump carries it: EXECUTE on the marker
-- _kind_<kind>(). Without it a monitor could not be told from a runtime role, which may do all that a monitor may.

CREATE FUNCTION qinglong._kind_runtime() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'runtime' $$;
COMMENT ON FUNCTION qinglong._kind_runtime() IS 'Marker: whoever may execute it is a runtime role';
CREATE FUNCTION qinglong._kind_admin() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'admin' $$;
COMMENT ON FUNCTION qinglong._kind_admin() IS 'Marker: whoever may execute it is an admin role';
CREATE FUNCTION qinglong._kind_worker_ingress() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'worker_ingress' $$;
COMMENT ON FUNCTION qinglong._kind_worker_ingress() IS 'Marker: whoever may execute it is a worker_ingress role';
CREATE FUNCTION qinglong._kind_monitor() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'monitor' $$;
COMMENT ON FUNCTION qinglong._kind_monitor() IS 'Marker: whoever may execute it is a monitor role';

CREATE FUNCTION qinglong._grants(OUT kind text, OUT class text, OUT object text, OUT privilege text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 200 SET search_path = pg_catalog, pg_temp
AS $$
    SELECT k.kind, g.class, o.object, p.privilege
      FROM (VALUES
        -- kinds                                 class       privileges              objects
        ('runtime admin worker_ingress monitor', 'schema',   'USAGE',                'qinglong'),
        ('runtime admin worker_ingress monitor', 'table',    'SELECT',               'identity'),
        ('runtime admin worker_ingress monitor', 'function', 'EXECUTE',
         'ql_readiness ql_next_occurrence ql_occurrences ql_explain_schedule ql_describe_schedule'),
        -- what the readiness is made of
        ('runtime admin worker_ingress monitor', 'function', 'EXECUTE',
         '_catalog_findings _catalog_advice _catalog_facts _grant_findings _shipped _grants _library_version _system_identifier'
         ' _worker_slots_exhausted'),

        ('runtime',        'function', 'EXECUTE',              '_kind_runtime'),
        ('runtime',        'table',    'SELECT,INSERT,UPDATE', 'projects'),
        ('runtime',        'table',    'SELECT',
         'task_definitions task_definition_revisions task_execution_revisions triggers trigger_revisions'),
        ('runtime',        'table',    'SELECT,UPDATE',        'trigger_schedules'),
        ('runtime',        'table',    'SELECT,INSERT,UPDATE', 'runs run_attempts zone_data'),
        ('runtime',        'table',    'SELECT,INSERT',        'run_events'),
        ('runtime',        'type',     'USAGE',
         'schedule_claim schedule_decision schedule_admission cycle_summary'),
        ('runtime',        'function', 'EXECUTE',
         'ql_claim ql_decide ql_admit ql_admit_batch ql_schedule_once recovery_candidates'),

        ('admin',          'function', 'EXECUTE',              '_kind_admin'),
        ('admin',          'table',    'SELECT',               'projects'),
        ('admin',          'table',    'SELECT,INSERT,UPDATE', 'task_definitions triggers trigger_schedules identity'),
        ('admin',          'table',    'SELECT,INSERT',
         'task_definition_revisions task_execution_revisions trigger_revisions'),
        ('admin',          'function', 'EXECUTE',
         'ql_project_put ql_task_publish ql_trigger_publish ql_schedule ql_unschedule'
         ' ql_release_quarantine ql_hold ql_release_hold ql_check _begin_publication _wake_launcher'),

        ('worker_ingress', 'function', 'EXECUTE',              '_kind_worker_ingress'),
        ('worker_ingress', 'table',    'SELECT',               'run_attempts'),

        ('monitor',        'function', 'EXECUTE',              '_kind_monitor ql_check recovery_candidates'),

        -- the view, what it calls, and what it leaves out
        ('runtime admin monitor', 'table',    'SELECT',        'schedules'),
        ('runtime admin monitor', 'function', 'EXECUTE',       '_misfire_grace_ms _instant _cursor_occurrence ql_explain_trigger')
      ) AS g (kinds, class, privileges, objects),
      string_to_table(g.kinds, ' ') AS k (kind),
      string_to_table(g.objects, ' ') AS o (object),
      string_to_table(g.privileges, ',') AS p (privilege)
$$;
COMMENT ON FUNCTION qinglong._grants() IS 'Internal: the rights of each kind of role';

-- What a statement must name: functions go by name in _grants(), which has no two of a name.
CREATE FUNCTION qinglong._grant_target(class text, object text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE $1
           WHEN 'schema' THEN format('SCHEMA %I', $2)
           WHEN 'table' THEN format('TABLE qinglong.%I', $2)
           WHEN 'type' THEN format('TYPE qinglong.%I', $2)
           ELSE (SELECT format('ROUTINE %s', p.oid::regprocedure)
                   FROM pg_proc p
                  WHERE p.pronamespace = 'qinglong'::regnamespace AND p.proname = $2)
           END
$$;
COMMENT ON FUNCTION qinglong._grant_target(text, text) IS 'Internal: an object of _grants() as GRANT and REVOKE name it';

-- Checks the caller, the role and the kind; answers the role's name.
CREATE FUNCTION qinglong._check_grant(role regrole, kind text) RETURNS name
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    target pg_catalog.pg_roles;
    owner oid := (SELECT e.extowner FROM pg_catalog.pg_extension e WHERE e.extname = 'qinglong_sched');
BEGIN
    IF NOT (pg_has_role(owner, 'USAGE')
            OR (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)) THEN
        RAISE EXCEPTION 'permission denied to grant kinds of qinglong_sched roles'
            USING ERRCODE = 'insufficient_privilege',
                  DETAIL = 'Only the owner of the extension and superusers may grant and revoke kinds.';
    END IF;
    IF $2 IS NULL OR NOT EXISTS (SELECT FROM qinglong._grants() g WHERE g.kind = $2) THEN
        RAISE EXCEPTION 'unknown kind of role %', COALESCE(quote_literal(left($2, 64)), 'NULL')
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'The kinds are runtime, admin, worker_ingress and monitor.';
    END IF;
    SELECT * INTO target FROM pg_catalog.pg_roles r WHERE r.oid = $1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'role does not exist' USING ERRCODE = 'undefined_object';
    END IF;
    RETURN target.rolname;
END
$$;
COMMENT ON FUNCTION qinglong._check_grant(regrole, text) IS 'Internal: may the caller grant and revoke this kind';

CREATE FUNCTION qinglong.ql_grant(role regrole, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    role_name name := qinglong._check_grant($1, $2);
    attributes text;
    command text;
BEGIN
    SELECT string_agg(a.attribute, ', ') INTO attributes
      FROM pg_catalog.pg_roles r,
           LATERAL (VALUES ('SUPERUSER', r.rolsuper), ('CREATEDB', r.rolcreatedb), ('CREATEROLE', r.rolcreaterole),
                           ('REPLICATION', r.rolreplication), ('BYPASSRLS', r.rolbypassrls)) a (attribute, present)
     WHERE r.oid = $1 AND a.present;
    IF attributes IS NOT NULL THEN
        RAISE EXCEPTION 'role "%" is too powerful for a kind of qinglong_sched', role_name
            USING ERRCODE = 'insufficient_privilege',
                  DETAIL = format('It has %s.', attributes),
                  HINT = 'Use a role of its own without these attributes.';
    END IF;
    IF $1 = (SELECT e.extowner FROM pg_catalog.pg_extension e WHERE e.extname = 'qinglong_sched') THEN
        RAISE EXCEPTION 'role "%" owns the extension', role_name
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Use a role of its own for each kind.';
    END IF;
    -- Two of these at once would update the same catalogue rows.
    LOCK TABLE qinglong.identity IN SHARE ROW EXCLUSIVE MODE;
    FOR command IN
        SELECT format('GRANT %s ON %s TO %I', string_agg(g.privilege, ', '),
                      qinglong._grant_target(g.class, g.object), role_name)
          FROM qinglong._grants() g WHERE g.kind = $2
         GROUP BY g.class, g.object ORDER BY g.class, g.object
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON FUNCTION qinglong.ql_grant(regrole, text) IS
    'Gives a role the rights of a kind: runtime, admin, worker_ingress or monitor; for the extension''s owner';

CREATE FUNCTION qinglong.ql_revoke(role regrole, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    role_name name := qinglong._check_grant($1, $2);
    command text;
BEGIN
    LOCK TABLE qinglong.identity IN SHARE ROW EXCLUSIVE MODE;
    FOR command IN
        WITH kept AS (
            SELECT g.class, g.object, g.privilege
              FROM qinglong._grants() g
             WHERE g.kind <> $2
               AND EXISTS (SELECT FROM pg_catalog.pg_proc p, aclexplode(p.proacl) a
                            WHERE p.pronamespace = 'qinglong'::regnamespace AND p.proname = '_kind_' || g.kind
                              AND a.grantee = $1))
        SELECT format('REVOKE %s ON %s FROM %I', string_agg(g.privilege, ', '),
                      qinglong._grant_target(g.class, g.object), role_name)
          FROM (SELECT g.class, g.object, g.privilege FROM qinglong._grants() g WHERE g.kind = $2
                EXCEPT SELECT * FROM kept) g
         GROUP BY g.class, g.object ORDER BY g.class, g.object
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON FUNCTION qinglong.ql_revoke(regrole, text) IS
    'Takes the rights of a kind from a role, except those that another kind of the role needs; for the extension''s owner';
