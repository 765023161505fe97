// SPEC T5: the named organization over transactions and savepoints. What PostgreSQL makes of the same statements is
// compared in test/system/test_tenant.py.
#include "route/tenant_scope.h"

#include <boost/test/unit_test.hpp>
#include <sstream>

#include "route/literals.h"
#include "sql/parse.h"

namespace lokadb::route {
namespace {

// A script is steps with ';' between: a statement (t is the setting app.t); "fail": one that fails; "end" or "undone":
// the transaction has ended, committed or not; "= VALUE": the value now ("-" none, "?" unknown).
struct Script {
  std::string_view name, steps;
};

constexpr Script kScripts[] = {
    {"nothing is named at first", "= -; begin; = -; end; = -"},
    {"local until the end", "begin; set local app.t = 1; = 1; select 1; = 1; commit; end; = -"},
    {"local until the rollback", "begin; set local app.t = 1; rollback; undone; = -"},
    {"set_config", "begin; select set_config('app.t', '1', true); = 1; commit; = -"},
    {"the last one counts", "begin; set local app.t = 1; set local app.t = 2; = 2"},
    {"an implicit transaction", "set local app.t = 1; = 1; end; = -"},
    {"a cleared value is none", "begin; set local app.t = 1; set local app.t = ''; = -"},
    {"reset", "begin; set local app.t = 1; reset app.t; = -; commit; = -"},
    {"reset all", "begin; set local app.t = 1; reset all; = -"},
    {"to default", "begin; set local app.t = 1; set local app.t to default; = -"},
    {"a failed one does not count", "begin; set local app.t = 1; fail; = 1; rollback; = -"},
    {"back to a savepoint", "begin; set local app.t = 1; savepoint a; set local app.t = 2; rollback to a; = 1"},
    {"back to before the first", "begin; savepoint a; set local app.t = 2; rollback to a; = -"},
    {"back, and on",
     "begin; savepoint a; set local app.t = 2; rollback to a; set local app.t = 3; = 3; rollback to a; = -"},
    {"release keeps", "begin; set local app.t = 1; savepoint a; set local app.t = 2; release a; = 2; commit; = -"},
    {"released within an outer one",
     "begin; set local app.t = 1; savepoint a; set local app.t = 2; savepoint b; set local app.t = 3; release b; = 3; "
     "rollback to a; = 1"},
    {"release takes inner ones along",
     "begin; savepoint a; set local app.t = 1; savepoint b; set local app.t = 2; release a; = 2; rollback to b; = ?"},
    {"the inner one of a name",
     "begin; set local app.t = 1; savepoint a; set local app.t = 2; savepoint a; "
     "set local app.t = 3; rollback to a; = 2; release a; rollback to a; = 1"},
    {"nested",
     "begin; set local app.t = 1; savepoint a; set local app.t = 2; savepoint b; set local app.t = 3; savepoint c; "
     "set local app.t = 4; rollback to b; = 2; rollback to a; = 1"},
    {"after a failure within",
     "begin; set local app.t = 1; savepoint a; set local app.t = 2; fail; rollback to a; = 1; commit; = -"},
    {"reset is taken back, too", "begin; set local app.t = 1; savepoint a; reset app.t; = -; rollback to a; = 1"},
    {"chained", "begin; set local app.t = 1; commit and chain; = -; set local app.t = 2; = 2; rollback and chain; = -"},
    {"begin within a transaction", "set local app.t = 1; begin; = 1; commit; = -"},
    {"prepared", "begin; set local app.t = 1; prepare transaction 'x'; = -"},
    // Of the session.
    {"session", "set app.t = 1; end; = 1; begin; = 1; commit; end; = 1; reset app.t; end; = -"},
    {"session, rolled back", "set app.t = 1; end; begin; set app.t = 2; = 2; rollback; undone; = 1"},
    {"session, failed outside", "set app.t = 1; end; set app.t = 2; fail; undone; = 1"},
    {"local over session", "set app.t = 1; end; begin; set local app.t = 2; = 2; commit; = 1"},
    {"session over local", "begin; set local app.t = 2; set app.t = 1; = 1; commit; = 1"},
    {"local over session of one transaction", "begin; set app.t = 1; set local app.t = 2; = 2; commit; = 1"},
    {"session within a savepoint", "begin; savepoint a; set app.t = 1; rollback to a; = -; commit; = -"},
    {"session within a released one",
     "begin; set local app.t = 2; savepoint a; set app.t = 1; release a; = 1; commit; = 1"},
    {"from current", "begin; set local app.t = 2; set app.t from current; commit; = 2"},
    {"discard all", "set app.t = 1; end; discard all; end; = -"},
    {"two transactions in a query", "begin; set app.t = 1; commit; set app.t = 2; fail; undone; = 1"},
    // Unknown.
    {"unseen", "begin; set local app.t = 1; select set_config(x, '2', true) from y; = 1!; commit; = -"},
    {"named anew", "begin; select set_config(x, '2', true) from y; = -!; set local app.t = 3; = 3!"},
    {"unseen, taken back",
     "begin; set local app.t = 1; savepoint a; select set_config(x, '2', true) from y; rollback to a; = 1"},
    {"a savepoint that was not seen", "begin; set local app.t = 1; rollback to nowhere; = ?; rollback; = -"},
};

std::string value_of(const TenantScope& scope) {
  if (!scope.is_known()) return "?";
  return (scope.value().empty() ? "-" : std::string(scope.value())) + (scope.is_unseen() ? "!" : "");
}

void take(TenantScope& scope, const std::string& step) {
  if (step == "fail") return;
  if (step == "end" || step == "undone") return scope.transaction_ended(step == "end");
  sql::Parsed parsed = sql::parse_sql(step);
  BOOST_REQUIRE_MESSAGE(parsed.statements.size() == 1, step << ": " << parsed.error);
  LiteralList literals(step);
  scope.apply(naming_effect(parsed.statements[0], {literals.view(), {}}, "app.t", true, true));
}

// before_each: done with the scope before each step.
template <class F>
void play(const Script& script, TenantScope scope, F&& before_each) {
  std::istringstream in{std::string(script.steps)};
  std::string step;
  for (int number = 1; std::getline(in, step, ';'); ++number) {
    step = step.substr(step.find_first_not_of(' '));
    before_each(scope);
    if (step.starts_with("= "))
      BOOST_TEST(value_of(scope) == step.substr(2), script.name << ", step " << number << ": " << value_of(scope));
    else
      take(scope, step);
  }
}

BOOST_AUTO_TEST_SUITE(route_tenant_scope)

BOOST_AUTO_TEST_CASE(scripts) {
  for (const Script& script : kScripts) play(script, {}, [](TenantScope&) {});
}

BOOST_AUTO_TEST_CASE(a_scope_can_move_to_another_process_at_any_time) {
  for (const Script& script : kScripts)
    play(script, {}, [](TenantScope& scope) {
      auto copy = TenantScope::from_text(scope.to_text());
      BOOST_REQUIRE(copy.has_value());
      scope = *copy;
    });
  BOOST_TEST(TenantScope{}.is_initial());
  for (std::string_view broken : {"", "[]", "{}", "[1,2,3,4]", R"(["",[null,null,true],null,[["a"]]])", "nonsense"})
    BOOST_TEST(!TenantScope::from_text(broken).has_value(), broken);
}

BOOST_AUTO_TEST_CASE(a_value_from_the_start_is_what_reset_returns_to) {
  TenantScope scope;
  scope.set_default("7");
  BOOST_TEST(!scope.is_initial());
  play({"", "= 7; begin; set local app.t = 1; = 1; commit; = 7"}, scope, [](TenantScope&) {});
  play({"", "set app.t = 1; end; = 1; reset app.t; = 7"}, scope, [](TenantScope&) {});
  play({"", "begin; set local app.t = ''; = -; rollback; = 7"}, scope, [](TenantScope&) {});
  play({"", "begin; set local app.t = 1; set local app.t to default; = 7"}, scope, [](TenantScope&) {});
  play({"", "set app.t = 1; end; discard all; end; = 7"}, scope, [](TenantScope&) {});
}

BOOST_AUTO_TEST_CASE(commit_of_a_failed_transaction_is_a_rollback) {
  TenantScope scope;
  take(scope, "set app.t = 1");
  scope.apply({NamingEffect::Kind::Commit}, false);
  BOOST_TEST(value_of(scope) == "-");
}

BOOST_AUTO_TEST_CASE(savepoints_beyond_all_measure_lose_track) {
  TenantScope scope;
  take(scope, "set local app.t = 1");
  for (int i = 0; i < 20000; ++i) scope.apply({NamingEffect::Kind::Savepoint, false, false, "s" + std::to_string(i)});
  scope.apply({NamingEffect::Kind::RollbackTo, false, false, "s15000"});
  BOOST_TEST(value_of(scope) == "?");
  scope.apply({NamingEffect::Kind::RollbackTo, false, false, "s5"});
  BOOST_TEST(value_of(scope) == "1");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::route
