"""Direct reads while organizations move, pause, or a table of the same name hides one under LokaDB."""

import signal
import time

import pytest

import wire
from harness import eventually
from routed_world import documents, proxy, world  # noqa: F401 (fixtures)
from wire import extended, query


READ = "select id, title from documents where organization_id = %s order by id"


def test_a_proxy_that_slept_through_moves_serves_nothing_from_the_first_place(proxy, world):
    p = proxy()
    clients = [p.connect(timeout=60) for _ in range(4)]
    key, before = documents(world, "3")[0]
    by_key = "select title from documents where id = %s" % key
    assert clients[0].value(by_key) == before
    clients[1].ask(extended(READ.replace("%s", "$1"), ["3"], name="s"))
    p.signal(signal.SIGSTOP)
    try:
        # Sent while it sleeps: read and decided when it wakes.
        clients[0].send(query(by_key))
        clients[1].send(wire.bind("", "s", ["3"]) + wire.execute() + wire.sync())
        first = world.org_database["3"]
        world.run("move-org", "-db", world.dsn(world.cloud), "-org", "3", "-back", *world.control_flags())
        world.sql("update documents set title = title || ' moved' where organization_id = 3")
        world.org_database["first"] = first
        world.move("3")
        assert world.org_database["3"] != first
        expected = documents(world, "3")
        assert expected[0] == (key, before + " moved")
        # What the first place has still is what must not be seen.
        left = world.cluster.sql("select count(*) from pg_tables where tablename = 'documents'", first).value
        assert left in ("0", "1")
    finally:
        p.signal(signal.SIGCONT)
    assert clients[0].ready().value == before + " moved"
    assert clients[1].ready().rows == expected
    for client in clients:
        for _ in range(5):
            assert client.value(by_key) == before + " moved"
            assert client.ask(query(READ % 3)).rows == expected
    pools = [r["database"] for r in p.show("pools") if r["database"].startswith("lokadb:3#")]
    assert pools, "reads do not go direct again"


def test_clients_of_others_do_not_notice_a_paused_organization(proxy, world):
    p = proxy(default_pool_size=8, max_client_conn=300)
    others = {org: p.connect(timeout=30) for org in ("1", "3")}
    expected = {org: documents(world, org) for org in ("1", "2", "3")}
    waiting = [p.connect(timeout=60) for _ in range(100)]
    for org, client in others.items():
        client.ask(query(READ % org))
    waiting[0].ask(query(READ % 2))
    pauser = world.start("pause", "-db", world.dsn(world.cloud), "-org", "2", "-for", "4s")
    is_paused = "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted"
    eventually(lambda: world.sql(is_paused).value != "0", 10)
    for client in waiting:
        client.send(query(READ % 2))
    longest = 0
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        for org, client in others.items():
            begin = time.monotonic()
            assert client.ask(query(READ % org)).rows == expected[org]
            longest = max(longest, time.monotonic() - begin)
    assert world.sql(is_paused).value != "0", "the pause was over too soon"
    assert longest < 1.5
    held = world.sql("select count(*) from pg_locks where locktype = 'advisory' and not granted").value
    assert int(held) <= 4, "gates of the paused organization hold more than half of the pool"
    pauser.wait(20)
    for client in waiting:
        answer = client.ready()
        assert answer.rows == expected["2"] and not answer.codes


def test_a_pause_that_lasts_too_long_is_an_error_for_all_who_wait(proxy, world):
    p = proxy(default_pool_size=2)
    waiting = [p.connect(timeout=60) for _ in range(10)]
    waiting[0].ask(query(READ % 2))
    pauser = world.start("pause", "-db", world.dsn(world.cloud), "-org", "2", "-for", "14s")
    eventually(lambda: world.sql("select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted").value != "0", 10)
    begin = time.monotonic()
    for client in waiting:
        client.send(query(READ % 2))
    for client in waiting:
        assert client.ready().codes == ["55P03"]
    assert 4 < time.monotonic() - begin < 13
    pauser.kill()
    pauser.wait(20)
    eventually(lambda: len(waiting[3].ask(query(READ % 2)).rows) == 40, 20)


