"""The gate: enter, definitions, rights; by SQL alone, as application roles with few rights."""

import json

import pytest
from cloud import enter, fingerprint
from harness import takes
from wire import query


def locks(cloud, pid):
    return cloud.rows(
        "select relation::regclass, mode from pg_locks where pid = %s and locktype = 'relation' and relation in"
        " (select oid from pg_class where relname like 'documents%%') and relation::regclass::text !~ 'key|idx' order by 1, 2"
        % pid
    )


# ------------------------------------------------------------------ enter


def test_enter_answers_with_the_routing(gate):
    app = gate.connect()
    assert [tuple(row) for row in app.query(enter()).rows] == [("local", "0")]
    gate.sql("insert into lokadb.organizations (org, profile, server, generation) values ('1', 'fdw+direct', 's', 41)")
    error = app.fails(enter())
    assert error["C"] == "LK001" and error["M"] == "lokadb: the routing of organization 1 changed"
    assert json.loads(error["D"]) == {"org": "1", "profile": "fdw+direct", "generation": 41, "stale": None}
    assert [tuple(row) for row in app.query(enter(generation=41)).rows] == [("fdw+direct", "41")]
    # it came home: the old number stays wrong
    gate.sql("update lokadb.organizations set profile = 'local', server = null, generation = default where org = '1'")
    for generation in (0, 41):
        assert app.fails(enter(generation=generation))["C"] == "LK001"


def test_only_an_organization_can_be_entered(gate):
    app = gate.connect()
    for name in ("", "*", " 2", "+2", "02", "x", "-9223372036854775808", "9999999999999999999"):
        assert app.fails(enter(name))["C"] == "22P02", name
    assert app.fails("select lokadb.enter(null, 0)")["C"] == "22P02"


def test_an_autocommit_enter_leaves_no_lock_and_a_transaction_keeps_it(gate):
    app = gate.connect()
    pid = app.value("select pg_backend_pid()")
    tables = {"public.documents": fingerprint(gate)}
    app.query(enter(tables=tables))
    assert gate.value("select count(*) from pg_locks where pid = %s and locktype <> 'virtualxid'" % pid) == "0"
    app.query("begin; " + enter(tables=tables))
    assert locks(gate, pid) == [("documents", "RowExclusiveLock")]
    assert (
        gate.value(
            "select count(*) from pg_locks where pid = %s and locktype = 'advisory' and mode = 'ShareLock'" % pid
        )
        == "1"
    )
    app.query("rollback; begin read only; " + enter(tables=tables, write=False))
    assert locks(gate, pid) == [("documents", "AccessShareLock")]
    app.query("rollback; begin; savepoint s; " + enter(tables=tables) + "; rollback to s")
    assert locks(gate, pid) == []
    assert app.value("select current_setting('lokadb.entered', true)") in (None, "")


def test_a_pause_is_waited_for_and_told(gate):
    app, pauser, late = gate.connect(), gate.connect("postgres"), gate.connect()
    pauser.query("select pg_advisory_lock(lokadb.pause_key('1'))")
    app.query(enter("2"))
    with takes(4, 9):
        error = app.fails(enter("1"))
    assert (error["C"], error["M"]) == ("55P03", "lokadb: organization 1 is paused")
    # a transaction that had to wait has an old snapshot above READ COMMITTED
    late.query("begin isolation level repeatable read; select 1")
    late.send(query(enter("1")))
    assert late.is_silent(0.5)
    pauser.query("select pg_advisory_unlock_all()")
    assert late.ready().codes == ["40001"]
    pauser.query("select pg_advisory_lock(lokadb.pause_key('*'))")
    late.query("rollback; " + enter("1"))
    with takes(4, 9):
        error = late.fails("select lokadb.enter_all()")
    assert (error["C"], error["M"]) == ("55P03", "lokadb: an organization is being moved")


