"""Settings that follow their client from server to server, however they were made and unmade."""

import pytest

import wire
from test_session_state import PROTOCOLS, run

# Name, value as it may be written, as it is shown, and as it is for everybody else.
FOLLOWED = [
    ("statement_timeout", "70000", "70s", "0"),
    ("lock_timeout", "'5s'", "5s", "0"),
    ("idle_in_transaction_session_timeout", "'90 s'", "90s", "0"),
    ("client_min_messages", "WARNING", "warning", "notice"),
    ("extra_float_digits", "3", "3", "1"),
    ("bytea_output", "escape", "escape", "hex"),
    ("default_transaction_isolation", "'Serializable'", "serializable", "read committed"),
    ("default_transaction_read_only", "yes", "on", "off"),
    ("default_transaction_deferrable", "1", "on", "off"),
    ("search_path", 'a, "B c", public', 'a, "B c", public', '"$user", public'),
    ("intervalstyle", "iso_8601", "iso_8601", "postgres"),
    ("timezone", "'Asia/Tokyo'", "Asia/Tokyo", "UTC"),
    ("datestyle", "German", "German, DMY", "ISO, MDY"),
    ("application_name", "'an app'", "an app", ""),
    ("standard_conforming_strings", "off", "off", "on"),
]


@pytest.fixture
def pair(start):
    """Two clients of one server."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    return proxy.connect(), proxy.connect()


def shown(client, name):
    return client.value("show " + name)


@pytest.mark.parametrize("how", PROTOCOLS)
def test_set_follows_the_client_and_reset_ends_it(pair, how):
    first, second = pair
    for name, value, canonical, default in FOLLOWED:
        run(first, how, "set %s = %s" % (name, value))
        assert [shown(c, name) for c in (second, first, second)] == [default, canonical, default]
        run(first, how, "reset " + name)
        assert [shown(c, name) for c in (first, second)] == [default, default]


def test_all_at_once_for_each_of_two(pair):
    first, second = pair
    for name, value, _, _ in FOLLOWED:
        first.query("set session %s to %s" % (name, value))
    for name, _, canonical, default in FOLLOWED:
        assert [shown(first, name), shown(second, name)] == [canonical, default]
    second.query("set time zone 'Europe/Paris'; set names 'LATIN1'; set schema 'other'")
    second.query("set session characteristics as transaction isolation level repeatable read, deferrable")
    for name, _, canonical, _ in FOLLOWED:
        assert shown(first, name) == canonical
    names = ["timezone", "client_encoding", "search_path", "default_transaction_isolation"]
    assert [shown(second, n) for n in names] == ["Europe/Paris", "LATIN1", "other", "repeatable read"]
    assert shown(second, "default_transaction_deferrable") == "on"
    first.query("reset all")
    for name, _, _, default in FOLLOWED:
        assert shown(first, name) == default
    assert [shown(second, n) for n in names] == ["Europe/Paris", "LATIN1", "other", "repeatable read"]


@pytest.mark.parametrize("name, value, canonical, default", FOLLOWED)
def test_transactions_and_savepoints(pair, name, value, canonical, default):
    first, second = pair
    first.query("begin; set %s = %s" % (name, value))
    assert shown(first, name) == canonical
    first.query("rollback")
    assert [shown(first, name), shown(second, name)] == [default, default]
    first.query("begin")
    first.query("savepoint s; set %s = %s" % (name, value))
    first.query("rollback to s; select 1")
    assert shown(first, name) == default
    first.query("commit")
    assert [shown(first, name), shown(second, name)] == [default, default]
    first.query("begin; set local %s = %s" % (name, value))
    assert shown(first, name) == canonical
    first.query("commit")
    assert [shown(first, name), shown(second, name)] == [default, default]
    first.query("begin; savepoint s; set %s = %s; release s; commit" % (name, value))
    assert [shown(second, name), shown(first, name)] == [default, canonical]
    first.query("begin; set %s to default; rollback" % name)
    assert [shown(second, name), shown(first, name)] == [default, canonical]
    first.ask(wire.query("set %s to default; select 1 / 0" % name))
    assert [shown(second, name), shown(first, name)] == [default, canonical]
    first.query("set %s to default" % name)
    assert [shown(second, name), shown(first, name)] == [default, default]


def test_set_config_in_all_its_forms(pair):
    first, second = pair
    for sql, params in [
        ("select set_config('statement_timeout', '7s', false)", ()),
        ("select pg_catalog.set_config('Statement_Timeout', $1, false)", ("7s",)),
        ("select set_config($1, $2, $3::boolean)", ("statement_timeout", "7s", "false")),
        ("insert into scratch select 1, set_config('statement_timeout', '7s', false)", ()),
    ]:
        run(first, "unnamed", sql, params)
        assert [shown(second, "statement_timeout"), shown(first, "statement_timeout")] == ["0", "7s"]
        first.query("set statement_timeout = 0")
    first.query("begin; select set_config('statement_timeout', '7s', true)")
    assert shown(first, "statement_timeout") == "7s"
    first.query("commit")
    assert shown(first, "statement_timeout") == "0"


def test_in_blocks_procedures_and_prepared_statements(pair):
    first, second = pair
    first.query("do $$ begin set lock_timeout = '3s'; end $$")
    assert [shown(second, "lock_timeout"), shown(first, "lock_timeout")] == ["0", "3s"]
    first.ask(wire.parse("s", "set lock_timeout = '4s'") + wire.sync())
    assert shown(first, "lock_timeout") == "3s"
    assert not first.ask(wire.bind("", "s") + wire.execute() + wire.sync()).errors
    assert [shown(second, "lock_timeout"), shown(first, "lock_timeout")] == ["0", "4s"]


def test_a_pipeline_that_sets_and_goes_on(pair):
    first, second = pair
    first.send(wire.query("set lock_timeout = '3s'") + wire.query("show lock_timeout") + wire.query("select 5"))
    assert first.ready(3).rows == [("3s",), ("5",)]
    first.send(wire.extended("set lock_timeout = '4s'") + wire.extended("show lock_timeout"))
    assert first.ready(2).rows == [("4s",)]
    assert shown(second, "lock_timeout") == "0"


# ------------------------------------------------------------------ at the start


@pytest.mark.parametrize("mode", ["transaction", "statement", "session"])
def test_startup_parameters_are_the_clients_own(start, mode):
    proxy = start(pool_mode=mode, default_pool_size=2 if mode == "session" else 1)
    wanted = {n: v.strip("'") for n, v, _, _ in FOLLOWED}
    first, second = proxy.connect(params=wanted), proxy.connect()
    for _ in range(2):
        for name, _, canonical, default in FOLLOWED:
            assert (name, shown(first, name), shown(second, name)) == (name, canonical, default)


def test_options_with_lists_and_quotes(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    options = r"-c search_path=a,b -c statement_timeout=5s --lock-timeout=9s -cextra_float_digits=3"
    first = proxy.connect(params={"options": options})
    second = proxy.connect(params={"options": r'-c search_path="A\ b",\ c\\d -c statement_timeout=1min'})
    third = proxy.connect()
    for _ in range(2):
        assert [shown(first, n) for n in ("search_path", "statement_timeout", "lock_timeout", "extra_float_digits")] == [
            "a,b",
            "5s",
            "9s",
            "3",
        ]
        assert [shown(second, n) for n in ("search_path", "statement_timeout", "lock_timeout")] == [
            '"A b", c\\d',
            "1min",
            "0",
        ]
        assert [shown(third, n) for n in ("search_path", "statement_timeout")] == ['"$user", public', "0"]


@pytest.mark.parametrize("sql", ["reset statement_timeout", "reset all", "discard all", "set statement_timeout to default"])
def test_reset_goes_to_what_the_client_began_with(start, sql):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    params = {"statement_timeout": "5s", "timezone": "Asia/Tokyo"}
    first, second = proxy.connect(params=params), proxy.connect()
    first.query("set statement_timeout = '9s'; set timezone = 'Europe/Paris'")
    assert shown(first, "statement_timeout") == "9s"
    told = first.query(sql).parameters
    answer = first.query("show statement_timeout")
    assert answer.value == "5s"
    told.update(answer.parameters)
    if sql.endswith("all"):
        assert (shown(first, "timezone"), told["TimeZone"]) == ("Asia/Tokyo", "Asia/Tokyo")
    else:
        assert shown(first, "timezone") == "Europe/Paris"
    assert [shown(second, n) for n in ("statement_timeout", "timezone")] == ["0", "UTC"]


def test_what_the_database_was_given_is_what_others_have(start, cluster):
    cluster.sql("alter role other set statement_timeout = '33s'; alter role other set search_path = special")
    try:
        proxy = start(pool_mode="transaction", default_pool_size=1)
        first, second = proxy.connect(user="other"), proxy.connect(user="other", params={"statement_timeout": "5s"})
        for _ in range(2):
            assert [shown(first, n) for n in ("statement_timeout", "search_path")] == ["33s", "special"]
            assert [shown(second, n) for n in ("statement_timeout", "search_path")] == ["5s", "special"]
        first.query("set statement_timeout = 0")
        second.query("reset statement_timeout")
        assert [shown(c, "statement_timeout") for c in (first, second)] == ["0", "5s"]
    finally:
        cluster.sql("alter role other reset all")


def test_a_short_timeout_does_not_meet_the_next_client(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    hasty, patient = proxy.connect(params={"statement_timeout": "1"}), proxy.connect()
    for _ in range(10):
        assert hasty.fails("select pg_sleep(1)")["C"] == "57014"
        assert patient.value("select pg_sleep(0.02)") == ""


def test_a_value_that_is_none_ends_the_client_that_asked_for_it(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    wrong = proxy.connect(params={"statement_timeout": "soon"})
    wrong.send(wire.query("select 1"))
    assert wrong.last_words()["M"] == "invalid server parameter"
    assert proxy.connect().value("show statement_timeout") == "0"


@pytest.mark.parametrize("params", [{"statement_timeout": "5s"}, {"options": "-c statement_timeout=5s"}])
def test_strictness_refuses_what_pgbouncer_refuses(start, params):
    proxy = start(strict_startup_parameters=1, pool_mode="transaction")
    assert proxy.refusal(params=params).message.endswith("statement_timeout")
    client = proxy.connect(params={"options": "-c timezone=Asia/Tokyo"})
    assert shown(client, "timezone") == "Asia/Tokyo"
    client.query("set statement_timeout = '5s'")
    assert shown(client, "statement_timeout") == "5s"


def test_what_is_to_be_ignored_is_ignored(start):
    proxy = start(pool_mode="transaction", ignore_startup_parameters="extra_float_digits")
    assert shown(proxy.connect(params={"extra_float_digits": "3"}), "extra_float_digits") == "1"
    assert shown(proxy.connect(params={"options": "-c extra_float_digits=3"}), "extra_float_digits") == "1"


def test_servers_of_several_workers(start):
    proxy = start(pool_mode="transaction", default_pool_size=3, worker_threads=3)
    clients = [proxy.connect(params={"statement_timeout": "%ds" % n}) for n in range(10, 20)]
    for n, client in enumerate(clients):
        client.query("set lock_timeout = '%ds'" % (20 + n))
    for _ in range(3):
        for n, client in enumerate(clients):
            client.send(wire.query("show statement_timeout; show lock_timeout"))
        for n, client in enumerate(clients):
            assert client.ready().rows == [("%ds" % (10 + n),), ("%ds" % (20 + n),)]


def test_a_setting_of_ones_own_follows_if_it_is_named(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, track_extra_parameters="IntervalStyle, app.tenant")
    first, second = proxy.connect(), proxy.connect(params={"app.tenant": "two"})
    first.query("set app.tenant = 'one'")
    probe = "select coalesce(current_setting('app.tenant', true), '')"
    for _ in range(2):
        assert [first.value(probe), second.value(probe)] == ["one", "two"]
    assert proxy.connect().value(probe) == ""


def test_without_the_client_it_is_not_asked_and_does_not_stay(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    second = proxy.connect()
    for _ in range(5):
        first = proxy.connect()
        first.send(wire.query("set statement_timeout = '5s'") + wire.terminate())
        first.drop()
        assert shown(second, "statement_timeout") == "0"
