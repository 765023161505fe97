#include "config/ldap_options.h"

#include <charconv>
#include <optional>

#include "base/text.h"

namespace lokadb {

namespace {

constexpr int kMostPort = 65535;
constexpr std::string_view kUserPlace = "$username";

Error wrong(std::string why) { return fatal("invalid LDAP options: " + why); }

// The next pair as one text without its quotes; nullopt: none is left, or a quote has no end (is_broken).
std::optional<std::string> next_pair(std::string_view& rest, bool& is_broken) {
  while (!rest.empty() && (is_space(rest.front()) || rest.front() == ',')) rest.remove_prefix(1);
  if (rest.empty()) return std::nullopt;
  std::string out;
  bool in_quotes = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    char c = rest.front();
    if (c == '"') {
      bool is_doubled = in_quotes && rest.size() > 1 && rest[1] == '"';
      if (is_doubled) rest.remove_prefix(1);
      if (is_doubled)
        out += '"';
      else
        in_quotes = !in_quotes;
    } else if (!in_quotes && (is_space(c) || c == ',')) {
      break;
    } else {
      out += c;
    }
  }
  is_broken = in_quotes;
  return out;
}

bool read_port(std::string_view text, int& port) {
  int value = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 1 || value > kMostPort) return false;
  port = value;
  return true;
}

bool read_scheme(std::string_view text, bool& is_ldaps) {
  is_ldaps = iequals(text, "ldaps");
  return is_ldaps || iequals(text, "ldap");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// %xx taken back; nullopt: a % that is none.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string_view cut(std::string_view& rest, char at) {
  std::size_t end = rest.find(at);
  std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

bool read_host(std::string_view text, LdapOptions& out) {
  std::size_t colon = text.starts_with('[') ? text.find(':', text.find(']')) : text.find(':');
  if (colon != std::string_view::npos && !read_port(text.substr(colon + 1), out.port)) return false;
  std::string_view host = text.substr(0, colon);
  out.servers.clear();
  if (!host.empty()) out.servers.emplace_back(host);
  return true;
}

// RFC 4516: scheme://host:port/base?attributes?scope?filter. Only the first attribute counts.
bool read_url(std::string_view url, LdapOptions& out) {
  std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos || !read_scheme(url.substr(0, scheme_end), out.is_ldaps)) return false;
  std::string_view rest = url.substr(scheme_end + 3);
  if (!read_host(cut(rest, '/'), out)) return false;
  auto base = unescaped(cut(rest, '?'));
  std::string_view attributes = cut(rest, '?');
  auto attribute = unescaped(cut(attributes, ','));
  std::string_view scope = cut(rest, '?');
  auto filter = unescaped(cut(rest, '?'));
  if (!base || !attribute || !filter || !rest.empty()) return false;
  out.base_dn = *base;
  out.attribute = *attribute;
  out.filter = *filter;
  if (scope.empty() || iequals(scope, "base"))
    out.scope = LdapOptions::Scope::Base;
  else if (iequals(scope, "one"))
    out.scope = LdapOptions::Scope::One;
  else if (iequals(scope, "sub"))
    out.scope = LdapOptions::Scope::Subtree;
  else
    return false;
  return true;
}

struct TextKey {
  std::string_view key;
  std::string LdapOptions::*member;
};
constexpr TextKey kTexts[] = {{"ldapprefix", &LdapOptions::prefix},
                              {"ldapsuffix", &LdapOptions::suffix},
                              {"ldapbasedn", &LdapOptions::base_dn},
                              {"ldapbinddn", &LdapOptions::bind_dn},
                              {"ldapbindpasswd", &LdapOptions::bind_password},
                              {"ldapsearchattribute", &LdapOptions::attribute},
                              {"ldapsearchfilter", &LdapOptions::filter}};

void read_servers(std::string_view list, LdapOptions& out) {
  out.servers.clear();
  while (!list.empty())
    if (auto server = cut(list, ' '); !server.empty()) out.servers.emplace_back(server);
}

bool set_value(std::string_view key, std::string_view value, LdapOptions& out) {
  for (const auto& row : kTexts) {
    if (row.key != key) continue;
    out.*row.member = value;
    return true;
  }
  if (key == "ldapport") return read_port(value, out.port);
  if (key == "ldapscheme") return read_scheme(value, out.is_ldaps);
  if (key == "ldapurl") return read_url(value, out);
  if (key == "ldaptls") {
    out.start_tls = value == "1";
    return value == "1" || value == "0";
  }
  if (key != "ldapserver") return false;
  read_servers(value, out);
  return true;
}

}  // namespace

Result<LdapOptions> parse_ldap_options(std::string_view text) {
  LdapOptions out;
  bool is_broken = false;
  while (auto pair = next_pair(text, is_broken)) {
    std::size_t equals = pair->find('=');
    if (is_broken || equals == std::string::npos) return wrong("not KEY=VALUE");
    std::string_view key = std::string_view(*pair).substr(0, equals);
    if (!set_value(key, std::string_view(*pair).substr(equals + 1), out))
      return wrong("unknown key or bad value of " + std::string(key));
  }
  bool has_simple = !out.prefix.empty() || !out.suffix.empty();
  bool has_search = out.searches() || !out.bind_dn.empty() || !out.bind_password.empty() || !out.attribute.empty() ||
                    !out.filter.empty();
  if (has_simple && has_search) return wrong("ldapprefix and ldapsuffix are not for a search");
  if (!has_simple && !out.searches()) return wrong("one of ldapbasedn, ldapprefix and ldapsuffix is needed");
  if (!out.attribute.empty() && !out.filter.empty()) return wrong("ldapsearchattribute beside ldapsearchfilter");
  if (out.servers.empty() && !out.searches()) return wrong("ldapserver is needed");
  return out;
}

std::string ldap_search_filter(const LdapOptions& options, std::string_view user) {
  if (options.filter.empty())
    return "(" + (options.attribute.empty() ? "uid" : options.attribute) + "=" + std::string(user) + ")";
  std::string out = options.filter;
  for (std::size_t at = out.find(kUserPlace); at != std::string::npos; at = out.find(kUserPlace, at + user.size()))
    out.replace(at, kUserPlace.size(), user);
  return out;
}

bool is_searchable_ldap_name(std::string_view user) {
  return user.find_first_of(std::string_view("*()\\/\0", 6)) == std::string_view::npos;
}

}  // namespace lokadb
