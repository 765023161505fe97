// The database of an organization as a target: its address, its login, and what a new connection is asked before it is
// used (SPEC R1, R3: its label, the rights of the role; S1a: the settings that the cloud has for the client's role).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "logins.h"
#include "role_facts.h"

namespace lokadb::router {

// An organization's database for sessions with these settings, with all that the host is told of it.
struct Target {
  // Kept as long as this is: their addresses tell which target it is.
  std::shared_ptr<const catalog::Catalog> catalog;
  std::shared_ptr<const Settings> settings;
  const catalog::Organization* organization = nullptr;  // in `catalog`
  Login login;
  std::uint32_t port = 0;
  std::string greeting;
  std::uint64_t number = 0;  // of this very target and no other
};
using TargetPtr = std::shared_ptr<const Target>;

// Those that are in use. Any thread.
class Targets {
 public:
  TargetPtr get(const std::shared_ptr<const catalog::Catalog>& catalog, const std::shared_ptr<const Settings>& settings,
                const catalog::Organization& organization, const Logins& logins, const StoredLogins& stored);
  // After a change of logins or of a catalog; logins are looked up under the same lock, so that nothing that was made
  // of old ones stays.
  void clear();

 private:
  using Key = std::pair<const catalog::Organization*, const Settings*>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static constexpr std::size_t kMostBytes = 16u << 20;  // of greetings

  std::mutex mutex_;
  std::unordered_map<Key, TargetPtr, Hash> known_;
  std::size_t bytes_ = 0;
  std::uint64_t last_number_ = 0;
};

std::string greeting(const catalog::Catalog& catalog, const catalog::Organization& organization,
                     const Settings& settings);

}  // namespace lokadb::router
