#include "base/bytes.h"

#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(base_bytes)

BOOST_AUTO_TEST_CASE(numbers_have_network_order_at_any_address) {
  Bytes b = as_bytes("x\x01\x02\x03\xff"sv);
  BOOST_TEST(load_u32(b.data() + 1) == 0x010203ffu);
  BOOST_TEST(load_u16(b.data() + 1) == 0x0102);
  BOOST_TEST(load_u16(b.data() + 3) == 0x03ff);
  std::byte out[5] = {};
  store_u32(out + 1, 0x80000102u);
  BOOST_TEST(as_text(out) == "\0\x80\0\x01\x02"sv);
  BOOST_TEST(load_u32(out + 1) == 0x80000102u);
}

BOOST_AUTO_TEST_CASE(text_and_bytes_are_the_same_memory) {
  auto text = "a\0b"sv;
  Bytes b = as_bytes(text);
  BOOST_TEST(b.size() == 3u);
  BOOST_TEST(as_text(b) == text);
  BOOST_TEST(static_cast<const void*>(as_text(b).data()) == text.data());
  BOOST_TEST(as_text({}) == "");
}

BOOST_AUTO_TEST_CASE(a_buffer_appends_in_network_order) {
  ByteBuffer buffer;
  BOOST_TEST(buffer.empty());
  buffer.u8(0xff);
  buffer.u16(0x0102);
  buffer.u32(0x80000003u);
  buffer.text("ab");
  buffer.cstring("c");
  buffer.cstring("");
  buffer.append(as_bytes("\0d"sv));
  BOOST_TEST(as_text(buffer.bytes()) ==
             "\xff"
             "\x01\x02\x80\0\0\x03"
             "abc\0\0\0d"sv);
  BOOST_TEST(buffer.size() == 14u);
  BOOST_TEST(buffer.data() == buffer.storage().data());
}

BOOST_AUTO_TEST_CASE(a_cleared_buffer_keeps_its_memory) {
  ByteBuffer buffer;
  buffer.text(std::string(1000, 'x'));
  std::size_t capacity = buffer.storage().capacity();
  buffer.clear();
  BOOST_TEST(buffer.empty());
  BOOST_TEST(buffer.storage().capacity() == capacity);
  buffer.text("y");
  BOOST_TEST(as_text(buffer.bytes()) == "y");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
