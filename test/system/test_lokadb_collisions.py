"""What is in the organization's database already, and what cannot be made there: said before anything changes."""

import random
import subprocess

import harness
import pytest
from lokadb_app import App, lokadb

MOOD = "create type mood as enum ('calm', 'busy')"


@pytest.fixture(scope="module")
def app_of_module(cluster_of_session):
    a = App(cluster_of_session, "there%d" % random.randrange(10**9), rows=40)
    yield a
    a.drop()


@pytest.fixture
def app(app_of_module):
    """With an empty database for organization 1."""
    a = app_of_module
    a.add_database(1)
    yield a
    name = a.databases.pop()
    if name in a.far.admin:
        a.far.admin.pop(name).drop()
    a.far.sql("drop database %s with (force)" % name, "postgres")
    a.sql("delete from lokadb.organizations")


def there(app, sql):
    return app.far.sql(sql, app.databases[0])


def schema(app):
    done = subprocess.run(
        [harness.PG_BIN / "pg_dump", "-s", "-d", app.conninfo(app.databases[0])],
        capture_output=True, text=True, check=True, cwd="/", **harness.as_service_user())
    return [line for line in done.stdout.splitlines() if not line.startswith("\\")]


def refused(app, *sentences):
    """The move is refused for exactly that, by a dry run, too; nothing has changed on either side."""
    before, content = schema(app), app.content(1)
    for words in (["-dry-run"], []):
        said = app.move(1, *words, status=1)
        said = said[said.index("lokadb: ") :].splitlines()  # libpq may have warned of the database before
        assert said[0].endswith("cannot be moved to %s at 127.0.0.1:%d, and nothing was changed:" % (app.databases[0], app.far.port))
        assert [line[4:] for line in said[1:]] == list(sentences)
    assert schema(app) == before and app.content(1) == content
    assert app.sql("select count(*) from lokadb.organizations where profile <> 'local'").value == "0"


def test_types_that_are_the_same_are_used_and_others_refused(app):
    there(app, "create type mood as enum ('calm', 'busy', 'angry')")
    refused(
        app,
        "its type public.mood is another than the cloud's: CREATE TYPE public.mood AS ENUM ('calm', 'busy', 'angry') there, "
        "CREATE TYPE public.mood AS ENUM ('calm', 'busy') here; change or drop it there",
    )
    there(app, "drop type mood; create domain mood as text")
    refused(
        app,
        "its type public.mood is another than the cloud's: CREATE DOMAIN public.mood AS text there, "
        "CREATE TYPE public.mood AS ENUM ('calm', 'busy') here; change or drop it there",
    )
    there(app, "drop domain mood; create table mood (id int)")
    refused(
        app,
        "its type public.mood is another than the cloud's: row type of public.mood there, "
        "CREATE TYPE public.mood AS ENUM ('calm', 'busy') here; change or drop it there",
    )
    there(app, "drop table mood; " + MOOD)
    number = there(app, "select oid from pg_type where typname = 'mood'").value
    app.move(1)
    assert there(app, "select atttypid from pg_attribute where attrelid = 'documents'::regclass and attname = 'state'").value == number
    app.back(1)
    app.move(1)  # and once more with what that left
    app.back(1)


TYPES = """
create domain positive as int not null default 3 check (value > 0); create domain word as text collate "C";
create type pair as (a positive, b text collate "POSIX"); create type span as range (subtype = float8, subtype_diff = float8mi, multirange_type_name = spans);
alter table documents add column p positive, add column w word, add column q pair[], add column s span, add column m spans;
"""


def test_types_of_every_kind_are_made_once(app):
    app.sql(TYPES)
    app.sql("update documents set p = 4, w = 'x', q = array[row(1, 'b')::pair], s = '[1,2)', m = '{[1,2),[5,6)}'")
    try:
        before = app.content(1)
        app.move(1)
        assert app.content(1) == before
        app.back(1)
        assert app.content(1) == before
        there(app, "alter domain positive set default 9")
        said = app.move(1, status=1)
        assert said.count("is another than the cloud's") == 1 and "its type public.positive is another" in said
        there(app, "alter domain positive set default 3")
        app.move(1)
        assert app.content(1) == before
        app.back(1)
    finally:
        app.sql("alter table documents drop p, drop w, drop q, drop s, drop m; drop type span, pair, word, positive")


def test_names_that_are_taken(app):
    there(app, "create sequence documents_pkey; create view documents as select 1")
    refused(
        app,
        "it has a table public.documents already: an empty database is needed",
        "it has a relation public.documents_pkey already, which is to be the name of an index: drop or rename it",
    )
    there(app, "drop sequence documents_pkey; drop view documents; create domain users as int")
    refused(app, "it has a type public.users already: an empty database is needed")
    there(app, "drop domain users; create function lokadb_key_fixed() returns int language sql return 1")
    refused(app, "it has a function public.lokadb_key_fixed() already, which is not that of a former move by this role: drop it")
    there(app, "drop function lokadb_key_fixed()")
    app.move(1)
    app.back(1)


def test_what_hangs_on_tables_that_a_former_move_left(app):
    app.move(1)
    app.back(1)
    there(app, "create view seen as select id from documents; create table notes (id int references documents)")
    refused(
        app,
        "view public.seen there reads public.documents, which a former move left and this one makes anew: drop it first",
        "table public.notes there refers to public.documents, which a former move left and this one makes anew: "
        "drop constraint notes_id_fkey first",
    )
    there(app, "drop view seen; drop table notes; create table kept (id int)")
    app.move(1)
    assert there(app, "select count(*) from kept").value == "0"
    app.back(1)


