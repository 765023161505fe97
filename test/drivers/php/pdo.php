<?php
// PHP: PDO with prepared statements of the server's and its own, transactions, COPY, large objects, cursors; then the
// pgsql extension with asynchronous queries.

error_reporting(E_ALL);

function show(string $what, $value): void {
    echo $what, ': ', json_encode($value, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION), "\n";
}

// Shows what the work gives, or the SQLSTATE of its error.
function attempt(string $what, callable $work): void {
    try {
        show($what, $work());
    } catch (PDOException $e) {
        show($what, 'error ' . $e->getCode());
    }
}

function connect(array $options = []): PDO {
    $dsn = sprintf('pgsql:host=%s;port=%s;dbname=%s;application_name=pdo', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'));
    return new PDO($dsn, getenv('PGUSER'), getenv('PGPASSWORD'), $options + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM]);
}

function all(PDO $db, string $sql, array $values = []): array {
    $statement = $db->prepare($sql);
    $statement->execute($values);
    return $statement->fetchAll();
}

function statements(PDO $db): void {
    $db->exec('create table php_pdo (id serial primary key, note text, data bytea)');
    $put = $db->prepare('insert into php_pdo (note) values (:note) returning id');
    for ($n = 0; $n < 10; ++$n) {
        $put->execute([':note' => "note $n"]);
        show("put $n", $put->fetchColumn());
    }
    $get = $db->prepare('select note from php_pdo where id = ?');
    for ($n = 1; $n < 6; ++$n) {
        $get->execute([$n]);
        show("get $n", $get->fetchAll());
    }
    $put = null; // each goes with a DEALLOCATE
    for ($n = 0; $n < 12; ++$n) show("short life $n", all($db, 'select ?::int + 1', [$n]));
    show('still there', [$get->execute([2]), $get->fetchAll()]);
    show('last id', $db->lastInsertId('php_pdo_id_seq'));
    show('columns', [$get->columnCount(), $get->getColumnMeta(0)['native_type']]);
    $inside = $db->prepare('select count(*) from php_pdo where note like ?');
    $db->beginTransaction();
    $inside->execute(['note%']);
    show('in a transaction', $inside->fetchAll());
    $inside = null;
    $db->commit();
}

function types(PDO $db): void {
    $sql = "select ?::timestamptz at time zone 'UTC', ?::date, ?::int[], ?::jsonb, ?::numeric, ?::bool, ?::float8, ?::text";
    $values = ['2024-02-29 12:30Z', '2024-02-29', '{1,NULL,3}', '{"k": [1, null]}', '12345678901234567890.5', 'true', '0.1', null];
    for ($n = 0; $n < 3; ++$n) show("types $n", all($db, $sql, $values));
    $put = $db->prepare('insert into php_pdo (note, data) values (?, ?)');
    $put->bindValue(1, 'bytes');
    $put->bindValue(2, "\x00\xff", PDO::PARAM_LOB);
    $put->execute();
    show('bytea', bin2hex(stream_get_contents(all($db, "select data from php_pdo where note = 'bytes'")[0][0])));
}

function errors(PDO $db): void {
    attempt('syntax', fn() => $db->exec('selec 1'));
    for ($n = 0; $n < 2; ++$n) {
        attempt("division $n", fn() => all($db, 'select 1 / ?::int', [0]));
        attempt("duplicate $n", fn() => all($db, 'insert into php_pdo (id) values (?)', [1]));
        attempt("missing $n", fn() => all($db, 'select * from missing_table where a = ?', [1]));
    }
    attempt('usable', fn() => all($db, 'select ?::int', [1]));
    $again = $db->prepare('select 10 / ?::int');
    foreach ([5, 0, 2] as $n) attempt("again $n", fn() => [$again->execute([$n]), $again->fetchAll()]);
    attempt('deallocate of nobody', fn() => $db->exec('deallocate nobody'));
    attempt('script', fn() => $db->exec("insert into php_pdo (note) values ('half'); select 1 / 0"));
    show('nothing of it', all($db, "select count(*) from php_pdo where note = 'half'"));
}

