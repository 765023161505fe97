"""COPY in both directions, through both protocols, and all the ways it can fail."""

import pytest

import wire
from harness import eventually
from wire import bind, copy_data, copy_done, copy_fail, execute, flush, parse, query, sync

COPY_IN = "copy scratch from stdin"
# The rows come as they are made: a function in FROM would be computed to its end first.
COPY_OUT = "copy (select g, repeat('x', 10) from (select generate_series(1, %d) g) s) to stdout"


@pytest.fixture(params=["session", "transaction"])
def proxy(request, start):
    return start(pool_mode=request.param, default_pool_size=1, query_wait_timeout=5)


@pytest.fixture
def client(proxy):
    return proxy.connect()


def rows(number):
    return b"".join(b"%d\trow %d\n" % (n, n) for n in range(number))


def count(client):
    return int(client.value("select count(*) from scratch"))


def begin_copy(client, sql=COPY_IN):
    client.send(query(sql))
    assert client.read().kind == "G"


def batch(sql):
    return parse("", sql) + bind("", "") + execute()


def frees_its_server(proxy, client):
    """Another client gets the only server once this one is idle (in session mode: once it is gone)."""
    if proxy.options["pool_mode"] == "session":
        client.terminate()
    return proxy.connect().value("select 'free'") == "free"


def test_copy_in(proxy, client):
    begin_copy(client)
    client.send(copy_data(rows(3)) + copy_done())
    assert client.ready().tags == ["COPY 3"]
    assert count(client) == 3
    assert frees_its_server(proxy, client)


def test_copy_in_of_many_megabytes(client):
    begin_copy(client)
    for _ in range(50):
        client.send(b"".join(copy_data(b"1\t" + b"y" * 9990 + b"\n") for _ in range(20)))
    answer = client.ask(copy_done())
    assert answer.tags == ["COPY 1000"]
    assert client.value("select sum(length(note)) from scratch") == str(9990 * 1000)


def test_copy_out(proxy, client):
    answer = client.query(COPY_OUT % 50000)
    assert answer.tags == ["COPY 50000"]
    assert answer.copied.count(b"\n") == 50000
    assert answer.copied.startswith(b"1\txxxxxxxxxx\n")
    assert frees_its_server(proxy, client)


def test_copy_out_in_the_extended_protocol(client):
    answer = client.ask(batch(COPY_OUT % 3) + sync())
    assert answer.kinds == "12HdddcCZ"


def test_copy_in_with_sync_after_the_data(proxy, client):
    client.send(batch(COPY_IN) + flush())
    assert [client.read().kind for _ in range(3)] == ["1", "2", "G"]
    answer = client.ask(copy_data(rows(2)) + copy_done() + sync())
    assert answer.kinds == "CZ"
    assert count(client) == 2
    assert frees_its_server(proxy, client)


def test_copy_in_with_a_sync_right_behind_execute(proxy, client):
    # PostgreSQL ignores a Sync that arrives while it reads COPY data: the one after CopyDone is answered.
    client.send(batch(COPY_IN) + sync())
    assert [client.read().kind for _ in range(3)] == ["1", "2", "G"]
    answer = client.ask(copy_data(rows(4)) + copy_done() + sync())
    assert answer.kinds == "CZ"
    assert client.is_silent(0.1)
    assert count(client) == 4
    assert frees_its_server(proxy, client)


def test_copy_in_sent_blind_in_one_piece(proxy, client):
    answer = client.ask(query(COPY_IN) + copy_data(rows(5)) + copy_done())
    assert answer.kinds == "GCZ"
    assert count(client) == 5
    assert frees_its_server(proxy, client)


def test_copy_in_sent_blind_in_the_extended_protocol(proxy, client):
    answer = client.ask(batch(COPY_IN) + copy_data(rows(5)) + copy_done() + sync())
    assert answer.kinds == "12GCZ"
    assert count(client) == 5
    assert frees_its_server(proxy, client)


def test_copy_in_followed_by_queries_in_the_same_packet(client):
    client.send(query(COPY_IN) + copy_data(rows(5)) + copy_done() + query("select 'after'") + query("select 'last'"))
    assert client.ready(3).rows == [("after",), ("last",)]


