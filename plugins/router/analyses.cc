#include "analyses.h"

#include <cstdio>

#include "sql/parse.h"

namespace lokadb::router {

namespace {

constexpr std::size_t kLongestKept = 65536;

// Generous: what one statement's facts and analysis take was measured at 2 to 6 kB.
std::size_t bytes_of(const std::string& key, const Text& text) {
  constexpr std::size_t kStatement = 4096, kRelation = 512;
  std::size_t bytes = 512 + 2 * key.size();
  for (const sql::Statement& s : text.parsed.statements)
    bytes +=
        kStatement + kRelation * (s.relations.size() + s.equalities.size() + s.columns.size() + s.functions.size());
  return bytes;
}

std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

TextPtr make(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog, const std::string& search_path,
             std::string_view role) {
  auto text = std::make_shared<Text>();
  text->parsed = sql::parse_sql(sql, has_standard_strings);
  text->catalog = catalog;
  text->search_path = search_path;
  text->fingerprint = hexadecimal(sql::fingerprint_of(sql, has_standard_strings));
  auto path = catalog::SearchPath::parse(search_path, role);
  for (const sql::Statement& statement : text->parsed.statements)
    text->analyses.push_back(route::analyse(catalog, statement, path));
  return text;
}

bool depends_on_literals(const sql::Parsed& parsed) {
  for (const sql::Statement& s : parsed.statements)
    if (s.depends_on_literals) return true;
  return !parsed.error.empty();
}

}  // namespace

TextPtr Analyses::get(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog,
                      const std::string& search_path, std::string_view role, sql::Lifted& lifted) {
  sql::lift(sql, has_standard_strings, lifted);
  if (lifted.is_error || sql.size() > kLongestKept) return make(sql, has_standard_strings, catalog, search_path, role);
  Shard& shard = shards_[lifted.hash % kShards];
  // $user of the search_path and the spelling of strings are the session's.
  std::string suffix = std::string(1, '\0') + (has_standard_strings ? "1" : "0") + std::string(role);
  std::string exact = std::string(sql) + suffix, by_template = std::string(lifted.key) + suffix;
  if (TextPtr there = find(shard, by_template, catalog, search_path)) return there;
  if (TextPtr there = find(shard, exact, catalog, search_path)) return there;
  TextPtr made = make(sql, has_standard_strings, catalog, search_path, role);
  keep(shard, lifted.is_exact || depends_on_literals(made->parsed) ? std::move(exact) : std::move(by_template), made);
  return made;
}

TextPtr Analyses::find(Shard& shard, std::string_view key, const CatalogPtr& catalog, const std::string& search_path) {
  std::lock_guard lock(shard.mutex);
  auto it = shard.places.find(key);
  if (it == shard.places.end()) return nullptr;
  const TextPtr& text = it->second->text;
  if (text->catalog != catalog || text->search_path != search_path) return nullptr;
  shard.order.splice(shard.order.end(), shard.order, it->second);
  return text;
}

void Analyses::keep(Shard& shard, std::string key, TextPtr text) {
  std::size_t bytes = bytes_of(key, *text);
  std::lock_guard lock(shard.mutex);
  if (auto it = shard.places.find(key); it != shard.places.end()) {
    shard.bytes -= it->second->bytes;
    auto entry = it->second;
    shard.places.erase(it);
    shard.order.erase(entry);
  }
  shard.order.push_back({std::move(key), std::move(text), bytes});
  shard.places.emplace(shard.order.back().key, std::prev(shard.order.end()));
  shard.bytes += bytes;
  while (shard.bytes > kShardLimit && !shard.order.empty()) {
    shard.bytes -= shard.order.front().bytes;
    shard.places.erase(shard.order.front().key);
    shard.order.pop_front();
  }
}

}  // namespace lokadb::router
