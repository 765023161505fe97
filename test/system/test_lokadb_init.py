"""lokadb init on a cloud database."""

import pytest
from cloud import DOCUMENTS, MESSAGES, Cloud


@pytest.fixture
def bare(cluster):
    """A database without schema lokadb, owned by a role that is no superuser."""
    cluster.sql("drop role if exists boss", "postgres")
    cluster.sql("create role boss login", "postgres")
    cluster.sql("create database bare owner boss", "postgres")
    made = Cloud(cluster, "bare")
    yield made
    made.close()
    cluster.sql("revoke set on parameter session_replication_role from boss", "postgres")
    cluster.sql("drop role boss", "postgres")


def test_init_twice_changes_nothing(cloud):
    cloud.sql(DOCUMENTS)
    cloud.add("documents")
    before = cloud.schema(), cloud.rows("select name, applied_at from lokadb.migrations")
    assert "up to date" in cloud.run("init", check=True).stdout
    assert (cloud.schema(), cloud.rows("select name, applied_at from lokadb.migrations")) == before
    cloud.sql("insert into documents (organization_id) values (1)")
    assert cloud.value("select count(*) from documents__refs") == "41"


def test_init_refuses_a_newer_schema(cloud):
    cloud.sql("insert into lokadb.migrations values ('schema/9999_future.sql')")
    assert "newer lokadb (schema/9999_future.sql)" in cloud.refuses("init")


def test_init_tells_an_owner_what_a_superuser_must_run_and_then_works(bare):
    done = bare.run("init", user="boss")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    said = done.stderr.split("first: ")[1]
    assert said == (
        "CREATE EXTENSION postgres_fdw SCHEMA public; GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO boss;"
        " GRANT SET ON PARAMETER session_replication_role TO boss;\n"
    )
    assert bare.value("select to_regnamespace('lokadb')") is None
    for command in said.split(";")[:-1]:
        bare.sql(command)
    done = bare.run("init", user="boss", check=True)
    assert "superuser" not in done.stdout
    with bare.connect("boss") as boss:
        boss.query(DOCUMENTS + MESSAGES)
    bare.add("documents", user="boss")
    bare.add("messages", user="boss")
    with bare.connect("app") as app:
        assert app.value("begin; set local lokadb.tenant = '2'; select count(*) from messages") == "20"


def test_init_says_what_moving_will_take(bare):
    bare.sql("create extension postgres_fdw")
    said = bare.run("init", user="boss", check=True).stdout
    assert "before an organization can move, a superuser must run" in said and "TO boss;" in said


def test_init_by_a_role_that_owns_nothing_is_refused_in_one_sentence(cloud, bare):
    assert "belongs to postgres: run this as that role or a superuser" in cloud.refuses("init", user="app")
    bare.sql("revoke create on database bare from public")
    done = bare.run("init", user="app")
    assert done.returncode == 1 and "may not create a schema: run this as the owner of database bare" in done.stderr


def test_every_function_says_its_search_path(cloud):
    """Or has its names resolved when it is made (RETURN, BEGIN ATOMIC)."""
    cloud.sql(DOCUMENTS)
    cloud.add("documents")
    loose = cloud.rows(
        "select oid::regprocedure from pg_proc where pronamespace = 'lokadb'::regnamespace and prosqlbody is null"
        " and not coalesce(proconfig, '{}') && array['search_path=pg_catalog, pg_temp']"
    )
    assert loose == []


def test_another_version_of_the_schema_is_refused_until_it_is_brought_up_to_date(cloud):
    cloud.sql("update lokadb.settings set value = 'old' where name = 'sql_version'")
    for words in (
        ["tables"],
        ["orgs"],
        ["add-table", "-table", "t"],
        ["remove-table", "-table", "t"],
        ["pause", "-org", "1"],
        ["resume", "-org", "1"],
        ["org-profile", "-org", "1", "fdw"],
        ["move-org", "-org", "1", "-back"],
        ["refs-diff"],
        ["refs-sync"],
    ):
        said = cloud.run(*words)
        assert said.returncode == 1 and said.stdout == ""
        assert said.stderr == (
            "lokadb: schema lokadb in database %s was made by another version of lokadb: run lokadb init of this version on it\n"
            % cloud.name
        )
    cloud.run("init", check=True)
    assert cloud.run("orgs", check=True).stdout.startswith("org")
