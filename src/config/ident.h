// The auth_ident_file: which users a name known from outside (of a certificate, of the operating system) may log in as.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"

namespace lokadb {

struct IdentEntry {
  std::string system_name;
  bool is_any_user = false;  // the word "all"
  std::string user;

  bool lets_in_as(std::string_view name) const { return is_any_user || user == name; }
};
using IdentMap = std::vector<IdentEntry>;
using IdentMaps = std::map<std::string, std::shared_ptr<const IdentMap>, std::less<>>;  // by the map's name

// Whether one of the names that are proven elsewhere is the user's own or, where there is a map, may log in as the user
// by it. Names are compared exactly.
bool lets_in(const std::vector<std::string>& system_names, std::string_view user, const IdentMap* map);

struct IdentText {
  IdentMaps maps;
  Faults warnings;  // a line for the log for each line that was skipped
};

// Lines of MAP SYSTEM-NAME USER|all. Names are compared as they are: there are no patterns. Pure; any thread.
IdentText parse_ident(std::string_view text);

}  // namespace lokadb
