"""lokadb refs-diff and refs-sync: what they find and repair, and that they never harm what is in flight."""

import itertools
import json
import random
import signal
import threading
import time

import pytest
import wire
from harness import eventually
from lokadb_world import APPLICATION, TABLES, World


@pytest.fixture
def make_world(cluster):
    worlds = []

    def make():
        worlds.append(World(cluster))
        return worlds[-1]

    yield make
    for w in worlds:
        w.drop()


@pytest.fixture
def world(make_world):
    """Organizations 1 and 2 have moved, 3 to 5 are at home; 100 documents."""
    w = make_world()
    w.set_up(APPLICATION % 100, *TABLES)
    w.move("1")
    w.move("2")
    return w


def keys(findings, kind, org=None):
    return sorted(f["key"] for f in findings if f["kind"] == kind and org in (None, f["org"]))


def test_nothing_to_find(world):
    assert "agree" in world.refs("diff")
    assert world.json("sync") == {"repaired": [], "left": [], "failed": [], "sequences_moved": []}


def test_both_sides_of_all_organizations(world):
    # Without an entry: 4 and 5 of organizations at home, 10 and 6 of moved ones (document g is organization 1 + g % 5's).
    world.sql("delete from documents__refs where id in (3, 4, 5, 6)")
    world.sql("insert into documents__refs values (9001, 1), (9002, 2), (9003, 3), (9004, 77)")
    world.sql("delete from messages__refs where id = (select min(id) from messages__refs where organization_id = 2)")
    before = world.entries()
    found = world.json("diff", status=1)
    assert keys(found["repairable"], "stale") == ["9001", "9002", "9003", "9004"] and not found["left"]
    assert keys([f for f in found["repairable"] if f["table"] == "public.documents"], "missing") == ["3", "4", "5", "6"]
    assert {f["org"] for f in found["repairable"]} == {"1", "2", "4", "5", "3", "77"}
    assert world.json("sync", "-dry-run", status=1) == found
    assert world.entries() == before and world.rows() != before
    text = world.refs("sync")
    assert "9 repaired, 0 left" in text and "public.documents, organization 1: keys given a refs entry: 5" in text
    assert world.agrees()
    world.refs("diff")


def test_only_one_organization_or_table(world):
    world.sql("delete from documents__refs where id in (4, 5, 6)")  # of organizations 5, 1, 2
    world.sql("delete from messages__refs where organization_id = 1")
    assert keys(world.json("diff", "-org", "1", "-table", "documents", status=1)["repairable"], "missing") == ["5"]
    assert keys(world.json("sync", "-org", "1", "-table", "public.documents")["repaired"], "missing") == ["5"]
    assert keys(world.json("sync", "-org", "5")["repaired"], "missing") == ["4"]
    left = world.json("diff", status=1)["repairable"]
    assert {(f["table"], f["org"]) for f in left} == {("public.documents", "2"), ("public.messages", "1")}
    assert "not under LokaDB" in world.refs("diff", "-table", "organizations", status=1)
    assert "is not an organization" in world.refs("diff", "-org", "x", status=1)


def test_a_key_in_two_organizations_is_given_to_nobody(world):
    # 5 belongs to organization 1; 3 (at home) and 2 (moved) get a row with the same key.
    world.org_sql("2", "insert into documents values (5, 2, 'second')")
    world.org_sql("1", "insert into documents values (3, 1, 'second')")  # 3 is organization 4's, at home
    # Two without any entry: one of a moved organization and one at home, one of two moved ones.
    world.org_sql("1", "insert into documents values (7, 1, 'second')")  # 7 is organization 3's
    world.sql("delete from documents__refs where id = 7")
    world.org_sql("1", "insert into documents values (8000, 1, 'x')")
    world.org_sql("2", "insert into documents values (8000, 2, 'x')")
    before = world.entries()
    for what in ("diff", "sync"):
        left = world.json(what, status=1)["left"]
        assert sorted((f["org"], f["key"]) for f in left) == [
            ("1", "3"),
            ("1", "7"),
            ("1", "8000"),
            ("2", "5"),
            ("2", "8000"),
            ("3", "7"),
        ]
        assert all(f["kind"] == "conflict" and "organization" in f["why"] for f in left)
        assert world.entries() == before
    # Also when only one of them is looked at.
    assert keys(world.json("sync", "-org", "1", status=1)["left"], "conflict") == ["3", "7", "8000"]
    assert keys(world.json("sync", "-org", "3", status=1)["left"], "conflict") == ["7"]
    assert world.entries() == before