def test_a_failed_statement_whose_data_comes_anyway(proxy, client):
    # The client did not wait for CopyInResponse; the data that follows the error has no meaning any more.
    answer = client.ask(query("copy no_such_table from stdin") + copy_data(rows(2)) + copy_done())
    assert answer.codes == ["42P01"]
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_data_long_after_the_statement_failed(proxy, client):
    assert client.fails("copy no_such_table from stdin")["C"] == "42P01"
    client.send(copy_data(rows(2)))
    client.send(copy_done())
    assert client.is_silent(0.2)
    assert count(client) == 0
    client.send(copy_fail("late, too"))
    assert client.value("select 'well'") == "well"
    assert frees_its_server(proxy, client)


def test_bad_data_fails_early_and_the_rest_is_swallowed(proxy, client):
    begin_copy(client)
    client.send(copy_data(b"not a number\tx\n") + copy_data(rows(3)))
    answer = client.ready()
    assert answer.codes == ["22P02"]
    client.send(copy_data(rows(3)) + copy_done())
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_bad_data_in_the_extended_protocol(proxy, client):
    client.send(batch(COPY_IN) + flush())
    assert [client.read().kind for _ in range(3)] == ["1", "2", "G"]
    client.send(copy_data(b"not a number\tx\n") + copy_data(rows(3)) + copy_done() + sync())
    answer = client.ready()
    assert answer.kinds == "EZ"
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_bad_data_with_the_sync_right_behind_execute(proxy, client):
    client.send(batch(COPY_IN) + sync())
    assert [client.read().kind for _ in range(3)] == ["1", "2", "G"]
    client.send(copy_data(b"not a number\tx\n") + copy_done() + sync())
    answer = client.ready()
    assert answer.codes == ["22P02"]
    assert count(client) == 0
    assert frees_its_server(proxy, client)


@pytest.mark.parametrize("behind", [b"", query("insert into scratch values (7)")])
@pytest.mark.parametrize("first", [sync(), sync() + sync(), b""])
def test_syncs_around_bad_data_all_sent_at_once(proxy, client, cluster, first, behind):
    """Whether a Sync is part of the data depends on when the server fails: it is told apart by what comes back."""
    begin = batch(COPY_IN) + first + copy_data(b"not a number\tx\n")
    rest = sync() + copy_done() + sync() + behind

    def answers(c):
        c.send(begin + rest + query("select 'last'"))
        said = []
        while "last" not in [wire.decode_row(m.body)[0] for m in said if m.kind == "D"]:
            said.append(c.read())
        return [m.kind for m in said + c.ready() if m.kind != "Z"]

    with cluster.connect() as direct:
        expected = answers(direct)
    assert answers(client) == expected
    assert client.value("select 'well'") == "well"
    assert frees_its_server(proxy, client)


def test_statements_behind_such_a_copy_are_not_answered_by_guess(proxy, client):
    """Whether the server skips them cannot be seen: the client is told so, and the connection ends."""
    client.send(batch(COPY_IN) + copy_data(b"not a number\tx\n") + sync() + batch("select 1") + sync())
    assert client.read_to_end().codes == ["22P02", "08007"]
    assert proxy.connect().value("select 'well'") == "well"


def test_a_sync_that_was_answered_was_not_data(proxy, client):
    client.send(batch(COPY_IN) + copy_data(b"not a number\tx\n") + sync())
    client.read_until("E")
    client.read_until("Z")
    client.send(copy_done())
    assert client.ask(batch("select 1") + sync()).kinds == "12DCZ"
    assert frees_its_server(proxy, client)


def test_a_client_that_goes_on_after_such_a_copy_is_served(proxy, client):
    """The Sync among the data is the usual one of drivers, sent with the statement."""
    for _ in range(20):
        client.send(batch(COPY_IN) + sync())
        client.read_until("G")
        client.send(copy_data(b"not a number\tx\n"))
        client.read_until("E")
        client.send(copy_done() + sync())
        client.ready()
        assert client.ask(batch("select 'on'") + sync()).rows == [("on",)]
    assert frees_its_server(proxy, client)


