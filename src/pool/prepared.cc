#include "pool/prepared.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace lokadb {

namespace {
// Begins the body of a statement made by SQL, and no Parse's, which would be an empty query with parameters.
constexpr std::string_view kSqlMark("\0SQL", 4);
}  // namespace

PreparedStatement::PreparedStatement(std::uint64_t number, std::uint64_t epoch, Bytes body, Residue residue)
    : number_(number),
      epoch_(epoch),
      server_name_("PGBOUNCER_" + std::to_string(number)),
      body_(body.begin(), body.end()),
      residue_(residue),
      has_settled_rows_(lokadb::has_settled_rows(as_text(body).substr(0, as_text(body).find('\0')))) {}

std::string_view PreparedStatement::sql_rest() const {
  std::string_view text = as_text(body_);
  return text.starts_with(kSqlMark) ? text.substr(kSqlMark.size()) : std::string_view();
}

namespace {

struct StatementTable {
  std::mutex mutex;
  // The key is a view into the statement's own bytes: each text is held once.
  std::unordered_map<std::string_view, std::weak_ptr<const PreparedStatement>> statements;
  std::uint64_t next_number = 1;
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::uint64_t> epoch{1};
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

// [table().mutex] held.
StatementPtr make(std::uint64_t number, Bytes body, const TrackedNames& tracked, Residue more) {
  StatementTable& t = table();
  std::string_view text = as_text(body);
  text = text.starts_with(kSqlMark) ? text.substr(kSqlMark.size()) : text.substr(0, text.find('\0'));
  auto residue = static_cast<Residue>(residue_of(text, tracked) | more);
  StatementPtr made(new PreparedStatement(number, t.epoch.load(std::memory_order_relaxed), body, residue), forget);
  t.bytes.fetch_add(body.size(), std::memory_order_relaxed);
  t.statements.emplace(as_text(made->body()), made);
  return made;
}

}  // namespace

StatementPtr intern_sql_statement(std::string_view rest, const TrackedNames& tracked) {
  std::string body(kSqlMark);
  body += rest;
  return intern_statement(as_bytes(body), tracked);
}

StatementPtr intern_statement(Bytes body, const TrackedNames& tracked, Residue more) {
  StatementTable& t = table();
  std::lock_guard lock(t.mutex);
  std::uint64_t epoch = t.epoch.load(std::memory_order_relaxed);
  auto it = t.statements.find(as_text(body));
  if (it != t.statements.end()) {
    auto there = it->second.lock();
    if (there && !there->is_retired() && there->epoch() == epoch) return there;
    t.statements.erase(it);  // its last owner is about to remove it, or it is of an epoch that has ended
  }
  return make(t.next_number++, body, tracked, more);
}

StatementPtr adopt_statement(std::uint64_t number, Bytes body, const TrackedNames& tracked, Residue more) {
  StatementTable& t = table();
  std::lock_guard lock(t.mutex);
  t.next_number = std::max(t.next_number, number + 1);
  return make(number, body, tracked, more);
}

void begin_statement_epoch() { table().epoch.fetch_add(1, std::memory_order_relaxed); }

std::size_t interned_statement_bytes() { return table().bytes.load(std::memory_order_relaxed); }

std::size_t interned_statement_count() {
  std::lock_guard lock(table().mutex);
  return table().statements.size();
}

const ClientStatements::Known& ClientStatements::look_up(std::string_view name) const {
  static const Known none;
  auto it = names_.find(name);
  return it == names_.end() ? none : it->second;
}

void ClientStatements::set(std::string_view name, StatementPtr statement, RowsMark rows) {
  Known known{std::move(statement), rows, nullptr};
  auto it = names_.find(name);
  if (it != names_.end())
    it->second = std::move(known);
  else
    names_.emplace(std::string(name), std::move(known));
}

StatementPtr ClientStatements::by_number(std::uint64_t number) const {
  for (const auto& [name, known] : names_)
    if (known.statement->number() == number) return known.statement;
  return nullptr;
}

bool ClientStatements::has_retired(std::uint64_t number) const {
  StatementPtr statement = by_number(number);
  return statement != nullptr && statement->is_retired();
}

void ClientStatements::set_rows(std::uint64_t number, RowsMark rows) {
  for (auto& [name, known] : names_)
    if (known.statement->number() == number) known.rows = rows;
}

void ClientStatements::set_types(std::uint64_t number, const ParameterTypes& types) {
  for (auto& [name, known] : names_)
    if (known.statement->number() == number) known.types = types;
}

void ClientStatements::replace(const PreparedStatement& old, const StatementPtr& by) {
  for (auto& [name, known] : names_)
    if (known.statement.get() == &old) known = {by, kUnknownRows, nullptr};
}

std::string_view ClientStatements::name_of(std::string_view server_name) const {
  for (const auto& [name, known] : names_)
    if (known.statement->server_name() == server_name) return name;
  return {};
}

void ClientStatements::remove(std::string_view name) {
  auto it = names_.find(name);
  if (it != names_.end()) names_.erase(it);
}

StatementPtr ServerStatements::find(std::uint64_t number) const {
  auto it = places_.find(number);
  return it == places_.end() ? nullptr : it->second->statement;
}

const ServerStatements::Entry* ServerStatements::use(const PreparedStatement& statement) {
  auto it = places_.find(statement.number());
  if (it == places_.end()) return nullptr;
  order_.splice(order_.end(), order_, it->second);
  return &*it->second;
}

void ServerStatements::add(StatementPtr statement, RowsMark rows) {
  if (use(*statement) != nullptr) return;
  std::uint64_t number = statement->number();
  order_.push_back({std::move(statement), rows});
  places_.emplace(number, std::prev(order_.end()));
}

void ServerStatements::set_rows(std::uint64_t number, RowsMark rows) {
  auto it = places_.find(number);
  if (it != places_.end()) it->second->rows = rows;
}

void ServerStatements::set_form(std::uint64_t number, RowsMark form) {
  auto it = places_.find(number);
  if (it != places_.end()) it->second->form = form;
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
