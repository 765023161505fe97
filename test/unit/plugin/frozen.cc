// The plugin that was built against the frozen header of ABI 1.0: loads for ever, and every function works for it.
#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

const std::map<std::string, Lines> kSections = {
    {"frozen_1_0", {{"setting", "app.org"}}},
    {"places", {{"user", "customers_app"}, {"7", "host=a"}, {"13", "host=b"}, {"7", "host=c"}}}};

struct Session {
  Session() : chain(load({"frozen_1_0"}, kSections)), slots(chain->begin_session("app", "alice")) {}
  ~Session() { chain->end_session(slots); }

  BatchContext in(std::string organization = {}) {
    BatchContext c = context();
    c.slots = &slots;
    c.setting = [this, organization](std::string_view name) -> std::string_view {
      asked_for = name;
      value = organization;
      return value;
    };
    return c;
  }

  Sandbox sandbox;
  std::unique_ptr<PluginChain> chain;
  std::vector<void*> slots;
  std::string asked_for, value;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_frozen)

BOOST_AUTO_TEST_CASE(it_reads_its_sections) {
  Sandbox sandbox;
  BOOST_TEST(load_fault({"frozen_1_0"}, kSections) == "loaded");
  auto no_user = kSections;
  no_user["places"].erase(no_user["places"].begin());
  std::string said = load_fault({"frozen_1_0"}, no_user);
  BOOST_TEST(said.ends_with("init failed: places has no user"), said);
}

BOOST_AUTO_TEST_CASE(without_an_organization_it_says_cloud) {
  Session s;
  Batch batch(s.in(), {simple("select 1")});
  BatchVerdict verdict = s.chain->begin(batch);
  BOOST_TEST(text_of(verdict) == "cloud  #0");
  BOOST_TEST(s.asked_for == "app.org");
  BOOST_TEST(s.chain->reason(verdict)->id == std::string("no-organization"));
}

BOOST_AUTO_TEST_CASE(with_one_it_says_direct_and_where) {
  Session s;
  Batch batch(s.in("7"), {simple("select 1")});
  BatchVerdict verdict = s.chain->begin(batch);
  BOOST_TEST(text_of(verdict) == "direct 7 #1");
  const BatchTarget& target = *batch.targets().at(verdict.target);
  BOOST_TEST(target.name == "7");
  BOOST_TEST(target.host == "127.0.0.1");
  BOOST_TEST(target.port == 5432u);
  BOOST_TEST(target.database == "shop");
  BOOST_TEST(target.user == "customers_app");
  BOOST_TEST(target.password == "secret");
  BOOST_TEST(target.generation == 3u);
  BOOST_TEST(text_of(s.chain->review(batch, verdict)) == "no opinion");
}

BOOST_AUTO_TEST_CASE(review_has_the_last_word) {
  Session s;
  Batch batch(s.in("13"), {simple("select 1")});
  BatchVerdict verdict = s.chain->begin(batch);
  BatchVerdict last = s.chain->review(batch, verdict);
  BOOST_TEST(text_of(last) == "refuse 42501 organization 13 is not yours");
  BOOST_TEST(last.detail == "It never was.");
  BOOST_TEST(last.hint == "Name your own.");
  BOOST_TEST(s.chain->reason(last)->id == std::string("foreign"));
}

BOOST_AUTO_TEST_CASE(keys_are_looked_up_in_a_step) {
  Session s;
  Batch batch(s.in(), {bound("select $1, $2", {"k1", std::string_view()}), bound("select $1", {"k2"})});
  BOOST_TEST(text_of(s.chain->begin(batch)) == "ask");
  BOOST_REQUIRE(batch.steps().size() == 2u);
  BOOST_TEST(batch.steps()[0].sql == "select organization from keys where key = $1");
  BOOST_TEST(batch.steps()[0].values.at(0).value == "k1");
  BOOST_TEST(batch.steps()[0].values.at(0).type == 25u);
  BOOST_TEST(batch.steps()[1].values.at(0).value == "k2");
  batch.steps()[0].is_done = batch.steps()[1].is_done = true;
  batch.steps()[1].rows = {{{false, "42"}}};
  BOOST_TEST(text_of(s.chain->go_on(batch)) == "direct 42 #1");
}

BOOST_AUTO_TEST_CASE(a_stale_gate_starts_the_decision_anew) {
  Session s;
  Batch batch(s.in("7"), {simple("select 1; select 2")});
  BOOST_TEST(text_of(s.chain->begin(batch)) == "direct 7 #1");
  BOOST_REQUIRE(batch.statements().size() == 2u);
  BOOST_TEST(batch.statements()[0].text == "select 1;");
  BOOST_TEST(batch.statements()[1].text == " select 2");
  batch.start_anew();
  BOOST_TEST(batch.statements().size() == 1u);
  BOOST_TEST(batch.statements()[0].text == "select 1; select 2");
  BOOST_TEST(batch.targets().empty());
  BOOST_TEST(text_of(s.chain->begin(batch)) == "direct 7 #1");
  BOOST_TEST(batch.statements().size() == 2u);
}

