"""Online restart (-R): what clients have of their sessions comes along, and what plugins are deciding does not."""

import pytest

import wire
from harness import eventually, takes
from test_backend_calls import number_of
from test_routed import PLACE
from test_takeover import asleep, reboot
from wire import query


def test_settings_that_no_server_reports(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect(params={"statement_timeout": "12s"})
    other = proxy.connect()
    client.query("set search_path = pg_catalog")
    client.query("set lock_timeout = '7s'")
    for _ in range(2):
        reboot(proxy)
        assert other.value("show lock_timeout") == "0"
        assert other.value("show statement_timeout") == "0"
        assert client.value("show search_path") == "pg_catalog"
        assert client.value("show lock_timeout") == "7s"
        assert client.value("show statement_timeout") == "12s"
    client.query("set statement_timeout = '1min'")
    client.query("reset statement_timeout")  # to what the client began with
    assert client.value("show statement_timeout") == "12s"
    assert other.value("show statement_timeout") == "0"


def test_a_transaction_that_leaves_something(start):
    """Both is learnt of when it ends, which is after the restart."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client, other = proxy.connect(), proxy.connect()
    client.query("begin")
    client.query("set lock_timeout = '7s'")
    client.query("set work_mem = '77MB'")
    client.query("create temp table left_over (i int)")
    reboot(proxy)
    assert client.query("commit").status == "I"
    assert other.value("select to_regclass('left_over') is null") == "t"
    assert other.value("show work_mem") == "4MB"
    assert other.value("show lock_timeout") == "0"
    assert client.value("show lock_timeout") == "7s"


def test_an_unnamed_statement_that_leaves_something(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client, other = proxy.connect(), proxy.connect()
    client.query("begin")
    client.ask(wire.parse("", "select set_config('work_mem', $1, false)") + wire.sync())
    reboot(proxy)
    assert client.ask(wire.bind("", "", ["77MB"]) + wire.execute() + wire.sync()).rows == [("77MB",)]
    client.query("commit")
    assert other.value("show work_mem") == "4MB"


def test_pinned_clients_keep_their_servers(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, pin_session_state=1)
    client, other = proxy.connect(), proxy.connect()
    client.query("create temp table mine as select 5 as a")
    pid = client.value("select pg_backend_pid()")
    reboot(proxy)
    assert other.value("select pg_backend_pid()") != pid
    assert client.value("select a from mine") == "5"
    assert client.value("select pg_backend_pid()") == pid
    assert other.value("select pg_backend_pid()") != pid


def test_statements_of_sql_prepare(start):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    client, others = proxy.connect(), [proxy.connect() for _ in range(2)]
    client.query("prepare s (int) as select $1 + 1, pg_backend_pid()")
    client.query("execute s(1)")
    reboot(proxy)
    pids = set()
    for other in [None] + others:
        if other is not None:
            other.query("begin; select 1")
        for answer in (
            client.query("execute s(4)"),
            client.ask(wire.bind("", "s", [4]) + wire.execute() + wire.sync()),
        ):
            assert answer.rows[0][0] == "5"
            pids.add(answer.rows[0][1])
    assert len(pids) > 1
    client.query("deallocate s")
    assert client.fails("execute s(4)")["C"] == "26000"


def test_one_text_prepared_before_and_after_its_table_changed(start, cluster):
    """Servers know the two by two names."""
    cluster.sql("create table changing as select 1 as a; grant select on changing to public")
    try:
        proxy = start(pool_mode="transaction", default_pool_size=1)
        first, second = proxy.connect(), proxy.connect()
        parse = wire.parse("s", "select a from changing") + wire.sync()
        run = wire.bind("", "s") + wire.execute() + wire.sync()
        assert not first.ask(parse).errors
        second.query("create table another_one (i int)")
        second.query("drop table another_one")
        assert not second.ask(parse).errors
        for _ in range(2):
            reboot(proxy)
            for client in (first, second, first):
                assert client.ask(run).rows == [("1",)]
        assert first.ask(wire.parse("again", "select a from changing") + wire.sync()).kinds == "1Z"
    finally:
        cluster.sql("drop table changing")


@pytest.mark.parametrize("how", ["simple", "named"])
def test_clients_are_still_known_by_their_numbers(start, how):
    proxy = start(pool_mode="transaction", default_pool_size=3)
    busy, caller = proxy.connect(), proxy.connect()
    caller.ask(wire.parse("call", "select pg_cancel_backend($1)") + wire.sync())
    busy.send(query("select pg_sleep(20)"))
    asleep(proxy, 1)
    reboot(proxy)
    with takes(0, 5):
        if how == "simple":
            caller.query("select pg_cancel_backend(%d)" % number_of(busy))
        else:
            caller.ask(wire.bind("", "call", [number_of(busy)]) + wire.execute() + wire.sync())
        assert busy.ready().codes == ["57014"]
    caller.query("select pg_terminate_backend(%d)" % number_of(busy))
    assert [m.fields()["C"] for m in busy.read_to_end() if m.kind == "E"] == ["57P01"]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_between_batches_sessions_with_plugins_go_on(routed, mode):
    proxy = routed(mode)
    client, amid = proxy.connect(), proxy.connect()
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
    if mode == "transaction":
        client.ask(wire.parse("p", "/*direct o1*/ " + PLACE) + wire.sync())
    amid.query("begin; create temp table t as select 5 as a")
    reboot(proxy)
    assert amid.value("select a from t") == "5"
    assert amid.query("commit").status == "I"
    assert client.value(PLACE) == "cloud"
    assert client.value("/*direct o1*/ " + PLACE) == "org1"
    if mode == "transaction":
        assert client.ask(wire.bind("", "p") + wire.execute() + wire.sync()).rows == [("org1",)]


def test_plugins_still_know_the_unnamed_statement(routed):
    proxy = routed("session")
    client = proxy.connect()
    client.ask(wire.parse("", "/*direct o1*/ " + PLACE) + wire.sync())
    reboot(proxy)
    assert client.ask(wire.bind("", "") + wire.execute() + wire.sync()).rows == [("org1",)]


def test_a_batch_of_plugins_under_way_ends_with_the_old_process(routed, org):
    proxy = routed()
    direct, amid, idle = (proxy.connect() for _ in range(3))
    direct.send(query("/*direct o1*/ select pg_sleep(2)"))
    eventually(lambda: len(org.backends("wait_event = 'PgSleep'")) == 1)
    amid.send(wire.parse("", "select 1") + wire.bind("", "") + wire.execute() + wire.flush())
    amid.read_until("C")
    reboot(proxy)
    for client in (direct, amid):
        with pytest.raises((wire.Closed, OSError)):
            client.ready()
    assert idle.value("/*direct o1*/ " + PLACE) == "org1"


def test_who_waits_with_a_decided_batch_is_served(routed):
    proxy = routed(default_pool_size=1)
    busy, waiting = proxy.connect(), proxy.connect()
    busy.send(query("select pg_sleep(3)"))
    asleep(proxy, 1)
    waiting.send(wire.extended(PLACE))
    eventually(lambda: proxy.pool()["cl_waiting"] == 1)
    reboot(proxy)
    assert busy.ready().tags == ["SELECT 1"]
    assert waiting.ready().rows == [("cloud",)]
