"""Single lines of what PgBouncer's users can see, each too small for a file of its own."""

import os
import signal

import pytest

from harness import section


@pytest.mark.parametrize("command", ["PAUSE", "RECONNECT", "DISABLE", "KILL", "WAIT_CLOSE"])
def test_commands_make_a_database_of_the_star_entry(start, command):
    proxy = start(databases={"*": ""})
    assert proxy.admin(command + " made_here").tags == [command]
    proxy.wait_log("registered new auto-database: made_here")


def test_names_that_are_too_long(start):
    proxy = start(databases={"*": ""})
    assert proxy.refusal(user="u" * 128).message == "username too long"
    assert proxy.refusal(database="d" * 64).message == "database name too long"


def test_users_who_have_not_proven_themselves_are_not_shown(start):
    proxy = start(auth_type="scram-sha-256")
    proxy.refusal(user="ghost", password="x")
    with proxy.console_over_unix() as c:
        names = [row["name"] for row in c.table("show users")]
    assert "ghost" not in names and "carol" in names


def test_an_empty_application_name_is_a_value(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    one, two = (proxy.connect(params={"application_name": name}) for name in ("", "second"))
    for _ in range(2):
        assert two.value("show application_name") == "second"
        assert one.value("show application_name") == ""


def test_a_stop_ends_a_suspended_proxy_at_once(start):
    proxy = start()
    with proxy.console_over_unix() as console:
        console.query("suspend")
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_exit() == 1
    assert "FATAL suspend was in progress, going down immediately" in proxy.log()


def test_during_a_shutdown_the_unix_socket_is_for_the_console_alone(start):
    proxy = start()
    client = proxy.connect()
    client.query("select 1")
    proxy.signal(signal.SIGTERM)
    proxy.wait_log("got SIGTERM, shutting down, waiting for all clients disconnect")
    with pytest.raises(OSError):
        proxy.connect()
    assert proxy.refusal(host=str(proxy.folder)).message == "pooler is shutting down"
    with proxy.console_over_unix() as console:
        assert console.fails("resume")["M"] == "pooler is shutting down"
    assert client.value("select 1") == "1"
    client.terminate()
    assert proxy.wait_exit() == 0
    assert not os.path.exists("%s/.s.PGSQL.%d" % (proxy.folder, proxy.port))


def test_a_database_paused_by_kill_needs_its_own_resume(start):
    proxy = start()
    proxy.connect().query("select 1")
    proxy.admin("kill")
    with proxy.console() as c:
        assert c.fails("resume")["M"] == "pooler is not paused/suspended"
        c.query("resume app")
    assert proxy.connect().value("select 1") == "1"


def test_who_may_not_is_told_so(start):
    stats = start().console(user="stats")
    for command in ("SET verbose=1", "KILL_CLIENT 1", "SHOW FDS", "RELOAD", "SHUTDOWN", "PAUSE", "WAIT_CLOSE"):
        assert stats.fails(command)["M"] == "admin access needed", command


@pytest.mark.parametrize("text", ["", ";", "begin", "show", "nonsense", "pause a b", "set x", "show nothing"])
def test_what_the_console_does_not_understand(start, text):
    error = start().console().fails(text)
    assert (error["S"], error["C"]) == ("ERROR", "08P01")
    assert error["M"] == "invalid command '%s', use SHOW HELP;" % text


def test_words_that_are_too_long(start):
    console = start().console()
    assert console.fails("pause " + "x" * 64)["M"] == "bad arguments"
    assert console.fails("set logfile='%s'" % ("y" * 256))["M"] == "bad arguments"


def test_a_user_may_be_bound_to_a_mode_and_the_console_is_of_statements(start):
    proxy = start(users={"app": "pool_mode=transaction"})
    proxy.connect().query("select 1")
    assert proxy.pool()["pool_mode"] == "transaction"
    (row,) = proxy.show("databases", name="pgbouncer")
    assert (row["host"], row["port"], row["database"], row["force_user"], row["pool_size"], row["pool_mode"]) == (
        None,
        str(proxy.port),
        "pgbouncer",
        "pgbouncer",
        "2",
        "statement",
    )
    assert proxy.show("databases", name="app")[0]["pool_mode"] is None


def test_numbers_of_users_are_wide_texts(start):
    proxy = start(users={"app": "pool_size=7 reserve_pool_size=1", "other": ""})
    rows = {row["name"]: row for row in proxy.show("users")}
    assert (rows["app"]["pool_size"], rows["app"]["reserve_pool_size"]) == ("        7", "        1")
    assert (rows["other"]["pool_size"], rows["other"]["reserve_pool_size"]) == ("", "")
    assert rows["other"]["pool_mode"] is None


def test_a_server_that_reports_nonsense_while_idle_is_closed(start, cluster):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    pid = client.value("select pg_backend_pid()")
    cluster.sql("select pg_terminate_backend(%s)" % pid)
    proxy.wait_log("S-0x.* closing because: terminating connection due to administrator command")
    assert client.value("select 1") == "1"


def test_a_linked_server_that_dies(start, cluster):
    """Its own error, then ours; in the log first the server, then the client."""
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.query("begin")
    cluster.sql("select pg_terminate_backend(%s)" % client.value("select pg_backend_pid()"))
    errors = client.read_to_end().errors
    assert [(e["S"], e["C"], e["M"]) for e in errors] == [
        ("FATAL", "57P01", "terminating connection due to administrator command"),
        ("FATAL", "08P01", "server conn crashed?"),
    ]
    proxy.wait_log("(?s)S-0x[^\n]* closing because: server conn crashed.*C-0x[^\n]* closing because: server conn crashed")
    proxy.wait_log("WARNING C-0x[^\n]* pooler error: server conn crashed")


def test_a_second_header_of_the_main_section_wipes_the_first(start):
    proxy = start()
    text = proxy.ini.read_text()
    rest = dict(proxy.options)
    proxy.ini.write_text(text.replace("[pgbouncer]\n", "[pgbouncer]\nquery_timeout = 7\n") + section("pgbouncer", rest))
    proxy.admin("reload")
    assert proxy.show("config", key="query_timeout")[0]["value"] == "0"


def test_numbers_and_times_of_the_configuration_as_they_are_shown(start):
    proxy = start(unix_socket_mode="0777", query_timeout="1.50", tcp_keepidle="0x1f", pool_mode="TRANSACTION")
    shown = {row["key"]: row["value"] for row in proxy.show("config")}
    assert [shown[k] for k in ("unix_socket_mode", "query_timeout", "tcp_keepidle", "pool_mode", "auth_user")] == [
        "511",
        "1.5",
        "31",
        "transaction",
        None,
    ]


def test_a_key_that_counts_at_start_is_taken_and_ignored(start):
    proxy = start()
    proxy.admin("set listen_backlog=5")
    assert proxy.show("config", key="listen_backlog")[0]["value"] == "128"
