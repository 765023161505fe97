"""Lines of the log that scripts and monitoring look for, in PgBouncer's words."""

import re

import pytest

import wire
from harness import eventually
from wire import bind, describe, execute, parse, sync

CLIENT = r"C-0x[0-9a-f]+: %s@127\.0\.0\.1:\d+ "
SERVER = r"S-0x[0-9a-f]+: %s@127\.0\.0\.1:\d+ "
APP = CLIENT % "app/app"


def has(proxy, *lines):
    """Each is the whole of a line behind its level, as a regular expression."""
    for line in lines:
        proxy.wait_log(r"\] %s\n" % line)


def test_the_start(start):
    proxy = start(max_client_conn=50)
    has(
        proxy,
        # 20 for each of two users and the console's own
        r"LOG kernel file descriptor limit: \d+ \(hard: \d+\); max_client_conn: 50, max expected fd use: \d+",
        r"LOG listening on 127\.0\.0\.1:%d" % proxy.port,
        r"LOG listening on unix:%s/\.s\.PGSQL\.%d" % (proxy.folder, proxy.port),
        r"LOG process up: \S+ .*, libevent \S+ \(epoll\), adns: \S+ \S+, tls: .*",
    )


def test_a_client_and_its_server(start):
    proxy = start()
    with proxy.connect() as client:
        client.query("select 1")
        client.terminate()
    has(
        proxy,
        "LOG " + APP + "login attempt: db=app user=app tls=no replication=no",
        "LOG " + SERVER % "app/app" + r"new connection to server \(from 127\.0\.0\.1:\d+\)",
        "LOG " + APP + r"closing because: client close request \(age=0s\)",
    )
    with proxy.connect(user="nobody", login=False) as client:
        client.send(wire.startup({"user": "nobody", "database": "app"}))
        client.last_words()
    has(proxy, "LOG .* no such user: nobody", "WARNING .* pooler error: .*")
    assert proxy.refusal(database="nowhere").code == "3D000"
    has(proxy, "LOG .* login failed: db=nowhere user=app", "WARNING .* pooler error: no such database: nowhere")


def test_who_says_nothing_is_not_told_of(start):
    proxy = start()
    proxy.raw().drop()
    proxy.connect().query("select 1")
    assert "closing because" not in proxy.log()


def test_an_auto_database(start):
    proxy = start(databases={"*": ""})
    proxy.connect(database="anything")
    has(proxy, "LOG " + CLIENT % r"anything/app" + "registered new auto-database: anything")


def test_a_server_that_refuses(start):
    proxy = start(databases={"app": "", "gone": ""})
    assert proxy.refusal(database="gone").code == "3D000"
    has(proxy, "WARNING " + SERVER % "gone/app" + 'server login failed: FATAL database "gone" does not exist')


def test_a_name_without_address(start):
    proxy = start(databases={"app": "host=no.such.host.invalid port=1"}, query_wait_timeout=1)
    proxy.refusal()
    proxy.wait_log("WARNING .*DNS lookup failed: no.such.host.invalid: result=")
    proxy.wait_log("server DNS lookup failed")


def test_a_setting_and_its_spelling(start):
    proxy = start(verbose=2, pool_mode="transaction")
    client = proxy.connect(params={"DateStyle": "ISO"})
    for _ in range(3):
        client.query("select 1")
    has(proxy, "DEBUG " + APP + "varcache_set_canonical: setting DateStyle to its canonical version ISO -> ISO, MDY")
    assert len(re.findall("varcache_apply: .*SET DateStyle='ISO'", proxy.log())) == 1
    assert proxy.log().count("varcache_set_canonical") == 1


def test_a_setting_that_cannot_be_set(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect(params={"TimeZone": "Nowhere"})
    client.send(wire.query("select 1"))
    assert client.last_words()["M"] == "invalid server parameter"
    proxy.wait_log("ERROR .*varcache_apply failed: ERROR: ")


def test_faults_in_names_of_statements(start):
    """PostgreSQL's errors, with PgBouncer's words for who looks for them."""
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.ask(parse("taken", "select 1") + sync())
    error = client.ask(parse("taken", "select 2") + sync()).errors[0]
    assert (error["S"], error["C"], error["M"]) == ("ERROR", "42P05", 'prepared statement "taken" already exists')
    assert error["D"] == "prepared statement name is already in use"
    has(proxy, "ERROR " + APP + "prepared statement 'taken' was already prepared")
    for message in (bind("", "who") + execute(), describe("S", "who")):
        error = client.ask(message + sync()).errors[0]
        assert (error["S"], error["C"], error["M"]) == ("ERROR", "26000", 'prepared statement "who" does not exist')
        assert error["D"] == "prepared statement did not exist"
    has(
        proxy,
        "ERROR " + APP + "prepared statement 'who' not found",
        "WARNING " + APP + "pooler error: prepared statement did not exist",
    )
    assert client.value("select 1") == "1"


def test_in_session_mode_they_are_the_servers_alone(start):
    proxy = start()
    client = proxy.connect()
    error = client.ask(bind("", "who") + sync()).errors[0]
    assert "D" not in error and "not found" not in proxy.log()


COMMANDS = ["RELOAD", "PAUSE", "RESUME", "SUSPEND", "RESUME", "RECONNECT", "PAUSE app", "RESUME app", "RECONNECT app"]
COMMANDS += ["DISABLE app", "ENABLE app", "WAIT_CLOSE app", "WAIT_CLOSE", "KILL app", "RESUME app"]


def test_commands_of_the_console(start):
    proxy = start()
    console = proxy.console()
    for command in COMMANDS:
        console.query(command)
        word, _, database = command.partition(" ")
        proxy.wait_log(r"LOG (\S+ )?%s %scommand issued" % (word, "'%s' " % database if database else ""))
    console.fails("PAUSE nowhere")
    has(proxy, "ERROR .*no such database: nowhere", "WARNING .*pooler error: no such database: nowhere")
    console.send(wire.query("SHUTDOWN WAIT_FOR_CLIENTS"))
    proxy.wait_log("LOG .*SHUTDOWN WAIT_FOR_CLIENTS command issued")
    console.drop()
    assert proxy.wait_exit() == 0
    has(proxy, "LOG client connections dropped, exiting")


def test_statistics(start):
    proxy = start(stats_period=1)
    proxy.connect().query("select 1")
    number = r"\d+"
    has(
        proxy,
        "LOG stats: %s xacts/s, %s queries/s, %s client parses/s, %s server parses/s, %s binds/s, %s client logins/s, "
        "in %s B/s, out %s B/s, xact %s us, query %s us, wait %s us" % ((number,) * 11),
    )


def test_a_console_on_the_unix_socket(start):
    proxy = start()
    proxy.console_over_unix()
    proxy.wait_log("LOG C-0x[0-9a-f]+: pgbouncer/pgbouncer@unix\\(\\d+\\):%d .*pgbouncer access from unix socket" % proxy.port)


def test_a_pool_that_nobody_uses(start):
    proxy = start(pool_idle_timeout=1, server_idle_timeout=1)
    proxy.connect().drop()
    proxy.wait_log(r"LOG .*cleaning up idle pool for user app on db app because: pool idle timeout \(age= \d+s\)", 8)


def test_the_reserve(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, reserve_pool_size=1, reserve_pool_timeout=1)
    holder, other = proxy.connect(), proxy.connect()
    holder.query("begin")
    assert other.value("select 1") == "1"
    has(proxy, "WARNING " + r"C-0x[0-9a-f]+: \S+ taking connection from reserve_pool")
