"""Cooperative mode (SPEC T1-T9): the application names the organization. The plugins tenant, refs and router on a real
cloud and organizations."""

import itertools
import json
import re

import psycopg
import psycopg2
import pytest

import harness
import wire
from lokadb_world import APPLICATION, TABLES, World
from test_takeover import reboot
from wire import bind, describe, execute, extended, flush, parse, query, sync

SETTING = "lokadb.tenant"
ALL = "select id, title from documents order by id"
ORGS = ("1", "2", "3")  # at home, moved, moved


@pytest.fixture(scope="module")
def world(cluster_of_session):
    w = World(cluster_of_session)
    w.set_up(APPLICATION % 100, *TABLES)
    for role in ("router login", "reporter login in role app"):
        cluster_of_session.sql("do $$begin create role %s; exception when duplicate_object then null; end$$" % role)
    w.run("init", "-db", w.dsn(w.cloud), "-control-user", "router")
    w.move("2")
    w.move("3")
    yield w
    w.drop()


@pytest.fixture
def prepared(prepare, world):
    def make(tenant=None, router=None, **options):
        sections = {
            "tenant": {"library": harness.plugin_file("tenant"), **(tenant or {})},
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router", **(router or {})},
            "customers_app": {"user": "customers_app", "password": "app-pw"},
        }
        return prepare(
            databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (world.cluster.port, world.cloud)},
            **{
                "pool_mode": "transaction",
                "plugins": "tenant, refs, router",
                "sections": sections,
                "userlist": {"reporter": ""},
                **options,
            }
        )

    return make


@pytest.fixture
def proxy(prepared):
    def make(**settings):
        made = prepared(**settings).start()
        made.wait_log("feed of router from app: up to date")
        return made

    return make


def counts(proxy):
    return {r["reason"]: int(r["count"]) for r in proxy.show("lokadb_routes")}


def rows_of(world, org, sql=ALL):
    """What the organization's own database has; of one at home, what the cloud has of it."""
    if org in world.org_database:
        return world.org_sql(org, sql).rows
    return world.sql(sql.replace("documents", "(select * from documents where organization_id = %s) documents" % org)).rows


def changed(world):
    """Rows with the title x, past postgres_fdw (the harness's connection would keep its own ones open)."""
    sql = "select id from %s where title = 'x'"
    return world.sql(sql % "documents__local").rows + world.org_sql("2", sql % "documents").rows + world.org_sql("3", sql % "documents").rows


# ------------------------------------------------------------------ ways of naming

# Each runs `sql` under the named organization, and gives the answer of sql alone.


def explicitly(client, setting, org, sql):
    client.query("begin")
    client.query("set local %s = '%s'" % (setting, org))
    answer = client.ask(query(sql))
    client.query("rollback" if answer.codes else "commit")
    return answer


def explicitly_by_call(client, setting, org, sql):
    client.query("begin")
    assert client.ask(extended("select set_config('%s', $1, true)" % setting, [org])).rows == [(org,)]
    answer = client.ask(extended(sql))
    client.query("rollback" if answer.codes else "commit")
    return answer


def in_one_query(client, setting, org, sql):
    return client.ask(query("set local %s = '%s'; %s" % (setting, org, sql)))


def in_one_query_by_call(client, setting, org, sql):
    answer = client.ask(query("select set_config('%s', '%s', true); %s" % (setting, org, sql)))
    if not answer.kinds.startswith("TDC"):
        return answer
    assert wire.decode_row(answer[1].body) == (org,)
    return wire.Answer(answer[3:])


def in_a_transaction_of_one_query(client, setting, org, sql):
    answer = client.ask(query("begin; set local %s = '%s'; %s; commit" % (setting, org, sql)))
    if answer.codes:
        client.query("rollback")
    return answer


def in_a_pipeline(client, setting, org, sql):
    client.send(
        parse("", "select set_config('%s', $1, true)" % setting) + bind("", "", [org]) + execute()
        + parse("", sql) + bind("", "") + describe("P") + execute() + sync()
    )  # fmt: skip
    answer = client.ready()
    if "D" in answer.kinds:
        assert answer[2].kind == "D" and wire.decode_row(answer[2].body) == (org,)
    return wire.Answer(answer[4:]) if answer.kinds.startswith("12DC") else answer


def in_a_pipeline_of_named_statements(client, setting, org, sql):
    client.send(parse("n", "set local %s = '%s'" % (setting, org)) + parse("s", sql) + sync())
    assert not client.ready().codes
    client.send(bind("", "n") + execute() + bind("", "s") + describe("P") + execute() + sync())
    answer = client.ready()
    client.send(wire.close("S", "n") + wire.close("S", "s") + sync())
    client.ready()
    return answer


