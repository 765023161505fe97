#include "unread.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/text.h"
#include "sql/lexer.h"

namespace lokadb::router {

namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

template <class List>
bool is_one_of(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

std::string first_word(std::string_view text) {
  sql::Lexer lexer(text);
  sql::Token token = lexer.next();
  while (token.kind == sql::TokenKind::Comment) token = lexer.next();
  return lower(text.substr(token.start, token.end - token.start));
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || (c & 0x80) != 0;
}

bool has_word(std::string_view low, std::string_view word) {
  for (std::size_t i = low.find(word); i != low.npos; i = low.find(word, i + 1)) {
    std::size_t end = i + word.size();
    if ((i == 0 || !is_word_byte(low[i - 1])) && (end == low.size() || !is_word_byte(low[end]))) return true;
  }
  return false;
}

// Behind the first ';' from here.
bool has_more(std::string_view text) {
  std::size_t end = text.find(';');
  return end != text.npos && text.find_first_not_of(std::string(kBlanks) + ';', end) != text.npos;
}

bool begins_with_word(std::string_view low, std::string_view word) {
  return low.starts_with(word) && (low.size() == word.size() || !is_word_byte(low[word.size()]));
}

constexpr std::string_view kEnds[] = {"commit", "rollback", "end", "abort", "prepare"};
// Commands of sessions and transactions.
constexpr std::string_view kHarmless[] = {"",        "begin",     "start",   "commit",     "end",   "rollback",
                                          "abort",   "savepoint", "release", "set",        "reset", "show",
                                          "discard", "listen",    "close",   "deallocate", ";",     "unlisten"};
// Of which some cannot run in a transaction, or change what they are in charge of alone.
constexpr std::string_view kNoQuery[] = {"vacuum",  "analyze", "analyse", "cluster",    "reindex",  "alter", "drop",
                                         "comment", "grant",   "revoke",  "checkpoint", "security", "load",  "notify"};

}  // namespace

bool may_read_tables(std::string_view text) {
  if (begins_with_modes(text)) return false;
  if (has_more(text)) return true;
  std::string first = first_word(text);
  if (is_one_of(kHarmless, first) || is_one_of(kNoQuery, first)) return false;
  return first != "create" || has_word(lower(text), "as");
}

bool may_touch_tables(std::string_view text) { return has_more(text) || !is_one_of(kHarmless, first_word(text)); }

bool may_end_transaction(std::string_view text) { return is_one_of(kEnds, first_word(text)); }

// A statement may begin at the start, behind a ';', and behind what may be the end of a comment.
bool goes_on_behind_end(std::string_view text) {
  std::string low = lower(text);
  bool may_begin = true;
  for (std::size_t i = 0; i < low.size(); ++i) {
    char c = low[i];
    if (c == ';' || c == '/' || c == '\n' || c == '\r') {
      may_begin = true;
    } else if (kBlanks.find(c) == kBlanks.npos) {
      std::string_view rest = std::string_view(low).substr(i);
      bool is_end = may_begin && std::any_of(std::begin(kEnds), std::end(kEnds),
                                             [&](std::string_view word) { return begins_with_word(rest, word); });
      if (is_end && has_more(rest)) return true;
      may_begin = false;
    }
  }
  return false;
}

bool begins_with_modes(std::string_view text) {
  constexpr std::string_view kFirst[] = {"begin", "start", "set"};
  if (!has_more(text) || !is_one_of(kFirst, first_word(text))) return false;
  std::string first = lower(text.substr(0, text.find(';')));
  return has_word(first, "isolation") || has_word(first, "deferrable") ||
         (has_word(first, "read") && (has_word(first, "only") || has_word(first, "write")));
}

bool runs_query(std::string_view text) {
  sql::Lexer lexer(text);
  std::vector<std::string> words;
  for (sql::Token t = lexer.next(); t.kind > sql::TokenKind::Error; t = lexer.next())
    if (t.kind == sql::TokenKind::Word) words.push_back(lower(text.substr(t.start, t.end - t.start)));
  if (words.empty()) return false;
  if (words.front() == "execute" || words.front() == "refresh") return true;
  return words.front() == "create" && is_one_of(words, "as") &&
         (is_one_of(words, "table") || is_one_of(words, "materialized"));
}

}  // namespace lokadb::router
