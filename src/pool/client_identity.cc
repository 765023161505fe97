// The middle of a login: which database and user it is for, whether there is room, and the proof.
#include <unistd.h>

#include "base/log.h"
#include "config/hba.h"
#include "config/options.h"
#include "net/socket.h"
#include "net/tls_info.h"
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxUserName = 127;
constexpr std::size_t kMaxDatabaseName = 63;

Error refusal(std::string text, std::string log = {}) {
  return {sqlstate::kInvalidAuthorization, Severity::Fatal, std::move(text), std::move(log)};
}
}  // namespace

void ClientLogin::identify() {
  if (database_.size() > kMaxDatabaseName) return refuse(fatal("database name too long"));
  if (auto found = find_names(); !found) return refuse(found.error());
  if (needs_lookup()) return start_lookup();
  admit_user();
}

void ClientLogin::admit_user() {
  if (auto counted = count_in(); !counted) return refuse(counted.error());
  begin_auth();
}

// Finds the database, and the user as far as files know him.
Result<Done> ClientLogin::find_names() {
  Pooler& pooler = session_.pooler;
  const Options& o = pooler.options();
  std::lock_guard guard(pooler.lock);
  Database* database = pooler.find_database(database_, [this] { return session_.log_name(); });
  database_is_known_ = database != nullptr;
  session_.database_ = database;
  if (database != nullptr && database->is_console) {
    if (auto access = check_console_access(); !access) return access;
  }
  if (user_.size() > kMaxUserName) return fatal("username too long");
  const std::string* secret = pooler.config->userlist->find(user_);
  bool is_any = o.auth_type == AuthType::Any;
  user_is_known_ = secret != nullptr || is_any || session_.console_by_same_uid;
  if (secret != nullptr) secret_ = *secret;
  return Done{};
}

// Counts and looks at the limits in one step, so that they hold.
Result<Done> ClientLogin::count_in() {
  if (!database_is_known_ || !user_is_known_) return Done{};
  Pooler& pooler = session_.pooler;
  const Options& o = pooler.options();
  std::lock_guard guard(pooler.lock);
  Database* database = session_.database_;
  bool is_any = o.auth_type == AuthType::Any;
  bool forced = database->config->user.has_value();
  if (is_any && !forced && !database->is_console) {
    log_line(LogLevel::Error, "%s auth_type=any requires forced user", session_.log_name().c_str());
    return fatal("bouncer config error");
  }
  User& user = pooler.user(is_any && forced ? *database->config->user : user_);
  session_.user_ = &user;
  session_.is_counted_ = true;
  ++database->client_count;
  ++user.client_count;
  if (session_.is_admin_) return Done{};
  int database_limit = database->config->max_db_client_connections.value_or(o.max_db_client_connections);
  if (database_limit > 0 && database->client_count > database_limit)
    return Error{
        sqlstate::kTooManyConnections, Severity::Fatal, "client connections exceeded (max_db_client_connections)", {}};
  int user_limit = o.max_user_client_connections;
  if (user.config.max_user_client_connections.value_or(0) > 0) user_limit = *user.config.max_user_client_connections;
  if (user_limit > 0 && user.client_count > user_limit)
    return Error{sqlstate::kTooManyConnections,
                 Severity::Fatal,
                 "client connections exceeded (max_user_client_connections)",
                 {}};
  return Done{};
}

Result<Done> ClientLogin::check_console_access() {
  const Config& config = *session_.pooler.config;
  if (session_.peer().is_unix() && user_ == kConsoleDatabase &&
      unix_peer(session_.stream().fd()).uid == static_cast<int>(geteuid())) {
    session_.console_by_same_uid = true;
    session_.is_admin_ = true;
    log_line(LogLevel::Log, "%s pgbouncer access from unix socket", session_.log_name().c_str());
  } else if (config.is_admin(user_)) {
    session_.is_admin_ = true;
  } else if (!config.is_stats(user_) && config.options.auth_type != AuthType::Any) {
    return refusal("not allowed");
  }
  return Done{};
}

// What the configuration demands of this client.
Result<ClientLogin::Demand> ClientLogin::demand() const {
  const Config& config = *session_.pooler.config;
  if (session_.console_by_same_uid) return Demand{AuthType::Any, nullptr};
  if (config.options.auth_type != AuthType::Hba) return Demand{config.options.auth_type, nullptr};
  HbaLogin login;
  login.address = session_.peer();
  login.has_tls = session_.has_tls();
  login.is_physical_replication = replication_ == ReplicationMode::Physical;
  login.database = database_;
  login.user = user_;
  const HbaRule* rule = config.hba->find(login);
  if (rule == nullptr) return refusal("no authentication method is found");
  switch (rule->method) {
    case HbaMethod::Trust:
      return Demand{AuthType::Trust, rule};
    case HbaMethod::Md5:
      return Demand{AuthType::Md5, rule};
    case HbaMethod::Password:
      return Demand{AuthType::Plain, rule};
    case HbaMethod::Scram:
      return Demand{AuthType::Scram, rule};
    case HbaMethod::Cert:
      return Demand{AuthType::Cert, rule};
    case HbaMethod::Ldap:
      return Demand{AuthType::Ldap, rule};
    case HbaMethod::Pam:
      return Demand{AuthType::Pam, rule};
    case HbaMethod::Peer:
      return Demand{AuthType::Hba, rule};
    case HbaMethod::Reject:
      break;
  }
  return refusal("login rejected");
}

