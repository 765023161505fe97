"""Prepared statements whose rows have become others: "cached plan must not change result type"."""

import contextlib

import pytest

import wire
from test_takeover import reboot


@pytest.fixture
def table(cluster):
    cluster.sql("create table changing (a int); insert into changing values (1); grant all on changing to public")
    cluster.sql("alter table changing owner to app")
    yield "changing"
    cluster.sql("drop table changing")


SQL = "select * from changing"


def prepare(client, name="s"):
    return client.ask(wire.parse(name, SQL) + wire.describe("S", name) + wire.sync())


def use(client, name="s"):
    return client.ask(wire.bind("", name) + wire.describe("P") + wire.execute() + wire.sync())


def is_told(answer):
    error = answer.errors[0]
    assert (error["C"], error["R"]) == ("0A000", "RevalidateCachedQuery"), answer
    assert error["M"] == "cached plan must not change result type"
    return True


def test_a_client_that_prepares_anew_never_sees_it(start, table):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    old, ddl, fresh = proxy.connect(), proxy.connect(), proxy.connect()
    prepare(old)
    assert use(old).rows == [("1",)]
    ddl.query("begin; alter table changing add b int default 2; commit")
    assert [n for n, _ in prepare(fresh).columns] == ["a", "b"]
    assert use(fresh).rows == [("1", "2")]
    assert is_told(use(old))
    assert use(fresh).rows == [("1", "2")]


