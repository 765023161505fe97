"""Real drivers, used the way applications use them."""

import asyncio
import contextlib
import subprocess
import threading

import asyncpg
import psycopg
import psycopg2
import pytest

import harness
from harness import eventually


@pytest.fixture(params=["session", "transaction"])
def proxy(request, start):
    return start(
        pool_mode=request.param,
        default_pool_size=2,
        auth_type="scram-sha-256",
        ignore_startup_parameters="extra_float_digits",
        userlist={"carol": "carol-pw"},
    )


def where(proxy):
    return dict(host="127.0.0.1", port=proxy.port, user="carol", password="carol-pw")


def test_psycopg2(proxy):
    with psycopg2.connect(dbname="app", **where(proxy)) as connection, connection.cursor() as cursor:
        cursor.execute("create temp table t (a int, b text) on commit drop")
        cursor.executemany("insert into t values (%s, %s)", [(n, "row %d" % n) for n in range(10)])
        cursor.execute("select sum(a), count(b) from t")
        assert cursor.fetchone() == (45, 10)


def test_psycopg_prepares_by_itself_after_five_times(proxy):
    with psycopg.connect(dbname="app", autocommit=True, **where(proxy)) as connection:
        for number in range(20):
            assert connection.execute("select %s::int + 1", [number]).fetchone() == (number + 1,)


def test_psycopg_pipeline_mode(proxy):
    with psycopg.connect(dbname="app", autocommit=True, **where(proxy)) as connection:
        with connection.pipeline():
            cursors = [connection.execute("select %s::int", [n], prepare=True) for n in range(100)]
        assert [c.fetchone() for c in cursors] == [(n,) for n in range(100)]


def test_psycopg_copy_in_both_directions(proxy):
    with psycopg.connect(dbname="app", **where(proxy)) as connection:
        with connection.cursor().copy("copy scratch from stdin") as copy:
            for number in range(1000):
                copy.write_row((number, "note %d" % number))
        with connection.cursor().copy("copy scratch to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 1000
        connection.rollback()


def test_psycopg_server_side_cursor(proxy):
    with psycopg.connect(dbname="app", **where(proxy)) as connection:
        with connection.cursor(name="portion") as cursor:
            cursor.itersize = 10
            cursor.execute("select generate_series(1, 100)")
            assert [n for (n,) in cursor] == list(range(1, 101))


def test_psycopg_cancel(proxy):
    with psycopg.connect(dbname="app", autocommit=True, **where(proxy)) as connection:
        threading.Timer(0.4, connection.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(20)")
        assert connection.execute("select 1").fetchone() == (1,)


def test_asyncpg(proxy):
    async def run():
        connections = [await asyncpg.connect(database="app", **where(proxy)) for _ in range(3)]
        for turn in range(10):
            for number, connection in enumerate(connections):
                assert await connection.fetchval("select $1::int * 2", number + turn) == (number + turn) * 2
        async with connections[0].transaction():
            await connections[0].executemany("insert into scratch values ($1, $2)", [(n, str(n)) for n in range(50)])
        assert await connections[1].fetchval("select count(*) from scratch") == 50
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connections[2].fetchval("select 1 / $1::int", 0)
        for connection in connections:
            await connection.close()

    if proxy.options["pool_mode"] == "session":
        proxy.write(default_pool_size=3)
        proxy.admin_over_unix("reload")
    asyncio.run(asyncio.wait_for(run(), 20))


def test_psycopg_reads_the_console(start):
    proxy = start()
    with contextlib.closing(
        psycopg2.connect(host="127.0.0.1", port=proxy.port, user="stats", dbname="pgbouncer")
    ) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("SHOW STATS;")
        assert cursor.description[0][0] == "database"
    eventually(lambda: not proxy.show("clients", user="stats"))


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("workers", [1, 2])
def test_pgbench_with_more_clients_than_servers(start, cluster, protocol, workers):
    bench = [harness.PG_BIN / "pgbench", "-h", "127.0.0.1", "-U", "app"]
    cluster.sql("drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers")
    subprocess.run([*bench, "-p", str(cluster.port), "-i", "-q", "app"], check=True, capture_output=True)
    proxy = start(pool_mode="transaction", default_pool_size=2, query_wait_timeout=10, worker_threads=workers)
    # pgbench prepares inside its transactions, and waits for that with all the clients of a thread standing still: with
    # -M prepared and fewer servers than clients only single statements cannot hang it.
    script = ["-S"] if protocol == "prepared" else []
    done = subprocess.run(
        [*bench, "-p", str(proxy.port), "-n", "-M", protocol, *script, "-c", "12", "-t", "40", "app"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 480/480" in done.stdout
    assert cluster.value("select sum(abalance) from pgbench_accounts") == cluster.value(
        "select coalesce(sum(delta), 0) from pgbench_history"
    )
