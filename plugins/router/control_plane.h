// The control plane's logins for organizations' databases: those that `lokadb org-credentials -kind direct` stores.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "logins.h"

namespace lokadb::router {

// Section [control_plane].
struct ControlPlaneOptions {
  std::string dsn;       // libpq's connection string or URI; may hold a password
  std::string key_file;  // of `lokadb keygen`
  bool is_wanted() const { return !dsn.empty(); }
  bool operator==(const ControlPlaneOptions&) const = default;
};
// What is wrong with them, without secrets; "": nothing.
std::string fault_of(const ControlPlaneOptions& options);

// Follows the control plane by a thread of its own: reads all logins at the start, after each notification and with
// each heartbeat, with the key file as it is then. What it once knew stays known while the control plane cannot be
// reached, and where a row cannot be read.
class ControlPlane {
 public:
  // All logins, whenever one is another than before. The thread's; never after the destructor has begun.
  using Told = std::function<void(LoginMap)>;
  // level: as in lokadb_host.log. As Told.
  using Log = std::function<void(int level, const std::string& text)>;

  ControlPlane(ControlPlaneOptions options, Told told, Log log);
  // Does not wait for long: a thread that hangs in the look-up of a host name is left behind.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // Looks again at once, with the key file as it is now.
  void refresh();

 private:
  class Follower;
  std::shared_ptr<Follower> follower_;  // the thread has it, too
};

}  // namespace lokadb::router
