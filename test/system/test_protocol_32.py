"""Protocol 3.2, whose cancel keys may be longer: with clients and servers, new and old on either side."""

import shutil
import signal
import struct

import pytest

import conftest
import harness
import libpq18
import wire
from fake_server import server  # noqa: F401
from harness import eventually, takes
from test_peering import family, of, send_cancel  # noqa: F401
from test_takeover import reboot
from wire import query

V32 = wire.PROTOCOL_3_0 + 2
LONG = 36  # bytes of our long keys


@pytest.fixture(scope="module")
def eighteen():
    cluster = harness.Cluster(conftest.new_folder(), harness.postgres_18())
    cluster.start()
    cluster.sql(harness.CLUSTER_SQL, "postgres")
    cluster.sql("create database app", "postgres")
    yield cluster
    cluster.stop()
    shutil.rmtree(cluster.folder)


def asleep(cluster, number=1):
    eventually(lambda: len(cluster.backends("wait_event = 'PgSleep'")) == number)


@pytest.mark.parametrize("asked, spoken, length", [(0, 0, 8), (1, 0, 8), (2, 2, LONG), (3, 2, LONG), (9999, 2, LONG)])
def test_the_version_and_its_keys(start, asked, spoken, length):
    client = start().connect(version=wire.PROTOCOL_3_0 + asked)
    negotiated = [struct.unpack("!II", m.body) for m in client.welcome if m.kind == "v"]
    assert negotiated == ([] if asked == spoken else [(wire.PROTOCOL_3_0 + spoken, 0)])
    assert len(client.key) == length
    assert client.value("select 1") == "1"


def test_options_are_negotiated_with_the_version_asked_for(start):
    client = start().connect(version=V32, params={"_pq_.other": "y"})
    assert [m.body for m in client.welcome if m.kind == "v"] == [struct.pack("!II", V32, 1) + b"_pq_.other\0"]
    assert len(client.key) == LONG


def test_console_and_replication_have_long_keys_too(start):
    proxy = start()
    assert len(proxy.console(version=V32).key) == LONG
    replicant = proxy.connect(user="postgres", version=V32, params={"replication": "database"})
    assert len(replicant.key) == LONG


@pytest.mark.parametrize("server", ["old", "new"])
@pytest.mark.parametrize("version", [wire.PROTOCOL_3_0, V32])
def test_a_cancel_reaches_its_query(prepare, cluster, eighteen, server, version):
    proxy = prepare(pool_mode="transaction")
    proxy.cluster = there = cluster if server == "old" else eighteen
    proxy.write()
    proxy.start()
    client, other = proxy.connect(version=version), proxy.connect(version=version)
    for c in (client, other):
        c.send(query("select pg_sleep(20)"))
    asleep(there, 2)
    with takes(0, 3):
        assert client.cancel() == []
        assert client.ready().codes == ["57014"]
    assert other.is_silent(0.2)
    other.cancel()
    assert other.ready().codes == ["57014"]


def test_a_part_of_a_key_is_no_key(start, cluster):
    proxy = start()
    client = proxy.connect(version=V32)
    client.send(query("select pg_sleep(1), 'spared'"))
    asleep(cluster)
    for key in (client.key[:8], client.key[:-1], client.key[:-1] + bytes([client.key[-1] ^ 1]), client.key + b"\0", client.key[:35] + b"xy"):
        client.cancel(key)
    assert client.ready().rows == [("", "spared")]
    assert proxy.log().count("bad cancel request") == 3


def test_libpq_18_on_both_sides(prepare, eighteen):
    """psql cancels on SIGINT."""
    proxy = prepare(pool_mode="transaction")
    proxy.cluster = eighteen
    proxy.write()
    proxy.start()
    for parameters in ({"min_protocol_version": "3.2"}, {"max_protocol_version": "latest"}, {"max_protocol_version": "3.0"}):
        process = libpq18.start(proxy, "select pg_sleep(20)", **parameters)
        asleep(eighteen)
        process.send_signal(signal.SIGINT)
        status, _, errors = libpq18.finish(process)
        assert status == 1 and "canceling statement due to user request" in errors
    status, out, _ = libpq18.run(proxy, "select 'in'", min_protocol_version="3.2", max_protocol_version="3.2")
    assert (status, out) == (0, "in\n")


