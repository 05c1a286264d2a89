-- Readiness: is this database what the install script left, and may it schedule?
--
-- "As shipped" is what _catalog_facts() said when the script ended, frozen into _shipped(). A fact that is missing or
-- different is a finding. What an owner adds on purpose (an index, a constraint, a trigger of one's own) is none. Facts
-- are names and flags, comparable across server versions; deparsed definitions only within one major version.

CREATE FUNCTION qinglong._catalog_facts(OUT code text, OUT object text, OUT fact text)
RETURNS SETOF record
LANGUAGE sql STABLE ROWS 600
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET enable_seqscan = on SET jit = off
AS $$
    WITH extension AS MATERIALIZED (
        SELECT e.oid, e.extowner FROM pg_extension e WHERE e.extname = 'qinglong_sched'
    ), member AS MATERIALIZED (
        SELECT d.classid, d.objid
          FROM extension e
          JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    ), relation AS MATERIALIZED (
        SELECT c.oid, c.relname::text AS name, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
               c.relowner = e.extowner AS owned, CASE WHEN c.relkind = 'v' THEN c.reloptions END AS options
          FROM extension e, member m
          JOIN pg_class c ON c.oid = m.objid
         WHERE m.classid = 'pg_class'::regclass
        UNION ALL
        SELECT c.oid, c.relname, c.relkind, c.relpersistence, false, false, t.typowner = e.extowner, NULL
          FROM extension e, member m
          JOIN pg_type t ON t.oid = m.objid
          JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
         WHERE m.classid = 'pg_type'::regclass
    )
    SELECT 'tables', r.name,
           concat_ws(' ', r.relkind, r.relpersistence, r.owned, r.relrowsecurity, r.relforcerowsecurity, r.options)
      FROM relation r
    UNION ALL
    SELECT 'columns', r.name || '.' || a.attname,
           concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef, a.attidentity, a.attgenerated,
                     (SELECT l.collname FROM pg_collation l WHERE l.oid = a.attcollation),
                     CASE WHEN r.relkind = 'c' THEN a.attnum END)
      FROM relation r
      JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'indexes', c.relname,
           concat_ws(' ', r.name, (SELECT m.amname FROM pg_am m WHERE m.oid = c.relam), i.indisunique, i.indisprimary,
                     i.indimmediate, i.indisvalid, i.indisready, i.indislive, i.indnkeyatts, i.indoption::text,
                     i.indpred IS NOT NULL,
                     (SELECT string_agg(COALESCE(a.attname::text, '(expression)'), ',' ORDER BY k.ord)
                        FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, ord)
                        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum))
      FROM relation r
      JOIN pg_index i ON i.indrelid = r.oid
      JOIN pg_class c ON c.oid = i.indexrelid
    UNION ALL
    SELECT 'constraints', r.name || '.' || n.conname,
           concat_ws(' ', n.contype, n.convalidated, n.condeferrable, n.condeferred, n.confrelid::regclass,
                     n.confupdtype, n.confdeltype, n.confmatchtype,
                     (SELECT string_agg(a.attname, ',' ORDER BY k.ord)
                        FROM unnest(n.conkey) WITH ORDINALITY k (attnum, ord)
                        JOIN pg_attribute a ON a.attrelid = n.conrelid AND a.attnum = k.attnum),
                     (SELECT string_agg(a.attname, ',' ORDER BY k.ord)
                        FROM unnest(n.confkey) WITH ORDINALITY k (attnum, ord)
                        JOIN pg_attribute a ON a.attrelid = n.confrelid AND a.attnum = k.attnum))
      FROM relation r
      JOIN pg_constraint n ON n.conrelid = r.oid AND n.contype <> 'n'
    UNION ALL
    SELECT 'triggers', r.name || '.' || t.tgname,
           concat_ws(' ', p.pronamespace::regnamespace, p.proname, t.tgtype, t.tgdeferrable, t.tgattr::text,
                     -- Immutability is the owner's to lift, and lifting it does not endanger scheduling.
                     CASE WHEN t.tgname NOT LIKE 'immutable%' THEN t.tgenabled IN ('O', 'A') END)
      FROM relation r
      JOIN pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
      JOIN pg_proc p ON p.oid = t.tgfoid
    UNION ALL
    SELECT 'functions', p.oid::regprocedure::text,
           concat_ws(' ', p.prokind, p.proowner = e.extowner, p.prosecdef, p.provolatile, p.proparallel, p.proisstrict,
                     p.proretset, l.lanname, pg_get_function_result(p.oid), p.proargnames::text, p.proargmodes::text,
                     p.pronargdefaults, p.proconfig::text, p.probin, md5(p.prosrc))
      FROM extension e, member m
      JOIN pg_proc p ON p.oid = m.objid AND p.proname <> '_shipped'
      JOIN pg_language l ON l.oid = p.prolang
     WHERE m.classid = 'pg_proc'::regclass
    UNION ALL
    SELECT 'definitions', r.name || '.' || n.conname, md5(pg_get_constraintdef(n.oid))
      FROM relation r
      JOIN pg_constraint n ON n.conrelid = r.oid AND n.contype = 'c'
    UNION ALL
    SELECT 'definitions', c.relname,
           md5(concat_ws(' ', pg_get_expr(i.indpred, i.indrelid), pg_get_expr(i.indexprs, i.indrelid)))
      FROM relation r
      JOIN pg_index i ON i.indrelid = r.oid AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL)
      JOIN pg_class c ON c.oid = i.indexrelid
    UNION ALL
    SELECT 'definitions', r.name || '.' || a.attname, md5(pg_get_expr(d.adbin, d.adrelid))
      FROM relation r
      JOIN pg_attrdef d ON d.adrelid = r.oid
      JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    UNION ALL
    SELECT 'definitions', r.name, md5(pg_get_viewdef(r.oid))
      FROM relation r
     WHERE r.relkind = 'v'
    UNION ALL
    SELECT 'server', 'major version', (current_setting('server_version_num')::integer / 10000)::text
