"""What the console and the log tell of organizations, tables and sessions (SPEC Q2)."""

import re

import routed_world
from harness import eventually
from routed_world import proxy, world  # noqa: F401 (fixtures)
from wire import query


def row(proxy, what, **where):
    rows = proxy.show(what, **where)
    assert len(rows) == 1, rows
    return rows[0]


def read(world, org):
    return query("select title from documents where organization_id = %s order by id" % org)


def test_organizations(proxy, world):
    p = proxy()
    assert {r["organization"] for r in p.show("lokadb_orgs")} == {"2", "3"}
    org = row(p, "lokadb_orgs", organization="2")
    generation = world.sql("select generation from lokadb.organizations where org = '2'").value
    assert (org["database"], org["profile"], org["generation"]) == ("app", "fdw+direct", generation)
    assert (org["host"], org["port"]) == ("127.0.0.1", str(world.cluster.port))
    assert (org["dbname"], org["direct"], org["reason"]) == (world.org_database["2"], "yes", "")
    client = p.connect()
    for count in range(1, 4):
        client.ask(read(world, "2"))
        assert row(p, "lokadb_orgs", organization="2")["direct_count"] == str(count)
    client.ask(query("begin; select title from documents where organization_id = 2; commit"))
    after = row(p, "lokadb_orgs", organization="2")
    assert (after["direct_count"], after["cloud_count"], after["refused_count"]) == ("3", "1", "0")
    assert "app-pw" not in str(p.show("lokadb_orgs")) and "fdw-pw" not in str(p.show("lokadb_orgs"))


def test_an_organization_says_why_it_is_not_direct(proxy, world):
    world.run("org-profile", "-db", world.dsn(world.cloud), "-org", "3", *world.control_flags(), "fdw")
    try:
        org = row(proxy(), "lokadb_orgs", organization="3")
        assert (org["direct"], org["reason"]) == ("no", "profile-fdw") and org["text"]
    finally:
        world.run("org-profile", "-db", world.dsn(world.cloud), "-org", "3", *world.control_flags(), "fdw+direct")
    sections = routed_world.settings(world)["sections"]
    p = proxy(sections={**sections, "customers_app": {"2": "user=customers_app password=app-pw"}})
    assert row(p, "lokadb_orgs", organization="2")["direct"] == "yes"
    assert row(p, "lokadb_orgs", organization="3")["reason"] == "no-direct-login"


def test_an_organization_tells_its_last_fault(proxy, world):
    p = proxy()
    label = world.org_sql("3", "select obj_description('messages'::regclass)").value
    world.org_sql("3", "comment on table messages is 'something else'")
    try:
        assert len(p.connect().ask(read(world, "3")).rows) == 40
        org = row(p, "lokadb_orgs", organization="3")
        assert "something else" in org["last_fault"] and int(org["fault_age"]) < 60
    finally:
        world.org_sql("3", "comment on table messages is '%s'" % label)
    assert row(p, "lokadb_orgs", organization="2")["last_fault"] == ""


def test_tables(proxy, world):
    world.sql("alter table conversations add column n bigint generated always as (1) stored")
    world.sql("create schema aside; create table aside.messages (id int)")
    try:
        p = proxy()
        rows = {r["table"]: r for r in p.show("lokadb_tables")}
        assert set(rows) == {"public.documents", "public.conversations", "public.messages"}
        documents, messages = rows["public.documents"], rows["public.messages"]
        assert (documents["key"], documents["tenant"], documents["direct"]) == ("id", "organization_id", "yes")
        assert messages["relations"] == "conversation_id=conversations" and messages["also_in_schemas"] == "aside"
        conversations = rows["public.conversations"]
        assert (conversations["direct"], conversations["reason"]) == ("no", "generated-column")
        assert conversations["details"] == "conversations: n"
    finally:
        world.sql("alter table conversations drop column n; drop schema aside cascade")


def test_sessions(proxy, world):
    p = proxy()
    client = p.connect()
    client.ask(read(world, "2"))
    session = row(p, "lokadb_sessions", plugin="router")
    assert (session["user"], session["database"], session["direct"], session["reason"]) == ("app", "app", "yes", "")
    assert session["port"] == str(client.sock.getsockname()[1])
    assert session["ptr"] == row(p, "clients", database="app")["ptr"]


def test_a_session_off_the_direct_path_says_why_and_the_log_does(proxy, world):
    p = proxy(pool_mode="session")
    client = p.connect()
    for _ in range(5):
        assert len(client.ask(read(world, "2")).rows) == 40
    session = row(p, "lokadb_sessions", plugin="router")
    assert (session["direct"], session["reason"]) == ("no", "session-pooling") and session["text"]
    line = r"plugin router: no statement of a session of app in app goes direct: .* \(session-pooling\)"
    p.wait_log(line)
    assert len(re.findall(line, p.log())) == 1


def test_refused_statements_are_in_the_log_with_the_reason(proxy, world):
    sections = routed_world.settings(world, router={"policy": "reject"})["sections"]
    p = proxy(sections=sections)
    client = p.connect()
    for _ in range(50):
        assert client.ask(query("select title from documents")).codes == ["0A000"]
    line = r"a statement of app in app is refused: .* \(rejected\), fingerprint [0-9a-f]{16}"
    p.wait_log(line)
    written = len(re.findall(line, p.log()))
    assert written < 10, "one line for each statement"

    def has_told_of_the_rest():
        client.ask(query("select title from documents"))
        return re.search(line + r" \(and \d+ more since the last line\)", p.log())

    eventually(has_told_of_the_rest)


def test_help_names_the_commands_of_plugins(proxy, world):
    p = proxy()
    with p.console() as c:
        helped = c.query("show help")
        assert any("LOKADB_ORGS|LOKADB_TABLES" in m.fields().get("D", "") for m in helped if m.kind == "N")
        assert len(c.query("SHOW LOKADB_ORGS").rows) == 2
        assert c.fails("show lokadb_nothing")
    with p.console(user="stats") as c:
        assert len(c.query("show lokadb_tables").rows) == 3
