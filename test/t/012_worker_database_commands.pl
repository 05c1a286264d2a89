# Commands that need a database without connections: schedulers make room, and come back when the command fails.
use strict;
use warnings FATAL => 'all';
use QL;
use Time::HiRes ();

my $schedulers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'qinglong_sched scheduler'";
my $busy       = <<'SQL';
SELECT qinglong.ql_schedule('trigger-' || n, '* * * * * *', 'true') FROM generate_series(1, 40) n;
SQL
my $node = ql_node('commands', conf => "qinglong_sched.workers_per_database = 2\nqinglong_sched.stop_timeout = '4s'\n");

# busy(DATABASE): two schedulers at work there.
sub busy {
    my ($db) = @_;
    wait_for($node, "$schedulers AND datname = '$db'", 2, name => "$db has its schedulers");
    wait_for($node, 'SELECT count(*) > 40 FROM qinglong.runs', 't', db => $db, name => "$db is busy");
    return;
}

# quick(SQL): succeeds, in less time than a command needs that has to wait for somebody.
sub quick {
    my ($sql) = @_;
    my $start = Time::HiRes::time();
    my ($rc, $out, $err) = $node->psql('postgres', $sql);
    my $took = Time::HiRes::time() - $start;
    ok($rc == 0 && $took < 10, sprintf '%s', $sql) || diag(sprintf '%.1f s: %s', $took, $err);
    return;
}

sub refused {
    my ($sql, $re, @more) = @_;
    my ($rc, $out, $err) = $node->psql('postgres', $sql, @more);
    like($err, $re, "refused: $sql");
    return;
}

value($node, 'CREATE DATABASE db');
create_extension($node, 'db');
value($node, $busy, 'db');
busy('db');

quick('ALTER DATABASE db RENAME TO renamed');
busy('renamed');
quick('CREATE DATABASE copy TEMPLATE renamed');
busy('renamed');
wait_for($node, "$schedulers AND datname = 'copy'", 2, name => 'a copy has schedulers of its own, which idle');
my $held = sub { scalar log_lines($node, qr/LOG:  background workers of qinglong_sched idle in database "copy"/) };
my $copied = value($node, 'SELECT count(*) FROM qinglong.runs', 'copy');
value($node, 'SELECT qinglong.ql_release_hold()', 'copy');
wait_for($node, "SELECT count(*) > $copied FROM qinglong.runs", 't', db => 'copy', name => 'a released copy is scheduled');
ok($held->() >= 1 && $held->() <= 6, 'each of its schedulers has said once that it is idle');
quick('DROP DATABASE copy');

my $folder = PostgreSQL::Test::Utils::tempdir();
value($node, "CREATE TABLESPACE elsewhere LOCATION '$folder'");
quick('ALTER DATABASE renamed SET TABLESPACE elsewhere');
busy('renamed');

# Commands that fail, and a transaction that is rolled back.
refused('CREATE DATABASE postgres TEMPLATE renamed', qr/already exists/);
busy('renamed');
refused('BEGIN; DROP DATABASE renamed; COMMIT', qr/cannot run inside a transaction block/);
busy('renamed');
value($node, 'BEGIN; ALTER DATABASE renamed RENAME TO other; ROLLBACK');
busy('renamed');

# Who may not have the database does not disturb its schedulers.
my $pids = join ',', workers($node, 'renamed');
value($node, 'CREATE ROLE stranger LOGIN CREATEDB');
refused($_, qr/must be owner|permission denied/, extra_params => [ '-U', 'stranger' ])
    for 'DROP DATABASE renamed', 'CREATE DATABASE mine TEMPLATE renamed', 'ALTER DATABASE renamed RENAME TO mine',
    'ALTER DATABASE renamed SET TABLESPACE pg_default';
is(join(',', workers($node, 'renamed')), $pids, 'a stranger does not stop schedulers');
refused('DROP DATABASE nowhere', qr/does not exist/);

# A database that becomes a template is left.
value($node, 'ALTER DATABASE renamed IS_TEMPLATE true');
wait_for($node, "$schedulers AND datname = 'renamed'", 0, name => 'a template is left');
value($node, 'ALTER DATABASE renamed IS_TEMPLATE false');
busy('renamed');

# A cycle that does not end is ended.
value($node, <<'SQL', 'renamed');
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
CREATE TRIGGER dawdle AFTER INSERT ON qinglong.runs EXECUTE FUNCTION public.dawdle();
SQL
wait_for($node, "$schedulers AND datname = 'renamed' AND wait_event = 'PgSleep'", 2, name => 'cycles that hang');
quick('DROP DATABASE renamed');
is(value($node, 'SELECT count(*) FROM pg_database WHERE datname NOT LIKE $$template%$$'), 1, 'dropped');
is(value($node, $schedulers), 0, 'no scheduler is left');

no_errors_in_log($node, undef, except => qr/already exists|inside a transaction block|must be owner|permission denied|does not exist|unterminated/);
$node->stop;
done_testing();
