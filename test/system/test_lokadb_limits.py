"""doc/limits.md says what is so: each statement, for an organization that has moved, with the error it gets."""

import pytest
import wire
from harness import ROOT, eventually
from lokadb_world import APPLICATION, TABLES, World

NEW = "insert into documents (id, organization_id, title) values "
# Document g is organization 1 + g % 5's; 1 has moved, 3 is at home.
AS_APPLICATION = [
    ("42P10", NEW + "(5, 1, 'x') on conflict (id) do nothing"),
    ("42704", NEW + "(5, 1, 'x') on conflict on constraint documents_pkey do nothing"),
    ("", NEW + "(5, 1, 'x') on conflict do nothing"),
    ("23505", NEW + "(7, 1, 'x') on conflict do nothing"),
    ("42803", "select id, title, count(*) from documents group by id"),
    ("0A000", "copy documents from stdin"),
    ("0A000", "merge into documents d using (values (5)) v (i) on d.id = v.i when matched then update set title = 'm'"),
    (
        "0A000",
        "begin; declare c cursor for select * from documents for update; fetch c; update documents set title = 'z' where current of c",
    ),
    ("0A000", "update documents set id = 90000 where id = 5"),
    ("0A000", "update documents set organization_id = 3 where id = 5"),
    ("", "update documents set organization_id = 1, id = 5 where id = 5"),
    (
        "0A000",
        "set lokadb.tenant = ''; insert into messages (conversation_id) select id from conversations where organization_id = 1 limit 1",
    ),
    (
        "23514",
        "set lokadb.tenant = '*'; insert into messages (organization_id, conversation_id) select 1, id from conversations where organization_id = 3 limit 1",
    ),
    ("42501", NEW + "(9999, 3, 'x')"),
    ("0A000", "begin; insert into documents (organization_id) values (1); prepare transaction 'x'"),
    ("23503", "delete from organizations where id = 1"),
    ("23503", "update organizations set id = 99 where id = 1"),
]
AS_OWNER = [
    ("0A000", "truncate documents"),
    ("42809", "copy documents to stdout"),
    (
        "42703",
        "begin; alter table documents add column lang text; select count(lang) from documents where organization_id = 1",
    ),
    (
        "23502",
        "begin; insert into documents (organization_id) values (1); alter table documents drop column title; insert into documents (organization_id) values (1)",
    ),
    ("42809", "create unique index on documents (organization_id, title)"),
    ("42809", "alter table documents add unique (organization_id, id)"),
    ("0A000", "alter table documents add primary key (id)"),
    ("0A000", "create index concurrently on documents (title)"),
    ("", "begin; create index on documents (title)"),
    ("42809", "alter table documents add foreign key (organization_id) references organizations"),
    ("42704", "create table notes (document_id bigint references documents)"),
    ("", "begin; create table notes (document_id bigint references documents__refs)"),
    (
        "0A000",
        "begin; create trigger t after insert on documents referencing new table as n for each statement execute function nothing(); insert into documents (organization_id, title) values (1, 'x')",
    ),
]


@pytest.fixture
def world(cluster):
    w = World(cluster)
    try:
        w.set_up((APPLICATION % 100).replace("title text", "title text not null default 'x'"), *TABLES)
        w.sql("create function nothing() returns trigger language plpgsql as 'begin return null; end'")
        w.move("1")
        w.org_sql("1", "alter table documents alter title drop default")
        yield w
    finally:
        w.drop()


def test_each_statement_gets_the_error_that_is_documented(world):
    said = (ROOT / "doc" / "limits.md").read_text()
    wrong = []
    for user, statements in (("app", AS_APPLICATION), ("postgres", AS_OWNER)):
        for code, statement in statements:
            with wire.Conn(world.cluster.port, user=user, database=world.cloud) as c:
                c.query("set lokadb.tenant = '1'")
                got = "".join(c.ask(wire.query(statement)).codes)
                if got != code:
                    wrong.append("%s, not %s: %s" % (got, code, statement))
            assert code in said
    assert not wrong, "\n".join(wrong)


def test_what_differs_quietly(world):
    with world.app() as c, world.app() as other:
        for session in (c, other):
            session.query("set lokadb.tenant = '1'")
        assert c.query("copy documents to stdout").copied == b""
        assert c.query("copy (select id from documents where id = 5) to stdout").copied == b"5\n"
        assert c.value("select count(*) from only documents") == "0"
        assert c.value("select xmin from documents where id = 5") == "0"
        other.query("begin; update documents set title = 'held' where id = 5")
        assert (
            c.fails("set statement_timeout = '300ms'; select id from documents where id = 5 for update skip locked")[
                "C"
            ]
            == "57014"
        )
        c.query("reset statement_timeout")
        c.send(wire.query("update documents set title = 'second' where id = 5"))
        eventually(
            lambda: world.cluster.backends("wait_event_type = 'Lock' and usename = 'customers_fdw'"), 5, "it waits"
        )
        other.query("commit")
        assert c.ready().codes == ["40001"]
        c.query("begin")
        before = c.value("select title from documents where id = 5")
        other.query("update documents set title = 'meanwhile' where id = 5")
        assert c.value("select title from documents where id = 5") == before
        c.query("commit")


def test_a_dead_organization_and_the_others(world):
    world.sql("alter server lokadb_o1 options (set port '1')")
    with world.app() as c:
        c.query("set lokadb.tenant = '3'")
        assert c.value("select count(*) from documents") == "20"
        assert c.fails("update documents set title = 'y' where id = 7")["C"] == "08001"
        c.query("update documents set title = 'y' where id = 7 and organization_id = 3")
        assert c.fails("set lokadb.tenant = ''; select count(*) from documents")["C"] == "08001"
