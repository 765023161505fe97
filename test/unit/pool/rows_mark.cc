#include "pool/rows_mark.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace lokadb {
namespace {

struct Column {
  std::string name;
  std::uint32_t table = 0, type = 23, modifier = 0xffffffff;
  std::uint16_t format = 0;
};

std::vector<std::byte> description(const std::vector<Column>& columns) {
  ByteBuffer out;
  out.u16(static_cast<std::uint16_t>(columns.size()));
  for (const Column& c : columns) {
    out.cstring(c.name);
    out.u32(c.table);
    out.u16(1);
    out.u32(c.type);
    out.u16(4);
    out.u32(c.modifier);
    out.u16(c.format);
  }
  return out.storage();
}

RowsMark mark(const std::vector<Column>& columns) { return mark_of_rows(description(columns)); }

BOOST_AUTO_TEST_SUITE(pool_rows_mark)

BOOST_AUTO_TEST_CASE(names_and_types_count) {
  RowsMark one = mark({{"a"}, {"b"}});
  BOOST_TEST(one == mark({{"a"}, {"b"}}));
  BOOST_TEST(one != mark({{"a"}}));
  BOOST_TEST(one != mark({{"b"}, {"a"}}));
  BOOST_TEST(one != mark({{"ab"}}));
  BOOST_TEST(one != mark({{"a"}, {"b", 0, 20}}));
  BOOST_TEST(one != mark({{"a"}, {"b", 0, 23, 8}}));
}

BOOST_AUTO_TEST_CASE(tables_and_formats_do_not) {
  BOOST_TEST(mark({{"a"}}) == mark({{"a", 16384}}));
  BOOST_TEST(mark({{"a"}}) == mark({{"a", 0, 23, 0xffffffff, 1}}));
}

BOOST_AUTO_TEST_CASE(no_mark_is_one_of_the_special_ones) {
  BOOST_TEST(mark({}) > kNoRows);  // rows without columns are rows
  BOOST_TEST(mark({{"a"}}) > kNoRows);
}

BOOST_AUTO_TEST_CASE(what_is_broken_has_no_mark) {
  auto whole = description({{"a"}, {"b"}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(mark_of_rows(Bytes(whole).first(size)) == kUnknownRows);
  whole.push_back(std::byte{0});
  BOOST_TEST(mark_of_rows(whole) == kUnknownRows);
}

BOOST_AUTO_TEST_CASE(queries_have_settled_rows) {
  for (auto sql : {"select 1", " SELECT 1", "/* who */ select 1", "-- who\nInsert into t values (1)", "((select 1))",
                   "with a as (select 1) table a", "values (1)", "update t set a = 1 returning *", "delete from t",
                   "merge into t using u on true when matched then do nothing", "table t"})
    BOOST_TEST(has_settled_rows(sql), sql);
  for (auto sql : {"", "fetch 5 from c", "execute s", "show all", "explain select 1", "selection", "call p()",
                   "\"select\" 1", "'select'", "/* select"})
    BOOST_TEST(!has_settled_rows(sql), sql);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
