"""What people do wrong around move-org: nothing is lost, and what is said tells them what to do."""

import random
import signal
import time

import pytest

import harness
import wire
from lokadb_app import TABLES, App, launch, lokadb
from test_lokadb_move import place, refusal


@pytest.fixture
def app(cluster):
    a = App(cluster, "mistake%d" % random.randrange(10**9), rows=80)
    a.add_database(1)
    yield a
    a.drop()


def new_database(app, suffix):
    name = "%s_%s" % (app.name, suffix)
    app.far.sql('create database "%s"' % name, "postgres")
    app.databases.append('"%s"' % name)
    return "host=127.0.0.1 port=%d user=postgres dbname='%s'" % (app.far.port, name.replace("\\", "\\\\").replace("'", "\\'"))


def start_move(app, to):
    return launch("move-org", "-db", app.db, "-org", 1, "-to", to, *app.secrets)


def hold(app, org=1):
    """A transaction of the organization, as the proxy opens it."""
    c = app.cluster.connect(user="postgres", database=app.name)
    c.query("begin; select pg_advisory_xact_lock_shared(lokadb.pause_key('%s'))" % org)
    return c


def wait_for_pause(app, org=1):
    waiting = "select count(*) from lokadb.holders('%s') where not granted" % org
    harness.eventually(lambda: app.sql(waiting).value != "0", 20, "the mover asks for the pause")


# ------------------------------------------------------------------ two at once, two places


def test_a_second_move_is_refused_while_the_first_waits_for_its_pause(app):
    """For longer than one attempt at the pause takes, which once gave the lock of the move away as well."""
    before, other = app.content(1), new_database(app, "other")
    with hold(app) as c:
        first = start_move(app, app.conninfo(app.databases[0]))
        wait_for_pause(app)
        time.sleep(2)
        assert "moved by somebody else" in app.move(1, status=1, to=other)
        c.query("commit")
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    assert app.content(1) == before and place(app, 1) == "away"


def test_the_swap_is_for_who_began_the_move(app):
    app.sql("select lokadb.move_begin('1', 'mine', 'x')")
    with app.cluster.connect(user="postgres", database=app.name) as c:
        c.query("select lokadb.pin_move('1', 'mine', false)")
        for wrong in ("'1', 'other', false", "'1', 'mine', true", "'2', 'mine', false"):
            assert "somebody else has moved" in c.fails("select lokadb.pin_move(%s)" % wrong)["M"]
    app.sql("update lokadb.organizations set server = 's' where org = '1'")
    with app.cluster.connect(user="postgres", database=app.name) as c:
        assert "a database of its own already" in c.fails("select lokadb.move_begin('1', 'other', 'x')")["M"]


def test_a_database_where_the_organization_of_another_cloud_lives(app, cluster):
    """Production and staging have an organization 1 each; the tables there look alike."""
    app.move(1)
    before = app.content(1)
    staging = App(cluster, app.name + "_st", rows=80)
    try:
        staging.add_database(1)
        to = app.conninfo(app.databases[0])
        assert "or by another cloud" in refusal(staging, to=to)
        assert app.content(1) == before
        app.back(1)
        assert "or by another cloud" in refusal(staging, to=to), "left behind, but not by this cloud"
        app.move(1)
        assert app.content(1) == before
    finally:
        staging.drop()


def test_it_only_comes_home_from_where_it_lives(app):
    """Another database with its label: here one that a killed move left, in life also a restored one."""
    before, other = app.content(1), new_database(app, "other")
    with hold(app) as c:
        killed = start_move(app, other)
        wait_for_pause(app)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=30)
        c.query("commit")
    app.move(1)
    assert "is not the database of organization 1" in app.back(1, "-to", other, status=1)
    assert place(app, 1) == "away" and app.content(1) == before
    app.back(1)
    assert place(app, 1) == "home" and app.content(1) == before
    assert "rows moved" in app.move(1, to=other), "its own leftovers are cleared"


def test_two_organizations_move_at_once_to_a_server_without_the_roles(app):
    app.far.sql("drop role if exists new_fdw", "postgres")
    for org in (2, 3):
        app.add_database(org)
        lokadb("org-credentials", *app.secrets, "-org", org, "-kind", "fdw", "-user", "new_fdw", answer="pw\n")
    before = [app.content(org) for org in (2, 3)]
    far = app.far.data / "pg_hba.conf"
    old = far.read_text()
    far.write_text("host all new_fdw 127.0.0.1/32 scram-sha-256\n" + old)
    app.far.sql("select pg_reload_conf()", "postgres")
    try:
        movers = [
            launch("move-org", "-db", app.db, "-org", org, "-to", app.conninfo("%s_o%s" % (app.name, org)), *app.secrets)
            for org in (2, 3)
        ]
        for mover in movers:
            out, err = mover.communicate(timeout=60)
            assert mover.returncode == 0, err
        assert [app.content(org) for org in (2, 3)] == before
    finally:
        for org in (2, 3):
            app.back(org)
        far.write_text(old)
        app.far.sql("select pg_reload_conf()", "postgres")


