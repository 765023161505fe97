// What a client is told of a statement that runs nowhere.
#pragma once

#include <string>
#include <string_view>

#include "route/decide.h"

namespace lokadb::router {

struct Refusal {
  std::string_view sqlstate;
  route::Reason reason;
  std::string message, hint;
};

// As decided for the one statement, which has this fingerprint.
Refusal refusal_of(const route::Analysis& analysis, const route::Verdict& verdict, const std::string& fingerprint);

// Under the policy reject: nothing is known of the database; the text cannot be read.
Refusal catalog_unknown();
enum class Unread : unsigned char { TooLarge, Encoding, Grammar, Portals };
Refusal unread(Unread why, const std::string& syntax_error);
// The cloud's setting would get a value that no plugin has taken up.
Refusal naming_not_followed(const std::string& setting);
// What has been named for the session cannot stand in front of: a command that runs a query which is not seen, a Query
// that sets the modes of its transaction, or what a Query has behind the end of a transaction.
Refusal query_of_command(const std::string& setting);
Refusal modes_first();
Refusal one_transaction(const std::string& setting);

}  // namespace lokadb::router
