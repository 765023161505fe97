#include "sql/template_cache.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "sql/parse.h"

namespace lokadb::sql {
namespace {

constexpr std::size_t kAllocation = 16;  // what malloc adds to a block

std::size_t size_of(const std::string& s) {
  return s.capacity() > 15 ? s.capacity() + 1 + kAllocation : 0;  // a short one is inside
}

template <class T>
std::size_t block_of(const std::vector<T>& v) {
  return v.capacity() ? v.capacity() * sizeof(T) + kAllocation : 0;
}

std::size_t size_of(const Value& v) { return size_of(v.cast) + size_of(v.word); }
std::size_t size_of(const Column& c) { return size_of(c.name); }
std::size_t size_of(const Equality::Side& s) { return (s.column ? size_of(*s.column) : 0) + size_of(s.value); }
std::size_t size_of(const ColumnUse& c) { return size_of(c.column); }
std::size_t size_of(const Equality& e) { return size_of(e.left) + size_of(e.right); }
std::size_t size_of(const Assignment& a) { return size_of(a.column) + size_of(a.value); }
std::size_t size_of(const Scope& s) { return block_of(s.relations); }
std::size_t size_of(const Relation::Output& o) { return size_of(o.name) + (o.from ? size_of(*o.from) : 0); }

std::size_t size_of(const Relation& r);
std::size_t size_of(const Membership& m);
std::size_t size_of(const FunctionCall& f);
std::size_t size_of(const Statement& s);

template <class T>
std::size_t size_of(const std::vector<T>& v) {
  std::size_t bytes = block_of(v);
  for (const T& item : v) bytes += size_of(item);
  return bytes;
}

std::size_t size_of(const Relation& r) {
  return size_of(r.catalog) + size_of(r.schema) + size_of(r.name) + size_of(r.alias) + size_of(r.outputs);
}
std::size_t size_of(const Membership& m) {
  return size_of(m.column) + size_of(m.values) + (m.array ? size_of(*m.array) : 0);
}
std::size_t size_of(const FunctionCall& f) { return size_of(f.schema) + size_of(f.name) + size_of(f.arguments); }
std::size_t size_of(const Insertion& i) {
  return size_of(i.columns) + size_of(i.rows) + size_of(i.arrays) + size_of(i.selected) + size_of(i.conflict_columns) +
         size_of(i.conflict_constraint);
}
std::size_t size_of(const Copying& c) { return size_of(c.columns) + size_of(c.options); }
std::size_t size_of(const Setting& s) { return size_of(s.name) + size_of(s.values); }
std::size_t size_of(const TransactionControl& t) { return size_of(t.savepoint) + size_of(t.isolation); }

std::size_t size_of(const Statement& s) {
  std::size_t bytes = size_of(s.relations) + size_of(s.scopes) + size_of(s.equalities) + size_of(s.memberships) +
                      size_of(s.columns) + size_of(s.functions) + size_of(s.operators) + size_of(s.types) +
                      size_of(s.collations) + size_of(s.group_by) + size_of(s.not_understood) + size_of(s.assignments) +
                      size_of(s.name);
  if (s.insertion) bytes += size_of(*s.insertion);
  if (s.copying) bytes += size_of(*s.copying);
  if (s.setting) bytes += size_of(*s.setting);
  if (s.transaction) bytes += size_of(*s.transaction);
  return bytes;
}

TemplatePtr make(std::string_view text, bool has_standard_strings, const Lifted& lifted) {
  auto made = std::make_shared<Template>();
  made->parsed = parse_sql(text, has_standard_strings);
  if (!made->parsed.statements.empty()) made->fingerprint = fingerprint_of(text, has_standard_strings);
  made->literals = lifted.literals;
  made->comments = lifted.comments;
  made->text_size = static_cast<std::uint32_t>(text.size());
  made->bytes = sizeof(Template) + 2 * kAllocation + size_of(made->parsed.statements) + size_of(made->parsed.error) +
                block_of(made->literals) + block_of(made->comments);
  return made;
}

// Whether the facts serve this text alone.
bool is_for_one_text(const Parsed& parsed) {
  return !parsed.error.empty() || std::any_of(parsed.statements.begin(), parsed.statements.end(),
                                              [](const Statement& s) { return s.depends_on_literals; });
}

// Marks a template whose facts depend on its literals: look for the very text instead.
const TemplatePtr& see_exact() {
  static const TemplatePtr mark = std::make_shared<Template>();
  return mark;
}

}  // namespace

// Least recently used last. The map's keys are hashes: two keys of one hash displace each other.
struct TemplateCache::Shard {
  struct Entry {
    std::uint64_t hash;
    std::string key;
    TemplatePtr made;
    std::size_t bytes;
  };

