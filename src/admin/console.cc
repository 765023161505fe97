#include "admin/console.h"

#include "admin/show.h"
#include "admin/show_fds.h"
#include "admin/statistics.h"
#include "base/log.h"
#include "base/text.h"
#include "pool/client_session.h"
#include "pool/server_connection.h"
#include "proto/message.h"

namespace lokadb {

namespace {

constexpr std::size_t kMaxArgument = 63;
constexpr std::size_t kMaxValue = 255;

// Settings that clients ask for out of habit.
struct FixedSetting {
  std::string_view name, value;
};
constexpr FixedSetting kFixedSettings[] = {{"client_encoding", "UTF-8"},
                                           {"default_transaction_isolation", "read committed"},
                                           {"standard_conforming_strings", "on"},
                                           {"datestyle", "ISO"},
                                           {"timezone", "GMT"},
                                           {"extra_float_digits", "1"}};

const FixedSetting* fixed_setting(std::string_view name) {
  for (const auto& s : kFixedSettings)
    if (iequals(s.name, name)) return &s;
  return nullptr;
}

constexpr FixedSetting kWelcome[] = {{"client_encoding", "UTF8"}, {"server_encoding", "UTF8"},
                                     {"DateStyle", "ISO"},        {"TimeZone", "GMT"},
                                     {"is_superuser", "on"},      {"standard_conforming_strings", "on"}};

void command_complete(ByteBuffer& out, std::string_view tag) {
  MessageWriter m(out, 'C');
  m->cstring(tag);
}

void bare_message(ByteBuffer& out, char type) { MessageWriter m(out, type); }

}  // namespace

const Console::CommandSpec Console::kCommands[] = {
    {"show", &Console::show, false},
    {"select", &Console::show, false},
    {"set", &Console::set, false},  // what drivers set is for everybody
    {"reload", &Console::reload, true},
    {"pause", &Console::pause, true},
    {"resume", &Console::resume, true},
    {"suspend", &Console::suspend, true},
    {"shutdown", &Console::shutdown, true},
    {"kill", &Console::kill, true},
    {"kill_client", &Console::kill_client, true},
    {"disable", &Console::disable, true},
    {"enable", &Console::enable, true},
    {"reconnect", &Console::reconnect, true},
    {"wait_close", &Console::wait_close, true},
};

Console::Console(Pooler& pooler, ProcessControl& control)
    : pooler_(pooler), control_(control), lifecycle_(pooler, control) {
  lifecycle_.on_finished([this](std::uint64_t id, const char* tag, bool ok) { finished_later(id, tag, ok); });
}

void Console::greet(ByteBuffer& out) const {
  write_parameter_status(out, "server_version", std::string(kPgBouncerVersion) + "/bouncer");
  for (const auto& s : kWelcome) write_parameter_status(out, s.name, s.value);
}

ClientSession* Console::find(std::uint64_t session_id) {
  ClientSession* found = nullptr;
  for (auto& worker : pooler_.workers)
    worker->clients.for_each([&](ClientSession* c) {
      if (c->id == session_id) found = c;
    });
  return found;
}

void Console::abandoned(std::uint64_t session_id) {
  lifecycle_.abandoned(session_id);
  if (find(session_id) == nullptr) prepared_.erase(session_id);
}

// ------------------------------------------------------------------ messages

void Console::message(std::uint64_t session_id, char type, std::string body) {
  ClientSession* session = find(session_id);
  if (session == nullptr) return;
  Answer answer;
  if (type == 'Q') {
    run(*session, body.c_str(), Form::Simple, answer);
    if (!answer.is_later && session->state() != ClientState::Closed) write_ready_for_query(answer.out, 'I');
  } else {
    extended(*session, type, body, answer);
  }
  if (session->state() != ClientState::Closed) session->console_answered(answer.out, !answer.is_later);
}

// From the parameter formats of a Bind on: whether a result shall be binary.
static bool asks_for_binary(MessageReader& reader) {
  reader.take(reader.u16() * std::size_t{2});
  for (unsigned parameters = reader.u16(); parameters > 0 && reader.ok(); --parameters)
    if (std::uint32_t size = reader.u32(); size != 0xffffffff) reader.take(size);
  bool any = false;
  for (unsigned results = reader.u16(); results > 0 && reader.ok(); --results) any |= reader.u16() == 1;
  return any;
}

// Enough of the extended protocol for drivers that know no other: no parameters, text results.
void Console::extended(ClientSession& session, char type, std::string_view body, Answer& answer) {
  Prepared& prepared = prepared_[session.id];
  if (type == 'S') {
    prepared.skips_until_sync = false;
    return write_ready_for_query(answer.out, 'I');
  }
  if (prepared.skips_until_sync || type == 'H') return;
  MessageReader reader(as_bytes(body));
  auto lookup = [&](const std::map<std::string, std::string, std::less<>>& in, std::string_view name) {
    auto it = in.find(name);
    return it == in.end() ? std::optional<std::string>() : std::optional(it->second);
  };
  auto unknown = [&] {
    fail(session, "prepared statement did not exist", answer, sqlstate::kUndefinedStatement);
    prepared.skips_until_sync = true;
  };
  switch (type) {
    case 'P': {
      std::string name(reader.cstring());
      prepared.statements[name] = reader.cstring();
      return bare_message(answer.out, '1');
    }
    case 'B': {
      std::string portal(reader.cstring());
      auto sql = lookup(prepared.statements, reader.cstring());
      if (!sql) return unknown();
      if (asks_for_binary(reader)) {
        prepared.skips_until_sync = true;
        return fail(session, "the admin console has no binary format", answer, sqlstate::kFeatureNotSupported);
      }
      prepared.portals[portal] = *sql;
      return bare_message(answer.out, '2');
    }
    case 'D': {
      bool is_statement = reader.u8() == 'S';
      auto sql = lookup(is_statement ? prepared.statements : prepared.portals, reader.cstring());
      if (!sql) return unknown();
      if (is_statement) {
        MessageWriter m(answer.out, 't');
        m->u16(0);
      }
      run(session, *sql, Form::Describe, answer);
      break;
    }
    case 'E': {
      auto sql = lookup(prepared.portals, reader.cstring());
      if (!sql) return unknown();
      run(session, *sql, Form::Execute, answer);
      break;
    }
    case 'C': {
      bool is_statement = reader.u8() == 'S';
      auto& map = is_statement ? prepared.statements : prepared.portals;
      if (auto it = map.find(reader.cstring()); it != map.end()) map.erase(it);
      return bare_message(answer.out, '3');
    }
    default:
      fail(session, format("unsupported packet type for admin console: %d", type), answer);
      return session.close(fatal("bad packet"));
  }
  if (!answer.out.empty() && static_cast<char>(answer.out.data()[0]) == 'E') prepared.skips_until_sync = true;
}

void Console::run(ClientSession& session, const std::string& sql, Form form, Answer& answer) {
  auto command = parse_console_command(sql);
  if (command) command->text = sql;
  const CommandSpec* spec = nullptr;
  for (const auto& c : kCommands)
    if (command && c.word == command->word) spec = &c;
  if (spec == nullptr) return unknown_command(session, sql, answer);
  if (command->argument.size() > kMaxArgument || command->value.size() > kMaxValue)
    return fail(session, "bad arguments", answer);
  if (spec->admin_only && !session.is_console_admin()) return fail(session, "admin access needed", answer);
  // Only SHOW has columns to describe; nothing is done before Execute.
  if (form == Form::Describe && spec->run != &Console::show) return bare_message(answer.out, 'n');
  (this->*spec->run)(session, *command, form, answer);
}

void Console::fail(ClientSession& session, const std::string& text, Answer& answer, std::string_view state) {
  log_line(LogLevel::Error, "%s", text.c_str());
  if (pooler_.options().log_pooler_errors)
    log_line(LogLevel::Warning, "%s pooler error: %s", session.log_name().c_str(), text.c_str());
  write_error(answer.out, Error{SqlState(state), Severity::Error, text, {}});
}

void Console::unknown_command(ClientSession& session, const std::string& text, Answer& answer) {
  fail(session, "invalid command '" + text + "', use SHOW HELP;", answer);
}

void Console::finish(ClientSession&, const std::string& tag, Answer& answer) { command_complete(answer.out, tag); }

void Console::finished_later(std::uint64_t session_id, const char* tag, bool ok) {
  auto form = waiting_forms_.find(session_id);
  if (form == waiting_forms_.end()) return;
  Form how = form->second;
  waiting_forms_.erase(form);
  ClientSession* session = find(session_id);
  if (session == nullptr) return;
  ByteBuffer out;
  if (ok)
    command_complete(out, tag);
  else
    write_error(out, Error{sqlstate::kProtocolViolation, Severity::Error, "pause failed", {}});
  if (how == Form::Simple) write_ready_for_query(out, 'I');
  session->console_answered(out, true);
}

// ------------------------------------------------------------------ SHOW and SET

void Console::show(ClientSession& session, const ConsoleCommand& command, Form form, Answer& answer) {
  if (!command.has_argument) return unknown_command(session, command.text, answer);
  if (iequals(command.argument, "help")) {
    if (form == Form::Describe) return bare_message(answer.out, 'n');
    help(answer);
    return finish(session, "SHOW", answer);
  }
  if (const FixedSetting* fixed = fixed_setting(command.argument)) {
    ResultTable table(std::string(fixed->name) + " t");
    table.add_row().text(fixed->value);
    if (form != Form::Execute) table.write_description(answer.out);
    if (form == Form::Describe) return;
    table.write_rows(answer.out);
    return finish(session, "SHOW", answer);
  }
  const ShowSpec* spec = find_show(command.argument);
  if (spec == nullptr) return show_of_plugin(session, command, form, answer);
  if (spec->admin_only && !session.is_console_admin()) return fail(session, "admin access needed", answer);
  ResultTable table(spec->columns.empty() ? stats_columns(spec->name) : std::string(spec->columns));
  if (form != Form::Execute) table.write_description(answer.out);
  if (form == Form::Describe) return;
  if (spec->name == "fds") {
    auto listening = control_.listening_sockets();
    bool to_successor =
        pooler_.pause_mode == PauseMode::Suspended && session.console_by_same_uid && form == Form::Simple;
    if (to_successor) {
      answer.out.clear();  // the description is another there
      if (!hand_over_fds(pooler_, listening, session)) return session.close(fatal("cannot hand over all connections"));
      pooler_.is_handed_over = true;
      return finish(session, "SHOW", answer);
    }
    show_fds(pooler_, listening, table);
  }
  if (spec->name == "version") write_notice(answer.out, "00000", own_version_text());
  spec->fill(pooler_, table);
  table.write_rows(answer.out);
  finish(session, "SHOW", answer);
}

void Console::show_of_plugin(ClientSession& session, const ConsoleCommand& command, Form form, Answer& answer) {
  auto columns = columns_of_plugin_show(pooler_, command.argument);
  if (!columns) return unknown_command(session, command.text, answer);
  ResultTable table(*columns);
  if (form == Form::Describe) return table.write_description(answer.out);
  if (auto filled = fill_plugin_show(pooler_, command.argument, table); !filled)
    return fail(session, filled.error().to_client, answer);
  if (form != Form::Execute) table.write_description(answer.out);
  table.write_rows(answer.out);
  finish(session, "SHOW", answer);
}

void Console::help(Answer& answer) {
  std::string shows;
  auto add = [&shows](std::string_view name) {
    shows += shows.empty() ? "" : "|";
    for (char c : name) shows += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  };
  for (const auto& spec : show_specs()) add(spec.name);
  for (const std::string& name : names_of_plugin_shows(pooler_)) add(name);
  write_notice(answer.out, "00000", "Console usage",
               "\n\tSHOW HELP|" + shows +
                   "\n\tSET key = arg"
                   "\n\tRELOAD"
                   "\n\tPAUSE [<db>]"
                   "\n\tRESUME [<db>]"
                   "\n\tDISABLE <db>"
                   "\n\tENABLE <db>"
                   "\n\tRECONNECT [<db>]"
                   "\n\tKILL [<db>]"
                   "\n\tKILL_CLIENT <client_id>"
                   "\n\tSUSPEND"
                   "\n\tSHUTDOWN"
                   "\n\tSHUTDOWN WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS"
                   "\n\tWAIT_CLOSE [<db>]");
}

void Console::set(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  if (fixed_setting(command.argument) != nullptr) {
    write_notice(answer.out, "00000", "SET ignored");
    return finish(session, "SET", answer);
  }
  if (!session.is_console_admin()) return fail(session, "admin access needed", answer);
  auto next = config_with_option(pooler_.config, command.argument, command.value);
  if (!next) {
    log_line(LogLevel::Error, "%s", next.error().log_text().c_str());
    return fail(session, "SET failed", answer);
  }
  pooler_.apply_config(*next);
  if (!control_.options_changed(command.argument))
    write_notice(answer.out, "00000", "TLS settings could not be applied, still using old configuration");
  finish(session, "SET " + command.argument + "=" + command.value, answer);
}

void Console::reload(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  if (command.has_argument) return unknown_command(session, command.text, answer);
  log_line(LogLevel::Log, "RELOAD command issued");
  if (auto done = control_.reload(); !done)
    return fail(session, "RELOAD failed, see logs for additional details", answer, sqlstate::kReloadFailed);
  finish(session, "RELOAD", answer);
}

// ------------------------------------------------------------------ stopping and starting

void Console::log_command(const ConsoleCommand& command) const {
  std::string word;
  for (char c : command.word) word += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (command.has_argument)
    log_line(LogLevel::Log, "%s '%s' command issued", word.c_str(), command.argument.c_str());
  else
    log_line(LogLevel::Log, "%s command issued", word.c_str());
}

// The database the command names, or null after the error was written.
Database* Console::database_for(ClientSession& session, const ConsoleCommand& command, const char* verb,
                                Answer& answer) {
  std::unique_lock guard(pooler_.lock);
  Database* database = pooler_.find_database(command.argument);
  guard.unlock();
  if (database == nullptr) {
    fail(session, "no such database: " + command.argument, answer);
    return nullptr;
  }
  if (database->is_console) {
    fail(session, std::string("cannot ") + verb + " admin db: " + command.argument, answer);
    return nullptr;
  }
  return database;
}

void Console::pause(ClientSession& session, const ConsoleCommand& command, Form form, Answer& answer) {
  if (pooler_.pause_mode != PauseMode::None) return fail(session, "already suspended/paused", answer);
  log_command(command);
  Database* database = nullptr;
  if (command.has_argument && (database = database_for(session, command, "pause", answer)) == nullptr) return;
  waiting_forms_[session.id] = form;
  answer.is_later = true;
  database != nullptr ? lifecycle_.pause(*database, session.id) : lifecycle_.pause_all(session.id);
}

void Console::resume(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  log_command(command);
  if (command.has_argument) {
    Database* database = database_for(session, command, "resume", answer);
    if (database == nullptr) return;
    if (!database->is_paused) return fail(session, "database " + command.argument + " is not paused", answer);
    lifecycle_.resume(*database);
    return finish(session, "RESUME", answer);
  }
  // A shutdown that waits for clients would wait for ever for those that are held by an earlier PAUSE.
  bool holds_back = pooler_.shutdown_mode == ShutdownMode::WaitForClients && pooler_.pause_mode != PauseMode::None;
  if (pooler_.shutdown_mode != ShutdownMode::None && !holds_back)
    return fail(session, "pooler is shutting down", answer);
  if (!lifecycle_.resume_all()) return fail(session, "pooler is not paused/suspended", answer);
  finish(session, "RESUME", answer);
}

void Console::suspend(ClientSession& session, const ConsoleCommand& command, Form form, Answer& answer) {
  if (command.has_argument) return unknown_command(session, command.text, answer);
  if (pooler_.pause_mode != PauseMode::None) return fail(session, "already suspended/paused", answer);
  for (const auto& [name, database] : pooler_.databases)
    if (database->is_paused) return fail(session, "cannot suspend with paused databases", answer);
  log_command(command);
  waiting_forms_[session.id] = form;
  answer.is_later = true;
  lifecycle_.suspend(session.id);
}

void Console::shutdown(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  if (!command.has_argument) {
    log_line(LogLevel::Log, "SHUTDOWN command issued");
    answer.is_later = true;  // no answer: the end of the connection is one
    return lifecycle_.shut_down(ShutdownMode::Immediate);
  }
  ShutdownMode mode;
  if (iequals(command.argument, "wait_for_servers"))
    mode = ShutdownMode::WaitForServers;
  else if (iequals(command.argument, "wait_for_clients"))
    mode = ShutdownMode::WaitForClients;
  else
    return unknown_command(session, command.text, answer);
  log_line(LogLevel::Log, "SHUTDOWN %s command issued",
           mode == ShutdownMode::WaitForServers ? "WAIT_FOR_SERVERS" : "WAIT_FOR_CLIENTS");
  lifecycle_.shut_down(mode);
  finish(session, "SHUTDOWN", answer);
}

void Console::kill(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  if (pooler_.pause_mode != PauseMode::None) return fail(session, "already suspended/paused", answer);
  log_command(command);
  if (command.has_argument) {
    Database* database = database_for(session, command, "kill", answer);
    if (database == nullptr) return;
    kill_database(*database);
    return finish(session, "KILL", answer);
  }
  for (auto& [name, database] : pooler_.databases) {
    if (database->is_console || database->pools.empty()) continue;
    kill_database(*database);
  }
  finish(session, "KILL", answer);
}

void Console::kill_database(Database& database) {
  database.is_paused = true;
  for (auto& [name, pool] : database.pools) pool->welcome = nullptr;  // new logins wait, too, until RESUME
  pooler_.close_everything_of(database, "database removed");
}

void Console::kill_client(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  auto id = parse_c_int(command.argument);
  if (!id || *id <= 0) return fail(session, "invalid client pointer supplied", answer);
  ClientSession* victim = find(static_cast<std::uint64_t>(*id));
  if (victim == nullptr) return fail(session, "client not found", answer);
  log_command(command);
  victim->close(fatal("admin forced disconnect"));
  finish(session, "KILL_CLIENT", answer);
}

void Console::set_disabled(ClientSession& session, const ConsoleCommand& command, bool disabled, Answer& answer) {
  if (!command.has_argument) return fail(session, "a database is required", answer);
  log_command(command);
  Database* database = database_for(session, command, disabled ? "disable" : "enable", answer);
  if (database == nullptr) return;
  database->is_disabled = disabled;
  finish(session, disabled ? "DISABLE" : "ENABLE", answer);
}

void Console::disable(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  set_disabled(session, command, true, answer);
}

void Console::enable(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  set_disabled(session, command, false, answer);
}

void Console::reconnect(ClientSession& session, const ConsoleCommand& command, Form, Answer& answer) {
  log_command(command);
  Database* only = nullptr;
  if (command.has_argument && (only = database_for(session, command, "reconnect", answer)) == nullptr) return;
  pooler_.for_each_pool([&](Pool& p) {
    if (!p.database.is_console && (only == nullptr || &p.database == only)) pooler_.tag_dirty(p);
  });
  finish(session, "RECONNECT", answer);
}

void Console::wait_close(ClientSession& session, const ConsoleCommand& command, Form form, Answer& answer) {
  log_command(command);
  Database* only = nullptr;
  if (command.has_argument) {
    std::unique_lock guard(pooler_.lock);
    only = pooler_.find_database(command.argument);
    guard.unlock();
    if (only == nullptr) return fail(session, "no such database: " + command.argument, answer);
    if (only->is_console) return fail(session, "cannot wait in admin db: " + command.argument, answer);
  }
  waiting_forms_[session.id] = form;
  answer.is_later = true;
  lifecycle_.wait_close(only, session.id);
}

}  // namespace lokadb
