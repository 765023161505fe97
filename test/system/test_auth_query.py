"""auth_query: users that the user list does not have are looked up on a server, by auth_user."""

import threading

import pytest

import wire
from harness import eventually, takes
from wire import scram_secret

ROLES = ("carol", "mick")
SLOW = "select rolname, rolpassword from pg_authid, (select pg_sleep(%g)) as s where rolname = $1"


@pytest.fixture
def ask(start):
    """ask(**settings) runs a proxy that knows neither carol nor mick and may ask as postgres."""

    def make(**settings):
        users = {**{name: None for name in ROLES}, **settings.pop("userlist", {})}
        return start(**{"auth_type": "scram-sha-256", "auth_user": "postgres", "userlist": users, **settings})

    return make


@pytest.fixture
def role(cluster):
    """role(name, attributes) makes a role for the time of the test."""
    made = []
    quoted = lambda name: '"%s"' % name.replace('"', '""')

    def make(name, attributes):
        cluster.sql("create role %s login %s" % (quoted(name), attributes))
        made.append(name)

    yield make
    for name in made:
        cluster.sql("drop role " + quoted(name))


def in_background(work):
    """Runs it in a thread; the result is called to wait for its end and have what it returned or raised."""
    result = []

    def run():
        try:
            result.append(work())
        except Exception as e:
            result.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def outcome(timeout=10):
        thread.join(timeout)
        assert result, "still at it after %g s" % timeout
        return result[0]

    return outcome


def begin_login(proxy, user="carol", database="app"):
    """A client that has said who it is, and reads nothing."""
    client = proxy.raw()
    client.send(wire.startup({"user": user, "database": database}))
    return client


def waiting(proxy, user="postgres", database="app"):
    rows = proxy.show_over_unix("pools", database=database, user=user)
    return sum(int(r["cl_waiting"]) for r in rows)


def is_in(client):
    return client.value("select 1") == "1"


# ------------------------------------------------------------------ who is let in


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_looked_up_user_logs_in_here_and_at_the_server(ask, cluster, mode, workers):
    proxy = ask(pool_mode=mode, worker_threads=workers)
    client = proxy.connect(user="carol", password="carol-pw")
    assert client.methods == ["scram"] and client.value("select current_user") == "carol"
    assert proxy.refusal(user="carol", password="wrong").message == "SASL authentication failed"
    assert proxy.refusal(user="carol", password="").severity == "FATAL"
    cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'carol'")
    eventually(lambda: not proxy.show_over_unix("servers", user="carol"))
    assert proxy.connect(user="carol", password="carol-pw").value("select current_user") == "carol"


def test_an_md5_secret_is_passed_on(ask):
    proxy = ask(auth_type="md5")
    client = proxy.connect(user="mick", password="mick-pw")
    assert client.methods == ["md5"] and client.value("select current_user") == "mick"
    assert proxy.refusal(user="mick", password="wrong").message == "password authentication failed"
    assert proxy.connect(user="carol", password="carol-pw").methods == ["scram"]


def test_nobody_is_no_user(ask):
    proxy = ask()
    error = proxy.refusal(user="nobody", password="x")
    assert (error.severity, error.code, error.message) == ("FATAL", "28000", "no such user")
    proxy.wait_log("no such user: nobody")
    assert proxy.show_over_unix("users", name="nobody") == []
    assert proxy.show_over_unix("databases", name="app")[0]["current_client_connections"] == "0"
    assert waiting(proxy) == 0


def test_the_user_list_comes_first(ask, cluster):
    proxy = ask(userlist={"carol": "listed"}, databases={"app": "user=app"})
    assert proxy.refusal(user="carol", password="carol-pw").message == "SASL authentication failed"
    assert is_in(proxy.connect(user="carol", password="listed"))
    assert cluster.backends("usename = 'postgres'") == []


def test_a_user_of_the_users_section_alone_is_looked_up(ask):
    proxy = ask(users={"carol": "pool_size=3"})
    assert is_in(proxy.connect(user="carol", password="carol-pw"))


