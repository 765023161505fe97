"""What a server says though nobody asked: the connection ends, and no client takes it for its answer."""

import signal
import time

import pytest

import wire
from fake_server import server  # noqa: F401
from harness import eventually
from wire import query


def stopped(proxy):
    proxy.signal(signal.SIGSTOP)
    eventually(lambda: open("/proc/%d/stat" % proxy.process.pid).read().rsplit(")", 1)[1].split()[0] == "T")


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def proxy(request, start, server):  # noqa: F811
    there = server()
    made = start(
        databases={"app": there.entry()}, pool_mode="transaction", default_pool_size=2, worker_threads=request.param
    )
    made.server = there
    return made


@pytest.mark.parametrize("idle", [0, 0.05])
def test_rows_that_come_together_with_the_next_query(proxy, idle):
    """The proxy finds both at once, the query first."""
    clients = [proxy.connect() for _ in range(3)]
    for number in range(8):
        client = clients[number % 3]
        assert client.value("select before") == "before"
        time.sleep(idle)
        stopped(proxy)
        client.send(query("select %d" % number))
        for stream in list(proxy.server.streams):
            try:
                proxy.server.say(stream, "stale")
            except (OSError, ValueError):
                pass  # closed by the proxy, which was right
        proxy.signal(signal.SIGCONT)
        answer = client.ready()
        assert (answer.rows, answer.codes) == ([(str(number),)], [])
        assert client.is_silent(0.05)
    proxy.wait_log("unexpected message 'T'", count=8)


def test_what_may_come_at_any_time_harms_nothing(proxy):
    """A notice and a parameter."""
    client = proxy.connect()
    assert client.value("select one") == "one"
    (stream,) = proxy.server.streams
    for _ in range(3):
        stopped(proxy)
        client.send(query("select two"))
        stream.write(wire.message("N", b"SNOTICE\0C00000\0Mhear\0\0") + wire.message("S", b"odd\0yes\0"))
        stream.flush()
        proxy.signal(signal.SIGCONT)
        assert client.ready().value == "two"
    assert len(proxy.server.streams) == 1
