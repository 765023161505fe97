#include "refusals.h"

namespace lokadb::router {

using route::Reason;

Refusal refusal_of(const route::Analysis& analysis, const route::Verdict& verdict, const std::string& fingerprint) {
  Refusal r{verdict.sqlstate, verdict.reason, route::refusal_text(analysis, verdict), {}};
  if (verdict.reason == Reason::Rejected) r.hint = "The fingerprint of the statement is " + fingerprint + ".";
  return r;
}

Refusal catalog_unknown() {
  return {"57P03", Reason::CatalogStale,
          "lokadb: the routing catalog of the database is not known, and the router's policy is to reject",
          "Try again; if that does not help, the proxy's log says why its feed cannot be had."};
}

Refusal unread(Unread why, const std::string& syntax_error) {
  Refusal r{"0A000",
            Reason::Rejected,
            "lokadb: the statement cannot be read, so that it is not known which organization it is about",
            {}};
  switch (why) {
    case Unread::TooLarge:
      r.hint = "Name the organization, or raise max_routed_message.";
      break;
    case Unread::Encoding:
      r.hint = "Use client_encoding UTF8.";
      break;
    case Unread::Portals:
      r.hint = "Execute portals in the order they are bound in.";
      break;
    case Unread::Grammar:
      r.sqlstate = "42601";
      r.message += ": " + syntax_error;
      r.hint = "If it is right for the server, name the organization.";
      break;
  }
  return r;
}

Refusal naming_not_followed(const std::string& setting) {
  return {"0A000", Reason::NamingNotFollowed,
          "lokadb: " + setting + " names an organization, and no plugin of the proxy follows it",
          "The plugin tenant does: plugins = tenant, refs, router, and setting = " + setting + " in [tenant]."};
}

Refusal query_of_command(const std::string& setting) {
  return {"0A000", Reason::SessionCommand,
          "lokadb: this command cannot run under an organization that is named for the session",
          "BEGIN, SET LOCAL " + setting + " = ..., and then the command."};
}

Refusal modes_first() {
  return {"0A000", Reason::SessionCommand,
          "lokadb: the organization that is named for the session cannot be set for a Query that sets the modes of its "
          "transaction",
          "BEGIN with the modes first, and then the statements."};
}

Refusal one_transaction(const std::string& setting) {
  return {"0A000", Reason::SessionCommand,
          "lokadb: a Query with several transactions cannot run under an organization that is named for the session",
          "Send each transaction by itself, or SET LOCAL " + setting + " = ... in each of them."};
}

}  // namespace lokadb::router
