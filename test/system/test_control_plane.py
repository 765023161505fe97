"""Logins for the direct path that the router takes from the control plane."""

import os
import re
import shutil
import threading
import time

import pytest

import conftest
import harness
import relay
import routed_world
from harness import eventually
from routed_world import counts, documents, is_ready
from wire import PgError, extended, query

UP_TO_DATE = "control plane: up to date, logins: 2"
READER_PASSWORD = "reader-secret"
DIRECT = ("tenant-known", "key-found")
NOT_DIRECT = ("connection-failed", "database-not-usable")  # decided again, having been decided as direct


@pytest.fixture(scope="module")
def world(cluster_of_session):
    made = routed_world.make(cluster_of_session)
    made.cluster.sql("create role cp_reader login password '%s'" % READER_PASSWORD, "postgres")
    made.run("init", "-control-plane", made.dsn(made.control), "-control-user", "cp_reader")
    yield made
    made.drop()
    made.cluster.sql("drop role cp_reader", "postgres")


class Plane:
    """The section [control_plane] of a proxy, with a key file of its own; and what is changed in the control plane, which
    is as it was when the test is over."""

    def __init__(self, world, folder):
        self.world, self.key = world, folder / "proxy-key"
        self.put_key(world.key)
        self.stored = world.cluster.sql("select org, kind, user_name, secret from lokadb.credentials", world.control).rows

    def put_key(self, file):
        """In one step, as an operator would."""
        new = self.key.with_suffix(".new")
        shutil.copy(file, new)
        new.chmod(0o600)
        harness.give_to_service_user(new)
        os.replace(new, self.key)

    def dsn(self, port=None):
        words = "host=127.0.0.1 port=%d dbname=%s user=cp_reader password=%s"
        return words % (port or self.world.cluster.port, self.world.control, READER_PASSWORD)

    def section(self, port=None, **changed):
        return {"dsn": self.dsn(port), "key_file": self.key, **changed}

    def settings(self, port=None, customers_app=None, **options):
        """For harness.Proxy; without [customers_app] unless it is given."""
        made = routed_world.settings(self.world, **options)
        made["sections"]["control_plane"] = self.section(port)
        made["sections"]["customers_app"] = customers_app or {}
        return made

    def control_sql(self, sql):
        return self.world.cluster.sql(sql, self.world.control)

    def store(self, org, password, key=None, user="customers_app"):
        secret = self.key.parent / "password"
        secret.write_text(password + "\n")
        harness.give_to_service_user(secret)
        flags = ["-control-plane", self.world.dsn(self.world.control), "-key", str(key or self.world.key)]
        words = ["-org", org, "-kind", "direct", "-user", user, "-password-file", str(secret)]
        self.world.run("org-credentials", *flags, *words)

    def restore(self):
        rows = ",".join("('%s', '%s', '%s', '%s')" % row for row in self.stored)
        self.control_sql(
            "delete from lokadb.credentials;"
            "insert into lokadb.credentials (org, kind, user_name, secret) values %s" % rows
        )


@pytest.fixture
def plane(world):
    folder = conftest.new_folder()
    harness.give_to_service_user(folder)
    made = Plane(world, folder)
    yield made
    made.restore()
    world.cluster.sql("alter role customers_app password 'app-pw'", "postgres")
    shutil.rmtree(folder)


def direct(proxy):
    found = counts(proxy)
    return sum(found.get(reason, 0) for reason in DIRECT) - sum(found.get(reason, 0) for reason in NOT_DIRECT)


def read(client, world, org):
    """A read that must be right, whichever way it takes."""
    sql = "select id, title from documents where organization_id = %s order by id" % org
    assert client.ask(query(sql)).rows == documents(world, org)


def goes_direct(proxy, world, org):
    before = direct(proxy)
    read(proxy.connect(), world, org)
    return direct(proxy) > before


def no_login(proxy):
    return counts(proxy).get("no-direct-login", 0)


def end_direct_connections(world):
    """So that the next read needs a new one."""
    end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'customers_app'"
    world.cluster.sql(end, "postgres")
    eventually(lambda: world.cluster.sql(end, "postgres").value == "0")


def test_reads_go_direct_with_the_control_planes_logins_alone(start, world, plane):
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    for org in ("2", "3"):
        assert goes_direct(proxy, world, org)
    client = proxy.connect()
    key, title = documents(world, "2")[0]
    assert client.ask(extended("select title from documents where id = $1", [key])).rows == [(title,)]
    assert no_login(proxy) == 0


