// What a client's role is in the cloud: its effective settings there, and what it may do with the tables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "plugin/lokadb_plugin.h"
#include "telling.h"

namespace lokadb::router {

inline constexpr std::string_view kSearchPath = "search_path";

// Effective settings of a role in the cloud, name and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct RoleFacts {
  Settings settings;
  std::vector<std::string> readable;  // tables of which it may read all columns, quoted
  std::vector<std::string> guarded;   // tables whose row security it does not pass by
  bool operator==(const RoleFacts&) const = default;
};

// SQL that gives them; for the client's role on its own connection.
std::string role_facts_query(const catalog::Catalog& catalog);
// Its answer. Nothing: it has not been answered, or not in this form.
std::shared_ptr<RoleFacts> role_facts(lokadb_batch* batch, std::uint32_t step);

// Asked once for each role and database, and again when the servers of their pool are others: a change of a role's
// settings holds for new ones.
class RoleSettings {
 public:
  using Ptr = std::shared_ptr<const RoleFacts>;
  // As last asked; nullptr: never.
  Ptr last(std::string_view database, std::string_view role) const;
  // nullptr: not known of these servers (lokadb_batch_info.servers).
  Ptr find(std::string_view database, std::string_view role, std::uint64_t servers) const;
  // Facts that are the same stay the same object, which targets are kept by.
  Ptr put(std::string_view database, std::string_view role, std::uint64_t servers, RoleFacts facts);
  // Its tables are others: to be asked again. What was last known stays for transactions, in which nothing can be
  // asked.
  void outdate(std::string_view database);

 private:
  mutable std::mutex mutex_;
  struct Known {
    Ptr facts;
    std::optional<std::uint64_t> servers;  // nullopt: outdated
  };
  std::map<std::pair<std::string, std::string>, Known, PairLess> known_;
};

}  // namespace lokadb::router
