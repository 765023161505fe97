#include "pool/parameters.h"

#include <mutex>
#include <unordered_map>

#include "base/text.h"

namespace lokadb {

namespace {
// What drivers and frameworks set at their start, and what changes no more than how a session behaves.
constexpr const char* kFollowed[] = {"IntervalStyle",
                                     "search_path",
                                     "statement_timeout",
                                     "lock_timeout",
                                     "idle_in_transaction_session_timeout",
                                     "client_min_messages",
                                     "extra_float_digits",
                                     "bytea_output",
                                     "default_transaction_isolation",
                                     "default_transaction_read_only",
                                     "default_transaction_deferrable"};
}  // namespace

TrackedNames::TrackedNames(const std::vector<std::string>& extra)
    : names_{"client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings", "application_name"} {
  for (const auto& name : extra)
    if (!index(name)) names_.push_back(name);
  addition_begin_ = names_.size();
  for (const char* name : kFollowed)
    if (!index(name)) names_.push_back(name);
}

std::optional<std::size_t> TrackedNames::index(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (iequals(names_[i], name)) return i;
  return std::nullopt;
}

bool TrackedNames::same_value(std::size_t i, std::string_view one, std::string_view other) const {
  return i < kApplicationName ? iequals(one, other) : one == other;
}

namespace {

std::string key_of(const ParameterValues& values) {
  std::string key;
  for (const auto& v : values) {
    key += v ? '=' : '-';
    if (v) key += *v;
    key += '\0';
  }
  return key;
}

struct InternTable {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const ParameterSet>> sets;
};
InternTable& table() {
  static InternTable* t = new InternTable;  // sets may outlive main's objects
  return *t;
}

// The last owner lets go: the entry goes, unless somebody has put a new set there meanwhile.
void forget(const ParameterSet* set) {
  {
    std::lock_guard lock(table().mutex);
    auto it = table().sets.find(key_of(set->values()));
    if (it != table().sets.end() && it->second.expired()) table().sets.erase(it);
  }
  delete set;
}

// A string constant that means the same whatever standard_conforming_strings and client_encoding are at that moment: a
// backslash is written by its number, since in some encodings (SJIS, BIG5, GBK) its byte can be the second of a
// character.
void append_constant(std::string& sql, std::string_view value) {
  sql += value.find('\\') == std::string_view::npos ? "'" : "E'";
  for (char c : value) {
    if (c == '\\') {
      sql += "\\134";
      continue;
    }
    sql += c;
    if (c == '\'') sql += c;
  }
  sql += '\'';
}

// SET takes a list only as several constants; set_config() takes it as it is reported and as the start-up packet has
// it.
void append_setting(std::string& sql, std::string_view name, std::string_view value) {
  bool is_list = iequals(name, "search_path");
  sql += is_list ? "SELECT pg_catalog.set_config('" : "SET ";
  sql += name;
  sql += is_list ? "', " : "=";
  append_constant(sql, value);
  sql += is_list ? ", false);" : ";";
}

}  // namespace

ParameterSetPtr intern_parameters(ParameterValues values) {
  std::string key = key_of(values);
  std::lock_guard lock(table().mutex);
  auto& slot = table().sets[key];
  if (auto there = slot.lock()) return there;
  ParameterSetPtr made(new ParameterSet(std::move(values)), forget);
  slot = made;
  return made;
}

ParameterSetPtr with_parameter(const ParameterSetPtr& set, std::size_t index, std::string_view value) {
  if (set->values()[index] == value) return set;
  ParameterValues values = set->values();
  values[index] = std::string(value);
  return intern_parameters(std::move(values));
}

ParameterSetPtr in_spelling_of(const ParameterSet& there, const ParameterSet& wanted) {
  ParameterValues values = wanted.values();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] && there.values()[i]) values[i] = there.values()[i];
  return intern_parameters(std::move(values));
}

std::string set_statements(const TrackedNames& names, const ParameterSet& wanted, const ParameterSet& defaults,
                           const ParameterSet& there) {
  std::string sql;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& want = wanted.values()[i] ? wanted.values()[i] : defaults.values()[i];
    const auto& have = there.values()[i];
    if (!want && have)
      sql += "RESET " + names.name(i) + ";";
    else if (want && !(have && names.same_value(i, *want, *have)))
      append_setting(sql, names.name(i), *want);
  }
  return sql;
}

}  // namespace lokadb