def test_a_profile_is_not_given_to_who_has_come_home(app):
    app.move(1)
    with hold(app) as c:
        change = launch("org-profile", "-db", app.db, "-org", 1, "fdw")
        wait_for_pause(app)
        app.sql("update lokadb.organizations set server = null, profile = 'local' where org = '1'")  # as a return does
        c.query("commit")
    out, err = change.communicate(timeout=60)
    assert change.returncode == 1 and "has come home meanwhile" in err
    assert app.sql("select profile from lokadb.organizations").value == "local"
    app.sql("update lokadb.organizations set server = 'lokadb_o1', profile = 'fdw' where org = '1'")
    app.back(1)


# ------------------------------------------------------------------ what is not as it should be there


def test_a_server_that_asks_for_no_password(app):
    """postgres_fdw would use the login for a superuser only, and the move would break every statement."""
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-user", "trusted", answer="pw\n")
    app.far.sql("drop role if exists trusted", "postgres")
    try:
        said = "lets role trusted in without a password"
        assert said in refusal(app), "the role is new"
        assert app.far.sql("select count(*) from pg_class where relname = 'documents'", app.databases[0]).value == "0"
        app.far.sql("drop role if exists trusted; create role trusted login password 'pw'", "postgres")
        assert said in refusal(app, "-dry-run")
        assert said in refusal(app)
    finally:
        app.far.sql("drop role if exists trusted", "postgres")
    assert app.sql("select count(*) from pg_foreign_server").value == "0"


def test_a_wrong_password_is_found_before_the_move(app):
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-user", "customers_fdw", answer="fdw-pw\n")
    app.move(1)
    app.back(1)
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-user", "customers_fdw", answer="wrong\n")
    assert "cannot log in there as customers_fdw" in refusal(app, "-dry-run")


def test_passwords_are_in_no_error(app):
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-user", "pg_reserved", answer="Geheimnis\n")
    said = refusal(app)
    assert "reserved" in said and "Geheimnis" not in said


LACKING = {
    "an index": "create index on documents (low(title))",
    "a computed column": "alter table documents add lowered text generated always as (low(title)) stored",
    "a domain": "create domain lowered as text check (value = low(value)); alter table documents add l lowered",
}


@pytest.mark.parametrize("what", LACKING)
def test_functions_that_are_lacking_there(app, what):
    function = "create function low(text) returns text language sql immutable as 'select lower($1)'"
    app.sql(function + ";" + LACKING[what])
    for flags in (["-dry-run"], []):
        said = refusal(app, *flags)
        assert "nothing was changed" in said and "uses the function public.low(text), which the organization's database does not have" in said
    name = app.databases[0]
    assert app.far.sql("select count(*) from pg_class where relnamespace = 'public'::regnamespace", name).value == "0"
    app.far.sql(function, name)
    before = app.content(1)
    app.move(1)
    assert app.content(1) == before
    app.back(1)
    assert app.content(1) == before


UNMOVABLE = {
    "constraint trigger late of public.documents": "create function f() returns trigger language plpgsql as 'begin return null; end';"
    "create constraint trigger late after insert on documents deferrable for each row execute function f()",
    "of type regclass": "alter table documents add about regclass default 'currencies'",
    "break the check constraint long": "alter table documents add constraint long check (length(title) > 5) not valid",
}


@pytest.mark.parametrize("said", UNMOVABLE)
def test_what_cannot_move_is_said_before(app, said):
    app.sql(UNMOVABLE[said])
    assert said in refusal(app, "-dry-run")


