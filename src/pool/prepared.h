// Prepared statements of the protocol (Parse with a name) when clients share servers: one global table of statement
// texts, a map of names per client, and a bounded list of what each server has.
#pragma once

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

namespace lokadb {

// A text with its parameter types, as one Parse gave them. Immutable; shared by all clients and servers that use it,
// and forgotten when the last of them lets go.
class PreparedStatement {
 public:
  PreparedStatement(std::uint64_t number, Bytes body);
  std::uint64_t number() const { return number_; }
  const std::string& server_name() const { return server_name_; }  // what it is called on every server
  Bytes body() const { return body_; }                             // of the Parse after its name: query, types

 private:
  std::uint64_t number_;
  std::string server_name_;
  std::vector<std::byte> body_;
};
using StatementPtr = std::shared_ptr<const PreparedStatement>;

// The one object for this text and these types. Any thread.
StatementPtr intern_statement(Bytes body);
// The same under a number that servers know it by already: before anything was interned here (Handover).
StatementPtr adopt_statement(std::uint64_t number, Bytes body);
// Bytes held by all statements together, and their number (SHOW MEM).
std::size_t interned_statement_bytes();
std::size_t interned_statement_count();

// The names of one client.
class ClientStatements {
 public:
  // Null: unknown name.
  const StatementPtr& find(std::string_view name) const;
  void set(std::string_view name, StatementPtr statement);
  void remove(std::string_view name);
  // A name of the statement that servers know under this one; empty: none.
  std::string_view name_of(std::string_view server_name) const;
  // Calls fn(name, statement) for each, in any order.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& [name, statement] : names_) fn(name, statement);
  }
  void clear() { names_.clear(); }
  std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, StatementPtr, TextHash, std::equal_to<>> names_;
};

// What one server has prepared, least recently used first.
class ServerStatements {
 public:
  bool has(const PreparedStatement& statement) const { return places_.contains(statement.number()); }
  void touch(const PreparedStatement& statement);
  void add(StatementPtr statement);
  void remove(const PreparedStatement& statement);
  // The one unused for longest, or null.
  StatementPtr oldest() const { return order_.empty() ? nullptr : order_.front(); }
  // Calls fn(statement) for each, the one unused for longest first.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& statement : order_) fn(statement);
  }
  void clear();
  std::size_t size() const { return places_.size(); }

 private:
  std::list<StatementPtr> order_;
  std::unordered_map<std::uint64_t, std::list<StatementPtr>::iterator> places_;
};

}  // namespace lokadb
