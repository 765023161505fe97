#include "net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lokadb {
namespace {

constexpr std::size_t kUnixPathOffset = offsetof(sockaddr_un, sun_path);

// The storage as one of the kernel's layouts, and back. Copied, since a reference would break the aliasing rules.
template <class T>
T load(const SocketAddress& address) {
  static_assert(sizeof(T) <= sizeof(sockaddr_storage));
  T out;
  std::memcpy(&out, &address.storage, sizeof(out));
  return out;
}
template <class T>
void store(SocketAddress& address, const T& from) {
  static_assert(sizeof(T) <= sizeof(sockaddr_storage));
  std::memcpy(&address.storage, &from, sizeof(from));
}

template <class T>
SocketAddress from_layout(const T& from) {
  SocketAddress out;
  store(out, from);
  out.length = sizeof(from);
  return out;
}

std::optional<SocketAddress> parse_ipv4(const std::string& text) {
  sockaddr_in in{};
  if (inet_pton(AF_INET, text.c_str(), &in.sin_addr) != 1) return std::nullopt;
  in.sin_family = AF_INET;
  return from_layout(in);
}

std::optional<SocketAddress> parse_ipv6(const std::string& text) {
  sockaddr_in6 in{};
  auto percent = text.find('%');
  if (inet_pton(AF_INET6, text.substr(0, percent).c_str(), &in.sin6_addr) != 1) return std::nullopt;
  if (percent != std::string::npos) {
    in.sin6_scope_id = if_nametoindex(text.c_str() + percent + 1);
    if (in.sin6_scope_id == 0) return std::nullopt;
  }
  in.sin6_family = AF_INET6;
  return from_layout(in);
}

// The name inside a sockaddr_un: a path ends at its zero byte (or the end), an abstract name at the length.
std::string_view unix_name(const SocketAddress& address) {
  if (address.length <= kUnixPathOffset) return {};
  const char* path = reinterpret_cast<const char*>(&address.storage) + kUnixPathOffset;
  std::size_t length = address.length - kUnixPathOffset;
  return {path, path[0] == '\0' ? length : strnlen(path, length)};
}

std::string ipv6_text(const SocketAddress& address) {
  auto in = load<sockaddr_in6>(address);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof(text));
  std::string out = text;
  char name[IF_NAMESIZE];
  if (in.sin6_scope_id != 0 && if_indextoname(in.sin6_scope_id, name) != nullptr) out.append("%").append(name);
  return out;
}

}  // namespace

int SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(load<sockaddr_in>(*this).sin_port);
  if (family() == AF_INET6) return ntohs(load<sockaddr_in6>(*this).sin6_port);
  return 0;
}

void SocketAddress::set_port(int port) {
  // IPv4 and IPv6 have it at the same place.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  if (family() != AF_INET && family() != AF_INET6) return;
  auto in = load<sockaddr_in>(*this);
  in.sin_port = htons(static_cast<std::uint16_t>(port));
  store(*this, in);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (family() != other.family() || port() != other.port()) return false;
  if (family() == AF_INET) return load<sockaddr_in>(*this).sin_addr.s_addr == load<sockaddr_in>(other).sin_addr.s_addr;
  if (family() == AF_INET6) {
    auto a = load<sockaddr_in6>(*this), b = load<sockaddr_in6>(other);
    return a.sin6_scope_id == b.sin6_scope_id && std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof(a.sin6_addr)) == 0;
  }
  if (family() == AF_UNIX) return unix_name(*this) == unix_name(other);
  return length == other.length && std::memcmp(&storage, &other.storage, length) == 0;
}

SocketAddress socket_address(const sockaddr* from, socklen_t length) {
  SocketAddress out;
  if (length > sizeof(out.storage)) return out;
  std::memcpy(&out.storage, from, length);
  out.length = length;
  return out;
}

std::optional<SocketAddress> parse_ip(std::string_view text, int port) {
  bool brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string literal(brackets ? text.substr(1, text.size() - 2) : text);
  if (literal.find('\0') != std::string::npos) return std::nullopt;
  auto out = brackets || literal.find(':') != std::string::npos ? parse_ipv6(literal) : parse_ipv4(literal);
  if (out) out->set_port(port);
  return out;
}

std::optional<SocketAddress> unix_address(std::string_view path) {
  sockaddr_un un{};
  // One byte stays free for the zero that ends a path.
  if (path.empty() || path.size() >= sizeof(un.sun_path)) return std::nullopt;
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  bool is_abstract = path.front() == '@';
  if (is_abstract) un.sun_path[0] = '\0';
  SocketAddress out = from_layout(un);
  // The zero byte belongs to a path, but would be one more character of an abstract name.
  out.length = static_cast<socklen_t>(kUnixPathOffset + path.size() + (is_abstract ? 0 : 1));
  return out;
}

std::optional<SocketAddress> parse_address(std::string_view text, int port) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '/' || text.front() == '@') return unix_address(text);
  return parse_ip(text, port);
}

std::string ip_text(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    char text[INET_ADDRSTRLEN] = "";
    in_addr in = load<sockaddr_in>(address).sin_addr;
    inet_ntop(AF_INET, &in, text, sizeof(text));
    return text;
  }
  if (address.family() == AF_INET6) return ipv6_text(address);
  if (!address.is_unix()) return "";
  std::string name(unix_name(address));
  if (name.empty()) return "unix";
  if (name[0] == '\0') name[0] = '@';
  return name;
}

std::string host_text(const SocketAddress& address) {
  return address.family() == AF_INET6 ? "[" + ip_text(address) + "]" : ip_text(address);
}

std::string to_text(const SocketAddress& address) {
  if (address.is_unix() || address.empty()) return ip_text(address);
  return host_text(address) + ":" + std::to_string(address.port());
}

}  // namespace lokadb
