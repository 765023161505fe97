"""Online restart (-R): a new process takes over sockets and connections, in the middle of whatever they are doing."""

import array
import os
import socket
import threading
import time

import pytest

import harness
import wire
from harness import PG_BIN, eventually, takes
from test_tls import trusting
from wire import query


def successor(proxy, *more):
    """Starts a new process; the old one must end by itself, as at any normal end."""
    old = proxy.process
    proxy.launch("-R", "-q", *more, str(proxy.ini))
    try:
        assert old.wait(20) == 0
    finally:
        if old.poll() is None:
            old.kill()
            old.wait()
    proxy.wait_log("old process killed, resuming work")


def reboot(proxy):
    count = proxy.log().count("process up")
    successor(proxy)
    eventually(lambda: proxy.log().count("process up") == count + 1)
    assert proxy.process.poll() is None, proxy.log()


def asleep(proxy, number):
    eventually(lambda: len(proxy.cluster.backends("wait_event = 'PgSleep'")) == number)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_nothing_is_lost(start, mode, threads):
    """Idle, amid a transaction, asking and waiting clients go on as if nothing had been."""
    proxy = start(pool_mode=mode, default_pool_size=4, worker_threads=threads)
    idle, amid, simple, extended, waiting = (proxy.connect() for _ in range(5))
    if mode == "transaction":
        idle.query("select 1")
    amid.query("begin; create temp table t as select 5 as a")
    simple.send(query("select pg_sleep(2), 'simple'"))
    extended.send(wire.extended("select pg_sleep(2), $1::text", ["extended"], name="named"))
    asleep(proxy, 2)
    pids = proxy.cluster.backends()
    reboot(proxy)
    assert simple.ready().rows == [("", "simple")]
    assert extended.ready().rows == [("", "extended")]
    assert amid.value("select a from t") == "5"
    assert amid.query("commit").status == "I"
    assert set(pids) <= set(proxy.cluster.backends())  # the same server connections
    if mode == "transaction":
        assert idle.value("select 'idle'") == "idle"
        assert waiting.value("select 'waiting'") == "waiting"
    answer = extended.ask(wire.bind("", "named", ["again"]) + wire.describe("P") + wire.execute() + wire.sync())
    assert answer.rows == [("", "again")]
    log = proxy.log()
    for text in (
        "Online restart is deprecated, use so_reuseport instead",
        "takeover_init: launching connection",
        "login OK, sending SUSPEND",
        "SUSPEND finished, sending SHOW FDS",
        "got pooler socket: 127.0.0.1:%d" % proxy.port,
        "got pooler socket: unix:%s/.s.PGSQL.%d" % (proxy.folder, proxy.port),
        "SHOW FDS finished",
        "disko over, going background",
        "sending SHUTDOWN;",
        "old process killed, resuming work",
    ):
        assert text in log, text


