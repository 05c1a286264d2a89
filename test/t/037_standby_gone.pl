# The synchronous standby is gone while schedulers wait for it at their COMMITs: a fast shutdown ends all the same within
# the stop timeout, and after it nothing is doubled.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use Time::HiRes ();
use QL;

my $stop_timeout = 3;
my $node = ql_node('main', init => [ allows_streaming => 1 ],
    conf => "qinglong_sched.databases = 'admits'\nqinglong_sched.stop_timeout = ${stop_timeout}s\n");
my $helpers = slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql");
for my $db (qw(admits claims postgres)) {
    value($node, "CREATE DATABASE $db") if $db ne 'postgres';
    create_extension($node, $db);
    value($node, $helpers, $db);
}
# An admission stops at its Run while somebody holds the advisory lock.
value($node, <<'SQL', $_) for qw(admits postgres);
CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP
        PERFORM pg_sleep(0.05);
    END LOOP;
    RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION public.gate();
SQL
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
$node->reload;
wait_for($node, 'SELECT sync_state FROM pg_stat_replication', 'sync');

sub due { my ($db) = @_; return value($node, "SET synchronous_commit = local; BEGIN; SELECT t.publish('due', '0 0 29 2 *', 'fire_once', 951782400000); COMMIT", $db) }

# Both kinds of scheduler are within an admission when the standby goes.
my %gate = map { ($_ => $node->background_psql($_)) } qw(admits postgres);
$_->query_safe('SELECT pg_advisory_lock(1)') for values %gate;
due($_) for qw(admits postgres);
my ($out, $err) = ('', '');
my $replica = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres'), map { ('-c', $_) }
        "INSERT INTO t.claims SELECT 'due', c FROM qinglong.ql_claim('replica', 60000) c", 'BEGIN ISOLATION LEVEL SERIALIZABLE',
        'SELECT a.status FROM t.claims, qinglong.ql_admit(c) a', 'COMMIT' ], '>', \$out, '2>', \$err, IPC::Run::timeout(120));
my $waits = "SELECT datname, count(*) FROM pg_stat_activity WHERE wait_event = '%s' GROUP BY 1 ORDER BY 1";
wait_for($node, sprintf($waits, 'PgSleep'), "admits|1\npostgres|1", name => 'a background worker and a replica are within their admissions');
$standby->stop('immediate');
wait_for($node, 'SELECT count(*) FROM pg_stat_replication', 0, name => 'the standby is gone');
$_->quit for values %gate;
wait_for($node, sprintf($waits, 'SyncRep'), "admits|1\npostgres|1", name => 'both wait for it at their COMMITs');
# And another replica at the COMMIT of its claim (a worker does not wait there).
due('claims');
my ($claimed, $claim_err) = ('', '');
my $claimer = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('claims'), '-c', "SELECT trigger_id FROM qinglong.ql_claim('replica', 60000)" ],
    '>', \$claimed, '2>', \$claim_err, IPC::Run::timeout(120));
wait_for($node, sprintf($waits, 'SyncRep'), "admits|1\nclaims|1\npostgres|1", name => 'and a third at that of its claim');
is(value($node, "SELECT count(*) FROM qinglong.runs", $_), 0, "nobody sees a Run yet ($_)") for qw(admits postgres);

my $position = log_position($node);
my $start = Time::HiRes::time();
$node->stop('fast');
my $took = Time::HiRes::time() - $start;
# What the shutdown itself takes is allowed for.
cmp_ok($took, '<', $stop_timeout + 5, sprintf('the server has stopped in %.1f s', $took));
$_->finish for $replica, $claimer;
like($err, qr/WARNING:.*synchronous replication.*connection due to administrator command.*has already committed locally.*server closed the connection/s,
    'the replica was told that nobody knows');
is(scalar(log_lines($node, qr/WARNING:  canceling the wait for synchronous replication/, $position)), 3, 'three waits were cut short');

$node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$node->start;
my $all = '1 1 2, claim 1 clear, cursor ahead';
is(value($node, "SELECT t.state('due')", $_), $all, "the admission had committed on the server itself ($_)") for qw(admits postgres);
is(value($node, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a.status FROM t.claims, qinglong.ql_admit(c) a; COMMIT'), 'raced', 'the replica\'s claim is spent');
is(value($node, "SELECT t.state('due')", 'claims'), '0 0 0, claim 1 held, cursor due', 'so had the claim');
value($node, 'UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1', 'claims'); # its lease ends
value($node, "CALL qinglong.ql_schedule_once('heir')", 'claims');
is(value($node, "SELECT t.state('due')", 'claims'), '1 1 2, claim 2 clear, cursor ahead', 'another replica takes it over');
like(value($node, "CALL qinglong.ql_schedule_once('replica')"), qr/,0,0,0,0,0,0,f\)$/, 'nothing is left to do');
for my $db (qw(admits claims postgres)) {
    is(value($node, 'SELECT t.consistent(), count(*) FROM qinglong.runs', $db), 't|1', "$db: one Run, all counts agree, ql_check() finds nothing");
}
no_errors_in_log($node);
$node->stop;
done_testing();
