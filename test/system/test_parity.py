"""psql prints the same through the proxy as without it, byte for byte.

parity/transaction holds what keeps no state between transactions, parity/session what does.
"""

import difflib
import os
import pathlib
import subprocess

import pytest

import harness

FOLDER = pathlib.Path(__file__).parent / "parity"
SESSION = sorted(FOLDER.glob("*/*.sql"))
TRANSACTION = sorted(FOLDER.glob("transaction/*.sql"))


def psql(port, file):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PGCLIENTENCODING": "UTF8"}
    done = subprocess.run(
        [harness.PG_BIN / "psql", "-X", "-a", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "app", "-d", "app"],
        stdin=file.open("rb"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        env=environment,
    )
    return done.stdout.decode()


def same_output(cluster, proxy, file):
    cluster.sql("drop table if exists parity_made cascade")
    expected = psql(cluster.port, file)
    assert len(expected) > len(file.read_text())
    found = psql(proxy.port, file)
    assert found == expected, "".join(
        difflib.unified_diff(expected.splitlines(True), found.splitlines(True), "direct", "through the proxy")
    )


@pytest.mark.parametrize("pkt_buf", [75, 4096])
@pytest.mark.parametrize("file", SESSION, ids=lambda f: f.stem)
def test_session_mode(start, cluster, file, pkt_buf):
    same_output(cluster, start(pkt_buf=pkt_buf, ignore_startup_parameters="extra_float_digits"), file)


@pytest.mark.parametrize("file", TRANSACTION, ids=lambda f: f.stem)
def test_transaction_mode(start, cluster, file):
    same_output(cluster, start(pool_mode="transaction", default_pool_size=1), file)


def test_transaction_mode_while_others_use_the_pool_too(start, cluster):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    other = proxy.connect()
    for file in TRANSACTION:
        other.value("select 'warm'")
        same_output(cluster, proxy, file)
