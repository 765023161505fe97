"""Direct reads have the settings that the same client would have in the cloud: the role's, as they are now, and its own."""

import pytest

import routed_world
import wire
from harness import eventually, make_certificate
from routed_world import counts
from wire import extended, query

# Each column shows a setting.
SHOWN = (
    "select '2024-03-01 19:00:00+00'::timestamptz::text, '01.02.2024'::date - date '2024-01-01', (1::float8 / 3)::text,"
    " '36 hours'::interval::text, count(*) filter (where title = null) from documents where organization_id = 2"
)
ASKED = (
    {"TimeZone": "Asia/Kolkata", "DateStyle": "SQL, DMY", "extra_float_digits": "0"},
    {"TimeZone": "America/Lima", "options": "-c intervalstyle=iso_8601"},
    {},
)


@pytest.fixture(scope="module")
def world(cluster_of_session):
    made = routed_world.make(cluster_of_session)
    made.org_sql("2", "update documents set title = null where id = (select max(id) from documents)")
    yield made
    made.drop()


@pytest.fixture
def proxy(start, world):
    return routed_world.is_ready(start(**routed_world.settings(world)))


def shown(connection):
    return [connection.ask(batch).rows for batch in (query(SHOWN), extended(SHOWN))]


def past_the_proxy(world, params=None):
    with wire.Conn(world.cluster.port, user="app", database=world.cloud, params=params) as c:
        return shown(c)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_what_the_first_client_of_a_role_asks_for_is_its_own(proxy, world, order):
    clients = {n: proxy.connect(params=ASKED[n]) for n in order}
    expected = {n: past_the_proxy(world, ASKED[n]) for n in order}
    assert len({str(rows) for rows in expected.values()}) == 3
    for _ in range(2):
        for n in order:
            assert shown(clients[n]) == expected[n], ASKED[n]
    assert counts(proxy) == {"tenant-known": 12}


@pytest.mark.parametrize("whose", ["role app", "database %s"])
def test_other_settings_of_the_role_hold_when_its_servers_are_new(proxy, world, whose):
    whose = whose % world.cloud if "%" in whose else whose
    before = shown(proxy.connect())
    assert before == past_the_proxy(world)
    try:
        for setting in ("timezone = 'Asia/Kolkata'", "datestyle = 'SQL, DMY'", "extra_float_digits = 0", "transform_null_equals = on"):
            world.sql("alter %s set %s" % (whose, setting))
        expected = past_the_proxy(world)
        assert expected != before
        proxy.admin("reconnect")
        eventually(lambda: shown(proxy.connect()) == expected)
        assert shown(proxy.connect()) == expected
    finally:
        world.sql("alter %s reset all" % whose)
    proxy.admin("reconnect")
    eventually(lambda: shown(proxy.connect()) == before)
    assert set(counts(proxy)) == {"tenant-known"}


def test_a_schema_of_the_roles_new_path_hides_the_table(proxy, world):
    titles = "select title from documents where organization_id = 2 order by 1 limit 1"
    assert proxy.connect().value(titles) != "hidden"
    world.sql("create schema early; create table early.documents as select 2 as organization_id, 'hidden' as title")
    world.sql("grant usage on schema early to app; grant select on early.documents to app")
    world.sql("alter role app set search_path = early, public")
    try:
        proxy.admin("reconnect")
        eventually(lambda: proxy.connect().value(titles) == "hidden")
        assert proxy.connect().value(titles) == "hidden"
    finally:
        world.sql("alter role app reset all; drop schema early cascade")


@pytest.mark.parametrize("params", [{}, {"options": "-c row_security=off"}, {"row_security": "off"}])
def test_row_security_that_is_off_refuses_reads(start, world, params):
    """SPEC S2: a setting that follows the client and has no meaning in the organization's database."""
    p = routed_world.is_ready(start(**routed_world.settings(world, track_extra_parameters="row_security")))
    client, sql = p.connect(params=params), "select count(*) from documents where organization_id = 2"
    if not params:
        assert client.value(sql) != "0"
        client.query("set row_security = off")
    for batch in (query(sql), extended(sql)):
        assert client.ask(batch).codes == ["42501"]
    assert counts(p)["setting-changed"] == 2
    client.query("set row_security = on")
    assert client.value(sql) != "0"


@pytest.mark.parametrize("name", ["postgresql.crt", "root.crt"])
def test_a_feed_takes_nothing_from_the_home_of_who_started_the_proxy(prepare, world, name):
    p = prepare(**routed_world.settings(world, server_tls_sslmode="require"))
    folder = p.folder / ".postgresql"
    folder.mkdir()
    certificate, _ = make_certificate(folder, "other")  # nobody's who is concerned
    certificate.rename(folder / name)
    p.launch(HOME=str(p.folder))
    routed_world.is_ready(p)
    encrypted = "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'lokadb feed'"
    assert world.cluster.sql(encrypted).rows == [("t",)]
