# ruby-pg: parameters, prepared statements, type maps, COPY, pipeline mode, single row mode, cancel, threads.
require_relative "tell"

def connect(**more)
  PG.connect(**WHERE, **more)
end

def statements(c)
  c.exec("create table rb_pg (id int primary key, note text)")
  c.prepare("put", "insert into rb_pg values ($1, $2)")
  10.times { |n| c.exec_prepared("put", [n, "note #{n}"]) }
  c.prepare("get", "select note from rb_pg where id = $1")
  6.times { |n| show("get #{n}", c.exec_prepared("get", [n]).values) }
  show("described", c.describe_prepared("get").then { |r| [r.nparams, r.fields, r.ftype(0)] })
  attempt("name in use") { c.prepare("get", "select 1") }
  attempt("unknown name") { c.exec_prepared("nobody").values }
  c.exec("deallocate get")
  attempt("deallocated") { c.exec_prepared("get", [1]).values }
  c.prepare("get", "select id from rb_pg where note = $1")
  show("made again", c.exec_prepared("get", ["note 3"]).values)
  attempt("deallocate of nobody") { c.exec("deallocate nobody").cmd_status }
  c.exec_params("deallocate \"get\"", [])
  attempt("deallocated by message") { c.exec_prepared("get", ["note 3"]).values }
  c.exec("deallocate all")
  attempt("all are gone") { c.exec_prepared("put", [1, "x"]).values }
  c.prepare("put", "insert into rb_pg values ($1, $2)")
  c.exec("discard all")
  attempt("discarded") { c.exec_prepared("put", [1, "x"]).values }
  c.reset
  show("after a reset", c.exec_params("select $1::int + 1", [41]).values)
end

def types(c)
  c.type_map_for_results = PG::BasicTypeMapForResults.new(c)
  c.type_map_for_queries = PG::BasicTypeMapForQueries.new(c)
  sql = "select $1::date, $2::int[], $3::float8, $4::bool, $5::text, $6::jsonb, $7::numeric, $8::bytea"
  values = [Date.new(2024, 2, 29), [1, nil, 3], 0.1, true, "ä'\\", { "k" => [1, nil] }, BigDecimal("1234567890123456789.5"), PG::BasicTypeMapForQueries::BinaryData.new("\x00\xff".b)]
  3.times { |n| show("types #{n}", c.exec_params(sql, values).values) }
  show("binary", c.exec_params("select 7::int8, 'x'::text, null", [], 1).values)
  c.type_map_for_results = PG::TypeMapAllStrings.new
  c.type_map_for_queries = PG::TypeMapAllStrings.new
end

def errors(c)
  attempt("syntax") { c.exec("selec 1") }
  attempt("division") { c.exec_params("select 1 / $1::int", [0]) }
  attempt("duplicate") { c.exec("insert into rb_pg values (1)") }
  attempt("missing") { c.exec_params("select * from missing_table where a = $1", [1]) }
  attempt("usable") { c.exec("select 1").values }
  begin
    c.exec("do $$begin raise exception 'own' using errcode = 'LK001', detail = 'd', hint = 'h'; end$$")
  rescue PG::Error => e
    show("fields", [PG::PG_DIAG_SQLSTATE, PG::PG_DIAG_MESSAGE_PRIMARY, PG::PG_DIAG_MESSAGE_DETAIL, PG::PG_DIAG_MESSAGE_HINT].map { |f| e.result.error_field(f) })
  end
  notices = []
  c.set_notice_processor { |text| notices << text.strip }
  c.exec("do $$begin raise notice 'heard'; end$$")
  show("notices", notices)
end

def transactions(c)
  attempt("rolled back") { c.transaction { c.exec("insert into rb_pg values (500)"); c.exec("insert into rb_pg values (500)") } }
  c.transaction do
    c.exec("insert into rb_pg values (501); savepoint s")
    attempt("inner") { c.exec("insert into rb_pg values (501)") }
    show("status", c.transaction_status == PG::PQTRANS_INERROR)
    c.exec("rollback to s")
  end
  show("rows", c.exec("select id from rb_pg where id >= 500").values)
  show("set local", c.transaction { c.exec("set local work_mem = '7MB'"); c.exec("show work_mem").values })
  show("after it", c.exec("show work_mem").values)
