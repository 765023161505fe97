"""What the router does to statements that go to the cloud: the gate and the tenant in front of them, other words."""

import itertools
import time

import psycopg
import pytest

import harness
import wire
from lokadb_world import APPLICATION, TABLES, World
from test_router import documents
from wire import bind, close, copy_data, copy_done, describe, execute, extended, flush, function_call, parse, query, sync

AT_HOME, DIRECT, FDW, HOME_TOO = "1", "2", "3", "4"
NOBODY = "-9223372036854775808"


@pytest.fixture(scope="module")
def world(cluster_of_session):
    w = World(cluster_of_session)
    w.set_up(APPLICATION % 200, *TABLES)
    cluster_of_session.sql("do $$begin create role router login; exception when duplicate_object then null; end$$")
    w.run("init", "-db", w.dsn(w.cloud), "-control-user", "router")
    w.move(DIRECT)
    w.move(FDW)
    w.run("org-profile", "-db", w.dsn(w.cloud), "-org", FDW, *w.control_flags(), "fdw")
    w.cluster.sql("create view opened as select server_name from postgres_fdw_get_connections()", w.cloud)
    w.cluster.sql("grant select on opened to app", w.cloud)
    yield w
    w.drop()


@pytest.fixture
def proxy(start, world):
    def make(**options):
        sections = {
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router"},
            "customers_app": {"user": "customers_app", "password": "app-pw"},
        }
        made = start(
            databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (world.cluster.port, world.cloud)},
            plugins="refs, router",
            sections=sections,
            **{"pool_mode": "transaction", "default_pool_size": 1, **options}
        )
        made.wait_log("feed of router from app: up to date")
        return made

    return make


numbers = itertools.count()


def forms(sql, params=()):
    """The statement in each form of the protocol; without parameters of its own also as a simple Query."""
    name = "s%d" % next(numbers)
    yield extended(sql, params)
    yield extended(sql, params, name=name)
    yield bind("", name, params) + describe("P", "") + execute() + sync()
    if not params:
        yield query(sql)
        yield query("select 1; " + sql)


def rows(client, sql):
    return client.ask(query(sql)).rows


def key_of(world, org, number=0):
    return documents(world, org)[number][0]


TENANT = "select current_setting('lokadb.tenant', true), title from documents where "


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_the_tenant_is_set_for_whoever_the_statement_is_about(proxy, world, mode):
    client = proxy(pool_mode=mode).connect()
    for org in (AT_HOME, FDW, HOME_TOO):
        key, title = documents(world, org)[0]
        for by in ("id = %s" % key, "organization_id = %s and title = '%s'" % (org, title)):
            for batch in forms(TENANT + by):
                assert client.ask(batch).rows[-1] == (org, title)
        for by in ("id = $1", "id = $1 and organization_id = " + org):
            for batch in forms(TENANT + by, [key]):
                assert client.ask(batch).rows == [(org, title)]
    for batch in forms("select count(*), min(current_setting('lokadb.tenant', true)) from documents"):
        assert client.ask(batch).rows[-1] == ("200", "")


def test_a_key_that_nobody_has_concerns_nobody(proxy, world):
    client = proxy().connect()
    for batch in forms("update documents set title = current_setting('lokadb.tenant') where id = 987654 returning id"):
        assert client.ask(batch).rows[-1:] in ([], [("1",)])
    assert rows(client, "select * from opened") == []


def test_what_is_in_force_ends_with_the_transaction(proxy, world):
    client = proxy().connect()
    key, title = documents(world, FDW)[0]
    assert rows(client, "begin; " + TENANT + "id = %s; commit" % key) == [(FDW, title)]
    assert client.value("select coalesce(nullif(current_setting('lokadb.tenant', true), ''), '-')") == "-"
    client.query("begin")
    for org in (AT_HOME, FDW, HOME_TOO, FDW):
        key, title = documents(world, org)[1]
        assert rows(client, TENANT + "id = %s" % key) == [(org, title)]
        client.query("savepoint a")
        assert rows(client, TENANT + "id = %s" % key_of(world, AT_HOME))[0][0] == AT_HOME
        client.query("rollback to a")
        assert rows(client, TENANT + "organization_id = %s and id = %s" % (org, key)) == [(org, title)]
    client.query("commit")
    assert client.value("select coalesce(nullif(current_setting('lokadb.tenant', true), ''), '-')") == "-"


