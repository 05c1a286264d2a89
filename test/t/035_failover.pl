# A standby takes over: with synchronous replication nothing is lost, with asynchronous replication what is said here, and on
# the promoted server each occurrence has one Run.
use strict;
use warnings FATAL => 'all';
use QL;
use LossyProxy;

my $processes = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'qinglong_sched%'";
my $timeline  = 'SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)::int';
my $admitted  = 'claim 1 clear, cursor ahead';

# A primary and its standby. Workers schedule the database `workers`; in `postgres` everything is done by hand.
sub pair {
    my ($name) = @_;
    my $primary = ql_node("${name}_primary", init => [ allows_streaming => 1 ], conf => "qinglong_sched.databases = 'workers'\n");
    value($primary, 'CREATE DATABASE workers');
    for my $db (qw(postgres workers)) {
        create_extension($primary, $db);
        value($primary, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"), $db);
    }
    value($primary, 'CREATE TABLE public.stop (x int)');
    # Its first occurrence is known, so each second from then on can be accounted for.
    value($primary, <<'SQL', 'workers');
BEGIN;
SELECT t.publish('each-second', '* * * * * *', 'fire_once', (extract(epoch FROM date_trunc('second', now())) * 1000)::bigint);
CREATE TABLE public.first AS SELECT next_fire_at_ms AS at FROM qinglong.trigger_schedules;
COMMIT;
SQL
    $primary->backup('base');
    my $standby = PostgreSQL::Test::Cluster->new("${name}_standby");
    $standby->init_from_backup($primary, 'base', has_streaming => 1);
    $standby->start;
    return ($primary, $standby);
}

# A trigger with one occurrence that is due; the next one is months or years away.
sub due {
    my ($node, $id) = @_;
    value($node, "SELECT t.publish('$id', '0 0 29 2 *', 'fire_once', 951782400000)");
    return;
}

# Claims the only trigger that is due.
sub claim {
    my ($node, $id, $lease) = @_;
    is(value($node, "WITH new AS (INSERT INTO t.claims SELECT '$id', c FROM qinglong.ql_claim('of-$id', $lease) c RETURNING (c).trigger_id)
                     SELECT * FROM new"), $id, "$id is claimed for $lease ms");
    return;
}

sub admit {
    my ($id) = @_;
    return ('BEGIN ISOLATION LEVEL SERIALIZABLE', "SELECT a.status FROM t.claims, qinglong.ql_admit(c) a WHERE name = '$id'", 'COMMIT');
}

# Two replicas that know nothing of what was before.
sub replicas { my ($node) = @_; return map { start_replica($node->connstr('postgres') . ' user=postgres', "fresh-$_", $_, 5000) } qw(functions procedure) }

sub finish {
    my ($node, @replicas) = @_;
    value($node, 'INSERT INTO public.stop VALUES (1)');
    $_->{run}->finish for @replicas;
    my $sum = 0;
    $sum += ${ $_->{out} } =~ /admitted (\d+)/ ? $1 : die ${ $_->{err} } for @replicas;
    return $sum;
}

sub at_work {
    my ($node, $name) = @_;
    wait_for($node, $processes, 2, timeout => 10, name => "$name: launcher and scheduler start by themselves");
    my $runs = value($node, 'SELECT count(*) FROM qinglong.runs', 'workers');
    wait_for($node, "SELECT count(*) > $runs + 1 FROM qinglong.runs", 't', db => 'workers', name => "$name: and schedule");
    return;
}

sub whole {
    my ($node, $name) = @_;
    is(value($node, 'SELECT t.consistent()', $_), 't', "$name: all counts agree, and ql_check() finds nothing ($_)") for qw(postgres workers);
    is(value($node, 'SELECT count(*) - count(DISTINCT (trigger_id, scheduled_for_ms)) FROM qinglong.runs', $_), 0, "$name: each occurrence once ($_)")
        for qw(postgres workers);
    is(value($node, 'SELECT (next_fire_at_ms - at) / 1000 - admitted_total - skipped_total - coalesced_total FROM qinglong.trigger_schedules, public.first', 'workers'),
        0, "$name: each second is admitted or counted");
    return;
}

# The old primary is there again and does nothing, while the new one admits three more occurrences.
sub revived {
    my ($old, $new, $name, $processes_left) = @_;
    my $print = 'SELECT t.fingerprint()';
    my $before = value($old, $print, 'workers');
    my ($rc, $out, $err) = $old->psql('workers', "SELECT qinglong.ql_claim('x')");
    like($err, qr/read-only|recovery/, "$name: a replica may not claim");
    my $runs = value($new, 'SELECT count(*) FROM qinglong.runs', 'workers');
    wait_for($new, "SELECT count(*) > $runs + 2 FROM qinglong.runs", 't', db => 'workers', name => "$name: the promoted server goes on");
    is(value($old, $processes), $processes_left, "$name: no scheduler");
    is(value($old, "SELECT next_fire_at_ms < t.now_ms() - 2000 FROM qinglong.trigger_schedules WHERE trigger_id = 'each-second'", 'workers'),
        't', "$name: though there is work");
    is(value($old, $print, 'workers'), $before, "$name: nothing was written");
    return;
}

# --- synchronous, remote_apply ---
my ($primary, $standby) = pair('sync');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\nsynchronous_commit = remote_apply\n");
$primary->reload;
wait_for($primary, 'SELECT sync_state FROM pg_stat_replication', 'sync');
at_work($primary, 'primary');
is(value($standby, $processes), 0, 'standby: no process of the extension');
is(value($standby, 'SELECT ready, code FROM qinglong.ql_readiness()'), 'f|server_not_writable_primary', 'standby: and not ready');
is(value($primary, $timeline), 1, 'timeline 1');

# An admission is committed, and its answer is lost.
due($primary, 'answered');
claim($primary, 'answered', 60000);
my $proxy = LossyProxy->new($primary);
$proxy->lose('answer', 'COMMIT');
my ($rc, $out, $err) = $proxy->psql(admit('answered'));
is("$rc $out", "2 admitted\n", 'admitted, perhaps');
is($proxy->lost, 'lost the answer: COMMIT', 'its COMMIT was carried out, the answer was lost');
is(value($standby, "SELECT t.state('answered')"), "1 1 2, $admitted", 'the standby has it');
$proxy->stop;

# A claim whose holder lives on, and one whose holder does not.
due($primary, 'carried');
claim($primary, 'carried', 60000);
due($primary, 'held');
claim($primary, 'held', 12000);
my $lease = "SELECT claim_owner, claim_token, claim_version, claim_expires_at_ms FROM qinglong.trigger_schedules WHERE trigger_id = 'held'";
is(value($standby, $lease), value($primary, $lease), 'the claim is on the standby');
is(value($standby, "SELECT t.state('held')"), '0 0 0, claim 1 held, cursor due', 'nothing is admitted');
my ($expires) = value($standby, $lease) =~ /(\d+)$/;

$primary->stop('immediate');
$standby->promote;
is(value($standby, $timeline), 2, 'promoted: timeline 2');
is(value($standby, 'SELECT ready, code FROM qinglong.ql_readiness()'), 't|ready', 'promoted: not held, the identity is the same');
is(value($standby, "SELECT count(*), $expires - t.now_ms() > 0 FROM qinglong.ql_claim('early')"), '0|t', 'promoted: within the lease nobody takes over');
is(value($standby, "SELECT t.state('held')"), '0 0 0, claim 1 held, cursor due', 'promoted: still the old claim');
my @replicas = replicas($standby);
($rc, $out, $err) = $standby->psql('postgres', join '; ', admit('carried'));
is("$rc $out$err", '0 admitted', 'promoted: who holds a claim may use it here');
is(value($standby, "SELECT t.state('carried')"), "1 1 2, $admitted", 'promoted: once');
at_work($standby, 'promoted');

wait_for($standby, "SELECT t.state('held')", '1 1 2, claim 2 clear, cursor ahead', name => 'promoted: taken over, with the next claim version');
is(finish($standby, @replicas), 1, 'promoted: by one of two replicas; there was nothing else');
is(value($standby, "SELECT created_at_ms >= $expires FROM qinglong.runs WHERE trigger_id = 'held'"), 't', 'promoted: after the end of the lease');
is(value($standby, "SELECT t.state('answered')"), "1 1 2, $admitted", 'promoted: the unanswered admission stands');
is(value($standby, 'SELECT count(*) FROM qinglong.recovery_candidates()'), 0, 'promoted: and is nothing to recover');
for my $id (qw(held answered carried)) {
    ($rc, $out, $err) = $standby->psql('postgres', join '; ', admit($id));
    is("$rc $out$err", '0 raced', "promoted: the old claim of $id is worth nothing any more");
}
is(value($standby, 'SELECT * FROM t.counts()'), '3|3|6|0', 'promoted: three Runs for three occurrences');
whole($standby, 'promoted');

$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$primary->set_standby_mode;
$primary->start;
revived($primary, $standby, 'old primary in recovery', 0);
$_->stop for $primary, $standby;

# --- asynchronous: what was not yet sent is lost, and admitted anew ---
($primary, $standby) = pair('async');
due($primary, 'kept');
claim($primary, 'kept', 60000);
value($primary, join '; ', admit('kept'));
at_work($primary, 'async primary');
due($primary, 'claimed');
claim($primary, 'claimed', 12000);
due($primary, 'due');
$primary->wait_for_catchup($standby);
value($standby, "ALTER SYSTEM SET primary_conninfo = ''");
$standby->reload;
wait_for($standby, 'SELECT count(*) FROM pg_stat_wal_receiver', 0, name => 'the standby receives no more');
my $have = value($standby, 'SELECT count(*) FROM qinglong.runs', 'workers');

is(value($primary, join '; ', admit('claimed')), 'admitted', 'a claim that the standby has is admitted');
claim($primary, 'due', 60000);
is(value($primary, join '; ', admit('due')), 'admitted', 'another trigger is claimed and admitted');
wait_for($primary, "SELECT count(*) > $have + 2 FROM qinglong.runs", 't', db => 'workers', name => 'and workers admit as well');
$primary->stop('immediate');
$standby->promote;

is(value($standby, "SELECT t.state('kept')"), "1 1 2, $admitted", 'promoted: what was sent is there');
is(value($standby, "SELECT t.state('claimed')"), '0 0 0, claim 1 held, cursor due', 'promoted: an admission is lost, its claim is there');
is(value($standby, "SELECT t.state('due')"), '0 0 0, claim 0 clear, cursor due', 'promoted: a claim and its admission are lost');
@replicas = replicas($standby);
wait_for($standby, "SELECT t.state('claimed')", '1 1 2, claim 2 clear, cursor ahead', name => 'promoted: admitted after the lease');
wait_for($standby, "SELECT t.state('due')", "1 1 2, $admitted", name => 'promoted: admitted');
is(finish($standby, @replicas), 2, 'promoted: no more than the two that were lost');
at_work($standby, 'async promoted');
whole($standby, 'async promoted');

# The old primary, fenced by its configuration, still has what was lost.
$primary->append_conf('postgresql.conf', 'default_transaction_read_only = on');
$primary->start;
revived($primary, $standby, 'old primary, read-only', 1);
my $runs = 'SELECT trigger_id, idempotency_key, id FROM qinglong.runs ORDER BY 1, 2';
my %here = map { (split /\|/)[1, 2] } split /\n/, value($standby, $runs);
my %lost = map { (split /\|/)[1, 2] } split /\n/, value($primary, $runs);
is_deeply([ sort keys %here ], [ sort keys %lost ], 'the same idempotency keys on both timelines');
is_deeply([ map { /cron:v1:(\w+):/ } grep { $here{$_} ne $lost{$_} } sort keys %lost ], [qw(claimed due)], 'other Runs for the two that were lost');
is(value($primary, "SELECT count(*) > $have + 2 FROM qinglong.runs", 'workers'), 't', 'the workers\' tail, too, is on the old timeline only');
$_->stop for $primary, $standby;
done_testing();
