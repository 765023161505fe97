"""psql on the libpq of PostgreSQL 18, which script/postgres-18 installs: TLS from the first byte on, protocol 3.2."""

import os
import subprocess

import harness


def environment():
    folder = harness.postgres_18().parent / "lib"
    assert (folder / "libpq.so.5").exists(), "no libpq in %s" % folder
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def start(proxy, sql, **parameters):
    """A psql that runs the statement; parameters are those of the connection."""
    asked = {"host": "127.0.0.1", "port": proxy.port, "user": "app", "dbname": "app", "sslmode": "disable", **parameters}
    conninfo = " ".join("%s='%s'" % item for item in asked.items())
    return subprocess.Popen(
        ["/usr/lib/postgresql/15/bin/psql", conninfo, "-XAtc", sql],
        env=environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, timeout=20):
    """Its exit status, output and errors."""
    try:
        out, errors = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, out, errors


def run(proxy, sql, **parameters):
    return finish(start(proxy, sql, **parameters))
