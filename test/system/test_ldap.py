"""Logins by LDAP, against a directory server of the tests' own."""

import shutil
import socket

import pytest

import conftest
import directory
from directory import MANAGER, MANAGER_PASSWORD, SUFFIX
from harness import takes
from test_hba import hba, is_in  # noqa: F401  (hba is a fixture)

FAILED = "LDAP authentication failed"
PREFIX, PEOPLE = 'ldapprefix="uid="', 'ldapsuffix=",ou=people,%s"' % SUFFIX
BASE = 'ldapbasedn="%s"' % SUFFIX
MANAGED = 'ldapbinddn="%s" ldapbindpasswd=%s' % (MANAGER, MANAGER_PASSWORD)


@pytest.fixture(scope="module")
def slapd():
    folder = conftest.new_folder()
    made = directory.Directory(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def trusted(slapd, monkeypatch):
    """The directory's certificate is one to trust, for whoever is started now."""
    path = slapd.folder / "ldap.conf"
    path.write_text("TLS_CACERT %s\nTLS_REQCERT demand\n" % slapd.certificate)
    monkeypatch.setenv("LDAPCONF", str(path))


@pytest.fixture
def with_ldap(hba, slapd):
    """with_ldap(options) runs a proxy that asks the directory with these; %(port)d and %(tls)d are its ports."""

    def make(options, **settings):
        options = options % {"port": slapd.port, "tls": slapd.tls_port}
        return hba("host app all all ldap %s\nhost all all all trust\n" % options, **settings)

    return make


WAYS = {
    "prefix and suffix": "ldapserver=127.0.0.1 ldapport=%(port)d " + PREFIX + " " + PEOPLE,
    "quoted pairs": '"ldapserver=127.0.0.1","ldapport"="%(port)d", ' + PREFIX + "," + PEOPLE,
    "search": "ldapserver=127.0.0.1 ldapport=%(port)d " + BASE + " " + MANAGED,
    "search as nobody": "ldapserver=127.0.0.1 ldapport=%(port)d " + BASE,
    "search by attribute": "ldapserver=127.0.0.1 ldapport=%(port)d ldapsearchattribute=cn " + BASE,
    "search by filter": "ldapserver=127.0.0.1 ldapport=%(port)d "
    + BASE
    + ' ldapsearchfilter="(|(mail=$username@example.org)(uid=$username))"',
    "url": 'ldapurl="ldap://127.0.0.1:%(port)d/' + SUFFIX + '?uid?sub"',
    "url with filter": 'ldapurl="ldap://127.0.0.1:%(port)d/' + SUFFIX + '??sub?(uid=$username)"',
    "url of one level": 'ldapurl="ldap://127.0.0.1:%(port)d/ou=people,' + SUFFIX + '?uid?one"',
    "second server": 'ldapserver="127.0.0.3 127.0.0.1" ldapport=%(port)d ' + PREFIX + " " + PEOPLE,
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_ask(with_ldap, way):
    proxy = with_ldap(WAYS[way])
    client = proxy.connect(password="app-dir")
    assert client.methods == ["plain"] and is_in(client)
    for user, password in (("app", "wrong"), ("other", "app-dir")):
        error = proxy.refusal(user=user, password=password)
        assert (error.severity, error.code, error.message) == ("FATAL", "28000", FAILED)
    proxy.wait_log("closing because: " + FAILED)
    proxy.wait_log('LDAP login failed for "uid=app,ou=people,%s": Invalid credentials' % SUFFIX)
    assert proxy.refusal(password="").message == "empty password returned by client"


TLS_WAYS = {
    "start": "ldapserver=127.0.0.1 ldapport=%(port)d ldaptls=1 " + PREFIX + " " + PEOPLE,
    "scheme": "ldapserver=127.0.0.1 ldapport=%(tls)d ldapscheme=ldaps " + PREFIX + " " + PEOPLE,
    "url": 'ldapurl="ldaps://127.0.0.1:%(tls)d/' + SUFFIX + '?uid?sub"',
}


@pytest.mark.parametrize("way", TLS_WAYS)
def test_under_tls(trusted, with_ldap, way):
    proxy = with_ldap(TLS_WAYS[way])
    assert is_in(proxy.connect(password="app-dir"))
    assert proxy.refusal(password="wrong").message == FAILED


@pytest.mark.parametrize("way", TLS_WAYS)
def test_a_directory_without_a_certificate_to_trust(slapd, monkeypatch, with_ldap, way):
    empty = slapd.folder / "no.conf"
    empty.write_text("TLS_REQCERT demand\n")
    monkeypatch.setenv("LDAPCONF", str(empty))
    proxy = with_ldap(TLS_WAYS[way])
    assert proxy.refusal(password="app-dir").message == FAILED


MIXED = {
    "TLS in TLS": "ldapserver=127.0.0.1 ldapport=%(tls)d ldapscheme=ldaps ldaptls=1 ",
    "TLS at the plain port": "ldapserver=127.0.0.1 ldapport=%(port)d ldapscheme=ldaps ",
    "no TLS at the other port": "ldapserver=127.0.0.1 ldapport=%(tls)d ",
}


@pytest.mark.parametrize("way", MIXED)
def test_tls_and_port_that_do_not_go_together(trusted, with_ldap, way):
    proxy = with_ldap(MIXED[way] + PREFIX + " " + PEOPLE, client_login_timeout=20)
    assert proxy.refusal(password="app-dir", timeout=40).message in (FAILED, "client_login_timeout")


def test_a_name_that_is_a_pattern_is_not_searched(with_ldap):
    proxy = with_ldap(WAYS["search"], userlist={"a*": "", "app)(uid=*": ""})
    for user in ("a*", "app)(uid=*", "a\\70p"):
        assert proxy.refusal(user=user, password="app-dir").message == FAILED
    proxy.wait_log("invalid character in user name for LDAP authentication", count=3)


def test_two_entries_are_one_too_many(with_ldap):
    proxy = with_ldap(WAYS["search"])
    assert proxy.refusal(user="twin", password="a").message == FAILED
    proxy.wait_log('LDAP user "twin" is not unique')


def test_a_bind_that_fails_before_the_search(with_ldap):
    proxy = with_ldap(WAYS["search"].replace(MANAGER_PASSWORD, "wrong"))
    assert proxy.refusal(password="app-dir").message == FAILED
    proxy.wait_log("could not perform initial LDAP bind")


def test_a_long_name_of_an_entry(with_ldap):
    proxy = with_ldap(WAYS["search"])
    assert is_in(proxy.connect(user="mick", password="mick-pw"))


def test_a_user_of_no_file_logs_in_at_the_server_with_the_same_password(with_ldap):
    proxy = with_ldap(WAYS["search"], userlist={"carol": None}, databases={"app": ""})
    client = proxy.connect(user="carol", password="carol-pw")
    assert client.value("select current_user") == "carol"


def test_auth_query_is_not_for_users_of_the_directory(with_ldap):
    proxy = with_ldap(WAYS["search"], userlist={"carol": None}, databases={"app": ""}, auth_user="asker")
    assert is_in(proxy.connect(user="carol", password="carol-pw"))
    assert not [row for row in proxy.show_over_unix("pools") if row["user"] == "asker"]


def test_auth_type_ldap(prepare, slapd):
    proxy = prepare(
        auth_type="ldap",
        databases={"app": "", "asking": "dbname=app auth_user=asker"},
        auth_ldap_options=WAYS["prefix and suffix"] % {"port": slapd.port},
    ).start()
    assert is_in(proxy.connect(password="app-dir"))
    assert proxy.refusal(password="wrong").message == FAILED
    assert proxy.refusal(database="asking", password="app-dir").message == "bouncer config error"
    assert proxy.refusal(database="none", password="app-dir").message == "no such database: none"
    assert proxy.refusal(database="none", password="wrong").message == FAILED
    with proxy.connect(user="stats", database="pgbouncer", password="stats-dir") as console:
        assert console.table("show version")
    proxy.write(auth_ldap_options="ldapserver=x ldapprefix=a ldapbasedn=b")
    with pytest.raises(Exception, match="RELOAD failed"):
        proxy.admin_over_unix("reload")
    proxy.wait_log('invalid value "ldapserver=x ldapprefix=a ldapbasedn=b" for parameter auth_ldap_options')
    assert is_in(proxy.connect(password="app-dir"))
    proxy.admin_over_unix("set auth_ldap_options = '%s'" % (WAYS["search"] % {"port": slapd.port}).replace("'", "''"))
    assert is_in(proxy.connect(password="app-dir"))


def test_no_options_for_auth_type_ldap(start):
    proxy = start(auth_type="hba")
    proxy.admin_over_unix("set auth_type = 'ldap'")
    assert proxy.refusal(password="app-dir").message == FAILED
    proxy.wait_log("auth_ldap_options is null")


@pytest.mark.parametrize(
    "options",
    [
        "",
        "ldapserver=a",
        "ldapserver=a ldapprefix=x ldapbasedn=y",
        "ldapprefix=x",
        "ldapserver=a ldapbasedn=y ldapsearchattribute=u ldapsearchfilter=f",
        "ldapserver=a ldapprefix=x ldapport=99999",
        "ldapserver=a ldapprefix=x ldapscheme=http",
        "ldapserver=a ldapprefix=x unknown=1",
        'ldapurl="http://a/b"',
        "ldapserver",
    ],
)
def test_a_line_whose_options_are_wrong_is_left_out(hba, options):
    proxy = hba("host app all all ldap %s\nhost all all all trust\n" % options)
    proxy.wait_log("could not parse hba config line 1")
    assert proxy.connect().methods == []


def test_a_directory_that_is_down_and_one_that_says_nothing(hba, slapd):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        ways = PREFIX + " " + PEOPLE
        proxy = hba(
            "host app all all ldap ldapserver=127.0.0.1 ldapport=%d %s\n" % (silent.getsockname()[1], ways)
            + "host second all all ldap ldapserver=127.0.0.3 ldapport=1 %s\nhost all all all trust\n" % ways,
            client_login_timeout=2,
        )
        with takes(0, 4):
            assert proxy.refusal(database="second", password="x").message == FAILED
        with takes(1.5, 4):
            assert proxy.refusal(password="x").message == "client_login_timeout"
        with takes(0, 1):
            assert is_in(proxy.connect(database="carol"))
