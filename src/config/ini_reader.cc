#include "config/ini_reader.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace lokadb {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_key_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c != '\0' && std::strchr("_.*-", c));
}

// The value of a line that was refused, as the log may show it: connection strings hold passwords.
std::string_view printable(std::string_view value) {
  return lower(value).find("password") == std::string::npos ? value : "...";
}

// One file. `depth` counts the files it is inside of.
class IniFile {
 public:
  IniFile(const std::string& path, int depth, const IniSource& source, IniHandler& handler, Faults& faults)
      : path_(path), depth_(depth), source_(source), handler_(handler), faults_(faults) {}
  bool read();

 private:
  bool read_line();
  bool read_section();
  bool read_value();
  bool read_include();
  std::optional<std::string> read_key();

  void skip_blanks() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
  }
  bool fail(std::string text) {
    faults_.push_back(std::move(text));
    return false;
  }
  std::string place() const { return "in configuration (" + path_ + ":" + std::to_string(line_number_) + ")"; }
  bool syntax_error() { return fail("syntax error " + place() + ", stopping loading"); }

  const std::string& path_;
  const int depth_;
  const IniSource& source_;
  IniHandler& handler_;
  Faults& faults_;
  std::string_view line_;  // into the text that read() keeps; right-trimmed
  std::size_t at_ = 0;     // within line_
  int line_number_ = 0;
};

bool IniFile::read() {
  if (depth_ > kMostIncludes)
    return fail("include nesting level too deep (" + path_ + "), maximum is " + std::to_string(kMostIncludes));
  std::string why;
  auto text = source_(path_, why);
  if (!text) return fail("could not load file \"" + path_ + "\": " + why);
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find('\n'), rest.size());
    line_ = rtrim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    at_ = 0;
    ++line_number_;
    if (!read_line()) return false;
  }
  return true;
}

bool IniFile::read_line() {
  for (;;) {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
    if (at_ == line_.size() || line_[at_] == ';' || line_[at_] == '#') return true;
    if (line_[at_] != '[') break;
    if (!read_section()) return false;  // what follows the ] counts as if on a line of its own
  }
  // A zero byte would end the text for everybody who passes it on as a C string.
  if (line_.find('\0') != std::string_view::npos) return syntax_error();
  constexpr std::string_view kInclude = "%include";
  auto rest = line_.substr(at_);
  if (rest.starts_with(kInclude) && rest.size() > kInclude.size() && is_blank(rest[kInclude.size()])) {
    at_ += kInclude.size();
    return read_include();
  }
  return read_value();
}

bool IniFile::read_section() {
  std::size_t end = line_.find(']', at_);
  if (end == std::string_view::npos) return syntax_error();
  auto name = line_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  handler_.at(path_, line_number_);
  if (handler_.section(name, faults_)) return true;
  return fail("invalid section \"" + std::string(name) + "\" " + place());
}

bool IniFile::read_include() {
  skip_blanks();
  std::string path(line_.substr(at_));
  return IniFile(path, depth_ + 1, source_, handler_, faults_).read();
}

// A plain or a quoted name. PgBouncer's manual has double quotes and its code single ones: both are taken, and the
// quote doubled stands for itself.
std::optional<std::string> IniFile::read_key() {
  std::string key;
  char quote = line_[at_];
  if (quote != '\'' && quote != '"') {
    while (at_ < line_.size() && is_key_char(line_[at_])) key += line_[at_++];
    return key;
  }
  for (++at_; at_ < line_.size(); ++at_) {
    if (line_[at_] == quote) {
      ++at_;
      if (at_ == line_.size() || line_[at_] != quote) return key;
    }
    key += line_[at_];
  }
  return std::nullopt;
}

bool IniFile::read_value() {
  auto key = read_key();
  if (!key) return syntax_error();
  skip_blanks();
  if (at_ == line_.size() || line_[at_] != '=') return syntax_error();
  ++at_;
  skip_blanks();
  auto value = line_.substr(at_);
  handler_.at(path_, line_number_);
  if (handler_.value(*key, value, faults_)) return true;
  return fail("invalid value \"" + std::string(printable(value)) + "\" for parameter " + *key + " " + place());
}

}  // namespace

bool read_ini(const std::string& path, const IniSource& source, IniHandler& handler, Faults& faults) {
  return IniFile(path, 0, source, handler, faults).read();
}

}  // namespace lokadb