WAYS = [
    explicitly,
    explicitly_by_call,
    in_one_query,
    in_one_query_by_call,
    in_a_transaction_of_one_query,
    in_a_pipeline,
    in_a_pipeline_of_named_statements,
]
OUTSIDE = WAYS[2:4] + WAYS[5:]  # these can go direct so far
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
def test_statements_without_any_condition_see_the_named_organization(proxy, world, way):
    """SPEC T1, T4."""
    p = proxy()
    client = p.connect()
    for org in ORGS * 2:
        answer = way(client, SETTING, org, ALL)
        assert answer.rows == rows_of(world, org), answer
    assert not p.connect().ask(query("select current_setting('%s', true)" % SETTING)).rows[0][0]
    assert counts(p).get("organization-named", 0) == (4 if way in OUTSIDE else 0)


@pytest.mark.parametrize("way", OUTSIDE)
def test_another_setting(proxy, world, way):
    """SPEC T1: for direct reads it can be any; not asked for, lokadb.tenant is a setting like others."""
    p = proxy(tenant={"setting": "App.Current_Tenant"})
    client = p.connect()
    for org in ("2", "3", "2"):
        assert way(client, "app.current_tenant", org, ALL).rows == rows_of(world, org)
        assert way(client, "APP.current_tenant", org, ALL).rows == rows_of(world, org)
    assert counts(p)["organization-named"] == 6
    way(client, SETTING, "2", ALL)
    assert counts(p)["organization-named"] == 6


def test_no_refs_are_looked_up(proxy, world):
    """SPEC T1: by a key alone, in joins without a condition, and of relations that nothing declares."""
    p = proxy()
    client = p.connect()
    for org in ("2", "3"):
        key = rows_of(world, org)[0][0]
        for sql in (
            "select title from documents where id = %s" % key,
            "select count(*) from documents d, messages m where d.title <> m.conversation_id::text",
            "select count(*) from messages where conversation_id in (select id from conversations)",
        ):
            expected = rows_of(world, org, sql)
            assert expected and expected[0][0]
            assert in_one_query(client, SETTING, org, sql).rows == expected
            assert in_a_pipeline(client, SETTING, org, sql).rows == expected
    found = counts(p)
    assert found["organization-named"] == 12 and not found.get("key-found")
    assert not [s for s in world.cluster.log().splitlines() if "find_refs" in s and world.cloud in s]


def test_a_naming_counts_for_what_stands_behind_it(proxy, world):
    p = proxy()
    client = p.connect()
    count = "select count(*) from documents"
    client.query("set local lokadb.tenant = 2; select 1")  # WARNING of nobody; the value is gone
    assert client.value(count) == "100"
    assert client.ask(query("%s; set local lokadb.tenant = 2; %s" % (count, count))).rows == [("100",), ("20",)]
    answer = client.ask(query("set local lokadb.tenant = 2; %s; set local lokadb.tenant = 3; %s" % (ALL, ALL)))
    assert answer.rows == rows_of(world, "2") + rows_of(world, "3")
    answer = client.ask(query("set local lokadb.tenant = 2; %s; reset lokadb.tenant; %s" % (count, count)))
    assert answer.rows == [("20",), ("100",)]
    client.send(
        b"".join(
            parse("", "set local lokadb.tenant = " + org) + bind("", "") + execute() + parse("", ALL) + bind("", "") + execute()
            for org in ORGS
        )
        + sync()
    )
    assert client.ready().rows == sum((rows_of(world, org) for org in ORGS), [])
    assert client.value(count) == "100"


def test_a_batch_that_ends_in_flush(proxy, world):
    p = proxy()
    client = p.connect()
    for org in ORGS:
        client.send(parse("", "select set_config('lokadb.tenant', $1, true)") + bind("", "", [org]) + execute() + flush())
        assert [client.read().kind for _ in range(4)] == list("12DC")
        client.send(parse("", "select count(*) from documents where organization_id = 9") + bind("", "") + execute() + sync())
        assert client.ready().codes == ["42501"]
    assert client.value("select count(*) from documents") == "100"


# ------------------------------------------------------------------ cross-check


@each_way
def test_another_organization_is_refused(proxy, world, way):
    """SPEC T2."""
    p = proxy()
    client = p.connect()
    texts = [
        "select id from documents where organization_id = %s",
        "select id from documents where organization_id in (%s)",
        "select c.id from conversations c join messages m on m.conversation_id = c.id where c.organization_id = %s",
        "insert into documents (organization_id, title) values (%s, 'x')",
        "update documents set title = 'x' where organization_id = %s",
        "delete from documents where organization_id = %s",
    ]
    for named, other in (("2", "3"), ("2", "1"), ("1", "2"), ("2", "77")):
        for text in texts:
            answer = way(client, SETTING, named, text % other)
            assert answer.codes == ["42501"] and not answer.rows, (text, answer)
            assert other not in answer.errors[0]["M"] and answer.status != "T"
        assert not way(client, SETTING, named, "select id from documents where organization_id = '%s'" % named).codes
    assert not changed(world)


