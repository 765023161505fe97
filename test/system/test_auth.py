"""Logins: of clients at the proxy, and of the proxy at the server."""

import pytest

import wire
from harness import eventually
from wire import md5_secret, scram_secret

PLAIN, MD5, SCRAM = "carol-pw", md5_secret("carol", "carol-pw"), scram_secret("carol-pw")


@pytest.mark.parametrize(
    "auth, secret, method",
    [
        ("plain", PLAIN, "plain"),
        ("plain", MD5, "plain"),
        ("plain", SCRAM, "plain"),
        ("md5", PLAIN, "md5"),
        ("md5", MD5, "md5"),
        ("md5", SCRAM, "scram"),
        ("scram-sha-256", PLAIN, "scram"),
        ("scram-sha-256", SCRAM, "scram"),
    ],
)
class TestPasswords:
    @pytest.fixture
    def proxy(self, start, auth, secret):
        return start(auth_type=auth, databases={"app": "user=app"}, userlist={"carol": secret})

    def test_the_right_password_is_let_in(self, proxy, method):
        client = proxy.connect(user="carol", password="carol-pw")
        assert client.methods == [method]
        assert client.value("select 1") == "1"

    def test_a_wrong_one_is_not(self, proxy, method):
        error = proxy.refusal(user="carol", password="wrong")
        assert error.severity == "FATAL"
        assert error.message == (
            "SASL authentication failed" if method == "scram" else "password authentication failed"
        )
        assert error.code in ("28P01", "08P01")
        assert proxy.connect(user="carol", password="carol-pw").value("select 1") == "1"

    def test_an_empty_one_is_not(self, proxy, method):
        assert proxy.refusal(user="carol", password="").severity == "FATAL"


@pytest.mark.parametrize(
    "auth, method, text",
    [
        ("plain", "plain", "password authentication failed"),
        ("md5", "md5", "password authentication failed"),
        ("scram-sha-256", "scram", "SASL authentication failed"),
    ],
)
class TestUnknown:
    def test_an_unknown_user_is_asked_like_a_known_one(self, start, auth, method, text):
        proxy = start(auth_type=auth)
        error = proxy.refusal(user="nobody", password="x")
        assert error.message == text
        proxy.wait_log("no such user: nobody")
        assert proxy.show_over_unix("users", name="nobody") == []

    def test_an_unknown_database_is_named_only_after_the_password(self, start, auth, method, text):
        proxy = start(auth_type=auth)
        assert proxy.refusal(user="carol", database="nowhere", password="wrong").message == text
        error = proxy.refusal(user="carol", database="nowhere", password="carol-pw")
        assert error.message == "no such database: nowhere"
        proxy.wait_log("login failed: db=nowhere user=carol")

    def test_an_empty_secret_never_authenticates(self, start, auth, method, text):
        proxy = start(auth_type=auth)
        assert proxy.refusal(user="app", password="").severity == "FATAL"


def test_md5_secret_cannot_do_scram(start):
    proxy = start(auth_type="scram-sha-256", userlist={"carol": MD5})
    assert proxy.refusal(user="carol", password="carol-pw").message == "SASL authentication failed"


def test_only_scram_without_channel_binding_is_offered(start):
    proxy = start(auth_type="scram-sha-256", databases={"app": "user=app"})
    assert proxy.connect(user="carol", password="carol-pw").mechanisms == ["SCRAM-SHA-256"]


def test_scram_salts_of_an_unknown_user_do_not_change(start):
    proxy = start(auth_type="scram-sha-256")

    def salt(user="ghost"):
        client = proxy.raw()
        client.send(wire.startup({"user": user, "database": "app"}))
        client.read()
        first = b"n,,n=,r=abcdefghijklmnopqr"
        client.send(wire.message("p", b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first))
        return client.read().body.split(b"s=")[1].split(b",")[0]

    assert salt() == salt()
    assert salt("carol") == salt("carol")  # whose password is stored as plain text, and who has not logged in yet


def test_trust_wants_a_known_user(start):
    proxy = start(auth_type="trust")
    assert proxy.connect(user="app").value("select 1") == "1"
    assert proxy.refusal(user="nobody").message == '"trust" authentication failed'


def test_any_ignores_the_name_and_needs_a_forced_user(start):
    proxy = start(auth_type="any", databases={"app": "user=other", "second": ""})
    assert proxy.connect(user="whoever").value("select current_user") == "other"
    assert proxy.refusal(user="whoever", database="second").message == "bouncer config error"
    proxy.wait_log("auth_type=any requires forced user")


