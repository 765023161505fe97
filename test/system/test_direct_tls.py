"""TLS that begins with the first byte, without an SSLRequest: from clients (sslnegotiation=direct), and to servers."""

import socket
import ssl
import struct

import pytest

import conftest
import harness
import libpq18
import wire
from test_tls import trusting


def offering(*protocols):
    context = trusting()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


@pytest.fixture
def proxy(prepare):
    made = prepare()
    certificate, key = harness.make_certificate(made.folder, "proxy")
    made.write(client_tls_sslmode="require", client_tls_cert_file=certificate, client_tls_key_file=key)
    return made.start()


def direct(proxy, context, **kw):
    """A client that has begun TLS; nothing of the protocol was sent."""
    client = proxy.raw(**kw)
    client.sock = context.wrap_socket(client.sock)
    return client


def login(client, user="app", database="app"):
    client.login({"user": user, "database": database})
    return client


def test_a_client_begins_with_tls(proxy):
    client = login(direct(proxy, offering("postgresql")))
    assert client.sock.selected_alpn_protocol() == "postgresql"
    assert client.value("select repeat('x', 100000)") == "x" * 100000
    console = login(direct(proxy, offering("postgresql")), user="admin", database="pgbouncer")
    assert [row["tls"][:8] for row in console.table("show clients")] == ["TLSv1.3/"] * 2


def test_other_protocols_may_be_offered_too(proxy):
    assert direct(proxy, offering("http/1.1", "postgresql")).sock.selected_alpn_protocol() == "postgresql"


@pytest.mark.parametrize("offer", [(), ("http/1.1",), ("postgresq", "postgresql2")])
def test_without_the_name_of_the_protocol_it_is_refused(proxy, offer):
    client = direct(proxy, offering(*offer))
    assert client.sock.selected_alpn_protocol() is None
    client.send(wire.startup({"user": "app", "database": "app"}))
    with pytest.raises((wire.Closed, OSError)):
        client.read()
    proxy.wait_log("received direct SSL connection request without ALPN protocol negotiation extension")
    assert "login attempt" not in proxy.log()


def test_after_an_ssl_request_the_name_is_not_needed(proxy):
    for context in (offering(), offering("http/1.1"), offering("postgresql")):
        assert proxy.connect(tls=context).value("select 1") == "1"


def test_no_second_tls_inside(proxy):
    client = direct(proxy, offering("postgresql"))
    client.send(struct.pack("!II", 8, wire.SSL_REQUEST))
    with pytest.raises((wire.Closed, OSError)):
        client.read()
    proxy.wait_log("SSL req inside SSL")


def test_without_tls_here_it_is_a_bad_packet(start):
    proxy = start()
    with pytest.raises((ssl.SSLError, OSError)):
        direct(proxy, offering("postgresql"))
    proxy.wait_log("bad packet header: '160301")


def test_not_on_a_unix_socket(proxy):
    client = proxy.raw(host=str(proxy.folder))
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01")
    assert client.last_words()["M"].startswith("bad packet header: '160301")


def test_bytes_ahead_of_the_handshake_are_not_taken_for_the_protocol(proxy):
    client = proxy.raw()
    client.send(wire.startup({"user": "app", "database": "app"})[:4] + b"\x16\x03\x01")
    client.sock.shutdown(socket.SHUT_WR)
    assert not [m for m in client.read_to_end() if m.kind in "RZ"]


def test_libpq_18(proxy):
    ask = lambda **more: libpq18.run(proxy, "select 'here'", sslmode="require", **more)
    for negotiation in ("direct", "postgres"):
        status, out, errors = ask(sslnegotiation=negotiation)
        assert (status, out) == (0, "here\n"), errors
    assert len([line for line in proxy.log().splitlines() if "login attempt" in line and "tls=TLS" in line]) == 2


# ------------------------------------------------------------------ to servers


@pytest.fixture(scope="module")
def eighteen():
    cluster = harness.Cluster(conftest.new_folder(), harness.postgres_18())
    cluster.start()
    cluster.sql(harness.CLUSTER_SQL, "postgres")
    cluster.sql("create database app", "postgres")
    yield cluster
    cluster.stop()


def test_to_a_server_that_knows_it(prepare, eighteen):
    proxy = prepare(server_tls_sslmode="require", server_tls_direct=1)
    proxy.cluster = eighteen
    proxy.write()
    client = proxy.start().connect()
    assert client.value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"
    assert "direct SSL" not in eighteen.log()
    proxy.reload(server_tls_direct=0)
    assert proxy.connect().value("select ssl from pg_stat_ssl where pid = pg_backend_pid()") == "t"


def test_to_a_server_that_does_not(prepare):
    proxy = prepare(server_tls_sslmode="require", server_tls_direct=1, query_wait_timeout=1).start()
    assert proxy.refusal().fields["M"] == "query_wait_timeout"
    proxy.wait_log("server TLS handshake failed")


def test_not_where_tls_may_be_left_out(start):
    proxy = start()
    proxy.write(server_tls_sslmode="prefer", server_tls_direct=1)
    with pytest.raises(wire.PgError) as refusal:
        proxy.admin("reload")
    assert refusal.value.fields["C"] == "F0000"
    proxy.wait_log("server_tls_direct needs server_tls_sslmode=require, verify-ca or verify-full")
    proxy.write(server_tls_direct=0)