def test_an_entry_of_the_wrong_organization(world):
    """The key is in one organization only, so that there is nothing to guess."""
    world.sql("update documents__refs set organization_id = 2 where id = 5")  # is organization 1's
    world.sql("update documents__refs set organization_id = 3 where id = 4")  # is organization 5's
    found = world.json("diff", status=1)
    assert keys(found["left"], "conflict") == ["4", "5"] and keys(found["repairable"], "stale") == ["4", "5"]
    assert len(world.json("sync")["repaired"]) == 4
    assert world.agrees()


def test_an_entry_that_the_cloud_refers_to_stays(world):
    world.sql("insert into documents__refs values (9001, 1), (9002, 1); insert into audit (document_id) values (9001)")
    done = world.json("sync", status=1)
    assert keys(done["repaired"], "stale") == ["9002"] and keys(done["left"], "stale") == ["9001"]
    assert "audit" in done["left"][0]["why"]
    assert world.sql("select count(*) from audit").value == "1"


def test_a_dead_organization_is_reported_and_the_others_repaired(world):
    world.sql("delete from documents__refs where id in (4, 5, 6)")
    world.sql("alter server lokadb_o2 options (set port '1')")
    for what in ("diff", "sync"):
        done = world.json(what, status=1)
        assert [f["what"] for f in done["failed"]] == ["organization 2"]
    assert keys(done["repaired"], "missing") == ["4", "5"]
    world.sql("alter server lokadb_o2 options (set port '%d')" % world.cluster.port)
    assert keys(world.json("sync")["repaired"], "missing") == ["6"]
    assert world.agrees()


def test_profile_direct_without_a_mapping(world):
    world.run(
        "org-profile",
        "-db",
        world.dsn(world.cloud),
        "-org",
        "1",
        "-drop-fdw-credentials",
        *world.control_flags(),
        "direct"
    )
    world.sql("delete from documents__refs where id = 5")
    world.sql("insert into documents__refs values (9001, 1)")
    world.org_sql("1", "insert into documents values (6, 1, 'second')")  # 6 is organization 2's
    assert "-control-plane" in world.refs("diff", status=1)
    done = world.json("diff", *world.control_flags(), status=1)
    assert keys(done["repairable"], "missing") == ["5"] and keys(done["repairable"], "stale") == ["9001"]
    done = world.json("sync", *world.control_flags(), status=1)
    assert len(done["repaired"]) == 2 and keys(done["left"], "conflict") == ["6"]
    # A key that only the other path shows to be taken: no entry at all, rows in 1 (direct) and 2 (postgres_fdw).
    world.sql("delete from documents__refs where id = 6")
    done = world.json("sync", *world.control_flags(), status=1)
    assert sorted((f["org"], f["key"]) for f in done["left"]) == [("1", "6"), ("2", "6")]
    world.org_sql("1", "delete from documents where id = 6")
    world.refs("sync", *world.control_flags())
    assert world.agrees()
    # A database that is labelled for somebody else is not believed.
    world.org_sql("1", "comment on table documents is 'lokadb: organization 9 database x'")
    world.sql("insert into documents__refs values (9001, 1)")
    assert "labelled" in world.refs("sync", *world.control_flags(), status=1)
    assert ("9001", "1") in world.entries()


