// knex: its schema builder, migrations, transactions, streams, pools, and a timeout that cancels.

const knex = require('knex');
const { pipeline } = require('node:stream/promises');
const { Writable } = require('node:stream');
const { where, show, attempt, run, range } = require('./tell');

// Migrations from memory instead of a folder.
const steps = {
  first: {
    up: (db) =>
      db.schema.createTable('knex_item', (t) => {
        t.increments('id');
        t.string('name', 100).notNullable().unique();
        t.jsonb('data');
        t.specificType('tags', 'text[]');
        t.decimal('price', 12, 2);
        t.timestamp('made', { useTz: true });
      }),
    down: (db) => db.schema.dropTable('knex_item'),
  },
  second: {
    up: (db) =>
      db.schema.alterTable('knex_item', (t) => {
        t.integer('stock').defaultTo(0);
        t.index(['stock']);
      }),
    down: (db) => db.schema.alterTable('knex_item', (t) => t.dropColumn('stock')),
  },
};
const migrations = {
  getMigrations: async () => Object.keys(steps),
  getMigrationName: (n) => n,
  getMigration: async (n) => steps[n],
};

async function queries(db) {
  show(
    'inserted',
    await db('knex_item')
      .insert(
        range(5).map((n) => ({
          name: `item ${n}`,
          data: JSON.stringify({ n }),
          tags: ['a', `t${n}`],
          price: `${n}.50`,
          made: new Date(Date.UTC(2024, 0, n + 1)),
        })),
      )
      .returning(['id', 'name']),
  );
  show('where', await db('knex_item').where('price', '>', 2).orderBy('id').select());
  for (const n of [1, 2, 3, 1, 2, 3]) show('again ' + n, await db('knex_item').where({ id: n }).first('name', 'data'));
  show(
    'upsert',
    await db('knex_item').insert({ name: 'item 1', price: 99 }).onConflict('name').merge(['price']).returning('price'),
  );
  show('updated', await db('knex_item').where('id', '<', 3).increment('stock', 10));
  show('sum', await db('knex_item').sum('stock as s').count('* as c').first());
  show('raw', (await db.raw('select ?::int + ?::int as sum', [20, 22])).rows);
  show('columns', Object.keys(await db('knex_item').columnInfo()));
  show('json', await db('knex_item').whereRaw("data->>'n' = ?", ['4']).pluck('name'));
  await attempt('duplicate', () => db('knex_item').insert({ name: 'item 1' }));
  await attempt('missing', () => db('missing_table').select());
  await attempt('usable', () => db.select(db.raw('1 as one')));
}

async function transactions(db) {
  await attempt('rolled back', () =>
    db.transaction(async (trx) => {
      await trx('knex_item').insert({ name: 'gone' });
      await trx('knex_item').insert({ name: 'gone' });
    }),
  );
  show(
    'savepoint',
    await db.transaction(async (trx) => {
      await trx('knex_item').insert({ name: 'outer' });
      const inner = await trx.transaction((t) => t('knex_item').insert({ name: 'outer' })).catch((e) => e.code);
      return [inner, await trx('knex_item').where({ name: 'outer' }).count('* as c')];
    }),
  );
  show(
    'isolation',
    await db.transaction(async (trx) => (await trx.raw('show transaction_isolation')).rows, {
      isolationLevel: 'serializable',
    }),
  );
  show('locked', await db.transaction((trx) => trx('knex_item').where({ id: 1 }).forUpdate().first('name')));
}

run(async () => {
  const db = knex({ client: 'pg', connection: where, pool: { min: 0, max: 8 } });
  show('migrated', (await db.migrate.latest({ migrationSource: migrations, tableName: 'knex_steps' }))[1]);
  show('migrated again', (await db.migrate.latest({ migrationSource: migrations, tableName: 'knex_steps' }))[1]);
  await queries(db);
  await transactions(db);
  let streamed = 0;
  await pipeline(
    db.raw('select g from generate_series(1, 2000) g').stream(),
    new Writable({
      objectMode: true,
      write: (row, _, done) => {
        streamed += row.g;
        done();
      },
    }),
  );
  show('streamed', streamed);
  await attempt('timeout that cancels', () =>
    db
      .raw('select pg_sleep(20)')
      .timeout(300, { cancel: true })
      .catch((e) => e.name),
  );
  show(
    'nothing sleeps',
    (
      await db.raw(
        "select count(*)::int as c from pg_stat_activity where query = 'select pg_sleep(20)' and state = 'active'",
      )
    ).rows,
  );
  show(
    'at once',
    await Promise.all(
      range(40).map((n) =>
        db.transaction(async (trx) => {
          await trx('knex_item').insert({ name: `at once ${n}` });
          return (
            await trx('knex_item')
              .where({ name: `at once ${n}` })
              .first('name')
          ).name;
        }),
      ),
    ),
  );
  show(
    'batch',
    (
      await db
        .batchInsert(
          'knex_item',
          range(250).map((n) => ({ name: `batch ${n}` })),
          50,
        )
        .returning('id')
    ).length,
  );
  show('undone', (await db.migrate.rollback({ migrationSource: migrations, tableName: 'knex_steps' }, true))[1]);
  await db.schema.dropTable('knex_steps');
  await db.schema.dropTable('knex_steps_lock');
  await db.destroy();
});
