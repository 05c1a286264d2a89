# Settings apply on reload; nothing set for a database or a role disturbs a scheduler.
use strict;
use warnings FATAL => 'all';
use QL;

my $schedulers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'";
my $node       = ql_node('settings', conf => "qinglong_sched.cadence = '1h'\n");
value($node, 'CREATE DATABASE "Other, db"');
create_extension($node, $_) for 'postgres', 'Other, db';
wait_for($node, $schedulers, 2);

sub set {
    my ($name, $value) = @_;
    value($node, "ALTER SYSTEM SET qinglong_sched.$name = $value");
    value($node, 'SELECT pg_reload_conf()');
    return;
}

# A publication wakes the sleeper, and the next instant does; the cadence would take an hour.
value($node, "SELECT qinglong.ql_schedule('each-second', '* * * * * *', 'true')");
wait_for($node, 'SELECT count(*) > 2 FROM qinglong.runs', 't', timeout => 20, name => 'awake for a publication and each second');
cmp_ok(value($node, 'SELECT min(created_at_ms - scheduled_for_ms) FROM qinglong.runs'), '<', 200, 'on time');
value($node, "SELECT qinglong.ql_unschedule('each-second')");

# So does the end of a back-off: nothing else is due before the cadence ends. (The schedule fires each New Year; its
# owner puts the cursor on a past one.)
value($node, "ALTER TABLE qinglong.runs ADD CONSTRAINT refused CHECK (task_id <> 'new-year') NOT VALID");
value($node, "SELECT qinglong.ql_schedule('new-year', '0 0 1 1 *', 'true', 'UTC', 'fire_once')");
wait_for($node, "SELECT next_fire_at_ms IS NOT NULL FROM qinglong.trigger_schedules WHERE trigger_id = 'new-year'", 't');
value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 1704067200000 WHERE trigger_id = 'new-year'");
value($node, "SELECT qinglong.ql_schedule('waker', '0 0 1 1 *', 'true')");    # a publication wakes
wait_for($node, "SELECT fault_code FROM qinglong.trigger_schedules WHERE trigger_id = 'new-year'", qr/23514/, name => 'it backs off');
value($node, 'ALTER TABLE qinglong.runs DROP CONSTRAINT refused');
wait_for($node, "SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'new-year'", 1, timeout => 70, name => 'awake for the end of a back-off');
value($node, "SELECT qinglong.ql_unschedule('new-year'), qinglong.ql_unschedule('waker')");