def test_no_other_organization_is_dialled(proxy, world):
    client = proxy().connect()
    for org in (AT_HOME, HOME_TOO, FDW, AT_HOME):
        key, title = documents(world, org)[2]
        for sql, params in (
            ("update documents set title = title where id = %s" % key, []),
            ("update documents set title = title where id = $1", [key]),
            ("delete from documents where id = $1 and title = 'no such'", [key]),
            ("update documents d set title = d.title from documents e where d.id = $1 and e.id = $2", [key, key]),
            ("select a.title from documents a join documents b on a.id = b.id where a.id = $1", [key]),
        ):
            for batch in forms(sql, params):
                answer = client.ask(batch)
                assert answer.errors == []
                opened = {row[0] for row in rows(client, "select * from opened")}
                assert opened <= {"lokadb_o" + FDW}, (org, sql)
                assert (org == FDW) <= bool(opened)
    world.cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s' and usename = 'app'" % world.cloud)


def test_the_plan_has_the_part_of_one_organization_only(proxy, world):
    client = proxy().connect()
    for org in (AT_HOME, FDW, HOME_TOO, FDW, AT_HOME):
        key, title = documents(world, org)[2]
        client.query("begin")  # EXPLAIN itself is not put into other words
        plan = client.ask(extended("select title from documents where id = $1", [key]))
        assert rows(client, "show plan_cache_mode") == [("force_custom_plan",)]
        assert plan.rows == [(title,)]
        text = "\n".join(r[0] for r in rows(client, "explain select title from documents where id = %s and organization_id = %s" % (key, org)))
        client.query("commit")
        assert ("Foreign Scan" in text) == (org == FDW), text


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_conflicts_and_groups_of_an_organization_at_home(proxy, world, mode):
    client = proxy(pool_mode=mode).connect()
    key, title = documents(world, AT_HOME)[3]
    upsert = "insert into documents (id, organization_id, title) values (%s, %s, 'new') on conflict (id) do update set title = excluded.title || '!' returning title"
    for batch in forms(upsert % (key, AT_HOME)):
        assert client.ask(batch).rows[-1] == ("new!",)
    for batch in forms(upsert % ("$1", "$2"), [key, AT_HOME]):
        assert client.ask(batch).rows == [("new!",)]
    client.query("begin")
    assert client.ask(query(upsert % (key, AT_HOME))).rows == [("new!",)]
    client.query("rollback")
    client.query("update documents set title = '%s' where id = %s" % (title, key))
    grouped = "select id, title, count(*) from documents where organization_id = %s group by id order by id"
    for batch in forms(grouped % AT_HOME):
        answer = client.ask(batch)
        assert answer.errors == []
        assert [r[:2] for r in answer.rows if len(r) == 3] == documents(world, AT_HOME)


def test_what_an_organization_on_fdw_cannot_have_is_refused(proxy, world):
    client = proxy().connect()
    key = key_of(world, FDW)
    for sql in (
        "insert into documents (id, organization_id, title) values (%s, %s, 'new') on conflict (id) do nothing" % (key, FDW),
        "select id, title, count(*) from documents where organization_id = %s group by id" % FDW,
        "select id from documents where id = %s for update skip locked" % key,
        "select id from documents where id = %s for update nowait" % key,
    ):
        for batch in (query(sql), extended(sql), extended(sql, name="again")):
            assert client.ask(batch).codes == ["0A000"], sql
    assert rows(client, "select count(*) from documents where organization_id = " + FDW) == [("40",)]


def test_errors_are_about_the_clients_own_text(proxy, world):
    client = proxy().connect()
    plain = world.app()
    for sql in (
        "select d.titel from documents d where d.id = %s" % key_of(world, FDW),
        "select titel from documents where id = %s and title <> 'ü'" % key_of(world, FDW),
        "select 'ü', title, titel from documents where id = %s" % key_of(world, FDW),
        "select title from documents where id = %s and titel = 'ü'" % key_of(world, FDW),
        "update documents set titel = 'ü' where id = %s" % key_of(world, AT_HOME),
        "update documents set title = 'ü' where id = %s or titel" % key_of(world, AT_HOME),
        "select 1/0, title, id from documents where id = %s and title ~ '('" % key_of(world, FDW),
        "insert into documents (id, organization_id, titel) values (1, 1, 'x') on conflict (id) do nothing",
        "insert into documents (id, organization_id, title) values (1, 1, 'ü') on conflict (id) do update set title = titel",
        "select id, 'ü', titel, count(*) from documents where organization_id = %s group by id" % AT_HOME,
        "select id, count(*) from documents where organization_id = %s group by id, title having titel = 'ü'" % AT_HOME,
    ):
        (expected,) = plain.ask(query(sql)).errors
        (found,) = client.ask(query(sql)).errors
        assert (found.get("P"), found["C"], found["M"]) == (expected.get("P"), expected["C"], expected["M"]), sql
        for batch in (extended(sql), extended(sql, name="s%d" % next(numbers))):
            (found,) = client.ask(batch).errors
            assert (found.get("P"), found["C"]) == (expected.get("P"), expected["C"]), sql
        if "P" not in expected:
            continue
        (found,) = client.ask(parse("", sql) + describe("S", "") + sync()).errors
        assert (found["P"], found["C"]) == (expected["P"], expected["C"]), sql
        prepare = "prepare p as " + sql
        (found,) = client.ask(query(prepare)).errors
        assert (int(found["P"]) - len("prepare p as "), found["C"]) == (int(expected["P"]), expected["C"]), prepare
    plain.drop()


