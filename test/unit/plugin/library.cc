// A plugin with a fault in its table, or in how it starts, is not loaded: one test plugin for each fault.
#include "plugin/library.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "plugin/host_calls.h"
#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

struct LoadFault {
  const char* plugin;
  const char* words;
};
std::ostream& operator<<(std::ostream& out, const LoadFault& f) { return out << f.plugin; }

const LoadFault kFaults[] = {
    {"no_entry", "has no function lokadb_plugin_entry"},
    {"null_entry", "refused to be loaded without saying why"},
    {"refusing_entry", "refused to be loaded: the moon is in the wrong place"},
    {"newer_minor", "is made for version 1.1 of the plugin interface; this proxy has 1.0 and is too old for it"},
    {"other_major", "is made for version 2.0 of the plugin interface; this proxy has 1.0"},
    {"short_table", "which no version has"},
    {"no_name", "has no name"},
    {"other_name", "is plugin \"somebody_else\""},
    {"half_feed", "has only one of feed and feed_changed"},
    {"duplicate_reasons", "has reason once twice"},
    {"bad_reason_id", "has reason 0 without an id of a-z, 0-9 and -"},
    {"own_library_option", "declares option library, which is the proxy's"},
    {"failing_init", "init failed: there is no fish in the section"},
    {"silent_init", "init failed: returned 1 without saying why"},
    {"undeclared_option", "init failed: asked for option colour, which it does not declare"},
};

lokadb_plugin good_table() {
  lokadb_plugin p{};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "good";
  p.version = "1";
  return p;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_library)

BOOST_DATA_TEST_CASE(a_faulty_plugin_is_refused_by_name_file_and_reason, boost::unit_test::data::make(kFaults), fault) {
  Sandbox sandbox;
  std::string said = load_fault({fault.plugin});
  BOOST_TEST(said.find(fault.words) != std::string::npos, said);
  BOOST_TEST(said.find(built_plugin(fault.plugin)) != std::string::npos, said);
  BOOST_TEST(said.find(std::string("plugin \"") + fault.plugin + "\"") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_missing_or_no_library_is_named) {
  Sandbox sandbox;
  std::string missing = sandbox.path("gone.so"), text = sandbox.write("text.so", "This is no library.");
  BOOST_TEST(PluginLibrary::open(missing, "gone").error().log_text() ==
             "cannot load plugin \"gone\": " + missing + ": cannot open shared object file: No such file or directory");
  BOOST_TEST(PluginLibrary::open(text, "text").error().log_text() ==
             "cannot load plugin \"text\": " + text + ": file too short");
}

BOOST_AUTO_TEST_CASE(a_table_of_this_version_is_good) {
  lokadb_plugin p = good_table();
  BOOST_TEST(fault_of_table(&p, "good") == "");
}

BOOST_AUTO_TEST_CASE(a_table_larger_than_ours_is_of_no_version) {
  lokadb_plugin p = good_table();
  p.struct_size = sizeof p + 8;
  BOOST_TEST(fault_of_table(&p, "good") ==
             "has a table of " + std::to_string(sizeof p + 8) + " bytes, which no version has");
  p.struct_size = 8;
  BOOST_TEST(fault_of_table(&p, "good") == "has a table of 8 bytes, which no version has");
}

BOOST_AUTO_TEST_CASE(tables_must_be_whole) {
  lokadb_plugin p = good_table();
  p.version = "";
  BOOST_TEST(fault_of_table(&p, "good") == "has no version");
  p = good_table();
  p.option_count = 2;
  BOOST_TEST(fault_of_table(&p, "good") == "has 2 options at address 0");
  p = good_table();
  p.reason_count = 20'000;
  BOOST_TEST(fault_of_table(&p, "good") == "has 20000 reasons");
  p = good_table();
  p.session_end = [](void*, void*) {};
  BOOST_TEST(fault_of_table(&p, "good") == "has session_end, but no session_begin");
}

BOOST_AUTO_TEST_CASE(options_have_plain_names_and_a_text) {
  lokadb_plugin p = good_table();
  auto fault = [&p](lokadb_option first, lokadb_option second) {
    lokadb_option options[] = {first, second};
    p.options = options;
    p.option_count = 2;
    return fault_of_table(&p, "good");
  };
  BOOST_TEST(fault({"a", nullptr, "A."}, {"b", "1", "B."}) == "");
  BOOST_TEST(fault({"a", nullptr, "A."}, {"a", "1", "B."}) == "declares option a twice");
  BOOST_TEST(fault({"a.b", nullptr, "A."}, {"b", "1", "B."}) == "has a dot in the name of option a.b");
  BOOST_TEST(fault({"a", nullptr, nullptr}, {"b", "1", "B."}) == "has no text for option a");
  BOOST_TEST(fault({"", nullptr, "A."}, {"b", "1", "B."}) == "has an option without a name");
  BOOST_TEST(fault({"a", nullptr, "A."}, {"required", "1", "B."}) == "declares option required, which is the proxy's");
}

BOOST_AUTO_TEST_CASE(further_sections_are_not_the_proxys_own) {
  lokadb_plugin p = good_table();
  auto fault = [&p](const char* name) {
    lokadb_more_section sections[] = {{"one", nullptr, 0, 1}, {name, nullptr, 0, 1}};
    p.sections = sections;
    p.section_count = 2;
    return fault_of_table(&p, "good");
  };
  BOOST_TEST(fault("two") == "");
  BOOST_TEST(fault("one") == "declares section one twice");
  BOOST_TEST(fault("good") == "declares its own section good as a further one");
  BOOST_TEST(fault("databases") == "declares a section whose name cannot be one");
  BOOST_TEST(fault("two words") == "declares a section whose name cannot be one");
}

BOOST_AUTO_TEST_CASE(show_commands_are_looked_at) {
  auto fault = [](std::vector<lokadb_show> shows, bool has_function = true) {
    lokadb_plugin p = good_table();
    p.shows = shows.data();
    p.show_count = static_cast<std::uint32_t>(shows.size());
    if (has_function) p.show = [](void*, std::uint32_t, lokadb_rows*) -> int { return LOKADB_OK; };
    return fault_of_table(&p, "good");
  };
  BOOST_TEST(fault({{"orgs", "name t, count q, small i"}, {"tables", "name t"}}) == "");
  BOOST_TEST(fault({{"orgs", "name t"}}, false) == "has SHOW commands, but no function show");
  BOOST_TEST(fault({{"orgs", "name t"}, {"orgs", "name t"}}) == "has SHOW orgs twice");
  BOOST_TEST(fault({{"Orgs", "name t"}}) == "has SHOW command 0 without a name of a-z, 0-9 and _");
  for (const char* columns : {"", "name", "name x", "name t,count q", "name t, ", "na me t", " t"})
    BOOST_TEST(fault({{"orgs", columns}}) == "has columns for SHOW orgs that are none", columns);
}

BOOST_AUTO_TEST_CASE(the_host_is_whole) {
  const lokadb_host* host = plugin_host();
  BOOST_TEST(host->struct_size == sizeof(lokadb_host));
  BOOST_TEST(host->abi_major == std::uint32_t{LOKADB_ABI_MAJOR});
  BOOST_TEST(std::string(host->product).starts_with("lokadb-proxy "));
  // From the first function to the last one there is none missing.
  const auto* begin = reinterpret_cast<void* const*>(&host->log);
  const auto* end = reinterpret_cast<void* const*>(&host->add_row) + 1;
  BOOST_TEST(std::count(begin, end, nullptr) == 0);
  BOOST_TEST((end - begin) == 20);
}

BOOST_AUTO_TEST_SUITE_END()
