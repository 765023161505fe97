"""lokadb move-org there and back, whatever happens on the way."""

import os
import random
import shutil
import signal
import tempfile
import threading
import time

import pytest

import harness
import lokadb_app
from lokadb_app import TABLES, App, launch, lokadb

ALL = "select '%s', count(*) from %s"


@pytest.fixture
def app(cluster):
    a = App(cluster, "shop%d" % random.randrange(10**9))
    yield a
    a.drop()


def sums(app, database):
    return [app.cluster.sql(ALL % (t, t), database).rows for t in TABLES]


def place(app, org):
    """Where the organization's rows are: "home" or "away", and never both or neither."""
    server = app.sql("select server from lokadb.organizations where org = '%s'" % org).rows
    is_away = bool(server and server[0][0])
    local = sum(int(app.value(t, org)) for t in TABLES)
    assert (local == 0) == is_away, "%d rows at home, server %r" % (local, server)
    return "away" if is_away else "home"


def local_count(self, table, org):
    return self.sql("select count(*) from %s__local where organization_id = %s" % (table, org)).value


App.value = local_count


def test_there_and_back(app):
    before, others = app.content(1), [app.content(o) for o in (2, 3, 4)]
    refs = app.sql("select count(*), sum(id) from documents__refs").rows
    app.add_database(1)
    assert "rows moved" in app.move(1)
    assert place(app, 1) == "away"
    assert app.content(1) == before
    assert [app.content(o) for o in (2, 3, 4)] == others
    assert app.sql("select profile from lokadb.organizations").value == "fdw"
    away = int(app.sql("select generation from lokadb.organizations").value)
    assert "came home" in app.back(1)
    assert place(app, 1) == "home"
    assert app.content(1) == before
    assert [app.content(o) for o in (2, 3, 4)] == others
    assert app.sql("select count(*), sum(id) from documents__refs").rows == refs
    assert int(app.sql("select generation from lokadb.organizations").value) > away
    assert app.sql("select count(*) from pg_foreign_server").value == "0"
    # And once more, over what was left there.
    app.move(1)
    assert app.content(1) == before


def test_arrays_with_nulls_arrive_where_array_nulls_is_off(app):
    app.add_database(1)
    app.cluster.sql("alter database %s_o1 set array_nulls = off" % app.name)
    before = app.content(1)
    app.move(1)
    assert app.content(1) == before
    app.back(1)
    assert app.content(1) == before


def test_the_roles_there_have_dml_and_nothing_else(app):
    app.add_database(1)
    app.move(1)
    name = app.databases[0]
    for role in ("customers_app", "customers_fdw"):
        rights = app.far.sql(
            "select string_agg(privilege_type, ' ' order by privilege_type) from information_schema.role_table_grants"
            " where grantee = '%s' and table_name = 'documents'" % role, name).value
        assert rights == "DELETE INSERT SELECT UPDATE"
        flags = "rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication"
        assert app.far.sql("select %s from pg_roles where rolname = '%s'" % (flags, role), name).value == "f"
    label = app.far.sql("select obj_description('documents'::regclass)", name).value
    assert label.startswith("lokadb: organization 1 database ")


OTHERS = [
    "insert into documents (id, organization_id, title) values (1, 1, 'taken by another')",
    "insert into messages (conversation_id, body) values (md5('2')::uuid, 'of another organization')",
    "select title from documents where id = 1",
    "update documents set title = 'x' where id = 1",
    "delete from conversations where id = md5('2')::uuid",
    "select count(*) from messages",
]


def outcome(connection, sql):
    answer = connection.ask(lokadb_app.wire.query(sql))
    return answer.codes or (answer.rows, answer.tags)


