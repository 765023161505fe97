#include "config/hba.h"

#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "config/ldap_options.h"
#include "config/line_words.h"

namespace lokadb {

namespace {

constexpr std::string_view kMethodWords[] = {"trust", "reject", "md5",  "password", "scram-sha-256",
                                             "peer",  "cert",   "ldap", "pam"};
constexpr int kMostNestedFiles = 10;
constexpr std::string_view kPamService = "pamservice=";

// The bytes of an IP address and how many there are; nullopt: not an IP address, or one of a single link.
struct IpBytes {
  int family;
  std::size_t size;
  std::array<unsigned char, 16> bytes;
};
std::optional<IpBytes> ip_bytes(const SocketAddress& address) {
  IpBytes out{address.family(), 0, {}};
  if (out.family == AF_INET) {
    out.size = 4;
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr, out.size);
    return out;
  }
  if (out.family != AF_INET6) return std::nullopt;
  out.size = 16;
  std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr, out.size);
  return out;
}

// An address as it stands in the file: no brackets, no scope.
std::optional<IpBytes> read_ip(std::string_view text) {
  if (text.find_first_of("[]%") != std::string_view::npos) return std::nullopt;
  auto address = parse_ip(text, 0);
  return address ? ip_bytes(*address) : std::nullopt;
}

bool set_mask_bits(HbaNetwork& network, std::size_t size, std::string_view text) {
  unsigned bits = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (fault != std::errc() || end != text.data() + text.size() || bits > size * 8) return false;
  for (std::size_t i = 0; i < bits; ++i)
    network.mask[i / 8] = static_cast<unsigned char>(network.mask[i / 8] | (0x80u >> (i % 8)));
  return true;
}

class LineParser {
 public:
  LineParser(LineWords& words, const std::string& path, const IdentMaps& maps, const IniSource& source)
      : words_(words), path_(path), maps_(maps), source_(source) {}

  bool read(HbaRule& rule);

 private:
  enum class Of { Databases, Users };

  bool read_transport(HbaRule& rule);
  bool read_names(LineWords& words, HbaNames& names, Of of, const std::string& path, int depth);
  bool read_name(LineWords& words, HbaNames& names, Of of, const std::string& path, int depth);
  bool read_file(const std::string& name, HbaNames& names, Of of, const std::string& parent, int depth);
  bool read_network(HbaNetwork& network);
  bool read_method(HbaRule& rule);
  bool read_options(HbaRule& rule);

  LineWords& words_;
  const std::string& path_;
  const IdentMaps& maps_;
  const IniSource& source_;
};

bool LineParser::read(HbaRule& rule) {
  if (!read_transport(rule) || !read_names(words_, rule.databases, Of::Databases, path_, 0) ||
      !read_names(words_, rule.users, Of::Users, path_, 0))
    return false;
  if (rule.transport != HbaTransport::Local && !read_network(rule.network)) return false;
  return read_method(rule) && read_options(rule) && !words_.is_broken();
}

bool LineParser::read_transport(HbaRule& rule) {
  LineWord word = words_.take();
  if (word.is("local"))
    rule.transport = HbaTransport::Local;
  else if (word.is("host"))
    rule.transport = HbaTransport::Host;
  else if (word.is("hostssl"))
    rule.transport = HbaTransport::HostSsl;
  else if (word.is("hostnossl"))
    rule.transport = HbaTransport::HostNoSsl;
  else
    return false;
  return true;
}

bool LineParser::read_names(LineWords& words, HbaNames& names, Of of, const std::string& path, int depth) {
  while (true) {
    if (!read_name(words, names, of, path, depth)) return false;
    if (!words.peek().is_comma()) return true;
    words.take();
  }
}

bool LineParser::read_name(LineWords& words, HbaNames& names, Of of, const std::string& path, int depth) {
  if (words.peek().kind == LineWord::Kind::Plain && words.peek().text.starts_with('@')) {
    std::string file = words.take_joined()->substr(1);
    return read_file(file, names, of, path, depth);
  }
  LineWord word = words.take();
  if (!word.is_name()) return false;
  bool is_of_databases = of == Of::Databases;
  if (word.is("all")) {
    names.is_all = true;
  } else if (is_of_databases && word.is("sameuser")) {
    names.is_same_user = true;
  } else if (is_of_databases && word.is("replication")) {
    names.has_replication = true;
  } else if (is_of_databases && (word.is("samerole") || word.is("samegroup"))) {
    return false;
  } else if (word.kind == LineWord::Kind::Plain && word.text.starts_with('+')) {
    return false;  // members of a role: that only a server knows
  } else {
    names.names.insert(std::move(word.text));
  }
  return true;
}

// Names parted by commas, blanks or line ends.
bool LineParser::read_file(const std::string& name, HbaNames& names, Of of, const std::string& parent, int depth) {
  if (name.empty() || depth >= kMostNestedFiles) return false;
  auto slash = parent.rfind('/');
  std::string path = name.front() == '/' || slash == std::string::npos ? name : parent.substr(0, slash + 1) + name;
  std::string why;
  auto text = source_(path, why);
  if (!text) return false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    LineWords words(take_line(rest));
    while (!words.peek().is_end()) {
      if (words.peek().is_comma())
        words.take();
      else if (!read_name(words, names, of, path, depth + 1))
        return false;
    }
    if (words.is_broken()) return false;
  }
  return true;
}

