"""pg_cancel_backend() and pg_terminate_backend() with the number that a client was given at its login."""

import struct
import time

import pytest

import wire
from harness import eventually, takes


def number_of(client):
    return struct.unpack("!i", client.key[:4])[0]



def sleep(cluster, client, seconds=8):
    mark = "nap%d" % number_of(client)
    client.send(wire.query("select pg_sleep(%d) as %s" % (seconds, mark)))
    eventually(lambda: cluster.value("select count(*) from pg_stat_activity where state = 'active' and query like '%as " + mark + "'") == "1")


def call(client, how, function, number):
    if how == "simple":
        return client.ask(wire.query("SELECT %s(%d);" % (function, number)))
    if how == "literal":
        return client.ask(wire.extended("select pg_catalog.%s(%d)" % (function, number)))
    if how == "named":
        name = "call %s" % function
        client.ask(wire.parse(name, "SELECT %s($1)" % function) + wire.sync())
        answer = client.ask(wire.bind("", name, (number,)) + wire.describe("P") + wire.execute() + wire.sync())
        client.ask(wire.close("S", name) + wire.sync())
        return answer
    if how == "binary":
        bind = wire.cstr("") + wire.cstr("") + struct.pack("!HHHIIH", 1, 1, 1, 4, number, 0)
        return client.ask(
            wire.parse("", "select %s($1::int)" % function, (23,))
            + wire.message("B", bind)
            + wire.describe("P")
            + wire.execute()
            + wire.sync()
        )
    return client.ask(wire.extended("SELECT %s($1);" % function, (number,)))


WAYS = ["simple", "literal", "unnamed", "named", "binary"]


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("how", WAYS)
def test_a_statement_of_another_connection_is_cancelled(start, cluster, mode, how):
    if (mode, how) == ("session", "named"):
        how = "unnamed"
    proxy = start(pool_mode=mode, default_pool_size=4)
    busy, caller, bystander = proxy.connect(), proxy.connect(), proxy.connect()
    for _ in range(2):
        sleep(cluster, busy)
        bystander.send(wire.query("select 'done', pg_sleep(0.5)"))
        with takes(0, 5):
            answer = call(caller, how, "pg_cancel_backend", number_of(busy))
            assert (answer.codes, answer.rows, answer.columns) == ([], [("t",)], [("pg_cancel_backend", 16)])
            assert busy.ready().codes == ["57014"]
        assert bystander.ready().codes == []
        assert busy.value("select 5") == "5"


@pytest.mark.parametrize("how", WAYS)
def test_a_busy_connection_is_terminated(start, cluster, how):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    busy, caller = proxy.connect(), proxy.connect()
    busy.query("begin; insert into scratch values (1)")
    sleep(cluster, busy)
    with takes(0, 5):
        assert call(caller, how, "pg_terminate_backend", number_of(busy)).rows == [("t",)]
        assert busy.last_words()["C"] == "57P01"
    assert caller.value("select count(*) from scratch") == "0"


@pytest.mark.parametrize("state", ["idle", "in transaction", "waiting"])
def test_a_connection_that_runs_nothing_is_terminated(start, state):
    proxy = start(pool_mode="transaction", default_pool_size=2 if state == "in transaction" else 1)
    quiet, caller = proxy.connect(), proxy.connect()
    if state == "in transaction":
        quiet.query("begin")
    if state == "waiting":
        caller.query("begin")
        quiet.send(wire.query("select 1"))
        eventually(lambda: proxy.pool()["cl_waiting"] == 1)
    assert call(caller, "simple", "pg_terminate_backend", number_of(quiet)).rows == [("t",)]
    assert quiet.last_words()["C"] == "57P01"
    assert caller.value("select 5") == "5"


def test_it_needs_no_server_of_its_own(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    busy, caller = proxy.connect(), proxy.connect()
    sleep(cluster, busy)
    with takes(0, 5):
        assert call(caller, "simple", "pg_cancel_backend", number_of(busy)).value == "t"
        assert busy.ready().codes == ["57014"]


def test_connections_of_others_and_numbers_of_nobody_are_left_to_the_server(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    busy, caller = proxy.connect(user="other"), proxy.connect()
    busy.send(wire.query("select 'done', pg_sleep(0.5)"))
    for how in WAYS:
        for number in (number_of(busy), 0x7ffffffe):
            answer = call(caller, how, "pg_cancel_backend", number)
            assert (answer.rows, answer.codes) == ([("f",)], [])
            assert "not a PostgreSQL" in answer.notices[0]
    assert busy.ready().rows == [("done", "")]


def test_numbers_of_processes_work_as_ever(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    busy, caller = proxy.connect(), proxy.connect()
    for how in WAYS:
        busy.query("begin")
        pid = int(busy.value("select pg_backend_pid()"))
        sleep(cluster, busy)
        assert call(caller, how, "pg_cancel_backend", pid).value == "t"
        assert busy.ready().codes == ["57014"]
        busy.query("rollback")


def test_an_idle_connection_has_nothing_to_cancel(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    idle, caller = proxy.connect(), proxy.connect()
    assert call(caller, "simple", "pg_cancel_backend", number_of(idle)).value == "t"
    time.sleep(0.1)
    assert (idle.value("select 1"), caller.value("select 2")) == ("1", "2")


def test_inside_transactions(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    busy, caller = proxy.connect(), proxy.connect()
    caller.query("begin")
    sleep(cluster, busy)
    answer = call(caller, "simple", "pg_cancel_backend", number_of(busy))
    assert (answer.value, answer.status) == ("t", "T")
    assert busy.ready().codes == ["57014"]
    caller.fails("select 1 / 0")
    for how in ("simple", "literal", "unnamed", "binary"):
        assert call(caller, how, "pg_cancel_backend", number_of(busy)).codes == ["25P02"]
    caller.query("rollback")
