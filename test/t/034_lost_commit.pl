# A connection that breaks at COMMIT: the answer is lost after the server has committed, or the request before. The client
# does not know which, goes on by the rule of docs/design.md, and nothing is doubled or missing.
use strict;
use warnings FATAL => 'all';
use QL;
use LossyProxy;

my $node = ql_node('lost', workers => 0);
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
value($node, 'CREATE TABLE public.stop (x int)');
my $proxy = LossyProxy->new($node);
my $sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
my $number = 0;

# A new trigger of which one occurrence is due; the next one is months or years away.
sub due {
    my $id = 'd' . ++$number;
    value($node, "SELECT t.publish('$id', '0 0 29 2 *', 'fire_once', 951782400000)");
    return $id;
}

# --- a replica that goes on by itself ---
# What is lost, way of the replica, statement, what the server says to that, state right after, and at the end.
for my $case (
    [ 'answer',  'functions', 'ql_claim',         'SELECT 1', '0 0 0, claim 1 held, cursor due',    '1 1 2, claim 2 clear, cursor ahead', 1 ],
    [ 'request', 'functions', 'ql_claim',         undef,      '0 0 0, claim 0 clear, cursor due',   '1 1 2, claim 1 clear, cursor ahead', 1 ],
    [ 'answer',  'functions', 'COMMIT',           'COMMIT',   '1 1 2, claim 1 clear, cursor ahead', '1 1 2, claim 1 clear, cursor ahead', 0 ],
    [ 'request', 'functions', 'COMMIT',           undef,      '0 0 0, claim 1 held, cursor due',    '1 1 2, claim 2 clear, cursor ahead', 1 ],
    [ 'answer',  'single',    'COMMIT',           'COMMIT',   '1 1 2, claim 1 clear, cursor ahead', '1 1 2, claim 1 clear, cursor ahead', 0 ],
    [ 'request', 'single',    'COMMIT',           undef,      '0 0 0, claim 1 held, cursor due',    '1 1 2, claim 2 clear, cursor ahead', 1 ],
    [ 'answer',  'procedure', 'ql_schedule_once', 'CALL',     '1 1 2, claim 1 clear, cursor ahead', '1 1 2, claim 1 clear, cursor ahead', 0 ],
    [ 'request', 'procedure', 'ql_schedule_once', undef,      '0 0 0, claim 0 clear, cursor due',   '1 1 2, claim 1 clear, cursor ahead', 1 ],
) {
    my ($which, $way, $word, $tag, $after, $end, $admitted) = @$case;
    my $name = "$which of $word lost, $way";
    my $id   = due();
    $proxy->lose($which, $word);
    my $replica = start_replica($proxy->connstr . ' user=postgres', "replica-$id", $way, 1000);
    my $lost = $proxy->lost;
    $tag //= $word eq 'COMMIT' ? 'COMMIT' : qr/.*qinglong\.$word.*/;
    like($lost, qr/^lost the $which: $tag$/, "$name: $lost");
    wait_for($node, $sessions, 0, name => "$name: the session has ended");
    is(value($node, "SELECT t.state('$id')"), $after, "$name: " . ($which eq 'answer' ? 'it is committed' : 'it is not committed'));
    $proxy->go_on;
    wait_for($node, "SELECT t.state('$id')", $end, name => "$name: the replica goes on, to $end");
    value($node, 'INSERT INTO public.stop VALUES (1)');
    $replica->{run}->finish;
    like(${ $replica->{out} }, qr/admitted $admitted after 0 repetitions and 1 reconnections/, "$name: it knows of $admitted") or diag(${ $replica->{err} });
    value($node, 'DELETE FROM public.stop');
}

# --- the same claim again: at worst it is raced ---
for my $case ([ 'answer', '1 1 2, claim 1 clear, cursor ahead', 'raced' ], [ 'request', '0 0 0, claim 1 held, cursor due', 'admitted' ]) {
    my ($which, $after, $again) = @$case;
    my $id = due();
    value($node, "INSERT INTO t.claims SELECT '$id', c FROM qinglong.ql_claim('stubborn', 60000) c");
    my @admit = ('BEGIN ISOLATION LEVEL SERIALIZABLE', "SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = '$id'", 'COMMIT');
    $proxy->lose($which, 'COMMIT');
    my ($rc, $out, $err) = $proxy->psql(@admit);
    is("$rc $out", "2 admitted\n", "$which of COMMIT lost: admitted, perhaps");
    like($err, qr/server closed the connection unexpectedly/, 'more is not known');
    is($proxy->lost, "lost the $which: COMMIT", "the $which was lost");
    wait_for($node, $sessions, 0, name => 'the session has ended');
    is(value($node, "SELECT t.state('$id')"), $after, 'what is committed');
    $proxy->go_on;
    ($rc, $out, $err) = $proxy->psql(@admit);
    is("$rc $out$err", "0 $again\n", "the same claim again is $again");
    is(value($node, "SELECT t.state('$id')"), '1 1 2, claim 1 clear, cursor ahead', 'one Run');
}

