#include "plugin/plugin.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "plugin/abi.h"
#include "plugin/verdict.h"

namespace lokadb {

namespace {

constexpr std::int64_t kSlowCall = 50'000'000;          // nanoseconds
constexpr std::int64_t kSlowWarningEvery = 60'000'000;  // microseconds

// The slot of a session for which session_begin failed.
char g_failed_slot;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// True for one caller in each period.
bool is_time(std::atomic<std::int64_t>& next, std::int64_t period) {
  std::int64_t now = now_us(), due = next.load(std::memory_order_relaxed);
  return now >= due && next.compare_exchange_strong(due, now + period, std::memory_order_relaxed);
}

lokadb_section* handle_of(const SectionView& view) {
  return reinterpret_cast<lokadb_section*>(const_cast<SectionView*>(&view));
}
lokadb_batch* handle_of(Batch* batch) { return reinterpret_cast<lokadb_batch*>(batch); }

}  // namespace

Plugin::Plugin(PluginLibrary library, std::string name, std::string path, bool is_required)
    : library_(std::move(library)),
      name_(std::move(name)),
      path_(std::move(path)),
      is_required_(is_required),
      reasons_(std::make_unique<std::atomic<std::uint64_t>[]>(table().reason_count)) {}

Plugin::~Plugin() {
  if (!is_initialized_ || table().destroy == nullptr) return;
  auto failure = run(PluginEntry::Destroy, {}, [&] { return table().destroy(self_), LOKADB_OK; });
  if (failure) log_failure("destroy", *failure);
}

// ------------------------------------------------------------------ one call

template <class F>
std::optional<PluginFailure> Plugin::run(PluginEntry entry, PluginCall::Subject subject, F&& function) {
  PluginCall call(entry, name_, &table(), subject);
  std::int64_t begin = now_ns();
  int answer = LOKADB_OK;
  try {
    answer = function();
  } catch (const std::exception& e) {
    call.fault(std::string("threw an exception: ") + e.what());
  } catch (...) {
    call.fault("threw an exception");
  }
  measure(entry, now_ns() - begin);
  if (answer != LOKADB_OK && !call.failure) call.fault(format("returned %d without saying why", answer));
  return std::move(call.failure);
}

void Plugin::measure(PluginEntry entry, std::int64_t nanoseconds) {
  auto spent = static_cast<std::uint64_t>(nanoseconds);
  calls_.fetch_add(1, std::memory_order_relaxed);
  total_ns_.fetch_add(spent, std::memory_order_relaxed);
  std::uint64_t longest = max_ns_.load(std::memory_order_relaxed);
  while (spent > longest && !max_ns_.compare_exchange_weak(longest, spent, std::memory_order_relaxed)) {
  }
  // Nobody is kept waiting by what is done at start and at a reload.
  bool may_be_slow = entry == PluginEntry::Init || entry == PluginEntry::Reload || entry == PluginEntry::Destroy;
  if (nanoseconds <= kSlowCall || may_be_slow) return;
  slow_.fetch_add(1, std::memory_order_relaxed);
  if (is_time(next_slow_warning_, kSlowWarningEvery))
    log_line(LogLevel::Warning, "plugin %s: %s took %lld ms, and all clients of a worker had to wait for it",
             name_.c_str(), name_of(entry), static_cast<long long>(nanoseconds / 1'000'000));
}

PluginFailure Plugin::failed(const char* what, PluginFailure failure) {
  failed_.fetch_add(1, std::memory_order_relaxed);
  log_failure(what, failure);
  return failure;
}

void Plugin::log_failure(const char* what, const PluginFailure& failure) {
  std::string unlogged;
  if (!failure_lines_.is_due(now_us(), unlogged)) return;
  log_line(LogLevel::Error, "plugin %s: %s failed: %s%s", name_.c_str(), what, failure.text.c_str(), unlogged.c_str());
}

// ------------------------------------------------------------------ configuration

std::optional<PluginFailure> Plugin::init(const PluginSections& sections) {
  SectionView view(table(), sections);
  std::optional<PluginFailure> failure;
  if (table().init != nullptr)
    failure = run(PluginEntry::Init, {nullptr, &view, nullptr, nullptr},
                  [&] { return table().init(handle_of(view), &self_); });
  is_initialized_ = !failure;
  return failure;
}

std::optional<PluginFailure> Plugin::reload(const PluginSections& sections) {
  if (table().reload == nullptr) return std::nullopt;
  SectionView view(table(), sections);
  return run(PluginEntry::Reload, {nullptr, &view, nullptr, nullptr},
             [&] { return table().reload(self_, handle_of(view)); });
}

// ------------------------------------------------------------------ sessions

void* Plugin::session_begin(std::string_view database, std::string_view role) {
  if (table().session_begin == nullptr) return nullptr;
  void* slot = nullptr;
  auto failure = run(PluginEntry::SessionBegin, {}, [&] {
    slot = table().session_begin(self_, string_of(database), string_of(role));
    return LOKADB_OK;
  });
  if (!failure) return slot;
  failed("session_begin", std::move(*failure));
  return &g_failed_slot;
}

void Plugin::session_end(void* slot) {
  if (table().session_end == nullptr || slot == &g_failed_slot) return;
  auto failure = run(PluginEntry::SessionEnd, {}, [&] { return table().session_end(self_, slot), LOKADB_OK; });
  if (failure) failed("session_end", std::move(*failure));
}

// ------------------------------------------------------------------ moments

template <class F>
Plugin::Opinion Plugin::ask(PluginEntry entry, Batch& batch, void* slot, PluginFailure& failure, F&& function) {
  std::optional<PluginFailure> failed_by;
  PluginOpinion opinion;
  if (is_broken_ || slot == &g_failed_slot) {
    const char* why =
        is_broken_ ? "a reload of it could neither be done nor be taken back" : "it has no slot for this session";
    failed_by = PluginFailure{"XX000", why, false};
  } else {
    lokadb_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    failed_by = run(entry, {&batch, nullptr, &targets_, nullptr}, [&] { return function(&verdict); });
    if (!failed_by) {
      std::string fault = read_verdict(entry, table(), batch, verdict, opinion);
      if (!fault.empty()) failed_by = PluginFailure{"XX000", std::move(fault), false};
    }
  }
  if (!failed_by) return opinion;
  failure = failed(name_of(entry), std::move(*failed_by));
  return std::nullopt;
}

Plugin::Opinion Plugin::inspect(Batch& batch, void* slot, PluginFailure& failure) {
  if (table().inspect == nullptr) return PluginOpinion();
  return ask(PluginEntry::Inspect, batch, slot, failure,
             [&](lokadb_verdict* v) { return table().inspect(self_, handle_of(&batch), v); });
}

Plugin::Opinion Plugin::decide(Batch& batch, void* slot, PluginFailure& failure) {
  if (table().decide == nullptr) return PluginOpinion();
  return ask(PluginEntry::Decide, batch, slot, failure,
             [&](lokadb_verdict* v) { return table().decide(self_, handle_of(&batch), v); });
}

Plugin::Opinion Plugin::review(Batch& batch, void* slot, const lokadb_verdict& settled, PluginFailure& failure) {
  if (table().review == nullptr) return PluginOpinion();
  return ask(PluginEntry::Review, batch, slot, failure,
             [&](lokadb_verdict* v) { return table().review(self_, handle_of(&batch), &settled, v); });
}

void Plugin::observe(Batch* batch, void* slot, const lokadb_event& event) {
  if (table().observe == nullptr || is_broken_ || slot == &g_failed_slot) return;
  auto failure = run(PluginEntry::Observe, {batch, nullptr, nullptr, nullptr},
                     [&] { return table().observe(self_, handle_of(batch), slot, &event), LOKADB_OK; });
  if (failure) failed("observe", std::move(*failure));
}

// ------------------------------------------------------------------ sessions that begin, and that move

bool Plugin::startup(std::string_view name, std::string_view value, std::optional<PluginFailure>& failure) {
  if (table().startup == nullptr || is_broken_) return false;
  std::uint8_t takes = 0;
  failure =
      run(PluginEntry::Startup, {}, [&] { return table().startup(self_, string_of(name), string_of(value), &takes); });
  if (failure && !failure->is_told) failed("startup", *failure);
  return !failure && takes != 0;
}

bool Plugin::session_save(void* slot, std::string& state) {
  state.clear();
  if (table().session_save == nullptr || is_broken_ || slot == &g_failed_slot) return true;
  lokadb_string out{};
  auto failure = run(PluginEntry::SessionSave, {}, [&] { return table().session_save(self_, slot, &out); });
  if (!failure) state = view_of(out);
  if (failure) failed("session_save", std::move(*failure));
  return !failure;
}

bool Plugin::session_restore(void* slot, std::string_view state) {
  if (table().session_restore == nullptr || is_broken_ || slot == &g_failed_slot) return state.empty();
  auto failure =
      run(PluginEntry::SessionRestore, {}, [&] { return table().session_restore(self_, slot, string_of(state)); });
  if (failure) failed("session_restore", std::move(*failure));
  return !failure;
}

// ------------------------------------------------------------------ feeds

bool Plugin::feed(std::string_view database, lokadb_feed& feed) {
  feed = lokadb_feed{};
  feed.struct_size = sizeof feed;
  if (table().feed == nullptr || is_broken_) return false;
  auto failure = run(PluginEntry::Feed, {}, [&] { return table().feed(self_, string_of(database), &feed); });
  if (!failure && !view_of(feed.user).empty() && view_of(feed.query).empty())
    failure = PluginFailure{"XX000", "wants a feed without a query", false};
  if (failure) {
    failed("feed", std::move(*failure));
    return false;
  }
  return !view_of(feed.user).empty();
}

void Plugin::feed_changed(std::string_view database, std::string_view value, bool is_fresh) {
  if (table().feed_changed == nullptr || is_broken_) return;
  auto failure = run(PluginEntry::FeedChanged, {}, [&] {
    return table().feed_changed(self_, string_of(database), string_of(value), is_fresh ? 1 : 0), LOKADB_OK;
  });
  if (failure) failed("feed_changed", std::move(*failure));
}

// ------------------------------------------------------------------ the console

std::optional<PluginFailure> Plugin::show(std::uint32_t which, PluginRows& rows) {
  if (is_broken_) return PluginFailure{"XX000", "it is out of service", false};
  auto* handle = reinterpret_cast<lokadb_rows*>(&rows);
  auto failure =
      run(PluginEntry::Show, {nullptr, nullptr, nullptr, &rows}, [&] { return table().show(self_, which, handle); });
  if (failure) return failed("show", std::move(*failure));
  return std::nullopt;
}

bool Plugin::session_state(void* slot, lokadb_session_state& state) {
  state = lokadb_session_state{};
  state.struct_size = sizeof state;
  if (table().session_state == nullptr || is_broken_ || slot == &g_failed_slot) return false;
  auto failure = run(PluginEntry::SessionState, {}, [&] { return table().session_state(self_, slot, &state); });
  if (!failure && state.is_off != 0 && !is_reason(table(), state.reason))
    failure = PluginFailure{"XX000", format("gave reason %u of %u", state.reason, table().reason_count), false};
  if (failure) failed("session_state", std::move(*failure));
  return !failure;
}

// ------------------------------------------------------------------ figures

void Plugin::count_reason(std::uint32_t reason) {
  if (reason < table().reason_count) reasons_[reason].fetch_add(1, std::memory_order_relaxed);
}

PluginFigures Plugin::figures() const {
  PluginFigures f;
  f.name = name_;
  f.version = table().version;
  f.library = path_;
  f.abi_major = table().abi_major;
  f.abi_minor = table().abi_minor;
  f.is_required = is_required_;
  f.calls = calls_.load(std::memory_order_relaxed);
  f.refused = refused_.load(std::memory_order_relaxed);
  f.failed = failed_.load(std::memory_order_relaxed);
  f.slow = slow_.load(std::memory_order_relaxed);
  f.total_us = total_ns_.load(std::memory_order_relaxed) / 1000;
  f.max_us = max_ns_.load(std::memory_order_relaxed) / 1000;
  for (std::uint32_t i = 0; i < table().reason_count; ++i)
    f.reasons.push_back({table().reasons[i].id, table().reasons[i].text, reasons_[i].load(std::memory_order_relaxed)});
  return f;
}

}  // namespace lokadb
