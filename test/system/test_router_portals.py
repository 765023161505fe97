"""Portals and the unnamed statement with the plugins: what was bound is run as PostgreSQL runs it, whatever was bound,
run or prepared in between for other organizations. Each exchange is compared with PostgreSQL's own.
"""

import pytest

import routed_world
from routed_world import counts, documents, proxy, world  # noqa: F401 (fixtures)
from wire import bind, close, describe, execute, extended, flush, parse, query, sync

HOME, HOME_TOO, MOVED, MOVED_TOO = "4", "5", "2", "3"
BY_KEY = "select title from documents where id = $1"
BY_ORG = "select count(*), min(title) from documents where organization_id = $1"
IDS = "select id from documents where organization_id = $1 order by id"
# What a client sees of an answer, apart from names that the proxy gives to statements.
SHOWN = "123tTnDCsZ"


def keys(world):  # noqa: F811
    return {org: documents_of(world, org)[2][0] for org in (HOME, HOME_TOO, MOVED, MOVED_TOO)}


def documents_of(world, org):  # noqa: F811
    if org in world.org_database:
        return documents(world, org)
    return world.sql("select id, title from documents where organization_id = %s order by id" % org).rows


def plain_and_proxied(world, proxied):  # noqa: F811
    return world.cluster.connect(database=world.cloud, timeout=5), proxied.connect(timeout=5)


def seen(answer):
    return [(m.kind, m.body) for m in answer if m.kind in SHOWN] + answer.codes


def first_and_second(world):  # noqa: F811
    k = keys(world)
    return [(BY_KEY, k[HOME], k[MOVED_TOO]), (BY_KEY, k[MOVED], k[HOME]), (BY_KEY, k[HOME], k[HOME_TOO]),
            (BY_KEY, k[HOME], None), (BY_KEY, k[MOVED], "999999"), (BY_ORG, HOME, MOVED), (BY_ORG, MOVED, MOVED_TOO)]


def in_their_order(sql, one, two):
    return parse("", sql) + bind("a", "", [one]) + bind("b", "", [two]) + execute("a") + execute("b")


def one_alone(sql, one, two):
    return parse("", sql) + bind("", "", [one]) + bind("b", "", [two]) + execute("")


def the_other_way_round(sql, one, two):
    return parse("", sql) + bind("a", "", [one]) + bind("b", "", [two]) + execute("b") + execute("a")


def row_by_row(sql, one, two):
    steps = bind("a", "", [one]) + execute("a", 1) + bind("b", "", [two]) + execute("b", 1)
    return parse("", sql) + steps + execute("a", 1) + execute("b", 0)


@pytest.mark.parametrize("batch", [in_their_order, one_alone, the_other_way_round, row_by_row])
@pytest.mark.parametrize("where", ["alone", "in a transaction", "behind a flush"])
def test_portals_of_one_batch(proxy, world, batch, where):  # noqa: F811
    p = proxy()
    for sql, one, two in first_and_second(world):
        answers = []
        for client in plain_and_proxied(world, p):
            if where == "in a transaction":
                client.query("begin")
                # What this leaves behind is for none of them.
                client.ask(extended(BY_ORG, [HOME_TOO]))
            messages = batch(sql, one, two)
            answers.append(seen(client.ask(messages + (flush() if where == "behind a flush" else b"") + sync())))
            client.drop()
        assert answers[0] == answers[1], (sql, one, two)


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("ends", [sync, flush])
def test_portals_of_earlier_batches(proxy, world, limit, ends):  # noqa: F811
    """As drivers' cursors are: bound first, asked for rows later, with statements of others between."""
    p = proxy()
    for sql, one, two in first_and_second(world):
        answers = []
        for client in plain_and_proxied(world, p):
            client.query("begin")
            batches = [parse("s", sql), bind("a", "s", [one]) + describe("P", "a"), bind("b", "s", [two]), execute("a", limit),
                       bind("", "s", [two]) + execute(""), execute("b", limit), execute("a", limit)]  # fmt: skip
            if ends is flush:
                answers.append(seen(client.ask(b"".join(b + flush() for b in batches) + sync())))
            else:
                answers.append([seen(client.ask(b + sync())) for b in batches])
            client.drop()
        assert answers[0] == answers[1], (sql, one, two)


