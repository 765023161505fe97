// Logins for organizations' databases: those of section [customers_app], and those that the control plane has.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "secret/opened_logins.h"

namespace lokadb::router {

using secret::Login;
using secret::LoginMap;

// What the control plane has, as far as it is known. Any thread.
class StoredLogins {
 public:
  void replace(LoginMap logins);
  std::optional<Login> find(std::string_view organization) const;

 private:
  mutable std::mutex mutex_;
  LoginMap logins_;
};

// [customers_app]: one login for all organizations, or lines of their own ("42 = user=x password=y").
class Logins {
 public:
  // "": taken; else what is wrong with the line.
  std::string add(std::string_view name, std::string_view value);
  // The organization's own line, else its stored login, else that for all; without a user: there is none.
  Login find(std::string_view organization, const StoredLogins& stored) const;

 private:
  Login all_;
  LoginMap own_;
};

}  // namespace lokadb::router
