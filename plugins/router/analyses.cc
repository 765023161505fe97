#include "analyses.h"

#include <algorithm>
#include <cstdio>
#include <list>
#include <unordered_map>
#include <utility>

namespace lokadb::router {

namespace {

constexpr std::size_t kLongestKept = 65536;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t x = (a ^ (b + kOdd + (a << 6) + (a >> 2))) * kOdd;
  return x ^ (x >> 32);
}

// Generous: what the analysis of a statement takes was measured at 1 to 3 kB. The facts belong to the template.
std::size_t bytes_of(const Text& text) {
  constexpr std::size_t kStatement = 2048, kSource = 256;
  std::size_t bytes = 512 + text.facts->bytes;
  for (const route::Analysis& a : text.analyses) bytes += kStatement + kSource * (a.bound.size() + a.sources.size());
  return bytes;
}

std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

bool depends_on_literals(const sql::Parsed& parsed) {
  return std::any_of(parsed.statements.begin(), parsed.statements.end(),
                     [](const sql::Statement& s) { return s.depends_on_literals; });
}

// Stands for a template whose facts hang on its literals: its texts are kept one by one.
const TextPtr& see_exact() {
  static const TextPtr mark = std::make_shared<Text>();
  return mark;
}

}  // namespace

SurroundingsPtr Surroundings::make(std::string_view database, std::string_view role, std::string_view search_path) {
  auto made = std::make_shared<Surroundings>();
  made->database = database;
  made->role = role;
  made->search_path = search_path;
  for (std::string_view part : {database, role, search_path}) made->hash = mixed(made->hash, sql::hash_bytes(part));
  return made;
}

// Least recently used last. The map's keys are hashes: two places of one hash displace each other.
struct Analyses::Entry {
  std::uint64_t hash, known_as;
  bool has_standard_strings;
  std::string key;
  CatalogPtr catalog;
  SurroundingsPtr surroundings;
  std::shared_ptr<const void> what;  // Text, or Prepared where known_as is not 0
  std::size_t bytes;
};

struct Analyses::Shard {
  std::mutex lock;
  std::list<Entry> entries;
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_hash;
  std::size_t bytes = 0;

  void take_out(std::list<Entry>::iterator entry, std::list<Entry>& old) {
    bytes -= entry->bytes;
    by_hash.erase(entry->hash);
    old.splice(old.begin(), entries, entry);
  }
};

Analyses::Analyses() : templates_({}), shards_(std::make_unique<std::array<Shard, kShards>>()) {}
Analyses::~Analyses() = default;

TextPtr Analyses::get(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog,
                      const SurroundingsPtr& surroundings, Scratch& scratch) {
  sql::lift(sql, has_standard_strings, scratch.lifted);
  bool is_kept = !scratch.lifted.is_error && sql.size() <= kLongestKept;
  if (!is_kept) return make(sql, has_standard_strings, catalog, surroundings, scratch);
  auto place_of = [&](const sql::Lifted& lifted) {
    return Place{mixed(lifted.hash, surroundings->hash), lifted.key, 0, has_standard_strings};
  };
  Place place = place_of(scratch.lifted);
  auto found = std::static_pointer_cast<const Text>(find(place, catalog, *surroundings));
  if (found != nullptr && found != see_exact()) return found;
  sql::make_exact_key(sql, has_standard_strings, scratch.exact);
  std::string exact_key(scratch.exact.key);  // `make` needs the buffer
  Place exact{mixed(scratch.exact.hash, surroundings->hash), exact_key, 0, has_standard_strings};
  if (auto there = find(exact, catalog, *surroundings)) return std::static_pointer_cast<const Text>(std::move(there));
  TextPtr made = make(sql, has_standard_strings, catalog, surroundings, scratch);
  bool is_exact =
      scratch.lifted.is_exact || !made->facts->parsed.error.empty() || depends_on_literals(made->facts->parsed);
  keep(is_exact ? exact : place, made, *made, bytes_of(*made));
  // An error is of this text alone: another of its template may be none.
  if (is_exact && made->facts->parsed.error.empty()) keep(place, see_exact(), *made, 0);
  return made;
}

