#include "control_plane.h"

#include <dlfcn.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "secret/key_file.h"
#include "secret/opened_logins.h"
#include "watch/connection.h"

namespace lokadb::router {

namespace {

// Milliseconds. A fault that has gone is over within a pause and an attempt.
constexpr std::uint32_t kRetryPause = 1000;
constexpr std::uint32_t kHeartbeat = 5000;
constexpr std::uint32_t kPatience = 10'000;  // for a connection, and for an answer
constexpr std::chrono::milliseconds kLongestEnd{1000};

constexpr char kListen[] = "LISTEN lokadb_credentials";
constexpr char kQuery[] =
    "SELECT org, user_name, pg_catalog.encode(secret, 'hex') FROM lokadb.direct_credentials ORDER BY org";

// The dsn counts for more than what stands in front of it.
WatchConnection::Keywords keywords_of(const std::string& dsn) {
  return {{"application_name", "lokadb router"},
          {"gssencmode", "disable"},
          {"keepalives_idle", "5"},
          {"keepalives_interval", "2"},
          {"keepalives_count", "3"},
          {"tcp_user_timeout", "4000"},  // of several hosts the next one has a chance before the patience is over
          {"dbname", dsn},
          {"client_encoding", "UTF8"}};
}

std::vector<secret::SealedLogin> rows_of(const WatchConnection::Answer& answer) {
  std::vector<secret::SealedLogin> rows;
  for (int i = 0; i < PQntuples(answer.get()); ++i)
    rows.push_back({PQgetvalue(answer.get(), i, 0), PQgetvalue(answer.get(), i, 1), PQgetvalue(answer.get(), i, 2)});
  return rows;
}

// "7, 9 and 3 others"
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " others" : text;
}

// The code of a thread that is left behind must stay where it is, whoever unloads the plugin.
void keep_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&keep_this_library), &info) != 0)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

std::string fault_of(const ControlPlaneOptions& options) {
  if (options.dsn.empty() && options.key_file.empty()) return {};
  if (options.dsn.empty()) return "[control_plane] has key_file, but no dsn";
  if (options.key_file.empty()) return "[control_plane] has dsn, but no key_file";
  // libpq's own words would show parts of the dsn, which may be the password.
  char* words = nullptr;
  std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(PQconninfoParse(options.dsn.c_str(), &words),
                                                                        PQconninfoFree);
  if (words != nullptr) PQfreemem(words);
  if (parsed == nullptr) return "[control_plane] dsn is no connection string that libpq understands";
  auto key = secret::read_key_file(options.key_file);
  if (!key) return "[control_plane] key_file " + key.error().to_client;
  return {};
}

// What the thread works on. It outlives the ControlPlane where the thread does.
class ControlPlane::Follower {
 public:
  Follower(ControlPlaneOptions options, Told told, Log log)
      : options_(std::move(options)), told_(std::move(told)), log_(std::move(log)) {
    end_.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  }
  ~Follower() { ::close(end_.wake_fd); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  static void start(const std::shared_ptr<Follower>& self) {
    self->thread_ = std::thread([self] {
      begin_watch_thread("control plane");
      self->run();
      std::lock_guard lock(self->mutex_);
      self->has_ended_ = true;
      self->ended_.notify_all();
    });
  }

  void end() {
    std::unique_lock lock(mutex_);
    end_.is_asked = true;
    wake();
    const bool has_ended = ended_.wait_for(lock, kLongestEnd, [this] { return has_ended_; });
    lock.unlock();
    if (has_ended) return thread_.join();
    keep_this_library();
    thread_.detach();
  }

  void wake() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto n = write(end_.wake_fd, &one, sizeof one);
  }

 private:
  void run() {
    while (!end_.is_asked) {
      try {
        WatchConnection connection(keywords_of(options_.dsn), true, kPatience, end_);
        connection.ask(kListen);  // before the first look: nothing that changes in between is missed
        while (!end_.is_asked) {
          take_wake();
          load(connection);
          connection.wait_for_notification(kHeartbeat);
        }
      } catch (const ConnectionLost& lost) {
        complain(std::string("not available: ") + lost.what());
      } catch (const std::exception& e) {
        complain(e.what());
      }
      pollfd fd{end_.wake_fd, POLLIN, 0};
      if (!end_.is_asked) poll(&fd, 1, kRetryPause);
      take_wake();
    }
  }

  void load(WatchConnection& connection) {
    std::vector<secret::SealedLogin> rows = rows_of(connection.ask(kQuery));
    auto key = secret::read_key_file(options_.key_file);
    if (!key) return complain("key_file " + key.error().to_client);
    const bool has_changed = opened_.take(*key, rows);
    if (has_changed) tell();
    if (!opened_.unreadable().empty())
      return complain("credentials that key_file does not open, of organizations " + list_of(opened_.unreadable()) +
                      ": another key file, or not what was stored");
    if (has_changed || !complaint_.empty() || !has_loaded_)
      say(2, "up to date, logins: " + std::to_string(opened_.size()));
    has_loaded_ = true;
    complaint_.clear();
  }

  void tell() {
    std::lock_guard lock(mutex_);
    if (!end_.is_asked) told_(opened_.logins());
  }

  // Once, however long it stays so.
  void complain(const std::string& what) {
    if (what == complaint_) return;
    complaint_ = what;
    say(1, what);
  }

  void say(int level, const std::string& text) {
    std::lock_guard lock(mutex_);
    if (!end_.is_asked) log_(level, "control plane: " + text);
  }

  void take_wake() {
    std::uint64_t ignored = 0;
    [[maybe_unused]] auto n = read(end_.wake_fd, &ignored, sizeof ignored);
  }

  const ControlPlaneOptions options_;
  const Told told_;
  const Log log_;
  WatchEnd end_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;  // guarded by mutex_; what follows is the thread's

  secret::OpenedLogins opened_;
  bool has_loaded_ = false;
  std::string complaint_;
};

ControlPlane::ControlPlane(ControlPlaneOptions options, Told told, Log log)
    : follower_(std::make_shared<Follower>(std::move(options), std::move(told), std::move(log))) {
  Follower::start(follower_);
}

ControlPlane::~ControlPlane() { follower_->end(); }

void ControlPlane::refresh() { follower_->wake(); }

}  // namespace lokadb::router
