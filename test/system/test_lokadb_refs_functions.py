"""Refs, policies and triggers of tables under LokaDB; by SQL alone, as application roles with few rights."""

import pytest
from cloud import enter
from harness import takes
from wire import copy_data, copy_done, query

# ------------------------------------------------------------------ refs


def test_find_refs_in_the_types_of_clients(gate):
    app = gate.connect()
    for array in ("array[1, 2, 99]::int[]", "array[1, 2, 99]::bigint[]", "array['1', '2', '99']", "'{1,2,99}'::text[]"):
        assert sorted(map(tuple, app.query("select * from lokadb.find_refs('documents', %s)" % array).rows)) == [
            ("1", "2"),
            ("2", "1"),
        ], array
    key = gate.value("insert into notes (organization_id) values (2) returning id")
    for type in ("uuid", "text"):
        assert app.query("select org from lokadb.find_refs('notes', array['%s']::%s[])" % (key, type)).value == "2"
    assert gate.connect("other").query("select org from lokadb.find_refs('documents', '{1}'::int[])").value == "2"
    assert (
        gate.connect("mick", password="mick-pw").fails("select * from lokadb.find_refs('documents', '{1}'::int[])")["C"]
        == "42501"
    )
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
    assert (
        app.fails("begin; set local lokadb.entered = '1'; select lokadb.put_refs('documents', '1', '{88}')")["C"]
        == "55000"
    )  # claimed only


def test_put_refs_and_del_refs(gate):
    app = gate.connect()
    refs = lambda: dict(gate.rows("select id, organization_id from documents__refs where id > 4"))
    app.query("begin; " + enter("1"))
    assert app.value("select lokadb.put_refs('documents', '1', '{50,51,51,2}')") == "2"
    app.query("commit")
    assert refs() == {"50": "1", "51": "1"}
    error = app.fails("begin; " + enter("2") + "; select lokadb.put_refs('documents', '2', '{60,51,2}')")
    assert (error["C"], error["s"], error["t"], error["n"]) == ("23505", "public", "documents", "documents_pkey")
    assert (
        error["M"] == 'duplicate key value violates unique constraint "documents_pkey"'
        and error["D"] == "Key (id)=(2) already exists."
    )
    app.query("rollback; begin; " + enter("2"))
    assert app.value("select lokadb.del_refs('documents', '2', '{50,51}')") == "0"  # another's
    app.query(enter("1"))
    assert app.value("select lokadb.del_refs('documents', '1', '{50,999}')") == "1"
    app.query("commit")
    assert refs() == {"51": "1"}
    # rights: INSERT for one, DELETE for the other
    other = gate.connect("other")
    for step in ("put_refs", "del_refs"):
        assert (
            other.fails("begin; " + enter("1") + "; select lokadb.%s('documents', '1', '{70}')" % step)["C"] == "42501"
        )
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
            "23514",
            "lokadb: the parent of messages (document_id=3) belongs to another organization",
            "public",
            "messages",
            "document_id",
            "messages_document_id_lokadb_parent",
        ]
    declared = app.fails("""select lokadb.check_parents('1', '{"public.notes": {"doc": ["3"]}}')""")
    assert (declared["C"], declared["c"]) == ("23514", "doc")
    assert (
        gate.connect("other").fails(
            """select lokadb.check_parents('1', '{"public.messages": {"document_id": ["3"]}}')"""
        )["C"]
        == "42501"
    )


def test_a_deferred_foreign_key_is_checked_before_the_other_database_commits(gate):
    gate.sql(
        "alter table audit drop constraint audit_document_id_fkey; insert into audit values (2);"
        " alter table audit add constraint later foreign key (document_id) references documents__refs deferrable initially deferred"
    )
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
    app.query(
        "begin; insert into documents values (60, 1); savepoint s; insert into documents values (61, 1); delete from documents where id = 60; rollback to s; commit"
    )
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
    assert [
        list(row[:2])
        for row in app.query("select id, title, count(*) from documents__local group by id order by id").rows
    ] == [["2", "up"], ["4", "doc 4"]]
    assert app.value("select count(*) from documents__local") == "2"
    for bad in (upsert % (90, 2), upsert % (1, 1)):
        assert app.fails(bad)["C"] in ("42501", "23505")
        app.query("rollback to s")
    assert app.fails("delete from documents__local where id = 2")["C"] == "42501"
    app.query("rollback")
    gate.sql("insert into lokadb.organizations (org, profile, server) values ('1', 'fdw', 's')")
    assert app.fails("begin; set local lokadb.tenant = '1'; select count(*) from documents__local")["C"] == "0A000"
    of_two = "begin; set local lokadb.tenant = '2'; "
    assert other.query(of_two + "select id from documents__local order by 1").rows == [("1",), ("3",)]
    assert other.fails("rollback; " + of_two + "select organization_id from documents__local")["C"] == "42501"
    gate.sql("revoke select (id) on documents from other")
    assert other.fails("rollback; " + of_two + "select id from documents__local")["C"] == "42501"
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


def test_rows_of_several_organizations_in_one_statement(gate):
    app = gate.connect()
    said = app.query(
        "insert into documents (id, organization_id, title) select k, o, 't' from unnest(array[20, 21, 22]::bigint[], array[1, 2, 3]::bigint[]) x(k, o) returning id, organization_id"
    )
    assert said.tags == ["INSERT 0 3"] and sorted(map(tuple, said.rows)) == [("20", "1"), ("21", "2"), ("22", "3")]
    assert app.query("insert into notes (organization_id) values (1), (2) returning id").tags == ["INSERT 0 2"]
    assert app.value("insert into messages (id, document_id) values (30, 21) returning organization_id") == "2"
    app.query("insert into messages (id, document_id) select id + 100, document_id from messages")
    assert (
        gate.value(
            "select count(*) from messages m join documents d on d.id = m.document_id where m.organization_id <> d.organization_id"
        )
        == "0"
    )
    assert (
        app.value(
            "begin; set local lokadb.tenant = '3'; insert into messages (id, document_id) values (31, 22) returning organization_id"
        )
        == "3"
    )


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


@pytest.mark.parametrize(
    "tenant, name", [("bigint", "7"), ("int", "7"), ("uuid", "11111111-1111-1111-1111-111111111111"), ("text", "é")]
)
def test_a_named_organization_opens_no_part_of_another(cloud, tenant, name):
    cloud.sql("create table t (id bigint primary key, o %s not null, v text); grant all on t to app" % tenant)
    cloud.add("t", "-tenant", "o")
    moved = {"uuid": "22222222-2222-2222-2222-222222222222"}.get(tenant, "8")
    cloud.sql("create table part (like t); alter table t attach partition part for values in ('%s')" % moved)
    app = cloud.connect()
    app.query(
        "prepare p as select * from t; set plan_cache_mode = force_generic_plan; prepare q as select * from t where id = $1"
    )
    for statement in ("select * from t", "execute p", "execute q (1)", "delete from t", "update t set v = 'x'"):
        for organization, opened in ((name, False), (moved, True), ("*", True), ("", True), ("NOBODY", False)):
            value = cloud.value("select lokadb.nobody()") if organization == "NOBODY" else organization
            app.query("begin; set local lokadb.tenant = '%s'" % value)
            plan = "\n".join(row[0] for row in app.query("explain (analyze, costs off, timing off) " + statement).rows)
            app.query("rollback")
            assert ("Scan on part" in plan) == opened, (organization, statement, plan)
