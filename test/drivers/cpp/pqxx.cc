// libpqxx: works and subtransactions, prepared statements, pipelines, streams (COPY), cursors, large results, cancel.
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <pqxx/pqxx>
#include <thread>

namespace {

void show(const std::string& what, const std::string& value) { std::cout << what << ": " << value << std::endl; }
void show(const std::string& what, long value) { show(what, std::to_string(value)); }

std::string text(const pqxx::result& result) {
  std::string out;
  for (const auto& row : result) {
    for (const auto& field : row) out += std::string("|") + (field.is_null() ? "null" : field.c_str());
    out += ";";
  }
  return out;
}

// Shows what the work gives, or the SQLSTATE of its error.
template <class Work>
void attempt(const std::string& what, Work work) {
  try {
    show(what, work());
  } catch (const pqxx::sql_error& e) {
    show(what, "error " + e.sqlstate());
  } catch (const std::exception&) {
    show(what, "refused by the library");
  }
}

void statements(pqxx::connection& c) {
  {
    pqxx::work w(c);
    w.exec("create table cpp_pqxx (id int primary key, note text)");
    w.commit();
  }
  c.prepare("put", "insert into cpp_pqxx values ($1, $2)");
  c.prepare("get", "select note from cpp_pqxx where id = $1");
  for (int n = 0; n < 10; ++n) {
    pqxx::work w(c);
    w.exec_prepared("put", n, "note " + std::to_string(n));
    show("get " + std::to_string(n), text(w.exec_prepared("get", n)));
    w.commit();
  }
  c.prepare("lazy", "select * from missing_table");
  attempt("prepared on nothing", [&] {
    pqxx::work w(c);
    return text(w.exec_prepared("lazy"));
  });
  c.unprepare("put");
  attempt("unprepared", [&] {
    pqxx::work w(c);
    return text(w.exec_prepared("put", 100, "x"));
  });
  c.prepare("put", "insert into cpp_pqxx (note, id) values ($1, $2)");
  attempt("made again", [&] {
    pqxx::work w(c);
    w.exec_prepared("put", "again", 100);
    std::string saw = text(w.exec_prepared("get", 100));
    w.commit();
    return saw;
  });
  pqxx::work w(c);
  for (int n = 0; n < 3; ++n)
    show("parameters", text(w.exec_params("select $1::int + 1, $2::text, $3::text", n, "it's", nullptr)));
}

void types(pqxx::connection& c) {
  pqxx::work w(c);
  const char* sql =
      "select $1::timestamptz at time zone 'UTC', $2::date, $3::int[], $4::jsonb, $5::bytea, $6::numeric, $7::bool, "
      "$8::float8";
  for (int n = 0; n < 2; ++n)
    show("types",
         text(w.exec_params(sql, "2024-02-29 12:30Z", "2024-02-29", "{1,NULL,3}", "{\"k\": [1, null]}",
                            pqxx::binarystring(std::string("\x00\xff", 2)), "12345678901234567890.5", true, 0.1)));
}

void errors(pqxx::connection& c) {
  auto query = [&](const std::string& sql) {
    return [&c, sql] {
      pqxx::work w(c);
      return text(w.exec(sql));
    };
  };
  attempt("syntax", query("selec 1"));
  attempt("division", query("select 1 / 0"));
  attempt("duplicate", query("insert into cpp_pqxx values (1)"));
  attempt("missing", query("select * from missing_table"));
  attempt("deallocate of nobody", query("deallocate nobody"));
  attempt("usable", query("select 1"));
}

void transactions(pqxx::connection& c) {
  {
    pqxx::work w(c);
    w.exec("insert into cpp_pqxx values (500, 'gone')");
    {
      pqxx::subtransaction s(w, "inner");
      attempt("inner", [&] { return text(s.exec("insert into cpp_pqxx values (500)")); });
    }
    show("inside", text(w.exec("select count(*) from cpp_pqxx where id = 500")));
  }  // not committed
  pqxx::nontransaction n(c);
  show("outside", text(n.exec("select count(*) from cpp_pqxx where id = 500")));
  n.commit();
  pqxx::perform([&c] {
    pqxx::transaction<pqxx::serializable> w(c);
    show("level", text(w.exec("show transaction_isolation")));
    w.commit();
  });
  pqxx::robusttransaction<> r(c);
  r.exec("insert into cpp_pqxx values (501, 'robust')");
  r.commit();
}

void pipelines(pqxx::connection& c) {
  pqxx::work w(c);
  pqxx::pipeline p(w);
  std::map<int, pqxx::pipeline::query_id> ids;
  p.retain(10);
  for (int n = 0; n < 40; ++n) ids[n] = p.insert("select " + std::to_string(n));
  long sum = 0;
  for (auto& [n, id] : ids) sum += p.retrieve(id)[0][0].as<int>();
  show("pipeline", sum);
  p.insert("select 1");
  auto bad = p.insert("select 1/0");
  attempt("pipeline that fails", [&] { return text(p.retrieve(bad)); });
}

void copies(pqxx::connection& c) {
  {
    pqxx::work w(c);
    pqxx::stream_to to(w, "cpp_pqxx", std::vector<std::string>{"id", "note"});
    for (int n = 1000; n < 2000; ++n) to << std::make_tuple(n, std::string("copied"));
    to.complete();
    w.commit();
  }
  {
    pqxx::work w(c);
    pqxx::stream_from from(w, "cpp_pqxx");
    std::tuple<int, std::string> row;
    long sum = 0;
    while (from >> row) sum += std::get<0>(row);
    show("copied", sum);
  }
  attempt("copy that fails", [&] {
    pqxx::work w(c);
    pqxx::stream_to to(w, "cpp_pqxx", std::vector<std::string>{"id", "note"});
    to << std::make_tuple(std::string("no number"), std::string("x"));
    to.complete();
    return std::string("no");
  });
  attempt("usable", [&] {
    pqxx::work w(c);
    return text(w.exec("select 1"));
  });
}

void big_results(pqxx::connection& c) {
  pqxx::work w(c);
  pqxx::icursorstream cursor(w, "select generate_series(1, 500)", "portion", 100);
  pqxx::result portion;
  long count = 0, portions = 0;
  while (cursor >> portion) {
    count += static_cast<long>(portion.size());
    ++portions;
  }
  show("cursor", std::to_string(count) + " in " + std::to_string(portions));
  show("big", static_cast<long>(w.exec("select repeat('b', 5000000)")[0][0].size()));
}

void cancel(pqxx::connection& c) {
  attempt("canceled", [&] {
    std::thread canceling([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      c.cancel_query();
    });
    try {
      pqxx::nontransaction n(c);
      n.exec("select pg_sleep(20)");
      canceling.join();
    } catch (...) {
      canceling.join();
      throw;
    }
    return std::string("no");
  });
  attempt("usable after cancel", [&] {
    pqxx::work w(c);
    return text(w.exec("select 1"));
  });
}

void threads(pqxx::connection& c) {
  std::vector<std::thread> all;
  std::mutex mutex;
  std::map<int, std::string> saw;
  for (int number = 0; number < 8; ++number)
    all.emplace_back([&, number] {
      pqxx::connection own("application_name=thread_" + std::to_string(number));
      own.prepare("mine", "select $1::int * 2, current_setting('application_name')");
      for (int turn = 0; turn < 8; ++turn) {
        pqxx::work w(own);
        w.exec_params("insert into cpp_pqxx values ($1, 'thread')", 10000 + number * 100 + turn);
        std::string answer = text(w.exec_prepared("mine", turn));
        w.commit();
        std::lock_guard guard(mutex);
        saw[number] += answer;
      }
    });
  for (auto& thread : all) thread.join();
  for (auto& [number, answers] : saw) show("thread " + std::to_string(number), answers);
  pqxx::work w(c);
  show("kept", text(w.exec("select count(*) from cpp_pqxx where note = 'thread'")));
}

}  // namespace

int main() {
  pqxx::connection c("client_encoding=UTF8 options='-c statement_timeout=30s'");
  c.set_variable("datestyle", "'ISO, DMY'");
  for (auto step : {statements, types, errors, transactions, pipelines, copies, big_results, cancel, threads}) step(c);
  {
    pqxx::work w(c);
    show("settings", text(w.exec("show statement_timeout")) + text(w.exec("show datestyle")));
    w.exec("drop table cpp_pqxx");
    w.commit();
  }
  c.disconnect();
  show("end", "reached");
}
