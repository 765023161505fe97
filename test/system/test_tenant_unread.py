"""Batches whose statements the plugins cannot read, because of their size or encoding: they run under the organization
that is named all the same, and never under what somebody else has left behind."""

import pytest

import wire
from test_tenant import ALL, ORGS, SETTING, prepared, proxy, rows_of, world  # noqa: F401 (fixtures)
from wire import bind, describe, execute, extended, flush, parse, query, sync

LARGE = ALL.replace("order by", "/*%s*/ order by" % ("x" * 200000))
IN_SJIS = ALL.encode().replace(b"order by", b"/*\x83\x5c*/ order by")  # a character whose second byte is a backslash


def in_a_query(client, sql):
    return client.ask(query(sql))


def unnamed(client, sql):
    return client.ask(extended(sql))


def named(client, sql):
    return client.ask(parse("s", sql) + bind("", "s") + execute() + wire.close("S", "s") + sync())


def with_flush(client, sql):
    client.send(parse("", sql) + bind("", "") + describe("P") + execute() + flush())
    client.send(sync())
    return client.ready()


def behind_a_small_one(client, sql):
    small = parse("", "select count(*) from documents where false") + bind("", "") + execute()
    answer = client.ask(small + parse("", sql) + bind("", "") + execute() + sync())
    return wire.Answer(answer[4:])


FORMS = [in_a_query, unnamed, named, with_flush, behind_a_small_one]


@pytest.fixture(params=["transaction", "session"])
def session_wide(proxy, request):  # noqa: F811
    return proxy(
        pool_mode=request.param, max_routed_message=4096, default_pool_size=2, tenant={"local_only": 0}, pkt_buf=4096
    )


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "transaction"])
@pytest.mark.parametrize("ask", FORMS)
def test_large_batches_are_about_whom_the_session_names(session_wide, world, ask, in_transaction):  # noqa: F811
    client = session_wide.connect(timeout=30)
    for org in ORGS * 2:
        client.query("set %s = '%s'" % (SETTING, org))
        if in_transaction:
            client.query("begin")
        assert ask(client, LARGE).rows == rows_of(world, org)
        assert client.ask(query(ALL)).rows == rows_of(world, org)
        if in_transaction:
            client.query("commit")
    client.query("reset %s" % SETTING)
    assert len(ask(client, LARGE).rows) == 100


def test_what_is_left_on_a_server_is_not_for_a_large_batch(proxy, world):  # noqa: F811
    p = proxy(max_routed_message=4096, default_pool_size=1, pkt_buf=4096)
    leaver, client = p.connect(), p.connect(timeout=30)
    for _ in range(2):
        leaver.query("do $$ begin perform set_config('%s', '2', false); end $$" % SETTING)
        for ask in FORMS:
            assert len(ask(client, LARGE).rows) == 100


def test_errors_of_large_batches_are_the_servers(session_wide, world):  # noqa: F811
    client = session_wide.connect(timeout=30)
    client.query("set %s = '2'" % SETTING)
    for ask in FORMS[:-1]:
        for sql in LARGE.replace("title", "no_such"), LARGE.replace("id, title", "1/(id-id)"):
            assert ask(client, sql).codes == ["42703" if "no_such" in sql else "22012"]
            assert client.ask(query(ALL)).rows == rows_of(world, "2")


def test_a_step_that_fails_refuses_all_of_a_large_batch(session_wide, world):  # noqa: F811
    """Somebody who moves an organization holds all writes up."""
    client = session_wide.connect(timeout=30)
    client.query("set %s = '1'" % SETTING)
    change = "update documents set title = title || '!' where organization_id = 1 /*%s*/" % ("x" * 200000)
    before = rows_of(world, "1")
    with world.cluster.connect(user="postgres", database=world.cloud) as mover:
        mover.query("begin; select pg_advisory_xact_lock(lokadb.pause_key('*'))")
        for ask in in_a_query, unnamed:
            answer = ask(client, change)
            assert answer.codes == ["55P03"] and answer.status == "I", answer
        client.query("begin")
        assert in_a_query(client, change).codes == ["55P03"]
        assert client.ask(query("select 1")).codes == ["25P02"]
        client.query("rollback")
    assert rows_of(world, "1") == before
    assert in_a_query(client, change).tags == ["UPDATE %d" % len(before)]
    assert rows_of(world, "1") == [(key, title + "!") for key, title in before]


