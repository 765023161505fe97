#include "config/config.h"

#include <algorithm>

namespace lokadb {

namespace {

bool contains(const TextList& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool DatabaseConfig::connects_like(const DatabaseConfig& other) const {
  return dbname == other.dbname && hosts == other.hosts && port == other.port && user == other.user &&
         connect_query == other.connect_query && auth_dbname == other.auth_dbname && auth_query == other.auth_query &&
         load_balance_hosts == other.load_balance_hosts;
}

const PluginSection::Line* PluginSection::find(std::string_view key) const {
  auto line = std::find_if(lines.rbegin(), lines.rend(), [key](const Line& l) { return l.key == key; });
  return line == lines.rend() ? nullptr : &*line;
}

bool Config::is_admin(std::string_view user) const { return contains(options.admin_users, user); }
bool Config::is_stats(std::string_view user) const { return contains(options.stats_users, user); }

}  // namespace lokadb
