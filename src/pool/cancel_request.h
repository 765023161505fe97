// A CancelRequest that has come in: the key, and the connection that brought it, which stays open until the request has
// been dealt with.
#pragma once

#include <unistd.h>

#include <string>

#include "base/log.h"
#include "pool/cancel.h"
#include "pool/cancel_key.h"

namespace lokadb {

struct CancelJob::Request {
  ~Request() {
    if (fd >= 0) ::close(fd);
  }
  void log_end(const char* why) const {
    if (logs) log_line(LogLevel::Log, "%s closing because: %s", log_name.c_str(), why);
  }

  int fd = -1;
  CancelKey key{};
  std::string log_name;
  bool logs = true;
};

inline constexpr std::uint32_t kCancelRequest = 80877102;

}  // namespace lokadb
