# A backend or the whole server is killed at each step of an admission: nothing of it remains, and the occurrence is admitted once later.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use QL;

my $node = ql_node('kill', workers => 0, conf => "log_min_messages = fatal\nrestart_after_crash = on\n");
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
value($node, <<'SQL');
CREATE FUNCTION public.wait_here() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(600);
    RETURN NEW;
END $$;
SQL

# Stops a session at a step of its work, kills it there, and says what was left.
my %steps = (
    'before the Run'             => [ 'runs', 'BEFORE INSERT ON qinglong.runs FOR EACH ROW' ],
    'between Run and Attempt'    => [ 'run_attempts', 'BEFORE INSERT ON qinglong.run_attempts FOR EACH ROW' ],
    'between Attempt and Events' => [ 'run_events', 'BEFORE INSERT ON qinglong.run_events FOR EACH STATEMENT' ],
    'between the Events'         => [ 'run_events', 'BEFORE INSERT ON qinglong.run_events FOR EACH ROW WHEN (NEW.sequence = 2)' ],
    'before the cursor moves'    => [ 'trigger_schedules', 'BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (NEW.admitted_total > OLD.admitted_total)' ],
    'after the last statement'   => [ 'trigger_schedules', 'AFTER UPDATE ON qinglong.trigger_schedules FOR EACH ROW WHEN (NEW.admitted_total > OLD.admitted_total)' ],
);
my $admit = 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a.status FROM t.claims, qinglong.ql_admit(c) a; COMMIT';
my $cycle = q{CALL qinglong.ql_schedule_once('gone', NULL, 60000)};
my $number = 0;

sub killed_at {
    my ($step, $sql, $how) = @_;
    my ($table, $when) = @{ $steps{$step} };
    my $id = 'k' . ++$number;
    value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000; SELECT t.publish('$id', '* * * * *', 'fire_once', 60000)");
    value($node, "CREATE TRIGGER wait_here $when EXECUTE FUNCTION public.wait_here()");
    value($node, 'INSERT INTO t.claims SELECT $$due$$, c FROM qinglong.ql_claim($$gone$$, 60000) c ON CONFLICT (name) DO UPDATE SET c = EXCLUDED.c') if $sql =~ /ql_admit/;

    my ($out, $err) = ('', '');
    my $before = value($node, 'SELECT * FROM t.counts()');
    my $victim = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres'), map { ('-c', $_) } split /;\s*/, $sql ],
        '>', \$out, '2>', \$err);
    wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", 1, name => "$step, $how: waiting there");
    my $pid = value($node, "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    if ($how eq 'terminated') {
        value($node, "SELECT pg_terminate_backend($pid)");
        wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid", 0, name => "$step, $how: gone");
    } else {
        kill 'KILL', $pid;
    }
    $victim->finish;
    wait_for($node, 'SELECT pg_is_in_recovery()', 'f', name => "$step, $how: the server answers");

    (my $runs = $before) =~ s/\|\d+$//;
    is(value($node, 'SELECT runs, attempts, events FROM t.counts()'), $runs, "$step, $how: nothing of it remains");
    # A cycle's claim does not wait for the disk: a crash may take it along.
    my $claims = value($node, "SELECT claim_version FROM qinglong.trigger_schedules WHERE trigger_id = '$id'");
    my $lost = $claims == 0 && $how eq 'killed' && $sql eq $cycle;
    is(value($node, "SELECT next_fire_at_ms, claim_owner IS NOT NULL, admitted_total FROM qinglong.trigger_schedules WHERE trigger_id = '$id'"),
        $lost ? '60000|f|0' : '60000|t|0', "$step, $how: the cursor stays, " . ($lost ? 'the claim is lost' : 'and so does the claim'));
    value($node, "DROP TRIGGER wait_here ON qinglong.$table");
    value($node, "UPDATE qinglong.trigger_schedules SET updated_at_ms = 0, claim_expires_at_ms = 1 WHERE trigger_id = '$id' AND claim_token IS NOT NULL"); # its lease ends
    like(value($node, "CALL qinglong.ql_schedule_once('heir')"), qr/,1,0,0,1,0,0,f\)/, "$step, $how: the next replica admits it");
    is(value($node, "SELECT count(*), count(DISTINCT scheduled_for_ms) FROM qinglong.runs WHERE trigger_id = '$id'"), '1|1', "$step, $how: once");
    is(value($node, "SELECT claim_version FROM qinglong.trigger_schedules WHERE trigger_id = '$id'"), $claims + 1, "$step, $how: with the next claim version");
    return $lost;
}

killed_at($_, $admit, 'terminated') for sort keys %steps;
killed_at($_, $cycle, 'terminated') for ('between Run and Attempt', 'after the last statement');
killed_at('between the Events', $admit, 'killed');
killed_at('before the cursor moves', $cycle, 'killed');

# A crash before the claim of a cycle has reached the disk: nothing of the cycle remains, and the occurrence is due as before.
# The WAL writer is kept from its work, except for a moment every ten seconds, which a round may meet.
value($node, q{ALTER SYSTEM SET wal_writer_delay = '10s'});
$node->restart;
my $lost = 0;
for (1 .. 5) {
    last if $lost = killed_at('before the Run', $cycle, 'killed');
}
ok($lost, 'a crash has lost a claim, and nothing else');
value($node, 'ALTER SYSTEM RESET wal_writer_delay');

# The session is killed between the two transactions of a cycle's work done by hand: only a claim is left.
value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000; SELECT t.publish('between', '* * * * *', 'fire_once', 60000)");
value($node, q{SELECT count(*) FROM qinglong.ql_claim('gone', 1000)});
$node->stop('immediate');
$node->start;
wait_for($node, "SELECT claim_expires_at_ms <= t.now_ms() FROM qinglong.trigger_schedules WHERE trigger_id = 'between'", 't', name => 'a claim outlives a crash, to the end of its lease');
like(value($node, "CALL qinglong.ql_schedule_once('heir')"), qr/,1,0,0,1,0,0,f\)/, 'then it is taken over');
is(value($node, 'SELECT * FROM qinglong.ql_check()'), '', 'ql_check() finds nothing');
is(value($node, 'SELECT t.consistent()'), 't', 'all counts agree');
$node->stop;
done_testing();
