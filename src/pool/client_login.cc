#include "pool/client_login.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "config/options.h"
#include "plugin/chain.h"
#include "pool/cancel.h"
#include "pool/pooler.h"

namespace lokadb {

namespace {
constexpr std::size_t kMaxLoginMessage = 66 * 1024;  // PasswordMessage with the longest usable password
constexpr std::byte kTlsHandshakeRecord{0x16};
constexpr const char* kReplicationWords[] = {"no", "yes", "database"};  // by ReplicationMode
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
  if (head->type != 'p' || (auth_ == nullptr && outside_ == nullptr)) {
    refuse(fatal("unexpected packet during login"));
    return 0;
  }
  Bytes body = in.subspan(kHeaderSize, head->body);
  outside_ != nullptr ? outside_password(body) : auth_message(body);
  return total;
}

std::size_t ClientLogin::consume_first_packet(Bytes in) {
  bool is_tcp = !session_.peer().is_unix();
  if (in[0] == kTlsHandshakeRecord && is_tcp && session_.pooler.client_tls && !session_.has_tls()) {
    session_.stream().unread_for_tls(in);
    is_direct_tls_ = true;
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
      if (auto key = CancelKey::from(packet.subspan(8))) {
        CancelJob::start(session_, *key);
        break;
      }
      session_.close_silently("bad cancel request");
      return 0;
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
  // Else bytes meant for a server of another protocol might be taken for ours.
  if (!is_direct_tls_ || has_agreed_on_alpn(session_.stream().ssl())) return true;
  session_.close_silently("received direct SSL connection request without ALPN protocol negotiation extension");
  return false;
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
  version_ = spoken_version(startup->version);
  session_.takes_long_keys_ = version_ >= kProtocol32;
  wants_negotiation_ = startup->version != version_ || !startup->protocol_options.empty();
  for (auto name : startup->protocol_options) protocol_options_.emplace_back(name);
  if (!session_.set_state(ClientEvent::StartupRead)) return refuse(fatal("illegal state"));
  log_attempt();
  if (database_ != kConsoleDatabase && pooler.client_total.load() > pooler.options().max_client_conn)
    return refuse(
        {sqlstate::kTooManyConnections, Severity::Fatal, "no more connections allowed (max_client_conn)", {}});
  if (wants_negotiation_) negotiate_protocol();
  identify();
}

Result<Done> ClientLogin::read_parameters(const StartupParameters& startup) {
  for (auto [name, value] : startup.parameters)
    if (name == "replication") replication_ = parse_replication(value);
  for (auto [name, value] : startup.parameters) {
    if (name == "database") {
      database_ = value;
    } else if (name == "user") {
      user_ = value;
    } else if (name == "replication") {
      continue;
    } else if (name == "options" && replication_ != ReplicationMode::None) {
      raw_options_ = value;
    } else if (name == "options") {
      if (auto read = read_options(value); !read) return read;
    } else if (auto set = set_parameter(name, value); !set) {
      return set;
    }
  }
  if (session_.pooler.options().application_name_add_host) {
    auto& name = wanted_[TrackedNames::kApplicationName];
    name = name.value_or("app") + " - " + place_of_client() + ":" + std::to_string(session_.peer_port());
  }
  return Done{};
}

// As application_name_add_host shows it: a process of this machine with the name of the machine, since servers have
// many.
std::string ClientLogin::place_of_client() const {
  int pid = session_.unix_peer_pid();
  if (pid == 0) return session_.peer_host();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return format("unix(%d@%s)", pid, host);
}

// A plugin's own: before all else, since it may have to be refused though it would be ignored.
Result<bool> ClientLogin::is_taken_by_plugin(std::string_view name, std::string_view value) {
  if (session_.pooler.plugins == nullptr || replication_ != ReplicationMode::None) return false;
  auto is_taken = session_.pooler.plugins->startup(name, value);
  if (is_taken && *is_taken) session_.taken_parameters_.emplace_back(lower(name), value);
  return is_taken;
}

Result<Done> ClientLogin::set_parameter(std::string_view name, std::string_view value) {
  auto is_taken = is_taken_by_plugin(name, value);
  if (!is_taken) return is_taken.error();
  if (*is_taken) return Done{};
  if (wants(name, value) || is_ignored(name)) return Done{};
  log_line(LogLevel::Warning, "%s unsupported startup parameter: %.*s=%.*s", session_.log_name().c_str(),
           static_cast<int>(name.size()), name.data(), static_cast<int>(value.size()), value.data());
  return fatal("unsupported startup parameter: " + std::string(name));
}

bool ClientLogin::is_ignored(std::string_view name) const {
  const auto& ignored = session_.pooler.options().ignore_startup_parameters;
  return std::find(ignored.begin(), ignored.end(), name) != ignored.end();
}

// A setting that follows the client; those that PgBouncer does not know only if nobody says otherwise.
bool ClientLogin::wants(std::string_view name, std::string_view value) {
  const Pooler& pooler = session_.pooler;
  auto index = pooler.tracked.index(name);
  if (!index) return false;
  if (pooler.tracked.is_addition(*index) && (is_ignored(name) || pooler.options().strict_startup_parameters))
    return false;
  wanted_[*index] = std::string(value);
  return true;
}

Result<Done> ClientLogin::read_options(std::string_view options) {
  auto settings = parse_startup_options(options);
  if (!settings) return is_ignored("options") ? Result<Done>(Done{}) : Result<Done>(settings.error());
  for (const auto& [name, value] : *settings) {
    auto is_taken = is_taken_by_plugin(name, value);
    if (!is_taken) return is_taken.error();
    if (*is_taken) continue;
    auto index = session_.pooler.tracked.index(name);
    bool is_addition = index && session_.pooler.tracked.is_addition(*index);
    if (is_addition && is_ignored("options")) continue;
    if (!wants(name, value) && !is_ignored(name) && !is_ignored("options"))
      return fatal("unsupported startup parameter in options: " + name);
  }
  return Done{};
}

void ClientLogin::negotiate_protocol() {
  ByteBuffer out;
  {
    MessageWriter m(out, 'v');
    m->u32(version_);
    m->u32(static_cast<std::uint32_t>(protocol_options_.size()));
    for (const auto& name : protocol_options_) m->cstring(name);
  }
  session_.stream().send_copy(out.bytes());
}

void ClientLogin::log_attempt() const {
  if (!session_.pooler.options().log_connections) return;
  std::string tls = session_.has_tls() ? describe(session_.stream_.ssl()) : "no";
  log_line(LogLevel::Log, "%s login attempt: db=%s user=%s tls=%s replication=%s", session_.log_name().c_str(),
           database_.c_str(), user_.c_str(), tls.c_str(), kReplicationWords[static_cast<int>(replication_)]);
}

}  // namespace lokadb
