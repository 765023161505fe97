// auth_query: a server is asked for the secret of a user that the auth_file does not have. One object a question, no
// sockets: what is sent, and what the answers mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace lokadb {

struct FoundUser {
  std::string name;    // as the server spells it: the one the client is logged in as
  std::string secret;  // plain, MD5 or SCRAM; empty (NULL): no password fits
};

class UserLookup {
 public:
  UserLookup(std::string query, std::string user) : query_(std::move(query)), user_(std::move(user)) {}

  // Parse, Bind (one parameter, as text), Describe, Execute and Sync.
  void write_request(ByteBuffer& out) const;

  // The body of an answer that is neither an error nor ReadyForQuery. An error: the query is not one we can use; its
  // text is why the server connection is closed.
  Result<Done> on_answer(char type, Bytes body);

  // Once all answers are there. nullopt: no such user.
  const std::optional<FoundUser>& found() const { return found_; }

 private:
  Result<Done> read_columns(Bytes body);
  Result<Done> read_row(Bytes body);

  const std::string query_;
  const std::string user_;
  bool has_columns_ = false;
  std::optional<FoundUser> found_;
};

// The text to send for a configured auth_query: PgBouncer's default is sent such that it reads the system catalogue
// whatever search_path the connection has; any other query is the administrator's own.
std::string_view safe_auth_query(std::string_view configured);

}  // namespace lokadb
