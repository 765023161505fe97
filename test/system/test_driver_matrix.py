"""Drivers and object mappers see through the proxy what they see without it.

A program of test/drivers does what its driver is used for and prints what it saw. It runs once on PostgreSQL itself and
several times through a proxy in transaction mode that has fewer servers than the program has connections; the
transcripts must be equal. Each has lines here that it must have in any case."""

import os
import subprocess

import pytest

import harness

pytestmark = pytest.mark.drivers

SOURCES = harness.ROOT / "test" / "drivers"
SERVERS = 2


def python(name):
    return ["/usr/bin/python3", "-B", SOURCES / "python" / (name + ".py")]


def node(name):
    return ["node", SOURCES / "node" / (name + ".js")]


def ruby(name):
    return ["ruby", SOURCES / "ruby" / (name + ".rb")]


def php(name):
    return ["php", SOURCES / "php" / (name + ".php")]


def perl(name):
    return ["perl", SOURCES / "perl" / (name + ".pl")]


def compiled(name):
    return [harness.driver_programs() / name]


def java(name):
    classes = "%s:/usr/share/java/postgresql.jar" % (harness.driver_programs() / "java")
    # Short-lived: no time is spent on making it fast.
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, name]


# name: (language, program, lines of its transcript)
DRIVERS = {
    "psycopg": (
        python,
        "with_psycopg",
        ["pipeline: 44850", "both directions: 3000000", "canceled: 'error 57014'", "after alter: 'error 0A000'"],
    ),
    "psycopg async": (
        python,
        "with_psycopg_async",
        ["rows: [('copied', 400), ('t', 8)]", "canceled: 'error 57014'"],
    ),
    "psycopg2": (
        python,
        "with_psycopg2",
        ["large object: [b'large object', 25]", "canceled by number: 'error 57014'"],
    ),
    "asyncpg": (
        python,
        "with_asyncpg",
        ["copied in: 'COPY 1000'", "usable again: 1", "in a transaction: 'error 0A000'"],
    ),
    "SQLAlchemy": (
        python,
        "with_sqlalchemy",
        ["savepoint: 'undone'", "async streamed: 125250", "SERIALIZABLE: 'serializable'"],
    ),
    "Django": (
        python,
        "with_django",
        ["server-side cursor: 21", "rolled back: 0", "empty: [0, 0]", "on commit: 'called'"],
    ),
    "pgjdbc": (
        java,
        "Matrix",
        ["batch that fails: 23505 [1, 1, -3, 1]", "after alter in a transaction: error 0A000", "fetched 6: 128271"],
    ),
    "pgx": (
        compiled,
        "go_pgx",
        ["batch: [380 5]", "copied in: 1000", "canceled: error 57014", "inner: error 23505"],
    ),
    "lib/pq": (
        compiled,
        "go_pq",
        ["copied twice: error 23505", "canceled: error 57014", 'kept: "40"'],
    ),
    "ruby-pg": (
        ruby,
        "ruby_pg",
        ["row by row: 4501500", 'canceled by number: "error 57014"', 'deallocated: "error 26000"'],
    ),
    "ActiveRecord": (
        ruby,
        "active_record",
        ["limit: true", 'in a transaction after drop: "error 0A000"', "in portions: 10"],
    ),
    "PDO": (php, "pdo", ['aborted: "error 25P02"', "large object: 65000"]),
    "DBD::Pg": (perl, "dbd_pg", ["asynchronous: 7", 'again 0: "error 22012"']),
    "libpqxx": (compiled, "pqxx", ["pipeline: 780", "canceled: error 57014", "cursor: 500 in 5"]),
    "node pg": (
        node,
        "pg",
        ["stream: 12502500", "copied in: 2000", 'canceled by key: "57014"', 'after: "error 0A000"'],
    ),
    "postgres.js": (
        node,
        "postgres",
        ["cursor: [20,20,20,20,15]", 'cancel: "error 57014"', "each: 4501500"],
    ),
    "knex": (
        node,
        "knex",
        ["streamed: 2001000", 'timeout that cancels: "KnexTimeoutError"', "batch: 250"],
    ),
    "Sequelize": (
        node,
        "sequelize",
        ['savepoint: ["23505",[{"l":"repeatable read"}],3]', 'wrong enum: "error 22P02"'],
    ),
    "TypeORM": (
        node,
        "typeorm",
        ["streamed: 2001000", "kept: [32,35]", 'duplicate: "error 23505"'],
    ),
    "Kysely": (node, "kysely", ["streamed: 4501500", "left early: 25", 'duplicate: "error 23505"']),
}

# With the argument "session" a program also does what only a session of its own can do.
SESSION = {
    "Django": "cursor that is held: 21",  # WITH HOLD, which iterator() takes outside of transactions
    "ActiveRecord": "advisory lock: [true, true]",  # around migrations
}


def transcript(name, port, *arguments):
    language, program, _ = DRIVERS[name]
    environment = {
        **os.environ,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(port),
        "PGUSER": "carol",
        "PGPASSWORD": "carol-pw",
        "PGDATABASE": "app",
        "NODE_PATH": str(harness.driver_programs() / "node_modules"),
    }
    command = [*language(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd="/")
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    lines = done.stdout.splitlines()
    assert "reached" in lines[-1]
    return lines


@pytest.fixture
def proxy_of_two(start):
    return lambda **options: start(
        pool_mode="transaction", default_pool_size=SERVERS, auth_type="scram-sha-256", query_wait_timeout=30, **options
    )


@pytest.mark.parametrize("name", DRIVERS)
def test_the_same_as_without_the_proxy(cluster, proxy_of_two, name):
    direct = transcript(name, cluster.port)
    for line in DRIVERS[name][2]:
        assert line in direct
    proxy = proxy_of_two()
    assert transcript(name, proxy.port) == direct
    assert 1 <= len(cluster.backends("usename = 'carol'")) <= SERVERS
    assert transcript(name, proxy.port) == direct  # on servers that others have used
    proxy.stop()
    assert transcript(name, proxy_of_two(worker_threads=2).port) == direct


@pytest.mark.parametrize("name", SESSION)
def test_what_takes_a_session_of_its_own(cluster, proxy_of_two, name):
    direct = transcript(name, cluster.port, "session")
    assert SESSION[name] in direct
    assert transcript(name, proxy_of_two(pin_session_state=1).port, "session") == direct
