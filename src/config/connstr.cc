#include "config/connstr.h"

#include "base/text.h"

namespace lokadb {

std::optional<ConnPair> ConnString::fail() {
  failed_ = true;
  rest_ = {};
  return std::nullopt;
}

void ConnString::skip_blanks() {
  while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
}

std::optional<ConnPair> ConnString::next() {
  skip_blanks();
  if (rest_.empty()) return std::nullopt;
  std::size_t end = 0;
  while (end < rest_.size() && rest_[end] != '=' && !is_space(rest_[end])) ++end;
  auto key = rest_.substr(0, end);
  rest_.remove_prefix(end);
  skip_blanks();
  if (key.empty() || rest_.empty() || rest_.front() != '=') return fail();
  rest_.remove_prefix(1);
  skip_blanks();
  auto value = take_value();
  if (!value || value->empty()) return fail();
  return ConnPair{key, *std::move(value)};
}

std::optional<std::string> ConnString::take_value() {
  std::string value;
  if (!rest_.starts_with('\'')) {
    while (!rest_.empty() && !is_space(rest_.front())) {
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    return value;
  }
  for (rest_.remove_prefix(1); !rest_.empty(); rest_.remove_prefix(1)) {
    if (rest_.front() == '\'') {
      rest_.remove_prefix(1);
      // Text glued to the closing quote is a slip: refused, where PgBouncer swallows one character of it.
      if (rest_.empty() || is_space(rest_.front())) return value;
      if (rest_.front() != '\'') return std::nullopt;
    }
    value += rest_.front();
  }
  return std::nullopt;
}

}  // namespace lokadb
