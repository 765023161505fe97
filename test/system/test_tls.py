"""TLS to clients and to servers: the same statements as without."""

import ssl
import subprocess

import pytest

import harness
import wire
from fake_server import server  # noqa: F401
from wire import bind, close, copy_data, copy_done, describe, execute, parse, query, sync


def trusting():
    """Takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture(params=["client", "server", "both"])
def client(request, prepare):
    """A client of a proxy with TLS to the client, to the server, or both."""
    proxy = prepare(default_pool_size=1, pool_mode="transaction", max_prepared_statements=500)
    options, tls = {}, None
    if request.param != "server":
        certificate, key = harness.make_certificate(proxy.folder, "proxy")
        options = dict(client_tls_sslmode="require", client_tls_cert_file=certificate, client_tls_key_file=key)
        tls = trusting()
    if request.param != "client":
        options["server_tls_sslmode"] = "require"
    proxy.write(**options)
    return proxy.start().connect(tls=tls)


def test_the_server_connection_is_encrypted_if_asked_for(client, cluster, request):
    assert client.value("select 1") == "1"
    encrypted = cluster.value("select ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'app'")
    assert encrypted == ("f" if "[client]" in request.node.name else "t")


@pytest.mark.parametrize("count", [10, 127, 128, 129, 150, 300, 2000])
def test_a_pipeline_of_any_length(client, count):
    """Each Bind of a named statement leaves in pieces, all of one turn together."""
    client.ask(parse("a", "select $1::text || '!'") + sync())
    one = lambda n: bind("", "a", [str(n)]) + describe("P") + execute()
    answer = client.ask(b"".join(one(n) for n in range(count)) + sync())
    assert [r for (r,) in answer.rows] == ["%d!" % n for n in range(count)]


@pytest.mark.parametrize("count", [10, 255, 256, 257, 2000])
def test_any_number_of_answers_given_by_the_proxy(client, count):
    client.ask(parse("a", "select 1") + sync())
    answer = client.ask((close("S", "a") + parse("a", "select 1")) * count + sync())
    assert answer.kinds == "31" * count + "Z"


@pytest.mark.parametrize("size", [1, 16383, 16384, 16385, 5_000_000])
def test_large_rows_and_queries(client, size):
    assert client.value("select repeat('x', %d)" % size) == "x" * size
    assert client.value("select length('%s')" % ("y" * size)) == str(size)


def test_copy_both_ways(client):
    lines = ["%d\t%s" % (n, "z" * (n % 300)) for n in range(20000)]
    client.send(query("copy scratch from stdin"))
    client.read_until("G")
    client.send(b"".join(copy_data(line.encode() + b"\n") for line in lines) + copy_done())
    assert client.ready().tags == ["COPY 20000"]
    assert client.query("copy (select * from scratch order by id) to stdout").copied == "".join(line + "\n" for line in lines).encode()


def test_psql_sees_what_it_asks_for(prepare):
    proxy = prepare()
    certificate, key = harness.make_certificate(proxy.folder, "proxy")
    proxy.write(client_tls_sslmode="require", client_tls_cert_file=certificate, client_tls_key_file=key)
    proxy.start()
    def psql(sslmode):
        return subprocess.run(
            ["psql", "host=localhost hostaddr=127.0.0.1 port=%d user=app dbname=app sslmode=%s sslrootcert=%s"
             % (proxy.port, sslmode, certificate), "-Atc", "select 'here'"], capture_output=True, text=True)
    assert psql("verify-full").stdout == "here\n"
    refused = psql("disable")
    assert refused.returncode == 2 and "SSL required" in refused.stderr


@pytest.mark.parametrize(
    "answer, mode, reason",
    [
        (b"N", "require", "server refused SSL"),
        (b"N", "verify-full", "server refused SSL"),
        (b"X", "prefer", "bad sslreq answer"),
        (b"E", "require", "bad sslreq answer"),
        (b"S!", "prefer", "received unencrypted data after SSL response"),
        (b"N!", "prefer", "received unencrypted data after SSL response"),
    ],
)
def test_answers_of_servers_that_are_none(start, server, answer, mode, reason):  # noqa: F811
    """It counts as a failed connect: who waits goes on waiting."""
    there = server(tls=answer)
    proxy = start(databases={"app": there.entry()}, server_tls_sslmode=mode, query_wait_timeout=1)
    assert proxy.refusal().fields["M"] == "query_wait_timeout"
    proxy.wait_log("S-0x.* closing because: " + reason)
    assert there.asked == []


def test_a_server_without_tls_is_used_without_it_if_it_may_be(start, server):  # noqa: F811
    there = server()
    for mode in ("allow", "prefer"):
        proxy = start(databases={"app": there.entry()}, server_tls_sslmode=mode)
        assert proxy.connect().value("select here") == "here"
