# Time zone data that changes under stored cursors: three data sets on one cluster, with a restart between them, as an
# upgrade of the system's zone data needs it. The server reads /usr/share/zoneinfo, over which each start mounts its set.
use strict;
use warnings FATAL => 'all';
use QL;
use File::Temp ();

my $mounts = '/usr/share/zoneinfo';
my @unshare = qw(unshare --user --map-current-user --keep-caps --mount);
plan skip_all => 'no private mounts here' if system("@unshare true 2>/dev/null") != 0 || !-d $mounts;

# Data sets of one zone: UTC+1 with no changes, moved to +3, moved to -2.
my $dir = File::Temp::tempdir(CLEANUP => 1);
chmod 0755, $dir;
for my $offset (qw(1:00 3:00 -2:00)) {
    my $set = "$dir/" . $offset =~ s/:.*//r;
    system_or_bail('cp', '-a', $mounts, $set);
    append_to_file("$set.source", "Zone Europe/Vaduz $offset - TST\n");
    unlink "$set/Europe/Vaduz"; # it may be a link to the file of another zone
    system_or_bail('zic', '-d', $set, "$set.source");
}

my $node = ql_node('zones', workers => 0, start => 0);
my $running = 0;
sub start_with {
    my ($set) = @_;
    $node->stop if $running;
    local %ENV = $node->_get_env();
    system_or_bail(@unshare, 'sh', '-c', 'mount --bind "$1" "$2" && exec pg_ctl -D "$3" -l "$4" -w start >/dev/null',
        '-', "$dir/$set", $mounts, $node->data_dir, $node->logfile);
    $node->_update_pid(1);
    $running = 1;
}
sub cycle { value($node, "CALL qinglong.ql_schedule_once('test')") for 1 .. 2 }

start_with(1);
create_extension($node);
is(value($node, "SELECT '2026-07-01 12:00 Europe/Vaduz'::timestamptz = '2026-07-01 11:00Z'"), 't', 'the first data set');
# One trigger at a wall-clock time eight hours ahead, and one that follows real time.
my $fields = value($node, "SELECT to_char((now() AT TIME ZONE 'Europe/Vaduz') + interval '8 hours', 'MI HH24') || ' * * *'");
value($node, "SELECT qinglong.ql_schedule('daily', '$fields', 'true', 'Europe/Vaduz', 'fire_once')");
value($node, "SELECT qinglong.ql_schedule('hourly', '0 * * * *', 'true', 'Europe/Vaduz')");
value($node, "SELECT qinglong.ql_schedule('other', '$fields', 'true', 'UTC')");
cycle();
my $next = sub { value($node, "SELECT extract(epoch FROM next_fire_at)::bigint FROM qinglong.schedules WHERE trigger_id = '$_[0]'") };
my $truth = "SELECT count(*) FROM qinglong.schedules
              WHERE next_fire_at IS DISTINCT FROM qinglong.ql_next_occurrence(expression, timezone)";
my ($first, $other) = ($next->('daily'), $next->('other'));
is(value($node, $truth), 0, 'the cursors are the occurrences of the first data set');
is(value($node, 'SELECT count(*) FROM qinglong.zone_data'), 2, 'the data of each zone is remembered');
my $versions = value($node, 'SELECT max(state_version) FROM qinglong.trigger_schedules');

# Nothing changes where the data did not.
start_with(1);
cycle();
is(value($node, 'SELECT max(state_version) FROM qinglong.trigger_schedules'), $versions, 'the same data after a restart: nothing to do');

# The same wall-clock time is two hours earlier now: before the stored cursor, and not lost.
start_with(3);
is($next->('daily'), $first, 'the stored cursor is that of the old data');
cycle();
is($next->('daily'), $first - 7200, 'an occurrence that the new data adds before the cursor is not lost');
is($next->('other'), $other, 'other zones keep their cursors');
is(value($node, $truth), 0, 'all cursors are occurrences of the new data');
is(value($node, 'SELECT count(*) FROM qinglong.runs'), 0, 'nothing was admitted');
ok(scalar log_lines($node, qr/LOG:  the time zone data of the server changed/), 'it is said in the log');
$versions = value($node, 'SELECT sum(state_version) FROM qinglong.trigger_schedules');
cycle();
is(value($node, 'SELECT sum(state_version) FROM qinglong.trigger_schedules'), $versions, 'once');

# A cursor that has passed, at an instant that the new data does not contain: five hours later in the day.
my $passed = $next->('daily') - 86400;
value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = $passed * 1000::bigint WHERE trigger_id = 'daily'");
start_with(-2);
cycle();
is(value($node, "SELECT string_agg((scheduled_for_ms / 1000 - $passed)::text, ' ') FROM qinglong.runs WHERE trigger_id = 'daily'"),
    5 * 3600, 'admitted is the occurrence that the new data has, not the one that was stored');
is(value($node, $truth), 0, 'and the next one is its as well');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'no violation');

# A claim taken with the old data and admitted with the new.
value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = $passed * 1000::bigint + 5 * 3600000 - 86400000 WHERE trigger_id = 'daily'");
value($node, "CREATE TABLE claims AS SELECT c FROM qinglong.ql_claim('test', 60000) c");
start_with(1);
my $status = value($node, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT (qinglong.ql_admit(c)).status FROM claims; COMMIT');
my $reading = "to_char(to_timestamp(scheduled_for_ms / 1000) AT TIME ZONE 'Europe/Vaduz', 'MI HH24') || ' * * *' = '$fields'";
is("$status " . value($node, "SELECT bool_and($reading) FROM qinglong.runs WHERE created_at_ms = (SELECT max(created_at_ms) FROM qinglong.runs)"),
    'admitted t', 'a claim is decided with the data of the admission');
cycle();
is(value($node, $truth), 0, 'back to the first data set');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'no violation');
no_errors_in_log($node);
$node->stop;
done_testing();