def test_one_who_entered_goes_on_during_a_pause(gate):
    app, pauser = gate.connect(), gate.connect("postgres")
    app.query("begin; " + enter())
    assert pauser.value("select pg_try_advisory_lock(lokadb.pause_key('1'))") == "f"
    pauser.query("set lock_timeout = '300ms'")
    assert pauser.fails("select pg_advisory_lock(lokadb.pause_key('1'))")["C"] == "55P03"
    app.query(enter() + "; select lokadb.put_refs('documents', '1', '{77}'); commit")
    assert pauser.value("select pg_try_advisory_lock(lokadb.pause_key('1'))") == "t"


def test_keys_that_were_looked_up_must_still_belong_there(gate):
    app = gate.connect()
    app.query(enter("1", keys={"public.documents": ["2", "4"]}))
    for keys in (["1"], ["2", "3"], ["999"]):
        error = app.fails(enter("1", keys={"public.documents": keys}))
        assert error["C"] == "LK001" and json.loads(error["D"])["stale"] == "public.documents"
    for what in ({"tables": {"public.nothing": "x"}}, {"keys": {"public.audit": ["1"]}}):
        assert app.fails(enter("1", **what))["C"] == "LK001"
    gate.sql("delete from audit; delete from documents where id = 2")
    assert app.fails(enter("1", keys={"public.documents": ["2"]}))["C"] == "LK001"
    assert gate.connect("mick", password="mick-pw").fails(enter("1", keys={"public.documents": ["4"]}))["C"] == "42501"


def test_above_read_committed_an_old_snapshot_sees_the_old_routing(gate):
    """So such a transaction's gate is asked once more, in autocommit, while it holds the lock."""
    app, control = gate.connect(), gate.connect()
    app.query("begin isolation level repeatable read; select count(*) from documents")
    gate.sql("insert into lokadb.organizations (org, profile, server) values ('1', 'fdw', 's')")
    app.query(enter("1"))
    assert control.fails(enter("1"))["C"] == "LK001"


# ------------------------------------------------------------------ definitions

CHANGES = [
    "create schema app; create view app.documents as select 1",
    "drop view app.documents",
    "alter table documents add column x int",
    "alter table documents alter title set default 'x'",
    "alter table documents alter title drop default",
    "alter table documents alter x type bigint",
    "alter table documents alter title set not null",
    "alter table documents drop column x",
    "alter table documents rename secret to hidden",
    "alter table documents alter title drop not null",
    "alter table documents add constraint c check (title <> 'x')",
    "alter table documents drop constraint c",
    "alter table documents__local add constraint c check (title <> 'x') not valid",
    "alter table documents__local add constraint f foreign key (title) references texts not valid",
    "create trigger tr after insert on documents for each statement execute function f()",
    "create trigger tr2 before insert on documents for each row execute function f()",
    "create trigger tr3 before insert on documents__local for each row execute function f()",
    "alter table documents__local disable trigger tr3",
    "drop trigger tr3 on documents__local",
    "create policy p on documents using (true)",
    "alter policy p on documents using (false)",
    "drop policy p on documents",
    "create policy p on documents__local using (true)",
    "alter table documents no force row level security",
    "create rule r as on delete to documents do also nothing",
    "create rule r2 as on insert to documents do also nothing",
    "create or replace rule r2 as on insert to documents do also select 1",
    "drop rule r on documents",
    "grant truncate on documents to other",
    "grant update (title) on documents to other",
    "revoke update (title) on documents from other",
    "alter table documents owner to other",
    "alter table documents alter title set statistics 7",
]
NO_CHANGES = [
    "analyze documents",
    "vacuum documents",
    "vacuum full documents__local",
    "vacuum freeze documents__local",
    "create index i on documents__local (title)",
    "create index j on documents (title)",
    "drop index j",
    "reindex table documents__local",
    "insert into documents values (50, 1)",
    "comment on table documents is 'x'",
    "create view v as select * from documents",
    "update documents set hidden = 'z'",
    "create table k (d bigint references documents__refs)",
    "create foreign table part (id bigint not null, organization_id bigint not null, title text, hidden text) server s;"
    " alter table documents attach partition part for values in (9)",
]