def test_others_are_as_far_away_as_before(app, cluster):
    """For an organization that has moved as in a copy of the database where it has not; test_lokadb_parity.py has what it
    does with its own rows."""
    other = App(cluster, app.name + "_same")
    try:
        app.add_database(1)
        app.move(1)
        with app.connect(tenant=1) as moved, other.connect(tenant=1) as unmoved:
            for sql in OTHERS:
                assert outcome(moved, sql) == outcome(unmoved, sql), sql
        assert [t[0][2] for t in app.content(1)] == [t[0][2] for t in other.content(1)]
        with app.connect(user="reader") as reader:
            assert outcome(reader, "delete from documents") == ["42501"]
            assert outcome(reader, "select * from documents__refs") == ["42501"]
            assert outcome(reader, "select * from lokadb_o1.documents") == ["42501"]
            assert outcome(reader, "select umoptions from pg_user_mappings where umoptions is not null") == ([], ["SELECT 0"])
        assert outcome(app.connect(tenant=2), "select count(*) from documents where id = 4") == ([("0",)], ["SELECT 1"])
        assert outcome(app.cluster.connect(user="postgres", database=app.name), "delete from organizations where id = 1") == ["23503"]
    finally:
        other.drop()


# ------------------------------------------------------------------ what goes wrong


def refusal(app, *more, **kw):
    before = app.content(1)
    text = app.move(1, *more, status=1, **kw)
    assert app.content(1) == before and place(app, 1) == "home"
    return text


def test_targets_that_cannot_be(app):
    to = app.add_database(1)
    assert "the cloud database itself" in refusal(app, to=app.db)
    name = app.databases[0]
    app.far.sql("create table documents (id int)", name)
    assert "has a table public.documents already" in refusal(app)
    app.far.sql("comment on table documents is 'lokadb: organization 7 database 1'", name)
    assert "labelled for another organization" in refusal(app)
    app.far.sql("drop table documents", name)
    app.far.sql("create database latin template template0 encoding 'LATIN1'", "postgres")
    try:
        assert "encoding is LATIN1" in refusal(app, to=app.conninfo("latin"))
    finally:
        app.far.sql("drop database latin with (force)", "postgres")
    assert "does not exist" in refusal(app, to=app.conninfo("nowhere"))
    assert "can be moved" in app.move(1, "-dry-run", to=to)
    assert app.sql("select count(*) from lokadb.organizations").value == "0"


@pytest.mark.parametrize("org", [" 2", "+2", "x", "", "*", "02"])
def test_what_is_not_an_organization(app, org):
    assert "is not an organization" in app.move(org, status=1, to=app.db)


def test_credentials_that_are_missing_or_wrong(app):
    app.add_database(1)
    assert "no fdw credentials of organization 2" in app.move(2, status=1, to=app.conninfo(app.databases[0]))
    other = app.folder / "other"
    lokadb("keygen", "-key", other)
    text = lokadb("move-org", "-db", app.db, "-org", 1, "-to", app.conninfo(app.databases[0]), "-control-plane", app.control,
                  "-key", other, status=1)
    assert "another key file" in text
    assert "at home already" in app.back(1, status=1)
    lokadb("org-credentials", *app.secrets, "-org", 99, "-kind", "fdw", "-user", "customers_fdw", answer="fdw-pw\n")
    assert "has no row" in app.move(99, status=1, to=app.conninfo(app.databases[0]))
    assert place(app, 1) == "home"


def test_the_profile_follows_from_what_the_proxy_has(app):
    app.add_database(1)
    ini = app.folder / "proxy.ini"
    ini.write_text("[databases]\n[customers_app]\nuser = customers_app\n")
    assert "profile fdw)" in app.move(1, "-proxy-config", ini, "-dry-run")
    assert "needs the direct credentials" in app.move(1, "-profile", "fdw+direct", status=1)
    ini.write_text("[databases]\n[customers_app]\nuser = customers_app\npassword = x\n")
    assert "profile fdw+direct)" in app.move(1, "-proxy-config", ini, "-dry-run")
    ini.write_text("[customers_app]\n1 = host=a user=b\n")
    assert "profile fdw+direct)" in app.move(1, "-proxy-config", ini, "-dry-run")
    assert "profile fdw)" in app.move(1, "-proxy-config", ini, "-profile", "fdw", "-dry-run")
    app.move(1, "-proxy-config", "/nowhere", status=1)


def test_triggers_with_transition_tables_are_named_before_a_move(app):
    to = app.add_database(1)
    app.sql("create function noop() returns trigger language plpgsql as 'begin return null; end';"
            "create trigger seen after insert on documents referencing new table as fresh for each statement execute function noop()")
    assert "trigger seen of public.documents uses transition tables" in refusal(app, to=to)