def test_an_emptied_database_does_not_take_all_entries_along(make_world):
    w = make_world()
    w.set_up(APPLICATION % 6000, *TABLES)
    w.move("1")
    w.org_sql("1", "delete from documents")
    before = w.entries()
    assert len(w.json("diff", status=1)["left"]) == 1200
    left = w.json("sync", status=1)["left"]
    assert len(left) == 1200 and "-accept-many" in left[0]["why"]
    assert w.entries() == before
    assert len(w.json("sync", "-accept-many")["repaired"]) == 1200
    assert w.agrees()


def test_sequences_go_past_the_largest_key(world):
    with world.app() as c:
        c.query("set lokadb.tenant = '1'; insert into documents values (5000, 1, 'by hand')")
    assert "behind the largest key 5000" in world.refs("diff")  # nothing wrong yet
    assert world.json("sync")["sequences_moved"] == [{"sequence": "public.documents_id_seq", "from": 100, "to": 5000}]
    with world.app() as c:
        assert c.query(
            "set lokadb.tenant = '3'; insert into documents(organization_id) values (3) returning id"
        ).rows == [("5001",)]
    assert world.json("sync")["sequences_moved"] == []


def test_a_sequence_never_goes_backwards(world):
    """Somebody draws from it all the time while it is moved again and again."""
    drawn, stop = [], threading.Event()

    def draw():
        with world.app() as c:
            while not stop.is_set():
                drawn.append(int(c.value("select nextval('documents_id_seq')")))

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(4):
            world.sql("insert into documents__refs select last_value + 300, 3 from documents_id_seq")
            world.refs("sync", "-org", "5")  # the entry itself is not looked at
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert len(drawn) > 100 and len(set(drawn)) == len(drawn)


def test_other_types_and_odd_names(make_world):
    w = make_world()
    w.set_up(
        """create table "Odd ""Docs" ("The Key" text primary key, "Org" text collate "C" not null);
        create table things (id uuid primary key default gen_random_uuid(), "Org" text not null);
        insert into "Odd ""Docs" select 'k''"\\{},' || g, (array['acme', 'o''hara', 'Zoë'])[1 + g % 3] from generate_series(1, 30) g;
        insert into things ("Org") select (array['acme', 'o''hara', 'Zoë'])[1 + g % 3] from generate_series(1, 30) g""",
        ["-table", '"Odd ""Docs"', "-tenant", "Org"],
        ["-table", "things", "-tenant", "Org"],
    )
    w.move("o'hara")
    w.sql(
        """delete from "Odd ""Docs__refs" where "The Key" ~ '[147]$'; delete from things__refs where "Org" <> 'Zoë'"""
    )
    w.sql(
        """insert into "Odd ""Docs__refs" select 'nobody''s "' || x, x from unnest(array['acme', 'o''hara', 'Zoë']) x"""
    )
    done = w.json("sync")["repaired"]
    assert (
        len(keys(done, "missing")) == 29
        and len(keys(done, "stale")) == 3
        and {f["org"] for f in done} == {"acme", "o'hara", "Zoë"}
    )
    assert "agree" in w.refs("diff", "-table", '"Odd ""Docs"')
    w.run("org-profile", "-db", w.dsn(w.cloud), "-org", "o'hara", "-drop-fdw-credentials", *w.control_flags(), "direct")
    w.sql("""delete from "Odd ""Docs__refs" where "Org" = 'o''hara'""")
    assert len(w.json("sync", *w.control_flags())["repaired"]) == 10
    assert "agree" in w.refs("diff", *w.control_flags())


# ------------------------------------------------------------------ beside live traffic


