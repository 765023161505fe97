#include "cli/connection.h"

namespace lokadb::cli {

namespace {

void ignore_notice(void*, const PGresult*) {}

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string conninfo_value(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

Connection::Connection(const std::string& conninfo, const std::string& application_name)
    : connection_(nullptr, PQfinish) {
  const char* names[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
  const char* values[] = {conninfo.c_str(), application_name.c_str(), "UTF8", nullptr};
  connection_.reset(PQconnectdbParams(names, values, 1));
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw Failure{without_newline(PQerrorMessage(connection_.get())), kRefused, "08001"};
  PQsetNoticeReceiver(connection_.get(), ignore_notice, nullptr);
  // Whatever the role or the database has set. Without a search_path names are written, and read, with their schemas.
  run("SET search_path = ''; SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout "
      "= "
      "0; SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = on; SET "
      "quote_all_identifiers = off");
}

void Connection::fail(const PGresult* result, const std::string& doing) const {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  std::string text = message != nullptr ? message : without_newline(PQerrorMessage(connection_.get()));
  if (const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL)) text += std::string(" (") + detail + ")";
  // Refusals of ours say all there is to say.
  if (state != nullptr && std::string_view(state) == "53100")
    text = "the disk of " + database() + " at " + host() + ":" + port() + " is full (" + text + ")";
  else if (state == nullptr || std::string_view(state) != "LK002")
    text += doing.empty() ? "" : " [" + doing + "]";
  throw Failure{text, kRefused, state != nullptr ? state : "08006"};
}

Rows Connection::query(const std::string& sql, const std::vector<Value>& parameters) {
  std::vector<const char*> values;
  for (const Value& p : parameters) values.push_back(p ? p->c_str() : nullptr);
  PGresult* result = PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(values.size()), nullptr,
                                  values.data(), nullptr, nullptr, 0);
  Rows rows(result);
  ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail(result, sql.substr(0, 120));
  return rows;
}

std::string Connection::value(const std::string& sql, const std::vector<Value>& parameters) {
  Rows rows = query(sql, parameters);
  return rows.size() > 0 ? rows.get(0, 0) : std::string();
}

void Connection::run(const std::string& script) {
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_.get(), script.c_str()), PQclear);
  ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail(result.get(), script.substr(0, 120));
}

void Connection::begin_copy_in(const std::string& sql) {
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_.get(), sql.c_str()), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COPY_IN) fail(result.get(), sql);
}

void Connection::put(const char* data, int size) {
  if (PQputCopyData(connection_.get(), data, size) != 1)
    throw Failure{without_newline(PQerrorMessage(connection_.get())), kRefused, "08006"};
}

void Connection::end_copy_in() {
  PQputCopyEnd(connection_.get(), nullptr);
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQgetResult(connection_.get()), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) fail(result.get(), "COPY");
  while (PGresult* more = PQgetResult(connection_.get())) PQclear(more);
}

void Connection::begin_copy_out(const std::string& sql) {
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_.get(), sql.c_str()), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COPY_OUT) fail(result.get(), sql);
}

std::optional<Connection::Chunk> Connection::next() {
  char* data = nullptr;
  int size = PQgetCopyData(connection_.get(), &data, 0);
  if (size >= 0) return Chunk{{data, PQfreemem}, size};
  if (size == -2) throw Failure{without_newline(PQerrorMessage(connection_.get())), kRefused, "08006"};
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQgetResult(connection_.get()), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) fail(result.get(), "COPY");
  while (PGresult* more = PQgetResult(connection_.get())) PQclear(more);
  return std::nullopt;
}

std::string Connection::quoted(const std::string& identifier) const {
  char* text = PQescapeIdentifier(connection_.get(), identifier.data(), identifier.size());
  std::string result = text != nullptr ? text : "";
  PQfreemem(text);
  return result;
}

std::string Connection::encrypted_password(const std::string& role, const std::string& password) {
  char* text = PQencryptPasswordConn(connection_.get(), password.c_str(), role.c_str(), "scram-sha-256");
  if (text == nullptr) throw Failure{without_newline(PQerrorMessage(connection_.get()))};
  std::string result = text;
  PQfreemem(text);
  return result;
}

std::string Connection::text_array(const std::vector<std::string>& texts) {
  std::string array = "{}";
  for (const std::string& text : texts) array = value("SELECT array_append($1::text[], $2::text)", {array, text});
  return array;
}

std::string Connection::literal(const std::string& text) const {
  char* escaped = PQescapeLiteral(connection_.get(), text.data(), text.size());
  std::string result = escaped != nullptr ? escaped : "";
  PQfreemem(escaped);
  return result;
}

}  // namespace lokadb::cli
