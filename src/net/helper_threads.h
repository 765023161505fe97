// Threads for the few things that block and cannot be made not to: modules of PAM, calls of an LDAP library. They are
// started when there is work, never touch a session, and give their result back through the event loop that asked.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "net/loop.h"

namespace lokadb {

class HelperThreads {
 private:
  struct Job;
  struct Shared;

 public:
  // The right to be told that the work is done. Once it is destroyed nobody is told any more, and work that has not
  // begun never will. Belongs to the thread of the loop that asked; it may outlive the threads.
  class Ticket {
   public:
    Ticket() = default;
    ~Ticket() { cancel(); }
    Ticket(Ticket&&) = default;
    Ticket& operator=(Ticket&& other) noexcept;
    void cancel();

   private:
    friend class HelperThreads;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Job> job_;
  };

  // Work beyond what the threads have in hand waits in line, up to most_waiting pieces of it.
  HelperThreads(std::size_t most_threads, std::size_t most_waiting);
  ~HelperThreads() { stop(); }
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // Runs `work` on one of the threads and then `done` on the loop's. nullopt: too much waits already. Any thread, but
  // `loop` must be the caller's.
  std::optional<Ticket> run(EventLoop& loop, std::function<void()> work, std::function<void()> done);

  std::size_t waiting_count() const;

  // No loop is called from here on. A thread that is inside a piece of work is left to it: it may never come back.
  void stop();
  // Such threads, of all objects. While there are any the process must end by _exit.
  static int left_behind();

 private:
  static void serve(const std::shared_ptr<Shared>& shared, std::size_t index);

  std::shared_ptr<Shared> shared_;
};

}  // namespace lokadb
