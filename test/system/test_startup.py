"""The first packets of a connection, startup parameters and what is tracked of them."""

import os
import random
import socket
import struct

import pytest

import wire
from harness import eventually
from wire import query, startup


def refused(client, packet):
    client.send(packet)
    return client.last_words()["M"]


def test_the_database_defaults_to_the_user_name(start):
    proxy = start()
    client = proxy.raw()
    client.login({"user": "app"})
    assert client.value("select current_database()") == "app"


def test_tls_and_gss_requests_are_declined_when_not_configured(start):
    proxy = start()
    for code in (wire.SSL_REQUEST, wire.GSSENC_REQUEST):
        client = proxy.raw()
        client.send(struct.pack("!II", 8, code))
        assert client.read_bytes(1) == b"N"
        client.login({"user": "app", "database": "app"})
        assert client.value("select 1") == "1"


def test_gss_then_tls_then_plain(start):
    client = start().raw()
    for code in (wire.GSSENC_REQUEST, wire.SSL_REQUEST):
        client.send(struct.pack("!II", 8, code))
        assert client.read_bytes(1) == b"N"
    client.login({"user": "app", "database": "app"})


@pytest.mark.parametrize(
    "code, name", [(wire.SSL_REQUEST, "SSL request"), (wire.GSSENC_REQUEST, "GSSAPI encryption request")]
)
def test_bytes_sent_ahead_of_the_encryption_answer_are_refused(start, code, name):
    client = start().raw()
    packet = struct.pack("!II", 8, code) + startup({"user": "app", "database": "app"})
    client.send(packet)
    rest = b""
    try:
        while True:
            rest += client.read_bytes(1)
    except (wire.Closed, ConnectionResetError):
        pass
    assert ("received unencrypted data after " + name).encode() in rest


def test_protocol_2_is_refused(start):
    client = start().raw()
    assert refused(client, struct.pack("!II", 12, 2 << 16) + b"\0" * 4) == "old V2 protocol not supported"


def test_a_newer_minor_version_is_negotiated_down(start):
    client = start().connect(version=wire.PROTOCOL_3_0 + 7)
    assert [m.kind for m in client.welcome].count("v") == 1
    body = next(m.body for m in client.welcome if m.kind == "v")
    assert struct.unpack("!II", body[:8]) == (0x30002, 0)
    assert client.value("select 1") == "1"


def test_protocol_options_are_named_in_the_negotiation(start):
    client = start().connect(params={"_pq_.compression": "x", "_pq_.other": "y"})
    body = next(m.body for m in client.welcome if m.kind == "v")
    assert struct.unpack("!II", body[:8]) == (0x30000, 2)
    assert sorted(body[8:].split(b"\0")[:2]) == [b"_pq_.compression", b"_pq_.other"]
    assert client.value("select 1") == "1"


def test_negotiation_comes_before_the_password(start):
    proxy = start(auth_type="md5")
    client = proxy.connect(user="carol", password="carol-pw", version=wire.PROTOCOL_3_0 + 7)
    kinds = [m.kind for m in client.welcome]
    assert kinds.index("v") == 0 and kinds.count("v") == 1


def test_a_startup_packet_without_a_user(start):
    assert refused(start().raw(), startup({"database": "app"})) == "no username supplied"


def test_a_startup_packet_without_its_last_byte(start):
    packet = startup({"user": "app", "database": "app"})[4:-1]
    text = refused(start().raw(), struct.pack("!I", len(packet) + 4) + packet)
    assert text == "invalid startup packet layout: expected terminator as last byte"


