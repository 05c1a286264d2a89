# Helpers of the TAP tests (test/t/*.pl), over PostgreSQL::Test::Cluster.
#
#   use QL;
#   my $node = ql_node('main', conf => "qinglong_sched.workers_per_database = 2\n");   # running, library preloaded
#   my $quiet = ql_node('quiet', workers => 0);                                        # qinglong_sched.enabled = off
#   create_extension($node, 'postgres');
#   wait_for($node, "SELECT count(*) FROM qinglong.runs", 5);                          # or fails after $timeout seconds
#   no_errors_in_log($node);
package QL;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use IPC::Run ();
use Time::HiRes ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = (
    qw(ql_node create_extension value wait_for workers start_replica accounted log_position log_lines no_errors_in_log),
    @Test::More::EXPORT, @PostgreSQL::Test::Utils::EXPORT);

# ql_node(NAME, conf => TEXT, workers => 0|1, start => 0|1, init => [...])
# A cluster with the library preloaded; workers => 0 turns the background workers off, start => 0 leaves it stopped.
sub ql_node {
    my ($name, %o) = @_;
    my $node = PostgreSQL::Test::Cluster->new($name);
    # From 16 on a cluster of the tests would have the encoding SQL_ASCII.
    $node->init(extra => [ '-E', 'UTF8', '--locale=C' ], @{ $o{init} // [] });
    $node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'qinglong_sched'
log_line_prefix = '%m [%p] %b %d '
log_min_messages = warning
log_statement = none
max_prepared_transactions = 10
timezone = 'UTC'
CONF
    $node->append_conf('postgresql.conf', 'qinglong_sched.enabled = off') if !($o{workers} // 1);
    $node->append_conf('postgresql.conf', $o{conf}) if defined $o{conf};
    $node->start if $o{start} // 1;
    return $node;
}

# create_extension(NODE, DATABASE = 'postgres')
sub create_extension {
    my ($node, $db) = @_;
    $node->safe_psql($db // 'postgres', 'CREATE EXTENSION qinglong_sched');
    return;
}

# value(NODE, SQL, DATABASE = 'postgres'): what the query prints; dies when it fails.
sub value {
    my ($node, $sql, $db) = @_;
    return $node->safe_psql($db // 'postgres', $sql);
}

# wait_for(NODE, SQL, EXPECTED = 't', timeout => SECONDS, db => NAME): asks every 100 ms until the query prints EXPECTED
# (a Regexp may match instead), as a test with a name made of the query (or name => ...). A failing query counts as
# not yet: the server may be restarting.
sub wait_for {
    my ($node, $sql, $expected, %o) = @_;
    $expected //= 't';
    my $timeout = $o{timeout} // $PostgreSQL::Test::Utils::timeout_default;
    my $end = Time::HiRes::time() + $timeout;
    my ($out, $err) = ('', '');
    my $matches = sub { ref $expected eq 'Regexp' ? $out =~ $expected : $out eq "$expected" };
    my $name = $o{name} // ($sql =~ s/\s+/ /gr);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    while (1) {
        ($out, $err) = ('', '');
        my $rc = $node->psql($o{db} // 'postgres', $sql, stdout => \$out, stderr => \$err, timeout => $timeout, timed_out => \my $late);
        return pass($name) if defined $rc && $rc == 0 && $matches->();
        last if Time::HiRes::time() > $end;
        Time::HiRes::sleep(0.1);
    }
    fail($name);
    diag("after $timeout s, expected: $expected");
    diag("             last answer: $out $err");
    return 0;
}

# workers(NODE, DATABASE): process ids of the extension's workers there (all databases: undef), sorted.
sub workers {
    my ($node, $db) = @_;
    my $where = defined $db ? "AND datname = '$db'" : '';
    return split /\n/,
        value($node, "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched%' $where ORDER BY pid");
}

# start_replica(CONNSTR, OWNER, WAY, LEASE_MS): test/lib/replica.py, connected; $r->{run}->finish waits for its end, then
# ${ $r->{out} } says what it did.
sub start_replica {
    my ($connstr, $owner, @way) = @_;
    my ($out, $err) = ('', '');
    my $replica = { owner => $owner, out => \$out, err => \$err };
    $replica->{run} = IPC::Run::start([ '/usr/bin/python3', 'test/lib/replica.py', $connstr, $owner, @way ],
        '>', \$out, '2>', \$err, IPC::Run::timeout(300));
    $replica->{run}->pump while $replica->{run}->pumpable && $out !~ /ready/;
    return $replica;
}

# accounted(NODE, NAME, first => SQL): waits until every trigger has come to the present (with test/lib/runtime.psql; first is
# run before each look), then every occurrence is accounted for and ql_check() finds nothing.
sub accounted {
    my ($node, $name, %o) = @_;
    my $now = value($node, 'SELECT t.now_ms()');
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    wait_for($node, ($o{first} // '') . "SELECT bool_and(next_fire_at_ms > $now) FROM qinglong.trigger_schedules", qr/^t$/m,
        timeout => 120, name => "$name: it goes on");
    return is(value($node, 'SELECT * FROM t.unaccounted(); SELECT * FROM qinglong.ql_check(); SELECT t.consistent()'), 't',
        "$name: every occurrence is accounted for");
}

# log_position(NODE): how long the server's log is now; log_lines and no_errors_in_log take it as start.
sub log_position {
    my ($node) = @_;
    return -s $node->logfile;
}

# log_lines(NODE, REGEXP, START = 0): the matching lines of the server's log.
sub log_lines {
    my ($node, $regexp, $start) = @_;
    return grep { $_ =~ $regexp } split /\n/, slurp_file($node->logfile, $start // 0);
}

# no_errors_in_log(NODE, NAME, start => POSITION, except => REGEXP): no error, crash or sanitizer report in the log.
sub no_errors_in_log {
    my ($node, $name, %o) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @bad = log_lines($node,
        qr/ERROR:|FATAL:|PANIC:|TRAP:|was terminated by signal|AddressSanitizer|runtime error:/, $o{start});
    # Ends of sessions that a stop or a test brings about.
    @bad = grep { !/due to administrator command|the database system is (starting up|shutting down|not yet accepting)/ } @bad;
    @bad = grep { $_ !~ $o{except} } @bad if defined $o{except};
    return ok(@bad == 0, $name // 'no error in the log of ' . $node->name)
        || diag(join "\n", @bad);
}

1;