@pytest.mark.parametrize("body", [b"", b"\0", b"x" * 70000, b"no terminator", b"md5short\0"])
def test_a_malformed_password_message_is_refused(start, body):
    proxy = start(auth_type="md5")
    client = proxy.raw()
    client.send(wire.startup({"user": "carol", "database": "app"}))
    assert client.read().kind == "R"
    client.send(wire.message("p", body))
    client.read_to_end()
    assert proxy.connect(user="carol", password="carol-pw").value("select 1") == "1"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"SCRAM-SHA-256\0",
        b"SCRAM-SHA-256\0\xff\xff\xff\xff",
        b"SCRAM-SHA-256\0\0\0\0\x03n,,",
        b"SCRAM-SHA-256\0\0\0\0\x7fn,,n=,r=abc",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x09n,,n=,r=a",
        b"SCRAM-SHA-256\0\0\0\0\x0cp=x,,n=,r=ab",
    ],
)
def test_a_malformed_scram_message_is_refused(start, data):
    proxy = start(auth_type="scram-sha-256")
    client = proxy.raw()
    client.send(wire.startup({"user": "carol", "database": "app"}))
    assert client.read().kind == "R"
    client.send(wire.message("p", data))
    assert client.last_words()["S"] == "FATAL"
    assert proxy.connect(user="carol", password="carol-pw").value("select 1") == "1"


def test_a_query_in_place_of_the_password_is_refused(start):
    proxy = start(auth_type="md5")
    client = proxy.raw()
    client.send(wire.startup({"user": "carol", "database": "app"}) + wire.query("select 1"))
    assert "D" not in client.read_to_end().kinds


def test_a_client_that_leaves_when_asked_for_a_password(start):
    proxy = start(auth_type="scram-sha-256")
    for _ in range(10):
        client = proxy.raw()
        client.send(wire.startup({"user": "carol", "database": "app"}))
        client.read()
        client.drop()
    eventually(lambda: proxy.show_over_unix("lists", list="login_clients")[0]["items"] == "0")


def test_a_very_long_password(start):
    password = "L" * 65530
    proxy = start(auth_type="plain", databases={"app": "user=app"}, userlist={"carol": password})
    assert proxy.connect(user="carol", password=password).value("select 1") == "1"
    assert proxy.refusal(user="carol", password=password[:-1] + "M").message == "password authentication failed"


def test_quotes_and_comments_in_the_userlist(start):
    proxy = start(auth_type="plain", databases={"app": "user=app"})
    proxy.write_userlist('; "app" "commented out"\n\n"we""ird" "it\'s ""odd""" rest\n   "admin" ""\n"app" ""\n')
    proxy.admin_over_unix("reload")
    assert proxy.connect(user='we"ird', password='it\'s "odd"').value("select 1") == "1"


def test_changed_passwords_count_after_reload(start):
    proxy = start(auth_type="md5", databases={"app": "user=app"})
    proxy.connect(user="carol", password="carol-pw")
    proxy.userlist["carol"] = "a new and longer password"
    proxy.write()
    proxy.admin_over_unix("reload")
    assert proxy.refusal(user="carol", password="carol-pw").message == "password authentication failed"
    assert proxy.connect(user="carol", password="a new and longer password").value("select 1") == "1"


# ------------------------------------------------------------------ at the server


def test_the_proxy_logs_in_with_scram_and_with_md5(start):
    proxy = start(userlist={"carol": "carol-pw", "mick": "mick-pw"})
    assert proxy.connect(user="carol").value("select current_user") == "carol"
    assert proxy.connect(user="mick").value("select current_user") == "mick"


def test_a_stored_md5_secret_answers_a_server_that_wants_md5(start):
    proxy = start(userlist={"mick": md5_secret("mick", "mick-pw")})
    assert proxy.connect(user="mick").value("select current_user") == "mick"


def test_a_stored_scram_secret_is_passed_through(start, cluster):
    secret = cluster.value("select rolpassword from pg_authid where rolname = 'carol'")
    proxy = start(auth_type="scram-sha-256", pool_mode="transaction", default_pool_size=2, userlist={"carol": secret})
    clients = [proxy.connect(user="carol", password="carol-pw") for _ in range(2)]
    for client in clients:
        client.query("begin")  # so that both need a server
        assert client.value("select current_user") == "carol"
        client.query("commit")
    proxy.admin_over_unix("reconnect")
    assert clients[0].value("select current_user") == "carol"


def test_a_stored_scram_secret_without_a_login_to_learn_from_is_the_wrong_type(start, cluster):
    secret = cluster.value("select rolpassword from pg_authid where rolname = 'carol'")
    proxy = start(userlist={"carol": secret})
    assert proxy.refusal(user="carol").message == "server login failed: wrong password type"


def test_a_wrong_password_for_the_server_is_told_with_the_servers_words(start):
    proxy = start(userlist={"carol": "not the one of the server"})
    error = proxy.refusal(user="carol")
    assert (error.code, error.message) == ("28P01", 'password authentication failed for user "carol"')
    proxy.wait_log('server login failed: FATAL password authentication failed for user "carol"')


def test_a_password_in_the_database_entry_beats_the_userlist(start):
    proxy = start(databases={"app": "user=carol password=carol-pw"}, userlist={"carol": "wrong"})
    assert proxy.connect(user="app").value("select current_user") == "carol"


def test_a_forced_user_takes_its_password_from_the_userlist(start):
    proxy = start(databases={"app": "user=mick"})
    assert proxy.connect(user="app").value("select current_user") == "mick"
