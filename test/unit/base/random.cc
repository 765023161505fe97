#include "base/random.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace lokadb {
namespace {

std::string draw(std::size_t n) {
  std::string text(n, '\0');
  random_bytes(std::as_writable_bytes(std::span(text)));
  return text;
}

BOOST_AUTO_TEST_SUITE(base_random)

BOOST_AUTO_TEST_CASE(no_draw_repeats_another) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(draw(16));
  BOOST_TEST(seen.size() == 1000u);
}

// Around the size of a batch, where the way of drawing changes: every byte must be written.
BOOST_AUTO_TEST_CASE(draws_of_every_size_are_filled_to_the_end) {
  for (std::size_t n : {1u, 7u, 500u, 511u, 512u, 513u, 5000u}) {
    bool first_changed = false, last_changed = false;
    for (int i = 0; i < 20 && !(first_changed && last_changed); ++i) {
      std::string text = draw(n);
      first_changed |= text.front() != '\0';
      last_changed |= text.back() != '\0';
    }
    BOOST_TEST(first_changed);
    BOOST_TEST(last_changed);
  }
}

BOOST_AUTO_TEST_CASE(nothing_outside_is_written) {
  std::array<std::byte, 34> bytes{};
  random_bytes(std::span(bytes).subspan(1, 32));
  BOOST_CHECK(bytes.front() == std::byte{0});
  BOOST_CHECK(bytes.back() == std::byte{0});
  random_bytes({});
}

BOOST_AUTO_TEST_CASE(all_values_come) {
  std::string text = draw(20000);
  BOOST_TEST(std::set<char>(text.begin(), text.end()).size() == 256u);
}

BOOST_AUTO_TEST_CASE(threads_share_no_batch) {
  std::vector<std::string> drawn(4);
  std::vector<std::thread> threads;
  for (auto& text : drawn) threads.emplace_back([&text] { text = draw(32); });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(std::set<std::string>(drawn.begin(), drawn.end()).size() == drawn.size());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
