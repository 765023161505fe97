#include "pool/sql_lexer.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

// One letter for each kind, and the text between angles.
std::string tokens_of(std::string_view sql, bool* is_doubtful = nullptr) {
  SqlLexer lexer(sql);
  std::string out;
  for (Token t = lexer.next(); t.kind != Token::Kind::End; t = lexer.next()) {
    out += "?wqso"[static_cast<int>(t.kind)];
    out += (t.is_plain ? "<" : "<<") + std::string(t.text) + ">";
  }
  if (is_doubtful != nullptr) *is_doubtful = lexer.is_doubtful();
  return out;
}

BOOST_AUTO_TEST_SUITE(sql_lexer)

struct Sample {
  const char* sql;
  const char* tokens;
};
std::ostream& operator<<(std::ostream& out, const Sample& s) { return out << s.sql; }

const Sample kSamples[] = {
    {"", ""},
    {" \t\r\n\f\v", ""},
    {"SELECT a_1$, \xc3\xa4 FROM t", "w<SELECT>w<a_1$>o<,>w<\xc3\xa4>w<FROM>w<t>"},
    {"a.b::c", "w<a>o<.>w<b>o<:>o<:>w<c>"},
    {"1 1.5 1e5 $1 $12", "o<1>o<1.5>o<1e5>o<$1>o<$12>"},
    {"'it''s' 'a' ''", "s<<it''s>s<a>s<>"},
    {"E'a\\'b' e'\\\\' 'c\\d'", "s<<a\\'b>s<<\\\\>s<c\\d>"},
    {"B'01' x'1f' N'n' u&'\\0061' U&\"d\\0061ta\"", "s<01>s<1f>s<n>s<<\\0061>q<<d\\0061ta>"},
    {"note'x' be'x'", "w<note>s<x>w<be>s<x>"},
    {"\"A\"\"b\" \"set\"", "q<<A\"\"b>q<set>"},
    {"a -- b 'c\nd --", "w<a>w<d>"},
    {"a /* b /* ' */ c */ d /**/ e", "w<a>w<d>w<e>"},
    {"a / b - c * d", "w<a>o</>w<b>o<->w<c>o<*>w<d>"},
    {"$$ set '; $$ $a$ $$ $b$ $a$ x", "s< set '; >s< $$ $b$ >w<x>"},
    {"a$$b $ c", "w<a$$b>o<$>w<c>"},
    {"u & 'x' u&x", "w<u>o<&>s<x>w<u>o<&>w<x>"},
};
BOOST_DATA_TEST_CASE(tokens, data::make(kSamples)) {
  bool is_doubtful = true;
  BOOST_TEST(tokens_of(sample.sql, &is_doubtful) == sample.tokens);
  BOOST_TEST(!is_doubtful);
}

const char* const kDoubtful[] = {"'a", "\"a", "/* a", "/* /* */", "$$ a", "$a$ $$", "'a\\'", "'a\\' b'", "E'a\\'"};
BOOST_DATA_TEST_CASE(what_does_not_end_is_doubtful, data::make(kDoubtful)) {
  bool is_doubtful = false;
  tokens_of(sample, &is_doubtful);
  BOOST_TEST(is_doubtful);
}

BOOST_AUTO_TEST_CASE(names_are_compared_as_the_server_does) {
  Token token = SqlLexer("SeT").next();
  BOOST_TEST(token.is("set"));
  BOOST_TEST(token.names("set"));
  token = SqlLexer("\"set\"").next();
  BOOST_TEST(!token.is("set"));
  BOOST_TEST(token.names("set"));
  token = SqlLexer("\"SET\"").next();
  BOOST_TEST(!token.names("set"));
}

BOOST_AUTO_TEST_CASE(no_prefix_is_read_past_its_end) {
  const std::string sql = "E'a\\'' U&\"b\" $c$ d $c$ /* e */ -- f\n $1 \"g\"\"h\" x'1' '";
  for (std::size_t size = 0; size <= sql.size(); ++size) {
    const std::string exact(sql.data(), size);  // its end is where the sanitizers look
    tokens_of(exact);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