def test_a_return_waits_for_commits_under_way_there(app):
    """SPEC P4a: a direct transaction whose cloud leg is gone holds no pause any more; its row comes home."""
    app.add_database(1)
    app.move(1)
    name = app.databases[0]
    with app.far.connect(user="customers_app", password="app-pw", database=name) as direct:
        direct.query("begin; insert into documents (id, organization_id, title, state, at) values (80000, 1, 'late', 'calm', now())")
        process = launch("move-org", "-db", app.db, "-org", 1, "-back")
        try:
            harness.eventually(lambda: app.far.backends("wait_event_type = 'Lock' and application_name = 'lokadb move-org'"), 20, "it waits")
            direct.query("commit")
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        finally:
            process.kill()
        assert app.sql("select title from documents where id = 80000").rows == [("late",)]
        assert direct.fails("insert into documents (id, organization_id, title, state, at) values (80001, 1, 'x', 'calm', now())")["C"] == "42501"


def test_a_return_that_fails_lets_the_organization_write_again(app):
    """A key of another organization, put there directly, has no place at home."""
    app.add_database(1)
    app.move(1)
    name = app.databases[0]
    app.far.sql("insert into documents (id, organization_id, title, state, at) values (1, 1, 'x', 'calm', now())", name)
    said = app.back(1, status=1)
    assert "documents_pkey" in said and said.endswith("; organization 1 is in its own database as before\n")
    assert place(app, 1) == "away"
    with app.far.connect(user="customers_app", password="app-pw", database=name) as direct:
        direct.query("update documents set title = 'still mine' where id = 4; delete from documents where id = 1")
    with app.connect(tenant=1) as c:
        assert c.value("select title from documents where id = 4") == "still mine"
        c.query("insert into documents (organization_id, title) values (1, 'still writable')")
    app.back(1)
    assert place(app, 1) == "home"


def test_a_move_shows_its_progress_on_a_terminal_and_tells_who_listens(app):
    to = app.add_database(1)
    ours, theirs = os.openpty()
    with app.cluster.connect(user="writer", database=app.name) as listener:
        listener.query("listen lokadb")
        process = launch("move-org", "-db", app.db, "-org", 1, "-to", to, *app.secrets, stderr=theirs)
        os.close(theirs)
        try:
            process.communicate(timeout=60)
            assert process.returncode == 0
            seen = os.read(ours, 65536).decode()
        finally:
            process.kill()
            os.close(ours)
        assert sorted(seen.split("\r\n")) == ["", *sorted("copied public." + t for t in TABLES)]
        said = [m.body[4:].split(b"\0")[1] for m in listener.ask(lokadb_app.wire.query("select 1")) if m.kind == "A"]
        assert said[-1] == b'{"org": "1", "event": "changed"}' and b'{"org": "1", "event": "pausing"}' in said


def test_long_names_that_begin_alike(cluster):
    """54 bytes, the most that add-table takes, two of them the same but for the last letters."""
    app = App(cluster, "long%d" % random.randrange(10**9), rows=40)
    names = ["t" * 50 + end for end in ("aaaa", "aaab")] + ["ü" * 27]
    try:
        for name in names:
            app.sql("create table %s (id bigserial primary key, organization_id bigint not null references organizations, v text);"
                    "insert into %s (organization_id, v) select 1 + g %% 2, '%s' || g from generate_series(1, 6) g" % (name, name, name))
            lokadb("add-table", "-db", app.db, "-table", name)
        content = lambda: [app.sql("select v from %s where organization_id = 1 order by id" % name).rows for name in names]
        before = content()
        app.add_database(1)
        app.move(1)
        assert content() == before
        app.back(1)
        assert content() == before and len(before[0]) == 3
    finally:
        app.drop()


def test_only_one_move_at_a_time(app):
    app.add_database(1)
    with app.cluster.connect(user="postgres", database=app.name) as c:
        c.query("select pg_advisory_lock(hashtextextended('lokadb.move:1', 0))")
        assert "moved by somebody else" in app.move(1, status=1)