def test_the_order_of_logins(start, world, plane):
    """A line of its own, then the control plane's, then the one for all."""
    wrong_for_all = {"user": "customers_app", "password": "not-it"}
    proxy = is_ready(start(**plane.settings(customers_app=wrong_for_all)))
    proxy.wait_log(UP_TO_DATE)
    assert goes_direct(proxy, world, "2") and goes_direct(proxy, world, "3")
    own_line = {"3": "user=customers_app password=not-it"}
    other = is_ready(start(**plane.settings(customers_app=own_line)))
    other.wait_log(UP_TO_DATE)
    assert goes_direct(other, world, "2")
    assert not goes_direct(other, world, "3")
    plane.control_sql("delete from lokadb.credentials where org = '3' and kind = 'direct'")
    last = is_ready(start(**plane.settings(customers_app={"user": "customers_app", "password": "app-pw"})))
    last.wait_log("control plane: up to date, logins: 1")
    assert goes_direct(last, world, "2") and goes_direct(last, world, "3")


def test_a_login_that_is_stored_or_goes_counts_at_once(start, world, plane):
    plane.control_sql("delete from lokadb.credentials where org = '3' and kind = 'direct'")
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log("control plane: up to date, logins: 1")
    assert goes_direct(proxy, world, "2") and not goes_direct(proxy, world, "3")
    assert no_login(proxy) == 1
    begun = time.monotonic()
    plane.store("3", "app-pw")
    eventually(lambda: goes_direct(proxy, world, "3"), 3)
    assert time.monotonic() - begun < 3  # told, not found by the next heartbeat
    plane.control_sql("delete from lokadb.credentials where org = '3' and kind = 'direct'")
    eventually(lambda: not goes_direct(proxy, world, "3"), 3)
    plane.store("3", "app-pw")
    eventually(lambda: goes_direct(proxy, world, "3"), 3)
    plane.control_sql("truncate lokadb.credentials")
    eventually(lambda: not goes_direct(proxy, world, "2"), 3)


def test_a_changed_password_is_used_for_the_next_connection(start, world, plane):
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    assert goes_direct(proxy, world, "2")
    for number in range(3):
        password = "changed-%d" % number
        world.cluster.sql("alter role customers_app password '%s'" % password, "postgres")
        plane.store("2", password)
        proxy.wait_log(UP_TO_DATE, count=number + 2)
        end_direct_connections(world)
        assert goes_direct(proxy, world, "2")
    # The other's was not stored.
    assert not goes_direct(proxy, world, "3")


@pytest.mark.parametrize("key_first", [False, True])
def test_a_rotation_of_the_key_while_clients_read(start, world, plane, key_first):
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    failures, served, stop = [], [], threading.Event()
    expected = {org: documents(world, org) for org in ("2", "3")}

    def work(org):
        client = proxy.connect(timeout=60)
        sql = "select id, title from documents where organization_id = $1 order by id"
        while not stop.is_set():
            answer = client.ask(extended(sql, [org]))
            served.append(org)
            if answer.codes or answer.rows != expected[org]:
                failures.append(answer.codes or answer.rows)

    new = plane.key.with_name("rotated-%s" % key_first)
    world.run("keygen", "-key", new)
    flags = ["-control-plane", world.dsn(world.control), "-key", str(world.key), "-rotate", str(new)]
    threads = [threading.Thread(target=work, args=(org,)) for org in ("2", "3", "2", "3")]
    for t in threads:
        t.start()
    try:
        eventually(lambda: len(served) > 50, 20)
        if key_first:
            plane.put_key(new)
            proxy.admin("reload")
        else:
            world.run("org-credentials", *flags)
        proxy.wait_log("credentials that key_file does not open, of organizations 2, 3: another key file")
        seen = len(served)
        eventually(lambda: len(served) > seen + 50, 20)
        if key_first:
            world.run("org-credentials", *flags)
        else:
            plane.put_key(new)  # noticed by itself
        proxy.wait_log(UP_TO_DATE, timeout=10, count=2)
        seen = len(served)
        eventually(lambda: len(served) > seen + 50, 20)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failures, failures[:3]
    assert no_login(proxy) == 0
    plane.store("2", "app-pw", key=new)
    end_direct_connections(world)
    assert goes_direct(proxy, world, "2")


