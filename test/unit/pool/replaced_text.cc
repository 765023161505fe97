#include "pool/replaced_text.h"

#include <boost/test/unit_test.hpp>

#include "proto/message.h"

namespace lokadb {
namespace {

constexpr std::string_view kOld = "select ü, bad from documents where id = 5 and worse";
constexpr std::string_view kNew = "select ü, bad from (SELECT * FROM documents) AS d where id = 5 and worse";

std::vector<std::byte> error_at(std::string_view position) {
  ByteBuffer out;
  {
    MessageWriter m(out, 'E');
    m->cstring("SERROR");
    m->cstring("P" + std::string(position));
    m->cstring("Mno such column");
    m->u8(0);
  }
  return std::move(out.storage());
}

// The position that becomes of one in the new text; both in characters from 1.
std::string own_position(std::string_view position, bool is_utf8) {
  auto at = kOld.find("documents");
  std::vector<lokadb_edit> edits{{at, 9, std::string_view("(SELECT * FROM documents) AS d").size()}};
  ReplacedText text(std::string(kOld), std::string(kNew), edits, is_utf8);
  std::vector<std::byte> own = text.with_own_position(error_at(position));
  MessageReader reader(Bytes(own).subspan(kHeaderSize));
  BOOST_TEST(reader.cstring() == "SERROR");
  std::string found(reader.cstring().substr(1));
  BOOST_TEST(reader.cstring() == "Mno such column");
  BOOST_TEST(reader.u8() == 0);
  BOOST_TEST(reader.finished());
  return found;
}

BOOST_AUTO_TEST_SUITE(pool_replaced_text)

BOOST_AUTO_TEST_CASE(positions_are_those_of_the_old_text) {
  BOOST_TEST(own_position("11", true) == "11");  // bad
  BOOST_TEST(own_position("20", true) == "20");  // what was replaced begins there
  BOOST_TEST(own_position("30", true) == "20");  // within what was added
  BOOST_TEST(own_position(std::to_string(kNew.find("worse")), true) == std::to_string(kOld.find("worse")));
  BOOST_TEST(own_position(std::to_string(kNew.find("worse") + 1), false) == std::to_string(kOld.find("worse") + 1));
  BOOST_TEST(own_position("9999", true) == std::to_string(kOld.size()));  // behind the end: the end
}

BOOST_AUTO_TEST_CASE(what_is_no_position_stays) {
  BOOST_TEST(own_position("x", true) == "x");
  BOOST_TEST(own_position("0", true) == "0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
