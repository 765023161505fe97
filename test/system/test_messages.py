"""Messages that come by themselves, and messages of unusual size."""

import pytest

import wire
from harness import eventually
from wire import bind, execute, extended, parse, query, sync


def test_notices_reach_the_client_that_caused_them(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    answer = first.query("do $$ begin raise notice 'psst %', 1; raise warning 'hey'; end $$")
    assert answer.notices == ["psst 1", "hey"]
    assert second.query("select 1").notices == []


def test_notify_reaches_a_listener_in_session_mode(start):
    proxy = start()
    listener, speaker = proxy.connect(), proxy.connect()
    listener.query("listen news")
    speaker.query("notify news, 'extra'")
    m = listener.read(timeout=5)
    assert (m.kind, m.body[4:]) == ("A", b"news\0extra\0")


def test_a_notification_for_nobody_is_not_given_to_the_next_client(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("listen news")
    second.query("select 1")
    with start().connect() as speaker:
        speaker.query("notify news")
    answer = second.query("select 2")
    assert answer.value == "2"
    second.query("unlisten *")


def test_parameter_changes_are_reported(start):
    client = start().connect()
    answer = client.query("set timezone = 'Asia/Tokyo'")
    assert answer.parameters == {"TimeZone": "Asia/Tokyo"}


@pytest.mark.parametrize("pkt_buf", [75, 4096])
class TestBigMessages:
    @pytest.fixture
    def client(self, start, pkt_buf):
        return start(pkt_buf=pkt_buf, pool_mode="transaction", default_pool_size=1).connect()

    def test_a_query_of_any_size(self, client):
        for size in (1, 30, 60, 70, 74, 75, 76, 100, 4080, 4090, 4096, 4097, 10000, 65536, 1000000):
            assert client.value("select length('%s')" % ("q" * size)) == str(size)

    def test_a_query_that_fills_the_buffer_to_the_byte(self, client, pkt_buf):
        for spare in range(-6, 7):
            text = "select 1 /*%s*/" % ("-" * (pkt_buf - 20 + spare))
            assert client.value(text) == "1"

    def test_an_answer_of_any_size(self, client):
        for size in (1, 70, 75, 4096, 100000, 3000000):
            assert len(client.value("select repeat('a', %d)" % size)) == size

    def test_a_parameter_of_any_size(self, client):
        for size in (1, 70, 75, 4096, 100000, 3000000):
            answer = client.ask(extended("select length($1)", ["p" * size], types=[25]))
            assert answer.rows == [(str(size),)]

    def test_many_small_messages_around_a_big_one(self, client):
        client.send(query("select 1") + query("select length('%s')" % ("m" * 50000)) + query("select 2"))
        assert client.ready(3).rows == [("1",), ("50000",), ("2",)]

    def test_a_notice_and_an_error_larger_than_the_buffer(self, client):
        answer = client.query("do $$ begin raise notice '%', repeat('n', 9000); end $$")
        assert answer.notices == ["n" * 9000]
        error = client.fails("do $$ begin raise exception '%', repeat('e', 9000); end $$")
        assert error["M"] == "e" * 9000

    def test_a_row_with_many_columns(self, client):
        answer = client.query("select " + ", ".join("%d as column_%d" % (n, n) for n in range(1000)))
        assert answer.rows == [tuple(str(n) for n in range(1000))]
        assert answer.columns[999][0] == "column_999"

    def test_a_prepared_statement_and_its_name_of_any_size(self, client):
        for size in (10, 75, 200, 4096, 20000):
            name = "n" * size
            answer = client.ask(parse(name, "select '%s'::text" % ("s" * size)) + bind("", name) + execute() + sync())
            assert answer.rows == [("s" * size,)]

    def test_a_startup_packet_with_a_long_option(self, start, pkt_buf):
        proxy = start(pkt_buf=pkt_buf, ignore_startup_parameters="options")
        client = proxy.connect(params={"options": "-c geqo=on -c application_name=%s" % ("o" * 4000)})
        assert client.value("select 1") == "1"

    def test_a_long_application_name(self, start, pkt_buf):
        proxy = start(pkt_buf=pkt_buf)
        client = proxy.connect(params={"application_name": "a" * 63})
        assert client.value("show application_name") == "a" * 63


def test_a_message_over_max_packet_size_ends_the_connection(start):
    proxy = start(max_packet_size=10000)
    client = proxy.connect()
    assert client.value("select length('%s')" % ("x" * 9000)) == "9000"
    client.send(query("select length('%s')" % ("x" * 11000)))
    client.read_to_end()
    assert proxy.connect().value("select 1") == "1"


@pytest.mark.parametrize("length", [0, 1, 3, 0x80000000, 0xFFFFFFFF])
def test_impossible_lengths_end_only_that_connection(start, length):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander, client = proxy.connect(), proxy.connect()
    client.send(b"Q" + length.to_bytes(4, "big") + b"xxxx")
    client.read_to_end()
    assert bystander.value("select 1") == "1"


@pytest.mark.parametrize("kind", ["?", "\x00", "\xff", "R", "Z", "p", "T"])
def test_unknown_message_types_end_only_that_connection(start, kind):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander, client = proxy.connect(), proxy.connect()
    client.send(kind.encode("latin1") + (8).to_bytes(4, "big") + b"xxxx")
    assert client.last_words()["C"] == "08P01"
    assert bystander.value("select 1") == "1"


@pytest.mark.parametrize("body", [b"", b"no terminator", b"name\0", b"\0\0", b"\0\0\0\0\0\xff\xff"])
@pytest.mark.parametrize("kind", "PBDCE")
def test_malformed_requests_do_no_harm_to_others(start, kind, body):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander, client = proxy.connect(), proxy.connect()
    bystander.value("select 1")
    client.send(wire.message(kind, body) + sync())
    answer = wire.Answer()
    try:
        while not (answer and answer[-1].kind == "Z"):
            answer.append(client.read())
    except wire.Closed:
        pass
    assert answer.errors
    client.drop()
    assert bystander.value("select 1") == "1"
    assert eventually(lambda: proxy.pool()["sv_active"] == 0)


def test_half_a_message_and_then_nothing(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander = proxy.connect()
    for cut in (1, 3, 5, 9):
        client = proxy.connect()
        client.send(query("select 'never whole'")[:cut])
        client.drop()
        assert bystander.value("select 1") == "1"
    eventually(lambda: proxy.pool()["cl_active"] == 1)


def test_half_a_big_query_leaves_the_server_unharmed(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander, client = proxy.connect(), proxy.connect()
    client.send(query("select '%s'" % ("h" * 200000))[:100000])
    client.drop()
    assert bystander.value("select 1") == "1"
