#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace lokadb {

namespace {
constexpr std::size_t kLongestEntry = 1 << 20;  // bytes, of a user in the system's list

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }
}  // namespace

void tune_tcp_socket(int fd, const TcpTuning& tuning) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, tuning.keepalive ? 1 : 0);
  if (tuning.keepalive) {
    if (tuning.keepcnt > 0) set(fd, IPPROTO_TCP, TCP_KEEPCNT, tuning.keepcnt);
    if (tuning.keepidle > 0) set(fd, IPPROTO_TCP, TCP_KEEPIDLE, tuning.keepidle);
    if (tuning.keepintvl > 0) set(fd, IPPROTO_TCP, TCP_KEEPINTVL, tuning.keepintvl);
  }
  if (tuning.socket_buffer > 0) {
    set(fd, SOL_SOCKET, SO_SNDBUF, tuning.socket_buffer);
    set(fd, SOL_SOCKET, SO_RCVBUF, tuning.socket_buffer);
  }
  if (tuning.user_timeout > 0) set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, tuning.user_timeout);
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  socklen_t length = sizeof address.storage;
  if (getsockname(fd, address.data(), &length) == 0) address.length = length;
  return address;
}

PeerProcess unix_peer(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
  return {static_cast<int>(credentials.pid), static_cast<int>(credentials.uid)};
}

std::optional<std::string> system_user_name(unsigned uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> strings(1024);
  int fault = 0;
  while ((fault = getpwuid_r(uid, &entry, strings.data(), strings.size(), &found)) == ERANGE &&
         strings.size() < kLongestEntry)
    strings.resize(strings.size() * 2);
  if (fault != 0 || found == nullptr) return std::nullopt;
  return std::string(entry.pw_name);
}

}  // namespace lokadb
