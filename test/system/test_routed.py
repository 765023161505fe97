"""Batches that plugins send elsewhere, refuse, or ask about, told so by comments (test/plugins/director.c)."""

import concurrent.futures
import io
import time

import psycopg2
import pytest

from harness import eventually
from wire import bind, close, describe, execute, extended, flush, message, parse, query, sync

PLACE = "select name from place"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_batch_goes_where_it_is_told(routed, mode):
    client = routed(mode).connect()
    assert client.value(PLACE) == "cloud"
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
    assert client.ask(extended("/*direct o1*/ " + PLACE)).rows == [("org1",)]
    assert client.value(PLACE) == "cloud"
    assert client.ask(extended(PLACE)).rows == [("cloud",)]


def test_the_answers_look_the_same(routed):
    client = routed().connect()
    batches = [
        lambda c: query(c + "select 1 as a, 'x' as b where %s" % True),
        lambda c: query(c + "select 1/0"),
        lambda c: query(c + "select * from no_such_table"),
        lambda c: query(c + "select generate_series(1, 3000) as n, repeat('x', 50)"),
        lambda c: query(c),
        lambda c: extended(c + "select $1::int + 1", [41]),
        lambda c: extended(c + "select $1::int / 0", [41]),
        lambda c: extended(c + "selec"),
        lambda c: parse("", c + "select generate_series(1, 10)") + bind("", "") + execute("", 3) + execute("", 2) + sync(),
        lambda c: b"".join(parse("", c + "select %d" % n) + bind("", "") + execute() for n in range(20)) + sync(),
        lambda c: parse("", c + "select 1") + bind("", "") + execute() + parse("", c + "select 1/0") + bind("", "")
        + execute() + parse("", c + "select 3") + bind("", "") + execute() + sync(),
    ]
    for batch in batches:
        near, far = client.ask(batch("/*nothing  */")), client.ask(batch("/*direct o1*/"))
        assert far.kinds == near.kinds
        assert far.rows == near.rows and far.tags == near.tags
        assert far.codes == near.codes and far.columns == near.columns
        assert [e.get("P") for e in far.errors] == [e.get("P") for e in near.errors]


def test_named_statements_go_along(routed):
    client = routed().connect()
    assert client.ask(parse("s", "/*direct o1*/ select name || $1 from place") + describe("S", "s") + sync()).kinds == "1tTZ"
    for n in range(3):
        answer = client.ask(bind("", "s", [n]) + describe("P") + execute() + sync())
        assert answer.kinds == "2TDCZ" and answer.rows == [("org1%d" % n,)]
    assert client.ask(parse("t", "/*direct o1*/ select 7") + bind("", "t") + execute() + sync()).rows == [("7",)]
    assert client.ask(bind("", "t") + execute() + sync()).rows == [("7",)]
    assert client.ask(parse("t", "select 8") + bind("", "t") + execute() + sync()).codes == ["42P05"]
    assert client.ask(close("S", "t") + sync()).kinds == "3Z"
    assert client.ask(bind("", "t") + execute() + sync()).codes == ["26000"]


def test_the_unnamed_statement_of_an_earlier_batch(routed):
    client = routed().connect()
    assert client.ask(parse("", "/*direct o1*/ " + PLACE) + describe("S") + sync()).kinds == "1tTZ"
    assert client.ask(bind("", "") + execute() + sync()).rows == [("org1",)]
    assert client.ask(bind("", "") + execute() + sync()).rows == [("org1",)]


def test_a_check_that_passes_lets_the_answer_out(routed):
    proxy = routed()
    client = proxy.connect()
    assert client.value("/*direct o1*//*check select 1*/ " + PLACE) == "org1"
    assert client.ask(extended("/*direct o1*//*check select 1*/ " + PLACE)).rows == [("org1",)]
    for mode in (query, extended):
        answer = client.ask(mode("/*direct o1*//*check select 1/0*/ " + PLACE))
        assert answer.kinds == "EZ" and answer.codes == ["22012"] and answer.status == "I"
    answer = client.ask(query("/*direct o1*//*check do $$begin raise 'closed' using errcode='42501', detail='d'; end$$*/ " + PLACE))
    assert answer.errors[0]["M"] == "closed" and answer.errors[0]["D"] == "d"
    assert client.value(PLACE) == "cloud"


