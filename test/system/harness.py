"""What the tests run on: a private PostgreSQL cluster, and the proxy under test in front of it."""

import atexit
import contextlib
import fcntl
import functools
import itertools
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
PG_BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
# For trying the tests on another pooler: options it does not know, comma separated, are left out of its file, and its
# exit status is not looked at.
LACKS = [name for name in os.environ.get("LOKADB_PROXY_LACKS", "").split(",") if name]
SERVICE_USER = "postgres"  # owner of the processes when the tests run as root, which both programs refuse to be

# Log and standard error must never say any of this.
FORBIDDEN = re.compile(
    r"FATAL.*Assert|assertion failed|Sanitizer|runtime error:|client disconnected with query in progress", re.IGNORECASE
)


def as_service_user():
    """Arguments for subprocess that make the program run as the service user."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(SERVICE_USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def identity_of_service_user():
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(pwd.getpwnam(SERVICE_USER).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


def give_to_service_user(path):
    if os.geteuid() == 0:
        shutil.chown(path, SERVICE_USER, SERVICE_USER)


def runnable_binary(name="lokadb-proxy"):
    """The program under test, as a copy where the service user can read it if it may not be able to otherwise."""
    binary = os.environ.get("LOKADB_PROXY", str(ROOT / "build" / "lokadb-proxy"))
    if name != "lokadb-proxy":
        binary = str(pathlib.Path(binary).with_name(name))
    if os.geteuid() != 0:
        return binary
    folder = tempfile.mkdtemp(prefix="lkbin", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    return shutil.copy(binary, folder)


BINARY = runnable_binary()


@functools.cache
def plugin_file(name):
    """A copy of an installed plugin that the service user can read."""
    copy = pathlib.Path(BINARY).parent / (name + ".so")
    built = pathlib.Path(os.environ.get("LOKADB_PROXY", ROOT / "build" / "lokadb-proxy")).parent / "plugins" / name
    if not copy.exists():
        shutil.copy(built / (name + ".so"), copy)
        copy.chmod(0o644)
    return copy


@functools.cache
def command_line():
    return runnable_binary("lokadb")


def lokadb(*arguments, stdin=None, timeout=60, check=False, env=None, statuses=(0, 1, 2)):
    """Runs the command line (which stands beside the proxy) to its end. check: it must succeed."""
    program = command_line()
    done = subprocess.run(
        [program, *map(str, arguments)],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd="/",
        env={**os.environ, **(env or {})},
        **as_service_user()
    )
    assert not FORBIDDEN.search(done.stderr), done.stderr
    assert done.returncode in statuses, (done.returncode, done.stdout, done.stderr)
    assert not check or done.returncode == 0, done.stderr
    return done


def ports_of_this_process():
    """Below those that the kernel gives to outgoing connections; processes of one run share none."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    ports = list(range(10000 + 2200 * number, 12200 + 2200 * number))
    start = random.randrange(len(ports))
    return itertools.cycle(ports[start:] + ports[:start])


PORTS = ports_of_this_process()


