# Cases with a name of their own: one slot and many schedulers, reconnections, a scheduler that was away, terminated workers,
# a publish/unschedule loop against admissions.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use QL;
use Time::HiRes ();

my $node = ql_node('cases', workers => 0, conf => <<'CONF');
qinglong_sched.workers_per_database = 2
qinglong_sched.cadence = 250ms
max_connections = 60
max_worker_processes = 16
CONF
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
value($node, 'CREATE TABLE public.stop (x int)');

my $conninfo = $node->connstr('postgres') . ' user=postgres';
sub start_replicas {
    my (@ways) = @_;
    return map { start_replica($conninfo, "replica-$_", $ways[$_]) } 0 .. $#ways;
}
sub stop_replicas { # and answers how many Runs they say they admitted
    my ($name, @replicas) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    value($node, 'INSERT INTO public.stop VALUES (1)');
    $_->{run}->finish for @replicas;
    value($node, 'TRUNCATE public.stop');
    is(join('', map { ${ $_->{err} } } @replicas), '', "$name: no replica met an error");
    my $admitted = 0;
    $admitted += ${ $_->{out} } =~ /admitted (\d+)/ ? $1 : 0 for @replicas;
    return $admitted;
}
my $settled = 'SELECT count(*) = 0 FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL OR next_fire_at_ms IS NULL OR next_fire_at_ms <= t.now_ms()';
sub runs_of { my ($like) = @_; return value($node, "SELECT count(*), count(DISTINCT (trigger_id, scheduled_for_ms)) FROM qinglong.runs WHERE trigger_id LIKE '$like'") }

# --- two, then sixteen schedulers on one daily slot; N triggers with the same expression -------------------------------------
my $today = value($node, q{SELECT extract(epoch FROM date_trunc('day', now() AT TIME ZONE 'UTC'))::bigint * 1000});
for my $number (2, 16) {
    my @replicas = start_replicas(map { $_ % 2 ? 'functions' : 'procedure' } 1 .. $number);
    value($node, "BEGIN; SELECT t.publish('daily-$number', '0 0 * * *', 'fire_once', $today); COMMIT");
    wait_for($node, $settled, 't', name => "$number schedulers on one daily slot");
    is(stop_replicas("$number schedulers", @replicas), 1, "$number schedulers on one daily slot: one of them admitted it");
    is(runs_of("daily-$number"), '1|1', "$number schedulers on one daily slot: one Run");
}
my @replicas = start_replicas(map { $_ % 2 ? 'functions' : 'procedure' } 1 .. 4);
value($node, "BEGIN; SELECT count(t.publish('same-' || i, '0 0 * * *', 'fire_once', $today)) FROM generate_series(1, 50) i; COMMIT");
wait_for($node, $settled, 't', name => 'fifty triggers with the same expression');
is(stop_replicas('fifty triggers', @replicas), 50, 'N triggers with the same expression: N admissions');
is(runs_of('same-%'), '50|50', 'N triggers with the same expression: N Runs');

# --- a replica reconnects twenty times during a cycle (each value() is a connection of its own) ------------------------------
value($node, "SELECT t.publish('reconnects-' || i, '0 0 * * *', 'fire_once', $today) FROM generate_series(1, 3) i");
value($node, q{INSERT INTO t.claims SELECT c.trigger_id, c FROM qinglong.ql_claim('replica', 60000, 16) c});
my %pids;
my @answers = map {
    my ($pid, $answer) = split /\|/, value($node, q{BEGIN ISOLATION LEVEL SERIALIZABLE;
        SELECT pg_backend_pid(), string_agg(a.status, ' ') FROM qinglong.ql_admit_batch(ARRAY(SELECT c FROM t.claims ORDER BY name)) a; COMMIT});
    $pids{$pid} = 1;
    $answer
} 1 .. 20;
is(join(', ', @answers), join(', ', 'admitted admitted admitted', ('raced raced raced') x 19), 'twenty connections in a cycle: the first one admits');
is(scalar(keys %pids), 20, 'they were twenty');
is(runs_of('reconnects-%'), '3|3', 'a replica reconnects twenty times during a cycle: one Run per slot');

# --- a replica restarts with the same host name and pid ----------------------------------------------------------------------
value($node, "TRUNCATE t.claims; SELECT t.publish('restarts', '0 0 * * *', 'fire_once', $today)");
my $same = q{'host1:4711'};
value($node, "INSERT INTO t.claims SELECT 'before', c FROM qinglong.ql_claim($same, 1000) c");
is(value($node, "SELECT count(*) FROM qinglong.ql_claim($same)"), 0, 'same host name and pid: the new one does not get what the old one holds');
wait_for($node, "INSERT INTO t.claims SELECT 'after', c FROM qinglong.ql_claim($same, 60000) c; SELECT count(*) FROM t.claims WHERE name = 'after'",
    1, name => 'when its lease has ended it does');
