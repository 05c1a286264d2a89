# A server clock that jumps by a second, an hour or a day, forward and back: at rest, between claim and admission, and
# across a restart. No duplicate, and nothing that waits for long after the clock is right again.
use strict;
use warnings FATAL => 'all';
use QL;
use QLClock;
use Time::HiRes ();

my $node;
sub psql_value { value($node, @_) }
sub cycle { psql_value("CALL qinglong.ql_schedule_once('test', NULL, NULL, 256)") for 1 .. ($_[0] // 1) }
my $duplicates = 'SELECT count(*) FROM (SELECT FROM qinglong.runs GROUP BY project_id, trigger_id, scheduled_for_ms HAVING count(*) > 1) d';
my $miscounted = 'SELECT count(*) FROM qinglong.trigger_schedules s WHERE admitted_total <>
                   (SELECT count(*) FROM qinglong.runs r WHERE r.project_id = s.project_id AND r.trigger_id = s.trigger_id)';
my $states     = "SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM qinglong.schedules";
my $in_time    = "SELECT count(*) > 0 FROM qinglong.runs WHERE scheduled_for_ms > 1000 * (extract(epoch FROM clock_timestamp()) - 5)
                   AND created_at_ms < 1000 * (extract(epoch FROM clock_timestamp()) + 5)";
# A run of the present, within seconds: cycles go on as a replica's would.
sub runs_again {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for (1 .. 100) {
        cycle();
        return pass($name) if psql_value($in_time) eq 't';
        Time::HiRes::sleep(0.1);
    }
    fail($name);
    diag(psql_value('SELECT * FROM qinglong.trigger_schedules'));
}
sub nothing_wrong {
    my ($name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(psql_value($duplicates), 0, "$name: no duplicate");
    is(psql_value($miscounted), 0, "$name: nothing is admitted twice");
    is(psql_value("SELECT coalesce(string_agg(code || ': ' || detail, ' '), 'none') FROM qinglong.ql_check()"), 'none', "$name: no violation");
}
# The trigger of every second goes on: another occurrence is admitted, after the time of the jump and one lease at most.
# Some seconds are the test's own.
my $lease    = 2;
my $admitted = "SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'second'";
sub goes_on {
    my ($name, $jump) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mark  = psql_value($admitted);
    my $start = Time::HiRes::time();
    my $most  = $jump + $lease + 5;
    while (Time::HiRes::time() - $start <= $most) {
        cycle();
        return pass("$name: goes on, after a lease at most") if psql_value($admitted) > $mark;
        Time::HiRes::sleep(0.1);
    }
    fail("$name: goes on, after a lease at most");
    diag(psql_value('SELECT * FROM qinglong.trigger_schedules'));
}
# A jump of a second is over after a second, and the machine may be slow: tries until it came in time.
sub seen {
    my ($name, $try) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for (1 .. 20) {
        return pass($name) if $try->();
    }
    fail($name);
}

offset(0);
$node = ql_node('clock', workers => 0, start => 0);
fake(sub { $node->start });
create_extension($node);
psql_value("SELECT qinglong.ql_schedule('second', '* * * * * *', 'true', 'UTC', 'fire_once')");
psql_value("SELECT qinglong.ql_schedule('skips', '* * * * * *', 'true', 'UTC', 'skip')");
psql_value("SELECT qinglong.ql_schedule('yearly', '0 0 1 1 *', 'true', 'UTC', 'fire_once')");
cycle();
my $new_year = psql_value("SELECT next_fire_at FROM qinglong.schedules WHERE trigger_id = 'yearly'");

# --- at rest ------------------------------------------------------------------------------------------------------
for my $jump (1, 3600, 86400) {
    offset($jump);
    cycle(3); # the overdue ones, and what is due ahead of time
    offset(0);
    if ($jump > 1) {
        like(psql_value($states), qr/clock_ahead/, "$jump s forward and back: the view shows floors ahead of the clock");
        cycle();
        unlike(psql_value($states), qr/clock_ahead/, "$jump s forward and back: the next cycle brings them back");
    }
    runs_again("$jump s forward and back: runs again at once");
    is(psql_value("SELECT next_fire_at FROM qinglong.schedules WHERE trigger_id = 'yearly'"), $new_year, "$jump s forward and back: far cursors are what they were");
    nothing_wrong("$jump s forward and back");
    offset(-$jump);
    cycle();
    runs_again("$jump s back: runs on");
    offset(0);
    runs_again("$jump s back and forward: runs on");
    nothing_wrong("$jump s back and forward");
}

# --- between claim and admission ----------------------------------------------------------------------------------
psql_value('CREATE TABLE claims (c qinglong.schedule_claim)');
my $claim = "TRUNCATE claims; INSERT INTO claims SELECT c FROM qinglong.ql_claim('test', 30000, 16) c";
my $admit = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT DISTINCT a.status || coalesce(' ' || a.sqlstate, '')
              FROM qinglong.ql_admit_batch(ARRAY(SELECT c FROM claims)) a; COMMIT";
sub claim_something {
    my ($lease_s) = @_;
    for (1 .. 100) {
        psql_value($claim =~ s{30000}{1000 * ($lease_s // 30)}er);
        return if psql_value('SELECT count(*) FROM claims') > 0;
        Time::HiRes::sleep(0.1);
    }
    fail('something is due');
}
for my $case ([ '+3600', 'raced' ], [ '+86400', 'raced' ], [ '-10', 'failed QL003' ], [ '-3600', 'failed QL003' ], [ '-86400', 'failed QL003' ]) {
    my ($jump, $expected) = @$case;
    claim_something();
    my $runs = psql_value('SELECT count(*) FROM qinglong.runs');
    offset($jump);
    is(psql_value($admit), $expected, "$jump s between claim and admission: $expected");
    is(psql_value('SELECT count(*) FROM qinglong.runs'), $runs, "$jump s between claim and admission: nothing is written");
    if ($jump < -60) {
        like(psql_value($states), qr/clock_ahead/, "$jump s: the claim's floor is shown to lie ahead");
        runs_again("$jump s: the claimed trigger runs on");
    }
    offset(0);
    # The claim itself may live for its lease; it is admitted as it stands.
    like(psql_value($admit), qr/^(admitted|raced|already_admitted)$/m, "$jump s and back: the claim is good, or overtaken");
    runs_again("$jump s and back: runs on");
    nothing_wrong("$jump s between claim and admission");
}

# A second ahead the lease still holds, or is over; a second back the claim lies ahead of the clock.
for my $case ([ 30, 'admitted' ], [ 1, 'raced' ]) {
    my ($seconds, $expected) = @$case;
    claim_something($seconds);
    offset(1);
    is(psql_value($admit), $expected, "+1 s between claim and admission, with a lease of $seconds s: $expected");
    offset(0);
    like(psql_value($admit), $seconds == 1 ? qr/^(admitted|raced)$/ : qr/^raced$/, "+1 s and back: the claim is over, or good again");
    goes_on("+1 s and back, with a lease of $seconds s", 1);
    nothing_wrong("+1 s between claim and admission, with a lease of $seconds s");
}
seen('+1 s and back: the view shows floors ahead of the clock', sub {
    claim_something();
    offset(1);
    psql_value($admit);
    offset(0);
    my $shown = psql_value($states);
    goes_on('+1 s and back', 1);
    return $shown =~ /clock_ahead/;
});
seen("-1 s between claim and admission: QL003, nothing is written, and the view shows the claim's floor ahead", sub {
    claim_something($lease);
    my $runs = psql_value("SELECT count(*) FROM qinglong.runs");
    offset(-1);
    my ($result, $shown, $after) = split /\n/, psql_value("$admit; $states; SELECT count(*) FROM qinglong.runs");
    goes_on('-1 s, and the claim is left alone', 1);
    offset(0);
    goes_on('-1 s and back', 0);
    return $result eq 'failed QL003' && $shown =~ /clock_ahead/ && $after == $runs;
});
claim_something();
offset(-1);
psql_value($admit);
offset(0);
like(psql_value($admit), qr/^(admitted|raced)$/, '-1 s and back: the claim is good, or was admitted when the second was over');
nothing_wrong('-1 s between claim and admission');

# --- across a restart ---------------------------------------------------------------------------------------------
my $down; # how long a restart takes, in whole seconds
for my $jump ('+3600', '+86400', '-3600', '-86400') {
    $node->stop;
    offset($jump);
    fake(sub { $node->start });
    like(psql_value($states), qr/clock_ahead/, "$jump s across a restart: the view shows floors ahead of the clock") if $jump < 0;
    runs_again("$jump s across a restart");
    my $stop = Time::HiRes::time();
    $node->stop;
    offset(0);
    fake(sub { $node->start });
    $down = int(Time::HiRes::time() - $stop) + 1;
    like(psql_value($states), qr/clock_ahead/, "$jump s across a restart, and back: the view shows them") if $jump > 0;
    runs_again("$jump s across a restart, and back across another");
    nothing_wrong("$jump s across restarts");
}
# A second, with a claim that is held: ahead, and back beyond the time that the restart takes.
claim_something($lease);
$node->stop;
offset(1);
fake(sub { $node->start });
goes_on('+1 s across a restart', 1);
nothing_wrong('+1 s across a restart');
offset(0);
seen('-1 s across a restart: the view shows floors ahead of the clock', sub {
    claim_something($lease);
    $node->stop;
    offset(-1 - $down);
    fake(sub { $node->start });
    my $shown = psql_value($states);
    goes_on('-1 s across a restart', 1 + $down);
    offset(0);
    return $shown =~ /clock_ahead/;
});
goes_on('-1 s across a restart, and back', 0);
nothing_wrong('-1 s across a restart');
# What was published ahead of time, and published again since, does not wait for that time.
offset(86400);
psql_value("SELECT qinglong.ql_schedule('ahead', '* * * * * *', 'true', 'UTC', 'fire_once')");
offset(0);
psql_value("SELECT qinglong.ql_schedule('ahead', '*/1 * * * * *', 'false', 'UTC', 'fire_once')");
wait_for($node, "CALL qinglong.ql_schedule_once('test', NULL, NULL, 256); SELECT admitted_total > 0 FROM qinglong.schedules WHERE trigger_id = 'ahead'",
    qr/t\z/, timeout => 20, name => 'a trigger that was published ahead of time runs');
nothing_wrong('publication');

# --- background workers -------------------------------------------------------------------------------------------
$node->append_conf('postgresql.conf', "qinglong_sched.enabled = on\nqinglong_sched.cadence = 250ms\n");
$node->stop;
fake(sub { $node->start });
wait_for($node, $in_time, 't', timeout => 30, name => 'a worker runs triggers');
for my $jump ('+1', '-1', '+3600', '-3600', '+86400', '-86400') {
    offset($jump);
    wait_for($node, $in_time, 't', timeout => 30, name => "a worker runs on after $jump s");
    offset(0);
    wait_for($node, $in_time, 't', timeout => 30, name => "a worker runs on after $jump s and back");
    nothing_wrong("a worker, $jump s");
}
no_errors_in_log($node, undef, except => qr/QL003|server's clock moved backwards/);
$node->stop;
done_testing();
