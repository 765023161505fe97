#include "route/decide.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "route/literals.h"
#include "route/support.h"
#include "sql/parse.h"

namespace lokadb::route {
namespace {

using namespace std::string_view_literals;
using catalog::Parameter;

Analysis analysis_of(std::string_view text, const catalog::SearchPath& path = usual_path()) {
  sql::Parsed parsed = sql::parse_sql(text);
  BOOST_REQUIRE_MESSAGE(parsed.statements.size() == 1, text);
  return analyse(test_catalog(), parsed.statements[0], path);
}

Verdict verdict_of(std::string_view text, std::vector<Parameter> parameters = {}, const Session& session = {},
                   const KeySource& keys = TestKeys()) {
  LiteralList literals(text);
  return decide(analysis_of(text), {literals.view(), parameters}, session, keys);
}

std::string words(const Verdict& v) {
  constexpr std::string_view kPaths[] = {"cloud", "direct", "refused", "look-up"};
  return std::string(kPaths[static_cast<std::size_t>(v.path)]) + " " + std::string(info(v.reason).id) + " " +
         v.organization;
}

BOOST_AUTO_TEST_SUITE(route_decide)

BOOST_AUTO_TEST_CASE(every_reason_has_an_id_of_its_own_and_a_text) {
  std::set<std::string_view> ids;
  for (const ReasonInfo& r : reasons()) {
    BOOST_TEST(ids.insert(r.id).second, r.id);
    BOOST_TEST(!r.text.empty());
    BOOST_TEST((r.text.back() != '.'));
  }
  BOOST_TEST(info(Reason::KeyFound).id == "key-found");
  BOOST_TEST(info(Reason::TooLarge).id == "too-large");
  BOOST_TEST(info(Reason::None).id == "");
}

BOOST_AUTO_TEST_CASE(keys_that_nobody_has_asked_for_are_asked_for_once) {
  Verdict v = verdict_of("SELECT * FROM documents WHERE id IN (4, 8, 4)", {}, {}, NoKeys());
  BOOST_TEST((v.path == Path::LookUp));
  BOOST_REQUIRE(v.look_ups.size() == 2);
  BOOST_TEST(v.look_ups[0].text == "4");
  BOOST_TEST(test_catalog()->tables()[v.look_ups[0].table].name == "documents");
}

BOOST_AUTO_TEST_CASE(no_key_is_asked_for_in_vain) {
  // the tenant column says it
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE id = 4 AND organization_id = 1", {}, {}, NoKeys())) ==
             "direct tenant-known 1");
  // another table cannot be known
  BOOST_TEST(words(verdict_of("SELECT * FROM documents d, tasks t WHERE d.id = 4", {}, {}, NoKeys())) ==
             "cloud organization-unknown ");
  BOOST_TEST(words(verdict_of("SELECT * FROM documents d, tasks t WHERE d.id = 4 AND t.id = 4.0", {}, {}, NoKeys())) ==
             "cloud value-not-known ");
  // SPEC T1
  Session session;
  session.naming = Session::Naming::One;
  session.named = "1";
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE id = 4", {}, session, NoKeys())) ==
             "direct organization-named 1");
}

BOOST_AUTO_TEST_CASE(a_key_is_looked_up_in_the_table_that_it_is_a_key_of) {
  Verdict v = verdict_of("SELECT * FROM messages WHERE conversation_id = '00000000-0000-0000-0000-000000000004'", {},
                         {}, NoKeys());
  BOOST_REQUIRE(v.look_ups.size() == 1);
  BOOST_TEST(test_catalog()->tables()[v.look_ups[0].table].name == "conversations");
}

