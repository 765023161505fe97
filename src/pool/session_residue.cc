#include "pool/session_residue.h"

#include <array>
#include <cstring>

#include "base/text.h"
#include "pool/sql_lexer.h"

namespace lokadb {

namespace {

using residue::kReset;
using residue::kSettings;
using residue::kState;

// ------------------------------------------------------------------ the first look

// Each word that matters has one of these pairs: sET, resET, pg_sETtings, sET_config; teMP; aDVisory_lock; HOld.
constexpr char kPairs[][2] = {{'e', 't'}, {'m', 'p'}, {'d', 'v'}, {'h', 'o'}};

bool is_pair(char a, char b) {
  for (const auto& pair : kPairs)
    if (lower(a) == pair[0] && lower(b) == pair[1]) return true;
  return false;
}

constexpr std::size_t kLanes = 16;
using Lanes = unsigned char __attribute__((vector_size(kLanes)));

Lanes load_lower(const char* at) {
  Lanes lanes;
  std::memcpy(&lanes, at, kLanes);
  return lanes | 0x20;
}

// Whether a pair may begin in one of the 16 bytes at `at`; 17 can be read.
bool may_have_pair(const char* at) {
  Lanes first = load_lower(at), second = load_lower(at + 1);
  auto found = (first == static_cast<unsigned char>('e')) & (second == static_cast<unsigned char>('t'));
  found |= (first == static_cast<unsigned char>('m')) & (second == static_cast<unsigned char>('p'));
  found |= (first == static_cast<unsigned char>('d')) & (second == static_cast<unsigned char>('v'));
  found |= (first == static_cast<unsigned char>('h')) & (second == static_cast<unsigned char>('o'));
  std::uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

// The word around the byte at `at`, and where it begins.
std::string_view word_around(std::string_view sql, std::size_t at, std::size_t& begin) {
  begin = at;
  while (begin > 0 && goes_on_name(sql[begin - 1])) --begin;
  std::size_t end = at;
  while (end < sql.size() && goes_on_name(sql[end])) ++end;
  return sql.substr(begin, end - begin);
}

std::size_t before_blanks(std::string_view sql, std::size_t at) {
  while (at > 0 && is_space(sql[at - 1])) --at;
  return at;
}

// In a piece of a text the first word may be the end of a longer one.
enum class Extent { Whole, Piece };

bool follows_one_of(std::string_view sql, std::size_t begin, Extent extent,
                    std::initializer_list<std::string_view> words) {
  std::size_t at = before_blanks(sql, begin);
  if (at == 0 || !goes_on_name(sql[at - 1])) return true;  // a comment, the end of a piece: better looked at
  std::size_t start;
  std::string_view word = word_around(sql, at - 1, start);
  if (start == 0 && extent == Extent::Piece) return true;
  for (std::string_view w : words)
    if (iequals(word, w)) return true;
  return false;
}

// SET begins a statement here, as it does not in UPDATE and ALTER. Behind a comment it may.
bool may_begin_statement(std::string_view sql, std::size_t begin) {
  std::size_t at = before_blanks(sql, begin);
  if (at == 0 || sql[at - 1] == ';' || sql[at - 1] == '/') return true;
  return sql.substr(0, at).find("--") != std::string_view::npos;
}

// `prefix` in lower case.
bool begins_with(std::string_view word, std::string_view prefix) {
  return word.size() >= prefix.size() && iequals(word.substr(0, prefix.size()), prefix);
}

bool is_suspicious_at(std::string_view sql, std::size_t at, Extent extent) {
  std::size_t begin;
  std::string_view word = word_around(sql, at, begin);
  switch (lower(word.front())) {
    case 's':
      if (iequals(word, "set")) return may_begin_statement(sql, begin);
      return iequals(word, "set_config");
    case 'r':
      return iequals(word, "reset") && may_begin_statement(sql, begin);
    case 't':
      if (!iequals(word, "temp") && !iequals(word, "temporary")) return false;
      return follows_one_of(sql, begin, extent, {"create", "into", "local", "global", "replace"});
    case 'h':
      return iequals(word, "hold") && follows_one_of(sql, begin, extent, {"with"});
    case 'p':
      return iequals(word, "pg_settings") || begins_with(word, "pg_temp") || begins_with(word, "pg_advisory_lock") ||
             begins_with(word, "pg_try_advisory_lock");
    default:
      return false;
  }
}

// ------------------------------------------------------------------ the second look

class Examiner {
 public:
  Examiner(std::string_view sql, const TrackedNames& tracked) : sql_(sql), lexer_(sql), tracked_(tracked) {}
  Residue run();

 private:
  void begin_statement();
  void end_statement();
  void look_at(const Token& token);
  void set_statement();
  void reset_statement();
  void set_config_call();
  void assignment(const Token& name);
  void changes(std::string_view name);
  bool is_next_symbol(char c) const;
  void take() { last_ = lexer_.next(); }
  Token peek() const {
    SqlLexer ahead = lexer_;
    return ahead.next();
  }

  std::string_view sql_;
  SqlLexer lexer_;
  const TrackedNames& tracked_;
  Residue found_ = 0;
  Token first_, last_;
  bool makes_temporary_ = false;  // this statement
  bool drops_on_commit_ = false;
};

Residue Examiner::run() {
  for (take(); last_.kind != Token::Kind::End; take()) {
    if (last_.is_symbol(';')) continue;
    begin_statement();
    Token before;
    while (last_.kind != Token::Kind::End && !last_.is_symbol(';')) {
      if (last_.is("temp") || last_.is("temporary")) {
        makes_temporary_ |= first_.is("create") || before.is("into") || before.is("local") || before.is("global");
      } else if (last_.is("hold")) {
        if (first_.is("declare") && before.is("with")) found_ |= kState;
      } else if (last_.is("drop")) {
        drops_on_commit_ |= before.is("commit");
      } else {
        look_at(last_);
      }
      before = last_;
      take();
    }
    end_statement();
    if (last_.kind == Token::Kind::End) break;
  }
  return lexer_.is_doubtful() ? static_cast<Residue>(found_ | kSettings | kState) : found_;
}

void Examiner::begin_statement() {
  first_ = last_;
  makes_temporary_ = drops_on_commit_ = false;
  if (first_.is("set")) set_statement();
  if (first_.is("reset")) reset_statement();
  if (first_.is("discard") && peek().is("all")) found_ |= kSettings | kReset;
}

void Examiner::end_statement() {
  if (makes_temporary_ && !drops_on_commit_) found_ |= kState;
}

void Examiner::look_at(const Token& token) {
  if (!token.is_name()) return;
  if (token.kind == Token::Kind::Quoted && !token.is_plain) {
    found_ |= kSettings | kState;  // whatever it spells
  } else if (token.names("set_config")) {
    if (is_next_symbol('(')) set_config_call();
  } else if (token.names("pg_settings")) {
    if (first_.is("update")) found_ |= kSettings | kState;
  } else if (begins_with(token.text, "pg_temp")) {
    found_ |= kState;
  } else if (token.names("pg_advisory_lock") || token.names("pg_advisory_lock_shared") ||
             token.names("pg_try_advisory_lock") || token.names("pg_try_advisory_lock_shared")) {
    if (is_next_symbol('(')) found_ |= kState;
  }
}

bool Examiner::is_next_symbol(char c) const { return peek().is_symbol(c); }

// SET ... as the manual has it; what is not a setting by its name is told by the words that follow.
void Examiner::set_statement() {
  take();
  if (last_.is("local") || last_.is("transaction") || last_.is("constraints")) return;
  if (last_.is("session")) {
    take();
    if (last_.is("characteristics")) {
      found_ |= kSettings;
      return;
    }
  }
  if (last_.is("authorization") || last_.is("role") || last_.is("xml") || !last_.is_name()) {
    found_ |= kState;
    return;
  }
  if (last_.is("names")) return changes("client_encoding");
  if (last_.is("schema")) return changes("search_path");
  if (last_.is("time") && peek().is("zone")) {
    found_ |= kSettings | kReset;  // to LOCAL or DEFAULT, perhaps
    return;
  }
  assignment(last_);
}

void Examiner::assignment(const Token& name) {
  // Settings of the transaction, that end with it.
  for (std::string_view passing : {"transaction_isolation", "transaction_read_only", "transaction_deferrable"})
    if (name.names(passing)) return;
  const char* begin = name.text.data();
  std::string_view whole = name.text;
  for (Token dot = peek(); dot.is_symbol('.'); dot = peek()) {
    take();
    take();
    whole = {begin, static_cast<std::size_t>(last_.text.data() + last_.text.size() - begin)};
  }
  changes(whole);
  SqlLexer ahead = lexer_;
  ahead.next();  // = or TO
  if (ahead.next().is("default")) found_ |= kReset;
}

void Examiner::changes(std::string_view name) { found_ |= tracked_.index(name) ? kSettings : kState; }

void Examiner::reset_statement() {
  take();
  found_ |= kReset;
  bool is_untracked = last_.is("role") || last_.is("session") || (last_.is_name() && !tracked_.index(last_.text));
  if (last_.is("all") || last_.is("time") || !is_untracked) found_ |= kSettings;
}

// set_config(name, value, is_local): harmless if the last is TRUE, and known if the first is the name of a setting.
void Examiner::set_config_call() {
  SqlLexer ahead = lexer_;
  ahead.next();  // (
  std::array<Token, 3> arguments{};
  std::array<int, 3> lengths{};
  std::size_t argument = 0;
  for (int depth = 1; depth > 0;) {
    Token token = ahead.next();
    if (token.kind == Token::Kind::End) break;
    if (token.is_symbol('(') || token.is_symbol('[')) ++depth;
    if ((token.is_symbol(')') || token.is_symbol(']')) && --depth == 0) break;
    if (depth == 1 && token.is_symbol(',')) {
      if (++argument == arguments.size()) break;
      continue;
    }
    if (lengths[argument]++ == 0) arguments[argument] = token;
  }
  bool is_understood = argument == 2 && lengths[0] == 1 && lengths[2] == 1;
  if (is_understood && arguments[2].is("true")) return;
  const Token& name = arguments[0];
  if (is_understood && name.kind == Token::Kind::String && name.is_plain && tracked_.index(name.text))
    found_ |= kSettings;
  else
    found_ |= kSettings | kState;
}

}  // namespace

namespace {
bool is_suspicious(std::string_view sql, Extent extent) {
  std::size_t at = 0;
  for (; at + kLanes < sql.size(); at += kLanes) {
    if (!may_have_pair(sql.data() + at)) continue;
    for (std::size_t i = at; i < at + kLanes; ++i)
      if (is_pair(sql[i], sql[i + 1]) && is_suspicious_at(sql, i, extent)) return true;
  }
  for (; at + 1 < sql.size(); ++at)
    if (is_pair(sql[at], sql[at + 1]) && is_suspicious_at(sql, at, extent)) return true;
  return false;
}
}  // namespace

bool has_suspicious_word(std::string_view sql) { return is_suspicious(sql, Extent::Whole); }

Residue residue_of(std::string_view sql, const TrackedNames& tracked) {
  return has_suspicious_word(sql) ? Examiner(sql, tracked).run() : residue::kNone;
}

Residue residue_of_piece(std::string_view piece) {
  return is_suspicious(piece, Extent::Piece) ? static_cast<Residue>(kSettings | kState) : residue::kNone;
}

Residue residue_of_tag(std::string_view tag, bool is_unread) {
  auto is = [tag](std::string_view word) { return tag == word; };
  // The tags of the statements that hot paths are made of are told by their second letter or so.
  switch (tag.empty() ? '\0' : tag.front()) {
    case 'L':
      if (is("LISTEN")) return kState;
      return is("LOAD") ? residue::kLasting : residue::kNone;
    case 'P':
      return is("PREPARE") ? kState : residue::kNone;
    case 'D':
      if (is("DO")) return kSettings | kState;
      if (is("DISCARD ALL")) return kSettings | kReset;
      return is_unread && is("DECLARE CURSOR") ? kState : residue::kNone;
    case 'C':
      if (is("CALL")) return kSettings | kState;
      return is_unread && tag.starts_with("CREATE ") ? kState : residue::kNone;
    case 'S':
      return is_unread && is("SET") ? kSettings | kState : residue::kNone;
    case 'R':
      return is_unread && is("RESET") ? kSettings | kReset : residue::kNone;
    default:
      return residue::kNone;
  }
}

}  // namespace lokadb