def test_a_role_with_rights_on_columns_keeps_them(proxy, world):
    world.cluster.sql("drop role if exists narrow; create role narrow login", world.cloud)
    world.cluster.sql("grant select (id, title), update (title) on documents to narrow", world.cloud)
    client = proxy(userlist={"narrow": ""}).connect(user="narrow")
    for org in (AT_HOME, FDW):
        key, title = documents(world, org)[0]
        for batch in forms("select title from documents where id = %s" % key):
            assert client.ask(batch).rows[-1] == (title,)
        assert client.ask(query("update documents set title = title where id = %s" % key)).errors == []
        assert client.fails("select organization_id from documents where id = %s" % key)["C"] == "42501"
    world.cluster.sql("revoke all on documents from narrow", world.cloud)


def test_commands_run_as_ever(proxy, world):
    client = proxy(userlist={"postgres": ""}).connect(user="postgres")
    for sql in (
        "vacuum documents__local",
        "create index concurrently passing on documents__local (title)",
        "drop index concurrently passing",
        "begin isolation level serializable; select count(*) from documents where organization_id = 1; commit",
        "begin; set transaction isolation level repeatable read; select count(*) from documents where organization_id = 1; commit",
        "do $$ begin perform count(*) from documents; commit; end $$",
        "prepare p as select count(*) from documents where organization_id = 1",
        "set lokadb.x = '1'",
        "explain select * from documents where id = 1",
        "copy (select id from documents where organization_id = 1) to stdout",
        "listen a; unlisten a",
        "",
        "select",
    ):
        assert client.ask(query(sql)).errors == [], sql


def test_cursors_and_portals_see_their_rows_whatever_comes_between(proxy, world):
    client = proxy().connect()
    for org in (AT_HOME, FDW):
        expected = [k for k, _ in documents(world, org)]
        other = key_of(world, HOME_TOO)
        select = "select id from documents where organization_id = %s order by id" % org
        client.query("begin")
        client.query("declare c cursor for " + select)
        client.ask(parse("p" + org, select) + bind("open", "p" + org) + sync())
        seen, seen_too = [], []
        for _ in range(len(expected)):
            seen += [r[0] for r in rows(client, "fetch 3 from c")]
            assert rows(client, "select id from documents where id = %s" % other) == [(other,)]
            assert client.ask(extended("select id from documents where id = $1", [other])).rows == [(other,)]
            seen_too += [r[0] for r in client.ask(execute("open", 3) + sync()).rows]
        client.query("commit")
        assert seen == expected
        assert seen_too == expected


def test_pipelines_of_several_organizations(proxy, world):
    client = proxy().connect()
    picked = [(org, *documents(world, org)[n]) for n in range(4) for org in (AT_HOME, FDW, HOME_TOO)]
    batch = b"".join(
        parse("", TENANT + "id = $1") + bind("", "", [key]) + describe("P") + execute() for _, key, _ in picked
    )
    assert client.ask(batch + sync()).rows == [(org, title) for org, _, title in picked]
    # A failed one ends the rest, as ever.
    broken = extended("select 1/0")[: -len(sync())]
    answer = client.ask(batch + broken + batch + sync())
    assert answer.rows == [(org, title) for org, _, title in picked] and answer.codes == ["22012"]
    assert client.ask(batch[:0] + extended(TENANT + "id = $1", [picked[0][1]])).rows == [(picked[0][0], picked[0][2])]


def test_the_unnamed_statement_stays_the_clients_own(proxy, world):
    client = proxy().connect()
    keys = [key_of(world, org, n) for n in range(3) for org in (AT_HOME, FDW)]
    client.query("begin")
    client.ask(parse("", "select id, $1::bigint from documents where id = $1") + describe("S", "") + sync())
    for key in keys:
        answer = client.ask(bind("", "", [key]) + execute() + sync())
        assert answer.rows == [(key, key)] and answer.errors == []
    described = client.ask(describe("S", "") + sync())
    assert described.kinds == "tTZ"
    client.query("commit")


def test_a_batch_that_ends_in_flush(proxy, world):
    client = proxy().connect()
    key, title = documents(world, FDW)[0]
    client.send(parse("", TENANT + "id = $1") + bind("", "", [key]) + execute() + flush())
    assert client.read_until("C").rows == [(FDW, title)]
    assert client.ask(sync()).status == "I"


