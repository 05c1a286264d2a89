# A template copy is held; drift that another session brings about reaches a session that has already scheduled; a
# standby is never ready, and keeps the identity when it is promoted.
use QL;

my $main = ql_node('main', workers => 0, init => [ allows_streaming => 1 ]);
$main->safe_psql('postgres', 'CREATE DATABASE app');
create_extension($main, 'app');
$main->safe_psql('app', "SELECT qinglong.ql_schedule('a', '* * * * *', 'true')");

# CREATE DATABASE ... TEMPLATE.
$main->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE app');
is(value($main, 'SELECT ready, code FROM qinglong.ql_readiness()', 'copy'), 'f|held', 'a template copy is held');
my ($rc, $out, $err) = $main->psql('copy', "SELECT qinglong.ql_claim('x')");
like($err, qr/scheduling is held.*DETAIL:  The state belongs to another database.*HINT:  Run SELECT qinglong\.ql_release_hold\(\)/s,
    'it says why, and what to do');
is(value($main, 'SELECT count(*) FROM qinglong.ql_check()', 'copy'), 0, 'its state is whole');
is(value($main, "SELECT ready FROM qinglong.ql_readiness()", 'app'), 't', 'the original is not');
is(value($main, "SELECT qinglong.ql_release_hold()", 'copy'), 't', 'released');
is(value($main, "SELECT count(*) FROM qinglong.ql_claim('x')", 'copy'), 1, 'it schedules');
# Renaming keeps the identity.
$main->safe_psql('postgres', 'ALTER DATABASE copy RENAME TO renamed');
is(value($main, 'SELECT ready FROM qinglong.ql_readiness()', 'renamed'), 't', 'a renamed database is the same one');
# A copy of a database in which nothing was published yet has nothing to hold.
$main->safe_psql('postgres', 'CREATE DATABASE empty');
create_extension($main, 'empty');
$main->safe_psql('postgres', 'CREATE DATABASE empty2 TEMPLATE empty');
is(value($main, 'SELECT ready FROM qinglong.ql_readiness()', 'empty2'), 't', 'an empty copy is ready');

# A session that found everything in order notices what others change.
$main->safe_psql('app', <<'SQL');
CREATE FUNCTION public.try_claim() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM qinglong.ql_claim('x');
    RETURN 'claims';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END
$$;
SQL
my $session = $main->background_psql('app');
my $claim = sub { return $session->query_safe('SELECT public.try_claim()') };
is($claim->(), 'claims', 'in order');
for my $drift (
    [ 'ALTER TABLE qinglong.triggers DISABLE TRIGGER sweep_schedules', 'ALTER TABLE qinglong.triggers ENABLE ALWAYS TRIGGER sweep_schedules' ],
    [ 'GRANT DELETE ON qinglong.runs TO pg_monitor', 'REVOKE DELETE ON qinglong.runs FROM pg_monitor' ],
    [ 'GRANT CREATE ON SCHEMA qinglong TO pg_monitor', 'REVOKE CREATE ON SCHEMA qinglong FROM pg_monitor' ],
    [ 'GRANT EXECUTE ON FUNCTION qinglong.ql_check() TO PUBLIC', 'REVOKE EXECUTE ON FUNCTION qinglong.ql_check() FROM PUBLIC' ],
    [ 'ALTER FUNCTION qinglong.ql_check() SECURITY INVOKER', 'ALTER FUNCTION qinglong.ql_check() SECURITY DEFINER' ],
    [ 'ALTER TABLE qinglong.runs ALTER priority DROP NOT NULL', 'ALTER TABLE qinglong.runs ALTER priority SET NOT NULL' ],
    [ "SELECT qinglong.ql_hold('for a test')", 'SELECT qinglong.ql_release_hold()' ],
    [ "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'qinglong_sched'",
      "UPDATE pg_extension SET extversion = (SELECT default_version FROM pg_available_extensions WHERE name = 'qinglong_sched') WHERE extname = 'qinglong_sched'" ],
) {
    $main->safe_psql('app', $drift->[0]);
    like($claim->(), qr/not installed as shipped|is held|have different versions/, "noticed: $drift->[0]");
    $main->safe_psql('app', $drift->[1]);
    is($claim->(), 'claims', 'and that it is gone');
}
# Vacuum, analyze and reindex are no drift.
$main->safe_psql('app', $_) for 'VACUUM ANALYZE', 'REINDEX TABLE qinglong.runs', 'ANALYZE qinglong.trigger_schedules';
is($claim->(), 'claims', 'maintenance is no drift');
$session->quit;

# A standby, then promoted.
$main->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($main, 'base', has_streaming => 1);
$standby->start;
$main->wait_for_catchup($standby);
is(value($standby, 'SELECT ready, code FROM qinglong.ql_readiness()', 'app'), 'f|server_not_writable_primary', 'a standby is not ready');
($rc, $out, $err) = $standby->psql('app', "SELECT qinglong.ql_claim('x')");
like($err, qr/recovery|read-only/, 'and refuses to claim');
is(value($standby, 'SELECT count(*) FROM qinglong.schedules', 'app'), 1, 'its view answers');
is(value($standby, 'SELECT count(*) FROM qinglong.ql_check()', 'app'), 0, 'and its check');
$main->stop;
$standby->promote;
is(value($standby, 'SELECT ready, code FROM qinglong.ql_readiness()', 'app'), 't|ready', 'promoted, it keeps the identity and is ready');

done_testing();
