# The proxy test/lib/lossy_proxy.py before a node, for TAP tests.
#
#   my $proxy = LossyProxy->new($node);
#   $proxy->lose('answer', 'COMMIT');                   # or 'request'
#   my ($rc, $out, $err) = $proxy->psql('BEGIN', ..., 'COMMIT');
#   is($proxy->lost, 'lost the answer: COMMIT');        # waits until it has happened
#   $proxy->go_on;                                      # until then nobody connects
package LossyProxy;

use strict;
use warnings FATAL => 'all';
use IPC::Run ();
use PostgreSQL::Test::Utils ();

sub new {
    my ($class, $node) = @_;
    my $self = bless { node => $node, dir => PostgreSQL::Test::Utils::tempdir_short(), in => '', out => '' }, $class;
    my $socket = '.s.PGSQL.' . $node->port;
    $self->{run} = IPC::Run::start([ '/usr/bin/python3', 'test/lib/lossy_proxy.py', "$self->{dir}/$socket", $node->host . "/$socket" ],
        '<', \$self->{in}, '>', \$self->{out}, IPC::Run::timeout(300));
    $self->_said(qr/^ready$/m);
    return $self;
}

sub connstr {
    my ($self, $db) = @_;
    return "host=$self->{dir} port=" . $self->{node}->port . ' dbname=' . ($db // 'postgres');
}

# Each statement as a message of its own; ends at an error.
sub psql {
    my ($self, @statements) = @_;
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', $self->connstr, map { ('-c', $_) } @statements ],
        '>', \$out, '2>', \$err, IPC::Run::timeout(60));
    return ($? >> 8, $out, $err);
}

sub lose {
    my ($self, $which, $word) = @_;
    return $self->_order("$which $word");
}

sub lost {
    my ($self) = @_;
    return $self->_said(qr/^(lost .*)$/m);
}

sub go_on {
    my ($self) = @_;
    return $self->_order('go on');
}

sub stop {
    my ($self) = @_;
    $self->{in} .= "\n";
    return $self->{run}->finish;
}

sub _order {
    my ($self, $order) = @_;
    $self->{in} .= "$order\n";
    $self->_said(qr/^order: \Q$order\E$/m);
    return;
}

sub _said {
    my ($self, $what) = @_;
    $self->{run}->pump until $self->{out} =~ $what;
    my $said = $1;
    $self->{out} = '';
    return $said;
}

1;
