#include "base/result.h"

#include <boost/test/unit_test.hpp>
#include <memory>

namespace lokadb {
namespace {

BOOST_AUTO_TEST_SUITE(base_result)

BOOST_AUTO_TEST_CASE(a_value) {
  Result<std::string> r = std::string("text");
  BOOST_REQUIRE(bool(r));
  BOOST_TEST(*r == "text");
  BOOST_TEST(r->size() == 4u);
  *r += "!";
  BOOST_TEST(*std::as_const(r) == "text!");
}

BOOST_AUTO_TEST_CASE(an_error) {
  Result<std::string> r = Error{sqlstate::kInvalidPassword, Severity::Error, "no", "no, since"};
  BOOST_REQUIRE(!r);
  BOOST_TEST(r.error().state.text() == "28P01");
  BOOST_CHECK(r.error().severity == Severity::Error);
  BOOST_TEST(std::as_const(r).error().to_client == "no");
  BOOST_TEST(r.error().log_text() == "no, since");
}

BOOST_AUTO_TEST_CASE(a_value_that_only_moves) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(5);
  auto taken = std::move(*r);
  BOOST_TEST(*taken == 5);
  BOOST_TEST(r->get() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_truth_value_is_told_from_success) {
  Result<bool> no = false;
  BOOST_TEST(bool(no));
  BOOST_TEST(!*no);
}

BOOST_AUTO_TEST_CASE(success_may_carry_nothing) {
  Result<Done> r = Done{};
  BOOST_TEST(bool(r));
  r = fatal("now it fails");
  BOOST_TEST(!r);
}

BOOST_AUTO_TEST_CASE(the_usual_error_is_fatal_and_a_protocol_violation) {
  Error e = fatal("text");
  BOOST_TEST(e.state.text() == "08P01");
  BOOST_CHECK(e.severity == Severity::Fatal);
  BOOST_TEST(e.log_text() == "text");
  BOOST_TEST(fatal("text", "more").log_text() == "more");
  BOOST_TEST(Error{}.state.text() == "08P01");
}

BOOST_AUTO_TEST_CASE(states_have_five_characters_of_their_own) {
  std::string code = "57014 and more";
  SqlState state{std::string_view(code)};
  code = "";
  BOOST_TEST(state.text() == "57014");
  BOOST_TEST(SqlState("57").text() == "57000");
  BOOST_TEST((state == std::string_view("57014")));
  BOOST_TEST(!(state == std::string_view("57015")));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
