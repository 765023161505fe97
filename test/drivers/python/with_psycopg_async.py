"""psycopg 3, asynchronous: more connections than servers, each with statements, pipelines, COPY, cancel."""

import asyncio

import psycopg

from tell import DATABASE, WHERE, attempt_async, show


async def connect(**more):
    return await psycopg.AsyncConnection.connect(dbname=DATABASE, **WHERE, **more)


async def fetch(c, sql, parameters=None, **how):
    return await (await c.execute(sql, parameters, **how)).fetchall()


async def work(number):
    """One connection's whole life; what it saw is its answer."""
    saw = []
    async with await connect(application_name="task %d" % number) as c:
        for turn in range(8):
            saw += await fetch(c, "select %s::int * 2, current_setting('application_name')", [number + turn])
            await c.commit()
        async with c.transaction():
            await c.execute("insert into py_async values (%s, %s)", [number, "t"])
            await c.execute("select pg_sleep(0.01)")
            saw += await fetch(c, "select note from py_async where id = %s", [number])
        async with c.cursor().copy("copy py_async from stdin") as copy:
            for n in range(100):
                await copy.write_row((1000 + number * 1000 + n, "copied"))
        await (c.rollback() if number % 2 else c.commit())
        await c.set_autocommit(True)
        try:
            await c.execute("select 1 / %s", [0])
        except psycopg.Error as error:
            saw.append(error.sqlstate)
        async with c.pipeline():
            cursors = [await c.execute("select %s::int", [n], binary=bool(n % 2)) for n in range(50)]
            saw.append(sum([(await cur.fetchone())[0] for cur in cursors]))
        async with c.transaction():
            async with c.cursor(name="mine") as cur:
                await cur.execute("select generate_series(1, 300)")
                saw.append(sum([n async for (n,) in cur]))
    return saw


async def broken_pipeline(c):
    async with c.pipeline() as p:
        first = await c.execute("select 1")
        await p.sync()
        await c.execute("select 1 / 0")
        await c.execute("select 2")
        await p.sync()
        return await first.fetchall()


async def main():
    async with await connect(autocommit=True) as c:
        await c.execute("create table py_async (id int primary key, note text)")
        for number, saw in enumerate(await asyncio.gather(*[work(n) for n in range(8)])):
            show("task %d" % number, saw)
        show("rows", await fetch(c, "select note, count(*) from py_async group by 1 order by 1"))
        await attempt_async("pipeline with an error", broken_pipeline(c))
        show("usable", await fetch(c, "select 1"))
        asleep = asyncio.create_task(c.execute("select pg_sleep(20)"))
        await asyncio.sleep(0.3)
        c.cancel()
        await attempt_async("canceled", asleep)
        show("usable after cancel", await fetch(c, "select 1"))
        await c.execute("drop table py_async")
    show("end", "reached")


asyncio.run(main())
