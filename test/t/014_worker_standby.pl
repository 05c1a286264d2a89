# A standby schedules nothing; promoted, it does by itself.
use strict;
use warnings FATAL => 'all';
use QL;

my $processes = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched%'";
my $primary   = ql_node('primary', init => [ allows_streaming => 1 ]);
create_extension($primary);
value($primary, "SELECT qinglong.ql_schedule('each-second', '* * * * * *', 'true')");
wait_for($primary, 'SELECT count(*) > 1 FROM qinglong.runs');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
my $runs = value($primary, 'SELECT count(*) FROM qinglong.runs');
wait_for($standby, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => 'the standby follows');
is(value($standby, $processes), 0, 'no process of the extension on a standby');

$primary->stop('fast');
$runs = value($standby, 'SELECT count(*) FROM qinglong.runs');
$standby->promote;
wait_for($standby, $processes, 2, timeout => 10, name => 'launcher and scheduler after a promotion');
wait_for($standby, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => 'at work');
is(value($standby, 'SELECT count(*) - count(DISTINCT scheduled_for_ms) FROM qinglong.runs'), 0, 'each occurrence once');
is(value($standby, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'the state is whole');
no_errors_in_log($_) for $primary;
no_errors_in_log($standby, undef, except => qr/could not (connect|receive)|terminating walreceiver|server closed the connection|replication terminated/i);
$standby->stop;
done_testing();
