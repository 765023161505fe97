#include "config/line_words.h"

#include <utility>

#include "base/text.h"

namespace lokadb {

LineWord LineWords::take() {
  LineWord taken = std::move(word_);
  advance();
  return taken;
}

std::optional<std::string> LineWords::take_joined() {
  if (word_.kind != LineWord::Kind::Plain) return std::nullopt;
  std::string all = take().text;
  while (word_.is_name() && word_.is_glued) all += take().text;
  return all;
}

void LineWords::advance() {
  std::size_t before = rest_.size();
  while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  word_ = LineWord();
  word_.is_glued = rest_.size() == before;
  if (rest_.empty() || rest_.front() == '#') return;
  if (rest_.front() == '"') return read_quoted();
  if (rest_.front() != ',') return read_plain();
  word_.kind = LineWord::Kind::Comma;
  rest_.remove_prefix(1);
}

void LineWords::read_quoted() {
  word_.kind = LineWord::Kind::Quoted;
  for (rest_.remove_prefix(1); !rest_.empty() && rest_.front() != '\0'; rest_.remove_prefix(1)) {
    if (rest_.front() == '"') {
      if (!rest_.starts_with("\"\"")) {
        rest_.remove_prefix(1);
        return;
      }
      rest_.remove_prefix(1);
    }
    word_.text += rest_.front();
  }
  give_up();
}

void LineWords::read_plain() {
  word_.kind = LineWord::Kind::Plain;
  while (!rest_.empty() && !is_space(rest_.front()) && std::string_view(",#\"").find(rest_.front()) == rest_.npos) {
    if (rest_.front() == '\0') return give_up();
    word_.text += rest_.front();
    rest_.remove_prefix(1);
  }
}

void LineWords::give_up() {
  is_broken_ = true;
  rest_ = {};
  word_ = LineWord();
}

std::string_view take_line(std::string_view& text) {
  auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace lokadb
