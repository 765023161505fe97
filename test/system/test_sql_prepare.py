"""SQL PREPARE, EXECUTE and DEALLOCATE together with statements prepared by message, when servers are shared."""

import pytest

import wire


@pytest.fixture(params=["transaction", "session"])
def proxy(request, start):
    return start(pool_mode=request.param, default_pool_size=3)


def bound(client, name, *params):
    return client.ask(wire.bind("", name, params) + wire.describe("P") + wire.execute() + wire.sync())


def test_execute_finds_what_parse_made(proxy):
    client, other = proxy.connect(), proxy.connect()
    assert not client.ask(wire.parse("s", "select $1::int + 1") + wire.sync()).errors
    for sql in ("execute s(4)", "EXECUTE  s (4);", "/* a /* b */ */ -- c\n execute s(4)", 'execute "s"(4)', "execute s(4); select 'more'"):
        assert client.query(sql).rows[0] == ("5",)
    assert other.fails("execute s(4)")["C"] == "26000"
    assert client.value("execute s(6)") == "7"
    assert "Result" in client.query("explain execute s(5)").rows[0][0]


def test_execute_by_message_finds_it_too(proxy):
    client = proxy.connect()
    client.ask(wire.parse("s", "select 5") + wire.sync())
    for _ in range(2):
        assert client.ask(wire.extended("execute s")).value == "5"


def test_bind_and_execute_find_what_prepare_made(proxy):
    client, other = proxy.connect(), proxy.connect()
    client.query("prepare s (int, text) as select $1 + 1, $2; ")
    for _ in range(3):
        assert bound(client, "s", 4, "x").rows == [("5", "x")]
        assert client.query("execute s(4, 'y')").rows == [("5", "y")]
        assert other.value("select 1") == "1"
    assert client.ask(wire.describe("S", "s") + wire.sync()).columns[0][1] == 23
    assert other.fails("execute s(4, 'y')")["C"] == "26000"
    client.query("deallocate s")
    assert client.fails("execute s(4, 'y')")["C"] == "26000"
    assert bound(client, "s", 4, "x").codes == ["26000"]


def test_it_is_found_on_every_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    client, others = proxy.connect(), [proxy.connect() for _ in range(2)]
    client.query("prepare s as select pg_backend_pid()")
    pids = [client.value("execute s")]
    for other in others:
        other.query("begin")
        other.query("select 1")
        pids.append(client.value("execute s"))
        assert bound(client, "s").value == pids[-1]
    assert len(set(pids)) > 1
    client.query("begin")
    assert [client.value("execute s") for _ in range(2)][0] == bound(client, "s").value
    client.query("commit")


def test_names_of_clients_are_their_own(proxy):
    clients = [proxy.connect() for _ in range(3)]
    for n, client in enumerate(clients):
        client.query("prepare same as select %d" % n)
    for _ in range(2):
        for n, client in enumerate(clients):
            assert client.value("execute same") == str(n)


def test_names_in_use_and_unknown_ones(proxy):
    client = proxy.connect()
    client.query("prepare s as select 1")
    error = client.fails("prepare s as select 2")
    assert (error["C"], error["M"]) == ("42P05", 'prepared statement "s" already exists')
    assert client.ask(wire.parse("s", "select 3") + wire.sync()).codes == ["42P05"]
    client.ask(wire.parse("m", "select 4") + wire.sync())
    assert client.fails("prepare m as select 5")["C"] == "42P05"
    assert (client.value("execute s"), client.value("execute m")) == ("1", "4")
    assert client.fails("execute none")["M"] == 'prepared statement "none" does not exist'


def test_a_prepare_that_fails_makes_nothing(proxy):
    client = proxy.connect()
    assert client.fails("prepare s as select nothing_there")["C"] == "42703"
    assert client.fails("execute s")["C"] == "26000"
    client.query("prepare s as select 1")
    assert client.value("execute s") == "1"


def test_in_transactions_and_failed_ones(proxy):
    client = proxy.connect()
    client.query("begin")
    client.query("prepare s as select 'kept'")
    client.fails("select 1 / 0")
    assert client.fails("execute s")["C"] == "25P02"
    assert client.fails("prepare t as select 1")["C"] == "25P02"
    client.query("rollback")
    assert client.value("execute s") == "kept"
    assert client.fails("execute t")["C"] == "26000"


def test_dropping_all(proxy):
    client, other = proxy.connect(), proxy.connect()
    for sql in ("deallocate all", "discard all"):
        client.query("prepare s as select 1")
        client.ask(wire.parse("m", "select 2") + wire.sync())
        other.query("prepare s as select 3")
        client.query(sql)
        assert [client.fails("execute " + n)["C"] for n in "sm"] == ["26000", "26000"]
        assert other.value("execute s") == "3"
        other.query("deallocate s")


