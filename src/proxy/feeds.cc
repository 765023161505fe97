#include "proxy/feeds.h"

#include <utility>

#include "base/log.h"
#include "plugin/chain.h"

namespace lokadb {

namespace {

// Fixed settings, so that nothing of a role or database changes what the query means.
constexpr char kSettings[] =
    "-c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=0"
    " -c default_transaction_isolation=read\\ committed -c client_min_messages=warning"
    " -c idle_in_transaction_session_timeout=0 -c standard_conforming_strings=on";

// No file: of one that is no plain file libpq complains on standard error, and one that it was not told of it looks for
// in the home of whoever started the proxy.
constexpr char kNoFile[] = "/dev/null/none";

std::string file_or_none(const std::string& path) { return path.empty() ? kNoFile : path; }

FeedSettings settings_of(const PluginChain::FeedWish& wish, const DatabaseConfig& database, const Options& o) {
  FeedSettings s;
  s.channel = wish.channel;
  s.query = wish.query;
  if (wish.heartbeat_ms > 0) s.heartbeat_ms = wish.heartbeat_ms;
  std::string hosts;
  for (const std::string& host : database.hosts) hosts += (hosts.empty() ? "" : ",") + host;
  s.connection = {
      {"host", hosts.empty() ? o.unix_socket_dir : hosts},
      {"port", std::to_string(database.port)},
      {"dbname", database.dbname.empty() ? database.name : database.dbname},
      {"user", wish.user},
      {"password", wish.password},
      {"application_name", "lokadb feed"},
      {"client_encoding", "UTF8"},
      {"options", kSettings},
      {"sslmode", std::string(name_of(o.server_tls_sslmode))},
      {"gssencmode", "disable"},
      {"passfile", kNoFile},
      {"sslrootcert", file_or_none(o.server_tls_ca_file)},
      {"sslcert", file_or_none(o.server_tls_cert_file)},
      {"sslkey", file_or_none(o.server_tls_key_file)},
      {"sslcrl", kNoFile},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "2"},
      {"keepalives_count", "3"},
      {"tcp_user_timeout", "10000"},
  };
  return s;
}

}  // namespace

void Feeds::follow(const Config& config) {
  std::map<std::pair<std::string, std::uint32_t>, FeedSettings> wanted;
  for (const auto& [name, database] : config.databases)
    for (const auto& wish : chain_.feeds(name))
      wanted.emplace(std::pair(name, wish.plugin), settings_of(wish, database, config.options));
  bool has_fallback = config.fallback && !chain_.feeds("*").empty();
  if (has_fallback && !std::exchange(has_warned_, true))
    log_line(
        LogLevel::Warning,
        "plugins learn nothing of databases that have no line of their own in [databases]: statements of those that"
        " * stands for are not routed");
  for (auto there = feeds_.begin(); there != feeds_.end();) {
    auto it = wanted.find(there->first);
    if (it != wanted.end() && it->second == there->second->settings()) {
      ++there;
      continue;
    }
    auto [database, plugin] = there->first;
    there = feeds_.erase(there);
    chain_.feed_changed(plugin, database, {}, false);
  }
  for (auto& [key, settings] : wanted) {
    if (feeds_.contains(key)) continue;
    const auto& [database, plugin] = key;
    auto told = [this, database = database, plugin = plugin](std::string_view value, bool is_fresh) {
      chain_.feed_changed(plugin, database, value, is_fresh);
    };
    feeds_[key] = std::make_unique<Feed>("feed of " + chain_.name(plugin) + " from " + database, settings, told);
  }
}

void Feeds::refresh(const std::string& database, const std::function<void()>& then) {
  // Called when the last copy is gone.
  std::shared_ptr<void> last(nullptr, [then](void*) { then(); });
  for (auto& [key, feed] : feeds_)
    if (key.first == database) feed->refresh([last] {});
}

}  // namespace lokadb
