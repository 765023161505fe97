"""The process: command line, start, signals, shutdown."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness
import wire
from conftest import new_folder
from harness import eventually, takes
from wire import query


def run(*arguments, as_root=False, **kw):
    identity = {} if as_root else harness.as_service_user()
    return subprocess.run(
        [harness.BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=20, cwd="/tmp", **identity, **kw
    )


# ------------------------------------------------------------------ command line


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(flag):
    done = run(flag)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("PgBouncer 1.")
    assert any(line.startswith("libevent ") for line in lines)
    assert any(line.startswith("tls: ") for line in lines)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag):
    done = run(flag)
    assert done.returncode == 0
    for option in ("--daemon", "--quiet", "--reboot", "--user", "--verbose", "--version", "--help"):
        assert option in done.stdout


def test_without_a_file():
    done = run()
    assert done.returncode == 1
    assert "no configuration file specified" in done.stderr
    assert '--help" for more information.' in done.stderr


@pytest.mark.parametrize("arguments", [["--nonsense"], ["-Z"], ["one.ini", "two.ini"]])
def test_bad_arguments(arguments):
    done = run(*arguments)
    assert done.returncode == 1
    assert '--help" for more information.' in done.stderr


def test_a_file_that_is_not_there():
    done = run("/nonexistent/proxy.ini")
    assert done.returncode == 1
    assert 'could not load file "/nonexistent/proxy.ini"' in done.stderr
    assert "FATAL cannot load config file" in done.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("[pgbouncer]\nnonsense = 1\n", "unknown parameter: pgbouncer/nonsense"),
        ("[pgbouncer]\npool_mode = nonsense\n", 'invalid value "nonsense" for parameter pool_mode in configuration'),
        ("[databases]\n", "main section missing from config file"),
        ("[other]\n", 'invalid section "other" in configuration'),
        ("[pgbouncer]\nwhat is this\n", "syntax error in configuration"),
        ("[databases]\npgbouncer = host=x\n[pgbouncer]\n", 'database name "pgbouncer" is reserved'),
        ("[databases]\na = nokey=1\n[pgbouncer]\n", "unrecognized connection parameter: nokey"),
    ],
)
def test_a_bad_file(prepare, text, words):
    file = prepare().ini
    file.write_text(text)
    done = run(file)
    assert done.returncode == 1
    assert words in done.stderr
    assert "FATAL cannot load config file" in done.stderr


def test_root_is_refused(prepare):
    proxy = prepare()
    prefix = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    done = subprocess.run([*prefix, harness.BINARY, str(proxy.ini)], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert "lokadb-proxy should not run as root" in done.stderr


# ------------------------------------------------------------------ run under PgBouncer's name


@pytest.fixture
def as_pgbouncer(monkeypatch):
    """The program under test as a link called pgbouncer."""
    folder = new_folder()
    link = folder / "pgbouncer"
    link.symlink_to(pathlib.Path(harness.BINARY).resolve())
    monkeypatch.setattr(harness, "BINARY", str(link))
    yield link
    shutil.rmtree(folder)


def test_messages_before_the_start_have_the_name_it_was_called_by(as_pgbouncer):
    done = run()
    assert "%s: no configuration file specified" % as_pgbouncer in done.stderr
    assert 'Try "%s --help"' % as_pgbouncer in done.stderr
    assert run("--help").stdout.startswith("%s is a connection pooler" % as_pgbouncer)


def test_the_log_has_the_name_it_was_called_by(start, as_pgbouncer):
    start().wait_log(r"LOG process up: PgBouncer 1\.\d+\.\d+, libevent .*, lokadb-proxy \d+\.\d+")


def test_the_log_has_our_name_else(start):
    start().wait_log(r"LOG process up: lokadb-proxy \d+\.\d+\.\d+, libevent .*, PgBouncer 1\.\d+")


def test_root_is_refused_in_the_name_it_was_called_by(prepare, as_pgbouncer):
    prefix = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    done = subprocess.run([*prefix, harness.BINARY, str(prepare().ini)], capture_output=True, text=True, timeout=20)
    assert "FATAL PgBouncer should not run as root" in done.stderr


def test_the_version_is_the_same_under_both_names(as_pgbouncer):
    own = subprocess.run([as_pgbouncer.resolve(), "-V"], capture_output=True, text=True, timeout=20).stdout
    assert run("-V").stdout == own
    assert re.search(r"(?m)^lokadb-proxy: \d+\.\d+", own)


def test_the_log_goes_to_standard_error_too_unless_quiet(prepare):
    proxy = prepare()
    proxy.launch(str(proxy.ini))
    proxy.wait_log("process up: ")
    assert "process up: " in proxy.stderr_path.read_text()


def test_quiet_keeps_standard_error_empty(start):
    proxy = start()
    proxy.connect().terminate()
    assert proxy.stderr_path.read_text() == ""


def test_the_format_of_log_lines(start):
    proxy = start()
    proxy.connect().terminate()
    proxy.wait_log("closing because: client close request")
    pattern = (
        r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+ \[%d\] LOG C-0x[0-9a-f]+: app/app@127\.0\.0\.1:\d+ "
        % proxy.process.pid
    )
    proxy.wait_log(pattern + "login attempt: db=app user=app tls=no replication=no")
    proxy.wait_log(pattern + r"closing because: client close request \(age=0s\)")
    proxy.wait_log(
        r"S-0x[0-9a-f]+: app/app@127\.0\.0\.1:%d new connection to server \(from 127\.0\.0\.1:\d+\)"
        % proxy.cluster.port
    )


def test_log_lines_that_are_switched_off(start):
    proxy = start(log_connections=0, log_disconnections=0, log_pooler_errors=0)
    proxy.connect().terminate()
    proxy.refusal(database="nowhere")
    assert "login attempt" not in proxy.log()
    assert "closing because" not in proxy.log()
    assert "pooler error" not in proxy.log()


def test_pidfile(prepare):
    proxy = prepare()
    proxy.write(pidfile=proxy.folder / "pid")
    proxy.start()
    pid = proxy.folder / "pid"
    eventually(pid.exists)
    eventually(lambda: pid.read_text() == "%d\n" % proxy.process.pid)
    second = run("-q", proxy.ini)
    assert second.returncode == 1
    assert proxy.connect().value("select 1") == "1"
    proxy.signal(signal.SIGQUIT)
    assert proxy.wait_exit() == 0
    assert not pid.exists()


def test_a_stale_pidfile_is_replaced(prepare):
    proxy = prepare()
    pid = proxy.folder / "pid"
    pid.write_text("4194305\n")
    harness.give_to_service_user(pid)
    proxy.write(pidfile=pid)
    proxy.start()
    proxy.wait_log("stale pidfile, removing")


def test_daemon(prepare):
    proxy = prepare()
    pid = proxy.folder / "pid"
    proxy.write(pidfile=pid)
    done = run("-d", proxy.ini)
    assert done.returncode == 0
    eventually(lambda: pid.exists() and pid.read_text().strip())
    number = int(pid.read_text())
    try:
        assert proxy.connect().value("select 1") == "1"
        assert os.getsid(number) != os.getsid(0)
    finally:
        os.kill(number, signal.SIGQUIT)
    eventually(lambda: not pid.exists())


def test_a_daemon_needs_a_pidfile(prepare):
    done = run("-d", prepare().ini)
    assert done.returncode == 1
    assert "daemon needs pidfile configured" in done.stderr


def test_an_address_in_use_is_fatal(start, prepare):
    first, second = start(), prepare()
    second.write(listen_port=first.port)
    done = run("-q", second.ini)
    assert done.returncode == 1
    assert "FATAL failed to listen on any address in listen_addr list: 127.0.0.1" in second.log()


def test_a_unix_socket_that_is_in_use_is_fatal(start, prepare):
    first, second = start(), prepare()
    second.write(listen_port=first.port, listen_addr="", unix_socket_dir=first.folder)
    second.launch()
    assert second.wait_exit() == 1
    assert "unix socket is in use, cannot continue" in second.log()
    assert first.connect(host=str(first.folder)).value("select 1") == "1"


def test_nothing_to_listen_on_is_fatal(prepare):
    proxy = prepare(listen_addr="", unix_socket_dir="")
    done = run("-q", proxy.ini)
    assert done.returncode == 1
    assert "nowhere to listen on" in proxy.log()


def test_included_files(prepare):
    proxy = prepare()
    extra = proxy.folder / "extra.ini"
    extra.write_text("default_pool_size = 7\n")
    proxy.ini.write_text(proxy.ini.read_text() + "%%include %s\n" % extra)
    proxy.start()
    assert proxy.show("config", key="default_pool_size")[0]["value"] == "7"


def test_several_listening_addresses(start):
    proxy = start(listen_addr="127.0.0.1, ::1, 127.0.0.2")
    proxy.wait_log("process up")  # all of them are there
    assert wire.Conn(proxy.port, host="127.0.0.2").value("select 1") == "1"


# ------------------------------------------------------------------ signals


def test_sighup_reloads(start):
    proxy = start()
    proxy.write(query_timeout=9)
    proxy.signal(signal.SIGHUP)
    proxy.wait_log("got SIGHUP, re-reading config")
    eventually(lambda: proxy.show("config", key="query_timeout")[0]["value"] == "9")


def test_sighup_with_a_bad_file_changes_nothing(start):
    proxy = start()
    proxy.ini.write_text("nonsense")
    proxy.signal(signal.SIGHUP)
    proxy.wait_log("WARNING config file loading failed")
    assert proxy.connect().value("select 1") == "1"


def test_sigusr1_pauses_and_sigusr2_resumes(start):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    proxy.signal(signal.SIGUSR1)
    proxy.wait_log("got SIGUSR1, pausing all activity")
    client.send(query("select 'later'"))
    assert client.is_silent(0.4)
    proxy.signal(signal.SIGUSR2)
    assert client.ready().value == "later"
    proxy.wait_log("got SIGUSR2, continuing from PAUSE")
    proxy.signal(signal.SIGUSR2)
    proxy.wait_log("got SIGUSR2, but not paused/suspended")


def test_sigquit_ends_at_once(start):
    proxy = start()
    client = proxy.connect()
    client.query("begin")
    proxy.signal(signal.SIGQUIT)
    with takes(0, 2):
        assert proxy.wait_exit() == 0
    proxy.wait_log("got SIGQUIT, fast exit")
    assert not (proxy.folder / (".s.PGSQL.%d" % proxy.port)).exists()


def tcp_is_closed(proxy):
    try:
        wire.Conn(proxy.port, login=False).drop()
        return False
    except ConnectionRefusedError:
        return True


@pytest.mark.parametrize("how", ["signal", "command"])
def test_the_slow_shutdown_waits_for_clients(start, how):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    if how == "signal":
        proxy.signal(signal.SIGTERM)
        proxy.wait_log("got SIGTERM, shutting down, waiting for all clients disconnect")
    else:
        assert proxy.admin("shutdown wait_for_clients").tags == ["SHUTDOWN"]
    eventually(lambda: tcp_is_closed(proxy))
    assert client.value("select 'still here'") == "still here"
    time.sleep(0.5)
    assert proxy.process.poll() is None
    assert proxy.refusal(host=str(proxy.folder)).message == "pooler is shutting down"
    client.terminate()
    assert proxy.wait_exit() == 0
    proxy.wait_log("client connections dropped, exiting")
    assert not (proxy.folder / (".s.PGSQL.%d" % proxy.port)).exists()


@pytest.mark.parametrize("how", ["signal", "command"])
def test_the_fast_shutdown_waits_for_transactions(start, how):
    proxy = start(pool_mode="transaction")
    busy, idle = proxy.connect(), proxy.connect()
    busy.query("begin")
    if how == "signal":
        proxy.signal(signal.SIGINT)
        proxy.wait_log("got SIGINT, shutting down, waiting for all servers connections to be released")
    else:
        assert proxy.admin("shutdown wait_for_servers").tags == ["SHUTDOWN"]
    eventually(lambda: tcp_is_closed(proxy))
    idle.send(query("select 1"))
    assert idle.last_words()["M"] == "server shutting down"
    assert busy.value("select 'in time'") == "in time"
    assert busy.query("commit").tags == ["COMMIT"]
    assert proxy.wait_exit() == 0
    proxy.wait_log("server connections dropped, exiting")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_at_once(start, number):
    proxy = start(pool_mode="transaction")
    client = proxy.connect()
    client.query("begin")
    name = signal.Signals(number).name
    proxy.signal(number)
    proxy.wait_log("got %s, shutting down" % name)
    proxy.signal(number)
    with takes(0, 3):
        assert proxy.wait_exit() == 0
    proxy.wait_log("got %s while shutting down, fast exit" % name)


def test_the_immediate_shutdown_command_just_closes(start):
    proxy = start()
    client, console = proxy.connect(), proxy.console()
    console.send(query("shutdown"))
    assert proxy.wait_exit() == 0
    assert console.read_to_end() == []
    assert client.read_to_end() == []


def test_resume_during_a_shutdown_is_refused(start):
    proxy = start(pool_mode="transaction")
    client, console = proxy.connect(), proxy.console()
    client.query("begin")
    console.query("shutdown wait_for_servers")
    assert console.fails("resume")["M"] == "pooler is shutting down"
    console.drop()
    client.query("rollback")
    assert proxy.wait_exit() == 0


def test_an_idle_proxy_uses_next_to_no_processor_time(start):
    proxy = start(pool_mode="transaction")
    clients = [proxy.connect() for _ in range(20)]
    clients[0].value("select 1")

    def ticks():
        fields = open("/proc/%d/stat" % proxy.process.pid).read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(1.5)
    assert ticks() - before <= 8  # hundredths of a second
