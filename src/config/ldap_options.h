// How to ask a directory whether a password is right: auth_ldap_options, and what follows the word ldap in an HBA file.
//
// KEY=VALUE pairs, parted by commas or blanks; key, value or both may stand in "quotes" (a quote inside is doubled).
// Meaning and names are PostgreSQL's. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lokadb {

struct LdapOptions {
  enum class Scope { Base, One, Subtree };

  std::vector<std::string> servers;  // empty: by the DNS, from the domain of base_dn
  int port = 0;                      // 0: the scheme's usual one
  bool is_ldaps = false;             // ldapscheme=ldaps
  bool start_tls = false;            // ldaptls=1
  // Simple bind: the user's entry is prefix + name + suffix.
  std::string prefix, suffix;
  // Search, then bind, if base_dn is not empty: the entry is looked for as bind_dn (empty: as nobody).
  std::string base_dn, bind_dn, bind_password;
  std::string attribute;  // of the user's name
  std::string filter;     // in its place; with $username
  Scope scope = Scope::Subtree;

  bool searches() const { return !base_dn.empty(); }
};

Result<LdapOptions> parse_ldap_options(std::string_view text);

// The filter to search with. Only for names that is_searchable_ldap_name() lets pass.
std::string ldap_search_filter(const LdapOptions& options, std::string_view user);
// A name with one of *()\/ or a zero byte in it could mean more than itself in a filter.
bool is_searchable_ldap_name(std::string_view user);

}  // namespace lokadb
