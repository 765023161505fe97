// Logins for organizations' databases, kept in the control plane encrypted with AES-256-GCM. Organization, kind and
// user are authenticated with the password, so that a row cannot be given to another organization.
#pragma once

#include <string>

#include "cli/connection.h"
#include "cli/flags.h"

namespace lokadb::cli {

struct Login {
  std::string user;
  std::string password;
};

// A key file: one line, 64 hexadecimal digits; nobody else may read it. Throw Failure.
void make_key_file(const std::string& path);
std::string read_key_file(const std::string& path);  // 32 bytes

std::string encrypt(const std::string& key, const std::string& text, const std::string& associated);  // bytea as text
std::string decrypt(const std::string& key, const std::string& bytes,
                    const std::string& associated);  // Failure: wrong key

void store_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind,
                 const Login& login);
Login load_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind);
// Refuses a database that is none.
void check_control_plane(Connection& control);
// With -control-plane and -key of the command line.
Login stored_login(const Flags& flags, const std::string& org, const std::string& kind);

}  // namespace lokadb::cli
