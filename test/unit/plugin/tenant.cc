// The plugin tenant without a proxy: what it refuses (SPEC T6), start-up parameters, and sessions that move.
#include <boost/test/unit_test.hpp>

#include "plugin/support.h"

namespace lokadb::test {
namespace {

struct Session {
  PluginChain& chain;
  std::vector<void*> slots = chain.begin_session("app", "alice");
  explicit Session(PluginChain& c) : chain(c) {}
  ~Session() { chain.end_session(slots); }

  // Begun, that is: asked what the role sets, if it is not refused before.
  std::string verdict(std::vector<BatchStatement> statements) {
    BatchContext c = context();
    c.slots = &slots;
    Batch batch(c, std::move(statements));
    return text_of(chain.begin(batch));
  }
  void ended(std::uint32_t statement, std::string_view tag, std::string_view sqlstate = {}) {
    lokadb_event event{};
    event.kind = LOKADB_STATEMENT_ENDED;
    event.statement = statement;
    event.tag = {tag.data(), tag.size()};
    event.sqlstate = {sqlstate.data(), sqlstate.size()};
    chain.observe(nullptr, slots, event);
  }
};

BatchStatement parsed(std::string_view text) {
  BatchStatement s;
  s.form = LOKADB_PARSE;
  s.text = text;
  return s;
}

constexpr std::string_view kRefused = "refuse 0A000";

BOOST_AUTO_TEST_SUITE(plugin_tenant)

BOOST_AUTO_TEST_CASE(values_of_the_session_are_refused_in_every_form) {
  Sandbox sandbox;
  auto chain = load({"tenant"});
  auto open = load({"tenant"}, {{"tenant", {{"local_only", "false"}}}});
  Session strict(*chain), lax(*open);
  for (std::string_view text : {"SET lokadb.tenant = 1", "SET SESSION LOKADB.tenant TO '1'",
                                "SELECT set_config('lokadb.tenant', '1', false)", "SET lokadb.tenant FROM CURRENT"})
    for (const BatchStatement& statement : {simple(text), bound(text, {}), parsed(text)}) {
      BOOST_TEST(strict.verdict({statement}).starts_with(kRefused), text);
      BOOST_TEST(lax.verdict({statement}) == "ask", text);
    }
  for (std::string_view text :
       {"SELECT 1; SET lokadb.tenant = 1", "SET LOCAL lokadb.tenant = 1; SET lokadb.tenant = 1"})
    BOOST_TEST(strict.verdict({simple(text)}).starts_with(kRefused), text);
  constexpr std::string_view kCall = "SELECT set_config($1, $2, $3)";
  BOOST_TEST(strict.verdict({bound(kCall, {"lokadb.tenant", "1", "f"})}).starts_with(kRefused));
  BOOST_TEST(strict.verdict({bound(kCall, {"lokadb.tenant", "1", "t"})}) == "ask");
  BOOST_TEST(strict.verdict({bound(kCall, {"app.other", "1", "f"})}) == "ask");
  BOOST_TEST(strict.verdict({parsed("SELECT set_config('lokadb.tenant', $1, false)")}).starts_with(kRefused));
  for (std::string_view text : {"SET LOCAL lokadb.tenant = 1", "RESET lokadb.tenant", "DISCARD ALL",
                                "SET lokadb.tenant = ''", "SET lokadb.tenants = 1", "SET lokadb.tenant TO DEFAULT"})
    BOOST_TEST(strict.verdict({simple(text)}) == "ask", text);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_in_an_encoding_is_refused_where_it_matters) {
  Sandbox sandbox;
  auto chain = load({"tenant"});
  Session session(*chain);
  auto in_sjis = [&](std::string_view text) {
    BatchContext c = context();
    c.client_encoding = "SJIS";
    c.slots = &session.slots;
    Batch batch(c, {simple(text)});
    return text_of(chain->begin(batch));
  };
  BOOST_TEST(in_sjis("SELECT '\x83\x5c'; SET LOCAL lokadb.tenant = 1").starts_with(kRefused));
  BOOST_TEST(in_sjis("SET LOCAL lokadb.tenant = 1") == "ask");  // ASCII alone
  BOOST_TEST(in_sjis("SELECT '\x83\x5c'; SELECT 1") == "ask");
}

BOOST_AUTO_TEST_CASE(start_up_parameters) {
  Sandbox sandbox;
  auto strict = load({"tenant"});
  auto lax = load({"tenant"}, {{"tenant", {{"local_only", "0"}, {"setting", "app.org"}}}});
  BOOST_TEST(!static_cast<bool>(strict->startup("LokaDB.Tenant", "1")));
  BOOST_TEST(strict->startup("lokadb.tenant", "1").error().state.text() == "0A000");
  BOOST_TEST(*strict->startup("lokadb.tenant", ""));
  BOOST_TEST(!*strict->startup("geqo", "off"));
  BOOST_TEST(*lax->startup("App.Org", "1"));
  BOOST_TEST(!*lax->startup("lokadb.tenant", "1"));
}

BOOST_AUTO_TEST_CASE(a_session_moves_with_what_it_has_named) {
  Sandbox sandbox;
  auto chain = load({"tenant"});
  Session before(*chain), after(*chain);
  BOOST_TEST(chain->save_session(before.slots)->empty());
  before.verdict({simple("BEGIN; SET LOCAL lokadb.tenant = 7; SAVEPOINT a; RESET lokadb.tenant")});
  for (std::uint32_t i : {0, 1, 2}) before.ended(i, "x");
  before.ended(3, "", "57014");  // this one failed
  auto saved = chain->save_session(before.slots);
  BOOST_REQUIRE(saved->size() == 1u);
  BOOST_TEST(saved->front().first == "tenant");
  BOOST_TEST(saved->front().second.find("\"7\"") != std::string::npos);
  BOOST_TEST(chain->restore_session(after.slots, *saved));
  BOOST_TEST(chain->save_session(after.slots)->front().second == saved->front().second);
  BOOST_TEST(chain->restore_session(after.slots, {{"not loaded", "x"}}));
  BOOST_TEST(!chain->restore_session(after.slots, {{"tenant", "broken"}}));
}

BOOST_AUTO_TEST_CASE(options_are_checked) {
  auto fault = [](Lines lines) { return load_fault({"tenant"}, {{"tenant", std::move(lines)}}); };
  for (const char* name : {"tenant", "a.", ".a", "a b.c", "1a.b", ""})
    BOOST_TEST(fault({{"setting", name}}).find("is no setting of one's own") != std::string::npos, name);
  BOOST_TEST(fault({{"setting", "App.current_tenant"}}) == "loaded");
  for (const char* flag : {"1", "0", "true", "FALSE"}) BOOST_TEST(fault({{"local_only", flag}}) == "loaded");
  BOOST_TEST(fault({{"local_only", "maybe"}}).find("local_only is neither") != std::string::npos);
  BOOST_TEST(fault({{"mismatch", "log"}}) == "loaded");
  BOOST_TEST(fault({{"mismatch", "loud"}}).find("mismatch is neither") != std::string::npos);
  BOOST_TEST(fault({{"all_roles", "a, b"}}) == "loaded");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::test
