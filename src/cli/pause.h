// The pause of an organization: its advisory lock, exclusive, owned by this session. Whoever crashes has released it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/connection.h"

namespace lokadb::cli {

class Pause {
 public:
  // Asks in attempts of one second with a rest between, so that those who wait behind it are not refused. with_moves:
  // also the lock of writes that name no organization. Gives up after timeout seconds with a Failure that names the
  // holders; nothing has changed then.
  Pause(Connection& db, const std::string& org, bool with_moves, double timeout);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  double seconds_held() const;

 private:
  bool try_once(bool with_moves);
  void take(const std::string& what);
  void let_go();
  std::string holders() const;
  Connection& db_;
  std::string org_;
  std::vector<std::string> taken_;
  std::chrono::steady_clock::time_point since_;
};

std::string seconds_text(double seconds);  // "0.25 s"

}  // namespace lokadb::cli
