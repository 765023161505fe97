// The router's state: one for the process, and one for each session.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyses.h"
#include "catalogs.h"
#include "cloud.h"
#include "plugin/lokadb_plugin.h"
#include "route/decide.h"
#include "targets.h"

namespace lokadb::router {

extern const lokadb_host* host;

inline constexpr std::uint32_t kJsonbOid = 3802;

inline std::string_view view(lokadb_string s) { return {s.data == nullptr ? "" : s.data, s.size}; }
inline lokadb_string lent(std::string_view s) { return {s.data(), s.size()}; }
int fail(std::string_view text);

// What a role has set in the cloud, asked once for each role and database.
class RoleSettings {
 public:
  using Ptr = std::shared_ptr<const RoleFacts>;
  Ptr find(std::string_view database, std::string_view role) const;
  void put(std::string_view database, std::string_view role, RoleFacts facts);
  void forget(std::string_view database);

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Ptr> known_;
};

struct Options {
  bool rejects = false;
  std::set<std::string> allowed;  // fingerprints, 16 hexadecimal digits
  std::string control_user, control_password;
  Logins logins;
};

struct Router {
  Options options;  // changes only while nothing else is called
  Catalogs catalogs;
  Analyses analyses;
  RoleSettings role_settings;
  Rewrites rewrites;
};

// One statement of the batch.
struct Piece {
  TextPtr text;
  std::size_t number = 0;       // in the text
  std::uint32_t statement = 0;  // in the batch
  std::uint32_t row_limit = 0;
  bool is_parse = false;  // not run in this batch
  bool is_named = false;  // the application has named organizations for it
  std::shared_ptr<const route::LiteralList> literals;
  std::vector<catalog::Parameter> parameters;
  const route::Analysis& analysis() const { return text->analyses[number]; }
  sql::StatementClass kind() const { return text->parsed.statements[number].kind; }
  bool may_write() const;
  bool commits() const;
  // Of the transaction, before anything else in it.
  bool sets_modes() const;
};

// The batch that is being decided. Between two calls for one batch the host keeps what the views
// here point to.
struct BatchState {
  Catalogs::Known known;
  RoleSettings::Ptr settings;
  std::uint32_t settings_step = UINT32_MAX;
  bool is_read = false;
  route::Reason not_direct = route::Reason::None;  // of the batch as a whole
  std::vector<Piece> pieces;
  struct Wanted {
    std::uint32_t fact;
    std::string table, key;
  };
  std::deque<Wanted> wanted;
  std::string message, hint, organization;  // of the verdict
};

// The session's slot.
struct SessionState {
  BatchState batch;
  sql::Lifted lifted;  // buffers, used again and again
  std::uint32_t copies = 0;   // tables for COPY in the transaction
  bool keeps_portal = false;  // the transaction has a cursor, or a portal that is not at its end
};

int decide(Router& router, lokadb_batch* batch, lokadb_verdict* verdict);

}  // namespace lokadb::router