STALE = "do $$begin raise 'moved' using errcode = 'LK001'; end$$"


def test_a_stale_check_is_tried_again_and_then_told(routed):
    client = routed().connect()
    for batch in (query("/*direct o1*//*check %s*/ select 1" % STALE), extended("/*direct o1*//*check %s*/ select 1" % STALE)):
        assert client.ask(batch).codes == ["40001"]
    named = parse("n", "/*direct o1*//*check %s*/ select 1" % STALE) + bind("", "n") + execute() + sync()
    assert client.ask(named).codes == ["40001"]
    assert client.ask(bind("", "n") + execute() + sync()).codes == ["26000"]


def test_a_check_that_passes_at_the_second_attempt(routed, org):
    org.sql("create sequence if not exists attempts; grant usage on sequence attempts to public; select setval('attempts', 1)")
    client = routed().connect()
    check = "do $$begin if nextval('attempts') < 3 then raise 'moved' using errcode = 'LK001'; end if; end$$"
    named = parse("n", "/*direct o1*//*check %s*/ %s" % (check, PLACE)) + bind("", "n") + execute() + sync()
    answer = client.ask(named)
    assert answer.kinds == "12DCZ" and answer.rows == [("org1",)]
    assert client.ask(bind("", "n") + execute() + sync()).rows == [("org1",)]


def test_a_batch_may_meet_as_many_changes_as_a_move_there_and_back_makes(routed, org):
    org.sql("create sequence if not exists attempts; grant usage on sequence attempts to public; select setval('attempts', 1)")
    client = routed().connect()
    check = "do $$begin if nextval('attempts') < 8 then raise 'moved' using errcode = 'LK001'; end if; end$$"
    assert client.ask(query("/*direct o1*//*check %s*/ %s" % (check, PLACE))).rows == [("org1",)]


