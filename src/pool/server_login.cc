// Connecting and logging in to a PostgreSQL server (manual, "Start-up").
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/socket.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"
#include "pool/worker.h"
#include "proto/startup.h"

namespace lokadb {

namespace {
constexpr std::uint32_t kSslRequest = 80877103;
constexpr std::size_t kMaxLoginMessage = 1 << 20;
}  // namespace

void ServerConnection::start_login_for(ClientSession& client) {
  is_dedicated_ = true;
  client_ = &client;
  client.dedicated_opened(*this);
  start_login();
}

void ServerConnection::start_login() {
  const DatabaseConfig& config = *pool.database.config;
  if (config.hosts.empty()) {
    const std::string& directory = pooler.options().unix_socket_dir;
    if (directory.empty()) {
      log_line(LogLevel::Error, "unix socket dir not configured: %s", pool.database.name.c_str());
      return could_not_connect("cannot connect");
    }
    host_ = directory;
  } else {
    std::size_t at;
    {
      std::lock_guard guard(pooler.lock);
      at = pool.next_host % config.hosts.size();
      if (config.load_balance_hosts == LoadBalanceHosts::RoundRobin) ++pool.next_host;
    }
    host_ = config.hosts[at];
  }
  bool is_unix = host_.front() == '/' || host_.front() == '@';
  if (is_unix) {
    auto address = unix_address(host_ + "/.s.PGSQL." + std::to_string(config.port));
    return address ? connect_to(*address) : could_not_connect("cannot connect");
  }
  if (auto address = parse_ip(host_, config.port)) return connect_to(*address);
  dns_ = worker_->resolver->resolve(host_, config.port, [this](const DnsAnswer& answer) {
    if (answer)
      connect_to(answer.addresses.front());
    else
      could_not_connect("server DNS lookup failed");
  });
}

void ServerConnection::could_not_connect(const std::string& reason) {
  // Who waits for a database that plugins chose is told at once: there may be another way.
  Error error = fatal(reason);
  error.state = sqlstate::kConnectionFailure;
  pooler.login_failed(*this, pool.database.is_target ? &error : nullptr);
  close(reason);
}

void ServerConnection::connect_to(const SocketAddress& address) {
  address_ = address;
  int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    log_line(LogLevel::Warning, "sbuf_connect failed to connect to %s: %s", to_text(address).c_str(),
             std::strerror(errno));
    return could_not_connect("connect failed");
  }
  if (!address.is_unix()) tune_tcp_socket(fd, pooler.tcp_tuning());
  int r = connect(fd, address.data(), address.length);
  if (r < 0 && errno != EINPROGRESS) {
    log_line(LogLevel::Warning, "sbuf_connect failed to connect to %s: %s", to_text(address).c_str(),
             std::strerror(errno));
    ::close(fd);
    return could_not_connect("connect failed");
  }
  login_step_ = LoginStep::Connecting;
  stream_.open(worker_->loop, fd, address.is_unix());
  if (r == 0) connected();
}

