// TypeORM: entities by schema, migrations, relations, the query builder, nested transactions, streams.

require('reflect-metadata');
const { DataSource, EntitySchema, In } = require('typeorm');
const { where, show, attempt, run, range } = require('./tell');

const City = new EntitySchema({
  name: 'City',
  tableName: 'orm_city',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    name: { type: 'varchar', unique: true },
    data: { type: 'jsonb', nullable: true },
  },
  relations: { streets: { type: 'one-to-many', target: 'Street', inverseSide: 'city', cascade: true } },
});
const Street = new EntitySchema({
  name: 'Street',
  tableName: 'orm_street',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    name: { type: 'text' },
    length: { type: 'numeric', precision: 12, scale: 3, nullable: true },
    parts: { type: 'int', array: true, nullable: true },
    built: { type: 'date', nullable: true },
    plan: { type: 'bytea', nullable: true },
    version: { type: 'int', version: true },
  },
  relations: { city: { type: 'many-to-one', target: 'City', inverseSide: 'streets', onDelete: 'CASCADE' } },
});

class AddWidth1700000000000 {
  async up(runner) {
    await runner.query('alter table orm_street add width int default 4');
  }
  async down(runner) {
    await runner.query('alter table orm_street drop width');
  }
}

async function queries(db) {
  const cities = db.getRepository('City'),
    streets = db.getRepository('Street');
  await cities.save({
    name: 'first',
    data: { a: [1, null] },
    streets: range(5).map((n) => ({
      name: `s${n}`,
      length: `${n}.125`,
      parts: [n, n + 1],
      built: '2024-02-29',
      plan: Buffer.from([0, 255, n]),
    })),
  });
  show(
    'with relations',
    await cities.findOne({ where: { name: 'first' }, relations: { streets: true }, order: { streets: { id: 'ASC' } } }),
  );
  for (const n of range(7)) show('by id ' + n, await streets.findOneBy({ id: n + 1 }));
  show('in', await streets.find({ where: { name: In(['s1', 's3']) }, select: { name: true }, order: { id: 'ASC' } }));
  show(
    'builder',
    await streets
      .createQueryBuilder('s')
      .innerJoin('s.city', 'c')
      .where('c.name = :name', { name: 'first' })
      .select('sum(s.length)', 'total')
      .getRawOne(),
  );
  show('paged', await streets.findAndCount({ take: 2, skip: 1, order: { id: 'ASC' }, select: { id: true } }));
  const one = await streets.findOneBy({ name: 's2' });
  one.name = 'renamed';
  show('version', (await streets.save(one)).version);
  await cities.upsert([{ name: 'first', data: { b: 2 } }], ['name']);
  show('upserted', (await cities.findOneBy({ name: 'first' })).data);
  show(
    'changed',
    (await streets.createQueryBuilder().update().set({ length: 9 }).where('id < 3').returning('id').execute()).raw,
  );
  await attempt('duplicate', () => cities.insert({ name: 'first' }));
  await attempt('missing', () => db.query('select * from missing_table where a = $1', [1]));
  await attempt('usable', () => db.query('select $1::int as one', [1]));
}

async function transactions(db) {
  await attempt('rolled back', () =>
    db.transaction(async (manager) => {
      await manager.insert('City', { name: 'gone' });
      await manager.insert('City', { name: 'first' });
    }),
  );
  show(
    'nested',
    await db.transaction('SERIALIZABLE', async (manager) => {
      await manager.insert('City', { name: 'outer' });
      const inner = await manager.transaction((m) => m.insert('City', { name: 'outer' })).catch((e) => e.code);
      return [inner, await manager.count('City'), await manager.query('show transaction_isolation')];
    }),
  );
}

run(async () => {
  const db = new DataSource({
    type: 'postgres',
    host: where.host,
    port: where.port,
    username: where.user,
    password: where.password,
    database: where.database,
    entities: [City, Street],
    migrations: [AddWidth1700000000000],
    migrationsTableName: 'orm_steps',
    poolSize: 6,
    applicationName: 'typeorm',
  });
  await db.initialize();
  await db.synchronize();
  await queries(db);
  await transactions(db);
  show(
    'migrations',
    (await db.runMigrations()).map((m) => m.name),
  );
  show('after it', await db.query('select width, count(*)::int from orm_street group by 1'));
  show(
    'streamed',
    await (async () => {
      const runner = db.createQueryRunner();
      let sum = 0;
      for await (const row of await runner.stream('select g from generate_series(1, $1::int) g', [2000])) sum += row.g;
      await runner.release();
      return sum;
    })(),
  );
  show(
    'at once',
    await Promise.all(
      range(30).map((n) =>
        db.transaction(async (m) => {
          const city = await m.save('City', { name: `at once ${n}`, streets: [{ name: `a ${n}` }] });
          return [city.name, city.streets[0].name];
        }),
      ),
    ),
  );
  show('kept', [await db.getRepository('City').count(), await db.getRepository('Street').count()]);
  await db.undoLastMigration();
  show(
    'tables',
    (await db.createQueryRunner().getTables(['orm_city', 'orm_street']))
      .map((t) => [t.name, t.columns.length, t.foreignKeys.length])
      .sort(),
  );
  await db.query('drop table orm_street, orm_city, orm_steps');
  await db.destroy();
});
