"""The extended protocol with more than one request under way."""

import time

import pytest

import wire
from wire import bind, close, describe, execute, extended, flush, parse, query, sync


@pytest.fixture(params=["session", "transaction"])
def client(request, start):
    return start(pool_mode=request.param, default_pool_size=1, max_prepared_statements=0).connect()


def insert(number):
    return parse("", "insert into scratch values (%d)" % number) + bind("", "") + execute()


def test_one_statement_with_parameters(client):
    answer = client.ask(extended("select $1::int + 1, $2::text", [41, None], types=[23, 25]))
    assert answer.kinds == "12TDCZ"
    assert answer.rows == [("42", None)]


def test_several_statements_with_one_sync(client):
    answer = client.ask(insert(1) + insert(2) + insert(3) + sync())
    assert answer.kinds == "12C" * 3 + "Z"


def test_several_syncs_sent_at_once_are_each_answered(client):
    client.send((insert(1) + sync()) * 5)
    answer = client.ready(5)
    assert answer.kinds == "12CZ" * 5
    assert client.value("select count(*) from scratch") == "5"


def test_simple_queries_sent_at_once_are_each_answered(client):
    client.send(b"".join(query("select %d" % n) for n in range(20)))
    assert [r for (r,) in client.ready(20).rows] == [str(n) for n in range(20)]


def test_an_error_skips_to_the_next_sync_only(client):
    client.send(
        insert(1)
        + sync()
        + parse("", "select bad")
        + bind("", "")
        + execute()
        + insert(2)
        + sync()
        + insert(3)
        + sync()
    )
    answer = client.ready(3)
    assert answer.kinds == "12CZ" + "EZ" + "12CZ"
    assert [r for (r,) in client.query("select id from scratch order by 1").rows] == ["1", "3"]


def test_an_error_at_execution_takes_the_whole_batch_back(client):
    answer = client.ask(insert(1) + parse("", "select 1/0") + bind("", "") + execute() + sync())
    assert (answer.codes, answer.status) == (["22012"], "I")
    assert client.value("select count(*) from scratch") == "0"


def test_flush_brings_answers_before_sync(client):
    client.send(parse("", "select 5") + describe("S") + flush())
    assert [client.read().kind for _ in range(3)] == ["1", "t", "T"]
    client.send(bind("", "") + execute() + flush())
    assert [client.read().kind for _ in range(3)] == ["2", "D", "C"]
    client.send(sync())
    assert client.read().kind == "Z"


def test_a_simple_query_after_flush_without_sync(client):
    client.send(parse("", "select 5") + flush())
    assert client.read().kind == "1"
    answer = client.ask(query("select 6"))
    assert answer.value == "6"
    assert client.value("select 7") == "7"


def test_an_error_after_flush_holds_until_sync(client):
    client.send(parse("", "select bad") + flush())
    assert client.read().kind == "E"
    client.send(bind("", "") + execute() + flush())
    assert client.is_silent(0.2)
    assert client.ask(sync()).kinds == "Z"


def test_sync_alone_is_answered(client):
    assert client.ask(sync()).kinds == "Z"
    client.send(sync() * 7)
    assert client.ready(7).kinds == "Z" * 7


def test_an_empty_query_in_both_protocols(client):
    assert client.ask(query("")).kinds == "IZ"
    assert client.ask(parse("", "") + bind("", "") + execute() + sync()).kinds == "12IZ"


def test_a_portal_is_read_in_pieces(client):
    client.send(query("begin"))
    client.ready()
    client.send(parse("", "select generate_series(1, 5)") + bind("p", "") + execute("p", 2) + flush())
    assert [client.read().kind for _ in range(5)] == ["1", "2", "D", "D", "s"]
    client.send(execute("p", 2) + flush())
    assert [client.read().kind for _ in range(3)] == ["D", "D", "s"]
    answer = client.ask(execute("p", 0) + close("P", "p") + sync())
    assert answer.kinds == "DC3Z"
    client.query("commit")