@pytest.mark.parametrize("ask", [in_a_query, unnamed, named])
def test_texts_in_an_encoding_that_is_not_read(session_wide, world, ask):  # noqa: F811
    client = session_wide.connect(params={"client_encoding": "SJIS"}, timeout=30)
    for org in ORGS:
        client.query("set %s = '%s'" % (SETTING, org))
        assert ask(client, IN_SJIS).rows == rows_of(world, org)
        client.query("vacuum documents")
        client.query("begin isolation level serializable")
        assert client.value("show transaction_isolation") == "serializable"
        client.query("commit")
        assert ask(client, b"begin; %s; commit" % IN_SJIS).rows == rows_of(world, org) or ask is not in_a_query


# ------------------------------------------------------------------ several statements in a Query

# What stands in front of a Query is gone behind the end of its first transaction.
ONE_TRANSACTION = {
    "begin; %s; commit": 1,
    "; ; %s": 1,
    "set work_mem = '5MB'; %s": 1,
    "reset work_mem; %s;": 1,
    "show work_mem; %s": 1,
    "begin; savepoint a; %s; release a; %s; commit": 2,
    "begin; declare c cursor for %s; fetch all from c; commit": 1,
    "begin; lock table documents in share mode; %s; commit -- done": 1,
    "analyze; %s": 1,
}
SEVERAL = ["commit; %s", "begin; select 1; commit; %s", "%s; commit; %s", "rollback; %s", "end; %s", "/* a */ abort ; %s"]
SEVERAL += ["begin; %s; prepare transaction 'x'; %s", "begin isolation level serializable; %s; commit"]
SMALL = {"plain": ALL.encode(), "sjis": IN_SJIS}


def filled(text, sql):
    return text.encode().replace(b"%s", sql)


@pytest.mark.parametrize("text", ONE_TRANSACTION)
@pytest.mark.parametrize("form", [*SMALL, "large"])
def test_statements_of_one_transaction_are_about_whom_the_session_names(session_wide, world, form, text):  # noqa: F811
    client = session_wide.connect(params={"client_encoding": "SJIS"}, timeout=30)
    sql = SMALL.get(form, LARGE.encode())
    for org in ORGS:
        client.query("set %s = '%s'" % (SETTING, org))
        answer = client.ask(query(filled(text, sql)))
        assert answer.codes == [] and answer.status == "I"
        assert [row for row in answer.rows if len(row) == 2] == rows_of(world, org) * ONE_TRANSACTION[text]


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("form", SMALL)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_several_transactions_of_a_query_are_refused(proxy, world, form, text, in_transaction):  # noqa: F811
    p = proxy(tenant={"local_only": 0}, default_pool_size=2)
    client = p.connect(params={"client_encoding": "SJIS"}, timeout=30)
    client.query("set %s = '2'" % SETTING)
    if in_transaction:
        client.query("begin")
    answer = client.ask(query(filled(text, SMALL[form])))
    assert answer.codes == ["0A000"] and answer.rows == [] and answer.status == ("E" if in_transaction else "I")
    client.query("rollback")
    assert client.ask(query(ALL)).rows == rows_of(world, "2")
    # Who has named nobody is not refused.
    client.query("reset %s" % SETTING)
    if "prepare" not in text:
        assert client.ask(query(filled(text, SMALL[form]))).codes == []


@pytest.mark.parametrize("text", ["commit; select 1; begin", "begin; %s; commit; select 1", "%s; commit; set work_mem = 100"])
def test_what_reads_no_tables_may_stand_behind_the_end(session_wide, world, text):  # noqa: F811
    client = session_wide.connect(timeout=30)
    client.query("set %s = '2'" % SETTING)
    answer = client.ask(query(filled(text, ALL.encode())))
    assert answer.codes == []
    assert [row for row in answer.rows if len(row) == 2] == rows_of(world, "2") * text.count("%s")


