"""Prepared statements whose rows have become others: "cached plan must not change result type"."""

import pytest

import wire


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
