// Prepared statements of the protocol (Parse with a name) when clients share servers: one global table of statement
// texts, a map of names per client, and a bounded list of what each server has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "pool/rows_mark.h"
#include "pool/session_residue.h"

namespace lokadb {

// A text with its parameter types, as one Parse gave them. Immutable; shared by all clients and servers that use it,
// and forgotten when the last of them lets go.
class PreparedStatement {
 public:
  PreparedStatement(std::uint64_t number, std::uint64_t epoch, Bytes body, Residue residue);
  std::uint64_t number() const { return number_; }
  const std::string& server_name() const { return server_name_; }  // what it is called on every server
  Bytes body() const { return body_; }                             // of the Parse after its name: query, types
  Residue residue() const { return residue_; }                     // of running it
  bool has_settled_rows() const { return has_settled_rows_; }
  // Made by SQL PREPARE: what stands behind the name there. Empty: by Parse.
  std::string_view sql_rest() const;
  // The rows may be others since then: whoever prepares the same text gets another object.
  std::uint64_t epoch() const { return epoch_; }
  // A server has said that the rows are others now: no server is to prepare it anew, for clients who know the old ones.
  bool is_retired() const { return is_retired_.load(std::memory_order_relaxed); }
  void retire() const { is_retired_.store(true, std::memory_order_relaxed); }

 private:
  std::uint64_t number_;
  std::uint64_t epoch_;
  mutable std::atomic<bool> is_retired_{false};
  std::string server_name_;
  std::vector<std::byte> body_;
  Residue residue_;
  bool has_settled_rows_;
};
using StatementPtr = std::shared_ptr<const PreparedStatement>;

// Type OIDs as a ParameterDescription has them.
using ParameterTypes = std::shared_ptr<const std::vector<std::uint32_t>>;

// The one object for this text and these types. Any thread.
StatementPtr intern_statement(Bytes body, const TrackedNames& tracked, Residue more = residue::kNone);
// The same for a statement of SQL PREPARE, of which `rest` stands behind the name.
StatementPtr intern_sql_statement(std::string_view rest, const TrackedNames& tracked);
// One under a number that servers know it by already (Handover). It is always a new object: one text may have several.
StatementPtr adopt_statement(std::uint64_t number, Bytes body, const TrackedNames& tracked, Residue more);
// Tables may have changed, in whichever database: a statement that is interned from now on is a new object.
void begin_statement_epoch();
// Bytes held by all statements together, and their number (SHOW MEM).
std::size_t interned_statement_bytes();
std::size_t interned_statement_count();

// The names of one client.
class ClientStatements {
 public:
  struct Known {
    StatementPtr statement;
    RowsMark rows = kUnknownRows;  // what the client was told of them
    ParameterTypes types;          // what it was told of its parameters; null: nothing
  };
  // Its statement is null: unknown name.
  const Known& look_up(std::string_view name) const;
  const StatementPtr& find(std::string_view name) const { return look_up(name).statement; }
  void set(std::string_view name, StatementPtr statement, RowsMark rows = kUnknownRows);
  void remove(std::string_view name);
  StatementPtr by_number(std::uint64_t number) const;  // null: none; looks at all
  bool has_retired(std::uint64_t number) const;
  // For all names of the statement.
  void set_rows(std::uint64_t number, RowsMark rows);
  void set_types(std::uint64_t number, const ParameterTypes& types);
  // All its names are those of the other one now.
  void replace(const PreparedStatement& old, const StatementPtr& by);
  // A name of the statement that servers know under this one; empty: none.
  std::string_view name_of(std::string_view server_name) const;
  // Calls fn(name, known) for each, in any order.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& [name, known] : names_) fn(name, known);
  }
  void clear() { names_.clear(); }
  std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, Known, TextHash, std::equal_to<>> names_;
};

// What one server has prepared, least recently used first.
class ServerStatements {
 public:
  struct Entry {
    StatementPtr statement;
    RowsMark rows;
    RowsMark form = kUnknownRows;  // form_of_statement
  };
  bool has(const PreparedStatement& statement) const { return places_.contains(statement.number()); }
  // Null: not here.
  StatementPtr find(std::uint64_t number) const;
  // Marks it used; null: not here. Valid until the next change.
  const Entry* use(const PreparedStatement& statement);
  void add(StatementPtr statement, RowsMark rows = kUnknownRows);
  void set_rows(std::uint64_t number, RowsMark rows);
  void set_form(std::uint64_t number, RowsMark form);
  void remove(const PreparedStatement& statement);
  // The one unused for longest, or null.
  StatementPtr oldest() const { return order_.empty() ? nullptr : order_.front().statement; }
  // Calls fn(entry) for each, the one unused for longest first.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& entry : order_) fn(entry);
  }
  void clear();
  std::size_t size() const { return places_.size(); }

 private:
  std::list<Entry> order_;
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> places_;
};

}  // namespace lokadb