def test_what_functions_leave_behind_concerns_nobody_else(proxy, world):
    world.cluster.sql(
        "create or replace function leave(t text) returns text language sql as $$ select set_config('lokadb.tenant', t, false) $$",
        world.cloud,
    )
    p = proxy()
    one, two = p.connect(), p.connect()
    for org in (FDW, AT_HOME, "99"):
        one.query("select leave('%s')" % org)
        assert rows(two, "select count(*) from documents") == [("200",)]
        for other in (AT_HOME, FDW, HOME_TOO):
            key, title = documents(world, other)[0]
            for batch in forms("select title from documents where id = %s" % key):
                assert two.ask(batch).rows[-1] == (title,)
            assert rows(two, "select count(*) from documents where organization_id = " + other) == [("40",)]


def test_a_pause_is_waited_for_and_told(proxy, world):
    p = proxy(default_pool_size=5)
    waiting, other = p.connect(timeout=30), p.connect()
    for org in (AT_HOME, FDW):
        key, title = documents(world, org)[0]
        pauser = world.start("pause", "-db", world.dsn(world.cloud), "-org", org, "-for", "3s")
        try:
            harness.eventually(
                lambda: world.cluster.sql(
                    "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted", world.cloud
                ).value
                == "1"
            )
            begun = time.monotonic()
            waiting.send(query("update documents set title = title where id = %s returning title" % key))
            assert rows(other, "select title from documents where id = %s" % key_of(world, HOME_TOO))
            assert other.ask(query("update documents set title = title where organization_id = %s" % HOME_TOO)).errors == []
            assert time.monotonic() - begun < 2.5
            assert waiting.ready().rows == [(title,)]
        finally:
            pauser.wait(20)


def test_a_change_of_the_routing_is_seen_at_once_and_not_noticed(proxy, world):
    p = proxy(default_pool_size=3)
    client, in_transaction = p.connect(timeout=60), p.connect(timeout=60)
    key, title = documents(world, HOME_TOO)[0]
    assert rows(client, "select title from documents where id = %s" % key) == [(title,)]
    in_transaction.query("begin")
    rows(in_transaction, "select title from documents where id = %s" % key_of(world, AT_HOME))
    router = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'router' and datname = '%s'" % world.cloud
    change = ["org-profile", "-db", world.dsn(world.cloud), "-org", FDW, *world.control_flags()]
    key, title = documents(world, FDW)[0]
    for profile in ("fdw+direct", "fdw", "fdw+direct", "fdw"):
        world.cluster.sql(router, "postgres")
        world.run(*change, profile)
        for batch in forms("select title from documents where id = %s" % key):
            assert client.ask(batch).rows[-1] == (title,)
        assert client.ask(query("update documents set title = title where id = %s" % key)).errors == []
    in_transaction.query("rollback")


def test_a_key_that_is_gone_is_noticed_at_once(proxy, world):
    """What is remembered of a row is true no more once the row has been deleted."""
    client = proxy().connect()
    read = "select title from documents where id = 987001"
    for again in ("in a transaction", "alone"):
        client.query("insert into documents (id, organization_id, title) values (987001, 1, 'x')")
        assert client.query(read).rows == [("x",)]
        client.query("delete from documents where organization_id = 1 and id = 987001")
        if again == "in a transaction":
            client.query("begin")
            assert client.ask(query(read)).codes == ["40001"]
            client.query("rollback; begin")
            assert client.query(read).rows == []
            client.query("commit")
        began = time.monotonic()
        assert client.query(read).rows == []
        assert time.monotonic() - began < 2


def test_a_transaction_knows_what_it_has_deleted_itself(proxy, world):
    client = proxy().connect()
    read = "select title from documents where id = 987002"
    insert = "insert into documents (id, organization_id, title) values (987002, 1, 'x')"
    client.query(insert)
    for _ in range(2):
        assert client.query(read).rows == [("x",)]
        client.query("begin")
        assert client.query("Delete from documents where id = 987002").tags == ["DELETE 1"]
        assert client.query(read).rows == []
        assert client.query("update documents set title = 'y' where id = 987002").tags == ["UPDATE 0"]
        client.query("savepoint a")
        client.query(insert)
        assert client.query(read).rows == [("x",)]
        client.query("rollback to a")
        assert client.query(read).rows == []
        client.query("rollback")
    client.query("delete from documents where id = 987002")


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_what_the_root_does_not_take_is_prepared_and_described(proxy, world, mode):
    client = proxy(pool_mode=mode).connect()
    grouped = "select id, title, count(*) from documents where organization_id = $1 group by id order by id"
    upsert = "insert into documents (id, organization_id, title) values ($1, $2, 'x') on conflict (id) do nothing"
    for name in ("one", ""):
        for sql in (grouped, upsert):
            answer = client.ask((close("S", name) if name else b"") + parse(name, sql) + describe("S", name) + sync())
            assert answer.errors == [] and "t" in answer.kinds
            answer = client.ask(describe("S", name) + sync())
            assert answer.errors == [] and answer.kinds[0] == "t"
            params = [AT_HOME] if sql == grouped else [key_of(world, AT_HOME), AT_HOME]
            answer = client.ask(bind("", name, params) + describe("P", "") + execute() + sync())
            assert answer.errors == []
            if sql == grouped:
                assert [r[:2] for r in answer.rows] == documents(world, AT_HOME)
            params = [FDW] if sql == grouped else [key_of(world, FDW), FDW]
            assert client.ask(bind("", name, params) + execute() + sync()).codes == ["0A000"]
    client.query("begin")
    assert client.ask(bind("", "one", [key_of(world, AT_HOME), AT_HOME]) + execute() + sync()).tags == ["INSERT 0 0"]
    client.query("commit")


