"""The admin console: the database "pgbouncer"."""

import re
import time

import pytest

import wire
from harness import eventually, takes
from wire import query

SOCKET = (
    "type user database replication state addr port local_addr local_port connect_time request_time wait wait_us "
    "close_needed ptr link remote_pid tls application_name prepared_statements id"
)
COUNTERS = (
    "server_assignment_count xact_count query_count {0} {1} xact_time query_time wait_time {2}client_parse_count "
    "{2}server_parse_count {2}bind_count {2}client_login_count"
)
COLUMNS = {
    "clients": SOCKET,
    "servers": SOCKET,
    "sockets": SOCKET + " recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail",
    "active_sockets": SOCKET + " recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail",
    "plugins": "name version interface library required calls refused failed slow total_us max_us reasons",
    "pools": "database user cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req sv_active sv_active_cancel "
    "sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait maxwait_us pool_mode load_balance_hosts",
    "peer_pools": "peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login",
    "peers": "peer_id host port pool_size",
    "databases": "name host port database force_user pool_size min_pool_size reserve_pool_size server_lifetime "
    "pool_mode load_balance_hosts max_connections current_connections max_client_connections "
    "current_client_connections paused disabled",
    "users": "name pool_size reserve_pool_size pool_mode max_user_connections current_connections "
    "max_user_client_connections current_client_connections",
    "lists": "list items",
    "stats": "database "
    + " ".join(
        p + c
        for p, names in (("total_", ("received", "sent")), ("avg_", ("recv", "sent")))
        for c in COUNTERS.format(names[0], names[1], "").split()
    ),
    "stats_totals": "database " + COUNTERS.format("bytes_received", "bytes_sent", ""),
    "stats_averages": "database " + COUNTERS.format("bytes_received", "bytes_sent", "avg_"),
    "totals": "name value",
    "config": "key value default changeable",
    "version": "version",
    "state": "key value",
    "mem": "name size used free memtotal",
    "dns_hosts": "hostname ttl addrs",
    "dns_zones": "zonename serial count",
    "fds": "fd task user database addr port cancel link client_encoding std_strings datestyle timezone password "
    "scram_client_key scram_server_key",
}
TEXT, INT4, INT8, NUMERIC, BYTEA = 25, 23, 20, 1700, 17


@pytest.fixture
def proxy(start):
    return start(pool_mode="transaction", databases={"app": "", "second": ""})


@pytest.fixture
def console(proxy):
    return proxy.console()


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_show_has_exactly_these_columns(proxy, console, name):
    proxy.connect().value("select 1")
    answer = console.query("show " + name)
    assert [column for column, _ in answer.columns] == COLUMNS[name].split()
    assert answer.tags == ["SHOW"]
    assert answer.status == "I"


@pytest.mark.parametrize(
    "name, types",
    [
        ("stats", [TEXT] + [NUMERIC] * 24),
        ("dns_hosts", [TEXT, INT8, TEXT]),
        ("totals", [TEXT, NUMERIC]),
        ("pools", [TEXT] * 2 + [INT4] * 13 + [TEXT] * 2),
        ("version", [TEXT]),
        ("lists", [TEXT, INT4]),
    ],
)
def test_show_has_these_column_types(console, name, types):
    assert [oid for _, oid in console.query("show " + name).columns] == types


def test_names_and_words_are_not_case_sensitive_and_select_means_show(console):
    for text in ("SHOW VERSION", "Show Version;", "  show   version  ;", "select version", "SELECT VERSION;"):
        assert console.query(text).columns == [("version", TEXT)]


def test_the_version_is_that_of_the_command_line(proxy, console):
    assert re.fullmatch(r"PgBouncer \d+\.\d+\.\d+", console.value("show version"))


def test_our_own_version_comes_as_a_notice(console):
    (notice,) = console.query("show version").notices
    assert re.fullmatch(r"lokadb-proxy \d+\.\d+\.\d+", notice)


