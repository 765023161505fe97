"""An organization's tables changed behind the proxy's back: clients get what the cloud tells them, or nothing."""

import pytest

from routed_world import counts, proxy, world  # noqa: F401 (fixtures)
from wire import bind, describe, execute, extended, parse, query, sync

ALL = "select * from documents where organization_id = %s order by id"


def unnamed(client, org):
    return client.ask(extended(ALL % "$1", [org]))


def unnamed_described_first(client, org):
    return client.ask(parse("", ALL % "$1") + describe("S") + bind("", "", [org]) + execute() + sync())


def unnamed_not_described(client, org):
    return client.ask(parse("", ALL % "$1") + bind("", "", [org]) + execute() + sync())


def named(client, org):
    name = "n%d" % next(named.numbers)
    return client.ask(parse(name, ALL % "$1") + bind("", name, [org]) + describe("P") + execute() + sync())


named.numbers = iter(range(10**6))


def prepared_before(client, org):
    return client.ask(bind("", "before", [org]) + execute() + sync())


def simple(client, org):
    return client.ask(query(ALL % org))


def last_of_several(client, org):
    return client.ask(query("select count(*) from documents where organization_id = %s;" % org + ALL % org))


def last_of_a_pipeline(client, org):
    first = parse("", "select count(*) from documents where organization_id = $1") + bind("", "", [org]) + execute()
    return client.ask(first + extended(ALL % "$1", [org]))


FORMS = [
    unnamed,
    unnamed_described_first,
    unnamed_not_described,
    named,
    prepared_before,
    simple,
    last_of_several,
    last_of_a_pipeline,
]
CHANGES = {
    "added": ("alter table documents add extra int", "alter table documents drop extra"),
    "retyped": (
        "alter table documents alter title type varchar(50)",
        "alter table documents alter title type text",
    ),
}


@pytest.fixture(params=CHANGES)
def change(world, request):
    there, back = CHANGES[request.param]
    yield lambda: world.cluster.sql(there, world.org_database["2"])
    world.cluster.sql(back, world.org_database["2"])


@pytest.mark.parametrize("ask", FORMS)
def test_columns_are_those_of_the_cloud(proxy, world, change, ask):
    p = proxy()
    client = p.connect()
    client.ask(parse("before", ALL % "$1") + describe("S", "before") + sync())
    expected = ask(client, "2")
    assert not expected.errors and expected.rows
    change()
    for _ in range(2):
        answer = ask(client, "2")
        assert [(m.kind, m.body) for m in answer] == [(m.kind, m.body) for m in expected], answer.errors
    found = counts(p)
    assert found.get("catalog-drift", 0) + found.get("statement-failed", 0) == 2, found
    # The connection is as good as ever for what has not changed.
    unchanged = "select count(*) from documents where organization_id = 2"
    assert client.value(unchanged) == world.cluster.sql(unchanged, world.org_database["2"]).value


def test_an_error_about_names_is_the_clouds(proxy, world):
    client = proxy().connect()
    for sql in "select no_such_column from documents where organization_id = 2", ALL % 2 + ", no_such_column":
        told = client.fails(sql)
        plain = world.cluster.connect(database=world.cloud).fails(sql)
        assert (told["C"], told["M"], told.get("P")) == (plain["C"], plain["M"], plain.get("P")) and told["C"] == "42703"


@pytest.mark.parametrize("sql", ["select 'a' < id from documents where organization_id = 2",
                                 "select %s from documents where organization_id = 2" % ", ".join(["id"] * 1700)], ids=["type", "columns"])  # fmt: skip
def test_a_mistake_of_the_clients_is_no_change_of_tables(proxy, world, sql):
    p = proxy()
    client = p.connect()
    with world.cluster.connect(database=world.cloud) as plain:
        expected = [plain.ask(form(sql)).codes for form in (query, extended)]
    assert [client.ask(form(sql)).codes for form in (query, extended)] == expected and all(expected)
    assert "catalog-drift" not in counts(p) and "differ from the cloud" not in p.log()


@pytest.mark.parametrize("anew", [False, True], ids=["same", "new"])
@pytest.mark.parametrize("where", ["direct", "cloud"])
def test_who_was_told_of_other_columns_does_not_get_new_ones(proxy, world, anew, where):
    """The tables are changed everywhere, so that nothing differs but what the client knows; on servers that have the
    statement, and on new ones."""
    p = proxy()
    client = p.connect()
    sql, value = (ALL % "$1", "2") if where == "direct" else ("select * from documents where id = $1", "2")
    assert len(client.ask(parse("s", sql) + describe("S", "s") + sync()).columns) == 3
    run = bind("", "s", [value]) + execute() + sync()

    def ask():
        if where == "direct":
            return client.ask(run)
        client.query("begin")
        answer = client.ask(run)
        client.query("rollback")
        return answer

    assert ask().rows
    databases = [world.cloud, *world.org_database.values()]
    for database in databases:
        world.cluster.sql("alter table documents add extra int", database)
    try:
        if anew:
            p.admin("reconnect")
        assert ask().codes == ["0A000"]
        answer = p.connect().ask(extended(sql, [value]))
        assert len(answer.columns) == 4 and len(answer.rows[0]) == 4
    finally:
        for database in databases:
            world.cluster.sql("alter table documents drop extra", database)


MEANINGS = {
    "function": (
        "create function public.upper(varchar) returns text language sql immutable as $$ select 'mine' $$",
        "drop function public.upper(varchar)",
        "upper(title::varchar)",
    ),
    "operator": (
        "create function public.other(varchar, varchar) returns text language sql immutable as $$ select 'mine' $$;"
        "create operator public.|| (leftarg = varchar, rightarg = varchar, function = public.other)",
        "drop operator public.|| (varchar, varchar); drop function public.other(varchar, varchar)",
        "title::varchar || 'x'::varchar",
    ),
}


@pytest.mark.parametrize("change", MEANINGS)
def test_what_changes_the_meaning_of_a_statement_counts_for_the_next(proxy, world, change):  # noqa: F811
    made, undone, expression = MEANINGS[change]
    client = proxy().connect()
    sql = "select distinct %s from documents where organization_id = 2 and id = 1" % expression

    def ask():
        # What a server has prepared keeps its meaning, as in PostgreSQL.
        answers = [client.ask(form) for form in (query(sql), extended(sql))]
        assert [a.errors for a in answers] == [[]] * 2
        return [a.rows for a in answers]

    before = ask()
    for _ in range(2):
        world.sql(made)
        try:
            assert ask() == [[("mine",)]] * 2
        finally:
            world.sql(undone)
        assert ask() == before
