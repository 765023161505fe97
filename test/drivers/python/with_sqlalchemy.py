"""SQLAlchemy: ORM and Core on psycopg2, the same on asyncpg: pool, savepoints, isolation, reflection, streaming, bulk."""

import asyncio
import datetime
import decimal
import threading

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, declarative_base, joinedload, relationship, selectinload

from tell import DATABASE, WHERE, attempt, attempt_async, show

Base = declarative_base()


class Team(Base):
    __tablename__ = "sa_team"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String(50), unique=True, nullable=False)
    players = relationship("Player", back_populates="team", cascade="all, delete-orphan", order_by="Player.id")


class Player(Base):
    __tablename__ = "sa_player"
    id = sa.Column(sa.Integer, primary_key=True)
    team_id = sa.Column(sa.ForeignKey("sa_team.id", ondelete="cascade"))
    name = sa.Column(sa.Text, index=True)
    data = sa.Column(JSONB)
    tags = sa.Column(ARRAY(sa.Text))
    wage = sa.Column(sa.Numeric(12, 2))
    born = sa.Column(sa.Date)
    photo = sa.Column(sa.LargeBinary)
    version = sa.Column(sa.Integer, nullable=False)
    team = relationship(Team, back_populates="players")
    __mapper_args__ = {"version_id_col": version}


def url(driver):
    where = dict(host=WHERE["host"], port=WHERE["port"], username=WHERE["user"], password=WHERE["password"])
    return URL.create("postgresql+" + driver, database=DATABASE, **where)


def players(count):
    born = datetime.date(2000, 2, 29)
    return [
        Player(
            name="p%d" % n,
            data={"n": [n, None]},
            tags=["a", "b,c"],
            wage=decimal.Decimal("%d.25" % n),
            born=born,
            photo=b"\x00\xff",
        )
        for n in range(count)
    ]


def work_of_orm(engine):
    with Session(engine) as session, session.begin():
        session.add(Team(name="first", players=players(5)))
    with Session(engine) as session:
        team = session.execute(sa.select(Team).options(selectinload(Team.players))).scalar_one()
        show("loaded", [(p.name, p.data, p.tags, p.wage, p.born, bytes(p.photo), p.version) for p in team.players])
        team.players[0].name = "renamed"
        session.commit()
        show("version", session.get(Player, 1).version)
        joined = session.query(Player).options(joinedload(Player.team)).filter(Player.wage > 2).order_by(Player.id)
        show("joined", [(p.name, p.team.name) for p in joined])
        show(
            "grouped",
            [
                tuple(r)
                for r in session.execute(sa.select(Player.team_id, sa.func.sum(Player.wage)).group_by(Player.team_id))
            ],
        )
        session.add(Team(name="first"))
        attempt("duplicate", session.commit)
        session.rollback()
        show("usable", session.query(Team).count())
        with session.begin_nested():
            session.add(Team(name="second"))
        try:
            with session.begin_nested():
                session.add(Team(name="second"))
        except sa.exc.IntegrityError:
            show("savepoint", "undone")
        session.commit()
        show("teams", session.execute(sa.select(Team.name).order_by(Team.name)).scalars().all())
        session.bulk_save_objects(players(200))
        session.commit()
        total = 0
        for chunk in session.execute(
            sa.select(Player.id).order_by(Player.id).execution_options(yield_per=50)
        ).partitions():
            total += len(chunk)
        show("in portions", total)
        show("locked", session.execute(sa.select(Team).with_for_update(skip_locked=True)).scalars().first().name)


def work_of_core(engine):
    players_table = Player.__table__
    with engine.connect() as c:
        statement = insert(Team.__table__).values(name="first")
        upsert = statement.on_conflict_do_update(index_elements=["name"], set_={"name": "changed"})
        show("upsert", tuple(c.execute(upsert.returning(Team.__table__.c.name)).one()))
        c.commit()
        attempt("missing", lambda: c.execute(sa.text("select * from missing_table where a = :a"), {"a": 1}))
        c.rollback()
        show("usable", c.execute(sa.text("select 1")).scalar())
        c.rollback()
        many = [{"name": "m%d" % n, "version": 1} for n in range(300)]
        show("many", c.execute(sa.insert(players_table), many).rowcount >= -1)
        show(
            "streamed", sum(1 for _ in c.execution_options(stream_results=True).execute(sa.select(players_table.c.id)))
        )
        c.rollback()
    for level in ("SERIALIZABLE", "REPEATABLE READ", "AUTOCOMMIT", "READ COMMITTED"):
        with engine.connect().execution_options(isolation_level=level) as c:
            show(level, c.execute(sa.text("show transaction_isolation")).scalar())
    with engine.connect().execution_options(postgresql_readonly=True) as c:
        attempt("read only", lambda: c.execute(sa.insert(Team.__table__).values(name="x")))
    inspector = sa.inspect(engine)
    show("columns", [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns("sa_player")])
    show(
        "keys",
        [
            inspector.get_foreign_keys("sa_player"),
            inspector.get_indexes("sa_player"),
            inspector.get_unique_constraints("sa_team"),
        ],
    )
    reflected = sa.Table("sa_player", sa.MetaData(), autoload_with=engine)
    show("reflected", sorted(reflected.columns.keys()))


def in_threads(engine):
    saw = {}

    def work(number):
        for turn in range(5):
            with Session(engine) as session, session.begin():
                session.add(Team(name="thread %d.%d" % (number, turn)))
                session.flush()
                session.execute(sa.text("select pg_sleep(0.003)"))
                saw[number, turn] = session.query(Team).filter_by(name="thread %d.%d" % (number, turn)).count()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show("threads", sorted(saw.items()))


async def with_asyncpg():
    engine = create_async_engine(url("asyncpg"), pool_size=8, future=True)
    async with AsyncSession(engine) as session:
        async with session.begin():
            session.add(Team(name="async", players=players(3)))
        query = sa.select(Team).where(Team.name == "async").options(selectinload(Team.players))
        team = (await session.execute(query)).scalar_one()
        show("async", [(p.name, p.data, p.tags, p.wage, p.born, p.photo) for p in team.players])
        await session.commit()
        session.add(Team(name="async"))
        await attempt_async("async duplicate", session.commit())
        await session.rollback()
        stream = await session.stream(sa.select(sa.func.generate_series(1, 500)))
        show("async streamed", sum([row[0] async for row in stream]))

    async def work(number):
        async with AsyncSession(engine) as session, session.begin():
            session.add(Team(name="task %d" % number))
            await session.flush()
            await session.execute(sa.text("select pg_sleep(0.003)"))
            return (await session.execute(sa.select(Team.name).where(Team.name == "task %d" % number))).scalar_one()

    show("async at once", await asyncio.gather(*[work(n) for n in range(30)]))
    async with engine.connect() as c:
        level = await c.execution_options(isolation_level="SERIALIZABLE")
        show("async level", (await level.execute(sa.text("show transaction_isolation"))).scalar())
    await engine.dispose()


engine = sa.create_engine(url("psycopg2"), pool_size=8, pool_pre_ping=True, future=True)
Base.metadata.create_all(engine)
work_of_orm(engine)
work_of_core(engine)
in_threads(engine)
asyncio.run(with_asyncpg())
Base.metadata.drop_all(engine)
engine.dispose()
show("end", "reached")