def test_another_organization_in_a_parameter(proxy, world):
    p = proxy()
    client = p.connect()
    client.query("begin; set local lokadb.tenant = 2")
    text = "select count(*) from documents where organization_id = $1"
    assert client.ask(extended(text, ["2"])).rows == [("20",)]
    assert client.ask(extended(text, ["3"])).codes == ["42501"]
    assert client.ask(query("select 1")).codes == ["25P02"]
    client.query("rollback")


def test_mismatch_is_logged(proxy, world):
    """SPEC T2: it runs under the named organization, through the cloud."""
    p = proxy(tenant={"mismatch": "log"})
    client = p.connect()
    for number, way in enumerate(WAYS):
        answer = way(client, SETTING, "2", "select id from documents where organization_id = 3")
        assert (answer.codes, answer.rows) == ([], []), way
        p.wait_log("WARNING plugin tenant: a statement of role app in database app names organization 3, but runs under 2", 5, number + 1)
    assert len(re.findall("but runs under", p.log())) == len(WAYS)
    assert not counts(p).get("organization-named")
    assert in_one_query(client, SETTING, "2", "select count(*) from documents where organization_id = 2").rows == [("20",)]
    assert counts(p)["organization-named"] == 1


@each_way
def test_rows_of_another_organization_are_not_found_by_key(proxy, world, way):
    """SPEC T3."""
    p = proxy()
    client = p.connect()
    for named, other in itertools.permutations(ORGS, 2):
        key = rows_of(world, other)[3][0]
        assert way(client, SETTING, named, "select id from documents where id = %s" % key).rows == []
        answer = way(client, SETTING, named, "update documents set title = 'x' where id = %s" % key)
        assert not answer.codes and "UPDATE 0" in answer.tags
    assert not changed(world)


def test_what_is_no_organization(proxy, world):
    p = proxy()
    client = p.connect()
    for value in ("x", "4.5", "99999999999999999999", " 2 ", "02"):
        for way in (in_one_query, in_a_pipeline, explicitly):
            answer = way(client, SETTING, value, ALL)
            assert answer.codes == ["22P02"] and not answer.rows, (value, answer)
    assert in_one_query(client, SETTING, "77", ALL).rows == []
    assert in_one_query(client, SETTING, "", "select count(*) from documents").rows == [("100",)]


# ------------------------------------------------------------------ scope

# SPEC T5: after each step the plugin and PostgreSQL must agree on the value. "!": the step fails.
SCRIPTS = """
begin; set local T = 2; select 1; commit
begin; set local T = 2; set local T = 3; rollback
begin; select set_config('T', '2', true); reset T; commit
begin; set local T = 2; reset all; commit
begin; set local T = 2; set local T to default; commit
begin; set local T = 2; savepoint a; set local T = 3; rollback to a; commit
begin; savepoint a; set local T = 2; rollback to a; set local T = 3; commit
begin; set local T = 2; savepoint a; set local T = 3; release a; commit
begin; set local T = 2; savepoint a; set local T = 3; savepoint b; set local T = 4; release b; rollback to a; commit
begin; set local T = 2; savepoint a; set local T = 3; savepoint a; set local T = 4; rollback to a; release a; rollback to a; commit
begin; set local T = 2; savepoint a; set local T = 3; ! select 1/0; rollback to a; commit
begin; set local T = 2; ! select 1/0; ! set local T = 3; rollback
begin; set local T = 2; savepoint a; reset T; rollback to a; commit
begin; set local T = 2; commit and chain; set local T = 3; rollback and chain; commit
begin; set local T = 2; savepoint "A"; set local T = 3; savepoint a; set local T = 4; rollback to "A"; commit
begin; set local T = 2; savepoint a; ! set local T = 3, 4; rollback to a; set local T = 5; rollback work to savepoint a; end
begin; set local T = ''; set local T = 2; set local T = ''; commit
begin; select set_config('T', '2', true), set_config('app.other', '3', true); select set_config('T', null, true); commit
set local T = 2; select 1
""".strip().splitlines()

SESSION_SCRIPTS = """
begin; set T = 2; set local T = 3; commit; begin; commit; reset T
begin; set local T = 3; set T = 2; commit; reset T
begin; set T = 2; rollback
begin; savepoint a; set T = 2; rollback to a; commit
begin; set local T = 3; savepoint a; set T = 2; release a; commit; discard all
begin; set local T = 3; set T from current; commit; reset T
begin; set T = 2; ! select 1/0; commit
begin; select set_config('T', '2', false); savepoint a; set local T = 3; rollback to a; commit; set T to default
""".strip().splitlines()


def forms(step):
    return query(step), parse("", step) + bind("", "") + execute() + sync()


