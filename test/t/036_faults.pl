# Faults under load: processes killed between any two statements, crashes of the server, no free slot or
# connection, hostile timeouts, cancellations, old snapshots, an operator's locks. Each is shown to have happened; after
# each, every occurrence is accounted for and ql_check() finds nothing.
# FAULT_ALL: both victims in each gap (else they take turns); FAULT_ROUNDS: crashes of the whole server; FAULT_SECONDS: cancellations for so long; FAULT_HOLD: each table locked for so long.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use Time::HiRes ();
use QL;

my $all     = $ENV{FAULT_ALL};
my $rounds  = $ENV{FAULT_ROUNDS}  // 3;
my $seconds = $ENV{FAULT_SECONDS} // 4;
my $hold    = $ENV{FAULT_HOLD}    // 0.2;

my $node = ql_node('faults', conf => <<'CONF');
qinglong_sched.cadence = 250ms
qinglong_sched.claim_lease = 1s
qinglong_sched.misfire_grace = 1s
restart_after_crash = on
max_connections = 30
max_worker_processes = 8
CONF
# What these tests ask is not subject to the timeouts that they set.
my @timeouts = (qw(statement_timeout lock_timeout idle_in_transaction_session_timeout),
    value($node, q{SELECT name FROM pg_settings WHERE name = 'transaction_timeout'}) || ());
local $ENV{PGOPTIONS} = join ' ', map { "-c $_=0" } @timeouts;

sub runs { return value($node, 'SELECT count(*) FROM qinglong.runs') }
sub more_runs {
    my ($name, $more) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return wait_for($node, 'SELECT count(*) >= ' . (runs() + $more) . ' FROM qinglong.runs', 't', name => "$name: $more more Runs");
}
sub setting {
    my ($name, $value) = @_;
    value($node, defined $value ? "ALTER SYSTEM SET $name = $value" : "ALTER SYSTEM RESET $name");
    value($node, 'SELECT pg_reload_conf()');
    return;
}
my $schedulers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'";
sub count_in_log { my ($re, $start) = @_; return scalar(() = log_lines($node, $re, $start)) }

# A psql to which statements are given; ask() waits for the answer.
sub session {
    my ($name) = @_;
    my $self = { in => '', out => '' };
    local $ENV{PGAPPNAME} = $name;
    $self->{run} = IPC::Run::start([ 'psql', '-X', '-q', '-A', '-t', '-v', 'VERBOSITY=sqlstate', '-d', $node->connstr('postgres') ],
        '<', \$self->{in}, '>', \$self->{out}, '2>&1', IPC::Run::timeout(600));
    return $self;
}
sub give { my ($session, $sql) = @_; $session->{in} .= "$sql\n"; $session->{run}->pump_nb; return }
sub ask {
    my ($session, $sql) = @_;
    $session->{out} = '';
    $session->{in} .= "$sql\n\\echo end\n";
    $session->{run}->pump until $session->{out} =~ /^end$/m || !$session->{run}->pumpable;
    return $session->{out} =~ s/\n?end\n\z//r;
}
sub leave { my ($session) = @_; $session->{in} .= "\\q\n"; eval { $session->{run}->finish }; return }
sub ask_until { # a query that answers something
    my ($session, $sql) = @_;
    my $end = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;
    my $answer = '';
    $answer = ask($session, $sql) until $answer ne '' || Time::HiRes::time() > $end;
    return $answer;
}

