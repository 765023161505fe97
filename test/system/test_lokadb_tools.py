"""What the tools of an application see of its tables: psql, pg_dump, SQLAlchemy's reflection; error fields.

Before add-table, after it, while an organization is away and when it has come home. What differs from before is in
doc/limits.md ("What tools see", "Errors").
"""

import random
import re
import subprocess

import harness
import lokadb_app
import pytest
import sqlalchemy
import wire
from lokadb_app import TABLES, App

PLAIN = ["currencies", "organizations"]
ADDED = {"messages": ["organization_id"]}  # the tenant column that add-table made


def tool(cluster, name, database, *words, **kw):
    done = subprocess.run(
        [harness.PG_BIN / name, "-h", "127.0.0.1", "-p", str(cluster.port), "-U", "postgres", "-d", database, *words],
        capture_output=True, text=True, timeout=60, cwd="/", **kw, **harness.as_service_user())
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def psql(cluster, database, command):
    return tool(cluster, "psql", database, "-X", "-A", "-c", command)


def dump(cluster, database, *words):
    return "\n".join(line for line in tool(cluster, "pg_dump", database, *words).splitlines() if not line.startswith("\\"))


def columns(cluster, database, table):
    """The column lines of \\d+: name, type, collation, nullability, default, storage."""
    lines = psql(cluster, database, "\\d+ " + table).splitlines()
    return [line for line in lines if line.count("|") == 8]


def parts(cluster, database, table):
    """What \\d says below the columns: indexes, checks, foreign keys."""
    lines = psql(cluster, database, "\\d " + table).split("Indexes:\n")[1].split("Policies")[0].splitlines()
    return sorted(line.strip() for line in lines if line.startswith("    "))


def reflect(cluster, database):
    engine = sqlalchemy.create_engine("postgresql://postgres@127.0.0.1:%d/%s" % (cluster.port, database))
    try:
        meta = sqlalchemy.MetaData()
        meta.reflect(engine)
    finally:
        engine.dispose()
    return meta.tables


def reflected_columns(table):
    return [(c.name, repr(c.type), c.nullable, str(getattr(c.server_default, "arg", c.server_default and type(c.server_default)))) for c in table.columns]


def keys(table):
    """Primary key, foreign keys, indexes and unique constraints, by what they are called."""
    unique = {(k.name, tuple(c.name for c in k.columns)) for k in table.constraints if isinstance(k, sqlalchemy.UniqueConstraint)}
    return (
        [c.name for c in table.primary_key],
        sorted((k.parent.name, k.target_fullname, k.constraint.name) for k in table.foreign_keys),
        sorted((i.name, bool(i.unique), [c.name for c in i.columns]) for i in table.indexes),
        unique,
    )


@pytest.fixture(scope="module")
def before(cluster_of_session):
    """The application's database as it is without LokaDB."""
    c, name = cluster_of_session, "tools%d" % random.randrange(10**9)
    c.sql(lokadb_app.ROLES, "postgres")
    c.sql("create database " + name, "postgres")
    c.sql(lokadb_app.SCHEMA.replace("{rows}", "40"), name)
    yield c, name
    if name in c.admin:
        c.admin.pop(name).drop()
    c.sql("drop database %s with (force)" % name, "postgres")


@pytest.fixture(scope="module")
def app(cluster_of_session):
    a = App(cluster_of_session, "toolsl%d" % random.randrange(10**9), rows=40)
    a.add_database(1)
    yield a
    a.drop()


@pytest.fixture(scope="module", params=["added", "moved", "returned"])
def state(request, app):
    # Whatever this process has been asked for before.
    is_away = lambda: app.sql("select count(*) from lokadb.organizations where server is not null").value == "1"
    if request.param != "added" and not is_away():
        app.move(1)
    if request.param != "moved" and is_away():
        app.back(1)
    return request.param


def test_psql_shows_the_same_columns(before, app, state):
    for table in TABLES + PLAIN:
        seen = [line for line in columns(app.cluster, app.name, table) if line.split("|")[0] not in ADDED.get(table, [])]
        assert seen == columns(*before, table) and len(seen) > 0


def test_psql_lists_the_tables_and_their_parts(before, app, state):
    def listed(cluster, database):
        return {line.split("|")[1]: line.split("|")[2] for line in psql(cluster, database, "\\dt").splitlines()[2:-1]}

    expected = dict.fromkeys(listed(*before), "table")
    for table in TABLES:
        expected.update({table: "partitioned table", table + "__local": "table", table + "__refs": "table"})
    assert listed(app.cluster, app.name) == expected


def test_psql_shows_keys_indexes_and_checks_on_the_local_part(before, app, state):
    for table in TABLES:
        old = [re.sub(r'(REFERENCES (%s)|^TABLE "\w+)' % "|".join(TABLES), r"\1__local", line) for line in parts(*before, table)]
        new = parts(app.cluster, app.name, table + "__local")
        assert [line for line in new if line not in old] in ([], ['"%s_organization_id_idx" btree (organization_id)' % table])
        assert [line for line in old if line not in new] == []
    assert "Indexes" not in psql(app.cluster, app.name, "\\d documents")


