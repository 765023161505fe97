#include "plugin/batch_target.h"

#include <array>

#include "base/bytes.h"
#include "base/random.h"
#include "base/text.h"

namespace lokadb {

namespace {

// Of this process alone: the name is shown, and must not be a means to try passwords.
const std::string& salt() {
  static const std::string bytes = [] {
    std::array<std::byte, 16> random;
    random_bytes(random);
    return std::string(as_text(random));
  }();
  return bytes;
}

}  // namespace

std::string BatchTarget::pool_name() const {
  std::string all =
      salt() + host + '\0' + std::to_string(port) + '\0' + database + '\0' + user + '\0' + password + '\0' + greeting;
  return format("lokadb:%s#%llu-%zx", name.c_str(), static_cast<unsigned long long>(generation),
                std::hash<std::string>()(all));
}

BatchTargetPtr TargetTable::find(std::uint64_t number) const {
  std::lock_guard guard(mutex_);
  auto it = targets_.find(number);
  return it != targets_.end() ? it->second : nullptr;
}

void TargetTable::keep(std::uint64_t number, BatchTargetPtr target) {
  std::size_t bytes = sizeof(NamedTarget) + 256 + target->greeting.size();
  std::lock_guard guard(mutex_);
  if (bytes_ + bytes > kMostBytes) {  // what is in use comes back by itself
    targets_.clear();
    bytes_ = 0;
  }
  if (targets_.emplace(number, std::move(target)).second) bytes_ += bytes;
}

}  // namespace lokadb
