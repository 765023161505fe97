"""Where statements go: test/route/corpus.txt through lokadb explain, over a real database whose organizations have moved.
Whatever goes direct must give the same rows in the organization's database as through the cloud."""

import itertools
import json
import re

import pytest
from harness import ROOT
from lokadb_world import World

FOLDER = ROOT / "test" / "route"
TABLES = [["-table", t] for t in ("users", "documents", "conversations", "messages", "invoices", "tasks")]
TABLES.append(["-table", "labels", "-relation", "task_id=tasks"])


def entries():
    """(line, path, reason, organization, statement, values, context) of the corpus."""
    context = {}
    for number, line in enumerate((FOLDER / "corpus.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            context = dict(word.split("=") for word in line[1 : line.index("]")].split())
            continue
        head, rest = line.split(" | ", 1)
        words = head.split()
        statement, *values = rest.split(" :: ")
        yield number, words[0], words[1], words[2] if len(words) > 2 else "", statement.strip(), values, context


CORPUS = list(entries())


@pytest.fixture(scope="module")
def world(cluster_of_session):
    made = World(cluster_of_session)
    try:
        made.set_up((FOLDER / "corpus.sql").read_text(), *TABLES)
        for org in ("1", "2", "4"):
            made.move(org)
        made.run("org-profile", "-db", made.dsn(made.cloud), "-org", "2", *made.control_flags(), "fdw")
        yield made
    finally:
        made.drop()


def explain(world, statement, *flags, values=(), status=0):
    said = world.run("explain", "-db", world.dsn(world.cloud), "-json", *flags, statement, *values, status=status)
    return json.loads(said)


def flags_of(context):
    return [word for name in ("tenant", "profile") if name in context for word in ("-" + name, context[name])]


def agrees(entry, said):
    """explain knows of no writes that go direct yet, and of no types of one's own; the corpus does."""
    _, path, reason, organization, _, _, _ = entry
    found = said["path"], said["reason"]
    if path in ("write", "locks"):
        waiting = {"write": "writes-not-yet-direct", "locks": "locks-not-yet-direct"}[path]
        if found[0] == "refused":
            return found[1] == waiting or found[1].endswith("-fdw")
        return found == ("cloud", waiting) and said.get("organization") == organization
    if found == ("cloud", "type") and path == "direct":
        return "labels" in entry[4]  # which has a column of a type of its own
    if organization == "-":
        return found == (path, reason) and said["known"] == "by a key that nobody has"
    return found == (path, reason) and said.get("organization", "") == organization


def test_explain_says_what_the_corpus_says(world):
    """Statements of one context and without values are explained in one go."""
    wrong = []
    entries = [e for e in CORPUS if "policy" not in e[6] and "\\N" not in e[5]]
    assert len(entries) > 550
    for flags, group in itertools.groupby(entries, lambda e: (flags_of(e[6]), bool(e[5]))):
        group = list(group)
        batches = [[e] for e in group] if flags[1] else [group]
        for batch in batches:
            said = explain(world, ";\n".join(e[4] for e in batch), *flags[0], values=batch[0][5])
            assert len(said) == len(batch)
            wrong += ["corpus.txt:%d: %s" % (e[0], s) for e, s in zip(batch, said) if not agrees(e, s)]
    assert not wrong, "\n".join(wrong)


def test_the_snapshot_is_the_catalog_of_this_database(world):
    """Of numbers and definitions only those differ that are new in every database."""

    def comparable(text):
        document = json.loads(text)
        for organization in document.pop("organizations"):
            assert organization["profile"] in ("fdw", "fdw+direct")
        for name in ("generation", "version", "server_version"):
            document.pop(name)
        numbers = {}

        def plain(value, name=""):
            if isinstance(value, dict):
                return {k: plain(v, k) for k, v in value.items() if k != "fingerprint"}
            if isinstance(value, list):
                return [plain(v, name) for v in value]
            if isinstance(value, int) and not isinstance(value, bool) and value >= 16384 and name != "modifier":
                return "oid %d" % numbers.setdefault(value, len(numbers))
            return value

        return plain(document)

    snapshot = comparable((FOLDER / "catalog.json").read_text())
    assert comparable(world.sql("select lokadb.catalog()").value) == snapshot


# What ORDER BY leaves open, and clocks.
UNORDERED = re.compile(r"LIMIT|FETCH FIRST|now\(\)|CURRENT_DATE", re.IGNORECASE)
# What the cloud refuses, since its root has no key (SPEC D5b).
DIRECT_ONLY = re.compile(r"^SELECT (id, title|d\.\*), count.*GROUP BY (d\.)?id$")


def rows_of(connection, statement, values):
    if not values:
        return sorted(map(str, connection.query(statement).rows))
    numbers = ", ".join("NULL" if v == "\\N" else "'%s'" % v.replace("'", "''") for v in values)
    connection.query("PREPARE corpus AS " + statement)
    try:
        return sorted(map(str, connection.query("EXECUTE corpus(%s)" % numbers).rows))
    finally:
        connection.query("DEALLOCATE corpus")


def test_direct_reads_give_the_rows_that_the_cloud_gives(world):
    """Through the cloud the organization is named by the application only where the corpus says so: what it does not see
    because of a wrong guess would be missing in one of the two."""
    count = rows = 0
    clouds, homes = {}, {org: world.direct(org) for org in ("1", "4")}
    for number, path, _, organization, statement, values, context in CORPUS:
        if path != "direct" or organization not in homes or UNORDERED.search(statement) or DIRECT_ONLY.search(statement):
            continue
        tenant = context.get("tenant", "")
        if tenant not in clouds:
            clouds[tenant] = world.app()
            clouds[tenant].query("set lokadb.tenant = '%s'" % tenant)
        here = rows_of(clouds[tenant], statement, values)
        there = rows_of(homes[organization], statement, values)
        assert here == there, "corpus.txt:%d: %s" % (number, statement)
        count += 1
        rows += len(there)
    assert count > 100 and rows > 500
    for connection in (*clouds.values(), *homes.values()):
        connection.terminate()


# ------------------------------------------------------------------ the command itself


def test_explain_for_people(world):
    said = world.run("explain", "-db", world.dsn(world.cloud), "SELECT id, title FROM documents WHERE id = 4")
    assert "path          direct" in said and "reason        key-found: its key belongs to the organization" in said
    assert "organization  1, profile fdw+direct" in said and "looked up     public.documents: 4" in said
    assert "right         SELECT on public.documents (id, title)" in said
    said = world.run("explain", "-db", world.dsn(world.cloud), "-tenant", "1", "SELECT * FROM documents WHERE organization_id = 4")
    assert "it is refused (42501)" in said and "what to do" in said


def test_parameters_stand_for_an_organization(world):
    for statement in (
        "SELECT * FROM documents WHERE organization_id = $1",
        "SELECT * FROM documents WHERE id = $1 AND title = $2",
        "SELECT * FROM conversations WHERE id = ANY ($1)",
        "SELECT * FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE c.id = $1 AND m.id > $2",
    ):
        (said,) = explain(world, statement, "-org", "4")
        assert (said["path"], said["organization"]) == ("direct", "4"), said
        (said,) = explain(world, statement, "-org", "4", "-profile", "fdw")
        assert (said["path"], said["reason"]) == ("cloud", "profile-fdw"), said
    assert "depends on its parameters" in world.run("explain", "-db", world.dsn(world.cloud), statement, status=2)
    assert "give a value for each" in world.run("explain", "-db", world.dsn(world.cloud), statement, "1", status=2)


def test_explain_refuses_what_is_no_statement(world):
    cloud = world.dsn(world.cloud)
    assert "syntax error" in world.run("explain", "-db", cloud, "SELEKT 1", status=1)
    assert "statement is missing" in world.run("explain", "-db", cloud, status=2)
    assert "not an organization" in world.run("explain", "-db", cloud, "-tenant", "", "SELECT 1", status=1)
    assert "run lokadb init" in world.run("explain", "-db", world.dsn(world.control), "SELECT 1", status=1)
    assert explain(world, "") == []


def test_names_are_those_of_the_connections_search_path(world):
    """SPEC D1a"""
    path = "?options=-csearch_path%3D"
    base = "postgresql://postgres@127.0.0.1:%d/%s" % (world.cluster.port, world.cloud)
    statement = "SELECT id FROM documents WHERE organization_id = 1"
    for setting, reason in (("public", "tenant-known"), ("reports,public", "name-hidden"), ("public,pg_catalog", "search-path")):
        (said,) = json.loads(world.run("explain", "-db", base + path + setting, "-json", statement))
        assert said["reason"] == reason, setting
