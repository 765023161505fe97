#include "logins.h"

#include <algorithm>
#include <utility>

namespace lokadb::router {

void StoredLogins::replace(LoginMap logins) {
  std::lock_guard lock(mutex_);
  logins_ = std::move(logins);
}

std::optional<Login> StoredLogins::find(std::string_view organization) const {
  std::lock_guard lock(mutex_);
  auto it = logins_.find(organization);
  if (it == logins_.end()) return std::nullopt;
  return it->second;
}

std::string Logins::add(std::string_view name, std::string_view value) {
  if (name == "user") {
    all_.user = value;
    return {};
  }
  if (name == "password") {
    all_.password = value;
    return {};
  }
  Login login;
  while (!value.empty()) {
    std::size_t end = std::min(value.find(' '), value.size());
    std::string_view word = value.substr(0, end);
    value.remove_prefix(std::min(end + 1, value.size()));
    if (word.empty()) continue;
    if (word.starts_with("user="))
      login.user = word.substr(5);
    else if (word.starts_with("password="))
      login.password = word.substr(9);
    else
      return "in the line of organization " + std::string(name) + " only user= and password= can stand";
  }
  if (login.user.empty()) return "the line of organization " + std::string(name) + " has no user=";
  own_[std::string(name)] = std::move(login);
  return {};
}

Login Logins::find(std::string_view organization, const StoredLogins& stored) const {
  if (auto it = own_.find(organization); it != own_.end()) return it->second;
  return stored.find(organization).value_or(all_);
}

}  // namespace lokadb::router
