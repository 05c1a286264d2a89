# Random and hostile values for every argument of every function: no crash, no SQLSTATE that is not documented, and no row
# changed by what was refused. INPUTS values each (60; `soak/inputs`: 5,000), from a random SEED that is printed.
use strict;
use warnings FATAL => 'all';
use QL;

my $times = $ENV{INPUTS} // 60;
my $seed = $ENV{SEED} // sprintf '%.6f', rand;
diag("SEED=$seed");

# The states that the documentation promises.
my %documented = map { $_ => 1 } slurp_file("$ENV{QL_ROOT}/docs/reference.md") =~ /^\| (\w{5}) \| \w* ?\|/mg;
ok($documented{22023} && $documented{QL003} && keys %documented >= 12, 'the documentation has a table of SQLSTATEs');

my $node = ql_node('inputs', workers => 0, conf => "jit = off\n"); # compiling would take most of the time
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/hostile_inputs.psql"));
value($node, <<'SQL');
CREATE ROLE regress_inputs;
SELECT t.publish('a', '* * * * *', 'fire_once', t.now_ms() - 3600000), t.publish('b', '*/5 * * * *', 'skip', t.now_ms() - 3600000, 'Europe/Berlin');
SELECT t.claim('1', 'a', expires => t.now_ms() + 86400000), t.claim('2', 'b', expires => t.now_ms() + 86400000);
SELECT t.publish('due', '0 0 * * *', 'skip', t.now_ms() - 3600000);
SQL
is(value($node, 'SELECT string_agg(format($$%s.%s$$, name, argument), $$, $$) FROM h.arguments WHERE valid IS NULL'), '', 'each argument has a valid value');

# A valid call works: what is refused below is refused for the one hostile value.
my @functions = split /\n/, value($node, q{SELECT DISTINCT function FROM h.arguments WHERE prokind = 'f' ORDER BY 1});
for my $function (@functions) {
    my $call = value($node, "SELECT format('SELECT count(*) FROM qinglong.%I(%s)', name, string_agg(valid, ', ' ORDER BY n)) FROM h.arguments WHERE function = $function GROUP BY name");
    is($node->psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE; $call; ROLLBACK;"), 0, "valid: $call");
}

# Functions, each argument in a transaction of its own.
my $unchanged = '';
my $position = log_position($node);
for my $argument (split /\n/, value($node, q{SELECT function || ', ' || n FROM h.arguments WHERE prokind = 'f' ORDER BY name, n})) {
    my ($rc, $out, $err) = $node->psql('postgres', "SELECT setseed($seed) \\g /dev/null\nBEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT h.attack($argument, $times);\nCOMMIT;");
    isnt($err =~ /server closed|terminat/, 1, "function, argument $argument: the server lives");
    $unchanged .= $out eq 't' ? '' : "$argument: $out $err; ";
}
is($unchanged, '', 'no call that was refused or rolled back changed a row');
my $calls = value($node, 'SELECT count(*) FROM h.outcome');
is($calls, $times * value($node, q{SELECT count(*) FROM h.arguments WHERE prokind = 'f'}), "all $calls calls were made");
my $allowed = join ', ', map { "'$_'" } '00000', sort keys %documented;
is(value($node, qq{SELECT format('%s.%s: %s %s, %s times, such as (%s)', name, argument, sqlstate, min(message), count(*), min(arguments))
    FROM h.outcome WHERE sqlstate NOT IN ($allowed) GROUP BY name, argument, sqlstate ORDER BY name, argument}), '', 'every SQLSTATE is documented');
diag(value($node, 'SELECT string_agg(sqlstate || $$: $$ || n, $$, $$ ORDER BY sqlstate) FROM (SELECT sqlstate, count(*) AS n FROM h.outcome GROUP BY 1) x'));

# The procedure commits, so it is called by itself, where nothing is due.
value($node, 'UPDATE qinglong.trigger_schedules SET next_fire_at_ms = (t.now_ms() / 86400000 + 2) * 86400000');
my $before = value($node, 'SELECT t.fingerprint()');
for my $argument (split /\n/, value($node, q{SELECT function || ', ' || n FROM h.arguments WHERE prokind = 'p' ORDER BY n})) {
    my ($rc, $out, $err) = $node->psql('postgres', "SELECT setseed($seed) \\g /dev/null\n\\set ON_ERROR_STOP 0\n\\set VERBOSITY sqlstate\n"
        . "SELECT format('CALL qinglong.ql_schedule_once(%s)', h.hostile_arguments($argument)) FROM generate_series(1, $times) \\gexec", on_error_stop => 0);
    my @states = $err =~ /ERROR: +(\w{5})/g;
    my @answers = $out =~ /^\(/mg;
    is(@states + @answers, $times, "ql_schedule_once, argument $argument: each call is answered or refused");
    is(join(' ', grep { !$documented{$_} } @states), '', 'with a documented SQLSTATE');
}
is(value($node, 'SELECT t.fingerprint()'), $before, 'and no row changed');
is(scalar(log_lines($node, qr/PANIC|TRAP:|was terminated by signal|XX000|AddressSanitizer|runtime error:/, $position)), 0, 'no crash in the log');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'the database is whole');
$node->stop;
done_testing();
