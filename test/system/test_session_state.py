"""What a client leaves in its session must not reach the next one, whatever the pool mode and the protocol."""

import pytest

import wire
from harness import eventually

SHARED = ["transaction", "statement"]
PROTOCOLS = ["simple", "unnamed", "named"]


def run(client, how, sql, params=()):
    """One statement in the given way; it must succeed."""
    if how == "simple":
        return client.query(sql)
    answer = client.ask(wire.extended(sql, params, name="" if how == "unnamed" else "n%d" % abs(hash(sql))))
    assert not answer.errors, answer
    return answer


def backend_of(client):
    return client.value("select pg_backend_pid()")


LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
TABLE = "select to_regclass('left_over') is null"
# Statement, what to ask then, and the answer of a session in which nothing was left.
LEFT = [
    ("create temp table left_over (i int)", TABLE, "t"),
    ("CREATE\n TEMPORARY TABLE left_over AS SELECT 1", TABLE, "t"),
    ("create local temp table left_over (i int)", TABLE, "t"),
    ("create /* so */ temp table left_over (i int)", TABLE, "t"),
    ("create table pg_temp.left_over (i int)", TABLE, "t"),
    ('create table "pg_temp".left_over (i int)', TABLE, "t"),
    ("create or replace temp view left_over as select 1 as i", TABLE, "t"),
    ("create temp sequence left_over", TABLE, "t"),
    ("select 1 as i into temp left_over", TABLE, "t"),
    ("with a as (select 1 as i) select i into temporary table left_over from a", TABLE, "t"),
    ("select pg_advisory_lock(7)", LOCKS, "0"),
    ("select 1 where pg_try_advisory_lock(7, 8)", LOCKS, "0"),
    ("select PG_CATALOG.PG_ADVISORY_LOCK_SHARED (7)", LOCKS, "0"),
    ('select "pg_try_advisory_lock_shared"(7)', LOCKS, "0"),
    ("listen left_over", "select count(*) from pg_listening_channels()", "0"),
    ("declare left_over cursor with hold for select 1", "select count(*) from pg_cursors where name = 'left_over'", "0"),
    ("set work_mem = '77MB'", "show work_mem", "4MB"),
    ("-- work\nset session work_mem to '77MB'", "show work_mem", "4MB"),
    ("/* a /* b */ */set work_mem to '77MB'", "show work_mem", "4MB"),
    ("select set_config('work_mem', '77MB', false)", "show work_mem", "4MB"),
    ("select set_config('work_mem', '77MB', 1 = 2)", "show work_mem", "4MB"),
    ("with a as (select pg_catalog.set_config('work_' || 'mem', '77MB', false)) select * from a", "show work_mem", "4MB"),
    ("explain analyze select set_config('work_mem', '77MB', false)", "show work_mem", "4MB"),
    ("update pg_settings set setting = 80000 where name = 'work_mem'", "show work_mem", "4MB"),
    ("set kept.over = 'x'", "select coalesce(current_setting('kept.over', true), '')", ""),
    ("select set_config('kept.over', 'x', false)", "select coalesce(current_setting('kept.over', true), '')", ""),
    ("do $$ begin perform set_config('work_mem', '77MB', false); end $$", "show work_mem", "4MB"),
    ("do $$ begin execute 'create te' || 'mp table left_over (i int)'; end $$", TABLE, "t"),
    ("call leave_something()", "show work_mem", "4MB"),
    ("set role app", "select current_user", "asker"),
    ("set local role app; set session role app", "select current_user", "asker"),
    ("set session authorization app", "select session_user", "asker"),
    ("select become_app()", "select current_user", "asker"),
    ("set xml option document", "show xmloption", "content"),
]


@pytest.fixture(scope="module", autouse=True)
def routines(cluster_of_session):
    cluster_of_session.sql(
        "create procedure leave_something() language sql as $$select set_config('work_mem', '77MB', false)$$;"
        "create function become_app() returns text language sql as $$select set_config('role', 'app', false)$$;"
        "create function sleep_less() returns text language sql as $$select set_config('timezone', 'Asia/Tokyo', false)$$"
    )
    yield
    cluster_of_session.sql("drop procedure leave_something(); drop function become_app(); drop function sleep_less()")


@pytest.mark.parametrize("mode", SHARED)
def test_what_one_client_left_is_not_found_by_another(start, mode):
    proxy = start(pool_mode=mode, default_pool_size=1)
    first, second = proxy.connect(user="asker"), proxy.connect(user="asker")
    for sql, probe, clean in LEFT:
        for how in PROTOCOLS:
            if how != "simple" and "; " in sql and "$$" not in sql:
                continue
            run(first, how, sql)
            assert (sql, how, second.value(probe)) == (sql, how, clean)
            first.ask(wire.query("deallocate all"))


