// The start-up packet to a server: what it asks for, and which version of the protocol.
#include "base/log.h"
#include "pool/client_session.h"
#include "pool/pooler.h"
#include "pool/server_connection.h"
#include "pool/worker.h"
#include "proto/startup.h"

namespace lokadb {

void ServerConnection::send_startup() {
  const DatabaseConfig& config = *pool.database.config;
  ByteBuffer out;
  {
    std::lock_guard guard(pooler.lock);
    bool is_old = asks_for_old_protocol_ || pool.database.server_protocol == ServerProtocol::Old;
    asked_version_ = is_old ? kProtocol30 : kProtocol32;
  }
  out.u32(0);
  out.u32(asked_version_);
  auto add = [&out](std::string_view name, const std::string& value) {
    out.cstring(name);
    out.cstring(value);
  };
  add("database", config.dbname.empty() ? pool.database.name : config.dbname);
  ParameterValues own(pooler.tracked.size());
  if (is_dedicated_) {
    const ReplicationWish& wish = *client_->replication();
    add("replication", wish.mode == ReplicationMode::Logical ? "database" : "yes");
    if (!wish.options.empty()) add("options", wish.options);
    own = client_->parameters()->values();
  }
  auto is_own = [&own](std::size_t index) { return own[index].has_value(); };
  if (config.client_encoding && !is_own(TrackedNames::kClientEncoding)) add("client_encoding", *config.client_encoding);
  if (config.datestyle && !is_own(TrackedNames::kDateStyle)) add("datestyle", *config.datestyle);
  if (config.timezone && !is_own(TrackedNames::kTimeZone)) add("timezone", *config.timezone);
  if (config.application_name && !is_own(TrackedNames::kApplicationName))
    add("application_name", *config.application_name);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i]) add(pooler.tracked.name(i), *own[i]);
  add("user", pool.user.name);
  out.u8(0);
  store_u32(out.data(), static_cast<std::uint32_t>(out.size()));
  auth_ = std::make_unique<ServerAuth>(credentials());
  reported_ = std::make_unique<std::vector<std::pair<std::string, std::string>>>();
  login_step_ = LoginStep::Messages;
  stream_.send_copy(out.bytes());
  worker_->loop.resume_later(*this);  // an answer may have come already
}

// ------------------------------------------------------------------ version

void ServerConnection::startup_accepted() {
  std::lock_guard guard(pooler.lock);
  pool.database.server_protocol = asked_version_ == kProtocol30 ? ServerProtocol::Old : ServerProtocol::New;
  asked_version_ = 0;
}

// A server that does not know 3.2 names the version that it knows ('v'); but some, old ones and other programs, do not
// let in who asks for it. They say so before anything else.
bool ServerConnection::refuses_protocol(Bytes error) const {
  if (asked_version_ <= kProtocol30) return false;
  auto fields = parse_error_fields(error);
  return fields && (fields->code == sqlstate::kFeatureNotSupported || fields->code == sqlstate::kProtocolViolation);
}

// One that has closed without a word may have meant the same.
bool ServerConnection::may_ask_for_older() const {
  if (login_step_ != LoginStep::Messages || asked_version_ <= kProtocol30) return false;
  std::lock_guard guard(pooler.lock);
  return pool.database.server_protocol == ServerProtocol::Unknown;
}

// Once more, on a new connection.
void ServerConnection::ask_for_old_protocol() {
  asks_for_old_protocol_ = true;
  log_line(LogLevel::Log, "%s server does not know protocol 3.2, asking for 3.0", log_name().c_str());
  stream_.close();
  connect_to(address_);
}

}  // namespace lokadb
