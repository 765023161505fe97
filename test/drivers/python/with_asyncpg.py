"""asyncpg: everything by named statements and binary, its pool and reset, cursors, COPY, cancel, types it looks up."""

import asyncio
import datetime
import decimal
import io

import asyncpg

from tell import DATABASE, WHERE, attempt_async, show


async def statements(c):
    await c.execute("create type as_mood as enum ('glad', 'sad'); create type as_pair as (a int, b text)")
    await c.execute("create table as_row (id int primary key, note text, mood as_mood, pair as_pair)")
    for n in range(10):
        await c.execute("insert into as_row values ($1, $2, $3, $4)", n, "note %d" % n, "glad", (n, "p"))
    statement = await c.prepare("select note, mood, pair from as_row where id = $1")
    for n in range(4):
        show("prepared %d" % n, [tuple(r) for r in await statement.fetch(n)])
    show("parameters", [(p.name, p.kind) for p in statement.get_parameters()])
    show("columns", [(a.name, a.type.name) for a in statement.get_attributes()])
    await c.executemany("insert into as_row (id, note) values ($1, $2)", [(n, "many") for n in range(100, 300)])
    show("many", await c.fetchval("select count(*) from as_row where note = $1", "many"))
    show("script", await c.execute("select 1; update as_row set note = 'm' where note = 'many'"))
    values = [
        datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc),
        datetime.date(2024, 2, 29),
        datetime.timedelta(days=1, seconds=2),
        [1, None, 3],
        ["a,b", None],
        '{"k": [1, null]}',
        b"\x00\xff",
        decimal.Decimal("12345678901234567890.123"),
        0.1,
    ]
    sql = "select $1::timestamptz, $2::date, $3::interval, $4::int[], $5::text[], $6::jsonb, $7::bytea, $8::numeric, $9::float8"
    for turn in range(2):
        show("types", tuple(await c.fetchrow(sql, *values)))


async def errors(c):
    for sql, values in [
        ("selec 1", []),
        ("select 1 / $1::int", [0]),
        ("insert into as_row (id) values ($1)", [1]),
        ("select * from missing_table where a = $1", [1]),
    ]:
        for turn in range(2):
            await attempt_async(sql, c.fetch(sql, *values))
        show("usable", await c.fetchval("select $1::int", 1))
    await attempt_async(
        "many that fail", c.executemany("insert into as_row (id) values ($1)", [(n,) for n in (900, 901, 1, 902)])
    )
    show("nothing of it", await c.fetchval("select count(*) from as_row where id >= 900"))


async def transactions(c):
    transaction = c.transaction()
    await transaction.start()
    await c.execute("insert into as_row (id) values (500)")
    await attempt_async("inner", inner(c))
    show("inside", await c.fetchval("select count(*) from as_row where id = 500"))
    await transaction.rollback()
    show("outside", await c.fetchval("select count(*) from as_row where id = 500"))
    async with c.transaction(isolation="serializable", readonly=True, deferrable=True):
        show("level", await c.fetchval("show transaction_isolation"))
        cursor = await c.cursor("select generate_series(1, $1::int)", 1000)
        show("cursor", [r[0] for r in await cursor.fetch(3)])
        show("skipped", await cursor.forward(500))
        show("next", (await cursor.fetchrow())[0])
        total = 0
        async for row in c.cursor("select generate_series(1, 1000)", prefetch=30):
            total += row[0]
        show("all", total)


async def inner(c):
    async with c.transaction():
        await c.execute("insert into as_row (id) values (500)")


async def copies(c):
    records = [(n, "copied", "sad", None) for n in range(1000, 2000)]
    show("copied in", await c.copy_records_to_table("as_row", records=records))
    out = io.BytesIO()
    show(
        "copied out", await c.copy_from_query("select id, note from as_row where id >= $1 order by 1", 1990, output=out)
    )
    show("as text", out.getvalue())
    await attempt_async(
        "copy that fails", c.copy_to_table("as_row", source=io.BytesIO(b"no number\tx\n"), columns=["id", "note"])
    )
    show("usable", await c.fetchval("select 1"))


async def cancel(c):
    await attempt_async("timeout", c.fetchval("select pg_sleep(20)", timeout=0.3))
    show("usable", await c.fetchval("select $1::int", 1))
    task = asyncio.create_task(c.fetchval("select pg_sleep($1)", 20))
    await asyncio.sleep(0.3)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        show("canceled", True)
    show("usable again", await c.fetchval("select $1::int", 1))


async def pool():
    async with asyncpg.create_pool(database=DATABASE, min_size=1, max_size=8, **WHERE) as made:

        async def work(number):
            async with made.acquire() as c, c.transaction():
                await c.execute("insert into as_row (id, note) values ($1, 'pool')", 5000 + number)
                await c.execute("select pg_sleep(0.005)")
                return await c.fetchval("select id from as_row where id = $1", 5000 + number)

        show("pool", await asyncio.gather(*[work(n) for n in range(50)]))
        show("kept", await made.fetchval("select count(*) from as_row where note = 'pool'"))


async def after_ddl(c):
    other = await asyncpg.connect(database=DATABASE, **WHERE)
    holder = await asyncpg.connect(database=DATABASE, **WHERE)
    await holder.execute("begin")  # so that all the rest happens on one server of two
    for turn in range(2):
        show("before", tuple(await other.fetchrow("select * from as_row where id = 1")))
    await c.execute("alter table as_row add extra int default 5")
    await attempt_async("after alter", as_tuple(other.fetchrow("select * from as_row where id = 1")))
    await c.execute("alter table as_row drop extra")
    await attempt_async("in a transaction", in_transaction(other))
    await c.execute("alter type as_mood add value 'calm'")
    show("new value", await other.fetchval("select 'calm'::as_mood"))
    await other.close()
    await holder.close()


async def as_tuple(awaitable):
    return tuple(await awaitable)


async def in_transaction(c):
    async with c.transaction():
        await c.execute("select 1")
        return tuple(await c.fetchrow("select * from as_row where id = 1"))


async def main():
    settings = {"application_name": "asyncpg", "search_path": "public", "statement_timeout": "30000"}
    c = await asyncpg.connect(database=DATABASE, server_settings=settings, **WHERE)
    show("settings", [await c.fetchval("select current_setting($1)", name) for name in settings])
    notices = []
    c.add_log_listener(lambda _, message: notices.append(message.message))
    show("version", c.get_server_version().major)
    for step in (statements, errors, transactions, copies, cancel):
        await step(c)
    await pool()
    await after_ddl(c)
    await c.execute("do $$begin raise notice 'heard'; end$$")
    show("notices", notices)
    await c.execute("drop table as_row; drop type as_mood, as_pair")
    await c.reset()
    await c.close()
    show("end", "reached")


asyncio.run(main())
