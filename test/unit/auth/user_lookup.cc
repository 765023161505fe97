// auth_query: what is sent, and what the answers mean.
#include "auth/user_lookup.h"

#include <boost/test/unit_test.hpp>

#include "config/options.h"
#include "proto/message.h"

namespace lokadb {
namespace {

using Row = std::vector<std::optional<std::string>>;

ByteBuffer columns(unsigned count) {
  ByteBuffer out;
  out.u16(static_cast<std::uint16_t>(count));
  return out;
}
ByteBuffer row(const Row& values) {
  ByteBuffer out;
  out.u16(static_cast<std::uint16_t>(values.size()));
  for (const auto& value : values) {
    out.u32(value ? static_cast<std::uint32_t>(value->size()) : 0xffffffff);
    if (value) out.text(*value);
  }
  return out;
}

// "name:secret", "nobody", or why the connection is closed.
std::string answer(const std::vector<Row>& rows, unsigned column_count = 2) {
  UserLookup lookup("select $1", "ann");
  auto told = lookup.on_answer('1', {});
  if (told) told = lookup.on_answer('2', {});
  if (told) told = lookup.on_answer('T', columns(column_count).bytes());
  for (const auto& values : rows)
    if (told) told = lookup.on_answer('D', row(values).bytes());
  if (told) told = lookup.on_answer('C', {});
  if (!told) return told.error().log_text();
  return lookup.found() ? lookup.found()->name + ":" + lookup.found()->secret : "nobody";
}

BOOST_AUTO_TEST_SUITE(auth_user_lookup)

BOOST_AUTO_TEST_CASE(the_question_is_one_batch_with_the_name_as_its_parameter) {
  ByteBuffer out;
  UserLookup("select a, b from c where a = $1", "an'n").write_request(out);
  std::string kinds;
  Bytes rest = out.bytes();
  std::string text(as_text(rest));
  while (auto head = peek_head(rest)) {
    kinds += head->type;
    rest = rest.subspan(kHeaderSize + head->body);
  }
  BOOST_TEST(kinds == "PBDES");
  BOOST_TEST(rest.empty());
  BOOST_TEST(text.find("select a, b from c where a = $1") != std::string::npos);
  BOOST_TEST(text.find(std::string("\0\1\0\0\0\4an'n", 10)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_row_is_a_user_and_a_secret) {
  BOOST_TEST(answer({}) == "nobody");
  BOOST_TEST(answer({{"ann", "secret"}}) == "ann:secret");
  BOOST_TEST(answer({{"Ann", "SCRAM-SHA-256$4096:x$y:z"}}) == "Ann:SCRAM-SHA-256$4096:x$y:z");
  BOOST_TEST(answer({{"ann", ""}}) == "ann:");
  BOOST_TEST(answer({{"ann", std::nullopt}}) == "ann:");
  BOOST_TEST(answer({{std::string(200, 'n'), "x"}}) == std::string(127, 'n') + ":x");
  BOOST_TEST(answer({{"ann", std::string(65530, 'p')}}).size() == 65534u);
}

BOOST_AUTO_TEST_CASE(answers_that_are_of_no_use) {
  std::string unexpected = "unexpected response from auth_query";
  BOOST_TEST(answer({}, 1) == "expected 2 columns from auth_query, not 1");
  BOOST_TEST(answer({}, 3) == "expected 2 columns from auth_query, not 3");
  BOOST_TEST(answer({{std::nullopt, "x"}}) == "auth_query response contained null user name");
  BOOST_TEST(answer({{"", "x"}}) == "auth_query response contained null user name");
  BOOST_TEST(answer({{"ann"}}) == unexpected);
  BOOST_TEST(answer({{"ann", "x", "y"}}) == unexpected);
  BOOST_TEST(answer({{"ann", std::string(65531, 'p')}}) == unexpected);
  for (char type : {'n', 'I', 's', 't', 'G', 'H', 'W', 'd', 'V', '3'})
    BOOST_TEST(!UserLookup("q", "u").on_answer(type, {}), type);
}

BOOST_AUTO_TEST_CASE(two_rows_have_to_say_the_same) {
  BOOST_TEST(answer({{"ann", "x"}, {"ann", "x"}}) == "ann:x");
  BOOST_TEST(answer({{"ann", "x"}, {"ann", "y"}}) == "unexpected response from auth_query");
  BOOST_TEST(answer({{"ann", "x"}, {"bob", "x"}}) == "unexpected response from auth_query");
}

BOOST_AUTO_TEST_CASE(every_short_answer_is_refused) {
  ByteBuffer two = columns(2), full = row({"ann", "secret"});
  for (std::size_t n = 0; n < 2; ++n) BOOST_TEST(!UserLookup("q", "u").on_answer('T', two.bytes().first(n)), n);
  for (std::size_t n = 0; n < full.size(); ++n) {
    UserLookup lookup("q", "u");
    BOOST_REQUIRE(static_cast<bool>(lookup.on_answer('T', two.bytes())));
    BOOST_TEST(!lookup.on_answer('D', full.bytes().first(n)), n);
    BOOST_TEST(!lookup.found());
  }
  BOOST_TEST(!UserLookup("q", "u").on_answer('D', full.bytes()));  // no columns before it
}

BOOST_AUTO_TEST_CASE(the_default_query_is_sent_with_its_schema) {
  auto sent = safe_auth_query(default_options().auth_query);
  BOOST_TEST(sent.find(" pg_catalog.pg_authid ") != std::string_view::npos);
  BOOST_TEST(sent.find(" < ") == std::string_view::npos);
  BOOST_TEST(sent.find(" = ") == std::string_view::npos);
  BOOST_TEST(safe_auth_query("select 1") == "select 1");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
