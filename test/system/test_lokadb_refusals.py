"""What add-table and remove-table refuse: one sentence that says what to do, and nothing has changed."""

import pytest
from cloud import ORGANIZATIONS, Cloud

T = (
    ORGANIZATIONS
    + """
create table t (id bigint primary key, organization_id bigint not null references organizations, v text);
insert into t values (1, 1, 'a'), (2, 2, 'b');
"""
)
AS = "id bigint primary key, organization_id bigint not null"

# what is there besides; the table (and flags); what is said
REFUSED = {
    "unknown table": ("", "nothing", "there is no table nothing: name it with its schema"),
    "unknown schema": ("", "no.t", "there is no table no.t"),
    "no name": ("", "", "there is no table"),
    "a number": ("", "16384", "there is no table 16384"),
    "not quoted": ('create table "T u" (%s)' % AS, "T u", "there is no table T u: name it with its schema, quoted"),
    "a view": ("create view v as select * from t", "v", "public.v is a view: add the tables it reads"),
    "a materialized view": ("create materialized view v as select 1 as id", "v", "is a view"),
    "a sequence": ("create sequence s", "s", "public.s is not a table"),
    "a partitioned table": ("create table p (%s) partition by hash (id)" % AS, "p", "is partitioned"),
    "a partition": (
        "create table p (%s) partition by hash (id); create table p1 partition of p for values with (modulus 1, remainder 0)"
        % AS,
        "p1",
        "public.p1 is a partition: only whole tables",
    ),
    "an inheritance parent": ("create table child () inherits (t)", "t", "inheritance tree: take it out"),
    "an inheritance child": ("create table c (primary key (id)) inherits (t)", "c", "inheritance tree"),
    "a foreign table": (
        "create server s foreign data wrapper postgres_fdw; create foreign table f (id bigint) server s",
        "f",
        "is a foreign table",
    ),
    "a typed table": (
        "create type y as (id bigint, organization_id bigint); create table ty of y (primary key (id))",
        "ty",
        "is a typed table",
    ),
    "an unlogged table": ("create unlogged table u (%s)" % AS, "u", "make it LOGGED first"),
    "a system table": ("", "pg_catalog.pg_class", "belongs to the system"),
    "a table of lokadb": ("", "lokadb.settings", "belongs to the system"),
    "rules": ("create rule r as on insert to t do also nothing", "t", "public.t has rules: replace them by triggers"),
    "no key": ("create table n (organization_id bigint)", "n", "public.n has no primary key: give it one"),
    "a composite key": (
        "create table n (a int, organization_id bigint, primary key (a, organization_id))",
        "n",
        "has several columns",
    ),
    "a key of another type": (
        "create table n (id numeric primary key, organization_id bigint)",
        "n",
        "is of type numeric: it must be bigint, int, uuid or text",
    ),
    "a deferrable key": (
        "create table n (id bigint primary key deferrable, organization_id bigint)",
        "n",
        "make it NOT DEFERRABLE",
    ),
    "another key": ("", "t -key v", "the primary key of public.t is id, not v"),
    "the key as tenant": ("", "t -tenant id", "cannot be its tenant column as well"),
    "a numeric tenant": ("create table n (id bigint primary key, organization_id numeric)", "n", "is of type numeric"),
    "a generated tenant": (
        "create table n (id bigint primary key, organization_id bigint generated always as (id) stored)",
        "n",
        "must be an ordinary one",
    ),
    "an identity tenant": (
        "create table n (id bigint primary key, organization_id bigint generated always as identity)",
        "n",
        "must be an ordinary one",
    ),
    "rows without tenant": (
        "alter table t alter organization_id drop not null; insert into t values (3)",
        "t",
        "has rows whose organization_id is null",
    ),
    "reserved tenant": (
        "insert into organizations values (-9223372036854775808); insert into t values (3, -9223372036854775808)",
        "t",
        "these are not organizations",
    ),
    "reserved text tenants": (
        "create table n (id bigint primary key, o text); insert into n values (1, '*')",
        "n -tenant o",
        "these are not organizations",
    ),
    "no tenant and no parent": (
        "create table n (id bigint primary key, t_id bigint references t)",
        "n",
        "add its parent first, or declare the relation",
    ),
    "a nondeterministic key": (
        "create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
        " create table n (id text collate ci primary key, organization_id bigint)",
        "n",
        "give it a deterministic one",
    ),
    "too long a name": ("create table %s (%s)" % ("n" * 55, AS), "n" * 55, "at most 54 bytes"),
    "too long a name in bytes": ('create table "%s" (%s)' % ("é" * 28, AS), '"%s"' % ("é" * 28), "at most 54 bytes"),
    "name of the local part taken": (
        "create table t__local (a int)",
        "t",
        "public.t__local already, a name that LokaDB needs: rename it",
    ),
    "name of the refs taken by a type": ("create type t__refs as enum ('a')", "t", "public.t__refs already"),
    "foreign key of several columns": (
        "create table o (a int, b int, primary key (a, b)); create table n (%s, a int, b int, foreign key (a, b) references o)"
        % AS,
        "n",
        "has several columns",
    ),
    "cloud key that cascades": (
        "create table o (a int primary key); create table n (%s, a int references o on delete cascade)" % AS,
        "n",
        "make it NO ACTION, NOT DEFERRABLE, or add public.o first",
    ),
    "cloud key that sets null": (
        "create table o (a int primary key); create table n (%s, a int references o on delete set null)" % AS,
        "n",
        "make it NO ACTION",
    ),
    "cloud key that is updated": (
        "create table o (a int primary key); create table n (%s, a int references o on update cascade)" % AS,
        "n",
        "make it NO ACTION",
    ),
    "deferrable cloud key": (
        "create table o (a int primary key); create table n (%s, a int references o deferrable)" % AS,
        "n",
        "NOT DEFERRABLE",
    ),
    "a circle": (
        "create table a (%s, b bigint); create table b (%s, a bigint references a); alter table a add constraint circle foreign key (b) references b"
        % (AS, AS),
        "a",
        "refer to each other in a circle (foreign key circle): drop one",
    ),
    "a key to another column": (
        "alter table t add unique (v); create table n (v text references t (v))",
        "t -accept-unique t_v_key",
        "than its key",
    ),
    "a unique index without tenant": (
        "create unique index u on t (v)",
        "t",
        "add organization_id to it, or accept that with -accept-unique u",
    ),
    "a tenant that the index only carries": (
        "create unique index u on t (v) include (organization_id)",
        "t",
        "unique index u",
    ),
    "a unique expression": ("create unique index u on t (lower(v))", "t", "unique index u"),
    "an exclusion": ("alter table t add constraint x exclude using hash (v with =)", "t", "unique index x"),
    "row security": ("alter table t enable row level security", "t", "row security of its own"),
    "policies that sleep": ("create policy p on t using (true)", "t", "drop its policies"),
    "policy of another table": (
        "create policy p on organizations using (exists (select from t))",
        "t",
        "policy p on table public.organizations depends on public.t",
    ),
    "a function that reads it": (
        "create function f() returns bigint language sql begin atomic select count(*) from t; end",
        "t",
        "function public.f() depends on",
    ),
    "a function of its row": (
        "create function f(t) returns text language sql as 'select $1.v'",
        "t",
        "function public.f(public.t) depends on",
    ),
    "a column of its row": ("create table rows (r t[])", "t", "column r of table public.rows depends on"),
    "a materialized view on it": (
        "create materialized view m as select * from t",
        "t",
        "materialized view public.m depends on public.t",
    ),
    "a rule that writes it": (
        "create view v as select 1 as x; create rule r as on insert to v do instead insert into t values (new.x, 1)",
        "t",
        "rule r on view public.v depends",
    ),
    "a publication": ("create publication p for table t", "t", "publication p depends on public.t"),
    "a view that groups by the key": ("create view v as select id, v from t group by id", "t", "groups by the key"),
    "a row trigger with a transition table": (
        "create function f() returns trigger language plpgsql as 'begin return null; end';"
        " create trigger tr after insert on t referencing new table as n for each row execute function f()",
        "t",
        "make it FOR EACH STATEMENT",
    ),
    "a trigger with our name": (
        "create function f() returns trigger language plpgsql as 'begin return null; end';"
        " create trigger lokadb_x after insert on t for each row execute function f()",
        "t",
        "rename it",
    ),
    "relation of no column": ("", "t -relation w=t", "public.t has no column w"),
    "relation to a stranger": ("", "t -relation v=organizations", "add the parent public.organizations first"),
    "relation of another type": (
        "",
        "t -relation v=t",
        "the column is of type text, the key of the parent of type bigint",
    ),
    "relation of the key": ("", "t -relation id=t", "the key and the tenant column cannot refer to a parent"),
    "an organization that has moved": (
        "insert into lokadb.organizations (org, profile) values ('2', 'fdw')",
        "t",
        "organization 2 has a database of its own",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_add_table_refuses(cloud, what):
    before, words, sentence = REFUSED[what]
    cloud.sql(T + before)
    table, *flags = words.split(" -") if " -" in words else [words]
    arguments = [word for flag in flags for word in ("-" + flag).split(" ", 1)]
    said = cloud.refuses("add-table", "-table", table, *arguments)
    assert sentence in said


CHILDREN = """
create table c (id bigint primary key, t_id bigint not null references t); insert into c values (1, 1), (2, 2);
"""
# after t was added
REFUSED_CHILDREN = {
    "orphans": (
        "create table n (id int primary key, t_id bigint references t__refs); insert into n values (1, null)",
        "n",
        "1 rows of public.n have no parent",
    ),
    "row of another organization": (
        "create table n (%s, t_id bigint references t__refs); insert into n values (1, 1, 2)" % AS,
        "n",
        "1 rows of public.n belong to another organization than the public.t",
    ),
    "row of another organization, in itself": (
        "create table n (%s, up bigint references n); insert into n values (1, 1, null), (2, 2, 1)" % AS,
        "n",
        "belong to another organization than the public.n",
    ),
    "refs as a table": ("", "t__refs", "public.t__refs holds the refs of a table: it is LokaDB's own"),
    "local part as a table": ("", "t__local", "public.t__local is a partition"),
    "another type of tenants": ("create table n (id int primary key, organization_id text)", "n", "are of type bigint"),
    "once more with another key": ("", "t -key v", "is under LokaDB already, with key id"),
    "once more with another relation": ("", "t -relation v=t", "without one of these relations"),
    "another foreign key says otherwise": (
        "create table n (%s, t_id bigint references t__refs)" % AS,
        "n -relation t_id=n",
        "its foreign key refers to public.t",
    ),
    "nulls that are one": (
        "create table n (%s, t_id bigint references t__refs, v text, unique nulls not distinct (t_id, v))" % AS,
        "n",
        "unique index n_t_id_v_key",
    ),
}


@pytest.mark.parametrize("what", REFUSED_CHILDREN)
def test_add_table_refuses_beside_others(cloud, what):
    before, words, sentence = REFUSED_CHILDREN[what]
    cloud.sql(T)
    cloud.add("t")
    cloud.sql(before or "select 1")
    table, *flags = words.split(" -") if " -" in words else [words]
    arguments = [word for flag in flags for word in ("-" + flag).split(" ", 1)]
    assert sentence in cloud.refuses("add-table", "-table", table, *arguments)


def test_a_child_that_was_added_as_if_its_parent_were_a_cloud_table(cloud):
    cloud.sql(T + "create table n (%s, t_id bigint references t)" % AS)
    cloud.add("n")
    assert "public.n was added before its parent public.t: take it out with remove-table" in cloud.refuses(
        "add-table", "-table", "t"
    )


def test_a_temporary_table_is_not_seen(cloud):
    cloud.sql(T + "create temp table mine (%s)" % AS)
    assert "there is no table mine" in cloud.refuses("add-table", "-table", "mine")


def test_a_table_in_use_is_waited_for_a_bounded_time(cloud):
    cloud.sql(T)
    with cloud.connect("postgres") as c:
        c.query("begin; select * from t")
        assert "public.t is in use and was not free for 5 s" in cloud.refuses("add-table", "-table", "t")


def test_a_move_under_way_holds_it_off(cloud):
    cloud.sql(T)
    with cloud.connect("postgres") as c:
        c.query("select pg_advisory_lock(lokadb.pause_key('*'))")
        assert "an organization is being moved: try again" in cloud.refuses("add-table", "-table", "t")


def test_two_who_add_tables_take_turns(cloud):
    cloud.sql(T)
    with cloud.connect("postgres") as c:
        c.query("create table u (%s); begin; select lokadb.add_table('u')" % AS)
        assert "somebody else adds or removes tables" in cloud.refuses("add-table", "-table", "t")


def test_what_is_accepted_or_tells_the_organization_is_no_obstacle(cloud):
    cloud.sql(
        T
        + "create unique index u on t (v); create unique index u2 on t (lower(v)); create unique index u3 on t (v, organization_id)"
    )
    cloud.add("t", "-accept-unique", "u", "-accept-unique", "u2")
    cloud.sql(
        "create table n (id uuid primary key, t_id bigint not null references t__refs, nr int, unique nulls not distinct (t_id, nr))"
    )
    cloud.add("n")


# ------------------------------------------------------------------ tables of another owner


@pytest.fixture
def owners(cloud):
    """The installer boss owns schema lokadb but is no superuser; maker owns the tables."""
    c = cloud.cluster
    for role in ("boss", "maker", "outsider"):
        c.sql("drop role if exists %s" % role, "postgres")
        c.sql("create role %s login" % role, "postgres")
    cloud.sql(
        "drop schema lokadb cascade; alter database %s owner to boss; grant usage on foreign data wrapper postgres_fdw to boss"
        % cloud.name
    )
    cloud.sql("revoke create on schema public from public; grant create on schema public to maker")
    cloud.run("init", user="boss", check=True)
    yield cloud
    cloud.close()
    for role in ("boss", "maker", "outsider"):
        c.sql("drop role %s" % role, "postgres")


OWNED = """
create table organizations (id bigint primary key); insert into organizations values (1), (2);
create table t (id bigserial primary key, organization_id bigint not null references organizations, nr int generated by default as identity);
insert into t (organization_id) values (1), (2); create view v as select * from t;
create table c (id bigint primary key, t_id bigint references t);
"""


def test_a_table_of_another_owner_is_refused_until_that_role_is_granted(owners):
    with owners.connect("maker") as maker:
        maker.query(OWNED)
    before = owners.schema()
    said = owners.refuses("add-table", "-table", "t", user="boss")
    assert (
        said == "public.t belongs to maker and is changed: run this as that role or a superuser, or GRANT maker TO boss"
    )
    owners.sql("grant maker to boss")
    owners.add("t", user="boss")
    owners.add("c", user="boss")
    assert owners.rows(
        "select relname, relowner::regrole from pg_class where relname in ('t', 't__local', 't__refs', 't_id_seq', 't_nr_seq') order by 1"
    ) == [("t", "maker"), ("t__local", "maker"), ("t__refs", "boss"), ("t_id_seq", "maker"), ("t_nr_seq", "maker")]
    with owners.connect("maker") as maker:  # the owner is held to the policy, too
        maker.query("insert into t (organization_id) values (2)")
        maker.query("insert into c values (1, 1)")
        assert maker.value("begin; set local lokadb.tenant = '2'; select count(*) from t") == "2"
        assert maker.value("select count(*) from v") == "2"
        maker.query("rollback")
        assert maker.fails("select * from t__refs")["C"] == "42501"
        assert maker.fails("insert into t (id, organization_id) values (1, 1)")["C"] == "23505"
    assert owners.run("remove-table", "-all", "-drop-tenant", user="boss").returncode == 0
    assert owners.schema() == before


def test_what_stands_around_the_table_may_have_other_owners(owners):
    with owners.connect("maker") as maker:
        maker.query(OWNED)
    owners.sql("alter table t owner to boss; grant create on schema public to boss")
    said = owners.refuses("add-table", "-table", "t", user="boss")
    assert said.startswith("public.c belongs to maker and refers to public.t by foreign key c_t_id_fkey")
    owners.sql("alter table c owner to boss")
    said = owners.refuses("add-table", "-table", "t", user="boss")
    assert said.startswith("public.v belongs to maker and reads public.t")
    owners.sql("alter view v owner to boss")
    said = owners.refuses("add-table", "-table", "t", user="boss")
    assert said.endswith("GRANT TRIGGER ON public.organizations TO boss")
    owners.sql("grant trigger on organizations to boss")
    owners.add("t", user="boss")


def test_an_owner_who_may_not_create_is_named(owners):
    with owners.connect("maker") as maker:
        maker.query(OWNED)
    owners.sql("revoke create on schema public from maker; grant maker to boss")
    assert "maker may not create tables beside public.t: GRANT CREATE ON SCHEMA public TO maker" in owners.refuses(
        "add-table", "-table", "t", user="boss"
    )


def test_a_stranger_cannot_use_the_command_line(cloud):
    cloud.sql(T)
    for command in ("add-table", "remove-table"):
        said = cloud.refuses(command, "-table", "t", user="other")
        assert said == (
            "other may not administer LokaDB here: run this as postgres, who owns schema lokadb, or as a superuser"
        )


def test_a_database_without_schema_lokadb(cluster):
    for command in ("add-table", "remove-table"):
        done = Cloud(cluster, "app").run(command, "-table", "scratch")
        assert done.returncode == 1
        assert done.stderr == "lokadb: database app has no schema lokadb: run lokadb init on it first\n"


# ------------------------------------------------------------------ remove-table


def test_remove_table_refuses(cloud):
    cloud.sql(T + CHILDREN)
    assert "public.t is not under LokaDB" in cloud.refuses("remove-table", "-table", "t")
    assert "there is no table nothing" in cloud.refuses("remove-table", "-table", "nothing")
    cloud.add("t")
    cloud.add("c")
    assert "public.c refer to public.t: take them out first" in cloud.refuses("remove-table", "-table", "t")
    assert "the application's own: leave -drop-tenant out" in cloud.refuses(
        "remove-table", "-table", "c", "-table", "t", "-drop-tenant"
    )
    cloud.sql("insert into lokadb.organizations (org, profile, server) values ('2', 'direct', 's')")
    assert "organization 2 has a database of its own" in cloud.refuses("remove-table", "-table", "c")
    cloud.sql("update lokadb.organizations set profile = 'local', server = null")
    for before, after, sentence in (
        ("create policy mine on c using (true)", "drop policy mine on c", "policy mine was put on public.c"),
        ("create view w as select * from c__local", "drop view w", "view public.w was put on public.c"),
        (
            "create function f() returns bigint language sql begin atomic select count(*) from c; end",
            "drop function f",
            "function public.f() depends on",
        ),
        ("create publication p for table c", "drop publication p", "publication p depends on"),
        (
            "create materialized view m as select * from c",
            "drop materialized view m",
            "materialized view public.m depends on",
        ),
        ("create table n (r c)", "drop table n", "column r of table public.n depends on"),
    ):
        cloud.sql(before)
        assert sentence in cloud.refuses("remove-table", "-table", "c")
        cloud.sql(after)
    cloud.remove("c", "t")


def test_remove_table_takes_over_what_was_changed_meanwhile(cloud):
    cloud.sql(
        T
        + CHILDREN
        + "create role lately; create function f() returns trigger language plpgsql as 'begin return null; end'"
    )
    try:
        cloud.add("t")
        cloud.sql("alter table t add column extra int default 5; create view w as select id, extra from t")
        cloud.sql(
            "grant select on t to lately; comment on table t is 'new'; alter table t alter v set default 'd'; alter table t owner to other"
        )
        cloud.sql(
            "create trigger st after insert on t for each statement execute function f(); create trigger ro after insert on t for each row execute function f()"
        )
        cloud.sql(
            "create table late (t_id bigint references t__refs on delete cascade); insert into late values (1); create index on t (extra)"
        )
        cloud.remove("t")
        assert cloud.value("select count(*) from w where extra = 5") == "2"
        assert cloud.rows(
            "select tgname from pg_trigger where tgrelid = 't'::regclass and not tgisinternal order by 1"
        ) == [("ro",), ("st",)]
        assert cloud.rows(
            "select relowner::regrole, obj_description(oid), has_table_privilege('lately', oid, 'select'), relkind from pg_class where oid = 't'::regclass"
        ) == [("other", "new", "t", "r")]
        cloud.sql("insert into t (id, organization_id) values (3, 1); delete from c; delete from t where id = 1")
        assert cloud.rows("select v from t where id = 3") == [("d",)] and cloud.rows("select * from late") == []
        assert cloud.value("select count(*) from pg_class where relname ~ '__(local|refs)$'") == "0"
        cloud.add("t")
    finally:
        cloud.sql("drop owned by lately; drop role lately")
