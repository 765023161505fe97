#include "config/userlist.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "config/file.h"

namespace lokadb {

namespace {

constexpr char kBroken[] = "broken auth file";

void skip_line(std::string_view& rest) {
  while (!rest.empty() && rest.front() != '\n') rest.remove_prefix(1);
}

// The text in quotes at the start of `rest`, which moves behind it. nullopt: no quote, no end, or a zero byte inside
// (passwords travel as zero-terminated strings, so it could never match). A quoted text may span lines.
std::optional<std::string> take_quoted(std::string_view& rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  std::string out;
  for (rest.remove_prefix(1); !rest.empty(); rest.remove_prefix(1)) {
    if (rest.front() == '"') {
      if (!rest.starts_with("\"\"")) {
        rest.remove_prefix(1);
        return out;
      }
      rest.remove_prefix(1);
    }
    if (rest.front() == '\0') return std::nullopt;
    out += rest.front();
  }
  return std::nullopt;
}

// One line that is neither empty nor a comment. Returns the fault, or nullptr.
const char* read_user(std::string_view& rest, Userlist& list) {
  auto name = take_quoted(rest);
  if (!name) return kBroken;
  if (name->size() > kLongestUserName) return "username too long in auth file";
  // PgBouncer looks for the password over line ends too, and so takes the next user's name for one.
  while (!rest.empty() && rest.front() != '"' && rest.front() != '\n') rest.remove_prefix(1);
  auto password = take_quoted(rest);
  if (!password) return kBroken;
  if (password->size() > kLongestPassword) return "password too long in auth file";
  list.secrets.insert_or_assign(*std::move(name), *std::move(password));
  skip_line(rest);
  return nullptr;
}

}  // namespace

UserlistText parse_userlist(std::string_view text) {
  UserlistText result;
  while (!text.empty()) {
    if (is_space(text.front())) {
      text.remove_prefix(1);
    } else if (text.front() == ';') {
      skip_line(text);
    } else if (const char* fault = read_user(text, result.list)) {
      result.fault = fault;
      break;
    }
  }
  return result;
}

std::optional<Userlist> load_userlist(const std::string& path) {
  std::string why;
  auto text = read_file(path, why);
  if (!text) {
    log_line(LogLevel::Error, "could not open auth_file %s: %s", path.c_str(), why.c_str());
    return std::nullopt;
  }
  log_line(LogLevel::Debug, "loading auth_file: \"%s\"", path.c_str());
  auto parsed = parse_userlist(*text);
  if (!parsed.fault.empty()) log_line(LogLevel::Error, "%s", parsed.fault.c_str());
  return std::move(parsed.list);
}

}  // namespace lokadb
