"""Many clients, and clients and servers that vanish at bad moments: nothing of one client may reach another."""

import asyncio
import os
import random
import signal
import threading
import time

import pytest

import wire
from harness import eventually
from wire import bind, copy_data, execute, flush, parse, query, sync


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def workers(request):
    return request.param


def in_threads(count, work):
    """Runs work(number) in so many threads; the first failure is raised."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


async def talk(proxy, number, rounds, gate):
    """One client: waits until all are logged in, then asks and checks its own answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)

    async def until_ready():
        rows = []
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            kind = head[:1].decode()
            assert kind != "E", body
            if kind == "D":
                rows.append(wire.decode_row(body))
            if kind == "Z":
                return rows

    writer.write(wire.startup({"user": "app", "database": "app", "application_name": "client %d" % number}))
    await until_ready()
    gate["open"].release()
    await gate["start"].wait()
    for turn in range(rounds):
        mark = "%d.%d" % (number, turn)
        if turn % 2:
            writer.write(query("select '%s', current_setting('application_name')" % mark))
        else:
            writer.write(wire.extended("select $1::text, current_setting('application_name')", [mark]))
        assert await until_ready() == [(mark, "client %d" % number)]
    writer.write(wire.terminate())
    writer.close()


def test_a_thousand_clients_over_a_pool_of_twenty(start, cluster, workers):
    proxy = start(
        pool_mode="transaction", default_pool_size=20, max_client_conn=1100, worker_threads=workers, listen_backlog=1000
    )

    async def run():
        gate = {"open": asyncio.Semaphore(0), "start": asyncio.Event()}
        clients = [asyncio.create_task(talk(proxy, n, 6, gate)) for n in range(1000)]
        for _ in clients:
            await gate["open"].acquire()
        gate["start"].set()
        await asyncio.gather(*clients)

    asyncio.run(asyncio.wait_for(run(), 120))
    assert len(cluster.backends("usename = 'app'")) <= 20
    eventually(lambda: proxy.show("lists", list="used_clients")[0]["items"] in ("0", "1"))


# What a client leaves behind when it vanishes: (name, what it sends before it does).
MOMENTS = {
    "in a transaction with a setting": query("begin; set local work_mem = '99MB'; create temp table left_over (a int)"),
    "in the middle of a result": query("select repeat('r', 1000) from generate_series(1, 100000)"),
    "in the middle of COPY out": query("copy (select repeat('c', 1000) from generate_series(1, 100000)) to stdout"),
    "in the middle of COPY in": query("copy scratch from stdin") + copy_data(b"1\tleft over\n") * 50,
    "between Parse and Sync": parse("left", "select 'left over'") + bind("", "left") + execute() + flush(),
    "with a batch half sent": parse("", "select 'left over'") + bind("", "")[:7],
    "with a failed transaction": query("begin") + query("select nonsense"),
    "with notices under way": query(
        "do $$ begin for i in 1..2000 loop raise notice 'left over %', i; end loop; end $$"
    ),
    "while asleep": query("select pg_sleep(0.2), 'left over'"),
    "with an unread error": query("select 1/0"),
    "behind a pipeline": query("select 'left over'") * 50,
}


def sees_nothing_of_others(client, mark):
    """A client's first exchanges show only what a fresh session would show."""
    answer = client.ask(
        query("select '%s', current_setting('work_mem'), current_setting('transaction_read_only')" % mark)
    )
    assert answer.kinds == "TDCZ", answer
    assert answer.status == "I"
    assert answer.rows == [(mark, "4MB", "off")]
    assert client.value("select count(*) from pg_class where relname = 'left_over'") == "0"
    answer = client.ask(parse("left", "select '%s'" % mark) + bind("", "left") + execute() + sync())
    assert answer.rows == [(mark,)]
    assert client.value("select count(*) from scratch where note = 'left over'") == "0"


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("leave", ["drop", "reset", "terminate"])
@pytest.mark.parametrize("moment", sorted(MOMENTS))
def test_a_client_that_vanishes_leaves_nothing_to_the_next(start, mode, leave, moment):
    proxy = start(pool_mode=mode, default_pool_size=1)
    for turn in range(4):
        client = proxy.connect(receive_buffer=4096 if "middle" in moment else None)
        client.send(MOMENTS[moment])
        if turn % 2:
            client.is_silent(0.03)  # gives the server time to answer
        getattr(client, leave)()
        with proxy.connect() as other:
            sees_nothing_of_others(other, "%s %d" % (leave, turn))
            other.terminate()