# --- kill -9 between any two statements of a cycle -----------------------------------------------------------------------
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql") . <<'SQL');
CREATE TABLE public.stop (x int);
-- Whoever comes to a gate holds lock 100 + n, and passes once it has lock n, too. A crash opens all gates.
CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(100 + TG_ARGV[0]::int);
    WHILE NOT pg_try_advisory_xact_lock_shared(TG_ARGV[0]::int) LOOP
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON qinglong.zone_data FOR EACH STATEMENT EXECUTE FUNCTION public.gate(1);
CREATE CONSTRAINT TRIGGER gate_claim AFTER UPDATE ON qinglong.trigger_schedules DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.claim_token <> OLD.claim_token OR OLD.claim_token IS NULL AND NEW.claim_token IS NOT NULL) EXECUTE FUNCTION public.gate(2);
CREATE TRIGGER gate BEFORE INSERT ON qinglong.runs FOR EACH STATEMENT EXECUTE FUNCTION public.gate(3);
CREATE TRIGGER gate BEFORE INSERT ON qinglong.run_attempts FOR EACH STATEMENT EXECUTE FUNCTION public.gate(4);
CREATE TRIGGER gate BEFORE INSERT ON qinglong.run_events FOR EACH STATEMENT EXECUTE FUNCTION public.gate(5);
CREATE TRIGGER gate_second BEFORE INSERT ON qinglong.run_events FOR EACH ROW WHEN (NEW.sequence = 2) EXECUTE FUNCTION public.gate(6);
CREATE TRIGGER gate BEFORE UPDATE ON qinglong.trigger_schedules FOR EACH ROW
    WHEN (NEW.admitted_total > OLD.admitted_total) EXECUTE FUNCTION public.gate(7);
CREATE CONSTRAINT TRIGGER gate_admit AFTER UPDATE ON qinglong.trigger_schedules DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.admitted_total > OLD.admitted_total) EXECUTE FUNCTION public.gate(8);
SQL
# A statement that writes waits at a gate; a deferred one is behind the last statement. One that reads waits for a table lock,
# which is taken beforehand, or is next in line when the transaction at the gate commits: 'inspect' reads the row, the next one
# locks it, and the third is the first to read execution plans.
my @gaps = (
    [ 'before the claim',                   undef, 'trigger_schedules', 'EXCLUSIVE' ],
    [ 'between claim and zone',             1 ],
    [ 'before COMMIT of the claim',         2 ],
    [ 'between COMMIT and inspection',      2, 'trigger_schedules', 'ACCESS EXCLUSIVE' ],
    [ 'between inspection and row lock',    2, 'trigger_schedules', 'EXCLUSIVE' ],
    [ 'between row lock and comparison',    undef, 'task_execution_revisions', 'ACCESS EXCLUSIVE' ],
    [ 'between comparison and Run',         3 ],
    [ 'between Run and Attempt',            4 ],
    [ 'between Attempt and Events',         5 ],
    [ 'between the Events',                 6 ],
    [ 'between Events and cursor',          7 ],
    [ 'before COMMIT of the admission',     8 ],
    [ 'between COMMIT and the next claim',  8, 'trigger_schedules', 'EXCLUSIVE' ],
);
my $kills = 0;