def test_sqlalchemy_reflects_the_same_columns(before, app, state):
    old, new = reflect(*before), reflect(app.cluster, app.name)
    # Partitions of other schemas are not listed.
    assert set(new) == set(old) | {t + part for t in TABLES for part in ("__local", "__refs")}
    for table in TABLES + PLAIN:
        seen = [c for c in reflected_columns(new[table]) if c[0] not in ADDED.get(table, [])]
        assert seen == reflected_columns(old[table])
    for table in PLAIN:
        assert keys(new[table]) == keys(old[table])


def test_sqlalchemy_finds_keys_on_the_local_part_alone(before, app, state):
    old, new = reflect(*before), reflect(app.cluster, app.name)
    for table in TABLES:
        assert keys(new[table]) == ([], [], [], set())
        primary, foreign, indexes, unique = keys(old[table])
        p, f, i, u = keys(new[table + "__local"])
        assert (p, u) == (primary, unique)
        assert [(c, t.replace("__local", ""), n) for c, t, n in f] == foreign
        assert [x for x in i if x[0] != table + "_organization_id_idx"] == indexes
        assert keys(new[table + "__refs"])[0] == primary


def test_pg_dump_can_be_restored(app, state):
    """The definitions into an empty database; then everything, which has the rows of organizations at home."""
    copy = app.name + "_copy"
    for words in (["-s"], []):
        app.cluster.sql("create database " + copy, "postgres")
        try:
            script = tool(app.cluster, "pg_dump", app.name, *words)
            # Nothing may go wrong, and nothing is said.
            tool(app.cluster, "psql", copy, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", input=script)
            assert dump(app.cluster, copy, "-s") == dump(app.cluster, app.name, "-s")
            if not words:
                content = lokadb_app.CONTENT % ("documents", "documents", 2)
                assert app.cluster.sql(content, copy).rows == app.cluster.sql(content, app.name).rows
                with app.connect(database=copy, tenant=2) as c:
                    c.query("insert into documents (organization_id, title) values (2, 'in the copy')")
                    assert c.value("select count(*) from documents") == "11"
                assert app.cluster.sql("select count(*) from documents__refs", copy).value == "41"
        finally:
            if copy in app.cluster.admin:
                app.cluster.admin.pop(copy).drop()
            app.cluster.sql("drop database %s with (force)" % copy, "postgres")


def test_a_move_and_the_return_leave_the_definitions_as_they_were(cluster):
    app = App(cluster, "toolsr%d" % random.randrange(10**9), rows=40)
    try:
        app.add_database(1)
        first = dump(cluster, app.name, "-s")
        app.move(1)
        away = dump(cluster, app.name, "-s")
        app.back(1)
        assert dump(cluster, app.name, "-s") == first
        # While it is away there is more, and nothing less.
        assert [line for line in first.splitlines() if line not in away.splitlines()] == []
    finally:
        app.drop()


ERRORS = [
    ("insert into documents (id, organization_id, title) values (4, 1, 'x')", "23505", "documents_pkey"),
    ("insert into users (organization_id, email) values (1, 'u4@x')", "23505", "users_organization_id_email_key"),
    ("update users set email = 'u8@x' where email = 'u4@x'", "23505", "users_organization_id_email_key"),
    ("insert into documents (organization_id, title) values (1, null)", "23502", None),
    ("update documents set title = null where id = 4", "23502", None),
    ("insert into documents (organization_id, title, price) values (1, 'x', -1)", "23514", "documents_price_check"),
    ("insert into messages (organization_id, conversation_id, body) values (1, gen_random_uuid(), 'x')", "23503", "messages_conversation_id_fkey"),
    ("insert into invoices (organization_id, currency) values (1, 'XXX')", "23503", "invoices_currency_fkey"),
]


def test_errors_name_constraints_and_say_where(before, app, state):
    """The application's own database, the local part and the organization's database: the same code, the same text with
    another relation's name in it; the fields of the error are what doc/limits.md says."""
    cluster, name = before
    said = (harness.ROOT / "doc" / "limits.md").read_text().split("## Errors")[1]
    assert "`documents__local`" in said and "no DETAIL" in said and "no field" in said
    with cluster.connect(user="writer", database=name) as plain, app.connect(tenant=1) as c:
        for sql, code, constraint in ERRORS:
            old = plain.ask(wire.query(sql.replace("messages (organization_id, ", "messages (").replace("(1, gen", "(gen"))).errors[0]
            new = c.ask(wire.query(sql)).errors[0]
            assert (old["C"], new["C"]) == (code, code)
            assert new["M"].replace("__local", "") == old["M"]
            assert old.get("n") == constraint and old["t"] in sql
            if state != "moved":
                assert (new.get("n"), new["t"]) == (constraint, old["t"] + "__local")
                assert re.search("Key is not present|^$", new.get("D", ""))
            elif "n" in new:  # the cloud itself said it
                assert (new["n"], new["t"]) == (constraint, old["t"])
            else:
                assert "t" not in new and "c" not in new and new["W"].startswith("remote SQL command")