def test_a_control_plane_that_is_not_there_and_comes_and_goes(start, world, plane):
    port = harness.free_port()
    proxy = is_ready(start(**plane.settings(port)))
    proxy.wait_log("control plane: not available: .*Connection refused")
    assert not goes_direct(proxy, world, "2") and no_login(proxy) == 1
    with relay.Relay(world.cluster.port, port=port):
        proxy.wait_log(UP_TO_DATE)
        assert goes_direct(proxy, world, "2")
    proxy.wait_log("control plane: not available", count=2)
    end_direct_connections(world)
    assert goes_direct(proxy, world, "2") and goes_direct(proxy, world, "3")  # what was known stays known
    plane.control_sql("delete from lokadb.credentials where org = '3' and kind = 'direct'")
    with relay.Relay(world.cluster.port, port=port):
        proxy.wait_log("control plane: up to date, logins: 1", timeout=10)
        assert goes_direct(proxy, world, "2") and not goes_direct(proxy, world, "3")


def test_a_role_without_the_right_is_told(start, world, plane):
    plane.control_sql("revoke select on lokadb.direct_credentials from cp_reader")
    try:
        proxy = is_ready(start(**plane.settings()))
        proxy.wait_log("control plane: not available: .*permission denied for view direct_credentials")
        assert not goes_direct(proxy, world, "2")
    finally:
        plane.control_sql("grant select on lokadb.direct_credentials to cp_reader")
    proxy.wait_log(UP_TO_DATE, timeout=10)
    assert goes_direct(proxy, world, "2")


def test_the_proxys_role_sees_no_login_of_the_cloud(world, plane):
    with world.cluster.connect(user="cp_reader", database=world.control) as reader:
        rows = reader.query("select * from lokadb.direct_credentials").rows
        assert len(rows) == 2 and {user for _, user, _ in rows} == {"customers_app"}
        assert reader.ask(query("select * from lokadb.credentials")).codes == ["42501"]


def test_another_key_file(start, world, plane):
    other = plane.key.with_name("other")
    world.run("keygen", "-key", other)
    plane.put_key(other)
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log("credentials that key_file does not open, of organizations 2, 3: another key file, or not what was stored")
    assert not goes_direct(proxy, world, "2") and no_login(proxy) == 1
    plane.put_key(world.key)
    proxy.admin("reload")
    proxy.wait_log(UP_TO_DATE)
    assert goes_direct(proxy, world, "2")


def test_a_row_that_was_given_to_another_organization(start, world, plane):
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    plane.control_sql(
        "update lokadb.credentials set secret = (select secret from lokadb.credentials where org = '2' and kind = 'direct')"
        " where org = '3' and kind = 'direct'"
    )
    proxy.wait_log("does not open, of organizations 3:")
    end_direct_connections(world)
    assert goes_direct(proxy, world, "2") and goes_direct(proxy, world, "3")  # what it knew of 3 before
    fresh = is_ready(start(**plane.settings()))
    fresh.wait_log("does not open, of organizations 3:")
    assert goes_direct(fresh, world, "2") and not goes_direct(fresh, world, "3")
    assert no_login(fresh) == 1


FAULTS = [
    ({"dsn": "dbname=x password=reader-secret words"}, r"\[control_plane\] dsn is no connection string"),
    ({"dsn": None}, r"\[control_plane\] has key_file, but no dsn"),
    ({"key_file": None}, r"\[control_plane\] has dsn, but no key_file"),
    ({"key_file": "/nonexistent"}, r"\[control_plane\] key_file /nonexistent: No such file"),
    ({"password": "reader-secret"}, r"unknown parameter: control_plane/password"),
]


def changed(section, change):
    return {k: v for k, v in {**section, **change}.items() if v is not None}


@pytest.mark.parametrize("change, words", FAULTS)
def test_a_faulty_section_stops_the_start_and_changes_nothing_in_a_reload(prepare, start, world, plane, change, words):
    settings = plane.settings()
    settings["sections"]["control_plane"] = changed(plane.section(), change)
    faulty = prepare(**settings)
    faulty.launch()
    assert faulty.wait_exit() != 0
    assert re.search(words, faulty.log()) and READER_PASSWORD not in faulty.log() + faulty.stderr_path.read_text()

    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    proxy.sections["control_plane"] = changed(plane.section(), change)
    proxy.write()
    with pytest.raises(PgError) as refused:
        proxy.admin("reload")
    assert READER_PASSWORD not in str(refused.value) and READER_PASSWORD not in proxy.log()
    assert re.search(words, proxy.log())
    assert goes_direct(proxy, world, "2")