my $admit = sub { value($node, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = '$_[0]'; COMMIT") };
is($admit->('before'), 'raced',    'same host name and pid: what the old one claimed is void');
is($admit->('after'),  'admitted', 'and the new one admits');
is($admit->('before'), 'raced',    'and the old one stays void');
is(value($node, "SELECT string_agg((c).claim_version::text, ' ' ORDER BY name DESC) FROM t.claims"), '1 2', 'the versions tell them apart');
is(runs_of('restarts'), '1|1', 'one Run');

# --- a scheduler away for 101 minutes, and for 1,000,000 slots ---------------------------------------------------------------
value($node, 'UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 4102444800000');
my $gone = value($node, 'SELECT t.now_ms() / 60000 * 60000 - 101 * 60000');
my $far  = value($node, 'SELECT t.now_ms() / 1000 * 1000 - 1000000 * 1000');
value($node, "SELECT t.publish('minute-' || p, '* * * * *', p, $gone), t.publish('second-' || p, '* * * * * *', p, $far) FROM unnest('{skip,fire_once}'::text[]) p");
value($node, "CREATE TABLE public.first AS SELECT s.* FROM qinglong.trigger_schedules s WHERE false;
    CREATE FUNCTION public.note_first() RETURNS trigger LANGUAGE plpgsql AS \$\$
    BEGIN
        IF OLD.claim_token IS NOT NULL AND NEW.claim_token IS NULL AND NOT EXISTS (SELECT FROM public.first f WHERE f.trigger_id = NEW.trigger_id) THEN
            INSERT INTO public.first SELECT NEW.*;
            UPDATE public.first SET updated_at_ms = OLD.updated_at_ms WHERE trigger_id = NEW.trigger_id; -- the moment of the claim
        END IF;
        RETURN NULL;
    END \$\$;
    CREATE TRIGGER note_first AFTER UPDATE ON qinglong.trigger_schedules FOR EACH ROW EXECUTE FUNCTION public.note_first()");
my $start = Time::HiRes::time();
value($node, "ALTER SYSTEM SET qinglong_sched.enabled = on");
value($node, 'SELECT pg_reload_conf()');
wait_for($node, 'SELECT count(*) FROM public.first', 4, timeout => 20, name => 'a scheduler that was away is back');
note(sprintf '%.1f s', Time::HiRes::time() - $start);
my $first = sub { value($node, "SELECT $_[1] FROM public.first WHERE trigger_id = '$_[0]'") };
# The slots from the old cursor to the claim, counted by arithmetic.
my $slots = sub { my ($from, $every) = @_; return "((updated_at_ms - $from) / $every + 1)" };
is($first->('minute-skip', 'admitted_total, coalesced_total, skipped_total = ' . $slots->($gone, 60000) . ', skipped_total BETWEEN 102 AND 103'), '0|0|t|t', '101 minutes away, skip: none admitted, each counted as skipped');
is($first->('minute-fire_once', "admitted_total, skipped_total, coalesced_total = " . $slots->($gone, 60000) . " - 1, last_scheduled_at_ms = $gone"), '1|0|t|t', '101 minutes away, fire_once: the oldest admitted, each other counted as coalesced');
is($first->('second-skip', 'admitted_total, coalesced_total, skipped_total, ' . $slots->($far, 1000) . ' > 1000000'), '0|0|100000|t', '1,000,000 slots away, skip: none admitted, counted to the cap');
is($first->('second-fire_once', "admitted_total, skipped_total, coalesced_total, last_scheduled_at_ms = $far"), '1|0|100000|t', '1,000,000 slots away, fire_once: the oldest admitted, counted to the cap');
is(value($node, 'SELECT count(*) FROM public.first WHERE next_fire_at_ms > updated_at_ms AND next_fire_at_ms <= updated_at_ms + CASE WHEN trigger_id LIKE $$minute%$$ THEN 60000 ELSE 1000 END'),
    4, 'the next slot is the next one from then');
wait_for($node, "SELECT count(DISTINCT trigger_id) = 2 AND count(*) >= 6 FROM qinglong.runs WHERE trigger_id LIKE 'second-%' AND scheduled_for_ms > $far", 't', name => 'then on schedule');
is(value($node, "SELECT count(*) FROM qinglong.runs r JOIN public.first f USING (trigger_id) WHERE r.scheduled_for_ms < f.next_fire_at_ms"), 2, 'no other old one');
value($node, 'DROP TRIGGER note_first ON qinglong.trigger_schedules');

# --- pg_terminate_backend on launcher and schedulers: back within 3 s --------------------------------------------------------
my $schedulers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'";
wait_for($node, $schedulers, 2, name => 'two schedulers');
my $log = log_position($node);
for my $kind (qw(scheduler launcher scheduler launcher)) {
    # By the server's own times: when it was terminated, and when the next one started.
    my ($pid, $at) = split /\|/, value($node, "SELECT pid, extract(epoch FROM clock_timestamp()) FROM pg_stat_activity, pg_terminate_backend(pid) WHERE backend_type = 'qinglong_sched $kind' ORDER BY pid LIMIT 1");
    my $count = $kind eq 'launcher' ? 1 : 2;
    wait_for($node, "SELECT count(*), count(*) FILTER (WHERE pid = $pid) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched $kind'", "$count|0", name => "a terminated $kind is replaced");
    cmp_ok(value($node, "SELECT max(extract(epoch FROM backend_start)) - $at FROM pg_stat_activity WHERE backend_type = 'qinglong_sched $kind'"), '<', 3, "a terminated $kind is back within 3 s");
    is(value($node, $schedulers), 2, 'one scheduler per slot') if $kind eq 'launcher';
}
my $ticks = "SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'second-skip'";
my $before = value($node, $ticks);
wait_for($node, "SELECT ($ticks) > $before + 1", 't', name => 'and at work');
is(value($node, "SELECT count(DISTINCT l.objsubid), count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                  WHERE a.backend_type = 'qinglong_sched scheduler' AND l.locktype = 'object' AND l.mode = 'ExclusiveLock'"), '2|2', 'each holds the lock of its own slot');
is(value($node, 'SELECT count(*) FROM (SELECT FROM qinglong.runs GROUP BY trigger_id, scheduled_for_ms HAVING count(*) > 1) x'), 0, 'nothing doubled');

# --- a publish/unschedule loop against admissions of the same trigger --------------------------------------------------------
value($node, 'CREATE TABLE public.answers (what text); CREATE TABLE public.leave (x int)');
@replicas = start_replicas(qw(functions procedure functions procedure));
my @publishers = map {
    my $publisher = { out => '', err => '' };
    $publisher->{run} = IPC::Run::start([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $conninfo, '-c', <<"SQL" ], '>', \$publisher->{out}, '2>', \$publisher->{err}, IPC::Run::timeout(120));
DO \$\$
BEGIN
    WHILE NOT EXISTS (SELECT FROM public.leave) LOOP
        BEGIN
            PERFORM qinglong.ql_schedule('loop', (ARRAY['* * * * * *', '*/2 * * * * *'])[1 + floor(random() * 2)], 'echo $_', 'UTC', 'fire_once');
            INSERT INTO public.answers VALUES ('published');
        EXCEPTION WHEN OTHERS THEN INSERT INTO public.answers VALUES (SQLSTATE);
        END;
        COMMIT;
        PERFORM pg_sleep(random() * 0.3);
        BEGIN
            PERFORM qinglong.ql_unschedule('loop');
            INSERT INTO public.answers VALUES ('unscheduled');
        EXCEPTION WHEN OTHERS THEN INSERT INTO public.answers VALUES (SQLSTATE);
        END;
        COMMIT;
    END LOOP;
END \$\$
SQL
    $publisher
} 1 .. 2;
wait_for($node, "SELECT count(*) >= 3 AND count(DISTINCT split_part(idempotency_key, ':', 5)) >= 2 FROM qinglong.runs WHERE trigger_id = 'loop'", 't', name => 'Runs of several revisions in the loop');
value($node, 'INSERT INTO public.leave VALUES (1)');
$_->{run}->finish for @publishers;
is(join('', map { $_->{err} } @publishers), '', 'the publishers end well');
stop_replicas('publish/unschedule loop', @replicas);
note(value($node, 'SELECT string_agg(what || $$ $$ || n, $$, $$) FROM (SELECT what, count(*) AS n FROM public.answers GROUP BY what) x'));
is(value($node, "SELECT string_agg(DISTINCT what, ' ') FROM public.answers WHERE what NOT IN ('published', 'unscheduled', 'QL001', '40001', '55P03')"), '', 'publish/unschedule loop: no error but the documented conflicts');
is(value($node, "SELECT count(*) - count(DISTINCT scheduled_for_ms) FROM qinglong.runs WHERE trigger_id = 'loop'"), 0, 'no occurrence twice over its revisions');

is(value($node, 'SELECT * FROM qinglong.ql_check()'), '', 'ql_check() finds nothing');
no_errors_in_log($node, undef, except => qr/could not serialize access/);
$node->stop;
done_testing();