def test_rows_written_past_the_pause_stop_the_swap(app):
    """A client that does not go through the gate writes while the rows are copied."""
    app.add_database(1)
    stop, done = threading.Event(), []

    def write():
        with app.connect(tenant=1) as c:
            while not stop.is_set():
                c.ask(lokadb_app.wire.query("insert into documents (organization_id, title) values (1, 'late')"))
                done.append(1)
                time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    harness.eventually(lambda: done, 5, "the writer writes")
    process = launch("move-org", "-db", app.db, "-org", 1, "-to", app.conninfo(app.databases[0]), *app.secrets)
    out, err = process.communicate(timeout=60)
    stop.set()
    writer.join()
    # Either it was noticed, or no row came in between: none may be lost.
    assert process.returncode in (0, 1), err
    assert app.sql("select count(*) from documents where organization_id = 1 and title = 'late'").value == str(len(done))
    place(app, 1)


def test_a_mover_killed_at_any_moment_leaves_the_organization_in_one_place(app):
    before = app.content(1)
    app.add_database(1)
    began = time.monotonic()
    app.move(1)
    took = time.monotonic() - began
    app.back(1)
    rng = random.Random(7)
    seen = set()
    for _ in range(20):
        away = place(app, 1) == "away"
        arguments = ["-back"] if away else ["-to", app.conninfo(app.databases[0]), *app.secrets]
        process = launch("move-org", "-db", app.db, "-org", 1, *arguments)
        time.sleep(rng.uniform(0, took * 1.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        harness.eventually(
            lambda: app.sql("select count(*) from pg_stat_activity where application_name = 'lokadb move-org'").value == "0",
            20, "the sessions of the dead mover have ended")
        seen.add((away, place(app, 1)))
        assert app.content(1) == before
    # What was cut off is finished or taken back by running it again.
    (app.back if place(app, 1) == "away" else app.move)(1)
    assert app.content(1) == before
    if place(app, 1) == "away":
        app.back(1)
    assert app.content(1) == before and place(app, 1) == "home"


@pytest.mark.parametrize("way", ["out", "home"])
def test_a_mover_that_loses_its_connections(app, way):
    before = app.content(1)
    app.add_database(1)
    if way == "home":
        app.move(1)
    rng = random.Random(11)
    for _ in range(6):
        where = place(app, 1)
        arguments = ["-back"] if where == "away" else ["-to", app.conninfo(app.databases[0]), *app.secrets]
        process = launch("move-org", "-db", app.db, "-org", 1, *arguments)
        time.sleep(rng.uniform(0.02, 0.4))
        app.cluster.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lokadb move-org' and random() < 0.6",
            "postgres")
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1), err
        assert app.content(1) == before
        if process.returncode == 1 and "HAS" not in err:
            assert place(app, 1) == where
    with app.connect(tenant=1) as c:
        if place(app, 1) == "away":
            app.back(1)
        c.query("insert into documents (organization_id, title) values (1, 'still writable')")


def test_undo_of_a_move_that_was_cut_off(app):
    app.add_database(1)
    app.sql("select lokadb.move_begin('1', 'x', 'y')")
    assert app.sql("select profile from lokadb.organizations").value == "moving"
    assert "at home as before" in lokadb("move-org", "-db", app.db, "-org", 1, "-undo")
    assert app.sql("select profile, step from lokadb.organizations").rows == [("local", None)]
    app.move(1)


# ------------------------------------------------------------------ other types, odd names

