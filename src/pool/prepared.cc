#include "pool/prepared.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace lokadb {

PreparedStatement::PreparedStatement(std::uint64_t number, Bytes body)
    : number_(number), server_name_("PGBOUNCER_" + std::to_string(number)), body_(body.begin(), body.end()) {}

namespace {

struct StatementTable {
  std::mutex mutex;
  // The key is a view into the statement's own bytes: each text is held once.
  std::unordered_map<std::string_view, std::weak_ptr<const PreparedStatement>> statements;
  std::uint64_t next_number = 1;
  std::atomic<std::size_t> bytes{0};
};
StatementTable& table() {
  static StatementTable* t = new StatementTable;  // statements may outlive main's objects
  return *t;
}

void forget(const PreparedStatement* statement) {
  {
    std::lock_guard lock(table().mutex);
    auto it = table().statements.find(as_text(statement->body()));
    // Somebody may have interned the text anew already: then the key belongs to the new one.
    if (it != table().statements.end() && it->first.data() == as_text(statement->body()).data())
      table().statements.erase(it);
  }
  table().bytes.fetch_sub(statement->body().size(), std::memory_order_relaxed);
  delete statement;
}

}  // namespace

namespace {

// number 0: the next one.
StatementPtr find_or_make(std::uint64_t number, Bytes body) {
  StatementTable& t = table();
  std::lock_guard lock(t.mutex);
  auto it = t.statements.find(as_text(body));
  if (it != t.statements.end()) {
    if (auto there = it->second.lock()) return there;
    t.statements.erase(it);  // its last owner is about to remove it
  }
  if (number == 0) number = t.next_number;
  t.next_number = std::max(t.next_number, number + 1);
  StatementPtr made(new PreparedStatement(number, body), forget);
  t.bytes.fetch_add(body.size(), std::memory_order_relaxed);
  t.statements.emplace(as_text(made->body()), made);
  return made;
}

}  // namespace

StatementPtr intern_statement(Bytes body) { return find_or_make(0, body); }

StatementPtr adopt_statement(std::uint64_t number, Bytes body) { return find_or_make(number, body); }

std::size_t interned_statement_bytes() { return table().bytes.load(std::memory_order_relaxed); }

std::size_t interned_statement_count() {
  std::lock_guard lock(table().mutex);
  return table().statements.size();
}

const StatementPtr& ClientStatements::find(std::string_view name) const {
  static const StatementPtr none;
  auto it = names_.find(name);
  return it == names_.end() ? none : it->second;
}

void ClientStatements::set(std::string_view name, StatementPtr statement) {
  auto it = names_.find(name);
  if (it != names_.end())
    it->second = std::move(statement);
  else
    names_.emplace(std::string(name), std::move(statement));
}

std::string_view ClientStatements::name_of(std::string_view server_name) const {
  for (const auto& [name, statement] : names_)
    if (statement->server_name() == server_name) return name;
  return {};
}

void ClientStatements::remove(std::string_view name) {
  auto it = names_.find(name);
  if (it != names_.end()) names_.erase(it);
}

void ServerStatements::touch(const PreparedStatement& statement) {
  auto it = places_.find(statement.number());
  if (it != places_.end()) order_.splice(order_.end(), order_, it->second);
}

void ServerStatements::add(StatementPtr statement) {
  std::uint64_t number = statement->number();
  if (places_.contains(number)) return touch(*statement);
  order_.push_back(std::move(statement));
  places_.emplace(number, std::prev(order_.end()));
}

void ServerStatements::remove(const PreparedStatement& statement) {
  auto it = places_.find(statement.number());
  if (it == places_.end()) return;
  auto place = it->second;
  places_.erase(it);
  order_.erase(place);
}

void ServerStatements::clear() {
  places_.clear();
  order_.clear();
}

}  // namespace lokadb