@pytest.mark.parametrize("form", [0, 1], ids=["simple", "extended"])
@pytest.mark.parametrize("local_only", [True, False])
def test_scope_is_that_of_postgres(proxy, world, local_only, form):
    """In session pooling the server keeps what it was set to, so that it can be asked after each step."""
    scripts = SCRIPTS if local_only else SCRIPTS + SESSION_SCRIPTS
    p = proxy(tenant={"mismatch": "log", "local_only": "1" if local_only else "false"}, pool_mode="session")
    client, probes, native = p.connect(), itertools.count(1000), {}

    def probe(status):
        if status == "E":
            return
        value = client.ask(query("select current_setting('%s', true)" % SETTING)).rows[0][0] or ""
        # Where nobody is named, the transaction has the organization of the last statement, which was a probe.
        native[next(probes)] = "" if len(value) == 4 else value
        client.query("select id from documents where organization_id = %d" % max(native))

    for script in scripts:
        probe("I")
        for step in script.replace("T", SETTING).split("; "):
            fails, step = step.startswith("! "), step.removeprefix("! ")
            answer = client.ask(forms(step)[form])
            assert bool(answer.codes) == fails, (script, step, answer)
            probe(answer.status)
    seen = {int(k): v for k, v in re.findall(r"names organization (\d+), but runs under (\d+)", p.log())}
    assert {k: v for k, v in native.items() if v} == seen
    assert len(native) > 60


def test_scope_within_one_query(proxy, world):
    p = proxy(tenant={"mismatch": "log"})
    client = p.connect()
    for script in SCRIPTS:
        if "!" in script:
            continue
        texts, number = [], itertools.count(1000)
        for step in script.replace("T", SETTING).split("; "):
            texts += [step, "select current_setting('%s', true)" % SETTING]
            texts.append("select id from documents where organization_id = %d" % next(number))
        at = len(p.log())
        answer = client.ask(query("; ".join(texts)))
        assert not answer.codes, (script, answer)
        shown = [wire.decode_row(b.body)[0] for a, b in zip(answer, answer[1:]) if b.kind == "D" and wire.decode_columns(a.body) and wire.decode_columns(a.body)[0][0] == "current_setting"]
        native = {1000 + k: v for k, v in enumerate(shown) if v}
        seen = {int(k): v for k, v in re.findall(r"names organization (\d+), but runs under (\d+)", p.log()[at:])}
        assert seen == native, script


def test_what_was_not_seen_is_not_guessed_at(proxy, world):
    p = proxy()
    client = p.connect()
    client.query("begin; set local lokadb.tenant = 2")
    client.query("select set_config('lokadb.' || 'tenant', '3', true)")  # does not matter: 2 has been named
    assert client.ask(query("select min(organization_id), max(organization_id) from documents")).rows == [("2", "2")]
    assert client.ask(query("select count(*) from documents where organization_id = 3")).codes == ["42501"]
    client.query("rollback; begin; create temp table t on commit drop as select set_config('lokadb.tenant', '3', true)")
    assert client.ask(query("select count(*) from documents where organization_id = 3")).rows == [("20",)]
    client.query("commit; begin; set local lokadb.tenant = 2")
    assert client.ask(query("select count(*) from documents where organization_id = 3")).codes == ["42501"]
    client.query("rollback")


def test_a_portal_that_is_executed_later(proxy, world):
    p = proxy()
    client = p.connect()
    client.query("begin")
    client.send(parse("", "select set_config('lokadb.tenant', '2', true)") + bind("later", "") + sync())
    client.ready()
    assert client.ask(query("select count(*) from documents where organization_id = 3")).rows == [("20",)]
    client.send(execute("later") + sync())
    assert client.ready().rows == [("2",)]
    assert client.ask(query("select count(*) from documents")).rows == [("20",)]  # in the cloud, as the server has it
    client.query("commit")
    # Executed in another order than bound.
    client.send(
        parse("", "select count(*) from documents") + bind("b", "")
        + parse("", "select set_config('lokadb.tenant', '2', true)") + bind("a", "") + execute("a") + execute("b") + sync()
    )  # fmt: skip
    assert client.ready().rows[0] == ("2",)
    assert client.value("select count(*) from documents") == "100"


def test_an_online_restart_keeps_the_value(proxy, world):
    p = proxy(tenant={"local_only": "0"})
    amid, session, begun = p.connect(), p.connect(), p.connect(params={SETTING: "3"})
    amid.query("begin; set local lokadb.tenant = 2; savepoint a; set local lokadb.tenant = 3")
    session.query("set lokadb.tenant = 2")
    assert begun.value("select count(*) from documents") == "20"
    reboot(p)
    p.wait_log("feed of router from app: up to date", 5, 2)
    other = "select count(*) from documents where organization_id = %d"
    assert amid.value(other % 3) == "20"
    amid.query("rollback to a")
    assert amid.value(other % 2) == "20"
    assert amid.ask(query(other % 3)).codes == ["42501"]
    amid.query("rollback")
    for client, own, foreign in ((session, 2, 3), (begun, 3, 2)):
        assert client.ask(query(other % foreign)).codes == ["42501"]
        assert client.value(other % own) == "20"
    begun.query("set lokadb.tenant = 2")
    assert begun.ask(query(other % 3)).codes == ["42501"]
    begun.query("reset lokadb.tenant")
    assert begun.value(other % 3) == "20"