def test_a_pipeline_of_it(proxy):
    client = proxy.connect()
    client.send(
        wire.query("prepare s as select 1")
        + wire.query("execute s")
        + wire.bind("", "s")
        + wire.execute()
        + wire.sync()
        + wire.query("deallocate s")
        + wire.query("prepare s as select 2")
        + wire.query("execute s")
    )
    answer = client.ready(6)
    assert (answer.codes, answer.rows) == ([], [("1",), ("1",), ("2",)])


def test_what_a_prepared_statement_leaves_does_not_reach_others(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("prepare s as select set_config('work_mem', '77MB', false)")
    for _ in range(2):
        first.query("execute s")
        assert second.value("show work_mem") == "4MB"
    first.query("prepare t (text) as select set_config('lock_timeout', $1, false)")
    first.query("execute t('4s')")
    assert [c.value("show lock_timeout") for c in (second, first)] == ["0", "4s"]


def test_many_statements_over_a_small_memory(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, max_prepared_statements=3)
    client = proxy.connect()
    for n in range(8):
        client.query("prepare s%d (int) as select $1 * %d" % (n, n))
        client.ask(wire.parse("m%d" % n, "select %d" % n) + wire.sync())
    for n in list(range(8)) * 2:
        assert client.value("execute s%d(2)" % n) == str(2 * n)
        assert bound(client, "s%d" % n, 3).value == str(3 * n)
        assert client.value("execute m%d" % n) == str(n)


def test_odd_names(proxy):
    client = proxy.connect()
    for name in ('"Mixed Case"', '"a""b"', "PGBOUNCER_1", '"PGBOUNCER_2"', "Ünïcode", "a$1"):
        client.query("prepare %s as select 1" % name)
        assert client.value("execute %s" % name) == "1"
        client.query("deallocate %s" % name)
        assert client.fails("execute %s" % name)["C"] == "26000"


@pytest.mark.parametrize(
    "ignored", ["execute x", "prepare x as select 2", "deallocate x", "deallocate s", "select 3", "discard all"]
)
def test_what_comes_between_an_error_and_sync_is_ignored(proxy, ignored):
    """Whatever a simple query there asks for: neither is it answered, nor does it change anything, nor end the proxy."""
    client, other = proxy.connect(), proxy.connect()
    client.query("prepare x as select 1")
    client.ask(wire.parse("s", "select 4") + wire.sync())
    client.send(wire.parse("", "select nonsense(") + wire.flush())
    assert client.read().kind == "E"
    client.send(wire.query(ignored))
    assert client.is_silent(0.2)
    assert client.ask(wire.sync()).kinds == "Z"
    assert client.value("execute x") == "1" and bound(client, "s").rows == [("4",)]
    assert other.value("select 5") == "5"


@pytest.mark.parametrize("name", ["p", "a_name_that_is_longer_than_what_stands_for_it", '"ü, with ""quotes"""'])
def test_positions_are_those_of_the_clients_text(proxy, cluster, name):
    client, plain = proxy.connect(), cluster.connect()
    taken = "prepare %s (int) as select 'ü', $1" % name
    assert plain.ask(wire.query(taken)).errors == [] and client.ask(wire.query(taken)).errors == []
    for sql in (
        "prepare %sx as select 'ü', nothing" % name if name == "p" else "prepare p as select 'ü', nothing",
        "deallocate %s; prepare %s as selec 1" % (name, name),
        "prepare %s as select 'ü', from" % name,
        "prepare %s (int, no_type) as select $1" % name,
        " /* ü */ execute %s ('ü')" % name,
        "execute %s (nothing)" % name,
        "execute %s ((select 1))" % name,
    ):
        (expected,), (found,) = plain.ask(wire.query(sql)).errors, client.ask(wire.query(sql)).errors
        assert (found.get("P"), found["C"], found["M"]) == (expected.get("P"), expected["C"], expected["M"]), sql
    plain.drop()


def test_comments_in_front_hide_nothing(proxy):
    client, other = proxy.connect(), proxy.connect()
    client.query("/* prepares */ prepare p as select 'mine'")
    other.query("-- prepares\nprepare p as select 'other'")
    assert client.value("/* runs */ execute p") == "mine" and other.value("--\nexecute p") == "other"
    answer = client.ask(wire.extended("/* runs */ execute p"))
    assert answer.rows == [("mine",)], answer
    client.query("/* the last */ deallocate p")
    assert client.fails("execute p")["C"] == "26000" and other.value("execute p") == "other"