def test_five_restarts_under_load(start):
    proxy = start(pool_mode="transaction", default_pool_size=3, max_client_conn=100)
    stop, failures, served, fresh = threading.Event(), [], [], []

    def work(number):
        try:
            client = wire.Conn(proxy.port, timeout=30)
            for n in range(10**9):
                if stop.is_set():
                    return client.terminate()
                assert client.value("select %d" % n) == str(n)
                text = "%d-%d" % (number, n)
                assert client.ask(wire.extended("select $1::text", [text], name="")).rows == [(text,)]
                if n % 5 == 0:
                    client.query("begin")
                    assert client.value("select 'in'") == "in"
                    client.query("commit")
                served.append(1)
        except Exception as e:
            failures.append(repr(e))

    def come_and_go():
        try:
            while not stop.is_set():
                with wire.Conn(proxy.port, timeout=30) as client:
                    assert client.value("select 1") == "1"
                    client.terminate()
                fresh.append(1)
                time.sleep(0.01)
        except Exception as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)] + [threading.Thread(target=come_and_go)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            before = len(served)
            reboot(proxy)
            eventually(lambda: len(served) > before + 20, 15)
    finally:
        stop.set()
        for thread in threads:
            thread.join(40)
    assert failures == []
    assert len(fresh) > 5
    assert len(proxy.cluster.backends()) <= 4


def test_prepared_statements_keep_their_names(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client, other = proxy.connect(), proxy.connect()
    for n in range(3):
        client.ask(wire.parse("s%d" % n, "select %d + $1::int" % n) + wire.sync())
    reboot(proxy)
    for n in range(3):
        assert client.ask(wire.bind("", "s%d" % n, [10]) + wire.execute() + wire.sync()).rows == [(str(n + 10),)]
    # Another text gets another name at the server.
    assert other.ask(wire.extended("select 'other'", name="s1")).rows == [("other",)]
    reboot(proxy)
    assert other.ask(wire.bind("", "s1") + wire.execute() + wire.sync()).rows == [("other",)]
    assert client.ask(wire.bind("", "s2", [1]) + wire.execute() + wire.sync()).rows == [("3",)]


def test_an_error_in_a_pipeline_that_was_on_its_way(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.send(
        wire.parse("a", "select pg_sleep(0.8)")
        + wire.bind("", "a")
        + wire.execute()
        + wire.parse("b", "select 1/0")
        + wire.bind("", "b")
        + wire.execute()
        + wire.parse("c", "select 3")
        + wire.sync()
        + wire.query("select 4")
    )
    asleep(proxy, 1)
    reboot(proxy)
    answer = client.ready(2)
    assert answer.codes == ["22012"] and answer.rows[-1] == ("4",)
    assert client.ask(wire.bind("", "c") + wire.execute() + wire.sync()).codes == ["26000"]  # was skipped
    assert client.ask(wire.bind("", "a") + wire.sync()).kinds == "2Z"


def test_half_a_message(start):
    proxy = start(pool_mode="transaction")
    client, fresh = proxy.connect(), proxy.raw()
    message = wire.extended("select $1::text", ["x" * 3000], name="long")
    client.send(message[:20])
    fresh.send(b"\0\0")
    time.sleep(0.2)
    reboot(proxy)
    client.send(message[20:])
    assert client.ready().rows == [("x" * 3000,)]
    fresh.send(wire.startup({"user": "app", "database": "app"})[2:])
    fresh.finish_login()
    assert fresh.value("select 1") == "1"


def test_copy_goes_on(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.send(query("copy scratch from stdin"))
    client.read_until("G")
    client.send(wire.copy_data(b"1\tone\n"))
    time.sleep(0.2)
    reboot(proxy)
    client.send(wire.copy_data(b"2\ttwo\n") + wire.copy_done())
    assert client.ready().tags == ["COPY 2"]
    assert client.value("select count(*) from scratch") == "2"


def test_a_cancel_after_the_restart(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    reboot(proxy)
    with takes(0, 3):
        client.cancel()
        assert client.ready().codes == ["57014"]


def test_settings_follow_still(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    tokyo, other = proxy.connect(params={"timezone": "Asia/Tokyo"}), proxy.connect()
    assert tokyo.value("show timezone") == "Asia/Tokyo"
    reboot(proxy)
    assert other.value("show timezone") == "UTC"
    assert tokyo.value("show timezone") == "Asia/Tokyo"


def test_clients_that_wait_and_clients_that_log_in(start):
    """With all servers taken: who waits is served after the restart, and a newcomer need not wait for a new server."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    busy, waiting = proxy.connect(), proxy.connect()
    busy.send(query("select pg_sleep(60)"))
    asleep(proxy, 1)
    waiting.send(query("select 'served'"))
    eventually(lambda: proxy.pool()["cl_waiting"] == 1)
    reboot(proxy)
    assert proxy.pool()["cl_waiting"] == 1
    proxy.connect()
    proxy.cluster.sql("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'")
    assert busy.ready().codes == ["57014"]
    assert waiting.ready().rows == [("served",)]


def test_scram_keys_come_along(start, cluster):
    secret = cluster.value("select rolpassword from pg_authid where rolname = 'carol'")
    proxy = start(auth_type="scram-sha-256", userlist={"carol": secret}, pool_mode="transaction")
    client = proxy.connect(user="carol", password="carol-pw")
    reboot(proxy)
    proxy.admin_over_unix("reconnect")
    assert client.value("select current_user") == "carol"


def test_replication_goes_on(start, cluster):
    proxy = start(pool_mode="transaction")
    client = proxy.connect(user="asker", params={"replication": "database"})
    pid = client.value("select pg_backend_pid()")
    reboot(proxy)
    assert client.value("select pg_backend_pid()") == pid
    assert proxy.show("clients", user="asker")[0]["replication"] == "logical"
    client.terminate()
    proxy.wait_log("closing because: replication client was closed")


def test_pidfile_and_socket_file(start, prepare):
    proxy = prepare()
    proxy.write(pidfile=proxy.folder / "pid")
    proxy.start()
    path = proxy.folder / (".s.PGSQL.%d" % proxy.port)
    before = path.stat().st_ino
    for _ in range(2):
        reboot(proxy)
        eventually(lambda: (proxy.folder / "pid").read_text() == "%d\n" % proxy.process.pid)
        assert path.stat().st_ino == before
        assert proxy.connect(host=str(proxy.folder)).value("select 1") == "1"
    proxy.signal(3)
    assert proxy.wait_exit() == 0
    assert not path.exists() and not (proxy.folder / "pid").exists()


def test_nobody_to_take_over_from(prepare):
    proxy = prepare()
    proxy.launch("-R", "-q", str(proxy.ini))
    eventually(proxy.listens, 10)
    proxy.wait_log("old process not found, try to continue normally")
    assert proxy.connect().value("select 1") == "1"


@pytest.mark.parametrize(
    "folder, text",
    [("", "cannot reboot if unix dir not configured"), ("@lk", "cannot reboot with abstract Unix socket")],
)
def test_no_socket_to_ask_at(prepare, folder, text):
    proxy = prepare(unix_socket_dir=folder)
    proxy.launch("-R", "-q", str(proxy.ini))
    assert proxy.wait_exit() == 1
    assert "FATAL " + text in proxy.log()


def test_tls_clients_end_and_the_others_go_on(prepare):
    proxy = prepare(pool_mode="transaction")
    certificate, key = harness.make_certificate(proxy.folder, "proxy")
    proxy.write(client_tls_sslmode="allow", client_tls_cert_file=certificate, client_tls_key_file=key)
    proxy.start()
    plain, secret = proxy.connect(), proxy.connect(tls=trusting())
    reboot(proxy)
    assert plain.value("select 1") == "1"
    with pytest.raises((wire.Closed, OSError)):
        secret.query("select 1")
    assert proxy.connect(tls=trusting()).value("select 1") == "1"


def test_a_database_that_is_gone_or_leads_elsewhere(start):
    proxy = start(databases={"app": "", "gone": "dbname=app", "moved": "dbname=app"}, pool_mode="transaction")
    here, gone, moved = (proxy.connect(database=name) for name in ("app", "gone", "moved"))
    for client in (here, gone, moved):
        assert client.value("select current_database()") == "app"
    proxy.databases = {"app": "", "moved": "dbname=second"}
    proxy.write()
    reboot(proxy)
    assert here.value("select current_database()") == "app"
    assert moved.value("select current_database()") == "second"
    assert gone.read_to_end() == []
    proxy.wait_log("takeover: client lost: no such database: gone")


def test_a_successor_that_dies_halfway(start):
    """Everything has been handed over but the word to end: the old process goes on."""
    proxy = start(pool_mode="transaction")
    idle, busy = proxy.connect(), proxy.connect()
    idle.query("select 1")
    busy.send(query("select pg_sleep(1), 'done'"))
    asleep(proxy, 1)
    console = proxy.console_over_unix()
    console.query("suspend")
    console.send(query("show fds"))
    fds, data = array.array("i"), b""
    while b"SHOW\0" not in data:
        part, control, _, _ = console.sock.recvmsg(65536, 4096)
        data += part
        for _, _, content in control:
            fds.frombytes(content[: len(content) - len(content) % 4])
    assert len(fds) == 5  # two that listen, two clients, one server
    time.sleep(1.2)  # the query ends meanwhile, and nobody reads its answer
    assert busy.is_silent(0.1)
    for fd in fds:
        os.close(fd)
    console.drop()
    proxy.wait_log("admin disappeared when suspended, doing RESUME")
    assert busy.ready().rows == [("", "done")]
    assert idle.value("select 1") == "1"
    assert proxy.connect().value("select 1") == "1"


def test_show_fds_for_the_curious(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect(params={"timezone": "UTC"})
    client.query("begin")
    with proxy.console_over_unix() as console:
        rows = console.table("show fds")
    assert sorted(r["task"] for r in rows) == ["client", "pooler", "pooler", "server"]
    row = next(r for r in rows if r["task"] == "client")
    server = next(r for r in rows if r["task"] == "server")
    assert (row["user"], row["database"], row["addr"], row["timezone"]) == ("app", "app", "127.0.0.1", "UTC")
    assert row["link"] == server["fd"] and server["link"] == row["fd"]
    assert int(row["cancel"]) == int.from_bytes(client.key, "big")
    assert proxy.console(user="stats").fails("show fds")["M"] == "admin access needed"


def test_a_slow_reader_in_the_way(start):
    """What a client does not read keeps SUSPEND waiting; it goes in time, the others stay."""
    proxy = start(pool_mode="transaction", suspend_timeout=1)
    slow, other = proxy.connect(receive_buffer=4096), proxy.connect()
    other.query("select 1")
    slow.send(query("select repeat('x', 1000) from generate_series(1, 50000)"))
    slow.read_until("D")
    time.sleep(0.3)
    reboot(proxy)
    assert other.value("select 1") == "1"
    assert proxy.connect().value("select 1") == "1"
