#include "pool/client_login.h"

#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "net/socket.h"
#include "pool/cancel.h"
#include "pool/pooler.h"
#include "pool/worker.h"

namespace lokadb {

namespace {
constexpr std::uint32_t kProtocol3 = 196608;
constexpr std::size_t kMaxUserName = 127;
constexpr std::size_t kMaxDatabaseName = 63;
constexpr std::size_t kMaxLoginMessage = 66 * 1024;  // PasswordMessage with the longest usable password
constexpr std::byte kTlsHandshakeRecord{0x16};
constexpr std::string_view kConsoleName = "pgbouncer";
constexpr std::size_t kUsualWelcome = 1024;  // bytes
}  // namespace

std::size_t ClientLogin::consume(Bytes in) {
  if (session_.state() == ClientState::Startup) return consume_first_packet(in);
  auto head = peek_head(in);
  if (!head) return 0;
  if (head->body == kBadLength || head->body > kMaxLoginMessage) {
    refuse(fatal("bad packet header"));
    return 0;
  }
  std::size_t total = kHeaderSize + head->body;
  if (in.size() < total) return 0;
  if (head->type == 'X') {
    session_.close_silently("client close request");
    return 0;
  }
  if (head->type != 'p' || auth_ == nullptr) {
    refuse(fatal("unexpected packet during login"));
    return 0;
  }
  auth_message(in.subspan(kHeaderSize, head->body));
  return total;
}

std::size_t ClientLogin::consume_first_packet(Bytes in) {
  bool is_tcp = !session_.peer().is_unix();
  if (in[0] == kTlsHandshakeRecord && is_tcp && session_.pooler.client_tls && !session_.has_tls()) {
    session_.stream().unread_for_tls(in);
    start_tls();
    return in.size();
  }
  if (in.size() < 4) return 0;
  auto length = startup_packet_length(in);
  if (!length) {
    refuse(length.error());
    return 0;
  }
  if (in.size() < *length) return 0;
  Bytes packet = in.first(*length);
  auto kind = classify_first_packet(packet);
  if (!kind) {
    refuse(kind.error());
    return 0;
  }
  switch (*kind) {
    case FirstPacket::Ssl:
      if (in.size() > *length) {
        refuse(fatal("received unencrypted data after SSL request"));
        return 0;
      }
      answer_ssl();
      break;
    case FirstPacket::GssEnc:
      if (in.size() > *length) {
        refuse(fatal("received unencrypted data after GSSAPI encryption request"));
        return 0;
      }
      session_.stream().send_copy(as_bytes("N"));
      break;
    case FirstPacket::Cancel:
      if (*length != 16) {
        session_.close_silently("bad cancel request");
        return 0;
      }
      CancelJob::start(session_, packet.subspan(8));
      break;
    case FirstPacket::Startup:
      handle_startup(packet);
      break;
  }
  return *length;
}

void ClientLogin::answer_ssl() {
  if (session_.has_tls()) return session_.close_silently("SSL req inside SSL");
  if (!session_.pooler.client_tls || session_.peer().is_unix()) return session_.stream().send_copy(as_bytes("N"));
  session_.stream().send_copy(as_bytes("S"));
  session_.stream().flush();
  start_tls();
}

void ClientLogin::start_tls() {
  auto ssl = session_.pooler.client_tls->new_session();
  if (ssl == nullptr) return session_.close_silently("failed to accept SSL");
  session_.stream().start_tls(std::move(ssl));
  session_.stream().assume_readable();
  is_in_handshake_ = true;
}

bool ClientLogin::continue_handshake() {
  switch (session_.stream().handshake()) {
    case HandshakeStatus::InProgress:
      return false;
    case HandshakeStatus::Failed:
      log_line(LogLevel::Warning, "%s TLS handshake error: %s", session_.log_name().c_str(),
               last_error_text(session_.stream().ssl()).c_str());
      session_.close_silently("TLS handshake failed");
      return false;
    case HandshakeStatus::Done:
      break;
  }
  is_in_handshake_ = false;
  return true;
}

// ------------------------------------------------------------------ start-up packet

void ClientLogin::handle_startup(Bytes packet) {
  Pooler& pooler = session_.pooler;
  auto startup = parse_startup(packet);
  if (!startup) return refuse(startup.error());
  if (pooler.options().client_tls_sslmode >= TlsMode::Require && !session_.peer().is_unix() && !session_.has_tls())
    return refuse(fatal("SSL required"));
  wanted_.resize(pooler.tracked.size());
  if (auto read = read_parameters(*startup); !read) return refuse(read.error());
  if (user_.empty()) return refuse(fatal("no username supplied"));
  if (database_.empty()) database_ = user_;
  wants_negotiation_ = startup->version != kProtocol3 || !startup->protocol_options.empty();
  for (auto name : startup->protocol_options) protocol_options_.emplace_back(name);
  if (!session_.set_state(ClientEvent::StartupRead)) return refuse(fatal("illegal state"));
  begin_login();
}

Result<Done> ClientLogin::read_parameters(const StartupParameters& startup) {
  for (auto [name, value] : startup.parameters) {
    if (name == "database") {
      database_ = value;
    } else if (name == "user") {
      user_ = value;
    } else if (name == "options") {
      if (auto read = read_options(value); !read) return read;
    } else if (name == "replication") {
      if (parse_replication(value) != ReplicationMode::None)
        return Error{sqlstate::kFeatureNotSupported, Severity::Fatal, "replication connections are not supported", {}};
    } else if (auto set = set_parameter(name, value); !set) {
      return set;
    }
  }
  if (session_.pooler.options().application_name_add_host) {
    auto& name = wanted_[TrackedNames::kApplicationName];
    name = name.value_or("app") + " - " + session_.peer_host() + ":" + std::to_string(session_.peer_port());
  }
  return Done{};
}

Result<Done> ClientLogin::set_parameter(std::string_view name, std::string_view value) {
  Pooler& pooler = session_.pooler;
  if (auto index = pooler.tracked.index(name)) {
    wanted_[*index] = std::string(value);
    return Done{};
  }
  const auto& ignored = pooler.options().ignore_startup_parameters;
  if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) return Done{};
  log_line(LogLevel::Warning, "%s unsupported startup parameter: %.*s=%.*s", session_.log_name().c_str(),
           static_cast<int>(name.size()), name.data(), static_cast<int>(value.size()), value.data());
  return fatal("unsupported startup parameter: " + std::string(name));
}

