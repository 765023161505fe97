#include "config/option_pages.h"

#include <boost/test/unit_test.hpp>
#include <sstream>

#include "config/options.h"
#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

// The sample with the ';' in front of each option that has a default taken away.
std::string sample_switched_on() {
  std::istringstream in(options_as_ini_text());
  std::string out;
  for (std::string line; std::getline(in, line);) {
    std::size_t end = line.find(" =");
    const OptionRow* row =
        line.starts_with(';') && end != std::string::npos ? find_option(line.substr(1, end - 1)) : nullptr;
    out += (row != nullptr && row->fallback != nullptr ? line.substr(1) : line) + "\n";
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_option_pages)

BOOST_AUTO_TEST_CASE(the_sample_says_nothing_until_it_is_edited) {
  Parsed parsed = parse(options_as_ini_text());
  BOOST_REQUIRE_MESSAGE(parsed.config, parsed.faults);
  for (const auto& row : option_rows()) {
    if (row.key == "conffile") continue;  // known from the command line
    BOOST_CHECK_MESSAGE(option_text(parsed.config->options, row) == option_text(default_options(), row), row.key);
  }
}

BOOST_AUTO_TEST_CASE(what_the_sample_has_commented_out_are_the_defaults) {
  std::string text = sample_switched_on();
  for (const auto& row : option_rows()) {
    if (row.fallback == nullptr) continue;
    BOOST_CHECK_MESSAGE(text.find("\n" + std::string(row.key) + " =") != std::string::npos, row.key);
  }
  Parsed parsed = parse(text);
  BOOST_REQUIRE_MESSAGE(parsed.config, parsed.faults);
  for (const auto& row : option_rows()) {
    if (row.key == "conffile") continue;
    BOOST_CHECK_MESSAGE(option_text(parsed.config->options, row) == option_text(default_options(), row), row.key);
  }
}

BOOST_AUTO_TEST_CASE(every_option_is_in_the_sample_once) {
  std::string text = options_as_ini_text();
  for (const auto& row : option_rows()) {
    std::string line = "\n;" + std::string(row.key) + " =";
    std::size_t at = text.find(line);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, row.key);
    BOOST_CHECK_MESSAGE(text.find(line, at + 1) == std::string::npos, row.key);
  }
}

BOOST_AUTO_TEST_CASE(the_manual_tells_meaning_kind_default_and_when_it_counts) {
  std::string text = options_as_man_text();
  BOOST_TEST(text.find(".TP\n.B default_pool_size\nServer connections for each pair of user and database; 0 means no "
                       "limit.\nValue: an integer.\nDefault: 20.\nRELOAD changes it.\n") != std::string::npos);
  BOOST_TEST(text.find(".B tcp_user_timeout\n") != std::string::npos);
  BOOST_TEST(text.find("Value: an integer, in milliseconds.\n") != std::string::npos);
  BOOST_TEST(text.find("Value: one of session, transaction, statement.\n") != std::string::npos);
  BOOST_TEST(text.find("Default: unset.\n") != std::string::npos);
  BOOST_TEST(text.find("Default: empty.\n") != std::string::npos);
  BOOST_TEST(text.find("Counts at start only.\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_manual_has_no_bare_hyphens_and_no_stray_requests) {
  std::istringstream in(options_as_man_text());
  for (std::string line; std::getline(in, line);) {
    BOOST_TEST((!line.starts_with('.') || line == ".TP" || line.starts_with(".B ")), line);
    for (std::size_t i = line.find('-'); i != std::string::npos; i = line.find('-', i + 1))
      BOOST_TEST((i > 0 && line[i - 1] == '\\'), line);
  }
}

BOOST_AUTO_TEST_SUITE_END()