def test_the_console_greets_like_a_server(console):
    assert console.parameters["server_version"].endswith("/bouncer")
    for name, value in (
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "GMT"),
        ("standard_conforming_strings", "on"),
        ("is_superuser", "on"),
    ):
        assert console.parameters[name] == value


@pytest.mark.parametrize(
    "name, value",
    [
        ("client_encoding", "UTF-8"),
        ("default_transaction_isolation", "read committed"),
        ("standard_conforming_strings", "on"),
        ("datestyle", "ISO"),
        ("timezone", "GMT"),
    ],
)
def test_settings_that_drivers_ask_for(console, name, value):
    answer = console.query("show " + name)
    assert answer.columns == [(name, TEXT)]
    assert answer.value == value


def test_setting_them_is_ignored_with_a_notice(console):
    answer = console.query("set client_encoding = 'UTF8'")
    assert (answer.notices, answer.tags) == (["SET ignored"], ["SET"])


def test_help_is_a_notice(console):
    answer = console.query("show help")
    assert answer.notices == ["Console usage"]
    assert "SHUTDOWN" in answer[0].fields()["D"]
    assert answer.tags == ["SHOW"]


@pytest.mark.parametrize(
    "text", ["reload x", "suspend x", "", ";", "begin", "show nothing", "drop table x", "pause app app", "select 1; select 2", "set x"]
)
def test_unknown_commands_are_an_error_and_no_more(proxy, console, text):
    error = console.fails(text)
    assert (error["S"], error["C"], error["M"]) == ("ERROR", "08P01", "invalid command '%s', use SHOW HELP;" % text)
    assert console.query("show version").rows


def test_binary_results_are_refused_and_not_given_as_text(console):
    for formats in ([1], [0, 1]):
        tail = b"".join(n.to_bytes(2, "big") for n in [len(formats), *formats])
        bound = wire.message("B", b"\0\0\0\0\0\0" + tail)
        answer = console.ask(wire.parse("", "show pools") + bound + wire.execute() + wire.sync())
        assert (answer.kinds, answer.codes) == ("1EZ", ["0A000"])
    assert console.query("show version").rows


def test_the_extended_protocol_gives_the_same_rows(console):
    for _ in range(2):
        console.send(wire.extended("show version"))
        answer = console.ready()
        assert not answer.errors
        assert answer.rows == [("PgBouncer 1.25.2",)]
    no_sync = wire.parse("", "no such thing") + wire.bind("", "") + wire.execute()
    console.send(no_sync + wire.extended("show version"))
    answer = console.ready()
    assert len(answer.errors) == 1 and not answer.rows  # skipped up to Sync
    assert console.query("show version").rows


def test_state(proxy, console):
    assert console.query("show state").rows == [("active", "yes"), ("paused", "no"), ("suspended", "no")]


def test_lists_has_these_rows(console):
    rows = [r["list"] for r in console.table("show lists")]
    assert (
        rows
        == (
            "databases users peers pools peer_pools free_clients used_clients login_clients free_servers used_servers "
            "dns_names dns_zones dns_queries dns_pending"
        ).split()
    )


def test_totals_has_these_rows(console):
    names = (
        "server_assignment_count xact_count query_count client_bytes server_bytes xact_time query_time wait_time "
        "ps_client_parse_count ps_server_parse_count ps_bind_count client_login_count"
    ).split()
    rows = [r["name"] for r in console.table("show totals")]
    assert rows == ["total_" + n for n in names] + ["avg_" + n for n in names]


def test_the_consoles_own_database_and_pool_are_listed(proxy, console):
    row = next(r for r in console.table("show databases") if r["name"] == "pgbouncer")
    assert (row["host"], row["port"], row["database"], row["force_user"], row["pool_mode"]) == (
        None,
        str(proxy.port),
        "pgbouncer",
        "pgbouncer",
        "statement",
    )
    row = next(r for r in console.table("show pools") if r["database"] == "pgbouncer")
    assert (row["user"], row["cl_active"]) == ("pgbouncer", "1")