$$;
COMMENT ON FUNCTION qinglong._catalog_facts() IS 'Internal: what the catalogue says about the objects of the extension';

-- Filled in when the script ends.
CREATE FUNCTION qinglong._shipped() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT '{}'::jsonb $$;
COMMENT ON FUNCTION qinglong._shipped() IS 'Internal: what _catalog_facts() said when the install script ended';

-- Each right that somebody but the owner has, beside the rights of the kinds that the role was given, and each that its
-- kinds give and it lacks. What opens nothing but reading to a role, or closes something to it, does not endanger
-- scheduling.
CREATE FUNCTION qinglong._grant_findings(OUT finding text, OUT harmless boolean)
RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp SET enable_seqscan = on SET jit = off
AS $$
    WITH extension AS MATERIALIZED (
        SELECT e.oid, e.extowner FROM pg_extension e WHERE e.extname = 'qinglong_sched'
    ), member AS MATERIALIZED (
        SELECT d.classid, d.objid
          FROM extension e
          JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    ), acl AS (
        SELECT 'schema' AS class, n.nspname::text AS object, COALESCE(n.nspacl, acldefault('n', n.nspowner)) AS list
          FROM pg_namespace n WHERE n.nspname = 'qinglong'
        UNION ALL
        SELECT 'table', c.relname, COALESCE(c.relacl, acldefault('r', c.relowner))
          FROM member m JOIN pg_class c ON c.oid = m.objid WHERE m.classid = 'pg_class'::regclass
        UNION ALL
        SELECT 'table', c.relname, a.attacl
          FROM member m
          JOIN pg_class c ON c.oid = m.objid
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL
         WHERE m.classid = 'pg_class'::regclass
        UNION ALL
        SELECT 'type', t.typname, COALESCE(t.typacl, acldefault('T', t.typowner))
          FROM member m
          -- An array type has the privileges of its element; from 17 on it can be a member.
          JOIN pg_type t ON t.oid = m.objid AND t.typelem = 0
         WHERE m.classid = 'pg_type'::regclass
        UNION ALL
        SELECT 'type', t.typname, COALESCE(t.typacl, acldefault('T', t.typowner))
          FROM member m
          JOIN pg_class c ON c.oid = m.objid
          JOIN pg_type t ON t.oid = c.reltype
         WHERE m.classid = 'pg_class'::regclass
        UNION ALL
        SELECT 'function', p.proname, COALESCE(p.proacl, acldefault('f', p.proowner))
          FROM member m JOIN pg_proc p ON p.oid = m.objid WHERE m.classid = 'pg_proc'::regclass
    ), actual AS MATERIALIZED (
        SELECT x.grantee, a.class, a.object,
               x.privilege_type || CASE WHEN x.is_grantable THEN ' with grant option' ELSE '' END AS privilege
          FROM extension e, acl a, aclexplode(a.list) x
         WHERE x.grantee <> e.extowner
    ), expected AS MATERIALIZED (
        SELECT k.grantee, g.class, g.object, g.privilege
          FROM actual k
          JOIN qinglong._grants() g ON k.object = '_kind_' || g.kind
         WHERE k.class = 'function'
    )
    SELECT format('%s has %s on %s %I, which %s',
                  COALESCE('role ' || quote_ident(r.rolname), 'PUBLIC'),
                  string_agg(f.privilege, ', ' ORDER BY f.privilege), f.class, f.object,
                  CASE WHEN r.oid IS NULL THEN 'ql_grant() never gives' ELSE 'none of its kinds gives' END),
           r.oid IS NOT NULL AND bool_and(f.privilege = 'SELECT')
      FROM (SELECT * FROM actual EXCEPT SELECT * FROM expected) f
      LEFT JOIN pg_roles r ON r.oid = f.grantee
     -- By itself this opens nothing.
     WHERE NOT (f.grantee <> 0 AND f.class = 'schema' AND f.privilege = 'USAGE')
     GROUP BY r.oid, r.rolname, f.class, f.object
    UNION ALL
    SELECT format('role %I lacks %s on %s %I, which its kind gives', r.rolname,
                  string_agg(f.privilege, ', ' ORDER BY f.privilege), f.class, f.object),
           true
      FROM (SELECT * FROM expected EXCEPT SELECT * FROM actual) f
      JOIN pg_roles r ON r.oid = f.grantee
     GROUP BY r.oid, r.rolname, f.class, f.object
