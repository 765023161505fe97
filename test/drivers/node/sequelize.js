// Sequelize: models, sync, associations, managed transactions and savepoints, bulk work, and its introspection.

const { Sequelize, DataTypes, Op, Transaction } = require('sequelize');
const { where, show, attempt, run, range } = require('./tell');

function models(db) {
  const Author = db.define(
    'Author',
    { name: { type: DataTypes.STRING, unique: true } },
    { tableName: 'seq_author', timestamps: false },
  );
  const Book = db.define(
    'Book',
    {
      title: { type: DataTypes.STRING, allowNull: false },
      price: DataTypes.DECIMAL(10, 2),
      tags: DataTypes.ARRAY(DataTypes.TEXT),
      data: DataTypes.JSONB,
      cover: DataTypes.BLOB,
      printed: DataTypes.DATE,
      kind: DataTypes.ENUM('paper', 'ebook'),
      pages: { type: DataTypes.INTEGER, defaultValue: 0 },
    },
    { tableName: 'seq_book', timestamps: false },
  );
  Author.hasMany(Book, { foreignKey: 'authorId', onDelete: 'CASCADE' });
  Book.belongsTo(Author, { foreignKey: 'authorId' });
  return { Author, Book };
}

async function queries({ Author, Book }) {
  const author = await Author.create({ name: 'first' });
  await author.createBook({
    title: 'one',
    price: '12.50',
    tags: ['x', 'y,z'],
    data: { a: [1, null] },
    cover: Buffer.from('00ff', 'hex'),
    printed: new Date(Date.UTC(2024, 1, 29)),
    kind: 'paper',
  });
  await Book.bulkCreate(range(10).map((n) => ({ title: `bulk ${n}`, pages: n, authorId: author.id })));
  show('joined', await Author.findOne({ where: { name: 'first' }, include: { model: Book, where: { title: 'one' } } }));
  for (const n of range(7)) show('page ' + n, await Book.count({ where: { pages: { [Op.gte]: n } } }));
  show('and count', await Book.findAndCountAll({ limit: 3, order: [['id', 'ASC']], attributes: ['title'] }));
  show(
    'grouped',
    await Book.findAll({
      attributes: ['authorId', [Sequelize.fn('sum', Sequelize.col('pages')), 'total']],
      group: 'authorId',
      raw: true,
    }),
  );
  show('found or created', (await Author.findOrCreate({ where: { name: 'second' } }))[1]);
  show('found or created again', (await Author.findOrCreate({ where: { name: 'second' } }))[1]);
  show('upsert', (await Author.upsert({ id: author.id, name: 'renamed' }))[0].name);
  show('updated', (await Book.update({ pages: 100 }, { where: { pages: { [Op.lt]: 5 } }, returning: ['id'] }))[0]);
  show('incremented', (await Book.increment('pages', { by: 5, where: { title: 'one' } }))[0][1]);
  await attempt('duplicate', () => Author.create({ name: 'second' }));
  await attempt('wrong enum', () => Book.create({ title: 'x', kind: 'stone' }));
  await attempt('usable', () => Author.count());
}

async function transactions(db, { Author }) {
  await attempt('rolled back', () =>
    db.transaction(async (transaction) => {
      await Author.create({ name: 'gone' }, { transaction });
      await Author.create({ name: 'second' }, { transaction });
    }),
  );
  show(
    'savepoint',
    await db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ }, async (transaction) => {
      await Author.create({ name: 'outer' }, { transaction });
      const inner = await db
        .transaction({ transaction }, (t) => Author.create({ name: 'outer' }, { transaction: t }))
        .catch((e) => e.original.code);
      const [level] = await db.query("select current_setting('transaction_isolation') as l", { transaction });
      return [inner, level, await Author.count({ transaction })];
    }),
  );
  const t = await db.transaction();
  show('locked', (await Author.findOne({ where: { name: 'second' }, lock: t.LOCK.UPDATE, transaction: t })).name);
  await t.rollback();
}

run(async () => {
  const db = new Sequelize({
    dialect: 'postgres',
    host: where.host,
    port: where.port,
    username: where.user,
    password: where.password,
    database: where.database,
    logging: false,
    pool: { max: 7 },
    dialectOptions: { application_name: 'sequelize', statement_timeout: 20000 },
  });
  await db.authenticate();
  const all = models(db);
  await db.sync({ force: true });
  await queries(all);
  await transactions(db, all);
  const bound = 'select $1::int as n, $2::text as t';
  for (const n of range(6)) show('bound ' + n, (await db.query(bound, { bind: [n, 'x'] }))[0]);
  show(
    'settings',
    (await db.query("select current_setting('application_name') as a, current_setting('statement_timeout') as t"))[0],
  );
  show(
    'at once',
    await Promise.all(
      range(30).map((n) =>
        db
          .transaction(async (transaction) => {
            const made = await all.Author.create({ name: `at once ${n}` }, { transaction });
            await made.createBook({ title: `b ${n}` }, { transaction });
            if (n % 3 === 0) throw new Error('undone');
            return made.name;
          })
          .catch((e) => e.message),
      ),
    ),
  );
  show('kept', [await all.Author.count(), await all.Book.count()]);
  await db.getQueryInterface().addColumn('seq_book', 'extra', { type: DataTypes.INTEGER, defaultValue: 3 });
  show('after alter', (await db.query('select extra, count(*)::int from seq_book group by 1'))[0]);
  show(
    'described',
    Object.entries(await db.getQueryInterface().describeTable('seq_book')).map(([k, v]) => [k, v.type]),
  );
  show(
    'indexes',
    (await db.getQueryInterface().showIndex('seq_author')).map((i) => [i.name, i.unique]),
  );
  show('destroyed', await all.Author.destroy({ where: { name: { [Op.like]: 'at once%' } } }));
  await db.sync({ alter: true });
  await db.drop({ cascade: true });
  await db.close();
});