def test_every_change_of_a_table_changes_its_fingerprint_and_nothing_else_does(gate):
    gate.sql(
        "create function f() returns trigger language plpgsql as 'begin return new; end'; create table texts (t text primary key);"
        " create server s foreign data wrapper postgres_fdw; alter table documents__local drop constraint documents_organization_id_fkey"
    )
    seen = [fingerprint(gate)]
    for change in CHANGES:
        gate.sql(change)
        seen.append(fingerprint(gate))
        assert seen[-1] != seen[-2], change
    app = gate.connect()
    tables = {"public.documents": seen[-1]}
    for change in NO_CHANGES:
        gate.sql(change)
        assert fingerprint(gate) == seen[-1], change
        app.query(enter(tables=tables))
    gate.sql("alter table documents alter title set default 'y'")
    assert app.fails(enter(tables=tables))["C"] == "LK001"
    for new in (
        "create function g() returns int language sql as 'select 1'",
        "create operator <~> (leftarg = text, rightarg = text, function = textcat)",
        "create cast (text as int) with inout",
    ):
        tables = {"public.documents": fingerprint(gate)}
        app.query(enter(tables=tables))
        gate.sql(new)
        assert app.fails(enter(tables=tables))["C"] == "LK001", new


@pytest.mark.parametrize(
    "ddl",
    [
        "create trigger tr after insert on documents for each statement execute function f()",
        "alter table documents add column x int",
        "create policy p on documents using (true)",
        "alter table documents alter title set default 'x'",
        "drop table documents cascade",
    ],
)
def test_ddl_waits_for_a_transaction_that_entered(gate, ddl):
    gate.sql("create function f() returns trigger language plpgsql as 'begin return new; end'")
    app, admin = gate.connect(), gate.connect("postgres")
    tables = {"public.documents": fingerprint(gate)}
    app.query("begin; " + enter(tables=tables))
    admin.query("set lock_timeout = '300ms'")
    assert admin.fails(ddl)["C"] == "55P03"
    app.query("commit")
    admin.query(ddl)
    assert app.fails(enter(tables=tables))["C"] == "LK001"


# ------------------------------------------------------------------ rights


def test_rights_are_those_of_postgres(gate):
    app, other, mick = gate.connect(), gate.connect("other"), gate.connect("mick", password="mick-pw")
    T = "public.documents"
    for need in ({"SELECT": []}, {"INSERT": ["id"], "UPDATE": ["title"], "DELETE": [], "SELECT": ["secret"]}):
        app.query(enter(rights={T: need}))
    for need in ({"SELECT": []}, {"SELECT": ["id"]}, {"SELECT": ["id", "title"]}):
        other.query(enter(rights={T: need}))
    for need in (
        {"SELECT": ["secret"]},
        {"SELECT": ["id", "secret"]},
        {"INSERT": []},
        {"UPDATE": ["title"]},
        {"DELETE": []},
    ):
        error = other.fails(enter(rights={T: need}))
        assert (error["C"], error["M"]) == ("42501", "permission denied for table documents"), need
    assert mick.fails(enter(rights={T: {"SELECT": []}}))["C"] == "42501"
    assert mick.fails('select lokadb.require(\'{"public.documents": {"SELECT": []}}\')')["C"] == "42501"
    # SET ROLE counts
    gate.sql("grant app to other")
    other.query("set role app; " + enter(rights={T: {"DELETE": []}}))
    gate.sql("revoke app from other")
    # a closed schema closes its tables
    gate.sql(
        "create schema inner_; create table inner_.t (id bigint primary key, organization_id bigint not null); grant all on inner_.t to app"
    )
    gate.add("inner_.t")
    for function in (
        enter(rights={"inner_.t": {"SELECT": []}}),
        'select lokadb.require(\'{"inner_.t": {"SELECT": []}}\')',
    ):
        error = app.fails(function)
        assert (error["C"], error["M"]) == ("42501", "permission denied for schema inner_")