def test_tables_that_another_cloud_moved_there_are_not_touched(app):
    """Two clouds can have an organization of one name."""
    app.move(1)
    rows = there(app, "select count(*) from documents").value
    other = App(app.cluster, app.name + "_b", rows=40)
    try:
        other.add_database(1)
        to = app.conninfo(app.databases[0])
        said = other.move(1, to=to, status=1)
        label = there(app, "select obj_description('documents'::regclass)").value
        sentence = "its table public.%s is labelled for another organization, or by another cloud (%s): an empty database is needed"
        for table in ("users", "documents", "conversations", "messages", "invoices"):
            assert sentence % (table, label) in said
        assert there(app, "select count(*) from documents").value == rows
    finally:
        other.drop()
    app.back(1)


def test_a_return_that_could_not_remove_the_label_is_no_obstacle(app):
    app.move(1)
    label = there(app, "select obj_description('documents'::regclass)").value
    app.back(1)
    for table in ("users", "documents", "conversations", "messages", "invoices"):
        there(app, "comment on table %s is '%s'" % (table, label))
    app.move(1)
    app.back(1)


def test_extensions(app):
    app.sql("create extension citext; create extension pg_trgm; alter table documents add column nick citext;"
            "create index trigrams on documents__local using gin (title gin_trgm_ops)")
    there(app, "create schema odd; create extension citext schema odd; revoke create on database %s from public" % app.databases[0])
    try:
        refused(app, "its extension citext is in schema odd, in the cloud it is in public")
        there(app, "drop schema odd cascade; create role weak login; grant create on schema public to weak;"
                   "create role customers_app2; grant all on schema public to weak")
        weak = app.conninfo(app.databases[0]).replace("user=postgres", "user=weak")
        there(app, "grant pg_read_all_settings to weak; grant execute on function pg_control_system to weak")
        said = app.move(1, to=weak, status=1)
        assert "extension citext, which the tables need, is not there, and this role may not create it" in said
        assert "extension pg_trgm, which the tables need, is not there, and this role may not create it" in said
        before = app.content(1)
        app.move(1)
        assert app.content(1) == before
        assert there(app, "select string_agg(extname, ' ' order by extname) from pg_extension").value == "citext pg_trgm plpgsql"
        app.back(1)
    finally:
        there(app, "drop owned by weak; drop role weak; drop role customers_app2")
        app.sql("drop index trigrams; alter table documents drop column nick; drop extension citext; drop extension pg_trgm")


def test_what_only_the_cloud_has(app):
    app.sql(
        "create function mine(text) returns int language sql immutable return 1; create collation nice (locale = 'C');"
        "alter table documents add column g int generated always as (mine(title)) stored;"
        'alter table documents add column c text collate nice; alter table documents__local add constraint fine check (mine(body) = 1);'
        "create index by_mine on documents__local (mine(title))")
    try:
        uses = "%s of public.documents uses the %s, which the organization's database does not have"
        refused(app, uses % ("column c", "collation public.nice"), uses % ("column g", "function public.mine(text)"),
                uses % ("constraint fine", "function public.mine(text)"),
                uses % ("index public.by_mine", "function public.mine(text)"))
    finally:
        app.sql("alter table documents drop column g, drop column c; alter table documents__local drop constraint fine;"
                "drop index by_mine; drop function mine; drop collation nice")


def test_roles_have_no_more_rights_than_they_may_have(app):
    app.cluster.sql("create role strong login; create role club", "postgres")
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-user", "strong", answer="x\n")
    try:
        for grant, revoke, sentence in (
            ("alter role strong createdb bypassrls", "alter role strong nocreatedb nobypassrls",
             "role strong there has more rights than it may have (BYPASSRLS, CREATEDB): take them away, or name another"),
            ("alter role strong nologin", "alter role strong login", "role strong there may not log in: ALTER ROLE strong LOGIN"),
            ("grant club to strong", "revoke club from strong", "role strong there is a member of club, whose rights it has: REVOKE that"),
            ("grant create on schema public to strong", "revoke create on schema public from strong",
             "role strong there may create objects in schema public: REVOKE CREATE ON SCHEMA public FROM PUBLIC, strong"),
            ("grant create on database %s to strong" % app.databases[0], "revoke create on database %s from strong" % app.databases[0],
             "role strong there may create schemas: REVOKE CREATE ON DATABASE %s FROM PUBLIC, strong" % app.databases[0]),
        ):
            there(app, grant)
            refused(app, sentence)
            there(app, revoke)
    finally:
        app.cluster.sql("drop role strong, club", "postgres")


def test_default_privileges_there_give_nothing(app):
    there(app, "alter default privileges grant all on tables to customers_fdw, customers_app; alter default privileges grant select on tables to public")
    app.move(1)
    given = there(app, "select pg_get_userbyid(x.grantee), string_agg(x.privilege_type, ' ' order by x.privilege_type) from pg_class c, aclexplode(c.relacl) x"
                       " where c.oid = 'documents'::regclass and x.grantee <> c.relowner group by 1 order by 1").rows
    assert given == [("customers_app", "DELETE INSERT SELECT UPDATE"), ("customers_fdw", "DELETE INSERT SELECT UPDATE")]
    app.back(1)


def test_another_version_of_the_collation(app):
    app.far.sql("update pg_database set datcollversion = '1.0' where datname = '%s'" % app.databases[0], "postgres")
    refused(app, "its version of the collation is 1.0, the cloud's is none: texts would sort or compare differently")