# ------------------------------------------------------------------ values of the session

# SPEC T6.
FOR_SESSION = [
    query("set lokadb.tenant = 2"),
    query("set session lokadb.tenant to '2'"),
    query("SET LokaDB.Tenant = 2"),
    query("select set_config('lokadb.tenant', '2', false)"),
    query("select 1, set_config('lokadb.tenant', '2', null)"),
    query("select 1; set lokadb.tenant = 2"),
    query("set local lokadb.tenant = 2; set lokadb.tenant = 2; select 1"),
    query("begin; set lokadb.tenant = 2; commit"),
    query("begin; set local lokadb.tenant = 2; set lokadb.tenant from current; commit"),
    query("/* a comment */ set lokadb.tenant = 2"),
    query("select U&\"set\\005fconfig\"('lokadb.tenant', '2', false)"),
    parse("", "set lokadb.tenant = 2") + sync(),
    parse("", "select set_config('lokadb.tenant', $1, false)") + sync(),
    extended("set session lokadb.tenant = 2"),
    extended("select set_config('lokadb.tenant', $1, false)", ["2"]),
    extended("select set_config('lokadb.tenant', $1, $2)", ["2", "f"]),
    extended("select set_config('lokadb.tenant', $1, $2)", ["2", None]),
    extended("select set_config($1, $2, $3)", ["lokadb.tenant", "2", "false"]),
    extended("select set_config('lokadb.tenant', $1, $2)", ["2", "off"], types=[25, 16]),
    extended("set lokadb.tenant = 2", name="named"),
]
NOT_PLAIN = [
    query("select set_config('lokadb.tenant', '2', true) from generate_series(1, 2)"),
    query("select id, set_config('lokadb.tenant', '3', true) from documents"),
    query("with x as (select set_config('lokadb.tenant', '2', true)) select * from x, documents"),
    query("select set_config('lokadb.tenant', (select name from organizations limit 1), true)"),
    query("prepare p as select set_config('lokadb.tenant', $1, true)"),
    query("insert into documents (organization_id, title) values (1, set_config('lokadb.tenant', '3', true))"),
    extended("select set_config('lokadb.tenant', $1::numeric::text, true)", ["2"]),
]


@pytest.mark.parametrize("number", range(len(FOR_SESSION)))
def test_a_value_of_the_session_is_refused(proxy, world, number):
    p = proxy()
    client = p.connect()
    batch = FOR_SESSION[number]
    for before in ("select 1", "begin"):
        client.query(before)
        answer = client.ask(batch)
        assert answer.codes == ["0A000"] and "can only be set for a transaction" in answer.errors[0]["M"], answer
        assert answer.status == ("I" if before != "begin" else "E")
        if before == "begin":
            client.query("rollback")
        assert not client.ask(query("select current_setting('lokadb.tenant', true)")).rows[0][0]
        assert client.value("select count(*) from documents") == "100"


@pytest.mark.parametrize("number", range(len(NOT_PLAIN)))
def test_a_naming_that_cannot_be_followed_is_refused(proxy, world, number):
    p = proxy()
    answer = p.connect().ask(NOT_PLAIN[number])
    assert answer.codes == ["0A000"] and "in a form that is not understood" in answer.errors[0]["M"], answer


@pytest.mark.parametrize(
    "params",
    [
        {"options": "-c lokadb.tenant=2"},
        {"options": "-clokadb.tenant=2"},
        {"options": "--lokadb.tenant=2"},
        {"options": "-c geqo=off -c LokaDB.Tenant=2"},
        {"lokadb.tenant": "2"},
    ],
)
def test_a_value_from_the_connection_string(proxy, world, params):
    """SPEC T6: refused, even if start-up parameters are ignored; else that client's default."""
    p = proxy(ignore_startup_parameters="options, lokadb.tenant, geqo")
    refusal = p.refusal(params=params)
    assert refusal.code == "0A000" and "lokadb.tenant cannot be set when connecting" in refusal.message
    q = proxy(tenant={"local_only": "0"}, ignore_startup_parameters="geqo")
    client, other = q.connect(params=params), q.connect()
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    assert other.value("select count(*) from documents") == "100"
    client.query("set lokadb.tenant = 3")
    assert client.ask(extended(ALL)).rows == rows_of(world, "3")
    client.query("reset lokadb.tenant")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    client.query("set lokadb.tenant = 3")
    client.query("discard all")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    assert client.ask(query("begin; set local lokadb.tenant = 3; select count(*) from documents where organization_id = 2")).codes == ["42501"]
    client.query("rollback")


