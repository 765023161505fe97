"""Under a service manager such as systemd: what it is told, and the sockets it passes."""

import os
import re
import signal
import socket
import time

import pytest

import harness
import wire
from harness import eventually


class Manager:
    """The socket that notices are sent to."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(10)
        os.chmod(self.path, 0o777)
        harness.give_to_service_user(self.path)

    def notice(self):
        """The next one, as a dictionary."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def is_silent(self):
        self.socket.setblocking(False)
        try:
            raise AssertionError("was told %r" % self.socket.recv(4096))
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(10)


@pytest.fixture
def managed(prepare):
    """managed(**settings of harness.Proxy): a proxy that has said it is ready, and its manager."""
    managers = []

    def start(*arguments, **settings):
        proxy = prepare(**settings)
        managers.append(Manager(proxy.folder))
        proxy.launch(*(arguments or ("-q", str(proxy.ini))), NOTIFY_SOCKET=managers[-1].path)
        return proxy, managers[-1]

    yield start
    for manager in managers:
        manager.socket.close()


def test_ready_is_told_when_clients_can_come(managed):
    proxy, manager = managed()
    assert manager.notice() == {"READY": "1", "MAINPID": str(proxy.process.pid)}
    assert proxy.connect().value("select 1") == "1"
    assert manager.is_silent()


def test_a_daemon_tells_its_new_process_id(prepare):
    proxy = prepare()
    proxy.write(pidfile=proxy.folder / "pid")
    manager = Manager(proxy.folder)
    proxy.launch("-d", "-q", str(proxy.ini), NOTIFY_SOCKET=manager.path)
    first = proxy.process.pid
    assert proxy.wait_exit() == 0
    pid = int(manager.notice()["MAINPID"])
    try:
        assert pid != first
        assert (proxy.folder / "pid").read_text() == "%d\n" % pid
    finally:
        os.kill(pid, signal.SIGQUIT)
        eventually(lambda: not (proxy.folder / "pid").exists())
        manager.socket.close()


@pytest.mark.parametrize("is_faulty", [False, True])
def test_a_reload_is_told_from_begin_to_end(managed, is_faulty):
    proxy, manager = managed()
    manager.notice()
    before = time.monotonic_ns() // 1000
    if is_faulty:
        proxy.write(pool_mode="nonsense")
    proxy.signal(signal.SIGHUP)
    begin = manager.notice()
    assert begin["RELOADING"] == "1"
    assert before <= int(begin["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert manager.notice()["READY"] == "1"
    assert ("config file loading failed" in proxy.log()) == is_faulty


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_is_told_when_it_begins(managed, number):
    proxy, manager = managed()
    manager.notice()
    client = proxy.connect()
    client.query("begin")
    proxy.signal(number)
    assert manager.notice() == {"STOPPING": "1"}
    assert proxy.process.poll() is None
    client.query("commit")
    client.terminate()
    assert proxy.wait_exit() == 0
    assert manager.is_silent()


def test_how_busy_it_is_is_told_each_period(managed):
    proxy, manager = managed(stats_period=1, log_stats=0)
    manager.notice()
    proxy.connect().query("select 1")
    status = manager.notice()["STATUS"]
    assert re.fullmatch(r"stats: \d+ xacts/s, .*, xact \d+ μs, query \d+ μs, wait \d+ μs", status)
    assert " us" not in status
    assert "stats:" not in proxy.log()


def test_a_manager_that_is_not_there_is_only_warned_about(prepare):
    proxy = prepare()
    proxy.launch("-q", str(proxy.ini), NOTIFY_SOCKET=str(proxy.folder / "nobody"))
    proxy.wait_log("WARNING service manager cannot be told: ")
    assert proxy.connect().value("select 1") == "1"


# ------------------------------------------------------------------ sockets


def listening(family, address):
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(address)
    made.listen(16)
    return made


def test_sockets_that_are_passed_take_the_place_of_the_configured_ones(prepare):
    proxy = prepare()
    port, path = harness.free_port(), str(proxy.folder / "passed")
    sockets = [
        listening(socket.AF_INET, ("127.0.0.1", port)),
        listening(socket.AF_INET6, ("::1", harness.free_port())),
        listening(socket.AF_UNIX, path),
    ]
    os.chmod(path, 0o777)
    v6_port = sockets[1].getsockname()[1]
    proxy.launch(sockets=sockets)
    for s in sockets:
        s.close()
    proxy.wait_log("process up: ")
    for fd in (3, 4, 5):
        proxy.wait_log(r"LOG socket passed from service manager \(fd %d\)" % fd)
    proxy.wait_log("WARNING sockets passed from service manager, cf_listen_addr ignored")
    proxy.wait_log("WARNING sockets passed from service manager, cf_unix_socket_dir ignored")
    proxy.wait_log(r"listening on \[::1\]:%d" % v6_port)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", proxy.port), 1)
    assert not (proxy.folder / (".s.PGSQL.%d" % proxy.port)).exists()
    assert wire.Conn(port).value("select 1") == "1"
    for family, address in ((socket.AF_INET6, ("::1", v6_port)), (socket.AF_UNIX, path)):
        with socket.socket(family) as s:
            s.settimeout(5)
            s.connect(address)
            s.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")  # SSLRequest
            assert s.recv(1) == b"N"
    proxy.signal(signal.SIGQUIT)
    assert proxy.wait_exit() == 0
    assert os.path.exists(path)


def test_options_that_are_as_by_default_are_not_warned_about(prepare):
    proxy = prepare()
    proxy.write(listen_addr="", unix_socket_dir="/tmp")
    with listening(socket.AF_INET, ("127.0.0.1", proxy.port)) as passed:
        proxy.launch(sockets=[passed])
    proxy.wait_log("process up: ")
    assert "ignored" not in proxy.log()
    assert proxy.connect().value("select 1") == "1"


def test_sockets_survive_the_way_into_the_background(prepare):
    proxy = prepare()
    proxy.write(pidfile=proxy.folder / "pid", listen_addr="")
    with listening(socket.AF_INET, ("127.0.0.1", proxy.port)) as passed:
        proxy.launch("-d", "-q", str(proxy.ini), sockets=[passed])
        assert proxy.wait_exit() == 0
    pid = int(eventually(lambda: (proxy.folder / "pid").exists() and (proxy.folder / "pid").read_text()))
    try:
        assert proxy.connect().value("select 1") == "1"
    finally:
        os.kill(pid, signal.SIGQUIT)
        eventually(lambda: not (proxy.folder / "pid").exists())


def test_a_socket_that_does_not_listen_is_refused(prepare):
    proxy = prepare()
    with socket.socket() as unbound:
        proxy.launch(sockets=[unbound])
    assert proxy.wait_exit() == 1
    assert re.search(r"FATAL failed to set up socket passed from service manager \(fd 3\)", proxy.log())


def test_a_takeover_cannot_be_asked_for_with_sockets(prepare):
    proxy = prepare()
    with listening(socket.AF_INET, ("127.0.0.1", proxy.port)) as passed:
        proxy.launch("-R", "-q", str(proxy.ini), sockets=[passed])
    assert proxy.wait_exit() == 1
    assert "FATAL cannot reboot under service manager" in proxy.log()


def test_sockets_meant_for_another_process_are_left_alone(prepare):
    proxy = prepare()
    proxy.launch("-q", str(proxy.ini), LISTEN_FDS="1", LISTEN_PID="1")
    proxy.wait_log("process up: ")
    assert proxy.connect().value("select 1") == "1"
    assert "service manager" not in proxy.log()
