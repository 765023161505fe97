// Sockets that clients connect to. Main thread's loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/socket.h"

namespace lokadb {

struct ListenerSettings {
  int backlog = 128;
  bool reuseport = false;
  bool defer_accept = true;
  TcpTuning tcp;  // connections inherit it from the socket that listens: no system calls for each of them
  int unix_mode = 0777;
  std::string unix_group;  // name or number; empty: the process' own
};

struct ListeningSocket {
  int fd = -1;
  bool is_unix = false;
  std::string description;
};

class Listener {
 public:
  // The connected socket (non-blocking, the callee's to close) and where it comes from.
  using Accepted = std::function<void(int fd, const SocketAddress& peer)>;

  Listener(EventLoop& loop, ListenerSettings settings, Accepted accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Errors: log_text() is "STEP(): REASON".
  Result<Done> listen_tcp(const SocketAddress& address);
  // directory, or '@' and a name for the abstract name space. A stale socket file is replaced.
  Result<Done> listen_unix(const std::string& directory, int port);

  // Takes over a socket that somebody else made and that listens already: TCP or unix; closed in any case.
  // The file of a unix socket is removed at the end if owns_path.
  Result<Done> adopt(int fd, bool owns_path = false);
  // What listens, for a successor; let_go(): its unix sockets' files stay.
  std::vector<ListeningSocket> sockets() const;
  void let_go();

  // Stops and starts taking connections; the kernel keeps queueing them meanwhile.
  void set_active(bool on);
  void close_tcp();
  // For connections that come from now on.
  void retune(const TcpTuning& tcp, bool defer_accept);
  bool empty() const { return sockets_.empty(); }
  std::vector<std::string> descriptions() const;  // "127.0.0.1:6432", "unix:/tmp/.s.PGSQL.6432"

 private:
  struct Socket {
    Listener* owner;
    int fd = -1;
    EventPtr event;
    std::string unix_path;  // file to remove at the end
    std::string description;
    bool is_unix = false;
    ~Socket();
  };
  static void on_event(evutil_socket_t, short, void* socket);
  Result<Done> add(int fd, std::string description, bool is_unix, std::string unix_path);
  void accept_some(Socket& socket);
  void rest_after_failure(int error);

  EventLoop& loop_;
  ListenerSettings settings_;
  Accepted accepted_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  EventPtr retry_;
  bool is_active_ = true;
};

}  // namespace lokadb