@pytest.mark.parametrize("what", ["role app", "role app in database {}", "database {}"])
def test_a_value_of_role_or_database(proxy, world, what):
    what = what.format(world.cloud)
    p, q = proxy(), proxy(tenant={"local_only": "0"})
    early = p.connect()
    assert early.value("select count(*) from documents") == "100"
    world.sql("alter %s set lokadb.tenant = '2'" % what)
    try:
        client = p.connect()
        for batch in (query("select 1"), extended(ALL), query("begin")):
            answer = client.ask(batch)
            assert answer.codes == ["0A000"] and "role or database set lokadb.tenant" in answer.errors[0]["M"]
        client = q.connect()
        assert client.ask(query(ALL)).rows == rows_of(world, "2")
        assert client.ask(query("select count(*) from documents where organization_id = 3")).codes == ["42501"]
    finally:
        world.sql("alter %s reset lokadb.tenant" % what)
    assert p.connect().value("select count(*) from documents") == "100"


def test_a_value_of_the_session_is_that_clients_own(proxy, world):
    """SPEC T6, local_only = 0, with one connection to each database."""
    p = proxy(tenant={"local_only": "0"}, default_pool_size=1)
    ways = [
        lambda org: query("set lokadb.tenant = " + org),
        lambda org: query("select set_config('lokadb.tenant', '%s', false)" % org),
        lambda org: extended("select set_config('lokadb.tenant', $1, false)", [org]),
        lambda org: query("begin; set lokadb.tenant = %s; commit" % org),
    ]
    for first, second in itertools.product(ways, repeat=2):
        a, b, none = p.connect(), p.connect(), p.connect()
        a.ask(first("2"))
        b.ask(second("3"))
        for _ in range(2):
            for batch in (query, extended):
                assert a.ask(batch(ALL)).rows == rows_of(world, "2")
                assert none.ask(query("select current_setting('lokadb.tenant', true)")).rows[0][0] in (None, "")
                assert b.ask(batch(ALL)).rows == rows_of(world, "3")
                assert none.ask(batch("select count(*) from documents")).rows == [("100",)]
        a.query("reset lokadb.tenant")
        assert a.value("select count(*) from documents") == "100"
        for client in (a, b, none):
            client.drop()


def test_a_value_of_the_session_holds_where_nothing_can_stand_in_front(proxy, world):
    client = proxy(tenant={"local_only": "0"}).connect()
    client.query("set lokadb.tenant = 2")
    answer = client.ask(query("begin isolation level repeatable read; %s; commit" % ALL))
    assert answer.codes == ["0A000"] and not answer.rows and answer.status == "I"
    client.query("begin isolation level repeatable read")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    client.query("commit")
    client.query("prepare p as " + ALL)
    client.query("begin")
    answer = client.ask(query("execute p"))
    assert answer.codes == ["0A000"] and not answer.rows
    client.query("rollback")
    client.query("begin; set local lokadb.tenant = 3")
    assert client.ask(query("execute p")).rows == rows_of(world, "3")
    client.query("commit")


def test_a_value_of_the_session_holds_before_the_catalog_has_come(prepared, world):
    p = prepared(tenant={"local_only": "0"}, router={"control_user": "nobody_at_all"}).start()
    a, b, none = p.connect(), p.connect(params={"options": "-c lokadb.tenant=1"}), p.connect()
    a.query("set lokadb.tenant = 2")
    for batch in (query, extended):
        assert a.ask(batch(ALL)).rows == rows_of(world, "2")
        assert b.ask(batch(ALL)).rows == rows_of(world, "1")
        assert none.ask(batch("select count(*) from documents")).rows == [("100",)]
    assert a.ask(query("begin; %s; commit" % ALL)).rows == rows_of(world, "2")
    a.query("begin isolation level serializable")
    assert a.ask(query(ALL)).rows == rows_of(world, "2")
    a.query("commit")
    assert a.ask(query(ALL + " --" + "x" * (2 << 20))).rows == rows_of(world, "2")
    a.query("discard plans")


def test_what_cannot_be_read_is_rejected_under_policy_reject(proxy, world):
    client = proxy(router={"policy": "reject"}, max_routed_message=5000).connect()
    large = query("select count(*) from documents --" + "x" * 400000)
    assert client.ask(large).codes == ["0A000"]
    client.query("begin; set local lokadb.tenant = 2")
    assert client.ask(large).value == str(len(rows_of(world, "2")))
    client.query("commit")


# ------------------------------------------------------------------ all organizations


