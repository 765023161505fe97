"""The plugins refs and router on a real cloud and organizations: what goes direct, and that it is right."""

import threading
import time

import pytest

import harness
from harness import eventually
from lokadb_world import APPLICATION, TABLES, World
from wire import bind, execute, extended, parse, query, sync

@pytest.fixture(scope="module")
def world(cluster_of_session):
    w = World(cluster_of_session)
    w.set_up(APPLICATION % 200, *TABLES)
    cluster_of_session.sql("do $$begin create role router login; exception when duplicate_object then null; end$$")
    w.run("init", "-db", w.dsn(w.cloud), "-control-user", "router")
    w.move("2")
    w.move("3")
    yield w
    w.drop()


@pytest.fixture
def proxy(start, world):
    def make(**options):
        sections = {
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router", **options.pop("router", {})},
            "customers_app": {"user": "customers_app", "password": "app-pw"},
        }
        made = start(
            databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (world.cluster.port, world.cloud)},
            pool_mode="transaction",
            plugins="refs, router",
            sections=sections,
            **options
        )
        made.wait_log("feed of router from app: up to date")
        return made

    return make


def documents(world, org):
    database = world.org_database.get(org, world.cloud)
    rows = world.cluster.sql("select id, title from documents where organization_id = %s order by id" % org, database).rows
    return rows


def test_a_read_of_a_moved_organization_goes_direct(proxy, world):
    p = proxy()
    client = p.connect()
    for org in ("1", "2", "3"):
        expected = documents(world, org)
        sql = "select id, title from documents where organization_id = %s order by id" % org
        assert client.ask(query(sql)).rows == expected
        assert client.ask(extended(sql.replace("= %s" % org, "= $1"), [org])).rows == expected
    assert [r["database"].split("#")[0] for r in p.show("pools") if r["database"].startswith("lokadb:")] == ["lokadb:2", "lokadb:3"]


def test_a_read_by_key_finds_its_organization(proxy, world):
    p = proxy()
    client = p.connect()
    for org in ("1", "2", "3"):
        for key, title in documents(world, org)[:5]:
            assert client.ask(query("select title from documents where id = %s" % key)).rows == [(title,)]
            assert client.ask(extended("select title from documents where id = $1", [key])).rows == [(title,)]
    assert client.ask(query("select title from documents where id = 987654")).rows == []
    assert {r["database"].split("#")[0] for r in p.show("pools")} >= {"lokadb:2", "lokadb:3"}


def test_the_description_names_the_tables_of_the_cloud(proxy, world):
    p = proxy()
    client = p.connect()
    key = documents(world, "2")[0][0]
    plain = world.app().ask(query("select id, title, organization_id, id + 1 from documents where id = -1"))
    direct = client.ask(query("select id, title, organization_id, id + 1 from documents where id = %s" % key))
    assert [m.body for m in direct if m.kind == "T"] == [m.body for m in plain if m.kind == "T"]


def test_a_revoke_holds_for_the_next_statement(proxy, world):
    p = proxy()
    client = p.connect()
    sql = "select title from documents where organization_id = 2 and id = %s" % documents(world, "2")[0][0]
    assert len(client.ask(query(sql)).rows) == 1
    world.sql("revoke select on documents from app")
    try:
        for batch in (query(sql), extended(sql)):
            answer = client.ask(batch)
            assert answer.codes == ["42501"] and answer.rows == []
    finally:
        world.sql("grant select on documents to app")
    assert len(client.ask(query(sql)).rows) == 1


def test_a_wrong_label_turns_direct_off(proxy, world):
    world.org_sql("2", "comment on table documents is 'lokadb: organization 3 database x'")
    try:
        p = proxy()
        client = p.connect()
        assert client.ask(query("select id, title from documents where organization_id = 2 order by id")).rows == documents(world, "2")
        p.wait_log('table documents has the label "lokadb: organization 3 database x"')
    finally:
        label = world.org_sql("2", "select obj_description('messages'::regclass)").value
        world.org_sql("2", "comment on table documents is '%s'" % label)


