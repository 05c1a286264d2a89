# A full disk: the server runs in a namespace of mounts, with two small file systems: one for the tables, one for the WAL. Errors
# of class 53 back off, nothing is lost, and it goes on when there is space.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use Time::HiRes ();
use QL;

my $node = ql_node('full', start => 0, init => [ extra => [ '-E', 'UTF8', '--locale=C', '--wal-segsize=1' ] ], conf => <<'CONF');
qinglong_sched.cadence = 250ms
qinglong_sched.misfire_grace = 1s
restart_after_crash = on
max_wal_size = 1GB
CONF
my $base = $node->basedir;
mkdir "$base/$_" for qw(small wal);
my ($orders, $said) = ('', '');
my $mounts = IPC::Run::start([ qw(unshare --user --map-root-user --mount sh -ec), <<'SH', 'sh', $base, $node->data_dir ], '<', \$orders, '>', \$said, IPC::Run::timeout(600));
mount -t tmpfs -o size=8m,mode=0777 tmpfs "$1/small"
mount -t tmpfs -o size=32m,mode=0777 tmpfs "$1/wal"
mkdir -m 0700 "$1/small/space"
cp -a "$2/pg_wal" "$1/wal/"
rm -r "$2/pg_wal"
ln -s "$1/wal/pg_wal" "$2/pg_wal"
echo $$
exec cat
SH
$mounts->pump until $said =~ /^(\d+)$/m;
my @there = ('nsenter', '--target', $1, qw(--user --mount --preserve-credentials));
# PostgreSQL refuses root, which we are in that namespace, so it is in one more.
sub start_there {
    return system(@there, 'unshare', '--user', "--map-user=$<", '--map-group=' . ($( + 0), 'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start');
}
sub fill { my ($where) = @_; $node->psql('postgres', "COPY (SELECT repeat('x', 8000) FROM generate_series(1, 10000)) TO '$base/$where/filler'", stderr => \my $message); return $message }

start_there();
$node->_update_pid(1);
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
value($node, "CREATE TABLESPACE small LOCATION '$base/small/space'");
value($node, "ALTER $_ ALL IN TABLESPACE pg_default SET TABLESPACE small") for 'TABLE', 'INDEX';
value($node, q{SELECT count(qinglong.ql_schedule('load-' || i, '* * * * * *', 'true', 'UTC', CASE i % 2 WHEN 0 THEN 'skip' ELSE 'fire_once' END)) FROM generate_series(1, 40) i});
accounted($node, 'small disk');
like(fill('small'), qr/No space left on device/, 'the disk of the tables is full');
wait_for($node, "SELECT count(*) > 0 FROM qinglong.trigger_schedules WHERE fault_code = 'error_53100' AND retry_at_ms IS NOT NULL", 't', name => 'triggers back off from class 53');
cmp_ok(scalar(() = log_lines($node, qr/WARNING:  trigger "load-\d+" of project "default" failed and is tried again later|failed with SQLSTATE 53100/)), '>', 0, 'which the log says');
value($node, "COPY (SELECT WHERE false) TO '$base/small/filler'");
accounted($node, 'space for tables again');
is(value($node, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE fault_code IS NOT NULL'), 0, 'no fault is left');

my ($server) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
like(fill('wal'), qr/No space left on device/, 'the disk of the WAL is full');
my $end = time + 60;
$node->psql('postgres', 'SELECT pg_switch_wal()', stderr => \my $ignored) until log_lines($node, qr/PANIC:.*No space left on device/) || time > $end;
ok(scalar(() = log_lines($node, qr/PANIC:.*No space left on device/)), 'the server panics');
system(@there, 'truncate', '-s', '0', "$base/wal/filler");
$end = time + 60;
until (($node->psql('postgres', 'SELECT 1', stderr => \my $down) // 1) == 0 || time > $end) {
    start_there() unless -d "/proc/$server"; # it may have given up recovery for want of space
    Time::HiRes::sleep(0.1);
}
$node->_update_pid(1);
accounted($node, 'space for WAL again');
$node->stop;
$mounts->finish;
done_testing();
