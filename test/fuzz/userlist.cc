// Userlists of any bytes.
#include "config/userlist.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace lokadb;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parsed = parse_userlist(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const auto& [user, secret] : parsed.list.secrets) {
    if (user.size() > kLongestUserName || secret.size() > kLongestPassword) std::abort();
    if (parsed.list.find(user) == nullptr) std::abort();
  }
  return 0;
}
