#include "cli/credentials.h"

#include "secret/key_file.h"
#include "secret/sealed.h"

namespace lokadb::cli {

namespace {

template <class T>
T value_or_fail(Result<T> result) {
  if (!result) throw Failure{result.error().to_client};
  return std::move(*result);
}

}  // namespace

void make_key_file(const std::string& path) { value_or_fail(secret::make_key_file(path)); }
std::string read_key_file(const std::string& path) { return value_or_fail(secret::read_key_file(path)); }

void check_control_plane(Connection& control) {
  if (control.value("SELECT to_regclass('lokadb.credentials')").empty())
    throw Failure{"database " + control.database() + " is no control plane: run lokadb init -control-plane first"};
}

void store_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind,
                 const Login& login) {
  control.query(
      "INSERT INTO lokadb.credentials (org, kind, user_name, secret) VALUES ($1, $2, $3, $4::bytea) ON CONFLICT (org, "
      "kind)"
      " DO UPDATE SET user_name = excluded.user_name, secret = excluded.secret, changed_at = now()",
      {org, kind, login.user,
       "\\x" + value_or_fail(secret::seal(key, login.password, secret::purpose_of_login(org, kind, login.user)))});
}

Login load_login(Connection& control, const std::string& key, const std::string& org, const std::string& kind) {
  Rows found =
      control.query("SELECT user_name, secret FROM lokadb.credentials WHERE org = $1 AND kind = $2", {org, kind});
  if (found.size() == 0)
    throw Failure{"the control plane has no " + kind + " credentials of organization " + org +
                  ": store them with lokadb org-credentials"};
  std::string user = found.get(0, 0);
  return {user, value_or_fail(secret::unseal(key, found.get(0, 1), secret::purpose_of_login(org, kind, user)))};
}

Login stored_login(const Flags& flags, const std::string& org, const std::string& kind) {
  if (!flags.has("control-plane") || !flags.has("key"))
    throw Failure{"-control-plane and -key are needed for the " + kind + " credentials of organization " + org, kUsage};
  std::string key = read_key_file(flags.get("key"));
  Connection control(flags.get("control-plane"), "lokadb");
  check_control_plane(control);
  return load_login(control, key, org, kind);
}

}  // namespace lokadb::cli