Result<Done> ClientLogin::read_options(std::string_view options) {
  Pooler& pooler = session_.pooler;
  auto settings = parse_startup_options(options);
  const auto& ignored = pooler.options().ignore_startup_parameters;
  auto is_ignored = [&ignored](std::string_view name) {
    return std::find(ignored.begin(), ignored.end(), name) != ignored.end();
  };
  if (!settings) return is_ignored("options") ? Result<Done>(Done{}) : Result<Done>(settings.error());
  for (const auto& [name, value] : *settings) {
    if (auto index = pooler.tracked.index(name))
      wanted_[*index] = value;
    else if (!is_ignored(name) && !is_ignored("options"))
      return fatal("unsupported startup parameter in options: " + name);
  }
  return Done{};
}

void ClientLogin::log_attempt() const {
  if (!session_.pooler.options().log_connections) return;
  std::string tls = session_.has_tls() ? describe(session_.stream_.ssl()) : "no";
  log_line(LogLevel::Log, "%s login attempt: db=%s user=%s tls=%s replication=no", session_.log_name().c_str(),
           database_.c_str(), user_.c_str(), tls.c_str());
}

// ------------------------------------------------------------------ who it is

bool ClientLogin::is_console() const { return database_ == kConsoleName; }

void ClientLogin::begin_login() {
  Pooler& pooler = session_.pooler;
  log_attempt();
  if (!is_console() && pooler.client_total.load() > pooler.options().max_client_conn)
    return refuse(
        {sqlstate::kTooManyConnections, Severity::Fatal, "no more connections allowed (max_client_conn)", {}});
  if (wants_negotiation_) {
    ByteBuffer out;
    {
      MessageWriter m(out, 'v');
      m->u32(kProtocol3);
      m->u32(static_cast<std::uint32_t>(protocol_options_.size()));
      for (const auto& name : protocol_options_) m->cstring(name);
    }
    session_.stream().send_copy(out.bytes());
  }
  if (database_.size() > kMaxDatabaseName) return refuse(fatal("database name too long"));
  if (auto allowed = check_limits(); !allowed) return refuse(allowed.error());
  begin_auth();
}