sub kill_in {
    my ($gap, $victim) = @_;
    my ($name, $gate, $table, $mode) = @$gap;
    $name = "$victim killed $name";
    my $who = "FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE "
        . ($victim eq 'scheduler' ? "a.backend_type = 'qinglong_sched scheduler'" : "a.application_name = 'victim'");
    my ($control, $locker) = (session('control'), session('locker'));
    my $backend;
    my $start = sub {
        return if $victim eq 'scheduler';
        $backend = session('victim');
        give($backend, "SELECT pg_sleep((GREATEST(next_fire_at_ms, claim_expires_at_ms) - t.now_ms()) / 1000.0 + 0.005) FROM qinglong.trigger_schedules;\n"
            . "CALL qinglong.ql_schedule_once('victim', NULL, 10000);");
    };
    my $runs = runs();
    ask($control, 'DELETE FROM qinglong.zone_data;') if $name =~ /zone/;
    ask($control, "SELECT pg_advisory_lock($gate);") if defined $gate;
    # A zone is noted by a process that has not seen it yet.
    ask($control, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler';") if $name =~ /zone/;
    my $pid;
    if (defined $gate) {
        $start->();
        $pid = ask_until($control, "SELECT l.pid $who AND l.locktype = 'advisory' AND l.objid = 100 + $gate
            AND NOT EXISTS (SELECT FROM pg_locks o WHERE o.pid = l.pid AND o.locktype = 'advisory' AND o.objid = $gate);");
    }
    if (defined $table) {
        my $lock = "BEGIN; LOCK TABLE qinglong.$table IN $mode MODE;";
        if (defined $gate) {
            give($locker, $lock);
            ask_until($control, "SELECT a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'locker' AND l.relation = 'qinglong.$table'::regclass AND NOT l.granted;");
            ask($control, "SELECT pg_advisory_unlock($gate);");
        } else {
            ask($locker, $lock);
            $start->();
        }
        my $found = ask_until($control, "SELECT l.pid $who AND l.relation = 'qinglong.$table'::regclass AND NOT l.granted;");
        is($found, $pid, "$name: the same process") if defined $pid;
        $pid = $found;
    }
    like($pid, qr/^\d+$/, "$name: it is there") or return;
    kill 'KILL', $pid;
    ++$kills;
    leave($_) for grep { defined } $control, $locker, $backend;
    wait_for($node, 'SELECT pg_is_in_recovery()', 'f', name => "$name: the server answers");
    if ($victim eq 'backend') {
        my $done = $name =~ /next claim/ ? 1 : 0;
        is(value($node, 'SELECT runs, attempts, events FROM t.counts()'), join('|', map { $_ * ($runs + $done) } 1, 1, 2), "$name: " . ($done ? 'its Run is there' : 'nothing of it is there'));
    }
    accounted($node, $name, $victim eq 'backend' ? (first => "CALL qinglong.ql_schedule_once('heir');") : ());
    return;
}

value($node, "SELECT qinglong.ql_schedule('tick', '* * * * * *', 'true', 'UTC', 'fire_once')");
accounted($node, 'at first');
kill_in($gaps[$_], 'scheduler') for grep { $all || $_ % 2 == 0 } 0 .. $#gaps;
setting('qinglong_sched.enabled', 'off');
wait_for($node, $schedulers, 0, name => 'no scheduler');
kill_in($gaps[$_], 'backend') for grep { $all || $_ % 2 == 1 } 0 .. $#gaps;
is(count_in_log(qr/\(PID \d+\) was terminated by signal 9/), $kills, "$kills processes were killed, the server says");

# --- hostile timeouts: a call that is ended leaves nothing ------------------------------------------------------------------
value($node, "SELECT t.publish('hostile', '0 0 29 2 *', 'fire_once', 951782400000); SELECT t.claim('hostile', 'hostile')");
my $admit = 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a.status FROM t.claims, qinglong.ql_admit(c) a; COMMIT;';
sub ended {
    my ($name, $state, $set, $sql, $shut) = @_;
    my ($control, $victim) = (session('control'), session('victim'));
    my $before = value($node, 'SELECT t.fingerprint()');
    ask($control, $shut);
    like(ask($victim, "SET $set; $sql"), qr/\b$state\b/, "$name: $state");
    leave($_) for $victim, $control;
    is(value($node, 'SELECT t.fingerprint()'), $before, "$name: nothing was written");
    return;
}
for my $gap (@gaps) {
    my ($name, $gate) = @$gap;
    ended("an admission ended $name", '57014', "statement_timeout = '50ms'", $admit, "SELECT pg_advisory_lock($gate);") if ($gate // 0) > 2 && @$gap == 2;
}
for my $call ([ 'a claim', "SELECT count(*) FROM qinglong.ql_claim('victim', 1000, 16);" ], [ 'an admission', $admit ], [ 'a cycle', "CALL qinglong.ql_schedule_once('victim');" ],
    [ 'a publication', "SELECT qinglong.ql_schedule('other', '0 0 1 1 *', 'true');" ]) {
    ended("$call->[0] that waits for a lock", '55P03', "lock_timeout = '1ms'", $call->[1], 'BEGIN; LOCK TABLE qinglong.trigger_schedules;');
}
for my $set ([ '25P03', 'idle_in_transaction_session_timeout' ], map { [ '25P04', $_ ] } grep { /^transaction/ } @timeouts) {
    my $name   = "a transaction between claim and COMMIT, $set->[1]";
    my $before = value($node, 'SELECT t.fingerprint()');
    my $idle   = session('idler');
    give($idle, "SET $set->[1] = '200ms'; BEGIN; SELECT count(*) > 0 FROM qinglong.ql_claim('idler', 60000, 16);");
    $idle->{run}->pump until $idle->{out} =~ /^t$/m || !$idle->{run}->pumpable;
    wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idler'", 0, name => "$name: ended");
    my $said = $idle->{out}; # on a slow machine the statement itself
    like($said . ask($idle, 'SELECT 1;'), qr/FATAL: +$set->[0]/, "$name: $set->[0]");
    leave($idle);
    is(value($node, 'SELECT t.fingerprint()'), $before, "$name: no claim is left");
}
is(value($node, $admit), 'admitted', 'the claim that was held all the time is admitted then');
setting('qinglong_sched.enabled', undef);
setting('qinglong_sched.workers_per_database', 2);
wait_for($node, $schedulers, 2);

# --- the load: 24 triggers, two schedulers in the server, two replicas over SQL ------------------------------------------------
value($node, q{SELECT count(qinglong.ql_schedule('load-' || i, CASE i % 3 WHEN 0 THEN '*/2 * * * * *' ELSE '* * * * * *' END, 'true', 'UTC',
                   CASE i % 2 WHEN 0 THEN 'skip' ELSE 'fire_once' END)) FROM generate_series(1, 24) i});
my $conninfo = $node->connstr('postgres') . ' user=postgres';
my @replicas;
{
    local $ENV{PGOPTIONS} = '';
    @replicas = map { start_replica("$conninfo application_name=replica-$_->[0]", "replica-$_->[0]", $_->[1], 2000, 'patient') } [ 1, 'functions' ], [ 2, 'procedure' ];
}
accounted($node, 'under load');

# --- kill -9 of the postmaster -----------------------------------------------------------------------------------------------
for my $round (1 .. $rounds) {
    more_runs("crash $round", 30 + int rand 30);
    my $crashed  = count_in_log(qr/database system was not properly shut down/);
    my ($server) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    $node->kill9;
    my $end = time + 60;
    Time::HiRes::sleep(0.02) while -d "/proc/$server" && time < $end;
    until ($node->start(fail_ok => 1) || time > $end) { }    # its children may be alive still
    is(count_in_log(qr/database system was not properly shut down/), $crashed + 1, "crash $round: the server recovers");
    accounted($node, "crash $round");
}

# --- no free slot for a worker -----------------------------------------------------------------------------------------------
my $finding = "SELECT 'worker_slots_exhausted' = ANY (findings) FROM qinglong.ql_readiness()";
my $position = log_position($node);
for my $time (1, 2) {
    setting('qinglong_sched.workers_per_database', 16);
    wait_for($node, $finding, 't', name => "no slot is free for sixteen workers, $time");
    is(count_in_log(qr/WARNING:  no background worker slot is free/, $position), $time, 'which is said once');
    more_runs('with the workers that there are', 20);
    setting('qinglong_sched.workers_per_database', 2);
    wait_for($node, $finding, 'f', name => "two find their slots, $time");
    wait_for($node, $schedulers, 2);
}
accounted($node, 'worker slots');

# --- no free connection ------------------------------------------------------------------------------------------------------
my ($out, $err) = ('', '');
IPC::Run::run([ '/usr/bin/python3', '-c', <<'PY', $conninfo ], '>', \$out, '2>', \$err, IPC::Run::timeout(120)) or diag($err);
import sys, time, psycopg
sessions = []
def fill():
    while True:
        try:
            sessions.append(psycopg.connect(sys.argv[1], autocommit=True))
        except psycopg.OperationalError as error:
            return str(error).strip()
refused = fill()
def ask(query):
    return sessions[0].execute(query).fetchone()[0]
while ask("""SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'replica-%'"""):
    refused = fill()
before, end = ask('SELECT count(*) FROM qinglong.runs'), time.time() + 60
while ask('SELECT count(*) FROM qinglong.runs') < before + 50 and time.time() < end:
    time.sleep(0.1)
print(refused)
print(ask("SELECT count(*) FILTER (WHERE backend_type = 'client backend') FROM pg_stat_activity"), 'clients,', ask('SELECT count(*) FROM qinglong.runs') - before, 'Runs')
PY
like($out, qr/FATAL:  sorry, too many clients already/, 'clients are refused');
like($out, qr/^30 clients, [5-9]\d Runs$/m, 'the workers in the server go on');
accounted($node, 'max_connections');

# --- hostile timeouts, wherever they can be set: workers do not feel them ------------------------------------------------------
# From 17 on a client cannot even connect then: what is asked goes over a session that is there already.
my $control = session('control');
$position = log_position($node);
my $pids = value($node, "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched %'");
my $hostile = sub {
    my ($set) = @_;
    ask($control, join '', map { my $of = $_; map { "ALTER $of " . sprintf($set, $_) . ";\n" } @timeouts } 'DATABASE postgres', 'ROLE CURRENT_USER', 'SYSTEM');
    return ask($control, 'SELECT pg_reload_conf();');
};
$hostile->(q(SET %s = '1ms'));
ask($control, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched %' OR application_name LIKE 'replica-%';");
is(ask_until($control, "SELECT 'new' FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched %' AND pid NOT IN ($pids) HAVING count(*) = 3;"), 'new', 'timeouts of 1 ms: a new launcher and new schedulers');
my $now = ask($control, 'SELECT count(*) FROM qinglong.runs;');
is(ask_until($control, "SELECT 'more' FROM qinglong.runs HAVING count(*) >= $now + 60;"), 'more', 'timeouts of 1 ms: 60 more Runs');
is(count_in_log(qr/qinglong_sched (launcher|scheduler|probe) .*(timeout|57014|25P0[34])/, $position), 0, 'no worker feels them');
cmp_ok(count_in_log(qr/client backend .* due to (statement|transaction) timeout/, $position), '>', 0, 'clients do');
$hostile->('RESET %s');
ask($control, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'replica-%';");
leave($control);
accounted($node, 'timeouts of 1 ms');

# --- cancelled and terminated at random ----------------------------------------------------------------------------------------
$position = log_position($node);
my $sent = value($node, <<"SQL");
CREATE TEMP TABLE sent (ended boolean, backend_type text);
DO \$\$
BEGIN
    WHILE clock_timestamp() < now() + interval '$seconds s' LOOP
        PERFORM pg_stat_clear_snapshot();
        INSERT INTO sent
        SELECT v.ended, v.backend_type
          FROM (SELECT pid, backend_type, random() < 0.05 AS ended FROM pg_stat_activity
                 WHERE backend_type = 'qinglong_sched scheduler' OR application_name LIKE 'replica-%' ORDER BY random() LIMIT 1) v
         WHERE CASE WHEN v.ended THEN pg_terminate_backend(v.pid) ELSE pg_cancel_backend(v.pid) END;
        PERFORM pg_sleep(random() * 0.02);
    END LOOP;
END \$\$;
SELECT count(*) FILTER (WHERE NOT ended), count(*) FILTER (WHERE ended) FROM sent;
SQL
note("cancelled|terminated: $sent");
cmp_ok(count_in_log(qr/ERROR:  canceling statement due to user request/, $position), '>', 5, 'replicas were cancelled');
cmp_ok(count_in_log(qr/WARNING:  scheduling cycle .* failed with SQLSTATE 57014/, $position), '>', 0, 'cycles of the workers were cancelled');
cmp_ok(count_in_log(qr/FATAL:  terminating (connection|background worker .*) due to administrator command/, $position), '>', 0, 'sessions were terminated');
accounted($node, 'cancelled and terminated');

# --- old snapshots -------------------------------------------------------------------------------------------------------------
my $old = session('old');
my $seen = ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM qinglong.runs;');
value($node, q{BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM qinglong.trigger_schedules; SELECT count(*) FROM qinglong.runs;
               INSERT INTO public.stop SELECT 1 WHERE false; CREATE TABLE public.prepared (); PREPARE TRANSACTION 'old'});
more_runs('old snapshots', 50);
is(value($node, q{SELECT (SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'old' AND backend_xmin IS NOT NULL)}),
    '1|1', 'a prepared transaction and a snapshot are held');
is(ask($old, 'SELECT count(*) FROM qinglong.runs; COMMIT;'), $seen, 'the snapshot sees what there was');
leave($old);
value($node, "ROLLBACK PREPARED 'old'");
accounted($node, 'old snapshots');

# --- an operator's locks -------------------------------------------------------------------------------------------------------
my @tables = split /\n/, value($node, "SELECT relname FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND relkind = 'r' ORDER BY 1");
$position = log_position($node);
my $waited = 0;
for my $table (@tables) {
    my $time = $table =~ /^(runs|trigger_schedules)$/ ? 2 : $hold;
    $waited += value($node, "BEGIN; LOCK TABLE qinglong.$table; SELECT pg_sleep($time);
        SELECT count(*) FROM pg_locks WHERE relation = 'qinglong.$table'::regclass AND NOT granted; COMMIT") =~ /(\d+)/ ? $1 : 0;
}
cmp_ok($waited, '>', 4, @tables . " tables were locked, and $waited sessions waited");
cmp_ok(count_in_log(qr/55P03|due to lock timeout/, $position), '>', 0, 'some of them too long');
accounted($node, 'LOCK TABLE');
for my $command ('VACUUM FULL', 'REINDEX TABLE CONCURRENTLY') {
    my $files = "SELECT string_agg(relfilenode::text, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'qinglong'::regnamespace AND relkind = 'i' AND relname LIKE '%_pkey'";
    my $before = value($node, $files);
    value($node, "$command qinglong.$_") for @tables;
    isnt(value($node, $files), $before, "$command: all is in new files");
    accounted($node, $command);
}

value($node, 'INSERT INTO public.stop VALUES (1)');
for my $replica (@replicas) {
    $replica->{run}->finish;
    my ($met) = ${ $replica->{out} } =~ /^met: (.*)$/m;
    like($met // ${ $replica->{err} }, qr/57014 \d/, "$replica->{owner} has met " . ($met // ''));
    like(${ $replica->{out} }, qr/admitted [1-9]\d* after/, "$replica->{owner} has admitted");
    is(join(', ', grep { !/^(40001|55P03|57014|57P0[1-3]|25P0[34]|connection lost|too many clients|unreachable) / } split /, /, $met // ''), '', "$replica->{owner} has met nothing else");
}
is(value($node, 'SELECT count(*) FROM qinglong.schedules WHERE state = $$quarantined$$'), 0, 'nothing is quarantined');
no_errors_in_log($node, undef, except => qr/was terminated by signal 9|because of crash of another server process|in recovery mode|canceling statement due to|terminating (connection|background worker)|too many clients|could not serialize access|is locked by another transaction|lock file "postmaster.pid" already exists|pre-existing shared memory/);
$node->stop;
done_testing();
