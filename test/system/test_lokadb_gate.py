"""The functions of the gate, by SQL alone, as application roles with few rights."""

import json

import pytest
from cloud import ORGANIZATIONS
from harness import takes
from wire import copy_data, copy_done, query

SETUP = ORGANIZATIONS + """
create table documents (id bigint primary key, organization_id bigint not null references organizations, title text, secret text);
create table messages (id bigint primary key, document_id bigint not null references documents on delete cascade, body text);
create table notes (id uuid primary key default gen_random_uuid(), organization_id bigint not null, doc bigint);
create table audit (document_id bigint references documents on delete restrict);
insert into documents select g, 1 + g % 2, 'doc ' || g from generate_series(1, 4) g; -- 1 3: org 2, 2 4: org 1
insert into messages select g, g, 'm' from generate_series(1, 4) g;
grant select, insert, update, delete on documents, messages, notes to app;
grant select (id, title) on documents to other;
"""


@pytest.fixture
def gate(cloud):
    cloud.sql(SETUP)
    for words in (["documents"], ["messages"], ["notes", "-relation", "doc=documents"]):
        cloud.add(*words)
    return cloud


def fingerprint(cloud, table="public.documents"):
    return cloud.value("select lokadb.fingerprint('%s')" % table)


def enter(org="1", generation=0, tables=None, write=True, keys=None, rights=None):
    return "select profile, generation from lokadb.enter('%s', %d, '%s', %s, '%s', '%s')" % (
        org, generation, json.dumps(tables or {}), write, json.dumps(keys or {}), json.dumps(rights or {}))


def locks(cloud, pid):
    return cloud.rows(
        "select relation::regclass, mode from pg_locks where pid = %s and locktype = 'relation' and relation in"
        " (select oid from pg_class where relname like 'documents%%') and relation::regclass::text !~ 'key|idx' order by 1, 2" % pid)


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
    assert gate.value("select count(*) from pg_locks where pid = %s and locktype = 'advisory' and mode = 'ShareLock'" % pid) == "1"
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


# ------------------------------------------------------------------ definitions

CHANGES = [
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
    "analyze documents", "vacuum documents", "vacuum full documents__local", "vacuum freeze documents__local", "create index i on documents__local (title)",
    "create index j on documents (title)", "drop index j", "reindex table documents__local", "insert into documents values (50, 1)", "comment on table documents is 'x'",
    "create view v as select * from documents", "update documents set hidden = 'z'", "create table k (d bigint references documents__refs)",
    "create foreign table part (id bigint not null, organization_id bigint not null, title text, hidden text) server s;"
    " alter table documents attach partition part for values in (9)",
]


def test_every_change_of_a_table_changes_its_fingerprint_and_nothing_else_does(gate):
    gate.sql("create function f() returns trigger language plpgsql as 'begin return new; end'; create table texts (t text primary key);"
             " create server s foreign data wrapper postgres_fdw; alter table documents__local drop constraint documents_organization_id_fkey")
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


@pytest.mark.parametrize("ddl", [
    "create trigger tr after insert on documents for each statement execute function f()", "alter table documents add column x int",
    "create policy p on documents using (true)", "alter table documents alter title set default 'x'", "drop table documents cascade"])
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
    for need in ({"SELECT": ["secret"]}, {"SELECT": ["id", "secret"]}, {"INSERT": []}, {"UPDATE": ["title"]}, {"DELETE": []}):
        error = other.fails(enter(rights={T: need}))
        assert (error["C"], error["M"]) == ("42501", "permission denied for table documents"), need
    assert mick.fails(enter(rights={T: {"SELECT": []}}))["C"] == "42501"
    assert mick.fails("select lokadb.require('{\"public.documents\": {\"SELECT\": []}}')")["C"] == "42501"
    # SET ROLE counts
    gate.sql("grant app to other")
    other.query("set role app; " + enter(rights={T: {"DELETE": []}}))
    gate.sql("revoke app from other")
    # a closed schema closes its tables
    gate.sql("create schema inner_; create table inner_.t (id bigint primary key, organization_id bigint not null); grant all on inner_.t to app")
    gate.add("inner_.t")
    for function in (enter(rights={"inner_.t": {"SELECT": []}}), "select lokadb.require('{\"inner_.t\": {\"SELECT\": []}}')"):
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
        "select * from documents__refs", "insert into documents__refs values (99, 1)", "select * from lokadb.tables", "select * from lokadb.settings",
        "select connection from lokadb.organizations", "insert into lokadb.organizations values ('9', 'fdw')", "select nextval('lokadb.generation')",
        "select lokadb.fingerprint('documents')", "select lokadb.refs_step('documents', '1', 'INSERT')", "select lokadb.add_table('documents')",
        "select lokadb.remove_table('documents')", "select lokadb.swap_in('1', '{}')", "select lokadb.refuse('x')", "create table lokadb.x ()",
        "alter table documents disable trigger all", "delete from documents__local", "truncate documents", "set row_security = off; select * from documents"):
        assert app.fails(statement)["C"] == "42501", statement
    app.query("reset row_security; select org, server, profile from lokadb.organizations; select lokadb.tenant(), lokadb.nobody()")


