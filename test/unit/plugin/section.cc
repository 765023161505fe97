// What of the configuration a plugin may see.
#include "plugin/section.h"

#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

const lokadb_option kOptions[] = {{"colour", "red", "A colour."}, {"size", nullptr, "A size."}};
const lokadb_option kMoreOptions[] = {{"user", "nobody", "A role."}};
const lokadb_more_section kMore[] = {{"closed", kMoreOptions, 1, 0}, {"open", kMoreOptions, 1, 1}};

lokadb_plugin painter() {
  lokadb_plugin p{};
  p.name = "painter";
  p.options = kOptions;
  p.option_count = 2;
  p.sections = kMore;
  p.section_count = 2;
  return p;
}

std::string seen(const PluginSections& sections, std::string_view name) {
  lokadb_plugin plugin = painter();
  auto value = SectionView(plugin, sections).option(name);
  if (!value) return "undeclared";
  return value->data() == nullptr ? "none" : std::string(*value);
}

std::string lines(const PluginSections& sections, std::string_view of) {
  lokadb_plugin plugin = painter();
  SectionView view(plugin, sections);
  std::string all;
  std::string_view name, value;
  for (std::uint32_t i = 0; view.line(of, i, name, value) == SectionView::Line::Found; ++i)
    all.append(name).append("=").append(value).append(" ");
  return all;
}

std::string faults_of(const std::map<std::string, Lines>& written) {
  lokadb_plugin first = painter(), second{};
  const lokadb_option more[] = {{"password", nullptr, "Secret."}};
  const lokadb_more_section closed_too[] = {{"closed", more, 1, 0}};
  second.name = "second";
  second.sections = closed_too;
  second.section_count = 1;
  Faults faults;
  check_plugin_sections(sections_of({}, written), {&first, &second}, faults);
  std::string all;
  for (const auto& fault : faults) all += fault.substr(0, fault.find(" in configuration")) + "; ";
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_section)

BOOST_AUTO_TEST_CASE(an_option_is_what_is_written_else_its_default) {
  auto sections = sections_of({}, {{"painter", {{"colour", "blue"}}}, {"closed", {{"user", "bob"}}}});
  BOOST_TEST(seen(sections, "colour") == "blue");
  BOOST_TEST(seen(sections, "size") == "none");
  BOOST_TEST(seen(sections, "closed.user") == "bob");
  BOOST_TEST(seen(sections, "open.user") == "nobody");
  BOOST_TEST(seen({}, "colour") == "red");
}

BOOST_AUTO_TEST_CASE(lines_come_in_the_order_of_the_file) {
  auto sections =
      sections_of({}, {{"painter", {{"colour", "blue"}, {"colour", "green"}}}, {"open", {{"2", "b"}, {"1", "c"}}}});
  BOOST_TEST(seen(sections, "colour") == "green");
  BOOST_TEST(seen(sections, "open.1") == "c");
  BOOST_TEST(lines(sections, "open") == "2=b 1=c ");
}

BOOST_AUTO_TEST_CASE(what_was_not_declared_is_not_seen) {
  auto sections = sections_of({}, {{"other", {{"x", "1"}}}, {"closed", {{"x", "1"}}}});
  for (const char* name : {"paint", "other.x", "closed.x", "databases.x", ".x", "painter.colour"})
    BOOST_TEST(seen(sections, name) == "undeclared", name);
  lokadb_plugin plugin = painter();
  std::string_view name, value;
  BOOST_CHECK(SectionView(plugin, sections).line("other", 0, name, value) == SectionView::Line::NotDeclared);
  BOOST_CHECK(SectionView(plugin, sections).line("open", 0, name, value) == SectionView::Line::NoMore);
}

BOOST_AUTO_TEST_CASE(lines_that_no_plugin_knows_are_faults) {
  BOOST_TEST(faults_of({{"painter", {{"colour", "x"}, {"library", "x"}, {"required", "1"}}}}) == "");
  BOOST_TEST(faults_of({{"painter", {{"color", "x"}}}}) == "unknown parameter: painter/color; ");
  BOOST_TEST(faults_of({{"open", {{"anything", "x"}}}}) == "");
  // A section that two read has the options of both.
  BOOST_TEST(faults_of({{"closed", {{"user", "x"}, {"password", "y"}}}}) == "");
  BOOST_TEST(faults_of({{"closed", {{"library", "x"}}}}) == "unknown parameter: closed/library; ");
  BOOST_TEST(faults_of({{"second", {{"any", "x"}}}, {"third", {}}, {"fourth", {{"x", "1"}}}}) ==
             "invalid section \"fourth\"; unknown parameter: second/any; ");
}

BOOST_AUTO_TEST_SUITE_END()
