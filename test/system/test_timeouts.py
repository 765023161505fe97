"""Every timeout: when it strikes, what the client is told, what the log says."""

import pytest

import wire
from harness import eventually, takes
from wire import query


def dies_with(client, text, least=0.6, most=3.5):
    with takes(least, most):
        error = client.last_words()
    assert (error["S"], error["M"]) == ("FATAL", text)


def test_query_wait_timeout(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, query_wait_timeout=1)
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    dies_with(waiter, "query_wait_timeout")
    proxy.wait_log("closing because: query_wait_timeout")
    assert holder.value("select 'unharmed'") == "unharmed"


@pytest.mark.parametrize("where", ["database", "user"])
def test_query_wait_timeout_of_a_database_or_user(start, where):
    entry = "query_wait_timeout=1"
    proxy = start(
        pool_mode="transaction",
        default_pool_size=1,
        query_wait_timeout=60,
        databases={"app": entry if where == "database" else ""},
        users={"app": entry} if where == "user" else None,
    )
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    dies_with(waiter, "query_wait_timeout")


def test_query_wait_timeout_of_zero_waits_on(start):
    proxy = start(
        pool_mode="transaction", default_pool_size=1, query_wait_timeout=1, users={"app": "query_wait_timeout=0"}
    )
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    assert waiter.is_silent(2)
    holder.query("commit")
    assert waiter.ready().value == "1"


def test_query_timeout_of_a_running_query(start, cluster):
    proxy = start(query_timeout=1)
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    dies_with(client, "query timeout")
    proxy.wait_log(r"S-.* closing because: query timeout")


def test_query_timeout_does_not_count_an_idle_transaction(start):
    proxy = start(query_timeout=1)
    client = proxy.connect()
    client.query("begin")
    assert client.is_silent(2)
    assert client.value("select 1") == "1"


def test_query_timeout_of_a_user(start):
    proxy = start(users={"app": "query_timeout=1"})
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    dies_with(client, "query timeout")


def test_query_timeout_of_a_waiting_client(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, query_timeout=1, query_wait_timeout=60)
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    dies_with(waiter, "query_timeout")


def test_client_idle_timeout(start):
    proxy = start(pool_mode="transaction", client_idle_timeout=1)
    client = proxy.connect()
    client.value("select 1")
    dies_with(client, "client_idle_timeout")


def test_client_idle_timeout_of_one_user_spares_the_others(start):
    proxy = start(pool_mode="transaction", users={"other": "client_idle_timeout=1"})
    spared, client = proxy.connect(), proxy.connect(user="other")
    dies_with(client, "client_idle_timeout")
    assert spared.value("select 1") == "1"


def test_client_idle_timeout_in_transaction_mode_leaves_transactions_alone(start):
    proxy = start(pool_mode="transaction", client_idle_timeout=1)
    client = proxy.connect()
    client.query("begin")
    assert client.is_silent(2)
    client.query("commit")
    dies_with(client, "client_idle_timeout")


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_idle_transaction_timeout(start, mode):
    proxy = start(pool_mode=mode, idle_transaction_timeout=1)
    client = proxy.connect()
    client.query("begin")
    dies_with(client, "idle transaction timeout")


def test_idle_transaction_timeout_of_a_user(start):
    proxy = start(users={"app": "idle_transaction_timeout=1"})
    client = proxy.connect()
    client.query("begin")
    dies_with(client, "idle transaction timeout")


def test_idle_transaction_timeout_spares_a_busy_transaction(start):
    proxy = start(pool_mode="transaction", idle_transaction_timeout=1)
    client = proxy.connect()
    client.query("begin")
    client.value("select pg_sleep(2)")
    client.query("commit")
    assert client.is_silent(1.6)


@pytest.mark.parametrize("users", [None, {"app": "transaction_timeout=1"}])
def test_transaction_timeout(start, users):
    proxy = start(pool_mode="transaction", users=users, transaction_timeout=30 if users else 1)
    client = proxy.connect()
    client.query("begin")
    client.value("select 1")
    dies_with(client, "transaction timeout")


def test_transaction_timeout_strikes_a_running_query_too(start):
    proxy = start(pool_mode="transaction", transaction_timeout=1)
    client = proxy.connect()
    client.query("begin")
    client.send(query("select pg_sleep(20)"))
    dies_with(client, "transaction timeout")


def test_transaction_timeout_spares_many_short_transactions(start):
    proxy = start(pool_mode="transaction", transaction_timeout=1)
    client = proxy.connect()
    for _ in range(8):
        client.query("begin; select pg_sleep(0.2); commit")


def test_client_login_timeout(start):
    proxy = start(client_login_timeout=1)
    silent, half = proxy.raw(), proxy.raw()
    half.send(wire.startup({"user": "app", "database": "app"})[:10])
    with takes(0.5, 3.5):
        for client in (silent, half):
            error = client.read_to_end().errors
            assert not error or error[0]["M"] == "client_login_timeout"
    proxy.wait_log("closing because: client_login_timeout")