def test_valid_until(ask, role):
    role("late", "password 'pw' valid until '2001-01-01'")
    role("early", "password 'pw' valid until '2999-01-01'")
    role("without", "")
    proxy = ask(databases={"app": "user=app"})
    assert is_in(proxy.connect(user="early", password="pw"))
    for user in ("late", "without"):
        assert proxy.refusal(user=user, password="pw").message == "SASL authentication failed"


def test_roles_that_may_not_log_in_are_nobody(ask, cluster, role):
    role("team", "password 'pw'")
    cluster.sql("alter role team nologin")
    assert ask().refusal(user="team", password="pw").message == "no such user"


def test_each_login_asks_anew(ask, cluster, role):
    role("vera", "password 'one'")
    proxy = ask(databases={"app": "user=app"})
    assert is_in(proxy.connect(user="vera", password="one"))
    cluster.sql("alter role vera password 'two'")
    assert proxy.refusal(user="vera", password="one").message == "SASL authentication failed"
    assert is_in(proxy.connect(user="vera", password="two"))


def test_a_new_secret_is_used_at_the_server(ask, cluster, role):
    role("vera", "password 'one'")
    proxy = ask(auth_type="scram-sha-256", default_pool_size=1)
    assert proxy.connect(user="vera", password="one").value("select current_user") == "vera"
    cluster.sql("alter role vera password 'two'")
    cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'vera'")
    eventually(lambda: not proxy.show_over_unix("servers", user="vera"))
    assert proxy.connect(user="vera", password="two").value("select current_user") == "vera"


@pytest.mark.parametrize("name", ["o'ha\"ra", "with space", "$1", "x' or '1'='1", "名前"])
def test_names_of_any_kind(ask, role, name):
    role(name, "password 'pw'")
    proxy = ask(databases={"app": "user=app"})
    assert is_in(proxy.connect(user=name, password="pw"))
    assert proxy.refusal(user=name + "'", password="pw").message == "no such user"


def test_trust_needs_the_lookup_too(ask):
    proxy = ask(auth_type="trust", databases={"app": "user=app"})
    assert is_in(proxy.connect(user="carol"))
    assert proxy.refusal(user="nobody").message == "no such user"


def test_the_hba_file_rules_who_was_looked_up(ask, prepare):
    proxy = prepare(auth_type="hba", auth_user="postgres", databases={"app": "user=app"}, userlist={n: None for n in ROLES})
    (proxy.folder / "hba.conf").write_text("host all carol all md5\nhost all all all reject\n")
    proxy.write(auth_hba_file=proxy.folder / "hba.conf")
    proxy.start()
    assert proxy.connect(user="carol", password="carol-pw").methods == ["scram"]
    assert proxy.refusal(user="mick", password="mick-pw").message == "login rejected"
    assert proxy.refusal(user="nobody").message == "no such user"


def test_the_first_column_is_the_name(ask):
    proxy = ask(auth_query="select 'carol', rolpassword from pg_authid where rolname = 'carol' and $1 = 'CAROL'")
    assert proxy.connect(user="CAROL", password="carol-pw").value("select current_user") == "carol"
    assert proxy.show_over_unix("clients", user="carol")


def test_an_entry_has_its_own_user_and_query(ask):
    query = "auth_user=postgres auth_query='select $1::text, ''plain''::text'"
    proxy = ask(auth_user="nobody-at-all", databases={"app": "user=app " + query, "second": "user=app"})
    assert is_in(proxy.connect(user="anybody", password="plain"))
    assert proxy.refusal(user="anybody", password="wrong").message == "SASL authentication failed"
    assert "nobody-at-all" in proxy.refusal(user="anybody", database="second", password="plain").message


def test_without_auth_user_nothing_is_asked(start, cluster):
    proxy = start(auth_type="scram-sha-256", userlist={"carol": None})
    assert proxy.refusal(user="carol", password="carol-pw").message == "SASL authentication failed"
    proxy.wait_log("no such user: carol")


