"""auth_type=hba: who is let in by which rule; certificates, users of the system, and ident maps."""

import os
import pwd
import ssl
import subprocess

import pytest

import harness
import wire
from test_tls import trusting

ME = pwd.getpwuid(os.geteuid()).pw_name


def client_certificate(folder, name, alternative=None):
    """A context of a client with a certificate made out for the name, and the certificate's path."""
    certificate, key = folder / (name + ".crt"), folder / (name + ".key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    if alternative:
        command += ["-addext", "subjectAltName=DNS:" + alternative]
    subprocess.run(
        command + ["-subj", "/O=test/CN=" + name, "-out", certificate, "-keyout", key],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    context = trusting()
    context.load_cert_chain(certificate, key)
    return context, certificate


@pytest.fixture
def hba(prepare):
    """hba(rules, ident=..., **settings) runs a proxy under these rules; app, second and forced lead to the cluster."""

    def make(rules, ident=None, tls=False, **settings):
        settings.setdefault("databases", {"app": "user=app", "second": "user=app", "carol": "dbname=app user=app"})
        proxy = prepare(auth_type="hba", **settings)
        proxy.write(auth_hba_file=proxy.folder / "hba.conf")
        write_rules(proxy, rules)
        if ident is not None:
            (proxy.folder / "ident.conf").write_text(ident)
            proxy.write(auth_ident_file=proxy.folder / "ident.conf")
        if tls:
            certificate, key = harness.make_certificate(proxy.folder, "proxy")
            proxy.write(client_tls_sslmode="allow", client_tls_cert_file=certificate, client_tls_key_file=key)
        return proxy.start()

    return make


def write_rules(proxy, rules):
    (proxy.folder / "hba.conf").write_text(rules)


def is_in(client):
    return client.value("select 1") == "1"


NO_METHOD = "no authentication method is found"


def over_unix(proxy, **kw):
    return proxy.connect(host=str(proxy.folder), **kw)


@pytest.mark.parametrize(
    "word, method, text",
    [
        ("password", "plain", "password authentication failed"),
        ("md5", "md5", "password authentication failed"),
        ("scram-sha-256", "scram", "SASL authentication failed"),
    ],
)
def test_passwords(hba, word, method, text):
    proxy = hba("host all all 127.0.0.1/32 %s\n" % word)
    client = proxy.connect(user="carol", password="carol-pw")
    assert client.methods == [method] and is_in(client)
    for user in ("carol", "nobody"):
        error = proxy.refusal(user=user, password="wrong")
        assert (error.code, error.message) == ("28P01", text)


def test_trust_is_for_known_users(hba):
    proxy = hba("host all all all trust\n")
    assert is_in(proxy.connect(user="carol"))
    assert proxy.refusal(user="nobody").message == '"trust" authentication failed'


def test_reject_and_no_rule(hba):
    proxy = hba("host all carol all reject\nhost second all all trust\n")
    error = proxy.refusal(user="carol", database="second")
    assert (error.severity, error.code, error.message) == ("FATAL", "28000", "login rejected")
    error = proxy.refusal(user="mick")
    assert (error.severity, error.code, error.message) == ("FATAL", "28000", NO_METHOD)
    proxy.wait_log("closing because: login rejected")
    proxy.wait_log("closing because: " + NO_METHOD)
    assert is_in(proxy.connect(user="mick", database="second"))


def test_rules_by_database_and_user(hba):
    proxy = hba('host sameuser all all trust\nhost app,"second" carol all md5\nhost all mick,@more all trust\n')
    (proxy.folder / "more").write_text("other\nasker, postgres\n")
    proxy.admin_over_unix("reload")
    assert is_in(proxy.connect(user="carol", database="carol"))
    assert proxy.connect(user="carol", database="second", password="carol-pw").methods == ["md5"]
    for user in ("mick", "other", "asker", "postgres"):
        assert is_in(proxy.connect(user=user))
    assert proxy.refusal(user="admin").message == NO_METHOD


def test_rules_by_the_way_a_client_comes(hba):
    proxy = hba("local all all reject\nhostssl all all all trust\nhostnossl all all 127.0.0.1/32 md5\n", tls=True)
    with pytest.raises(wire.PgError, match="login rejected"):
        over_unix(proxy, user="carol")
    assert proxy.connect(user="carol", tls=trusting()).methods == []
    assert proxy.connect(user="carol", password="carol-pw").methods == ["md5"]
    proxy = hba("local all all trust\nhost all all 127.0.0.2/32 trust\nhost all all ::/0 trust\n")
    assert is_in(over_unix(proxy, user="carol"))
    assert proxy.refusal(user="carol").message == NO_METHOD


def test_the_console_obeys_the_rules_but_for_its_own_user(hba):
    proxy = hba("host pgbouncer admin all trust\nhost all all all reject\n")
    assert proxy.console().table("show version")
    assert proxy.refusal(user="stats", database="pgbouncer").message == "login rejected"
    assert proxy.refusal(user="carol", database="pgbouncer").message == "not allowed"
    assert proxy.show_over_unix("version")


def test_an_unknown_database_is_named_only_to_who_is_let_in(hba):
    proxy = hba("host nowhere carol all md5\n")
    assert proxy.refusal(user="carol", database="nowhere", password="x").message == "password authentication failed"
    assert proxy.refusal(user="carol", database="nowhere", password="carol-pw").message == "no such database: nowhere"
    assert proxy.refusal(user="mick", database="nowhere").message == NO_METHOD


def test_bad_lines_are_left_out_and_told(hba):
    proxy = hba("host all +staff all trust\nhost all carol samenet trust\nhost all carol 10.0.0.1/8 trust\nhost all mick all trust\n")
    proxy.wait_log("WARNING could not parse hba config line 1\n")
    proxy.wait_log("WARNING could not parse hba config line 2\n")
    proxy.wait_log("WARNING .* line 3")
    assert proxy.refusal(user="carol").message == NO_METHOD
    assert is_in(proxy.connect(user="mick"))


def test_without_the_file_nobody_gets_in(hba):
    proxy = hba("host all all all trust\n")
    assert is_in(proxy.connect(user="carol"))
    os.remove(proxy.folder / "hba.conf")
    proxy.admin_over_unix("reload")
    proxy.wait_log("ERROR could not open hba config file .*hba.conf: No such file or directory")
    assert proxy.refusal(user="carol").message == NO_METHOD


def test_a_reload_and_set_change_the_rules(hba):
    proxy = hba("host all all all reject\n")
    assert proxy.refusal(user="carol").message == "login rejected"
    write_rules(proxy, "host all all all trust\n")
    assert proxy.refusal(user="carol").message == "login rejected"
    proxy.admin_over_unix("reload")
    assert is_in(proxy.connect(user="carol"))
    write_rules(proxy, "host all all all md5\n")
    proxy.admin_over_unix("set auth_type = 'trust'")
    assert proxy.connect(user="carol").methods == []
    proxy.admin_over_unix("set auth_type = 'hba'")
    assert proxy.connect(user="carol", password="carol-pw").methods == ["md5"]
    (proxy.folder / "other.conf").write_text("host all all all password\n")
    proxy.admin_over_unix("set auth_hba_file = '%s'" % (proxy.folder / "other.conf"))
    assert proxy.connect(user="carol", password="carol-pw").methods == ["plain"]


def test_a_reload_with_a_fault_keeps_the_rules(hba):
    proxy = hba("host all all all trust\n")
    write_rules(proxy, "host all all all reject\n")
    proxy.write(default_pool_size="7", pool_mode="nonsense")
    with pytest.raises(wire.PgError, match="RELOAD failed"):
        proxy.admin_over_unix("reload")
    assert is_in(proxy.connect(user="carol"))


# ------------------------------------------------------------------ users of the operating system


class TestPeer:
    def test_the_same_name_is_let_in_and_no_other(self, hba):
        proxy = hba("local all all peer\n", userlist={ME: "", "carol": "carol-pw"})
        assert is_in(over_unix(proxy, user=ME))
        with pytest.raises(wire.PgError, match="unix socket login rejected") as refused:
            over_unix(proxy, user="carol", password="carol-pw")
        assert refused.value.code == "28000"

    def test_a_map_says_who_may_be_whom(self, hba):
        proxy = hba("local all all peer map=m\n", ident="m %s carol\nm nobody-here mick\nother %s app\n" % (ME, ME))
        assert is_in(over_unix(proxy, user="carol"))
        for user in ("mick", "app"):
            with pytest.raises(wire.PgError, match="unix socket login rejected"):
                over_unix(proxy, user=user)
        proxy.wait_log("ident map m cannot be matched", count=2)

    def test_all_is_everybody_who_is_known(self, hba):
        proxy = hba("local all all peer map=m\n", ident="m %s all\n" % ME)
        assert is_in(over_unix(proxy, user="carol"))
        assert is_in(over_unix(proxy, user="mick"))
        with pytest.raises(wire.PgError, match="unix socket login rejected"):
            over_unix(proxy, user="nobody")
        proxy.wait_log("no such user: nobody")

    def test_an_unknown_map_makes_the_line_a_bad_one(self, hba):
        proxy = hba("local all all peer map=gone\n", ident="m %s all\nbad line\n" % ME)
        proxy.wait_log("WARNING could not parse ident config line 2\n")
        proxy.wait_log("WARNING could not parse hba config line 1\n")
        with pytest.raises(wire.PgError, match=NO_METHOD):
            over_unix(proxy, user="carol")

    def test_it_is_for_unix_sockets(self, hba):
        proxy = hba("host all all all peer\n", userlist={ME: ""})
        assert proxy.refusal(user=ME).message == "unix socket login rejected"

    def test_a_missing_ident_file_is_told(self, hba):
        proxy = hba("local all all peer map=m\n", ident="m %s all\n" % ME)
        assert is_in(over_unix(proxy, user="carol"))
        os.remove(proxy.folder / "ident.conf")
        proxy.admin_over_unix("reload")
        proxy.wait_log("ERROR could not open ident config file .*: No such file or directory")
        with pytest.raises(wire.PgError, match=NO_METHOD):
            over_unix(proxy, user="carol")


# ------------------------------------------------------------------ certificates


def refused(proxy, text, **kw):
    with pytest.raises(wire.PgError, match=text) as e:
        proxy.connect(**kw)
    assert (e.value.severity, e.value.code) == ("FATAL", "28000")


CERT_FAILED = "certificate authentication failed"


class Certificates:
    """Clients with certificates of their own, all in the proxy's CA file but the stranger's."""

    def __init__(self, proxy):
        contexts, trusted = {}, b""
        for name, alternative in (("carol", None), ("alice", "mick"), ("ghost", None)):
            contexts[name], path = client_certificate(proxy.folder, name, alternative)
            trusted += path.read_bytes()
        (proxy.folder / "ca.pem").write_bytes(trusted)
        self.stranger, _ = client_certificate(proxy.folder, "app")
        self.of = contexts
        certificate, key = harness.make_certificate(proxy.folder, "proxy")
        self.options = dict(
            client_tls_cert_file=certificate, client_tls_key_file=key, client_tls_ca_file=proxy.folder / "ca.pem"
        )


@pytest.fixture
def by_rules(prepare):
    """by_rules(rules, ident) gives a proxy under these rules, which asks for certificates, and who has which."""

    def make(rules, ident=""):
        proxy = prepare(auth_type="hba", databases={"app": "user=app"})
        certificates = Certificates(proxy)
        write_rules(proxy, rules)
        (proxy.folder / "ident.conf").write_text(ident)
        proxy.write(
            auth_hba_file=proxy.folder / "hba.conf",
            auth_ident_file=proxy.folder / "ident.conf",
            client_tls_sslmode="require",
            **certificates.options
        )
        return proxy.start(), certificates

    return make


class TestCertificates:
    def test_a_name_in_the_certificate_is_the_user(self, by_rules):
        proxy, certificates = by_rules("hostssl all all all cert\nlocal all all cert\n")
        assert is_in(proxy.connect(user="carol", tls=certificates.of["carol"]))
        assert is_in(proxy.connect(user="mick", tls=certificates.of["alice"]))  # its other name
        refused(proxy, CERT_FAILED, user="mick", tls=certificates.of["carol"])
        proxy.wait_log("ERROR .*TLS certificate name mismatch")
        refused(proxy, CERT_FAILED, user="carol", tls=trusting())
        proxy.wait_log("ERROR .*TLS client certificate required")
        refused(proxy, CERT_FAILED, user="carol", host=str(proxy.folder))
        proxy.wait_log("ERROR .*TLS connection required")

    def test_the_user_has_to_be_known(self, by_rules):
        proxy, certificates = by_rules("hostssl all all all cert\n")
        refused(proxy, CERT_FAILED, user="ghost", tls=certificates.of["ghost"])
        proxy.wait_log("no such user: ghost")

    def test_a_certificate_of_another_authority_is_refused(self, by_rules):
        proxy, certificates = by_rules("hostssl all all all cert\n")
        with pytest.raises((wire.Closed, OSError, ssl.SSLError)):
            proxy.connect(user="app", tls=certificates.stranger)
        proxy.wait_log("TLS handshake error")

    def test_a_map_says_who_may_be_whom(self, by_rules):
        proxy, certificates = by_rules("hostssl all all all cert map=m\n", "m carol app\nm alice all\n")
        assert is_in(proxy.connect(user="app", tls=certificates.of["carol"]))
        refused(proxy, CERT_FAILED, user="carol", tls=certificates.of["carol"])
        proxy.wait_log("ident map: m does not have a match")
        for user in ("app", "mick", "other"):
            assert is_in(proxy.connect(user=user, tls=certificates.of["alice"]))
        refused(proxy, CERT_FAILED, user="nobody", tls=certificates.of["alice"])


class TestAuthTypeCert:
    def test_it_lets_in_by_the_name(self, prepare):
        proxy = prepare(auth_type="cert", databases={"app": "user=app"})
        certificates = Certificates(proxy)
        proxy.write(client_tls_sslmode="verify-full", **certificates.options)
        proxy.start()
        assert is_in(proxy.connect(user="carol", tls=certificates.of["carol"]))
        refused(proxy, CERT_FAILED, user="app", tls=certificates.of["carol"])
        refused(proxy, CERT_FAILED, user="carol", host=str(proxy.folder))
        with pytest.raises((wire.Closed, OSError, ssl.SSLError)):
            proxy.connect(user="carol", tls=trusting())

    def test_it_needs_verified_certificates(self, prepare):
        proxy = prepare(auth_type="cert")
        certificates = Certificates(proxy)
        proxy.write(client_tls_sslmode="require", **certificates.options)
        proxy.launch()
        assert proxy.wait_exit() == 1
        assert "TLS setup failed" in proxy.log()

    def test_a_reload_that_takes_them_away_is_refused(self, prepare):
        proxy = prepare(auth_type="cert", databases={"app": "user=app"})
        certificates = Certificates(proxy)
        proxy.write(client_tls_sslmode="verify-full", **certificates.options)
        proxy.start()
        proxy.write(client_tls_sslmode="require")
        with pytest.raises(wire.PgError, match="RELOAD failed"):
            proxy.admin_over_unix("reload")
        refused(proxy, CERT_FAILED, user="app", tls=certificates.of["carol"])
        assert is_in(proxy.connect(user="carol", tls=certificates.of["carol"]))