PreparedPtr Analyses::prepared(std::uint64_t known_as, std::string_view sql, bool has_standard_strings,
                               const CatalogPtr& catalog, const SurroundingsPtr& surroundings, Scratch& scratch) {
  Place place{mixed(known_as, surroundings->hash), {}, known_as, has_standard_strings};
  if (auto there = find(place, catalog, *surroundings))
    return std::static_pointer_cast<const Prepared>(std::move(there));
  auto made = std::make_shared<Prepared>();
  made->text = get(sql, has_standard_strings, catalog, surroundings, scratch);
  made->sql = sql;
  made->literals.read(made->sql, scratch.lifted);
  // The analysis may be in the other half of the cache, too; it is counted here all the same.
  if (sql.size() <= kLongestKept) keep(place, made, *made->text, bytes_of(*made->text) + 2 * sql.size());
  return made;
}

TextPtr Analyses::make(std::string_view sql, bool has_standard_strings, const CatalogPtr& catalog,
                       const SurroundingsPtr& surroundings, Scratch& scratch) {
  auto text = std::make_shared<Text>();
  text->facts = templates_.get(sql, has_standard_strings, scratch.exact);
  text->catalog = catalog;
  text->surroundings = surroundings;
  text->fingerprint = hexadecimal(text->facts->fingerprint);
  auto path = catalog::SearchPath::parse(surroundings->search_path, surroundings->role);
  for (const sql::Statement& statement : text->facts->parsed.statements)
    text->analyses.push_back(route::analyse(catalog, statement, path));
  return text;
}

std::shared_ptr<const void> Analyses::find(const Place& place, const CatalogPtr& catalog,
                                           const Surroundings& surroundings) {
  Shard& shard = (*shards_)[place.hash % kShards];
  std::lock_guard guard(shard.lock);
  auto it = shard.by_hash.find(place.hash);
  if (it == shard.by_hash.end()) return nullptr;
  const Entry& entry = *it->second;
  bool is_it = entry.known_as == place.known_as && entry.has_standard_strings == place.has_standard_strings &&
               entry.key == place.key && entry.catalog == catalog &&
               (entry.surroundings.get() == &surroundings || *entry.surroundings == surroundings);
  if (!is_it) return nullptr;
  shard.entries.splice(shard.entries.begin(), shard.entries, it->second);
  return entry.what;
}

void Analyses::forget_stale(std::string_view database, const CatalogPtr& current) {
  for (Shard& shard : *shards_) {
    std::list<Entry> old;
    std::lock_guard guard(shard.lock);
    for (auto it = shard.entries.begin(); it != shard.entries.end();) {
      auto entry = it++;
      if (entry->surroundings->database == database && entry->catalog != current) shard.take_out(entry, old);
    }
  }
}

void Analyses::keep(const Place& place, std::shared_ptr<const void> what, const Text& text, std::size_t bytes) {
  bytes += sizeof(Entry) + place.key.size() + 128;  // nodes of list and map
  if (bytes > kShardLimit) return;
  Shard& shard = (*shards_)[place.hash % kShards];
  std::list<Entry> fresh;  // made, and what it displaces freed, outside of the lock
  fresh.push_back({place.hash, place.known_as, place.has_standard_strings, std::string(place.key), text.catalog,
                   text.surroundings, std::move(what), bytes});
  std::list<Entry> old;
  std::lock_guard guard(shard.lock);
  if (auto it = shard.by_hash.find(place.hash); it != shard.by_hash.end()) shard.take_out(it->second, old);
  while (shard.bytes + bytes > kShardLimit) shard.take_out(std::prev(shard.entries.end()), old);
  shard.entries.splice(shard.entries.begin(), fresh);
  shard.by_hash[place.hash] = shard.entries.begin();
  shard.bytes += bytes;
}

}  // namespace lokadb::router
