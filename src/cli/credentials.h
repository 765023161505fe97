// Logins for organizations' databases, kept in the control plane, encrypted (src/secret).
#pragma once

#include <string>

#include "cli/connection.h"
#include "cli/flags.h"
#include "secret/opened_logins.h"

namespace lokadb::cli {

using secret::Login;

// As in src/secret, but what is wrong is thrown, as Failure.
void make_key_file(const std::string& path);
std::string read_key_file(const std::string& path);

void store_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind,
                 const Login& login);
Login load_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind);
// Refuses a database that is none.
void check_control_plane(Connection& control);
// With -control-plane and -key of the command line.
Login stored_login(const Flags& flags, const std::string& org, const std::string& kind);

}  // namespace lokadb::cli