def test_who_was_told_has_the_new_rows_from_then_on(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    old = proxy.connect()
    prepare(old)
    cluster.sql("alter table changing add b int default 2")  # past the proxy
    assert is_told(use(old))
    for _ in range(2):
        assert [n for n, _ in use(old).columns] == ["a", "b"]
    fresh = proxy.connect()
    assert [n for n, _ in prepare(fresh).columns] == ["a", "b"]
    assert use(fresh).rows == [("1", "2")]
    old.query("deallocate s")
    prepare(old)
    assert use(old).rows == [("1", "2")]


def test_describe_and_sql_execute_tell_it_too(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    assert is_told(client.ask(wire.describe("S", "s") + wire.sync()))
    assert [n for n, _ in client.ask(wire.describe("S", "s") + wire.sync()).columns] == ["a", "b"]
    cluster.sql("alter table changing add c int default 3")
    assert is_told(client.ask(wire.query("execute s")))
    assert client.query("execute s").rows == [("1", "2", "3")]


def test_a_server_that_never_had_the_statement_does_not_give_other_rows(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    clients = [proxy.connect() for _ in range(3)]
    for client in clients:
        prepare(client)  # all on the same server
    cluster.sql("alter table changing add b int default 2")
    assert is_told(use(clients[0]))
    holder = proxy.connect()
    holder.query("begin")
    holder.query("select 1")
    for client in clients[1:]:
        assert is_told(use(client))
        assert use(client).rows == [("1", "2")]
    holder.query("rollback")


def test_in_a_transaction_it_fails_with_it(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    client.query("begin")
    assert is_told(use(client))
    assert use(client).codes == ["25P02"]
    client.query("rollback")
    assert use(client).rows == [("1", "2")]


def test_a_pipeline_goes_on_behind_its_sync(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    one = wire.bind("", "s") + wire.execute()
    client.send(one + wire.extended("select 5") + wire.extended("select 6"))
    answer = client.ready(2)
    assert (answer.codes, answer.rows) == (["0A000"], [("6",)])
    assert use(client).rows == [("1", "2")]


def test_a_name_that_is_in_use_stays_so(start, table, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    old, other = proxy.connect(), proxy.connect()
    for client in (old, other):
        prepare(client)
    cluster.sql("alter table changing add b int default 2")
    assert is_told(use(old))
    old.query("begin")
    assert prepare(other).codes == ["42P05"]
    old.query("rollback")


# ------------------------------------------------------------------ no server has said that the rows are others


@pytest.fixture
def pair(start, table):
    """A proxy with two servers, and a function that keeps the first free one busy for the block."""
    proxy = start(pool_mode="transaction", default_pool_size=2)

    @contextlib.contextmanager
    def busy():
        holder = proxy.connect()
        holder.query("begin")
        yield
        holder.query("rollback")

    proxy.busy = busy
    return proxy


def bare(client, name="s"):
    """Without asking what the rows look like."""
    return client.ask(wire.bind("", name) + wire.execute() + wire.sync())


def portal_described(client):
    client.ask(wire.parse("s", SQL) + wire.sync())
    assert use(client).rows == [("1",)]


@pytest.mark.parametrize("describe", [prepare, portal_described], ids=["statement", "portal"])
def test_who_knows_the_rows_does_not_get_others_from_a_server_that_prepares_it_now(pair, cluster, describe):
    client, other = pair.connect(), pair.connect()
    describe(client)
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        assert is_told(bare(client))
        assert bare(client).rows == [("1", "2")]
        assert bare(client).rows == [("1", "2")]
    assert prepare(other).codes == []


def test_nor_from_one_where_others_have_prepared_it(pair, cluster):
    client, fresh = pair.connect(), pair.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        assert [n for n, _ in prepare(fresh).columns] == ["a", "b"]
        assert is_told(bare(client))
        assert bare(fresh).rows == [("1", "2")]
        assert bare(client).rows == [("1", "2")]


def test_who_does_not_know_them_is_not_told(pair, cluster):
    client = pair.connect()
    client.ask(wire.parse("s", SQL) + wire.sync())
    assert bare(client).rows == [("1",)]
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        assert bare(client).rows == [("1", "2")]


def test_describe_tells_it_as_well(pair, cluster):
    client = pair.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        assert is_told(client.ask(wire.describe("S", "s") + wire.sync()))
        assert [n for n, _ in client.ask(wire.describe("S", "s") + wire.sync()).columns] == ["a", "b"]
        assert bare(client).rows == [("1", "2")]


def test_what_is_told_of_was_not_done(pair, cluster):
    client = pair.connect()
    sql = "insert into changing values (7) returning *"
    client.ask(wire.parse("s", sql) + wire.describe("S", "s") + wire.sync())
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        assert is_told(bare(client))
        assert cluster.value("select count(*) from changing") == "1"
        assert bare(client).rows == [("7", "2")]
    assert cluster.value("select count(*) from changing") == "2"


def test_in_a_pipeline_each_batch_has_its_own_fate(pair, cluster):
    client = pair.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    one = wire.bind("", "s") + wire.execute()
    with pair.busy():
        client.send(wire.parse("", "select 4") + wire.bind("", "") + wire.execute() + one + wire.sync() + one + wire.sync() + wire.extended("select 6"))
        answer = client.ready(3)
        assert (answer.codes, answer.rows) == (["0A000", "0A000"], [("4",), ("6",)])
        assert bare(client).rows == [("1", "2")]


def test_in_a_failed_transaction_it_is_that_error(pair, cluster):
    client = pair.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    with pair.busy():
        client.query("begin")
        client.fails("select 1/0")
        assert bare(client).codes == ["25P02"]
        client.query("rollback")
        assert is_told(bare(client))


def test_nothing_changed_nothing_told(pair):
    """From one server to the other and back, statements of all kinds."""
    texts = [SQL, "values (1, 'x')", "show work_mem", "explain select 1", "create temp table t (a int)", "/* c */ select 2"]
    client = pair.connect()
    for number, sql in enumerate(texts):
        name = "n%d" % number
        answer = client.ask(wire.parse(name, sql) + wire.describe("S", name) + wire.sync())
        assert answer.codes == []
    for _ in range(3):
        for number in (0, 1, 2, 3, 5):
            assert bare(client, "n%d" % number).codes == []
            with pair.busy():
                assert bare(client, "n%d" % number).codes == []
                assert use(client, "n%d" % number).codes == []


def test_another_cursor_of_the_same_name_is_no_change(pair):
    client = pair.connect()
    for number, columns in enumerate(["1 as a", "2 as b, 'x' as c"]):
        client.query("begin; declare c cursor for select " + columns)
        if number == 0:
            client.ask(wire.parse("f", "fetch all from c") + wire.describe("S", "f") + wire.sync())
        answer = use(client, "f")
        assert answer.codes == [] and len(answer.rows[0]) == number + 1
        client.query("commit")
        if number == 0:
            holder = pair.connect()
            holder.query("begin")
    holder.query("rollback")


def test_a_restart_forgets_nothing_of_it(pair, cluster):
    client = pair.connect()
    prepare(client)
    cluster.sql("alter table changing add b int default 2")
    reboot(pair)
    with pair.busy():
        assert is_told(bare(client))
        assert bare(client).rows == [("1", "2")]
