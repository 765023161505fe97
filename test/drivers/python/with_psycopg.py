"""psycopg 3, synchronous: automatic preparation and its DEALLOCATE, pipelines, binary, cursors, COPY, savepoints, cancel."""

import datetime
import decimal
import threading

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tell import DATABASE, WHERE, attempt, show


def connect(**more):
    return psycopg.connect(dbname=DATABASE, **{**WHERE, **more})


def statements(c):
    c.execute("create table py_three (id int primary key, note text)")
    for n in range(12):
        c.execute("insert into py_three values (%s, %s)", [n, "note %d" % n])
    c.commit()
    c.prepared_max = 3  # so that it deallocates what it prepared
    for turn in range(3):
        for n in range(6):
            got = [c.execute("select %%s::int + %d" % n, [turn], prepare=True).fetchone() for _ in range(3)]
            show("prepared %d %d" % (turn, n), got)
    c.commit()
    attempt("deallocate of a stranger's name", lambda: c.execute("deallocate _pg3_999"))
    c.rollback()
    c.prepared_max = 100
    show("dictionary", c.cursor(row_factory=dict_row).execute("select 1 as a, null as b").fetchall())
    cur = c.cursor()
    cur.executemany(
        "insert into py_three values (%s, %s) returning id", [(n, "many") for n in range(100, 130)], returning=True
    )
    ids = [cur.fetchone()[0]]
    while cur.nextset():
        ids.append(cur.fetchone()[0])
    show("many", ids)
    c.rollback()
    show("several", [r.fetchall() for r in each_set(c.execute("select 1; select 2; select 3"))])
    c.rollback()


def each_set(cur):
    yield cur
    while cur.nextset():
        yield cur


def types(c):
    values = [
        datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc),
        datetime.date(2024, 2, 29),
        datetime.timedelta(days=1, seconds=2),
        [1, None, 3],
        ["a,b", 'c"d', None],
        Jsonb({"k": [1, None]}),
        b"\x00\xff",
        decimal.Decimal("12345678901234567890.123"),
        True,
        0.1,
        None,
    ]
    for binary in (False, True):
        for turn in range(7):
            row = c.execute("select " + ", ".join(["%s"] * len(values)), values, binary=binary).fetchone()
        show("types %s" % binary, [v.astimezone(datetime.timezone.utc) if i == 0 else v for i, v in enumerate(row)])
    c.commit()


def errors(c):
    c.autocommit = True
    for sql, parameters in [
        ("selec 1", None),
        ("select 1 / %s", [0]),
        ("insert into py_three values (%s)", [1]),
        ("select * from missing_table where a = %s", [1]),
    ]:
        for turn in range(3):
            attempt("%s, %d" % (sql, turn), lambda: c.execute(sql, parameters, prepare=turn > 0))
        show("usable", c.execute("select 1").fetchone())
    try:
        c.execute("do $$begin raise exception 'own' using errcode = 'LK001', detail = 'd', hint = 'h'; end$$")
    except psycopg.Error as e:
        show(
            "fields of an error", [e.diag.sqlstate, e.diag.message_primary, e.diag.message_detail, e.diag.message_hint]
        )
    notices = []
    c.add_notice_handler(lambda n: notices.append(n.message_primary))
    c.execute("do $$begin raise notice 'heard'; end$$")
    show("notices", notices)


def transactions(c):
    try:
        with c.transaction():
            c.execute("insert into py_three values (500)")
            try:
                with c.transaction("inner"):
                    c.execute("insert into py_three values (500)")
            except psycopg.errors.UniqueViolation:
                show("inner", "undone")
            show("outer", c.execute("select count(*) from py_three where id = 500").fetchone())
            raise ZeroDivisionError
    except ZeroDivisionError:
        show("after", c.execute("select count(*) from py_three where id = 500").fetchone())
    with c.transaction(force_rollback=True):
        c.execute("insert into py_three values (501)")
    show("forced", c.execute("select count(*) from py_three where id = 501").fetchone())
    c.autocommit = False
    c.isolation_level, c.read_only, c.deferrable = psycopg.IsolationLevel.SERIALIZABLE, True, True
    settings = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
    show("transaction", [c.execute("select current_setting(%s)", [name]).fetchone()[0] for name in settings])
    attempt("read only", lambda: c.execute("insert into py_three values (502)"))
    c.rollback()
    c.isolation_level, c.read_only, c.deferrable = None, None, None


