// The router's state: one for the process, and one for each session.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyses.h"
#include "catalogs.h"
#include "cloud.h"
#include "control_plane.h"
#include "plugin/lokadb_plugin.h"
#include "rewriting.h"
#include "role_facts.h"
#include "route/decide.h"
#include "targets.h"
#include "telling.h"

namespace lokadb::router {

extern const lokadb_host* host;

inline constexpr std::uint32_t kJsonbOid = 3802;

inline std::string_view view(lokadb_string s) { return {s.data == nullptr ? "" : s.data, s.size}; }
inline lokadb_string lent(std::string_view s) { return {s.data(), s.size()}; }
int fail(std::string_view text);
// On the cloud leg. Returns LOKADB_OK or LOKADB_FAILED.
int add_step(lokadb_batch* batch, lokadb_moment moment, std::string_view sql, std::span<const lokadb_step_value> values,
             std::uint32_t statement = 0);

struct Options {
  bool rejects = false;
  std::set<std::string> allowed;  // fingerprints, 16 hexadecimal digits
  std::string control_user, control_password;
  Logins logins;
  ControlPlaneOptions control_plane;
};

struct Router {
  Options options;  // changes only while nothing else is called
  Catalogs catalogs;
  Analyses analyses;
  RoleSettings role_settings;
  StoredLogins stored_logins;
  Targets targets;
  Rewrites rewrites;
  Tallies tallies;
  LogLine refusals, sessions_off;
  std::unique_ptr<ControlPlane> control_plane;  // its thread uses what stands above
};

// One statement of the batch.
struct Piece {
  TextPtr text;
  std::size_t number = 0;                          // in the text
  std::uint32_t statement = 0;                     // in the batch
  bool is_parse = false;                           // not run in this batch
  bool has_named_portal = false;                   // else the one without a name, if any
  bool stays_open = false;                         // statements that come behind it may meet its portal again
  std::optional<std::string> named;                // what the application has named for it
  const route::LiteralList* literals = nullptr;    // in BatchState
  std::span<const catalog::Parameter> parameters;  // in BatchState
  const route::Analysis& analysis() const { return text->analyses[number]; }
  sql::StatementClass kind() const { return text->facts->parsed.statements[number].kind; }
  bool may_write() const;
  bool calls_unknown() const;
  bool commits() const;
  bool ends_transaction() const;
  // What earlier statements have locked stays so.
  bool leaves_locks() const;
  // Whether what comes behind it is outside of a transaction block, given that of the piece itself.
  bool is_outside_after(bool is_outside) const;
  // Of the transaction, before anything else in it.
  bool sets_modes() const;
  bool changes_role() const;
};

// Values of a statement, for its pieces.
struct PieceValues {
  route::LiteralList literals;
  PreparedPtr prepared;  // has the literals of a prepared statement
  std::vector<catalog::Parameter> parameters;
};

// The batch that is being decided. Between two calls for one batch the host keeps what the views here point to.
struct BatchState {
  Catalogs::Known known;
  RoleSettings::Ptr settings;
  std::uint32_t settings_step = UINT32_MAX;
  bool is_read = false;
  std::vector<std::uint32_t> unread;               // statements that cannot be read, and perhaps read tables
  std::string syntax_error;                        // of one of these, where it is that
  bool has_textless = false;                       // a FunctionCall, or what else has no text
  bool calls_function = false;                     // of which only the server knows what it does
  bool has_unread_portals = false;                 // run in another order than they are bound in
  route::Reason not_direct = route::Reason::None;  // of the batch as a whole
  std::vector<Piece> pieces;
  std::deque<PieceValues> values;  // the first values_used are those of this batch
  std::size_t values_used = 0;
  std::vector<route::Verdict> verdicts;
  struct Wanted {
    std::uint32_t fact;  // its number
    std::string key;
  };
  std::deque<Wanted> wanted;
  // Table and key of each, which are the catalog's and those of `wanted`.
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> wanted_index;
  TargetPtr target;
  std::set<std::uint32_t> told_about;       // statements, of which it has been published what they name by themselves
  std::string message, hint, organization;  // of the verdict

  // For the next batch; memory stays, unless a batch has taken much of it.
  void start_anew();
};

// What a batch that ended in Flush has left for those behind it.
struct BehindFlush {
  bool is_outside_block = false;  // though the host tells of a transaction until the Sync
  bool sync_commits = false;      // something of it
};

// The session's slot.
struct SessionState {
  // In session pooling: asked on its own server, under this catalog.
  RoleSettings::Ptr own_facts;
  CatalogPtr facts_are_of;
  BatchState batch;
  SurroundingsPtr surroundings;
  Scratch scratch;
  std::uint32_t copies = 0;  // tables for COPY in the transaction
  // The transaction has a cursor, or a portal that is not at its end; the one without a name ends by itself.
  bool keeps_portal = false, keeps_nameless_portal = false;
  BehindFlush before, after;  // the batch
  // SET ROLE or the like, as far as it can be seen: what is known of the client's role does not hold.
  bool has_other_role = false;
  // Why none of its statements goes direct, as of the last batch; None: some may.
  route::Reason off = route::Reason::None;
  std::string last_organization;  // of its last batch that went direct
};

extern const lokadb_show kShows[2];
int show(void* self, std::uint32_t which, lokadb_rows* rows);
int session_state(void* self, void* slot, lokadb_session_state* out);

int decide(Router& router, lokadb_batch* batch, lokadb_verdict* verdict);

}  // namespace lokadb::router
