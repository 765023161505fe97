// Small pieces of socket set-up shared by the listener and by connections to servers.
#pragma once

#include <optional>
#include <string>

#include "net/address.h"

namespace lokadb {

struct TcpTuning {
  bool keepalive = true;
  int keepcnt = 0, keepidle = 0, keepintvl = 0;  // 0: the system's
  int socket_buffer = 0;                         // bytes, both directions; 0: the system's
  int user_timeout = 0;                          // milliseconds; 0: the system's
};

// TCP_NODELAY, and what the settings ask for. Failures are ignored: none of them stops a connection from working.
void tune_tcp_socket(int fd, const TcpTuning& tuning);

SocketAddress local_address(int fd);  // empty: not known

// Process id of the other end of a unix socket, and its user; -1: not known.
struct PeerProcess {
  int pid = -1;
  int uid = -1;
};
PeerProcess unix_peer(int fd);

// The operating system's name of a user; nullopt: it has none. May ask a directory service, and so block.
std::optional<std::string> system_user_name(unsigned uid);

}  // namespace lokadb