@pytest.mark.parametrize("begin", [["begin; declare c cursor for %s"], ["begin", "declare c cursor for %s"]], ids=["one", "two"])
def test_cursors_that_begin_a_transaction(proxy, world, begin):  # noqa: F811
    p = proxy()
    for one, two in ((HOME, MOVED), (MOVED, HOME), (MOVED, MOVED_TOO), (HOME, HOME_TOO)):
        answers = []
        for client in plain_and_proxied(world, p):
            declared = "select id from documents where organization_id = " + one
            batches = [query(b % declared if "%" in b else b) for b in begin]
            batches += [query("fetch 1 from c"), extended(BY_ORG, [two]), query("fetch 3 from c"), query("select 1"), query("fetch all from c")]
            answers.append([seen(client.ask(b)) for b in batches])
            client.drop()
        assert answers[0] == answers[1], (one, two)


def test_a_portal_without_a_name_ends_with_the_next(proxy, world):  # noqa: F811
    """What a driver that asks for one row leaves open is nothing that later statements have to mind."""
    p = proxy()
    client = p.connect()
    client.query("begin")
    for org in (HOME, MOVED, HOME_TOO):
        one_row = client.ask(parse("", IDS) + bind("", "", [org]) + execute("", 1) + sync())
        assert one_row.rows == [(documents_of(world, org)[0][0],)]
        named = client.ask(query("select current_setting('lokadb.tenant') from documents where organization_id = %s limit 1" % HOME))
        assert named.rows == [(HOME,)]


UPSERT = "insert into documents (id, organization_id, title) values ($1, $2, 'new') on conflict (id) do update set title = 'again'"


def test_a_limit_of_rows_keeps_no_write_from_the_local_part(proxy, world):  # noqa: F811
    """pgjdbc asks for one row of what gives none."""
    client = proxy().connect()
    one = parse("", UPSERT) + bind("", "", ["77001", HOME]) + describe("P") + execute("", 1)
    for batches in ([one + sync()] * 2, [one + one + sync()]):
        client.query("begin")
        answers = [client.ask(b) for b in batches]
        assert [(a.codes, set(a.tags)) for a in answers] == [([], {"INSERT 0 1"})] * len(batches)
        client.query("rollback")


def test_what_cannot_be_put_in_order_is_rejected(start, world):  # noqa: F811
    """SPEC T8; in a transaction, where a value has been left behind, as well."""
    p = routed_world.is_ready(start(**routed_world.settings(world, router={"policy": "reject"})))
    client = p.connect()
    batch = the_other_way_round("select count(*) from documents where organization_id <> $1", "0", "1")
    assert client.ask(batch + sync()).codes == ["0A000"]
    client.query("begin")
    assert client.ask(extended(BY_ORG, [HOME])).errors == []
    assert client.ask(batch + sync()).codes == ["0A000"]


def test_the_unnamed_statement_of_a_direct_read_can_be_described_later(proxy, world):  # noqa: F811
    p = proxy()
    for org in (MOVED, HOME):
        answers = []
        for client in plain_and_proxied(world, p):
            batches = [parse("", IDS) + bind("", "", [org]) + execute(), describe("S"), describe("S") + bind("", "", [org]) + execute("", 2)]
            batches += [bind("", "", [MOVED_TOO]) + execute(), close("S"), describe("S")]
            answers.append([seen(client.ask(b + sync())) for b in batches])
            client.drop()
        assert answers[0] == answers[1]
    assert counts(p)["tenant-known"] == 4


@pytest.mark.parametrize("name", ["s", ""])
def test_what_a_batch_has_closed_it_cannot_bind(proxy, world, name):  # noqa: F811
    p = proxy()
    for org in (HOME, MOVED):
        answers = []
        for client in plain_and_proxied(world, p):
            again = parse(name, BY_ORG) + bind("", name, [MOVED_TOO]) + execute()
            batches = [parse(name, IDS) + bind("", name, [org]) + execute("", 1), close("S", name) + again,
                       close("S", name) + bind("", name, [org]) + execute(), bind("", name, [org]) + execute()]  # fmt: skip
            answers.append([seen(client.ask(b + sync())) for b in batches])
            client.drop()
        assert answers[0] == answers[1] and "26000" in answers[0][2]


def test_what_an_unnamed_statement_sets_stays_with_its_client(proxy, world):  # noqa: F811
    """On the server that it is sent to when it is bound again, too."""
    p = proxy(default_pool_size=1)
    one, other = p.connect(), p.connect()
    sets = "select set_config('array_nulls', $1, false) from documents where organization_id = $2 limit 1"
    reads = "select '{null}'::text[]::text from documents where organization_id = %s limit 1" % HOME
    assert one.ask(parse("", sets) + bind("", "", ["on", HOME]) + execute() + sync()).rows == [("on",)]
    assert other.ask(extended(reads)).rows == [("{NULL}",)]
    assert one.ask(bind("", "", ["off", HOME]) + execute() + sync()).rows == [("off",)]
    assert other.value(reads) == "{NULL}"
