#include "base/list.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace lokadb {
namespace {

struct OtherTag;
struct Item : ListHook<>, ListHook<OtherTag> {
  explicit Item(char c) : name(c) {}
  char name;
};

template <class Tag>
std::string names(List<Item, Tag>& list) {
  std::string out;
  list.for_each([&out](Item* item) { out += item->name; });
  return out;
}

struct Items {
  Item a{'a'}, b{'b'}, c{'c'}, d{'d'};
  List<Item> list;
  ~Items() {
    while (list.pop_front() != nullptr) {
    }
  }
};

BOOST_FIXTURE_TEST_SUITE(base_list, Items)

BOOST_AUTO_TEST_CASE(an_empty_list_has_no_ends) {
  BOOST_TEST(list.empty());
  BOOST_TEST(list.size() == 0u);
  BOOST_TEST(list.front() == nullptr);
  BOOST_TEST(list.back() == nullptr);
  BOOST_TEST(list.pop_front() == nullptr);
  BOOST_TEST(names(list) == "");
}

BOOST_AUTO_TEST_CASE(elements_keep_the_order_they_were_put_in) {
  list.push_back(&b);
  list.push_back(&c);
  list.push_front(&a);
  BOOST_TEST(names(list) == "abc");
  BOOST_TEST(list.size() == 3u);
  BOOST_TEST(list.front() == &a);
  BOOST_TEST(list.back() == &c);
  BOOST_TEST(list.next(&a) == &b);
  BOOST_TEST(list.next(&c) == nullptr);
}

BOOST_AUTO_TEST_CASE(elements_leave_from_anywhere) {
  for (Item* item : {&a, &b, &c, &d}) list.push_back(item);
  list.remove(&b);
  BOOST_TEST(names(list) == "acd");
  BOOST_TEST(!static_cast<ListHook<>&>(b).is_linked());
  list.remove(&d);
  BOOST_TEST(list.back() == &c);
  list.remove(&a);
  BOOST_TEST(list.front() == &c);
  BOOST_TEST(list.pop_front() == &c);
  BOOST_TEST(list.empty());
  list.push_back(&b);  // and may come back
  BOOST_TEST(names(list) == "b");
}

BOOST_AUTO_TEST_CASE(a_visitor_may_remove_what_it_is_given) {
  for (Item* item : {&a, &b, &c, &d}) list.push_back(item);
  list.for_each([this](Item* item) {
    if (item != &c) list.remove(item);
  });
  BOOST_TEST(names(list) == "c");
  BOOST_TEST(list.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_element_is_in_lists_of_different_tags_at_once) {
  List<Item, OtherTag> other;
  list.push_back(&a);
  list.push_back(&b);
  other.push_back(&b);
  other.push_back(&a);
  list.remove(&a);
  BOOST_TEST(names(list) == "b");
  BOOST_TEST(names(other) == "ba");
  other.remove(&b);
  other.remove(&a);
  BOOST_TEST(names(list) == "b");
}

BOOST_AUTO_TEST_CASE(elements_move_between_lists_of_one_tag) {
  List<Item> other;
  list.push_back(&a);
  list.remove(&a);
  other.push_back(&a);
  BOOST_TEST(list.empty());
  BOOST_TEST(names(other) == "a");
  other.remove(&a);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