// SPEC D1: a value that the server may take for another one is none.
BOOST_AUTO_TEST_CASE(parameters_with_declared_types) {
  constexpr std::string_view kBySeven = "SELECT * FROM documents WHERE organization_id = $1";
  struct Case {
    std::string_view bytes;
    std::uint32_t type;
    bool is_binary;
    std::string_view expected;
  };
  const Case cases[] = {
      {"1", 20, false, "direct tenant-known 1"},
      {"1", 23, false, "direct tenant-known 1"},
      {"1", 0, false, "direct tenant-known 1"},
      {"1", 705, false, "direct tenant-known 1"},
      {"\0\0\0\0\0\0\0\1"sv, 20, true, "direct tenant-known 1"},
      {"\0\0\0\1"sv, 23, true, "direct tenant-known 1"},
      {"\0\1"sv, 21, true, "direct tenant-known 1"},
      {"\0\0\0\0\0\0\0\1"sv, 0, true, "cloud value-not-known "},
      {"\0\0\0\1"sv, 20, true, "cloud value-not-known "},
      {"1", 1700, false, "cloud value-not-known "},
      {"1", 701, false, "cloud value-not-known "},
      {"1", 25, false, "cloud value-not-known "},
      {"1", 1043, false, "cloud value-not-known "},
      {"\x3f\xf0\0\0\0\0\0\0"sv, 701, true, "cloud value-not-known "},
  };
  for (const Case& c : cases) {
    BOOST_TEST(words(verdict_of(kBySeven, {{c.bytes, c.type, c.is_binary, false}})) == c.expected,
               "type " << c.type << " binary " << c.is_binary);
  }
  // A text that is cast is read by the type's own rules.
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE organization_id = $1::bigint",
                              {{"1", 25, false, false}})) == "direct tenant-known 1");
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE organization_id = $1::int",
                              {{"3000000000", 25, false, false}})) == "cloud value-not-known ");
  BOOST_TEST(words(verdict_of(kBySeven)) == "cloud value-not-known ");  // no value at all
}

BOOST_AUTO_TEST_CASE(array_parameters_in_both_formats) {
  constexpr std::string_view kText = "SELECT * FROM documents WHERE organization_id = ANY ($1)";
  const auto one_and = [](char second) {
    std::string bytes =
        std::string("\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0\2\0\0\0\1\0\0\0\x08\0\0\0\0\0\0\0\1\0\0\0\x08\0\0\0\0\0\0\0"sv);
    return bytes + second;
  };
  std::string same = one_and('\1'), other = one_and('\4'), cut = same.substr(0, same.size() - 1);
  BOOST_TEST(words(verdict_of(kText, {{same, 1016, true, false}})) == "direct tenant-known 1");
  BOOST_TEST(words(verdict_of(kText, {{other, 1016, true, false}})) == "cloud several-organizations ");
  BOOST_TEST(words(verdict_of(kText, {{cut, 1016, true, false}})) == "cloud value-not-known ");
  BOOST_TEST(words(verdict_of(kText, {{same + "x", 1016, true, false}})) == "cloud value-not-known ");
  BOOST_TEST(words(verdict_of(kText, {{"{1,\"1\", 1 }", 1016, false, false}})) == "direct tenant-known 1");
  BOOST_TEST(words(verdict_of(kText, {{"{1}", 1231 /* numeric[] */, false, false}})) == "cloud value-not-known ");
  BOOST_TEST(words(verdict_of(kText, {{"[0:0]={1}", 1016, false, false}})) == "cloud value-not-known ");
  BOOST_TEST(words(verdict_of(kText, {{"", 1016, false, true}})) == "cloud key-unknown ");
}

BOOST_AUTO_TEST_CASE(the_gate_gets_keys_tables_and_rights) {
  constexpr std::string_view kText = "SELECT d.title FROM documents d WHERE d.id IN (4, 8) ORDER BY d.created_at";
  Verdict v = verdict_of(kText);
  BOOST_TEST(keys_argument(*test_catalog(), v.keys) == "{\"public.documents\":[\"4\",\"8\"]}");
  Analysis a = analysis_of(kText);
  BOOST_TEST(a.p_rights == "{\"public.documents\":{\"SELECT\":[\"id\",\"title\",\"created_at\"]}}");
  auto tables = nlohmann::json::parse(a.p_tables);
  BOOST_TEST(tables["public.documents"].get<std::string>() ==
             test_catalog()->find("", "documents", usual_path()).table->fingerprint);
  // A key that is only a condition beside the tenant column is not looked at.
  BOOST_TEST(verdict_of("SELECT * FROM documents WHERE id = 4 AND organization_id = 1").keys.empty());
}

