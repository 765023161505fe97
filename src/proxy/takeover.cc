#include "proxy/takeover.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "net/descriptor_passing.h"
#include "net/listener.h"
#include "pool/handover.h"
#include "pool/handover_state.h"
#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::uint32_t kProtocol3 = 196608;
constexpr timeval kPatience{60, 0};  // more than suspend_timeout
constexpr std::size_t kTaskColumn = 1, kStateColumn = 15, kColumns = 16;
constexpr auto kShortWhile = std::chrono::milliseconds(20);
constexpr int kLoginWaits = 50, kPidfileWaits = 500;  // of a short while each

int hex_value(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(hex_value(text[2 * i]) * 16 + hex_value(text[2 * i + 1]));
  return out;
}

}  // namespace

std::unique_ptr<Takeover> Takeover::begin(const Options& o) {
  log_line(LogLevel::Warning, "Online restart is deprecated, use so_reuseport instead");
  if (o.unix_socket_dir.empty()) log_fatal("cannot reboot if unix dir not configured");
  if (o.unix_socket_dir.front() == '@') log_fatal("cannot reboot with abstract Unix socket");
  auto address = unix_address(o.unix_socket_dir + "/.s.PGSQL." + std::to_string(o.listen_port));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!address || fd < 0) log_fatal("takeover: unix socket path is too long");
  log_line(LogLevel::Log, "takeover_init: launching connection");
  if (connect(fd, address->data(), address->length) < 0) {
    close(fd);
    log_line(LogLevel::Log, "old process not found, try to continue normally");
    return nullptr;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  std::unique_ptr<Takeover> takeover(new Takeover(fd));
  takeover->log_in();
  log_line(LogLevel::Log, "login OK, sending SUSPEND");
  takeover->ask("SUSPEND;");
  log_line(LogLevel::Log, "SUSPEND finished, sending SHOW FDS");
  takeover->wait_for_logins();
  takeover->take_items(takeover->ask("SHOW FDS;"));
  log_line(LogLevel::Log, "SHOW FDS finished");
  return takeover;
}

Takeover::Takeover(int socket) : socket_(socket) {}

Takeover::~Takeover() {
  for (const Item& item : items_)
    if (item.fd >= 0) close(item.fd);
  for (int fd : fds_) close(fd);
  if (socket_ >= 0) close(socket_);
}

