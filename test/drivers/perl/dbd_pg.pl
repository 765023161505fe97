# DBD::Pg: statements prepared by the server after some turns, by name and by hand, placeholders, savepoints, COPY,
# asynchronous queries with cancel, arrays and bytea, large objects.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:pg_types :async);
use JSON::PP;

$| = 1;
my $json = JSON::PP->new->canonical->allow_nonref->allow_bignum;

sub show {
    my ($what, $value) = @_;
    print "$what: ", $json->encode($value), "\n";
}

# Shows what the work gives, or the SQLSTATE of its error.
sub attempt {
    my ($what, $work) = @_;
    my $value = eval { $work->() };
    show($what, $@ ? 'error ' . ($DBI::state || $@) : $value);
}

sub connected {
    my $dsn = "dbi:Pg:host=$ENV{PGHOST};port=$ENV{PGPORT};dbname=$ENV{PGDATABASE};application_name=dbd";
    return DBI->connect($dsn, $ENV{PGUSER}, $ENV{PGPASSWORD}, {RaiseError => 1, PrintError => 0, AutoCommit => 1, @_});
}

sub statements {
    my $db = shift;
    $db->do('create table perl_pg (id serial primary key, note text, data bytea)');
    my $put = $db->prepare('insert into perl_pg (note) values (?) returning id');
    for my $n (0 .. 9) {
        $put->execute("note $n");
        show("put $n", $put->fetchall_arrayref);
    }
    my $get = $db->prepare('select note from perl_pg where id = ?');
    for my $n (1 .. 6) {
        $get->execute($n);
        show("get $n", $get->fetchall_arrayref);
    }
    $get->finish;
    undef $put;    # its DEALLOCATE
    show("short life $_", $db->selectall_arrayref('select ?::int + 1', undef, $_)) for 0 .. 7;
    $get->execute(2);
    show('still there', $get->fetchall_arrayref);
    my $named = $db->prepare('select $1::int * 2, $2::text', {pg_prepare_now => 1});
    for my $n (1 .. 3) {
        $named->execute($n, "x");
        show("now $n", $named->fetchall_arrayref);
    }
    show('name', $named->{pg_prepare_name} =~ /^dbdpg_p\d+_/ ? 1 : 0);
    my $client_side = $db->prepare('select ?::int', {pg_server_prepare => 0});
    $client_side->execute($_), show("by the client $_", $client_side->fetchall_arrayref) for 1 .. 2;
    my $many = $db->prepare('insert into perl_pg (note) values (?)');
    show('array', $many->execute_array({ArrayTupleStatus => \my @status}, [map {"many $_"} 1 .. 20]));
    show('rows', $db->do("update perl_pg set note = 'm' where note like 'many%'"));
    show('last id', $db->last_insert_id(undef, undef, 'perl_pg', undef));
    show('columns', [map { $_->{COLUMN_NAME} } @{$db->column_info(undef, 'public', 'perl_pg', '%')->fetchall_arrayref({})}]);
    show('keys', [$db->primary_key(undef, 'public', 'perl_pg')]);
}

sub types {
    my $db = shift;
    my $get = $db->prepare("select ?::timestamptz at time zone 'UTC', ?::date, ?::int[], ?::jsonb, ?::numeric, ?::bool, ?::float8, ?::text");
    for my $n (0 .. 2) {
        $get->execute('2024-02-29 12:30Z', '2024-02-29', [1, undef, 3], '{"k": [1, null]}', '12345678901234567890.5', 1, 0.1, undef);
        my $row = $get->fetchrow_arrayref;
        $_ = defined $_ && !ref $_ ? "$_" : $_ for @$row;
        show("types $n", $row);
    }
    my $put = $db->prepare("insert into perl_pg (note, data) values ('bytes', ?)");
    $put->bind_param(1, "\x00\xff", {pg_type => PG_BYTEA});
    $put->execute;
    show('bytea', unpack 'H*', $db->selectrow_array("select data from perl_pg where note = 'bytes'"));
}

sub errors {
    my $db = shift;
    attempt('syntax', sub { $db->do('selec 1') });
    for my $n (0, 1) {
        attempt("division $n", sub { $db->selectall_arrayref('select 1 / ?::int', undef, 0) });
        attempt("duplicate $n", sub { $db->do('insert into perl_pg (id) values (?)', undef, 1) });
        attempt("missing $n", sub { $db->selectall_arrayref('select * from missing_table where a = ?', undef, 1) });
    }
    my $again = $db->prepare('select 10 / ?::int');
    for my $n (5, 0, 2) {
        attempt("again $n", sub { $again->execute($n); $again->fetchall_arrayref });
    }
    attempt('deallocate of nobody', sub { $db->do('deallocate nobody') });
    my @notices;
    local $SIG{__WARN__} = sub { push @notices, grep {/heard/} @_ };
    $db->do("do \$\$begin raise warning 'heard'; end\$\$");
    show('notices', \@notices);
}

