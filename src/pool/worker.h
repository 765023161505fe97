// One event loop thread with the client sessions and server connections that live on it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/list.h"
#include "net/dns.h"
#include "net/loop.h"

namespace lokadb {

class CancelJob;
class PeerForward;
class ClientSession;
class Pooler;
class ServerConnection;
struct OwnedTag;

class Worker {
 public:
  Worker(Pooler& pooler, int index, std::size_t receive_size);
  ~Worker();

  Pooler& pooler;
  const int index;
  EventLoop loop;
  std::unique_ptr<DnsResolver> resolver;
  std::atomic<int> client_count{0};  // for the listener's choice

  // This worker's thread (or the world is stopped).
  List<ClientSession, OwnedTag> clients;
  List<ServerConnection, OwnedTag> servers;
  List<CancelJob, OwnedTag> cancels;
  List<PeerForward, OwnedTag> forwards;  // cancel requests for clients of other processes
  int timed_clients = 0;                 // those in a state that has a time limit of its own

  // Timeouts of everything that lives here: three times a second, and less often while nothing has a limit that is
  // near.
  void tick();
  // Something has: the next tick comes soon. Worker's thread (or the world is stopped).
  void tick_soon();

  // Runs the loop on a thread of its own (workers but the first).
  void start_thread();
  void join();

 private:
  bool has_near_limits();
  void check_zones(std::int64_t now);
  std::int64_t zones_checked_ = 0;  // monotonic
  std::unique_ptr<Timer> janitor_;
  std::thread thread_;
};

}  // namespace lokadb