def test_types_and_extensions_come_along(app):
    app.sql('''
        create schema ext; create extension citext schema ext; create extension pg_trgm; create extension btree_gist;
        create domain labels as text[] check (array_length(value, 1) < 9);
        create type span as range (subtype = float8);
        create domain code as text collate "C" default 'none';
        create domain short_code as code check (length(value) < 9);
        create type place as (street text, code short_code, labels labels);
        alter table documents add l labels default '{a,"b c"}', add s span_multirange default '{[1,2),[3,3]}', add c short_code,
          add p place default '("a ""b""",x,"{q}")', add ps place[], add e ext.citext default 'Ab', add during tsrange default '[2024-01-01,infinity)',
          add constraint not_valid check (title <> 'none') not valid;
        create index on documents using gin (title gin_trgm_ops);
        alter table documents__local add exclude using gist (id with =, during with &&);
        update documents set ps = array[p, null]
    ''')
    before = app.content(1)
    app.move(1)
    assert app.content(1) == before
    with app.connect(tenant=1) as c:
        c.query("insert into documents (organization_id, title) values (1, 'with all its defaults')")
        row = c.query("select l, s, c, p, e from documents where title like 'with%'").rows
        assert row == [('{a,"b c"}', "{[1,2),[3,3]}", "none", '("a ""b""",x,{q})', "Ab")]
        c.query("delete from documents where title like 'with%'")
        assert c.ask(wire.query("insert into documents (organization_id, title) values (1, 'none')")).codes == ["23514"]
    app.back(1)
    assert app.content(1) == before


@pytest.mark.parametrize("table", ["documents", "documents__local"])
def test_triggers_for_replicas_see_no_move(app, table):
    """Made for the table as the application knows it, or there before add-table."""
    app.sql("""
        create table seen (what text);
        create function note() returns trigger language plpgsql as
          'begin insert into public.seen values (tg_name || tg_op); return coalesce(new, old); end';
        create trigger always before insert or delete on %(on)s for each row execute function note();
        create trigger replica before insert or delete on %(on)s for each row execute function note();
        alter table %(on)s enable always trigger always; alter table %(on)s enable replica trigger replica;
        grant insert on seen to writer
    """ % {"on": table})
    states = "select tgname, tgenabled from pg_trigger where tgrelid = '%s'::regclass and tgname in ('always', 'replica') order by 1"
    expected = [("always", "A"), ("replica", "R")]
    before = app.content(1)
    app.move(1)
    assert app.sql(states % "lokadb_o1.documents").rows == expected
    with app.connect(tenant=1) as c:
        c.query("insert into documents (organization_id, title) values (1, 'one'); delete from documents where title = 'one'")
    app.back(1)
    assert app.sql(states % "documents__local").rows == expected
    assert app.sql("select * from seen").rows == [("alwaysINSERT",), ("alwaysDELETE",)]
    assert app.content(1) == before


def test_a_database_with_an_odd_name(app):
    before, to = app.content(1), new_database(app, "it's a \\ name")
    app.move(1, to=to)
    app.back(1)
    assert app.content(1) == before and place(app, 1) == "home"


def test_settings_of_the_databases_do_not_matter(app):
    """Those of the cloud would cut the wait for the pause short."""
    for database in (app.name, app.databases[0]):
        for setting in ("lock_timeout = '1ms'", "idle_in_transaction_session_timeout = '300ms'", "quote_all_identifiers = on",
                        "default_transaction_isolation = serializable", "standard_conforming_strings = off"):
            app.cluster.sql("alter database %s set %s" % (database, setting), "postgres")
    app.cluster.sql("alter database %s set statement_timeout = '300ms'" % app.name, "postgres")
    before = app.content(1)
    with app.cluster.connect(user="postgres", database=app.name) as c:
        c.query("set idle_in_transaction_session_timeout = 0")
        c.query("begin; select pg_advisory_xact_lock_shared(lokadb.pause_key('1'))")
        mover = start_move(app, app.conninfo(app.databases[0]))
        wait_for_pause(app)
        time.sleep(0.7)
        c.query("commit")
    out, err = mover.communicate(timeout=60)
    assert mover.returncode == 0, err
    assert app.content(1) == before
    app.back(1)
    assert app.content(1) == before


# ------------------------------------------------------------------ a return that fails or is cut off

RIGHTS = "select relname, relacl::text from pg_class where relname = any ('{%s}') order by 1" % ",".join(TABLES)
COLUMN_RIGHTS = "select attname, attacl::text from pg_attribute where attacl is not null"


def rights(app):
    def sort(acl):
        return sorted(acl.strip("{}").split(","))

    name = app.databases[0]
    return [(n, sort(a)) for n, a in app.far.sql(RIGHTS, name).rows + app.far.sql(COLUMN_RIGHTS, name).rows]


@pytest.fixture
def readers(app):
    app.move(1)
    app.far.sql("drop role if exists analyst", "postgres")
    name = app.databases[0]
    app.far.sql("create role analyst; grant select on documents to analyst; grant update (body) on documents to analyst", name)
    app.far.sql("grant insert on users to public; grant delete on users to customers_app with grant option", name)
    yield app
    app.far.sql("drop owned by analyst; drop role analyst", name)