COPIED = [
    "copy documents (id, organization_id, title) from stdin",
    "COPY public.documents(organization_id, id, title) FROM STDIN WITH (FORMAT csv, HEADER);",
    "copy documents from stdin -- all columns",
]


@pytest.mark.parametrize("number", range(len(COPIED)))
@pytest.mark.parametrize("org", [AT_HOME, FDW])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_copy_into_a_table_under_row_security(proxy, world, number, org, in_transaction):
    client = proxy().connect()
    sql, first = COPIED[number], 100000 + 1000 * number
    keys = range(first, first + 5)
    lines = ["id,org,title"] if "csv" in sql else []
    for key in keys:
        lines.append("%s,%d,new" % (org, key) if "csv" in sql else "%d\t%s\tnew" % (key, org))
    before = documents(world, org)
    if in_transaction:
        client.query("begin")
        client.query("select count(*) from documents where organization_id = " + org)
    for data, tags, codes in (
        ("\n".join(lines) + "\n", ["COPY 5"], []),
        ("\n".join(lines) + "\nbroken\n", [], ["22P04" if "csv" in sql else "22P02"]),
    ):
        if not tags and in_transaction:
            client.query("savepoint a")
        client.send(query(sql))
        assert client.read_until("G").codes == []
        client.send(copy_data(data.encode()) + copy_done())
        answer = client.ready()
        assert (answer.tags, bool(answer.codes)) == (tags, bool(codes))
        if not tags and in_transaction:
            client.query("rollback to a")
        elif tags and not in_transaction:
            assert client.query("delete from documents where id >= %d" % first).errors == []
    if in_transaction:
        assert client.query("delete from documents where id >= %d" % first).errors == []
        client.query("commit")
    assert documents(world, org) == before
    assert client.ask(query("select 1")).rows == [("1",)]


def test_a_server_lost_during_a_commit_is_told_as_unknown(proxy, world):
    p = proxy(default_pool_size=4)
    slow = "create or replace function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(20); return null; end $$"
    world.cluster.sql(slow, world.cloud)
    world.cluster.sql("create table if not exists deferred (a int); grant all on deferred to app", world.cloud)
    world.cluster.sql(
        "drop trigger if exists slow on deferred; create constraint trigger slow after insert on deferred deferrable initially deferred"
        " for each row execute function slow()",
        world.cloud,
    )
    kill = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and datname = '%s'" % world.cloud

    def lost(*before, last):
        client = p.connect(timeout=30)
        for sql in before:
            assert client.query(sql).errors == []
        client.send(query(last))
        harness.eventually(lambda: world.cluster.sql(kill, "postgres").rows == [("t",)])
        return client.read_to_end().codes[-1]

    assert lost("begin", "insert into deferred values (1)", last="commit") == "40003"
    assert lost(last="insert into deferred values (1)") == "40003"
    world.cluster.sql("create or replace function writes() returns int language sql as 'insert into deferred values (1) returning a'", world.cloud)
    assert lost(last="select writes(), count(*) from documents where organization_id = 1") == "40003"
    assert lost(last="select writes(), id from documents where organization_id = 2 limit 1") == "40003"
    assert lost("begin", last="select pg_sleep(20)") != "40003"

    def lost_by(kill, message):
        client = p.connect(timeout=30)
        client.send(message)
        harness.eventually(lambda: ("t",) in world.cluster.sql(kill, "postgres").rows, 15)
        return client.read_to_end().codes[-1]

    function = world.cluster.sql("select 'writes()'::regprocedure::oid", world.cloud).value
    assert lost_by(kill, function_call(int(function))) == "40003"
    reads = "select count(*) from documents, generate_series(1, 100000000) where organization_id = 1"
    kill = "select pg_terminate_backend(pid) from pg_stat_activity where query like '%(1, 100000000)%' and pid <> pg_backend_pid()"
    assert lost_by(kill, query(reads)) != "40003"