# ------------------------------------------------------------------ hidden tables


def same_as_plain(proxied, plain, *batches):
    for batch in batches:
        got, expected = proxied.ask(batch), plain.ask(batch)
        assert (got.rows, got.codes, got.columns) == (expected.rows, expected.codes, expected.columns), batch
    return got


TEMPORARY = "create temp table documents as select 1::bigint as id, 2::bigint as organization_id, 'temporary'::text as title"


@pytest.mark.parametrize("options", [dict(pool_mode="session"), dict(pin_session_state=1)], ids=["session", "pinned"])
def test_a_temporary_table_hides_one_for_its_session(proxy, world, options):
    p = proxy(**options)
    client, other = p.connect(), p.connect()
    assert len(client.ask(query(READ % 2)).rows) == 40
    with world.app() as plain:
        answer = same_as_plain(client, plain, query(TEMPORARY), query(READ % 2))
        assert answer.rows == [("1", "temporary")]
        for batch in (extended(READ % 2), extended(READ.replace("%s", "$1"), ["2"]), query("select title from documents where id = 1")):
            same_as_plain(client, plain, batch)
    assert other.ask(query(READ % 2)).rows == documents(world, "2")


def test_a_temporary_table_hides_one_for_its_transaction(proxy, world):
    p = proxy()
    client = p.connect()
    with world.app() as plain:
        same_as_plain(client, plain, query("begin"), query(TEMPORARY), query(READ % 2), extended(READ % 2), query("rollback"))
        answer = same_as_plain(client, plain, query(TEMPORARY + " ; " + READ % 2))
        assert answer.rows == [("1", "temporary")]
    assert p.connect().ask(query(READ % 2)).rows == documents(world, "2")


@pytest.fixture
def roles(world):
    sql = "do $$begin create role %s login; exception when duplicate_object then null; end$$"
    for role in ("hider", "pather"):
        world.cluster.sql(sql % role)
        world.sql("grant select on documents to %s" % role)
    yield
    world.cluster.sql("alter role pather reset search_path")
    world.sql("drop schema if exists hider, shadow cascade; revoke select on documents from hider, pather")


def test_a_schema_named_like_the_role_hides_a_table(proxy, world, roles):
    p = proxy(userlist={"hider": ""})
    client, app = p.connect(user="hider"), p.connect()
    assert len(client.ask(query(READ % 2)).rows) == 40
    world.sql("create schema hider; create table hider.documents as select 5::bigint as id, 2::bigint as organization_id, 'hidden'::text as title")
    world.sql("grant usage on schema hider to hider; grant select on hider.documents to hider")
    with wire.Conn(world.cluster.port, user="hider", database=world.cloud) as plain:
        answer = same_as_plain(client, plain, query(READ % 2), extended(READ.replace("%s", "$1"), ["2"]), query(READ % 2))
        assert answer.rows == [("5", "hidden")]
        assert len(same_as_plain(client, plain, query(READ.replace("documents", "public.documents") % 2)).rows) == 40
        world.sql("drop table hider.documents")
        assert len(same_as_plain(client, plain, query(READ % 2)).rows) == 40
    assert app.ask(query(READ % 2)).rows == documents(world, "2")


def test_a_search_path_of_the_role_hides_a_table(proxy, world, roles):
    world.sql("create schema shadow; create table shadow.documents as select 6::bigint as id, 2::bigint as organization_id, 'shadow'::text as title")
    world.sql("grant usage on schema shadow to pather; grant select on shadow.documents to pather")
    world.cluster.sql("alter role pather set search_path = shadow, public")
    p = proxy(userlist={"pather": ""})
    client, app = p.connect(user="pather"), p.connect()
    with wire.Conn(world.cluster.port, user="pather", database=world.cloud) as plain:
        answer = same_as_plain(client, plain, query(READ % 2), extended(READ.replace("%s", "$1"), ["2"]))
        assert answer.rows == [("6", "shadow")]
        same_as_plain(client, plain, query("select title from documents where id = 6"), query("select title from public.documents where id = 6"))
    assert app.ask(query(READ % 2)).rows == documents(world, "2")
