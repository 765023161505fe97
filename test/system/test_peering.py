"""Several processes behind one port: a cancel request reaches its query whichever of them it comes to."""

import os
import random
import signal
import struct
import threading

import pytest

from harness import eventually, takes
from wire import Conn, cancel_request, query


def asleep(cluster, number):
    eventually(lambda: len(cluster.backends("wait_event = 'PgSleep'")) == number)


@pytest.fixture
def family(prepare):
    """family(count, by=...) starts so many processes on one port; peers are named by unix folder, address or both."""

    def make(count, by="unix", **settings):
        settings = {"pool_mode": "transaction", "so_reuseport": 1, **settings}
        proxies = [prepare(**settings) for _ in range(count)]
        shared = proxies[0].port
        for number, proxy in enumerate(proxies, 1):
            proxy.own_port = proxy.port  # of its own, where peers reach it by address
            proxy.port = shared
            proxy.write(listen_port=shared, peer_id=number)
        for proxy in proxies:
            proxy.peers = {
                number: "host=%s port=%d" % (other.folder, shared) for number, other in enumerate(proxies, 1)
            }
            proxy.write()
            proxy.start()
        return proxies

    return make


def of(proxy, **kw):
    """A client of this very process, by its unix socket."""
    return proxy.connect(host=str(proxy.folder), **kw)


def send_cancel(proxy, key):
    with Conn(proxy.port, host=str(proxy.folder), login=False) as c:
        c.send(cancel_request(key))
        return c.read_to_end()


def test_marks_of_the_key(family):
    for number, proxy in enumerate(family(2), 1):
        for _ in range(10):
            key = of(proxy).key
            assert (key[0] & 0x80, key[1], key[2], key[7] & 3) == (0, number, 0, 3)


def test_any_process_takes_the_cancel(family, cluster):
    proxies = family(3)
    for owner in proxies:
        client = of(owner)
        for other in proxies:
            client.send(query("select pg_sleep(20)"))
            asleep(cluster, 1)
            with takes(0, 3):
                assert send_cancel(other, client.key) == []
                assert client.ready().codes == ["57014"]
    for other in proxies:
        other.wait_log("successfully sent cancel request", count=3)


def test_over_the_shared_port(family, cluster):
    """As applications do it: the kernel chooses who gets the connection, and who the cancel."""
    proxies = family(3)
    clients = [proxies[0].connect() for _ in range(12)]
    assert len({c.key[1] for c in clients}) > 1
    for client in clients:
        client.send(query("select pg_sleep(30)"))
    asleep(cluster, 12)
    random.shuffle(clients)
    for client in clients:
        client.cancel()
    for client in clients:
        assert client.ready().codes == ["57014"]


def test_no_other_query_is_hit(family, cluster):
    first, second = family(2)
    victim, client = of(first), of(first)
    victim.send(query("select pg_sleep(2), 'spared'"))
    client.send(query("select pg_sleep(20)"))
    asleep(cluster, 2)
    for _ in range(5):
        send_cancel(second, client.key)
    assert client.ready().codes == ["57014"]
    assert victim.ready().rows == [("", "spared")]


def with_hops(key, hops):
    return key[:7] + bytes([key[7] & ~3 | hops])


def test_hops_come_to_an_end(family, cluster):
    first, second = family(2)
    client = of(first)
    client.send(query("select pg_sleep(20)"))
    asleep(cluster, 1)
    send_cancel(second, with_hops(client.key, 0))
    second.wait_log("failed to forward cancel request because its TTL was exhausted")
    assert client.is_silent(0.3)
    send_cancel(second, with_hops(client.key, 1))
    assert client.ready().codes == ["57014"]


def test_a_loop_of_wrong_entries_ends(family):
    """Two processes that each take the other for number 7."""
    first, second = family(2)
    for proxy, other in ((first, second), (second, first)):
        proxy.peers[7] = "host=%s port=%d" % (other.folder, other.port)
        proxy.write()
        with of(proxy, user="admin", database="pgbouncer") as console:
            console.query("reload")
    key = b"\x01\x07\x00" + os.urandom(4) + b"\xff"
    with takes(0, 3):
        send_cancel(first, key)
    texts = first.log() + second.log()
    assert texts.count("TTL was exhausted") == 1
    assert texts.count("successfully sent cancel request") == 3


def test_peers_that_are_not_there(family):
    first, _ = family(2)
    send_cancel(first, b"\x01\x09\x00" + os.urandom(4) + b"\xff")
    first.wait_log("could not find peer to forward request to")
    first.peers.update({9: "host=%s port=1" % first.folder, 10: "host=127.0.0.1 port=1", 11: "host=nowhere.invalid"})
    first.write()
    with of(first, user="admin", database="pgbouncer") as console:
        console.query("reload")
    for number in (9, 10):
        send_cancel(first, bytes([1, number, 0]) + os.urandom(4) + b"\xff")
    first.wait_log("connection to peer failed", count=2)
    send_cancel(first, b"\x01\x0b\x00" + os.urandom(4) + b"\xff")
    first.wait_log("DNS lookup of peer failed")
    send_cancel(first, b"\x01\x01\x00" + os.urandom(4) + b"\xff")  # its own number, and nobody's key
    first.wait_log("failed cancel request")


