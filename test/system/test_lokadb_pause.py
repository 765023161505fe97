"""Pauses: open transactions finish, new ones wait, others do not notice; and the profiles that change under them."""

import random
import signal
import time

import pytest

import harness
from lokadb_app import App, launch, lokadb
from wire import query


@pytest.fixture
def app(cluster):
    a = App(cluster, "pause%d" % random.randrange(10**9), rows=40)
    yield a
    a.drop()


def enter(org, generation=0):
    return "select * from lokadb.enter('%s', %d)" % (org, generation)


def pauser(app, *more, org=1):
    """A pause that has begun."""
    process = launch("pause", "-db", app.db, "-org", org, *more)
    harness.eventually(lambda: is_paused(app, org), 10, "the pause has begun")
    return process


def is_paused(app, org=1):
    return app.sql("select count(*) from lokadb.holders('%s') where mode = 'ExclusiveLock' and granted" % org).value == "1"


def end(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.communicate(timeout=10)
    return process.returncode


def test_new_transactions_wait_and_go_on(app):
    process = pauser(app)
    with app.connect() as c, app.connect() as other:
        c.send(query(enter(1)))
        assert other.query(enter(2)).rows == [("local", "0")]  # another organization does not notice
        assert c.is_silent(0.5)
        assert end(process) == 0
        assert c.ready().rows == [("local", "0")]


def test_who_waits_too_long_is_told(app):
    process = pauser(app)
    with app.connect() as c, harness.takes(4, 8):
        answer = c.ask(query(enter(1)))
        assert answer.codes == ["55P03"] and "organization 1 is paused" in answer.errors[0]["M"]
    with app.connect() as c:
        c.query("begin isolation level repeatable read")
        c.send(query(enter(1)))
        time.sleep(0.3)
        end(process)
        assert c.ready().codes == ["40001"]


def test_an_open_transaction_finishes_while_others_work_on_unrefused(app):
    """The pauser asks shortly and rests, so those behind it get through while it cannot have its way."""
    with app.connect() as idle, app.connect() as busy:
        idle.query("begin")
        idle.query(enter(1))
        process = launch("pause", "-db", app.db, "-org", 1, "-for", "0.2", "-timeout", "20")
        end_of_watch = time.monotonic() + 4
        longest = 0
        while time.monotonic() < end_of_watch:
            began = time.monotonic()
            assert busy.ask(query(enter(1))).codes == []
            longest = max(longest, time.monotonic() - began)
        assert longest < 3
        idle.query(enter(1))  # again, inside the transaction
        idle.query("commit")
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0 and "is paused" in err


def test_giving_up_names_the_holder_and_changes_nothing(app):
    with app.connect() as idle:
        idle.query("set application_name = 'the slow report'")
        idle.query("begin")
        idle.query(enter(1))
        text = lokadb("pause", "-db", app.db, "-org", 1, "-timeout", "1.5", status=1)
        assert "writer (the slow report)" in text and "idle in transaction" in text
        app.add_database(1)
        text = app.move(1, "-timeout", "1", status=1)
        assert "could not be paused in time" in text and "at home as before" in text
        idle.query("commit")
    assert app.sql("select profile from lokadb.organizations").value == "local"
    app.move(1)


@pytest.fixture
def prepared(app):
    """prepared(statement) leaves a prepared transaction that has run it."""
    with app.connect() as c:

        def make(sql):
            c.query("begin")
            c.query(sql)
            c.query("prepare transaction 'of ''the'' bank'")

        yield make
        c.query("rollback prepared 'of ''the'' bank'")


@pytest.mark.parametrize("sql", [enter(1), "select lokadb.enter_all()"])
def test_giving_up_names_prepared_transactions(app, prepared, sql):
    prepared(sql)
    app.add_database(1)
    text = app.move(1, "-timeout", "1", status=1)
    assert "held by prepared transaction 'of ''the'' bank' of writer, until COMMIT PREPARED or ROLLBACK PREPARED;" in text


def test_orgs_names_prepared_transactions(app, prepared):
    app.add_database(1)
    app.move(1)
    app.back(1)
    prepared(enter(1, int(app.sql("select generation from lokadb.organizations").value)))
    assert "prepared transaction 'of ''the'' bank' of writer works since" in lokadb("orgs", "-db", app.db)
    assert "is not paused" in lokadb("resume", "-db", app.db, "-org", 1, status=1)


def test_a_pauser_that_is_killed_leaves_nothing_paused(app):
    process = pauser(app)
    end(process, signal.SIGKILL)
    harness.eventually(lambda: not is_paused(app), 5, "the lock has gone with the session")
    assert app.connect().query(enter(1)).rows == [("local", "0")]


def test_resume_ends_the_pause_of_somebody_else(app):
    assert "is not paused" in lokadb("resume", "-db", app.db, "-org", 1, status=1)
    process = pauser(app)
    assert "lokadb pause" in lokadb("resume", "-db", app.db, "-org", 1)
    process.communicate(timeout=10)
    assert process.returncode == 1  # it is told that its pause is over
    assert not is_paused(app)


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_a_command_runs_under_the_pause(app, command, status):
    flag = app.folder / "flag"
    lokadb("pause", "-db", app.db, "-org", 1, "--", "sh", "-c", "sleep 0.2; echo here > %s; %s" % (flag, command), status=status)
    assert flag.read_text() == "here\n"
    assert not is_paused(app)


def test_orgs_shows_who_holds(app):
    app.add_database(1)
    app.move(1)
    process = pauser(app)
    assert "pauses since 2" in lokadb("orgs", "-db", app.db)
    end(process)


# ------------------------------------------------------------------ profiles


def profile(app):
    return app.sql("select profile from lokadb.organizations where org = '1'").value


def change(app, name, *more, **kw):
    return lokadb("org-profile", "-db", app.db, "-org", 1, *app.secrets, *more, name, **kw)


def test_profiles(app):
    assert "move it first" in change(app, "fdw", status=1)
    app.add_database(1)
    app.move(1)
    generation = int(app.sql("select generation from lokadb.organizations").value)
    assert "fdw+direct (was fdw)" in change(app, "fdw+direct")
    assert profile(app) == "fdw+direct"
    assert int(app.sql("select generation from lokadb.organizations").value) > generation
    with app.connect() as c:
        answer = c.ask(query(enter(1, generation)))
        assert answer.codes == ["LK001"] and '"profile" : "fdw+direct"' in answer.errors[0]["D"]
    assert "no direct credentials" in change(app, "direct", status=1)
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "direct", "-user", "customers_app", answer="app-pw\n")
    change(app, "direct", "-drop-fdw-credentials")
    with app.connect(tenant=1) as c:
        assert c.ask(query("select count(*) from documents")).codes == ["42704"]  # the cloud has no way there any more
    lokadb("org-profile", "-db", app.db, "-org", 1, "fdw", status=2)
    change(app, "fdw")
    with app.connect(tenant=1) as c:
        assert c.value("select count(*) from documents") == "10"
    assert "there is no profile" in change(app, "quick", status=2)
    assert profile(app) == "fdw"