class Traffic:
    """Writers in threads. Each has keys of its own, and what it was told must be so at the end."""

    def __init__(self, world):
        self.world, self.stop, self.errors, self.alive, self.threads = world, threading.Event(), [], set(), []
        self.lock, self.written = threading.Lock(), 0

    def start(self, writer, first_key):
        def work():
            try:
                writer(itertools.count(first_key))
            except Exception as e:
                self.errors.append("%s: %r" % (writer.__name__, e))

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(30)
        assert not self.errors, self.errors

    def wrote(self, org, added=(), gone=()):
        with self.lock:
            self.alive |= {(str(k), org) for k in added}
            self.alive -= {(str(k), org) for k in gone}
            self.written += 1

    def through_the_root(self, org):
        def root_writer(keys):
            with self.world.app() as c:
                c.query("set lokadb.tenant = '%s'" % org)
                while not self.stop.is_set():
                    k = next(keys)
                    c.query("begin; insert into documents values (%d, %s, 'x')" % (k, org))
                    time.sleep(random.choice((0, 0.1)))
                    c.query("commit")
                    self.wrote(org, added=[k])
                    if k % 3 == 0:
                        c.query("delete from documents where id in (%d, %d)" % (k, k - 1))
                        self.wrote(org, gone=[k, k - 1])
                    if k % 5 == 0:  # the same key again at once
                        c.query(
                            "begin; delete from documents where id = %d; insert into documents values (%d, %s, 'y'); commit"
                            % (k, k, org)
                        )
                        self.wrote(org, added=[k])

        return root_writer

    def directly(self, org, enters_first):
        """Rows at once, refs half a second later; in the proxy's order, or with no pause around them."""
        generation = self.world.sql("select generation from lokadb.organizations where org = '%s'" % org).value
        enter = "begin; select * from lokadb.enter('%s', %s)" % (org, generation)

        def direct_writer(keys):
            with self.world.app() as c, self.world.direct(org) as d:

                def both(statement, refs):
                    if enters_first:
                        c.query(enter)
                    d.query(statement)
                    time.sleep(0.5)
                    if not enters_first:
                        c.query(enter)
                    c.query(refs + "; commit")

                while not self.stop.is_set():
                    k = next(keys)
                    both(
                        "insert into documents values (%d, %s, 'x')" % (k, org),
                        "select lokadb.put_refs('public.documents', '%s', '{%d}')" % (org, k),
                    )
                    self.wrote(org, added=[k])
                    if k % 2 == 0:
                        both(
                            "delete from documents where id = %d" % k,
                            "select lokadb.del_refs('public.documents', '%s', '{%d}')" % (org, k),
                        )
                        self.wrote(org, gone=[k])

        return direct_writer


@pytest.fixture
def traffic(world):
    t = Traffic(world)
    for n in range(2):
        for i, org in enumerate("123"):
            t.start(t.through_the_root(org), 100000 * (1 + i + 3 * n))
        t.start(t.directly("1", True), 1000000 + 100000 * n)
        t.start(t.directly("2", True), 2000000 + 100000 * n)
        t.start(t.directly("1", False), 3000000 + 100000 * n)
    yield t
    t.stop.set()
    for thread in t.threads:
        thread.join(30)


def test_live_traffic_is_never_reported(world, traffic):
    for _ in range(4):
        world.refs("diff")
    traffic.end()
    assert traffic.written > 50


def test_live_traffic_is_never_damaged(world, traffic):
    original = world.rows()
    first = {row for row in original if int(row[0]) <= 100}
    for n in range(4):
        world.sql("delete from documents__refs where id between %d and %d" % (20 * n + 1, 20 * n + 9))
        world.sql(
            "insert into documents__refs select %d + g, 1 + g %% 3 from generate_series(1, 10) g" % (50000 + 100 * n)
        )
        done = world.json("sync")
        assert len(keys(done["repaired"], "stale")) == 10 and len(keys(done["repaired"], "missing")) == 9
    traffic.end()
    assert world.rows() == first | traffic.alive
    assert world.agrees()
    world.refs("diff")


