#include "pool/backend_call.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;
using namespace std::string_literals;
using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(backend_calls)

const char* const kCalls[] = {"select pg_cancel_backend(5)", "SELECT  PG_CANCEL_BACKEND ( 5 ) ;",
                              "\n select pg_cancel_backend(5::int)", "select pg_cancel_backend('5')",
                              "select pg_catalog.pg_cancel_backend(5) -- x"};
BOOST_DATA_TEST_CASE(with_a_number, data::make(kCalls)) {
  auto call = backend_call(sample);
  BOOST_REQUIRE(call);
  BOOST_TEST(may_be_backend_call(sample));
  BOOST_TEST(!call->terminates);
  BOOST_TEST(call->number.value() == 5u);
  BOOST_TEST(done_instead(*call) == "SELECT true AS pg_cancel_backend");
}

BOOST_AUTO_TEST_CASE(with_a_parameter) {
  auto call = backend_call("select pg_terminate_backend($1);");
  BOOST_REQUIRE(call);
  BOOST_TEST(call->terminates);
  BOOST_TEST(!call->number);
  BOOST_TEST(done_instead(*call) ==
             "SELECT CASE WHEN $1::int4 < 0 THEN true ELSE pg_catalog.pg_terminate_backend($1::int4) END AS "
             "pg_terminate_backend");
}

const char* const kOthers[] = {"",
                               "select",
                               "select pg_cancel_backend",
                               "select pg_cancel_backend(",
                               "select pg_cancel_backend(5",
                               "select pg_cancel_backend(-5)",
                               "select pg_cancel_backend(5), 1",
                               "select pg_cancel_backend($2)",
                               "select pg_cancel_backend(5) from t",
                               "select pg_cancel_backend(5); select 1",
                               "select pg_cancel_backend(99999999999)",
                               "select pg_cancel_backend(pid)",
                               "select pg_terminate_backend(5, 100)",
                               "select pg_cancel_backend(\"5\")",
                               "select pg_cancel_backend('$1')",
                               "with a as (select 1)"};
BOOST_DATA_TEST_CASE(others, data::make(kOthers)) { BOOST_TEST(!backend_call(sample)); }

// Portal and name, formats, values, formats of results.
std::string bind(std::string_view formats, std::string_view values) {
  return "p\0n\0"s.append(formats).append(values).append("\0\1\0\1"sv);
}

BOOST_AUTO_TEST_CASE(bound_numbers) {
  auto number = [](const std::string& body) { return bound_number(as_bytes(body)); };
  std::string text = bind("\0\0"sv, "\0\1\0\0\0\00312x"sv);
  BOOST_TEST(!number(text));
  text = bind("\0\0"sv, "\0\1\0\0\0\003123"sv);
  BOOST_TEST(number(text).value() == 123u);
  BOOST_TEST(with_negative_number(as_bytes(text)) == bind("\0\0"sv, "\0\1\0\0\0\2-1"sv));
  std::string binary = bind("\0\1\0\1"sv, "\0\1\0\0\0\4\0\0\1\0"sv);
  BOOST_TEST(number(binary).value() == 256u);
  BOOST_TEST(with_negative_number(as_bytes(binary)) == bind("\0\1\0\1"sv, "\0\1\0\0\0\4\377\377\377\377"sv));
  std::string wide = bind("\0\1\0\1"sv, "\0\1\0\0\0\10\0\0\0\0\0\0\0\7"sv);
  BOOST_TEST(number(wide).value() == 7u);
  BOOST_TEST(!number(bind("\0\1\0\1"sv, "\0\1\0\0\0\10\0\0\0\1\0\0\0\7"sv)));
  BOOST_TEST(!number(bind("\0\1\0\1"sv, "\0\1\0\0\0\2\0\7"sv)));
  BOOST_TEST(!number(bind("\0\0"sv, "\0\1\377\377\377\377"sv)));  // null
  BOOST_TEST(!number(bind("\0\0"sv, "\0\0"sv)));
  for (std::size_t size = 0; size < text.size() - 4; ++size) {
    const std::string exact(text.data(), size);
    BOOST_TEST(!number(exact));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
