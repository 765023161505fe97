// The named organization of one session, and how transactions and savepoints change it: as PostgreSQL does it with any
// setting (manual, SET and ROLLBACK TO SAVEPOINT). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "route/naming.h"

namespace lokadb::route {

class TenantScope {
 public:
  // Empty: none is named. Only if is_known().
  std::string_view value() const;
  bool is_known() const { return now_.is_known; }
  bool is_local() const { return now_.local.has_value(); }  // it ends with the transaction
  // A function, DO or the like has run that may have changed settings. What it may have named does not matter.
  bool is_unseen() const { return now_.is_unseen; }

  // What the session begins with, to which RESET returns.
  void set_default(std::string_view value) { default_ = value; }
  // The statement has succeeded; with COMMIT, whether it did commit.
  void apply(const NamingEffect& effect, bool has_committed = true);
  // Something has run that was not seen.
  void lose_track() { now_.is_known = false; }
  void transaction_ended(bool has_committed);

  // All of it as text, for another process. from_text: nullopt if it is none.
  std::string to_text() const;
  static std::optional<TenantScope> from_text(std::string_view text);
  bool is_initial() const;

 private:
  struct Level {
    std::optional<std::string> session;  // beyond the transaction; nullopt: the default
    std::optional<std::string> local;    // until its end
    bool is_known = true;
    bool is_unseen = false;
    bool operator==(const Level&) const = default;
  };
  struct Savepoint {
    std::string name;
    Level before;
  };
  void set(std::optional<std::string> value, bool is_local);
  std::size_t find(std::string_view savepoint) const;

  std::string default_;
  Level now_;
  std::optional<std::string> committed_;  // Level::session, if the transaction is rolled back
  std::vector<Savepoint> savepoints_;
};

}  // namespace lokadb::route
