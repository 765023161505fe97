// What plugins do in their moments, faulty and sound, through a chain.
#include "plugin/chain.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "plugin/verdict.h"
#include "support.h"

using namespace lokadb;
using namespace lokadb::test;
namespace data = boost::unit_test::data;

namespace {

// Fails in decide, review or inspect; what the log says of it.
struct Misuse {
  const char* how;
  const char* words;
};
std::ostream& operator<<(std::ostream& out, const Misuse& m) { return out << m.how; }

const Misuse kMisuses[] = {
    {"step in inspect", "inspect failed: called add_step in inspect"},
    {"split backwards", "pieces that do not follow each other"},
    {"split outside", "pieces that do not follow each other"},
    {"split nothing", "called split with 0 pieces"},
    {"split in decide", "called split in decide"},
    {"statement index", "called statement with statement 99 of 1"},
    {"parameter statement", "called parameter with statement 99 of 1"},
    {"parameter index", "called parameter with parameter 99 of 0"},
    {"fact index", "called fact with fact 99 of 0"},
    {"step index", "called step_rows with step 99 of 0"},
    {"cell of no step", "called step_cell with step 0 of 0"},
    {"no struct_size", "called statement with a struct_size of 0"},
    {"huge struct_size", "called statement with a struct_size of 4000"},
    {"null struct", "called statement with a null pointer"},
    {"null batch", "called fact_count for a batch that this call is not about"},
    {"other batch", "called fact_count for a batch that this call is not about"},
    {"option in decide", "called option in decide"},
    {"line in decide", "called line in decide"},
    {"row in decide", "called add_row in decide"},
    {"greedy", "more than 67108864 bytes for one batch"},
    {"fact kind", "a fact of an unknown kind"},
    {"fact statement", "a fact about a statement that does not exist"},
    {"answer to nothing", "the answer to a fact that asks for nothing"},
    {"fact reason", "a fact with an unknown reason"},
    {"null string", "a string of 1 bytes at address 0"},
    {"step leg", "a step of an unknown leg, moment or statement"},
    {"step moment", "a step of an unknown leg, moment or statement"},
    {"step values", "without its values"},
    {"step statement", "a step of an unknown leg, moment or statement"},
    {"replaced twice", "replaced what is no statement, a statement twice"},
    {"replaced nothing", "called replace with statement 99 of 1"},
    {"replaced with values", "or with values it cannot have"},
    {"replaced without edits", "or with values it cannot have"},
    {"edit outside", "edits that do not follow each other in it"},
    {"edit without an end", "edits that do not follow each other in it"},
    {"edits overlap", "edits that do not follow each other in it"},
    {"replaced by none", "replaced a statement by none"},
    {"verdict commits", "said that it commits 3"},
    {"step sql", "a step without SQL"},
    {"target", "a target without name, host"},
    {"target with a zero byte", "a target with a zero byte in one of its texts"},
    {"log level", "called log with level 17"},
    {"fail with no SQLSTATE", "failed with a SQLSTATE that is none: said so"},
    {"verdict kind", "a verdict of unknown kind 5"},
    {"verdict reason", "gave reason 7 of 0"},
    {"verdict string", "a verdict with a string at address 0"},
    {"direct nowhere", "said direct with target 3, which it never added"},
    {"direct nobody", "said direct without an organization"},
    {"direct step for cloud", "a step of the direct leg without saying direct"},
    {"direct step", "added a step of the direct leg, on which none are run"},
    {"step in front of direct", "said direct, and added a step that is no check"},
    {"check for cloud", "added a check without saying direct"},
    {"silent", "returned 1 without saying why"},
    {"refuse with a bad sqlstate", "refused without a SQLSTATE, or with one that is none"},
    {"refuse with success", "refused without a SQLSTATE, or with one that is none"},
    {"refuse with six", "refused without a SQLSTATE, or with one that is none"},
    {"refuse silently", "refused without a message"},
};

std::string reviewed(PluginChain& chain) {
  Batch batch(context(), {simple("select 1")});
  return text_of(chain.review(batch, chain.begin(batch)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_chain)

BOOST_DATA_TEST_CASE(wrong_use_of_the_host_is_a_failure_whatever_the_plugin_returns, data::make(kMisuses), misuse) {
  Sandbox sandbox;
  auto required = load({"misuse"}, {{"misuse", {{"how", misuse.how}}}});
  BOOST_TEST(decided(*required) == "refuse XX000 plugin \"misuse\" failed");
  BOOST_TEST(sandbox.logged(misuse.words), sandbox.log());
  BOOST_TEST(required->figures()[0].failed == 1u);
  BOOST_TEST(required->figures()[0].refused == 0u);
}

BOOST_AUTO_TEST_CASE(wrong_use_of_the_host_in_show_is_an_error_of_the_command) {
  Sandbox sandbox;
  for (auto [how, words] :
       {std::pair("too many cells", "with 3 cells"), std::pair("no cells", "called add_row for another"),
        std::pair("no rows", "called add_row for another"), std::pair("null cell", "a string of 1 bytes at address 0"),
        std::pair("no number", "no number of its column: many"),
        std::pair("too large a number", "no number of its column: 9999"), std::pair("show fails", "not now")}) {
    auto chain = load({"misuse"}, {{"misuse", {{"how", how}}}});
    auto rows = chain->rows_of(chain->shows().at(0));
    BOOST_TEST(!rows);
    BOOST_TEST(rows.error().to_client == "plugin \"misuse\" failed");
    BOOST_TEST(rows.error().to_log.find(words) != std::string::npos, rows.error().to_log);
  }
  auto chain = load({"misuse"});
  BOOST_TEST(chain->rows_of(chain->shows().at(0))->empty());
  auto slots = chain->begin_session("app", "alice");
  BOOST_TEST(chain->session_states(slots).empty());
  BOOST_TEST(sandbox.logged("gave reason 7 of 0"));
  chain->end_session(slots);
}

BOOST_DATA_TEST_CASE(an_advisory_plugin_that_fails_has_no_opinion, data::make(kMisuses), misuse) {
  Sandbox sandbox;
  auto advisory = load({"misuse"}, {{"misuse", {{"how", misuse.how}, {"required", "0"}}}});
  // What it failed in inspect for does not make its verdict of decide worse.
  bool fails_in_inspect =
      std::string(misuse.how) == "step in inspect" ||
      (std::string(misuse.how).starts_with("split") && std::string(misuse.how) != "split in decide");
  BOOST_TEST(decided(*advisory) == (fails_in_inspect ? "cloud  #0" : "no opinion"));
  BOOST_TEST(advisory->figures()[0].failed == 1u);
}

BOOST_AUTO_TEST_CASE(a_login_is_refused_by_what_a_plugin_says_and_by_a_required_one_that_fails) {
  Sandbox sandbox;
  auto refusal = [](const char* how, const char* required) {
    auto taken = load({"misuse"}, {{"misuse", {{"how", how}, {"required", required}}}})->startup("geqo", "off");
    return taken ? std::string(*taken ? "taken" : "passed") : taken.error().to_client;
  };
  BOOST_TEST(refusal("slot in startup", "1") == "plugin \"misuse\" failed");
  BOOST_TEST(refusal("slot in startup", "0") == "passed");
  for (const char* required : {"0", "1"}) BOOST_TEST(refusal("startup fails", required) == "not with this parameter");
  BOOST_TEST(refusal("not at all", "1") == "passed");
}

BOOST_AUTO_TEST_CASE(what_a_plugin_says_of_itself_is_told_to_the_client) {
  Sandbox sandbox;
  auto chain = load({"misuse"}, {{"misuse", {{"how", "fail and OK"}}}});
  BOOST_TEST(decided(*chain) == "refuse 57014 changed my mind");
}

BOOST_AUTO_TEST_CASE(review_may_only_refuse) {
  Sandbox sandbox;
  for (const char* how : {"direct in review", "publish in review"}) {
    auto chain = load({"misuse"}, {{"misuse", {{"how", how}}}});
    BOOST_TEST(reviewed(*chain) == "refuse XX000 plugin \"misuse\" failed");
    BOOST_TEST(chain->figures()[0].failed == 1u);
    auto advisory = load({"misuse"}, {{"misuse", {{"how", how}, {"required", "0"}}}});
    BOOST_TEST(reviewed(*advisory) == "no opinion");
  }
  BOOST_TEST(reviewed(*load({"misuse"})) == "no opinion");
}

BOOST_AUTO_TEST_CASE(verdicts_that_cannot_be_are_failures) {
  Sandbox sandbox;
  for (const char* name : {"no_sqlstate", "unknown_kind", "unknown_reason", "ask_nothing"})
    BOOST_TEST(decided(*load({name})) == "refuse XX000 plugin \"" + std::string(name) + "\" failed");
  BOOST_TEST(sandbox.logged("asked, but added neither a step nor a fact"));
  BOOST_TEST(sandbox.logged("gave reason 1 of 1"));
}

BOOST_AUTO_TEST_CASE(exceptions_end_at_the_edge) {
  Sandbox sandbox;
  for (const char* in : {"inspect", "decide", "decide-int"}) {
    auto chain = load({"throwing"}, {{"throwing", {{"in", in}}}});
    BOOST_TEST(decided(*chain) == "refuse XX000 plugin \"throwing\" failed");
  }
  BOOST_TEST(sandbox.logged("decide failed: threw an exception: thrown on purpose"));
  BOOST_TEST(reviewed(*load({"throwing"}, {{"throwing", {{"in", "review"}}}})) ==
             "refuse XX000 plugin \"throwing\" failed");
  BOOST_TEST(load_fault({"throwing"}, {{"throwing", {{"in", "init"}}}}).find("threw an exception") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(observing_cannot_change_anything) {
  Sandbox sandbox;
  auto chain = load({"throwing"}, {{"throwing", {{"in", "observe"}}}});
  auto slots = chain->begin_session("app", "alice");
  lokadb_event event{};
  event.kind = LOKADB_TRANSACTION_ENDED;
  chain->observe(nullptr, slots, event);
  BOOST_TEST(chain->figures()[0].failed == 1u);
  chain->end_session(slots);
  BOOST_TEST(slots.empty());
}

BOOST_AUTO_TEST_CASE(a_session_that_a_plugin_could_not_begin_is_refused_by_it_and_never_ended) {
  Sandbox sandbox;
  auto chain = load({"throwing"}, {{"throwing", {{"in", "session_begin"}}}});
  auto slots = chain->begin_session("app", "alice");
  BatchContext c = context();
  c.slots = &slots;
  Batch batch(c, {simple("select 1")});
  BOOST_TEST(text_of(chain->begin(batch)) == "refuse XX000 plugin \"throwing\" failed");
  auto calls = chain->figures()[0].calls;
  chain->end_session(slots);
  BOOST_TEST(chain->figures()[0].calls == calls);
}

BOOST_AUTO_TEST_CASE(what_is_lent_for_a_call_stays_where_it_is) {
  Sandbox sandbox;
  BOOST_TEST(decided(*load({"steady"})) == "no opinion");
}

BOOST_AUTO_TEST_CASE(nothing_is_told_to_a_plugin_while_it_is_reloaded_or_shown) {
  Sandbox sandbox;
  auto chain = load({"steady"});
  std::thread news([&chain] {
    for (int i = 0; i < 10; ++i) chain->feed_changed(0, "app", "news", true);
  });
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(bool(chain->reload(sections_of({"steady"}))));
    BOOST_TEST(bool(chain->rows_of(chain->shows().at(0))));
    chain->feeds("app");
  }
  news.join();
  BOOST_TEST(chain->figures()[0].failed == 0u, sandbox.log());
}

BOOST_AUTO_TEST_CASE(a_slow_call_is_warned_of_once_and_counted_each_time) {
  Sandbox sandbox;
  auto chain = load({"slow"});
  BOOST_TEST(decided(*chain) == "no opinion");
  BOOST_TEST(decided(*chain) == "no opinion");
  PluginFigures f = chain->figures()[0];
  BOOST_TEST(f.slow == 2u);
  BOOST_TEST(f.max_us >= 60'000u);
  BOOST_TEST(f.total_us >= 120'000u);
  std::string log = sandbox.log(), words = "WARNING plugin slow: decide took ";
  BOOST_TEST(log.find(words) != std::string::npos);
  BOOST_TEST(log.find(words) == log.rfind(words));
}

BOOST_AUTO_TEST_CASE(asking_without_end_ends_after_four_rounds) {
  Sandbox sandbox;
  auto chain = load({"endless"});
  Batch batch(context(), {simple("select 1")});
  BatchVerdict verdict = chain->begin(batch);
  int rounds = 0;
  while (verdict.kind == LOKADB_ASK) {
    ++rounds;
    BOOST_TEST(!batch.steps().back().is_done);
    for (auto& step : batch.steps()) step.is_done = true;
    verdict = chain->go_on(batch);
  }
  BOOST_TEST(rounds == 4);
  BOOST_TEST(text_of(verdict) == "refuse XX000 plugin \"endless\" failed");
  BOOST_TEST(sandbox.logged("asked once more after 4 rounds"));
}

BOOST_AUTO_TEST_CASE(asking_for_facts_alone_costs_no_step_and_ends_too) {
  Sandbox sandbox;
  auto chain = load({"endless_facts"});
  BOOST_TEST(decided(*chain) == "refuse XX000 plugin \"endless_facts\" failed");
  BOOST_TEST(chain->figures()[0].calls == 1u + 4);
}

BOOST_AUTO_TEST_CASE(an_advisory_plugin_that_asks_without_end_is_left_out_in_the_end) {
  Sandbox sandbox;
  auto chain = load({"endless", "organization_one"}, {{"endless", {{"required", "0"}}}});
  Batch batch(context(), {simple("select 1")});
  BatchVerdict verdict = chain->begin(batch);
  for (int i = 0; i < 4; ++i) {
    BOOST_REQUIRE(verdict.kind == LOKADB_ASK);
    for (auto& step : batch.steps()) step.is_done = true;
    verdict = chain->go_on(batch);
  }
  BOOST_TEST(text_of(verdict) == "direct 7 #0");
  for (auto& step : batch.steps()) BOOST_TEST(step.is_done);
  BOOST_TEST(batch.steps().back().is_dropped);
}

BOOST_AUTO_TEST_CASE(two_organizations_are_a_refusal) {
  Sandbox sandbox;
  auto chain = load({"organization_one", "organization_two"});
  Batch batch(context(), {simple("select 1")});
  BatchVerdict verdict = chain->begin(batch);
  BOOST_TEST(text_of(verdict) == "refuse XX000 plugins name different organizations for one batch");
  BOOST_TEST(chain->reason(verdict) == nullptr);
  BOOST_TEST(chain->figures()[1].failed == 1u);
}

BOOST_AUTO_TEST_CASE(direct_is_direct_and_its_reason_is_counted) {
  Sandbox sandbox;
  auto chain = load({"organization_one"});
  Batch batch(context(), {simple("select 1")});
  BatchVerdict verdict = chain->begin(batch);
  BOOST_TEST(text_of(verdict) == "direct 7 #0");
  BOOST_TEST(batch.targets().at(verdict.target)->database == "org7");
  BOOST_TEST(chain->reason(verdict)->id == std::string("always-7"));
  PluginFigures f = chain->figures()[0];
  BOOST_TEST(f.reasons.at(0).count == 1u);
  BOOST_TEST(f.reasons.at(0).id == "always-7");
}

BOOST_AUTO_TEST_CASE(a_huge_message_is_cut_and_has_no_zero_byte) {
  Sandbox sandbox;
  auto chain = load({"huge_message"});
  Batch batch(context(), {simple("select 1")});
  BatchVerdict verdict = chain->begin(batch);
  BOOST_TEST(verdict.sqlstate == "42501");
  BOOST_TEST(verdict.message.size() == 8004u);
  BOOST_TEST(verdict.message.find('\0') == std::string::npos);
  BOOST_TEST(verdict.message.ends_with("mmm ..."));
  BOOST_TEST(chain->figures()[0].refused == 1u);
}

BOOST_AUTO_TEST_CASE(failures_are_logged_once_a_second) {
  Sandbox sandbox;
  auto chain = load({"unknown_kind"});
  for (int i = 0; i < 50; ++i) decided(*chain);
  BOOST_TEST(chain->figures()[0].failed == 50u);
  std::string log = sandbox.log();
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log.find("decide failed", at)) != std::string::npos; ++at) ++lines;
  BOOST_TEST((lines == 1 || lines == 2));
}

BOOST_AUTO_TEST_SUITE_END()
