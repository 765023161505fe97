"""What the router refuses or tells because nobody would follow it: names, databases without a catalog; and what only the
local part of a table could do.
"""

import json

import pytest

import routed_world
from routed_world import counts, documents, proxy, world  # noqa: F401
from wire import bind, describe, execute, extended, parse, query, sync


@pytest.mark.parametrize("form", [query, extended])
def test_an_organization_that_is_named_unheard_is_refused(proxy, world, form):  # noqa: F811
    """Without the plugin tenant the value would be overwritten, and rows of all organizations be shown."""
    client = proxy().connect()
    client.query("begin")
    for naming in ("set local lokadb.tenant = 2", "set LokaDB.tenant = '2'", "select set_config('lokadb.tenant', '2', true)"):
        answer = client.ask(form(naming))
        assert answer.codes == ["0A000"] and "plugins = tenant" in answer.errors[0]["H"], naming
        client.query("rollback; begin")
    assert client.ask(extended("select set_config('lokadb.tenant', $1, true)", ["2"])).codes == ["0A000"]
    client.query("rollback")
    for harmless in ("reset lokadb.tenant", "set lokadb.tenant = ''", "show lokadb.tenant"):
        assert client.ask(form(harmless)).codes in ([], ["42704"]), harmless
    assert client.ask(query("set lokadb.tenant = 2; select 1")).codes == ["0A000"]


def without_catalog(prepare, world, **databases):
    made = prepare(**routed_world.settings(world, router={"policy": "reject", "control_user": "nobody_at_all"}))
    made.databases.update(databases)
    made.write()
    made.start()
    return made


def test_policy_reject_counts_where_no_catalog_is_known(prepare, world):  # noqa: F811
    p = without_catalog(prepare, world)
    client = p.connect()
    p.wait_log("feed of router from app: lost")
    for sql in ("select title from documents", "/* c */ table documents", "begin; select 1", "declare c cursor for select 1"):
        assert client.ask(query(sql)).codes == ["57P03"], sql
        assert client.ask(extended(sql)).codes[0] in ("57P03", "42601"), sql
    for sql in ("begin", "set application_name = 'x'", "show search_path", "commit", "", "discard all"):
        assert client.ask(query(sql)).codes == [], sql
    assert [(s["direct"], s["reason"]) for s in p.show("lokadb_sessions")] == [("no", "catalog-stale")]


def test_policy_reject_is_not_for_databases_without_tables_under_lokadb(start, world):  # noqa: F811
    settings = routed_world.settings(world, router={"policy": "reject"})
    settings["databases"]["other"] = "host=127.0.0.1 port=%d dbname=postgres" % world.cluster.port
    p = routed_world.is_ready(start(**settings))
    p.wait_log("feed of router from other: nothing there: .*lokadb")
    client = p.connect(database="other")
    assert client.value("select count(*) from pg_class where relname = 'pg_class'") == "1"
    assert [(s["direct"], s["reason"]) for s in p.show("lokadb_sessions", database="other")] == [("yes", "")]


def test_databases_that_a_star_stands_for_are_told_to_be_unrouted(start, world):  # noqa: F811
    settings = routed_world.settings(world)
    settings["databases"]["*"] = "host=127.0.0.1 port=%d" % world.cluster.port
    p = start(**settings)
    p.wait_log("are not routed")
    assert len(p.connect(database=world.cloud).query("select id from documents where organization_id = 2").rows) == 40
    p.reload()
    assert p.log().count("are not routed") == 1


def test_groups_by_the_key_go_direct(proxy, world):  # noqa: F811
    p = proxy()
    client = p.connect()
    sql = "select id, title, count(*) from documents where organization_id = %s group by id order by id"
    expected = [(k, t, "1") for k, t in documents(world, "2")]
    for batch in (query(sql % 2), extended(sql % "$1", ["2"]), query(sql % 2 + ";"), query(sql % 2 + "; " + sql % 2)):
        answer = client.ask(batch)
        assert answer.codes == [] and answer.rows[: len(expected)] == expected
    client.ask(parse("g", sql % "$1") + describe("S", "g") + sync())
    for _ in range(2):
        assert client.ask(bind("", "g", ["2"]) + execute() + sync()).rows == expected
    reasons = counts(p)
    assert reasons["tenant-known"] == 6 and not {"group-by-key-fdw", "catalog-drift"} & set(reasons)


def test_explain_agrees_about_types_of_ones_own(world):  # noqa: F811
    """Columns that only * names, too."""
    world.sql("create type colour as enum ('red', 'blue'); alter table documents add colour colour")
    for database in world.org_database.values():
        world.cluster.sql("create type colour as enum ('red', 'blue'); alter table documents add colour colour", database)
    try:
        for sql, reason in (("select * from documents where organization_id = 2", "type"),
                            ("select id from documents where organization_id = 2", "tenant-known")):
            for profile in ("fdw+direct", "direct"):
                (said,) = json.loads(world.run("explain", "-db", world.dsn(world.cloud), "-profile", profile, "-json", sql))
                path = "direct" if reason != "type" else "refused" if profile == "direct" else "cloud"
                assert (said["path"], said["reason"]) == (path, reason)
    finally:
        world.sql("alter table documents drop colour; drop type colour")
        for database in world.org_database.values():
            world.cluster.sql("alter table documents drop colour; drop type colour", database)


def test_explain_takes_what_is_not_utf8(world):  # noqa: F811
    (said,) = json.loads(world.run("explain", "-db", world.dsn(world.cloud), "-json", "select '\udcff' from documents where id = 1"))
    assert said["statement"] == "select '\ufffd' from documents where id = 1"
