-- PUBLIC has nothing at all; roles get their rights by ql_grant(). Then what is there now is frozen as shipped.
DO $public$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT CASE d.classid
               WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass
                   THEN pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', d.objid::pg_catalog.regprocedure)
               WHEN 'pg_catalog.pg_class'::pg_catalog.regclass
                   THEN pg_catalog.format('REVOKE ALL ON TABLE %1$s FROM PUBLIC; REVOKE ALL ON TYPE %1$s FROM PUBLIC',
                                          d.objid::pg_catalog.regclass)
               WHEN 'pg_catalog.pg_type'::pg_catalog.regclass
                   THEN pg_catalog.format('REVOKE ALL ON TYPE %s FROM PUBLIC', d.objid::pg_catalog.regtype)
               END
          FROM pg_catalog.pg_depend d
          JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND e.extname = 'qinglong_sched'
         WHERE d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype = 'e'
           -- An array type has the privileges of its element.
           AND (d.classid <> 'pg_catalog.pg_type'::pg_catalog.regclass
                OR EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = d.objid AND t.typelem = 0))
    LOOP
        IF command IS NOT NULL THEN
            EXECUTE command;
        END IF;
    END LOOP;
    REVOKE ALL ON SCHEMA qinglong FROM PUBLIC;
END
$public$;

-- An upgrade script ends with this as well, after revoking PUBLIC's rights on the objects that it adds, and on no other:
-- inside an extension's script a GRANT or REVOKE makes the object's whole privilege list part of its initial privileges,
-- which a dump leaves out. Roles get their part of new objects by another ql_grant(); until then the readiness says so.
CREATE FUNCTION qinglong._freeze_shipped() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION qinglong._shipped() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE'
                   ' SET search_path = pg_catalog, pg_temp AS %L',
                   format('SELECT %L::jsonb',
                          (SELECT jsonb_object_agg(f.code || ' ' || f.object, f.fact) FROM qinglong._catalog_facts() f)));
END
$$;
COMMENT ON FUNCTION qinglong._freeze_shipped() IS 'Internal: the last step of an install or upgrade script';
REVOKE ALL ON FUNCTION qinglong._freeze_shipped() FROM PUBLIC;
SELECT qinglong._freeze_shipped();