def test_a_reload_takes_the_section_away_and_brings_another(start, world, plane):
    proxy = is_ready(start(**plane.settings()))
    proxy.wait_log(UP_TO_DATE)
    assert goes_direct(proxy, world, "2")
    section = proxy.sections.pop("control_plane")
    proxy.reload()
    assert not goes_direct(proxy, world, "2") and no_login(proxy) == 1
    proxy.sections["control_plane"] = section
    proxy.reload()
    proxy.wait_log(UP_TO_DATE, count=2)
    assert goes_direct(proxy, world, "2")
    # One that is not there: what the one before had does not count.
    proxy.sections["control_plane"] = plane.section(harness.free_port())
    proxy.reload()
    proxy.wait_log("control plane: not available")
    assert not goes_direct(proxy, world, "2")
    proxy.sections["control_plane"] = section
    proxy.reload()
    proxy.wait_log(UP_TO_DATE, count=3)
    assert goes_direct(proxy, world, "2")
    proxy.reload()  # the same again
    assert goes_direct(proxy, world, "2")


SHOWN = "config databases pools servers clients users plugins lokadb_routes lokadb_reasons state lists mem stats sockets".split()


def test_no_secret_is_in_the_log_or_shown(start, world, plane):
    world.cluster.sql("alter role customers_app password 'direct-secret'", "postgres")
    for org in ("2", "3"):
        plane.store(org, "direct-secret")
    proxy = is_ready(start(**plane.settings(verbose=2)))
    proxy.wait_log(UP_TO_DATE)
    assert goes_direct(proxy, world, "2") and goes_direct(proxy, world, "3")
    plane.store("3", "stored-secret")  # does not work
    proxy.wait_log(UP_TO_DATE, count=2)
    end_direct_connections(world)
    read(proxy.connect(), world, "3")
    shown = "".join(str(proxy.show(what)) for what in SHOWN)
    texts = shown + proxy.log() + proxy.stderr_path.read_text()
    assert "lokadb:2#" in shown
    for secret in ("direct-secret", "stored-secret", READER_PASSWORD, plane.key.read_text().strip()):
        assert secret not in texts


def test_a_thread_that_hangs_in_the_library_holds_neither_a_reload_nor_the_end(prepare, world, plane):
    """As in the look-up of a name that nobody answers; here it waits for somebody to write into the service file."""
    services = plane.key.with_name("services")
    os.mkfifo(services)
    harness.give_to_service_user(services)
    settings = plane.settings()
    hanging = settings["sections"]["control_plane"] = plane.section(dsn="service=control")
    proxy = prepare(**settings)
    proxy.launch("-q", str(proxy.ini), PGSERVICEFILE=str(services))
    eventually(proxy.listens, 10)
    is_ready(proxy)
    assert not goes_direct(proxy, world, "2")
    for section in (plane.section(), hanging, plane.section()):
        proxy.sections["control_plane"] = section
        with harness.takes(0, 3):
            proxy.reload()
    proxy.wait_log(UP_TO_DATE, count=1)
    assert goes_direct(proxy, world, "2")
    proxy.sections["control_plane"] = hanging
    proxy.reload()
    assert not goes_direct(proxy, world, "2")
    with harness.takes(0, 5):
        proxy.stop()


def test_init_says_who_may_read_the_logins(world):
    def init(role, status=0):
        return world.run("init", "-control-plane", world.dsn(world.control), "-control-user", role, status=status)

    def readers():
        sql = (
            "select rolname from pg_roles r where rolname in ('cp_reader', 'router')"
            " and has_table_privilege(r.oid, 'lokadb.direct_credentials', 'select')"
            " and has_schema_privilege(r.oid, 'lokadb', 'usage')"
        )
        return [row[0] for row in world.cluster.sql(sql, world.control).rows]

    assert "there is no role nobody_here" in init("nobody_here", status=1)
    try:
        for role, then in ("cp_reader", ["cp_reader"]), ("router", ["router"]), ("", []):
            init(role)
            assert readers() == then
    finally:
        init("cp_reader")
    seen = "select has_table_privilege('cp_reader', 'lokadb.credentials', 'select')"
    assert world.cluster.sql(seen, world.control).value == "f"
