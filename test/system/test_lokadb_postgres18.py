"""The command line and the functions of the cloud on PostgreSQL 18, and from 15 to 18 (script/postgres-18 installs one)."""

import random
import shutil

import conftest
import harness
import pytest
import test_lokadb_parity as parity
from lokadb_app import App, lokadb


@pytest.fixture(scope="module")
def eighteen():
    cluster = harness.Cluster(conftest.new_folder(), harness.postgres_18())
    cluster.start()
    cluster.sql(harness.CLUSTER_SQL, "postgres")
    assert cluster.sql("show server_version", "postgres").value.startswith("18")
    yield cluster
    cluster.stop()
    shutil.rmtree(cluster.folder)


def there_and_back(app):
    before, others = app.content(1), [app.content(o) for o in (2, 3, 4)]
    app.add_database(1)
    assert "rows moved" in app.move(1)
    assert app.content(1) == before
    with app.connect(tenant=1) as c:
        c.query("insert into documents (id, organization_id, title) values (70000, 1, 'x'); delete from documents where id = 4")
        assert c.fails("insert into documents (id, organization_id, title) values (1, 1, 'x')")["n"] == "documents_pkey"
        c.query("begin; insert into messages (organization_id, conversation_id, body) select 1, id, 'x' from conversations; rollback")
    assert "refs and rows agree" in lokadb("refs-diff", "-db", app.db)
    said = lokadb("org-profile", "-db", app.db, "-org", 1, *app.secrets, "fdw")
    assert "fdw (was fdw)" in said
    app.back(1)
    assert [app.content(o) for o in (2, 3, 4)] == others
    assert app.sql("select count(*) from documents where organization_id = 1").value == before[1][0][2]
    assert "refs and rows agree" in lokadb("refs-diff", "-db", app.db)
    assert "removed" in lokadb("remove-table", "-db", app.db, "-all", "-drop-tenant")


@pytest.mark.parametrize("cloud", [15, 18])
def test_there_and_back(cluster, eighteen, cloud):
    app = App(cluster if cloud == 15 else eighteen, "up%d" % random.randrange(10**9), rows=40, far=eighteen)
    try:
        there_and_back(app)
    finally:
        app.drop()


def test_not_to_an_older_one(cluster, eighteen):
    app = App(eighteen, "down%d" % random.randrange(10**9), rows=40, far=cluster)
    try:
        app.add_database(1)
        assert "it is PostgreSQL 15, older than the cloud's 18" in app.move(1, status=1)
    finally:
        app.drop()


def test_virtual_generated_columns_are_named_before_a_move(eighteen):
    app = App(eighteen, "virtual%d" % random.randrange(10**9), rows=40)
    try:
        app.add_database(1)
        app.sql("alter table documents add column twice numeric generated always as (price * 2)")
        said = app.move(1, status=1)
        assert "column twice of public.documents is generated and not stored" in said
    finally:
        app.drop()


def test_statements_answer_alike(eighteen):
    name = "parity%d" % random.randrange(10**9)
    home, moved = App(eighteen, name + "_home"), App(eighteen, name + "_moved")
    try:
        moved.add_database(1)
        moved.move(1)
        with parity.plain_database(eighteen, name + "_plain"):
            databases = [(eighteen, name + "_plain"), (eighteen, home.name), (eighteen, moved.name)]
            wrong = [w for path in parity.FILES for w in parity.run(path, databases, False)]
            assert not wrong, "\n".join(wrong)
    finally:
        home.drop()
        moved.drop()
