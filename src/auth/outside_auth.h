// Passwords that somebody else knows: PAM and LDAP. Both calls block, for as long as modules and networks take, so they
// belong on a helper thread (net/helper_threads.h). They share nothing: several may run at once.
#pragma once

#include <string>

#include "base/result.h"
#include "config/ldap_options.h"

namespace lokadb {

// Where a build has them; without, the check below fails whatever the password.
bool has_pam();
bool has_ldap();

struct PamLogin {
  std::string service;
  std::string user;
  std::string password;
  std::string remote_host;  // empty: came by a unix socket
};
// Done: the password is right and the account may be used. The error's text is for the log.
Result<Done> check_with_pam(const PamLogin& login);

// Done: the directory lets the user's entry in with the password, which must not be empty (that would be no proof).
Result<Done> check_with_ldap(const LdapOptions& options, const std::string& user, const std::string& password);

}  // namespace lokadb
