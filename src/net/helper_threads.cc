#include "net/helper_threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"

namespace lokadb {

namespace {
std::atomic<int> left_behind_count{0};
}  // namespace

struct HelperThreads::Job {
  EventLoop& loop;
  std::function<void()> work;  // the helper's, once it has taken the job
  std::function<void()> done;  // the loop thread's; empty: cancelled
};

struct HelperThreads::Shared {
  struct Thread {
    std::thread handle;
    bool is_busy = false;
    bool is_left_behind = false;
  };

  const std::size_t most_threads, most_waiting;
  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;
  std::vector<std::unique_ptr<Thread>> threads;
  bool is_stopping = false;
};

HelperThreads::HelperThreads(std::size_t most_threads, std::size_t most_waiting)
    : shared_(new Shared{most_threads, most_waiting, {}, {}, {}, {}, false}) {}

std::optional<HelperThreads::Ticket> HelperThreads::run(EventLoop& loop, std::function<void()> work,
                                                        std::function<void()> done) {
  Ticket ticket;
  ticket.shared_ = shared_;
  ticket.job_.reset(new Job{loop, std::move(work), std::move(done)});
  std::lock_guard guard(shared_->mutex);
  auto& threads = shared_->threads;
  auto free = static_cast<std::size_t>(
      std::count_if(threads.begin(), threads.end(), [](const auto& t) { return !t->is_busy; }));
  std::size_t ahead = shared_->queue.size();
  bool may_start = free <= ahead && threads.size() < shared_->most_threads;
  if (shared_->is_stopping || (!may_start && ahead >= free + shared_->most_waiting)) return std::nullopt;
  shared_->queue.push_back(ticket.job_);
  if (may_start) {
    // Signals are the main thread's.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    threads.push_back(std::make_unique<Shared::Thread>());
    try {
      threads.back()->handle = std::thread(&HelperThreads::serve, shared_, threads.size() - 1);
    } catch (const std::system_error& e) {
      threads.pop_back();
      log_line(LogLevel::Warning, "cannot start a helper thread: %s", e.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (threads.empty()) {
      shared_->queue.pop_back();
      return std::nullopt;
    }
  }
  shared_->changed.notify_one();
  return ticket;
}

void HelperThreads::serve(const std::shared_ptr<Shared>& shared, std::size_t index) {
  pthread_setname_np(pthread_self(), "helper");
  std::unique_lock lock(shared->mutex);
  Shared::Thread& me = *shared->threads[index];
  while (true) {
    shared->changed.wait(lock, [&] { return shared->is_stopping || !shared->queue.empty(); });
    if (shared->is_stopping) break;
    std::shared_ptr<Job> job = std::move(shared->queue.front());
    shared->queue.pop_front();
    me.is_busy = true;
    lock.unlock();
    try {
      job->work();
    } catch (const std::exception& e) {
      log_line(LogLevel::Error, "exception in a helper thread: %s", e.what());
    }
    lock.lock();
    me.is_busy = false;
    if (shared->is_stopping) break;
    EventLoop& loop = job->loop;
    loop.post([job = std::move(job)] {
      if (auto done = std::exchange(job->done, nullptr)) done();
    });
  }
  if (me.is_left_behind) left_behind_count.fetch_sub(1);
}

std::size_t HelperThreads::waiting_count() const {
  std::lock_guard guard(shared_->mutex);
  return shared_->queue.size();
}

void HelperThreads::stop() {
  std::vector<std::thread> ending;
  {
    std::lock_guard guard(shared_->mutex);
    if (shared_->is_stopping) return;
    shared_->is_stopping = true;
    shared_->queue.clear();
    for (auto& thread : shared_->threads) {
      if (thread->is_busy) {
        thread->is_left_behind = true;
        left_behind_count.fetch_add(1);
        thread->handle.detach();
      } else {
        ending.push_back(std::move(thread->handle));
      }
    }
  }
  shared_->changed.notify_all();
  for (auto& thread : ending) thread.join();
}

int HelperThreads::left_behind() { return left_behind_count.load(); }

HelperThreads::Ticket& HelperThreads::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    cancel();
    shared_ = std::move(other.shared_);
    job_ = std::move(other.job_);
  }
  return *this;
}

void HelperThreads::Ticket::cancel() {
  auto job = std::move(job_);
  auto shared = std::move(shared_);
  if (job == nullptr) return;
  job->done = nullptr;
  std::lock_guard guard(shared->mutex);
  std::erase(shared->queue, job);
}

}  // namespace lokadb