def test_keys_that_come_and_go_while_they_are_repaired(world):
    """The same few keys are deleted and made again through the root, and their refs spoilt, as fast as it goes."""
    stop, errors = threading.Event(), []

    def churn(org, key):
        try:
            with world.app() as c:
                c.query("set lokadb.tenant = '%s'" % org)
                while not stop.is_set():
                    c.query("insert into documents values (%d, %s, 'x') on conflict do nothing" % (key, org))
                    c.query("delete from documents where id = %d" % key)
        except Exception as e:
            errors.append(repr(e))

    def spoil():
        with wire.Conn(world.cluster.port, user="postgres", database=world.cloud) as c:
            while not stop.is_set():
                k = random.choice((71001, 71002, 73001, 73002))
                c.query("insert into documents__refs values (%d, %d) on conflict do nothing" % (k, k // 1000 - 70))
                c.query("delete from documents__refs where id in (71003, 73003)")
                time.sleep(0.05)

    threads = [
        threading.Thread(target=churn, args=(str(k // 1000 - 70), k))
        for k in (71001, 71002, 71003, 73001, 73002, 73003)
    ]
    threads.append(threading.Thread(target=spoil))
    for t in threads:
        t.start()
    try:
        for _ in range(4):
            world.refs("sync", "-table", "documents")
    finally:
        stop.set()
        for t in threads:
            t.join(30)
    assert not errors, errors
    world.refs("sync")
    assert world.agrees()


def test_an_open_transaction_is_waited_for_and_then_left_alone(world):
    generation = world.sql("select generation from lokadb.organizations where org = '1'").value
    world.sql("delete from documents__refs where id in (4, 5)")
    with world.app() as c:
        c.query("begin; select * from lokadb.enter('1', %s)" % generation)
        done = world.json("sync", "-timeout", "2", status=1)
        assert keys(done["repaired"], "missing") == ["4"]
        assert done["failed"][0]["what"] == "organization 1" and "app" in done["failed"][0]["reason"]
        c.query("commit")
    assert keys(world.json("sync")["repaired"], "missing") == ["5"]


def test_an_entry_that_is_being_put_again_stays(world):
    """A stale entry whose key comes back, in a transaction that takes no pause and is open while refs-sync runs."""
    world.sql("insert into documents__refs values (9001, 1), (9002, 1)")
    with world.app() as c:
        c.query("set lokadb.tenant = '1'; begin; insert into documents values (9001, 1, 'back')")
        run = world.start("refs-sync", "-db", world.dsn(world.cloud), "-json")
        time.sleep(2.5)
        assert run.poll() is None  # it waits
        c.query("commit")
        done = json.loads(run.communicate(timeout=30)[0])
    assert keys(done["repaired"], "stale") == ["9002"] and not done["left"]
    assert world.agrees()


def test_an_entry_that_is_being_put_again_directly_stays(world):
    """The same in the proxy's order: under the gate, row and entry before the two commits."""
    generation = world.sql("select generation from lokadb.organizations where org = '1'").value
    world.sql("insert into documents__refs values (9001, 1), (9002, 1)")
    with world.app() as c, world.direct("1") as d:
        c.query("begin; select * from lokadb.enter('1', %s)" % generation)
        d.query("begin; insert into documents values (9001, 1, 'back')")
        run = world.start("refs-sync", "-db", world.dsn(world.cloud), "-json")
        time.sleep(1)
        c.query("select lokadb.put_refs('public.documents', '1', '{9001}')")
        time.sleep(1.5)
        d.query("commit")
        assert run.poll() is None  # it waits for the pause
        c.query("commit")
        done = json.loads(run.communicate(timeout=30)[0])
    assert keys(done["repaired"], "stale") == ["9002"] and not done["left"]
    assert world.agrees()


@pytest.mark.parametrize("put", ["through the root", "directly"])
def test_an_entry_that_vanishes_before_it_is_locked_is_put_again(world, put):
    """The moment between the look and the removal in refs-sync, held open."""
    generation = world.sql("select generation from lokadb.organizations where org = '1'").value
    statement = {
        "through the root": "set lokadb.tenant = '1'; insert into documents values (9001, 1, 'back')",
        "directly": "begin; select * from lokadb.enter('1', %s); select lokadb.put_refs('public.documents', '1', '{9001, 9002}'); commit"
        % generation,
    }[put]
    world.sql("insert into documents__refs values (9001, 1)")
    with wire.Conn(world.cluster.port, user="postgres", database=world.cloud) as repair, world.app() as c:
        repair.query("begin; select * from lokadb.refs_hold('documents', '1', '{9001}')")
        c.send(wire.query(statement))
        eventually(lambda: world.cluster.backends("wait_event_type = 'Lock' and usename = 'app'"), 5, "it waits")
        repair.query("select * from lokadb.refs_remove('documents', '1', '{9001}'); commit")
        assert not c.ready().errors
    assert ("9001", "1") in world.entries()


@pytest.mark.parametrize("key, org", [("5", "1"), ("7", "3")])
def test_no_entry_for_a_row_that_is_being_deleted(world, key, org):
    """Past the proxy, moved and at home: the row is still there for others, but its transaction has deleted it."""
    world.sql("delete from documents__refs where id in (%s, 4)" % key)
    with world.app() as c:
        c.query("set lokadb.tenant = '%s'; begin; delete from documents where id = %s" % (org, key))
        run = world.start("refs-sync", "-db", world.dsn(world.cloud), "-json")
        time.sleep(2.5)
        assert run.poll() is None  # it waits for the row
        c.query("commit")
        done = json.loads(run.communicate(timeout=30)[0])
    assert keys(done["repaired"], "missing") == ["4"] and not done["left"]
    assert world.agrees()


def test_an_organization_whose_routing_changes_before_its_pause_is_left(world):
    generation = world.sql("select generation from lokadb.organizations where org = '1'").value
    world.sql("delete from documents__refs where id in (4, 5)")
    with world.app() as c:
        c.query("begin; select * from lokadb.enter('1', %s)" % generation)
        run = world.start("refs-sync", "-db", world.dsn(world.cloud), "-json")
        time.sleep(2)
        world.sql(
            "update lokadb.organizations set generation = default where org = '1'"
        )  # as a move there and back does
        c.query("commit")
        done = json.loads(run.communicate(timeout=30)[0])
    assert run.returncode == 1 and "moved meanwhile" in done["failed"][0]["reason"]
    assert keys(done["repaired"], "missing") == ["4"]
    assert keys(world.json("sync")["repaired"], "missing") == ["5"]


def test_killed_in_the_middle(make_world):
    w = make_world()
    w.set_up(APPLICATION % 60000, *TABLES)
    w.move("1")
    w.sql("delete from documents__refs where organization_id in (1, 3)")
    lacking, lowest = 24000, 24000
    for _ in range(3):
        run = w.start("refs-sync", "-db", w.dsn(w.cloud))
        goal = lowest - 1500
        count = lambda: 60000 - int(w.sql("select count(*) from documents__refs").value)
        eventually(lambda: count() <= goal, 30, "some entries are there")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        eventually(lambda: not w.cluster.backends("application_name = 'lokadb refs'"), 10, "its sessions end")
        lowest = count()
        assert 0 < lowest < lacking and w.entries() <= w.rows()
        assert w.sql("select count(*) from pg_locks where locktype = 'advisory'").value == "0"
    w.refs("sync")
    assert w.agrees()


def test_entries_only_change_for_the_owner(world):
    """The functions behind refs-sync are not for applications."""
    with world.app() as c:
        for call in (
            "refs_look('documents')",
            "refs_remove('documents', '1', '{1}')",
            "refs_add('documents', '1', '{1}')",
            "sequence_forward('documents', 's')",
        ):
            assert c.fails("select * from lokadb.%s" % call)["C"] == "42501"
        assert c.fails("select * from lokadb.moved")["C"] == "42501"
