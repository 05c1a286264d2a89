# A random history of sixteen schedulers, three publishers and an archiver, and its check against a model (test/lib/history.py).
# HISTORY_SECONDS: how long they are at it; HISTORY_SEED: their random numbers (not their timing).
use strict;
use warnings FATAL => 'all';
use QL;

my $seconds = $ENV{HISTORY_SECONDS} // 8;
my $seed    = $ENV{HISTORY_SEED}    // time;
note("HISTORY_SEED=$seed");
my $node = ql_node('history', conf => <<'CONF');
qinglong_sched.workers_per_database = 4
qinglong_sched.cadence = 250ms
qinglong_sched.misfire_grace = 1s
qinglong_sched.claim_lease = 2s
max_connections = 60
max_worker_processes = 16
CONF
create_extension($node);
wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'", 4, name => 'four schedulers in the server');
my ($out, $err) = ('', '');
my $ended = IPC::Run::run([ '/usr/bin/python3', 'test/lib/history.py', $node->connstr('postgres') . ' user=postgres', $seconds, $seed ],
    '>', \$out, '2>', \$err, IPC::Run::timeout(120 + 10 * $seconds));
ok($ended, 'the history was recorded') or diag($err);
note($_) for $out =~ /^note: (.*)$/mg;
is(join("\n", $out =~ /^complaint: (.*)$/mg), '', "the model has no complaint (HISTORY_SEED=$seed)");
is(join("\n", $out =~ /^undetected: (.*)$/mg), '', 'each falsified history is noticed');
like($out, qr/^checked: \d{3,} calls, \d{3,} changes, \d{3,} Runs; 0 complaints; 16 falsifications$/m, 'a history of some length');
like($out, qr/\b$_ [1-9]/, "seen: $_") for 'takeovers', 'publications', 'revocations', 'restorations', 'answer raced', 'answers lost',
    'admit', 'initialize', 'coalesced_total', "the server's own admissions";
no_errors_in_log($node, 'nothing else in the log of the server', except => qr/could not serialize access|has another current revision|is not active|was changed while|is locked by another transaction|connection to client lost/);
$node->stop;
done_testing();