# How many.
set('workers_per_database', 3);
wait_for($node, $schedulers, 6, name => 'three each');
is(value($node, "SELECT count(DISTINCT objsubid) FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_extension'::regclass
                    AND database = (SELECT oid FROM pg_database WHERE datname = 'postgres')"),
    3, 'each holds its slot');
set('workers_per_database', 1);
wait_for($node, $schedulers, 2, name => 'one each again');

# Where.
set('databases', q('"Other, db"'));
wait_for($node, "$schedulers AND datname = 'postgres'", 0, name => 'none in a database that is not listed');
is(value($node, $schedulers), 1, 'one in the listed one');
set('databases', q('nowhere, postgres'));
wait_for($node, "SELECT string_agg(datname, ',') FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'",
    'postgres', name => 'the list changed');
my ($rc, $out, $err) = $node->psql('postgres', q(ALTER SYSTEM SET qinglong_sched.databases = '"unclosed'));
like($err, qr/invalid value for parameter "qinglong_sched.databases"/, 'a damaged list is refused');
set('databases', "''");
wait_for($node, $schedulers, 2, name => 'an empty list means all');

# Whether at all. The functions work on.
set('enabled', 'off');
wait_for($node, $schedulers, 0, name => 'none when disabled');
value($node, "SELECT qinglong.ql_schedule('yearly', '0 0 1 1 *', 'true'), qinglong.ql_schedule('second', '* * * * * *', 'true')");
value($node, "CALL qinglong.ql_schedule_once('me')");
is(value($node, "SELECT claim_version FROM qinglong.trigger_schedules WHERE trigger_id = 'yearly'"), 1,
    'nobody but the client claims');
set('enabled', 'on');
wait_for($node, $schedulers, 2, name => 'enabled again');
wait_for($node, "SELECT count(*) > 0 FROM qinglong.runs WHERE trigger_id = 'second'", 't', name => 'and at work');
value($node, 'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
wait_for($node, $schedulers, 0, name => 'none while the server is read-only');
value($node, 'ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
wait_for($node, $schedulers, 2, name => 'writable again');
value($node, "SELECT qinglong.ql_unschedule('second')");

# No settings of others.
value($node, join '; ', 'CREATE ROLE nobody', 'ALTER DATABASE postgres SET role = nobody',
    (map { "ALTER ROLE CURRENT_USER SET $_" } "lock_timeout = '1ms'", "search_path = 'nowhere'", 'default_transaction_read_only = on'),
    map { "ALTER DATABASE postgres SET $_" }
    'default_transaction_read_only = on', "default_transaction_isolation = 'serializable'", "search_path = 'nowhere'",
    "statement_timeout = '200ms'", "lock_timeout = '1ms'", 'row_security = off', "session_replication_role = 'replica'");
my $usual = 'SET statement_timeout = 0; SET ROLE NONE; SET default_transaction_read_only = off; SET search_path = public;';
my $pid = value($node, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler' AND datname = 'postgres'", 'template1');
value($node, "SELECT pg_terminate_backend($pid)", 'template1');
wait_for($node, "$schedulers AND datname = 'postgres' AND pid <> $pid", 1, db => 'template1', name => 'a new scheduler');
value($node, "$usual SET session_replication_role = origin; SELECT qinglong.ql_schedule('hostile', '* * * * * *', 'true')");
wait_for($node, "$usual SELECT count(*) > 0 FROM qinglong.runs WHERE trigger_id = 'hostile'", 't',
    name => 'settings of the database and the role do not reach it');

no_errors_in_log($node, undef, except => qr/invalid value for parameter/);
is(scalar log_lines($node, qr/WARNING:  (?!trigger "new-year")/), 0, 'no other warning');
$node->stop;

# A slot for one scheduler only (the server takes one itself, the launcher another).
$node = ql_node('slots', conf => "max_worker_processes = 3\n");
value($node, "CREATE DATABASE $_") for qw(one two);
create_extension($node, 'one');
wait_for($node, "$schedulers AND datname = 'one'", 1, name => 'the only slot is taken');
value($node, "SELECT qinglong.ql_schedule('each-second', '* * * * * *', 'true')", 'one');
create_extension($node, 'two');
my $finding = "SELECT 'worker_slots_exhausted' = ANY (findings) FROM qinglong.ql_readiness()";
wait_for($node, $finding, 't', db => 'two', name => 'readiness says that no slot is free');
my $runs = value($node, 'SELECT count(*) FROM qinglong.runs', 'one');
wait_for($node, "SELECT count(*) > $runs + 3 FROM qinglong.runs", 't', db => 'one', name => 'the other database is scheduled all the same');
is(scalar log_lines($node, qr/WARNING:  no background worker slot is free/), 1, 'said once');
value($node, 'DROP EXTENSION qinglong_sched', 'one');
wait_for($node, "$schedulers AND datname = 'two'", 1, name => 'the freed slot is taken');
wait_for($node, $finding, 'f', db => 'two', name => 'readiness is content again');
no_errors_in_log($node);
$node->stop;

# More databases than max_databases.
$node = ql_node('many', conf => "qinglong_sched.max_databases = 1\n");
value($node, "CREATE DATABASE $_") for qw(one two);
create_extension($node, $_) for qw(one two);
wait_for($node, $schedulers, 1, name => 'no more than max_databases');
like((log_lines($node, qr/WARNING:/))[0], qr/more than 1 databases have the extension/, 'which the log says');
$node->stop;
done_testing();
