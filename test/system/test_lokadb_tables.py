"""lokadb add-table, tables, remove-table: what they make, and that it can be taken back."""

import json

import harness
import pytest
from cloud import DOCUMENTS, MESSAGES, ORGANIZATIONS


# ------------------------------------------------------------------ keys and tenants

VALUES = {
    "bigint": ("7", "9007199254740993"),
    "int": ("7", "8"),
    "uuid": ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"),
    "text": ("a'b%\"c", "é"),
}


@pytest.mark.parametrize("tenant", VALUES)
@pytest.mark.parametrize("key", VALUES)
def test_every_type_of_key_and_tenant(cloud, key, tenant):
    literal = lambda v: "'" + v.replace("'", "''") + "'"
    k1, k2 = map(literal, VALUES[key])
    o1, o2 = map(literal, VALUES[tenant])
    cloud.sql("create table t (k %s primary key, o %s not null, note text)" % (key, tenant))
    cloud.sql("create table child (k %s primary key, t_k %s references t)" % (key, key))
    cloud.sql("insert into t values (%s, %s, 'one'), (%s, %s, 'two')" % (k1, o1, k2, o2))
    cloud.sql("insert into child values (%s, %s), (%s, %s)" % (k1, k1, k2, k2))
    cloud.sql("grant select, insert, update, delete on t, child to app")
    before = cloud.schema()
    assert cloud.add("t", "-tenant", "o", "-key", "k")["rows"] == 2
    assert cloud.add("child")["tenant_added"] is True
    refs = cloud.rows("select r.k::text, r.o::text from t__refs r join t using (k, o)")
    assert sorted(refs) == sorted(zip(VALUES[key], VALUES[tenant]))
    with cloud.connect() as app:
        app.query("begin; set local lokadb.tenant = %s" % o2)
        assert app.value("select string_agg(note, ',') from t") == "two"
        assert app.value("select t_k from child") == VALUES[key][1]
        assert app.query("update t set note = 'x' where o is not null").tags == ["UPDATE 1"]
        assert app.fails("insert into t values (%s, %s)" % (k1, o2))["C"] == "23505"
        app.query("rollback")
        # unset and '*': all
        assert app.value("select count(*) from t") == "2"
        app.query("set lokadb.tenant = '*'")
        assert app.value("select count(*) from t") == "2"
        app.query("set lokadb.tenant = ''")
        assert app.fails("insert into child values (%s, %s)" % (k1, k1))["n"] == "child_pkey"
        app.query("delete from child; delete from t where o = %s" % o1)
        app.query("reset lokadb.tenant; insert into t values (%s, %s)" % (k1, o1))
        app.query("insert into child values (%s, %s)" % (k1, k1))
        assert app.value("select o from child") == VALUES[tenant][0]
    cloud.remove("child", arguments=["-drop-tenant"])
    cloud.remove("t")
    assert cloud.schema() == before


@pytest.mark.parametrize(
    "tenant, bad",
    [
        ("bigint", ["' 2'", "'+2'", "'02'", "'2 '", "'x'", "'-0'", "'2.0'", "'9223372036854775808'", "E'2\\n'"]),
        ("uuid", ["'{11111111-1111-1111-1111-111111111111}'", "'AAAAAAAA-1111-1111-1111-111111111111'", "'2'"]),
    ],
)
def test_only_canonical_tenants_are_understood(cloud, tenant, bad):
    cloud.sql("create table t (id bigint primary key, organization_id %s not null)" % tenant)
    cloud.sql("create table child (id bigint primary key, t_id bigint references t); grant all on t, child to app")
    cloud.add("t")
    cloud.add("child")
    cloud.sql(
        "insert into t values (1, lokadb.to_tenant(%s))" % {"bigint": "'5'", "uuid": "gen_random_uuid()::text"}[tenant]
    )
    with cloud.connect() as app:
        for name in bad:
            app.query("select set_config('lokadb.tenant', %s, false)" % name)
            assert app.fails("select * from t")["C"] == "22P02", name
            assert app.fails("insert into child values (1, 1)")["C"] == "22P02", name
            assert app.fails("select * from lokadb.enter(%s, 0)" % name)["C"] == "22P02", name