// Finds database and user and counts the session in, all in one step, so that limits hold.
Result<Done> ClientLogin::check_limits() {
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
  if (database == nullptr || !user_is_known_) return Done{};

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
  if (session_.peer().is_unix() && user_ == kConsoleName &&
      unix_peer(session_.stream().fd()).uid == static_cast<int>(geteuid())) {
    session_.console_by_same_uid = true;
    session_.is_admin_ = true;
    log_line(LogLevel::Log, "%s pgbouncer access from unix socket", session_.log_name().c_str());
  } else if (config.is_admin(user_)) {
    session_.is_admin_ = true;
  } else if (!config.is_stats(user_) && config.options.auth_type != AuthType::Any) {
    return Error{sqlstate::kInvalidAuthorization, Severity::Fatal, "not allowed", {}};
  }
  return Done{};
}

void ClientLogin::begin_auth() {
  const Options& o = session_.pooler.options();
  ClientAuthInput input;
  input.type = o.auth_type;
  input.user = user_;
  input.scram_iterations = o.scram_iterations;
  input.secret = user_is_known_ ? &secret_ : nullptr;
  if (session_.console_by_same_uid || (o.auth_type == AuthType::Any)) {
    input.type = AuthType::Any;
  } else if (o.auth_type == AuthType::Cert || o.auth_type == AuthType::Hba || o.auth_type == AuthType::Ldap ||
             o.auth_type == AuthType::Pam) {
    // Refused as a whole, and loudly: a weaker check in its place would be worse than none.
    return refuse({sqlstate::kFeatureNotSupported, Severity::Fatal, "bouncer config error",
                   "auth_type=" + std::string(name_of(o.auth_type)) + " is not supported yet"});
  }
  if (!user_is_known_) log_line(LogLevel::Log, "%s no such user: %s", session_.log_name().c_str(), user_.c_str());
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

void ClientLogin::auth_result(Result<AuthStep> step, const ByteBuffer& out) {
  session_.stream().send_copy(out.bytes());
  if (!step) return refuse(step.error());
  if (*step == AuthStep::Done) logged_in();
}

void ClientLogin::remember_keys() {
  if (session_.user_ == nullptr) return;
  std::lock_guard guard(session_.pooler.lock);
  User& user = *session_.user_;
  user.is_known = true;
  if (auth_->captured_keys()) {
    user.scram_keys = auth_->captured_keys();
    user.scram_keys_secret = secret_;
  }
  if (auth_->made_verifier()) {
    user.verifier = auth_->made_verifier();
    user.verifier_secret = secret_;
  }
}

// ------------------------------------------------------------------ and in

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
  open_pool();
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
    session_.pool_ = &session_.pooler.pool(*session_.database_, kConsoleName);
    ++session_.pool_->client_count;
  }
  session_.counters().client_login_count.add(1);
  if (!session_.set_state(ClientEvent::ConsoleOpened)) return refuse(fatal("illegal state"));
  session_.drop_login();
}

void ClientLogin::open_pool() {
  Pooler& pooler = session_.pooler;
  ClientSession& session = session_;
  session.parameters_ = intern_parameters(std::move(wanted_));
  std::shared_ptr<const Welcome> welcome;
  {
    std::lock_guard guard(pooler.lock);
    const auto& forced = session.database_->config->user;
    Pool& pool = pooler.pool(*session.database_, forced ? *forced : user_);
    session.pool_ = &pool;
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

// A key of our own making: the client's, whichever server works for it.
void ClientLogin::write_cancel_key(ClientSession& session, ByteBuffer& out) {
  random_bytes(session.cancel_key_);
  session.cancel_key_[0] &= std::byte{0x7f};  // drivers show the first half as a process id
  MessageWriter m(out, 'K');
  m->append(session.cancel_key_);
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
  for (std::size_t i = 0; i < pooler.tracked.size(); ++i) {
    const auto& own = session.parameters_->values()[i];
    if (const auto& value = own ? own : welcome.tracked->values()[i])
      write_parameter_status(out, pooler.tracked.name(i), *value);
  }
  write_cancel_key(session, out);
  const std::string& notice = pooler.options().login_notify_message;
  if (!notice.empty()) write_notice(out, "00000", notice);
  write_ready_for_query(out, 'I');
  session.stream_.send_copy(out.bytes());
  session.counters().client_login_count.add(1);
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
  wait_started = 0;
  if (!set_state(ClientEvent::Welcomed)) return close(fatal("illegal state"));
  ClientLogin::send_welcome(*this, *welcome);
  worker.loop.resume_later(*this);
}

void ClientSession::drop_login() {
  worker.loop.bury(std::move(login_));  // we may be called from inside it
}

}  // namespace lokadb