# --- publication: the same call again ---
my $task    = q{'{"schema": "qinglong/command@v1", "config": {"command": {"kind": "shell", "command": "true"}}}'};
my $trigger = q{'{"schema": "qinglong/cron@v1", "config": {"expression": "0 0 1 1 *", "timezone": "UTC", "misfirePolicy": "skip"}}'};
my $rows    = <<'SQL';
SELECT (SELECT count(*) FROM qinglong.projects), (SELECT count(*) FROM qinglong.task_definitions), (SELECT count(*) FROM qinglong.task_definition_revisions),
       (SELECT count(*) FROM qinglong.task_execution_revisions), (SELECT count(*) FROM qinglong.triggers), (SELECT count(*) FROM qinglong.trigger_revisions),
       (SELECT count(*) FROM qinglong.trigger_schedules), (SELECT sum(claim_version) FROM qinglong.trigger_schedules)
SQL
for my $which ('answer', 'request') {
    my $p = "p-$which";
    for my $case (
        [ "SELECT status FROM qinglong.ql_project_put('$p', 'Some project')", 'active', 'active' ],
        [ "SELECT status, revision FROM qinglong.ql_task_publish('$p', 'task', 'Some task', $task, mutation_id => md5('$p task')::uuid)",
          'created|1', 'existing|1' ],
        [ "SELECT p.status, p.revision FROM qinglong.task_definition_revisions t, qinglong.ql_trigger_publish('$p', 'trigger', 'task', 1,
               t.content_digest, $trigger, mutation_id => md5('$p trigger')::uuid) p WHERE t.project_id = '$p'", 'created|1', 'existing|1' ],
        [ "SELECT status, trigger_revision FROM qinglong.ql_schedule('short', '0 0 1 1 *', 'true', project_id => '$p')", 'created|1', 'existing|1' ],
        [ "SELECT qinglong.ql_unschedule('short', '$p')", 't', 'f' ],
    ) {
        my ($publish, $first, $repeated) = @$case;
        my ($what) = $publish =~ /qinglong\.(ql_\w+)/;
        my $name   = "$what, $which of COMMIT lost";
        my $before = value($node, $rows);
        $proxy->lose($which, 'COMMIT');
        my ($rc, $out, $err) = $proxy->psql('BEGIN', $publish, 'COMMIT');
        is("$rc $out", "2 $first\n", "$name: $first, perhaps");
        is($proxy->lost, "lost the $which: COMMIT", "$name");
        wait_for($node, $sessions, 0, name => "$name: the session has ended");
        my $after = value($node, $rows);
        ($which eq 'answer' ? \&isnt : \&is)->($after, $before, "$name: " . ($which eq 'answer' ? 'it is committed' : 'it is not committed'));
        $proxy->go_on;
        ($rc, $out, $err) = $proxy->psql($publish);
        is("$rc $out$err", '0 ' . ($which eq 'answer' ? $repeated : $first) . "\n", "$name: the same call again");
        is(value($node, $rows), $after, "$name: changes nothing") if $which eq 'answer';
    }
}
is(value($node, q{SELECT count(DISTINCT rest) FROM (
        SELECT replace(project_id, 'answer', 'request'), array_agg((trigger_id, trigger_revision, claim_version, state_version) ORDER BY trigger_id) AS rest
          FROM qinglong.trigger_schedules WHERE project_id LIKE 'p-%' GROUP BY project_id) x}), 1, 'whatever was lost, the same is published');

$proxy->stop;
is(value($node, 'SELECT t.consistent()'), 't', 'all counts agree, and ql_check() finds nothing');
is(value($node, "SELECT count(*) FROM qinglong.runs"), $number, "$number occurrences, $number Runs");
no_errors_in_log($node);
$node->stop;
done_testing();
