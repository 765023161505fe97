// The end of a login: into its pool, or to the console, and what a client is told then.
#include "base/log.h"
#include "config/options.h"
#include "pool/cancel_key.h"
#include "pool/client_login.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::size_t kUsualWelcome = 1024;  // bytes
constexpr int kNumberTries = 100;            // a process with peers has only some 16000 numbers
}  // namespace

void ClientLogin::logged_in() {
  Pooler& pooler = session_.pooler;
  remember_keys();
  if (!database_is_known_) {
    log_line(LogLevel::Log, "%s login failed: db=%s user=%s", session_.log_name().c_str(), database_.c_str(),
             user_.c_str());
    return refuse({sqlstate::kInvalidCatalogName, Severity::Fatal, "no such database: " + database_, {}});
  }
  Database& database = *session_.database_;
  if (database.is_console) return open_console();
  if (database.is_disabled) return refuse(fatal("database \"" + database.name + "\" is disabled"));
  if (pooler.shutdown_mode != ShutdownMode::None) return refuse(fatal("pooler is shutting down"));
  replication_ == ReplicationMode::None ? open_pool() : open_replication();
}

void ClientLogin::open_console() {
  ByteBuffer out;
  {
    MessageWriter m(out, 'R');
    m->u32(0);
  }
  session_.pooler.console->greet(out);
  write_cancel_key(session_, out);
  write_ready_for_query(out, 'I');
  session_.stream().send_copy(out.bytes());
  {
    std::lock_guard guard(session_.pooler.lock);
    session_.pool_ = &session_.pooler.pool(*session_.database_, kConsoleDatabase);
    ++session_.pool_->client_count;
  }
  session_.counters().client_login_count.add(1);
  if (!session_.set_state(ClientEvent::ConsoleOpened)) return refuse(fatal("illegal state"));
  session_.drop_login();
}

void ClientLogin::open_pool() {
  Pooler& pooler = session_.pooler;
  ClientSession& session = session_;
  session.parameters_ = session.startup_parameters_ = intern_parameters(std::move(wanted_));
  std::shared_ptr<const Welcome> welcome;
  {
    std::lock_guard guard(pooler.lock);
    const auto& forced = session.database_->config->user;
    Pool& pool = pooler.pool(*session.database_, forced ? *forced : user_);
    session.pool_ = &pool;
    if (was_looked_up_ && !forced) remember_lookup(pool);
    ++pool.client_count;
    pool.unused_since = 0;
    welcome = pool.welcome;
    if (!welcome) pool.newcomers.push_back(&session);
  }
  if (welcome) {
    if (!session.set_state(ClientEvent::LoggedIn)) return refuse(fatal("illegal state"));
    send_welcome(session, *welcome);
    return session.drop_login();
  }
  session.wait_started = session.worker.loop.now();
  if (!session.set_state(ClientEvent::MustWait)) return refuse(fatal("illegal state"));
  pooler.launch_if_wanted(*session.pool_, session.worker);
  session.drop_login();
}

// [lock] held. Logins at the server use what the newest login of the user was checked against.
void ClientLogin::remember_lookup(Pool& pool) const {
  if (pool.looked_up_secret != secret_) pool.looked_up_keys.reset();
  pool.looked_up_secret = secret_;
  if (auth_ != nullptr && auth_->captured_keys()) pool.looked_up_keys = auth_->captured_keys();
}

// A key of our own making: the client's, whichever server works for it.
void ClientLogin::write_cancel_key(ClientSession& session, ByteBuffer& out) {
  Pooler& pooler = session.pooler;
  for (int tries = 1;; ++tries) {
    session.cancel_key_ =
        make_cancel_key(pooler.options().peer_id, session.takes_long_keys_ ? KeyLength::Long : KeyLength::Usual);
    // Drivers show the first half as a process id: a positive number, and one that no process has.
    session.cancel_key_[0] = (session.cancel_key_[0] & std::byte{0x3f}) | std::byte{0x40};
    std::lock_guard guard(pooler.lock);
    if (tries < kNumberTries && pooler.numbers.contains(session.number())) continue;
    pooler.numbers.emplace(session.number(), &session);
    break;
  }
  MessageWriter m(out, 'K');
  m->append(session.cancel_key_.bytes());
}

void ClientLogin::take_spelling(ClientSession& session, const ParameterSet& there) {
  const TrackedNames& names = session.pooler.tracked;
  ParameterSetPtr spelled = session.parameters_;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& own = session.parameters_->values()[i];
    const auto& of_server = there.values()[i];
    if (own && of_server && names.same_value(i, *own, *of_server)) spelled = with_parameter(spelled, i, *of_server);
  }
  session.parameters_ = session.startup_parameters_ = spelled;
}

void ClientLogin::send_welcome(ClientSession& session, const Welcome& welcome) {
  Pooler& pooler = session.pooler;
  ByteBuffer out;
  out.reserve(kUsualWelcome);
  {
    MessageWriter m(out, 'R');
    m->u32(0);
  }
  out.append(welcome.untracked);
  // What the client did not ask for it is told as the server's; that is not a wish of its own.
  take_spelling(session, *welcome.tracked);
  for (std::size_t i = 0; i < pooler.tracked.size(); ++i) {
    const auto& own = session.parameters_->values()[i];
    const auto& of_server = welcome.tracked->values()[i];
    if (!of_server && pooler.tracked.is_addition(i)) continue;  // servers do not report it
    if (const auto& value = own ? own : of_server) write_parameter_status(out, pooler.tracked.name(i), *value);
  }
  write_cancel_key(session, out);
  const std::string& notice = pooler.options().login_notify_message;
  if (!notice.empty()) write_notice(out, "00000", notice);
  write_ready_for_query(out, 'I');
  session.stream_.send_copy(out.bytes());
  session.counters().client_login_count.add(1);
  session.begin_routing();
}

void ClientSession::welcome_arrived() {
  if (state_ != ClientState::Welcome) return;
  std::shared_ptr<const Welcome> welcome;
  {
    std::lock_guard guard(pooler.lock);
    welcome = pool_->welcome;
    if (!welcome) pool_->newcomers.push_back(this);  // obsolete again already
  }
  if (!welcome) return pooler.launch_if_wanted(*pool_, worker);
  counters().wait_time.add(static_cast<std::uint64_t>(worker.loop.now() - wait_started));
  wait_started = 0;
  if (!set_state(ClientEvent::Welcomed)) return close(fatal("illegal state"));
  ClientLogin::send_welcome(*this, *welcome);
  worker.loop.resume_later(*this);
}

void ClientSession::drop_login() {
  worker.loop.bury(std::move(login_));  // we may be called from inside it
}

}  // namespace lokadb
