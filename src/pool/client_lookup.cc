// auth_query, seen from the login that needs it: it waits for a server connection of auth_user like any client for one
// of its own, has it asked, and goes on with what the server knows. Nothing is kept for the next login.
#include "auth/user_lookup.h"
#include "base/log.h"
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

bool ClientLogin::needs_lookup() const {
  if (user_is_known_ || !database_is_known_ || is_proven_outside()) return false;
  const auto& user = auth_user();
  return user && !user->empty();
}

const OptionalText& ClientLogin::auth_user() const {
  const auto& own = session_.database_->config->auth_user;
  return own ? own : session_.pooler.options().auth_user;
}

void ClientLogin::start_lookup() {
  Pooler& pooler = session_.pooler;
  const auto& own_query = session_.database_->config->auth_query;
  lookup_ = std::make_unique<UserLookup>(
      std::string(safe_auth_query(own_query ? *own_query : pooler.options().auth_query)), user_);
  if (auto entered = enter_lookup_pool(); !entered) return refuse(entered.error());
  pooler.acquire(session_);
}

// The pool of auth_user in the database where the question is asked.
Result<Done> ClientLogin::enter_lookup_pool() {
  Pooler& pooler = session_.pooler;
  auto misconfigured = [this](const std::string& why) {
    log_line(LogLevel::Error, "%s %s", session_.log_name().c_str(), why.c_str());
    return fatal("bouncer config error");
  };
  const auto& own = session_.database_->config->auth_dbname;
  const auto& name = own ? own : pooler.options().auth_dbname;
  std::lock_guard guard(pooler.lock);
  Database* database = name ? pooler.find_database(*name, [this] { return session_.log_name(); }) : session_.database_;
  if (database == nullptr) return misconfigured("authentication database \"" + *name + "\" is not configured.");
  if (database->is_disabled) return fatal("authentication database \"" + database->name + "\" is disabled");
  if (database->is_console)
    return misconfigured("cannot use the reserved \"" + database->name + "\" database as an auth_dbname");
  session_.pool_ = &pooler.pool(*database, *auth_user());
  session_.is_in_lookup_ = true;
  ++session_.pool_->client_count;
  session_.pool_->unused_since = 0;
  return Done{};
}

void ClientLogin::lookup_answered() {
  auto found = lookup_->found();
  lookup_.reset();
  if (!found) {
    log_line(LogLevel::Log, "%s no such user: %s", session_.log_name().c_str(), user_.c_str());
    return refuse({sqlstate::kInvalidAuthorization, Severity::Fatal, "no such user", {}});
  }
  bool is_renamed = user_ != found->name;
  user_ = found->name;
  secret_ = found->secret;
  user_is_known_ = was_looked_up_ = true;
  if (is_renamed && session_.database_->is_console) {
    session_.is_admin_ = false;  // that was the other name's right
    if (auto access = check_console_access(); !access) return refuse(access.error());
  }
  admit_user();
}

// ------------------------------------------------------------------ the session's part

UserLookup& ClientSession::lookup() { return login_->lookup(); }

void ClientSession::lookup_answered() {
  ServerConnection& server = *leg_.server;
  leg_.server = nullptr;
  server.unlink();
  {
    std::lock_guard guard(pooler.lock);
    forget_lookup();
  }
  server.give_back();
  if (!set_state(ClientEvent::ServerReleased)) return close(fatal("illegal state"));
  login_->lookup_answered();
  if (state_ != ClientState::Closed && (!input_.empty() || stream_.is_readable())) worker.loop.resume_later(*this);
}

// [pool lock] held. pool_ was auth_user's, not the client's own.
void ClientSession::forget_lookup() {
  if (!is_in_lookup_) return;
  is_in_lookup_ = false;
  --pool_->client_count;
  pool_ = nullptr;
}

// Nothing is read meanwhile, but who has gone shall not wait on.
void ClientSession::look_for_end() {
  if (stream_.has_peer_ended()) close_silently("client unexpected eof");
}

}  // namespace lokadb