def test_clients_vanish_at_random_while_others_work(start, cluster, workers):
    proxy = start(pool_mode="transaction", default_pool_size=3, max_client_conn=300, worker_threads=workers)
    moments = list(MOMENTS.values())

    def work(number):
        dice = random.Random(number)
        for turn in range(25):
            client = proxy.connect()
            if number % 2:
                client.send(dice.choice(moments))
                client.is_silent(dice.choice([0.001, 0.01, 0.03]))
                getattr(client, dice.choice(["drop", "reset"]))()
            else:
                sees_nothing_of_others(client, "%d-%d" % (number, turn))
                client.terminate()

    in_threads(12, work)
    eventually(lambda: len(cluster.backends("usename = 'app'")) <= 3)
    eventually(lambda: proxy.pool()["sv_active"] == 0)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_terminated_backends_are_replaced(start, cluster, mode):
    proxy = start(pool_mode=mode, default_pool_size=1)
    for turn in range(8):
        client = proxy.connect()
        client.send(query("select repeat('d', 1000), pg_sleep(0.00005) from generate_series(1, 100000)"))
        client.read_until("T")
        eventually(
            lambda: cluster.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'" " and state = 'active'"
            ).rows
        )
        words = client.read_to_end()
        assert [e["S"] for e in words.errors].count("FATAL") >= 1
        assert {e["M"] for e in words.errors} <= {
            "terminating connection due to administrator command",
            "server conn crashed?",
        }
        sees_nothing_of_others(proxy.connect(), "turn %d" % turn)
        for c in proxy.open:
            c.drop()