// SPEC R2, by PostgreSQL's rules.
BOOST_AUTO_TEST_CASE(rights_that_statements_take) {
  struct Case {
    std::string_view text, rights;
  };
  const Case cases[] = {
      {"SELECT count(*) FROM tasks WHERE true", R"({"public.tasks":{"SELECT":[]}})"},
      {"SELECT t.slug FROM tasks t", R"({"public.tasks":{"SELECT":["slug"]}})"},
      {"SELECT * FROM tasks",
       R"({"public.tasks":{"SELECT":["id","organization_id","parent_id","slug","price","due"]}})"},
      {"SELECT slug FROM tasks FOR SHARE", R"({"public.tasks":{"SELECT":["slug"],"UPDATE":[]}})"},
      {"SELECT s FROM (SELECT slug AS s FROM tasks) x", R"({"public.tasks":{"SELECT":["slug"]}})"},
      {"SELECT a.slug, b.price FROM tasks a, tasks b", R"({"public.tasks":{"SELECT":["slug","price"]}})"},
      {"SELECT count(*) FROM tasks JOIN documents USING (organization_id)",
       R"({"public.documents":{"SELECT":["organization_id"]},"public.tasks":{"SELECT":["organization_id"]}})"},
      {"UPDATE tasks SET price = 1", R"({"public.tasks":{"UPDATE":["price"]}})"},
      {"UPDATE tasks SET price = price + 1 WHERE id = 4 RETURNING slug",
       R"({"public.tasks":{"SELECT":["id","slug","price"],"UPDATE":["price"]}})"},
      {"DELETE FROM tasks", R"({"public.tasks":{"DELETE":[]}})"},
      {"DELETE FROM tasks WHERE id = 4", R"({"public.tasks":{"DELETE":[],"SELECT":["id"]}})"},
      {"INSERT INTO tasks (organization_id, slug) VALUES (1, 'x') RETURNING id",
       R"({"public.tasks":{"INSERT":["organization_id","slug"],"SELECT":["id"]}})"},
      {"INSERT INTO tasks (id, organization_id, slug) VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET price = "
       "tasks.price",
       R"({"public.tasks":{"INSERT":["id","organization_id","slug"],"SELECT":["id","price"],"UPDATE":["price"]}})"},
      {"COPY labels (id, organization_id) FROM STDIN", R"({"public.labels":{"INSERT":["id","organization_id"]}})"},
  };
  for (const Case& c : cases) BOOST_TEST(analysis_of(c.text).p_rights == c.rights, c.text);
}

BOOST_AUTO_TEST_CASE(work_that_a_write_leaves_to_the_cloud) {
  Analysis a = analysis_of("INSERT INTO tasks (organization_id, slug) VALUES (1, 'x')");
  BOOST_TEST(a.needs_new_keys);
  BOOST_TEST(a.may_change_keys);
  BOOST_TEST(!analysis_of("INSERT INTO tasks (id, organization_id, slug) VALUES (1, 1, 'x')").needs_new_keys);
  BOOST_TEST(!analysis_of("UPDATE tasks SET price = 1 WHERE id = 4").may_change_keys);
  BOOST_TEST(analysis_of("DELETE FROM tasks WHERE id = 4").may_change_keys);
  // SPEC W6: no foreign key stands behind labels.task_id
  BOOST_TEST(analysis_of("UPDATE labels SET task_id = 4 WHERE id = 'l4'").declared_parents.size() == 1u);
  BOOST_TEST(analysis_of("UPDATE tasks SET parent_id = 4 WHERE id = 8").declared_parents.empty());
  a = analysis_of(
      "INSERT INTO tasks (id, organization_id, slug) VALUES (1, 1, 'x') ON CONFLICT (organization_id, id) DO NOTHING");
  BOOST_TEST(a.conflict_is_key_and_tenant);
  BOOST_TEST(a.local_parts.size() == 1u);
  BOOST_TEST(analysis_of("SELECT * FROM labels WHERE organization_id = 1").has_user_types);
  BOOST_TEST(!analysis_of("SELECT id FROM labels WHERE organization_id = 1").has_user_types);
}

