// Where a socket is or shall be: IPv4, IPv6 or a unix socket, as a value. Pure; any thread.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

namespace lokadb {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;  // 0: no address

  // For bind, connect, accept and friends.
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }

  bool empty() const { return length == 0; }
  int family() const { return storage.ss_family; }  // AF_UNSPEC when empty
  bool is_unix() const { return family() == AF_UNIX; }
  int port() const;         // host order; 0 for unix sockets
  void set_port(int port);  // does nothing for unix sockets

  // Address and port (and scope, and path) are the same; padding does not count.
  bool operator==(const SocketAddress& other) const;
};

// Copies what accept, getsockname, getpeername or c-ares gave. Longer than a sockaddr_storage: empty address.
SocketAddress socket_address(const sockaddr* from, socklen_t length);

// "127.0.0.1", "::1", "[::1]", "fe80::1%eth0"; nullopt: not a literal, or the scope names no interface.
std::optional<SocketAddress> parse_ip(std::string_view text, int port);

// A path, or '@' and a name of the abstract name space. nullopt: empty or too long for a sockaddr_un.
std::optional<SocketAddress> unix_address(std::string_view path);

// Whatever needs no name lookup: text that begins with '/' or '@' is a unix socket, the rest an IP literal.
// nullopt: a host name (or a path too long).
std::optional<SocketAddress> parse_address(std::string_view text, int port);

// "127.0.0.1", "::1" (with "%scope" if it has one), path or "@name" of a unix socket, "unix" if that has no name.
std::string ip_text(const SocketAddress& address);
// The same with brackets around IPv6: what may stand before a ":port".
std::string host_text(const SocketAddress& address);
// "127.0.0.1:5432", "[::1]:5432"; unix sockets as ip_text.
std::string to_text(const SocketAddress& address);

}  // namespace lokadb
