// What console commands and signals ask of the process as a whole (implemented in src/proxy). Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/listener.h"

namespace lokadb {

class ProcessControl {
 public:
  virtual ~ProcessControl() = default;
  // Reads all configuration anew. World stopped. The error's text is for the log; clients get a general one.
  virtual Result<Done> reload() = 0;
  // After a SET: what depends on options beside the pools (log targets, TLS contexts). False: TLS stayed as it was.
  virtual bool options_changed(std::string_view key) = 0;
  virtual void close_tcp_listeners() = 0;
  virtual void set_listening(bool on) = 0;
  virtual std::vector<ListeningSocket> listening_sockets() const = 0;
};

}  // namespace lokadb