def test_trigger_functions_cannot_be_put_on_a_table_of_ones_own(gate):
    """They would write refs of any organization."""
    app = gate.connect()
    app.query("create temp table trap (id bigint, organization_id bigint, document_id bigint)")
    functions = gate.rows("select oid::regproc::text from pg_proc where pronamespace = 'lokadb'::regnamespace and prorettype = 'trigger'::regtype")
    assert len(functions) > 8
    for (function,) in functions:
        error = app.fails("create trigger t after insert on trap for each row execute function %s()" % function)
        assert error["C"] == "42501", function


@pytest.mark.parametrize("name", ["text", "regclass", "name", "jsonb", "uuid", "record"])
def test_a_type_of_ones_own_does_not_get_into_the_functions(gate, name):
    """pg_temp comes first unless it is named in search_path: a domain's check would run with the owner's rights."""
    app = gate.connect()
    app.query("create function pg_temp.steal(x pg_catalog.text) returns boolean language plpgsql as"
              " $$ begin raise exception 'runs as %', current_user using errcode = 'TRAPP'; end $$")
    app.query("create domain pg_temp.%s as pg_catalog.text check (pg_temp.steal(value))" % name)
    app.query("create temp table documents__refs (id bigint, organization_id bigint); create temp table documents (id bigint)")
    app.query("begin; select * from lokadb.enter('1', 0, '{}', true, '{\"public.documents\": [\"2\"]}', '{\"public.documents\": {\"SELECT\": []}}')")
    app.query("select * from lokadb.find_refs('public.documents', '{1,2}'::bigint[])")
    app.query("select lokadb.put_refs('public.documents', '1', '{70}'), lokadb.del_refs('public.documents', '1', '{70}')")
    app.query("select lokadb.check_parents('1', '{\"public.messages\": {\"document_id\": [\"2\"]}}'), lokadb.enter_all()")
    app.query("insert into public.documents values (71, 1); insert into public.messages values (71, 71); delete from public.documents where id = 71")
    app.query("savepoint s")
    assert app.fails("insert into public.documents values (71, 1), (71, 2)")["C"] == "23505"
    app.query("rollback to s; set local lokadb.tenant = '1'; select * from public.documents; insert into public.documents__local as d values (72, 1) on conflict (id) do nothing")
    app.query("commit")


# ------------------------------------------------------------------ refs


def test_find_refs_in_the_types_of_clients(gate):
    app = gate.connect()
    for array in ("array[1, 2, 99]::int[]", "array[1, 2, 99]::bigint[]", "array['1', '2', '99']", "'{1,2,99}'::text[]"):
        assert sorted(map(tuple, app.query("select * from lokadb.find_refs('documents', %s)" % array).rows)) == [("1", "2"), ("2", "1")], array
    key = gate.value("insert into notes (organization_id) values (2) returning id")
    for type in ("uuid", "text"):
        assert app.query("select org from lokadb.find_refs('notes', array['%s']::%s[])" % (key, type)).value == "2"
    assert gate.connect("other").query("select org from lokadb.find_refs('documents', '{1}'::int[])").value == "2"
    assert gate.connect("mick", password="mick-pw").fails("select * from lokadb.find_refs('documents', '{1}'::int[])")["C"] == "42501"
    assert app.fails("select * from lokadb.find_refs('audit', '{1}'::int[])")["C"] == "42P01"