def pipelines(c):
    c.autocommit = True
    with c.pipeline():
        cursors = [c.execute("select %s::int", [n]) for n in range(300)]
        show("pipeline", sum(cur.fetchone()[0] for cur in cursors))
    try:
        with c.pipeline() as p:
            good = c.execute("select 1")
            p.sync()
            bad = c.execute("select 1/0")
            after = c.execute("select 2")
            p.sync()
            last = c.execute("select 3")
            show("good", good.fetchone())
            attempt("bad", bad.fetchone)
            attempt("skipped", after.fetchone)
            show("after sync", last.fetchone())
    except psycopg.Error as error:
        show("pipeline left with", error.sqlstate)
    with c.pipeline(), c.transaction():
        c.cursor().executemany("insert into py_three values (%s, %s)", [(n, "p") for n in range(2000, 2100)])
        show("in a transaction", c.execute("select count(*) from py_three where note = 'p'").fetchone())
    big = "x" * 50000
    with c.pipeline():
        cursors = [c.execute("select %s::text", [big]) for _ in range(60)]
        show("both directions", sum(len(cur.fetchone()[0]) for cur in cursors))


def copies(c):
    c.autocommit = False
    with c.cursor().copy("copy py_three from stdin (format binary)") as copy:
        copy.set_types(["int4", "text"])
        for n in range(3000, 4000):
            copy.write_row((n, "copied"))
    with c.cursor().copy("copy (select id, note from py_three where id >= 3000 order by id) to stdout") as copy:
        rows = list(copy.rows())
    show("copied", [len(rows), rows[0], rows[-1]])
    with c.cursor().copy("copy py_three to stdout (format binary)") as copy:
        show("left early", len(copy.read()) > 0)
        for _ in copy:
            pass

    def broken():
        with c.cursor().copy("copy py_three from stdin") as copy:
            copy.write("5000\tx\n")
            raise ZeroDivisionError

    attempt("copy broken off", broken)
    c.rollback()

    def wrong():
        with c.cursor().copy("copy py_three from stdin") as copy:
            copy.write("no number\tx\n")

    attempt("copy that fails", wrong)
    c.rollback()


def cursors(c):
    with c.cursor(name="portion", scrollable=True) as cur:
        cur.execute("select generate_series(1, 1000)")
        show("first", cur.fetchmany(3))
        cur.scroll(-2)
        show("scrolled", cur.fetchone())
        cur.itersize = 50
        show("rest", sum(1 for _ in cur))
    c.commit()
    with c.cursor("named") as cur:
        cur.execute("select %s::int", [4], binary=True)
        show("binary cursor", cur.fetchall())
    c.commit()
    show("streamed", sum(n for (n,) in c.cursor().stream("select generate_series(1, 2000)")))
    c.commit()
    show("big", len(c.execute("select repeat('b', 5000000)").fetchone()[0]))
    c.commit()


def cancel(c):
    c.autocommit = True
    for sql in ("select pg_sleep(20)", "select pg_sleep(%s)"):
        timer = threading.Timer(0.3, c.cancel)
        timer.start()
        attempt("canceled", lambda: c.execute(sql, [20] if "%s" in sql else None))
        timer.join()
        show("usable", c.execute("select 1").fetchone())


def many_at_once(c):
    answers = {}

    def work(number):
        with connect(application_name="thread %d" % number) as own:
            for turn in range(8):
                with own.transaction():
                    sql = "insert into py_three values (%s, %s) returning id"
                    made = own.execute(sql, [10000 + number * 100 + turn, "thread"]).fetchone()
                    name = own.execute("select current_setting('application_name')").fetchone()
                answers[number, turn] = made + name

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show("at once", sorted(answers.items()))
    show("kept", c.execute("select count(*) from py_three where note = 'thread'").fetchone())


def after_ddl(c):
    with connect(autocommit=True) as other, connect() as holder:
        holder.execute("select 1")  # in a transaction, so that all the rest happens on one server of two
        for turn in range(3):
            show("before %d" % turn, other.execute("select * from py_three where id = 1", prepare=True).fetchone())
        c.execute("alter table py_three add extra int default 5")
        attempt("after alter", lambda: other.execute("select * from py_three where id = 1", prepare=True).fetchone())
        attempt("fresh text", lambda: other.execute("select *, 1 from py_three where id = 1", prepare=True).fetchone())


with connect(options="-c statement_timeout=30s -c search_path=public,pg_catalog", application_name="three") as c:
    show(
        "settings",
        [c.execute("show " + n).fetchone()[0] for n in ("statement_timeout", "search_path", "application_name")],
    )
    c.commit()
    for step in (statements, types, errors, transactions, pipelines, copies, cursors, cancel, many_at_once, after_ddl):
        step(c)
    c.execute("drop table py_three")
show("end", "reached")
