# A dump restored into another cluster keeps every row and every grant, and the copy is held until it is released.
use QL;

my $main = ql_node('main', workers => 0);
$main->safe_psql('postgres', 'CREATE DATABASE app');
create_extension($main, 'app');
$main->safe_psql('app', <<'SQL');
CREATE ROLE r_runtime LOGIN;
CREATE ROLE r_admin LOGIN;
CREATE ROLE r_ingress LOGIN;
CREATE ROLE r_monitor LOGIN;
CREATE ROLE r_two LOGIN;
SELECT qinglong.ql_grant('r_runtime', 'runtime'), qinglong.ql_grant('r_admin', 'admin'),
       qinglong.ql_grant('r_ingress', 'worker_ingress'), qinglong.ql_grant('r_monitor', 'monitor'),
       qinglong.ql_grant('r_two', 'monitor'), qinglong.ql_grant('r_two', 'runtime');
SELECT qinglong.ql_project_put('old');
SELECT qinglong.ql_schedule('a', '* * * * *', 'echo a', misfire_policy => 'fire_once');
SELECT qinglong.ql_schedule('b', '0 3 * * *', 'echo b', 'Europe/Berlin');
SELECT qinglong.ql_schedule('b', '0 4 * * *', 'echo b', 'Europe/Berlin');
SELECT qinglong.ql_schedule('c', '0 3 * * *', 'echo c', project_id => 'old');
SELECT qinglong.ql_schedule('d', '* * * * *', 'echo d');
SELECT qinglong.ql_unschedule('d');
SELECT qinglong.ql_project_put('old', status => 'archived');
SQL
# State of every sort: a Run with its Attempt and Events, a claim, a quarantined row.
$main->safe_psql('app', "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200000 WHERE trigger_id = 'a'");
$main->safe_psql('app', "CALL qinglong.ql_schedule_once('replica')");
$main->safe_psql('app', "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067260000 WHERE trigger_id = 'a'");
$main->safe_psql('app', "SELECT qinglong.ql_claim('replica')");
$main->safe_psql('app', "UPDATE qinglong.trigger_schedules SET fault_code = 'spec_damaged', fault_count = 1 WHERE trigger_id = 'b'");
is(value($main, 'SELECT count(*) FROM qinglong.runs', 'app'), 1, 'a Run is there');
is(value($main, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL', 'app'), 1, 'and a claim');

# Everything, as text: rows of each table, and all privileges.
my $rows = join "\nUNION ALL ", map { "SELECT '$_', t::text FROM qinglong.$_ t" } split /\n/,
    value($main, "SELECT relname FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND relkind = 'r' ORDER BY 1", 'app');
$rows = "SELECT * FROM ($rows) x ORDER BY 1, 2";
my $grants = <<'SQL';
SELECT class, object, x.grantee::regrole::text, x.privilege_type, x.is_grantable
  FROM (SELECT 'schema', nspname, nspacl FROM pg_namespace WHERE nspname = 'qinglong'
        UNION ALL SELECT 'relation', relname, relacl FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace
        UNION ALL SELECT 'type', typname, typacl FROM pg_type WHERE typnamespace = 'qinglong'::regnamespace
        UNION ALL SELECT 'function', proname, proacl FROM pg_proc WHERE pronamespace = 'qinglong'::regnamespace) o (class, object, acl),
       aclexplode(acl) x
 ORDER BY 1, 2, 3, 4
SQL
my ($old_rows, $old_grants) = (value($main, $rows, 'app'), value($main, $grants, 'app'));
cmp_ok(scalar(split /\n/, $old_rows), '>', 20, 'there is state to compare');

sub restored {
    my ($node, $db, $name) = @_;
    is(value($node, $rows, $db), $old_rows, "$name: every row");
    is(value($node, $grants, $db), $old_grants, "$name: every grant");
    is(value($node, 'SELECT count(*) FROM qinglong.ql_check()', $db), 0, "$name: nothing is damaged");
    is(value($node, 'SELECT ready, code FROM qinglong.ql_readiness()', $db), 'f|held', "$name: it is held");
    for my $sql ("SELECT qinglong.ql_claim('x')", "CALL qinglong.ql_schedule_once('x')") {
        my ($rc, $out, $err) = $node->psql($db, $sql);
        like($err, qr/scheduling is held in this database/, "$name: refused: $sql");
    }
    is(value($node, "SELECT state FROM qinglong.schedules WHERE trigger_id = 'b'", $db), 'quarantined', "$name: the view answers");
    is(value($node, "SELECT status FROM qinglong.ql_schedule('new', '* * * * *', 'true')", $db), 'created', "$name: publication goes on");
    is(value($node, "SET ROLE r_admin; SELECT qinglong.ql_release_hold()", $db), 't', "$name: an admin releases it");
    is(value($node, 'SELECT ready, code FROM qinglong.ql_readiness()', $db), 't|ready', "$name: it is ready");
    value($node, "SET SESSION AUTHORIZATION r_runtime; CALL qinglong.ql_schedule_once('x')", $db);
    is(value($node, "SELECT next_fire_at_ms IS NOT NULL FROM qinglong.trigger_schedules WHERE trigger_id = 'new'", $db), 't',
        "$name: then it schedules");
    is(value($node, 'SELECT count(*) FROM qinglong.ql_check()', $db), 0, "$name: and stays whole");
}

# Roles first, then the database, into a new cluster.
my $dump = $main->backup_dir . '-dump';
mkdir $dump;
$main->command_ok([ 'pg_dumpall', '--roles-only', '-f', "$dump/roles.sql", '-d', $main->connstr('postgres') ], 'pg_dumpall --roles-only');
$main->command_ok([ 'pg_dump', '-f', "$dump/app.sql", '-d', $main->connstr('app') ], 'pg_dump as a script');
$main->command_ok([ 'pg_dump', '-Fc', '-f', "$dump/app.dump", '-d', $main->connstr('app') ], 'pg_dump as an archive');

my $other = ql_node('other', workers => 0);
$other->safe_psql('postgres', "CREATE DATABASE $_") for qw(app app2 app3);
# The bootstrap role exists there already; everything else must go through.
$other->psql('postgres', slurp_file("$dump/roles.sql"), on_error_stop => 0);
$other->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dump/app.sql", '-d', $other->connstr('app') ], 'the script restores without an error');
restored($other, 'app', 'script, new cluster');
$other->command_ok([ 'pg_restore', '-e', '-d', $other->connstr('app2'), "$dump/app.dump" ], 'the archive restores without an error');
restored($other, 'app2', 'archive, new cluster');
# Parallel jobs do not know the foreign keys of an extension's tables: they load with checks between tables off.
{
    local $ENV{PGOPTIONS} = '-c session_replication_role=replica';
    $other->command_ok([ 'pg_restore', '-e', '-j', 4, '-d', $other->connstr('app3'), "$dump/app.dump" ],
        'the archive restores in four jobs');
}
restored($other, 'app3', 'four jobs, new cluster');

# Beside the original, in the same cluster: another database, another identity.
$main->safe_psql('postgres', 'CREATE DATABASE beside');
$main->command_ok([ 'pg_restore', '-e', '-d', $main->connstr('beside'), "$dump/app.dump" ], 'the archive restores beside the original');
restored($main, 'beside', 'archive, same cluster');
is(value($main, 'SELECT ready FROM qinglong.ql_readiness()', 'app'), 't', 'the original is untouched');
is(value($main, $rows, 'app'), $old_rows, 'with all its rows');

# Settings lie outside: a dump names none.
unlike(slurp_file("$dump/app.sql"), qr/qinglong_sched\./, 'no setting in the dump');

no_errors_in_log($other, 'no other error in the new cluster', except => qr/is held in this database|role ".*" already exists/);
done_testing();