def test_nobody_writes_refs_of_an_organization_that_was_not_entered(gate):
    app = gate.connect()
    for step in ("put_refs", "del_refs"):
        call = "select lokadb.%s('documents', '%s', '{2}')"
        assert app.fails(call % (step, "1"))["C"] == "55000"  # not at all
        app.query(enter("1"))
        assert app.fails(call % (step, "1"))["C"] == "55000"  # in a transaction that is over
        app.query("begin; " + enter("1"))
        assert app.fails(call % (step, "2"))["C"] == "55000"  # another
        app.query("rollback; begin; savepoint s; " + enter("1") + "; rollback to s")
        assert app.fails(call % (step, "1"))["C"] == "55000"  # in a savepoint that is gone
        app.query("rollback; begin; " + enter("1") + "; " + enter("2"))
        assert app.fails(call % (step, "1"))["C"] == "55000"  # the last one counts
        app.query("rollback")
    pauser = gate.connect("postgres")
    pauser.query("select pg_advisory_lock(lokadb.pause_key('1'))")
    assert app.fails("begin; set local lokadb.entered = '1'; select lokadb.put_refs('documents', '1', '{88}')")["C"] == "55000"  # claimed only


def test_put_refs_and_del_refs(gate):
    app = gate.connect()
    refs = lambda: dict(gate.rows("select id, organization_id from documents__refs where id > 4"))
    app.query("begin; " + enter("1"))
    assert app.value("select lokadb.put_refs('documents', '1', '{50,51,51,2}')") == "2"
    app.query("commit")
    assert refs() == {"50": "1", "51": "1"}
    error = app.fails("begin; " + enter("2") + "; select lokadb.put_refs('documents', '2', '{60,51,2}')")
    assert (error["C"], error["s"], error["t"], error["n"]) == ("23505", "public", "documents", "documents_pkey")
    assert error["M"] == 'duplicate key value violates unique constraint "documents_pkey"' and error["D"] == "Key (id)=(2) already exists."
    app.query("rollback; begin; " + enter("2"))
    assert app.value("select lokadb.del_refs('documents', '2', '{50,51}')") == "0"  # another's
    app.query(enter("1"))
    assert app.value("select lokadb.del_refs('documents', '1', '{50,999}')") == "1"
    app.query("commit")
    assert refs() == {"51": "1"}
    # rights: INSERT for one, DELETE for the other
    other = gate.connect("other")
    for step in ("put_refs", "del_refs"):
        assert other.fails("begin; " + enter("1") + "; select lokadb.%s('documents', '1', '{70}')" % step)["C"] == "42501"
        other.query("rollback")


def test_a_cloud_table_that_refers_to_a_key_keeps_it(gate):
    gate.sql("insert into audit values (2)")
    app = gate.connect()
    error = app.fails("begin; " + enter("1") + "; select lokadb.del_refs('documents', '1', '{2}')")
    assert (error["C"], error["t"], error["n"]) == ("23503", "audit", "audit_document_id_fkey")
    assert "__refs" not in error["M"] and '"documents"' in error["M"]
    app.query("rollback")
    assert app.fails("delete from documents where id = 2")["C"] == "23503"
    assert gate.cluster.admin[gate.name].fails("insert into audit values (999)")["C"] == "23503"


def test_a_cycle_over_two_databases_ends(gate):
    app, second = gate.connect(), gate.connect()
    app.query("begin; " + enter("1") + "; select lokadb.put_refs('documents', '1', '{80}')")
    second.query("begin; " + enter("2"))
    with takes(4, 9):
        error = second.fails("select lokadb.put_refs('documents', '2', '{80}')")
    assert error["C"] == "40P01" and "two databases" in error["D"]


def test_entries_that_were_there_are_locked(gate):
    app, repair = gate.connect(), gate.connect("postgres")
    app.query("begin; " + enter("1") + "; select lokadb.put_refs('documents', '1', '{2}')")
    repair.query("set lock_timeout = '300ms'")
    assert repair.fails("delete from documents__refs where id = 2")["C"] == "55P03"
    app.query("rollback")
    repair.query("begin; delete from documents__refs where id = 2; rollback")


def test_check_parents_says_what_the_trigger_says(gate):
    app = gate.connect()
    app.query("""select lokadb.check_parents('1', '{"public.messages": {"document_id": ["2", "999"]}}')""")
    called = app.fails("""select lokadb.check_parents('1', '{"public.messages": {"document_id": ["2", "3"]}}')""")
    trigger = app.fails("insert into messages (id, document_id, organization_id) values (9, 3, 1)")
    for error in (called, trigger):
        assert [error[f] for f in "CMstcn"] == [
            "23514", "lokadb: the parent of messages (document_id=3) belongs to another organization", "public", "messages", "document_id",
            "messages_document_id_lokadb_parent"]
    declared = app.fails("""select lokadb.check_parents('1', '{"public.notes": {"doc": ["3"]}}')""")
    assert (declared["C"], declared["c"]) == ("23514", "doc")
    assert gate.connect("other").fails("""select lokadb.check_parents('1', '{"public.messages": {"document_id": ["3"]}}')""")["C"] == "42501"


