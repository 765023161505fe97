// What the programs here share: where the server is (PG* in the environment), and a transcript on standard output.

const where = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
};

function plain(value) {
  return JSON.stringify(value, (key, v) => {
    if (typeof v === 'bigint') return v.toString() + 'n';
    if (v && v.type === 'Buffer' && Array.isArray(v.data)) return '\\x' + Buffer.from(v.data).toString('hex');
    if (v instanceof Uint8Array) return '\\x' + Buffer.from(v).toString('hex');
    return v;
  });
}

function show(what, value) {
  console.log(`${what}: ${value === undefined ? 'undefined' : plain(value)}`);
}

function stateOf(error) {
  for (let e = error; e; e = e.original || e.driverError || e.cause) if (e.code) return e.code;
  return String(error);
}

// Shows what the work gives, or the SQLSTATE of its error.
async function attempt(what, work) {
  try {
    show(what, await work());
  } catch (error) {
    show(what, 'error ' + stateOf(error));
  }
}

// Runs main, then says that it came to its end.
function run(main) {
  main().then(
    () => {
      show('end', 'reached');
    },
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const range = (count) => [...Array(count).keys()];

module.exports = { where, show, attempt, run, sleep, range, stateOf };
