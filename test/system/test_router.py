"""The plugins refs and router on a real cloud and organizations: what goes direct, and that it is right."""

import struct
import threading
import time

import pytest

import harness
import wire
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


def counts(proxy):
    """Reasons of the router and how often each was given."""
    return {r["reason"]: int(r["count"]) for r in proxy.show("lokadb_routes")}


def documents(world, org):
    database = world.org_database.get(org, world.cloud)
    rows = world.cluster.sql("select id, title from documents where organization_id = %s order by id" % org, database).rows
    return rows


def test_a_router_without_a_role_for_its_feed_says_so(start, world):
    library = {name: {"library": harness.plugin_file(name)} for name in ("refs", "router")}
    p = start(pool_mode="transaction", plugins="refs, router", sections=library)
    p.wait_log(r"WARNING plugin router: .*\[router\] has no control_user")


def test_feeds_have_nothing_to_say_on_standard_error(proxy, world):
    assert "password file" not in proxy().stderr_path.read_text()


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
    with world.app() as past:
        plain = past.ask(query("select id, title, organization_id, id + 1 from documents where id = -1"))
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


# Each with an organization {o}, keys of it {k} and {l}, and a conversation's key {c}; rows must be in order.
READS = """
select * from documents where organization_id = {o} order by id
select id, title from documents where organization_id = {o} and id > {k} order by id limit 5
select id from documents where organization_id = {o} order by title desc, id offset 3 limit 4
select count(*), min(title), max(title), sum(id) from documents where organization_id = {o}
select title from documents where id = {k}
select title, organization_id from documents where id in ({k}, {l}) order by id
select title from documents where id = {k} and organization_id = {o}
select title from documents where id = {k} and title like 'd%'
select title from documents where id = {k} or id = {l} order by id
select d.title from documents d where d.id = {k}
select d.title, e.title from documents d join documents e on e.organization_id = d.organization_id where d.id = {k} and e.id = {l}
select upper(title), length(title), title || 'x', id + 1, id % 7 from documents where id = {k}
select coalesce(title, '-'), nullif(id, 0), greatest(id, 3), case when id > 5 then 'a' else 'b' end from documents where organization_id = {o} order by id
select title, count(*) from documents where organization_id = {o} group by title order by title
select id % 3 as r, count(*), array_agg(id order by id) from documents where organization_id = {o} group by 1 order by 1
select id, row_number() over (order by id), lag(id) over (order by id) from documents where organization_id = {o} order by id
select distinct organization_id from documents where organization_id = {o}
select m.id from messages m where m.conversation_id = '{c}' order by m.id
select m.id, v.organization_id from messages m join conversations v on v.id = m.conversation_id where v.id = '{c}' order by m.id
select m.id from messages m join conversations v on v.id = m.conversation_id where v.organization_id = {o} order by m.id
select v.id, count(m.id) from conversations v left join messages m on m.conversation_id = v.id where v.organization_id = {o} group by v.id order by v.id
select v.id from conversations v where v.organization_id = {o} and exists (select 1 from messages m where m.conversation_id = v.id) order by v.id
select v.id, (select count(*) from messages m where m.conversation_id = v.id) from conversations v where v.organization_id = {o} order by v.id
select id from documents where organization_id = {o} and id in (select id from documents where organization_id = {o} and id > {k}) order by id
with x as (select * from documents where organization_id = {o}) select id from x where id >= {k} order by id
with x as (select id from documents where id = {k}) select d.id from documents d join x on x.id = d.id
select id from documents where organization_id = {o} union select id from documents where id = {k} order by 1
select id from documents where organization_id = {o} except select id from documents where id = {l} order by 1
select * from (select id, title from documents where organization_id = {o}) s where id = {k}
select id from documents where organization_id = {o} and title between 'd1' and 'd5' order by id
select id from documents where organization_id = {o} and title ilike 'D1%' order by id
select id from documents where organization_id = {o} and not (id > {k}) order by id
select id from documents where organization_id = {o} and (title is null or id = {l}) order by id
select id::text, organization_id::int from documents where organization_id = {o} order by id
select id from documents where organization_id in ({o}) order by id
select id from documents where organization_id = any(array[{o}]) order by id
select id from documents where {o} = organization_id order by id
select id from documents order by id
select count(*) from documents
select count(*) from documents where organization_id > 0
select count(*) from documents where organization_id = {o} or organization_id = 1
select count(*) from documents where organization_id <> {o}
select count(*) from documents where title = 'd7'
select d.id, o.name from documents d join organizations o on o.id = d.organization_id where d.organization_id = {o} order by d.id
select d.id from documents d left join messages m on false where d.organization_id = {o} order by d.id
select d.id from documents d left join documents e on e.organization_id = {o} and e.id = d.id order by d.id
select e.id from documents d right join documents e on d.organization_id = {o} and d.id = e.id order by e.id
select d.id, e.id from documents d full join documents e on d.id = e.id and d.organization_id = {o} order by d.id, e.id limit 7
select id from documents where id = {k} and organization_id = 1
select id from documents where organization_id = {o} and organization_id = 1
select id from documents where id = -{k}
select id from documents where id = '{k}'
select id from documents where id = {k}.0
select id from documents where organization_id = '{o}' order by id
select id from documents where organization_id = ' {o}' order by id
select tableoid::regclass::text <> '' from documents where id = {k}
select id from documents where organization_id = {o} and id = (select max(id) from documents where organization_id = {o})
select id from documents where organization_id = (select {o}) order by id
select id from documents where id = {k} limit 0
select 1
select id from messages where id = 5
select no_such from documents where organization_id = {o}
select 1 / (id - id) from documents where organization_id = {o}
select 'a' < id from documents where id = {k}
""".strip().splitlines()


