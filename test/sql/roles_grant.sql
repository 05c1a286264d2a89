-- ql_grant and ql_revoke: who may call them, whom they refuse, and that what is left is exactly the remaining kinds.
CREATE EXTENSION qinglong_sched;
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE ROLE regress_a;
CREATE ROLE regress_stranger LOGIN;

-- All rights of a role, in few lines.
CREATE VIEW rights AS
WITH acl AS (
    SELECT 'schema' AS class, nspname::text AS object, nspacl AS acl FROM pg_namespace WHERE nspname = 'qinglong'
    UNION ALL SELECT 'table', relname, relacl FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND relkind IN ('r', 'v')
    UNION ALL SELECT 'type', typname, typacl FROM pg_type WHERE typnamespace = 'qinglong'::regnamespace
    UNION ALL SELECT 'function', proname, proacl FROM pg_proc WHERE pronamespace = 'qinglong'::regnamespace AND proname !~ '^_')
SELECT grantee::regrole, class, privileges, string_agg(object, ' ' ORDER BY object) AS objects
  FROM (SELECT x.grantee, class, object, string_agg(x.privilege_type, ',' ORDER BY x.privilege_type) AS privileges
          FROM acl, aclexplode(acl) x WHERE x.grantee::regrole::text LIKE '%regress%' GROUP BY 1, 2, 3) o
 GROUP BY 1, 2, 3;

-- Each kind, as rights.
SELECT qinglong.ql_grant('regress_a', 'runtime');
SELECT class, privileges, objects FROM rights ORDER BY 1, 2;
SELECT qinglong.ql_revoke('regress_a', 'runtime');
SELECT count(*) FROM rights;
SELECT qinglong.ql_grant('regress_a', 'admin');
SELECT class, privileges, objects FROM rights ORDER BY 1, 2;
SELECT qinglong.ql_revoke('regress_a', 'admin');
SELECT qinglong.ql_grant('regress_a', 'worker_ingress');
SELECT class, privileges, objects FROM rights ORDER BY 1, 2;
SELECT qinglong.ql_revoke('regress_a', 'worker_ingress');
SELECT qinglong.ql_grant('regress_a', 'monitor');
SELECT class, privileges, objects FROM rights ORDER BY 1, 2;

-- Again changes nothing; a second kind adds; taking one leaves the other whole, although they overlap.
CREATE TABLE before AS SELECT * FROM rights;
SELECT qinglong.ql_grant('regress_a', 'monitor');
SELECT * FROM rights EXCEPT SELECT * FROM before;
SELECT qinglong.ql_grant('regress_a', 'runtime');
SELECT qinglong.ql_grant('regress_a', 'worker_ingress');
SELECT qinglong.ql_revoke('regress_a', 'runtime');
SELECT qinglong.ql_revoke('regress_a', 'worker_ingress');
SELECT * FROM rights EXCEPT SELECT * FROM before;
SELECT * FROM before EXCEPT SELECT * FROM rights;
-- Taking what it does not have takes nothing.
SELECT qinglong.ql_revoke('regress_a', 'admin');
SELECT * FROM before EXCEPT SELECT * FROM rights;
SELECT ready, findings FROM qinglong.ql_readiness();
SELECT qinglong.ql_revoke('regress_a', 'monitor');
SELECT count(*) FROM rights;

-- Refused kinds and roles.
\set VERBOSITY sqlstate
SELECT qinglong.ql_grant('regress_a', 'owner');
SELECT qinglong.ql_grant('regress_a', NULL);
SELECT qinglong.ql_revoke('regress_a', 'Runtime');
SELECT qinglong.ql_grant(NULL, 'runtime');
SELECT qinglong.ql_grant('-', 'runtime');
SELECT qinglong.ql_grant('regress_missing', 'runtime');
SELECT qinglong.ql_grant('public', 'runtime');
\set VERBOSITY default
CREATE ROLE regress_super SUPERUSER;
CREATE ROLE regress_powers CREATEDB CREATEROLE REPLICATION BYPASSRLS;
SELECT qinglong.ql_grant('regress_super', 'monitor');
SELECT qinglong.ql_grant('regress_powers', 'monitor');
SELECT count(*) FROM rights;

-- Only the owner and superusers: not even with EXECUTE.
GRANT USAGE ON SCHEMA qinglong TO regress_stranger;
SET ROLE regress_stranger;
SELECT qinglong.ql_grant('regress_stranger', 'admin');
RESET ROLE;
GRANT EXECUTE ON FUNCTION qinglong.ql_grant(regrole, text), qinglong.ql_revoke(regrole, text),
    qinglong._check_grant(regrole, text), qinglong._grants(), qinglong._grant_target(text, text) TO regress_stranger;
SET ROLE regress_stranger;
SELECT qinglong.ql_grant('regress_stranger', 'admin');
SELECT qinglong.ql_revoke('regress_a', 'admin');
RESET ROLE;
DROP OWNED BY regress_stranger;

-- A name that must be quoted.
CREATE ROLE "regress Ä; ""x""";
SELECT qinglong.ql_grant('"regress Ä; ""x"""', 'monitor');
SELECT class, privileges FROM rights ORDER BY 1, 2;
SELECT qinglong.ql_revoke('"regress Ä; ""x"""', 'monitor');

DROP EXTENSION qinglong_sched CASCADE;
DROP VIEW rights;
DROP TABLE before;
DROP ROLE regress_a, regress_stranger, regress_super, regress_powers, "regress Ä; ""x""";
