# Roles that are renamed, dropped or lose what they own, and owners other than a superuser: scheduling goes on, or says why
# it does not.
use strict;
use warnings FATAL => 'all';
use QL;

my $node = ql_node('roles', conf => "qinglong_sched.cadence = 250ms\n");
value($node, 'CREATE ROLE boss SUPERUSER LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE app_runtime LOGIN; CREATE ROLE app_admin LOGIN; GRANT CREATE ON DATABASE postgres TO plain');

# as(ROLE, SQL): exit code and messages.
sub as {
    my ($role, $sql) = @_;
    my ($out, $err) = ('', '');
    my $rc = $node->psql('postgres', $sql, stdout => \$out, stderr => \$err, extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);
    return "$rc $out$err";
}
my $ready = "SELECT ready || ' ' || code || ' ' || array_to_string(findings, '; ') FROM qinglong.ql_readiness()";
sub goes_on {
    my ($name) = @_;
    my $runs = value($node, 'SELECT count(*) FROM qinglong.runs');
    wait_for($node, "SELECT count(*) > $runs FROM qinglong.runs", 't', name => "$name: scheduling goes on");
    is(value($node, $ready), 'true ready ', "$name: ready");
    return;
}
my $acts_as = "SELECT r.rolname FROM pg_extension e JOIN pg_roles r ON r.oid = e.extowner WHERE extname = 'qinglong_sched'";

like(as('plain', 'CREATE EXTENSION qinglong_sched'), qr/^3 .*42501.*permission denied to create extension/, 'a role without SUPERUSER cannot create the extension');
is(as('boss', 'CREATE EXTENSION qinglong_sched'), '0 ', 'a superuser can');
value($node, "SELECT qinglong.ql_grant('app_runtime', 'runtime'), qinglong.ql_grant('app_admin', 'admin')");
like(as('app_admin', "SELECT status FROM qinglong.ql_schedule('each-second', '* * * * * *', 'true', 'UTC', 'fire_once')"), qr/^0 created/, 'an admin publishes');
goes_on('at the start');

# The names of roles do not matter.
value($node, 'ALTER ROLE app_runtime RENAME TO app_scheduler; ALTER ROLE app_admin RENAME TO "App ""admin"""; ALTER ROLE boss RENAME TO chief');
goes_on('roles renamed');
like(as('App "admin"', "SELECT status FROM qinglong.ql_schedule('hourly', '0 * * * *', 'true')"), qr/^0 created/, 'a renamed admin publishes');
like(as('app_scheduler', "SELECT count(*) FROM qinglong.ql_claim('r', max_claims => 8)"), qr/^0 \d/, 'a renamed runtime claims');

# A role goes, with its rights.
like(as('chief', 'DROP ROLE app_scheduler'), qr/^3 .*2BP01/, 'a role with rights cannot be dropped, as ever');
value($node, 'REASSIGN OWNED BY app_scheduler, "App ""admin""" TO postgres; DROP OWNED BY app_scheduler, "App ""admin"""; DROP ROLE app_scheduler, "App ""admin"""');
goes_on('roles dropped');

# Another owner for a table or a function: not as shipped, so nothing schedules, and the finding says what.
for my $object ('TABLE qinglong.runs', 'FUNCTION qinglong.ql_check()', 'TABLE qinglong.trigger_schedules') {
    my $name = (split /\W/, $object)[-1] || 'ql_check';
    value($node, "ALTER $object OWNER TO plain");
    like(value($node, $ready), qr/^false (tables|functions) .*$name.* is not as shipped/, "another owner of $object is a finding");
    like(as('chief', "SELECT qinglong.ql_claim('r')"), qr/^3 .*55000/, 'and nothing schedules');
    value($node, "ALTER $object OWNER TO chief");
    goes_on("$object given back");
}

# The whole extension to a role that is no superuser, and to another superuser: schedulers act as that one.
value($node, 'REASSIGN OWNED BY chief TO plain');
is(value($node, $acts_as), 'plain', 'the extension has another owner');
value($node, 'DROP ROLE chief');
goes_on('owned by a role without SUPERUSER, the old owner dropped');
like(as('plain', "SELECT status FROM qinglong.ql_schedule('daily', '0 0 * * *', 'true')"), qr/^0 created/, 'that owner publishes');
like(as('plain', "SELECT ready FROM qinglong.ql_readiness(); SELECT count(*) FROM qinglong.ql_check(); SELECT qinglong.ql_grant('pg_monitor', 'monitor')"), qr/^0 t\n0/, 'and grants');
value($node, 'CREATE ROLE boss SUPERUSER; REASSIGN OWNED BY plain TO boss');
goes_on('owned by a superuser again');
is(value($node, 'SELECT count(*) FROM qinglong.ql_check()'), 0, 'all is whole');
no_errors_in_log($node, 'no other error in the log', except => qr/42501|2BP01|permission denied to create|cannot be dropped|as shipped/);
$node->stop;
done_testing();
