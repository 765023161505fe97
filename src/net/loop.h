// One event loop, run by one thread: file descriptors, timers, tasks posted by other threads, and the end of a
// turn, at which everything written during the turn goes out (one send a connection).
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/uio.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "base/list.h"

namespace lokadb {

class Stream;
using SegmentList = std::vector<iovec>;

template <auto Fn>
struct Calls {
  template <class T>
  void operator()(T* p) const noexcept {
    Fn(p);
  }
};
using EventBasePtr = std::unique_ptr<event_base, Calls<event_base_free>>;
using EventPtr = std::unique_ptr<event, Calls<event_free>>;

// Memory for what is sent before the turn ends: nothing moves until reset(), so output queues may point into it.
class TurnArena {
 public:
  std::byte* allocate(std::size_t n);
  // Keeps a buffer that output queues point into until the turn ends.
  void adopt(std::vector<std::byte>&& buffer);
  void reset();
  // A buffer that an earlier turn adopted, or a new one; empty.
  std::vector<std::byte> recycled();

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  std::size_t current_ = 0;
  std::size_t used_ = 0;
  std::vector<std::vector<std::byte>> adopted_;
  std::vector<std::vector<std::byte>> spare_;
};

// Something that wants to be called again in this turn of the loop.
struct ReadyTag;
class Resumable : public ListHook<ReadyTag> {
 public:
  virtual void resume() = 0;

 protected:
  ~Resumable() = default;
};

// Deleted when the turn ends, so that code further up the stack may still look at it.
class Buriable {
 public:
  virtual ~Buriable() = default;
};

struct DirtyTag;

class EventLoop {
 public:
  // receive_size: bytes of the buffer shared by all reads of this loop.
  explicit EventLoop(std::size_t receive_size);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  event_base* base() { return base_.get(); }
  void run();
  void stop();  // any thread

  // Runs `task` on this loop's thread, soon. Any thread.
  void post(std::function<void()> task);
  // Runs what was posted so far. This loop's thread, or any when the loop has ended.
  void run_posted();

  // The rest: this loop's thread only.

  // Calls object.resume() before the loop waits again.
  void resume_later(Resumable& object);
  void forget(Resumable& object);
  void bury(std::unique_ptr<Buriable> object);
  void mark_dirty(Stream& stream);
  void unmark_dirty(Stream& stream);
  // Lists of unsent pieces, kept for reuse: a connection has one only while it has something to send.
  std::unique_ptr<SegmentList> take_segments();
  void give_segments(std::unique_ptr<SegmentList> list);

  // Every callback of libevent ends with this: sends what was written, resumes who asked for it, frees the dead.
  void end_turn();
  // Sends what was written so far: must be called before the receive buffer is used again.
  void flush();

  TurnArena& arena() { return arena_; }
  std::span<std::byte> receive_buffer() { return {receive_.get(), receive_size_}; }

  // Microseconds of the monotonic clock, read once a turn.
  std::int64_t now();

 private:
  static void on_wake(evutil_socket_t, short, void* self);

  EventBasePtr base_;
  int wake_fd_ = -1;
  EventPtr wake_event_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by posted_mutex_

  TurnArena arena_;
  std::size_t receive_size_;
  std::unique_ptr<std::byte[]> receive_;
  List<Resumable, ReadyTag> ready_;
  List<Stream, DirtyTag> dirty_;
  std::vector<std::unique_ptr<Buriable>> dead_;
  std::vector<std::unique_ptr<SegmentList>> spare_segments_;
  std::int64_t now_ = 0;
};

// Calls `fn` every `period` until destroyed; on the loop's thread.
class Timer {
 public:
  Timer(EventLoop& loop, std::int64_t period_us, std::function<void()> fn);
  // From now on; the next call is one new period away.
  void set_period(std::int64_t period_us);
  std::int64_t period() const { return period_us_; }

 private:
  static void on_tick(evutil_socket_t, short, void* self);
  EventLoop& loop_;
  std::function<void()> fn_;
  EventPtr event_;
  std::int64_t period_us_ = 0;
};

}  // namespace lokadb
