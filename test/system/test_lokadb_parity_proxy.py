"""The corpus of test_lokadb_parity.py through the proxy with all its plugins, the organization named for the session."""

import random
import re

import harness
import lokadb_app
import pytest
import wire
from lokadb_app import App
from test_lokadb_parity import FILES, plain_database, statements, undone

@pytest.fixture
def through_proxy(cluster_of_session):
    """The application's own database, and through a proxy with all plugins: at home, moved on fdw, moved on fdw+direct."""
    cluster, name = cluster_of_session, "parityp%d" % random.randrange(10**9)
    cluster.sql("do $$begin create role router login; exception when duplicate_object then null; end$$", "postgres")
    apps = [App(cluster, name + suffix) for suffix in ("_home", "_fdw", "_direct")]
    for app in apps:
        lokadb_app.lokadb("init", "-db", app.db, "-control-user", "router")
    for app, profile in zip(apps[1:], ("fdw", "fdw+direct")):
        app.add_database(1)
        secret = ["-org", "1", "-kind", "direct", "-user", "customers_app"]
        lokadb_app.lokadb("org-credentials", *app.secrets, *secret, answer="app-pw\n")
        app.move(1, "-profile", profile)
    with plain_database(cluster, name + "_plain"):
        yield cluster, name + "_plain", [app.name for app in apps]
    for app in apps:
        app.drop()


def is_alike(statement, plain, other, is_home):
    """What the proxy gives may be better than what the cloud alone can do, but never anything else."""
    if other == plain:
        return True
    allowed = [[statement.code], ["0A000"]] if statement.code else []
    if statement.where == "all" or (statement.where == "moved" and not is_home):
        return other in allowed or statement.code is None
    return False


def run_through_proxy(path, plain_at, proxy, names, extended):
    wrong, sessions, user = [], [], None
    for statement in statements(path):
        if OF_SESSIONS.match(statement.sql):
            continue
        if statement.user != user:
            user = statement.user
            for c in sessions:
                c.terminate()
            sessions = [wire.Conn(plain_at[0], user=user, database=plain_at[1])]
            sessions += [proxy.connect(user=user, database=name, timeout=60) for name in names]
            for c in sessions:
                c.query("set lokadb.tenant = '1'")
        ask = lambda c: statement.outcome(c, extended)
        got = [undone(statement, c, extended) if statement.where else ask(c) for c in sessions]
        if not all(is_alike(statement, got[0], other, number == 0) for number, other in enumerate(got[1:])):
            wrong.append("%s %s: %s\n  %s" % (statement.place, "extended" if extended else "simple", statement.sql, "\n  ".join(map(repr, got))))
    for c in sessions:
        c.terminate()
    return wrong


# What another transaction has left in the session; what runs a query out of sight, and is refused while somebody is named
# for the session; and what is told by the proxy before PostgreSQL says that it is wrong anyway.
OF_SESSIONS = re.compile(
    "^(execute|explain .*execute|deallocate|fetch|close|drop|refresh|lock table|create .* as |.*(ntile|kept|others|seen|loaded|temp ))"
)


def test_statements_answer_alike_through_the_proxy(through_proxy, start):
    cluster, plain, names = through_proxy
    proxy = start(
        databases={name: "host=127.0.0.1 port=%d dbname=%s" % (cluster.port, name) for name in names},
        userlist={"writer": "", "reader": "", "postgres": ""},
        pool_mode="transaction",
        default_pool_size=2,
        plugins="tenant, refs, router",
        sections={
            "tenant": {"library": harness.plugin_file("tenant"), "local_only": "0"},
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router"},
            "customers_app": {"user": "customers_app", "password": "app-pw"},
        },
    )
    for name in names:
        proxy.wait_log("feed of router from %s: up to date" % name)
    wrong = []
    for extended in (False, True):
        for path in FILES:
            wrong += run_through_proxy(path, (cluster.port, plain), proxy, names, extended)
    assert not wrong, "%d\n%s" % (len(wrong), "\n".join(wrong))
