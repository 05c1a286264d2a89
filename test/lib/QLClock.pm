# The clock of the servers started with fake() is ahead of the real one by offset() seconds, at once and in all of their
# processes.
#
#   offset(86400);
#   fake(sub { $node->start });
package QLClock;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use Fcntl qw(O_CREAT O_RDWR);
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(offset fake);

my $dir = PostgreSQL::Test::Utils::tempdir();
my $cc  = (grep { !system("$_ --version >/dev/null 2>&1") } qw(cc gcc clang-14))[0];
plan skip_all => 'no C compiler' if !defined $cc;
system_or_bail($cc, qw(-shared -fPIC -O1 -Wall -Werror -o), "$dir/clock_offset.so", dirname(__FILE__) . '/clock_offset.c');
sysopen my $file, "$dir/offset", O_CREAT | O_RDWR or die $!;

sub offset {
    my ($seconds) = @_;
    sysseek $file, 0, 0 or die $!;
    syswrite($file, pack 'q', $seconds) == 8 or die $!;
    return;
}

sub fake {
    my ($action) = @_;
    local $ENV{LD_PRELOAD}        = "$dir/clock_offset.so";
    local $ENV{CLOCK_OFFSET_FILE} = "$dir/offset";
    return $action->();
}

1;
