// The little language of the console: CMD [ARG] [;] and SET key = value [;].
#include <optional>

#include "admin/console.h"
#include "base/text.h"

namespace lokadb {

namespace {

bool is_word_char(char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

class Scanner {
 public:
  explicit Scanner(std::string_view s) : rest_(s) { skip_space(); }

  bool at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    skip_space();
    return true;
  }
  // [0-9A-Za-z_]+; empty: none here.
  std::string_view word() {
    std::size_t n = 0;
    while (n < rest_.size() && is_word_char(rest_[n])) ++n;
    std::string_view w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    skip_space();
    return w;
  }
  // Between two quotes of this kind, doubled ones standing for one.
  std::optional<std::string> quoted(char quote) {
    if (rest_.empty() || rest_.front() != quote) return std::nullopt;
    std::string out;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] != quote) {
        out += rest_[i];
        continue;
      }
      if (i + 1 < rest_.size() && rest_[i + 1] == quote) {
        out += quote;
        ++i;
        continue;
      }
      rest_.remove_prefix(i + 1);
      skip_space();
      return out;
    }
    return std::nullopt;
  }
  // A word, or anything between double quotes; what is quoted and empty stands for none.
  std::string name() {
    if (auto text = quoted('"')) return *text;
    return std::string(word());
  }

 private:
  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

std::optional<ConsoleCommand> parse_set(Scanner& in, ConsoleCommand command) {
  command.argument = in.name();
  command.has_argument = true;
  if (command.argument.empty()) return std::nullopt;
  if (!in.take('=') && !iequals(in.word(), "to")) return std::nullopt;
  if (auto text = in.quoted('\'')) {
    command.value = *text;
  } else if (auto name = in.quoted('"')) {
    command.value = *name;
  } else {
    // A value written bare may also be a number with a fraction, a list of names with dots and dashes, and the like.
    command.value = in.word();
    if (command.value.empty()) return std::nullopt;
    while (in.take('.')) command.value += "." + std::string(in.word());
  }
  in.take(';');
  return in.at_end() ? std::optional(command) : std::nullopt;
}

}  // namespace

std::optional<ConsoleCommand> parse_console_command(std::string_view sql) {
  Scanner in(sql);
  ConsoleCommand command;
  command.word = lower(in.word());
  if (command.word.empty()) return std::nullopt;
  if (command.word == "set") return parse_set(in, std::move(command));
  command.argument = in.name();
  command.has_argument = !command.argument.empty();
  in.take(';');
  if (!in.at_end()) return std::nullopt;
  return command;
}

}  // namespace lokadb
