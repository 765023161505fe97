"""Named statements of the protocol, in transaction mode, where the server may be another one each time."""

import random
import threading

import pytest

import wire
from harness import eventually
from wire import bind, close, describe, execute, extended, flush, parse, query, sync


@pytest.fixture
def proxy(start):
    return start(pool_mode="transaction", default_pool_size=2, max_prepared_statements=5)


def prepare(client, name, sql):
    assert client.ask(parse(name, sql) + sync()).kinds == "1Z"


def run(client, name, params=()):
    answer = client.ask(bind("", name, params) + execute() + sync())
    assert not answer.errors, answer
    return answer.rows[0][0]


def on_server(client):
    """Statements on the server that this client would get."""
    return [
        r
        for (r,) in client.query(
            "select statement from pg_prepared_statements where statement like '%/*p*/%' order by 1"
        ).rows
    ]


def test_a_statement_follows_its_client_to_another_server(proxy):
    client, other = proxy.connect(), proxy.connect()
    prepare(client, "mine", "select pg_backend_pid()")
    pids = {run(client, "mine")}
    other.query("begin")  # takes the server used last
    pids.add(run(client, "mine"))
    other.query("commit")
    assert len(pids) == 2


def test_two_clients_use_the_same_name_for_different_statements(proxy):
    first, second = proxy.connect(), proxy.connect()
    prepare(first, "s", "select 'first'")
    prepare(second, "s", "select 'second'")
    for _ in range(3):
        assert (run(first, "s"), run(second, "s")) == ("first", "second")


def test_two_clients_share_the_same_statement_on_a_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    clients = [proxy.connect() for _ in range(4)]
    for number, client in enumerate(clients):
        prepare(client, "name%d" % number, "select 'same' /*p*/")
        assert run(client, "name%d" % number) == "same"
    assert len(on_server(clients[0])) == 1


def test_the_oldest_statements_leave_the_server(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, max_prepared_statements=3)
    client = proxy.connect()
    for number in range(8):
        prepare(client, "s%d" % number, "select 'v%d' /*p*/" % number)
    assert len(on_server(client)) == 3
    assert run(client, "s0") == "v0"  # prepared again behind the scenes
    assert len(on_server(client)) == 3
    assert [run(client, "s%d" % n) for n in range(8)] == ["v%d" % n for n in range(8)]


def test_an_unknown_name_is_sqlstate_26000(proxy):
    client = proxy.connect()
    client.send(bind("", "nobody") + execute() + sync())
    assert client.read_until("E").codes == ["26000"]


def test_describe_of_a_named_statement_on_a_server_that_lacks_it(proxy):
    client, other = proxy.connect(), proxy.connect()
    prepare(client, "d", "select $1::int as answer")
    other.query("begin")
    answer = client.ask(describe("S", "d") + sync())
    assert answer.kinds == "tTZ"
    assert answer.columns == [("answer", 23)]
    other.query("commit")


def test_close_makes_the_name_free_again(proxy):
    client = proxy.connect()
    prepare(client, "s", "select 'old'")
    assert client.ask(close("S", "s") + sync()).kinds == "3Z"
    prepare(client, "s", "select 'new'")
    assert run(client, "s") == "new"
    assert client.ask(close("S", "never there") + sync()).kinds == "3Z"


def test_a_name_prepared_twice_is_refused(proxy):
    client = proxy.connect()
    prepare(client, "s", "select 1")
    client.send(parse("s", "select 2") + sync())
    error = client.read_until("E").errors[0]
    assert error["M"] in ("prepared statement name is already in use", 'prepared statement "s" already exists')


@pytest.mark.parametrize("command", ["deallocate all", "discard all"])
def test_deallocate_all_forgets_the_names(proxy, command):
    client, other = proxy.connect(), proxy.connect()
    prepare(client, "s", "select 'one'")
    prepare(other, "s", "select 'kept'")
    client.query(command)
    prepare(client, "s", "select 'two'")
    assert run(client, "s") == "two"
    assert run(other, "s") == "kept"


def test_a_failing_parse_leaves_no_name_behind(proxy):
    client = proxy.connect()
    assert client.ask(parse("s", "select no_such_column") + sync()).codes == ["42703"]
    prepare(client, "s", "select 'now'")
    assert run(client, "s") == "now"