// SPEC Q3, S2: whatever stands in the way of the direct path, the rows are still those of the organization.
BOOST_AUTO_TEST_CASE(a_session_that_may_not_goes_through_the_cloud) {
  constexpr std::string_view kText = "SELECT * FROM documents WHERE organization_id = 1";
  Session session;
  session.not_eligible = Reason::SettingChanged;
  BOOST_TEST(words(verdict_of(kText, {}, session)) == "cloud setting-changed 1");
  session.profile = catalog::Profile::Direct;
  BOOST_TEST(words(verdict_of(kText, {}, session)) == "refused setting-changed 1");
  session = {};
  session.catalog_is_stale = true;
  BOOST_TEST(words(verdict_of(kText, {}, session)) == "cloud catalog-stale 1");
  session = {};
  BOOST_TEST(words(verdict_of("DELETE FROM tasks WHERE id = 4", {}, session)) == "cloud writes-not-yet-direct 1");
  BOOST_TEST(words(verdict_of("SELECT * FROM tasks WHERE id = 4 FOR UPDATE", {}, session)) ==
             "cloud locks-not-yet-direct 1");
  BOOST_TEST(words(verdict_of("SELECT * FROM tasks WHERE id = 4 FOR UPDATE NOWAIT", {}, session)) ==
             "refused nowait-fdw 1");
}

BOOST_AUTO_TEST_CASE(an_organization_at_home_uses_the_local_part_where_the_root_cannot) {
  BOOST_TEST(verdict_of("SELECT id, title FROM documents WHERE organization_id = 3 GROUP BY id").use_local_part);
  BOOST_TEST(!verdict_of("SELECT id, title FROM documents WHERE organization_id = 3").use_local_part);
  BOOST_TEST(!verdict_of("SELECT id, title FROM documents WHERE organization_id = 1 GROUP BY id").use_local_part);
}

// SPEC T2: for the time of a migration
BOOST_AUTO_TEST_CASE(a_mismatch_can_be_logged_instead) {
  Session session;
  session.naming = Session::Naming::One;
  session.named = "1";
  session.logs_mismatch = true;
  Verdict v = verdict_of("SELECT * FROM documents WHERE organization_id = 4", {}, session);
  BOOST_TEST(words(v) == "cloud other-organization 1");
  BOOST_TEST(v.is_mismatch);
}

// SPEC T7, T8
BOOST_AUTO_TEST_CASE(what_is_allowed_is_not_rejected) {
  Session session;
  session.is_rejecting = session.is_allowed = true;
  BOOST_TEST(words(verdict_of("SELECT * FROM documents", {}, session)) == "cloud organization-unknown ");
  session.naming = Session::Naming::All;
  BOOST_TEST(words(verdict_of("SELECT * FROM documents", {}, session)) == "cloud all-organizations ");
  session.is_allowed = false;
  Verdict v = verdict_of("SELECT * FROM documents", {}, session);
  BOOST_TEST(words(v) == "refused rejected ");
  BOOST_TEST(v.sqlstate == "0A000");
  BOOST_TEST(refusal_text(analysis_of("SELECT * FROM documents"), v).starts_with("lokadb: the statement is refused: "));
}

BOOST_AUTO_TEST_CASE(names_depend_on_the_search_path) {
  auto reason = [](std::string_view text, std::string_view path) {
    Analysis a = analysis_of(text, catalog::SearchPath::parse(path, "app"));
    return std::string(info(a.cloud_reason).id);
  };
  BOOST_TEST(reason("SELECT 1 FROM documents", "public") == "");
  BOOST_TEST(reason("SELECT 1 FROM documents", "reports, public") == "name-hidden");
  BOOST_TEST(reason("SELECT 1 FROM documents", "elsewhere") == "no-lokadb-table");
  BOOST_TEST(reason("SELECT 1 FROM public.documents", "elsewhere") == "");
  BOOST_TEST(reason("SELECT 1 FROM documents", "public, pg_catalog") == "search-path");
}