def test_states_of_clients_and_servers(proxy, console):
    idle, active, waiting = (proxy.connect() for _ in range(3))
    proxy.admin("set default_pool_size=1")
    active.query("begin")
    waiting.send(query("select 1"))

    def states(what):
        return sorted(r["state"] for r in console.table("show " + what) if r["database"] == "app")

    eventually(lambda: states("clients") == ["active", "idle", "waiting"])
    assert states("servers") == ["active"]
    active.query("commit")
    waiting.ready()
    eventually(lambda: states("servers") == ["idle"])


def test_a_linked_client_and_server_name_each_other(proxy, console):
    client = proxy.connect(params={"application_name": "linked"})
    client.query("begin")
    c = next(r for r in console.table("show clients") if r["database"] == "app")
    s = next(r for r in console.table("show servers") if r["database"] == "app")
    assert (c["link"], s["link"]) == (s["ptr"], c["ptr"])
    assert (c["type"], s["type"], c["application_name"]) == ("C", "S", "linked")
    assert s["remote_pid"] == client.value("select pg_backend_pid()")
    assert c["port"] == str(client.sock.getsockname()[1])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+", c["connect_time"])


def test_ids_count_up_over_clients_and_servers(proxy, console):
    # What start() tried the sockets with has an id, too: now nothing of it waits to be accepted any more.
    proxy.console(host=str(proxy.folder))
    client = proxy.connect()
    first = int(next(r for r in console.table("show clients") if r["database"] == "app")["id"])
    server = int(next(r for r in console.table("show servers") if r["database"] == "app")["id"])
    assert server == first + 1
    proxy.connect()
    ids = [int(r["id"]) for r in console.table("show clients") if r["database"] == "app"]
    assert sorted(ids) == [first, first + 2]
    assert client.value("select 1") == "1"


def test_statistics_count_transactions_and_queries(proxy):
    client = proxy.connect()
    for _ in range(4):
        client.value("select 1")
    client.query("begin")
    client.value("select 2")
    client.query("commit")
    client.ask(wire.extended("select 3"))
    row = proxy.show("stats", database="app")[0]
    assert (row["total_xact_count"], row["total_query_count"]) == ("6", "8")
    assert row["total_client_login_count"] == "1"
    assert row["total_server_assignment_count"] == "6"
    assert int(row["total_sent"]) > int(row["total_received"]) > 100


def test_wait_time_is_counted(proxy):
    proxy.admin("set default_pool_size=1")
    holder, waiter = proxy.connect(), proxy.connect()
    holder.query("begin")
    waiter.send(query("select 1"))
    time.sleep(0.5)
    assert proxy.pool()["maxwait"] == 0 and proxy.pool()["maxwait_us"] > 300000
    holder.query("commit")
    waiter.ready()
    assert int(proxy.show("stats", database="app")[0]["total_wait_time"]) > 400000


def test_config_shows_value_default_and_whether_it_may_change(proxy):
    rows = {r["key"]: r for r in proxy.show("config")}
    assert rows["pool_mode"] == {"key": "pool_mode", "value": "transaction", "default": "session", "changeable": "yes"}
    assert rows["listen_port"]["value"] == str(proxy.port)
    assert rows["listen_port"]["changeable"] == "no"
    assert rows["unix_socket_mode"]["default"] == "0777" or rows["unix_socket_mode"]["value"] == "511"
    assert rows["auth_user"]["value"] is None


def test_set_changes_a_value_until_the_next_reload(proxy, console):
    assert console.query("set query_timeout='7'").tags == ["SET query_timeout=7"]
    value = lambda: proxy.show("config", key="query_timeout")[0]["value"]
    assert value() == "7"
    assert console.query("SET query_timeout TO 8;").tags == ["SET query_timeout=8"]
    assert value() == "8"
    console.query("reload")
    assert value() == "0"


