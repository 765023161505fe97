// The plugin refs: finds out to which organization a key belongs, from memory or by asking the cloud
// (lokadb.find_refs). See README.md.
#include <charconv>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "plugin/lokadb_plugin.h"

namespace {

const lokadb_host* host;

constexpr char kFindRefs[] =
    "SELECT key, org FROM lokadb.find_refs($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text[])";
constexpr std::size_t kDefaultCache = 64u << 20;  // bytes
constexpr std::size_t kEntryCost = 160;           // of one entry beside its texts: list and map nodes, both strings
constexpr std::uint32_t kTextType = 25;

std::string_view view(lokadb_string s) { return {s.data == nullptr ? "" : s.data, s.size}; }
lokadb_string lent(std::string_view s) { return {s.data(), s.size()}; }

// Which organization a key belongs to, least recently used first. The gate checks each answer that is used, so that an
// old one costs a second decision and nothing else. Keys that nobody has are not remembered: they come to be.
class Cache {
 public:
  void limit(std::size_t bytes) {
    std::lock_guard guard(mutex_);
    limit_ = bytes;
    shrink();
  }

  bool find(const std::string& key, std::string& organization) {
    std::lock_guard guard(mutex_);
    auto it = places_.find(key);
    if (it == places_.end()) return false;
    order_.splice(order_.end(), order_, it->second);
    organization = it->second->second;
    return true;
  }

  void put(const std::string& key, std::string_view organization) {
    std::lock_guard guard(mutex_);
    forget_locked(key);
    order_.emplace_back(key, organization);
    places_.emplace(key, std::prev(order_.end()));
    bytes_ += cost(order_.back());
    shrink();
  }

  void forget(const std::string& key) {
    std::lock_guard guard(mutex_);
    forget_locked(key);
  }

 private:
  using Entry = std::pair<std::string, std::string>;
  static std::size_t cost(const Entry& e) { return kEntryCost + 2 * e.first.size() + e.second.size(); }

  void forget_locked(const std::string& key) {
    auto it = places_.find(key);
    if (it == places_.end()) return;
    bytes_ -= cost(*it->second);
    order_.erase(it->second);
    places_.erase(it);
  }

  void shrink() {
    while (bytes_ > limit_ && !order_.empty()) {
      bytes_ -= cost(order_.front());
      places_.erase(order_.front().first);
      order_.pop_front();
    }
  }

