"""psycopg2: simple queries only, its extras, COPY, named cursors, large objects, isolation levels, cancel."""

import io
import threading

import psycopg2
import psycopg2.extensions
import psycopg2.extras

from tell import DATABASE, WHERE, attempt, show


def connect(**more):
    return psycopg2.connect(dbname=DATABASE, **WHERE, **more)


def one(c, sql, parameters=None):
    with c.cursor() as cur:
        cur.execute(sql, parameters)
        return cur.fetchall()


def statements(c, cur):
    cur.execute("create table py_two (id serial primary key, note text, data jsonb, tags text[])")
    rows = [("n%d" % n, psycopg2.extras.Json({"n": n}), ["a", str(n)]) for n in range(30)]
    psycopg2.extras.execute_batch(cur, "insert into py_two (note, data, tags) values (%s, %s, %s)", rows, page_size=7)
    ids = psycopg2.extras.execute_values(
        cur, "insert into py_two (note) values %s returning id", [("v",)] * 5, fetch=True
    )
    show("values", ids)
    show("status", cur.statusmessage)
    cur.execute("select id, data, tags from py_two where id <= 3 order by id")
    show("rows", cur.fetchall())
    cur.execute("prepare two_plan as select note from py_two where id = $1")
    for n in (1, 2, 3):
        cur.execute("execute two_plan (%s)", [n])
        show("executed %d" % n, cur.fetchall())
    cur.execute("deallocate two_plan")
    c.commit()


def types(c):
    sql = "select %s::timestamptz at time zone 'UTC', %s::date, %s::interval, %s::int[], %s::bytea, %s::numeric, %s::bool, %s::float8"
    row = one(
        c,
        sql,
        ["2024-02-29 12:30Z", "2024-02-29", "1 day 2 s", [1, None, 3], b"\x00\xff", "1234567890123456789.5", True, 0.1],
    )[0]
    show("types", [bytes(v) if isinstance(v, memoryview) else v for v in row])
    c.commit()


def errors_and_transactions(c, cur):
    cur.execute("insert into py_two (note) values ('gone')")
    cur.execute("savepoint s")
    attempt("duplicate", lambda: cur.execute("insert into py_two (id) values (1)"))
    attempt("aborted", lambda: cur.execute("select 1"))
    cur.execute("rollback to savepoint s")
    show("inside", one(c, "select count(*) from py_two where note = 'gone'"))
    c.rollback()
    show("outside", one(c, "select count(*) from py_two where note = 'gone'"))
    c.rollback()
    c.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
    show("session", one(c, "show transaction_isolation") + one(c, "show transaction_read_only"))
    attempt("read only", lambda: cur.execute("insert into py_two (note) values ('x')"))
    c.rollback()
    c.set_session(isolation_level="DEFAULT", readonly="DEFAULT", deferrable="DEFAULT")
    c.autocommit = True
    attempt("syntax", lambda: cur.execute("selec 1"))
    attempt("missing", lambda: cur.execute("select * from missing_table"))
    attempt("batch that fails", lambda: cur.execute("insert into py_two (note) values ('half'); select 1/0"))
    show("nothing of it", one(c, "select count(*) from py_two where note = 'half'"))
    c.set_session(readonly=True)  # by SET: psycopg2 does so under autocommit
    attempt("read only with autocommit", lambda: cur.execute("insert into py_two (note) values ('x')"))
    c.set_session(readonly=False)
    attempt("not any more", lambda: cur.execute("insert into py_two (note) values ('x')"))
    c.autocommit = False


def copies(c, cur):
    cur.copy_expert(
        "copy py_two (id, note) from stdin", io.StringIO("".join("%d\tcopied\n" % n for n in range(1000, 3000)))
    )
    out = io.StringIO()
    cur.copy_expert("copy (select id, note from py_two where id >= 1000 order by 1) to stdout with csv header", out)
    show("copied", [out.getvalue().count("\n"), out.getvalue()[:20]])
    attempt("copy that fails", lambda: cur.copy_expert("copy py_two (id) from stdin", io.StringIO("no number\n")))
    c.rollback()


def portions(c):
    with c.cursor("portion", scrollable=True) as cur:
        cur.execute("select generate_series(1, 500)")
        show("some", cur.fetchmany(3))
        cur.scroll(-1)
        show("scrolled", cur.fetchone())
        cur.itersize = 20
        show("rest", sum(1 for _ in cur))
    c.commit()
    large = c.lobject(0, "wb")
    large.write(b"large object " * 10000)
    number = large.oid
    large.close()
    c.commit()
    large = c.lobject(number, "rb")
    large.seek(13)
    show("large object", [large.read(12), large.tell()])
    large.unlink()
    c.commit()


def cancel(c):
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    attempt("canceled", lambda: one(c, "select pg_sleep(20)"))
    timer.join()
    c.rollback()
    show("usable", one(c, "select 1"))
    pid = c.get_backend_pid()
    c.rollback()

    def by_number():
        with connect() as other:
            one(other, "select pg_cancel_backend(%s)", [pid])

    timer = threading.Timer(0.3, by_number)
    timer.start()
    attempt("canceled by number", lambda: one(c, "select pg_sleep(20)"))
    timer.join()
    c.rollback()


def interleaved():
    connections = [connect(application_name="c%d" % n) for n in range(6)]
    for turn in range(5):
        for number, c in enumerate(connections):
            show("turn %d" % turn, one(c, "select %s, current_setting('application_name')", [number]))
            c.commit()
    for c in connections:
        c.close()


c = connect(options="-c lock_timeout=7s", client_encoding="utf8")
show("settings", one(c, "show lock_timeout") + one(c, "show client_encoding"))
show(
    "reported",
    [
        c.get_parameter_status(n)
        for n in ("client_encoding", "DateStyle", "standard_conforming_strings", "is_superuser")
    ],
)
c.commit()
cur = c.cursor()
c.set_client_encoding("LATIN1")
show("latin1", one(c, "select 'ä' || length(%s)::text", ["äöü"]))
c.set_client_encoding("UTF8")
statements(c, cur)
types(c)
errors_and_transactions(c, cur)
copies(c, cur)
portions(c)
cancel(c)
interleaved()
del c.notices[:]
cur.execute("do $$begin raise notice 'heard'; end$$")
show("notices", c.notices)
cur.execute("drop table py_two")
c.commit()
c.close()
show("end", "reached")