@pytest.mark.parametrize("text", ["set no_such_key = 1", "set pool_mode = nonsense", "set max_client_conn = many"])
def test_a_bad_set_fails(console, text):
    assert console.fails(text)["M"] == "SET failed"


def test_a_stats_user_may_look_but_not_touch(proxy):
    console = proxy.console(user="stats")
    assert console.query("show pools").rows
    for text in (
        "reload",
        "pause",
        "resume",
        "suspend",
        "shutdown",
        "kill app",
        "disable app",
        "enable app",
        "reconnect",
        "wait_close",
        "set query_timeout = 1",
        "show fds",
        "kill_client 1",
    ):
        assert console.fails(text)["M"] == "admin access needed"


def test_others_may_not_enter(proxy):
    error = proxy.refusal(user="app", database="pgbouncer")
    assert (error.severity, error.message) == ("FATAL", "not allowed")


def test_the_proxys_own_user_is_admin_on_the_unix_socket(start):
    proxy = start(auth_type="scram-sha-256", admin_users="")
    assert proxy.admin_over_unix("reload").tags == ["RELOAD"]


# ------------------------------------------------------------------ PAUSE and relatives


def test_pause_waits_for_transactions_and_resume_lets_them_go_on(proxy, console):
    client, newcomer = proxy.connect(), proxy.connect()
    client.query("begin")
    console.send(query("pause"))
    assert console.is_silent(0.5)
    newcomer.send(query("select 'later'"))
    assert newcomer.is_silent(0.3)
    client.query("commit")
    assert console.ready().tags == ["PAUSE"]
    assert console.query("show state").rows[1] == ("paused", "yes")
    assert console.query("show servers").rows == []
    assert newcomer.is_silent(0.3)
    assert console.query("resume").tags == ["RESUME"]
    assert newcomer.ready().value == "later"
    proxy.wait_log("PAUSE command issued")


def test_pause_of_one_database_spares_the_others(proxy, console):
    here, there = proxy.connect(), proxy.connect(database="second")
    assert console.query("pause app").tags == ["PAUSE"]
    here.send(query("select 1"))
    assert here.is_silent(0.4)
    assert there.value("select 2") == "2"
    assert proxy.show("databases", name="app")[0]["paused"] == "1"
    console.query("resume app")
    assert here.ready().value == "1"


def test_a_login_during_pause_waits(proxy, console):
    console.query("pause")
    client = proxy.raw()
    client.send(wire.startup({"user": "app", "database": "app"}))
    assert client.is_silent(0.5)
    console.query("resume")
    client.finish_login()
    assert client.value("select 1") == "1"


@pytest.mark.parametrize(
    "command, text",
    [
        ("pause nowhere", "no such database: nowhere"),
        ("pause pgbouncer", "cannot pause admin db: pgbouncer"),
        ("resume nowhere", "no such database: nowhere"),
        ("resume", "pooler is not paused/suspended"),
        ("resume app", "database app is not paused"),
        ("kill nowhere", "no such database: nowhere"),
        ("kill pgbouncer", "cannot kill admin db: pgbouncer"),
        ("disable", "a database is required"),
        ("disable nowhere", "no such database: nowhere"),
        ("disable pgbouncer", "cannot disable admin db: pgbouncer"),
        ("enable", "a database is required"),
        ("enable pgbouncer", "cannot enable admin db: pgbouncer"),
        ("reconnect nowhere", "no such database: nowhere"),
        ("reconnect pgbouncer", "cannot reconnect admin db: pgbouncer"),
        ("wait_close nowhere", "no such database: nowhere"),
        ("wait_close pgbouncer", "cannot wait in admin db: pgbouncer"),
        ("kill_client nonsense", "invalid client pointer supplied"),
        ("kill_client 999999", "client not found"),
    ],
)
def test_commands_that_cannot_be_done_say_why(console, command, text):
    assert console.fails(command)["M"] == text
    assert console.query("show version").rows


def test_pausing_twice_is_an_error(console):
    console.query("pause")
    for command in ("pause", "suspend"):
        assert console.fails(command)["M"] == "already suspended/paused"
    console.query("resume")


