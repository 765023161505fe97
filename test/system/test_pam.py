"""Logins by PAM: on helper threads, so that a slow module holds nobody but its own client.

PostgreSQL knows a user stranger; no file of the proxy does.
"""

import shutil
import threading

import pytest

import conftest
import directory
import harness
import wire
from harness import eventually, takes
from test_hba import hba, is_in  # noqa: F401  (hba is a fixture)


@pytest.fixture
def service():
    """A PAM service, and the folder of its scripts."""
    folder = conftest.new_folder()
    harness.give_to_service_user(folder)
    try:
        with directory.pam_service(folder) as name:
            yield name, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_pam(hba, service, extra="", **settings):
    rules = (
        extra + "host app,second all all pam pamservice=%s\nlocal all all pam pamservice=%s\nhost all all all trust\n"
    )
    return hba(rules % (service[0], service[0]), **settings)


def test_the_right_password_and_the_wrong_one(hba, service):
    proxy = with_pam(hba, service)
    client = proxy.connect(password="app-pam")
    assert client.methods == ["plain"] and is_in(client)
    error = proxy.refusal(password="wrong")
    assert (error.severity, error.code, error.message) == ("FATAL", "28000", "PAM authentication failed")
    proxy.wait_log("closing because: PAM authentication failed")
    proxy.wait_log("pam_authenticate\\(\\) failed")
    assert proxy.refusal(password="").message == "empty password returned by client"


def test_an_account_that_is_closed(hba, service):
    proxy = with_pam(hba, service)
    assert proxy.refusal(user="mick", password="mick-pam").message == "PAM authentication failed"
    proxy.wait_log("pam_acct_mgmt\\(\\) failed")


def held_up(proxy, count, word="slow"):
    """Clients that have sent a password whose check takes two seconds, or six (slower)."""
    clients = [proxy.raw() for _ in range(count)]
    for client in clients:
        client.password = word + " app-pam"
        client.send(wire.startup({"user": "app", "database": "app"}))
        client.authenticate(client.read().body)
    return clients


def test_the_service_learns_user_and_host(hba, service):
    proxy = with_pam(hba, service)
    proxy.connect(password="app-pam")
    proxy.connect(user="other", password="other-pam", host=str(proxy.folder))
    lines = (service[1] / "pam.log").read_text().splitlines()
    assert lines == ["auth app 127.0.0.1", "auth other "]


def test_a_user_of_no_file_is_let_in_and_shown_only_then(hba, service):
    proxy = with_pam(hba, service)
    assert proxy.refusal(user="stranger", password="wrong").message == "PAM authentication failed"
    assert not proxy.show_over_unix("users", name="stranger")
    assert is_in(proxy.connect(user="stranger", password="stranger-pam"))
    (row,) = proxy.show_over_unix("users", name="stranger")
    assert row["current_client_connections"] == "1"


def test_the_password_is_used_at_the_server(hba, service, cluster):
    cluster.sql("alter role carol password 'carol-pam'")
    try:
        proxy = with_pam(hba, service, databases={"app": ""}, userlist={"carol": None})
        client = proxy.connect(user="carol", password="carol-pam")
        assert client.value("select current_user") == "carol"
    finally:
        cluster.sql("alter role carol password 'carol-pw'")


def test_limits_count_users_of_no_file(hba, service):
    proxy = with_pam(hba, service, max_user_client_connections=1)
    proxy.connect(user="stranger", password="stranger-pam")
    error = proxy.refusal(user="stranger", password="stranger-pam")
    assert error.message == "client connections exceeded (max_user_client_connections)"
    # The password counts first, and a failure leaves no trace in the counts.
    assert proxy.refusal(user="stranger", password="wrong").message == "PAM authentication failed"
    assert proxy.show_over_unix("users", name="stranger")[0]["current_client_connections"] == "1"


def test_a_slow_module_holds_nobody_else(hba, service):
    proxy = with_pam(hba, service)
    slow = held_up(proxy, 5, "slower")
    with takes(0, 4):
        assert is_in(proxy.connect(password="app-pam"))  # PAM on another thread
        assert is_in(proxy.connect(database="carol"))  # trust
        assert proxy.show_over_unix("lists", list="login_clients")[0]["items"] == "5"
    for client in slow:
        client.finish_login()
        assert is_in(client)


def test_more_logins_than_threads_wait_in_line(hba, service):
    proxy = with_pam(hba, service, max_client_conn=200, pool_mode="transaction")
    clients = held_up(proxy, 32)
    proxy.wait_log("PAM queue is full, waiting")
    for client in clients:
        client.finish_login()
    assert all(is_in(client) for client in clients)


def test_clients_that_go_meanwhile_take_their_question_along(hba, service):
    proxy = with_pam(hba, service, max_client_conn=200)
    going = held_up(proxy, 40)
    log = service[1] / "pam.log"
    eventually(lambda: log.exists() and len(log.read_text().splitlines()) == 8)
    for client in going:
        client.drop()
    proxy.wait_log("closing because: client unexpected eof", count=40)
    with takes(0, 4):  # behind those in hand, not behind all that were asked
        assert is_in(proxy.connect(password="app-pam"))
    assert len((service[1] / "pam.log").read_text().splitlines()) == 9


def test_client_login_timeout_counts(hba, service):
    proxy = with_pam(hba, service, client_login_timeout=1)
    with takes(0.9, 2):
        assert proxy.refusal(password="stuck").message == "client_login_timeout"


def test_the_end_does_not_wait_for_a_module(hba, service):
    proxy = with_pam(hba, service)
    thread = threading.Thread(target=lambda: pytest.raises(Exception, proxy.connect, password="stuck"))
    thread.start()
    eventually(lambda: (service[1] / "stuck").exists())
    with takes(0, 2):
        proxy.signal(3)
        assert proxy.wait_exit() == 0
    thread.join(10)


def test_data_behind_the_password_waits_for_the_verdict(hba, service):
    proxy = with_pam(hba, service)
    client = proxy.raw()
    client.send(wire.startup({"user": "app", "database": "app"}))
    client.read()
    client.send(wire.message("p", wire.cstr("slow app-pam")) + wire.query("select 'early'"))
    client.finish_login()
    assert client.ready().value == "early"


def test_lines_of_the_file_that_are_not_understood(hba, service):
    proxy = hba(
        "host all all all pam map=x\nhost all all all pam pamservice=\nhost all app all pam pamservice=%s\n"
        % service[0]
    )
    proxy.wait_log("could not parse hba config line 2")
    assert "config line 1" in proxy.log() and "config line 3" not in proxy.log()
    assert is_in(proxy.connect(password="app-pam"))


def test_auth_type_pam(prepare, service):
    """The service is pgbouncer then, and auth_file is not read."""
    with directory.pam_service(service[1], "pgbouncer"):
        proxy = prepare(auth_type="pam", databases={"app": "", "asking": "dbname=app auth_user=asker"}).start()
        assert is_in(proxy.connect(user="stranger", password="stranger-pam"))
        assert is_in(proxy.connect(password="app-pam"))
        assert proxy.refusal(password="wrong").message == "PAM authentication failed"
        assert proxy.refusal(database="none", password="app-pam").message == "no such database: none"
        assert proxy.refusal(database="asking", password="app-pam").message == "bouncer config error"
        with proxy.connect(user="admin", database="pgbouncer", password="admin-pam") as console:
            assert console.table("show version")
        assert proxy.refusal(user="app", database="pgbouncer", password="app-pam").message == "not allowed"
