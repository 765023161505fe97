"""A Query, or a FunctionCall, behind messages of an extended batch that has no Sync yet: what PostgreSQL answers."""

import pytest

from routed_world import proxy, world  # noqa: F401
from wire import bind, describe, execute, function_call, parse, query, sync

READ = "select id from documents where organization_id = 2 order by id"
BY_KEY = "select title from documents where id = $1"
NOW = 1299  # now()

SEQUENCES = {
    "no statement": bind("", "nobody") + query(READ) + sync(),
    "no portal": execute("nobody") + query(READ) + sync(),
    "no SQL": parse("", "selekt") + query(READ) + sync(),
    "a name that is taken": parse("taken", BY_KEY) + bind("", "taken", ["2"]) + describe("P") + execute() + query(READ) + sync(),
    "an error of a row": parse("", "select 1 / (id - id) from documents where organization_id = 2") + bind("", "") + execute() + query(READ) + sync(),
    "a statement that the server has": parse("again", BY_KEY) + query(READ) + sync(),
    "no error": parse("", READ) + bind("", "") + execute() + query(READ) + sync(),
    "a function call": bind("", "nobody") + function_call(NOW) + sync(),
    "in a transaction": parse("", "begin") + bind("", "") + execute() + bind("", "nobody") + query(READ) + query("commit") + sync(),
}


def answers(connect, messages):
    """Kinds, SQLSTATEs and rows of everything up to the answer to a last Query."""
    with connect(timeout=5) as client:
        client.ask(parse("taken", BY_KEY) + sync())
        client.send(messages + query("rollback") + query("select 'the end'"))
        got = []
        while "the end" not in str(got[-2:-1]) or got[-1][0] != "C":
            m = client.read()
            if m.kind not in "TN":  # tables have other numbers there
                got.append((m.kind, m.fields()["C"] if m.kind == "E" else m.body))
        return got


@pytest.mark.parametrize("name", SEQUENCES)
def test_it_is_answered_as_the_server_does(proxy, world, name):  # noqa: F811
    p = proxy()
    got = answers(p.connect, SEQUENCES[name])
    assert got == answers(lambda **kw: world.cluster.connect(user="app", database=world.cloud, **kw), SEQUENCES[name])
    assert p.connect().query(READ).errors == []
