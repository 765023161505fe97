// node-postgres: the client, its pool, and its companions pg-cursor, pg-query-stream and pg-copy-streams.

const { pipeline } = require('node:stream/promises');
const { Readable, Writable } = require('node:stream');
const pg = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const { from: copyFrom, to: copyTo, both: copyBoth } = require('pg-copy-streams');
const { where, show, attempt, run, sleep, range } = require('./tell');

async function statements(client) {
  await client.query('drop table if exists node_pg; create table node_pg (id int primary key, note text)');
  show(
    'several results',
    (await client.query('select 1 as a; select 2 as b; select 3 as c')).map((r) => r.rows),
  );
  for (const n of range(8)) {
    await client.query({ name: 'insert', text: 'insert into node_pg values ($1, $2)', values: [n, `note ${n}`] });
  }
  const named = { name: 'sum', text: 'select sum(id)::int as sum, count(*)::int from node_pg where id < $1' };
  for (const n of [3, 5, 8]) show('named ' + n, (await client.query({ ...named, values: [n] })).rows);
  await attempt('named with other text', () => client.query({ name: 'sum', text: 'select 1' }).then((r) => r.rows));
  show('array mode', (await client.query({ text: 'select 1, 1, null', rowMode: 'array' })).rows);
  show(
    'binary',
    (
      await client.query({
        text: 'select $1::int8 as a, $2::bytea as b',
        values: [7, Buffer.from([0, 255])],
        binary: true,
      })
    ).rows,
  );
  show(
    'without rows',
    (await client.query({ text: 'select * from node_pg where false', values: [] })).fields.map((f) => [
      f.name,
      f.dataTypeID,
    ]),
  );
  show('nothing', (await client.query('')).command);
}

async function types(client) {
  const text =
    'select $1::timestamptz as t, $2::date::text as d, $3::int[] as i, $4::text[] as s, $5::jsonb as j, ' +
    '$6::bytea as b, $7::numeric as n, $8::bool as y, $9::float8 as f, $10::interval as v, $11::uuid as u';
  const values = [
    new Date(Date.UTC(2024, 1, 29, 12, 30)),
    '2024-02-29',
    [1, null, 3],
    ['a,b', 'c"d', null],
    { k: [1, 'x', null] },
    Buffer.from('00ff10', 'hex'),
    '12345678901234567890.5',
    true,
    0.1,
    '1 day 02:03:04',
    '5f0c6f2e-1b0b-4c4e-9d0f-0a0b0c0d0e0f',
  ];
  for (const turn of [1, 2]) show('types ' + turn, (await client.query({ name: 'types', text, values })).rows[0]);
}

async function errors(client) {
  await attempt('syntax', () => client.query('selec 1'));
  await attempt('division', () => client.query('select 1 / $1::int', [0]));
  await attempt('duplicate', () =>
    client.query({ name: 'insert', text: 'insert into node_pg values ($1, $2)', values: [1, 'x'] }),
  );
  await attempt('named that fails to parse', () => client.query({ name: 'bad', text: 'select * from missing_table' }));
  await attempt('the same again', () => client.query({ name: 'bad', text: 'select * from missing_table' }));
  await attempt('usable', async () => (await client.query('select 1 as one')).rows);
  const error = await client
    .query("do $$begin raise exception 'own' using errcode = 'LK001', detail = 'd', hint = 'h'; end$$")
    .catch((e) => e);
  show('fields of an error', [error.code, error.message, error.detail, error.hint, error.severity]);
}

async function transactions(client) {
  await client.query('begin');
  await client.query("insert into node_pg values (100, 'gone')");
  await client.query('savepoint s');
  await attempt('in a savepoint', () => client.query('insert into node_pg values ($1, $2)', [1, 'x']));
  await attempt('aborted', () => client.query('select 1'));
  await client.query('rollback to savepoint s');
  show('inside', (await client.query('select count(*)::int as c from node_pg')).rows[0].c);
  await client.query('rollback');
  show('outside', (await client.query('select count(*)::int as c from node_pg')).rows[0].c);
}

async function copies(client) {
  const input = Readable.from(range(2000).map((n) => `${n + 1000}\tcopied ${n}\n`));
  const into = client.query(copyFrom('copy node_pg from stdin'));
  await pipeline(input, into);
  show('copied in', into.rowCount);
  const parts = [];
  const out = client.query(copyTo('copy (select id, note from node_pg where id >= 1000 order by id) to stdout'));
  await pipeline(out, new Writable({ write: (chunk, _, done) => (parts.push(chunk), done()) }));
  const text = Buffer.concat(parts).toString();
  show('copied out', [text.length, text.split('\n').length, text.slice(0, 20)]);
  await attempt('copy that fails', () =>
    pipeline(Readable.from(['not a number\tx\n']), client.query(copyFrom('copy node_pg from stdin'))),
  );
  await attempt('copy broken off', () =>
    pipeline(
      Readable.from(
        (function* () {
          yield '5000\tx\n';
          throw Object.assign(new Error('mine'), { code: 'mine' });
        })(),
      ),
      client.query(copyFrom('copy node_pg from stdin')),
    ),
  );
  show('nothing of it', (await client.query('select count(*)::int as c from node_pg where id >= 5000')).rows);
}

