"""What a change of the routing meets in the middle of a batch: it begins anew, or fails, and is always answered."""

import contextlib
import re
import socket
import time

import pytest

from harness import eventually, takes
from routed_world import counts, documents, proxy, world  # noqa: F401 (fixtures)
from wire import bind, cancel_request, copy_data, copy_done, describe, execute, extended, parse, query, sync

SQL = "select id, title from documents where organization_id = $1 order by id"
PAUSE = "pg_advisory_%s(lokadb.pause_key('%s'))"
WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


@pytest.fixture
def on_fdw(world):
    def put(profile):
        for org in ("2", "3"):
            world.run("org-profile", "-db", world.dsn(world.cloud), "-org", org, profile)

    put("fdw")
    yield
    put("fdw+direct")


class Pause:
    """Gates of the organization wait."""

    def __init__(self, world, org):
        self.world, self.org = world, org
        world.sql("select " + PAUSE % ("lock", org))

    def wait(self):
        eventually(lambda: self.world.sql(WAITING).value != "0", 10, "a gate waits")

    def change_routing(self):
        new = "update lokadb.organizations set generation = nextval('lokadb.generation') where org = '%s'"
        self.world.sql(new % self.org)

    def end(self):
        self.world.sql("select " + PAUSE % ("unlock", self.org))


@contextlib.contextmanager
def pause(world, org):
    made = Pause(world, org)
    try:
        yield made
    finally:
        world.sql("select pg_advisory_unlock_all()")


@pytest.mark.parametrize("form", ["simple", "extended", "pipeline"])
def test_a_batch_is_decided_anew_at_once(proxy, world, on_fdw, form):
    """Not when the feed asks by itself the next time."""
    c = proxy(default_pool_size=1).connect()
    batch = {
        "simple": query(SQL.replace("$1", "2")),
        "extended": extended(SQL, ["2"]),
        "pipeline": 2 * (parse("", SQL) + bind("", "", ["2"]) + execute()) + sync(),
    }[form]
    with pause(world, "2") as paused, takes(0, 3):
        c.send(batch)
        paused.wait()
        paused.change_routing()
        paused.end()
        answer = c.ready()
    assert answer.rows == documents(world, "2") * (2 if form == "pipeline" else 1) and not answer.codes


# A statement of which the client knows the columns is asked for its columns on a server that has not prepared it yet:
# the client's Bind waits, while the steps in front of it are on their way already.


def knows_generation(p, world, org):
    known = p.show("lokadb_orgs", organization=org)[0]["generation"]
    return known == world.sql("select generation from lokadb.organizations where org = '%s'" % org).value


class Asked:
    """A proxy with two servers, of which the one that is free lacks the statement "s" of the client."""

    def __init__(self, p):
        self.proxy = p
        self.client, self.holder, self.other = p.connect(), p.connect(), p.connect()
        for c in (self.holder, self.other):
            c.ask(query("begin"))
        for c in (self.holder, self.other):
            c.ask(query("commit"))
        self.client.ask(query(SQL.replace("$1", "2")))  # what the role has set is known
        self.client.ask(parse("s", SQL) + describe("S", "s") + sync())
        self.holder.ask(query("begin"))  # on the server that the client had


@pytest.fixture
def asked(proxy, world, on_fdw):
    return lambda: Asked(proxy(default_pool_size=2))


def test_a_batch_that_waits_for_its_columns_begins_anew_as_a_whole(asked, world):
    a = asked()
    with pause(world, "2") as paused:
        a.client.send(bind("", "s", ["2"]) + execute() + sync())
        paused.wait()
        paused.change_routing()
        world.sql("notify lokadb")
        a.holder.ask(query("commit"))
        # What the role has set is asked for anew with each catalog. If another client has done that, the batch is
        # decided at once.
        eventually(lambda: knows_generation(a.proxy, world, "2"), 5)
        assert a.other.ask(query(SQL.replace("$1", "3"))).rows == documents(world, "3")
        paused.end()
        answer = a.client.ready()
    assert answer.rows == documents(world, "2") and answer.kinds[0] == "2"


def test_a_batch_that_waits_for_its_columns_is_answered_when_a_later_gate_fails(asked, world):
    a = asked()
    with pause(world, "3") as paused:
        batch = parse("", SQL) + bind("", "", ["2"]) + execute() + bind("", "s", ["3"]) + execute() + sync()
        a.client.send(batch)
        paused.wait()
        paused.change_routing()
        paused.end()
        answer = a.client.ready()
    assert answer.codes == ["40001"] and answer.rows == documents(world, "2")
    assert a.client.ask(bind("", "s", ["3"]) + execute() + sync()).rows == documents(world, "3")


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_batch_that_waits_for_its_columns_is_answered_when_the_pause_lasts(asked, world, in_transaction):
    a = asked()
    if in_transaction:
        a.client.ask(query("begin"))
    with pause(world, "2"), takes(4, 13):
        answer = a.client.ask(bind("", "s", ["2"]) + execute() + sync())
    assert answer.codes == ["55P03"] and answer.status == ("E" if in_transaction else "I")
    a.client.ask(query("rollback"))
    assert a.client.ask(bind("", "s", ["2"]) + execute() + sync()).rows == documents(world, "2")


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("is_held", [False, True])
def test_after_reconnect_batches_are_read_as_before(proxy, world, mode, is_held):
    """What servers say at their login is not known again before the next login."""
    p = proxy(default_pool_size=3, pool_mode=mode)
    c, holder = p.connect(), p.connect()
    for client in (c, holder):
        client.ask(query(SQL.replace("$1", "2")))
    if is_held:
        holder.ask(query("begin"))
    p.admin("reconnect")
    assert c.ask(query(SQL.replace("$1", "2"))).rows == documents(world, "2")
    assert holder.ask(query(SQL.replace("$1", "3"))).rows == documents(world, "3")
    assert "not-understood" not in counts(p)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("form", ["simple", "extended"])
