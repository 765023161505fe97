"""What monitoring and scripts are used to on the console: settings that drivers send, spellings, and what is counted."""

import time

import pytest

from harness import takes
from wire import query


@pytest.fixture
def proxy(start):
    return start(pool_mode="transaction")


# ------------------------------------------------------------------ words


@pytest.mark.parametrize("user", ["admin", "stats"])
@pytest.mark.parametrize(
    "command", ["SET client_encoding TO 'UTF8'", "set DateStyle = iso", "set timezone='UTC'", "set extra_float_digits = 3"]
)
def test_whoever_may_enter_may_set_what_drivers_set(proxy, user, command):
    with proxy.console(user=user) as console:
        answer = console.query(command)
    assert (answer.tags, answer.notices) == (["SET"], ["SET ignored"])


def test_what_the_proxy_knows_is_set_by_administrators_alone(proxy):
    with proxy.console(user="stats") as console:
        assert console.fails("set query_timeout = 7")["M"] == "admin access needed"
    assert proxy.show("config", key="query_timeout")[0]["value"] == "0"


@pytest.mark.parametrize("command", ['set "pool_mode" = session', 'SET pool_mode TO "session";', 'set "pool_mode"="session"'])
def test_both_words_of_set_may_be_quoted(proxy, command):
    assert proxy.admin(command).tags == ["SET pool_mode=session"]
    assert proxy.show("config", key="pool_mode")[0]["value"] == "session"


def test_an_empty_name_is_no_name(proxy):
    assert proxy.admin('pause ""').tags == ["PAUSE"]
    assert {row["key"]: row["value"] for row in proxy.show("state")}["paused"] == "yes"
    assert proxy.admin('resume ""').tags == ["RESUME"]
    with proxy.console() as console:
        assert console.fails('disable ""')["M"] == "a database is required"


@pytest.mark.parametrize("word", ["PAUSE", "RESUME", "KILL", "DISABLE", "ENABLE", "RECONNECT", "WAIT_CLOSE"])
@pytest.mark.parametrize("name", ["nowhere", "pgbouncer"])
def test_commands_that_fail_are_logged_before_they_do(proxy, word, name):
    with proxy.console() as console:
        console.fails("%s %s" % (word, name))
    proxy.wait_log("(?s)LOG %s '%s' command issued.*ERROR .*%s" % (word, name, name))


@pytest.mark.parametrize("command", ["pause app", "wait_close app"])
def test_commands_that_wait_are_answered_as_soon_as_they_are_done(start, command):
    """Also when everything else is at rest, and whichever thread the servers belong to."""
    proxy = start(pool_mode="transaction", worker_threads=2)
    busy = [proxy.connect() for _ in range(4)]
    for client in busy:
        client.query("begin")
    console = proxy.console()
    console.query("reconnect app")
    console.send(query(command))
    assert console.is_silent(1.5)
    for client in busy:
        client.query("commit")
    with takes(0, 1):
        assert console.ready().tags == [command.split()[0].upper()]


# ------------------------------------------------------------------ figures


def sums(proxy):
    return {row["name"]: int(row["value"]) for row in proxy.show("totals")}


def test_a_console_connection_is_one_query_and_one_transaction(proxy):
    proxy.connect().value("select 1")
    before = sums(proxy)
    with proxy.console() as console:
        for _ in range(3):
            console.query("show version")
    after = sums(proxy)  # a console connection of its own
    assert after["total_query_count"] - before["total_query_count"] == 2
    assert after["total_xact_count"] - before["total_xact_count"] == 2


def test_received_is_what_comes_after_the_login(proxy):
    client = proxy.connect()
    client.query("select 1")
    rows = {row["database"]: row for row in proxy.show("stats")}
    assert rows["app"]["total_received"] == str(len(b"Q....select 1\0"))
    assert rows["pgbouncer"]["total_received"] == "0"


def test_the_first_client_of_a_pool_has_waited_for_its_server(proxy):
    proxy.connect()
    row = proxy.show("stats", database="app")[0]
    assert int(row["total_wait_time"]) > 0 and row["total_server_assignment_count"] == "0"


def test_averages_of_a_young_pool_are_over_the_same_time_as_all_others(start):
    proxy = start(pool_mode="transaction", stats_period=60)
    time.sleep(1.5)
    client = proxy.connect()
    client.value("select 1")
    row = proxy.show("stats", database="app")[0]
    assert (row["total_query_count"], row["avg_query_count"], row["avg_client_login_count"]) == ("1", "0", "0")


def test_used_servers_are_all_that_there_are(proxy):
    working, idle = proxy.connect(), proxy.connect()
    working.query("begin")
    idle.value("select 1")
    rows = {row["list"]: row["items"] for row in proxy.show("lists")}
    assert (rows["used_servers"], rows["free_servers"]) == ("2", "0")


def test_the_local_port_of_a_unix_socket_is_that_of_the_proxy(start, cluster):
    proxy = start(databases={"app": "host=%s port=%d dbname=app" % (cluster.folder, cluster.port)})
    proxy.connect().value("select 1")
    server = proxy.show("servers")[0]
    assert (server["local_addr"], server["local_port"]) == ("unix", str(proxy.port))


# ------------------------------------------------------------------ log lines


def test_the_reason_to_close_comes_before_the_error_that_tells_it(proxy):
    proxy.refusal(database="nowhere")
    proxy.wait_log("(?s)LOG C-[^\n]* closing because: no such database: nowhere.*WARNING C-[^\n]* pooler error: no such")


@pytest.mark.parametrize("kind", ["p", "z", "T"])
def test_messages_that_no_client_sends(proxy, kind):
    client = proxy.connect()
    client.send(kind.encode() + b"\0\0\0\x06x\0")
    assert [e["M"] for e in client.read_to_end().errors] == ["unknown pkt"]
    proxy.wait_log("ERROR C-[^\n]* unknown pkt from client: %d/0x%x" % (ord(kind), ord(kind)))
    proxy.wait_log(r"closing because: unknown pkt \(age")