def test_a_server_lost_during_the_commit_of_open_batches(proxy, world):
    """Those that end in Flush are committed by a later Sync; and one that is not read may have COMMIT in it."""
    p = proxy(default_pool_size=4)
    world.cluster.sql(
        "create or replace function wait_long() returns trigger language plpgsql as $$ begin perform pg_sleep(20); return null; end $$;"
        "create table if not exists opened_batches (a int); grant all on opened_batches to app; drop trigger if exists w on opened_batches;"
        "create constraint trigger w after insert on opened_batches deferrable initially deferred for each row execute function wait_long()",
        world.cloud,
    )
    kill = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s' and usename = 'app' and state = 'active'"
        " and (wait_event = 'PgSleep' or query like '%%(1, 100000000)%%')" % world.cloud
    )
    one = lambda sql: parse("", sql) + bind("", "") + execute()
    write, read = one("insert into opened_batches values (1)"), one("select 1")

    def lost(*opened, last):
        client = p.connect(timeout=30)
        for batch in opened:
            client.send(batch + flush())
            assert client.read_until("C").codes == []
        client.send(last)
        harness.eventually(lambda: world.cluster.sql(kill, "postgres").rows == [("t",)])
        return client.read_to_end().codes[-1]

    long = one("select count(*) from generate_series(1, 100000000)")
    assert lost(write, last=sync()) == "40003"
    assert lost(read, write, last=sync()) == "40003"
    assert lost(write, read, last=sync()) == "40003"
    assert lost(read, last=write + sync()) == "40003"
    assert lost(one("begin"), write, last=long + sync()) != "40003"
    assert lost(one("begin"), write, one("rollback"), last=long + sync()) != "40003"
    assert lost(one("begin"), write, last=one("commit") + sync()) == "40003"
    assert lost(read, last=long + sync()) != "40003"
    large = "/* %s */" % ("x" * 3000000)
    client = p.connect(timeout=30)
    client.query("begin")
    client.query("insert into opened_batches values (1)")
    client.send(query(large + "commit"))
    harness.eventually(lambda: world.cluster.sql(kill, "postgres").rows == [("t",)])
    assert client.read_to_end().codes[-1] == "40003"


def test_no_cancel_is_passed_on_once_commit_was_sent(proxy, world):
    p = proxy(default_pool_size=4)
    world.cluster.sql(
        "create or replace function wait_a_second() returns trigger language plpgsql as $$ begin perform pg_sleep(1.5); return null; end $$;"
        "create table if not exists waits (a int); grant all on waits to app; drop trigger if exists w on waits;"
        "create constraint trigger w after insert on waits deferrable initially deferred for each row execute function wait_a_second()",
        world.cloud,
    )
    client = p.connect(timeout=30)
    client.query("begin")
    client.query("insert into waits values (1)")
    client.send(query("commit"))
    harness.eventually(lambda: world.cluster.sql("select count(*) from pg_stat_activity where wait_event = 'PgSleep'", "postgres").value == "1")
    client.cancel()
    assert client.ready().tags == ["COMMIT"]
    p.wait_log("COMMIT is under way")
    client.send(query("select pg_sleep(20)"))
    harness.eventually(lambda: world.cluster.sql("select count(*) from pg_stat_activity where wait_event = 'PgSleep'", "postgres").value == "1")
    client.cancel()
    assert client.ready().codes == ["57014"]


def test_writes_of_no_one_in_particular_wait_for_a_move(proxy, world):
    client = proxy(default_pool_size=3).connect()
    client.query("begin")
    assert client.query("update documents set title = title where title = 'no such'").errors == []
    held = "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and ((classid::bigint << 32) | objid::bigint) = lokadb.pause_key('*')"
    assert world.cluster.sql(held, world.cloud).value == "1"
    client.query("commit")
    assert world.cluster.sql(held, world.cloud).value == "0"


def test_who_waits_for_the_end_of_a_pause_holds_no_lock_on_tables(proxy, world):
    """Which a move wants for itself: the client would have a deadlock."""
    p = proxy(default_pool_size=3)
    insert = "insert into documents (organization_id, title) values ($1, 'waits')"
    one = lambda sql, *values: parse("", sql) + bind("", "", values) + describe("P") + execute()
    locks = (
        "select count(*) from pg_locks l where l.relation = 'documents'::regclass and exists"
        " (select 1 from pg_locks w where w.pid = l.pid and w.locktype = 'advisory' and not w.granted)"
    )
    waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    for before in (one("begin"), one("begin") + one("select 1")):
        world.sql("select pg_advisory_lock(lokadb.pause_key('%s'))" % HOME_TOO)
        client = p.connect()
        try:
            client.send(before + one(insert, HOME_TOO) + sync())
            harness.eventually(lambda: world.sql(waits).value == "1")
            assert world.sql(locks).value == "0"
        finally:
            world.sql("select pg_advisory_unlock_all()")
        assert client.ready().tags[-1] == "INSERT 0 1"
        client.query("rollback")