def test_a_return_that_fails_leaves_the_rights_as_they_were(readers):
    before, content = rights(readers), readers.content(1)
    readers.sql("alter table documents__local add constraint nobody check (organization_id <> 1) not valid")
    assert "in its own database as before" in readers.back(1, status=1)
    assert rights(readers) == before and readers.content(1) == content
    readers.sql("alter table documents__local drop constraint nobody")
    readers.back(1)
    assert readers.content(1) == content


@pytest.mark.parametrize("way", ["undo", "again"])
def test_a_return_that_was_killed(readers, way):
    before, content = rights(readers), readers.content(1)
    with readers.far.connect(user="postgres", database=readers.databases[0]) as open_transaction:
        open_transaction.query("begin; update documents set body = body")
        for _ in range(2):  # and killed again
            mover = launch("move-org", "-db", readers.db, "-org", 1, "-back")
            harness.eventually(
                lambda: readers.far.sql("select count(*) from pg_locks where mode = 'ShareRowExclusiveLock' and not granted",
                                        readers.databases[0]).value != "0", 20, "the return waits for the open transaction")
            mover.send_signal(signal.SIGKILL)
            mover.communicate(timeout=30)
            readers.far.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lokadb move-org'",
                            "postgres")
        open_transaction.query("commit")
    with readers.connect(tenant=1) as c:
        new = "insert into users (organization_id, email) values (1, 'n@x')"
        assert c.ask(wire.query(new)).codes == ["42501"]
        assert readers.sql("select step from lokadb.organizations").value == "return"
        if way == "undo":
            said = lokadb("move-org", "-db", readers.db, "-org", 1, "-undo", "-dry-run")
            assert "dry run" in said and rights(readers) != before
            assert "in its own database as before" in lokadb("move-org", "-db", readers.db, "-org", 1, "-undo")
            assert rights(readers) == before
            assert readers.sql("select step, taken from lokadb.organizations").rows == [(None, None)]
            c.query(new + "; delete from users where email = 'n@x'")
    readers.back(1)
    assert readers.content(1) == content


def test_columns_that_only_one_side_has(app):
    app.move(1)
    name = app.databases[0]
    app.sql("alter table documents add lang text")
    app.far.sql("alter table documents add note text; update documents set note = 'x'", name)
    said = app.back(1, "-dry-run", status=1)
    assert "public.documents has a column note there only, whose values would be lost" in said
    assert "public.documents has no column lang there" in said
    assert app.back(1, status=1) == said and place(app, 1) == "away"
    app.far.sql("alter table documents add lang text default 'de'; alter table documents drop note", name)
    app.back(1)
    assert app.sql("select lang, count(*) from documents where organization_id = 1 group by 1").rows == [("de", "20")]


# ------------------------------------------------------------------ said and not done


def test_undo_with_a_dry_run_undoes_nothing(app):
    app.sql("select lokadb.move_begin('1', 'x', 'y')")
    said = lokadb("move-org", "-db", app.db, "-org", 1, "-undo", "-dry-run")
    assert "dry run" in said and "its move would be taken back" in said
    assert app.sql("select profile from lokadb.organizations").value == "moving"
    assert "do not go together" in lokadb("move-org", "-db", app.db, "-org", 1, "-undo", "-back", status=2)
    lokadb("move-org", "-db", app.db, "-org", 1, "-undo")
    assert "no move of it was cut off" in lokadb("move-org", "-db", app.db, "-org", 1, "-undo")


def test_a_pause_of_no_time_does_not_last(app):
    lokadb("pause", "-db", app.db, "-org", 1, "-for", "0s", timeout=10, status=2)


COMMANDS = [["orgs"], ["tables"], ["pause", "-org", 1], ["resume", "-org", 1], ["move-org", "-org", 1, "-back"],
            ["org-profile", "-org", 1, "fdw"], ["refs-diff"], ["refs-sync"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_every_command_says_who_may_and_what_is_missing(app, command):
    name, *more = command
    stranger = app.db.replace("user=postgres", "user=reader")
    assert "reader may not administer LokaDB here: run this as postgres" in lokadb(name, "-db", stranger, *more, status=1)
    assert "is a control plane: name the cloud database" in lokadb(name, "-db", app.control, *more, status=1)
    plain = app.conninfo(app.databases[0])
    assert "run lokadb init on it first" in lokadb(name, "-db", plain, *more, status=1)
    app.sql("update lokadb.settings set value = 'older' where name = 'sql_version'")
    assert "was made by another version of lokadb: run lokadb init" in lokadb(name, "-db", app.db, *more, status=1)


def test_a_control_plane_that_is_none(app):
    said = lokadb("move-org", "-db", app.db, "-org", 1, "-to", app.conninfo(app.databases[0]), "-control-plane", app.db, "-key",
                  app.key, status=1)
    assert "is no control plane: run lokadb init -control-plane first" in said
