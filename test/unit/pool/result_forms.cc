#include "pool/result_forms.h"

#include <boost/test/unit_test.hpp>

#include "plugin/batch.h"

namespace lokadb {
namespace {

constexpr RowsMark kOne = 100, kTwo = 200;

BatchStatement bound(std::string_view text, std::vector<std::uint32_t> types = {}) {
  BatchStatement s;
  s.form = LOKADB_BIND;
  s.text = text;
  for (std::uint32_t type : types) s.parameters.push_back({type, false, false, "1"});
  return s;
}

BatchStatement simple(std::string_view text) {
  BatchStatement s;
  s.text = text;
  return s;
}

std::string body(std::string_view text) { return std::string(text) + std::string(3, '\0'); }

// RowDescription of one column of this type, without its header.
std::vector<std::byte> rows_of(std::uint32_t type) {
  ByteBuffer out;
  out.u16(1);
  out.cstring("a");
  out.u32(0);
  out.u16(0);
  out.u32(type);
  out.u16(4);
  out.u32(0xffffffff);
  out.u16(0);
  return out.storage();
}

RowsMark form_of(std::uint32_t type) {
  constexpr char kNone[] = {0, 0};
  return form_of_statement(as_bytes({kNone, 2}), mark_of_rows(rows_of(type)));
}

struct Fixture {
  std::vector<BatchStatement> statements;
  std::vector<BatchReplacement> replacements;
  KnownForms known;
  std::unique_ptr<ResultForms> forms;