def test_a_long_secret(ask):
    secret = "s" * 65530
    query = "select $1::text, repeat('s', %d)"
    proxy = ask(auth_type="plain", databases={"app": "user=app"}, auth_query=query % 65530)
    assert is_in(proxy.connect(user="any", password=secret))
    assert proxy.refusal(user="any", password=secret[:-1]).message == "password authentication failed"
    proxy.admin_over_unix("set auth_query = '%s'" % (query % 65531).replace("'", "''"))
    assert proxy.refusal(user="any", password=secret).message == "bouncer config error"


# ------------------------------------------------------------------ answers of no use


@pytest.mark.parametrize(
    "query, reason",
    [
        ("select * from not_there where a = $1", 'error in auth_query: ERROR: relation "not_there" does not exist'),
        ("select 1/0, $1::text", "error in auth_query: ERROR: division by zero"),
        ("select $1::text", "closing because: expected 2 columns from auth_query, not 1"),
        ("select $1::text, 'x', 'y'", "closing because: expected 2 columns from auth_query, not 3"),
        ("select null::text, $1::text", "closing because: auth_query response contained null user name"),
        ("select rolname, $1::text from pg_authid", "closing because: unexpected response from auth_query"),
        ("select 'no', 'parameter'", "error in auth_query: ERROR: bind message supplies 1 parameters"),
        ("set work_mem = 1000", "error in auth_query: "),
        ("select $1::text, 'x'; select 1", "error in auth_query: ERROR: cannot insert multiple commands"),
        ("copy (select 1) to stdout", "error in auth_query: "),
    ],
)
def test_a_query_of_no_use(ask, cluster, query, reason):
    proxy = ask(auth_query=query)
    error = proxy.refusal(user="carol", password="carol-pw")
    assert (error.severity, error.message) == ("FATAL", "bouncer config error")
    proxy.wait_log(reason)
    eventually(lambda: not cluster.backends("usename = 'postgres'"))
    proxy.admin_over_unix("set auth_query = 'select rolname, rolpassword from pg_authid where rolname = $1'")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))


def test_auth_user_cannot_log_in(ask):
    proxy = ask(auth_user="missing_role")
    error = proxy.refusal(user="carol", password="carol-pw")
    assert error.message == 'role "missing_role" does not exist'
    assert proxy.refusal(user="carol", password="carol-pw").severity == "FATAL"


# ------------------------------------------------------------------ where it is asked


def test_auth_dbname(ask, cluster):
    proxy = ask(databases={"app": "", "second": "", "own": "dbname=app auth_dbname=app"}, auth_dbname="second")
    for database, asked in (("app", "second"), ("own", "app")):
        assert is_in(proxy.connect(user="carol", database=database, password="carol-pw"))
        assert cluster.backends("usename = 'postgres' and datname = '%s'" % asked)
    assert not proxy.show_over_unix("pools", database="own", user="postgres")


def test_auth_dbname_may_come_from_the_template(ask):
    proxy = ask(databases={"app": "", "*": ""}, auth_dbname="second")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))
    proxy.wait_log("registered new auto-database: second")


def test_a_missing_auth_dbname(ask):
    proxy = ask(auth_dbname="gone")
    for _ in range(2):
        assert proxy.refusal(user="carol", password="carol-pw").message == "bouncer config error"
    proxy.wait_log('ERROR .*authentication database "gone" is not configured\\.', count=2)


def test_a_disabled_auth_dbname(ask):
    proxy = ask(databases={"app": "", "second": ""}, auth_dbname="second")
    proxy.admin_over_unix("disable second")
    error = proxy.refusal(user="carol", password="carol-pw")
    assert error.message == 'authentication database "second" is disabled'
    proxy.admin_over_unix("enable second")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))


def test_an_unknown_database_is_not_asked_about(ask, cluster):
    proxy = ask()
    assert proxy.refusal(user="carol", database="nowhere", password="carol-pw").message == "SASL authentication failed"
    assert cluster.backends() == []


