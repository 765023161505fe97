#include "net/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/clock.h"
#include "base/log.h"
#include "net/stream.h"

namespace lokadb {

namespace {
constexpr std::size_t kArenaChunk = 16384;
constexpr int kResumeRounds = 4;
constexpr std::size_t kMaxSpareBuffers = 1024;
constexpr std::size_t kMaxSpareSegments = 64;
constexpr std::size_t kMaxSpareCapacity = 8192;
}  // namespace

std::byte* TurnArena::allocate(std::size_t n) {
  while (current_ < chunks_.size() && chunks_[current_].size - used_ < n) {
    ++current_;
    used_ = 0;
  }
  if (current_ == chunks_.size()) {
    std::size_t size = n > kArenaChunk ? n : kArenaChunk;
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
  }
  std::byte* p = chunks_[current_].bytes.get() + used_;
  used_ += n;
  return p;
}

void TurnArena::adopt(std::vector<std::byte>&& buffer) { adopted_.push_back(std::move(buffer)); }

std::vector<std::byte> TurnArena::recycled() {
  if (spare_.empty()) return {};
  std::vector<std::byte> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void TurnArena::reset() {
  if (chunks_.size() > 1 || (!chunks_.empty() && chunks_.front().size > kArenaChunk)) chunks_.clear();
  current_ = used_ = 0;
  for (auto& buffer : adopted_) {
    if (buffer.capacity() == 0 || buffer.capacity() > kMaxSpareCapacity || spare_.size() >= kMaxSpareBuffers) continue;
    buffer.clear();
    spare_.push_back(std::move(buffer));
  }
  adopted_.clear();
}

EventLoop::EventLoop(std::size_t receive_size)
    : receive_size_(receive_size), receive_(std::make_unique_for_overwrite<std::byte[]>(receive_size)) {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);  // only our thread touches the base
  base_.reset(event_base_new_with_config(config));
  event_config_free(config);
  if (!base_) log_fatal("event_base_new failed");
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) log_fatal("eventfd failed");
  wake_event_.reset(event_new(base_.get(), wake_fd_, EV_READ | EV_PERSIST, &EventLoop::on_wake, this));
  event_add(wake_event_.get(), nullptr);
}

EventLoop::~EventLoop() {
  wake_event_.reset();
  close(wake_fd_);
}

void EventLoop::run() { event_base_dispatch(base_.get()); }

void EventLoop::stop() {
  post([this] { event_base_loopbreak(base_.get()); });
}

void EventLoop::post(std::function<void()> task) {
  bool was_empty;
  {
    std::lock_guard lock(posted_mutex_);
    was_empty = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (!was_empty) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto n = write(wake_fd_, &one, sizeof one);
}

void EventLoop::on_wake(evutil_socket_t fd, short, void* self) {
  std::uint64_t count;
  [[maybe_unused]] auto n = read(fd, &count, sizeof count);
  auto* loop = static_cast<EventLoop*>(self);
  loop->run_posted();
  loop->end_turn();
}

void EventLoop::run_posted() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(posted_mutex_);
    tasks.swap(posted_);
  }
  for (auto& task : tasks) task();
}

void EventLoop::resume_later(Resumable& object) {
  if (!object.ListHook<ReadyTag>::is_linked()) ready_.push_back(&object);
}

void EventLoop::forget(Resumable& object) {
  if (object.ListHook<ReadyTag>::is_linked()) ready_.remove(&object);
}

void EventLoop::bury(std::unique_ptr<Buriable> object) { dead_.push_back(std::move(object)); }

void EventLoop::mark_dirty(Stream& stream) {
  if (!stream.ListHook<DirtyTag>::is_linked()) dirty_.push_back(&stream);
}

void EventLoop::unmark_dirty(Stream& stream) {
  if (stream.ListHook<DirtyTag>::is_linked()) dirty_.remove(&stream);
}

std::unique_ptr<SegmentList> EventLoop::take_segments() {
  if (spare_segments_.empty()) return std::make_unique<SegmentList>();
  auto list = std::move(spare_segments_.back());
  spare_segments_.pop_back();
  return list;
}

void EventLoop::give_segments(std::unique_ptr<SegmentList> list) {
  if (list->capacity() > kMaxSpareCapacity) return;
  list->clear();
  if (spare_segments_.size() < kMaxSpareSegments) spare_segments_.push_back(std::move(list));
}

void EventLoop::flush() {
  while (Stream* stream = dirty_.pop_front()) stream->flush();
  arena_.reset();
}

void EventLoop::end_turn() {
  flush();
  // A resumed object may ask to be resumed again (fairness between busy connections): a few rounds only, the next
  // follow after the loop has looked at its descriptors.
  for (int round = 0; round < kResumeRounds && !ready_.empty(); ++round) {
    for (std::size_t n = ready_.size(); n > 0; --n) {
      Resumable* object = ready_.pop_front();
      if (object == nullptr) break;
      object->resume();
      flush();
    }
  }
  dead_.clear();
  now_ = 0;
  if (!ready_.empty()) {
    std::uint64_t one = 1;
    [[maybe_unused]] auto n = write(wake_fd_, &one, sizeof one);
  }
}

std::int64_t EventLoop::now() {
  if (now_ == 0) now_ = now_us();
  return now_;
}

Timer::Timer(EventLoop& loop, std::int64_t period_us, std::function<void()> fn) : loop_(loop), fn_(std::move(fn)) {
  event_.reset(event_new(loop.base(), -1, EV_PERSIST, &Timer::on_tick, this));
  set_period(period_us);
}

void Timer::set_period(std::int64_t period_us) {
  period_us_ = period_us;
  timeval tv{period_us / 1000000, period_us % 1000000};
  event_add(event_.get(), &tv);
}

void Timer::on_tick(evutil_socket_t, short, void* self) {
  auto* timer = static_cast<Timer*>(self);
  timer->fn_();
  timer->loop_.end_turn();
}

}  // namespace lokadb
