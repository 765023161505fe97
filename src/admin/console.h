// The admin console: the database "pgbouncer". Commands come as simple or extended queries; each is parsed, checked
// against the rights of the session, and run on the main thread while the other workers stand still.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "admin/lifecycle.h"
#include "admin/process_control.h"
#include "admin/result_table.h"
#include "pool/pooler.h"

namespace lokadb {

// A command line, taken apart.
struct ConsoleCommand {
  std::string text;  // all of it, as typed
  std::string word;  // lower case
  std::string argument;
  std::string value;  // SET only
  bool has_argument = false;
};
// nullopt: not the form of any command.
std::optional<ConsoleCommand> parse_console_command(std::string_view sql);

class Console final : public ConsoleBackend {
 public:
  Console(Pooler& pooler, ProcessControl& control);

  void message(std::uint64_t session_id, char type, std::string body) override;
  void abandoned(std::uint64_t session_id) override;
  void greet(ByteBuffer& out) const override;

  Lifecycle& lifecycle() { return lifecycle_; }

 private:
  // How far an answer goes: a simple query has everything, the extended protocol asks for parts.
  enum class Form : std::uint8_t { Simple, Describe, Execute };
  // What the extended protocol has prepared in one session.
  struct Prepared {
    std::map<std::string, std::string, std::less<>> statements, portals;
    bool skips_until_sync = false;
  };
  struct Answer {
    ByteBuffer out;
    bool is_later = false;  // the rest comes when something has happened
  };

  ClientSession* find(std::uint64_t session_id);
  void run(ClientSession& session, const std::string& sql, Form form, Answer& answer);
  void extended(ClientSession& session, char type, std::string_view body, Answer& answer);
  void fail(ClientSession& session, const std::string& text, Answer& answer,
            std::string_view state = sqlstate::kProtocolViolation);
  void unknown_command(ClientSession& session, const std::string& text, Answer& answer);
  void finish(ClientSession& session, const std::string& tag, Answer& answer);
  void finished_later(std::uint64_t session_id, const char* tag, bool ok);

  using Handler = void (Console::*)(ClientSession&, const ConsoleCommand&, Form, Answer&);
  struct CommandSpec {
    std::string_view word;
    Handler run;
    bool admin_only;
  };
  static const CommandSpec kCommands[];

  void show(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void show_of_plugin(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void help(Answer&);
  void set(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void reload(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void pause(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void resume(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void suspend(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void shutdown(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void kill(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void kill_client(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void disable(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void enable(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void reconnect(ClientSession&, const ConsoleCommand&, Form, Answer&);
  void wait_close(ClientSession&, const ConsoleCommand&, Form, Answer&);

  void kill_database(Database& database);
  void log_command(const ConsoleCommand& command) const;
  void set_disabled(ClientSession&, const ConsoleCommand&, bool disabled, Answer&);
  Database* database_for(ClientSession&, const ConsoleCommand&, const char* verb, Answer&);

  Pooler& pooler_;
  ProcessControl& control_;
  Lifecycle lifecycle_;
  std::map<std::uint64_t, Prepared> prepared_;
  std::map<std::uint64_t, Form> waiting_forms_;
};

}  // namespace lokadb