async function portions(client) {
  const cursor = client.query(new Cursor('select g from generate_series(1, $1::int) g', [250]));
  show('first portion', (await cursor.read(100)).length);
  show('second portion', (await cursor.read(100)).length);
  show('last portion', (await cursor.read(100)).length);
  show('after the last', (await cursor.read(100)).length);
  await cursor.close();
  const left = client.query(new Cursor('select g from generate_series(1, 1000) g'));
  show(
    'left early',
    (await left.read(10)).map((r) => r.g),
  );
  await left.close();
  const failing = client.query(new Cursor('select 1 / (50 - g) from generate_series(1, 100) g'));
  await attempt('fails under way', async () => {
    for (;;) if ((await failing.read(20)).length === 0) return 'no';
  });
  let sum = 0;
  for await (const row of client.query(
    new QueryStream('select g from generate_series(1, $1::int) g', [5000], { batchSize: 64 }),
  ))
    sum += row.g;
  show('stream', sum);
  for await (const row of client.query(
    new QueryStream('select g from generate_series(1, 100000) g', [], { batchSize: 10 }),
  ))
    if (row.g > 25) break;
  show('after a stream left early', (await client.query('select 1 as one')).rows);
  show(
    'big',
    (await client.query("select repeat('b', 100000) as big from generate_series(1, 20)")).rows
      .map((r) => r.big.length)
      .reduce((a, b) => a + b),
  );
}

async function cancel(client, other) {
  const pid = (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const asleep = client.query('select pg_sleep(20)').catch((e) => e.code);
  await sleep(200);
  show('cancel by number', (await other.query('select pg_cancel_backend($1)', [client.processID])).rows);
  show('canceled', await asleep);
  const again = client.query('select pg_sleep(20)').catch((e) => e.code);
  await sleep(200);
  await new Promise((done) => {
    const canceling = new pg.Client(where);
    canceling.connection.on('connect', () => canceling.connection.cancel(client.processID, client.secretKey));
    canceling.connection.on('end', done);
    canceling.connection.on('error', done);
    canceling.connection.connect(where.port, where.host);
  });
  show('canceled by key', await again);
  show('number is one', typeof pid);
}

async function manyAtOnce() {
  const pool = new pg.Pool({ ...where, max: 8 });
  const results = await Promise.all(
    range(40).map(async (n) => {
      const client = await pool.connect();
      try {
        await client.query('begin');
        await client.query({ name: 'put', text: 'insert into node_pg values ($1, $2)', values: [10000 + n, 'pool'] });
        const found = await client.query({
          name: 'get',
          text: 'select note, $1::int as n from node_pg where id = $1',
          values: [10000 + n],
        });
        await client.query(n % 4 ? 'commit' : 'rollback');
        return found.rows[0].n;
      } finally {
        client.release();
      }
    }),
  );
  show('each its own', results);
  show('kept', (await pool.query("select count(*)::int as c from node_pg where note = 'pool'")).rows);
  show(
    'queued on one connection',
    await (async () => {
      const client = await pool.connect();
      const all = await Promise.all(
        range(20).map((n) =>
          client.query(n === 7 ? 'select 1/0' : `select ${n} as n`).then(
            (r) => r.rows[0].n,
            (e) => e.code,
          ),
        ),
      );
      client.release();
      return all;
    })(),
  );
  await pool.end();
}

async function afterDdl(client, other) {
  const holder = new pg.Client(where);
  await holder.connect();
  await holder.query('begin'); // so that all the rest happens on one server of two
  await client.query('drop table if exists node_ddl; create table node_ddl (a int); insert into node_ddl values (1)');
  const all = { name: 'all', text: 'select * from node_ddl' };
  show('before', (await client.query(all)).rows);
  await other.query("alter table node_ddl add b text default 'new'");
  await attempt('after', async () => (await client.query(all)).rows);
  show('fresh', (await other.query({ name: 'fresh', text: 'select * from node_ddl' })).rows);
  await client.query('drop table node_ddl');
  await holder.end();
}

run(async () => {
  const client = new pg.Client({ ...where, application_name: 'node pg', statement_timeout: 30000 });
  const notices = [];
  client.on('notice', (n) => notices.push(n.message));
  await client.connect();
  const other = new pg.Client(where);
  await other.connect();
  show(
    'settings',
    (await client.query("select current_setting('application_name') as a, current_setting('statement_timeout') as t"))
      .rows,
  );
  await statements(client);
  await types(client);
  await errors(client);
  await transactions(client);
  await copies(client);
  await portions(client);
  await cancel(client, other);
  await manyAtOnce();
  await afterDdl(client, other);
  await client.query("do $$begin raise notice 'heard'; end$$");
  show(
    'notices',
    notices.filter((n) => n === 'heard'),
  );
  show(
    'settings of others',
    (await other.query("select current_setting('application_name') as a, current_setting('statement_timeout') as t"))
      .rows,
  );
  await client.query('drop table node_pg');
  await client.end();
  await other.end();
});