@each_way
def test_all_organizations(proxy, world, way):
    """SPEC T7, T8."""
    p = proxy()
    assert way(p.connect(), SETTING, "*", "select count(*) from documents").rows == [("100",)]
    assert not counts(p).get("organization-named")
    text = "select count(*) from documents"
    q = proxy(router={"policy": "reject"}, tenant={"all_roles": "nobody, reporter"})
    client = q.connect()
    answer = way(client, SETTING, "*", text)
    assert answer.codes == ["0A000"]
    mark = answer.errors[0]["H"].split()[-1].rstrip(".")
    assert re.fullmatch("[0-9a-f]{16}", mark)
    assert client.ask(query(text)).codes == ["0A000"]
    assert way(client, SETTING, "2", text).rows == [("20",)]
    reporter = q.connect(user="reporter")
    assert not way(reporter, SETTING, "*", text).codes
    assert reporter.ask(query(text)).codes == ["0A000"]  # who does not say so does not mean it
    r = proxy(router={"policy": "reject", "allow": mark})
    assert not way(r.connect(), SETTING, "*", text).codes


# ------------------------------------------------------------------ writes


@pytest.mark.parametrize("org", ORGS)
def test_a_child_needs_no_look_up_of_its_parent(proxy, world, org):
    """SPEC T9; a parent of another organization is the database's to refuse."""
    p = proxy()
    client = p.connect()
    refs = "select min(id::text) from conversations__refs where organization_id = %d"
    own, foreign = world.sql(refs % int(org)).value, world.sql(refs % (int(org) % 3 + 1)).value
    insert = "insert into messages (conversation_id) values ('%s') returning id"
    for way in (explicitly, explicitly_by_call, in_a_transaction_of_one_query):
        answer = way(client, SETTING, org, insert % own)
        assert len(answer.rows) == 1, answer
        key = answer.rows[0][0]
        assert world.sql("select organization_id from messages__refs where id = %s" % key).value == org
        with world.app() as plain:
            assert plain.query("delete from messages where organization_id = %s and id = %s" % (org, key)).tags == ["DELETE 1"]
        assert way(client, SETTING, org, insert % foreign).codes == ["23514"]
    assert not counts(p).get("key-found")


# ------------------------------------------------------------------ two tenants, one connection


def outcome(answer):
    return answer.rows, answer.codes, [e["M"] for e in answer.errors], answer.tags[-1:]


@pytest.mark.parametrize("first", WAYS)
def test_two_tenants_on_one_connection(proxy, world, first):
    """Every way after every other, over one server connection for each database: each sees its own and nothing else."""
    p = proxy(default_pool_size=1)
    a, b, nobody = p.connect(), p.connect(), p.connect()
    key = {org: rows_of(world, org)[5][0] for org in ORGS}
    texts = [
        ALL,
        "select count(*) from documents",
        "select title from documents where id in (%s) order by id" % ", ".join(key.values()),
        "select 1 / (count(*) - 20) from documents",  # an error under each of them
        "select count(*) from documents where title > 'd5'",
    ]
    expected = {(org, text): rows_of(world, org, text) for org in ORGS for text in texts if "/" not in text}
    turns = itertools.cycle(texts)
    for second in WAYS:
        for org_a, org_b in itertools.permutations(ORGS, 2):
            text = next(turns)
            for client, way, org in ((a, first, org_a), (b, second, org_b), (a, second, org_b), (b, first, org_a)):
                answer = way(client, SETTING, org, text)
                if "/" in text:
                    assert answer.codes == ["22012"]
                else:
                    assert answer.rows == expected[org, text], (way, org, text)
        assert nobody.value("select count(*) from documents") == "100"
        assert nobody.ask(query("select current_setting('lokadb.tenant', true)")).rows[0][0] in (None, "")


def test_a_plan_of_one_is_not_used_for_another(proxy, world):
    """One prepared statement, as often as it takes PostgreSQL to make a generic plan and beyond."""
    p = proxy(default_pool_size=1)
    clients = [p.connect() for _ in ORGS]
    text = "select count(*), min(id) from documents where title <> $1"
    for client in clients:
        client.send(parse("s", text) + sync())
        client.ready()
    expected = [rows_of(world, org, text.replace("$1", "'x'")) for org in ORGS]
    for turn in range(36):
        n = turn * 5 % 3
        client, org = clients[n], ORGS[n]
        if turn % 2:
            client.query("begin; set local lokadb.tenant = " + org)
            assert client.ask(bind("", "s", ["x"]) + execute() + sync()).rows == expected[n]
            client.query("commit")
        else:
            client.send(
                parse("", "set local lokadb.tenant = " + org) + bind("", "") + execute()
                + bind("", "s", ["x"]) + execute() + sync()
            )  # fmt: skip
            assert client.ready().rows == expected[n]


# ------------------------------------------------------------------ configuration