def test_a_revoke_is_seen_in_the_middle_of_a_transaction(gate):
    app = gate.connect()
    rights = enter(rights={"public.documents": {"UPDATE": ["title"]}})
    for isolation in ("read committed", "repeatable read"):
        app.query("begin isolation level %s; %s" % (isolation, rights))
        app.query(rights)
        gate.sql("revoke update on documents from app")
        assert app.fails(rights)["C"] == "42501"
        app.query("rollback")
        gate.sql("grant update on documents to app")


def test_application_roles_reach_nothing_else(gate):
    app = gate.connect()
    for statement in (
        "select * from documents__refs",
        "insert into documents__refs values (99, 1)",
        "select * from lokadb.tables",
        "select * from lokadb.settings",
        "select connection from lokadb.organizations",
        "insert into lokadb.organizations values ('9', 'fdw')",
        "select nextval('lokadb.generation')",
        "select lokadb.fingerprint('documents')",
        "select lokadb.refs_step('documents', '1', 'INSERT')",
        "select lokadb.add_table('documents')",
        "select lokadb.remove_table('documents')",
        "select lokadb.swap_in('1', '{}')",
        "select lokadb.refuse('x')",
        "create table lokadb.x ()",
        "alter table documents disable trigger all",
        "delete from documents__local",
        "truncate documents",
        "set row_security = off; select * from documents",
    ):
        assert app.fails(statement)["C"] == "42501", statement
    app.query(
        "reset row_security; select org, server, profile from lokadb.organizations; select lokadb.tenant(), lokadb.nobody()"
    )


def test_trigger_functions_cannot_be_put_on_a_table_of_ones_own(gate):
    """They would write refs of any organization."""
    app = gate.connect()
    app.query("create temp table trap (id bigint, organization_id bigint, document_id bigint)")
    functions = gate.rows(
        "select oid::regproc::text from pg_proc where pronamespace = 'lokadb'::regnamespace and prorettype = 'trigger'::regtype"
    )
    assert len(functions) > 8
    for (function,) in functions:
        error = app.fails("create trigger t after insert on trap for each row execute function %s()" % function)
        assert error["C"] == "42501", function


@pytest.mark.parametrize("name", ["text", "regclass", "name", "jsonb", "uuid", "record"])
def test_a_type_of_ones_own_does_not_get_into_the_functions(gate, name):
    """pg_temp comes first unless it is named in search_path: a domain's check would run with the owner's rights."""
    app = gate.connect()
    app.query(
        "create function pg_temp.steal(x pg_catalog.text) returns boolean language plpgsql as"
        " $$ begin raise exception 'runs as %', current_user using errcode = 'TRAPP'; end $$"
    )
    app.query("create domain pg_temp.%s as pg_catalog.text check (pg_temp.steal(value))" % name)
    app.query(
        "create temp table documents__refs (id bigint, organization_id bigint); create temp table documents (id bigint)"
    )
    app.query(
        "begin; select * from lokadb.enter('1', 0, '{}', true, '{\"public.documents\": [\"2\"]}', '{\"public.documents\": {\"SELECT\": []}}')"
    )
    app.query("select * from lokadb.find_refs('public.documents', '{1,2}'::bigint[])")
    app.query(
        "select lokadb.put_refs('public.documents', '1', '{70}'), lokadb.del_refs('public.documents', '1', '{70}')"
    )
    app.query('select lokadb.check_parents(\'1\', \'{"public.messages": {"document_id": ["2"]}}\'), lokadb.enter_all()')
    app.query(
        "insert into public.documents values (71, 1); insert into public.messages values (71, 71); delete from public.documents where id = 71"
    )
    app.query("savepoint s")
    assert app.fails("insert into public.documents values (71, 1), (71, 2)")["C"] == "23505"
    app.query(
        "rollback to s; set local lokadb.tenant = '1'; select * from public.documents; insert into public.documents__local as d values (72, 1) on conflict (id) do nothing"
    )
    app.query("commit")
