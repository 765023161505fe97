"""Round trips of direct reads, counted by relays on both links (SPEC D8; ARCHITECTURE of the design, "Round trips")."""

import pytest

import relay
import routed_world
from routed_world import counts, documents
from wire import bind, close, describe, execute, extended, parse, query, sync

DELAY = 0.002  # so that what belongs together arrives together


@pytest.fixture(scope="module")
def far(cluster_of_session):
    with relay.Relay(cluster_of_session.port) as link:
        yield link


@pytest.fixture(scope="module")
def world(cluster_of_session, far):
    made = routed_world.make(cluster_of_session, port=far.port)
    yield made
    made.drop()


class Links:
    """The two links of a proxy whose connections are warm."""

    def __init__(self, far, near, proxy, world):
        self.far, self.near, self.proxy, self.world = far, near, proxy, world
        self.client = proxy.connect()
        for org in ("2", "3"):
            self.client.ask(query("select id from documents where organization_id = %s limit 1" % org))
        far.delay = near.delay = DELAY

    def trips_of(self, batch):
        """(far, near, the answer) of one batch."""
        before = counts(self.proxy)
        self.far.reset(), self.near.reset()
        answer = self.client.ask(batch)
        far, near = self.far.trips("customers_app"), self.near.trips("app")
        assert self.far.trips("customers_fdw") == 0, "went by postgres_fdw"
        after = counts(self.proxy)
        went = sum(after.get(r, 0) - before.get(r, 0) for r in ("tenant-known", "key-found"))
        assert went == 1, "did not go direct: %s" % {r: n for r, n in after.items() if n != before.get(r)}
        return far, near, answer


@pytest.fixture
def links(start, world, far):
    far.delay = 0
    with relay.Relay(world.cluster.port) as near:
        proxy = routed_world.is_ready(start(**routed_world.settings(world, near.port, default_pool_size=1)))
        yield Links(far, near, proxy, world)
        far.delay = 0


KNOWN = "select title from documents where organization_id = 2 and id > %d order by id limit 3"


def test_a_simple_read_costs_one_far_trip(links):
    for n in range(3):
        far, near, answer = links.trips_of(query(KNOWN % n))
        assert (far, near) == (1, 1) and len(answer.rows) == 3


def test_an_extended_read_costs_one_far_trip(links):
    for n in range(3):
        far, near, answer = links.trips_of(extended(KNOWN.replace("%d", "$1"), [n]))
        assert (far, near) == (1, 1) and answer.kinds == "12TDDDCZ"
    far, near, answer = links.trips_of(parse("", KNOWN % 1) + bind("", "") + execute() + sync())
    assert (far, near) == (1, 1) and answer.kinds == "12DDDCZ"
    far, near, answer = links.trips_of(parse("", KNOWN % 1) + bind("", "") + describe("P") + execute("", 2) + sync())
    assert (far, near) == (1, 1) and answer.kinds == "12TDDsZ"


def test_a_named_statement_costs_one_far_trip_at_its_first_use_and_later(links):
    sql = KNOWN.replace("%d", "$1")
    far, near, answer = links.trips_of(extended(sql, [1], name="s"))
    assert (far, near) == (1, 1) and answer.kinds == "12TDDDCZ"
    for kinds, batch in (
        ("2DDDCZ", bind("", "s", [2]) + execute() + sync()),
        ("2TDDDCZ", bind("", "s", [3]) + describe("P") + execute() + sync()),
        ("t" + "T2DDDCZ", describe("S", "s") + bind("", "s", [4]) + execute() + sync()),
    ):
        far, near, answer = links.trips_of(batch)
        assert (far, near) == (1, 1) and answer.kinds == kinds
    # Prepared by itself, as drivers do; the organization learns it with its first Bind.
    links.client.ask(close("S", "s") + parse("t", sql + " offset 0") + describe("S", "t") + sync())
    for n in range(3):
        far, near, answer = links.trips_of(bind("", "t", [n]) + execute() + sync())
        assert (far, near) == (1, 1) and answer.kinds == "2DDDCZ"


def test_a_key_is_looked_up_once(links):
    keys = [k for k, _ in documents(links.world, "3")]
    for key in keys[:3]:
        assert links.trips_of(query("select title from documents where id = %s" % key))[:2] == (1, 2)
        assert links.trips_of(query("select title from documents where id = %s" % key))[:2] == (1, 1)
        assert links.trips_of(extended("select title from documents where id = $1", [key]))[:2] == (1, 1)
    for key in keys[3:6]:
        assert links.trips_of(extended("select title from documents where id = $1", [key]))[:2] == (1, 2)


def test_a_pipeline_of_one_organization_costs_one_far_trip(links):
    keys = [k for k, _ in documents(links.world, "2")[:10]]
    by_key = b"".join(parse("", "select id from documents where id = $1") + bind("", "", [k]) + execute() for k in keys)
    for near_trips in (2, 1):  # all keys are looked up in one
        far, near, answer = links.trips_of(by_key + sync())
        assert (far, near) == (1, near_trips)
        assert [r[0] for r in answer.rows] == keys and answer.kinds == "12DC" * 10 + "Z"
    links.client.ask(parse("p", KNOWN.replace("%d", "$1")) + sync())
    for _ in range(2):
        far, near, answer = links.trips_of(b"".join(bind("", "p", [n]) + execute() for n in range(10)) + sync())
        assert (far, near) == (1, 1) and answer.kinds == "2DDDC" * 10 + "Z"


def test_an_error_costs_no_more(links):
    far, near, answer = links.trips_of(query("select 1 / (id - id) from documents where organization_id = 2"))
    assert (far, near) == (1, 1) and answer.codes == ["22012"]


def test_a_large_answer_costs_no_more(links):
    """It fills the buffer in which answers are held back while the cloud is asked."""
    sql = "select repeat('x', 1000) from documents d, documents e where d.organization_id = 2 and e.organization_id = 2"
    far, near, answer = links.trips_of(query(sql))
    assert (far, near) == (1, 1) and len(answer.rows) == 1600


def test_a_link_that_is_cut_is_an_error_and_then_as_before(links):
    """At each message of the answer, from either server; what is told to the client is never half an answer."""
    whole = links.client.ask(query(KNOWN % 1))
    for number in range(1, 8):
        links.far.cut_at(relay.SERVER, number, user="customers_app")
        answer = links.client.ask(query(KNOWN % 1))
        if not answer.codes:  # the answer has six messages
            assert answer.rows == whole.rows and number > 6
            links.client.ask(query(KNOWN % 1))
        else:
            assert answer.codes == ["08006"], number
        again = links.client.ask(query(KNOWN % 1))
        assert again.rows == whole.rows, number