@pytest.mark.parametrize("size", [1000, 100000, 3000000])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_answers_of_every_size_are_held_back(routed, mode, size):
    client = routed(mode, default_pool_size=1, hold_back_buffer=65536).connect()
    sql = "/*direct o1*//*check select pg_sleep(0.2)*/ select repeat('x', 1000) from generate_series(1, %d)" % (size // 1000)
    for batch in (query(sql), extended(sql)):
        answer = client.ask(batch)
        assert len(answer.rows) == size // 1000 and answer.kinds.endswith("CZ")
    bad = sql.replace("pg_sleep(0.2)", "1/0")
    assert client.ask(query(bad)).kinds == "EZ"
    assert client.value(PLACE) == "cloud"


def test_pools_of_one_connection_and_many_clients(routed):
    """Each needs both connections, and nobody waits for the other for ever."""
    proxy = routed(default_pool_size=1, hold_back_buffer=16384)

    def work(number):
        client = proxy.connect(timeout=60)
        for turn in range(6):
            rows = 1 if (number + turn) % 3 else 200
            sql = "/*direct o1*//*check select 1*/ select repeat('x', 500), %d from generate_series(1, %d)" % (number, rows)
            answer = client.ask(query(sql) if turn % 2 else extended(sql))
            assert len(answer.rows) == rows and answer.rows[0][1] == str(number)
            assert client.value("select %d from place" % number) == str(number)
        client.terminate()
        return True

    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        assert all(pool.map(work, range(60)))


def test_asking_first(routed):
    client = routed().connect()
    assert client.value("/*ask select 'o1'*/ " + PLACE) == "org1"
    assert client.value("/*ask select 'cloud'*/ " + PLACE) == "cloud"
    assert client.ask(extended("/*ask select 'o1'*/ " + PLACE)).rows == [("org1",)]
    assert client.ask(extended("/*ask select 'cloud'*/ " + PLACE)).rows == [("cloud",)]
    assert client.ask(query("/*ask select 1/0*/ " + PLACE)).codes == ["22012"]
    assert client.ask(extended("/*ask select 1/0*/ " + PLACE)).codes == ["22012"]
    # In a transaction it is part of it.
    assert client.ask(query("begin")).status == "T"
    assert client.value("/*ask select 'cloud'*/ " + PLACE) == "cloud"
    answer = client.ask(query("/*ask select 1/0*/ " + PLACE))
    assert answer.codes == ["22012"] and answer.status == "E"
    assert client.ask(query("/*ask select 'cloud'*/ " + PLACE)).codes == ["25P02"]
    assert client.ask(query("rollback")).status == "I"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_refusals(routed, mode):
    client = routed(mode).connect()
    refused = "/*refuse 42501 not you*/ select 1"
    for batch in (query(refused), extended(refused), parse("x", refused) + sync()):
        answer = client.ask(batch)
        assert answer.kinds == "EZ" and answer.codes == ["42501"] and answer.errors[0]["M"] == "not you"
        assert answer.status == "I" and answer.errors[0]["S"] == "ERROR"
    assert client.ask(bind("", "x") + sync()).codes == ["26000"]
    # The transaction has failed, on the server too.
    for batch in (query(refused), extended(refused)):
        client.ask(query("begin"))
        answer = client.ask(batch)
        assert answer.kinds == "EZ" and answer.codes == ["42501"] and answer.status == "E"
        assert client.ask(query("select 1")).codes == ["25P02"]
        assert client.ask(query("commit")).tags == ["ROLLBACK"]
    # In the middle of a batch that is not ended yet.
    client.send(parse("", refused) + bind("", "") + execute() + flush())
    assert client.read(5).fields()["C"] == "42501"
    client.send(parse("", "select 1") + bind("", "") + execute() + flush())
    assert client.is_silent(0.2)
    assert client.ask(sync()).kinds == "Z"
    assert client.value(PLACE) == "cloud"


def test_a_refused_batch_that_is_too_large_to_be_gathered(routed):
    client = routed(max_routed_message=1000).connect()
    padding = " " * 200000
    # What is not gathered is not looked into.
    assert client.value("/*direct o1*/ " + PLACE + padding) == "cloud"
    assert client.ask(extended("/*direct o1*/ " + PLACE + padding)).rows == [("cloud",)]
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_what_follows_a_query_too_large_to_be_gathered_is_decided_again(routed):
    client = routed(max_routed_message=1000).connect()
    client.send(query(PLACE + " " * 200000) + query("/*direct o1*/ " + PLACE))
    assert [client.ready().value for _ in range(2)] == ["cloud", "org1"]


def test_an_organization_that_cannot_be_reached(routed):
    proxy = routed()
    client = proxy.connect()
    for name in ("gone", "missing"):
        for batch in (query("/*direct %s*/ select 1" % name), extended("/*direct %s*/ select 1" % name)):
            answer = client.ask(batch)
            assert answer.kinds == "EZ" and answer.codes == ["08006"] and answer.status == "I"
            assert str(proxy.cluster.port) not in answer.errors[0]["M"] and "no_such" not in answer.errors[0]["M"]
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


@pytest.mark.parametrize("form", ["simple", "extended"])
def test_an_organization_that_goes_away_meanwhile(routed, org, form):
    client = routed().connect()
    sql = "/*direct o1*//*check select 1*/ select pg_terminate_backend(pg_backend_pid())"
    answer = client.ask(query(sql) if form == "simple" else extended(sql))
    assert answer.kinds[-2:] == "EZ" and answer.codes[-1] in ("57P01", "08006")
    assert client.value(PLACE) == "cloud"
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_a_cancel_reaches_the_organization(routed):
    proxy = routed()
    client = proxy.connect()
    for batch in (query("/*direct o1*/ select pg_sleep(20)"), extended("/*direct o1*/ select pg_sleep(20)")):
        client.send(batch)
        eventually(lambda: proxy.cluster.backends("query like '%pg_sleep(20)%' and state = 'active'"))
        client.cancel()
        assert client.ready().codes == ["57014"]
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_settings_of_the_client_are_those_there(routed):
    client = routed().connect(params={"application_name": "shop", "client_encoding": "latin1"})
    assert client.value("/*direct o1*/ select current_setting('application_name')") == "shop"
    assert client.value("/*direct o1*/ select current_setting('client_encoding')") == "LATIN1"
    client.ask(query("set timezone = 'Asia/Tokyo'"))
    assert client.value("/*direct o1*/ select current_setting('timezone')") == "Asia/Tokyo"
    assert client.value("select current_setting('timezone')") == "Asia/Tokyo"
    other = client.__class__(client.port)
    assert other.value("/*direct o1*/ select current_setting('timezone')") == "UTC"


def test_a_client_that_goes_away_meanwhile(routed):
    proxy = routed()
    for batch in (query("/*direct o1*/ select pg_sleep(1)"), query("/*direct o1*//*check select pg_sleep(1)*/ select 1")):
        client = proxy.connect()
        client.send(batch)
        time.sleep(0.2)
        client.drop()
    client = proxy.connect()
    client.send(query("/*direct o1*/ " + PLACE) + message("X"))
    eventually(lambda: len(proxy.show("clients")) == 1, 10)
    assert proxy.connect().value("/*direct o1*/ " + PLACE) == "org1"


def test_pipelines_over_several_syncs(routed):
    client = routed().connect()
    batches = [extended(("/*direct o1*/ " if n % 3 == 0 else "") + PLACE) for n in range(30)]
    client.send(b"".join(batches))
    answers = [client.ready() for _ in batches]
    assert [a.rows[0][0] for a in answers] == ["org1" if n % 3 == 0 else "cloud" for n in range(30)]
    client.send(b"".join(query("/*direct o1*/ select %d" % n) for n in range(30)))
    assert [client.ready().value for _ in range(30)] == [str(n) for n in range(30)]


def test_copy_and_the_plain_path_are_as_before(routed):
    client = routed().connect()
    connection = psycopg2.connect(host="127.0.0.1", port=client.port, user="app", dbname="app")
    with connection, connection.cursor() as cursor:
        cursor.execute("create temp table t (a int) on commit drop")
        cursor.copy_expert("copy t from stdin", io.StringIO("1\n2\n"))
        cursor.execute("select sum(a) from t")
        assert cursor.fetchone() == (3,)
    connection.close()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_batch_behind_a_flush_needs_no_further_bytes(routed, mode):
    client = routed(mode).connect(timeout=5)
    one = lambda n: parse("", "select %d" % n) + bind("", "") + execute()
    client.send(one(1) + flush() + one(2) + flush() + one(3) + sync() + query("select 4"))
    assert client.ready().rows == [("1",), ("2",), ("3",)]
    assert client.ready().rows == [("4",)]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_what_comes_after_an_error_and_a_flush_is_skipped(routed, mode):
    client = routed(mode).connect(timeout=5)
    asked = parse("", "/*ask select 'cloud'*/ select 1") + bind("", "") + execute()
    for wrong in (parse("", "selec") + flush(), parse("", "select 1/0") + bind("", "") + execute() + flush()):
        client.send(wrong)
        assert client.read_until("E").kinds[-1] == "E"
        client.send(asked + flush() + bind("", "no such statement") + flush() + query("/*refuse 42501 no*/ select 1"))
        assert client.is_silent()
        assert client.ask(sync()).kinds == "Z"
        assert client.ask(asked + sync()).rows == [("1",)]


def test_what_cannot_go_direct_is_a_failure_of_the_plugin(routed):
    proxy = routed()
    client = proxy.connect(timeout=5)
    client.query("begin")
    answer = client.ask(query("/*direct o1*/ " + PLACE))
    assert answer.codes == ["XX000"] and answer.status == "E"
    client.query("rollback")
    client.send(parse("", "/*direct o1*/ " + PLACE) + bind("", "") + execute() + flush())
    assert client.read().fields()["C"] == "XX000"
    assert client.ask(sync()).kinds == "Z"
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
    proxy.wait_log("said direct inside of a transaction")


def test_copy_from_the_client_cannot_go_direct(routed):
    client = routed().connect(timeout=5)
    for batch in (query, extended):
        assert client.ask(batch("/*direct o1*/ copy place_to_fill from stdin")).codes == ["0A000"]
        assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_it_is_shown_and_closed_like_other_pools(routed):
    proxy = routed()
    client = proxy.connect()
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
    pools = [row["database"] for row in proxy.show("pools")]
    assert [name for name in pools if name.startswith("lokadb:o1#")]
    refusal = proxy.refusal(database="lokadb:o1#1")
    assert "no such database" in refusal.message
    proxy.admin("reload")
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