def test_what_is_no_organization_cannot_be_written(cloud):
    cloud.sql(
        "create table t (id bigint primary key, o text not null); insert into t values (1, 'a'); grant all on t to app"
    )
    cloud.add("t", "-tenant", "o")
    with cloud.connect() as app:
        for name in ("''", "'*'", "chr(1114111)", "repeat(chr(1114111), 4)"):
            assert app.fails("insert into t values (2, %s)" % name)["C"] == "42501"
        app.query("insert into t values (2, ' 2')")
        assert app.value("begin; set local lokadb.tenant = ' 2'; select id from t") == "2"


def test_an_int_tenant_column_prunes_and_keeps_its_type(cloud):
    cloud.sql(
        "create table t (id int primary key, o int not null); insert into t select g, g % 3 from generate_series(1, 9) g"
    )
    cloud.sql("grant all on t to app")
    cloud.add("t", "-tenant", "o")
    assert cloud.rows(
        "select format_type(atttypid, null) from pg_attribute where attrelid = 't'::regclass and attname = 'o'"
    ) == [("integer",)]
    with cloud.connect() as app:
        app.query("begin; set local lokadb.tenant = '3000000000'")
        assert app.value("select count(*) from t") == "0"
        app.query("set local lokadb.tenant = '2'")
        assert app.value("select count(*) from t") == "3"


# ------------------------------------------------------------------ names

ODD = ["Big", "with space", 'q"uote', "ap'ostrophe", "per%cent%s", "select", "ünïcödé", "back\\slash", "$1"]


@pytest.mark.parametrize("name", ODD)
def test_odd_identifiers(cloud, name):
    q = '"' + name.replace('"', '""') + '"'
    cloud.sql("create schema %s; grant usage on schema %s to app" % (q, q))
    cloud.sql(
        'create table {q}.{q} ("k{n}" bigint primary key, "o{n}" bigint not null, up bigint references {q}.{q})'.format(
            q=q, n=q[1:-1]
        )
    )
    cloud.sql(
        'create table {q}."c{n}" ({q} bigint primary key, "p{n}" bigint references {q}.{q})'.format(q=q, n=q[1:-1])
    )
    cloud.sql("insert into {q}.{q} values (1, 1, null), (2, 2, null)".format(q=q))
    cloud.sql('insert into {q}."c{n}" values (1, 2)'.format(q=q, n=q[1:-1]))
    cloud.sql("create view {q}.v as select * from {q}.{q}; grant all on all tables in schema {q} to app".format(q=q))
    before = cloud.schema()
    table, child = "%s.%s" % (q, q), '%s."c%s"' % (q, q[1:-1])
    cloud.add(table, "-tenant", "o" + name, "-key", "k" + name)
    cloud.add(child)
    with cloud.connect() as app:
        app.query("begin; select * from lokadb.enter('2', 0)")
        error = app.fails("select lokadb.put_refs('%s', '2', '{1}')" % table.replace("'", "''"))
        assert (error["C"], error["s"], error["t"], error["n"]) == ("23505", name, name, (name + "_pkey"))
        assert error["D"] == "Key (k%s)=(1) already exists." % name
        error = app.fails("rollback; begin; set local lokadb.tenant = '1'; insert into %s values (3, 2)" % child)
        assert (error["C"], error["s"], error["t"], error["c"]) == ("23514", name, "c" + name, "p" + name)
        error = app.fails("rollback; begin; insert into %s values (3, 1, 2)" % table)
        assert (error["C"], error["c"]) == ("23514", "up")
        app.query("rollback; insert into %s values (3, 2)" % child)
        assert app.value('select "o%s" from %s where %s = 3' % (q[1:-1], child, q)) == "2"
        assert app.fails("update {t} set {c} = 3 - {c}".format(t=table, c='"o%s"' % q[1:-1]))["C"] == "0A000"
        app.query("delete from %s" % child)
    cloud.remove(child, arguments=["-drop-tenant"])
    cloud.remove(table)
    assert cloud.schema() == before


