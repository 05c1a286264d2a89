# Life of the extension: an upgrade ends with the catalogue of a fresh install; SQL that is older or newer than the library
# is refused while the workers wait; it comes and goes beside schedulers and replicas at work, without a deadlock.
use QL;
use Time::HiRes ();

my $node = ql_node('life', conf => "qinglong_sched.workers_per_database = 2\n");
my $folder = value($node, "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'") . '/extension';
my $current = value($node, "SELECT default_version FROM pg_available_extensions WHERE name = 'qinglong_sched'");

# catalogue(DATABASE): the extension's objects as text, with all that an upgrade could get wrong.
sub catalogue {
    my ($db) = @_;
    return value($node, <<'SQL', $db);
SET search_path = pg_catalog;
WITH member AS (
    SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
     WHERE e.extname = 'qinglong_sched' AND d.deptype = 'e'),
relation AS (SELECT c.* FROM pg_class c JOIN member m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid),
fact (object, what) AS (
    SELECT pg_describe_object(classid, objid, 0), COALESCE(obj_description(objid, classid::regclass::text), '') FROM member
    UNION ALL SELECT oid::regprocedure::text, concat_ws(' ', pg_get_functiondef(oid), proacl, proowner::regrole) FROM pg_proc
               WHERE pronamespace = 'qinglong'::regnamespace
    UNION ALL SELECT oid::regclass::text, concat_ws(' ', relkind, relacl, reloptions, relpersistence, relrowsecurity,
                                                    CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END) FROM relation
    UNION ALL SELECT format('%s.%s', attrelid::regclass, attname),
                     concat_ws(' ', attnum, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation, attacl, attstorage,
                               pg_get_expr(adbin, adrelid), col_description(attrelid, attnum))
               FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid AND c.relnamespace = 'qinglong'::regnamespace
               LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attnum > 0 AND NOT attisdropped
    UNION ALL SELECT format('%s %s', conrelid::regclass, conname), pg_get_constraintdef(oid) FROM pg_constraint
               WHERE connamespace = 'qinglong'::regnamespace
    UNION ALL SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN relation r ON r.oid = i.indrelid
    UNION ALL SELECT format('%s %s', tgrelid::regclass, tgname), concat_ws(' ', tgenabled, pg_get_triggerdef(t.oid))
               FROM pg_trigger t JOIN relation r ON r.oid = tgrelid WHERE NOT tgisinternal
    UNION ALL SELECT oid::regtype::text, concat_ws(' ', typtype, typacl) FROM pg_type WHERE typnamespace = 'qinglong'::regnamespace
    UNION ALL SELECT 'dumped ' || c, '' FROM pg_extension, unnest(extconfig::regclass[]) c WHERE extname = 'qinglong_sched')
SELECT DISTINCT object, what FROM fact ORDER BY 1, 2
SQL
}

