"""How many clients and servers there may be, and what happens at the limit."""

import pytest

from harness import eventually, takes
from wire import query


def refusal_then_room(proxy, holders, text, **kw):
    """The next client is refused with the text, and let in once a holder has gone."""
    assert proxy.refusal(**kw).message == text
    holders.pop().terminate()
    eventually(lambda: let_in(proxy, **kw))


def let_in(proxy, **kw):
    try:
        return proxy.connect(**kw)
    except Exception:
        return None


def test_max_client_conn(start):
    proxy = start(max_client_conn=3)
    clients = [proxy.connect() for _ in range(3)]
    refusal_then_room(proxy, clients, "no more connections allowed (max_client_conn)")


def test_the_console_is_reachable_at_max_client_conn(start):
    proxy = start(max_client_conn=1)
    proxy.connect()
    assert proxy.console().query("show version").rows


def test_max_db_client_connections(start):
    proxy = start(databases={"app": "max_db_client_connections=2", "second": ""})
    clients = [proxy.connect(), proxy.connect(user="other")]
    assert proxy.connect(database="second").value("select 1") == "1"
    refusal_then_room(proxy, clients, "client connections exceeded (max_db_client_connections)")
    row = proxy.show("databases", name="app")[0]
    assert (row["max_client_connections"], row["current_client_connections"]) == ("2", "2")


def test_max_user_client_connections(start):
    proxy = start(max_user_client_connections=5, users={"app": "max_user_client_connections=2"})
    clients = [proxy.connect(), proxy.connect()]
    assert proxy.connect(user="other").value("select 1") == "1"
    refusal_then_room(proxy, clients, "client connections exceeded (max_user_client_connections)")
    row = proxy.show("users", name="app")[0]
    assert (row["max_user_client_connections"], row["current_client_connections"]) == ("2", "2")


def test_failed_logins_give_their_place_back(start):
    proxy = start(auth_type="md5", databases={"app": "user=app max_db_client_connections=1"}, max_client_conn=2)
    for _ in range(5):
        proxy.refusal(user="carol", password="wrong")
    client = eventually(lambda: let_in(proxy, user="carol", password="carol-pw"))
    assert client.value("select 1") == "1"


def test_pool_size_of_user_database_and_file(start, cluster):
    proxy = start(
        pool_mode="transaction",
        default_pool_size=1,
        databases={"app": "pool_size=2", "second": ""},
        users={"other": "pool_size=3"},
    )

    def servers(user, database):
        clients = [proxy.connect(user=user, database=database) for _ in range(5)]
        for client in clients:
            client.send(query("begin"))
        number = eventually(
            lambda: proxy.pool(database, user)["cl_waiting"] + proxy.pool(database, user)["sv_active"] == 5
            and proxy.pool(database, user)["sv_login"] == 0
            and proxy.pool(database, user)["sv_active"]
        )
        for client in clients:
            client.drop()
        return number

    assert servers("app", "second") == 1
    assert servers("app", "app") == 2
    assert servers("other", "app") == 3


def test_a_pool_size_raised_by_set_counts_at_once(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    second.send(query("select 1"))
    assert second.is_silent(0.3)
    proxy.admin("set default_pool_size=2")
    assert second.ready().value == "1"


def test_a_pool_size_lowered_by_set_closes_what_is_too_much(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    clients = [proxy.connect() for _ in range(3)]
    for client in clients:
        client.query("begin")
    for client in clients:
        client.query("commit")
    assert len(cluster.backends("usename = 'app'")) == 3
    proxy.admin("set default_pool_size=1")
    eventually(lambda: len(cluster.backends("usename = 'app'")) == 1)
    proxy.wait_log("closing because: too many servers in the pool")


def test_max_db_connections_is_shared_by_the_pools_of_a_database(start, cluster):
    proxy = start(pool_mode="transaction", databases={"app": "max_db_connections=2"})
    first, second, third = proxy.connect(), proxy.connect(user="other"), proxy.connect(user="asker")
    first.query("begin")
    second.query("begin")
    third.send(query("select 'third'"))
    assert third.is_silent(0.5)
    assert len(cluster.backends()) == 2
    first.query("commit")
    assert third.ready().value == "third"  # the idle server of the first user had to make room
    assert len(cluster.backends()) == 2
    proxy.wait_log("closing because: evicted")


def test_max_user_connections_is_shared_by_the_pools_of_a_user(start, cluster):
    proxy = start(pool_mode="transaction", databases={"app": "", "second": ""}, users={"app": "max_user_connections=1"})
    first, second = proxy.connect(), proxy.connect(database="second")
    first.query("begin")
    second.send(query("select 'second'"))
    assert second.is_silent(0.5)
    first.query("commit")
    assert second.ready().value == "second"
    assert len(cluster.backends("usename = 'app'")) == 1
    assert proxy.show("users", name="app")[0]["current_connections"] == "1"


def test_reserve_pool_helps_after_its_timeout(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, reserve_pool_size=1, reserve_pool_timeout=1)
    clients = [proxy.connect() for _ in range(3)]
    clients[0].query("begin")
    with takes(0.6, 3):
        clients[1].query("begin")
    proxy.wait_log("taking connection from reserve_pool")
    clients[2].send(query("select 1"))
    assert clients[2].is_silent(1.8)
    clients[0].query("commit")
    assert clients[2].ready().value == "1"


@pytest.mark.parametrize("entry", ["reserve_pool=1", "reserve_pool_size=1"])
def test_reserve_pool_of_a_database(start, entry):
    proxy = start(pool_mode="transaction", default_pool_size=1, reserve_pool_timeout=0.4, databases={"app": entry})
    first, second = proxy.connect(), proxy.connect()
    first.query("begin")
    with takes(0.2, 3):
        second.query("begin")


def test_a_pool_size_of_zero_has_no_limit(start):
    proxy = start(pool_mode="transaction", default_pool_size=0)
    clients = [proxy.connect() for _ in range(25)]
    for client in clients:
        client.query("begin")
    assert proxy.pool()["sv_active"] == 25


def test_only_one_server_of_a_pool_logs_in_at_a_time(start, cluster):
    cluster.sql("alter system set pre_auth_delay = '0.3s'")
    cluster.sql("select pg_reload_conf()")
    try:
        proxy = start(pool_mode="transaction", default_pool_size=5)
        first = proxy.connect()
        first.query("begin")
        clients = [proxy.connect() for _ in range(4)]
        for client in clients:
            client.send(query("begin"))
        seen = []
        eventually(lambda: seen.append(proxy.pool()["sv_login"]) or proxy.pool()["sv_active"] == 5)
        assert max(seen) == 1
    finally:
        cluster.sql("alter system reset pre_auth_delay")
        cluster.sql("select pg_reload_conf()")


def test_current_connections_go_back_to_zero(start):
    proxy = start(server_idle_timeout=1)
    for _ in range(5):
        proxy.connect().terminate()
    client = proxy.connect()
    client.reset()
    eventually(lambda: proxy.show("databases", name="app")[0]["current_client_connections"] == "0")
    eventually(lambda: proxy.show("databases", name="app")[0]["current_connections"] == "0")