def test_peers_by_address(prepare, cluster):
    proxies = [prepare(pool_mode="transaction", peer_id=n) for n in (1, 2)]
    for proxy in proxies:
        proxy.peers = {1: "host=localhost port=%d" % proxies[0].port, 2: "host=127.0.0.1 port=%d" % proxies[1].port}
        proxy.write()
        proxy.start()
    for owner, other in (proxies, proxies[::-1]):
        client = owner.connect()
        client.send(query("select pg_sleep(20)"))
        asleep(cluster, 1)
        with Conn(other.port, login=False) as c:
            c.send(cancel_request(client.key))
            c.read_to_end()
        assert client.ready().codes == ["57014"]


def test_more_requests_than_places(family, cluster):
    """A peer that stands still: the rest waits, is shown, and is given up in time."""
    first, second = family(2, cancel_wait_timeout=2)
    first.peers[2] += " pool_size=1"
    first.write()
    with of(first, user="admin", database="pgbouncer") as console:
        console.query("reload")
        assert [row["pool_size"] for row in console.table("show peers")] == ["20", "1"]
        client = of(second)
        client.send(query("select pg_sleep(20)"))
        asleep(cluster, 1)
        second.signal(signal.SIGSTOP)
        try:
            threads = [threading.Thread(target=send_cancel, args=(first, client.key)) for _ in range(4)]
            for thread in threads:
                thread.start()
            row = lambda: console.table("show peer_pools")[1]
            eventually(lambda: row()["cl_waiting_cancel_req"] == "3")
            assert row() == {
                "peer_id": "2",
                "cl_active_cancel_req": "1",
                "cl_waiting_cancel_req": "3",
                "sv_active_cancel": "1",
                "sv_login": "0",
            }
            first.wait_log("closing because: cancel_wait_timeout", count=4)
        finally:
            second.signal(signal.SIGCONT)
        for thread in threads:
            thread.join(10)
        assert client.ready().codes == ["57014"]  # the first had been sent


def test_a_peer_that_is_removed_ends_what_is_under_way(family):
    first, second = family(2)
    client = of(second)
    second.signal(signal.SIGSTOP)
    try:
        thread = threading.Thread(target=send_cancel, args=(first, client.key))
        thread.start()
        with of(first, user="admin", database="pgbouncer") as console:
            eventually(lambda: console.table("show peer_pools")[1]["cl_active_cancel_req"] == "1")
            del first.peers[2]
            first.write()
            console.query("reload")
            assert [row["peer_id"] for row in console.table("show peer_pools")] == ["1"]
        first.wait_log("closing because: peer removed")
        thread.join(10)
    finally:
        second.signal(signal.SIGCONT)


def test_a_stop_ends_what_is_under_way(family):
    first, second = family(2)
    client = of(second)
    second.signal(signal.SIGSTOP)
    try:
        thread = threading.Thread(target=send_cancel, args=(first, client.key))
        thread.start()
        with of(first, user="admin", database="pgbouncer") as console:
            eventually(lambda: console.table("show peer_pools")[1]["cl_active_cancel_req"] == "1")
        first.signal(signal.SIGQUIT)
        assert first.wait_exit() == 0
        thread.join(10)
    finally:
        second.signal(signal.SIGCONT)


def test_keys_from_before_a_reload_still_count(start, cluster):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    proxy.reload(peer_id=5)
    client.send(query("select pg_sleep(20)"))
    asleep(cluster, 1)
    client.cancel()
    assert client.ready().codes == ["57014"]


def test_a_high_number(start):
    proxy = start(peer_id=16383)
    assert struct.unpack("<H", proxy.connect().key[1:3]) == (16383,)


def test_a_process_that_drains_is_replaced(family, cluster):
    """The rolling restart: SIGTERM, a successor on the same port and number of its own, no client notices."""
    old, new = family(2)
    client = of(old)
    client.send(query("select pg_sleep(20)"))
    asleep(cluster, 1)
    old.signal(signal.SIGTERM)
    old.wait_log("got SIGTERM, shutting down, waiting for all clients disconnect")
    for _ in range(20):
        with new.connect() as fresh:
            assert fresh.key[1] == 2 and fresh.value("select 1") == "1"
    send_cancel(new, client.key)
    assert client.ready().codes == ["57014"]
    assert client.value("select 1") == "1"
    client.terminate()
    assert old.wait_exit() == 0
