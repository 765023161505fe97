#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace lokadb {

namespace {
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

}  // namespace lokadb