# ------------------------------------------------------------------ policies and triggers


def test_the_policy_shows_the_named_organization(gate):
    app = gate.connect()
    for tenant, rows in (("1", "2"), ("2", "2"), ("3", "0"), ("", "4"), ("*", "4"), ("-9223372036854775808", "0")):
        app.query("rollback; begin; set local lokadb.tenant = '%s'" % tenant)
        assert app.value("select count(*) from documents") == rows, tenant
        assert app.query("update documents set title = 'x'").tags == ["UPDATE " + rows]
    app.query("rollback; begin; set local lokadb.tenant = '1'")
    assert app.value("select count(*) from documents where id = 1") == "0"  # another's, by id
    assert app.fails("insert into documents values (90, 2)")["C"] == "42501"
    app.query("rollback")


def test_key_and_tenant_cannot_be_changed(gate):
    app = gate.connect()
    for change in ("id = 100", "organization_id = 3", "id = id + 0, organization_id = 2"):
        assert app.fails("update documents set %s where id = 2" % change)["C"] == "0A000", change
    app.query("update documents set id = id, organization_id = 1 where id = 2")


def test_rows_and_refs_go_together(gate):
    app = gate.connect()
    app.query("begin; insert into documents values (60, 1); savepoint s; insert into documents values (61, 1); delete from documents where id = 60; rollback to s; commit")
    app.query("delete from documents where id = 4")  # cascades to messages
    assert gate.rows("select id from documents__refs except select id from documents") == []
    assert gate.rows("select id from documents except select id from documents__refs") == []
    assert gate.value("select count(*) from messages__refs") == gate.value("select count(*) from messages") == "3"
    # a stale entry of the same organization heals, another's is a duplicate
    gate.sql("insert into documents__refs values (70, 1)")
    error = app.fails("insert into documents values (70, 2)")
    assert [error[f] for f in "Cstn"] == ["23505", "public", "documents", "documents_pkey"]
    app.query("insert into documents values (70, 1)")


def test_the_local_part_by_name(gate):
    app, other = gate.connect(), gate.connect("other")
    upsert = "insert into documents__local as documents (id, organization_id, title) values (%d, %d, 'new') on conflict (id) do update set title = 'up'"
    assert app.fails("select count(*) from documents__local")["C"] == "0A000"  # nobody is named
    app.query("begin; set local lokadb.tenant = '1'; savepoint s")
    assert app.query(upsert % (2, 1) + " returning title").value == "up"
    assert [list(row[:2]) for row in app.query("select id, title, count(*) from documents__local group by id order by id").rows] == [["2", "up"], ["4", "doc 4"]]
    assert app.value("select count(*) from documents__local") == "2"
    for bad in (upsert % (90, 2), upsert % (1, 1)):
        assert app.fails(bad)["C"] in ("42501", "23505")
        app.query("rollback to s")
    assert app.fails("delete from documents__local where id = 2")["C"] == "42501"
    app.query("rollback")
    gate.sql("insert into lokadb.organizations (org, profile, server) values ('1', 'fdw', 's')")
    assert app.fails("begin; set local lokadb.tenant = '1'; select count(*) from documents__local")["C"] == "0A000"
    assert other.fails("begin; set local lokadb.tenant = '2'; select id from documents__local")["C"] == "42501"
    app.query("rollback; begin; set local lokadb.tenant = '2'; select * from documents__local; rollback")
    gate.sql("revoke select on documents from app")
    assert app.fails("begin; set local lokadb.tenant = '2'; select * from documents__local")["C"] == "42501"


def test_organizations_that_have_moved_are_guarded(gate):
    gate.sql("insert into lokadb.organizations (org, profile, server) values ('3', 'fdw', 's'), ('4', 'local', null)")
    admin = gate.connect("postgres")
    for statement in ("delete from organizations where id = 3", "update organizations set id = 33 where id = 3"):
        error = admin.fails(statement)
        assert (error["C"], error["t"]) == ("23503", "organizations") and "bring it home" in error["M"]
    admin.query("update organizations set id = 3, name = 'x' where id = 3; delete from organizations where id = 4")
    admin.query("insert into organizations values (4); begin")
    gate.connect("postgres").query("select pg_advisory_lock(lokadb.pause_key('4'))")
    assert admin.fails("delete from organizations where id = 4")["C"] == "55P03"


