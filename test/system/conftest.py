"""Fixtures. `start` makes proxies, `cluster` is the PostgreSQL behind them."""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../faults"))
import harness  # noqa: E402
from cloud import APPLICATION, Cloud  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "drivers: real drivers, direct and through the proxy; script/test runs them once")


def new_folder():
    """Short (a socket path has 107 bytes at most) and open to the service user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lk", dir="/tmp"))
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def cluster_of_session():
    folder = new_folder()
    cluster = harness.Cluster(folder)
    try:
        cluster.start()
        cluster.sql(harness.CLUSTER_SQL, "postgres")
        for name in ("app", "second"):
            cluster.sql("create database " + name, "postgres")
            cluster.sql(harness.DATABASE_SQL, name)
        yield cluster
    finally:
        if cluster.process and cluster.process.poll() is None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(cluster_of_session):
    """With an empty table scratch and no connection of a former test."""
    c = cluster_of_session
    harness.eventually(lambda: not c.backends(), 20, "connections of the former test are gone")
    c.sql("truncate scratch")
    return c


@pytest.fixture
def prepare(cluster):
    """prepare(**settings of harness.Proxy) makes a proxy without starting it."""
    made, folders = [], []

    def make(**settings):
        folders.append(new_folder())
        made.append(harness.Proxy(cluster, folders[-1], **settings))
        return made[-1]

    yield make
    try:
        for proxy in made:
            proxy.stop()
    finally:
        for proxy in made:
            if proxy.process and proxy.process.poll() is None:
                proxy.process.kill()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(prepare):
    """start(**settings of harness.Proxy) runs a proxy and checks at the end that it stayed healthy."""
    return lambda **settings: prepare(**settings).start()


@pytest.fixture(scope="session")
def cloud_template(cluster_of_session):
    """A database with schema lokadb and nothing else, to be copied."""
    c = cluster_of_session
    c.sql("create database cloud_template", "postgres")
    cloud = Cloud(c, "cloud_template")
    cloud.run("init", check=True)
    cloud.sql("grant create on schema public to public")
    c.admin.pop("cloud_template").drop()
    yield "cloud_template"


@pytest.fixture
def cloud(cluster, cloud_template):
    """A fresh cloud database."""
    name = "cloud_%d" % next(cloud_number)
    cluster.sql("create database %s template %s" % (name, cloud_template), "postgres")
    made = Cloud(cluster, name)
    yield made
    made.close()


@pytest.fixture
def gate(cloud):
    """With an application under LokaDB."""
    cloud.sql(APPLICATION)
    for words in (["documents"], ["messages"], ["notes", "-relation", "doc=documents"]):
        cloud.add(*words)
    return cloud


cloud_number = itertools.count(1)


@pytest.fixture(scope="session")
def director():
    """The plugin that does what comments tell it (test/plugins/director.c)."""
    folder = new_folder()
    path = folder / "director.so"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", harness.ROOT / "src", "-o", path]
    subprocess.run(command + [harness.ROOT / "test/plugins/director.c"], check=True)
    yield path
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def org(cluster_of_session):
    """A second database, whose table place says so."""
    c = cluster_of_session
    c.sql("drop database if exists org1")
    c.sql("create database org1")
    c.sql("do $$begin create role customers login; exception when duplicate_object then null; end$$")
    for database, name in (("app", "cloud"), ("org1", "org1")):
        c.sql("drop table if exists place", database)
        c.sql("create table place as select '%s'::text as name" % name, database)
        c.sql("grant select on place to public", database)
        c.sql("drop table if exists place_to_fill; create table place_to_fill (name text)", database)
        c.sql("grant insert on place_to_fill to public", database)
    c.admin.pop("org1").drop()
    yield c
    c.sql("drop table if exists place")


@pytest.fixture
def routed(start, director, org):
    """routed(**options) starts a proxy with the plugin director and the targets o1, gone and missing."""

    def make(pool_mode="transaction", port=None, **options):
        target = "o1,127.0.0.1,%d,org1,customers," % (port or org.port)
        nowhere = "gone,127.0.0.1,%d,org1,customers," % harness.free_port()
        missing = "missing,127.0.0.1,%d,no_such_database,customers," % org.port
        return start(
            pool_mode=pool_mode,
            plugins="director",
            sections={"director": {"library": director, "targets": ";".join([target, nowhere, missing])}},
            **{"default_pool_size": 3, **options}
        )

    return make