def test_suspend_stops_traffic_until_resume(proxy, console):
    client = proxy.connect()
    client.value("select 1")
    assert console.query("suspend").tags == ["SUSPEND"]
    assert console.query("show state").rows[2] == ("suspended", "yes")
    client.send(query("select 'held'"))
    assert client.is_silent(0.5)
    console.query("resume")
    assert client.ready().value == "held"
    assert proxy.connect().value("select 1") == "1"


def test_suspend_waits_for_a_message_that_is_half_sent(proxy, console):
    client = proxy.connect()
    message = wire.query("select %r" % ("x" * 100000))
    client.send(message[:50000])
    eventually(lambda: proxy.show("clients", database="app", state="active"))
    console.send(wire.query("suspend"))
    assert console.is_silent(0.5)
    client.send(message[50000:])
    assert console.ready().tags == ["SUSPEND"]
    console.query("resume")
    assert client.ready().rows == [("x" * 100000,)]


def test_a_suspending_console_that_vanishes_resumes(proxy, console):
    client = proxy.connect()
    client.value("select 1")
    console.query("suspend")
    client.send(query("select 'held'"))
    console.drop()
    assert client.ready().value == "held"
    proxy.wait_log("admin disappeared when suspended, doing RESUME")


def test_kill_closes_all_clients_of_a_database_and_leaves_it_paused(proxy, console):
    client, other = proxy.connect(), proxy.connect(database="second")
    client.query("begin")
    assert console.query("kill app").tags == ["KILL"]
    assert "database removed" in client.last_words()["M"]
    assert other.value("select 1") == "1"
    late = proxy.raw()
    late.send(wire.startup({"user": "app", "database": "app"}))
    assert late.is_silent(0.4)
    console.query("resume app")
    late.finish_login()
    assert late.value("select 1") == "1"


def test_kill_of_everything_keeps_the_console(proxy, console):
    clients = [proxy.connect(), proxy.connect(database="second")]
    console.query("kill")
    for client in clients:
        client.last_words()
    assert [r["database"] for r in console.table("show clients")] == ["pgbouncer"]


def test_kill_client(proxy, console):
    victim, other = proxy.connect(), proxy.connect()
    port = str(victim.sock.getsockname()[1])
    number = next(r["id"] for r in console.table("show clients") if r["port"] == port)
    assert console.query("kill_client " + number).tags == ["KILL_CLIENT"]
    assert victim.last_words()["M"] == "admin forced disconnect"
    assert other.value("select 1") == "1"


def test_disable_refuses_new_clients_and_keeps_the_old(proxy, console):
    old = proxy.connect()
    assert console.query("disable app").tags == ["DISABLE"]
    assert proxy.refusal().message == 'database "app" is disabled'
    assert old.value("select 1") == "1"
    assert proxy.show("databases", name="app")[0]["disabled"] == "1"
    assert console.query("enable app").tags == ["ENABLE"]
    assert proxy.connect().value("select 1") == "1"


def test_reconnect_replaces_servers_as_they_come_free(proxy, console):
    idle, busy = proxy.connect(), proxy.connect()
    busy.query("begin")
    before = {busy.value("select pg_backend_pid()"), idle.value("select pg_backend_pid()")}
    assert console.query("reconnect").tags == ["RECONNECT"]
    assert idle.value("select pg_backend_pid()") not in before
    assert busy.value("select pg_backend_pid()") in before
    busy.query("commit")
    assert busy.value("select pg_backend_pid()") not in before


def test_wait_close_waits_for_the_servers_to_replace(proxy, console):
    busy = proxy.connect()
    busy.query("begin")
    console.query("reconnect app")
    console.send(query("wait_close app"))
    assert console.is_silent(0.5)
    busy.query("commit")
    assert console.ready().tags == ["WAIT_CLOSE"]
    with takes(0, 1):
        assert console.query("wait_close").tags == ["WAIT_CLOSE"]


