# Every example of the documentation is executed, and prints what is written there (test/lib/docs_run says how).
use strict;
use warnings FATAL => 'all';
use QL;

my @documents = ('README.md', 'CONTRIBUTING.md', sort glob 'docs/*.md');
my @links;

# Background workers in two of the databases only: the other examples are schedulers themselves.
my $node = ql_node('docs', conf => "qinglong_sched.databases = 'readme, operations'\n");
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGUSER} = getpwuid $>;    # node's pg would take it from USER

ok(system(q(node -e 'require("pg")' 2>/dev/null)) == 0, 'node has the module pg')
    || diag('node or its module pg is missing; on Debian: apt-get install nodejs node-pg');
ok(system(q(/usr/bin/python3 -c 'import psycopg' 2>/dev/null)) == 0, 'python has the module psycopg')
    || diag('the module psycopg is missing; on Debian: apt-get install python3-psycopg');

open my $examples, '-|', 'test/lib/docs_run', @documents or die "cannot run test/lib/docs_run: $!";
my ($plan, $last) = (0);
while (my $line = <$examples>) {
    if ($line =~ /^(not )?ok \d+ - (.*)/) {
        $last = ok(!$1, $2);
    }
    elsif ($line =~ /^# (.*)/) {
        diag($1);
    }
    elsif ($line =~ /^1\.\.(\d+)/) {
        $plan = $1;
    }
}
close $examples;
ok($plan > 100, 'all documents were read to their end');

# Links between the documents lead somewhere.
my %text = map { ($_ => slurp_file($_)) } @documents;
my %anchors;
for my $file (@documents) {
    my ($body) = $text{$file} =~ s/^```.*?^```$//gmsr;
    for my $heading ($body =~ /^#+ +(.*)$/gm) {
        my $anchor = lc($heading) =~ s/[^\w\- ]//gr =~ s/ /-/gr;
        $anchors{$file}{$anchor} = 1;
    }
}
for my $file (@documents) {
    my ($folder) = $file =~ m{^(.*/)?};
    while ($text{$file} =~ /\]\(([^)\s]+)\)/g) {
        my ($path, $anchor) = split /#/, $1, 2;
        next if $path =~ /^\w+:/;
        my $target = $path eq '' ? $file : ($folder // '') . $path;
        1 while $target =~ s{[^/]+/\.\./}{};
        my $found = -e $target && (!defined $anchor || $target !~ /\.md$/ || $anchors{$target}{$anchor});
        push @links, "$file: $path" . (defined $anchor ? "#$anchor" : '') if !$found;
    }
}
is(join("\n", @links), '', 'every link leads somewhere');

no_errors_in_log($node, undef, except => qr/ client backend /);
done_testing();
