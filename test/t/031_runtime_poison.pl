# Three bad triggers among 1,000 that are due: quarantined with a reason within one cycle, while nobody waits for them.
use strict;
use warnings FATAL => 'all';
use QL;

my $node = ql_node('poison', conf => "qinglong_sched.enabled = off\nqinglong_sched.cadence = 250ms\n");
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));

# The bad ones stand first in the order of claims. The one whose zone vanished is sound in itself: its digest holds.
sub publish_due {
    my ($prefix) = @_;
    value($node, <<"SQL");
BEGIN;
SELECT count(t.publish('$prefix-' || lpad(i::text, 4, '0'), '0 0 29 2 *', 'fire_once', 68169600000)) FROM generate_series(1, 1000) i;
SELECT t.damage('trigger_revisions', 'spec_json = ''{"schema": "qinglong/cron\@v1", "config": {"expression": "* * *"}}''', 'trigger_id = ''$prefix-0001''');
SELECT t.damage('trigger_revisions', 'spec_json = jsonb_set(spec_json, ''{config,timezone}'', ''"Atlantis/Poseidonis"'')', 'trigger_id = ''$prefix-0002''');
SELECT t.damage('trigger_revisions', 'content_digest = qinglong._trigger_digest(project_id, trigger_id, revision, task_id, task_revision, task_content_digest, spec_json, enabled)', 'trigger_id = ''$prefix-0002''');
SELECT t.damage('task_execution_revisions', 'content_digest = repeat(''a'', 64)', 'task_id = ''$prefix-0003''');
COMMIT;
SQL
    return;
}
my $faults = "SELECT string_agg(trigger_id || ' ' || state || ' ' || fault, ', ' ORDER BY trigger_id) FROM qinglong.schedules WHERE fault IS NOT NULL AND trigger_id ~ ";
my @reasons = qw(spec_damaged zone_unknown execution_digest);
sub reasons { my ($prefix) = @_; return join ', ', map { "$prefix-000$_ quarantined $reasons[$_ - 1]" } 1 .. 3; }

# One cycle by hand.
publish_due('hand');
is(value($node, 'SELECT string_agg(code, $$, $$ ORDER BY code) FROM qinglong.ql_check()'), 'execution_digest, trigger_digest', 'ql_check() names the damage of digests');
like(value($node, "CALL qinglong.ql_schedule_once('hand', NULL, NULL, 256)"), qr/,256,0,0,253,0,3,t\)/, 'the first cycle quarantines them and admits all others it claimed');
is(value($node, "$faults '^hand'"), reasons('hand'), 'each with its reason');
like(value($node, "CALL qinglong.ql_schedule_once('hand', NULL, NULL, 256)"), qr/,256,0,0,256,0,0,t\)/, 'nobody claims them again');
value($node, "CALL qinglong.ql_schedule_once('hand', NULL, NULL, 256)") for 1 .. 2;
is(value($node, "SELECT count(*) FROM qinglong.runs WHERE trigger_id ~ '^hand'"), 997, 'the others are admitted');
is(value($node, 'SELECT count(*) FROM qinglong.trigger_schedules WHERE claim_token IS NOT NULL'), 0, 'no claim is left');

# In the server.
my $start = log_position($node);
publish_due('server');
$node->append_conf('postgresql.conf', "qinglong_sched.enabled = on\nqinglong_sched.max_claims_per_cycle = 256");
$node->reload;
wait_for($node, "SELECT count(*) FROM qinglong.runs WHERE trigger_id ~ '^server'", 997, timeout => 60, name => 'the scheduler admits the others');
is(value($node, "$faults '^server'"), reasons('server'), 'and has quarantined the three');
is(value($node, "SELECT max(created_at_ms) - min(created_at_ms) < 20000 FROM qinglong.runs WHERE trigger_id ~ '^server'"), 't',
    'nobody waited for a lease');
my @warnings = log_lines($node, qr/WARNING: .*quarantined/, $start);
is(scalar(@warnings), 3, 'one warning each, and no more');
is(scalar(log_lines($node, qr/misfire|Atlantis|\* \*/, $start)), 0, 'without the spec');
no_errors_in_log($node, 'no error in the log');

# They come back by release or republication.
value($node, "SELECT qinglong.ql_schedule('server-0002', '0 0 29 2 *', 'true', 'UTC', 'fire_once')");
wait_for($node, "SELECT next_fire_at_ms IS NOT NULL AND fault_code IS NULL FROM qinglong.trigger_schedules WHERE trigger_id = 'server-0002'", 't',
    name => 'republication heals');
value($node, "SELECT t.damage('task_execution_revisions', 'content_digest = qinglong._execution_digest(project_id, task_id, source_revision, source_content_digest, executor_type, plan_schema, plan_json)', 'task_id = ''server-0003''')");
value($node, "SELECT qinglong.ql_release_quarantine('default', 'server-0003')");
wait_for($node, "SELECT count(*) FROM qinglong.runs WHERE trigger_id = 'server-0003'", 1, name => 'release of a mended one');
$node->stop;
done_testing();
