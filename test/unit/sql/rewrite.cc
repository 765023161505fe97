#include "sql/rewrite.h"

#include <boost/test/unit_test.hpp>

#include "sql/cases.h"
#include "sql/parse.h"

namespace lokadb::sql {
namespace {

const TenantCondition kTenant{"organization_id", "$9", false};

Statement facts_of(std::string_view text) { return parse_sql(text).statements.at(0); }

std::string text_of(const std::optional<Rewritten>& rewritten) { return rewritten ? rewritten->text : "not rewritten"; }

std::string renamed(std::string_view text, std::uint16_t relation = 0) {
  return text_of(rename_relation(text, facts_of(text), relation, "public", "documents__local"));
}
std::string wrapped(std::string_view text, std::vector<std::uint16_t> relations = {0}) {
  return text_of(wrap_relations(text, facts_of(text), std::move(relations), kTenant));
}
std::string restricted(std::string_view text) { return text_of(restrict_target(text, facts_of(text), kTenant)); }

BOOST_AUTO_TEST_SUITE(sql_rewrite)

BOOST_AUTO_TEST_CASE(a_relation_gets_another_name_and_keeps_its_alias) {
  std::string pairs[][2] = {
      {"select * from documents where id = 1",
       "select * from \"public\".\"documents__local\" AS \"documents\" where id = 1"},
      {"select d.id from only shop.documents as d, pages",
       "select d.id from only \"public\".\"documents__local\" as d, pages"},
      {"select * from documents *, pages", "select * from \"public\".\"documents__local\" * AS \"documents\", pages"},
      {"insert into documents (id) values (1) on conflict (id) do update set n = documents.n + 1",
       "insert into \"public\".\"documents__local\" AS \"documents\" (id) values (1) on conflict (id) do update set n "
       "= documents.n + 1"},
      {"update documents set n = 1 where documents.id = 2 returning *",
       "update \"public\".\"documents__local\" AS \"documents\" set n = 1 where documents.id = 2 returning *"},
      {"delete from \"documents\" -- all\n using pages",
       "delete from \"public\".\"documents__local\" AS \"documents\" -- all\n using pages"},
      {"copy documents (id) from stdin", "copy \"public\".\"documents__local\" (id) from stdin"},
  };
  for (const auto& [text, expected] : pairs) BOOST_TEST(renamed(text) == expected);
  BOOST_TEST(renamed("select (select max(id) from pages) from documents /* x */ d", 1) ==
             "select (select max(id) from \"public\".\"documents__local\" AS \"pages\") from documents /* x */ d");
  // What could not stand there, or would mean something else.
  for (const char* text : {"table documents", "select public.documents.id from public.documents", "lock documents",
                           "select * from documents d (a, b)", "select * from U&\"documents\"", "truncate documents"})
    BOOST_TEST(renamed(text) == "not rewritten", text);
}

BOOST_AUTO_TEST_CASE(a_relation_is_wrapped_with_the_tenant) {
  std::string pairs[][2] = {
      {"select * from documents where id = 5",
       "select * from (SELECT * FROM documents WHERE \"documents\".\"organization_id\" = $9) AS \"documents\" where id "
       "= 5"},
      {"select d.* from only documents d order by 1 limit 3",
       "select d.* from (SELECT * FROM ONLY documents WHERE \"documents\".\"organization_id\" = $9) AS \"d\" order by "
       "1 limit 3"},
      {"select * from documents d left join pages p on p.document_id = d.id and p.n = 7 where d.title = 'x' for update "
       "of d",
       "select * from (SELECT * FROM documents WHERE \"documents\".\"organization_id\" = $9) AS \"d\" left join pages "
       "p on "
       "p.document_id = d.id and p.n = 7 where d.title = 'x' for update of d"},
  };
  for (const auto& [text, expected] : pairs) BOOST_TEST(wrapped(text) == expected);
  BOOST_TEST(wrapped("select * from documents d join pages p on p.document_id = d.id where p.n = 1", {1, 0}) ==
             "select * from (SELECT * FROM documents WHERE \"documents\".\"organization_id\" = $9) AS \"d\" join "
             "(SELECT * FROM "
             "pages WHERE \"pages\".\"organization_id\" = $9) AS \"p\" on p.document_id = d.id where p.n = 1");
  BOOST_TEST(wrapped("select * from a where x in (select y from documents where z = 1)", {1}) ==
             "select * from a where x in (select y from (SELECT * FROM documents WHERE "
             "\"documents\".\"organization_id\" = $9) AS "
             "\"documents\" where z = 1)");
  BOOST_TEST(wrapped("with d as (select * from documents) select * from d where id = 1") ==
             "with d as (select * from (SELECT * FROM documents WHERE \"documents\".\"organization_id\" = $9) AS "
             "\"documents\") "
             "select * from d where id = 1");
  for (const char* text :
       {"select ctid from documents", "select documents from documents", "select id, title from documents group by id",
        "table documents", "select public.documents.id from public.documents", "update documents set n = 1",
        "select * from documents d (a)"})
    BOOST_TEST(wrapped(text) == "not rewritten", text);
}

BOOST_AUTO_TEST_CASE(a_literal_as_the_tenant_moves_the_others) {
  std::string text = "select * from documents where id = 5 and title = 'x'";
  TenantCondition condition{"organization_id", quoted_literal("it's \\"), true};
  auto rewritten = wrap_relations(text, facts_of(text), {0}, condition);
  BOOST_REQUIRE(rewritten.has_value());
  BOOST_TEST(rewritten->text ==
             "select * from (SELECT * FROM documents WHERE \"documents\".\"organization_id\" = E'it''s \\\\' COLLATE "
             "\"C\") AS "
             "\"documents\" where id = 5 and title = 'x'");
  BOOST_TEST(quoted_literal("42") == "'42'");
}

BOOST_AUTO_TEST_CASE(a_target_gets_one_more_condition) {
  std::string pairs[][2] = {
      {"delete from documents", "delete from documents WHERE \"documents\".\"organization_id\" = $9"},
      {"delete from documents d where d.id = 1 or d.n = 2 -- end",
       "delete from documents d where ( d.id = 1 or d.n = 2) AND \"d\".\"organization_id\" = $9 -- end"},
      {"update documents set n = 5, m = 'x' where id in (select id from pages where n = 1 ) returning id as \"where\", "
       "n;",
       "update documents set n = 5, m = 'x' where ( id in (select id from pages where n = 1 )) AND "
       "\"documents\".\"organization_id\" = $9 returning id as \"where\", n;"},
      {"update documents d set n = p.n from pages p where p.id = d.page_id and d.organization_id = 1",
       "update documents d set n = p.n from pages p where ( p.id = d.page_id and d.organization_id = 1) AND "
       "\"d\".\"organization_id\" = $9"},
      {"with x as (select id from a where b = 1) delete from documents using x returning 1",
       "with x as (select id from a where b = 1) delete from documents using x WHERE "
       "\"documents\".\"organization_id\" = $9 returning 1"},
      {"update documents set n = d.where.x where d.returning = 1", "not rewritten"},
  };
  for (const auto& [text, expected] : pairs) BOOST_TEST(restricted(text) == expected);
  for (const char* text :
       {"select * from documents", "delete from documents where current of c", "insert into documents (id) values (1)",
        "with x as (delete from documents returning *) select * from x"})
    BOOST_TEST(restricted(text) == "not rewritten", text);
  BOOST_TEST(restricted("delete from documents where documents.returning = 1") ==
             "delete from documents where ( documents.returning = 1) AND \"documents\".\"organization_id\" = $9");
}

BOOST_AUTO_TEST_CASE(positions_are_mapped_both_ways) {
  std::string text = "select * from documents where id = 5 and wrong";
  auto rewritten = wrap_relations(text, facts_of(text), {0}, kTenant);
  BOOST_REQUIRE(rewritten.has_value());
  for (std::size_t i = 0; i <= text.size(); ++i) {
    std::size_t there = rewritten->positions.to_new(i);
    bool is_replaced = i > 14 && i < 23;  // documents
    BOOST_TEST(rewritten->positions.to_old(there) == (is_replaced ? 14 : i));
    if (!is_replaced && i != 14 && i < text.size()) BOOST_TEST(rewritten->text[there] == text[i]);
  }
  BOOST_TEST(rewritten->positions.to_old(rewritten->text.find("SELECT *")) == 14u);
  BOOST_TEST(rewritten->positions.to_old(rewritten->text.find("wrong")) == text.find("wrong"));
}

// Whatever is rewritten of the cases has the same facts; that most are shows that this is no empty claim.
BOOST_AUTO_TEST_CASE(many_statements_can_be_rewritten) {
  std::size_t renames = 0, wraps = 0, restrictions = 0;
  for (const Case& one : all_cases()) {
    Parsed parsed = parse_sql(one.text);
    if (parsed.statements.size() != 1 || !parsed.statements[0].not_understood.empty()) continue;
    const Statement& facts = parsed.statements[0];
    for (std::uint16_t i = 0; i < facts.relations.size(); ++i) {
      if (auto done = rename_relation(one.text, facts, i, "app", "other")) {
        ++renames;
        BOOST_TEST(facts_of(done->text).relations[i].name == "other");
      }
      if (auto done = wrap_relations(one.text, facts, {i}, kTenant)) {
        ++wraps;
        BOOST_TEST(facts_of(done->text).equalities.size() == facts.equalities.size() + 1);
      }
    }
    if (auto done = restrict_target(one.text, facts, kTenant)) {
      ++restrictions;
      BOOST_TEST(facts_of(done->text).equalities.size() == facts.equalities.size() + 1);
    }
  }
  BOOST_TEST(renames > 250u);
  BOOST_TEST(wraps > 150u);
  BOOST_TEST(restrictions > 12u);
}

BOOST_AUTO_TEST_CASE(two_edits_in_a_row_are_one) {
  std::string_view text = "update documents d set n = e.n from documents e where d.id = e.id";
  auto first = wrap_relations(text, facts_of(text), {1}, kTenant);
  BOOST_REQUIRE(first);
  auto second = restrict_target(first->text, facts_of(first->text), kTenant);
  BOOST_REQUIRE(second);
  PositionMap both = composed(first->positions, second->positions);
  for (std::string_view word : {"update", "set", "from", "d.id"}) {
    std::size_t old_at = text.find(word), new_at = second->text.find(word);
    BOOST_TEST(both.to_old(new_at) == old_at, word);
    BOOST_TEST(both.to_new(old_at) == new_at, word);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::sql