void ClientLogin::begin_auth() {
  auto demanded = demand();
  bool is_outside = demanded && (demanded->type == AuthType::Ldap || demanded->type == AuthType::Pam);
  if (!user_is_known_ && !is_outside)
    log_line(LogLevel::Log, "%s no such user: %s", session_.log_name().c_str(), user_.c_str());
  if (!demanded) return refuse(demanded.error());
  switch (demanded->type) {
    case AuthType::Cert:
      return finish_without_secret(check_certificate(demanded->rule));
    case AuthType::Hba:
      return finish_without_secret(check_system_user(*demanded->rule));
    case AuthType::Ldap:
    case AuthType::Pam:
      return ask_outside_password(*demanded);
    default:
      return begin_exchange(demanded->type);
  }
}

// A name proven elsewhere lets in a user who is known here.
void ClientLogin::finish_without_secret(const Result<Done>& checked) {
  if (!checked) {
    log_line(LogLevel::Error, "%s %s", session_.log_name().c_str(), checked.error().log_text().c_str());
    return refuse(refusal(checked.error().to_client));
  }
  logged_in();
}

Result<Done> ClientLogin::check_certificate(const HbaRule* rule) const {
  auto failed = [](std::string why) { return refusal("certificate authentication failed", std::move(why)); };
  if (!session_.has_tls()) return failed("TLS connection required");
  const SSL* ssl = session_.stream_.ssl();
  auto names = peer_certificate_names(ssl);
  if (!names || SSL_get_verify_result(ssl) != X509_V_OK) return failed("TLS client certificate required");
  const IdentMap* map = rule != nullptr ? rule->map.get() : nullptr;
  if (!lets_in(*names, user_, map))
    return failed(map != nullptr ? "ident map: " + rule->map_name + " does not have a match"
                                 : "TLS certificate name mismatch");
  if (!user_is_known_) return failed("no such user: " + user_);
  return Done{};
}

Result<Done> ClientLogin::check_system_user(const HbaRule& rule) const {
  auto failed = [](std::string why) { return refusal("unix socket login rejected", std::move(why)); };
  if (!session_.peer().is_unix()) return failed("peer authentication needs a unix socket");
  int uid = unix_peer(session_.stream_.fd()).uid;
  auto name = uid >= 0 ? system_user_name(static_cast<unsigned>(uid)) : std::nullopt;
  if (!name) return failed("user of the peer is not known");
  if (!lets_in({*name}, user_, rule.map.get()))
    return failed(rule.map != nullptr ? "ident map " + rule.map_name + " cannot be matched"
                                      : "user of the peer is " + *name);
  if (!user_is_known_) return failed("no such user: " + user_);
  return Done{};
}

void ClientLogin::begin_exchange(AuthType type) {
  const Options& o = session_.pooler.options();
  ClientAuthInput input;
  input.type = type;
  input.user = user_;
  input.scram_iterations = o.scram_iterations;
  input.secret = user_is_known_ ? &secret_ : nullptr;
  std::optional<ScramVerifier> verifier;
  if (session_.user_ != nullptr && kind_of_secret(secret_) == SecretKind::Plain) {
    std::lock_guard guard(session_.pooler.lock);
    const User& user = *session_.user_;
    if (user.verifier && user.verifier_secret == secret_ &&
        user.verifier->iterations == static_cast<std::uint32_t>(o.scram_iterations))
      verifier = user.verifier;
  }
  if (verifier) input.known_verifier = &*verifier;
  auth_ = std::make_unique<ClientAuth>(input);
  ByteBuffer out;
  auth_result(auth_->begin(out), out);
}

void ClientLogin::auth_message(Bytes body) {
  ByteBuffer out;
  auto step = auth_->on_message(body, out);
  auth_result(std::move(step), out);
}

// So that the costly derivation is done once, and not for each wrong password.
void ClientLogin::remember_verifier() {
  if (session_.user_ == nullptr || !auth_->made_verifier()) return;
  std::lock_guard guard(session_.pooler.lock);
  User& user = *session_.user_;
  user.verifier = auth_->made_verifier();
  user.verifier_secret = secret_;
}

void ClientLogin::auth_result(Result<AuthStep> step, const ByteBuffer& out) {
  remember_verifier();
  session_.stream().send_copy(out.bytes());
  if (!step) return refuse(step.error());
  if (*step == AuthStep::Done) logged_in();
}

void ClientLogin::remember_keys() {
  if (session_.user_ == nullptr) return;
  std::lock_guard guard(session_.pooler.lock);
  User& user = *session_.user_;
  user.is_known = true;
  if (auth_ == nullptr) return;
  if (auth_->captured_keys()) {
    user.scram_keys = auth_->captured_keys();
    user.scram_keys_secret = secret_;
  }
}

}  // namespace lokadb
