# Sixteen replicas, eight over SQL and eight in the server, and 2,000 triggers that become due in the same second.
use strict;
use warnings FATAL => 'all';
use QL;

my $triggers = 2000;
my $node     = ql_node('replicas', conf => <<'CONF');
qinglong_sched.workers_per_database = 8
qinglong_sched.cadence = 250ms
max_worker_processes = 24
max_connections = 60
CONF
create_extension($node);
$node->safe_psql('postgres', 'CREATE TABLE public.stop (x int)');
wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'", 8,
    name => 'eight schedulers in the server');

my @replicas = map { start_replica($node->connstr('postgres') . ' user=postgres', "sql-$_", $_ % 2 ? 'functions' : 'procedure') } 1 .. 8;

# One transaction: from its commit on all of them are due, since the same second.
my $start = log_position($node);
value($node, <<"SQL");
BEGIN;
CREATE TEMP TABLE due AS SELECT date_trunc('second', now()) - interval '5 seconds' AS at;
SELECT count(qinglong.ql_schedule('trigger-' || i, to_char(at AT TIME ZONE 'UTC', 'SS MI HH24 DD MM "*"'), 'true', 'UTC', 'fire_once'))
  FROM due, generate_series(1, $triggers) i;
UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM at) * 1000 FROM due;
COMMIT;
SQL
wait_for($node, 'SELECT count(*) FROM qinglong.runs', $triggers, timeout => 180, name => "$triggers Runs");
wait_for($node, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL', 0, name => 'no claim is left');
value($node, 'INSERT INTO public.stop VALUES (1)');

my ($over_sql, $repetitions) = (0, 0);
for my $replica (@replicas) {
    $replica->{run}->finish;
    like(${ $replica->{out} }, qr/admitted (\d+) after (\d+)/, "$replica->{owner} ended well") or diag(${ $replica->{err} });
    my ($admitted, $again) = ${ $replica->{out} } =~ /admitted (\d+) after (\d+)/;
    $over_sql    += $admitted // 0;
    $repetitions += $again    // 0;
}
note("admitted over SQL: $over_sql, in the server: " . ($triggers - $over_sql) . "; repetitions of clients: $repetitions");
ok($over_sql > 0 && $over_sql < $triggers, 'both kinds took part');

is(value($node, 'SELECT (SELECT count(*) FROM qinglong.runs), (SELECT count(*) FROM qinglong.run_attempts), (SELECT count(*) FROM qinglong.run_events)'),
    "$triggers|$triggers|" . 2 * $triggers, 'Runs, Attempts and Events');
is(value($node, 'SELECT count(*) FROM (SELECT FROM qinglong.runs GROUP BY project_id, trigger_id, scheduled_for_ms HAVING count(*) > 1) x'),
    0, 'no occurrence twice');
is(value($node, 'SELECT count(DISTINCT scheduled_for_ms), count(DISTINCT trigger_id) FROM qinglong.runs'), "1|$triggers", 'all of one second');
is(value($node, 'SELECT count(*) FROM qinglong.runs r JOIN qinglong.run_attempts t ON t.run_id = r.id AND t.attempt = 1
                   JOIN qinglong.run_events c ON c.run_id = r.id AND c.sequence = 1 JOIN qinglong.run_events q ON q.run_id = r.id AND q.sequence = 2 AND q.attempt_id = t.id'),
    $triggers, 'each Run has its Attempt and its two Events');
is(value($node, 'SELECT sum(admitted_total), sum(skipped_total), sum(coalesced_total), count(*) FILTER (WHERE fault_code IS NOT NULL) FROM qinglong.trigger_schedules'),
    "$triggers|0|0|0", 'each is counted as admitted, none as failed');
is(value($node, 'SELECT * FROM qinglong.ql_check()'), '', 'ql_check() finds nothing');
# Where two clients' own transactions conflict they are told so, and repeat.
no_errors_in_log($node, 'no error in the server log', start => $start, except => qr/could not serialize access/);
is(scalar(log_lines($node, qr/WARNING|could not serialize.*scheduler/, $start)), 0, 'and no warning');
$node->stop;
done_testing();