  mutable std::mutex lock;
  std::list<Entry> entries;
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_hash;
  std::size_t bytes = 0;
  std::uint64_t evictions = 0;
  std::atomic<std::uint64_t> hits{0}, misses{0};  // no lock

  // Takes the entry out, into `old`, to be freed when the lock is gone.
  void take_out(std::list<Entry>::iterator entry, std::list<Entry>& old) {
    bytes -= entry->bytes;
    by_hash.erase(entry->hash);
    old.splice(old.begin(), entries, entry);
  }
};

TemplateCache::TemplateCache(Limits limits)
    : limits_(limits), shards_(std::make_unique<std::array<Shard, kShards>>()) {}
TemplateCache::~TemplateCache() = default;

TemplatePtr TemplateCache::find(std::uint64_t hash, std::string_view key) {
  Shard& shard = (*shards_)[hash % kShards];
  std::lock_guard guard(shard.lock);
  auto found = shard.by_hash.find(hash);
  if (found == shard.by_hash.end() || found->second->key != key) return nullptr;
  shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  return found->second->made;
}

void TemplateCache::keep(std::uint64_t hash, std::string_view key, TemplatePtr made) {
  // List node, map node, bucket.
  std::size_t bytes = sizeof(Shard::Entry) + key.size() + made->bytes + 64 + 4 * kAllocation;
  std::size_t limit = limits_.bytes / kShards;
  if (bytes > limit) return;
  Shard& shard = (*shards_)[hash % kShards];
  std::list<Shard::Entry> fresh;  // made, and what it displaces freed, outside of the lock
  fresh.push_back({hash, std::string(key), std::move(made), bytes});
  std::list<Shard::Entry> old;
  std::lock_guard guard(shard.lock);
  if (auto found = shard.by_hash.find(hash); found != shard.by_hash.end()) shard.take_out(found->second, old);
  while (shard.bytes + bytes > limit) {
    shard.take_out(std::prev(shard.entries.end()), old);
    ++shard.evictions;
  }
  shard.entries.splice(shard.entries.begin(), fresh);
  shard.by_hash[hash] = shard.entries.begin();
  shard.bytes += bytes;
}

void TemplateCache::count(std::uint64_t hash, bool is_hit) {
  Shard& shard = (*shards_)[hash % kShards];
  (is_hit ? shard.hits : shard.misses).fetch_add(1, std::memory_order_relaxed);
}

TemplateCache::Counters TemplateCache::counters() const {
  Counters sum;
  for (const Shard& shard : *shards_) {
    sum.hits += shard.hits.load(std::memory_order_relaxed);
    sum.misses += shard.misses.load(std::memory_order_relaxed);
    std::lock_guard guard(shard.lock);
    sum.evictions += shard.evictions;
    sum.bytes += shard.bytes;
    sum.entries += shard.entries.size();
  }
  return sum;
}

// A text whose facts hang on its literals, and one that is an error (which may come from a literal), is kept by the
// very text; in the first case the template itself has a mark that says so.
TemplatePtr TemplateCache::get(std::string_view text, bool has_standard_strings, Lifted& lifted) {
  lift(text, has_standard_strings, lifted);
  if (text.size() > limits_.text_bytes) {
    count(lifted.hash, false);
    return make(text, has_standard_strings, lifted);
  }
  TemplatePtr found = find(lifted.hash, lifted.key);
  bool is_exact_wanted = found == see_exact();
  if (found && !is_exact_wanted) {
    count(lifted.hash, true);
    return found;
  }
  Lifted exact;
  make_exact_key(text, has_standard_strings, exact);
  found = find(exact.hash, exact.key);
  count(exact.hash, found != nullptr);
  if (found) return found;
  found = make(text, has_standard_strings, lifted);
  bool is_exact = is_for_one_text(found->parsed) || lifted.is_exact;
  if (is_exact && found->parsed.error.empty() && !lifted.is_exact && !is_exact_wanted)
    keep(lifted.hash, lifted.key, see_exact());
  if (is_exact)
    keep(exact.hash, exact.key, found);
  else
    keep(lifted.hash, lifted.key, found);
  return found;
}

std::uint32_t Template::position_in(const Lifted& lifted, std::uint32_t position) const {
  std::uint32_t moved = position;  // may wrap on the way, not at the end
  auto pass = [position, &moved](const std::vector<Token>& from, const std::vector<Token>& to) {
    for (std::size_t i = 0; i < from.size() && i < to.size() && from[i].start < position; ++i) {
      bool is_inside = position < from[i].end;
      moved += is_inside ? from[i].start - position : (to[i].end - to[i].start) - (from[i].end - from[i].start);
    }
  };
  pass(literals, lifted.literals);
  pass(comments, lifted.comments);
  return moved;
}

}  // namespace lokadb::sql