$$;
COMMENT ON FUNCTION qinglong._grant_findings() IS 'Internal: rights that are not those of the kinds given by ql_grant()';

CREATE FUNCTION qinglong._catalog_findings(OUT code text, OUT finding text)
RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
    WITH shipped AS MATERIALIZED (
        SELECT e.key, e.value FROM jsonb_each_text(qinglong._shipped()) e
    ), actual AS MATERIALIZED (
        SELECT f.code || ' ' || f.object AS key, f.fact AS value FROM qinglong._catalog_facts() f
    ), differing AS (
        SELECT d.key FROM (SELECT s.key, s.value FROM shipped s EXCEPT SELECT a.key, a.value FROM actual a) d
    )
    SELECT split_part(d.key, ' ', 1),
           format('%s is not as shipped', substr(d.key, strpos(d.key, ' ') + 1))
      FROM differing d
     WHERE d.key <> 'server major version'
       AND (NOT starts_with(d.key, 'definitions ')
            OR NOT EXISTS (SELECT FROM differing v WHERE v.key = 'server major version'))
    UNION ALL
    SELECT 'grants', g.finding FROM qinglong._grant_findings() g WHERE NOT g.harmless
$$;
COMMENT ON FUNCTION qinglong._catalog_findings() IS 'Internal: how the catalogue differs from what was shipped';