def test_above_read_committed_an_old_snapshot_sees_the_old_routing(gate):
    """So such a transaction's gate is asked once more, in autocommit, while it holds the lock."""
    app, control = gate.connect(), gate.connect()
    app.query("begin isolation level repeatable read; select count(*) from documents")
    gate.sql("insert into lokadb.organizations (org, profile, server) values ('1', 'fdw', 's')")
    app.query(enter("1"))
    assert control.fails(enter("1"))["C"] == "LK001"


def test_a_deferred_foreign_key_is_checked_before_the_other_database_commits(gate):
    gate.sql("alter table audit drop constraint audit_document_id_fkey; insert into audit values (2);"
             " alter table audit add constraint later foreign key (document_id) references documents__refs deferrable initially deferred")
    app = gate.connect()
    assert app.value("begin; select 1") == "1"
    app.query(enter("1"))
    assert app.value("select lokadb.del_refs('documents', '1', '{2}')") == "1"
    error = app.fails("set constraints all immediate")
    assert (error["C"], error["n"]) == ("23503", "later")


def test_the_refs_triggers_wait_a_bounded_time(gate):
    app, second = gate.connect(), gate.connect()
    app.query("begin; " + enter("1") + "; select lokadb.put_refs('documents', '1', '{80}')")
    with takes(4, 9):
        assert second.fails("insert into documents values (80, 2)")["C"] == "55P03"


def test_rows_of_several_organizations_in_one_statement(gate):
    app = gate.connect()
    said = app.query("insert into documents (id, organization_id, title) select k, o, 't' from unnest(array[20, 21, 22]::bigint[], array[1, 2, 3]::bigint[]) x(k, o) returning id, organization_id")
    assert said.tags == ["INSERT 0 3"] and sorted(map(tuple, said.rows)) == [("20", "1"), ("21", "2"), ("22", "3")]
    assert app.query("insert into notes (organization_id) values (1), (2) returning id").tags == ["INSERT 0 2"]
    assert app.value("insert into messages (id, document_id) values (30, 21) returning organization_id") == "2"
    app.query("insert into messages (id, document_id) select id + 100, document_id from messages")
    assert gate.value("select count(*) from messages m join documents d on d.id = m.document_id where m.organization_id <> d.organization_id") == "0"
    assert app.value("begin; set local lokadb.tenant = '3'; insert into messages (id, document_id) values (31, 22) returning organization_id") == "3"


def test_copy_goes_through_a_temporary_table(gate):
    app = gate.connect()
    assert app.fails("copy documents (id, organization_id) from stdin")["C"] == "0A000"
    app.query("begin; create temp table t on commit drop as select id, organization_id from documents with no data")
    app.send(query("copy t from stdin"))
    app.read_until("G")
    app.send(copy_data(b"40\t1\n41\t2\n") + copy_done())
    app.ready()
    app.query("insert into documents (id, organization_id) select * from t; commit")
    assert gate.value("select count(*) from documents__refs where id in (40, 41)") == "2"


def test_a_role_with_rights_on_some_columns_reads_them(gate):
    other = gate.connect("other")
    other.query("begin; set local lokadb.tenant = '2'")
    assert sorted(map(tuple, other.query("select id, title from documents").rows)) == [("1", "doc 1"), ("3", "doc 3")]
    assert other.fails("select secret from documents")["C"] == "42501"


@pytest.mark.parametrize("tenant, name", [("bigint", "7"), ("int", "7"), ("uuid", "11111111-1111-1111-1111-111111111111"), ("text", "é")])
def test_a_named_organization_opens_no_part_of_another(cloud, tenant, name):
    cloud.sql("create table t (id bigint primary key, o %s not null, v text); grant all on t to app" % tenant)
    cloud.add("t", "-tenant", "o")
    moved = {"uuid": "22222222-2222-2222-2222-222222222222"}.get(tenant, "8")
    cloud.sql("create table part (like t); alter table t attach partition part for values in ('%s')" % moved)
    app = cloud.connect()
    app.query("prepare p as select * from t; set plan_cache_mode = force_generic_plan; prepare q as select * from t where id = $1")
    for statement in ("select * from t", "execute p", "execute q (1)", "delete from t", "update t set v = 'x'"):
        for organization, opened in ((name, False), (moved, True), ("*", True), ("", True), ("NOBODY", False)):
            value = cloud.value("select lokadb.nobody()") if organization == "NOBODY" else organization
            app.query("begin; set local lokadb.tenant = '%s'" % value)
            plan = "\n".join(row[0] for row in app.query("explain (analyze, costs off, timing off) " + statement).rows)
            app.query("rollback")
            assert ("Scan on part" in plan) == opened, (organization, statement, plan)
