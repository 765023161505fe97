#include "pool/prepared.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

namespace lokadb {
namespace {

using namespace std::string_view_literals;

StatementPtr statement(std::string_view body) { return intern_statement(as_bytes(body), TrackedNames({})); }

// Whatever a test interns must be gone at its end: texts, bytes and entries.
struct Accounting {
  std::size_t bytes = interned_statement_bytes(), count = interned_statement_count();
  ~Accounting() {
    BOOST_TEST(interned_statement_bytes() == bytes);
    BOOST_TEST(interned_statement_count() == count);
  }
};

BOOST_FIXTURE_TEST_SUITE(pool_prepared, Accounting)

BOOST_AUTO_TEST_CASE(equal_texts_are_one_object) {
  std::string text = "select 1";
  auto one = statement(text);
  auto two = statement(std::string(text));
  BOOST_TEST(one == two);
  BOOST_TEST(one.use_count() == 2);
  text[0] = 'S';  // the statement has bytes of its own
  BOOST_TEST(as_text(one->body()) == "select 1");
  BOOST_TEST(interned_statement_bytes() == bytes + 8);
  BOOST_TEST(interned_statement_count() == count + 1);
}

BOOST_AUTO_TEST_CASE(parameter_types_and_every_byte_count) {
  auto plain = statement("select $1\0\0\0"sv);
  auto typed = statement("select $1\0\0\1\0\0\0\x17"sv);
  auto other_case = statement("SELECT $1\0\0\0"sv);
  BOOST_TEST(plain != typed);
  BOOST_TEST(plain != other_case);
  BOOST_TEST(as_text(typed->body()) == "select $1\0\0\1\0\0\0\x17"sv);
  BOOST_TEST(interned_statement_count() == count + 3);
}

BOOST_AUTO_TEST_CASE(a_text_is_another_object_when_its_rows_may_be_others) {
  auto before = statement("select * from t");
  begin_statement_epoch();
  auto after = statement("select * from t");
  BOOST_TEST(before != after);
  BOOST_TEST(statement("select * from t") == after);
  after->retire();
  auto last = statement("select * from t");
  BOOST_TEST(last != after);
  before.reset();
  after.reset();
  BOOST_TEST(statement("select * from t") == last);
}

BOOST_AUTO_TEST_CASE(statements_made_by_sql_are_others) {
  auto by_parse = statement(" as select 1");
  auto by_sql = intern_sql_statement(" as select 1", TrackedNames({}));
  BOOST_TEST(by_parse != by_sql);
  BOOST_TEST(by_parse->sql_rest() == "");
  BOOST_TEST(by_sql->sql_rest() == " as select 1");
}

BOOST_AUTO_TEST_CASE(what_a_statement_leaves_is_kept_with_it) {
  BOOST_TEST(statement("select 1\0\0\0"sv)->residue() == residue::kNone);
  BOOST_TEST(statement("set role a\0\0\0"sv)->residue() == residue::kState);
  BOOST_TEST(intern_sql_statement(" as select pg_advisory_lock(1)", TrackedNames({}))->residue() == residue::kState);
}

BOOST_AUTO_TEST_CASE(numbers_go_up_and_make_the_name_at_the_server) {
  auto one = statement("numbers 1");
  auto two = statement("numbers 2");
  BOOST_TEST(two->number() == one->number() + 1);
  BOOST_TEST(one->server_name() == "PGBOUNCER_" + std::to_string(one->number()));
  BOOST_TEST(two->server_name() == "PGBOUNCER_" + std::to_string(two->number()));
}

// A server may still have the old name prepared: it must not get another meaning.
BOOST_AUTO_TEST_CASE(a_forgotten_text_gets_a_new_number) {
  auto number = statement("forgotten")->number();
  BOOST_TEST(interned_statement_count() == count);
  BOOST_TEST(interned_statement_bytes() == bytes);
  BOOST_TEST(statement("forgotten")->number() == number + 1);
}

BOOST_AUTO_TEST_CASE(the_last_owner_frees_the_text) {
  auto one = statement("owners");
  auto two = one;
  one.reset();
  BOOST_TEST(interned_statement_bytes() == bytes + 6);
  BOOST_TEST(statement("owners") == two);
  two.reset();
  BOOST_TEST(interned_statement_bytes() == bytes);
}

BOOST_AUTO_TEST_CASE(an_empty_text_and_a_big_one) {
  auto empty = statement("");
  auto big = statement(std::string(1000000, 'x'));
  BOOST_TEST(statement("") == empty);
  BOOST_TEST(big->body().size() == 1000000u);
  BOOST_TEST(interned_statement_bytes() == bytes + 1000000);
}

// The last owner leaves in one thread while another one asks for the same text.
BOOST_AUTO_TEST_CASE(threads_may_intern_and_let_go_at_the_same_time) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong] {
      for (int i = 0; i < 5000; ++i) {
        std::string text = "threads " + std::to_string(i % 3);
        auto one = statement(text);
        auto two = statement(text);
        if (one != two || as_text(one->body()) != text) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(names_of_a_client) {
  ClientStatements names;
  auto one = statement("client 1"), two = statement("client 2");
  BOOST_TEST(names.find("a") == nullptr);
  names.set("a", one);
  names.set("b", one);
  BOOST_TEST(names.find("a") == one);
  BOOST_TEST(names.find("A") == nullptr);
  BOOST_TEST(names.size() == 2u);
  BOOST_TEST(one.use_count() == 3);
  names.set("a", two);
  BOOST_TEST(names.find("a") == two);
  BOOST_TEST(names.find("b") == one);
  BOOST_TEST(names.size() == 2u);
  BOOST_TEST(one.use_count() == 2);
  names.remove("a");
  names.remove("a");
  names.remove("never there");
  BOOST_TEST(names.find("a") == nullptr);
  BOOST_TEST(names.size() == 1u);
  BOOST_TEST(two.use_count() == 1);
  names.clear();
  BOOST_TEST(names.size() == 0u);
  BOOST_TEST(one.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(two_clients_share_the_text_but_no_names) {
  ClientStatements first, second;
  first.set("s", statement("shared"));
  BOOST_TEST(second.find("s") == nullptr);
  second.set("t", statement("shared"));
  BOOST_TEST(first.find("s") == second.find("t"));
  BOOST_TEST(interned_statement_count() == count + 1);
}

struct LruFixture : Accounting {
  StatementPtr a = statement("lru a"), b = statement("lru b"), c = statement("lru c");
  ServerStatements there;
  // Empties the list, oldest first.
  std::string order() {
    std::string out;
    while (auto oldest = there.oldest()) {
      out += as_text(oldest->body()).back();
      there.remove(*oldest);
    }
    return out;
  }
};

BOOST_FIXTURE_TEST_CASE(statements_of_a_server_age_in_the_order_of_their_coming, LruFixture) {
  BOOST_TEST(there.oldest() == nullptr);
  BOOST_TEST(!there.has(*a));
  for (const auto& s : {a, b, c}) there.add(s);
  BOOST_TEST(there.has(*a));
  BOOST_TEST(there.size() == 3u);
  BOOST_TEST(order() == "abc");
  BOOST_TEST(there.size() == 0u);
  BOOST_TEST(!there.has(*a));
}

BOOST_FIXTURE_TEST_CASE(use_makes_a_statement_young, LruFixture) {
  for (const auto& s : {a, b, c}) there.add(s);
  there.use(*a);
  BOOST_TEST(there.oldest() == b);
  there.use(*c);
  there.use(*c);
  there.use(*statement("lru stranger"));
  BOOST_TEST(there.size() == 3u);
  BOOST_TEST(order() == "bac");
}

BOOST_FIXTURE_TEST_CASE(adding_it_again_is_use_as_well, LruFixture) {
  for (const auto& s : {a, b, a}) there.add(s);
  BOOST_TEST(there.size() == 2u);
  BOOST_TEST(a.use_count() == 2);
  BOOST_TEST(order() == "ba");
}

BOOST_FIXTURE_TEST_CASE(removed_statements_are_let_go, LruFixture) {
  for (const auto& s : {a, b, c}) there.add(s);
  there.remove(*b);
  there.remove(*b);
  BOOST_TEST(b.use_count() == 1);
  BOOST_TEST(!there.has(*b));
  there.add(b);
  BOOST_TEST(order() == "acb");
  for (const auto& s : {a, b}) there.add(s);
  there.clear();
  BOOST_TEST(there.size() == 0u);
  BOOST_TEST(there.oldest() == nullptr);
  BOOST_TEST(a.use_count() == 1);
}

// remove() of the list's own last reference must not read what it has just freed.
BOOST_FIXTURE_TEST_CASE(the_server_may_be_the_last_owner, LruFixture) {
  there.add(statement("lru last"));
  BOOST_TEST(interned_statement_count() == count + 4);
  const PreparedStatement& last = *there.oldest();
  there.remove(last);
  BOOST_TEST(interned_statement_count() == count + 3);
}

BOOST_AUTO_TEST_CASE(what_is_known_of_the_rows_goes_with_the_name_and_the_server) {
  auto a = statement("rows a"), b = statement("rows b");
  ClientStatements names;
  names.set("one", a);
  names.set("two", a);
  names.set("other", b);
  names.set_rows(a->number(), 5);
  BOOST_TEST(names.look_up("one").rows == 5u);
  BOOST_TEST(names.look_up("two").rows == 5u);
  BOOST_TEST(names.look_up("other").rows == kUnknownRows);
  BOOST_TEST(!names.look_up("none").statement);
  names.replace(*a, b);
  BOOST_TEST(names.look_up("one").rows == kUnknownRows);
  ServerStatements there;
  there.add(a);
  there.set_rows(a->number(), 7);
  there.set_rows(b->number(), 8);
  BOOST_TEST(there.use(*a)->rows == 7u);
  there.add(a);  // it is the same one still
  BOOST_TEST(there.use(*a)->rows == 7u);
  there.remove(*a);
  there.add(a);
  BOOST_TEST(there.use(*a)->rows == kUnknownRows);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