@pytest.mark.parametrize(
    "options,fault",
    [
        ({"setting": "tenant"}, "is no setting of one's own"),
        ({"setting": "a b.c"}, "is no setting of one's own"),
        ({"setting": "lokadb."}, "is no setting of one's own"),
        ({"local_only": "perhaps"}, "local_only is neither"),
        ({"mismatch": "ignore"}, "mismatch is neither"),
        ({"no_such": "1"}, "no_such"),
    ],
)
def test_options_are_checked(prepared, proxy, world, options, fault):
    broken = prepared(tenant=options)
    broken.launch()
    assert broken.wait_exit() != 0
    assert fault in broken.log() + broken.stderr_path.read_text()
    p = proxy()
    p.sections["tenant"].update(options)
    p.write()
    with pytest.raises(wire.PgError):
        p.admin("reload")
    assert in_one_query(p.connect(), SETTING, "2", ALL).rows == rows_of(world, "2")
    for made in (broken, p):
        line = 1 + made.ini.read_text().splitlines().index("%s = %s" % next(iter(options.items())))
        assert "(%s:%d)" % (made.ini, line) in made.log()


def test_a_reload_changes_the_rules(proxy, world):
    p = proxy(tenant={"local_only": "true"})
    client = p.connect()
    other = "set local lokadb.tenant = 2; select id from documents where organization_id = 3"
    assert client.ask(query(other)).codes == ["42501"]
    assert client.ask(query("set lokadb.tenant = 2")).codes == ["0A000"]
    p.sections["tenant"].update(mismatch="log", local_only="false")
    p.reload()
    assert client.ask(query(other)).codes == []
    client.query("set lokadb.tenant = 2")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    p.sections["tenant"].update(setting="app.org")
    p.reload()
    assert client.value("select count(*) from documents") == "100"
    assert in_one_query(client, "app.org", "3", ALL).rows == rows_of(world, "3")
    # The cloud's own name for it, which nobody follows now.
    for sql in ("set local lokadb.tenant = 2; " + ALL, "begin; set local lokadb.tenant = 2", "set lokadb.tenant = 2"):
        assert client.ask(query(sql)).codes == ["0A000"]


@pytest.mark.parametrize("changed", [{"local_only": "0"}, {"setting": "app.org"}], ids=["local_only", "setting"])
def test_a_reload_changes_nothing_for_open_transactions(proxy, world, changed):
    p = proxy()
    client = p.connect()
    client.query("begin")
    client.query("set local lokadb.tenant = 2")
    client.query("savepoint s")
    p.sections["tenant"].update(changed)
    p.reload()
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    client.query("rollback to s")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    client.query("commit")
    assert client.value("select count(*) from documents") == "100"


def test_psycopg(proxy, world):
    p = proxy()
    for org in ORGS:
        with psycopg2.connect(host="127.0.0.1", port=p.port, user="app", dbname="app") as c, c.cursor() as cursor:
            cursor.execute("select set_config('lokadb.tenant', %s, true)", (org,))
            cursor.execute("select id, title from documents order by id")
            assert [(str(k), t) for k, t in cursor.fetchall()] == rows_of(world, org)
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute("select id from documents where organization_id = %s", (int(org) + 1,))


def test_psycopg_pipeline(proxy, world):
    p = proxy()
    with psycopg.connect("host=127.0.0.1 port=%d user=app dbname=app" % p.port) as c:
        for org in ORGS * 2:
            with c.pipeline(), c.transaction():
                c.execute("select set_config('lokadb.tenant', %s, true)", (org,))
                found = c.execute("select id, title from documents order by id")
                own = c.execute("select count(*) from documents where organization_id = %s", (int(org),))
            assert [(str(k), t) for k, t in found.fetchall()] == rows_of(world, org)
            assert own.fetchone() == (20,)


def test_explain_agrees(world):
    def explained(text, *flags):
        said = world.run("explain", "-db", world.dsn(world.cloud), "-json", *flags, text)
        return [(j["path"], j["reason"], j.get("organization")) for j in json.loads(said)]

    direct = ("direct", "organization-named", "2")
    assert explained(ALL, "-tenant", "2") == [direct]
    texts = ["set local lokadb.tenant = 2", ALL, "select set_config('lokadb.tenant', '3', true)", ALL, "reset lokadb.tenant", ALL]
    said = explained("; ".join(texts))
    assert said[1] == direct and said[3] == ("direct", "organization-named", "3") and said[5][0] == "cloud"
    assert explained("reset lokadb.tenant; " + ALL, "-tenant", "2")[1] == direct  # as if from the connection string
    other = "select id from documents where organization_id = 3"
    assert explained(other, "-tenant", "2") == [("refused", "other-organization", "2")]
    assert explained("set local lokadb.tenant = x; " + ALL)[1][:2] == ("refused", "named-unusable")