ODD = '''
create schema "Sales % Co";
create table "Sales % Co"."Org's" (id {type} primary key);
create table "Sales % Co"."Big ""Doc""" ("Key" text primary key, "Tenant Id" {type} not null references "Sales % Co"."Org's",
  "a%s" int, "when" timestamptz default now());
create table "Sales % Co".child (id uuid primary key default gen_random_uuid(), "the doc" text not null
  references "Sales % Co"."Big ""Doc""" on delete cascade on update restrict, note text);
insert into "Sales % Co"."Org's" values {orgs};
insert into "Sales % Co"."Big ""Doc""" select o.id || '/' || g, o.id, g from "Sales % Co"."Org's" o, generate_series(1, 20) g;
insert into "Sales % Co".child ("the doc", note) select "Key", 'n' || g from "Sales % Co"."Big ""Doc""", generate_series(1, 2) g;
grant usage on schema "Sales % Co" to writer; grant select, insert, update, delete on all tables in schema "Sales % Co" to writer;
'''
KINDS = {
    "text": ["Müller & Söhne", "it's \"one\""],
    "uuid": ["11111111-2222-3333-4444-555555555555", "aaaaaaaa-2222-3333-4444-555555555555"],
    "int": ["7", "-8"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_tenants_of_other_types_and_odd_names(app, kind):
    one, two = KINDS[kind]
    name = app.name + "_odd"
    app.cluster.sql("create database " + name, "postgres")
    app.databases.append(name)
    quoted = ["'%s'" % v.replace("'", "''") for v in (one, two)]
    app.cluster.sql(ODD.format(type=kind, orgs=", ".join("(%s)" % v for v in quoted)), name)
    db = app.conninfo(name)
    lokadb("init", "-db", db)
    lokadb("add-table", "-db", db, "-table", '"Sales % Co"."Big ""Doc"""', "-tenant", "Tenant Id")
    lokadb("add-table", "-db", db, "-table", '"Sales % Co".child')
    app.cluster.sql("create database %s_away" % name, "postgres")
    app.databases.append(name + "_away")
    lokadb("org-credentials", *app.secrets, "-org", one, "-kind", "fdw", "-user", "customers_fdw", answer="fdw-pw\n")

    def content():
        with app.connect(database=name) as c:
            c.query("select set_config('lokadb.tenant', %s, false)" % quoted[0])
            return c.query('select d."Key", "a%s", note from "Sales % Co"."Big ""Doc""" d join "Sales % Co".child c'
                           ' on c."the doc" = d."Key" order by 1, 3').rows

    before = content()
    assert len(before) == 40
    arguments = ["move-org", "-db", db, "-org", one]
    lokadb(*arguments, "-to", app.conninfo(name + "_away"), *app.secrets)
    assert content() == before
    with app.connect(database=name) as c:
        c.query("select set_config('lokadb.tenant', %s, false)" % quoted[0])
        key = before[0][0].replace("'", "''")
        taken = c.ask(lokadb_app.wire.query('insert into "Sales % Co"."Big ""Doc""" values (\'' + two.replace("'", "''") + "/1', %s, 1)" % quoted[0]))
        assert taken.codes == ["23505"] and taken.errors[0]["t"] == 'Big "Doc"' and taken.errors[0]["s"] == "Sales % Co"
        moved = c.ask(lokadb_app.wire.query('update "Sales % Co"."Big ""Doc""" set "Key" = \'x\' where "Key" = \'' + key + "'"))
        assert moved.codes == ["0A000"]
        gone = c.query('delete from "Sales % Co"."Big ""Doc""" where "Key" = \'' + key + "' returning 1").rows
        assert gone == [("1",)]
    assert len(content()) == 38
    assert app.cluster.sql('select count(*) from "Sales % Co".child__refs', name).value == "78"
    lokadb(*arguments, "-back")
    assert len(content()) == 38


def test_an_organization_whose_server_is_down_hurts_nobody_else(app):
    far = harness.Cluster(tempfile.mkdtemp(prefix="lkfar"))
    far.start()
    try:
        app.far = far
        app.add_database(1)
        before = app.content(1)
        process = launch("move-org", "-db", app.db, "-org", 1, "-to", app.conninfo(app.databases[0], far), *app.secrets)
        time.sleep(0.15)
        far.process.send_signal(signal.SIGKILL)  # its postmaster; the backends follow
        far.process.wait()
        out, err = process.communicate(timeout=60)
        far.admin = {}
        if process.returncode == 1:
            assert app.content(1) == before and place(app, 1) == "home"
        time.sleep(1)  # its children end
        far.start()
        if place(app, 1) == "home":
            app.move(1)
        far.stop()
        with app.connect(tenant=1) as c:
            assert c.ask(lokadb_app.wire.query("select count(*) from documents")).codes == ["08001"]
        with app.connect(tenant=2) as c:
            assert c.value("select count(*) from documents") == "100"
            c.query("insert into documents (organization_id, title) values (2, 'goes on')")
        assert app.back(1, status=1)
        far.start()
        assert app.content(1) == before
        app.back(1)
        assert app.content(1) == before
    finally:
        if far.process.poll() is None:
            far.stop()
        shutil.rmtree(far.folder, ignore_errors=True)
        app.databases, app.far = [], app.cluster