def test_ddl_straight_in_the_cloud_is_seen(proxy, world):
    p = proxy()
    client = p.connect()
    sql = "select count(*) from documents where organization_id = 2"
    before = client.value(sql)
    world.sql("alter table documents alter title set default 'x'")
    assert client.value(sql) == before
    assert client.ask(extended(sql)).rows == [(before,)]


def test_two_organizations_on_one_connection(proxy, world):
    p = proxy(default_pool_size=1)
    clients = [p.connect() for _ in range(4)]
    for turn in range(40):
        client, org = clients[turn % 4], str(1 + turn % 3)
        rows = client.ask(extended("select distinct organization_id from documents where organization_id = $1", [org])).rows
        assert rows == [(org,)]
        key, title = documents(world, org)[turn % 20]
        rows = client.ask(extended("select organization_id, title from documents where id = $1", [key])).rows
        assert rows == [(org, title)]


def test_a_pipeline_of_reads_of_one_organization(proxy, world):
    p = proxy()
    client = p.connect()
    keys = [k for k, _ in documents(world, "2")[:10]]
    client.send(b"".join(parse("", "select id from documents where id = $1") + bind("", "", [k]) + execute() for k in keys) + sync())
    answer = client.ready()
    assert [r[0] for r in answer.rows] == keys and answer.kinds == "12DC" * 10 + "Z"
    mixed = [documents(world, org)[0][0] for org in ("1", "2", "3")]
    client.send(b"".join(parse("", "select id from documents where id = $1") + bind("", "", [k]) + execute() for k in mixed) + sync())
    assert [r[0] for r in client.ready().rows] == mixed


def test_policy_reject(proxy, world):
    p = proxy(router={"policy": "reject"})
    client = p.connect()
    answer = client.ask(query("select title from documents"))
    assert answer.codes == ["0A000"]
    mark = answer.errors[0]["H"].split()[-1].rstrip(".")
    assert len(client.ask(query("select title from documents where organization_id = 2")).rows) == 40
    q = proxy(router={"policy": "reject", "allow": mark})
    assert len(q.connect().ask(query("select title from documents")).rows) == 200


def test_a_pause_is_waited_for(proxy, world):
    p = proxy()
    client, other = p.connect(), p.connect()
    sql = "select count(*) from documents where organization_id = %d"
    assert client.value(sql % 2) == "40"
    pauser = world.start("pause", "-db", world.dsn(world.cloud), "-org", "2", "-for", "2s")
    eventually(lambda: world.sql("select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted").value != "0")
    begun = time.monotonic()
    client.send(query(sql % 2))
    assert other.value(sql % 3) == "40"
    assert client.ready().value == "40"
    assert time.monotonic() - begun > 0.5
    pauser.wait(20)


def test_reads_while_an_organization_goes_home_and_away_again(proxy, world):
    p = proxy()
    failures, stop, served = [], threading.Event(), []
    expected = documents(world, "3")

    def work():
        client = p.connect(timeout=60)
        while not stop.is_set():
            answer = client.ask(extended("select id, title from documents where organization_id = $1 order by id", ["3"]))
            served.append(1)
            if answer.codes or answer.rows != expected:
                failures.append(answer.codes or len(answer.rows))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    try:
        world.run("move-org", "-db", world.dsn(world.cloud), "-org", "3", "-back", *world.control_flags())
        home = len(served)
        eventually(lambda: len(served) > home + 50, 20)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not [f for f in failures if f != ["55P03"]], failures[:5]
    assert p.connect().ask(query("select id, title from documents where organization_id = 3 order by id")).rows == expected
    world.org_database["3 before"] = world.org_database["3"]
    world.move("3")
    eventually(lambda: p.connect().ask(query("select id, title from documents where organization_id = 3 order by id")).rows == expected)