def free_port():
    """One that nobody has now, nor was given to before, as far as that goes."""
    for port in PORTS:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def answers_tcp(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def eventually(check, timeout=5, what=None):
    """Calls check until it returns something true, which is returned; asserts that this happens in time."""
    deadline = time.monotonic() + timeout
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < deadline, "not within %g s: %s" % (timeout, what or check.__name__)
        time.sleep(0.02)


@functools.cache
def postgres_18():
    """The programs of a PostgreSQL 18; installed if need be."""
    done = subprocess.run([ROOT / "script" / "postgres-18"], stdout=subprocess.PIPE, text=True, timeout=500, check=True)
    return pathlib.Path(done.stdout.strip())


@functools.cache
def driver_programs():
    """The folder with the compiled programs of test/drivers and node's packages; made if need be."""
    done = subprocess.run([ROOT / "script" / "drivers"], stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return pathlib.Path(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def takes(least, most):
    """The block takes between so many seconds."""
    begin = time.monotonic()
    yield
    spent = time.monotonic() - begin
    assert least <= spent <= most, "took %.2f s, not %g to %g" % (spent, least, most)


# ------------------------------------------------------------------ PostgreSQL

CLUSTER_SQL = """
create role app login; create role other login; create role asker login superuser; create role stranger login;
create role carol login password 'carol-pw';
create role customers_fdw login password 'fdw-pw'; create role customers_app login password 'app-pw';
set password_encryption = md5; create role mick login password 'mick-pw'; reset password_encryption;
"""
# In each database: a table that anybody may use; it is emptied before each test.
DATABASE_SQL = (
    "create table scratch (id int, note text); grant all on scratch to public; grant create on schema public to public"
)


def make_certificate(folder, name, *extensions):
    """NAME.crt and NAME.key in the folder: for localhost, signed by itself, valid for a day. Returns the two paths."""
    certificate, key = folder / (name + ".crt"), folder / (name + ".key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
        + ["-subj", "/CN=localhost", "-out", certificate, "-keyout", key]
        + [word for extension in extensions for word in ("-addext", extension)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    key.chmod(0o600)
    give_to_service_user(certificate)
    give_to_service_user(key)
    return certificate, key


class Cluster:
    """app and other log in without a password, carol with SCRAM (carol-pw), mick with MD5 (mick-pw)."""

    def __init__(self, folder, bin=PG_BIN):
        self.folder, self.port, self.admin, self.process = pathlib.Path(folder), free_port(), {}, None
        self.templates = set()  # databases that tests copy
        self.bin = bin
        self.log_path = self.folder / "postgres.log"
        give_to_service_user(self.folder)
        self.data = self.folder / "data"
        subprocess.run(
            [
                bin / "initdb",
                "-D",
                self.data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            **as_service_user()
        )
        (self.data / "pg_hba.conf").write_text(
            "host all carol 127.0.0.1/32 scram-sha-256\nhost all mick 127.0.0.1/32 md5\n"
            "host all customers_fdw,customers_app 127.0.0.1/32 scram-sha-256\n"  # postgres_fdw insists on a password
            "host all,replication all 127.0.0.1/32 trust\nlocal all all trust\n"
        )
        with open(self.data / "postgresql.conf", "a") as f:
            f.write(
                "listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\nmax_connections = 150\nmax_prepared_transactions = 5\n"
                "fsync = off\nsynchronous_commit = off\nautovacuum = off\nshared_buffers = 32MB\n"
                "log_statement = all\nlog_connections = on\nlog_line_prefix = '%%m [%%p] %%u@%%d '\n"
                "timezone = 'UTC'\njit = off\nssl = on\n" % (self.port, self.folder)
            )
        make_certificate(self.data, "server")

    def start(self):
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data], stdout=log, stderr=log, cwd="/", **as_service_user()
            )
        eventually(self.answers, 30, "PostgreSQL is up")

    def answers(self):
        try:
            wire.Conn(self.port, user="postgres", database="postgres").terminate()
            return True
        except (OSError, wire.Closed, wire.PgError):
            return False

    def stop(self):
        for c in self.admin.values():
            c.drop()
        self.admin = {}
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def connect(self, **kw):
        """Past the proxy."""
        return wire.Conn(self.port, **kw)

    def sql(self, sql, database="app"):
        """As superuser, on a connection kept for this (and made anew should PostgreSQL have closed it)."""
        for last_try in (False, True):
            if database not in self.admin:
                self.admin[database] = wire.Conn(
                    self.port, user="postgres", database=database, params={"application_name": "harness"}
                )
            try:
                return self.admin[database].query(sql)
            except (OSError, wire.Closed):
                self.admin.pop(database).drop()
                if last_try:
                    raise

    def value(self, sql):
        return self.sql(sql).value

    def backends(self, where="true"):
        """Process ids of the server connections that are not the harness's own."""
        rows = self.sql(
            "select pid from pg_stat_activity where backend_type in ('client backend', 'walsender')"
            " and application_name <> 'harness' and (%s) order by 1" % where
        ).rows
        return [int(pid) for (pid,) in rows]

    def log(self):
        return self.log_path.read_text(errors="replace")


# ------------------------------------------------------------------ the proxy

USERLIST = {
    "app": "",
    "other": "",
    "asker": "",
    "postgres": "",
    "admin": "",
    "stats": "",
    "carol": "carol-pw",
    "mick": "mick-pw",
}


# Becomes the program in the arguments, with the descriptors named by the first one.
PASS_SOCKETS = """
import os, sys
passed = sys.argv[1].split(",")
for place, fd in enumerate(passed, 3):
    os.dup2(int(fd), place)
    os.close(int(fd))
os.environ.update(LISTEN_FDS=str(len(passed)), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def section(name, entries):
    return "[%s]\n" % name + "".join("%s = %s\n" % item for item in entries.items()) + "\n"


class Proxy:
    """One proxy process with its own folder, configuration, log and port.

    databases, users, peers: sections of the file (others: sections); a database given as "" leads to the cluster's of that name.
    userlist: user name -> secret, over USERLIST; None: no such user. options: keys of [pgbouncer].
    """

    def __init__(self, cluster, folder, databases=None, users=None, userlist=None, peers=None, sections=None, **options):
        self.cluster, self.folder, self.port = cluster, pathlib.Path(folder), free_port()
        self.ini, self.log_path = self.folder / "proxy.ini", self.folder / "proxy.log"
        self.stderr_path, self.process, self.open = self.folder / "stderr", None, []
        self.databases = {"app": ""} if databases is None else databases
        self.users, self.peers, self.sections = users or {}, peers or {}, sections or {}
        self.userlist = {u: s for u, s in {**USERLIST, **(userlist or {})}.items() if s is not None}
        self.options = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": self.folder,
            "logfile": self.log_path,
            "auth_type": "trust",
            "auth_file": self.folder / "userlist.txt",
            "admin_users": "admin",
            "stats_users": "stats",
            "server_login_retry": 1,
            "server_tls_sslmode": "disable",
            **options,
        }
        give_to_service_user(self.folder)
        self.write()

    def target(self, dbname, extra=""):
        """A [databases] value that leads to the cluster."""
        return "host=127.0.0.1 port=%d dbname=%s %s" % (self.cluster.port, dbname, extra)

    def write(self, **options):
        """Writes the configuration, with options changed as given."""
        self.options.update(options)
        databases = {}
        for name, value in self.databases.items():
            local = (
                value if "host=" in value else self.target(name, value) if name != "*" else self.target("app", value)
            )
            databases[name] = local
        text = section("databases", databases)
        if self.users:
            text += section("users", self.users)
        if self.peers:
            text += section("peers", self.peers)
        for name, entries in self.sections.items():
            text += section(name, entries)
        self.ini.write_text(text + section("pgbouncer", {k: v for k, v in self.options.items() if k not in LACKS}))
        quote = lambda s: '"%s"' % s.replace('"', '""')
        self.write_userlist("".join("%s %s\n" % (quote(u), quote(s)) for u, s in self.userlist.items()))

    def write_userlist(self, text):
        path = pathlib.Path(self.options["auth_file"])
        path.write_text(text)
        give_to_service_user(path)

    def launch(self, *arguments, sockets=(), **environment):
        """Starts the program; does not wait for anything. sockets: passed as a service manager does it."""
        env = {
            **os.environ,
            **environment,
            "ASAN_OPTIONS": "detect_stack_use_after_return=0:abort_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        command = [BINARY, *(arguments or ("-q", str(self.ini)))]
        # Numbers that are in nobody's way while they are moved to 3 and up.
        passed = [fcntl.fcntl(s, fcntl.F_DUPFD, 100) for s in sockets]
        if passed:
            command = ["/usr/bin/python3", "-c", PASS_SOCKETS, ",".join(map(str, passed)), *command]
        with open(self.stderr_path, "a") as err:
            give_to_service_user(self.stderr_path)
            self.process = subprocess.Popen(
                command,
                pass_fds=passed,
                stdout=subprocess.DEVNULL,
                stderr=err,
                cwd=self.folder,
                env=env,
                **as_service_user()
            )
        for fd in passed:
            os.close(fd)

    def start(self):
        self.launch()
        eventually(self.listens, 10, "the proxy listens")
        return self

    def listens(self):
        assert self.process.poll() is None, "the proxy ended: %s %s" % (self.log(), self.stderr_path.read_text())
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            if self.options["unix_socket_dir"] == self.folder:  # which it listens on after the others
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect("%s/.s.PGSQL.%d" % (self.folder, self.port))
            return True
        except OSError:
            return False

    # clients

    def connect(self, user="app", database="app", **kw):
        c = wire.Conn(self.port, user=user, database=database, **kw)
        self.open.append(c)
        return c

    def raw(self, **kw):
        """A connection on which nothing has been sent."""
        return self.connect(login=False, **kw)

    def console(self, user="admin", **kw):
        return self.connect(user=user, database="pgbouncer", **kw)

    def refusal(self, **kw):
        """The error a login fails with."""
        try:
            c = self.connect(**kw)
        except wire.PgError as e:
            return e
        raise AssertionError("was let in: %r" % c.welcome)

    def admin(self, command):
        """Runs one console command on a connection of its own."""
        with self.console() as c:
            return c.query(command)

    def show(self, what, **where):
        """Rows of a SHOW command as dictionaries, those that match."""
        with self.console() as c:
            rows = c.table("show " + what)
        return [r for r in rows if all(r[k] == v for k, v in where.items())]

    # For tests with passwords: on the Unix socket the proxy's own user is let in to the console without one. Tests run
    # as root take that user's identity for the moment of connecting.

    def console_over_unix(self):
        with identity_of_service_user():
            return self.connect(user="pgbouncer", database="pgbouncer", host=str(self.folder))

    def admin_over_unix(self, command):
        with self.console_over_unix() as c:
            return c.query(command)

    def show_over_unix(self, what, **where):
        with self.console_over_unix() as c:
            rows = c.table("show " + what)
        return [r for r in rows if all(r[k] == v for k, v in where.items())]

    def pool(self, database="app", user="app"):
        """The row of SHOW POOLS, numbers as numbers."""
        row = self.show("pools", database=database, user=user)[0]
        return {k: int(v) if v is not None and v.isdigit() else v for k, v in row.items()}

    def reload(self, **options):
        self.write(**options)
        self.admin("reload")

    # process and log

    def signal(self, number):
        self.process.send_signal(number)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_log(self, pattern, timeout=5, count=1):
        """Waits until the log has the regular expression so often."""
        eventually(lambda: len(re.findall(pattern, self.log())) >= count, timeout, "log has %r" % pattern)

    def wait_exit(self, timeout=10):
        """The exit status of a proxy that is expected to end by itself."""
        code = self.process.wait(timeout)
        self.check_output()
        self.process = None
        return code

    def last_words(self):
        paths = [path for path in (self.log_path, self.stderr_path) if path.exists()]
        return "".join("\n%s: ...%s" % (path.name, path.read_text(errors="replace")[-4000:]) for path in paths)

    def check_output(self):
        for path in (self.log_path, self.stderr_path):
            text = path.read_text(errors="replace") if path.exists() else ""
            found = FORBIDDEN.search(text)
            assert not found, "%s: ...%s" % (path.name, text[max(0, found.start() - 1000) : found.end() + 3000])

    def stop(self):
        """The end of each test: the proxy is alive, obeys SIGQUIT and has not complained."""
        for c in self.open:
            c.drop()
        if self.process is None:
            return
        process, self.process = self.process, None
        try:
            code = process.poll()
            if code is not None:
                self.check_output()
                raise AssertionError("the proxy died, status %s: %s" % (code, self.last_words()))
            process.send_signal(signal.SIGQUIT)
            code = process.wait(10)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.check_output()
        assert code == 0 or LACKS, "exit status %d: %s" % (code, self.last_words())
