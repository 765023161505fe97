// The words of one line of an HBA or ident file: blanks part them, commas are words of their own, "quotes" make any
// text one literal word (a quote inside is doubled), # begins a comment. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lokadb {

struct LineWord {
  enum class Kind { End, Comma, Plain, Quoted } kind = Kind::End;
  std::string text;
  bool is_glued = false;  // follows the word before it without a blank: map="x y" is two words, the second glued

  // The keyword itself; in quotes it would be a name.
  bool is(std::string_view keyword) const { return kind == Kind::Plain && text == keyword; }
  bool is_end() const { return kind == Kind::End; }
  bool is_comma() const { return kind == Kind::Comma; }
  bool is_name() const { return kind == Kind::Plain || kind == Kind::Quoted; }
};

class LineWords {
 public:
  explicit LineWords(std::string_view line) : rest_(line) { advance(); }

  const LineWord& peek() const { return word_; }
  LineWord take();
  // The next word and all that is glued to it as one text; nullopt: it is not a plain word.
  std::optional<std::string> take_joined();
  // A quote without an end, or a zero byte: the line means nothing. All words are over then.
  bool is_broken() const { return is_broken_; }

 private:
  void advance();
  void read_quoted();
  void read_plain();
  void give_up();

  std::string_view rest_;
  LineWord word_;
  bool is_broken_ = false;
};

// Cuts the first line off `text`, without its line end.
std::string_view take_line(std::string_view& text);

}  // namespace lokadb
