"""The triggers on a foreign part, as after a move: made by hand, the organization's database beside the cloud's."""

import pytest
from cloud import ORGANIZATIONS, Cloud

TABLES = """
create table documents (id bigint primary key, organization_id bigint not null {orgs}, title text, currency text {currencies});
create table messages (id bigint primary key, document_id bigint not null references documents on delete cascade, organization_id bigint);
"""


@pytest.fixture
def moved(cloud):
    """Organization 2 has a database of its own with the rows of documents 2 and its message 2."""
    c = cloud.cluster
    c.sql("create database %s_org" % cloud.name, "postgres")
    org = cloud.org = Cloud(c, cloud.name + "_org")
    try:
        cloud.sql(
            ORGANIZATIONS
            + "create table currencies (code text primary key, n int); insert into currencies values ('EUR'), ('USD'), ('%s');"
        )
        cloud.sql(
            TABLES.format(orgs="references organizations", currencies="references currencies").replace(
                ", organization_id bigint);", ");"
            )
        )
        cloud.sql("insert into documents values (1, 1, 'one', 'EUR'); insert into messages values (1, 1)")
        cloud.sql(
            "grant select, insert, update, delete on documents, messages to app; grant usage on foreign data wrapper postgres_fdw to app"
        )
        cloud.add("documents")
        cloud.add("messages")
        org.sql(TABLES.format(orgs="", currencies=""))
        org.sql("alter table messages alter organization_id set not null")
        cloud.sql(
            "create server s foreign data wrapper postgres_fdw options (host '127.0.0.1', port '%d', dbname '%s')"
            % (c.port, org.name)
        )
        cloud.sql(
            "create user mapping for public server s options (user 'postgres', password_required 'false'); create schema part;"
            " import foreign schema public from server s into part"
        )
        for table in ("documents", "messages"):
            cloud.sql(
                "alter table {0} attach partition part.{0} for values in (2); select lokadb.attach_triggers('{0}', 'part.{0}', true)".format(
                    table
                )
            )
        cloud.sql("insert into lokadb.organizations (org, profile, server) values ('2', 'fdw', 's')")
        cloud.sql("insert into documents values (2, 2, 'two', 'USD'); insert into messages values (2, 2, 2)")
        yield cloud
    finally:
        cloud.close()
        org.close()


def refs(cloud, table):
    return dict(cloud.rows("select id, organization_id from %s__refs" % table))


def test_rows_and_refs_of_a_moved_organization(moved):
    assert moved.org.rows("select id, title from documents") == [("2", "two")]
    assert refs(moved, "documents") == refs(moved, "messages") == {"1": "1", "2": "2"}
    with moved.connect("postgres") as c:
        for key, organization in ((1, 2), (2, 1)):
            error = c.fails("insert into documents values (%d, %d)" % (key, organization))
            assert [error[f] for f in "Cstn"] == ["23505", "public", "documents", "documents_pkey"]
        c.query(
            "begin; savepoint s; insert into documents values (3, 2); rollback to s; insert into documents values (4, 2); commit"
        )
    assert refs(moved, "documents") == {"1": "1", "2": "2", "4": "2"}
    assert moved.org.rows("select id from documents order by 1") == [("2",), ("4",)]


def test_a_delete_takes_the_childrens_refs_along(moved):
    moved.sql("delete from documents where id = 2")
    assert refs(moved, "documents") == refs(moved, "messages") == {"1": "1"}
    assert moved.org.rows("select * from messages") == []


def test_parents_of_a_moved_organization(moved):
    with moved.connect("postgres") as c:
        error = c.fails("insert into messages values (5, 2)")
        assert error["C"] == "0A000" and "name the organization" in error["M"]
        for row in ("(5, 1, 2)", "(5, 2, 1)"):
            assert c.fails("insert into messages values " + row)["C"] == "23514", row
        c.query("begin; set local lokadb.tenant = '2'; insert into messages values (5, 2); commit")
        assert c.fails("insert into messages values (6, 777, 2)")["C"] == "23503"
    assert refs(moved, "messages") == {"1": "1", "2": "2", "5": "2"}


