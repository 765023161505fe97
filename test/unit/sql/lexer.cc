#include "sql/lexer.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "sql/cases.h"
#include "sql_oracle.h"

namespace lokadb::sql {
namespace {

// Tokens of a text, each in brackets.
std::string cut(std::string_view text, bool has_standard_strings = true) {
  std::string tokens;
  Lexer lexer(text, has_standard_strings);
  for (Token token = lexer.next();; token = lexer.next()) {
    if (token.kind == TokenKind::End) return tokens;
    if (token.kind == TokenKind::Error) return tokens + "!";
    tokens += "[" + std::string(text.substr(token.start, token.end - token.start)) + "]";
  }
}

BOOST_AUTO_TEST_SUITE(sql_lexer)

BOOST_AUTO_TEST_CASE(numbers_end_where_postgresql_ends_them) {
  BOOST_TEST(cut("1.5e-3 .5 5. 1..2 1.e5 $12") == "[1.5e-3][.5][5.][1][..][2][1.e5][$12]");
  for (const char* text : {"1e", "1e+", "12abc", "0x1f", "1_000", "1.5x", "$1a"}) BOOST_TEST(cut(text) == "!", text);
  auto kind = [](const char* text) { return Lexer(text).next().kind; };
  BOOST_TEST((kind("2147483647") == TokenKind::Integer));
  BOOST_TEST((kind("0002147483647") == TokenKind::Integer));
  BOOST_TEST((kind("2147483648") == TokenKind::Number));
}

BOOST_AUTO_TEST_CASE(operators_leave_signs_and_comments_behind) {
  BOOST_TEST(cut("a=-1") == "[a][=][-][1]");
  BOOST_TEST(cut("a@-1") == "[a][@-][1]");
  BOOST_TEST(cut("a+-+-1") == "[a][+][-][+][-][1]");
  BOOST_TEST(cut("a<--1\n1") == "[a][<][--1][1]");
  BOOST_TEST(cut("a*/*x*/b") == "[a][*][/*x*/][b]");
  BOOST_TEST(cut("a::b:=c=>d>=e<>f") == "[a][::][b][:=][c][=>][d][>=][e][<>][f]");
}

BOOST_AUTO_TEST_CASE(strings_of_all_kinds) {
  BOOST_TEST(cut("'it''s' x") == "['it''s'][x]");
  BOOST_TEST(cut("'a\\' x") == "['a\\'][x]");
  BOOST_TEST(cut("'a\\' x'", false) == "['a\\' x']");
  BOOST_TEST(cut("E'a\\' x' e'' B'1' x'f' N'n'") == "[E'a\\' x'][e''][B'1'][x'f'][N]['n']");
  BOOST_TEST(cut("U&'\\0061' U&\"x\"") == "[U&'\\0061'][U&\"x\"]");
  BOOST_TEST(cut("U&'x'", false) == "!");
  BOOST_TEST(cut("$$a$b$$ $x$ $$ $x$ a$b$c") == "[$$a$b$$][$x$ $$ $x$][a$b$c]");
  for (const char* text : {"'open", "E'open\\'", "$a$ open", "\"open", "\"\"", "/* /* */", "B'1"})
    BOOST_TEST(cut(text) == "!", text);
}

BOOST_AUTO_TEST_CASE(a_string_goes_on_in_another_line) {
  BOOST_TEST(cut("'a'\n 'b'") == "['a'\n 'b']");
  BOOST_TEST(cut("'a' -- c\n -- d\n'b' x") == "['a' -- c\n -- d\n'b'][x]");
  BOOST_TEST(cut("'a' 'b'") == "['a']['b']");
  BOOST_TEST(cut("'a' /* \n */ 'b'") == "['a'][/* \n */]['b']");
  BOOST_TEST(cut("B'1''0'") == "[B'1']['0']");
}

BOOST_AUTO_TEST_CASE(bytes_outside_ascii_are_letters) {
  BOOST_TEST(cut("\xc3\xa9t\xff=1") == "[\xc3\xa9t\xff][=][1]");
  BOOST_TEST(is_ascii_safe_encoding("UTF8"));
  BOOST_TEST(is_ascii_safe_encoding("utf-8"));
  BOOST_TEST(is_ascii_safe_encoding("ISO_8859_5"));
  BOOST_TEST(is_ascii_safe_encoding("SQL_ASCII"));
  BOOST_TEST(is_ascii_safe_encoding("EUC_JIS_2004"));
  for (const char* name : {"SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004", "MULE_INTERNAL", ""})
    BOOST_TEST(!is_ascii_safe_encoding(name), name);
}

// Texts of the cases with bytes exchanged, taken out, put in and doubled: both scanners must cut them alike.
BOOST_AUTO_TEST_CASE(postgresql_cuts_mutations_alike) {
  std::mt19937 random(20);  // the same ones each time
  auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static constexpr std::string_view kPieces[] = {
      "'", "\"", "$", "$$", "--", "/*", "*/",  "\n", "\\", "E'", "U&'", "x'",       "b'", "N'", "1", ".",   "e",
      "+", "-",  "@", "=",  ":",  "(",  "\\'", "''", "$1", "\r", "\f",  "\xc3\xa9", " ",  "%",  "<", "'\n'"};
  std::size_t judged = 0;
  for (const Case& one : all_cases()) {
    BOOST_TEST(disagreement(one.text) == "", one.text);
    for (int i = 0; i < 30; ++i) {
      std::string text = one.text;
      for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
        std::size_t at = below(text.size() + 1);
        std::string_view piece = kPieces[below(std::size(kPieces))];
        switch (below(3)) {
          case 0:
            text.insert(at, piece);
            break;
          case 1:
            text.erase(at, 1 + below(3));
            break;
          default:
            text.replace(at, 1, piece);
        }
      }
      std::string difference = disagreement(text);
      if (!difference.empty()) BOOST_ERROR(difference << "\n" << text);
      if (!judge(text).is_error) ++judged;
    }
  }
  BOOST_TEST(judged > 3000u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::sql