LONG = "select pg_sleep(3), count(*) from documents where organization_id = %s"


@pytest.mark.parametrize("batch", [query(LONG % AT_HOME), extended(LONG % "$1", [AT_HOME]), extended(LONG % "$1", [FDW])])
def test_statements_of_one_organization_run_side_by_side(proxy, world, batch):
    """A place at the gate, of which there are few, is given back before the statement behind it has ended."""
    p = proxy(default_pool_size=4)
    clients = [p.connect() for _ in range(4)]
    asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and usename = 'app'"
    with harness.takes(3, 5):
        for n, client in enumerate(clients, 1):
            client.send(batch)
            harness.eventually(lambda: world.sql(asleep).value == str(n), 2, "%d run" % n)
            time.sleep(0.1)
        for client in clients:
            assert client.ready().tags == ["SELECT 1"]


def test_a_gate_stands_behind_what_runs_for_another_organization(proxy, world):
    """Though the next statement is parsed in front of that."""
    client = proxy().connect()
    count = "select count(*), min(organization_id) from documents where organization_id = $1"
    first, second = parse("", count) + bind("one", "", [AT_HOME]), parse("", count)
    rest = execute("one") + bind("two", "", [HOME_TOO]) + execute("two")
    answer = client.ask(parse("", "begin") + bind("", "") + execute() + first + second + rest + sync())
    assert [row[1] for row in answer.rows] == [AT_HOME, HOME_TOO], answer
    client.query("rollback")


def test_a_change_of_the_routing_undoes_an_open_batch_aloud(proxy, world):
    client = proxy(default_pool_size=3).connect(timeout=60)
    key, title = documents(world, FDW)[0]
    assert rows(client, "select title from documents where id = %s" % key) == [(title,)]
    world.cluster.sql("create table if not exists flushed (a int); grant all on flushed to app", world.cloud)
    client.send(parse("", "insert into flushed values (1)") + bind("", "") + execute() + flush())
    assert client.read_until("C").tags == ["INSERT 0 1"]
    router = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'router' and datname = '%s'" % world.cloud
    change = ["org-profile", "-db", world.dsn(world.cloud), "-org", FDW, *world.control_flags()]
    try:
        world.cluster.sql(router, "postgres")
        world.run(*change, "fdw+direct")
        answer = client.ask(extended("select title from documents where id = $1", [key]))
        assert answer.codes == ["40001"] and answer.rows == []
        assert rows(client, "select count(*) from flushed") == [("0",)]
        assert rows(client, "select title from documents where id = %s" % key) == [(title,)]
    finally:
        world.run(*change, "fdw")


def test_a_role_that_was_set_has_its_own_rights(proxy, world):
    """What is known of the client's role must not be put into statements of another one."""
    world.cluster.sql("do $$begin create role clerk; exception when duplicate_object then null; end$$")
    world.sql("grant clerk to app; grant select (id, organization_id), update (title) on documents to clerk")
    key, _ = documents(world, AT_HOME)[0]
    for mode in ("transaction", "session"):
        client = proxy(pool_mode=mode).connect()
        client.query("select id from documents where id = " + key)
        client.query("begin; set local role clerk")
        assert rows(client, "select id from documents where id = " + key) == [(key,)]
        assert client.ask(extended("update documents set title = 'c' where id = $1", [key])).tags == ["UPDATE 1"]
        assert client.ask(query("select title from documents where id = " + key)).codes == ["42501"]
        client.query("rollback")
        client.send(parse("", "begin") + bind("", "") + execute() + parse("", "set local role clerk") + bind("", ""))
        client.send(execute() + extended("select id from documents where id = $1", [key]))
        assert client.ready().rows == [(key,)]
        client.query("rollback")


def test_a_lock_is_had_before_a_snapshot_is_taken(proxy, world):
    client, other = proxy().connect(user="postgres"), world.cluster.connect(user="postgres", database=world.cloud)
    client.query("begin")
    client.query("lock table documents in share mode")
    client.query("set transaction isolation level serializable")
    client.query("rollback")
    other.query("begin; lock table documents in exclusive mode; insert into audit (id) values (-5)")
    client.query("begin isolation level repeatable read")
    client.send(query("lock table documents in share mode"))
    assert client.is_silent()
    other.query("commit")
    assert client.ready().tags == ["LOCK TABLE"]
    assert client.value("select count(*) from audit where id = -5") == "1"
    client.query("rollback")
    other.query("delete from audit where id = -5")