def test_a_failing_statement_in_the_extended_protocol_with_all_its_data(proxy, client):
    client.send(batch("copy no_such_table from stdin") + copy_data(rows(3)) + copy_done() + sync())
    assert client.ready().kinds == "12EZ"
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_copy_fail(proxy, client):
    begin_copy(client)
    answer = client.ask(copy_data(rows(3)) + copy_fail("changed my mind"))
    assert answer.codes == ["57014"]
    assert "changed my mind" in answer.errors[0]["M"]
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_copy_fail_in_the_extended_protocol(proxy, client):
    client.send(batch(COPY_IN) + flush())
    assert [client.read().kind for _ in range(3)] == ["1", "2", "G"]
    assert client.ask(copy_fail("no") + sync()).kinds == "EZ"
    assert frees_its_server(proxy, client)


def test_copy_inside_a_transaction(proxy, client):
    client.query("begin")
    begin_copy(client)
    answer = client.ask(copy_data(rows(3)) + copy_done())
    assert answer.status == "T"
    client.query("rollback")
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_two_copies_in_one_query(client):
    client.send(query(COPY_IN + ";" + COPY_IN))
    assert client.read().kind == "G"
    client.send(copy_data(rows(2)) + copy_done())
    assert client.read_until("G").kinds == "CG"
    answer = client.ask(copy_data(rows(3)) + copy_done())
    assert answer.tags == ["COPY 3"]
    assert count(client) == 5


def test_an_error_after_a_copy_in_the_same_query(proxy, client):
    begin_copy(client, COPY_IN + "; select 1/0")
    answer = client.ask(copy_data(rows(2)) + copy_done())
    assert answer.codes == ["22012"]
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_a_client_that_vanishes_in_copy_in_leaves_nothing_behind(proxy, cluster):
    for leave in ("drop", "reset", "terminate"):
        client = proxy.connect()
        begin_copy(client)
        client.send(copy_data(rows(100)))
        getattr(client, leave)()
        assert proxy.connect().value("select count(*) from scratch") == "0"
        for c in proxy.open:
            c.drop()
    eventually(lambda: not cluster.backends("state = 'active'"))


def test_a_client_that_vanishes_in_copy_out_stops_it(proxy, cluster):
    for leave in ("drop", "reset"):
        client = proxy.connect(receive_buffer=4096)
        client.send(query(COPY_OUT % 100000000))
        client.read_until("d", 10)
        getattr(client, leave)()
        eventually(lambda: not cluster.backends("state = 'active'"))
        assert proxy.connect().value("select 'next'") == "next"
        for c in proxy.open:
            c.drop()


def test_a_slow_reader_holds_up_the_server_not_the_memory_of_the_proxy(proxy, cluster):
    client = proxy.connect(receive_buffer=4096)
    client.send(query("copy (select repeat('z', 1000) from generate_series(1, 200000)) to stdout"))
    client.read_until("d", 10)
    eventually(lambda: cluster.backends("wait_event = 'ClientWrite'"))
    with open("/proc/%d/status" % proxy.process.pid) as f:
        resident = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    assert resident < 150000  # kB; the answer has 200 MB
    answer = client.ready()
    assert answer.tags == ["COPY 200000"]


def test_a_copy_ended_by_cancel(proxy, client):
    begin_copy(client)
    client.send(copy_data(rows(3)))
    client.cancel()
    client.send(copy_data(rows(3)))  # PostgreSQL looks for a cancel when data comes
    answer = client.ready()
    assert answer.codes == ["57014"]
    client.send(copy_data(rows(3)) + copy_done())
    assert count(client) == 0
    assert frees_its_server(proxy, client)


def test_a_backend_that_dies_in_copy_in(proxy, client, cluster):
    begin_copy(client)
    client.send(copy_data(rows(3)))
    eventually(lambda: cluster.backends("state = 'active'"))
    cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' and usename = 'app'")
    words = client.read_to_end()
    assert words.codes[0] == "57P01" or words.errors[-1]["M"] == "server conn crashed?"
    assert proxy.connect().value("select count(*) from scratch") == "0"
