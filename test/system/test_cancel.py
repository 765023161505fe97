"""CancelRequest: it reaches the query it is meant for, and no other."""

import contextlib
import os
import signal
import threading
import time

import pytest

from harness import eventually, takes
from wire import cancel_request, query


def asleep(proxy, number):
    """Waits until so many queries run; a cancel that comes before its query has no effect, by nature."""
    eventually(lambda: len(proxy.cluster.backends("wait_event = 'PgSleep'")) == number)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_cancel_reaches_the_clients_own_query(start, mode):
    proxy = start(pool_mode=mode)
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    with takes(0, 3):
        assert client.cancel() == []
        assert client.ready().codes == ["57014"]
    proxy.wait_log("successfully sent cancel request")
    assert client.value("select 1") == "1"


def test_a_cancel_after_a_full_pool_goes_ahead_of_the_queue(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    busy, waiting = proxy.connect(), proxy.connect()
    busy.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    waiting.send(query("select 'served'"))
    eventually(lambda: proxy.pool()["cl_waiting"] == 1)
    with takes(0, 3):
        busy.cancel()
        assert busy.ready().codes == ["57014"]
        assert waiting.ready().value == "served"


def test_the_cancel_of_an_idle_client_spares_the_others(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    idle, busy = proxy.connect(), proxy.connect()
    idle.query("select 1")
    busy.send(query("select pg_sleep(0.5), 'spared'"))
    asleep(proxy, 1)
    for _ in range(5):
        idle.cancel()
    assert busy.ready().rows == [("", "spared")]
    proxy.wait_log("cancel request for idle client")


def test_a_cancel_of_a_waiting_client_does_not_hit_the_running_one(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    waiting, busy = proxy.connect(), proxy.connect()
    busy.send(query("select pg_sleep(2), 'spared'"))
    asleep(proxy, 1)
    waiting.send(query("select 'mine'"))
    eventually(lambda: proxy.pool()["cl_waiting"] == 1)
    waiting.cancel()
    assert busy.ready().rows == [("", "spared")]


def test_an_unknown_key_is_closed_without_an_answer(start):
    proxy = start()
    client = proxy.connect()
    assert client.cancel(os.urandom(8)) == []
    proxy.wait_log("failed cancel request")
    assert client.value("select 1") == "1"


@pytest.mark.parametrize("key", [b"a", b"abc", b"x" * 7, b"x" * 9, b"x" * 60])
def test_a_malformed_cancel_request_harms_nobody(start, key):
    proxy = start()
    client = proxy.connect()
    client.cancel(key)
    assert client.value("select 1") == "1"


def test_each_client_has_a_key_of_its_own(start):
    proxy = start()
    keys = {proxy.connect().key for _ in range(30)}
    assert len(keys) == 30


def test_keys_of_other_clients_do_not_match(start):
    proxy = start(default_pool_size=2)
    first, second = proxy.connect(), proxy.connect()
    first.send(query("select pg_sleep(2), 'first'"))
    second.send(query("select pg_sleep(20)"))
    asleep(proxy, 2)
    second.cancel()
    assert second.ready().codes == ["57014"]
    assert first.ready().rows == [("", "first")]


def test_a_cancel_that_comes_too_late_hits_nobody(start):
    """Clients take turns on one server; each query's cancel is sent as the query ends."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    victim = proxy.connect()
    stop, failures, served = threading.Event(), [], []

    def serve():
        while not stop.is_set():
            answer = victim.ask(query("select pg_sleep(0.002)"))
            served.append(1)
            failures.extend(answer.codes)

    thread = threading.Thread(target=serve)
    thread.start()
    for _ in range(100):
        client = proxy.connect()
        client.send(query("select 1"))
        canceller = threading.Thread(target=client.cancel)
        canceller.start()
        client.ready()
        canceller.join()
        client.terminate()
    stop.set()
    thread.join()
    assert len(served) > 10
    assert failures == []


def test_a_hundred_cancels_at_once_end_their_own_queries_only(start):
    proxy = start(pool_mode="transaction", default_pool_size=4, max_client_conn=500)
    clients = [proxy.connect() for _ in range(4)]
    for client in clients:
        client.send(query("select pg_sleep(20)"))
    asleep(proxy, 4)
    threads = [threading.Thread(target=clients[n % 3].cancel) for n in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients[:3]:
        assert client.ready().codes == ["57014"]
    assert clients[3].is_silent(0.3)
    assert [c.value("select 'well'") for c in clients[:3]] == ["well"] * 3
    clients[3].cancel()
    assert clients[3].ready().codes == ["57014"]


def test_a_waiting_cancel_is_given_up_after_its_time(start):
    # Cancels may have one extra connection per server; with those taken by a server that never answers, more must wait.
    proxy = start(pool_mode="transaction", default_pool_size=1, cancel_wait_timeout=1)
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    proxy.cluster.process.send_signal(signal.SIGSTOP)  # the postmaster accepts no connection now
    try:
        threads = [threading.Thread(target=client.cancel) for _ in range(4)]
        for thread in threads:
            thread.start()
        proxy.wait_log("closing because: cancel_wait_timeout")
    finally:
        proxy.cluster.process.send_signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    assert client.ready().codes == ["57014"]


def test_a_stop_ends_cancels_under_way_and_waiting(start):
    # The proxy checks for leaks as it ends, in the build with sanitizers.
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    client.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    proxy.cluster.process.send_signal(signal.SIGSTOP)  # the postmaster answers none of them

    def cancel():
        with contextlib.suppress(ConnectionError):  # the last ones may come when the proxy has gone
            client.cancel()

    try:
        threads = [threading.Thread(target=cancel) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: int(proxy.show("pools", database="app")[0]["cl_waiting_cancel_req"]) > 0)
        proxy.signal(signal.SIGQUIT)
        assert proxy.wait_exit() == 0
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
    finally:
        proxy.cluster.process.send_signal(signal.SIGCONT)


def test_cancel_through_the_unix_socket(start):
    proxy = start()
    client = proxy.connect(host=str(proxy.folder))
    client.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    client.cancel()
    assert client.ready().codes == ["57014"]


def test_cancel_of_a_waiting_console_command_resumes(start):
    proxy = start(pool_mode="transaction")
    client, console = proxy.connect(), proxy.console()
    client.query("begin")
    console.send(query("pause"))
    eventually(lambda: "PAUSE command issued" in proxy.log())
    console.cancel()
    console.drop()
    client.query("commit")
    with takes(0, 3):
        assert client.value("select 1") == "1"


def test_a_cancel_in_the_middle_of_a_pipeline(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    client.send(query("select 1") + query("select pg_sleep(20)") + query("select 3"))
    asleep(proxy, 1)
    time.sleep(0.2)
    client.cancel()
    answer = client.ready(3)
    assert answer.codes == ["57014"]
    assert [r[0] for r in answer.rows] == ["1", "3"]


def test_many_cancels_that_cannot_be_delivered_time_out(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1, cancel_wait_timeout=1)
    client = proxy.connect()
    client.send(query("select pg_sleep(3)"))
    asleep(proxy, 1)
    os.kill(cluster.process.pid, signal.SIGSTOP)  # the postmaster: connections are made, and nothing is read
    try:
        connections = [proxy.raw() for _ in range(5)]
        for connection in connections:
            connection.send(cancel_request(client.key))
        proxy.wait_log("closing because: cancel_wait_timeout", count=4)
    finally:
        os.kill(cluster.process.pid, signal.SIGCONT)
    # The first one, which had a connection, may be delivered yet; the rest has gone, and the client goes on.
    assert client.ready().kinds in ("TDCZ", "TEZ")
    assert client.value("select 1") == "1"
