"""Statements of an application must answer alike on its own database, under LokaDB, and for an organization that moved.

lokadb_parity/*.sql has one statement in a line, without a semicolon. What may stand in front of one:

    --! moved 0A000 MERGE INTO documents …   fails so for a moved organization only; undone elsewhere
    --! all 42P10 INSERT … ON CONFLICT (id)  fails so wherever the table is under LokaDB; not tried elsewhere
    --! quiet all COPY documents TO …        answers otherwise than before; undone
    --~                                      only tags and errors must be the same
    --@ postgres                             from here on as this user

The rest of a line with --! is how the row of doc/limits.md begins that says so. Lines with < are data for COPY.
"""

import contextlib
import pathlib
import random

import harness
import lokadb_app
import pytest
import wire
from lokadb_app import TABLES, App

FILES = sorted((pathlib.Path(__file__).parent / "lokadb_parity").glob("*.sql"))
LIMITS = [line for line in (harness.ROOT / "doc" / "limits.md").read_text().splitlines() if line.startswith("|")]


class Statement:
    def __init__(self, place, sql, mark, user):
        self.place, self.sql, self.user, self.data = place, sql, user, []
        self.only_tags = mark == "--~"
        self.where = self.code = self.limit = None
        if mark.startswith("--!"):
            self.where, self.code, self.limit = mark[3:].split(None, 2)
            if self.where == "quiet":
                self.where, self.code = self.code, None

    def message(self, extended):
        text = self.sql
        copied = b"".join(wire.copy_data(line.encode() + b"\n") for line in self.data)
        done = copied + wire.copy_done() if self.data else b""
        if not extended:
            return wire.query(text) + done
        # Sync ends what COPY takes as well as a pipeline: only once.
        return wire.parse("", text) + wire.bind("", "") + wire.describe("P") + wire.execute() + done + wire.sync()

    def outcome(self, connection, extended):
        answer = connection.ask(self.message(extended))
        if answer.codes or self.only_tags:
            return answer.codes or answer.tags
        # The order of what RETURNING gives is nobody's promise.
        rows = sorted(answer.rows, key=repr) if " returning " in self.sql else answer.rows
        return (answer.columns and [name for name, _ in answer.columns], rows, answer.copied, answer.tags)

    def documented(self):
        """The row of doc/limits.md says for whom, and with which error."""
        for line in LIMITS:
            cells = [c.strip() for c in line.strip("|").split("|")]
            if cells[0].replace("`", "").startswith(self.limit):
                return cells[1].startswith(self.where) and ("quiet" in cells[1] if self.code is None else self.code in cells[2])
        return False


def statements(path):
    mark, user, made = "", "writer", []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("--@"):
            user = line[3:].strip()
        elif line.startswith(("--!", "--~")):
            mark = line
        elif line.startswith("< "):
            made[-1].data.append(line[2:])
        elif line and not line.startswith("--"):
            made.append(Statement("%s:%d" % (path.name, number), line, mark, user))
            mark = ""
    return made


def test_the_corpus_is_large_and_every_deviation_is_documented():
    everything = [s for path in FILES for s in statements(path)]
    assert len(everything) >= 250
    assert [s.place for s in everything if s.limit and not s.documented()] == []


@contextlib.contextmanager
def plain_database(cluster, name):
    """The application's own, with the rows of organization 1."""
    cluster.sql("create database " + name, "postgres")
    cluster.sql(lokadb_app.SCHEMA.replace("{rows}", "400"), name)
    cluster.sql("alter table messages add organization_id bigint not null default 1;"
                "delete from conversations where organization_id <> 1", name)
    for table in ("users", "documents", "invoices"):
        cluster.sql("delete from %s where organization_id <> 1" % table, name)
    try:
        yield
    finally:
        cluster.admin.pop(name).drop()
        cluster.sql("drop database %s with (force)" % name, "postgres")


@pytest.fixture(scope="module")
def databases(cluster_of_session):
    """The application's own, that of LokaDB with the organization at home, and where it has moved."""
    cluster, name = cluster_of_session, "parity%d" % random.randrange(10**9)
    home, moved = App(cluster, name + "_home"), App(cluster, name + "_moved")
    moved.add_database(1)
    moved.move(1)
    with plain_database(cluster, name + "_plain"):
        yield [(cluster, name + "_plain"), (cluster, home.name), (cluster, moved.name)]
    home.drop()
    moved.drop()


def undone(statement, connection, extended):
    connection.query("begin")
    try:
        return statement.outcome(connection, extended)
    finally:
        connection.query("rollback")


def difference(statement, sessions, extended):
    """What is wrong, or nothing."""
    plain, home, moved = sessions
    ask = lambda c: statement.outcome(c, extended)
    if statement.where is None:
        got = [ask(c) for c in sessions]
        return None if got[0] == got[1] == got[2] else got
    if statement.code is None:
        got = [undone(statement, c, extended) for c in sessions]
        is_right = got[1] == got[2] != got[0] if statement.where == "all" else got[0] == got[1] != got[2]
    elif statement.where == "all":
        got = [ask(home), ask(moved)]
        is_right = got == [[statement.code]] * 2
    else:
        got = [undone(statement, plain, extended), undone(statement, home, extended), ask(moved)]
        is_right = got[0] == got[1] and got[2] == [statement.code] and got[0] != got[2]
    return None if is_right else got


def run(path, databases, extended):
    wrong, sessions, user = [], [], None
    for statement in statements(path):
        if statement.user != user:
            user = statement.user
            for c in sessions:
                c.terminate()
            sessions = [wire.Conn(cluster.port, user=user, database=name) for cluster, name in databases]
            for c in sessions:
                c.query("set lokadb.tenant = '1'")
        got = difference(statement, sessions, extended)
        if got is not None:
            wrong.append("%s %s: %s\n  %s" % (statement.place, "extended" if extended else "simple", statement.sql, "\n  ".join(map(repr, got))))
    for c in sessions:
        c.terminate()
    return wrong


def test_statements_answer_alike(databases):
    """First as simple queries, then once more in the extended protocol, on what those left."""
    wrong = [w for extended in (False, True) for path in FILES for w in run(path, databases, extended)]
    assert not wrong, "\n".join(wrong)
    for cluster, name in databases:  # now() was another moment in each, as random keys are others
        cluster.sql("update documents set at = '2024-01-01' where organization_id = 1", name)
    content = [[cluster.sql(lokadb_app.CONTENT % (t, t, 1), name).rows[0] for t in TABLES] for cluster, name in databases]
    for before, home, moved in zip(*content):
        assert before[2] == home[2] == moved[2]
        assert home == moved or home[0] in ("conversations", "messages")
