// The successor's side of an online restart (-R): it asks the running process, on its console, to suspend, for its
// sockets and the state of its connections, and to end. Blocks; before the loops run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "pool/pooler.h"

namespace lokadb {

class Listener;

class Takeover {
 public:
  // Null: nobody answers there, so there is nothing to take over. Ends the process where it cannot go on. Everything
  // that was handed over is in the result; the old process stands still until finish().
  static std::unique_ptr<Takeover> begin(const Options& options);
  ~Takeover();
  Takeover(const Takeover&) = delete;
  Takeover& operator=(const Takeover&) = delete;

  // Makes listeners and connections out of it; the descriptors are theirs now. Ends the process if there is nothing to
  // listen on.
  void restore(Pooler& pooler, Listener& listener, std::function<Worker&()> choose_worker);
  // The old process ends, and its pidfile goes. From then on the connections are ours.
  void finish(const std::string& pidfile);

 private:
  struct Item {
    std::string task;
    std::vector<std::byte> state;
    int fd = -1;
  };
  struct Answer {
    std::vector<std::vector<std::string>> rows;
  };

  explicit Takeover(int socket);
  void log_in();
  Answer ask(const std::string& sql);
  std::pair<char, std::vector<std::byte>> read_message();
  void wait_for_logins();
  void take_items(Answer answer);

  int socket_;
  std::vector<std::byte> unread_;
  std::vector<int> fds_;  // come, not taken yet
  std::vector<Item> items_;
  std::unique_ptr<class Handover> handover_;
};

}  // namespace lokadb
