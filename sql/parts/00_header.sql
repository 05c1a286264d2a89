\echo Use "CREATE EXTENSION qinglong_sched" to load this file. \quit

-- Content digests are defined over UTF-8 bytes, and a schema that somebody else made could hold planted objects.
DO $check$
BEGIN
    IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'qinglong_sched requires a database with encoding UTF8'
            USING ERRCODE = 'feature_not_supported',
                  HINT = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
    IF (SELECT n.nspowner FROM pg_catalog.pg_namespace n WHERE n.nspname = 'qinglong')
       <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
        RAISE EXCEPTION 'schema "qinglong" belongs to another role'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Drop or rename that schema, then create the extension again.';
    END IF;
END
$check$;