end

def copies(c)
  c.copy_data("copy rb_pg from stdin", PG::TextEncoder::CopyRow.new) { 1000.times { |n| c.put_copy_data([1000 + n, "copied"]) } }
  rows = []
  c.copy_data("copy (select * from rb_pg where id >= 1000 order by id) to stdout", PG::TextDecoder::CopyRow.new) { while (row = c.get_copy_data) do rows << row end }
  show("copied", [rows.size, rows.first, rows.last])
  attempt("copy that fails") { c.copy_data("copy rb_pg from stdin") { c.put_copy_data("no number\tx\n") } }
  attempt("copy broken off") { c.copy_data("copy rb_pg from stdin") { c.put_copy_data("5000\tx\n"); raise ArgumentError } }
  attempt("usable") { c.exec("select count(*) from rb_pg where id >= 5000").values }
end

def pipelines(c)
  c.enter_pipeline_mode
  c.send_query_params("select $1::int", [1])
  c.pipeline_sync
  c.send_query_params("select 1 / $1::int", [0])
  c.send_query_params("select $1::int", [2])
  c.pipeline_sync
  c.send_prepare("piped", "select $1::int * 2")
  5.times { |n| c.send_query_prepared("piped", [n]) }
  c.pipeline_sync
  saw = []
  syncs = 0
  while syncs < 3
    result = c.get_result
    next if result.nil?
    case result.result_status
    when PG::PGRES_PIPELINE_SYNC then syncs += 1; saw << "sync"
    when PG::PGRES_PIPELINE_ABORTED then saw << "skipped"
    when PG::PGRES_FATAL_ERROR then saw << result.error_field(PG::PG_DIAG_SQLSTATE)
    else saw << result.values
    end
  end
  c.exit_pipeline_mode
  show("pipeline", saw)
  c.exec("deallocate piped")
end

def big_results(c)
  c.send_query("select g, repeat('x', 1000) from generate_series(1, 3000) g")
  c.set_single_row_mode
  sum = 0
  c.get_result.stream_each_row { |row| sum += row[0].to_i }
  c.get_result
  show("row by row", sum)
  c.transaction do
    c.exec("declare portion cursor for select generate_series(1, 100)")
    show("fetched", c.exec("fetch 10 from portion").values.flatten)
    show("moved", c.exec("move 50 from portion").cmd_tuples)
    show("fetched more", c.exec("fetch 3 from portion").values.flatten)
  end
end

def cancel(c)
  c.send_query("select pg_sleep(20)")
  sleep 0.2
  show("cancel", c.cancel)
  attempt("canceled") { c.get_last_result.values }
  attempt("usable") { c.exec("select 1").values }
  pid = c.backend_pid
  canceling = Thread.new { sleep 0.2; d = connect; d.exec_params("select pg_cancel_backend($1::int)", [pid]); d.close }
  attempt("canceled by number") { c.exec("select pg_sleep(20)").values }
  canceling.join
end

def threads(c)
  saw = Array.new(8) do |number|
    Thread.new do
      own = connect(application_name: "thread #{number}")
      own.prepare("mine", "select #{number} + $1::int, current_setting('application_name')")
      answers = Array.new(8) do |turn|
        own.transaction do
          own.exec_params("insert into rb_pg values ($1, 'thread')", [10_000 + number * 100 + turn])
          own.exec_prepared("mine", [turn]).values.first
        end
      end
      own.close
      answers
    end
  end.map(&:value)
  show("threads", saw)
  show("kept", c.exec("select count(*) from rb_pg where note = 'thread'").values)
end

c = connect(options: "-c statement_timeout=30s -c extra_float_digits=1", client_encoding: "UTF8")
show("settings", %w[statement_timeout extra_float_digits client_encoding].map { |n| c.exec("show #{n}").getvalue(0, 0) })
show("reported", %w[client_encoding DateStyle server_encoding integer_datetimes is_superuser in_hot_standby].map { |n| c.parameter_status(n) })
statements(c)
types(c)
errors(c)
transactions(c)
copies(c)
pipelines(c)
big_results(c)
cancel(c)
threads(c)
c.exec("drop table rb_pg")
c.close
show("end", "reached")