def test_a_parse_skipped_by_an_error_is_not_taken_as_done(proxy):
    client, other = proxy.connect(), proxy.connect()
    answer = client.ask(parse("", "select bad") + parse("skipped", "select 'x'") + sync())
    assert answer.kinds == "EZ"
    prepare(other, "mine", "select 'x'")  # the same text: it must really be prepared now
    assert run(other, "mine") == "x"


def test_a_faked_answer_comes_at_its_place_in_the_pipeline(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    prepare(first, "a", "select 'shared'")
    second.send(
        parse("", "select 'before'")
        + bind("", "")
        + execute()
        + parse("b", "select 'shared'")
        + bind("", "b")
        + execute()
        + close("S", "b")
        + parse("", "select 'after'")
        + bind("", "")
        + execute()
        + sync()
    )
    answer = second.ready()
    assert answer.kinds == "12DC12DC312DCZ"
    assert [r for (r,) in answer.rows] == ["before", "shared", "after"]


def test_parse_and_flush_of_a_known_statement_is_answered_at_once(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first, second = proxy.connect(), proxy.connect()
    prepare(first, "a", "select 'shared'")
    second.send(parse("b", "select 'shared'") + flush())
    assert second.read(timeout=3).kind == "1"
    assert second.ask(bind("", "b") + execute() + sync()).rows == [("shared",)]


def test_parameter_types_make_a_different_statement(proxy):
    client, other = proxy.connect(), proxy.connect()
    client.ask(parse("s", "select pg_typeof($1)::text", [23]) + sync())
    other.ask(parse("s", "select pg_typeof($1)::text", [25]) + sync())
    assert run(client, "s", [1]) == "integer"
    assert run(other, "s", [1]) == "text"


def test_statements_and_a_parameter_that_must_be_set_first(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    first = proxy.connect(params={"application_name": "one"})
    second = proxy.connect(params={"application_name": "two"})
    for client in (first, second):
        prepare(client, "s", "select current_setting('application_name')")
    for _ in range(3):
        assert (run(first, "s"), run(second, "s")) == ("one", "two")


def test_sql_prepare_is_left_alone(start):
    client = start(pool_mode="session").connect()
    client.query("prepare here as select 'sql level'")
    assert client.value("execute here") == "sql level"


def test_with_zero_names_are_passed_on_as_they_are(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, max_prepared_statements=0)
    client = proxy.connect()
    client.query("begin")
    prepare(client, "as it is", "select 1 /*p*/")
    assert client.value("select name from pg_prepared_statements where statement like '%/*p*/%'") == "as it is"
    client.query("commit")


def test_with_zero_they_do_not_reach_the_next_client(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, max_prepared_statements=0)
    one, two = proxy.connect(), proxy.connect()
    one.query("begin")
    prepare(one, "s", "select 'one' /*p*/")
    assert run(one, "s") == "one"
    one.query("commit")
    assert on_server(two) == []
    prepare(two, "s", "select 'two' /*p*/")
    prepare(one, "s", "select 'one again' /*p*/")


def test_with_zero_a_pinned_client_keeps_them(start):
    proxy = start(pool_mode="transaction", default_pool_size=2, max_prepared_statements=0, pin_session_state=1)
    one, two = proxy.connect(), proxy.connect()
    for client, name in ((one, "one"), (two, "two")):
        prepare(client, "s", "select '%s' /*p*/" % name)
    for _ in range(2):
        assert (run(one, "s"), run(two, "s")) == ("one", "two")


def test_session_mode_passes_names_on_as_they_are(start):
    client = start(max_prepared_statements=10).connect()
    prepare(client, "as it is", "select 1 /*p*/")
    assert client.value("select name from pg_prepared_statements where statement like '%/*p*/%'") == "as it is"


def test_the_counters_of_parses_and_binds(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    clients = [proxy.connect() for _ in range(3)]
    for client in clients:
        prepare(client, "s", "select 'counted'")
        run(client, "s")
        run(client, "s")
    row = proxy.show("stats", database="app")[0]
    assert (row["total_client_parse_count"], row["total_server_parse_count"], row["total_bind_count"]) == (
        "3",
        "1",
        "6",
    )


def test_show_clients_counts_the_prepared_statements(proxy):
    client = proxy.connect()
    for number in range(4):
        prepare(client, "s%d" % number, "select %d" % number)
    assert [r["prepared_statements"] for r in proxy.show("clients", database="app")] == ["4"]


@pytest.mark.parametrize("workers", [1, 2])
def test_many_clients_with_errors_in_deep_pipelines(start, workers):
    proxy = start(pool_mode="transaction", default_pool_size=3, max_prepared_statements=4, worker_threads=workers)
    failures = []

    def work(seed):
        try:
            dice, client, known = random.Random(seed), proxy.connect(), {}
            for _ in range(60):
                data, expected = b"", []
                broken = False
                for _ in range(10):
                    text = dice.choice("abcdefgh")
                    if dice.random() < 0.1 and not broken:
                        data += parse("", "select bad")
                        broken = True
                        continue
                    if text not in known:
                        data += parse("n" + text, "select '%s', $1::int" % text)
                        if not broken:
                            known[text] = True
                    value = dice.randrange(1000)
                    data += bind("", "n" + text, [value]) + execute()
                    if broken and text not in known:
                        # The name may not exist after this batch: the client must not use it again.
                        continue
                    if not broken:
                        expected.append((text, str(value)))
                answer = client.ask(data + sync())
                assert answer.rows == expected, (answer, expected)
                assert answer.codes == (["42703"] if broken else [])
            client.terminate()
        except Exception as e:  # told by the main thread
            failures.append("%d: %r" % (seed, e))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_statement_that_changed_its_result_type_is_an_error_then_works_again(start, cluster):
    cluster.sql("drop table if exists shape; create table shape (a int); grant all on shape to public")
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client = proxy.connect()
    prepare(client, "s", "select * from shape")
    client.ask(bind("", "s") + execute() + sync())
    cluster.sql("alter table shape add b int")
    assert client.ask(bind("", "s") + execute() + sync()).codes == ["0A000"]
    client.query("deallocate all")
    prepare(client, "s", "select * from shape")
    assert not client.ask(bind("", "s") + execute() + sync()).errors
    cluster.sql("drop table shape")


# ------------------------------------------------------------------ names in several batches sent at once


FAILING = parse("", "select 1/0") + bind("", "") + execute()


def moved_away(proxy, client):
    """The client's next batch meets a server that has none of its statements."""
    holder = proxy.connect()
    holder.query("begin")
    return holder


def test_a_statement_is_there_in_the_batch_after_one_that_failed(proxy):
    client = proxy.connect()
    prepare(client, "y", "select 77")
    moved_away(proxy, client)
    use = bind("", "y") + execute() + sync()
    client.send(FAILING + use + use)
    answer = client.ready(2)
    assert (answer.kinds, answer.codes, answer.rows) == ("1EZ2DCZ", ["22012"], [("77",)])


def test_a_parse_that_the_server_skipped_has_made_no_statement(proxy):
    client, other = proxy.connect(), proxy.connect()
    text = "insert into scratch values (4711)"
    prepare(other, "known", text)
    client.send(FAILING + parse("ins", text) + sync() + bind("", "ins") + execute() + sync())
    assert client.ready(2).codes == ["22012", "26000"]
    assert client.value("select count(*) from scratch where id = 4711") == "0"


def test_a_close_that_the_server_skipped_has_closed_nothing(proxy):
    client = proxy.connect()
    prepare(client, "kept", "select 79")
    client.send(FAILING + close("S", "kept") + sync() + bind("", "kept") + execute() + sync())
    answer = client.ready(2)
    assert (answer.codes, answer.rows) == (["22012"], [("79",)])


@pytest.mark.parametrize("command", ["deallocate all", "discard all"])
def test_statements_made_right_behind_a_deallocate_all_are_there(start, command):
    proxy = start(pool_mode="transaction", default_pool_size=1, max_prepared_statements=5)
    client = proxy.connect()
    prepare(client, "s1", "select 41")
    client.send(query(command) + parse("s9", "select 41") + bind("", "s9") + execute() + sync())
    answer = client.ready(2)
    assert (answer.codes, answer.rows) == ([], [("41",)])
    client.send(query(command) + parse("s3", "select 43") + sync())
    client.ready(2)
    assert run(client, "s3") == "43"
    other = proxy.connect()
    prepare(other, "mine", "select 43")  # the proxy knows that this server has it
    assert run(other, "mine") == "43"


@pytest.mark.parametrize("skipped", [bind("", ""), parse("", "select 'mine'"), describe("S", "")])
def test_an_unnamed_statement_of_another_client_never_runs(start, skipped):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    other, client = proxy.connect(), proxy.connect()
    other.ask(parse("", "select 'secret'") + sync())
    assert client.ask(bind("", "no such") + skipped + sync()).codes == ["26000"]
    answer = client.ask(bind("", "") + execute() + sync())
    assert (answer.codes, answer.rows) == (["26000"], [])


def leave_free(clients, number):
    """Only the server of this one of them, and without a message that would end an unnamed statement."""
    free = clients[number]
    for c, sql in [(c, "begin") for c in clients if c is not free] + [(free, "rollback")]:
        assert c.ask(extended(sql, name="%s %s" % (sql, random.random()))).status == ("I" if c is free else "T")


@pytest.mark.parametrize("use", [bind("", "") + execute() + sync(), describe("S", "") + sync()], ids=["bind", "describe"])
def test_an_unnamed_statement_that_was_replaced_on_another_server_never_runs(start, use):
    proxy = start(pool_mode="transaction", default_pool_size=2)
    client, *others = (proxy.connect() for _ in range(3))
    for c in others:
        c.ask(extended("begin", name="b"))
    for number, sql in enumerate(("select 'old'", "select 'new'")):
        leave_free(others, number)
        assert client.ask(parse("", sql) + sync()).kinds == "1Z"
    leave_free(others, 0)
    answer = client.ask(use)
    assert (answer.codes, answer.rows) == (["26000"], [])
    leave_free(others, 1)
    assert client.ask(bind("", "") + execute() + sync()).rows == [("new",)]


NO_SUCH = bind("", "no such")


def extended_deallocate(name):
    return parse("", "DEALLOCATE " + name) + bind("", "") + execute() + sync()


@pytest.mark.parametrize("form", [lambda name: query("deallocate " + name + ";"), extended_deallocate], ids=["simple", "extended"])
def test_sql_deallocate_of_a_statement_prepared_by_message(start, form):
    """As PDO and psycopg 3 send it."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    client, other = proxy.connect(), proxy.connect()
    for c in (client, other):
        prepare(c, "s1", "select 1")
        prepare(c, "S2", "select 2")
    for name in ("s1", '"S2"'):
        answer = client.ask(form(name))
        assert (answer.tags, answer.codes, answer.status) == (["DEALLOCATE"], [], "I")
        assert client.ask(form(name)).codes == ["26000"]
    assert client.ask(bind("", "s1") + execute() + sync()).codes == ["26000"]
    assert (run(other, "s1"), run(other, "S2")) == ("1", "2")
    prepare(client, "s1", "select 3")
    assert run(client, "s1") == "3"
    # Inside transactions it takes part in nothing, and a failed one refuses it.
    client.query("begin")
    answer = client.ask(form("s1"))
    assert (answer.tags, answer.status) == (["DEALLOCATE"], "T")
    assert client.fails("select 1/0")["C"] == "22012"
    assert client.ask(form("s1")).codes == ["25P02"]
    client.query("rollback")


def test_sql_deallocate_in_a_failed_transaction_keeps_the_statement(start):
    client = start(pool_mode="transaction", default_pool_size=1).connect()
    prepare(client, "s1", "select 1")
    for form in (query("deallocate s1"), extended_deallocate("s1")):
        client.query("begin")
        client.fails("select 1/0")
        assert client.ask(form).codes == ["25P02"]
        client.query("rollback")
        assert run(client, "s1") == "1"


def test_sql_deallocate_that_is_parsed_and_never_run(start):
    client = start(pool_mode="transaction", default_pool_size=1).connect()
    for _ in range(3):
        prepare(client, "s1", "select 1")
        assert client.ask(parse("", "deallocate s1") + sync()).kinds == "1Z"
    prepare(client, "s1", "select 5")
    assert run(client, "s1") == "5"


def test_sql_deallocate_in_pipelines(start):
    client = start(pool_mode="transaction", default_pool_size=1).connect()
    prepare(client, "s1", "select 1")
    client.send(bind("", "s1") + execute() + sync() + extended_deallocate("s1") + parse("s1", "select 2") + bind("", "s1") + execute() + sync())
    answer = client.ready(3)
    assert (answer.rows, answer.codes) == ([("1",), ("2",)], [])
    client.send(query("select 'a'") + query("deallocate s1") + query("select 'b'"))
    answer = client.ready(3)
    assert [r for (r,) in answer.rows] == ["a", "b"]


def test_errors_call_a_statement_what_the_client_calls_it(start):
    client = start(pool_mode="transaction", default_pool_size=1).connect()
    prepare(client, "mine", "select $1::int")
    answer = client.ask(bind("", "mine", ["1", "2"]) + execute() + sync())
    text = answer.errors[0]["M"]
    assert '"mine"' in text and "PGBOUNCER" not in text


def test_an_unnamed_statement_sent_behind_a_failed_batch_is_the_clients(start):
    """The failed batch is taken back when the next one's Parse is under way already."""
    proxy = start(pool_mode="transaction", default_pool_size=1)
    other, client = proxy.connect(), proxy.connect()
    other.ask(parse("", "select 'other'") + sync())
    client.send(NO_SUCH + parse("", "select 'skipped'") + sync() + parse("", "select 'mine'"))
    client.ready()
    client.send(sync())
    client.ready()
    answer = other.ask(bind("", "") + execute() + sync())
    assert (answer.codes, answer.rows) == (["26000"], [])


def test_an_unnamed_statement_of_the_next_batch_can_be_used(start):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    proxy.connect().ask(parse("", "select 'other'") + sync())
    client = proxy.connect()
    client.send(NO_SUCH + parse("", "select 'one'") + bind("", "") + execute() + sync() + parse("", "select 'two'"))
    assert client.ready().kinds == "EZ"
    answer = client.ask(bind("", "") + execute() + sync())
    assert (answer.kinds, answer.rows) == ("12DCZ", [("two",)])


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize("use", [bind("", "") + execute(), describe("S", "")])
def test_a_batch_behind_a_failed_one_does_not_meet_another_clients_unnamed_statement(start, use, pause):
    proxy = start(pool_mode="transaction", default_pool_size=1)
    other, client = proxy.connect(), proxy.connect()
    other.ask(parse("", "select 'secret' as secret") + sync())
    client.send(NO_SUCH + parse("", "select 'skipped'") + sync())
    if pause:
        client.ready()
    client.send(use + sync())
    answer = client.ready(1 if pause else 2)
    assert answer.codes[-1] == "26000"
    assert answer.rows == []


MALFORMED = {
    "Parse without an end": wire.message("P", b"abc"),
    "Parse with types missing": wire.message("P", b"abc\0select 1\0\0\5\0"),
    "Parse with something behind it": wire.message("P", b"ab2\0select 1\0\0\0garbage"),
    "empty Bind": wire.message("B"),
    "empty Describe": wire.message("D"),
    "Describe without an end": wire.message("D", b"Sabc"),
    "empty Close": wire.message("C"),
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_messages_are_errors_of_the_server(proxy, message):
    client = proxy.connect()
    answer = client.ask(message + sync())
    assert (answer.kinds, answer.codes) == ("EZ", ["08P01"])
    assert client.value("select 1") == "1"


@pytest.mark.parametrize("small", [75, 4096])
def test_an_answer_given_here_follows_a_long_one_of_the_server(start, small):
    proxy = start(pool_mode="transaction", default_pool_size=1, pkt_buf=small)
    client = proxy.connect()
    columns = 5 if small == 75 else 1600
    prepare(client, "wide", "select " + ",".join("1 as a%060d" % n for n in range(columns)))
    prepare(client, "z", "select 7")
    client.send(describe("S", "wide") + parse("again", "select 7") + flush())
    assert client.read_until("1").kinds == "tT1"
    client.ask(sync())


def test_a_parse_between_an_error_and_its_sync_when_the_servers_list_is_full(start):
    proxy = start(pool_mode="transaction", default_pool_size=1, max_prepared_statements=3)
    client = proxy.connect()
    for number in range(3):
        prepare(client, "s%d" % number, "select %d" % number)
    client.send(parse("", "select nothing_there") + flush())
    client.read_until("E")
    answer = client.ask(parse("late", "select 'late'") + bind("", "late") + execute() + sync())
    assert answer.kinds == "Z"
    assert client.ask(bind("", "late") + sync()).codes == ["26000"]
    for number in range(3):
        assert run(client, "s%d" % number) == str(number)
