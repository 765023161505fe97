// LDAP's side of outside_auth.h: one connection (two with a search) a login, made and ended here.
#include "auth/outside_auth.h"
#include "build_config.h"

#ifdef HAVE_LDAP
#include <ldap.h>

#include <algorithm>
#include <memory>
#endif

namespace lokadb {

#ifdef HAVE_LDAP

namespace {

constexpr timeval kConnectLimit{3, 0};
constexpr timeval kAnswerLimit{30, 0};
constexpr int kPlainPort = 389, kLdapsPort = 636;

struct Unbind {
  void operator()(LDAP* ldap) const { ldap_unbind_ext_s(ldap, nullptr, nullptr); }
};
using LdapPtr = std::unique_ptr<LDAP, Unbind>;
struct FreeMemory {
  void operator()(char* p) const { ldap_memfree(p); }
};
using LdapText = std::unique_ptr<char, FreeMemory>;
struct FreeMessage {
  void operator()(LDAPMessage* m) const { ldap_msgfree(m); }
};
using LdapAnswer = std::unique_ptr<LDAPMessage, FreeMessage>;

// With what the server said about it, where it did.
Error ldap_error(const std::string& what, LDAP* ldap, int code) {
  std::string text = what + ": " + ldap_err2string(code);
  char* said = nullptr;
  if (ldap != nullptr && ldap_get_option(ldap, LDAP_OPT_DIAGNOSTIC_MESSAGE, &said) == LDAP_SUCCESS && said != nullptr) {
    if (*said != '\0') text += std::string(" (") + said + ")";
    ldap_memfree(said);
  }
  return fatal(std::move(text));
}

// The directory servers of the domain in the base DN, "host:port host:port ...", as the DNS has them.
Result<std::string> servers_of_domain(const std::string& base_dn) {
  char* domain = nullptr;
  if (ldap_dn2domain(base_dn.c_str(), &domain) != 0) return fatal("ldapbasedn has no domain to look for servers of");
  LdapText owned_domain(domain);
  char* hosts = nullptr;
  if (ldap_domain2hostlist(domain, &hosts) != LDAP_SUCCESS)
    return fatal(std::string("no LDAP servers found for domain ") + domain);
  LdapText owned_hosts(hosts);
  return std::string(hosts);
}

// "ldap://a:389 ldap://b:389": the library takes the first that answers.
Result<std::string> server_list(const LdapOptions& options) {
  std::string scheme = options.is_ldaps ? "ldaps://" : "ldap://";
  std::string list;
  if (options.servers.empty()) {
    auto found = servers_of_domain(options.base_dn);
    if (!found) return found.error();
    for (std::size_t at = 0; at < found->size();) {
      std::size_t end = std::min(found->find(' ', at), found->size());
      if (end > at) list += (list.empty() ? "" : " ") + scheme + found->substr(at, end - at);
      at = end + 1;
    }
    return list;
  }
  int port = options.port != 0 ? options.port : options.is_ldaps ? kLdapsPort : kPlainPort;
  for (const auto& server : options.servers) {
    bool is_bare_ipv6 = server.find(':') != std::string::npos && !server.starts_with('[');
    list +=
        (list.empty() ? "" : " ") + scheme + (is_bare_ipv6 ? "[" + server + "]" : server) + ":" + std::to_string(port);
  }
  return list;
}

Result<LdapPtr> connect(const LdapOptions& options) {
  auto list = server_list(options);
  if (!list) return list.error();
  LDAP* made = nullptr;
  int code = ldap_initialize(&made, list->c_str());
  if (code != LDAP_SUCCESS) return ldap_error("could not set up LDAP for " + *list, nullptr, code);
  LdapPtr ldap(made);
  int version = LDAP_VERSION3;
  ldap_set_option(made, LDAP_OPT_PROTOCOL_VERSION, &version);
  ldap_set_option(made, LDAP_OPT_NETWORK_TIMEOUT, &kConnectLimit);
  ldap_set_option(made, LDAP_OPT_TIMEOUT, &kAnswerLimit);
  if (options.start_tls) {
    code = ldap_start_tls_s(made, nullptr, nullptr);
    if (code != LDAP_SUCCESS) return ldap_error("could not start TLS with " + *list, made, code);
  }
  return ldap;
}

int bind_as(LDAP* ldap, const std::string& dn, const std::string& password) {
  std::string bytes = password;  // berval is not const
  berval credentials{bytes.size(), bytes.data()};
  return ldap_sasl_bind_s(ldap, dn.c_str(), LDAP_SASL_SIMPLE, &credentials, nullptr, nullptr, nullptr);
}

int scope_number(LdapOptions::Scope scope) {
  switch (scope) {
    case LdapOptions::Scope::Base:
      return LDAP_SCOPE_BASE;
    case LdapOptions::Scope::One:
      return LDAP_SCOPE_ONELEVEL;
    case LdapOptions::Scope::Subtree:
      break;
  }
  return LDAP_SCOPE_SUBTREE;
}

// The DN of the one entry that is the user's.
Result<std::string> find_entry(const LdapOptions& options, const std::string& user) {
  if (!is_searchable_ldap_name(user)) return fatal("invalid character in user name for LDAP authentication");
  auto ldap = connect(options);
  if (!ldap) return ldap.error();
  if (int code = bind_as(ldap->get(), options.bind_dn, options.bind_password); code != LDAP_SUCCESS)
    return ldap_error("could not perform initial LDAP bind for ldapbinddn \"" + options.bind_dn + "\"", ldap->get(),
                      code);
  std::string filter = ldap_search_filter(options, user);
  char no_attributes[] = LDAP_NO_ATTRS;
  char* attributes[] = {no_attributes, nullptr};
  LDAPMessage* found = nullptr;
  int code = ldap_search_ext_s(ldap->get(), options.base_dn.c_str(), scope_number(options.scope), filter.c_str(),
                               attributes, 0, nullptr, nullptr, nullptr, LDAP_NO_LIMIT, &found);
  LdapAnswer answer(found);
  if (code != LDAP_SUCCESS) return ldap_error("could not search LDAP for filter \"" + filter + "\"", ldap->get(), code);
  int count = ldap_count_entries(ldap->get(), found);
  if (count == 0) return fatal("LDAP user \"" + user + "\" does not exist");
  if (count > 1) return fatal("LDAP user \"" + user + "\" is not unique");
  LdapText dn(ldap_get_dn(ldap->get(), ldap_first_entry(ldap->get(), found)));
  if (dn == nullptr) return fatal("could not get the DN of LDAP user \"" + user + "\"");
  return std::string(dn.get());
}

}  // namespace

bool has_ldap() { return true; }

Result<Done> check_with_ldap(const LdapOptions& options, const std::string& user, const std::string& password) {
  // To a directory a bind without a password is a bind as nobody, and succeeds.
  if (password.empty()) return fatal("empty password");
  std::string dn = options.prefix + user + options.suffix;
  if (options.searches()) {
    auto found = find_entry(options, user);
    if (!found) return found.error();
    dn = *found;
  }
  auto ldap = connect(options);
  if (!ldap) return ldap.error();
  if (int code = bind_as(ldap->get(), dn, password); code != LDAP_SUCCESS)
    return ldap_error("LDAP login failed for \"" + dn + "\"", ldap->get(), code);
  return Done{};
}

#else

bool has_ldap() { return false; }

Result<Done> check_with_ldap(const LdapOptions&, const std::string&, const std::string&) {
  return fatal("ldap is not supported by this build");
}

#endif

}  // namespace lokadb
