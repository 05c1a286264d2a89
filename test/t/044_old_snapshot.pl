# An old snapshot is held while cursors move on: their dead entries stay before the first due row. A session that has passed
# many begins for a second where it found the first row. What comes to stand before it waits no longer than that, and
# nothing is lost.
use strict;
use warnings FATAL => 'all';
use QL;

my $node = ql_node('old_snapshot', workers => 0);
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
my $triggers = 600;
value($node, qq{SELECT t.publish('t' || n, '0 0 1 1 *', 'fire_once', 1609459200000) FROM generate_series(1, $triggers) n});

my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM qinglong.runs;');

# Each cursor moves on twice.
for my $round (1, 2) {
    value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '202$round-01-01 00:00+00') * 1000");
    value($node, "CALL qinglong.ql_schedule_once('round', NULL, NULL, 256)") for 1 .. 3; # 600 rows
    is(value($node, 'SELECT count(*), count(DISTINCT trigger_id) FROM qinglong.runs'), $round * $triggers . "|$triggers", "round $round: each trigger has its Run");
}
value($node, "UPDATE qinglong.trigger_schedules SET next_fire_at_ms = extract(epoch FROM timestamptz '2024-01-01 00:00+00') * 1000");

# One session: it passes the dead ones, then an earlier row appears.
my $session = $node->background_psql('postgres');
my $claim = sub { my ($most) = @_; return $session->query_safe("SELECT string_agg(trigger_id, ' ') FROM qinglong.ql_claim('one', NULL, $most);") };
is($claim->(2), 't1 t10', 'the first in line');
value($node, "SELECT t.publish('early', '0 0 1 1 *', 'fire_once', 1672531200000)");
my $seen = $claim->(1);
my $began = time;
SKIP: { # on a machine that took longer than a second for these two statements the front has been looked at again
    skip 'the second was over', 1 if $seen eq 'early';
    is($seen, 't100', 'an earlier row that appears within the second is not seen at once: the front was remembered');
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    do { $seen = $claim->(1) } until $seen eq 'early' || time > $end;
    is($seen, 'early', 'but soon');
    cmp_ok(time - $began, '<=', 3, 'within a second or so');
}
# Where the remembered place yields too little, the whole line is looked at in the same call.
value($node, "SELECT t.publish('earlier', '0 0 1 1 *', 'fire_once', 1640995200000)");
my $rest = '';
for (1 .. 3) { # 600 rows in batches of 256
    $rest .= ' ' . $claim->(256);
}
like($rest, qr/\bearlier\b/, 'with the rest of them comes the one before all');
is(value($node, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NULL'), 0, 'all are claimed');
$holder->quit;
$session->quit;
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'the database is whole');
$node->stop;
done_testing();
