#include "pool/handover_state.h"

#include <algorithm>

#include "config/config.h"

namespace lokadb {

std::string origin_of(const DatabaseConfig& c) {
  std::string hosts;
  for (const auto& host : c.hosts) hosts += host + ",";
  return c.dbname + "|" + hosts + "|" + std::to_string(c.port) + "|" + c.user.value_or("") + "|" +
         c.connect_query.value_or("");
}

bool has_our_format(Bytes state) {
  StateWriter out;
  out.text(kHandoverFormat);
  return as_text(state).starts_with(out.take());
}

void StateWriter::parameters(const TrackedNames& names, const ParameterSetPtr& set) {
  const ParameterValues& values = set->values();
  number(static_cast<std::uint64_t>(
      std::count_if(values.begin(), values.end(), [](const auto& v) { return v.has_value(); })));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    text(names.name(i));
    text(*values[i]);
  }
}

void StateWriter::pairs(const TextPairs& all) {
  number(all.size());
  for (const auto& [first, second] : all) {
    text(first);
    text(second);
  }
}

void StateWriter::names(const TrackedNames& names, const std::vector<bool>& which) {
  number(static_cast<std::uint64_t>(std::count(which.begin(), which.end(), true)));
  for (std::size_t i = 0; i < which.size(); ++i)
    if (which[i]) text(names.name(i));
}

void StateWriter::statement(const StatementPtr& statement) {
  number(statement != nullptr ? statement->number() : 0);
  if (statement == nullptr) return;
  bytes(statement->body());
  number(statement->residue());
  flag(statement->is_retired());
}

void StateWriter::keys(const std::optional<ScramKeys>& keys) {
  flag(keys.has_value());
  if (!keys) return;
  bytes(keys->client_key);
  bytes(keys->server_key);
}

Bytes StateReader::take(std::uint64_t n) {
  if (failed_ || n > rest_.size()) {
    failed_ = true;
    return {};
  }
  Bytes head = rest_.first(static_cast<std::size_t>(n));
  rest_ = rest_.subspan(static_cast<std::size_t>(n));
  return head;
}

std::uint64_t StateReader::number() {
  Bytes b = take(8);
  return b.empty() ? 0 : static_cast<std::uint64_t>(load_u32(b.data())) << 32 | load_u32(b.data() + 4);
}

bool StateReader::flag() {
  Bytes b = take(1);
  return !b.empty() && b[0] != std::byte{0};
}

std::string StateReader::text() { return std::string(as_text(take(number()))); }

std::vector<std::byte> StateReader::bytes() {
  Bytes b = take(number());
  return {b.begin(), b.end()};
}

ParameterSetPtr StateReader::parameters() {
  ParameterValues values(tracked_.size());
  for (std::uint64_t count = number(); count > 0 && ok(); --count) {
    std::string name = text(), value = text();
    if (auto index = tracked_.index(name)) values[*index] = std::move(value);
  }
  return intern_parameters(std::move(values));
}

TextPairs StateReader::pairs() {
  TextPairs all;
  for (std::uint64_t count = number(); count > 0 && ok(); --count) {
    std::string first = text();
    all.emplace_back(std::move(first), text());
  }
  return all;
}

std::vector<bool> StateReader::names() {
  std::vector<bool> which(tracked_.size());
  for (std::uint64_t count = number(); count > 0 && ok(); --count)
    if (auto index = tracked_.index(text())) which[*index] = true;
  return which;
}

StatementPtr StateReader::statement() {
  std::uint64_t n = number();
  if (n == 0) return nullptr;
  std::vector<std::byte> body = bytes();
  auto residue = static_cast<Residue>(number());
  bool is_retired = flag();
  if (!ok()) return nullptr;
  StatementPtr& there = adopted_[n];
  if (there == nullptr) there = adopt_statement(n, body, tracked_, residue);
  if (is_retired) there->retire();
  return there;
}

std::optional<ScramKeys> StateReader::keys() {
  if (!flag()) return std::nullopt;
  ScramKeys keys{};
  std::vector<std::byte> client = bytes(), server = bytes();
  if (client.size() != keys.client_key.size() || server.size() != keys.server_key.size()) {
    failed_ = true;
    return std::nullopt;
  }
  std::copy(client.begin(), client.end(), keys.client_key.begin());
  std::copy(server.begin(), server.end(), keys.server_key.begin());
  return keys;
}

}  // namespace lokadb