def test_long_names_of_many_bytes_do_not_meet(cloud):
    for name in ("é" * 27, "é" * 26 + "x"):
        cloud.sql('create table "%s" (id bigint primary key, organization_id bigint not null)' % name)
        cloud.add('"%s"' % name)
        cloud.sql(
            'insert into "%s" values (1, 1); delete from "%s"; insert into "%s" values (2, 2)' % (name, name, name)
        )
        assert cloud.rows('select * from "%s__refs"' % name) == [("2", "2")]


# ------------------------------------------------------------------ what the application has


def test_the_tenant_column_is_added_filled_and_kept_right(cloud):
    cloud.sql(DOCUMENTS + MESSAGES)
    cloud.sql("create function loud() returns trigger language plpgsql as 'begin raise exception $$fired$$; end'")
    cloud.sql("create trigger loud before update on messages for each row execute function loud()")
    cloud.sql(
        "create trigger quiet before update on messages for each row execute function loud(); alter table messages disable trigger quiet"
    )
    cloud.sql(
        "create trigger replica before update on messages for each row execute function loud(); alter table messages enable replica trigger replica"
    )
    before = cloud.schema()
    cloud.add("documents")
    said = cloud.add("messages")
    assert said["tenant_added"] and said["relations"] == {"document_id": "public.documents"} and said["rows"] == 80
    assert (
        cloud.value(
            "select count(*) from messages m join documents d on d.id = m.document_id where m.organization_id <> d.organization_id"
        )
        == "0"
    )
    with cloud.connect() as app:
        app.query("insert into messages (document_id, body) values (1, 'new')")  # local parent: filled in
        assert app.value("select organization_id from messages where body = 'new'") == "2"
        app.query("begin; set local lokadb.tenant = '2'; insert into messages (document_id) values (1); commit")
        error = app.fails("begin; set local lokadb.tenant = '3'; insert into messages (document_id) values (1)")
        assert (error["C"], error["n"]) == ("23514", "messages_document_id_lokadb_parent")
        app.query("rollback")
        for named in ("''", "'2'"):
            error = app.fails(
                "begin; set local lokadb.tenant = %s; insert into messages (document_id) values (999)" % named
            )
            assert (error["C"], error["n"]) == ("23503", "messages_document_id_fkey")
            app.query("rollback")
        assert app.fails("insert into documents (title) values ('of nobody')")["C"] == "23502"
    cloud.remove("messages", arguments=["-drop-tenant"])
    cloud.remove("documents")
    assert cloud.schema() == before


def test_without_drop_tenant_the_column_stays_and_hinders_nobody(cloud):
    cloud.sql(DOCUMENTS + MESSAGES)
    cloud.add("documents")
    cloud.add("messages")
    cloud.remove("messages", "documents")
    cloud.sql("insert into messages (document_id) values (1)")
    assert cloud.value("select count(organization_id) from messages") == "80"


