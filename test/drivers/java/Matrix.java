// pgjdbc: batches, prepareThreshold, cursors by fetch size, autosave, COPY, large objects, cancel, DDL under
// statements, types in text and binary. The same steps with several settings of the driver.
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.*;
import java.util.concurrent.*;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.copy.CopyIn;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class Matrix {
  interface Work {
    Object run() throws Exception;
  }

  static synchronized void show(String what, Object value) {
    System.out.println(what + ": " + value);
  }

  // Shows what the work gives, or the SQLSTATE of its error.
  static void attempt(String what, Work work) throws Exception {
    try {
      show(what, work.run());
    } catch (SQLException e) {
      show(what, "error " + e.getSQLState());
    }
  }

  static Connection connect(String settings) throws SQLException {
    Map<String, String> env = System.getenv();
    String url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE") + "?"
        + settings;
    return DriverManager.getConnection(url, env.get("PGUSER"), env.get("PGPASSWORD"));
  }

  static Object shown(Object value) throws SQLException {
    if (value instanceof java.sql.Array)
      return Arrays.toString((Object[]) ((java.sql.Array) value).getArray());
    if (value instanceof byte[])
      return Arrays.toString((byte[]) value);
    return value;
  }

  static String rows(ResultSet r) throws SQLException {
    StringBuilder out = new StringBuilder();
    while (r.next()) {
      for (int i = 1; i <= r.getMetaData().getColumnCount(); ++i) out.append('|').append(shown(r.getObject(i)));
      out.append(';');
    }
    r.close();
    return out.toString();
  }

  static String ask(Connection c, String sql, Object... values) throws SQLException {
    try (PreparedStatement s = c.prepareStatement(sql)) {
      for (int i = 0; i < values.length; ++i) s.setObject(i + 1, values[i]);
      return s.execute() ? rows(s.getResultSet()) : "count " + s.getUpdateCount();
    }
  }

  static void simple(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute(sql);
    }
  }

  static void statements(Connection c) throws Exception {
    simple(c, "create table jv (id serial primary key, note text)");
    try (PreparedStatement put =
             c.prepareStatement("insert into jv (note) values (?)", Statement.RETURN_GENERATED_KEYS)) {
      for (int n = 0; n < 10; ++n) {
        put.setString(1, "note " + n);
        put.executeUpdate();
        show("key " + n, rows(put.getGeneratedKeys()));
      }
      show("prepared by the server", put.unwrap(PGStatement.class).isUseServerPrepare());
    }
    for (int n = 1; n < 9; ++n) show("get " + n, ask(c, "select note from jv where id = ?", n));
    try (Statement s = c.createStatement()) {
      StringBuilder saw = new StringBuilder();
      boolean isRows = s.execute("select 1; update jv set note = note; select 2, 3");
      while (isRows || s.getUpdateCount() != -1) {
        saw.append(isRows ? rows(s.getResultSet()) : "count " + s.getUpdateCount() + ";");
        isRows = s.getMoreResults();
      }
      show("several", saw);
    }
    attempt("metadata", () -> {
      try (PreparedStatement s = c.prepareStatement("select id, note from jv where id > ?")) {
        return s.getMetaData().getColumnName(2) + " " + s.getParameterMetaData().getParameterTypeName(1);
      }
    });
    show("columns", rows(c.getMetaData().getPrimaryKeys(null, "public", "jv")));
  }

  static void batches(Connection c) throws Exception {
    try (PreparedStatement put = c.prepareStatement("insert into jv (id, note) values (?, ?)")) {
      for (int round = 0; round < 3; ++round) {
        for (int n = 0; n < 300; ++n) {
          put.setInt(1, 1000 + round * 1000 + n);
          put.setString(2, "batch");
          put.addBatch();
        }
        show("batch " + round,
            Arrays.stream(put.executeBatch()).filter(n -> n == 1 || n == Statement.SUCCESS_NO_INFO).count());
      }
      for (int n : new int[] {5000, 5001, 1, 5002}) {
        put.setInt(1, n);
        put.setString(2, "fails");
        put.addBatch();
      }
      try {
        put.executeBatch();
      } catch (BatchUpdateException e) {
        show("batch that fails", e.getSQLState() + " " + Arrays.toString(e.getUpdateCounts()));
      }
    }
    show("kept", ask(c, "select note, count(*) from jv where id >= 1000 group by 1 order by 1"));
    try (Statement s = c.createStatement()) {
      s.addBatch("insert into jv (id) values (6000)");
      s.addBatch("update jv set note = 'u' where id = 6000");
      s.addBatch("delete from jv where id = 6000");
      show("batch of texts", Arrays.toString(s.executeBatch()));
    }
  }

  static void types(Connection c) throws Exception {
    String sql =
        "select ?::timestamptz, ?::date, ?::int[], ?::jsonb, ?::bytea, ?::numeric, ?::bool, ?::float8, ?::uuid, ?::text";
    for (int turn = 0; turn < 7; ++turn) {
      try (PreparedStatement s = c.prepareStatement(sql)) {
        s.setObject(1, OffsetDateTime.of(2024, 2, 29, 12, 30, 0, 0, ZoneOffset.UTC));
        s.setObject(2, LocalDate.of(2024, 2, 29));
        s.setArray(3, c.createArrayOf("int4", new Integer[] {1, null, 3}));
        s.setString(4, "{\"k\": [1, null]}");
        s.setBytes(5, new byte[] {0, -1});
        s.setBigDecimal(6, new BigDecimal("12345678901234567890.5"));
        s.setBoolean(7, true);
        s.setDouble(8, 0.1);
        s.setObject(9, UUID.fromString("5f0c6f2e-1b0b-4c4e-9d0f-0a0b0c0d0e0f"));
        s.setNull(10, Types.VARCHAR);
        ResultSet r = s.executeQuery();
        r.next();
        StringBuilder out = new StringBuilder();
        for (int i = 1; i <= 10; ++i)
          out.append('|').append(i == 1 ? r.getObject(1, OffsetDateTime.class) : shown(r.getObject(i)));
        show("types " + turn, out);
      }
    }
  }

  static void errors(Connection c) throws Exception {
    for (int turn = 0; turn < 2; ++turn) {
      attempt("syntax", () -> ask(c, "selec 1"));
      attempt("division", () -> ask(c, "select 1 / ?", 0));
      attempt("duplicate", () -> ask(c, "insert into jv (id) values (?)", 1));
      attempt("missing", () -> ask(c, "select * from missing_table where a = ?", 1));
      attempt("usable", () -> ask(c, "select ?::int", 1));
    }
    attempt("deallocate of nobody", () -> ask(c, "deallocate nobody"));
    try (Statement s = c.createStatement()) {
      s.execute("do $$begin raise notice 'heard'; end$$");
      show("warning", s.getWarnings().getMessage());
    }
  }

  static void transactions(Connection c) throws Exception {
    c.setAutoCommit(false);
    ask(c, "insert into jv (id, note) values (?, 'gone')", 7000);
    Savepoint s = c.setSavepoint("inner");
    attempt("inner", () -> ask(c, "insert into jv (id) values (?)", 7000));
    attempt("aborted or saved", () -> ask(c, "select ?::int", 1));
    c.rollback(s);
    show("inside", ask(c, "select count(*) from jv where id = ?", 7000));
    c.rollback();
    show("outside", ask(c, "select count(*) from jv where id = ?", 7000));
    c.commit();
    c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
    c.setReadOnly(true);
    show("level", ask(c, "show transaction_isolation"));
    attempt("read only", () -> ask(c, "insert into jv (id) values (?)", 7001));
    c.rollback();
    c.setReadOnly(false);
    c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    c.setAutoCommit(true);
    show("level now", ask(c, "show transaction_isolation"));
  }

  static void portions(Connection c) throws Exception {
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement("select g from generate_series(1, ?::int) g")) {
      s.setFetchSize(50);
      for (int turn = 0; turn < 7; ++turn) {
        s.setInt(1, 500 + turn);
        long sum = 0;
        ResultSet r = s.executeQuery();
        while (r.next()) sum += r.getInt(1);
        show("fetched " + turn, sum);
      }
      ResultSet left = s.executeQuery();
      left.next();
      show("left early", ask(c, "select ?::int", left.getInt(1)));
      left.close();
    }
    attempt("fails under way", () -> {
      try (PreparedStatement s = c.prepareStatement("select 1 / (75 - g) from generate_series(1, 100) g")) {
        s.setFetchSize(50);
        return rows(s.executeQuery()).length();
      }
    });
    c.rollback();
    try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
      ResultSet r = s.executeQuery("select id, note from jv where id <= 3 order by id");
      r.absolute(2);
      r.updateString("note", "by row");
      r.updateRow();
      r.close();
    }
    LargeObjectManager manager = c.unwrap(PGConnection.class).getLargeObjectAPI();
    long number = manager.createLO();
    LargeObject large = manager.open(number);
    large.write(new byte[100000]);
    large.seek(99990);
    show("large object", large.read(100).length);
    large.close();
    manager.delete(number);
    c.commit();
    c.setAutoCommit(true);
    show("updated", ask(c, "select note from jv where id = ?", 2));
    show("big", ask(c, "select repeat('b', 500000)").length());
  }

  static void copies(Connection c) throws Exception {
    var api = c.unwrap(PGConnection.class).getCopyAPI();
    StringBuilder data = new StringBuilder();
    for (int n = 20000; n < 21000; ++n) data.append(n).append("\tcopied\n");
    show("copied in",
        api.copyIn("copy jv (id, note) from stdin",
            new ByteArrayInputStream(data.toString().getBytes(StandardCharsets.UTF_8))));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    show("copied out",
        api.copyOut("copy (select id, note from jv where id >= 20000 order by 1) to stdout", out) + " " + out.size());
    attempt("copy that fails",
        () -> api.copyIn("copy jv (id) from stdin", new ByteArrayInputStream("no number\n".getBytes())));
    CopyIn broken = api.copyIn("copy jv (id) from stdin");
    broken.writeToCopy("30000\n".getBytes(), 0, 6);
    broken.cancelCopy();
    show("nothing of it", ask(c, "select count(*) from jv where id = ?", 30000));
  }

  static void cancel(Connection c, boolean waits) throws Exception {
    try (Statement s = c.createStatement()) {
      Timer timer = new Timer(true);
      timer.schedule(new TimerTask() {
        public void run() {
          try {
            s.cancel();
          } catch (SQLException e) {
            show("cancel", e.getSQLState());
          }
        }
      }, 200);
      attempt("canceled", () -> s.execute("select pg_sleep(20)"));
      timer.cancel();
      if (!waits)
        return;
      s.setQueryTimeout(1);
      attempt("timeout", () -> s.execute("select pg_sleep(20)"));
    }
    attempt("usable", () -> ask(c, "select ?::int", 1));
  }

  static void ddl(Connection c, Connection other, Connection holder) throws Exception {
    simple(holder, "begin"); // so that all the rest happens on one server of two
    simple(other, "create table jv_ddl as select 1 as a");
    for (int n = 0; n < 7; ++n) show("before " + n, ask(c, "select * from jv_ddl"));
    simple(other, "alter table jv_ddl add b text default 'x'");
    attempt("after alter", () -> ask(c, "select * from jv_ddl"));
    attempt("again", () -> ask(c, "select * from jv_ddl"));
    c.setAutoCommit(false);
    for (int n = 0; n < 7; ++n) show("in transactions " + n, ask(c, "select * from jv_ddl where a = ?", 1));
    c.commit();
    simple(other, "alter table jv_ddl alter a type bigint");
    attempt("first", () -> ask(c, "select ?::int", 1));
    attempt("after alter in a transaction", () -> ask(c, "select * from jv_ddl where a = ?", 1));
    c.rollback();
    c.setAutoCommit(true);
    attempt("after it", () -> ask(c, "select * from jv_ddl where a = ?", 1));
    attempt("another client", () -> ask(other, "select * from jv_ddl where a = ?", 1));
    simple(other, "drop table jv_ddl");
    simple(holder, "rollback");
  }

  static void atOnce(String settings) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    List<Future<String>> all = new ArrayList<>();
    for (int number = 0; number < 8; ++number) {
      int own = number;
      all.add(threads.submit(() -> {
        StringBuilder saw = new StringBuilder();
        try (Connection c = connect(settings + "&ApplicationName=thread" + own)) {
          c.setAutoCommit(false);
          for (int turn = 0; turn < 10; ++turn) {
            ask(c, "insert into jv (id, note) values (?, 'thread')", 50000 + own * 100 + turn);
            saw.append(ask(
                c, "select id, current_setting('application_name') from jv where id = ?", 50000 + own * 100 + turn));
            if (turn % 3 == 0)
              c.rollback();
            else
              c.commit();
          }
        }
        return saw.toString();
      }));
    }
    for (int number = 0; number < 8; ++number) show("thread " + number, all.get(number).get());
    threads.shutdown();
  }

  public static void main(String[] arguments) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("Asia/Tokyo"));
    Locale.setDefault(Locale.ENGLISH);
    String[] all = {"", "prepareThreshold=1&autosave=always&binaryTransfer=false&options=-c%20statement_timeout=30s",
        "prepareThreshold=1&autosave=conservative&reWriteBatchedInserts=true&preferQueryMode=extendedCacheEverything",
        "preferQueryMode=simple"};
    for (String settings : all) {
      show("settings", settings);
      try (Connection c = connect(settings); Connection other = connect(settings);
           Connection holder = connect(settings)) {
        show("zone", ask(c, "show timezone") + ask(c, "show statement_timeout"));
        statements(c);
        batches(c);
        if (!settings.contains("simple"))
          types(c); // it cannot send bytea
        errors(c);
        transactions(c);
        portions(c);
        copies(c);
        cancel(c, settings.isEmpty());
        ddl(c, other, holder);
        if (!settings.contains("Query"))
          atOnce(settings);
        show("kept", ask(c, "select count(*) from jv where note = 'thread'"));
        simple(c, "drop table jv");
      }
    }
    show("end", "reached");
  }
}