// SPEC C3, with a catalog in which somebody has functions, operators, casts and types of his own.
BOOST_AUTO_TEST_CASE(things_of_ones_own_with_the_names_of_built_ins) {
  auto document = nlohmann::json::parse(test_file("catalog.json"));
  auto reason = [&](std::string_view text) {
    auto catalog = catalog::Catalog::parse(document.dump());
    BOOST_REQUIRE(catalog);
    return std::string(info(analyse(*catalog, sql::parse_sql(text).statements[0], usual_path()).cloud_reason).id);
  };
  document["functions"] = {{"lower", "any"}, {"max", "typed"}};
  BOOST_TEST(reason("SELECT lower(title) FROM documents") == "function-shadowed");
  BOOST_TEST(reason("SELECT pg_catalog.lower(title) FROM documents") == "");
  BOOST_TEST(reason("SELECT max(title) FROM documents") == "");
  BOOST_TEST(reason("SELECT max(mood) FROM labels") == "function-shadowed");
  document["operators"] = {{"=", "any"}};
  BOOST_TEST(reason("SELECT title FROM documents WHERE organization_id = 1") == "operator");
  document["operators"] = {{"=", "typed"}};
  BOOST_TEST(reason("SELECT title FROM documents WHERE organization_id = 1") == "");
  BOOST_TEST(reason("SELECT id FROM labels WHERE mood = 'calm'") == "operator");
  document["types"][0]["kind"] = "base";
  BOOST_TEST(reason("SELECT id FROM labels WHERE mood = 'calm'") != "");
  BOOST_TEST(reason("SELECT mood FROM labels") == "extension-type");
  BOOST_TEST(reason("SELECT * FROM labels") == "");
  document["casts"] = {"text to boolean"};
  BOOST_TEST(reason("SELECT title FROM documents") == "cast");
}

// With '=' in doubt no condition names an organization, for the cloud path neither.
BOOST_AUTO_TEST_CASE(nothing_is_known_by_an_equality_that_may_be_another) {
  auto document = nlohmann::json::parse(test_file("catalog.json"));
  document["operators"] = {{"=", "any"}};
  auto catalog = catalog::Catalog::parse(document.dump());
  BOOST_REQUIRE(catalog);
  constexpr std::string_view kText = "SELECT * FROM documents WHERE organization_id = 1";
  LiteralList literals(kText);
  Analysis a = analyse(*catalog, sql::parse_sql(kText).statements[0], usual_path());
  Verdict v = decide(a, {literals.view(), {}}, {}, TestKeys());
  BOOST_TEST((v.whose == Verdict::Whose::Unknown));
}

BOOST_AUTO_TEST_CASE(organizations_that_are_texts) {
  auto document = nlohmann::json::parse(test_file("catalog.json"));
  document["tenant_type"] = "text";
  for (auto& table : document["tables"])
    for (auto& column : table["columns"])
      if (column["name"] == "organization_id") {
        column["type"] = 25;
        column["type_name"] = "text";
      }
  auto catalog = catalog::Catalog::parse(document.dump());
  BOOST_REQUIRE(catalog);
  auto said = [&](std::string_view text, std::vector<Parameter> parameters = {}, bool has_utf8 = true) {
    LiteralList literals(text);
    Session session;
    session.has_utf8 = has_utf8;
    return words(decide(analyse(*catalog, sql::parse_sql(text).statements[0], usual_path()),
                        {literals.view(), parameters}, session, TestKeys()));
  };
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '1'") == "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = E'1'") == "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = $x$1$x$") == "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = 'it''s'") == "cloud not-moved it's");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = E'\\x31'") == "cloud value-not-known ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = U&'\\0031'") == "cloud value-not-known ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = 'a'\n'b'") == "cloud value-not-known ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '1 '") == "cloud not-moved 1 ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = 1") == "cloud value-not-known ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '1'::char(3)") != "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '1'::varchar(1)") != "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '1'::name") == "cloud type ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = ''") == "cloud key-unknown ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '*'") == "cloud key-unknown ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE lower(organization_id) = '1'") == "cloud organization-unknown ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id ILIKE '1'") == "cloud organization-unknown ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = $1", {{"1", 25, false, false}}) ==
             "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = $1", {{"1", 1043, true, false}}) ==
             "direct tenant-known 1");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = $1", {{"1", 1042, false, false}}) ==
             "cloud value-not-known ");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = $1 AND title = $1", {{"1", 0, false, false}}) ==
             "cloud value-not-known ");
  // The same bytes are another text in another encoding.
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '\xc3\xbc'") == "cloud not-moved \xc3\xbc");
  BOOST_TEST(said("SELECT 1 FROM documents WHERE organization_id = '\xc3\xbc'", {}, false) == "cloud value-not-known ");
}