def test_the_console(ask):
    proxy = ask(stats_users="carol", admin_users="mick")
    for _ in range(3):
        assert proxy.refusal(user="carol", database="pgbouncer", password="carol-pw").message == "bouncer config error"
    proxy.wait_log('ERROR .*cannot use the reserved "pgbouncer" database as an auth_dbname', count=3)
    proxy.admin_over_unix("set auth_dbname = 'app'")
    with proxy.console(user="carol", password="carol-pw") as console:
        assert console.table("show version")
        with pytest.raises(wire.PgError, match="admin access needed"):
            console.query("pause")
    assert proxy.refusal(user="carol", database="pgbouncer", password="wrong").message == "SASL authentication failed"
    assert proxy.refusal(user="other", database="pgbouncer").message == "not allowed"


def test_another_name_has_not_the_first_ones_rights(ask):
    proxy = ask(auth_dbname="app", admin_users="mick", auth_query="select 'carol', rolpassword from pg_authid where rolname = 'carol' and $1 > ''")
    assert proxy.refusal(user="mick", database="pgbouncer", password="carol-pw").message == "not allowed"


def test_auth_user_may_be_the_forced_user(ask, cluster):
    proxy = ask(databases={"app": "user=postgres auth_user=postgres min_pool_size=2"})
    assert proxy.connect(user="carol", password="carol-pw").value("select current_user") == "postgres"
    eventually(lambda: len(cluster.backends("usename = 'postgres'")) >= 2)


def test_the_password_of_a_forced_user_is_not_auth_users(ask, role):
    role("asking", "superuser password 'asking-pw'")
    proxy = ask(auth_user="asking", databases={"app": "user=app password=other"}, userlist={"asking": "asking-pw"})
    assert proxy.connect(user="carol", password="carol-pw").value("select current_user") == "app"


# ------------------------------------------------------------------ nothing of a client reaches the query


def test_a_hostile_search_path_reads_nothing_else(ask, cluster):
    cluster.sql("create schema evil; create table evil.pg_authid (rolname name, rolpassword text, rolvaliduntil timestamptz, rolcanlogin bool)")
    cluster.sql("insert into evil.pg_authid values ('victim', '%s', null, true)" % scram_secret("attacker"))
    cluster.sql("grant usage on schema evil to public; grant select on evil.pg_authid to public")
    try:
        for extra in ({}, {"auth_query": "select rolname, rolpassword from pg_authid where rolname = $1"}):
            proxy = ask(default_pool_size=1, pool_mode="transaction", track_extra_parameters="search_path", **extra)
            for path in ("evil,pg_catalog", "evil, pg_catalog"):
                for params in ({"search_path": path}, {"options": "-c search_path=" + path.replace(" ", "")}):
                    error = proxy.refusal(user="victim", password="attacker", params=params)
                    assert error.message == "no such user"
            # Not even if it stays on the very connection that asks.
            proxy.admin_over_unix("set auth_type = 'trust'")
            with proxy.connect(user="postgres") as client:
                client.query("set search_path = evil, pg_catalog")
                client.query("create temp table pg_authid as select * from evil.pg_authid")
                assert client.value("select count(*) from pg_authid") == "1"
            proxy.admin_over_unix("set auth_type = 'scram-sha-256'")
            assert proxy.refusal(user="victim", password="attacker").message == "no such user"
            assert is_in(proxy.connect(user="carol", password="carol-pw"))
            proxy.stop()
    finally:
        cluster.sql("drop schema evil cascade")


def test_nothing_is_set_before_the_query(ask, cluster):
    before = len(cluster.log())
    proxy = ask(databases={"app": "user=app"})
    params = {"application_name": "mine", "datestyle": "German", "client_encoding": "LATIN1"}
    proxy.connect(user="carol", password="carol-pw", params=params)
    lines = [line for line in cluster.log()[before:].splitlines() if "postgres@app" in line and "execute" in line]
    assert len(lines) == 1 and "pg_catalog.pg_authid" in lines[0]
    assert not [line for line in cluster.log()[before:].splitlines() if "postgres@app" in line and "SET " in line]