def test_a_cancel_reaches_the_gate_of_a_direct_read(proxy, world, size, form):
    p = proxy(default_pool_size=size)
    c = p.connect()
    batch = query(SQL.replace("$1", "2")) if form == "simple" else extended(SQL, ["2"])
    c.ask(batch)
    with pause(world, "2") as paused, takes(0, 3):
        c.send(batch)
        paused.wait()
        with p.raw() as canceller:
            canceller.send(cancel_request(c.key))
        assert c.ready().codes == ["57014"]
    assert c.ask(batch).rows == documents(world, "2")


# ------------------------------------------------------------------ organizations that are away


def test_an_organization_that_is_away_is_in_the_log_once_a_second(proxy, world):
    p = proxy(server_login_retry=60)
    c = p.connect()
    world.cluster.sql("alter role customers_app password 'another'")
    try:
        begin = time.monotonic()
        for _ in range(60):
            assert c.ask(query(SQL.replace("$1", "2"))).rows == documents(world, "2")
        spent = time.monotonic() - begin
    finally:
        world.cluster.sql("alter role customers_app password 'app-pw'")
    lines = re.findall("WARNING C-.* organization 2: .*password authentication failed", p.log())
    assert 1 <= len(lines) <= spent + 1


def test_no_statement_waits_for_the_next_attempt_to_log_in(proxy, world):
    """Nor one that began to wait while an old connection was there still."""
    p = proxy(server_login_retry=15)
    c = p.connect()
    c.ask(query(SQL.replace("$1", "2")))
    world.cluster.sql("alter role customers_app password 'another'")
    try:
        p.admin("reconnect")
        with takes(0, 8):
            for _ in range(5):
                assert c.ask(query(SQL.replace("$1", "2"))).rows == documents(world, "2")
    finally:
        world.cluster.sql("alter role customers_app password 'app-pw'")


def test_a_silent_host_of_an_organization_is_not_waited_for_without_end(proxy, world, on_fdw):
    where = "select option_value from pg_foreign_server, pg_options_to_table(srvoptions) where srvname = 'lokadb_o2' and option_name = 'port'"
    port = world.sql(where).value
    c = proxy().connect()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, says nothing
        try:
            world.sql("alter server lokadb_o2 options (set port '%d')" % silent.getsockname()[1])
            with takes(5, 14):
                assert c.ask(query(SQL.replace("$1", "2"))).codes == ["08001"]
        finally:
            world.sql("alter server lokadb_o2 options (set port '%s')" % port)
    assert c.ask(query(SQL.replace("$1", "2"))).rows == documents(world, "2")


def change_the_catalog(proxy, world):
    """The proxy has taken it in when this returns."""
    profile = lambda: proxy.show("lokadb_orgs", organization="3")[0]["profile"]
    new = "fdw" if profile() != "fdw" else "fdw+direct"
    world.run("org-profile", "-db", world.dsn(world.cloud), "-org", "3", new)
    eventually(lambda: profile() == new, 10, "the feed has told it")


def test_a_copy_in_a_transaction_goes_on_as_before_the_change(proxy, world, on_fdw):
    p = proxy(default_pool_size=1)
    c = p.connect()
    c.query("begin")
    change_the_catalog(p, world)
    c.send(query("copy documents (organization_id, title) from stdin"))
    assert c.read_until("G").codes == []
    c.send(copy_data(b"1\tcopied\n2\tcopied\n") + copy_done())
    assert c.ready().tags == ["COPY 2"]
    assert c.query("select organization_id from documents where title = 'copied' order by 1").rows == [("1",), ("2",)]
    c.query("rollback")


def test_names_in_a_transaction_mean_the_same_after_the_change(proxy, world, on_fdw):
    """By the search_path of the role, which cannot be asked in a transaction."""
    world.sql("create schema hidden; create table hidden.documents (id bigint primary key, organization_id bigint, title text)")
    world.sql("grant usage on schema hidden to app; grant all on hidden.documents to app")
    world.sql("alter role app set search_path = hidden, public")
    upsert = "insert into documents values (1, 2, 'here') on conflict (id) do update set title = 'again' returning title"
    try:
        p = proxy(default_pool_size=1)
        c = p.connect()
        c.query("begin")
        change_the_catalog(p, world)
        for batch, title in ((query(upsert), "here"), (extended(upsert), "again")):
            answer = c.ask(batch)
            assert (answer.codes, answer.rows) == ([], [(title,)])
        c.query("rollback")
    finally:
        world.sql("alter role app reset search_path; drop schema hidden cascade")