# installed(VERSION, FROM): the catalogue of a database of its own, fresh or upgraded.
my $databases = 0;
sub installed {
    my ($version, $from) = @_;
    my $db = 'v' . ++$databases;
    value($node, "CREATE DATABASE $db");
    value($node, "CREATE EXTENSION qinglong_sched VERSION '" . ($from // $version) . "'", $db);
    value($node, "ALTER EXTENSION qinglong_sched UPDATE TO '$version'", $db) if defined $from;
    my $seen = catalogue($db);
    value($node, "DROP DATABASE $db");
    return $seen;
}

# Every version that has a way to the present one.
my $fresh = installed($current);
cmp_ok(scalar(split /\n/, $fresh), '>', 300, 'a fresh install has a catalogue to compare');
my @released = split /\n/, value($node, <<SQL);
SELECT source FROM pg_extension_update_paths('qinglong_sched') WHERE target = '$current' AND path IS NOT NULL ORDER BY 1
SQL
is(installed($current, $_), $fresh, "upgraded from $_, the catalogue is that of a fresh install") for @released;

# The comparison itself, with a version of our own: its script has one index more and another comment.
my $script = slurp_file("$folder/qinglong_sched--$current.sql");
my $change = <<'SQL';
CREATE INDEX life_idx ON qinglong.runs (task_name);
COMMENT ON FUNCTION qinglong.ql_check() IS 'another comment';
SQL
append_to_file("$folder/qinglong_sched--999.0.0.sql", $script . $change);
append_to_file("$folder/qinglong_sched--$current--999.0.0.sql", $change);
append_to_file("$folder/qinglong_sched--999.0.1.sql", $script . $change);
append_to_file("$folder/qinglong_sched--$current--999.0.1.sql", $change =~ s/\ACREATE INDEX.*\n//r);
is(installed('999.0.0', $current), installed('999.0.0'), 'a right upgrade script gives the catalogue of a fresh install');
isnt(installed('999.0.1', $current), installed('999.0.1'), 'an upgrade script that forgets an index is found out');

# SQL that is newer than the library: the workers say it once and wait; after the update all goes on.
create_extension($node);
value($node, "SELECT qinglong.ql_schedule('tick', '* * * * * *', 'true')");
wait_for($node, 'SELECT count(*) > 0 FROM qinglong.runs');
my @pids = workers($node, 'postgres');
my $start = log_position($node);
value($node, "ALTER EXTENSION qinglong_sched UPDATE TO '999.0.0'");
my ($rc, $out, $err) = $node->psql('postgres', "SELECT qinglong.ql_claim('x')");
like($err, qr/have different versions.*HINT:  Install the library of that version/s, 'newer SQL is refused');
my $said = sub { scalar log_lines($node, qr/idle in database "postgres": .*different versions/, $start) };
for (1 .. 600) { last if $said->() >= 2; Time::HiRes::sleep(0.1) }
is($said->(), 2, 'each scheduler says once that it idles');
value($node, "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'qinglong_sched'");
($rc, $out, $err) = $node->psql('postgres', "SELECT qinglong.ql_schedule('x', '* * * * *', 'true')");
like($err, qr/have different versions.*HINT:  Run ALTER EXTENSION qinglong_sched UPDATE/s, 'older SQL is refused');
value($node, "UPDATE pg_extension SET extversion = '$current' WHERE extname = 'qinglong_sched'");
my $runs = value($node, 'SELECT count(*) FROM qinglong.runs');
wait_for($node, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => 'with equal versions they schedule again');
is(join(',', workers($node, 'postgres')), join(',', @pids), 'by the same processes');
value($node, 'DROP EXTENSION qinglong_sched');

# It comes and goes in one session beside schedulers that wake for each round.
my $round = <<'SQL';
CREATE EXTENSION qinglong_sched;
SELECT qinglong.ql_schedule('t' || n, '* * * * * *', 'true') FROM generate_series(1, 20) n;
CALL qinglong.ql_schedule_once('me');
SELECT qinglong.ql_unschedule('t1');
DROP EXTENSION qinglong_sched;
SQL
($rc, $out, $err) = $node->psql('postgres', $round x 40, on_error_stop => 1);
is($rc, 0, 'CREATE, schedule, unschedule, DROP: forty times in one session') || diag($err);

# Dropped while schedulers and replicas are at it: it waits for their transactions, and they end with it.
for my $drop ([ 'EXTENSION', 'postgres', 'DROP EXTENSION qinglong_sched' ], [ 'DATABASE', 'load', 'DROP DATABASE load WITH (FORCE)' ]) {
    my ($what, $db, $statement) = @$drop;
    value($node, "CREATE DATABASE $db") if $db ne 'postgres';
    value($node, <<'SQL', $db);
CREATE EXTENSION qinglong_sched;
SELECT qinglong.ql_schedule('t' || n, '* * * * * *', 'true', misfire_policy => 'fire_once') FROM generate_series(1, 300) n;
SQL
    my $calls = $node->basedir . '/once.sql';
    unlink $calls;
    append_to_file($calls, "CALL qinglong.ql_schedule_once('replica', max_claims => 8);\n");
    my ($printed, $load) = ('');
    $load = IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 60, '-f', $calls, '-d', $node->connstr($db) ], '<', \undef,
        '>', \$printed, '2>', \$printed, IPC::Run::timeout(180));
    wait_for($node, <<'SQL', 't', db => $db, name => "$what: two schedulers and four replicas admit");
SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'qinglong_sched scheduler') = 2
   AND (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CALL qinglong.ql_schedule_once%') = 4
   AND (SELECT count(*) FROM qinglong.runs) > 600
SQL
    my $begun = Time::HiRes::time();
    value($node, $statement);
    cmp_ok(Time::HiRes::time() - $begun, '<', 10, "DROP $what ends in seconds");
    $load->finish;
    unlike($printed, qr/deadlock/, 'no replica meets a deadlock');
}
is(value($node, "SELECT sum(deadlocks) FROM pg_stat_database"), 0, 'there was no deadlock at all');

no_errors_in_log($node, undef, except =>
    qr/have different versions|is not installed in this database|does not exist|terminating connection|could not open relation|cache lookup/);
$node->stop;
unlink glob "$folder/qinglong_sched--*999.0.[01].sql";
done_testing();
