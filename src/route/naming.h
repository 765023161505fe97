// How an application names the organization: by a setting (lokadb.tenant, or another one), which it sets for a
// transaction. What one statement does to it, told from its text and values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "route/decide.h"
#include "sql/statement.h"

namespace lokadb::route {

struct NamingEffect {
  enum class Kind : std::uint8_t {
    None,
    Set,      // to `text`; empty: no organization
    Default,  // to what the session began with
    Current,  // to what it is (SET ... FROM CURRENT)
    // Of transactions, in which settings are kept or put back.
    Commit,
    Rollback,
    Savepoint,  // `text`: its name
    Release,
    RollbackTo,
    Unseen,         // it may have been set to anything
    NotUnderstood,  // it is set in a form whose value cannot be known, or not whether: `text` says which
  };
  Kind kind = Kind::None;
  bool is_local = false;    // for the transaction alone
  bool names_only = false;  // a Set that does nothing else, and leaves nothing when the transaction ends
  std::string text{};

  // It outlives the transaction.
  bool is_for_session() const { return !is_local && ((kind == Kind::Set && !text.empty()) || kind == Kind::Current); }
};

//   setting   its name, lower case
//   is_bound  the values of parameters are there; if not, what hangs on them is None
//   has_utf8  client_encoding is UTF8; else only ASCII is known here
NamingEffect naming_effect(const sql::Statement& statement, const Values& values, std::string_view setting,
                           bool is_bound, bool has_utf8);

// Whether the text may have an effect, by a quick look that errs on the side of yes. False for most statements.
bool may_name(std::string_view text);
// Whether set_config may be called in it: definitions (CREATE TABLE AS ...) are not read as far as that.
bool has_set_config(std::string_view text);

}  // namespace lokadb::route