-- What an operator should know and what keeps nothing from scheduling.
CREATE FUNCTION qinglong._catalog_advice(OUT code text, OUT finding text)
RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
    SELECT 'triggers', format('%s.%s is not enabled always', c.relname, t.tgname)
      FROM pg_extension e
      JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
           AND d.classid = 'pg_class'::regclass
      JOIN pg_class c ON c.oid = d.objid
      JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname IN ('immutable_row', 'immutable_table', 'sweep_schedules')
     WHERE e.extname = 'qinglong_sched' AND t.tgenabled <> 'A'
    UNION ALL
    -- Foreign keys are held by internal triggers, which DISABLE TRIGGER ALL turns off.
    SELECT 'triggers', format('foreign keys of %s are disabled', c.relname)
      FROM pg_extension e
      JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
           AND d.classid = 'pg_class'::regclass
      JOIN pg_class c ON c.oid = d.objid
      JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgisinternal
     WHERE e.extname = 'qinglong_sched'
     GROUP BY c.relname
    HAVING NOT bool_and(t.tgenabled = 'O')
    UNION ALL
    SELECT 'grants', g.finding FROM qinglong._grant_findings() g WHERE g.harmless
$$;
COMMENT ON FUNCTION qinglong._catalog_advice() IS
    'Internal: what differs from what was shipped without keeping anything from scheduling';

CREATE FUNCTION qinglong.ql_readiness(OUT ready boolean, OUT code text, OUT findings text[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    installed text := (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'qinglong_sched');
    found text[] := '{}';
    held text;
BEGIN
    -- The order is that of the codes: the first finding names the state.
    IF current_setting('server_version_num')::integer / 10000 NOT BETWEEN 15 AND 18 THEN
        found := found || format('server_version: PostgreSQL %s is not supported', current_setting('server_version'));
    END IF;
    IF pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN
        found := found || 'server_not_writable_primary: the server or the session is read-only'::text;
    END IF;
    IF installed IS DISTINCT FROM qinglong._library_version() THEN
        found := found || format('version_mismatch: the library is %s, the extension %s',
                                 qinglong._library_version(), installed);
    ELSE
        -- With the functions of another version this comparison means nothing.
        found := found || ARRAY(
            SELECT left(format('%s: %s', f.code, f.finding), 256)
              FROM qinglong._catalog_findings() f
             ORDER BY array_position('{tables,columns,constraints,indexes,triggers,functions,definitions,grants}', f.code),
                      f.finding COLLATE "C"
             LIMIT 28);
    END IF;
    -- Whoever lacks this right is among the findings already.
    IF has_table_privilege('qinglong.identity', 'SELECT') THEN
        SELECT COALESCE(i.held_reason, CASE
                   WHEN (i.system_identifier, i.database_oid) <> (qinglong._system_identifier(), d.oid::bigint)
                   THEN 'the state belongs to another database, of which this one is a copy' END)
          INTO held
          FROM qinglong.identity i, pg_catalog.pg_database d
         WHERE d.datname = current_database();
        IF held IS NOT NULL THEN
            found := found || left('held: ' || held, 1100);
        END IF;
    END IF;
    ready := found = '{}';
    code := CASE WHEN ready THEN 'ready' ELSE split_part(found[1], ':', 1) END;
    -- What follows is reported, and keeps nothing from scheduling.
    found := found || ARRAY(
        SELECT left(format('%s: %s', a.code, a.finding), 256)
          FROM qinglong._catalog_advice() a
         ORDER BY a.code DESC, a.finding COLLATE "C"
         LIMIT GREATEST(0, 30 - cardinality(found)));
    IF qinglong._worker_slots_exhausted() THEN
        found := found || 'worker_slots_exhausted'::text;
    END IF;
    findings := found;
END
$$;
COMMENT ON FUNCTION qinglong.ql_readiness() IS
    'Whether this database may schedule: server, versions, objects and grants as shipped, not held; else what is wrong';
