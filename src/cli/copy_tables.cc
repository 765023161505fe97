#include "cli/copy_tables.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/json.h"

namespace lokadb::cli {

namespace {
// Values are written as text: both sides must write them alike.
constexpr char kSameText[] =
    "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; SET TimeZone = 'UTC'; SET extra_float_digits = 1; "
    "SET bytea_output = 'hex'; SET search_path = ''; SET lc_monetary = 'C'; SET array_nulls = on";

std::string within(const Connection& connection, const std::string& snapshot) {
  return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT " + connection.literal(snapshot);
}

}  // namespace

Copier::Copier(std::string cloud, std::string target, std::string org, int jobs)
    : cloud_(std::move(cloud)), target_(std::move(target)), org_(std::move(org)), jobs_(jobs) {}

std::vector<Copier::Table> Copier::tables(Connection& cloud, bool home) const {
  Rows rows = cloud.query(
      "SELECT t.tbl::text, lokadb.copy_columns(t.local_part), CASE WHEN $2 THEN lokadb.staging($1, t.tbl) ELSE "
      "t.local_part::text END, format('public.%I', n.rel), CASE WHEN $2 THEN '' ELSE format(' WHERE %I = "
      "lokadb.to_tenant(%L)', t.tenant_col, $1) END, t.local_part::text FROM lokadb.tables t, lokadb.name_of(t.tbl) n "
      "ORDER BY t.position",
      {org_, home ? "true" : "false"});
  std::vector<Table> all;
  for (int i = 0; i < rows.size(); ++i)
    all.push_back({rows.get(i, 0), rows.get(i, 1), rows.get(i, 2), rows.get(i, 3), rows.get(i, 4), rows.get(i, 5)});
  return all;
}

void Copier::copy_one(Connection& from, Connection& to, const std::string& query, const std::string& into) const {
  from.begin_copy_out("COPY (" + query + ") TO STDOUT");
  to.begin_copy_in("COPY " + into + " FROM STDIN");
  while (auto chunk = from.next()) to.put(chunk->data.get(), chunk->size);
  to.end_copy_in();
}

void Copier::copy_all(const std::vector<Table>& tables, bool home, const std::string& snapshot) const {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Failure> failed;
  bool shows = isatty(STDERR_FILENO) == 1;
  auto work = [&] {
    try {
      Connection from(home ? target_ : cloud_, "lokadb move-org"), to(home ? cloud_ : target_, "lokadb move-org");
      from.run(kSameText);
      to.run(kSameText);
      if (!snapshot.empty()) from.run(within(from, snapshot));
      for (std::size_t i = next++; i < tables.size(); i = next++) {
        const Table& t = tables[i];
        copy_one(from, to, "SELECT " + t.columns + " FROM " + (home ? t.there : t.here) + t.where,
                 (home ? t.here : t.there) + " (" + t.columns + ")");
        std::lock_guard guard(mutex);
        if (shows) std::fprintf(stderr, "copied %s\n", t.name.c_str());
        if (failed) return;
      }
    } catch (const Failure& failure) {
      std::lock_guard guard(mutex);
      if (!failed) failed = failure;
      next = tables.size();
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < jobs_ && i < static_cast<int>(tables.size()); ++i) threads.emplace_back(work);
  threads.clear();
  if (failed) throw *failed;
}

std::string Copier::verify(Connection& cloud, const std::vector<Table>& tables, bool home,
                           const std::string& snapshot) {
  Connection here(cloud_, "lokadb move-org"), there(target_, "lokadb move-org");
  here.run(kSameText);
  there.run(kSameText);
  cloud.run(kSameText);
  if (!snapshot.empty()) here.run(within(here, snapshot));
  std::string sums = "{}";
  std::vector<std::string> counted;
  rows_ = 0;
  for (const Table& t : tables) {
    std::string query = here.value("SELECT lokadb.checksum_query($1::regclass, '%', '')", {t.local});
    std::string head = query.substr(0, query.rfind('%'));
    std::string one = here.value("SELECT x::text FROM (" + head + t.here + t.where + ") x");
    std::string other = there.value("SELECT x::text FROM (" + head + t.there + ") x");
    if (one != other)
      throw Failure{"the copy of " + t.name + " differs: " + (home ? other : one) + " there, " + (home ? one : other) +
                    " here (count, checksum)"};
    rows_ += std::atoll(one.c_str() + 1);
    sums = here.value("SELECT $1::jsonb || jsonb_build_object($2::text, $3::text)", {sums, t.name, one});
    std::size_t comma = one.find(',');  // (count,checksum)
    counted.push_back(JsonObject()
                          .text("table", t.name)
                          .raw("rows", one.substr(1, comma - 1))
                          .text("checksum", one.substr(comma + 1, one.size() - comma - 2))
                          .str());
  }
  tables_json_ = json_array(counted, [](const std::string& object) { return object; });
  return sums;
}

std::string Copier::to_organization(Connection& cloud, const std::function<void()>& after_copy) {
  std::vector<Table> all = tables(cloud, false);
  // Compared is what was copied. Whether rows have been written since, past the pause, is for the swap to see.
  Connection keeper(cloud_, "lokadb move-org");
  keeper.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  std::string snapshot = keeper.value("SELECT pg_export_snapshot()");
  copy_all(all, false, snapshot);
  after_copy();
  return verify(cloud, all, false, snapshot);
}

std::string Copier::to_cloud(Connection& cloud) {
  std::vector<Table> all = tables(cloud, true);
  copy_all(all, true, "");
  return verify(cloud, all, true, "");
}

}  // namespace lokadb::cli