def test_client_login_timeout_while_the_server_is_down(start):
    proxy = start(client_login_timeout=1)
    proxy.databases["app"] = "host=127.0.0.1 port=1 dbname=app"
    proxy.reload()
    with takes(0.5, 3.5):
        assert proxy.refusal().message == "client_login_timeout (server down)"


def test_a_client_that_has_not_sent_its_password_times_out(start):
    proxy = start(auth_type="md5", client_login_timeout=1)
    client = proxy.raw()
    client.send(wire.startup({"user": "carol", "database": "app"}))
    assert client.read().kind == "R"
    dies_with(client, "client_login_timeout")


def test_server_idle_timeout(start, cluster):
    proxy = start(pool_mode="transaction", server_idle_timeout=1)
    client = proxy.connect()
    client.value("select 1")
    eventually(lambda: not cluster.backends("usename = 'app'"))
    proxy.wait_log("closing because: server idle timeout")
    assert client.value("select 2") == "2"


def test_server_idle_timeout_keeps_the_minimum(start, cluster):
    proxy = start(pool_mode="transaction", server_idle_timeout=1, min_pool_size=1)
    clients = [proxy.connect() for _ in range(3)]
    for client in clients:
        client.query("begin")
    for client in clients:
        client.query("commit")
    eventually(lambda: len(cluster.backends("usename = 'app'")) == 1)
    assert clients[0].is_silent(1.5)
    assert len(cluster.backends("usename = 'app'")) == 1


def test_server_lifetime(start, cluster):
    proxy = start(pool_mode="transaction", server_lifetime=1)
    client = proxy.connect()
    client.value("select 1")
    eventually(lambda: not cluster.backends("usename = 'app'"))
    proxy.wait_log("closing because: server lifetime over")


def test_server_lifetime_of_zero_uses_each_connection_once(start):
    proxy = start(pool_mode="transaction", server_lifetime=0)
    client = proxy.connect()
    assert len({client.value("select pg_backend_pid()") for _ in range(4)}) == 4


def test_server_lifetime_of_a_database(start, cluster):
    proxy = start(pool_mode="transaction", databases={"app": "server_lifetime=1"})
    client = proxy.connect()
    client.value("select 1")
    eventually(lambda: not cluster.backends("usename = 'app'"))


def test_server_lifetime_does_not_end_a_connection_in_use(start):
    proxy = start(pool_mode="transaction", server_lifetime=1)
    client = proxy.connect()
    client.query("begin")
    pid = client.value("select pg_backend_pid()")
    assert client.is_silent(2)
    assert client.value("select pg_backend_pid()") == pid
    client.query("commit")
    assert client.value("select pg_backend_pid()") != pid


def test_server_connect_timeout_while_the_server_does_not_answer(start, cluster):
    cluster.sql("alter system set pre_auth_delay = '4s'")
    cluster.sql("select pg_reload_conf()")
    try:
        proxy = start(server_connect_timeout=1, query_wait_timeout=3)
        proxy.refusal()
        proxy.wait_log("closing because: connect timeout")
    finally:
        cluster.sql("alter system reset pre_auth_delay")
        cluster.sql("select pg_reload_conf()")


def test_a_refused_server_is_tried_again_after_server_login_retry(start):
    proxy = start(server_login_retry=1, query_wait_timeout=4)
    proxy.databases["app"] = "host=127.0.0.1 port=1 dbname=app"
    proxy.reload()
    with takes(3, 7):
        assert proxy.refusal().message == "query_wait_timeout"
    proxy.wait_log("closing because: connect failed", count=3)
    assert proxy.log().count("connect failed") < 12


def test_a_waiting_client_is_told_once(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, query_wait_notify=1)
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    m = waiter.read(timeout=4)
    assert (m.kind, m.fields()["C"]) == ("N", "00000")
    assert m.fields()["M"] == "No server connection available in postgres backend, client being queued"
    assert waiter.is_silent(1.5)
    holder.query("commit")
    assert waiter.ready().value == "1"


def test_query_wait_notify_of_zero_is_silent(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, query_wait_notify=0)
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    assert waiter.is_silent(1.5)


def test_autodb_idle_timeout_forgets_unused_star_databases(start):
    proxy = start(databases={"*": ""}, autodb_idle_timeout=1, server_idle_timeout=1)
    proxy.connect(database="passing").terminate()
    eventually(lambda: not proxy.show("pools", database="passing"), 8)


def test_pool_idle_timeout_forgets_unused_pools(start):
    proxy = start(pool_idle_timeout=1, server_idle_timeout=1)
    proxy.connect().terminate()
    eventually(lambda: not proxy.show("pools", database="app"), 8)
    proxy.wait_log("cleaning up idle pool for user app on db app because: pool idle timeout")
    assert proxy.connect().value("select 1") == "1"