def test_a_portal_suspended_and_left_at_sync(client):
    answer = client.ask(parse("", "select generate_series(1, 5)") + bind("", "") + execute("", 2) + sync())
    assert answer.kinds == "12DDsZ"
    assert client.value("select 1") == "1"


def test_begin_and_commit_in_one_batch(client):
    step = lambda sql: parse("", sql) + bind("", "") + execute()
    client.send(step("begin") + insert(1) + sync() + insert(2) + step("commit") + sync())
    answer = client.ready(2)
    assert [m.body for m in answer if m.kind == "Z"] == [b"T", b"I"]
    assert client.value("select count(*) from scratch") == "2"


def test_a_deep_pipeline_is_answered_in_order(client):
    client.send(b"".join(extended("select $1::int", [n]) for n in range(500)))
    answer = client.ready(500)
    assert [r for (r,) in answer.rows] == [str(n) for n in range(500)]


def test_a_transaction_end_does_not_hand_on_a_server_with_requests_open(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    second.value("select 1")
    first.send(query("select 1") + query("select pg_sleep(0.3)") + extended("select 'mine'"))
    second.send(query("select 'yours'"))
    assert "mine" in [r for (r,) in first.ready(3).rows]
    assert second.ready().rows == [("yours",)]


def test_a_parse_without_sync_keeps_the_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.send(parse("", "select 'mine'") + flush())
    assert first.read().kind == "1"
    second.send(query("select 'yours'"))
    assert second.is_silent(0.3)
    assert first.ask(bind("", "") + execute() + sync()).rows == [("mine",)]
    assert second.ready().rows == [("yours",)]


def test_messages_that_come_byte_by_byte(client):
    data = extended("select $1::text", ["slow"])
    for at in range(len(data)):
        client.send(data[at : at + 1])
    assert client.ready().rows == [("slow",)]


def test_two_messages_cut_in_the_middle(client):
    data = query("select 1") + query("select 2")
    for cut in (1, 4, 5, 9, len(data) // 2, len(data) // 2 + 3, len(data) - 1):
        client.send(data[:cut])
        time.sleep(0.02)
        client.send(data[cut:])
        assert client.ready(2).rows == [("1",), ("2",)]


def test_errors_in_every_second_batch_of_a_pipeline(client):
    client.send(b"".join(extended("select %s" % (n if n % 2 else "no_%d" % n)) for n in range(40)))
    answer = client.ready(40)
    assert [r for (r,) in answer.rows] == [str(n) for n in range(1, 40, 2)]
    assert answer.codes == ["42703"] * 20


def test_an_unknown_request_of_the_server_side_is_an_error_not_a_hang(client):
    answer = client.ask(execute("no such portal") + sync())
    assert answer.codes == ["34000"]
    assert client.value("select 1") == "1"


def test_describe_of_an_unknown_statement(client):
    assert client.ask(describe("S", "nowhere") + sync()).codes == ["26000"]
    assert client.value("select 1") == "1"


def test_function_call(client):
    oid = int(client.value("select 'pg_catalog.abs(int4)'::regprocedure::oid"))
    answer = client.ask(wire.function_call(oid, [-42]))
    assert answer.kinds == "VZ"
    assert answer[0].body == b"\0\0\0\x0242"
    assert client.ask(wire.function_call(4)).codes
    assert client.value("select 1") == "1"


@pytest.mark.parametrize("leave", ["drop", "terminate"])
def test_a_client_that_leaves_without_a_sync_frees_its_server(start, leave):
    """The failed Bind makes the server skip the Query, too, so nothing more would ever come."""
    proxy = start(pool_mode="transaction", default_pool_size=1, query_wait_timeout=5)
    client = proxy.connect()
    client.send(bind("", "no such") + query("select 1"))
    getattr(client, leave)()
    assert proxy.connect().value("select 'next'") == "next"
