"""Replication connections: one server connection for each client, opened for it and closed with it."""

import contextlib
import os
import subprocess
import time
import uuid

import pytest

import harness
import wire
from harness import PG_BIN, as_service_user, eventually, takes
from wire import query

LOGICAL = {"replication": "database"}
PHYSICAL = {"replication": "true"}


@pytest.fixture(scope="module", autouse=True)
def server_can_replicate(cluster_of_session):
    """wal_level counts from the start of a server only."""
    c = cluster_of_session
    if c.value("show wal_level") == "logical":
        return
    with open(c.data / "postgresql.conf", "a") as f:
        f.write("wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\n")
    c.stop()
    c.start()


@pytest.fixture
def slot(cluster):
    name = "s" + uuid.uuid4().hex[:10]
    yield name
    eventually(lambda: cluster.value("select count(*) from pg_replication_slots where active") == "0", 10)
    cluster.sql("select pg_drop_replication_slot(slot_name) from pg_replication_slots")


def proxy_for(start, **settings):
    settings.setdefault("databases", {"app": "", "replication": "dbname=app", "postgres": "dbname=app"})
    return start(pool_mode="transaction", **settings)


def replicant(proxy, kind=LOGICAL, user="asker", **kw):
    return proxy.connect(user=user, params={**kind, **kw.pop("params", {})}, **kw)


@pytest.mark.parametrize("kind", [LOGICAL, PHYSICAL, {"replication": "on"}, {"replication": "t"}])
def test_identify_system(start, cluster, kind):
    proxy = proxy_for(start)
    with cluster.connect(user="asker", params=kind) as direct, replicant(proxy, kind) as client:
        assert client.query("IDENTIFY_SYSTEM").rows[0][:2] == direct.query("IDENTIFY_SYSTEM").rows[0][:2]
        assert client.parameters.keys() == direct.parameters.keys()
    word = "database" if kind == LOGICAL else "yes"
    proxy.wait_log("login attempt: db=app user=asker tls=no replication=%s" % word)


@pytest.mark.parametrize("value", ["false", "off", "garbage", ""])
def test_what_is_no_replication(start, value):
    proxy = proxy_for(start)
    client = replicant(proxy, {"replication": value})
    assert client.value("select 1") == "1"
    assert client.fails("IDENTIFY_SYSTEM")["C"] == "42601"
    assert proxy.show("servers", user="asker")[0]["replication"] == "none"


def test_show(start):
    proxy = proxy_for(start)
    logical, physical = replicant(proxy), replicant(proxy, PHYSICAL)
    for what in ("clients", "servers"):
        rows = proxy.show(what, user="asker")
        assert sorted(row["replication"] for row in rows) == ["logical", "physical"]
        assert {row["state"] for row in rows} == {"active"}
        assert all(row["link"] for row in rows)
    assert logical.value("select 1") == "1"
    assert physical.query("IDENTIFY_SYSTEM").rows


def test_the_connection_is_its_own_and_ends_with_it(start, cluster):
    proxy = proxy_for(start)
    for _ in range(3):
        with replicant(proxy) as client:
            pid = client.value("select pg_backend_pid()")
            assert client.value("select pg_backend_pid()") == pid
            client.terminate()
        proxy.wait_log("closing because: replication client was closed")
        eventually(lambda: cluster.value("select count(*) from pg_stat_activity where pid = " + pid) == "0")
    ordinary = proxy.connect(user="asker")
    assert ordinary.value("select count(*) from pg_stat_replication") == "0"
    assert ordinary.fails("IDENTIFY_SYSTEM")["C"] == "42601"


def test_settings_and_options_go_to_the_server(start):
    proxy = proxy_for(start, databases={"app": "timezone=UTC application_name=entry"})
    client = replicant(
        proxy,
        params={
            "application_name": "mine",
            "timezone": "Asia/Tokyo",
            "options": "-c work_mem=7MB -c search_path=pg_temp,public -c datestyle=German",
        },
    )
    assert client.value("show application_name") == "mine"
    assert client.value("show work_mem") == "7MB"
    assert client.value("show timezone") == "Asia/Tokyo" == client.parameters["TimeZone"]
    assert client.value("show search_path") == "pg_temp,public"
    assert client.value("show datestyle") == "German, DMY" == client.parameters["DateStyle"]
    assert replicant(proxy).value("show application_name") == "entry"


def test_a_refusal_is_the_clients_own_affair(start, cluster):
    proxy = proxy_for(start)
    with pytest.raises(wire.PgError) as raised:
        replicant(proxy, PHYSICAL, user="app")
    error = raised.value
    assert error.code == "42501" and "must be superuser or replication role" in error.message
    proxy.wait_log("S: login failed: FATAL: must be superuser")
    proxy.wait_log("closing because: login failed \\(age", count=2)
    # The pool is none the worse for it.
    assert proxy.connect(user="app").value("select 1") == "1"


def test_a_server_that_cannot_be_reached(start):
    proxy = start(databases={"app": "host=127.0.0.1 port=1"})
    with takes(0, 3), pytest.raises(wire.PgError, match="connect failed"):
        replicant(proxy)


