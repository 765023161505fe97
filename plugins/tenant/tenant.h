// The plugin tenant: which organization the application has named. One object for the process, one state for each
// session.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/lokadb_plugin.h"
#include "route/tenant_scope.h"
#include "sql/template_cache.h"

namespace lokadb::tenant {

extern const lokadb_host* host;

inline std::string_view view(lokadb_string s) { return {s.data == nullptr ? "" : s.data, s.size}; }
inline lokadb_string lent(std::string_view s) { return {s.data(), s.size()}; }

struct Options {
  std::string setting;  // lower case
  bool is_local_only = true;
  bool logs_mismatch = false;
  std::set<std::string, std::less<>> all_roles;
};

struct Tenant {
  Options options;  // changes only while nothing else is called
  std::uint64_t options_number = 0;
  sql::TemplateCache templates{{}};
};

enum class Reason : std::uint32_t { Unseen, SessionValue, NotUnderstood, OtherOrganization, RoleValue };

// The session's slot.
struct SessionState {
  route::TenantScope scope;
  std::uint64_t options_number = 0;  // that the scope is about
  sql::Lifted lifted;                // buffers, used again and again

  // The batch that is under way, by statements.
  struct Coming {
    bool is_seen = true;       // its text was there
    bool is_followed = false;  // it sets the value, now or when its portal is executed
    route::NamingEffect effect;
  };
  std::vector<Coming> coming;  // empty: none of them matters
  std::uint32_t statement_count = 0;
  bool is_blind = false;              // the batch was too large to be seen
  bool has_open_portal = false;       // bound, not executed: it may still set the value
  std::string message, detail, hint;  // of a refusal

  // What the role or database sets the value to, asked with the first batch.
  enum class Ask : std::uint8_t { ToAsk, Asked, Known } ask = Ask::ToAsk;
  std::uint32_t step = 0;
  bool has_start_value = false;  // the client gave one when it connected
  bool is_refused = false;       // because of the role's
};

// The moments of a batch.
int inspect(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict);
int decide(Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict);
int review(const Tenant& tenant, lokadb_batch* batch, lokadb_verdict& verdict);
void observe(SessionState& session, const lokadb_event& event);

}  // namespace lokadb::tenant
