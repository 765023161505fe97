#include "catalog/catalog.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "route/support.h"

namespace lokadb::catalog {
namespace {

using Kind = Catalog::Found::Kind;

SearchPath path_of(std::string_view setting) { return SearchPath::parse(setting, "app"); }

BOOST_AUTO_TEST_SUITE(catalog_catalog)

BOOST_AUTO_TEST_CASE(the_document_becomes_tables_that_refer_to_each_other) {
  auto catalog = route::test_catalog();
  const Table* messages = catalog->find("", "messages", route::usual_path()).table;
  BOOST_REQUIRE(messages);
  BOOST_TEST(messages->quoted == "public.messages");
  BOOST_TEST(messages->tenant_added);
  BOOST_TEST(messages->columns[messages->key].name == "id");
  BOOST_TEST(messages->columns[messages->tenant].name == "organization_id");
  BOOST_REQUIRE(messages->parents.size() == 1);
  const Table& conversations = catalog->tables()[messages->parents[0].table];
  BOOST_TEST(conversations.name == "conversations");
  BOOST_TEST((conversations.key_type == ValueType::Uuid));
  BOOST_TEST(conversations.changed_children.size() == 1u);
  BOOST_TEST(messages->parent(messages->column("conversation_id")) == &messages->parents[0]);
  BOOST_TEST(!messages->parent(messages->key));
  BOOST_TEST(messages->column("nonsense") == kNoColumn);
}

BOOST_AUTO_TEST_CASE(organizations_have_profiles) {
  auto catalog = route::test_catalog();
  BOOST_REQUIRE(catalog->organization("1"));
  BOOST_TEST((catalog->organization("1")->profile == Profile::FdwDirect));
  BOOST_TEST(catalog->organization("1")->has_moved());
  BOOST_TEST(!catalog->organization("3"));
  BOOST_TEST(catalog->has_moved_organizations());
  BOOST_TEST(!catalog->has_direct_organizations());
}

BOOST_AUTO_TEST_CASE(reserved_values_are_no_organizations) {
  auto catalog = route::test_catalog();
  BOOST_TEST(*catalog->canonical_organization(" 007") == "7");
  for (auto text : {"", "*", "-9223372036854775808", "x", "1.0"})
    BOOST_TEST(!catalog->canonical_organization(text).has_value());
}

// SPEC D1a
BOOST_AUTO_TEST_CASE(a_name_is_the_table_only_if_no_other_relation_can_be_meant) {
  auto catalog = route::test_catalog();
  auto kind = [&](std::string_view schema, std::string_view path) {
    return catalog->find(schema, "documents", path_of(path)).kind;
  };
  BOOST_TEST((kind("", "public") == Kind::Table));
  BOOST_TEST((kind("", "\"$user\", public") == Kind::Table));
  BOOST_TEST((kind("", "pg_catalog, public") == Kind::Table));
  BOOST_TEST((kind("", "reports, public") == Kind::Hidden));
  BOOST_TEST((kind("", "public, reports") == Kind::Hidden));  // if the role may not use public
  BOOST_TEST((SearchPath::parse("\"$user\", public", "reports").schemas.front() == "reports"));
  BOOST_TEST((catalog->find("", "documents", SearchPath::parse("\"$user\", public", "reports")).kind == Kind::Hidden));
  BOOST_TEST((kind("", "reports") == Kind::Other));
  BOOST_TEST((kind("", "") == Kind::Other));
  BOOST_TEST((kind("public", "reports") == Kind::Table));
  BOOST_TEST((kind("reports", "public") == Kind::Other));
}

BOOST_AUTO_TEST_CASE(views_parts_and_refs_are_known) {
  auto catalog = route::test_catalog();
  auto other = [&](std::string_view name) { return catalog->find("", name, route::usual_path()).other; };
  BOOST_TEST((other("recent") == OtherKind::View));
  BOOST_TEST((other("documents__local") == OtherKind::Part));
  BOOST_TEST((other("documents__refs") == OtherKind::Refs));
  BOOST_TEST((other("codes") == OtherKind::Active));
  BOOST_TEST(!other("nowhere").has_value());
}

BOOST_AUTO_TEST_CASE(a_search_path_is_read_as_the_server_reports_it) {
  SearchPath path = path_of("\"$user\", Public,\"My, \"\"schema\"\"\" , public");
  std::vector<std::string> expected{"app", "public", "My, \"schema\""};
  BOOST_TEST(path.schemas == expected, boost::test_tools::per_element());
  BOOST_TEST(!path.hides_built_ins);
  BOOST_TEST(!path_of("pg_catalog, public").hides_built_ins);
  BOOST_TEST(path_of("public, pg_catalog").hides_built_ins);
  BOOST_TEST(path_of("public, pg_temp").hides_built_ins);
  BOOST_TEST(path_of("").schemas.empty());
  BOOST_TEST(path_of("\"\"").schemas.empty());
}

BOOST_AUTO_TEST_CASE(a_document_that_is_none_is_one_error) {
  nlohmann::json whole = nlohmann::json::parse(route::test_file("catalog.json"));
  for (std::string_view text : {"", "[]", "{}", "{\"format\": 1}", "null", "{\"format\": \"x\"}"}) {
    auto parsed = Catalog::parse(text);
    BOOST_REQUIRE(!parsed);
    BOOST_TEST((parsed.error().state == "XX000"));
  }
  auto newer = whole;
  newer["format"] = 2;
  auto parsed = Catalog::parse(newer.dump());
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(parsed.error().to_client.find("newer lokadb") != std::string::npos);
  for (const auto& [name, value] : whole.items()) {
    auto less = whole;
    less.erase(name);
    bool is_needed = name != "encoding";
    BOOST_TEST(!Catalog::parse(less.dump()) == is_needed, name);
  }
  auto strange = whole;
  strange["organizations"][0]["profile"] = "elsewhere";
  BOOST_TEST(!Catalog::parse(strange.dump()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::catalog