def test_what_goes_direct_returns_what_the_cloud_returns(proxy, world):
    """Every read with every organization, as simple query, with parameters, and prepared under a name."""
    p = proxy()
    client, plain = p.connect(timeout=30), world.app()
    compared = 0
    for org in ("1", "2", "3"):
        database = world.org_database.get(org, world.cloud)
        keys = [k for k, _ in documents(world, org)]
        conversation = world.cluster.sql("select min(id::text) from conversations where organization_id = %s" % org, database).value
        for number, template in enumerate(READS):
            values = dict(o=org, k=keys[number % len(keys)], l=keys[(number * 7 + 3) % len(keys)], c=conversation)
            sql = template.format(**values)
            expected = plain.ask(query(sql))
            named = "s%d_%s" % (number, org)
            for batch in (query(sql), extended(sql), extended(sql, name=named)):
                answer = client.ask(batch)
                assert (answer.rows, answer.codes, answer.tags) == (expected.rows, expected.codes, expected.tags), sql
                assert answer.columns == expected.columns, sql
                assert [e["M"] for e in answer.errors] == [e["M"] for e in expected.errors], sql
                compared += 1
            for again in range(2):
                answer = client.ask(bind("", named) + execute() + sync())
                if not expected.codes:
                    assert answer.rows == expected.rows, sql
    plain.drop()
    reasons = counts(p)
    assert compared > 500
    assert reasons["tenant-known"] > 200 and reasons["key-found"] > 100


def test_parameters_of_every_form(proxy, world):
    p = proxy()
    client = p.connect()
    for org in ("1", "2", "3"):
        key, title = documents(world, org)[3]
        by_key = "select title from documents where id = $1"
        for value, types in ((key, ()), (key, (20,)), (key, (23,)), (key, (21,)), (key, (1700,))):
            assert client.ask(extended(by_key, [value], types=types)).rows == [(title,)], types
        assert client.ask(extended(by_key, [None])).rows == []
        assert client.ask(extended(by_key, ["x"])).codes == ["22P02"]
        both = "select title from documents where id = $2 and organization_id = $1"
        assert client.ask(extended(both, [org, key])).rows == [(title,)]
        assert client.ask(extended(both, [str(int(org) % 3 + 1), key])).rows == []
        many = "select count(*) from documents where id = any($1)"
        assert client.ask(extended(many, ["{%s}" % key])).rows == [("1",)]
        assert client.ask(extended(many, ["{%s,%s}" % (key, documents(world, "1")[0][0])])).rows == [("2" if org != "1" or key != documents(world, "1")[0][0] else "1",)]


def test_settings_of_roles_hold_there_too(proxy, world):
    """What ALTER ROLE or ALTER DATABASE has set in the cloud is in force in the organization."""
    world.cluster.sql("do $$begin create role berlin login; exception when duplicate_object then null; end$$")
    world.cluster.sql("alter role berlin set timezone = 'Europe/Berlin'; alter role berlin set intervalstyle = 'iso_8601'")
    world.sql("grant select on documents to berlin")
    p = proxy(userlist={"berlin": ""})
    texts = ["'2024-07-01 12:00+00'::timestamptz", "'1 day 2 hours'::interval", "1.0::float8 / 3", "'\\x6162'::bytea"]
    for user in ("app", "berlin", "app"):
        client = p.connect(user=user)
        with wire.Conn(world.cluster.port, user=user, database=world.cloud) as plain:
            for text in texts:
                sql = "select %s from documents where organization_id = 2 and id = %s" % (text, documents(world, "2")[0][0])
                assert client.ask(query(sql)).rows == plain.ask(query(sql)).rows
                assert client.ask(extended(sql)).rows == plain.ask(query(sql)).rows
            assert client.value("select count(*) from documents where organization_id = 2") == "40"
    pools = {r["database"] for r in p.show("pools") if r["database"].startswith("lokadb:2#")}
    assert len(pools) == 2


def test_a_driver_that_was_told_the_types_of_parameters_goes_direct(proxy, world):
    """As asyncpg and pgx do: Parse without types, Describe, and then values in binary."""

    def bind_binary(name, number):
        body = wire.cstr("") + wire.cstr(name) + struct.pack("!HHHiqH", 1, 1, 1, 8, number, 0)
        return wire.message("B", body) + execute() + sync()

    p = proxy()
    client, other = p.connect(), p.connect()
    key, title = documents(world, "2")[0]
    sql = "select title from documents where id = $1"
    told = client.ask(parse("s", sql) + wire.describe("S", "s") + wire.flush() + sync())
    assert told.kinds.startswith("1tT")
    for _ in range(3):
        assert client.ask(bind_binary("s", int(key))).rows == [(title,)]
    assert counts(p).get("key-found") == 3
    # Who was not told is not believed: the bytes could mean anything.
    other.ask(parse("s", sql) + sync())
    assert other.ask(bind_binary("s", int(key))).rows == [(title,)]
    # Nor is what was told about another statement of that name.
    client.ask(wire.close("S", "s") + parse("s", "select title, 1 from documents where id = $1") + sync())
    assert client.ask(bind_binary("s", int(key))).rows == [(title, "1")]
    assert counts(p).get("key-found") == 3
