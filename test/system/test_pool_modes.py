"""When a server connection is lent to a client and when it comes back."""

import threading

import pytest

import wire
from harness import eventually, takes


def backend_of(client):
    return client.value("select pg_backend_pid()")


def test_session_mode_keeps_the_server_until_the_client_goes(start):
    proxy = start(default_pool_size=1)
    first = proxy.connect()
    pid = backend_of(first)
    second = proxy.connect()
    second.send(wire.query("select pg_backend_pid()"))
    assert second.is_silent(0.3)
    first.terminate()
    assert second.ready().value == pid


def test_session_mode_resets_the_server_between_clients(start):
    proxy = start(default_pool_size=1)
    with proxy.connect() as first:
        first.query("set work_mem = '77MB'; prepare mine as select 1; create temp table mine_too (a int); listen mine")
        first.terminate()
    second = proxy.connect()
    assert second.value("show work_mem") != "77MB"
    assert second.value("select count(*) from pg_prepared_statements") == "0"
    assert second.value("select count(*) from pg_class where relname = 'mine_too'") == "0"
    assert second.query("select pg_listening_channels()").rows == []


def test_transaction_mode_shares_one_server_among_clients(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    clients = [proxy.connect() for _ in range(5)]
    assert len({backend_of(c) for c in clients for _ in range(3)}) == 1


def test_transaction_mode_keeps_the_server_for_a_whole_transaction(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    pid = backend_of(first)
    second.send(wire.query("select pg_backend_pid()"))
    assert second.is_silent(0.3)
    first.query("commit")
    assert second.ready().value == pid


def test_a_failed_transaction_keeps_its_server_until_rollback(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    answer = first.ask(wire.query("select 1/0"))
    assert (answer.codes, answer.status) == (["22012"], "E")
    second.send(wire.query("select 2"))
    assert second.is_silent(0.2)
    assert first.fails("select 3")["C"] == "25P02"
    first.query("rollback")
    assert second.ready().value == "2"


def test_two_transactions_at_once_use_two_servers(start):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    second.query("begin")
    assert backend_of(first) != backend_of(second)


def test_statement_mode_refuses_transaction_blocks(start):
    proxy = start(pool_mode="statement")
    client = proxy.connect()
    assert client.value("select 1") == "1"
    client.send(wire.query("begin"))
    assert client.last_words()["M"] == "transaction blocks not allowed in statement pooling mode"
    proxy.wait_log("closing because: transaction blocks not allowed in statement pooling mode")


def test_statement_mode_allows_several_statements_in_one_query(start):
    proxy = start(pool_mode="statement")
    assert proxy.connect().query("select 1; select 2").rows == [("1",), ("2",)]


def test_the_mode_of_a_user_beats_that_of_the_database_and_the_file(start):
    proxy = start(
        pool_mode="session", databases={"app": "pool_mode=statement"}, users={"other": "pool_mode=transaction"}
    )
    with proxy.connect() as client:
        client.send(wire.query("begin"))
        assert "statement pooling" in client.last_words()["M"]
    proxy.connect(user="other").query("begin; commit")
    assert proxy.pool(user="app")["pool_mode"] == "statement"
    assert proxy.pool(user="other")["pool_mode"] == "transaction"


def test_waiting_clients_are_served_in_the_order_they_came(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    holder = proxy.connect()
    holder.query("begin")
    clients = [proxy.connect() for _ in range(6)]
    for number, client in enumerate(clients):
        client.send(wire.query("insert into scratch values (%d)" % number))
        eventually(lambda n=number: proxy.pool()["cl_waiting"] == n + 1)
    holder.query("commit")
    for client in clients:
        client.ready()
    assert [r for (r,) in holder.query("select id from scratch order by ctid").rows] == list("012345")


def test_the_server_used_last_is_used_first(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, worker_threads=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    second.query("begin")
    pid = backend_of(second)
    first.query("commit")
    second.query("commit")
    assert {backend_of(first) for _ in range(4)} == {pid}


def test_round_robin_uses_idle_servers_in_turn(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, server_round_robin=1, worker_threads=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    second.query("begin")
    first.query("commit")
    second.query("commit")
    pids = [backend_of(first) for _ in range(4)]
    assert pids[0] != pids[1] and pids[:2] == pids[2:]


def test_reset_query_always_resets_in_transaction_mode_too(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, server_reset_query_always=1)
    client = proxy.connect()
    client.query("set work_mem = '77MB'")
    assert client.value("show work_mem") != "77MB"


def test_without_it_transaction_mode_resets_when_something_was_left(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    pid = backend_of(client)
    client.query("set work_mem = '77MB'")
    assert client.value("show work_mem") != "77MB"
    assert backend_of(client) == pid


def test_an_empty_reset_query_is_not_run(start):
    proxy = start(default_pool_size=1, server_reset_query="")
    with proxy.connect() as client:
        client.query("set work_mem = '77MB'")
        client.terminate()
    assert proxy.connect().value("show work_mem") == "77MB"


def test_a_client_that_leaves_in_a_transaction_takes_its_server_along(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    with proxy.connect() as client:
        client.query("begin; insert into scratch values (1)")
        pid = backend_of(client)
        client.terminate()
    other = proxy.connect()
    assert backend_of(other) != pid
    assert other.value("select count(*) from scratch") == "0"
    proxy.wait_log("closing because: client disconnect while server was not ready")


def test_connect_query_runs_once_per_server_before_first_use(start):
    proxy = start(
        pool_mode="transaction",
        default_pool_size=1,
        databases={"app": "connect_query='set work_mem = ''55MB''; insert into scratch values (7)'"},
    )
    for _ in range(3):
        assert proxy.connect().value("show work_mem") == "55MB"
    assert proxy.connect().value("select count(*) from scratch where id = 7") == "1"


def test_a_failing_connect_query_is_only_logged(start):
    proxy = start(databases={"app": "connect_query='select no_such_column'"})
    assert proxy.connect().value("select 1") == "1"
    proxy.wait_log('column "no_such_column" does not exist')


def test_databases_with_the_same_backend_do_not_share_servers(start):
    proxy = start(pool_mode="transaction", databases={"app": "", "alias": "", "forced": ""})
    proxy.databases = {"app": "", "alias": proxy.target("app"), "forced": proxy.target("app", "user=other")}
    proxy.reload()
    pids = {name: backend_of(proxy.connect(database=name)) for name in proxy.databases}
    assert len(set(pids.values())) == 3
    assert proxy.connect(database="forced").value("select current_user") == "other"


def test_unknown_names_use_the_star_entry(start):
    proxy = start(databases={"*": ""})
    assert proxy.connect(database="anything").value("select current_database()") == "app"
    proxy.wait_log("registered new auto-database: anything")
    assert [r["name"] for r in proxy.show("databases", name="anything")] == ["anything"]


def test_each_user_has_a_pool_of_its_own(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    assert proxy.connect(user="app").value("select current_user") == "app"
    assert proxy.connect(user="other").value("select current_user") == "other"
    assert {r["user"] for r in proxy.show("pools", database="app")} == {"app", "other"}


def test_the_first_login_waits_for_the_servers_parameters(start, cluster):
    proxy = start()
    client = proxy.connect()
    assert client.parameters["server_version"] == cluster.value("show server_version")
    assert client.parameters["server_encoding"] == "UTF8"
    assert client.parameters["integer_datetimes"] == "on"
    assert client.key[0] < 128


def test_a_server_that_cannot_be_logged_in_to_is_reported_at_login(start):
    proxy = start(databases={"app": ""})
    proxy.databases["lost"] = proxy.target("no_such_database")
    proxy.reload()
    error = proxy.refusal(database="lost")
    assert (error.code, error.message) == ("3D000", 'database "no_such_database" does not exist')
    proxy.wait_log('server login failed: FATAL database "no_such_database" does not exist')


def test_min_pool_size_is_kept_up_while_there_is_a_client(start, cluster):
    proxy = start(pool_mode="transaction", min_pool_size=3)
    proxy.connect()
    eventually(lambda: len(cluster.backends("usename = 'app'")) == 3)
    cluster.sql("select pg_terminate_backend(%d)" % cluster.backends("usename = 'app'")[0])
    eventually(lambda: len(cluster.backends("usename = 'app'")) == 3)


def test_a_forced_user_fills_its_pool_at_start(start, cluster):
    start(databases={"app": "user=other min_pool_size=2"})
    eventually(lambda: len(cluster.backends("usename = 'other'")) == 2)


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_thirty_clients_never_use_more_servers_than_the_pool_has(start, cluster, mode):
    proxy = start(pool_mode=mode, default_pool_size=3)
    stop, seen, failures = threading.Event(), [], []

    def work():
        try:
            for _ in range(8):
                with proxy.connect() as client:
                    for _ in range(3):
                        client.value("select pg_sleep(0.001)")
                    client.terminate()
        except Exception as e:  # told by the main thread
            failures.append(e)

    def watch():
        while not stop.wait(0.01):
            seen.append(len(cluster.backends("usename = 'app'")))

    threads = [threading.Thread(target=work) for _ in range(30)]
    watcher = threading.Thread(target=watch)
    for thread in [watcher, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    watcher.join()
    assert not failures
    assert 1 <= max(seen) <= 3


def test_a_large_pool_opens_only_what_is_needed(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=20)
    client = proxy.connect()
    for _ in range(50):
        client.value("select 1")
    assert len(cluster.backends("usename = 'app'")) == 1


def test_a_check_query_finds_a_dead_server_before_the_client_does(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1, server_check_delay=0, server_check_query="select 1")
    client = proxy.connect()
    client.value("select 1")
    cluster.sql("select pg_terminate_backend(%d)" % cluster.backends()[0])
    assert client.value("select 42") == "42"


def test_a_server_is_not_checked_within_the_check_delay(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1, server_check_query="select 'check me'")
    client = proxy.connect()
    before = cluster.log().count("check me")
    for _ in range(5):
        client.value("select 1")
    assert cluster.log().count("check me") == before


def test_a_check_delay_of_zero_checks_at_every_reuse(start, cluster):
    proxy = start(
        pool_mode="transaction",
        default_pool_size=1,
        server_check_delay=0,
        server_check_query="select 'check every time'",
    )
    client = proxy.connect()
    before = cluster.log().count("check every time")
    for _ in range(3):
        client.value("select 1")
    eventually(lambda: cluster.log().count("check every time") - before >= 2)


def test_login_is_fast(start):
    proxy = start()
    proxy.connect().value("select 1")
    with takes(0, 0.5):
        for _ in range(20):
            proxy.connect().terminate()


def test_settings_of_a_connect_query_are_the_connections_own(start):
    proxy = start(databases={"app": "connect_query='set timezone to ''Asia/Tokyo'''"}, pool_mode="session")
    for _ in range(2):
        client = proxy.connect()
        assert client.parameters["TimeZone"] == "Asia/Tokyo"
        client.terminate()
