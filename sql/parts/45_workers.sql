CREATE FUNCTION qinglong._wake_launcher() RETURNS void
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'ql_wake_launcher';
REVOKE ALL ON FUNCTION qinglong._wake_launcher() FROM PUBLIC;
COMMENT ON FUNCTION qinglong._wake_launcher() IS
    'When this transaction commits, the schedulers of this database look for work, and are started if there are none';

CREATE FUNCTION qinglong._worker_slots_exhausted() RETURNS boolean
    LANGUAGE c VOLATILE STRICT AS 'MODULE_PATHNAME', 'ql_worker_slots_exhausted';
REVOKE ALL ON FUNCTION qinglong._worker_slots_exhausted() FROM PUBLIC;
COMMENT ON FUNCTION qinglong._worker_slots_exhausted() IS
    'Whether a scheduler cannot start because all of max_worker_processes are taken; false where the library is not preloaded';