def test_libpq_18_and_auth_query(start):
    """The version is settled once, however long the login takes."""
    proxy = start(auth_type="scram-sha-256", auth_user="asker", userlist={"carol": None})
    for version in ("3.0", "3.2", "latest"):
        status, out, errors = libpq18.run(
            proxy, "select current_user", user="carol", password="carol-pw", max_protocol_version=version
        )
        assert (status, out) == (0, "carol\n"), errors
    client = proxy.connect(user="carol", password="carol-pw", version=wire.PROTOCOL_3_0 + 9)
    assert [m.kind for m in client.welcome].count("v") == 1


def test_peers_pass_long_keys_on(family, cluster):  # noqa: F811
    proxies = family(3)
    for number, owner in enumerate(proxies, 1):
        client = of(owner, version=V32)
        assert (len(client.key), client.key[1], client.key[2], client.key[7] & 3) == (LONG, number, 0, 3)
        for other in proxies:
            client.send(query("select pg_sleep(20)"))
            asleep(cluster)
            with takes(0, 3):
                assert send_cancel(other, client.key) == []
                assert client.ready().codes == ["57014"]


def test_long_keys_outlive_a_restart(start, cluster):
    proxy = start(pool_mode="transaction")
    client = proxy.connect(version=V32)
    client.query("select 1")
    client.send(query("select pg_sleep(20)"))
    asleep(cluster)
    reboot(proxy)
    with takes(0, 3):
        client.cancel()
        assert client.ready().codes == ["57014"]


# ------------------------------------------------------------------ servers that are no PostgreSQL of today


def error(code, text):
    def refuse(stream):
        stream.write(wire.message("E", b"SFATAL\0C%s\0M%s\0\0" % (code, text)))
        stream.flush()

    return refuse


@pytest.mark.parametrize(
    "refuse",
    [
        error(b"0A000", b"unsupported frontend protocol 3.2: server supports 2.0 to 3.0"),
        error(b"08P01", b"bad packet header"),
        lambda stream: None,
    ],
    ids=["old", "pooler", "silent"],
)
def test_a_server_that_refuses_is_asked_for_the_old_one(start, server, refuse):  # noqa: F811
    there = server(refuse)
    proxy = start(databases={"app": there.entry()}, pool_mode="transaction")
    clients = [proxy.connect() for _ in range(3)]
    for c in clients:
        c.send(query("select 1"))
    for c in clients:
        assert c.ready().value == "1"
    assert there.asked == [V32] + [wire.PROTOCOL_3_0] * (len(there.asked) - 1)
    eventually(lambda: all(s["state"] == "idle" for s in proxy.show("servers")), 5)  # no login is under way
    asked = len(there.asked)
    proxy.admin("reconnect app")
    eventually(lambda: not proxy.show("servers"), 5)
    clients[0].query("select 1")
    assert there.asked[asked:] == [V32, wire.PROTOCOL_3_0]


def test_other_refusals_are_passed_on_at_once(start, server):  # noqa: F811
    there = server(error(b"28000", b"no entry for host"))
    proxy = start(databases={"app": there.entry()})
    assert proxy.refusal().fields["M"] == "no entry for host"
    assert there.asked == [V32]


def test_an_impossible_negotiation(start, server):  # noqa: F811
    def refuse(stream):
        stream.write(wire.message("v", struct.pack("!II", V32 + 1, 0)))
        stream.flush()
        return True

    there = server(refuse)
    proxy = start(databases={"app": there.entry()}, query_wait_timeout=1)
    assert proxy.refusal().fields["M"] == "query_wait_timeout"
    proxy.wait_log("broken NegotiateProtocolVersion packet")
