"""What Django and ActiveRecord do by themselves on tables under LokaDB, with no organization moved.

What a partitioned root cannot do is here, too: the proxy will write such statements on the local part."""

import pathlib
import random
import subprocess

import pytest

from lokadb_app import lokadb

ORM = pathlib.Path(__file__).parent / "orm"


@pytest.fixture(scope="module")
def shop(cluster_of_session):
    cluster, name = cluster_of_session, "orm%d" % random.randrange(10**9)
    cluster.sql("create database " + name, "postgres")
    said = {}

    def run(program, *arguments):
        done = subprocess.run([*program, str(cluster.port), name, *arguments], capture_output=True, text=True, timeout=60, cwd=ORM)
        assert done.returncode == 0, done.stderr
        return dict(line.split(": ", 1) for line in done.stdout.splitlines())

    django = ["/usr/bin/python3", "-B", str(ORM / "django_app.py")]
    cluster.sql("do $$ begin if to_regrole('shopper') is null then create role shopper login; end if; end $$", "postgres")
    run(django, "create")
    said["inspected before"] = run(django, "inspect")
    cluster.sql("grant select, insert, update, delete on all tables in schema public to shopper;"
                "grant usage on all sequences in schema public to shopper", name)
    db = "host=127.0.0.1 port=%d user=postgres dbname=%s" % (cluster.port, name)
    lokadb("init", "-db", db)
    for table in ("shop_document", "shop_comment"):
        lokadb("add-table", "-db", db, "-table", table)
    said["inspected"] = run(django, "inspect")
    said["ruby"] = run(["ruby", str(ORM / "active_record.rb")])
    said["django"] = run(django, "work")
    said["migrate"] = run(django, "migrate")
    yield said
    if name in cluster.admin:
        cluster.admin.pop(name).drop()
    cluster.sql("drop database %s with (force)" % name, "postgres")


DJANGO = {
    "all": "['d0', 'd1', 'd2']",
    "key comes back": "True",
    "get": "renamed",
    "many": "[True, True]",
    "created": "False",
    "updated": "2",
    "join": "0.00",
    "sum": "{'n': 6, 's': Decimal('15.50')}",
    "subquery": "3",
    "prefetch": "3",
    "locked": "y",
    "other organization": "0",
    "unique": "23505",
    "cascade": "[('shop.Comment', 1), ('shop.Document', 1)]",
    # What a root cannot do, and what the proxy will make of it while the organization is at home.
    "group by key on the root": "42803",
    "group by key on the local part": "5",
}


@pytest.mark.parametrize("what", DJANGO)
def test_django_works_with_models(shop, what):
    assert shop["django"][what] == DJANGO[what]


def test_django_migrations_reach_the_local_part(shop):
    assert shop["migrate"]["added column"] == "5"


def test_what_the_catalog_shows_to_django(shop):
    tables = ["shop_comment", "shop_comment__refs", "shop_document", "shop_document__refs"]
    assert shop["migrate"]["tables"] == str(tables)  # partitions are not listed
    assert shop["migrate"]["primary key in the catalog"] == "None"


def test_inspectdb_writes_the_same_columns_without_their_keys(shop):
    before, now = shop["inspected before"], shop["inspected"]
    assert before.pop("id") == "models.BigAutoField(primary_key=True)"
    assert before.pop("organization") == "models.ForeignKey('Organizations', models.DO_NOTHING)"
    assert now == {**before, "id": "models.BigAutoField()", "organization_id": "models.BigIntegerField()"}


RUBY = {
    "all": '["d0", "d1", "d2"]',
    "key comes back": "true",
    "find": '"rails"',
    "update": '"rails 2"',
    "children": "1",
    "includes": "1",
    "lock": '"d0"',
    "destroy": "false",
    # ActiveRecord looks for unique indexes in the catalog, where a root has none: models name their key themselves, and
    # insert_all and upsert refuse.
    "key found in the catalog": "nil",
    "insert_all": "ArgumentError",
    "upsert on the organization and title": "ArgumentError",
}


@pytest.mark.parametrize("what", RUBY)
def test_active_record_works_with_models_that_name_their_key(shop, what):
    assert shop["ruby"][what] == RUBY[what]