def test_foreign_keys_to_cloud_tables_hold(moved):
    with moved.connect("postgres") as c:
        for statement in (
            "insert into documents values (6, 2, '', 'XXX')",
            "update documents set currency = 'XXX' where organization_id = 2",
        ):
            error = c.fails(statement)
            assert [error[f] for f in "Cstn"] == ["23503", "public", "documents", "documents_currency_fkey"], statement
            assert error["D"] == 'Key (currency)=(XXX) is not present in table "currencies".'
        c.query("insert into documents values (6, 2, '', null), (7, 2, '', '%s')")
        for statement in (
            "delete from currencies where code = 'USD'",
            "update currencies set code = 'U' where code = 'USD'",
        ):
            error = c.fails(statement)
            assert [error[f] for f in "Cstn"] == ["23503", "public", "documents", "documents_currency_fkey"], statement
            assert error["D"] == 'Key (code)=(USD) is still referenced from table "documents".'
        assert c.fails("delete from currencies where code = 'EUR'")["C"] == "23503"  # of the local part
        c.query(
            "update currencies set code = code, n = 1; insert into currencies values ('CHF'); delete from currencies where code = 'CHF'"
        )
        c.query("begin")
        with moved.connect("postgres") as mover:
            mover.query("select pg_advisory_lock(lokadb.pause_key('*'))")
            assert c.fails("delete from currencies where code = 'USD'")["C"] == "55P03"
        c.query("rollback")
        for statement in ("delete from organizations where id = 2", "update organizations set id = 22 where id = 2"):
            assert c.fails(statement)["C"] == "23503"
        c.query("delete from organizations where id = 4; update organizations set id = 33 where id = 3")


def test_a_type_with_a_cast_of_its_own_runs_nothing_as_the_owner(moved):
    """to_jsonb() of a row would call it."""
    with moved.connect("app") as app:
        moved.sql("grant create on schema public to app; grant app to postgres; alter table currencies owner to app")
        app.query(
            "create type evil as enum ('x'); create function steal(evil) returns json language plpgsql as"
            " $$ begin raise exception 'runs as %', current_user; end $$; create cast (evil as json) with function steal(evil)"
        )
        app.query("alter table currencies add column e evil default 'x'")
        app.query(
            "update currencies set code = code; update currencies set code = 'GBP' where code = '%s'; delete from currencies where code = 'GBP'"
        )


def test_application_roles_do_not_reach_the_part(moved):
    with moved.connect("app") as app:
        assert app.value("select count(*) from documents") == "2"
        for statement in ("select * from part.documents", "create foreign table mine (id bigint) server s"):
            assert app.fails(statement)["C"] == "42501"
        assert app.fails("begin; set local lokadb.tenant = '2'; select * from documents__local")["C"] == "0A000"
        app.query("rollback")


def test_nothing_is_added_or_removed_meanwhile(moved):
    before = moved.schema()
    for words in (["add-table", "-table", "currencies"], ["remove-table", "-table", "messages"]):
        assert "organization 2 has a database of its own" in moved.refuses(*words)
    assert moved.schema() == before


def test_a_view_in_the_place_of_a_table_runs_nothing_as_the_owner(moved):
    """Who owns a table may put something else under its name."""
    moved.sql(
        "alter table currencies owner to app; alter table documents owner to app; alter table documents__local owner to app"
    )
    moved.sql("grant create on schema public to app; alter table messages add up bigint")
    with moved.connect("app") as app:
        app.query(
            "create function steal() returns boolean language plpgsql as"
            " $$ begin raise exception 'runs as %', current_user using errcode = 'TRAPP'; end $$"
        )
        app.query("alter table currencies rename to money; create view currencies as select * from money where steal()")
        assert app.fails("insert into documents values (6, 2, '', 'EUR')")["C"] == "55000"
        app.query("drop view currencies; alter table money rename to currencies")
        app.query("insert into documents values (6, 2, '', 'EUR')")
        app.query(
            "alter table documents__local rename to gone; create view documents__local as select * from gone where steal()"
        )
        moved.sql("delete from documents__refs where id = 1")
        assert app.fails("insert into messages values (7, 1, 1)")["C"] == "55000"
