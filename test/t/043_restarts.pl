# A server restarted every day: it runs for some seconds around noon of each day. A weekly trigger fires on its day, one
# whose first occurrence is tomorrow does so tomorrow, and a restart admits nothing that is not due.
use strict;
use warnings FATAL => 'all';
use QL;
use QLClock;

offset(0);
my $node = ql_node('restarts', start => 0, conf => "qinglong_sched.cadence = 250ms\n");
fake(sub { $node->start });
create_extension($node);
value($node, "SELECT qinglong.ql_schedule('second', '* * * * * *', 'true')");
my ($noon, $weekday, $date) = split /\|/, value($node, q{SELECT extract(epoch FROM d)::bigint, extract(dow FROM d + interval '3 days'), to_char(d + interval '1 day', 'DD MM')
                                                       FROM (SELECT date_trunc('day', now() AT TIME ZONE 'UTC') + interval '2 days 12 hours' AS d) x});
sub start_before_noon_of {
    my ($day) = @_;
    offset(int($noon + 86400 * $day - 2 - time));
    fake(sub { $node->start });
    return;
}
sub days_of { # whose noon a trigger was admitted for
    my ($trigger) = @_;
    return value($node, "SELECT coalesce(string_agg(((scheduled_for_ms / 1000 - $noon) / 86400.0)::float::text, ',' ORDER BY scheduled_for_ms), '')
                         FROM qinglong.runs WHERE trigger_id = '$trigger'");
}
$node->stop;
start_before_noon_of(0);
value($node, "SELECT qinglong.ql_schedule('weekly', '0 12 * * $weekday', 'true', 'UTC', 'skip'), qinglong.ql_schedule('tomorrow', '0 12 $date *', 'true', 'UTC', 'fire_once')");
my %fired = (0 => '|', 1 => '|1', 2 => '|1', 3 => '3|1', 4 => '3|1', 9 => '3|1', 10 => '3,10|1', 11 => '3,10|1');
for my $day (sort { $a <=> $b } keys %fired) {
    if ($day > 0) {
        $node->stop;
        start_before_noon_of($day);
    }
    # Something later than noon was admitted: so all that was due at noon is.
    wait_for($node, 'SELECT count(*) > 0 FROM qinglong.runs WHERE trigger_id = $$second$$ AND scheduled_for_ms >= ' . 1000 * ($noon + 86400 * $day + 1), 't',
        timeout => 30, name => "day $day: at work at noon");
    wait_for($node, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL AND trigger_id IN ($$weekly$$, $$tomorrow$$)', 0, name => "day $day: nothing under way");
    is(days_of('weekly') . '|' . days_of('tomorrow'),
        $fired{$day}, "day $day: what has fired, at noon of which days");
}
is(value($node, 'SELECT count(*) - count(DISTINCT (trigger_id, scheduled_for_ms)) FROM qinglong.runs'), 0, 'nothing doubled');
is(value($node, 'SELECT * FROM qinglong.ql_check()'), '', 'ql_check() finds nothing');
no_errors_in_log($node);
$node->stop;
done_testing();
