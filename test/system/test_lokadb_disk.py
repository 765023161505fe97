"""The disk of an organization's database is full in the middle of a move."""

import os
import random
import re
import shutil
import subprocess

import conftest
import harness
import pytest
from lokadb_app import App

MEGABYTE = 1 << 20
# Two kilobytes a row; hexadecimal digits of md5 do not compress to less than half.
LARGE = """
insert into documents (organization_id, title, body)
select 1, 'large ' || g, (select string_agg(md5(g::text || h), '') from generate_series(1, 60) h) from generate_series(1, %d) g
"""


def as_root(*words):
    return subprocess.run([*([] if os.geteuid() == 0 else ["sudo", "-n"]), *words], capture_output=True).returncode == 0


class SmallDisk:
    """A cluster whose disk can be filled: a file system of its own in memory. Where none can be mounted (a container
    without the right) files may not grow beyond a size, which PostgreSQL meets at the same places."""

    def __init__(self, mount=True):
        self.folder = conftest.new_folder()
        self.mounted = mount and as_root("mount", "-t", "tmpfs", "-o", "size=150m,mode=755", "tmpfs", str(self.folder))
        self.cluster = harness.Cluster(self.folder)
        self.cluster.start()

    def limit(self, size):
        pids = [self.cluster.process.pid]
        pids += map(int, subprocess.run(["pgrep", "-P", str(pids[0])], capture_output=True, text=True).stdout.split())
        for pid in pids:  # some may have ended
            subprocess.run(["prlimit", "--pid", str(pid), "--fsize=%s:" % size], **harness.as_service_user())

    def fill(self):
        if not self.mounted:
            self.limit(17 * MEGABYTE)  # a segment of WAL has 16
            return
        free = shutil.disk_usage(self.folder).free - 3 * MEGABYTE
        with harness.identity_of_service_user(), open(self.folder / "filler", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, free)

    def make_room(self):
        if self.mounted:
            (self.folder / "filler").unlink()
        else:
            self.limit("unlimited")

    def close(self):
        self.cluster.stop()
        if self.mounted:
            assert as_root("umount", str(self.folder))
        shutil.rmtree(self.folder)


@pytest.fixture
def disk():
    d = SmallDisk()
    yield d
    d.close()


def test_a_full_disk_leaves_the_organization_at_home_until_there_is_room(cluster, disk):
    app = App(cluster, "disk%d" % random.randrange(10**9), far=disk.cluster)
    try:
        app.sql(LARGE % (3000 if disk.mounted else 12000))
        before = app.content(1)
        app.add_database(1)
        disk.fill()
        said = app.move(1, status=1)
        reason = "No space left on device|wrote only" if disk.mounted else "File too large|wrote only"
        place = r"the disk of %s at 127\.0\.0\.1:%d is full" % (app.databases[0], disk.cluster.port)
        assert said.count("\n") == 1 and re.search(reason, said) and said.endswith("; organization 1 is at home as before\n")
        assert re.match("lokadb: (%s|could not)" % place if not disk.mounted else "lokadb: " + place, said), said
        assert app.content(1) == before
        assert app.sql("select org, profile, step, server from lokadb.organizations").rows == [("1", "local", None, None)]
        assert app.sql("select count(*) from pg_foreign_server").value == "0"
        with app.connect(tenant=1) as c:
            c.query("insert into documents (id, organization_id, title) values (90000, 1, 'goes on'); delete from documents where id = 90000")
        assert disk.cluster.sql("select count(*) from pg_class where relnamespace = 'public'::regnamespace", app.databases[0]).value == "0"
        disk.make_room()
        app.move(1)
        assert app.content(1) == before
        app.back(1)
        assert app.content(1) == before
    finally:
        app.drop()
