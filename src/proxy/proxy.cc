#include "proxy/proxy.h"

#include <ares.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "admin/show.h"
#include "admin/statistics.h"
#include "base/log.h"
#include "config/options.h"
#include "pool/client_session.h"
#include "pool/server_connection.h"
#include "proxy/service_manager.h"

namespace lokadb {

namespace {

constexpr int kClientsBeforeSpreading = 32;

int worker_count(const Options& o) {
  if (o.worker_threads > 0) return o.worker_threads;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

TlsVerify verify_of(TlsMode mode) {
  if (mode == TlsMode::VerifyCa) return TlsVerify::Ca;
  return mode == TlsMode::VerifyFull ? TlsVerify::Full : TlsVerify::None;
}

TlsSettings client_tls_settings(const Options& o) {
  TlsSettings s;
  s.verify = verify_of(o.client_tls_sslmode);
  s.key_file = o.client_tls_key_file;
  s.cert_file = o.client_tls_cert_file;
  s.ca_file = o.client_tls_ca_file;
  s.ciphers = o.client_tls_ciphers;
  s.tls13_ciphers = o.client_tls13_ciphers;
  s.protocols = o.client_tls_protocols;
  s.dheparams = o.client_tls_dheparams;
  s.ecdhcurve = o.client_tls_ecdhcurve;
  return s;
}

TlsSettings server_tls_settings(const Options& o) {
  TlsSettings s;
  s.verify = verify_of(o.server_tls_sslmode);
  s.key_file = o.server_tls_key_file;
  s.cert_file = o.server_tls_cert_file;
  s.ca_file = o.server_tls_ca_file;
  s.ciphers = o.server_tls_ciphers;
  s.tls13_ciphers = o.server_tls13_ciphers;
  s.protocols = o.server_tls_protocols;
  return s;
}

ListenerSettings listener_settings(const Options& o, const TcpTuning& tcp) {
  return {o.listen_backlog, o.so_reuseport, o.tcp_defer_accept, tcp, o.unix_socket_mode, o.unix_socket_group};
}

}  // namespace

Proxy::Proxy(ConfigPtr config, const CommandLine& command_line)
    : command_line_(command_line), pooler_(std::move(config), worker_count(config->options)), console_(pooler_, *this) {
  pooler_.console = &console_;
  pooler_.on_tick = [this] { console_.lifecycle().check(); };
}

Proxy::~Proxy() {
  if (pooler_.is_handed_over && listener_) listener_->let_go();
}

std::string Proxy::configure_log(const Options& o, bool quiet) {
  log_set_verbosity(o.verbose.value_or(0));
  LogTargets targets;
  targets.to_stderr = !quiet;
  targets.file = o.logfile;
  targets.to_syslog = o.syslog;
  targets.syslog_ident = o.syslog_ident;
  targets.syslog_facility = o.syslog_facility;
  return log_configure(targets);
}

bool Proxy::load_tls(const Options& o) {
  TlsContextPtr client, server;
  if (o.auth_type == AuthType::Cert && o.client_tls_sslmode != TlsMode::VerifyFull) {
    log_line(LogLevel::Error, "TLS setup failed: auth_type=cert needs client_tls_sslmode=verify-full");
    return false;
  }
  if (o.server_tls_direct && o.server_tls_sslmode < TlsMode::Require) {
    log_line(LogLevel::Error,
             "TLS setup failed: server_tls_direct needs server_tls_sslmode=require, verify-ca or verify-full");
    return false;
  }
  if (o.client_tls_sslmode != TlsMode::Disable) {
    auto made = make_client_side(client_tls_settings(o));
    if (!made) {
      log_line(LogLevel::Error, "%s", made.error().log_text().c_str());
      return false;
    }
    client = *made;
  }
  if (o.server_tls_sslmode != TlsMode::Disable) {
    auto made = make_server_side(server_tls_settings(o));
    if (!made) {
      log_line(LogLevel::Error, "%s", made.error().log_text().c_str());
      return false;
    }
    server = *made;
  }
  pooler_.client_tls = client;
  bool server_changed = (server == nullptr) != (pooler_.server_tls == nullptr) ||
                        (server != nullptr && !server->same_as(*pooler_.server_tls)) ||
                        server_mode_ != o.server_tls_sslmode;
  pooler_.server_tls = server;
  // Connections made the old way are replaced.
  if (server_changed && is_running_) pooler_.for_each_pool([this](Pool& p) { pooler_.tag_dirty(p); });
  server_mode_ = o.server_tls_sslmode;
  return true;
}

void Proxy::load_plugins() {
  const TextList& names = pooler_.options().plugins;
  if (names.empty()) return;
  auto loaded = PluginChain::load(names, pooler_.config->sections);
  if (!loaded) log_fatal("%s", loaded.error().log_text().c_str());
  plugins_ = std::move(*loaded);
  pooler_.plugins = plugins_.get();
}

void Proxy::follow_feeds() {
  if (plugins_ == nullptr) return;
  if (feeds_ == nullptr) {
    feeds_ = std::make_unique<Feeds>(*plugins_);
    pooler_.refresh_feeds = [this](const std::string& database, const std::function<void()>& then) {
      feeds_->refresh(database, then);
    };
  }
  feeds_->follow(*pooler_.config);
}

// ------------------------------------------------------------------ run

int Proxy::run(const std::vector<int>& passed_sockets, std::unique_ptr<Takeover> takeover) {
  if (!load_tls(pooler_.options())) log_fatal("TLS setup failed");
  load_plugins();
  log_limits();
  signal(SIGPIPE, SIG_IGN);
  catch_signal(SIGHUP, &Proxy::on_hup);
  catch_signal(SIGTERM, &Proxy::on_term);
  catch_signal(SIGINT, &Proxy::on_int);
  catch_signal(SIGQUIT, &Proxy::on_quit);
  catch_signal(SIGUSR1, &Proxy::on_usr1);
  catch_signal(SIGUSR2, &Proxy::on_usr2);
  listen(passed_sockets, takeover.get());
  const std::string& pidfile = pooler_.options().pidfile;
  if (takeover) takeover->finish(pidfile);
  takeover.reset();
  if (!pidfile.empty()) pidfile_.write(pidfile);
  log_versions();
  std::int64_t period = std::max(pooler_.options().stats_period, 1) * std::int64_t{1000000};
  stats_timer_ = std::make_unique<Timer>(pooler_.main_worker().loop, period, [this] { stats_tick(); });
  is_running_ = true;
  follow_feeds();
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (std::size_t i = 1; i < pooler_.workers.size(); ++i) pooler_.workers[i]->start_thread();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  tell_ready();
  pooler_.main_worker().loop.run();
  for (std::size_t i = 1; i < pooler_.workers.size(); ++i) pooler_.workers[i]->join();
  feeds_.reset();  // their last messages to sessions come while there are sessions
  return 0;
}

// One name first, as the program was called, the other one last.
void Proxy::log_versions() {
  std::string_view first = version_text(), last = own_version_text();
  if (!command_line_.as_pgbouncer) std::swap(first, last);
  int ignored = 0;
  log_line(LogLevel::Log, "process up: %.*s, libevent %s (%s), adns: c-ares %s, tls: %s, %.*s",
           static_cast<int>(first.size()), first.data(), event_get_version(),
           event_base_get_method(pooler_.main_worker().loop.base()), ares_version(&ignored),
           OpenSSL_version(OPENSSL_VERSION), static_cast<int>(last.size()), last.data());
}

void Proxy::stats_tick() {
  end_stats_period(pooler_);
  tell_status(stats_text(pooler_, "μs"));
}

void Proxy::log_limits() {
  const Options& o = pooler_.options();
  long expected = o.max_client_conn + 10;
  auto users = static_cast<long>(pooler_.config->userlist->secrets.size());
  for (const auto& [name, database] : pooler_.config->databases) {
    long size = database.pool_size.value_or(o.default_pool_size);
    expected += database.user ? size : size * std::max(users, 1L);
  }
  DescriptorLimit limit = raise_descriptor_limit(static_cast<unsigned long>(expected));
  log_line(LogLevel::Log,
           "kernel file descriptor limit: %lu (hard: %lu); max_client_conn: %d, max expected fd use: %ld", limit.soft,
           limit.hard, o.max_client_conn, expected);
}

// ------------------------------------------------------------------ listening

void Proxy::listen(const std::vector<int>& passed_sockets, Takeover* takeover) {
  const Options& o = pooler_.options();
  listener_ = std::make_unique<Listener>(pooler_.main_worker().loop, listener_settings(o, pooler_.tcp_tuning()),
                                         [this](int fd, const SocketAddress& peer) { accepted(fd, peer); });
  if (takeover != nullptr)
    takeover->restore(pooler_, *listener_, [this]() -> Worker& { return worker_for_new_client(); });
  else
    passed_sockets.empty() ? listen_as_configured() : listen_on_passed(passed_sockets);
  if (listener_->empty()) log_fatal("nowhere to listen on");
  for (const auto& description : listener_->descriptions())
    log_line(LogLevel::Log, "listening on %s", description.c_str());
}

void Proxy::listen_on_passed(const std::vector<int>& passed_sockets) {
  const Options& o = pooler_.options();
  if (!o.listen_addr.empty())
    log_line(LogLevel::Warning, "sockets passed from service manager, cf_listen_addr ignored");
  if (o.unix_socket_dir != default_options().unix_socket_dir)
    log_line(LogLevel::Warning, "sockets passed from service manager, cf_unix_socket_dir ignored");
  for (int fd : passed_sockets) {
    log_line(LogLevel::Log, "socket passed from service manager (fd %d)", fd);
    if (auto done = listener_->adopt(fd); !done) {
      log_fatal("failed to set up socket passed from service manager (fd %d): %s", fd, done.error().log_text().c_str());
    }
  }
}

void Proxy::listen_as_configured() {
  const Options& o = pooler_.options();
  for (const auto& address : o.listen_addr) listen_on(address);
  if (!o.listen_addr.empty() && listener_->empty()) {
    std::string list;
    for (const auto& address : o.listen_addr) list += (list.empty() ? "" : ",") + address;
    log_fatal("failed to listen on any address in listen_addr list: %s", list.c_str());
  }
  if (!o.unix_socket_dir.empty()) {
    if (auto done = listener_->listen_unix(o.unix_socket_dir, o.listen_port); !done)
      log_fatal("failed to create unix socket: %s", done.error().log_text().c_str());
  }
}

void Proxy::listen_on(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  std::string port = std::to_string(pooler_.options().listen_port);
  const char* name = address == "*" ? nullptr : address.c_str();
  if (int r = getaddrinfo(name, port.c_str(), &hints, &found); r != 0)
    log_fatal("getaddrinfo('%s', '%s') = %s [%d]", address.c_str(), port.c_str(), gai_strerror(r), r);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    SocketAddress where = socket_address(a->ai_addr, a->ai_addrlen);
    if (auto done = listener_->listen_tcp(where); !done) {
      log_line(LogLevel::Warning, "cannot listen on %s: %s", to_text(where).c_str(), done.error().log_text().c_str());
    }
  }
  freeaddrinfo(found);
}

// The worker with the fewest clients. Where the number of workers was not asked for, the first one takes the first
// clients alone: while they are few, one thread serves them quicker than several that hand servers to each other, and
// strictly in the order of their asking.
Worker& Proxy::worker_for_new_client() {
  Worker* chosen = &pooler_.main_worker();
  int alone = pooler_.options().worker_threads > 0 ? 0 : kClientsBeforeSpreading;
  if (chosen->client_count.load(std::memory_order_relaxed) < alone) return *chosen;
  for (auto& worker : pooler_.workers)
    if (worker->client_count.load(std::memory_order_relaxed) < chosen->client_count.load(std::memory_order_relaxed))
      chosen = worker.get();
  return *chosen;
}

void Proxy::accepted(int fd, const SocketAddress& peer) {
  Worker* chosen = &worker_for_new_client();
  auto begin = [this, chosen, fd, peer] { (new ClientSession(pooler_, *chosen, fd, peer))->start(); };
  if (chosen == &pooler_.main_worker())
    begin();
  else
    chosen->loop.post(begin);
}

void Proxy::close_tcp_listeners() {
  if (listener_) listener_->close_tcp();
}

std::vector<ListeningSocket> Proxy::listening_sockets() const {
  return listener_ ? listener_->sockets() : std::vector<ListeningSocket>();
}

void Proxy::set_listening(bool on) {
  if (listener_) listener_->set_active(on);
}

// ------------------------------------------------------------------ configuration

Result<Done> Proxy::reload() {
  const Options& now = pooler_.options();
  std::string path = now.conffile.value_or(pooler_.config->path);
  auto next = load_config(path, pooler_.config);
  if (!next) return next.error();
  if (plugins_) {
    if (auto done = plugins_->reload((*next)->sections); !done) {
      log_line(LogLevel::Error, "%s", done.error().log_text().c_str());
      log_line(LogLevel::Warning, "plugins could not be reloaded, keeping old configuration");
      return done.error();
    }
  }
  if (!load_tls((*next)->options)) {
    log_line(LogLevel::Error, "TLS configuration could not be reloaded, keeping old configuration");
    if (plugins_) plugins_->undo_reload();
    return fatal("TLS setup failed");
  }
  pooler_.apply_config(*next);
  follow_feeds();
  retune_listeners();
  if (auto failed = configure_log(pooler_.options(), command_line_.quiet); !failed.empty())
    log_line(LogLevel::Error, "%s", failed.c_str());
  return Done{};
}

void Proxy::retune_listeners() {
  if (listener_) listener_->retune(pooler_.tcp_tuning(), pooler_.options().tcp_defer_accept);
}

bool Proxy::options_changed(std::string_view key) {
  if (key.find("_tls") != std::string_view::npos) return load_tls(pooler_.options());
  if (key.starts_with("tcp_")) retune_listeners();
  if (key == "verbose") log_set_verbosity(pooler_.options().verbose.value_or(0));
  if (key == "logfile" || key.starts_with("syslog")) {
    if (auto failed = configure_log(pooler_.options(), command_line_.quiet); !failed.empty())
      log_line(LogLevel::Error, "%s", failed.c_str());
  }
  return true;
}

// ------------------------------------------------------------------ signals

void Proxy::catch_signal(int number, void (Proxy::*handler)()) {
  auto caught = std::make_unique<CaughtSignal>(CaughtSignal{this, handler, nullptr});
  caught->event.reset(event_new(
      pooler_.main_worker().loop.base(), number, EV_SIGNAL | EV_PERSIST,
      [](evutil_socket_t, short, void* context) {
        auto* signal = static_cast<CaughtSignal*>(context);
        Proxy& proxy = *signal->proxy;
        proxy.pooler_.run_alone([&] { (proxy.*signal->handler)(); });
        proxy.pooler_.main_worker().loop.end_turn();
      },
      caught.get()));
  event_add(caught->event.get(), nullptr);
  signals_.push_back(std::move(caught));
}

void Proxy::on_hup() {
  log_line(LogLevel::Log, "got SIGHUP, re-reading config");
  tell_reloading();
  (void)static_cast<bool>(reload());
  tell_ready();  // with the old configuration, if the new one is faulty
}

bool Proxy::is_stopping_already(const char* name) {
  if (pooler_.pause_mode == PauseMode::Suspended) log_fatal("suspend was in progress, going down immediately");
  if (pooler_.shutdown_mode == ShutdownMode::None) return false;
  log_line(LogLevel::Log, "got %s while shutting down, fast exit", name);
  console_.lifecycle().shut_down(ShutdownMode::Immediate);
  return true;
}

void Proxy::on_term() {
  if (is_stopping_already("SIGTERM")) return;
  log_line(LogLevel::Log, "got SIGTERM, shutting down, waiting for all clients disconnect");
  tell_stopping();
  console_.lifecycle().shut_down(ShutdownMode::WaitForClients);
}

void Proxy::on_int() {
  if (is_stopping_already("SIGINT")) return;
  log_line(LogLevel::Log, "got SIGINT, shutting down, waiting for all servers connections to be released");
  tell_stopping();
  console_.lifecycle().shut_down(ShutdownMode::WaitForServers);
}

void Proxy::on_quit() {
  log_line(LogLevel::Log, "got SIGQUIT, fast exit");
  console_.lifecycle().shut_down(ShutdownMode::Immediate);
}

void Proxy::on_usr1() {
  if (pooler_.pause_mode != PauseMode::None)
    return log_line(LogLevel::Log, "got SIGUSR1, but already paused/suspended");
  log_line(LogLevel::Log, "got SIGUSR1, pausing all activity");
  console_.lifecycle().pause_all(0);
}

void Proxy::on_usr2() {
  if (pooler_.shutdown_mode != ShutdownMode::None)
    return log_line(LogLevel::Log, "got SIGUSR2 while shutting down, ignoring");
  switch (pooler_.pause_mode) {
    case PauseMode::None:
      return log_line(LogLevel::Log, "got SIGUSR2, but not paused/suspended");
    case PauseMode::Paused:
      log_line(LogLevel::Log, "got SIGUSR2, continuing from PAUSE");
      break;
    case PauseMode::Suspended:
      log_line(LogLevel::Log, "got SIGUSR2, continuing from SUSPEND");
      break;
  }
  console_.lifecycle().resume_all();
}

}  // namespace lokadb