void Takeover::log_in() {
  ByteBuffer out;
  out.u32(0);
  out.u32(kProtocol3);
  for (const char* word : {"database", "pgbouncer", "user", "pgbouncer"}) out.cstring(word);
  out.u8(0);
  store_u32(out.data(), static_cast<std::uint32_t>(out.size()));
  if (send(socket_, out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    log_fatal("takeover: cannot send: %s", std::strerror(errno));
  while (true) {
    auto [type, body] = read_message();
    if (type == 'Z') return;
    if (type == 'R' && (body.size() < 4 || load_u32(body.data()) != 0))
      log_fatal("takeover: the old process asks for a password: does it run as another user?");
  }
}

// The next message of the old process; an error of its is the end of ours.
std::pair<char, std::vector<std::byte>> Takeover::read_message() {
  while (true) {
    if (auto head = peek_head(unread_)) {
      std::size_t total = kHeaderSize + head->body;
      if (head->body == kBadLength) log_fatal("takeover: bad packet from the old process");
      if (unread_.size() >= total) {
        std::vector<std::byte> body(unread_.begin() + kHeaderSize, unread_.begin() + static_cast<long>(total));
        unread_.erase(unread_.begin(), unread_.begin() + static_cast<long>(total));
        if (head->type == 'E') {
          auto fields = parse_error_fields(body);
          std::string text(fields ? fields->message : "?");
          log_fatal("takeover: the old process says: %s", text.c_str());
        }
        return {head->type, std::move(body)};
      }
    }
    std::byte buffer[65536];
    long n = receive_with_descriptors(socket_, buffer, sizeof buffer, fds_);
    if (n < 0) log_fatal("takeover: the old process does not answer: %s", std::strerror(errno));
    if (n == 0) return {'\0', {}};
    unread_.insert(unread_.end(), buffer, buffer + n);
  }
}

Takeover::Answer Takeover::ask(const std::string& sql) {
  ByteBuffer out;
  write_query(out, sql);
  if (send(socket_, out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    log_fatal("takeover: cannot send: %s", std::strerror(errno));
  Answer answer;
  while (true) {
    auto [type, body] = read_message();
    if (type == '\0') log_fatal("takeover: the old process has gone");
    if (type == 'Z') return answer;
    if (type != 'D') continue;
    MessageReader reader(body);
    auto& row = answer.rows.emplace_back();
    for (unsigned count = reader.u16(); count > 0 && reader.ok(); --count) {
      std::uint32_t size = reader.u32();
      row.emplace_back(size == 0xffffffff ? std::string_view() : as_text(reader.take(size)));
    }
    if (!reader.finished()) log_fatal("takeover: bad packet from the old process");
  }
}

// Those in the middle of a login cannot be moved, but it is nearly always over at once.
void Takeover::wait_for_logins() {
  for (int i = 0; i < kLoginWaits; ++i) {
    for (const auto& row : ask("SHOW LISTS;").rows)
      if (row.size() == 2 && row[0] == "login_clients" && row[1] == "0") return;
    std::this_thread::sleep_for(kShortWhile);
  }
}

void Takeover::take_items(Answer answer) {
  auto is_foreign = [](const std::vector<std::string>& row) {
    return row.size() != kColumns || (row[kTaskColumn] != "pooler" && !has_our_format(unhex(row[kStateColumn])));
  };
  if (answer.rows.size() != fds_.size() || std::any_of(answer.rows.begin(), answer.rows.end(), is_foreign))
    log_fatal("takeover: the old process does not hand its connections over to this program; restart it instead");
  for (std::size_t i = 0; i < answer.rows.size(); ++i)
    items_.push_back({answer.rows[i][kTaskColumn], unhex(answer.rows[i][kStateColumn]), fds_[i]});
  fds_.clear();
}

void Takeover::restore(Pooler& pooler, Listener& listener, std::function<Worker&()> choose_worker) {
  handover_ = std::make_unique<Handover>(pooler, std::move(choose_worker));
  for (const char* task : {"pooler", "client", "server"}) {
    for (Item& item : items_) {
      if (item.task != task) continue;
      int fd = std::exchange(item.fd, -1);
      Result<Done> done = Done{};
      if (item.task == "pooler")
        done = listener.adopt(fd, true);
      else
        done = item.task == "client" ? handover_->restore_client(fd, item.state)
                                     : handover_->restore_server(fd, item.state);
      if (!done) log_line(LogLevel::Warning, "takeover: %s lost: %s", task, done.error().log_text().c_str());
    }
  }
  for (const auto& description : listener.descriptions())
    log_line(LogLevel::Log, "got pooler socket: %s", description.c_str());
  log_line(LogLevel::Log, "disko over, going background");
}

void Takeover::finish(const std::string& pidfile) {
  log_line(LogLevel::Log, "sending SHUTDOWN;");
  ByteBuffer out;
  write_query(out, "SHUTDOWN;");
  if (send(socket_, out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    log_fatal("takeover: cannot send: %s", std::strerror(errno));
  while (read_message().first != '\0') continue;
  if (!pidfile.empty()) {
    log_line(LogLevel::Log, "waiting for old pidfile to go away");
    for (int i = 0; access(pidfile.c_str(), F_OK) == 0; ++i) {
      if (i == kPidfileWaits) log_fatal("takeover: the pidfile '%s' of the old process stays", pidfile.c_str());
      std::this_thread::sleep_for(kShortWhile);
    }
  }
  log_line(LogLevel::Log, "old process killed, resuming work");
  handover_->finish();
}

}  // namespace lokadb