def test_what_clients_left_is_wiped_and_connect_query_run_again(ask, cluster):
    entry = "connect_query='set work_mem = ''77MB'' '"
    proxy = ask(auth_type="trust", default_pool_size=1, pool_mode="transaction", databases={"app": entry})
    client = proxy.connect(user="postgres")
    client.query("set statement_timeout = '12s'")
    assert client.value("show statement_timeout") == "12s"
    assert is_in(proxy.connect(user="mick"))
    assert client.value("show work_mem") == "77MB"
    assert client.value("show statement_timeout") == "12s"  # which follows the client
    assert len(cluster.backends("usename = 'postgres'")) == 1


def test_prepared_statements_of_clients_survive_a_lookup(ask):
    proxy = ask(auth_type="trust", default_pool_size=1, pool_mode="transaction")
    client = proxy.connect(user="postgres")
    client.ask(wire.parse("mine", "select 5 + $1::int") + wire.sync())
    for n in range(3):
        assert client.ask(wire.bind("", "mine", [n]) + wire.execute() + wire.sync()).rows == [(str(5 + n),)]
        assert is_in(proxy.connect(user="mick"))


def test_the_unnamed_statement_of_a_lookup_is_nobody_elses(ask):
    proxy = ask(default_pool_size=1, pool_mode="transaction")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))
    proxy.admin_over_unix("set auth_type = 'trust'")
    client = proxy.connect(user="postgres")
    answer = client.ask(wire.bind("", "", ["carol"]) + wire.execute() + wire.sync())
    assert answer.codes == ["26000"]


# ------------------------------------------------------------------ waiting


def test_logins_take_turns_on_few_connections(ask, cluster):
    proxy = ask(default_pool_size=1, databases={"app": "user=app pool_size=20"}, worker_threads=2, auth_query=SLOW % 0.05, users={"postgres": "pool_size=1"})
    logins = [in_background(lambda: is_in(proxy.connect(user="carol", password="carol-pw"))) for _ in range(12)]
    assert [outcome() for outcome in logins] == [True] * 12
    assert len(cluster.backends("usename = 'postgres'")) == 1


def test_a_paused_proxy_keeps_logins_waiting(ask):
    proxy = ask()
    proxy.admin_over_unix("pause")
    login = in_background(lambda: is_in(proxy.connect(user="carol", password="carol-pw")))
    eventually(lambda: waiting(proxy) == 1)
    assert [c["state"] for c in proxy.show_over_unix("clients", database="app")] == ["waiting"]
    proxy.admin_over_unix("resume")
    assert login() is True


def test_a_pause_waits_for_a_lookup(ask):
    proxy = ask(auth_query=SLOW % 0.7, databases={"app": "user=app"})
    login = in_background(lambda: is_in(proxy.connect(user="carol", password="carol-pw")))
    eventually(lambda: proxy.show_over_unix("servers", state="active"))
    with takes(0.2, 5):
        proxy.admin_over_unix("pause")
    proxy.admin_over_unix("resume")
    assert login() is True


def test_a_client_that_leaves_frees_its_place(ask):
    proxy = ask()
    proxy.admin_over_unix("pause")
    client = begin_login(proxy)
    eventually(lambda: waiting(proxy) == 1)
    client.drop()
    eventually(lambda: waiting(proxy) == 0)
    proxy.wait_log("closing because: client unexpected eof")
    proxy.admin_over_unix("resume")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))


def test_a_client_that_leaves_while_it_is_looked_up(ask, cluster):
    proxy = ask(auth_query=SLOW % 3, default_pool_size=1, databases={"app": "user=app"})
    client = begin_login(proxy)
    eventually(lambda: cluster.backends("state = 'active' and query like '%pg_sleep%' and usename = 'postgres' and pid <> pg_backend_pid()"))
    client.drop()
    proxy.wait_log("closing because: client unexpected eof")
    proxy.admin_over_unix("set auth_query = '%s'" % (SLOW % 0).replace("'", "''"))
    with takes(0, 2):
        assert is_in(proxy.connect(user="carol", password="carol-pw"))
    assert proxy.show_over_unix("databases", name="app")[0]["current_client_connections"] == "1"


