// The database of an organization as a target: its address, its login, and what a new connection is asked before it is
// used (SPEC R1, R3: its label, the rights of the role; S1a: the settings that the cloud has for the client's role).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"

namespace lokadb::router {

// Effective settings of a role in the cloud, name and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

// What a role is in the cloud.
struct RoleFacts {
  Settings settings;
  std::vector<std::string> readable;  // tables of which it may read all columns, quoted
  std::vector<std::string> guarded;   // tables whose row security it does not pass by
};

// SQL that gives the settings, a row each, and the tables behind them as kReadable and kGuarded; for the client's role on its own
// connection.
inline constexpr std::string_view kReadable = "may read", kGuarded = "is guarded";  // no settings have such names
std::string settings_query(const catalog::Catalog& catalog);

struct Login {
  std::string user, password;
  bool is_known() const { return !user.empty(); }
};

// [customers_app]: one login for all organizations, or lines of their own ("42 = user=x password=y").
class Logins {
 public:
  // "": taken; else what is wrong with the line.
  std::string add(std::string_view name, std::string_view value);
  Login find(std::string_view organization) const;

 private:
  Login all_;
  std::map<std::string, Login, std::less<>> own_;
};

std::string greeting(const catalog::Catalog& catalog, const catalog::Organization& organization,
                     const Settings& settings);

}  // namespace lokadb::router