sub transactions {
    my $db = shift;
    $db->begin_work;
    $db->do("insert into perl_pg (note) values ('gone')");
    $db->pg_savepoint('s');
    attempt('inner', sub { $db->do('insert into perl_pg (id) values (1)') });
    attempt('aborted', sub { $db->selectall_arrayref('select ?::int', undef, 1) });
    $db->pg_rollback_to('s');
    show('inside', $db->selectall_arrayref("select count(*) from perl_pg where note = 'gone'"));
    $db->pg_release('s');
    $db->rollback;
    show('outside', $db->selectall_arrayref("select count(*) from perl_pg where note = 'gone'"));
    $db->begin_work;
    $db->do('declare portion cursor for select generate_series(1, 100)');
    show('fetched', $db->selectcol_arrayref('fetch 5 from portion'));
    my $number = $db->pg_lo_creat($db->{pg_INV_WRITE});
    my $fd = $db->pg_lo_open($number, $db->{pg_INV_WRITE});
    $db->pg_lo_write($fd, 'large object ' x 1000, 13000);
    $db->pg_lo_lseek($fd, 13, 0);
    $db->pg_lo_read($fd, my $read, 12);
    show('large object', $read);
    $db->pg_lo_unlink($number);
    $db->commit;
}

sub copies {
    my $db = shift;
    $db->do('copy perl_pg (id, note) from stdin');
    $db->pg_putcopydata("$_\tcopied\n") for 1000 .. 1499;
    show('copied in', $db->pg_putcopyend);
    $db->do('copy (select id, note from perl_pg where id >= 1000 order by 1) to stdout');
    my ($count, $line, $last) = (0, '', '');
    while ($db->pg_getcopydata(\$line) >= 0) { ++$count; $last = $line }
    show('copied out', [$count, $last]);
    attempt('copy that fails', sub { $db->do('copy perl_pg (id) from stdin'); $db->pg_putcopydata("no number\n"); $db->pg_putcopyend });
    attempt('usable', sub { $db->selectall_arrayref('select ?::int', undef, 1) });
}

sub asynchronous {
    my $db = shift;
    my $slow = $db->prepare('select pg_sleep(0.05), ?::int', {pg_async => PG_ASYNC});
    $slow->execute(7);
    1 until $db->pg_ready;
    $db->pg_result;
    show('asynchronous', $slow->fetchall_arrayref->[0][1]);
    $db->do('select pg_sleep(20)', {pg_async => PG_ASYNC});
    select undef, undef, undef, 0.2;
    show('cancel', $db->pg_cancel ? 1 : 0);
    attempt('usable after cancel', sub { $db->selectall_arrayref('select ?::int', undef, 1) });
    show('ping', $db->ping);
}

sub several {
    my @all = map { connected() } 0 .. 5;
    my @statements = map { $all[$_]->prepare("select $_ + ?::int") } 0 .. 5;
    for my $turn (0 .. 4) {
        $statements[$_]->execute($turn), show("turn $turn of $_", $statements[$_]->fetchall_arrayref) for 0 .. 5;
    }
    $all[3]->begin_work;    # so that all the rest happens on one server of two
    $all[3]->do('select 1');
    $all[0]->do('create table perl_ddl as select 1 as a');
    my $star = $all[1]->prepare('select * from perl_ddl');
    $star->execute, show("before $_", $star->fetchall_arrayref) for 0 .. 2;
    $all[0]->do('alter table perl_ddl alter a type text');
    attempt('after alter', sub { $star->execute; $star->fetchall_arrayref });
    attempt('fresh', sub { $all[2]->selectall_arrayref('select * from perl_ddl') });
    $all[0]->do('drop table perl_ddl');
    $all[3]->rollback;
    $_->disconnect for @all;
}

# Once as it is, once with every statement prepared the first time.
for my $switch (2, 1) {
    my $db = connected();
    $db->{pg_switch_prepared} = $switch;
    show('switch', $switch);
    $_->($db) for \&statements, \&types, \&errors, \&transactions, \&copies, \&asynchronous;
    $db->do('drop table perl_pg');
    $db->disconnect;
}
several();
show('end', 'reached');