def test_client_login_timeout_ends_a_lookup(ask, cluster):
    proxy = ask(auth_query=SLOW % 5, client_login_timeout=1)
    with takes(0.5, 3):
        error = proxy.refusal(user="carol", password="carol-pw")
    assert error.message == "client_login_timeout"
    proxy.admin_over_unix("pause")
    with takes(0.5, 3):
        assert proxy.refusal(user="carol", password="carol-pw").message == "client_login_timeout"
    assert waiting(proxy) == 0


def test_query_wait_timeout_counts_too(ask):
    proxy = ask(query_wait_timeout=1)
    proxy.admin_over_unix("pause")
    with takes(0.5, 3):
        assert proxy.refusal(user="carol", password="carol-pw").message == "query_wait_timeout"


def test_the_server_dies_while_it_is_asked(ask, cluster):
    proxy = ask(auth_query=SLOW % 5)
    login = in_background(lambda: proxy.refusal(user="carol", password="carol-pw").message)
    pids = eventually(lambda: cluster.backends("state = 'active' and usename = 'postgres'"))
    cluster.sql("select pg_terminate_backend(%d)" % pids[0])
    assert login() == "bouncer config error"


def test_the_database_of_the_query_goes_away(ask):
    proxy = ask(databases={"app": "", "second": ""}, auth_dbname="second")
    proxy.admin_over_unix("pause")
    login = in_background(lambda: proxy.refusal(user="carol", password="carol-pw").message)
    eventually(lambda: waiting(proxy, database="second") == 1)
    del proxy.databases["second"]
    proxy.write()
    proxy.admin_over_unix("reload")
    assert login() == "database removed"
    assert proxy.show_over_unix("databases", name="app")[0]["current_client_connections"] == "0"


def test_kill_ends_a_lookup(ask):
    proxy = ask(databases={"app": "", "second": ""}, auth_dbname="second", auth_query=SLOW % 5)
    login = in_background(lambda: proxy.refusal(user="carol", password="carol-pw").message)
    eventually(lambda: proxy.show_over_unix("servers", database="second", state="active"))
    proxy.admin_over_unix("kill second")
    assert login() in ("database removed", "bouncer config error")


@pytest.mark.parametrize("how", ["wait_for_servers", "wait_for_clients", ""])
def test_shutdown_with_logins_that_wait(ask, how):
    proxy = ask(databases={"app": "user=app"}, client_login_timeout=2)
    proxy.admin_over_unix("pause app")
    login = in_background(lambda: proxy.refusal(user="carol", password="carol-pw").message)
    eventually(lambda: waiting(proxy) == 1)
    try:
        proxy.admin_over_unix("shutdown " + how)
    except (wire.Closed, OSError):
        assert how == ""
    assert proxy.wait_exit() == 0
    text = login()
    if how == "wait_for_servers":
        assert text == "server shutting down"
    elif how == "wait_for_clients":
        assert text == "client_login_timeout"


def test_many_logins_at_once(ask):
    proxy = ask(databases={"app": "user=app"}, worker_threads=3, max_client_conn=200, default_pool_size=3, pool_mode="transaction")

    def several(user, password, expected):
        for _ in range(10):
            try:
                result = is_in(proxy.connect(user=user, password=password))
            except wire.PgError as e:
                result = e.message
            assert result == expected
        return True

    cases = [("carol", "carol-pw", True), ("carol", "x", "SASL authentication failed"), ("nobody", "x", "no such user")]
    logins = [in_background(lambda case=case: several(*case)) for case in cases * 3]
    assert [outcome(30) for outcome in logins] == [True] * 9