def test_too_many_values_are_told_as_ever(proxy, world):
    client = proxy().connect()
    for name in ("", "two"):
        answer = client.ask(extended("select id from documents where id = $1", [key_of(world, AT_HOME), "2"], name=name))
        assert answer.codes == ["08P01"] and "supplies 2 parameters" in answer.errors[0]["M"]


def test_errors_of_a_copy_are_about_the_clients_own_text(proxy, world):
    client = proxy().connect()
    fault = client.fails("copy documents from stdin with (format nope)")
    assert fault["P"] == "33"


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_where_all_are_at_home_keys_still_tell_who_has_a_local_part(cluster_of_session, start, mode):
    home = World(cluster_of_session)
    home.set_up(APPLICATION % 50, *TABLES)
    home.run("init", "-db", home.dsn(home.cloud), "-control-user", "router")
    p = start(
        databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (home.cluster.port, home.cloud)},
        plugins="refs, router",
        sections={
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router"},
        },
        pool_mode=mode,
    )
    p.wait_log("feed of router from app: up to date")
    client = p.connect()
    ((key, title), *_) = documents(home, "1")
    for batch in forms("select id, title, count(*) from documents where id = %s group by id" % key):
        assert client.ask(batch).rows[-1] == (key, title, "1")
    client.query("begin; select from documents where id = %s" % key)
    assert rows(client, "show plan_cache_mode") == [("auto",)]
    client.query("commit")
    ((conversation,), *_) = home.sql("select id from conversations where organization_id = 1").rows
    upsert = "insert into messages (id, conversation_id) values (1, '%s') on conflict (id) do nothing" % conversation
    assert client.ask(query(upsert)).tags == ["INSERT 0 0"]
    client.drop()
    p.stop()
    home.drop()


def test_copy_in_session_pooling(proxy, world):
    client = proxy(pool_mode="session").connect()
    client.send(query("copy documents (id, organization_id, title) from stdin"))
    assert client.read().kind == "G"
    client.send(copy_data(b"90001\t1\tcopied\n") + copy_done())
    assert client.ready().tags == ["COPY 1"]
    assert client.ask(query("delete from documents where id = 90001")).tags == ["DELETE 1"]
    assert rows(client, "select title from documents where id = " + key_of(world, AT_HOME)) != []
    assert rows(client, "select * from opened") == []


HOME_ONLY = "insert into documents (id, organization_id, title) values (%s, 1, 'new') on conflict (id) do nothing"


@pytest.mark.parametrize("name", ["", "a"])
def test_a_statement_in_other_words_takes_no_other_ones_place(proxy, world, name):
    """In a pipeline all of them may have the same name, or none."""
    client = proxy().connect()
    key, title = documents(world, AT_HOME)[3]
    groups = "select id, title, count(*) from documents where organization_id = 1 and id = $1 group by id"
    run = lambda sql, *values: close("S", name) + parse(name, sql) + bind("", name, values) + describe("P") + execute()
    change = "update documents set title = $1 where organization_id = 1 and id = $2"
    try:
        answer = client.ask(run(change, "changed", key) + run(HOME_ONLY % key) + run(change, "again", key) + run(groups, key) + sync())
        assert (answer.tags, answer.codes) == (["UPDATE 1", "INSERT 0 0", "UPDATE 1", "SELECT 1"], [])
        assert answer.rows == [(key, "again", "1")] and documents(world, AT_HOME)[3] == (key, "again")
        # Described, one after the other.
        described = lambda sql: close("S", name) + parse(name, sql) + describe("S", name)
        answer = client.ask(described(groups) + described("select 1 as one") + described(groups) + sync())
        assert answer.codes == [] and [len(wire.decode_columns(m.body)) for m in answer if m.kind == "T"] == [3, 1, 3]
    finally:
        client.query("update documents set title = '%s' where organization_id = 1 and id = %s" % (title, key))


def test_a_pipeline_of_a_driver_loses_nothing(proxy, world):
    p = proxy()
    key, title = documents(world, AT_HOME)[4]
    with psycopg.connect("host=127.0.0.1 port=%d user=app dbname=app" % p.port, autocommit=True) as c:
        with c.pipeline():
            change = c.execute("update documents set title = %s where organization_id = 1 and id = %s", ("piped", int(key)))
            insert = c.execute(HOME_ONLY % "%s", (int(key),))
        assert (change.statusmessage, insert.statusmessage) == ("UPDATE 1", "INSERT 0 0")
        assert documents(world, AT_HOME)[4] == (key, "piped")
        c.execute("update documents set title = %s where organization_id = 1 and id = %s", (title, int(key)))