bool LineParser::read_network(HbaNetwork& network) {
  if (words_.peek().is("all")) {
    words_.take();
    return true;
  }
  LineWord word = words_.take();
  if (!word.is_name()) return false;
  auto slash = word.text.find('/');
  auto address = read_ip(std::string_view(word.text).substr(0, slash));
  if (!address) return false;
  network.family = address->family;
  network.address = address->bytes;
  if (slash != std::string::npos)
    return set_mask_bits(network, address->size, std::string_view(word.text).substr(slash + 1));
  LineWord second = words_.take();
  auto mask = second.is_name() ? read_ip(second.text) : std::nullopt;
  if (!mask || mask->family != network.family) return false;
  network.mask = mask->bytes;
  return true;
}

bool LineParser::read_method(HbaRule& rule) {
  LineWord word = words_.take();
  const auto* found = std::find_if(std::begin(kMethodWords), std::end(kMethodWords),
                                   [&word](std::string_view name) { return word.is(name); });
  if (found == std::end(kMethodWords)) return false;
  rule.method = static_cast<HbaMethod>(found - std::begin(kMethodWords));
  return true;
}

bool LineParser::read_options(HbaRule& rule) {
  bool takes_map = rule.method == HbaMethod::Peer || rule.method == HbaMethod::Cert;
  while (!words_.peek().is_end()) {
    if (rule.method == HbaMethod::Ldap) {
      // Of another grammar.
      LineWord word = words_.take();
      if (!rule.ldap_options.empty() && !word.is_glued) rule.ldap_options += ' ';
      std::string quoted = "\"";
      for (char c : word.text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
      rule.ldap_options += word.is_comma() ? "," : word.kind == LineWord::Kind::Plain ? word.text : quoted + '"';
      continue;
    }
    auto option = words_.take_joined();
    if (option && rule.method == HbaMethod::Pam && option->starts_with(kPamService) && rule.pam_service.empty()) {
      rule.pam_service = option->substr(kPamService.size());
      if (rule.pam_service.empty()) return false;
      continue;
    }
    if (!option || !takes_map || !option->starts_with("map=") || rule.map) return false;
    auto map = maps_.find(std::string_view(*option).substr(4));
    if (map == maps_.end()) return false;
    rule.map_name = map->first;
    rule.map = map->second;
  }
  if (rule.method != HbaMethod::Ldap) return true;
  auto understood = parse_ldap_options(rule.ldap_options);
  return static_cast<bool>(understood);
}

bool fits_transport(const HbaRule& rule, const HbaLogin& login) {
  if (login.address.is_unix()) return rule.transport == HbaTransport::Local;
  switch (rule.transport) {
    case HbaTransport::Local:
      return false;
    case HbaTransport::Host:
      return true;
    case HbaTransport::HostSsl:
      return login.has_tls;
    case HbaTransport::HostNoSsl:
      return !login.has_tls;
  }
  return false;
}

bool fits_database(const HbaNames& databases, const HbaLogin& login) {
  if (login.is_physical_replication) return databases.has_replication;
  return databases.contains(login.database) || (databases.is_same_user && login.database == login.user);
}

}  // namespace

std::string_view name_of(HbaMethod method) { return kMethodWords[static_cast<int>(method)]; }

bool HbaNetwork::is_empty() const {
  for (std::size_t i = 0; i < address.size(); ++i)
    if ((address[i] & ~mask[i] & 0xff) != 0) return true;
  return false;
}

bool HbaNetwork::contains(const SocketAddress& client) const {
  if (family == 0) return true;
  auto ip = ip_bytes(client);
  if (!ip || ip->family != family) return false;
  for (std::size_t i = 0; i < ip->size; ++i)
    if ((ip->bytes[i] & mask[i]) != address[i]) return false;
  return true;
}

const HbaRule* HbaRules::find(const HbaLogin& login) const {
  for (const HbaRule& rule : rules) {
    if (!fits_transport(rule, login) || !fits_database(rule.databases, login) || !rule.users.contains(login.user))
      continue;
    if (rule.transport == HbaTransport::Local || rule.network.contains(login.address)) return &rule;
  }
  return nullptr;
}

HbaText parse_hba(std::string_view text, const std::string& path, const IdentMaps& maps, const IniSource& source) {
  HbaText result;
  for (int number = 1; !text.empty(); ++number) {
    LineWords words(take_line(text));
    if (words.peek().is_end() && !words.is_broken()) continue;
    HbaRule rule;
    rule.line = number;
    if (!LineParser(words, path, maps, source).read(rule)) {
      result.warnings.push_back("could not parse hba config line " + std::to_string(number));
      continue;
    }
    if (rule.transport != HbaTransport::Local && rule.network.is_empty())
      result.warnings.push_back("address has more bits than its mask in hba config line " + std::to_string(number) +
                                ": it matches nobody");
    result.rules.rules.push_back(std::move(rule));
  }
  return result;
}

}  // namespace lokadb