BOOST_AUTO_TEST_CASE(numbers_behind_a_split_go_up) {
  Session s;
  Batch batch(s.in(), {bound("select $1", {"k0"}), simple("a;b"), simple("c;d"), bound("select $1", {"k1"})});
  BOOST_TEST(text_of(s.chain->begin(batch)) == "ask");
  std::string texts;
  for (const auto& statement : batch.statements()) texts += std::string(statement.text) + "|";
  BOOST_TEST(texts == "select $1|a;|b|c;|d|select $1|");
  BOOST_TEST(batch.steps().size() == 2u);
  batch.start_anew();
  BOOST_TEST(batch.statements().size() == 4u);
  BOOST_TEST(batch.steps().empty());
}

BOOST_AUTO_TEST_CASE(feeds_are_asked_for_by_database) {
  Session s;
  auto wishes = s.chain->feeds("app");
  BOOST_REQUIRE(wishes.size() == 1u);
  BOOST_TEST(wishes[0].user == "lokadb_control");
  BOOST_TEST(wishes[0].channel == "lokadb");
  BOOST_TEST(wishes[0].query == "select lokadb.catalog()");
  BOOST_TEST(wishes[0].heartbeat_ms == 5000u);
  BOOST_TEST(s.chain->feeds("").empty());
  s.chain->feed_changed(0, "app", "{}", true);
  BOOST_TEST(s.chain->figures()[0].failed == 0u);
}

BOOST_AUTO_TEST_CASE(a_target_with_a_number_is_copied_once) {
  Session s;
  Batch first(s.in("7"), {simple("select 1")}), second(s.in("7"), {simple("select 1")});
  BatchTargetPtr before = first.targets().at(s.chain->begin(first).target);
  BOOST_TEST(before == second.targets().at(s.chain->begin(second).target));
  BOOST_TEST(before->pool == before->pool_name());
  BOOST_TEST(before->greeting == "select '', ''");
}

BOOST_AUTO_TEST_CASE(it_shows_its_rows) {
  Session s;
  auto shows = s.chain->shows();
  BOOST_REQUIRE(shows.size() == 2u);
  BOOST_TEST(shows[0].name == "places");
  BOOST_TEST(shows[0].columns == "setting t, organizations i");
  auto rows = s.chain->rows_of(shows[0]);
  BOOST_REQUIRE(static_cast<bool>(rows));
  BOOST_REQUIRE(rows->size() == 1u);
  BOOST_TEST((*rows)[0][0].value() == "app.org");
  BOOST_TEST((*rows)[0][1].value() == "3");  // all lines but user
  auto nothing = s.chain->rows_of(shows[1]);
  BOOST_REQUIRE(static_cast<bool>(nothing));
  BOOST_TEST(!nothing->at(0).at(0).has_value());
}

BOOST_AUTO_TEST_CASE(it_says_what_a_session_is) {
  Session s;
  for (int i = 0; i < 3; ++i) {
    auto states = s.chain->session_states(s.slots);
    BOOST_REQUIRE(states.size() == 1u);
    BOOST_TEST(!states[0].is_off);
    Batch batch(s.in("7"), {simple("select 1")});
    s.chain->begin(batch);
  }
  auto states = s.chain->session_states(s.slots);
  BOOST_TEST(states.at(0).plugin == "frozen_1_0");
  BOOST_TEST(states[0].is_off);
  BOOST_TEST(states[0].reason->id == std::string("foreign"));
  BOOST_TEST(states[0].details == "three statements");
}

BOOST_AUTO_TEST_CASE(two_plugins_may_split_alike) {
  Sandbox sandbox;
  // The same library cannot be two plugins, so the second one is the one that splits otherwise.
  auto sections = kSections;
  sections["misuse"] = {{"how", "split outside"}};
  auto chain = load({"frozen_1_0", "misuse"}, sections);
  Batch batch(context(), {simple("select 1; select 2")});
  BOOST_TEST(text_of(chain->begin(batch)) == "refuse XX000 plugin \"misuse\" failed");
  BOOST_TEST(sandbox.logged("split a statement in another way than a plugin before it"));
}

BOOST_AUTO_TEST_CASE(it_is_reloaded) {
  Session s;
  auto sections = kSections;
  sections["frozen_1_0"] = {{"setting", "other.name"}};
  BOOST_TEST(static_cast<bool>(s.chain->reload(sections_of({"frozen_1_0"}, sections))));
  Batch batch(s.in("7"), {simple("select 1")});
  s.chain->begin(batch);
  BOOST_TEST(s.asked_for == "other.name");
}

BOOST_AUTO_TEST_SUITE_END()