def test_a_backend_terminated_while_idle_is_noticed(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    for turn in range(10):
        client.value("select 1")
        cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
        eventually(lambda: not cluster.backends("usename = 'app'"))
        eventually(lambda: proxy.pool()["sv_idle"] == 0)
        assert client.value("select %d" % turn) == str(turn)


def test_a_killed_backend_and_the_crash_recovery_after_it(start, cluster, workers):
    proxy = start(
        pool_mode="transaction",
        default_pool_size=5,
        query_wait_timeout=30,
        worker_threads=workers,
        server_login_retry=0.2,
    )
    clients = [proxy.connect() for _ in range(5)]
    for client in clients:
        client.send(query("select repeat('k', 1000), pg_sleep(0.0005) from generate_series(1, 100000)"))
        client.read_until("D")
    os.kill(cluster.backends("usename = 'app' and state = 'active'")[0], signal.SIGKILL)
    for client in clients:
        # Where the stream broke off within a message, an error message would be taken for the rest of it.
        assert client.read_to_end().errors or client.buffer
    eventually(cluster.answers, 30, "PostgreSQL is up again")

    def let_in():
        try:
            return proxy.connect()
        except (wire.PgError, wire.Closed):
            return None

    client = eventually(let_in, 20, "the proxy serves again")
    assert client.value("select 'recovered'") == "recovered"


def test_settings_never_leak_between_clients_of_transaction_pooling(start, workers):
    proxy = start(pool_mode="transaction", default_pool_size=2, max_client_conn=100, worker_threads=workers)
    zones = ["UTC", "Asia/Tokyo", "Europe/Paris", "America/Lima", "Africa/Cairo"]

    def work(number):
        zone = zones[number % len(zones)]
        client = proxy.connect(params={"TimeZone": zone, "application_name": "worker %d" % number})
        for turn in range(40):
            answer = client.query("select current_setting('timezone'), current_setting('application_name'), %d" % turn)
            assert answer.rows == [(zone, "worker %d" % number, str(turn))]

    in_threads(15, work)


def test_connections_come_and_go_without_leaking_descriptors(start, workers):
    proxy = start(pool_mode="transaction", default_pool_size=2, max_client_conn=200, worker_threads=workers)
    proxy.connect().value("select 1")
    folder = "/proc/%d/fd" % proxy.process.pid
    eventually(lambda: proxy.pool()["sv_idle"] == 1)

    def work(number):
        for turn in range(40):
            client = proxy.raw() if turn % 4 == 0 else proxy.connect()
            if turn % 4 == 1:
                client.send(query("select pg_sleep(0.01)"))
                client.cancel()
            getattr(client, ["drop", "reset", "drop", "terminate"][turn % 4])()

    before = len(os.listdir(folder))
    in_threads(8, work)
    eventually(lambda: len(os.listdir(folder)) <= before + 3)


def test_pause_and_resume_under_load_lose_nothing(start, workers):
    proxy = start(pool_mode="transaction", default_pool_size=3, worker_threads=workers)
    stop = threading.Event()
    counts = [0] * 6

    def work(number):
        if number == 6:
            try:
                for _ in range(8):
                    for command in ("pause", "resume", "suspend", "resume", "reconnect"):
                        with proxy.console() as console:
                            if command == "suspend":  # the console that suspends must stay
                                console.query("suspend")
                                console.query("resume")
                            elif command != "resume" or proxy.show("state", key="paused")[0]["value"] == "yes":
                                console.query(command)
                    time.sleep(0.05)  # the others' turn
            finally:
                stop.set()
            return
        client = proxy.connect()
        while not stop.is_set():
            counts[number] += 1
            assert client.value("select %d" % counts[number]) == str(counts[number])

    in_threads(7, work)
    assert min(counts) > 3


@pytest.mark.parametrize("commands", [["kill app", "resume app"], ["pause app", "resume app"], ["reload"], ["reconnect"]])
def test_servers_between_two_workers_are_not_forgotten(start, cluster, commands):
    """Under orders that close servers while these are handed from worker to worker."""
    proxy = start(
        databases={"app": "", "other": ""},
        pool_mode="transaction",
        default_pool_size=3,
        max_client_conn=300,
        worker_threads=3,
        server_check_delay=0,
    )
    stop = time.monotonic() + 4

    def work(number):
        if number == 0:
            while time.monotonic() < stop:
                with proxy.console() as console:
                    if commands == ["reload"]:
                        for databases in ({"other": ""}, {"app": "", "other": ""}):
                            proxy.databases = databases
                            proxy.write()
                            console.query("reload")
                    for command in commands:
                        console.query(command)
                time.sleep(0.01)
            return
        while time.monotonic() < stop:
            client = None
            try:
                client = proxy.connect(timeout=10)
                while time.monotonic() < stop:
                    said = str(random.random())
                    assert client.value("select '%s'" % said) == said
            except (wire.PgError, wire.Closed, OSError):
                time.sleep(0.001)  # killed, or its database dropped for the moment
            finally:
                if client:
                    client.drop()

    in_threads(13, work)
    eventually(lambda: len(cluster.backends("usename = 'app'")) <= 3)
    assert proxy.connect().value("select 1") == "1"


@pytest.mark.parametrize("leave", ["drop", "reset", "terminate"])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_clients_that_leave_during_a_long_query_free_their_servers(start, mode, leave):
    proxy = start(pool_mode=mode, default_pool_size=2, query_wait_timeout=6)
    for _ in range(2):
        client = proxy.connect()
        client.send(query("select pg_sleep(9)"))
        eventually(lambda: proxy.cluster.backends("wait_event = 'PgSleep'"))
        getattr(client, leave)()
    assert proxy.connect().value("select 'next'") == "next"


def test_a_reset_that_comes_with_half_a_message_is_noticed(start):
    proxy = start(pool_mode="transaction", default_pool_size=20, max_client_conn=100)
    for _ in range(20):
        client = proxy.connect()
        client.send(query("begin"))
        eventually(lambda: proxy.cluster.backends("state = 'idle in transaction'"))
        client.send(query("select 'half of this'")[:12])
        client.drop()  # its answer is unread, so the kernel sends a reset right behind the data
    eventually(lambda: not proxy.show("clients", database="app"))
    eventually(lambda: not proxy.cluster.backends("state = 'idle in transaction'"))
