"""The sample files of etc/ work as they are, but for ports and places."""

import os
import pathlib
import re
import signal

from harness import ROOT

BUILD = pathlib.Path(os.environ.get("LOKADB_PROXY", ROOT / "build" / "lokadb-proxy")).resolve().parent


def place(proxy, text, **options):
    """The options in place of the sample's own lines, which may be commented out."""
    for key, value in options.items():
        text, count = re.subn(r"(?m)^;?%s =.*$" % key, "%s = %s" % (key, value), text)
        assert count == 1, key
    proxy.ini.write_text(text)


def test_the_minimal_sample(prepare):
    proxy = prepare(userlist={"carol": "carol-pw"})
    text = (ROOT / "etc" / "lokadb-proxy-minimal.ini").read_text().replace("5432", str(proxy.cluster.port))
    text += "unix_socket_dir = %s\nlogfile = %s\n" % (proxy.folder, proxy.log_path)
    place(proxy, text, listen_port=proxy.port, auth_file=proxy.folder / "userlist.txt")
    proxy.start()
    assert proxy.connect(user="carol", password="carol-pw").value("select 1") == "1"


def test_the_full_sample(prepare):
    proxy = prepare()
    text = (BUILD / "etc" / "lokadb-proxy.ini").read_text()
    # Every example entry on, and leading somewhere.
    text, count = re.subn(r"(?m)^;(\S+ = (?:host|dbname|pool_mode)=)", r"\1", text)
    assert count == 7
    text = text.replace("port=5432", "port=%d" % proxy.cluster.port)
    place(
        proxy,
        text,
        listen_addr="127.0.0.1",
        listen_port=proxy.port,
        unix_socket_dir=proxy.folder,
        logfile=proxy.log_path,
        auth_type="trust",
        auth_file=proxy.folder / "userlist.txt",
        admin_users="admin",
        server_tls_sslmode="disable",
    )
    proxy.start()
    assert proxy.connect().value("select 1") == "1"
    assert [row["name"] for row in proxy.show("databases")] == ["app", "old", "pgbouncer", "reports"]
    assert [row["peer_id"] for row in proxy.show("peers")] == ["1", "2"]
    assert proxy.show("users", name="batch")[0]["max_user_connections"] == "5"
    changed = {row["key"] for row in proxy.show("config") if row["value"] != row["default"]}
    assert changed - {"conffile", "auth_file", "verbose", "unix_socket_mode"} == {
        "listen_addr",
        "listen_port",
        "unix_socket_dir",
        "logfile",
        "auth_type",
        "admin_users",
        "server_tls_sslmode",
    }


def test_the_sample_user_list_gives_nobody_a_login(prepare):
    proxy = prepare(auth_type="plain")
    (proxy.folder / "userlist.txt").write_bytes((ROOT / "etc" / "userlist.txt").read_bytes())
    proxy.launch("-q", str(proxy.ini))
    proxy.wait_log("process up: ")
    assert "auth file" not in proxy.log()
    for user, password in (("app", "SCRAM-SHA-256$4096:SALT$STORED_KEY:SERVER_KEY"), ("postgres", "a password")):
        assert proxy.refusal(user=user, password=password)
    proxy.signal(signal.SIGQUIT)
    assert proxy.wait_exit() == 0
