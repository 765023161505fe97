// Kysely: the typed builder on node-postgres, with its migrator, transactions, streams by cursor, and introspection.

const { Kysely, PostgresDialect, Migrator, sql } = require('kysely');
const Cursor = require('pg-cursor');
const { Pool } = require('pg');
const { where, show, attempt, run, range } = require('./tell');

const steps = {
  a_first: {
    up: (db) =>
      db.schema
        .createTable('ky_person')
        .addColumn('id', 'serial', (c) => c.primaryKey())
        .addColumn('name', 'text', (c) => c.unique().notNull())
        .addColumn('data', 'jsonb')
        .addColumn('tags', sql`text[]`)
        .addColumn('amount', 'numeric')
        .addColumn('born', 'date')
        .execute(),
    down: (db) => db.schema.dropTable('ky_person').execute(),
  },
  b_second: {
    up: (db) =>
      db.schema
        .alterTable('ky_person')
        .addColumn('age', 'integer', (c) => c.defaultTo(1))
        .execute(),
    down: (db) => db.schema.alterTable('ky_person').dropColumn('age').execute(),
  },
};

async function queries(db) {
  show(
    'inserted',
    await db
      .insertInto('ky_person')
      .values(
        range(6).map((n) => ({ name: `p${n}`, data: JSON.stringify({ n }), tags: ['a', `${n}`], amount: `${n}.75` })),
      )
      .returning(['id', 'name'])
      .execute(),
  );
  for (const n of [1, 2, 3, 4, 5, 6])
    show('person ' + n, await db.selectFrom('ky_person').selectAll().where('id', '=', n).executeTakeFirst());
  show(
    'with',
    await db
      .with('rich', (q) => q.selectFrom('ky_person').where('amount', '>', 2).select('id'))
      .selectFrom('rich')
      .select(({ fn }) => fn.countAll().as('c'))
      .execute(),
  );
  show(
    'upsert',
    await db
      .insertInto('ky_person')
      .values({ name: 'p1', age: 40 })
      .onConflict((c) => c.column('name').doUpdateSet({ age: 41 }))
      .returning('age')
      .execute(),
  );
  show(
    'updated',
    (await db.updateTable('ky_person').set({ age: 7 }).where('id', '<', 3).executeTakeFirst()).numUpdatedRows,
  );
  show('raw', (await sql`select ${'x'}::text as t, ${3}::int as n`.execute(db)).rows);
  await attempt('duplicate', () => db.insertInto('ky_person').values({ name: 'p1' }).execute());
  await attempt('missing', () => db.selectFrom('missing_table').selectAll().execute());
  await attempt('usable', async () => (await sql`select 1 as one`.execute(db)).rows);
}

async function transactions(db) {
  await attempt('rolled back', () =>
    db.transaction().execute(async (trx) => {
      await trx.insertInto('ky_person').values({ name: 'gone' }).execute();
      await trx.insertInto('ky_person').values({ name: 'gone' }).execute();
    }),
  );
  show(
    'serializable',
    await db
      .transaction()
      .setIsolationLevel('serializable')
      .execute(async (trx) => {
        await sql`savepoint s`.execute(trx);
        const inner = await trx
          .insertInto('ky_person')
          .values({ name: 'p1' })
          .execute()
          .catch((e) => e.code);
        await sql`rollback to s`.execute(trx);
        return [inner, (await sql`show transaction_isolation`.execute(trx)).rows];
      }),
  );
}

run(async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ ...where, max: 7 }), cursor: Cursor }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => steps } });
  const done = await migrator.migrateToLatest();
  show(
    'migrated',
    done.results.map((r) => [r.migrationName, r.status]),
  );
  show('again', (await migrator.migrateToLatest()).results);
  await queries(db);
  await transactions(db);
  let sum = 0;
  for await (const row of db
    .selectFrom(sql`generate_series(1, 3000)`.as('g'))
    .select(sql`g`.as('g'))
    .stream(100))
    sum += row.g;
  show('streamed', sum);
  let seen = 0;
  for await (const row of db
    .selectFrom(sql`generate_series(1, 3000)`.as('g'))
    .select(sql`g`.as('g'))
    .stream(10))
    if (row.g && ++seen === 25) break;
  show('left early', seen);
  show(
    'at once',
    await Promise.all(
      range(30).map((n) =>
        db.transaction().execute(async (trx) => {
          await trx
            .insertInto('ky_person')
            .values({ name: `at once ${n}` })
            .execute();
          return (
            await trx
              .selectFrom('ky_person')
              .select('name')
              .where('name', '=', `at once ${n}`)
              .executeTakeFirstOrThrow()
          ).name;
        }),
      ),
    ),
  );
  show(
    'tables',
    (await db.introspection.getTables())
      .filter((t) => t.name === 'ky_person')
      .map((t) => t.columns.map((c) => [c.name, c.dataType])),
  );
  show(
    'undone',
    (await migrator.migrateDown()).results.map((r) => r.status),
  );
  show('columns now', await db.selectFrom('ky_person').selectAll().where('id', '=', 1).execute());
  await migrator.migrateDown();
  await db.schema.dropTable('kysely_migration').execute();
  await db.schema.dropTable('kysely_migration_lock').execute();
  await db.destroy();
});