def test_an_idle_server_makes_room(start, cluster):
    proxy = proxy_for(start, default_pool_size=2)
    first, second = proxy.connect(user="asker"), proxy.connect(user="asker")
    first.query("begin"), second.query("begin"), first.query("commit"), second.query("commit")
    assert len(proxy.show("servers", user="asker")) == 2
    client = replicant(proxy)
    proxy.wait_log("closing because: evicted")
    assert client.value("select 1") == "1"
    assert len(proxy.show("servers", user="asker")) == 2
    assert first.value("select 1") == "1"  # on the other one


def test_they_count_in_the_pool_and_wait_for_a_place(start):
    proxy = proxy_for(start, default_pool_size=2)
    clients = [replicant(proxy), replicant(proxy)]
    third = proxy.raw()
    third.send(wire.startup({"user": "asker", "database": "app", **LOGICAL}))
    assert third.is_silent(0.5)
    assert proxy.pool(user="asker")["cl_waiting"] == 1
    ordinary = proxy.raw()
    ordinary.send(wire.startup({"user": "asker", "database": "app"}))
    assert ordinary.is_silent(0.3)
    clients[0].terminate()
    third.finish_login()
    assert third.value("select 1") == "1"
    third.terminate()
    ordinary.finish_login()
    assert ordinary.value("select 1") == "1"


def test_many_through_a_small_pool(start):
    proxy = proxy_for(start, default_pool_size=2)
    processes = [
        subprocess.Popen(
            [PG_BIN / "psql", "-XAtc", "select pg_sleep(0.3)", conninfo(proxy, "replication=database")],
            stdout=subprocess.PIPE,
        )
        for _ in range(10)
    ]
    with takes(1.2, 15):
        assert [p.wait(20) for p in processes] == [0] * 10
    for p in processes:
        p.stdout.close()


def test_one_that_goes_while_it_waits(start):
    proxy = proxy_for(start, default_pool_size=1, client_login_timeout=1)
    holder = replicant(proxy)
    with takes(0.9, 3), pytest.raises(wire.PgError, match="client_login_timeout"):
        replicant(proxy)
    holder.terminate()
    assert replicant(proxy).value("select 1") == "1"


def test_a_cancel_reaches_it(start, cluster):
    proxy = proxy_for(start)
    client = replicant(proxy)
    client.send(query("select pg_sleep(20)"))
    eventually(lambda: cluster.backends("wait_event = 'PgSleep'"))
    client.cancel()
    assert client.ready().codes == ["57014"]


def test_reconnect_closes_it_at_once(start):
    proxy = proxy_for(start)
    client = replicant(proxy)
    proxy.admin("reconnect")
    assert client.last_words()["M"] == "database configuration changed"


def test_statement_mode_and_prepared_statements_are_none_of_its_business(start):
    proxy = proxy_for(start)
    proxy.admin("set pool_mode = 'statement'")
    client = replicant(proxy)
    assert client.query("begin").status == "T"
    assert client.query("commit").status == "I"


def test_rules_of_the_hba_file(prepare):
    proxy = prepare(auth_type="hba", databases={"app": ""})
    proxy.write(auth_hba_file=proxy.folder / "hba.conf")
    (proxy.folder / "hba.conf").write_text("host all asker all trust\nhost replication carol all trust\n")
    proxy.start()
    assert replicant(proxy).value("select 1") == "1"
    for kind, user in ((PHYSICAL, "asker"), (LOGICAL, "carol")):
        with pytest.raises(wire.PgError, match="no authentication method is found"):
            replicant(proxy, kind, user=user)
    with pytest.raises(wire.PgError, match="must be superuser or replication role"):
        replicant(proxy, PHYSICAL, user="carol")


def test_auth_query_lets_it_in(start, cluster):
    proxy = start(auth_type="scram-sha-256", auth_user="asker", userlist={"carol": None})
    cluster.sql("alter role carol replication")
    try:
        client = replicant(proxy, PHYSICAL, user="carol", password="carol-pw")
        assert client.query("IDENTIFY_SYSTEM").rows
    finally:
        cluster.sql("alter role carol noreplication")


# ------------------------------------------------------------------ PostgreSQL's own programs


def conninfo(proxy, more="", user="asker"):
    return "host=127.0.0.1 port=%d user=%s dbname=app %s" % (proxy.port, user, more)


@contextlib.contextmanager
def running(proxy, *command):
    """A program that is stopped, kindly, at the end."""
    with open(proxy.folder / "program.log", "w") as log:
        process = subprocess.Popen(
            list(map(str, command)), stdout=log, stderr=log, cwd=proxy.folder, **as_service_user()
        )
        try:
            yield process
        finally:
            process.send_signal(2)
            try:
                process.wait(15)
            finally:
                process.kill()
                process.wait()


