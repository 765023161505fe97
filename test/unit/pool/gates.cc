#include "pool/gates.h"

#include <boost/test/unit_test.hpp>

using namespace lokadb;

namespace {

constexpr std::int64_t kNow = 1'000'000'000;

// Sessions and pools are never looked into.
template <class T>
T& stand_in(std::uintptr_t number) {
  return *reinterpret_cast<T*>(number * 64);
}
ClientSession& session(std::uintptr_t n) { return stand_in<ClientSession>(n); }
Pool& pool(std::uintptr_t n = 1000) { return stand_in<Pool>(n); }

struct Asking {
  Gates gates;
  int size = 8;
  Gates::Answer enter(std::uintptr_t n, Gates::Place& place, bool waits, std::int64_t now = kNow,
                      const char* organization = "7") {
    return gates.enter(pool(), size, organization, session(n), waits, now, place);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(gates)

BOOST_AUTO_TEST_CASE(an_organization_has_half_of_the_pool) {
  Asking a;
  Gates::Place places[6];
  for (std::uintptr_t i = 0; i < 4; ++i) BOOST_TEST((a.enter(i + 1, places[i], true) == Gates::Answer::Entered));
  BOOST_TEST((a.enter(5, places[4], false) == Gates::Answer::NotNow));
  BOOST_TEST((a.enter(5, places[4], true) == Gates::Answer::Waits));
  BOOST_TEST((a.enter(6, places[5], true, kNow, "8") == Gates::Answer::Entered));
  auto called = a.gates.leave(places[0], a.size, false, kNow + 1);
  BOOST_REQUIRE(called.size() == 1u);
  BOOST_TEST(called[0].session == &session(5));
  BOOST_TEST(called[0].has_place);
  BOOST_TEST(!places[0]);
}

BOOST_AUTO_TEST_CASE(two_places_are_left_to_one_whose_gates_wait) {
  Asking a;
  Gates::Place places[6];
  a.enter(1, places[0], true);
  a.enter(2, places[1], true, kNow + Gates::kSlow);
  BOOST_TEST((a.enter(3, places[2], true, kNow + Gates::kSlow + 1) == Gates::Answer::Waits));
  BOOST_TEST((a.enter(4, places[3], true, kNow + Gates::kSlow + 2) == Gates::Answer::Waits));
  // When the slow one is through there is room for all.
  auto called = a.gates.leave(places[0], a.size, false, kNow + Gates::kSlow + 3);
  BOOST_TEST(called.size() == 2u);
}

BOOST_AUTO_TEST_CASE(who_has_waited_as_long_as_a_gate_may_is_told) {
  Asking a;
  a.size = 2;
  Gates::Place places[4];
  a.enter(1, places[0], true);
  a.enter(2, places[1], true, kNow + 10);
  a.enter(3, places[2], true, kNow + 4'000'000);
  auto called = a.gates.leave(places[0], a.size, true, kNow + Gates::kLongestWait);
  BOOST_REQUIRE(called.size() == 2u);
  BOOST_TEST(called[0].session == &session(2));
  BOOST_TEST(!called[0].has_place);
  BOOST_TEST(called[1].session == &session(3));
  BOOST_TEST(called[1].has_place);
}

BOOST_AUTO_TEST_CASE(who_has_gone_is_not_called) {
  Asking a;
  a.size = 1;
  Gates::Place places[3];
  a.enter(1, places[0], true);
  a.enter(2, places[1], true);
  BOOST_TEST(a.gates.forget(session(2)));
  BOOST_TEST(!a.gates.forget(session(2)));
  BOOST_TEST(a.gates.leave(places[0], a.size, false, kNow).empty());
}

BOOST_AUTO_TEST_CASE(limits) {
  BOOST_TEST(Gates::limit(20, false) == 10);
  BOOST_TEST(Gates::limit(20, true) == 2);
  BOOST_TEST(Gates::limit(1, false) == 1);
  BOOST_TEST(Gates::limit(1, true) == 1);
  BOOST_TEST(Gates::limit(0, true) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