// SPEC X1: an organization without a cloud path makes "all" impossible.
BOOST_AUTO_TEST_CASE(nobody_is_answered_without_the_rows_of_an_organization_that_the_cloud_cannot_reach) {
  auto document = nlohmann::json::parse(test_file("catalog.json"));
  document["organizations"][0]["profile"] = "direct";
  auto catalog = catalog::Catalog::parse(document.dump());
  BOOST_REQUIRE(catalog);
  for (std::string_view text : {"SELECT * FROM documents", "SELECT * FROM recent", "UPDATE tasks SET price = 1"}) {
    Verdict v = decide(analyse(*catalog, sql::parse_sql(text).statements[0], usual_path()), {}, {}, TestKeys());
    BOOST_TEST(words(v) == "refused organization-not-named ", text);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_an_organization_is_refused_where_it_matters) {
  Session session;
  session.naming = Session::Naming::Unusable;
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE organization_id = 1", {}, session)) ==
             "refused named-unusable ");
  BOOST_TEST(words(verdict_of("SELECT 1", {}, session)) == "cloud no-lokadb-table ");
}

// SPEC T2.
BOOST_AUTO_TEST_CASE(a_logged_mismatch_runs_under_the_named_one_and_never_direct) {
  Session session;
  session.naming = Session::Naming::One;
  session.named = "1";
  Verdict own = verdict_of("SELECT * FROM documents WHERE organization_id = 1", {}, session);
  BOOST_TEST((own.path == Path::Direct && own.about == "1" && !own.is_mismatch));
  BOOST_TEST(verdict_of("SELECT * FROM documents", {}, session).about.empty());
  session.logs_mismatch = true;
  Verdict other = verdict_of("SELECT * FROM documents WHERE organization_id IN (1, 4)", {}, session);
  BOOST_TEST(words(other) == "cloud other-organization 1");
  BOOST_TEST((other.is_mismatch && other.about == "4"));
  session.profile = catalog::Profile::Direct;
  BOOST_TEST(words(verdict_of("SELECT * FROM documents WHERE organization_id = 4", {}, session)) ==
             "refused other-organization 1");
}

BOOST_AUTO_TEST_CASE(what_only_sets_until_the_end_of_the_transaction) {
  for (std::string_view text : {"SET LOCAL lokadb.tenant = 1"sv, "SELECT set_config('a.b', $1, true)"sv,
                                "SELECT set_config('a.b', '1', true), set_config('a.c', '2', true) AS c"sv})
    BOOST_TEST(analysis_of(text).sets_locally, text);
  for (std::string_view text :
       {"SET lokadb.tenant = 1"sv, "SET LOCAL search_path = x"sv, "SELECT set_config('a.b', '1', false)"sv,
        "SELECT set_config('a.b', '1', $1)"sv, "SELECT set_config('a.b', '1', true) WHERE false"sv,
        "SELECT set_config('a.b', '1', true), nextval('s')"sv, "SELECT set_config('a.b', title, true) FROM documents"sv,
        "SELECT set_config('a.b', '1', true) || 'x'"sv, "SELECT 1"sv, "RESET a.b"sv, "SELECT now()"sv})
    BOOST_TEST(!analysis_of(text).sets_locally, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::route