EVERYTHING = (
    ORGANIZATIONS
    + """
create role looker; create role scribe; create role keeper; create role grantor;
grant looker to app;
create schema other;
create table currencies (code text primary key); insert into currencies values ('EUR');
create table docs (id bigint generated always as identity (start 10 increment 5) primary key,
  nr serial, organization_id bigint references organizations on delete cascade,
  title text default 'none' check (title <> 'bad'), loud text generated always as (upper(title)) stored,
  currency text references currencies, parent bigint references docs deferrable initially deferred,
  secret text, unique (organization_id, title));
create index on docs (title) where title is not null;
create table likes (id uuid primary key default gen_random_uuid(), doc bigint not null references docs match full on delete cascade);
comment on table docs is 'the ''documents'''; comment on column docs.title is 'a "title"';
comment on constraint likes_doc_fkey on likes is 'of likes'; comment on sequence docs_id_seq is 'ids';
insert into docs (organization_id, title, currency) select 1 + g % 4, 't' || g, 'EUR' from generate_series(1, 20) g;
update docs set parent = 10 where organization_id = 2;  set constraints all immediate;
insert into likes (doc) select id from docs; alter table likes add constraint later foreign key (doc) references docs not valid;
grant select on docs to looker; grant select (id, title), update (title) on docs to scribe;
grant all on docs to keeper with grant option; grant usage on sequence docs_id_seq to app with grant option;
grant insert on docs to public;
create view v_all with (security_barrier = true) as select * from docs;
create view other.v_own with (check_option = local, security_invoker = on) as select id, title from docs where title like 't%%';
create view v_nested as select count(*) from v_all;
comment on view v_all is 'all'; grant select on v_all to looker; alter view v_nested owner to keeper;
grant select on v_all to keeper;
create table noted (what text);
grant insert on noted to public;
create function note() returns trigger language plpgsql as $$begin insert into noted values (tg_name || ' ' || tg_table_name || ' ' || tg_op); return null; end$$;
create trigger st_after after insert or delete on docs for each statement execute function note();
create trigger st_new after update on docs referencing new table as n for each statement execute function note();
create trigger st_off before update on docs for each statement execute function note();
alter table docs disable trigger st_off; comment on trigger st_after on docs is 'after';
create trigger row_after after insert on docs for each row when (new.title = 'x') execute function note();
create trigger st_trunc before truncate on docs for each statement execute function note();
alter table docs alter title set statistics 500, alter title set storage external;
create statistics other.st on title, organization_id from docs;
"""
)


def drop_roles(cluster):
    cluster.sql("drop role if exists looker, scribe, keeper, grantor", "postgres")


def test_everything_a_table_can_have_works_and_comes_back(cloud, request):
    drop_roles(cloud.cluster)
    cloud.sql(EVERYTHING.replace("%%", "%"))
    request.addfinalizer(lambda: (cloud.close(), drop_roles(cloud.cluster)))
    before = cloud.schema()
    cloud.add("docs")
    cloud.add("likes")
    cloud.sql("delete from noted")
    # identity goes on, always; the serial and the generated column, too
    assert cloud.rows("insert into docs (organization_id, title) values (1, 'x') returning id, nr, loud") == [
        ("110", "21", "X")
    ]
    assert cloud.cluster.admin[cloud.name].fails("insert into docs (id, organization_id) values (1, 1)")["C"] == "428C9"
    assert cloud.rows("select what from noted order by 1") == [
        ("row_after docs__local INSERT",),
        ("st_after docs INSERT",),
    ]
    # views read all of the root, with their options and owners
    assert cloud.value("select count(*) from v_all") == "21" and cloud.value("select * from v_nested") == "21"
    assert cloud.rows("select reloptions from pg_class where relname in ('v_all', 'v_own') order by 1") == [
        ("{check_option=local,security_invoker=on}",),
        ("{security_barrier=true}",),
    ]
    assert cloud.value("select relowner::regrole from pg_class where relname = 'v_nested'") == "keeper"
    assert cloud.value("select pg_get_viewdef('v_all') like '%docs__local%'") == "f"
    # rights: the root has them all, column grants included, and nobody else
    assert cloud.rows(
        "select has_table_privilege('looker', 'docs', 'select'), has_table_privilege('looker', 'docs', 'update'),"
        " has_column_privilege('scribe', 'docs', 'title', 'update'), has_column_privilege('scribe', 'docs', 'secret', 'select'),"
        " has_table_privilege('keeper', 'docs', 'truncate with grant option'), has_table_privilege('other', 'docs', 'insert')"
    ) == [("t", "f", "t", "f", "t", "t")]
    assert (
        cloud.value("select obj_description('docs'::regclass) || col_description('docs'::regclass, 4)")
        == "the 'documents'a \"title\""
    )
    with cloud.connect() as app:
        assert app.value("begin; set local lokadb.tenant = '3'; select count(*) from docs") == "5"
        app.query("rollback")
        assert app.fails("select * from docs__refs")["C"] == "42501"
        assert app.fails("delete from docs__local")["C"] == "42501"
    assert cloud.cluster.admin[cloud.name].fails("truncate docs cascade")["C"] == "0A000"
    cloud.remove("likes", arguments=["-drop-tenant"])
    cloud.remove("docs")
    assert cloud.schema() == before
    assert cloud.rows("insert into docs (organization_id, title) values (1, 'y') returning id, nr") == [("115", "22")]
    assert (
        cloud.value("select count(*) from pg_proc where pronamespace = 'lokadb'::regnamespace and proname like 'docs%'")
        == "0"
    )


