"""A cloud with moved organizations, and a proxy with the plugins refs and router in front of it."""

import pytest

import harness
from lokadb_world import APPLICATION, TABLES, World


def make(cluster, organizations=("2", "3"), application=APPLICATION % 200, tables=TABLES, port=None):
    """port: of a relay in front of the organizations' databases."""
    world = World(cluster)
    world.set_up(application, *tables)
    cluster.sql("do $$begin create role router login; exception when duplicate_object then null; end$$")
    world.run("init", "-db", world.dsn(world.cloud), "-control-user", "router")
    for org in organizations:
        world.move(org, port)
    return world


def settings(world, port=None, router=None, **options):
    """For harness.Proxy. port: of a relay in front of the cloud."""
    return dict(
        databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (port or world.cluster.port, world.cloud)},
        pool_mode="transaction",
        plugins="refs, router",
        sections={
            "refs": {"library": harness.plugin_file("refs")},
            "router": {"library": harness.plugin_file("router"), "control_user": "router", **(router or {})},
            "customers_app": {"user": "customers_app", "password": "app-pw"},
        },
        **options
    )


# Fixtures, for those who import them.


@pytest.fixture(scope="module")
def world(cluster_of_session):
    made = make(cluster_of_session)
    yield made
    made.drop()


@pytest.fixture
def proxy(start, world):
    return lambda **options: is_ready(start(**{**settings(world), **options}))


def is_ready(proxy):
    proxy.wait_log("feed of router from app: up to date")
    return proxy


def documents(world, org):
    """Keys and titles, past the proxy."""
    database = world.org_database.get(org, world.cloud)
    sql = "select id, title from documents where organization_id = %s order by id" % org
    return world.cluster.sql(sql, database).rows


def counts(proxy):
    """Reasons of the router and how often each was given."""
    return {r["reason"]: int(r["count"]) for r in proxy.show("lokadb_routes")}
