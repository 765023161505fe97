#include "pool/cancel_key.h"

#include <boost/test/unit_test.hpp>

namespace lokadb {
namespace {

BOOST_AUTO_TEST_SUITE(pool_cancel_key)

BOOST_AUTO_TEST_CASE(keys_have_the_marks_of_their_process) {
  for (int id : {1, 255, 256, 16383}) {
    CancelKey key = make_cancel_key(id, id % 2 == 0 ? KeyLength::Usual : KeyLength::Long);
    BOOST_TEST(peer_of(key) == id);
    BOOST_TEST(hops_left(key) == kMostHops);
    BOOST_TEST(((key[0] & std::byte{0x80}) == std::byte{0}));
  }
}

BOOST_AUTO_TEST_CASE(a_hop_changes_the_hops_alone) {
  CancelKey key = make_cancel_key(7, KeyLength::Long);
  CancelKey next = key;
  for (int left = kMostHops; left > 0; --left) {
    BOOST_TEST(hops_left(next) == left);
    next = one_hop_less(next);
    BOOST_TEST(peer_of(next) == 7);
    BOOST_TEST(is_same_key(key, next, true));
    BOOST_TEST(!is_same_key(key, next, false));
  }
  BOOST_TEST(hops_left(one_hop_less(next)) == 0);
}

BOOST_AUTO_TEST_CASE(every_byte_counts) {
  for (KeyLength length : {KeyLength::Usual, KeyLength::Long}) {
    CancelKey key = make_cancel_key(1, length);
    BOOST_TEST(key.size() == static_cast<std::size_t>(length));
    for (std::size_t i = 0; i < key.size(); ++i) {
      CancelKey other = key;
      other[i] ^= std::byte{0x10};
      BOOST_TEST(!is_same_key(key, other, true));
      BOOST_TEST(!is_same_key(key, other, false));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_goes_on_is_another) {
  CancelKey key = make_cancel_key(0, KeyLength::Long);
  BOOST_TEST(is_same_key(*CancelKey::from(key.bytes()), key, false));
  BOOST_TEST(!is_same_key(*CancelKey::from(key.bytes().first(8)), key, false));
  for (std::size_t size : {0, 4, 7, 9, 12, 35}) BOOST_TEST(!CancelKey::from(key.bytes().first(size)).has_value());
}

BOOST_AUTO_TEST_CASE(all_bytes_of_a_long_key_are_random) {
  CancelKey key = make_cancel_key(0, KeyLength::Long), other = make_cancel_key(0, KeyLength::Long);
  for (std::size_t at = 8; at + 4 <= key.size(); at += 4)
    BOOST_TEST(load_u32(key.bytes().data() + at) != load_u32(other.bytes().data() + at));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
