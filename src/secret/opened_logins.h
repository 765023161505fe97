// Logins for organizations' databases, and rows of the control plane made into them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lokadb::secret {

struct Login {
  std::string user, password;
  bool operator==(const Login&) const = default;
};
using LoginMap = std::map<std::string, Login, std::less<>>;  // by organization

struct SealedLogin {
  std::string organization, user;
  std::string secret;  // as of seal()
};

// Those of kind direct. Opens what has changed alone. One thread.
class OpenedLogins {
 public:
  // Takes the rows as they are now, all of them. Where one cannot be opened, what was known of its organization stays.
  // True: logins() is another than before.
  bool take(const std::string& key, const std::vector<SealedLogin>& rows);

  LoginMap logins() const;
  std::size_t size() const { return known_.size(); }
  // Organizations whose row could not be opened, in the order of the rows.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  struct Known {
    std::string secret;
    Login login;
  };
  std::string key_;  // with which all of known_ was opened; "": not all
  std::map<std::string, Known, std::less<>> known_;
  std::vector<std::string> unreadable_;
};

}  // namespace lokadb::secret