@pytest.mark.parametrize("length", [0, 1, 4, 7, 65537, 100000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_impossible_startup_lengths_close_the_connection(start, length):
    proxy = start()
    client = proxy.raw()
    client.send(struct.pack("!II", length, wire.PROTOCOL_3_0) + b"\0" * 16)
    client.read_to_end()
    assert proxy.connect().value("select 1") == "1"


def test_garbage_instead_of_a_startup_packet(start):
    proxy = start()
    dice = random.Random(1)
    for sample in [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\0" * 100,
        b"\xff" * 100,
        *(dice.randbytes(dice.randrange(8, 300)) for _ in range(60)),
    ]:
        client = proxy.raw(timeout=1)
        client.send(sample)
        client.drop()
    assert proxy.connect().value("select 1") == "1"
    eventually(lambda: proxy.show("lists", list="login_clients")[0]["items"] == "0")


def test_garbage_after_a_good_startup_packet(start):
    proxy = start()
    dice = random.Random(2)
    for _ in range(40):
        client = proxy.raw()
        client.send(startup({"user": "app", "database": "app"}) + dice.randbytes(dice.randrange(1, 300)))
        client.drop()
    assert proxy.connect().value("select 1") == "1"


def test_half_a_startup_packet_and_then_nothing(start):
    proxy = start()
    packet = startup({"user": "app", "database": "app"})
    for cut in (1, 4, 7, 8, 9, len(packet) - 1):
        client = proxy.raw()
        client.send(packet[:cut])
        client.drop()
    assert proxy.connect().value("select 1") == "1"


def test_a_startup_packet_that_comes_byte_by_byte(start):
    client = start().raw()
    for byte in startup({"user": "app", "database": "app"}):
        client.send(bytes([byte]))
    client.finish_login()
    assert client.value("select 1") == "1"


def test_a_query_sent_together_with_the_startup_packet(start):
    client = start().raw()
    client.send(startup({"user": "app", "database": "app"}) + query("select 'early'"))
    client.finish_login()
    assert client.ready().value == "early"


# ------------------------------------------------------------------ parameters


def test_an_unknown_startup_parameter_is_refused_by_name(start):
    proxy = start()
    error = proxy.refusal(params={"geqo": "off"})
    assert (error.severity, error.code, error.message) == ("FATAL", "08P01", "unsupported startup parameter: geqo")


def test_ignored_startup_parameters_are_dropped(start):
    proxy = start(ignore_startup_parameters="extra_float_digits, geqo")
    client = proxy.connect(params={"geqo": "off", "extra_float_digits": "2"})
    assert client.value("show geqo") == "on"


@pytest.mark.parametrize(
    "options, name, value",
    [
        ("-c datestyle=German", "datestyle", "German, DMY"),
        ("-cdatestyle=German", "datestyle", "German, DMY"),
        ("--datestyle=German", "datestyle", "German, DMY"),
        ("  -c\ttimezone=Asia/Tokyo  -c datestyle=German ", "timezone", "Asia/Tokyo"),
        (r"-c application_name=a\ name", "application_name", "a name"),
        (r"-c application_name=back\\slash", "application_name", "back\\slash"),
        ("-c application_name=", "application_name", ""),
    ],
)
def test_tracked_parameters_in_options_are_set(start, options, name, value):
    proxy = start()
    assert proxy.connect(params={"options": options}).value("show " + name) == value


def test_other_parameters_in_options_are_refused_by_name(start):
    error = start().refusal(params={"options": "-c datestyle=ISO -c geqo=off"})
    assert error.message == "unsupported startup parameter in options: geqo"


@pytest.mark.parametrize("options", ["-d 5", "-c", "geqo=off", "-c geqo", "--", "-x -c datestyle=ISO", "-c =on"])
def test_options_of_another_form_are_refused(start, options):
    message = start().refusal(params={"options": options}).message
    assert message.startswith("unsupported ")
    assert "options" in message


def test_options_of_another_form_have_one_text(start):
    assert start().refusal(params={"options": "-d 5"}).message == (
        "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed"
    )


def test_ignored_names_in_options_are_dropped(start):
    proxy = start(ignore_startup_parameters="geqo")
    assert proxy.connect(params={"options": "-c geqo=off -c datestyle=German"}).value("show datestyle") == "German, DMY"


def test_ignoring_options_keeps_the_tracked_ones(start):
    proxy = start(ignore_startup_parameters="options")
    client = proxy.connect(params={"options": "-c geqo=off -c datestyle=German"})
    assert client.value("show datestyle") == "German, DMY"
    assert client.value("show geqo") == "on"


def test_each_client_has_its_own_parameters_on_a_shared_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    settings = [("Asia/Tokyo", "German, DMY", "one"), ("Europe/Paris", "SQL, MDY", "two"), ("UTC", "ISO, YMD", "")]
    clients = [proxy.connect(params={"TimeZone": z, "DateStyle": d, "application_name": a}) for z, d, a in settings]
    for _ in range(3):
        for client, (zone, style, name) in zip(clients, settings):
            assert (
                client.value("show timezone"),
                client.value("show datestyle"),
                client.value("show application_name"),
            ) == (zone, style, name)


def test_a_set_in_a_session_follows_the_client(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    first.query("set timezone = 'Asia/Tokyo'")
    assert second.value("show timezone") == "UTC"
    assert first.value("show timezone") == "Asia/Tokyo"


def test_client_encoding_is_tracked(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    latin = proxy.connect(params={"client_encoding": "LATIN1"})
    utf8 = proxy.connect(params={"client_encoding": "UTF8"})
    for _ in range(2):
        assert latin.ask(query("select chr(233)"))[1].body.endswith(b"\xe9")
        assert utf8.ask(query("select chr(233)"))[1].body.endswith(b"\xc3\xa9")


def test_extra_parameters_are_tracked_when_named(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, track_extra_parameters="IntervalStyle, search_path")
    first = proxy.connect(params={"intervalstyle": "iso_8601"})
    second = proxy.connect(params={"IntervalStyle": "sql_standard"})
    for _ in range(2):
        assert first.value("select interval '1 day'") == "P1D"
        assert second.value("select interval '1 day'") == "1 0:00:00"


def test_a_quote_in_a_parameter_is_quoted(start):
    proxy = start(pool_mode="transaction")
    name = 'it\'s "a" \\name; select 1/0 --'
    assert proxy.connect(params={"application_name": name}).value("show application_name") == name


@pytest.mark.parametrize("strings", ["off", "on"])
@pytest.mark.parametrize("name", ["C:\\app\\", "C:\\app\\new", "\\'; create table made_by_name(); --", "\\", "'\\''"])
def test_a_backslash_in_a_parameter_is_one_whatever_the_server_was_told_before(start, name, strings):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    before = proxy.connect(params={"standard_conforming_strings": strings})
    assert before.value("show standard_conforming_strings") == strings
    client = proxy.connect(params={"application_name": name})
    assert client.value("show application_name") == name
    assert client.value("select to_regclass('made_by_name')") is None
    # Both at once: set in one query, in whatever order.
    both = proxy.connect(params={"standard_conforming_strings": strings, "application_name": name})
    assert both.value("show application_name") == name


def test_an_invalid_parameter_value_is_an_error_for_that_client_only(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    bystander = proxy.connect()
    bystander.value("select 1")
    client = proxy.connect(params={"TimeZone": "Moon/Base"})
    client.send(query("select 1"))
    assert client.last_words()["M"] == "invalid server parameter"
    assert bystander.value("select 1") == "1"


def test_the_spelling_of_the_server_is_taken_over_so_that_set_is_not_repeated(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=1, verbose=2)
    client = proxy.connect(params={"DateStyle": "iso"})
    before = cluster.log().count("SET DateStyle='iso'")
    for _ in range(5):
        client.value("select 1")
    assert cluster.log().count("SET DateStyle='iso'") - before <= 1


def test_settings_are_told_as_the_server_spells_them(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect(params={"client_encoding": "utf8", "TimeZone": "utc", "DateStyle": "iso"})
    assert [client.parameters[name] for name in ("client_encoding", "TimeZone")] == ["UTF8", "UTC"]
    answer = client.ask(query("select 1"))  # DateStyle had to be set for it
    assert answer.parameters == {"DateStyle": "ISO, MDY"}
    assert answer.rows == [("1",)]
    assert client.ask(query("select 1")).parameters == {}


@pytest.mark.parametrize("name", ["application_name", "search_path"])
def test_values_that_differ_in_their_case_only(start, name):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    clients = {value: proxy.connect(params={name: value}) for value in ('"App"', '"app"')}
    for _ in range(2):
        for value, client in clients.items():
            assert client.value("show " + name) == value


def test_the_host_is_added_to_the_application_name(start):
    proxy = start(application_name_add_host=1)
    client = proxy.connect(params={"application_name": "mine"})
    port = client.sock.getsockname()[1]
    assert client.value("show application_name") == "mine - 127.0.0.1:%d" % port
    with proxy.connect() as unnamed:
        assert unnamed.value("show application_name").startswith("app - 127.0.0.1:")
    with proxy.connect(host=str(proxy.folder)) as local:
        expected = "app - unix(%d@%s):%d" % (os.getpid(), socket.gethostname(), proxy.port)
        assert local.value("show application_name") == expected


def test_parameters_of_the_database_entry_go_into_the_servers_startup(start):
    proxy = start(
        databases={"app": "client_encoding=LATIN1 datestyle='SQL, DMY' timezone=Asia/Tokyo application_name=given"}
    )
    client = proxy.connect()
    assert client.value("show client_encoding") == "LATIN1"
    assert client.value("show datestyle") == "SQL, DMY"
    assert client.value("show timezone") == "Asia/Tokyo"
    assert client.value("show application_name") == "given"


def test_a_login_notice(start):
    client = start(login_notify_message="read the rules").connect()
    assert client.welcome.notices == ["read the rules"]


def test_disable_pqexec_refuses_simple_queries(start):
    proxy = start(disable_pqexec=1)
    client = proxy.connect()
    assert client.ask(wire.extended("select 1")).rows == [("1",)]
    client.send(query("select 1"))
    assert client.last_words()["M"] == "PQexec disallowed"


def test_unix_socket_clients(start):
    proxy = start()
    client = proxy.connect(host=str(proxy.folder))
    assert client.value("select 1") == "1"
    assert [r["addr"] for r in proxy.show("clients", database="app")] == ["unix"]
    assert os.stat(proxy.folder / (".s.PGSQL.%d" % proxy.port)).st_mode & 0o777 == 0o777


def test_a_server_behind_a_unix_socket(start, cluster):
    proxy = start(databases={"app": "host=%s port=%d dbname=app" % (cluster.folder, cluster.port)})
    assert proxy.connect().value("select inet_server_addr() is null") == "t"
