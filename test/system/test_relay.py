"""The relay that other tests count and disturb with (test/faults/relay.py, test/tools/relay)."""

import re
import select
import signal
import subprocess
import time

import pytest

import harness
import relay
import wire
from wire import bind, describe, execute, extended, parse, query, sync


@pytest.fixture
def link(cluster):
    with relay.Relay(cluster.port) as made:
        yield made


@pytest.fixture
def client(link):
    with wire.Conn(link.port) as c:
        yield c


def test_what_is_sent_without_having_heard_is_one_round_trip(link, client):
    link.delay = 0.005
    assert link.trips() == 0  # a login is none
    for count, batch in enumerate([query("select 1"), extended("select $1::int", [7]), query("select 1/0")], 1):
        client.ask(batch)
        assert link.trips() == count
    link.reset()
    for part in (parse("", "select 1"), bind("", ""), execute(), sync()):
        client.send(part)
    client.ready()
    assert link.trips() == 1
    client.send(query("select 1") * 5)
    client.ready(5)
    assert link.trips() == link.trips("app") == 2 and link.trips("other") == 0
    client.ask(parse("s", "select 1") + describe("S", "s") + sync())
    client.ask(bind("", "s") + execute() + sync())
    assert link.trips() == 4


def test_each_direction_is_delayed(link, client):
    link.delay = 0.05
    for _ in range(3):
        with harness.takes(0.1, 0.3):
            client.ask(query("select 1"))
    with harness.takes(0.1, 0.3):
        client.send(query("select 1") * 3)
        client.ready(3)


def test_much_goes_through_both_ways(link, client):
    link.delay = 0.001
    assert len(client.query("select repeat('x', 1000) from generate_series(1, 30000)").rows) == 30000
    assert client.query("select length('%s')" % ("y" * 3000000)).value == "3000000"


def test_a_cut_before_or_behind_a_message(link, cluster):
    with wire.Conn(link.port) as c:
        link.cut_at(relay.CLIENT, 3)
        c.ask(query("select 1"))
        c.ask(query("insert into scratch values (1)"))
        c.send(query("insert into scratch values (2)"))
        assert c.read_to_end() == []
    with wire.Conn(link.port) as c:
        link.cut_at(relay.CLIENT, 1, is_passed=True)
        c.send(query("insert into scratch values (3)"))
        assert c.read_to_end() == []
    with wire.Conn(link.port) as c:
        link.cut_at(relay.SERVER, 2, is_passed=True)
        c.send(query("select 5"))
        assert [m.kind for m in c.read_to_end()] == ["T", "D"]
    harness.eventually(lambda: cluster.sql("select id from scratch order by id").rows == [("1",), ("3",)])
    with wire.Conn(link.port) as c:  # each cut is made once
        assert c.value("select 7") == "7"


def test_a_cut_finds_the_user_it_is_for(link):
    with wire.Conn(link.port) as app, wire.Conn(link.port, user="other") as other:
        link.cut_at(relay.SERVER, 1, user="other")
        assert app.value("select 1") == "1"
        other.send(query("select 1"))
        assert other.read_to_end() == []
        assert app.value("select 1") == "1"


def test_a_cancel_request_and_tls_pass(link, client):
    client.send(query("select pg_sleep(20)"))
    time.sleep(0.2)
    client.cancel()
    assert client.ready().codes == ["57014"]
    done = subprocess.run(
        [harness.PG_BIN / "psql", "-XAtc", "select 1", "host=127.0.0.1 port=%d user=app dbname=app" % link.port],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stdout == "1\n", done.stderr


def test_no_server_is_an_end(link, client):
    client.terminate()
    harness.eventually(lambda: not link.connections, what="connections are forgotten")
    with relay.Relay(harness.free_port()) as nowhere:
        with pytest.raises(wire.Closed):
            wire.Conn(nowhere.port)


def test_the_command(cluster):
    program = str(harness.ROOT / "test/tools/relay")
    arguments = ["--to", "127.0.0.1:%d" % cluster.port, "--delay", "20", "--cut", "client:4", "--every", "0.2"]
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert select.select([process.stdout], [], [], 20)[0]
            port = int(re.fullmatch(r"listening on 127.0.0.1:(\d+)\n", process.stdout.readline()).group(1))
            with wire.Conn(port) as c:  # the start-up packet is the first message
                with harness.takes(0.04, 0.5):
                    assert c.value("select 1") == "1"
                assert c.value("select 2") == "2"
                c.send(query("select 3"))
                assert c.read_to_end() == []
            while " 2 round trips" not in (line := process.stdout.readline()):
                assert line and " 3 round" not in line
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    helped = subprocess.run([program, "-h"], capture_output=True, text=True, timeout=20)
    assert helped.returncode == 0 and "--delay" in helped.stdout