def test_names_in_quotes(start):
    proxy = start(pool_mode="transaction", databases={"app": ""})
    proxy.databases = {"app": "", "'Odd name'": proxy.target("app")}
    proxy.reload()
    assert proxy.connect(database="Odd name").value("select 1") == "1"
    assert proxy.admin('pause "Odd name"').tags == ["PAUSE"]
    assert proxy.admin('resume "Odd name"').tags == ["RESUME"]


# ------------------------------------------------------------------ RELOAD


def test_reload_takes_new_databases_and_drops_removed_ones(proxy, console):
    client, second = proxy.connect(), proxy.connect(database="second")
    proxy.databases = {"app": "", "third": proxy.target("app")}
    proxy.reload()
    assert second.last_words()["M"] == "database removed"
    assert client.value("select 1") == "1"
    assert proxy.connect(database="third").value("select 1") == "1"
    assert proxy.refusal(database="second").message == "no such database: second"
    proxy.wait_log("dropping database 'second' as it does not exist anymore or inactive auto-database")


def test_reload_with_a_changed_target_moves_the_clients_over(proxy, console):
    client = proxy.connect()
    assert client.value("select current_database()") == "app"
    proxy.databases["app"] = proxy.target("second")
    proxy.reload()
    assert client.value("select current_database()") == "second"


@pytest.mark.parametrize(
    "text",
    [
        "[pgbouncer]\nno_such_option = 1\n",
        "[pgbouncer]\npool_mode = nonsense\n",
        "[nonsense]\n",
        "before = section\n",
        "[pgbouncer]\nnot a key value line\n",
        "[databases]\nbad = nokey=1\n",
    ],
)
def test_a_bad_file_changes_nothing(proxy, console, text):
    client = proxy.connect()
    good = proxy.ini.read_text()
    proxy.ini.write_text(good.replace("pool_mode = transaction", "pool_mode = session\nquery_timeout = 77") + text)
    error = console.fails("reload")
    assert (error["C"], error["M"]) == ("F0000", "RELOAD failed, see logs for additional details")
    assert proxy.show("config", key="pool_mode")[0]["value"] == "transaction"
    assert proxy.show("config", key="query_timeout")[0]["value"] == "0"
    assert client.value("select 1") == "1"
    proxy.ini.write_text(good)
    assert console.query("reload").tags == ["RELOAD"]


def test_a_missing_file_changes_nothing(proxy, console):
    hidden = proxy.ini.rename(proxy.folder / "hidden.ini")
    assert console.fails("reload")["C"] == "F0000"
    assert proxy.connect().value("select 1") == "1"
    hidden.rename(proxy.ini)
    assert console.query("reload").tags == ["RELOAD"]


def test_many_reloads_under_load_disturb_nobody(proxy, console):
    clients = [proxy.connect() for _ in range(3)]
    for number in range(15):
        for client in clients:
            client.send(query("select pg_sleep(0.01), %d" % number))
        proxy.databases = {"app": "", "second": "", **{"db%d" % n: proxy.target("app") for n in range(number * 10)}}
        proxy.reload()
        for client in clients:
            assert client.ready().rows == [("", str(number))]
    assert len(proxy.show("databases")) == 2 + 140 + 1


def test_a_database_list_with_several_hosts_is_used_in_turn(start, cluster):
    proxy = start(
        pool_mode="transaction",
        databases={"app": "host=127.0.0.1,localhost port=%d dbname=app load_balance_hosts=disable" % cluster.port},
    )
    assert proxy.connect().value("select 1") == "1"
    assert proxy.pool()["load_balance_hosts"] == "disable"


def test_a_bad_first_host_is_passed_over(start, cluster):
    proxy = start(
        pool_mode="transaction",
        databases={"app": "host=127.0.0.9,127.0.0.1 port=%d dbname=app load_balance_hosts=disable" % cluster.port},
    )
    assert proxy.connect().value("select 1") == "1"
