# Secrets are planted in a command, an environment and references, and every error path is taken: none of them is in a
# message to the client, in a view or function for monitoring, or in the server's log at debug1. What a client sent is in the
# log's STATEMENT lines: that is the server's doing (log_min_error_statement), documented, and left out of the search.
use strict;
use warnings FATAL => 'all';
use MIME::Base64 ();
use QL;

my $reference = 'qlsecret:v1:' . MIME::Base64::encode_base64url('{"projectId":"default","name":"S3CRETname"}');
my $planted = qr/S3CRET|\Q$reference\E|eyJwcm9qZWN0SWQ/;
my $node = ql_node('secrets', conf => <<'CONF');
qinglong_sched.enabled = off
qinglong_sched.cadence = 250ms
log_min_messages = debug1
log_error_verbosity = verbose
CONF
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
my $said = '';
my $unexpected = '';

# client(SQL, SQLSTATE): takes that path; what the client is told is kept for the search.
sub client {
    my ($sql, $state) = @_;
    my ($out, $err) = ('', '');
    $node->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=always' ]);
    $said .= "$out\n$err\n";
    my ($got) = $err =~ /(?:ERROR|FATAL): +(\w{5}):/;
    $unexpected .= ($got // 'no error') . " instead of $state: $sql\n" if ($got // '00000') ne $state;
    return;
}
sub command { my ($config) = @_; return qq({"schema": "qinglong/command\@v1", "config": $config}); }
sub task { my ($id, $spec, @more) = @_; return "SELECT qinglong.ql_task_publish(" . join(', ', "'default'", "'$id'", "'n'", "\$x\$$spec\$x\$", @more) . ')'; }

my $command = '"command": {"kind": "shell", "command": "echo S3CRETcommand"}';
my $environment = qq("environment": [{"name": "A", "kind": "public", "value": "S3CRETvalue"}, {"name": "B", "kind": "secret", "secretRef": "$reference"}]);
my $sound = command("{$command, $environment}");
my $other = command(qq({"command": {"kind": "argv", "file": "/bin/echo", "args": ["S3CRETargument"]}, $environment}));
my $mutation = "'11111111-1111-4111-8111-111111111111'";

# Published, again, in conflict.
client("SELECT qinglong.ql_project_put('default')", '00000');
client(task('a', $sound, 'NULL', $mutation), '00000');
client(task('a', $sound, 'NULL', $mutation), '00000');
client(task('a', $other, 'NULL', $mutation), 'QL001');
client(task('a', $other, 7), 'QL001');
client(task('b', $other, 3), 'QL001');
client("SELECT qinglong.ql_schedule('$_', '* * * * *', 'S3CRETcommand', 'UTC', 'fire_once')", '00000') for qw(damaged refused fine);
client("SELECT qinglong.ql_schedule('fine', '* * *', 'S3CRETcommand')", '22023');
client("SELECT qinglong.ql_schedule('fine', '* * * * *', 'S3CRETcommand', 'Nowhere/Else')", '22023');
client("SELECT qinglong.ql_schedule('fine', '* * * * *', 'S3CRETcommand', 'UTC', 'sometimes')", '22023');
client("SELECT qinglong.ql_schedule('', '* * * * *', 'S3CRETcommand')", '22023');
client("SELECT qinglong.ql_schedule('fine', '* * * * *', repeat('S3CRETcommand', 10000))", '22023');
client("SELECT qinglong.ql_trigger_publish('default', 'pin', 'a', 1, repeat('0', 64), '{\"schema\": \"qinglong/cron\@v1\", \"config\": {\"expression\": \"* * * * *\", \"timezone\": \"UTC\", \"misfirePolicy\": \"skip\", \"S3CRETkey\": 1}}')", '22023');

# Specs that are refused, a secret in each place.
client(task('bad', $_), '22023') for map { command($_) } (
    '"S3CRET"', '["S3CRET"]', '{"S3CRET": 1}', '{"command": "S3CRET"}', '{"command": {"kind": "S3CRET"}}',
    '{"command": {"kind": "shell", "command": "S3CRET", "shell": "/bin/S3CRET"}}', '{"command": {"kind": "shell", "command": ["S3CRET"]}}',
    '{"command": {"kind": "argv", "file": "S3CRET", "args": []}}', '{"command": {"kind": "argv", "file": "/S3CRET", "args": ["S3CRET", 1]}}',
    '{"command": {"kind": "shell", "command": "S3CRET", "S3CRET": "S3CRET"}}', '{"command": {"kind": "shell", "command": 5e400}}',
    map { qq({$command, $_}) } (
        '"environment": "S3CRET"', '"environment": {"A": "S3CRET"}', '"environment": ["S3CRET"]', '"environment": [{"name": "A", "kind": "public", "value": ["S3CRET"]}]',
        '"environment": [{"name": "A", "kind": "S3CRET", "value": "S3CRET"}]', '"environment": [{"name": "A", "kind": "public", "S3CRET": "S3CRET"}]',
        '"environment": [{"name": "A", "kind": "public", "value": "S3CRET"}, {"name": "A", "kind": "public", "value": "S3CRET"}]',
        '"environment": [{"name": "A", "kind": "secret", "secretRef": "S3CRET"}]', '"environment": [{"name": "A", "kind": "secret", "value": "S3CRET"}]',
        '"environment": [{"name": "A", "kind": "secret", "secretRef": "qlsecret:v1:S3CRET"}]', '"environmentBundleRef": "S3CRET"', qq("environmentBundleRef": "$reference"),
        '"workingDirectory": "S3CRET"', '"timeoutMs": "S3CRET"', '"placement": "S3CRET"', '"placement": {"required": {"executors": "S3CRET"}}', '"S3CRET": null'));
client(task('bad', qq({"schema": "qinglong/S3CRET", "config": {$command}})), '22023');
client(task('bad', qq({"schema": "qinglong/command\@v1", "S3CRET": 1, "config": {$command}})), '22023');
client("SELECT qinglong.ql_task_publish('default', 'bad', 'n', jsonb_set(\$x\$$sound\$x\$, '{config,command,command}', to_jsonb(repeat('S3CRET', 20000))))", '22023');

# An operator's constraints that refuse the rows of a publication and of an admission: the server shows the row as DETAIL.
client("ALTER TABLE qinglong.task_definition_revisions ADD CONSTRAINT refused CHECK (task_id <> 'forbidden') NOT VALID; ALTER TABLE qinglong.task_execution_revisions ADD CONSTRAINT refused CHECK (task_id <> 'no plan') NOT VALID;"
    . "ALTER TABLE qinglong.runs ADD CONSTRAINT refused CHECK (task_id <> 'refused') NOT VALID", '00000');
client(task('forbidden', $other), '23514');
client(task('no plan', $other), '23514');
client("SELECT qinglong.ql_schedule('forbidden', '* * * * *', 'S3CRETcommand')", '23514');
client("UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000; SELECT t.claim('refused', 'refused'); SELECT t.claim('damaged', 'damaged')", '00000');
client("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT qinglong.ql_admit(c) FROM t.claims WHERE name = 'refused'; COMMIT", '23514');
client("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT qinglong.ql_admit_batch(ARRAY[c]) FROM t.claims WHERE name = 'refused'; COMMIT", '00000');

# Damage: found by a check, by an admission, by a publication, by the readiness.
client("SELECT t.damage('task_execution_revisions', 'plan_json = plan_json || ''{\"S3CRET\": \"S3CRET\"}''', 'task_id = ''damaged''')", '00000');
client("SELECT t.damage('task_definition_revisions', 'spec_json = spec_json || ''{\"S3CRET\": \"S3CRET\"}''', 'task_id = ''a''')", '00000');
client(task('a', $sound, 'NULL', $mutation), 'QL002');
client("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT qinglong.ql_admit(c) FROM t.claims WHERE name = 'damaged'; COMMIT", '00000');
client('SELECT * FROM qinglong.ql_check()', '00000');
client('DELETE FROM qinglong.task_definition_revisions', '55000');
client("ALTER TABLE qinglong.runs ALTER COLUMN task_id DROP NOT NULL; SELECT * FROM qinglong.ql_readiness(); SELECT qinglong.ql_claim('r')", '55000');
client('ALTER TABLE qinglong.runs ALTER COLUMN task_id SET NOT NULL', '00000');
client("SELECT qinglong.ql_project_put('default', status => 'archived')", '00000');
client(task('a', $other, 1), 'QL001');
client("SELECT qinglong.ql_project_put('default')", '00000');
client($_, '00000') for 'SELECT * FROM qinglong.schedules', 'SELECT * FROM qinglong.recovery_candidates()', "SELECT * FROM qinglong.ql_explain_trigger('default', 'fine', 3)",
    "CALL qinglong.ql_schedule_once('r')", "SELECT * FROM qinglong.ql_claim('r', max_claims => 9)";

# The server's own scheduler meets the refused and the damaged one.
client("UPDATE qinglong.trigger_schedules SET next_fire_at_ms = 60000, claim_owner = NULL, claim_token = NULL, claim_expires_at_ms = NULL, fault_code = NULL, fault_count = 0, retry_at_ms = NULL", '00000');
my $start = log_position($node);
$node->append_conf('postgresql.conf', 'qinglong_sched.enabled = on');
$node->reload;
wait_for($node, "SELECT string_agg(trigger_id || ' ' || (fault IS NOT NULL), ', ' ORDER BY trigger_id) FROM qinglong.schedules", 'damaged true, fine false, refused true', name => 'a scheduler meets them');
ok(log_lines($node, qr/WARNING: .*"refused"/, $start) && log_lines($node, qr/WARNING: .*"damaged"/, $start), 'and warns');
$node->stop;

is($unexpected, '', 'each path was taken');
# An entry of the log begins with its time; what follows, indented, belongs to it.
my @entries = split /^(?=\d{4}-\d\d-\d\d )/m, slurp_file($node->logfile);
cmp_ok(scalar(grep { /STATEMENT: / && /$planted/ } @entries), '>', 30, 'the statements that failed are in the log, with what they contain');
is(join('', grep { !/STATEMENT: / && /$planted/ } @entries), '', 'no other line of the log has a secret');
is(join("\n", grep { /$planted/ } split /\n/, $said), '', 'no answer to a client has a secret');
done_testing();