  std::mutex mutex_;
  std::size_t limit_ = kDefaultCache;
  std::size_t bytes_ = 0;
  std::list<Entry> order_;
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

struct Refs {
  Cache cache;
};

// What was asked for the batch that is being decided. One batch of a session at a time.
struct Asked {
  struct Key {
    std::uint32_t fact = 0;
    std::string place;  // in the cache
    std::string text;
    bool is_answered = false;
  };
  struct Table {
    std::uint32_t step = 0;
    std::vector<Key> keys;
  };
  std::map<std::string, Table> tables;
  // Places in the cache that the open transaction was answered from. In a transaction nothing is decided again: an
  // answer that was true no more has made it fail.
  std::vector<std::string> used;
  bool may_have_deleted = false;  // the transaction: what is remembered may be gone for itself
};

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kMostUsed = 256;  // kept of a transaction

int fail(std::string_view text) { return host->fail("XX000", lent(text)); }

int answer(lokadb_batch* batch, std::uint32_t about, std::string_view organization) {
  lokadb_fact found{};
  found.struct_size = sizeof found;
  found.kind = LOKADB_FACT_KEY_FOUND;
  found.statement = LOKADB_WHOLE_BATCH;
  found.about = about;
  found.value = lent(organization);
  return host->publish(batch, &found);
}

// An array of PostgreSQL as text; every element in quotes.
std::string array_text(const std::vector<Asked::Key>& keys) {
  std::string out = "{";
  for (const Asked::Key& key : keys) {
    out += out.size() == 1 ? "\"" : ",\"";
    for (char c : key.text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

int add_step(lokadb_batch* batch, const std::string& table, Asked::Table& asked) {
  std::string keys = array_text(asked.keys);
  lokadb_step_value values[2] = {};
  values[0].type = kTextType;
  values[0].value = lent(table);
  values[1].value = lent(keys);
  lokadb_step step{};
  step.struct_size = sizeof step;
  step.leg = LOKADB_LEG_CLOUD;
  step.moment = LOKADB_BEFORE;
  step.sql = lent(kFindRefs);
  step.value_count = 2;
  step.values = values;
  asked.step = host->add_step(batch, &step);
  return asked.step == UINT32_MAX ? LOKADB_FAILED : LOKADB_OK;
}

// The answers to what was asked in the round before.
int take_answers(Refs& refs, lokadb_batch* batch, Asked& asked) {
  for (auto& [name, table] : asked.tables) {
    std::uint32_t rows = host->step_rows(batch, table.step);
    if (rows == UINT32_MAX) return fail("a look-up was not run");
    std::unordered_map<std::string, std::string> found;
    for (std::uint32_t row = 0; row < rows; ++row) {
      lokadb_cell key{}, org{};
      if (host->step_cell(batch, table.step, row, 0, &key) != LOKADB_OK ||
          host->step_cell(batch, table.step, row, 1, &org) != LOKADB_OK)
        return LOKADB_FAILED;
      found.emplace(view(key.value), view(org.value));
    }
    for (const Asked::Key& key : table.keys) {
      auto it = found.find(key.text);
      if (it != found.end())
        refs.cache.put(key.place, it->second);
      else
        refs.cache.forget(key.place);
      if (answer(batch, key.fact, it != found.end() ? it->second : std::string_view()) != LOKADB_OK)
        return LOKADB_FAILED;
    }
  }
  asked.tables.clear();
  return LOKADB_OK;
}

// Whether keys may be gone after it; errs on the side of yes.
bool may_delete(std::string_view text) {
  constexpr std::string_view kWords[] = {"delete", "truncate", "merge", "rollback", "execute", "call"};
  constexpr std::string_view kBlock = "do", kFirstLetters = "dtmrecDTMREC";
  if (lokadb::iequals(lokadb::trim(text).substr(0, kBlock.size()), kBlock)) return true;
  for (std::size_t at = text.find_first_of(kFirstLetters); at != npos; at = text.find_first_of(kFirstLetters, at + 1))
    for (std::string_view word : kWords)
      if (lokadb::iequals(text.substr(at, word.size()), word)) return true;
  return false;
}

int note_deletes(lokadb_batch* batch, const lokadb_batch_info& info, Asked& asked) {
  if (info.transaction_status == 'I') asked.may_have_deleted = false;
  asked.may_have_deleted |= info.is_whole == 0;
  for (std::uint32_t i = 0; i < info.statement_count && !asked.may_have_deleted; ++i) {
    lokadb_statement s{};
    s.struct_size = sizeof s;
    if (host->statement(batch, i, &s) != LOKADB_OK) return LOKADB_FAILED;
    // Of one statement alone, outside of a transaction, nothing stays open.
    bool is_alone = info.transaction_status == 'I' && info.statement_count == 1 && view(s.text).find(';') == npos;
    asked.may_have_deleted = !is_alone && may_delete(view(s.text));
  }
  return LOKADB_OK;
}

int inspect(void* self, lokadb_batch* batch, lokadb_verdict*) {
  Asked& asked = *static_cast<Asked*>(host->slot(batch));
  asked.tables.clear();
  lokadb_batch_info info{};
  info.struct_size = sizeof info;
  host->batch_info(batch, &info);
  if (info.transaction_status == 'E')
    for (const std::string& place : asked.used) static_cast<Refs*>(self)->cache.forget(place);
  if (info.transaction_status != 'T') asked.used.clear();
  return note_deletes(batch, info, asked);
}

int decide(void* self, lokadb_batch* batch, lokadb_verdict* verdict) {
  Refs& refs = *static_cast<Refs*>(self);
  Asked& asked = *static_cast<Asked*>(host->slot(batch));
  if (!asked.tables.empty()) return take_answers(refs, batch, asked);
  lokadb_batch_info info{};
  info.struct_size = sizeof info;
  host->batch_info(batch, &info);
  std::uint32_t count = host->fact_count(batch);
  std::vector<bool> is_answered(count);
  for (std::uint32_t i = count; i-- > 0;) {  // answers stand behind what they are about
    lokadb_fact fact{};
    fact.struct_size = sizeof fact;
    if (host->fact(batch, i, &fact) != LOKADB_OK) return LOKADB_FAILED;
    if (fact.kind == LOKADB_FACT_KEY_FOUND && fact.about < count) is_answered[fact.about] = true;
    if (fact.kind != LOKADB_FACT_KEY_WANTED || is_answered[i]) continue;
    Asked::Key key;
    key.fact = i;
    key.text = view(fact.value);
    std::string table(view(fact.name));
    key.place = std::string(view(info.database)) + '\0' + table + '\0' + key.text;
    std::string organization;
    // A second attempt is due to an answer that was true no more, perhaps one from memory.
    bool may_be_gone = info.transaction_status == 'T' && asked.may_have_deleted;
    if (info.attempt == 0 && !may_be_gone && refs.cache.find(key.place, organization)) {
      if (answer(batch, i, organization) != LOKADB_OK) return LOKADB_FAILED;
      if (info.transaction_status == 'T' && asked.used.size() < kMostUsed) asked.used.push_back(key.place);
      continue;
    }
    asked.tables[table].keys.push_back(std::move(key));
  }
  for (auto& [name, table] : asked.tables)
    if (add_step(batch, name, table) != LOKADB_OK) return LOKADB_FAILED;
  if (!asked.tables.empty()) verdict->kind = LOKADB_ASK;
  return LOKADB_OK;
}

int take_options(Refs& refs, const lokadb_section* section) {
  constexpr std::string_view kName = "cache_size";
  std::string_view text = view(host->option(section, lent(kName)));
  std::size_t bytes = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (fault != std::errc() || end != text.data() + text.size())
    return fail("[refs] cache_size is not a number of bytes");
  refs.cache.limit(bytes);
  return LOKADB_OK;
}

int init(const lokadb_section* section, void** self) {
  auto refs = std::make_unique<Refs>();
  if (take_options(*refs, section) != LOKADB_OK) return LOKADB_FAILED;
  *self = refs.release();
  return LOKADB_OK;
}

int reload(void* self, const lokadb_section* section) { return take_options(*static_cast<Refs*>(self), section); }
void destroy(void* self) { delete static_cast<Refs*>(self); }
void* session_begin(void*, lokadb_string, lokadb_string) { return new Asked; }
void session_end(void*, void* slot) { delete static_cast<Asked*>(slot); }

const lokadb_option kOptions[] = {
    {"cache_size", "67108864", "Bytes in which keys and their organizations are remembered; 0 remembers none."},
};

lokadb_plugin make_plugin() {
  lokadb_plugin p{};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "refs";
  p.version = "1.0";
  p.options = kOptions;
  p.option_count = std::size(kOptions);
  p.init = init;
  p.reload = reload;
  p.destroy = destroy;
  p.session_begin = session_begin;
  p.session_end = session_end;
  p.inspect = inspect;
  p.decide = decide;
  return p;
}

}  // namespace

const lokadb_plugin* lokadb_plugin_entry(const lokadb_host* the_host) {
  host = the_host;
  static const lokadb_plugin plugin = make_plugin();
  return &plugin;
}