function transactions(PDO $db): void {
    $db->beginTransaction();
    $db->exec("insert into php_pdo (note) values ('gone')");
    $db->exec('savepoint s');
    attempt('inner', fn() => $db->exec('insert into php_pdo (id) values (1)'));
    attempt('aborted', fn() => all($db, 'select ?::int', [1]));
    $db->exec('rollback to s');
    show('inside', [$db->inTransaction(), all($db, "select count(*) from php_pdo where note = 'gone'")]);
    $db->rollBack();
    show('outside', [$db->inTransaction(), all($db, "select count(*) from php_pdo where note = 'gone'")]);
    $db->beginTransaction();
    $statement = $db->prepare("declare portion cursor for select generate_series(1, 100)");
    $statement->execute();
    show('fetched', all($db, 'fetch 5 from portion'));
    $scroll = $db->prepare('select generate_series(1, 50)', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $scroll->execute();
    show('scrolled', [$scroll->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 40), $scroll->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR)]);
    $scroll = null;
    $number = $db->pgsqlLOBCreate();
    $stream = $db->pgsqlLOBOpen($number, 'w');
    fwrite($stream, str_repeat('large object ', 5000));
    fclose($stream);
    $db->commit();
    $db->beginTransaction();
    show('large object', strlen(stream_get_contents($db->pgsqlLOBOpen($number, 'r'))));
    show('unlinked', $db->pgsqlLOBUnlink($number));
    $db->commit();
}

function copies(PDO $db): void {
    $rows = array_map(fn($n) => "$n\tcopied", range(1000, 1499));
    show('copied in', $db->pgsqlCopyFromArray('php_pdo', $rows, "\t", '\\N', 'id,note'));
    $out = $db->pgsqlCopyToArray('php_pdo', "\t", '\\N', 'id,note');
    show('copied out', [count($out), end($out)]);
    attempt('copy that fails', fn() => $db->pgsqlCopyFromArray('php_pdo', ["no number\tx"], "\t", '\\N', 'id,note'));
    attempt('usable', fn() => all($db, 'select ?::int', [1]));
}

function several(): void {
    $all = array_map(fn() => connect(), range(1, 6));
    $statements = [];
    foreach ($all as $n => $db) $statements[$n] = $db->prepare("select $n + ?::int");
    for ($turn = 0; $turn < 4; ++$turn) {
        foreach ($statements as $n => $statement) {
            $statement->execute([$turn]);
            show("turn $turn of $n", $statement->fetchAll());
        }
    }
    // A change of the table under somebody's statement.
    $all[3]->beginTransaction(); // so that all the rest happens on one server of two
    $all[0]->exec('create table php_ddl as select 1 as a');
    $star = $all[1]->prepare('select * from php_ddl');
    for ($n = 0; $n < 2; ++$n) show("before $n", [$star->execute(), $star->fetchAll()]);
    $all[0]->exec("alter table php_ddl add b text default 'x'");
    attempt('after alter', fn() => [$star->execute(), $star->fetchAll()]);
    attempt('fresh', fn() => all($all[2], 'select * from php_ddl'));
    $all[0]->exec('drop table php_ddl');
}

function extension(): void {
    $c = pg_connect(sprintf('host=%s port=%s dbname=%s user=%s password=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'), getenv('PGUSER'), getenv('PGPASSWORD')));
    show('parameters', pg_fetch_all(pg_query_params($c, 'select $1::int + 1 as sum, $2::text as t', [41, 'x'])));
    pg_prepare($c, 'mine', 'select $1::int * 2 as d');
    for ($n = 0; $n < 4; ++$n) show("mine $n", pg_fetch_all(pg_execute($c, 'mine', [$n])));
    pg_send_query($c, 'select 1; select 1/0; select 3');
    $saw = [];
    while ($result = pg_get_result($c)) $saw[] = pg_result_error_field($result, PGSQL_DIAG_SQLSTATE) ?: pg_fetch_all($result);
    show('sent', $saw);
    pg_send_query($c, 'select pg_sleep(20)');
    usleep(200000);
    show('cancel', pg_cancel_query($c));
    show('usable', pg_fetch_all(pg_query($c, 'select 1 as one')));
    show('encoding', [pg_client_encoding($c), pg_set_client_encoding($c, 'LATIN1'), pg_client_encoding($c), bin2hex(pg_fetch_result(pg_query($c, 'select chr(233)'), 0, 0))]);
    show('converted', pg_convert($c, 'php_pdo', ['note' => "it's"]));
    show('ping', pg_ping($c));
    show('status', [pg_parameter_status($c, 'server_encoding'), pg_transaction_status($c) === PGSQL_TRANSACTION_IDLE]);
    pg_close($c);
}

foreach ([[], [PDO::ATTR_EMULATE_PREPARES => true], [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]] as $options) {
    show('options', array_values($options));
    $db = connect($options);
    statements($db);
    types($db);
    errors($db);
    transactions($db);
    copies($db);
    $db->exec('drop table php_pdo');
}
several();
$db->exec('create table php_pdo (id serial primary key, note text, data bytea)');
extension();
$db->exec('drop table php_pdo');
show('end', 'reached');
