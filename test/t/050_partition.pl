# A replica and the server in two network namespaces; the router between them drops every packet without a word. The replica
# is isolated past its lease, somebody else takes over, and when the network heals its late work writes nothing.
use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use QL;

my $bound = IPC::Run::timeout(120);
my ($orders, $said) = ('', '');
my $network = IPC::Run::start(['test/lib/partition'], '<', \$orders, '>', \$said, $bound);
$network->pump until $said =~ /^server (\d+) client (\d+)$/m;
my %host = (server => $1, client => $2);

sub at { my ($host) = @_; return ('nsenter', '--target', $host{$host}, '--user', '--net', '--preserve-credentials') }

sub network {
    my ($order) = @_;
    $said = '';
    $orders .= "$order\n";
    $network->pump until $said =~ /^done $order$/m;
    return $said =~ /^vanished (\d+)$/m ? $1 : undef;
}

# The server runs on its host. PostgreSQL refuses root, which we are in the user namespace, so it is in one more.
my $node = ql_node('server', workers => 0, start => 0, conf => "listen_addresses = '10.77.1.2'\n");
$node->append_conf('pg_hba.conf', "host all all 10.77.2.2/32 trust\n");
sub start_there {
    system_or_bail(at('server'), 'unshare', '--user', "--map-user=$<", '--map-group=' . ($( + 0),
        'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start');
    $node->_update_pid(1);
}
start_there();
create_extension($node);
value($node, slurp_file("$ENV{QL_ROOT}/test/lib/runtime.psql"));

# A replica on the other host: psql, to which statements are given one by one.
sub replica {
    my ($owner, $options) = @_;
    my $self = { in => '', out => '' };
    $self->{run} = IPC::Run::start([ at('client'), 'psql', '-X', '-q', '-A', '-t', '-d',
            'host=10.77.1.2 port=' . $node->port . " user=postgres dbname=postgres application_name=$owner options='$options'" ],
        '<', \$self->{in}, '>', \$self->{out}, '2>&1', $bound);
    return $self;
}
sub give { my ($replica, $sql) = @_; $replica->{in} .= "$sql\n"; $replica->{run}->pump_nb; return }
sub answer {
    my ($replica, $what) = @_;
    $replica->{run}->pump until $replica->{out} =~ $what || !$replica->{run}->pumpable;
    (my $out = $replica->{out}) =~ s/\s+$//;
    $replica->{out} = '';
    return $out;
}
my $row = sub { my ($id) = @_; return "FROM qinglong.trigger_schedules WHERE trigger_id = '$id'" };
sub due { my ($id) = @_; return value($node, "SELECT t.publish('$id', '0 0 29 2 *', 'fire_once', 951782400000)") }
my $heir = "CALL qinglong.ql_schedule_once('heir')";
my $done = qr/,1,0,0,1,0,0,f\)$/; # claimed and admitted
my $session = sub { my ($owner) = @_; return "SELECT state FROM pg_stat_activity WHERE application_name = '$owner'" };

# --- between claim and admission ---
due('late');
my $replica = replica('isolated', '');
give($replica, "SELECT c AS claim FROM qinglong.ql_claim('isolated', 2000) AS c \\gset\nSELECT 'claimed by', pg_backend_pid();");
my ($pid) = answer($replica, qr/claimed by\|\d+\n/) =~ /(\d+)$/;
is(value($node, "SELECT client_addr FROM pg_stat_activity WHERE pid = $pid"), '10.77.2.2', 'a replica on another host');
is(value($node, "SELECT t.state('late')"), '0 0 0, claim 1 held, cursor due', 'has a claim');
my $expires = value($node, 'SELECT claim_expires_at_ms ' . $row->('late'));

my $before = network('count');
network('cut');
give($replica, "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT status FROM qinglong.ql_admit(:'claim');\nCOMMIT;\nSELECT 'asked by', pg_backend_pid();");
wait_for($node, $heir, $done, name => 'another replica takes over');
is(value($node, "SELECT t.state('late')"), '1 1 2, claim 2 clear, cursor ahead', 'and admits');
is(value($node, "SELECT created_at_ms >= $expires FROM qinglong.runs WHERE trigger_id = 'late'"), 't', 'after the end of the lease');
cmp_ok(network('count'), '>', $before, 'packets have vanished: ' . (network('count') - $before));
$replica->{run}->pump_nb;
is($replica->{out}, '', 'the isolated replica has no answer yet');
is(value($node, $session->('isolated')), 'idle', 'and its session still waits for it');
network('heal');
is(answer($replica, qr/asked by\|\d+\n/), "raced\nasked by|$pid", 'healed: over the same connection its late admission is raced');
is(value($node, "SELECT t.state('late')"), '1 1 2, claim 2 clear, cursor ahead', 'nothing was written');

# --- within its admission: the server ends the transaction that nobody goes on with ---
due('open');
my $other = replica('silent', '-c idle_in_transaction_session_timeout=10s');
give($other, "SELECT c AS claim FROM qinglong.ql_claim('silent', 2000) AS c \\gset\nBEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT status FROM qinglong.ql_admit(:'claim');");
is(answer($other, qr/\w+\n/), 'admitted', 'another replica has admitted, and not yet committed');
$before = network('count');
network('cut');
give($other, "COMMIT;");
wait_for($node, 'SELECT claim_expires_at_ms <= t.now_ms() ' . $row->('open'), 't', name => 'its lease has ended');
is(value($node, $session->('silent')), 'idle in transaction', 'its transaction has not');
like(value($node, $heir), qr/,0,0,0,0,0,0,f\)$/, 'so its row is passed over');
wait_for($node, $session->('silent'), '', name => 'the server ends that session');
is(value($node, "SELECT t.state('open')"), '0 0 0, claim 1 held, cursor due', 'nothing of it remains');
like(value($node, $heir), $done, 'another replica takes over');
cmp_ok(network('count'), '>', $before, 'packets have vanished: ' . (network('count') - $before));
network('heal');
$other->{run}->finish;
like($other->{out}, qr/connection/i, 'healed: the replica learns that its connection is gone'); # in words that depend on which packet comes first
is(scalar(log_lines($node, qr/FATAL:  terminating connection due to idle-in-transaction timeout/)), 1, 'which the server has ended');
is(value($node, "SELECT t.state('open')"), '1 1 2, claim 2 clear, cursor ahead', 'one Run');

is(value($node, 'SELECT t.consistent()'), 't', 'all counts agree, and ql_check() finds nothing');
no_errors_in_log($node, undef, except => qr/idle-in-transaction timeout/);
give($replica, '\q');
$replica->{run}->finish;
$node->stop;
$network->finish;
done_testing();