void ServerConnection::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(stream_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    log_line(LogLevel::Debug, "%s connect: %s", log_name().c_str(), std::strerror(error));
    return could_not_connect("connect failed");
  }
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  if (getpeername(stream_.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return;  // not connected yet
  log_connected();
  if (address_.is_unix() || pooler.options().server_tls_sslmode == TlsMode::Disable) return send_startup();
  if (pooler.options().server_tls_direct) return start_tls();
  std::byte request[8];
  store_u32(request, sizeof request);
  store_u32(request + 4, kSslRequest);
  login_step_ = LoginStep::SslAnswer;
  stream_.send_copy(request);
}

void ServerConnection::log_connected() {
  if (!pooler.options().log_connections) return;
  if (address_.is_unix()) return log_line(LogLevel::Log, "%s new connection to server", log_name().c_str());
  log_line(LogLevel::Log, "%s new connection to server (from %s)", log_name().c_str(),
           to_text(local_address(stream_.fd())).c_str());
}

void ServerConnection::read_ssl_answer() {
  std::byte answer[2];
  ReadResult r = stream_.read(answer);
  if (r.status == ReadStatus::Empty) return;
  if (r.status != ReadStatus::Data) return connection_lost();
  // Nothing may follow in clear what was asked for inside TLS.
  if (r.size > 1) return could_not_connect("received unencrypted data after SSL response");
  TlsMode mode = pooler.options().server_tls_sslmode;
  char word = static_cast<char>(answer[0]);
  if (word == 'N') {
    if (mode >= TlsMode::Require) return could_not_connect("server refused SSL");
    return send_startup();
  }
  if (word != 'S') return could_not_connect("bad sslreq answer");
  start_tls();
}

void ServerConnection::start_tls() {
  auto context = pooler.server_tls;
  auto ssl = context ? context->new_session(host_) : nullptr;
  if (ssl == nullptr) return could_not_connect("TLS startup failed");
  stream_.start_tls(std::move(ssl));
  login_step_ = LoginStep::SslHandshake;
  continue_handshake();
}

void ServerConnection::continue_handshake() {
  switch (stream_.handshake()) {
    case HandshakeStatus::InProgress:
      return;
    case HandshakeStatus::Failed:
      log_line(LogLevel::Warning, "%s TLS handshake error: %s", log_name().c_str(),
               last_error_text(stream_.ssl()).c_str());
      return could_not_connect("server TLS handshake failed");
    case HandshakeStatus::Done:
      if (pooler.options().log_connections)
        log_line(LogLevel::Log, "%s SSL established: %s", log_name().c_str(), describe(stream_.ssl()).c_str());
      if (pooler.options().server_tls_direct && !has_agreed_on_alpn(stream_.ssl()))
        return could_not_connect("direct SSL connection was established without ALPN protocol negotiation extension");
      return send_startup();
  }
}

ServerCredentials ServerConnection::credentials() {
  ServerCredentials c;
  c.user = pool.user.name;
  const DatabaseConfig& config = *pool.database.config;
  bool is_forced = config.user && *config.user == c.user;  // auth_user's pool may be in the same database
  std::lock_guard guard(pooler.lock);
  if (is_forced && config.password) {
    c.secret = *config.password;
  } else if (const std::string* secret = pooler.config->userlist->find(c.user); secret && !secret->empty()) {
    c.secret = *secret;
  } else if (!pool.looked_up_secret.empty()) {
    c.secret = pool.looked_up_secret;
    c.scram_keys = pool.looked_up_keys;
  } else if (config.password && !config.user) {
    c.secret = *config.password;
  }
  if (pool.user.scram_keys && pool.user.scram_keys_secret == c.secret) c.scram_keys = pool.user.scram_keys;
  return c;
}

std::size_t ServerConnection::consume_login(Bytes in) {
  std::size_t at = 0;
  while (state() == ServerState::Login) {
    auto head = peek_head(in.subspan(at));
    if (!head) return at;
    if (head->body == kBadLength || head->body > kMaxLoginMessage) {
      could_not_connect("bad pkt header");
      return in.size();
    }
    if (in.size() - at < kHeaderSize + head->body) return at;
    Bytes body = in.subspan(at + kHeaderSize, head->body);
    at += kHeaderSize + head->body;
    if (!handle_login_message(head->type, body)) return in.size();
    if (step_ != Step::None) return at;  // logged in; a query of ours runs
  }
  return state() == ServerState::Closed ? in.size() : at;
}

bool ServerConnection::handle_login_message(char type, Bytes body) {
  if (type == 'E' && refuses_protocol(body)) {
    ask_for_old_protocol();
    return false;
  }
  switch (type) {
    case 'R':
      return handle_auth_request(body);
    case 'S': {
      MessageReader reader(body);
      std::string_view name = reader.cstring();
      std::string_view value = reader.cstring();
      if (!reader.finished()) {
        could_not_connect("broken ParameterStatus packet");
        return false;
      }
      reported_->emplace_back(name, value);
      note_parameter(name, value);
      return true;
    }
    case 'K':
      if (body.size() < 8) {
        could_not_connect("bad cancel key");
        return false;
      }
      cancel_key_.assign(body.begin(), body.end());
      backend_pid_ = load_u32(body.data());
      return true;
    case 'N':
      return true;
    case 'v': {
      auto version = parse_negotiation(body);
      if (version && *version >= kProtocol30 && *version < asked_version_) return true;
      could_not_connect("broken NegotiateProtocolVersion packet");
      return false;
    }
    case 'E':
      login_message_refused(body);
      return false;
    case 'Z':
      if (auth_ != nullptr) {
        could_not_connect("ReadyForQuery before authentication");
        return false;
      }
      login_complete();
      return state() != ServerState::Closed;
    default:
      could_not_connect("unknown pkt from server");
      return false;
  }
}

bool ServerConnection::handle_auth_request(Bytes body) {
  if (auth_ == nullptr) {
    could_not_connect("unknown pkt from server");
    return false;
  }
  if (asked_version_ != 0) startup_accepted();
  ByteBuffer out;
  auto done = auth_->on_request(body, out);
  if (!done) {
    // The administrator's fault, not a passing one: who waits is told now.
    Error error = done.error();
    pooler.login_failed(*this, &error);
    close_with(error);
    return false;
  }
  stream_.send_copy(out.bytes());
  if (*done) auth_.reset();
  return true;
}

void ServerConnection::login_message_refused(Bytes body) {
  auto fields = parse_error_fields(body);
  if (!fields) {
    log_line(LogLevel::Warning, "%s server login failed", log_name().c_str());
    return could_not_connect("login failed");
  }
  std::string severity(fields->severity), message(fields->message);
  if (is_dedicated_)
    log_line(LogLevel::Error, "%s S: login failed: %s: %s", log_name().c_str(), severity.c_str(), message.c_str());
  else
    log_line(LogLevel::Warning, "%s server login failed: %s %s", log_name().c_str(), severity.c_str(), message.c_str());
  Error refusal = fatal(std::string(fields->message));
  if (fields->code.size() == 5) refusal.state = SqlState(fields->code);
  if (is_dedicated_) refusal.to_log = "login failed";
  // A server that is starting up is not refusing us.
  pooler.login_failed(*this, fields->code == "57P03" ? nullptr : &refusal);
  close_with(refusal);
}

void ServerConnection::note_parameter(std::string_view name, std::string_view value) {
  if (auto index = pooler.tracked.index(name)) parameters_ = with_parameter(parameters_, *index, value);
}

std::shared_ptr<const Welcome> ServerConnection::make_welcome() const {
  auto welcome = std::make_shared<Welcome>();
  ByteBuffer out;
  if (reported_ != nullptr)
    for (const auto& [name, value] : *reported_)
      if (!pooler.tracked.index(name)) write_parameter_status(out, name, value);
  welcome->untracked = out.storage();
  welcome->tracked = parameters_;
  return welcome;
}

void ServerConnection::write_reported(ByteBuffer& out) const {
  for (const auto& [name, value] : *reported_) write_parameter_status(out, name, value);
}

void ServerConnection::login_complete() {
  idle_since = worker_->loop.now();
  defaults_ = parameters_;
  if (is_dedicated_) {
    // No connect_query: a server that replicates physically knows no SQL.
    pooler.dedicated_login_done(*this);
    reported_.reset();
    return;
  }
  for (std::size_t i = 0; i < is_reported_.size(); ++i) is_reported_[i] = parameters_->values()[i].has_value();
  const std::string& greeting = pool.database.greeting;
  if (greeting.empty()) return ask_connect_query();
  if (!set_state(ServerEvent::TestStarted)) return close("illegal state");
  greeting_fault_ = kNoGreeting;
  start_step(Step::Greeting, greeting);
}

void ServerConnection::ask_connect_query() {
  if (!has_connect_query()) return login_is_over();
  if (state() == ServerState::Login && !set_state(ServerEvent::TestStarted)) return close("illegal state");
  start_step(Step::ConnectQuery, *pool.database.config->connect_query);
}

void ServerConnection::login_is_over() {
  pooler.login_done(*this, make_welcome());
  reported_.reset();
}

// The row of the greeting: what is wrong with this database or role (empty: nothing), and its tables.
bool ServerConnection::take_greeting(Bytes body) {
  MessageReader reader(body);
  bool is_first = greeting_fault_ == kNoGreeting;
  greeting_fault_ = kBadGreeting;
  if (!is_first || reader.u16() != 2) return false;
  std::string_view columns[2];
  for (std::string_view& text : columns) {
    std::uint32_t size = reader.u32();
    if (size != 0xffffffffu) text = as_text(reader.take(size));
  }
  if (!reader.finished()) return false;
  if (!table_map_.parse(columns[1])) return false;
  greeting_fault_ = columns[0];
  return true;
}

void ServerConnection::greeting_answered() {
  if (step_failed_) greeting_fault_ = step_error_.to_client;
  defaults_ = parameters_;  // it may have set some
  if (greeting_fault_.empty() && status_ == 'I') return ask_connect_query();
  if (greeting_fault_.empty()) greeting_fault_ = "the greeting has left a transaction open";
  greeting_failed();
}

// Who waits is told, and a while passes before the next try: it would end no better.
void ServerConnection::greeting_failed() {
  step_ = Step::None;
  log_line(LogLevel::Warning, "%s is not used: %s", log_name().c_str(), greeting_fault_.c_str());
  Error error = fatal(greeting_fault_);
  error.state = SqlState("LK003");
  pooler.login_failed(*this, &error);
  close_with(error);
}

}  // namespace lokadb