def test_in_session_mode_it_stays_with_the_client_and_ends_with_it(start):
    proxy = start(default_pool_size=1)
    for sql, probe, clean in LEFT:
        if sql.startswith("set local"):
            continue
        first = proxy.connect(user="asker")
        run(first, "simple", sql)
        assert (sql, first.value(probe)) != (sql, clean)
        first.terminate()
        with proxy.connect(user="asker") as second:
            assert (sql, second.value(probe)) == (sql, clean)
            second.terminate()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_inside_a_transaction_it_is_there_until_the_end(start, end):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(user="asker"), proxy.connect(user="asker")
    for sql, probe, clean in LEFT:
        if "local role" in sql:
            continue
        first.query("begin")
        run(first, "simple", sql)
        if not sql.startswith("listen"):  # in effect from the commit on
            assert (sql, first.value(probe)) != (sql, clean)
        first.query(end)
        assert (sql, second.value(probe)) == (sql, clean)


def test_a_client_that_vanishes_leaves_nothing(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    second = proxy.connect(user="asker")
    for sql, probe, clean in LEFT[::3]:
        first = proxy.connect(user="asker")
        first.send(wire.query(sql) + wire.terminate())
        first.drop()
        assert (sql, second.value(probe)) == (sql, clean)
        first = proxy.connect(user="asker")
        first.query("begin")
        first.query(sql)
        first.drop()
        assert (sql, second.value(probe)) == (sql, clean)


def test_values_that_are_bound_are_not_known_and_do_not_leak(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    for how in ("unnamed", "named"):
        run(first, how, "select set_config($1, $2, false)", ("work_mem", "77MB"))
        assert second.value("show work_mem") == "4MB"
        run(first, how, "select set_config($1, $2, $3::bool)", ("kept.over", "x", "f"))
        assert second.value("select coalesce(current_setting('kept.over', true), '')") == ""


@pytest.mark.parametrize("mode", SHARED)
def test_a_statement_prepared_before_leaves_something_each_time_it_runs(start, mode):
    proxy = start(pool_mode=mode, default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    assert not first.ask(wire.parse("s", "set work_mem = '77MB'") + wire.sync()).errors
    assert not first.ask(wire.parse("", "select set_config('work_mem', '77MB', false)") + wire.sync()).errors
    assert second.value("show work_mem") == "4MB"
    for name in ("s", "s"):
        assert not first.ask(wire.bind("", name) + wire.execute() + wire.sync()).errors
        assert second.value("show work_mem") == "4MB"


def test_an_unnamed_statement_that_is_run_later_leaves_nothing(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.ask(wire.parse("", "set work_mem = '77MB'") + wire.sync())
    assert not first.ask(wire.bind("", "") + wire.execute() + wire.sync()).errors
    assert second.value("show work_mem") == "4MB"


@pytest.mark.parametrize("how", ["simple", "unnamed"])
def test_statements_longer_than_the_buffer_are_looked_at_to_their_end(start, how):
    proxy = start(pool_mode="transaction", default_pool_size=1, pkt_buf=64)
    first, second = proxy.connect(), proxy.connect()
    for padding in list(range(0, 64, 3)) + [300000]:
        run(first, how, "select '%s', pg_advisory_lock(7)" % ("x" * padding))
        assert (padding, second.value(LOCKS)) == (padding, "0")
    if how == "simple":
        for padding in list(range(0, 64, 3)) + [300000]:
            first.query("select '%s'; set work_mem = '77MB'" % ("x" * padding))
            assert (padding, second.value("show work_mem")) == (padding, "4MB")


def test_functions_called_without_sql_leave_nothing(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    pg_advisory_lock = int(first.value("select 'pg_advisory_lock(bigint)'::regprocedure::oid"))
    assert not first.ask(wire.function_call(pg_advisory_lock, (7,))).errors
    assert second.value(LOCKS) == "0"


def test_copy_and_several_statements_in_one_string(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("select 1; set work_mem = '77MB'; select 2")
    assert second.value("show work_mem") == "4MB"
    first.query("copy (select set_config('work_mem', '77MB', false)) to stdout")
    assert second.value("show work_mem") == "4MB"
    first.send(wire.query("create temp table left_over (i int); copy left_over from stdin; select 5"))
    assert first.read_until("G").tags == ["CREATE TABLE"]
    first.send(wire.copy_data(b"1\n2\n") + wire.copy_done())
    assert first.ready().tags == ["COPY 2", "SELECT 1"]
    assert second.value(TABLE) == "t"
    first.query("select 1; prepare left_over as select 1")
    assert second.value("select count(*) from pg_prepared_statements where name = 'left_over'") == "0"


def test_an_error_behind_it_does_not_hide_it(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.fails("select pg_advisory_lock(7), 1 / (random() * 0)::int")
    assert second.value(LOCKS) == "0"
    answer = first.ask(
        wire.extended("select pg_advisory_lock(7)")[: -len(wire.sync())] + wire.extended("select nothing_there")
    )
    assert answer.codes == ["42703"]
    assert second.value(LOCKS) == "0"


# What looks like it and is none: the connection goes back as it is, and nothing more is asked.
HARMLESS = [
    "update scratch set note = 'set work_mem', id = 2",
    "insert into scratch values (1, 'set role x; reset all; listen x') on conflict do nothing",
    "select 'set_config(''work_mem'', ''1'', false)', \"temp\" from (select 1 as temp) hold",
    "select note as set_config from scratch where note like '%pg_advisory_lock(%'",
    "begin; set local work_mem = '77MB'; select 1; commit",
    "begin; select set_config('work_mem', '77MB', true); commit",
    "begin; select set_config('kept.over', 'x', true), pg_advisory_xact_lock(7); commit",
    "begin; set transaction isolation level serializable; select 1; commit",
    "begin; set constraints all deferred; commit",
    "begin; create temp table gone (i int) on commit drop; insert into gone values (1); commit",
    "begin; declare c cursor for select 1; fetch c; close c; commit",
    "begin; declare c scroll cursor without hold for select 1; commit",
    "select pg_advisory_unlock_all()",
    "unlisten *",
    "select name, setting from pg_settings where name = 'work_mem'",
    "select 1 -- set work_mem = '77MB'",
    "create or replace function pg_temp_none() returns int language sql set work_mem = '77MB' as 'select 1'",
    "alter function pg_temp_none() set work_mem = '78MB'",
    "delete from scratch",
]


def test_what_only_looks_like_it_costs_nothing(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    client.query("create or replace function pg_temp_none() returns int language sql as 'select 1'")
    client.query("select 1")
    pid, before = backend_of(client), len(cluster.log())
    for sql in HARMLESS:
        if "pg_temp_none" not in sql:
            client.query(sql)
    assert backend_of(client) == pid
    log = cluster.log()[before:]
    assert "current_setting" not in log and "DISCARD" not in log
    client.query("drop function pg_temp_none()")


def test_a_reset_runs_the_connect_query_again(start):
    entry = "connect_query='set work_mem = ''66MB'''"
    proxy = start(pool_mode="transaction", default_pool_size=1, databases={"app": entry})
    first, second = proxy.connect(), proxy.connect()
    pid = backend_of(first)
    first.query("set work_mem = '77MB'")
    assert second.value("show work_mem") == "66MB"
    first.query("reset work_mem")
    assert second.value("show work_mem") == "66MB"
    first.query("set statement_timeout = '7s'")
    assert (second.value("show work_mem"), second.value("show statement_timeout")) == ("66MB", "0")
    assert backend_of(first) == pid


def test_library_loads_end_the_connection(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect(user="asker")
    pid = backend_of(client)
    client.query("load 'auto_explain'")
    assert backend_of(client) != pid
    proxy.wait_log("session state would reach another client")


# ------------------------------------------------------------------ pin_session_state


@pytest.mark.parametrize("sql", ["listen pinned", "select pg_advisory_lock(9)", "create temp table pinned (i int)"])
def test_a_pinned_client_keeps_its_server_until_it_goes(start, sql):
    proxy = start(pool_mode="transaction", default_pool_size=2, pin_session_state=1)
    first, second = proxy.connect(), proxy.connect()
    assert proxy.show("clients", database="app")[0]["state"] != "pinned"
    first.query(sql)
    pid = backend_of(first)
    for _ in range(3):
        assert backend_of(second) != pid
        assert backend_of(first) == pid
    assert sorted(c["state"] for c in proxy.show("clients", database="app")) == ["idle", "pinned"]
    first.terminate()
    eventually(lambda: len(proxy.show("servers", state="active")) == 0)
    assert second.value(LOCKS) == "0"
    second.query("begin")
    third = proxy.connect()
    assert third.value("select count(*) from pg_listening_channels()") == "0"
    assert third.value("select to_regclass('pinned')") is None
    third.terminate()


def test_a_pinned_listener_is_notified(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, pin_session_state=1)
    listener, sender = proxy.connect(), proxy.connect()
    listener.query("listen pinned")
    sender.query("notify pinned, 'news'")
    assert b"news" in listener.read_until("A")[-1].body
    assert listener.value("select 5") == "5"


def test_without_pinning_a_listener_is_served_by_any_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("listen left_over")
    assert second.value("select count(*) from pg_listening_channels()") == "0"