def test_passwords_are_nowhere_in_the_clear(app):
    app.add_database(1)
    app.move(1)
    assert "fdw-pw" not in lokadb("org-credentials", "-control-plane", app.control, "-show")
    assert "customers_fdw" in lokadb("org-credentials", "-control-plane", app.control, "-show", "-json")
    dump = app.cluster.sql("select string_agg(c::text, '') from lokadb.credentials c", app.name + "_cp").value
    assert "fdw-pw" not in dump and b"fdw-pw".hex() not in dump
    new = app.folder / "new"
    lokadb("keygen", "-key", new)
    assert "File exists" in lokadb("keygen", "-key", new, status=1)
    lokadb("org-credentials", *app.secrets, "-rotate", new)
    to = app.conninfo(app.databases[0])
    lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-verify", to, status=1)
    app.secrets[-1] = new
    assert "work" in lokadb("org-credentials", *app.secrets, "-org", 1, "-kind", "fdw", "-verify", to)
    # A row given to another organization does not open.
    app.cluster.sql("update lokadb.credentials set org = '2'", app.name + "_cp")
    lokadb("org-credentials", *app.secrets, "-org", 2, "-kind", "fdw", "-verify", to, status=1)
    new.chmod(0o644)
    assert "others may read" in lokadb("org-credentials", *app.secrets, "-org", 2, "-kind", "fdw", "-verify", to, status=1)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["move-org"], ["move-org", "-db", "x", "-nonsense"], ["pause", "-db"],
                                       ["orgs", "-db", "x", "y"], ["pause", "-db", "x", "-org", "1", "-for", "soon"]])
def test_wrong_usage_is_status_2(arguments):
    assert "Usage: lokadb" in lokadb(*arguments, status=2)


def test_help():
    text = lokadb("-h")
    for name in ("init", "add-table", "move-org", "pause", "org-credentials"):
        assert name in text
        assert "Usage: lokadb " + name in lokadb(name, "-h")
