"""What a plugin gets wrong, and what the client is told then: nobody waits for ever, and no transaction is lost unheard."""

import pytest

import wire
from wire import extended, query

PLACE = "select name from place"

GREETINGS = {
    "one column": "select 'x'",
    "three columns": "select '', '', ''",
    "no columns that can be read": "select '', '12.x=..'",
    "two rows": "select 'closed to you', '' union all select '', '' order by 1 desc",
    "no row": "select '', '' where false",
    "data wanted": "copy place from stdin",
    "the end of the connection": "select pg_terminate_backend(pg_backend_pid())::text, ''",
    "an open transaction": "begin; select '', ''",
}


@pytest.mark.parametrize("greeting", GREETINGS.values(), ids=GREETINGS)
def test_a_bad_answer_to_the_greeting_is_told_and_not_asked_for_at_once_again(routed, greeting):
    proxy = routed()
    client = proxy.connect()
    for _ in range(2):
        assert client.ask(query("/*direct o1*/ /*greet %s*/ %s" % (greeting, PLACE))).codes == ["08006"]
    assert proxy.log().count("is not used: ") == 1
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_a_greeting_without_an_end_ends(routed):
    client = routed(server_connect_timeout=1).connect()
    sql = "/*direct o1*/ /*greet select '', '' from pg_sleep(6)*/ " + PLACE
    assert client.ask(query(sql)).codes == ["08006"]


@pytest.mark.parametrize("form", [query, extended])
@pytest.mark.parametrize("check", ["", "/*check select 1*/ "])
def test_a_direct_batch_leaves_no_transaction_that_the_client_believes_in(routed, form, check):
    client = routed().connect()
    answer = client.ask(form("/*direct o1*/ %sbegin" % check))
    assert (answer.codes, answer.status) == (["25001"], "I")
    assert client.ask(query("rollback")).notices == ["there is no transaction in progress"]


def test_an_error_in_a_transaction_that_a_direct_batch_began(routed):
    client = routed().connect()
    answer = client.ask(query("/*direct o1*/ begin; select 1/0"))
    assert (answer.codes, answer.status) == (["22012"], "I")
    assert client.value("/*direct o1*/ " + PLACE) == "org1"


def test_a_step_that_wants_data_ends_the_session_instead_of_keeping_it(routed):
    proxy = routed()
    client = proxy.connect()
    client.send(query("/*ask copy scratch from stdin*/ select 1"))
    with pytest.raises(wire.Closed):
        client.ready()
    proxy.wait_log("a plugin's statement asks for data")
    assert proxy.connect().value(PLACE) == "cloud"


STALE = "/*ask do 'begin raise sqlstate ''LK001''; end'*/ select 1"


def test_old_knowledge_inside_of_a_transaction_ends_it(routed):
    """With the code by which clients know that they may try again, not with that of whatever they send next."""
    client = routed().connect()
    client.query("begin")
    answer = client.ask(query(STALE))
    assert (answer.codes, answer.status) == (["40001"], "E")
    assert client.ask(query("rollback")).status == "I"
    assert client.ask(query(STALE)).codes == ["40001"]
