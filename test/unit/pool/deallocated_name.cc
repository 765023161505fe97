#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "pool/prepare_commands.h"

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(pool_deallocated_name)

struct Named {
  const char* sql;
  const char* name;
};
std::ostream& operator<<(std::ostream& out, const Named& n) { return out << n.sql; }

const Named kNamed[] = {
    {"DEALLOCATE s1", "s1"},
    {"deallocate pdo_stmt_00000001;", "pdo_stmt_00000001"},
    {" \n Deallocate\tPrepare  Name_1$ ; \n", "name_1$"},
    {"DEALLOCATE \"Mixed Case\"", "Mixed Case"},
    {"DEALLOCATE \"a\"\"b\"", "a\"b"},
    {"DEALLOCATE\"x\"", "x"},
    {"DEALLOCATE prepare", "prepare"},
    {"DEALLOCATE PREPARE prepare", "prepare"},
    {"DEALLOCATE \"all\"", "all"},
    {"DEALLOCATE \"prepare\"", "prepare"},
    {"/* with */ DEALLOCATE/**/a -- comments", "a"},
    {"DEALLOCATE \xc3\x84x", "\xc3\x84x"},
};
BOOST_DATA_TEST_CASE(one_name, data::make(kNamed)) {
  auto name = deallocated_name(sample.sql);
  BOOST_REQUIRE(name);
  BOOST_TEST(*name == sample.name);
}

const char* const kOthers[] = {"",
                               "DEALLOCATE",
                               "DEALLOCATE ;",
                               "DEALLOCATE ALL",
                               "DEALLOCATE PREPARE ALL",
                               "deallocate all;",
                               "DEALLOCATE a b",
                               "DEALLOCATE a; select 1",
                               "DEALLOCATE a;;",
                               "DEALLOCATE 1a",
                               "DEALLOCATE \"a",
                               "DEALLOCATE \"\"",
                               "DISCARD ALL",
                               "DEALLOCATES a",
                               "DEALLOCATE /* a",
                               "DEALLOCATE U&\"a\"",
                               "\"deallocate\" a",
                               "DEALLOCATE \"prepare\" x",
                               "DEALLOCATE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
BOOST_DATA_TEST_CASE(anything_else, data::make(kOthers)) { BOOST_TEST(!deallocated_name(sample)); }

BOOST_AUTO_TEST_CASE(no_prefix_is_read_past_its_end) {
  const std::string whole = "deallocate prepare \"a\"\"b\" ;";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string exact(whole, 0, n);
    exact.shrink_to_fit();
    deallocated_name(exact);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
