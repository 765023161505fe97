// The running proxy: listeners, pooler, console and signals put together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/console.h"
#include "net/listener.h"
#include "plugin/chain.h"
#include "pool/pooler.h"
#include "proxy/command_line.h"
#include "proxy/feeds.h"
#include "proxy/process.h"
#include "proxy/takeover.h"

namespace lokadb {

class Proxy final : public ProcessControl {
 public:
  Proxy(ConfigPtr config, const CommandLine& command_line);
  ~Proxy() override;

  // Listens (on the sockets passed, if any, in place of the configured ones), writes the pidfile, and serves until told
  // to stop; returns the exit status.
  // takeover: from a running process, which ends then; null: none.
  int run(const std::vector<int>& passed_sockets, std::unique_ptr<Takeover> takeover);

  Result<Done> reload() override;
  bool options_changed(std::string_view key) override;
  void close_tcp_listeners() override;
  void set_listening(bool on) override;
  std::vector<ListeningSocket> listening_sockets() const override;

  // Targets of the log as the options want them; empty, or the text of what failed.
  static std::string configure_log(const Options& options, bool quiet);

 private:
  struct CaughtSignal {
    Proxy* proxy;
    void (Proxy::*handler)();
    EventPtr event;
  };
  void listen(const std::vector<int>& passed_sockets, Takeover* takeover);
  void listen_as_configured();
  void listen_on_passed(const std::vector<int>& passed_sockets);
  void listen_on(const std::string& address);
  Worker& worker_for_new_client();
  void accepted(int fd, const SocketAddress& peer);
  void catch_signal(int number, void (Proxy::*handler)());
  void on_hup();
  void on_term();
  void on_int();
  void on_quit();
  void on_usr1();
  void on_usr2();
  bool is_stopping_already(const char* name);
  bool load_tls(const Options& options);
  void load_plugins();
  void follow_feeds();
  void log_limits();
  void log_versions();
  void retune_listeners();
  void stats_tick();

  CommandLine command_line_;
  std::unique_ptr<PluginChain> plugins_;  // outlives the sessions in pooler_
  std::unique_ptr<Feeds> feeds_;
  Pooler pooler_;
  Console console_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<CaughtSignal>> signals_;
  std::unique_ptr<Timer> stats_timer_;
  Pidfile pidfile_;
  TlsMode server_mode_ = TlsMode::Disable;
  bool is_running_ = false;
};

}  // namespace lokadb
