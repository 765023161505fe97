#include "net/listener.h"

#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"

namespace lokadb {

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr timeval kRestAfterFailure{5, 0};
// Short, because a client that says nothing is only disconnected (client_login_timeout) once we know of it.
constexpr int kDeferSeconds = 1;

Error step_failed(const char* step, int fd) {
  int error = errno;
  if (fd >= 0) close(fd);
  return fatal("cannot listen", format("%s(): %s", step, std::strerror(error)));
}

void set_defer_accept(int fd, bool on) {
  int seconds = on ? kDeferSeconds : 0;
  setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

// Whether somebody listens there.
bool is_answered(const SocketAddress& address) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bool is_there = fd >= 0 && connect(fd, address.data(), address.length) == 0;
  if (fd >= 0) close(fd);
  return is_there;
}

int group_id(const std::string& group) {
  if (auto number = parse_c_int(group)) return static_cast<int>(*number);
  const struct group* entry = getgrnam(group.c_str());
  if (entry == nullptr) log_fatal("could not find group '%s'", group.c_str());
  return static_cast<int>(entry->gr_gid);
}

}  // namespace

Listener::Socket::~Socket() {
  event.reset();
  if (fd >= 0) close(fd);
  if (!unix_path.empty()) unlink(unix_path.c_str());
}

Listener::Listener(EventLoop& loop, ListenerSettings settings, Accepted accepted)
    : loop_(loop), settings_(std::move(settings)), accepted_(std::move(accepted)) {
  retry_.reset(event_new(
      loop.base(), -1, 0, [](evutil_socket_t, short, void* self) { static_cast<Listener*>(self)->set_active(true); },
      this));
}

Listener::~Listener() = default;

Result<Done> Listener::listen_tcp(const SocketAddress& address) {
  int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return step_failed("socket", fd);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
    return step_failed("setsockopt/IPV6_V6ONLY", fd);
  if (settings_.reuseport && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
    return step_failed("setsockopt/SO_REUSEPORT", fd);
  if (bind(fd, address.data(), address.length) < 0) return step_failed("bind", fd);
  tune_tcp_socket(fd, settings_.tcp);
  set_defer_accept(fd, settings_.defer_accept);
  if (listen(fd, settings_.backlog) < 0) return step_failed("listen", fd);
  return add(fd, to_text(address), false, {});
}

Result<Done> Listener::listen_unix(const std::string& directory, int port) {
  bool is_abstract = directory.front() == '@';
  std::string path = directory + "/.s.PGSQL." + std::to_string(port);
  auto address = unix_address(path);
  if (!address) return fatal("cannot listen", "unix socket path is too long");
  if (!is_abstract) {
    struct stat st;
    if (lstat((path + ".lock").c_str(), &st) == 0)
      return fatal("cannot listen", "unix port " + std::to_string(port) + " is in use");
    if (is_answered(*address)) return fatal("cannot listen", "unix socket is in use, cannot continue");
    if (lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode)) unlink(path.c_str());
  }
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return step_failed("socket", fd);
  if (bind(fd, address->data(), address->length) < 0) return step_failed("bind", fd);
  if (!is_abstract) {
    if (!settings_.unix_group.empty() &&
        chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group_id(settings_.unix_group))) < 0)
      return step_failed("chown", fd);
    if (chmod(path.c_str(), static_cast<mode_t>(settings_.unix_mode)) < 0) return step_failed("chmod", fd);
  }
  if (listen(fd, settings_.backlog) < 0) return step_failed("listen", fd);
  return add(fd, "unix:" + path, true, is_abstract ? std::string() : path);
}

Result<Done> Listener::adopt(int fd, bool owns_path) {
  int type = 0, listens = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0) return step_failed("getsockopt", fd);
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0) return step_failed("getsockopt", fd);
  SocketAddress address = local_address(fd);
  bool is_tcp = address.family() == AF_INET || address.family() == AF_INET6;
  if (type != SOCK_STREAM || listens == 0 || (!is_tcp && !address.is_unix())) {
    close(fd);
    return fatal("cannot listen", "not a stream socket that listens");
  }
  if (evutil_make_socket_nonblocking(fd) < 0 || evutil_make_socket_closeonexec(fd) < 0) return step_failed("fcntl", fd);
  if (is_tcp) {
    tune_tcp_socket(fd, settings_.tcp);
    set_defer_accept(fd, settings_.defer_accept);
  }
  std::string path = owns_path && !is_tcp && !to_text(address).starts_with('@') ? to_text(address) : std::string();
  return add(fd, (is_tcp ? "" : "unix:") + to_text(address), !is_tcp, path);
}

Result<Done> Listener::add(int fd, std::string description, bool is_unix, std::string unix_path) {
  auto made = std::make_unique<Socket>();
  made->owner = this;
  made->fd = fd;
  made->is_unix = is_unix;
  made->unix_path = std::move(unix_path);
  made->description = std::move(description);
  made->event.reset(event_new(loop_.base(), fd, EV_READ | EV_PERSIST, &Listener::on_event, made.get()));
  event_add(made->event.get(), nullptr);
  sockets_.push_back(std::move(made));
  return Done{};
}

void Listener::set_active(bool on) {
  is_active_ = on;
  event_del(retry_.get());  // a rest is over: what is asked for now holds
  for (auto& socket : sockets_) on ? event_add(socket->event.get(), nullptr) : event_del(socket->event.get());
}

std::vector<ListeningSocket> Listener::sockets() const {
  std::vector<ListeningSocket> out;
  for (const auto& socket : sockets_) out.push_back({socket->fd, socket->is_unix, socket->description});
  return out;
}

void Listener::let_go() {
  for (auto& socket : sockets_) socket->unix_path.clear();
}

void Listener::close_tcp() {
  std::erase_if(sockets_, [](const auto& s) { return !s->is_unix; });
}

void Listener::retune(const TcpTuning& tcp, bool defer_accept) {
  settings_.tcp = tcp;
  settings_.defer_accept = defer_accept;
  for (auto& socket : sockets_) {
    if (socket->is_unix) continue;
    tune_tcp_socket(socket->fd, tcp);
    set_defer_accept(socket->fd, defer_accept);
  }
}

std::vector<std::string> Listener::descriptions() const {
  std::vector<std::string> out;
  for (const auto& socket : sockets_) out.push_back(socket->description);
  return out;
}

void Listener::on_event(evutil_socket_t, short, void* socket) {
  auto* s = static_cast<Socket*>(socket);
  EventLoop& loop = s->owner->loop_;
  s->owner->accept_some(*s);
  loop.end_turn();
}

void Listener::accept_some(Socket& socket) {
  for (int i = 0; i < kAcceptsPerTurn && is_active_; ++i) {
    SocketAddress peer;
    socklen_t length = sizeof peer.storage;
    int fd = accept4(socket.fd, peer.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return rest_after_failure(errno);
    }
    peer.length = length;
    if (socket.is_unix) peer.storage.ss_family = AF_UNIX;  // an unnamed peer comes without one
    accepted_(fd, peer);
  }
}

// Out of descriptors or memory: trying again at once would only burn the processor.
void Listener::rest_after_failure(int error) {
  log_line(LogLevel::Error, "accept() failed: %s", std::strerror(error));
  set_active(false);
  event_add(retry_.get(), &kRestAfterFailure);
}

}  // namespace lokadb