def test_several_transactions_of_a_large_query_end_the_connection(proxy, world):  # noqa: F811
    """The server has not seen its end by then, so that nothing of it runs."""
    p = proxy(tenant={"local_only": 0}, max_routed_message=4096, pkt_buf=4096, default_pool_size=2)
    client = p.connect(timeout=30)
    client.query("set %s = '1'" % SETTING)
    before = rows_of(world, "1")
    change = "update documents set title = 'x'"
    client.send(query("select '; commit; %s'; %s; commit; %s" % ("x" * 300000, change, change)))
    fields = client.read().fields()
    assert (fields["S"], fields["C"]) == ("FATAL", "0A000") and "several transactions" in fields["M"]
    with pytest.raises(wire.Closed):
        client.read()
    again = p.connect(timeout=30)
    again.query("set %s = '1'" % SETTING)
    assert again.ask(query(ALL)).rows == rows_of(world, "1") == before


def one(sql, args=()):
    return parse("", sql) + bind("", "", args) + execute()


PADDED = "select id, title from documents where $1::text is not null order by id"
SMALL_ONE, LARGE_ONE = one(PADDED, ["x" * 1500]), one(PADDED, ["x" * 50000])
PIPELINES = {
    "large behind a commit": [one(ALL), one("commit"), LARGE_ONE],
    "behind a large one": [LARGE_ONE, one("commit"), one(ALL), LARGE_ONE, one("commit"), LARGE_ONE],
    "many": [one("begin"), *[SMALL_ONE] * 7, one("commit"), one("begin"), SMALL_ONE, one("rollback"), *[SMALL_ONE] * 3],
    "sjis": [one(ALL), one("commit"), parse("", IN_SJIS) + bind("", "") + execute(), one("commit"), one(ALL)],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_large_pipelines_are_about_whom_the_session_names(session_wide, world, name):  # noqa: F811
    client = session_wide.connect(params={"client_encoding": "SJIS"}, timeout=30)
    messages = PIPELINES[name]
    reads = sum(b"documents" in m for m in messages)
    for org in ORGS:
        client.query("set %s = '%s'" % (SETTING, org))
        answer = client.ask(b"".join(messages) + sync())
        assert answer.codes == [] and answer.status == "I" and len(answer.tags) == len(messages)
        assert answer.rows == rows_of(world, org) * reads
    for failing in (one("select 1/0"), one("select 1/length(right($1, 0))", ["x" * 9000])):
        answer = client.ask(LARGE_ONE + failing + LARGE_ONE + SMALL_ONE * 4 + sync())
        assert answer.codes == ["22012"] and answer.status == "I" and len(answer.tags) == 1
    assert client.ask(query(ALL)).rows == rows_of(world, org)


def test_a_syntax_error_is_the_servers_unless_it_might_be_none(proxy, world):  # noqa: F811
    p = proxy(tenant={"local_only": 0})
    client = p.connect(timeout=30)
    client.query("set %s = '2'" % SETTING)
    for ask in in_a_query, unnamed:
        answer = ask(client, "selct 1")
        assert answer.codes == ["42601"] and answer.status == "I"
    # A newer server may know the grammar.
    assert client.ask(query("commit; selct 1")).codes == ["0A000"]
    client.query("reset %s" % SETTING)
    assert client.ask(query("commit; selct 1")).codes == ["42601"]
    rejecting = proxy(router={"policy": "reject"}).connect(timeout=30)
    answer = rejecting.ask(query("selct 1"))
    assert answer.codes == ["42601"] and "cannot be read" in answer.errors[0]["M"]


@pytest.mark.parametrize("sql", [LARGE, IN_SJIS], ids=["large", "sjis"])
def test_policy_reject_counts_for_what_is_not_read(proxy, world, sql):  # noqa: F811
    p = proxy(max_routed_message=4096, pkt_buf=4096, router={"policy": "reject"}, tenant={"local_only": 0})
    client = p.connect(params={"client_encoding": "SJIS"} if sql is IN_SJIS else {}, timeout=30)
    client.query("set %s = '2'" % SETTING)
    assert in_a_query(client, sql).rows == rows_of(world, "2")
    client.query("reset %s" % SETTING)
    for ask in in_a_query, unnamed, named:
        answer = ask(client, sql)
        assert answer.codes == ["0A000"] and answer.status == "I", answer
        assert client.value("select 1") == "1"


@pytest.mark.parametrize("ask", FORMS)
def test_names_count_where_no_catalog_is_known(prepared, world, ask):  # noqa: F811
    """As before its first word has come, or if it never comes."""
    p = prepared(
        router={"control_user": "nobody_here"}, tenant={"local_only": 0}, default_pool_size=1, max_routed_message=4096
    ).start()
    one, two, nobody = (p.connect(timeout=30) for _ in range(3))
    one.query("set %s = '1'" % SETTING)
    two.query("set %s = '2'" % SETTING)
    for sql in ALL, LARGE:
        for client, org in (one, "1"), (two, "2"):
            assert ask(client, sql).rows == rows_of(world, org)
        assert len(ask(nobody, sql).rows) == 100
    with p.connect() as local:
        local.query("begin; set local %s = '2'" % SETTING)
        assert ask(local, ALL).rows == rows_of(world, "2")
    one.query("vacuum documents")
    one.query("begin isolation level serializable")
    assert one.value("show transaction_isolation") == "serializable"
    assert ask(one, ALL).rows == rows_of(world, "1")
    one.query("rollback")
    assert one.ask(query("begin; %s; commit" % ALL)).rows == rows_of(world, "1")
    for sql in "%s; commit; %s" % (ALL, ALL), "commit; %s; selct" % ALL:
        assert one.ask(query(sql)).codes == ["0A000"]


@pytest.fixture(scope="module")
def how_many(world):  # noqa: F811
    """The OID of a function that counts the documents it sees."""
    world.sql(
        "create function how_many(at_least bigint) returns bigint language sql as"
        " 'select count(*) from documents where id >= $1'"
    )
    return int(world.sql("select 'how_many(bigint)'::regprocedure::oid::int").value)


def answers(client, batch):
    answer = client.ask(batch)
    assert answer.errors == [], answer
    return [m.body[4:].decode() for m in answer if m.kind == "V"]


def test_functions_are_about_whom_the_session_names_where_no_catalog_is_known(prepared, world, how_many):  # noqa: F811
    p = prepared(router={"control_user": "nobody_here"}, tenant={"local_only": 0}, default_pool_size=1).start()
    client = p.connect(timeout=30)
    for org in ORGS:
        client.query("set %s = '%s'" % (SETTING, org))
        assert answers(client, wire.function_call(how_many, ["0"])) == [str(len(rows_of(world, org)))]


def test_functions_called_by_message_are_about_whom_the_session_names(
    session_wide, proxy, world, how_many  # noqa: F811
):
    call = wire.function_call(how_many, ["0"])
    client = session_wide.connect(timeout=30)
    for org in ORGS * 2:
        client.query("set %s = '%s'" % (SETTING, org))
        count = str(len(rows_of(world, org)))
        assert answers(client, call) == [count]
        client.query("begin")
        assert answers(client, call) == [count] and client.ask(query(ALL)).rows == rows_of(world, org)
        client.query("commit")
        assert client.ask(wire.function_call(how_many, ["x"])).codes == ["22P02"]
        assert client.ask(wire.function_call(4)).codes != [] and answers(client, call) == [count]
    client.query("reset %s" % SETTING)
    assert answers(client, call) == ["100"]
    # Nor is what somebody else has left on the server.
    p = proxy(default_pool_size=1)
    leaver, client = p.connect(), p.connect(timeout=30)
    leaver.query("do $$ begin perform set_config('%s', '2', false); end $$" % SETTING)
    assert answers(client, call) == ["100"]
    client.query("begin; set local %s = '2'" % SETTING)
    assert answers(client, call) == [str(len(rows_of(world, "2")))]
    client.query("commit")


def test_a_step_that_fails_is_the_answer_to_a_function_call(proxy, world):  # noqa: F811
    client = proxy().connect(timeout=30)
    client.query("begin isolation level serializable read only")
    client.query("savepoint s")
    assert client.ask(wire.function_call(1777, ["x"])).codes != []  # whatever it is: an error, and in a failed transaction
    assert client.ask(wire.function_call(1777, ["x"])).codes == ["25P02"]
    assert client.query("rollback; select 1").rows == [("1",)]
    large_object = client.query("begin; select lo_create(0)").value
    assert client.ask(wire.function_call(964, [large_object])).errors == []  # lo_unlink, as it came
    client.query("rollback")
