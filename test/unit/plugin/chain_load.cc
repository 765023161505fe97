// Loading and reloading: all or nothing.
#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

bool reload(PluginChain& chain, const TextList& names, const std::map<std::string, Lines>& written = {}) {
  return static_cast<bool>(chain.reload(sections_of(names, written)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_chain_load)

BOOST_AUTO_TEST_CASE(names_are_names_and_come_once) {
  Sandbox sandbox;
  BOOST_TEST(load_fault({"linked", "linked"}) == "plugin \"linked\" is named twice");
  BOOST_TEST(load_fault({"users"}) == "\"users\" cannot be the name of a plugin");
  BOOST_TEST(load_fault({"Linked"}) == "\"Linked\" cannot be the name of a plugin");
}

BOOST_AUTO_TEST_CASE(without_a_library_it_is_looked_for_where_plugins_are_installed) {
  Sandbox sandbox;
  std::string installed = std::string(plugin_folder()) + "/nowhere";
  auto fault = [](const PluginSections& sections) {
    return PluginChain::load({"nowhere"}, sections).error().log_text();
  };
  BOOST_TEST(fault({}).find(installed + ".so") != std::string::npos);
  PluginSections named;
  named["nowhere"].lines = {{"library", "nowhere-2.so", ""}};
  BOOST_TEST(fault(named).find(installed + "-2.so") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sections_and_options_that_nobody_reads_are_faults) {
  Sandbox sandbox;
  BOOST_TEST(load_fault({"linked"}, {{"linked", {{"wrod", "x"}}}}) ==
             "unknown parameter: linked/wrod in configuration (x.ini:2)");
  BOOST_TEST(load_fault({"linked"}, {{"linken", {{"word", "x"}}}}) ==
             "invalid section \"linken\" in configuration (x.ini:1)");
  BOOST_TEST(load_fault({"linked"}, {{"linked", {{"required", "perhaps"}}}}) ==
             "invalid value \"perhaps\" for parameter required in configuration (x.ini:2)");
}

BOOST_AUTO_TEST_CASE(a_plugin_may_use_parts_of_the_proxys_sources) {
  Sandbox sandbox;
  BOOST_TEST(decided(*load({"linked"}, {{"linked", {{"word", "LOUD"}}}})) == "cloud loud #0");
  BOOST_TEST(decided(*load({"linked"})) == "cloud none #0");
}

BOOST_AUTO_TEST_CASE(a_plugin_that_does_not_start_stops_the_others) {
  Sandbox sandbox;
  std::string said = load_fault({"linked", "failing_init"});
  BOOST_TEST(said.find("plugin \"failing_init\" (") == 0u, said);
}

BOOST_AUTO_TEST_CASE(a_reload_brings_new_values) {
  Sandbox sandbox;
  auto chain = load({"failing_reload"}, {{"failing_reload", {{"value", "one"}}}});
  BOOST_TEST(decided(*chain) == "cloud one #0");
  BOOST_TEST(reload(*chain, {"failing_reload"}, {{"failing_reload", {{"value", "two"}}}}));
  BOOST_TEST(decided(*chain) == "cloud two #0");
}

BOOST_AUTO_TEST_CASE(a_failed_reload_leaves_everything_as_it_was_in_all_plugins) {
  Sandbox sandbox;
  // stubborn_reload takes the first reload: the one before it in the list is put back when it refuses the second.
  TextList names = {"failing_reload", "stubborn_reload"};
  auto chain = load(names, {{"failing_reload", {{"value", "one"}}}});
  BOOST_TEST(reload(*chain, names, {{"failing_reload", {{"value", "two"}}}}));
  auto refused = chain->reload(sections_of(names, {{"failing_reload", {{"value", "three"}, {"required", "0"}}}}));
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().log_text() ==
             "plugin \"stubborn_reload\" (" + built_plugin("stubborn_reload") + "): reload failed: once is enough");
  BOOST_TEST(decided(*chain) == "cloud two #0");
  BOOST_TEST(chain->figures()[0].is_required);
}

BOOST_AUTO_TEST_CASE(a_reload_that_cannot_be_taken_back_ends_the_service_of_the_plugin) {
  Sandbox sandbox;
  TextList names = {"stubborn_reload", "failing_reload"};
  auto chain = load(names);
  BOOST_TEST(!reload(*chain, names, {{"failing_reload", {{"bad", "1"}}}}));
  BOOST_TEST(sandbox.logged("it is out of service until a restart"));
  BOOST_TEST(decided(*chain) == "refuse XX000 plugin \"stubborn_reload\" failed");
}

BOOST_AUTO_TEST_CASE(a_reload_is_taken_back_when_another_part_of_the_configuration_is_faulty) {
  Sandbox sandbox;
  auto chain = load({"failing_reload"}, {{"failing_reload", {{"value", "one"}}}});
  BOOST_TEST(reload(*chain, {"failing_reload"}, {{"failing_reload", {{"value", "two"}, {"required", "0"}}}}));
  BOOST_TEST(!chain->figures()[0].is_required);
  chain->undo_reload();
  BOOST_TEST(decided(*chain) == "cloud one #0");
  BOOST_TEST(chain->figures()[0].is_required);
}

BOOST_AUTO_TEST_CASE(a_reload_with_unknown_options_changes_nothing) {
  Sandbox sandbox;
  auto chain = load({"failing_reload"}, {{"failing_reload", {{"value", "one"}}}});
  BOOST_TEST(!reload(*chain, {"failing_reload"}, {{"failing_reload", {{"value", "two"}, {"valeu", "two"}}}}));
  BOOST_TEST(!reload(*chain, {"failing_reload"}, {{"failing_reload", {{"value", "two"}, {"required", "x"}}}}));
  BOOST_TEST(decided(*chain) == "cloud one #0");
}

BOOST_AUTO_TEST_CASE(what_counts_after_a_restart_only_is_said) {
  Sandbox sandbox;
  auto chain = load({"linked"});
  BOOST_TEST(reload(*chain, {"linked"}, {{"linked", {{"word", "new"}}}}));
  BOOST_TEST(sandbox.logged("plugin linked: changes of its section count after a restart"));
  BOOST_TEST(decided(*chain) == "cloud none #0");
  BOOST_TEST(reload(*chain, {"linked"}, {{"linked", {{"library", "/other.so"}}}}));
  BOOST_TEST(sandbox.logged("plugin linked: another library counts after a restart"));
}

BOOST_AUTO_TEST_SUITE_END()