def run(proxy, *command):
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=proxy.folder,
        env={**os.environ, "HOME": str(proxy.folder)},
        **as_service_user()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pg_receivewal(start, cluster):
    proxy = proxy_for(start, query_timeout=1, default_pool_size=5)
    folder = proxy.folder / "wal"
    folder.mkdir()
    harness.give_to_service_user(folder)
    with running(proxy, PG_BIN / "pg_receivewal", "-D", folder, "-d", conninfo(proxy), "-v", "-s", 1) as process:
        eventually(lambda: list(folder.iterdir()), 15)
        name = cluster.value("select pg_walfile_name(pg_current_wal_lsn())")
        cluster.sql("insert into scratch select 1, repeat('x', 1000) from generate_series(1, 1000)")
        cluster.sql("select pg_switch_wal()")
        eventually(lambda: (folder / name).exists(), 15)
        time.sleep(1.5)  # streaming is no query that could time out
        assert process.poll() is None
    assert process.returncode == 0
    assert (folder / name).read_bytes() == (cluster.data / "pg_wal" / name).read_bytes()


def test_pg_recvlogical(start, cluster, slot):
    proxy = proxy_for(start)
    command = [PG_BIN / "pg_recvlogical", "-d", conninfo(proxy), "--slot", slot]
    run(proxy, *command, "--create-slot", "--plugin=test_decoding")
    out = proxy.folder / "changes"
    with running(proxy, *command, "--start", "-f", out, "-F", "0", "-s", 1) as process:
        for n in range(20):
            cluster.sql("insert into scratch values (%d, repeat('y', 20000))" % n)
        wanted = ["id[integer]:%d" % n for n in range(20)]
        eventually(lambda: out.exists() and all(w in out.read_text() for w in wanted), 20)
    assert process.returncode == 0
    eventually(lambda: proxy.show("servers", user="asker") == [])
    run(proxy, *command, "--drop-slot")


def test_pg_basebackup(start, cluster):
    proxy = proxy_for(start)
    target = proxy.folder / "backup"
    run(proxy, PG_BIN / "pg_basebackup", "-D", target, "-d", conninfo(proxy), "-X", "stream", "-c", "fast")
    assert (target / "PG_VERSION").read_text() == "15\n"
    run(proxy, PG_BIN / "pg_verifybackup", target)
    eventually(lambda: proxy.show("servers", user="asker") == [])


def test_a_subscription(start, cluster, slot):
    proxy = proxy_for(start)
    cluster.sql("create table copied (id int primary key)")
    cluster.sql("create table copied (id int primary key)", "second")
    cluster.sql("insert into copied select generate_series(1, 100); create publication p for table copied")
    try:
        # The same server on both sides: its slot is made beforehand, or the two would wait for each other.
        cluster.sql("select pg_create_logical_replication_slot('%s', 'pgoutput')" % slot)
        cluster.sql(
            "create subscription s connection '%s' publication p with (create_slot = false, slot_name = '%s')"
            % (conninfo(proxy), slot),
            "second",
        )
        copied = lambda: int(cluster.sql("select count(*) from copied", "second").value)
        eventually(lambda: copied() == 100, 20)
        cluster.sql("insert into copied select generate_series(101, 150)")
        eventually(lambda: copied() == 150, 20)
    finally:
        cluster.sql("alter subscription s disable", "second")
        eventually(lambda: cluster.value("select count(*) from pg_replication_slots where active") == "0", 20)
        cluster.sql("alter subscription s set (slot_name = none)", "second")
        cluster.sql("drop subscription s", "second")
        cluster.sql("drop publication p; drop table copied")
        cluster.sql("drop table copied", "second")


def test_under_tls_on_both_sides(start, prepare, cluster):
    proxy = prepare(pool_mode="transaction", server_tls_sslmode="require")
    certificate, key = harness.make_certificate(proxy.folder, "proxy")
    proxy.write(client_tls_sslmode="require", client_tls_cert_file=certificate, client_tls_key_file=key)
    proxy.start()
    text = run(
        proxy, PG_BIN / "psql", "-XAtc", "IDENTIFY_SYSTEM", conninfo(proxy, "replication=database sslmode=require")
    )
    assert text.startswith(cluster.value("select system_identifier from pg_control_system()"))


@pytest.mark.parametrize("threads", [1, 3])
def test_comings_and_goings(start, threads):
    """Clients that come, are cut off and wait in any order leave nothing behind."""
    proxy = proxy_for(start, default_pool_size=3, worker_threads=threads)
    for round in range(12):
        clients = [proxy.raw() for _ in range(8)]
        for n, client in enumerate(clients):
            kind = {} if n % 3 == 2 else LOGICAL
            client.send(wire.startup({"user": "asker", "database": "app", **kind}))
        time.sleep(0.01 * (round % 4))
        for client in clients[:: 1 + round % 2]:
            client.drop()
        for client in clients:
            client.drop()
    with replicant(proxy) as client:
        assert client.value("select 1") == "1"
    eventually(lambda: proxy.pool(user="asker")["sv_login"] == 0)
    eventually(lambda: proxy.show("clients", user="asker") == [])
    eventually(lambda: proxy.show("servers", user="asker", replication="logical") == [])
