#include "pool/prepare_commands.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

struct Sample {
  const char* sql;
  const char* name;
  const char* rest;  // of a PREPARE; of an EXECUTE all that follows the name
};
std::ostream& operator<<(std::ostream& out, const Sample& s) { return out << s.sql; }

BOOST_AUTO_TEST_SUITE(prepare_commands)

const Sample kPrepares[] = {
    {"PREPARE s AS SELECT 1", "s", " AS SELECT 1"},
    {" prepare S_1(int, text) as select $1 ; -- end", "s_1", "(int, text) as select $1"},
    {"prepare\"A\"\"b\"as select ';'", "A\"b", "as select ';'"},
    {"/* c */ prepare /* d */ s /* e */ as select 1;", "s", " /* e */ as select 1"},
};
BOOST_DATA_TEST_CASE(prepares, data::make(kPrepares)) {
  auto made = prepared_by(sample.sql);
  BOOST_REQUIRE(made);
  BOOST_TEST(made->name == sample.name);
  BOOST_TEST(rest_of_prepare(sample.sql, *made) == sample.rest);
}

const Sample kExecutes[] = {
    {"execute s", "s", ""},
    {"EXECUTE S(1, 'x');", "s", "(1, 'x');"},
    {"execute \"S\" (1); select 2", "S", " (1); select 2"},
    {"explain (analyze, costs off) execute s(1)", "s", "(1)"},
};
BOOST_DATA_TEST_CASE(executes, data::make(kExecutes)) {
  auto run = executed_by(sample.sql);
  BOOST_REQUIRE(run);
  BOOST_TEST(run->name == sample.name);
  BOOST_TEST(std::string_view(sample.sql).substr(run->end) == sample.rest);
  BOOST_TEST(std::string_view(sample.sql).substr(0, run->begin).size() > 7u);
}

const char* const kNeither[] = {"",
                                "prepare",
                                "prepare s",
                                "prepare transaction 'x'",
                                "prepare s as select 1; select 2",
                                "prepare s as select 'open",
                                "prepare 1 as select 1",
                                "prepare U&\"s\" as select 1",
                                "prepare aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa as select 1",
                                "execute",
                                "execute 1",
                                "execute ''",
                                "explain select 1; execute s",
                                "select execute from s",
                                "\"execute\" s"};
BOOST_DATA_TEST_CASE(neither, data::make(kNeither)) {
  BOOST_TEST(!prepared_by(sample));
  BOOST_TEST(!executed_by(sample));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
