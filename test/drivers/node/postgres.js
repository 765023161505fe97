// postgres.js ("postgres" on npm): prepares everything, pipelines on few connections, COPY as streams, cursors, cancel.

const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
const postgres = require('postgres');
const { where, show, attempt, run, sleep, range } = require('./tell');

async function statements(sql) {
  await sql`drop table if exists node_postgres`;
  await sql`create table node_postgres (id int primary key, note text, data jsonb)`;
  await sql`insert into node_postgres ${sql(range(50).map((id) => ({ id, note: `note ${id}`, data: { id } })))}`;
  for (const id of [1, 2, 3, 4, 5, 6])
    show('row ' + id, [...(await sql`select note, data from node_postgres where id = ${id}`)]);
  show('in a list', [...(await sql`select id from node_postgres where id in ${sql([3, 1, 2])} order by id`)]);
  show(
    'update',
    (await sql`update node_postgres set ${sql({ note: 'changed' }, 'note')} where id = ${9} returning note`)[0],
  );
  show(
    'described',
    (await sql`select id, note from node_postgres where id = ${1}`.describe()).columns.map((c) => [c.name, c.type]),
  );
  show(
    'simple',
    (await sql`select 1 as a; select 2 as b`.simple()).map((r) => [...r]),
  );
  show('values', [...(await sql`select 1, 'x'`.values())]);
  show(
    'raw',
    [...(await sql`select ${'a'}::text`.raw())].map((r) => r.map((c) => c.toString())),
  );
  show('unsafe', [...(await sql.unsafe('select $1::int + 1 as sum', [41], { prepare: true }))]);
}

async function types(sql) {
  const when = new Date(Date.UTC(2024, 1, 29, 12, 30));
  for (const turn of [1, 2]) {
    show(
      'types ' + turn,
      (
        await sql`select ${when}::timestamptz as t, ${sql.array([1, 2, 3])}::int[] as i, ${sql.json({ a: [1] })}::jsonb as j,
      ${Buffer.from('00ff', 'hex')}::bytea as b, ${'123456789012345678901.25'}::numeric as n, ${true}::bool as y, ${null}::text as z`
      )[0],
    );
  }
}

async function errors(sql) {
  await attempt('division', () => sql`select 1 / ${0}::int`);
  await attempt('duplicate', () => sql`insert into node_postgres (id) values (${1})`);
  await attempt('missing', () => sql`select * from missing_table`);
  await attempt('missing again', () => sql`select * from missing_table`);
  await attempt('usable', async () => [...(await sql`select 1 as one`)]);
}

async function transactions(sql) {
  await attempt('rolled back', () =>
    sql.begin(async (sql) => {
      await sql`insert into node_postgres (id) values (${1000})`;
      throw Object.assign(new Error('mine'), { code: 'mine' });
    }),
  );
  show(
    'savepoint',
    await sql.begin('isolation level repeatable read', async (sql) => {
      await sql`insert into node_postgres (id) values (${1001})`;
      const inner = await sql
        .savepoint(async (sql) => sql`insert into node_postgres (id) values (${1001})`)
        .catch((e) => e.code);
      return [inner, (await sql`select count(*)::int as c from node_postgres where id >= 1000`)[0].c];
    }),
  );
  show(
    'pipelined in a transaction',
    await sql.begin((sql) => range(5).map((n) => sql`select ${n}::int as n`.then((r) => r[0].n))),
  );
}

async function portions(sql) {
  const sizes = [];
  await sql`select g from generate_series(1, ${95}) g`.cursor(20, (rows) => {
    sizes.push(rows.length);
  });
  show('cursor', sizes);
  let seen = 0;
  for await (const rows of sql`select g from generate_series(1, 10000) g`.cursor(10)) {
    seen += rows.length;
    if (seen >= 30) break;
  }
  show('cursor left early', seen);
  let sum = 0;
  await sql`select g from generate_series(1, 3000) g`.forEach((row) => {
    sum += row.g;
  });
  show('each', sum);
  await pipeline(
    Readable.from(range(500).map((n) => `${2000 + n}\tcopied\n`)),
    await sql`copy node_postgres (id, note) from stdin`.writable(),
  );
  show('copied in', (await sql`select count(*)::int as c from node_postgres where note = 'copied'`)[0]);
  let bytes = 0;
  for await (const chunk of await sql`copy node_postgres (id) to stdout`.readable()) bytes += chunk.length;
  show('copied out', bytes);
}

async function cancel(sql) {
  const query = sql`select pg_sleep(20)`.execute();
  setTimeout(() => query.cancel(), 300);
  await attempt('cancel', () => query);
  await attempt('usable after cancel', async () => [...(await sql`select 1 as one`)]);
}

run(async () => {
  const notices = [];
  const sql = postgres({
    ...where,
    username: where.user,
    max: 6,
    onnotice: (n) => notices.push(n.code),
    connection: { application_name: 'postgres.js' },
  });
  await statements(sql);
  await types(sql);
  await errors(sql);
  await transactions(sql);
  await portions(sql);
  await cancel(sql);
  show(
    'many at once',
    await Promise.all(range(60).map((n) => sql`select ${n}::int as n, pg_sleep(0.005)::text as s`.then((r) => r[0].n))),
  );
  show(
    'errors between',
    await Promise.all(
      range(30).map((n) =>
        sql`select 10 / ${n % 5}::int as n`.then(
          (r) => r[0].n,
          (e) => e.code,
        ),
      ),
    ),
  );
  show(
    'transactions at once',
    await Promise.all(
      range(12).map((n) =>
        sql.begin(async (sql) => {
          await sql`insert into node_postgres (id, note) values (${5000 + n}, 'begin')`;
          await sql`select pg_sleep(0.01)`;
          return (await sql`select id from node_postgres where id = ${5000 + n}`)[0].id;
        }),
      ),
    ),
  );
  await sql`alter table node_postgres add extra int default 7`;
  show('after alter', [...(await sql`select * from node_postgres where id = ${1}`)]);
  await sql`alter table node_postgres add more int default 8`;
  show('after another', [...(await sql`select * from node_postgres where id = ${1}`)]);
  await sql`drop table node_postgres`;
  await sql`drop table if exists node_postgres`;
  show('notices', [...new Set(notices)]);
  await sql.end();
});
