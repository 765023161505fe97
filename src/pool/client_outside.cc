// PAM and LDAP, seen from the login: the client is asked for its password in clear, a helper thread finds out whether
// it is right, and the session reads nothing meanwhile (state Checking). The user need not stand in any file.
#include "auth/outside_auth.h"
#include "base/log.h"
#include "config/hba.h"
#include "net/helper_threads.h"
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::uint32_t kCleartextPassword = 3;
constexpr std::size_t kManyWaiting = 20;  // where PgBouncer's queue is full, and the log says so
constexpr std::string_view kPamService = "pgbouncer";

Error refusal(std::string text, std::string log = {}) {
  return {sqlstate::kInvalidAuthorization, Severity::Fatal, std::move(text), std::move(log)};
}
}  // namespace

struct ClientLogin::Outside {
  const char* name;                                // of the method, for texts
  std::function<Result<Done>(std::string)> check;  // of a password; blocks
  std::string password;
  std::shared_ptr<Result<Done>> verdict;  // written by the helper before it is done
  HelperThreads::Ticket ticket;
};

ClientLogin::ClientLogin(ClientSession& session) : session_(session) {}
ClientLogin::~ClientLogin() = default;

// Who is in no file may still be known outside: no auth_query for those.
bool ClientLogin::is_proven_outside() const {
  auto demanded = demand();
  return demanded && (demanded->type == AuthType::Ldap || demanded->type == AuthType::Pam);
}

void ClientLogin::ask_outside_password(const Demand& demand) {
  bool is_pam = demand.type == AuthType::Pam;
  // As in PgBouncer: with auth_type itself; an HBA file may have both.
  if (demand.rule == nullptr && session_.database_ != nullptr && session_.database_->config->auth_user)
    return refuse(
        fatal("bouncer config error", std::string(name_of(demand.type)) + " is not for databases with auth_user"));
  if (is_pam ? !has_pam() : !has_ldap())
    return refuse({sqlstate::kFeatureNotSupported,
                   Severity::Fatal,
                   std::string(name_of(demand.type)) + " is not supported by this build",
                   {}});
  outside_ = std::make_unique<Outside>();
  outside_->name = is_pam ? "PAM" : "LDAP";
  if (is_pam) {
    PamLogin login;
    login.service =
        demand.rule != nullptr && !demand.rule->pam_service.empty() ? demand.rule->pam_service : kPamService;
    login.user = user_;
    if (!session_.peer().is_unix()) login.remote_host = ip_text(session_.peer());
    outside_->check = [login](std::string password) mutable {
      login.password = std::move(password);
      return check_with_pam(login);
    };
  } else {
    const auto& global = session_.pooler.options().auth_ldap_options;
    if (demand.rule == nullptr && !global)
      return refuse(refusal("LDAP authentication failed", "auth_ldap_options is null"));
    auto options = parse_ldap_options(demand.rule != nullptr ? demand.rule->ldap_options : *global);
    if (!options) return refuse(refusal("LDAP authentication failed", options.error().log_text()));
    outside_->check = [options = *options, user = user_](const std::string& password) {
      return check_with_ldap(options, user, password);
    };
  }
  ByteBuffer out;
  {
    MessageWriter m(out, 'R');
    m->u32(kCleartextPassword);
  }
  session_.stream().send_copy(out.bytes());
}

void ClientLogin::outside_password(Bytes body) {
  MessageReader reader(body);
  std::string_view password = reader.cstring();
  if (!reader.finished()) return refuse(fatal("broken PasswordMessage packet"));
  if (password.empty())
    return refuse({sqlstate::kInvalidPassword, Severity::Fatal, "empty password returned by client", {}});
  outside_->password = password;
  outside_->verdict = std::make_shared<Result<Done>>(fatal("the check came to no end"));
  HelperThreads& helpers = session_.pooler.helpers;
  if (helpers.waiting_count() == kManyWaiting) log_line(LogLevel::Warning, "%s queue is full, waiting", outside_->name);
  auto ticket = helpers.run(
      session_.worker.loop,
      [check = outside_->check, text = outside_->password, verdict = outside_->verdict] { *verdict = check(text); },
      [this] { outside_answered(); });
  if (!ticket) return refuse({sqlstate::kTooManyConnections, Severity::Fatal, "too many logins are being checked", {}});
  outside_->ticket = std::move(*ticket);
  if (!session_.set_state(ClientEvent::HelperAsked)) refuse(fatal("illegal state"));
}

void ClientLogin::outside_answered() {
  if (session_.state() != ClientState::Checking) return;
  if (!session_.set_state(ClientEvent::HelperAnswered)) return refuse(fatal("illegal state"));
  if (const Result<Done>& verdict = *outside_->verdict; !verdict) {
    log_line(LogLevel::Warning, "%s %s", session_.log_name().c_str(), verdict.error().log_text().c_str());
    return refuse(refusal(std::string(outside_->name) + " authentication failed"));
  }
  // Now he is known, and his password is the one for the servers.
  secret_ = outside_->password;
  user_is_known_ = was_looked_up_ = true;
  if (!session_.is_counted_) {
    if (auto counted = count_in(); !counted) return refuse(counted.error());
  }
  ClientSession& session = session_;
  logged_in();  // which ends this object
  if (session.state() != ClientState::Closed) session.worker.loop.resume_later(session);
}

}  // namespace lokadb
