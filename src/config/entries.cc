#include "config/entries.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/text.h"
#include "config/connstr.h"
#include "config/words.h"

namespace lokadb {

namespace {

constexpr std::size_t kLongestDatabaseName = 63;
constexpr int kMostPort = 65535;
constexpr int kMostPeerId = 65535;

std::nullopt_t refuse(Faults& faults, std::string text) {
  faults.push_back(std::move(text));
  return std::nullopt;
}

// PgBouncer reads these numbers with atoi: trailing garbage is ignored.
int number_of(std::string_view text) {
  return static_cast<int>(
      std::clamp<std::int64_t>(parse_atoi(text), std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

// How a number that means "not set" is told from one that counts.
enum class Counts { FromZero, FromOne };

template <class Entry>
struct NumberKey {
  std::string_view key;
  std::optional<int> Entry::*member;
  Counts counts;
};
template <class Entry>
struct SecondsKey {
  std::string_view key;
  std::optional<Micros> Entry::*member;
  Counts counts;
};

constexpr struct {
  std::string_view key;
  OptionalText DatabaseConfig::*member;
} kDatabaseTexts[] = {
    {"user", &DatabaseConfig::user},
    {"password", &DatabaseConfig::password},
    {"auth_user", &DatabaseConfig::auth_user},
    {"auth_query", &DatabaseConfig::auth_query},
    {"auth_dbname", &DatabaseConfig::auth_dbname},
    {"client_encoding", &DatabaseConfig::client_encoding},
    {"datestyle", &DatabaseConfig::datestyle},
    {"timezone", &DatabaseConfig::timezone},
    {"application_name", &DatabaseConfig::application_name},
    {"connect_query", &DatabaseConfig::connect_query},
};

constexpr NumberKey<DatabaseConfig> kDatabaseNumbers[] = {
    {"pool_size", &DatabaseConfig::pool_size, Counts::FromZero},
    {"min_pool_size", &DatabaseConfig::min_pool_size, Counts::FromZero},
    {"reserve_pool_size", &DatabaseConfig::reserve_pool_size, Counts::FromZero},
    {"reserve_pool", &DatabaseConfig::reserve_pool_size, Counts::FromZero},  // its older name
    {"max_db_connections", &DatabaseConfig::max_db_connections, Counts::FromOne},
    {"max_db_client_connections", &DatabaseConfig::max_db_client_connections, Counts::FromOne},
};

constexpr SecondsKey<DatabaseConfig> kDatabaseTimes[] = {
    {"server_lifetime", &DatabaseConfig::server_lifetime, Counts::FromOne},
    {"query_wait_timeout", &DatabaseConfig::query_wait_timeout, Counts::FromZero},
};

constexpr NumberKey<UserConfig> kUserNumbers[] = {
    {"pool_size", &UserConfig::pool_size, Counts::FromZero},
    {"reserve_pool_size", &UserConfig::reserve_pool_size, Counts::FromZero},
    {"max_user_connections", &UserConfig::max_user_connections, Counts::FromOne},
    {"max_user_client_connections", &UserConfig::max_user_client_connections, Counts::FromOne},
};

constexpr SecondsKey<UserConfig> kUserTimes[] = {
    {"query_timeout", &UserConfig::query_timeout, Counts::FromOne},
    {"query_wait_timeout", &UserConfig::query_wait_timeout, Counts::FromZero},
    {"idle_transaction_timeout", &UserConfig::idle_transaction_timeout, Counts::FromOne},
    {"transaction_timeout", &UserConfig::transaction_timeout, Counts::FromOne},
    {"client_idle_timeout", &UserConfig::client_idle_timeout, Counts::FromOne},
};

template <class Entry, class Row, std::size_t N>
bool set_from(const Row (&rows)[N], Entry& entry, const ConnPair& pair) {
  for (const auto& row : rows) {
    if (row.key != pair.key) continue;
    using Value = typename std::remove_reference_t<decltype(entry.*row.member)>::value_type;
    if constexpr (std::is_same_v<Value, std::string>) {
      entry.*row.member = pair.value;
    } else {
      int number = number_of(pair.value);
      bool is_set = number >= (row.counts == Counts::FromZero ? 0 : 1);
      if constexpr (std::is_same_v<Value, Micros>) {
        entry.*row.member = is_set ? std::optional<Micros>(std::chrono::seconds(number)) : std::nullopt;
      } else {
        entry.*row.member = is_set ? std::optional<int>(number) : std::nullopt;
      }
    }
    return true;
  }
  return false;
}

// The keys with rules of their own. False: refused, with a line in `faults`.
bool set_port(int& port, const ConnPair& pair, Faults& faults) {
  port = number_of(pair.value);
  if (port >= 1 && port <= kMostPort) return true;
  faults.push_back("invalid port: " + pair.value);
  return false;
}

bool set_pool_mode(std::optional<PoolMode>& mode, const ConnPair& pair, Faults& faults) {
  mode = parse_word<PoolMode>(pair.value);
  if (!mode) faults.push_back("invalid pool mode: " + pair.value);
  return mode.has_value();
}

bool set_load_balance(LoadBalanceHosts& how, const ConnPair& pair, Faults& faults) {
  auto word = parse_word<LoadBalanceHosts>(pair.value);
  if (word) how = *word;
  if (!word) faults.push_back("invalid load_balance_hosts: " + pair.value);
  return word.has_value();
}

bool set_database_key(DatabaseConfig& entry, const ConnPair& pair, Faults& faults) {
  if (pair.key == "auth_dbname" && pair.value == kConsoleDatabase) {
    faults.emplace_back(kReservedAuthDbname);
    return false;
  }
  if (set_from(kDatabaseTexts, entry, pair) || set_from(kDatabaseNumbers, entry, pair) ||
      set_from(kDatabaseTimes, entry, pair))
    return true;
  if (pair.key == "port") return set_port(entry.port, pair, faults);
  if (pair.key == "pool_mode") return set_pool_mode(entry.pool_mode, pair, faults);
  if (pair.key == "load_balance_hosts") return set_load_balance(entry.load_balance_hosts, pair, faults);
  if (pair.key == "dbname") {
    entry.dbname = pair.value;
  } else if (pair.key == "host") {
    entry.hosts = split_commas(pair.value);
  } else {
    faults.push_back("unrecognized connection parameter: " + std::string(pair.key));
    return false;
  }
  return true;
}

}  // namespace

std::optional<DatabaseConfig> parse_database_entry(std::string_view name, std::string_view text, Faults& faults) {
  if (name == kConsoleDatabase) return refuse(faults, "database name \"pgbouncer\" is reserved");
  if (name.size() > kLongestDatabaseName) return refuse(faults, "too long db name: " + std::string(name));
  DatabaseConfig entry;
  entry.name = name;
  if (name != "*") entry.dbname = name;
  ConnString pairs(text);
  while (auto pair = pairs.next())
    if (!set_database_key(entry, *pair, faults)) return std::nullopt;
  if (pairs.failed()) return refuse(faults, "syntax error in connection string");
  return entry;
}

std::optional<UserConfig> parse_user_entry(std::string_view name, std::string_view text, Faults& faults) {
  UserConfig entry;
  entry.name = name;
  ConnString pairs(text);
  while (auto pair = pairs.next()) {
    if (set_from(kUserNumbers, entry, *pair) || set_from(kUserTimes, entry, *pair)) continue;
    if (pair->key != "pool_mode") return refuse(faults, "unrecognized user parameter: " + std::string(pair->key));
    if (!set_pool_mode(entry.pool_mode, *pair, faults)) return std::nullopt;
  }
  if (pairs.failed()) return refuse(faults, "syntax error in user settings");
  return entry;
}

std::optional<PeerConfig> parse_peer_entry(std::string_view name, std::string_view text, Faults& faults) {
  bool is_number = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  auto id = is_number ? parse_atoi(name) : 0;
  if (id < 1 || id > kMostPeerId) return refuse(faults, "ids of peers must be numbers from 1 to 65535");
  PeerConfig entry;
  entry.id = static_cast<int>(id);
  ConnString pairs(text);
  while (auto pair = pairs.next()) {
    if (pair->key == "host") {
      entry.host = pair->value;
    } else if (pair->key == "port") {
      if (!set_port(entry.port, *pair, faults)) return std::nullopt;
    } else if (pair->key == "pool_size") {
      int size = number_of(pair->value);
      entry.pool_size = size >= 0 ? std::optional<int>(size) : std::nullopt;
    } else {
      return refuse(faults, "unrecognized connection parameter: " + std::string(pair->key));
    }
  }
  if (pairs.failed()) return refuse(faults, "syntax error in connection string");
  if (entry.host.empty()) return refuse(faults, "host was not provided for peer " + std::to_string(entry.id));
  return entry;
}

}  // namespace lokadb
