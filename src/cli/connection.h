// A connection to a PostgreSQL server by libpq. Used by one thread at a time.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"

namespace lokadb::cli {

class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  int columns() const { return PQnfields(result_.get()); }
  std::string name(int column) const { return PQfname(result_.get(), column); }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::string get(int row, int column) const { return PQgetvalue(result_.get(), row, column); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

using Value = std::optional<std::string>;

// A value of a connection string, quoted.
std::string conninfo_value(const std::string& text);

class Connection {
 public:
  // conninfo: connection string or URI; passwords come from libpq's usual places. Throws Failure.
  Connection(const std::string& conninfo, const std::string& application_name);

  // One statement. Parameters are texts. Throws Failure with the server's message and SQLSTATE.
  Rows query(const std::string& sql, const std::vector<Value>& parameters = {});
  // The only value of the first row; empty if it is null or there is none.
  std::string value(const std::string& sql, const std::vector<Value>& parameters = {});
  // Any number of statements, without parameters.
  void run(const std::string& script);

  // COPY FROM STDIN: begin, data, end.
  void begin_copy_in(const std::string& sql);
  void put(const char* data, int size);
  void end_copy_in();
  // COPY TO STDOUT: begin, then next() until it gives nothing.
  void begin_copy_out(const std::string& sql);
  struct Chunk {
    std::unique_ptr<char, void (*)(void*)> data;
    int size;
  };
  std::optional<Chunk> next();

  int version() const { return PQserverVersion(connection_.get()); }
  std::string host() const { return PQhost(connection_.get()); }
  std::string port() const { return PQport(connection_.get()); }
  std::string database() const { return PQdb(connection_.get()); }
  std::string quoted(const std::string& identifier) const;
  std::string literal(const std::string& text) const;
  // What the server keeps of a password (SCRAM), so that the password itself is in no statement and no log.
  std::string encrypted_password(const std::string& role, const std::string& password);
  // As a value of type text[].
  std::string text_array(const std::vector<std::string>& texts);

 private:
  [[noreturn]] void fail(const PGresult* result, const std::string& doing) const;
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

// Runs the block in a transaction, COMMIT included; ROLLBACK if it throws.
template <class Block>
void in_transaction(Connection& connection, Block&& block) {
  connection.run("BEGIN");
  try {
    block();
    connection.run("COMMIT");
  } catch (...) {
    try {
      connection.run("ROLLBACK");
    } catch (const Failure&) {  // the connection is gone, and the transaction with it
    }
    throw;
  }
}

}  // namespace lokadb::cli