def test_default_privileges_open_nothing(cloud):
    cloud.sql(
        DOCUMENTS
        + "create table users (id bigint generated by default as identity primary key, organization_id bigint not null)"
    )
    cloud.sql("alter default privileges revoke execute on functions from public")
    cloud.sql(
        "alter default privileges grant all on tables to other; alter default privileges grant all on sequences to other;"
        " alter default privileges grant execute on functions to other"
    )
    cloud.run("init", check=True)
    cloud.add("documents")
    cloud.add("users")
    for name in ("documents", "documents__local", "documents__refs", "users", "lokadb.tables", "lokadb.settings"):
        assert cloud.value("select has_table_privilege('other', '%s', 'select')" % name) == "f", name
    for name in ("users_id_seq", "lokadb.generation"):
        assert cloud.value("select has_sequence_privilege('other', '%s', 'usage')" % name) == "f", name
    open_functions = cloud.rows(
        "select proname from pg_proc where pronamespace = 'lokadb'::regnamespace and has_function_privilege('other', oid, 'execute') order by 1"
    )
    assert [name for (name,) in open_functions] == sorted(
        "to_tenant tenant tenant_lo tenant_hi nobody role require enter enter_all find_refs put_refs del_refs check_parents leaf_guard lacks_columns next_identity".split()
    )
    with cloud.connect() as app:  # and what is needed is there
        assert app.value("begin; set local lokadb.tenant = '2'; select count(*) from documents") == "10"
        app.query("insert into documents (organization_id) values (2); select * from lokadb.enter('2', 0); rollback")


def test_self_reference_is_kept_within_the_organization(cloud):
    cloud.sql(
        "create table nodes (id bigint primary key, organization_id bigint not null, up bigint references nodes); grant all on nodes to app"
    )
    cloud.sql("insert into nodes values (1, 1, null), (2, 2, null), (3, 1, 1)")
    before = cloud.schema()
    assert cloud.add("nodes")["relations"] == {"up": "public.nodes"}
    with cloud.connect() as app:
        app.query("insert into nodes values (4, 1, 3), (5, 1, 4)")
        assert app.fails("insert into nodes values (6, 2, 1)")["C"] == "23514"
        assert app.fails("update nodes set up = 2 where id = 3")["C"] == "23514"
        for rows in ("(7, 1, null), (8, 2, 7)", "(8, 2, 7), (7, 1, null)"):  # of one statement
            assert app.fails("insert into nodes values " + rows)["C"] == "23514", rows
        assert app.fails("insert into nodes values (9, 1, 999)")["C"] == "23503"
    cloud.remove("nodes")
    assert cloud.schema() == before


