#include "secret/opened_logins.h"

#include <utility>

#include "secret/sealed.h"

namespace lokadb::secret {

bool OpenedLogins::take(const std::string& key, const std::vector<SealedLogin>& rows) {
  const bool is_same_key = key == key_;
  bool has_changed = false;
  std::map<std::string, Known, std::less<>> now;
  unreadable_.clear();
  for (const SealedLogin& row : rows) {
    auto before = known_.find(row.organization);
    const bool was_known = before != known_.end();
    if (is_same_key && was_known && before->second.secret == row.secret && before->second.login.user == row.user) {
      now.emplace(row.organization, before->second);
      continue;
    }
    auto password = unseal(key, row.secret, purpose_of_login(row.organization, "direct", row.user));
    if (password) {
      Login login{row.user, std::move(*password)};
      has_changed |= !was_known || !(before->second.login == login);
      now.emplace(row.organization, Known{row.secret, std::move(login)});
    } else {
      unreadable_.push_back(row.organization);
      if (was_known) now.emplace(row.organization, before->second);
    }
  }
  for (const auto& [organization, known] : known_) has_changed |= !now.contains(organization);
  known_ = std::move(now);
  key_ = unreadable_.empty() ? key : std::string();
  return has_changed;
}

LoginMap OpenedLogins::logins() const {
  LoginMap all;
  for (const auto& [organization, known] : known_) all.emplace(organization, known.login);
  return all;
}

}  // namespace lokadb::secret
