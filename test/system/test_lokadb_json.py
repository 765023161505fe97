"""lokadb -json: what each subcommand says to programs; and numbers that are none are refused."""

import json
import random
import re

import harness
import pytest
from lokadb_app import App, launch
from test_lokadb_docs import help_of, manual_sections, subcommands


@pytest.fixture(scope="module")
def app(cluster_of_session):
    a = App(cluster_of_session, "json%d" % random.randrange(10**9), rows=40)
    a.add_database(1)
    yield a
    a.drop()


def answers(*words, status=0, **kw):
    """The objects on standard output; nothing else may be there."""
    done = harness.lokadb(*words, "-json", **kw)
    assert done.returncode == status, (done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def answer(*words, **kw):
    (one,) = answers(*words, **kw)
    return one


@pytest.mark.parametrize("name", subcommands())
def test_every_subcommand_has_it_and_the_manual_says_what(name):
    assert "  -json " in help_of(name)
    assert ".B \\-json\nAnswers in JSON.\n".replace("\\-", "-") in manual_sections()[name]
    shapes = (harness.ROOT / "doc" / "lokadb.1").read_text().split(".SH JSON\n")[1].split("\n.SH ")[0]
    assert name in re.findall(r"[a-z][a-z\\-]*", "\n".join(re.findall(r"^\.BR? (.*)$", shapes.replace("\\-", "-"), re.MULTILINE)))


def test_init(app):
    both = answers("init", "-db", app.db, "-control-plane", app.control)
    assert both == [
        {"database": app.name + "_cp", "schema": "control plane"},
        {"database": app.name, "schema": "cloud", "missing_grants": None},
    ]


def test_tables_that_are_added_and_removed(cloud):
    cloud.sql(
        "create table organizations (id bigint primary key); insert into organizations values (1);"
        "create table t (id bigint primary key, organization_id bigint not null references organizations);"
        "create table c (id bigint primary key, t_id bigint references t);"
        "insert into t values (1, 1), (2, 1); insert into c values (1, 1)"
    )
    added = answers("add-table", "-db", cloud.dsn(), "-all", "-dry-run")
    assert added == [
        {"table": "public.t", "added": True, "rows": 2, "tenant": "organization_id", "tenant_added": False, "relations": {}},
        {"table": "public.c", "added": True, "rows": 1, "tenant": "organization_id", "tenant_added": True, "relations": {"t_id": "public.t"}},
    ]
    assert answers("tables", "-db", cloud.dsn()) == [[]]
    assert answers("add-table", "-db", cloud.dsn(), "-all") == added
    assert answer("add-table", "-db", cloud.dsn(), "-table", "t") == {"table": "public.t", "added": False}
    assert answer("tables", "-db", cloud.dsn()) == [
        {"table": "public.t", "key": "id", "type": "bigint", "tenant": "organization_id", "relations": None,
         "cloud_keys": "organization_id=public.organizations"},
        {"table": "public.c", "key": "id", "type": "bigint", "tenant": "organization_id", "relations": "t_id=public.t", "cloud_keys": None},
    ]
    assert answers("remove-table", "-db", cloud.dsn(), "-all", "-drop-tenant") == [
        {"table": "public.c", "removed": True, "rows": 1, "tenant": "organization_id", "tenant_dropped": True},
        {"table": "public.t", "removed": True, "rows": 2, "tenant": "organization_id", "tenant_dropped": False},
    ]


def move(app, *words, **kw):
    to = ["-to", app.conninfo(app.databases[0])] if "-back" not in words and "-undo" not in words else []
    return answer("move-org", "-db", app.db, "-org", 1, *to, *app.secrets, *words, **kw)


ROUND_TRIPS = {
    "fdw": {"read": 5, "insert": 5, "update": 8, "two_reads": 8},
    "fdw+direct": {"read": 1, "insert": 2, "update": 2, "two_reads": 3},
}
ROWS = {"users": 10, "documents": 10, "conversations": 10, "messages": 10, "invoices": 2}


def test_a_move_there_and_back(app):
    place = {"org": "1", "database": "%s_o1 at 127.0.0.1:%d" % (app.name, app.cluster.port)}
    place["database_id"] = app.cluster.sql(
        """select i || '-' || (select oid from pg_database where datname = '%(a)s_o1') || '-' ||
          left(md5(i || '-' || (select oid from pg_database where datname = '%(a)s')), 8)
          from (select system_identifier::text i from pg_control_system()) x""" % {"a": app.name}, "postgres").value
    dry = move(app, "-dry-run")
    assert dry.pop("rows") == sum(ROWS.values()) and 10000 < dry.pop("bytes") < 1000000
    assert dry == {**place, "action": "move", "dry_run": True, "profile": "fdw", "far_round_trips": ROUND_TRIPS, "warnings": []}
    done = move(app)
    paused, tables = done.pop("paused_seconds"), done.pop("tables")
    generation = int(app.sql("select generation from lokadb.organizations").value)
    assert done == {**dry, "dry_run": False, "rows": sum(ROWS.values()), "generation": generation}
    assert 0 < paused < 30
    assert {t["table"]: t["rows"] for t in tables} == {"public." + name: n for name, n in ROWS.items()}
    sums = {
        t: app.cluster.sql("select coalesce(sum(hashtextextended(row(id, organization_id, subject)::text, 0)::numeric), 0) from " + t,
                           app.databases[0]).value for t in ["conversations"]}
    assert [t["checksum"] for t in tables if t["table"] == "public.conversations"] == [sums["conversations"]]
    assert [(o["org"], o["profile"], o["generation"]) for o in answer("orgs", "-db", app.db)] == [("1", "fdw", generation)]
    assert move(app, "-back", "-dry-run") == {**place, "action": "return", "dry_run": True, "warnings": []}
    back = move(app, "-back")
    assert back.pop("paused_seconds") > 0
    assert back == {**place, "action": "return", "dry_run": False, "generation": generation + 1, "rows": done["rows"],
                    "tables": tables, "warnings": []}
    said = "organization 1 is at home as before, and no move of it was cut off"
    assert move(app, "-undo") == {"org": "1", "action": "undo", "dry_run": False, "result": said, "warnings": []}


def test_a_move_says_what_profile_fdw_costs_and_another_profile_does_not(app):
    ini = app.folder / "proxy.ini"
    ini.write_text("[customers_app]\nuser = customers_app\npassword = x\n")
    assert "an update or a delete 8 times" in app.move(1, "-dry-run")
    assert "times" not in app.move(1, "-dry-run", "-proxy-config", ini)
    assert "far_round_trips" not in move(app, "-dry-run", "-proxy-config", ini)


def test_what_a_move_would_fail_of_is_a_list(app):
    to = app.add_database(2)
    app.cluster.sql("create table documents (id int)", app.databases[1])
    said = answer("move-org", "-db", app.db, "-org", 2, "-to", to, *app.secrets, status=1)
    problem = "it has a table public.documents already: an empty database is needed"
    assert said["problems"] == [problem] and said["sqlstate"] is None
    assert said["error"].endswith("nothing was changed:\n  - " + problem)
    said = answer("move-org", "-db", app.db, "-org", "+1", "-back", status=1)
    assert said["sqlstate"] == "22P02" and said["problems"] == []


def test_profiles_pauses_and_their_end(app):
    app.move(1)
    try:
        secrets = ["org-credentials", *app.secrets, "-org", 1, "-kind", "direct"]
        stored = answer(*secrets, "-user", "customers_app", stdin="app-pw\n")
        assert stored == {"org": "1", "kind": "direct", "stored": True, "verified": False, "user": "customers_app"}
        change = ["org-profile", "-db", app.db, "-org", 1, *app.secrets]
        assert answer(*change, "-dry-run", "direct") == {"org": "1", "dry_run": True, "profile": "direct", "was": "fdw"}
        done = answer(*change, "fdw+direct")
        assert done.pop("paused_seconds") >= 0
        assert done == {"org": "1", "dry_run": False, "profile": "fdw+direct", "was": "fdw"}
    finally:
        app.back(1)
    one, two = answers("pause", "-db", app.db, "-org", 1, "-for", "0.3s")
    assert (one["event"], two["event"]) == ("paused", "resumed") and 0.3 <= two["paused_seconds"] < 10
    process = launch("pause", "-db", app.db, "-org", 1, "-json")
    try:
        assert json.loads(process.stdout.readline())["event"] == "paused"
        ended = answer("resume", "-db", app.db, "-org", 1)
        assert set(ended) == {"org", "held_by", "pid", "since"} and ended["held_by"] == "postgres (lokadb pause)"
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 1 and json.loads(out)["sqlstate"] in ("57P01", "08006")
    finally:
        process.kill()
    assert answer("resume", "-db", app.db, "-org", 1, status=1)["error"] == "organization 1 is not paused"


def test_keys_and_credentials(app):
    file = app.folder / "another"
    assert answer("keygen", "-key", file) == {"key": str(file)}
    kept = ["org-credentials", "-control-plane", app.control, "-key", app.key]
    works = answer(*kept, "-org", 1, "-kind", "fdw", "-verify", app.conninfo(app.databases[0]))
    assert works == {"org": "1", "kind": "fdw", "stored": False, "verified": True}
    listed = answer(*kept, "-show")
    assert ("1", "fdw", "customers_fdw") in [(c["org"], c["kind"], c["user"]) for c in listed]
    assert answer(*kept, "-rotate", file) == {"rotated": len(listed)}
    assert answer("org-credentials", "-control-plane", app.control, "-key", file, "-rotate", app.key) == {"rotated": len(listed)}


def test_refs(app):
    clean = {"left": [], "failed": []}
    assert answer("refs-diff", "-db", app.db) == {"repairable": [], **clean, "sequences_behind": []}
    assert answer("refs-sync", "-db", app.db) == {"repaired": [], **clean, "sequences_moved": []}
    assert answer("refs-diff", "-db", app.db, "-table", "nothing", status=1)["problems"] == []


# ------------------------------------------------------------------ numbers

ORG = ["-db", "dbname=nowhere", "-org", "1"]
DURATIONS = ["", "x", "-1", "-0.5s", "+1", "1e3", "nan", "inf", "0x10", "1d", "1 s", " 1", "9000h", "9" * 400, "1.5.5"]


def test_jobs_are_a_whole_number():
    for value in ["", "x", "0", "-1", "-3", "+4", "1.5", "4x", " 4", "65", "99999999999999999999", "0x4"]:
        said = harness.lokadb("move-org", *ORG, "-to", "dbname=nowhere", "-jobs", value)
        assert said.returncode == 2 and said.stdout == ""
        assert said.stderr.startswith("lokadb: -jobs needs a whole number from 1 to 64, not '%s'\n" % value)


@pytest.mark.parametrize(
    "words",
    [["move-org", *ORG, "-back", "-timeout"], ["pause", *ORG, "-for"], ["pause", *ORG, "-timeout"],
     ["org-profile", *ORG, "fdw", "-timeout"], ["refs-diff", "-db", "dbname=nowhere", "-timeout"],
     ["refs-sync", "-db", "dbname=nowhere", "-timeout"]], ids=lambda w: w[0] + w[-1])
def test_durations_are_numbers_with_a_unit(words):
    sentence = "lokadb: %s needs a duration of at most a year, as 90, 500ms, 5m or 1h, not '%s'\n"
    for value in DURATIONS:
        said = harness.lokadb(*words, value)
        assert said.returncode == 2 and said.stdout == ""
        assert said.stderr.startswith(sentence % (words[-1], value))


def test_other_calls_that_make_no_sense(app):
    for words, sentence in (
        (["move-org", *ORG], "-to, -back or -undo is missing"),
        (["move-org", *ORG, "-undo", "-back"], "-back and -undo do not go together"),
        (["move-org", *ORG, "-back", "-profile", "fdw"], "-profile is for the way there, with -to"),
        (["move-org", *ORG, "-to", "x", "-profile", "all"], "there is no profile all: fdw, fdw+direct or direct"),
        (["pause", *ORG, "-for", "0"], "-for needs a duration of more than 0"),
    ):
        said = harness.lokadb(*words)
        assert (said.returncode, said.stdout) == (2, "") and said.stderr.startswith("lokadb: %s\n" % sentence), said
    one, two = answers("pause", "-db", app.db, "-org", 1, "-for", "0.005m")
    assert two["paused_seconds"] >= 0.3