def test_declared_relations(cloud):
    cloud.sql(
        "create table docs (id bigint primary key, organization_id bigint not null); insert into docs values (1, 1), (2, 2)"
    )
    cloud.sql(
        "create table notes (id bigint primary key, doc int, up bigint); insert into notes values (1, 1, null), (2, 2, 2)"
    )
    cloud.sql("grant all on docs, notes to app")
    cloud.add("docs")
    said = cloud.add("notes", "-relation", "doc=docs", "-relation", "up=public.notes")
    assert said["relations"] == {"doc": "public.docs", "up": "public.notes"}
    assert cloud.rows("select id, organization_id from notes order by 1") == [("1", "1"), ("2", "2")]
    with cloud.connect() as app:
        error = app.fails("begin; set local lokadb.tenant = '1'; insert into notes values (3, 2, null)")
        assert (error["C"], error["c"]) == ("23514", "doc")
        app.query("rollback")
        assert app.fails("insert into notes values (3, 1, 2)")["C"] == "23514"
        app.query("begin; set local lokadb.tenant = '1'; insert into notes values (3, 777, null)")  # no key, no matter
    assert "doc=public.docs up=public.notes" in cloud.run("tables").stdout


# ------------------------------------------------------------------ the command line


def test_all_walks_the_foreign_keys_and_may_be_repeated(cloud):
    cloud.sql(DOCUMENTS + MESSAGES)
    cloud.sql(
        "create table attachments (id uuid primary key, message bigint references messages, doc bigint references documents)"
    )
    before = cloud.schema()
    for round in (1, 2):
        done = cloud.run("add-table", "-all", "-json", check=True)
        tables = [json.loads(line) for line in done.stdout.splitlines()]
        assert [t["table"] for t in tables] == ["public.documents", "public.messages", "public.attachments"]
        assert all(t["added"] is (round == 1) for t in tables)
    cloud.sql("create table late (id bigint primary key, message bigint references messages__refs)")
    assert '"public.late"' in cloud.run("add-table", "-all", "-table", "organizations", "-json", check=True).stdout
    cloud.run("remove-table", "-all", "-drop-tenant", check=True)
    cloud.sql("drop table late")
    assert cloud.schema() == before
    assert "no table refers to documents" not in cloud.run("tables", check=True).stdout


def test_dry_run_says_all_and_changes_nothing(cloud):
    cloud.sql(DOCUMENTS + MESSAGES)
    before = cloud.schema()
    said = cloud.run("add-table", "-all", "-dry-run", check=True).stdout
    assert (
        "public.messages: added, 80 rows, tenant column organization_id made" in said and "nothing was changed" in said
    )
    assert cloud.schema() == before and cloud.rows("select * from lokadb.tables") == []
    cloud.run("add-table", "-all", check=True)
    added = cloud.schema()
    assert (
        "removed, 80 rows, tenant column organization_id dropped"
        in cloud.run("remove-table", "-all", "-drop-tenant", "-dry-run", check=True).stdout
    )
    assert cloud.schema() == added


def test_what_is_said_was_done(cloud):
    """Of several tables none is reported when one of them is refused."""
    cloud.sql(DOCUMENTS + "create table bad (id bigint, document_id bigint references documents)")
    assert "public.bad has no primary key" in cloud.refuses("add-table", "-all")


def test_json_and_help(cloud):
    cloud.sql(DOCUMENTS)
    assert cloud.add("documents") == {
        "table": "public.documents",
        "added": True,
        "rows": 40,
        "tenant": "organization_id",
        "tenant_added": False,
        "relations": {},
    }
    assert json.loads(cloud.run("tables", "-json").stdout)[0]["cloud_keys"] == "organization_id=public.organizations"
    assert json.loads(cloud.run("remove-table", "-table", "documents", "-json").stdout)["removed"] is True
    for words in (["-h"], ["add-table", "-h"], ["remove-table", "--help"]):
        assert harness.lokadb(*words, check=True).stdout.startswith("Usage: lokadb")
    for words in (
        [],
        ["frob"],
        ["add-table"],
        ["add-table", "-db", "x"],
        ["remove-table", "-db", "x"],
        ["add-table", "-frob"],
        ["add-table", "-db", "x", "-all", "-key", "k"],
        ["add-table", "-db", "x", "-table", "t", "-relation", "x"],
    ):
        assert harness.lokadb(*words).returncode == 2, words