  ResultForms& begin(std::vector<BatchStatement> of) {
    statements = std::move(of);
    forms = std::make_unique<ResultForms>(statements, replacements, known);
    forms->begin();
    return *forms;
  }
};

BOOST_FIXTURE_TEST_SUITE(pool_result_forms, Fixture)

BOOST_AUTO_TEST_CASE(the_cloud_is_asked_once) {
  for (int i = 0; i < 2; ++i) {
    ResultForms& f = begin({bound("select 1")});
    f.statement_used(7);
    f.described(7, kOne, kUnknownRows);
    auto asked = f.to_ask();
    BOOST_TEST(asked.size() == (i == 0 ? 1u : 0u));
    if (i == 0) BOOST_TEST(asked[0] == body("select 1"));
    BOOST_TEST(f.settle(std::vector<RowsMark>(asked.size(), kOne)));
  }
}

BOOST_AUTO_TEST_CASE(a_statement_in_other_words_is_described_in_these) {
  replacements.resize(1);
  replacements[0].statement = 1;
  replacements[0].text = "select 3";
  ResultForms& f = begin({bound("select 1"), bound("select 2")});
  for (std::uint64_t number : {7, 8}) {
    f.statement_used(number);
    f.described(number, kOne, kUnknownRows);
  }
  auto asked = f.to_ask();
  BOOST_TEST(asked.size() == 2u);
  BOOST_TEST(asked[0] == body("select 1"));
  BOOST_TEST(asked[1] == body("select 3"));
  BOOST_TEST(f.settle({kOne, kOne}));
}

BOOST_AUTO_TEST_CASE(another_form_is_told_and_asked_again_each_time) {
  for (int i = 0; i < 2; ++i) {
    ResultForms& f = begin({bound("select 1")});
    f.statement_used(7);
    f.described(7, kOne, kUnknownRows);
    BOOST_TEST(f.to_ask().size() == 1u);
    BOOST_TEST(!f.settle({kTwo}));
  }
}

BOOST_AUTO_TEST_CASE(what_is_kept_may_be_out_of_date) {
  known.keep(body("select 1"), kOne);
  ResultForms& f = begin({bound("select 1")});
  f.statement_used(7);
  f.described(7, kTwo, kUnknownRows);
  BOOST_TEST(f.to_ask().size() == 1u);
  BOOST_TEST(f.settle({kTwo}));
  BOOST_TEST(known.find(body("select 1")) == kTwo);
}

BOOST_AUTO_TEST_CASE(declared_types_count) {
  known.keep(body("select $1"), kOne);
  ResultForms& f = begin({bound("select $1", {23})});
  f.statement_used(7);
  f.described(7, kOne, kUnknownRows);
  BOOST_TEST(f.to_ask().size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_missing_is_no_agreement) {
  ResultForms& f = begin({bound("select 1")});
  f.statement_used(7);
  f.described(7, kOne, kUnknownRows);
  f.to_ask();
  BOOST_TEST(!f.settle({}));
}

BOOST_AUTO_TEST_CASE(a_form_that_is_not_known_here_is_no_agreement) {
  for (RowsMark form : {kUnknownRows, kOne}) {
    ResultForms& f = begin({bound("select 1")});
    f.statement_used(7);
    f.described(form == kOne ? 8 : 7, form, kUnknownRows);
    BOOST_TEST(f.to_ask().empty());
    BOOST_TEST(!f.settle({}));
  }
}

BOOST_AUTO_TEST_CASE(what_failed_has_no_form) {
  ResultForms& f = begin({bound("select 1"), bound("select 2")});
  f.statement_used(7);
  f.described(7, kOne, kUnknownRows);
  f.answered('E', {});
  BOOST_TEST(f.to_ask().size() == 1u);
  BOOST_TEST(f.settle({kOne}));
}

BOOST_AUTO_TEST_CASE(unnamed_statements_are_told_apart_by_their_order) {
  ResultForms& f = begin({bound("select 1"), bound("select 2"), bound("select 2")});
  f.unnamed_sent();
  f.statement_used(0);
  f.unnamed_sent();
  f.statement_used(0);
  f.statement_used(0);
  f.described(0, kOne, kUnknownRows);
  f.described(0, kTwo, kUnknownRows);
  auto asked = f.to_ask();
  BOOST_TEST(asked.size() == 2u);  // the third is the second once more
  BOOST_TEST(!f.settle({kTwo, kOne}));
  f.to_ask();
  BOOST_TEST(f.settle({kOne, kTwo}));
}

BOOST_AUTO_TEST_CASE(a_parse_alone_counts_if_it_was_described) {
  BatchStatement alone = bound("select 2");
  alone.form = LOKADB_PARSE;
  for (bool is_described : {false, true}) {
    ResultForms& f = begin({bound("select 1"), alone});
    f.statement_used(7);
    f.statement_used(8);
    f.described(7, kOne, kUnknownRows);
    if (is_described) f.described(8, kTwo, kUnknownRows);
    std::size_t asked = f.to_ask().size();
    BOOST_TEST(asked == (is_described ? 2u : 1u));
    BOOST_TEST(f.settle(is_described ? std::vector{kOne, kTwo} : std::vector{kOne}));
    known.keep(body("select 1"), kTwo);
  }
}

BOOST_AUTO_TEST_CASE(a_query_is_known_by_what_it_answers) {
  ResultForms& f = begin({simple("select 1"), simple("set x = 1"), simple("select 2")});
  f.answered('T', rows_of(23));
  f.answered('D', {});
  f.answered('C', {});
  f.answered('C', {});
  f.answered('T', rows_of(20));
  auto asked = f.to_ask();
  BOOST_TEST(asked.size() == 3u);
  constexpr char kNone[] = {0, 0};
  RowsMark nothing = form_of_statement(as_bytes({kNone, 2}), kNoRows);
  BOOST_TEST(f.settle({form_of(23), nothing, form_of(20)}));
}

BOOST_AUTO_TEST_CASE(the_client_gets_no_other_rows_than_it_was_told_of) {
  known.keep(body("select 1"), kOne);
  for (RowsMark told : {RowsMark(5), kUnknownRows, RowsMark(6)}) {
    ResultForms& f = begin({bound("select 1")});
    f.statement_used(7);
    f.client_expects(told);
    f.described(7, kOne, 5);
    BOOST_TEST(f.to_ask().empty());
    BOOST_TEST(f.settle({}) == (told != 6));
  }
}

BOOST_AUTO_TEST_CASE(it_begins_anew) {
  ResultForms& f = begin({simple("select 1")});
  f.answered('T', rows_of(23));
  f.answered('C', {});
  f.begin();
  f.answered('T', rows_of(20));
  f.to_ask();
  BOOST_TEST(f.settle({form_of(20)}));
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_bounded) {
  std::string big(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) known.keep(big + std::to_string(i), kOne);
  int left = 0;
  for (int i = 0; i < 40; ++i) left += known.find(big + std::to_string(i)) != kUnknownRows;
  BOOST_TEST(left >= 3);
  BOOST_TEST(left <= 8);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
