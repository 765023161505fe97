// plugins/example does what its README says.
#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

constexpr const char* kListed = "refuse 42501 this statement is not allowed here";

struct Example {
  explicit Example(const std::string& patterns) : chain(load({"example"}, {{"example", {{"refuse", patterns}}}})) {}
  std::string says(std::string_view sql) { return decided(*chain, sql); }
  Sandbox sandbox;
  std::unique_ptr<PluginChain> chain;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_example)

BOOST_AUTO_TEST_CASE(statements_that_match_a_pattern_are_refused) {
  Example example("truncate*, drop table*\t,*pg_sleep*");
  BOOST_TEST(example.says("TRUNCATE documents") == kListed);
  BOOST_TEST(example.says(" \n\tdrop table t") == kListed);
  BOOST_TEST(example.says("select pg_sleep(1)") == kListed);
  BOOST_TEST(example.says("select 1; truncate documents") == "no opinion");
  BOOST_TEST(example.says("select 'drop table t'") == "no opinion");
  BOOST_TEST(example.says("") == "no opinion");
  BOOST_TEST(example.chain->figures()[0].reasons[0].count == 3u);
}

BOOST_AUTO_TEST_CASE(every_statement_of_a_batch_counts) {
  Example example("truncate*");
  Batch batch(context(), {bound("select $1", {"truncate"}), bound("truncate t", {})});
  BOOST_TEST(text_of(example.chain->begin(batch)) == kListed);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_searched_is_refused) {
  Example example("truncate*");
  BatchContext c = context();
  c.is_whole = false;
  Batch batch(c, {simple("select 'long")});
  BatchVerdict verdict = example.chain->begin(batch);
  BOOST_TEST(text_of(verdict) == "refuse 42501 this statement is too long to be searched");
  BOOST_TEST(example.chain->reason(verdict)->id == std::string("not-whole"));
  Batch without(c, {simple("select 'long")});
  BOOST_TEST(text_of(Example("").chain->begin(without)) == "no opinion");
}

BOOST_AUTO_TEST_CASE(an_empty_pattern_is_a_fault_and_a_reload_with_one_changes_nothing) {
  Example example("truncate*");
  BOOST_TEST(!example.chain->reload(sections_of({"example"}, {{"example", {{"refuse", "select*, ,x"}}}})));
  BOOST_TEST(example.says("select 1") == "no opinion");
  BOOST_TEST(example.says("truncate t") == kListed);
  BOOST_TEST(
      static_cast<bool>(example.chain->reload(sections_of({"example"}, {{"example", {{"refuse", "select*"}}}}))));
  BOOST_TEST(example.says("select 1") == kListed);
  BOOST_TEST(example.says("truncate t") == "no opinion");
}

BOOST_AUTO_TEST_SUITE_END()
