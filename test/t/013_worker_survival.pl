# What ends a scheduler and what does not.
use strict;
use warnings FATAL => 'all';
use QL;
use Time::HiRes ();

my $launchers  = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched launcher'";
my $schedulers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'";
my $node       = ql_node('survival', conf => "restart_after_crash = on\n");
create_extension($node);
wait_for($node, $schedulers, 1);

sub pid_of { my ($kind) = @_; return value($node, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'qinglong_sched $kind'") }

sub in_log {
    my ($re) = @_;
    my $end = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;
    Time::HiRes::sleep(0.1) until log_lines($node, $re) || Time::HiRes::time() > $end;
    return ok(scalar log_lines($node, $re), "logged: $re");
}

# Terminated ones are replaced; one process in each slot.
for my $kind (qw(scheduler launcher scheduler launcher launcher)) {
    my $pid = pid_of($kind);
    value($node, "SELECT pg_terminate_backend($pid)");
    wait_for($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched $kind' AND pid <> $pid", 1,
        timeout => 10, name => "a terminated $kind is replaced");
}
is(value($node, $schedulers), 1, 'still one scheduler');

my $pid = pid_of('scheduler');
value($node, "SELECT pg_cancel_backend($pid)") for 1 .. 3;
value($node, 'SELECT pg_cancel_backend(' . pid_of('launcher') . ')');

# An error of one row: logged without its data, tried again, and the occurrence is admitted later.
value($node, "ALTER TABLE qinglong.runs ADD CONSTRAINT refused CHECK (task_id <> 'bad') NOT VALID");
value($node, "SELECT qinglong.ql_schedule('bad', '* * * * * *', 'echo secret-of-the-command', 'UTC', 'fire_once')");
value($node, "SELECT qinglong.ql_schedule('good', '* * * * * *', 'true')");
wait_for($node, "SELECT fault_code FROM qinglong.trigger_schedules WHERE trigger_id = 'bad'", qr/23514/, name => 'a row that cannot be admitted');
wait_for($node, "SELECT count(*) > 2 FROM qinglong.runs WHERE trigger_id = 'good'", 't', name => 'others are admitted');
# A slow start finds the first occurrence missed: then the row fails before it has a cursor.
my $due = value($node, "SELECT COALESCE(next_fire_at_ms, 0) FROM qinglong.trigger_schedules WHERE trigger_id = 'bad'");
value($node, 'ALTER TABLE qinglong.runs DROP CONSTRAINT refused');
wait_for($node, "SELECT count(*) > 0 FROM qinglong.runs WHERE trigger_id = 'bad' AND scheduled_for_ms >= $due", 't',
    name => 'admitted when the cause is gone');
is(pid_of('scheduler'), $pid, 'the process survived');

# An error of the whole cycle.
value($node, 'ALTER TABLE qinglong.trigger_schedules ADD CONSTRAINT refused CHECK (claim_token IS NULL) NOT VALID');
in_log(qr/WARNING:  scheduling cycle in database "postgres" failed with SQLSTATE 23514/);
value($node, 'ALTER TABLE qinglong.trigger_schedules DROP CONSTRAINT refused');
my $runs = value($node, 'SELECT count(*) FROM qinglong.runs');
wait_for($node, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => 'the next cycle goes on');
is(pid_of('scheduler'), $pid, 'the process survived that, too');
is(scalar log_lines($node, qr/Failing row|secret-of-the-command/), 0, 'no data in the log');

# Held: said once.
value($node, "SELECT qinglong.ql_hold('maintenance')");
my $idle = qr/LOG:  background workers of qinglong_sched idle in database "postgres"/;
in_log($idle);
$runs = value($node, 'SELECT count(*) FROM qinglong.runs');
wait_for($node, "SELECT clock_timestamp() > backend_start AND state_change > clock_timestamp() - interval '5 s'
                   FROM pg_stat_activity WHERE pid = $pid", 't', name => 'a held scheduler looks again');
is(value($node, 'SELECT count(*) FROM qinglong.runs'), $runs, 'nothing while held');
value($node, 'SELECT qinglong.ql_release_hold()');
wait_for($node, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => 'on with it after the release');
is(scalar log_lines($node, $idle), 1, 'the hold was said once');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'the state is whole');

# A cycle in hand is finished when workers are disabled, and nothing more is claimed.
value($node, "SELECT qinglong.ql_unschedule(t) FROM unnest('{good,bad}'::text[]) t");
value($node, <<'SQL');
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;
CREATE TRIGGER dawdle AFTER INSERT ON qinglong.runs FOR EACH ROW EXECUTE FUNCTION public.dawdle();
SELECT qinglong.ql_schedule('slow', '* * * * * *', 'true');
SQL
my $asleep = "$schedulers AND wait_event = 'PgSleep'";
wait_for($node, $asleep, 1, name => 'a slow cycle');
like(value($node, 'SELECT claim_owner FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL'),
    qr/\Abgw:\d+:\d+:0:\d+\z/, 'the claim names the scheduler');
value($node, 'ALTER SYSTEM SET qinglong_sched.enabled = off');
value($node, 'SELECT pg_reload_conf()');
wait_for($node, $schedulers, 0, name => 'it ends');
is(value($node, "SELECT count(*), (SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL)
                   FROM qinglong.runs WHERE trigger_id = 'slow'"), '1|0', 'its run is admitted, no claim is left');

# The same when the server stops; and no longer than stop_timeout.
value($node, 'ALTER SYSTEM RESET qinglong_sched.enabled');
value($node, 'SELECT pg_reload_conf()');
wait_for($node, $asleep, 1, name => 'a slow cycle again');
$node->stop('fast');
$node->start;
wait_for($node, $schedulers, 1);
cmp_ok(value($node, "SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'slow'"), '>=', 2, 'a stopping server lets it finish');
value($node, "CREATE OR REPLACE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END \$\$");
value($node, "ALTER SYSTEM SET qinglong_sched.stop_timeout = '500ms'");
value($node, 'SELECT pg_reload_conf()');
wait_for($node, "$asleep AND clock_timestamp() - xact_start > interval '4 s'", 1, name => 'a cycle that hangs');
my $start = Time::HiRes::time();
$node->stop('fast');
cmp_ok(Time::HiRes::time() - $start, '<', 20, 'a stopping server ends it');
$node->start;
wait_for($node, $asleep, 1, name => 'and it hangs again');

# A crash: everything starts anew, and the occurrence is admitted once.
value($node, 'CREATE OR REPLACE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$');
$pid = pid_of('scheduler');
kill 'KILL', $pid;
wait_for($node, "$schedulers AND pid <> $pid", 1, name => 'back after a crash');
wait_for($node, "SELECT count(*) > 3 FROM qinglong.runs WHERE trigger_id = 'slow'", 't', name => 'and at work');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'the state is whole after the crash');

no_errors_in_log($node, undef, except => qr/was terminated by signal 9|because of crash of another server process|in recovery mode/);
$node->stop;
done_testing();
