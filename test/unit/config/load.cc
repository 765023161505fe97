// load_config() and config_with_option() with real files and a real log.
#include <boost/test/unit_test.hpp>

#include "config/config.h"
#include "support.h"

using namespace lokadb;

namespace {

ConfigPtr loaded(const std::string& path, const ConfigPtr& previous = nullptr) {
  auto result = load_config(path, previous);
  BOOST_REQUIRE(static_cast<bool>(result));
  return *result;
}

std::string secret(const ConfigPtr& config, std::string_view user) {
  const std::string* found = config->userlist->find(user);
  return found ? *found : "(none)";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_load)

BOOST_AUTO_TEST_CASE(a_missing_file_is_an_error_with_the_reason) {
  test::Sandbox sandbox;
  auto result = load_config(sandbox.path("gone.ini"), nullptr);
  BOOST_REQUIRE(!result);
  std::string line = "could not load file \"" + sandbox.path("gone.ini") + "\": No such file or directory";
  BOOST_TEST(result.error().log_text() == line);
  BOOST_CHECK(result.error().state == sqlstate::kReloadFailed);
  BOOST_TEST(sandbox.logged(" ERROR " + line + "\n"));
  BOOST_TEST(!sandbox.logged("config file loading failed"));
}

BOOST_AUTO_TEST_CASE(a_folder_is_not_a_file) {
  test::Sandbox sandbox;
  BOOST_TEST(!load_config(sandbox.path(""), nullptr));
  BOOST_TEST(sandbox.logged("Is a directory"));
}

BOOST_AUTO_TEST_CASE(a_bad_reload_changes_nothing_and_warns) {
  test::Sandbox sandbox;
  auto file = sandbox.write("x.ini", "[pgbouncer]\ndefault_pool_size = 5\n[databases]\na = host=x\n");
  auto first = loaded(file);
  sandbox.write("x.ini", "[pgbouncer]\ndefault_pool_size = 6\npool_mode = bad\n");
  auto result = load_config(file, first);
  BOOST_REQUIRE(!result);
  BOOST_TEST(sandbox.logged(" ERROR invalid value \"bad\" for parameter pool_mode in configuration (" + file + ":3)"));
  BOOST_TEST(sandbox.logged(" WARNING config file loading failed\n"));
  BOOST_TEST(first->options.default_pool_size == 5);
  BOOST_TEST(first->databases.count("a") == 1u);
}

BOOST_AUTO_TEST_CASE(the_auth_file_is_read_and_read_again) {
  test::Sandbox sandbox;
  auto users = sandbox.write("users", "\"a\" \"1\"\n");
  auto file = sandbox.write("x.ini", "[pgbouncer]\nauth_file = " + users);
  auto first = loaded(file);
  BOOST_TEST(secret(first, "a") == "1");
  sandbox.write("users", "\"b\" \"2\"\n");
  auto second = loaded(file, first);
  BOOST_TEST(secret(second, "a") == "(none)");
  BOOST_TEST(secret(second, "b") == "2");
  BOOST_TEST(secret(first, "a") == "1");
}

BOOST_AUTO_TEST_CASE(a_missing_auth_file_leaves_the_users_known_before) {
  test::Sandbox sandbox;
  auto users = sandbox.write("users", "\"a\" \"1\"\n");
  auto file = sandbox.write("x.ini", "[pgbouncer]\nauth_file = " + users);
  auto first = loaded(file);
  std::filesystem::remove(users);
  auto second = loaded(file, first);
  BOOST_TEST(secret(second, "a") == "1");
  BOOST_TEST(sandbox.logged(" ERROR could not open auth_file " + users + ": No such file or directory\n"));
  BOOST_TEST(loaded(file)->userlist->secrets.empty());
}

BOOST_AUTO_TEST_CASE(a_broken_auth_file_keeps_the_lines_before_the_fault) {
  test::Sandbox sandbox;
  auto users = sandbox.write("users", "\"a\" \"1\"\nb 2\n\"c\" \"3\"\n");
  auto config = loaded(sandbox.write("x.ini", "[pgbouncer]\nauth_file = " + users));
  BOOST_TEST(secret(config, "a") == "1");
  BOOST_TEST(secret(config, "c") == "(none)");
  BOOST_TEST(sandbox.logged(" ERROR broken auth file\n"));
}

BOOST_AUTO_TEST_CASE(the_auth_file_is_not_read_for_any_and_pam) {
  test::Sandbox sandbox;
  for (auto type : {"any", "pam"}) {
    auto file = sandbox.write("x.ini", std::string("[pgbouncer]\nauth_file = /gone\nauth_type = ") + type);
    BOOST_TEST(loaded(file)->userlist->secrets.empty());
  }
  BOOST_TEST(!sandbox.logged("could not open"));
}

BOOST_AUTO_TEST_CASE(includes_are_files) {
  test::Sandbox sandbox;
  auto more = sandbox.write("more.ini", "default_pool_size = 7\n");
  auto file = sandbox.write("x.ini", "[pgbouncer]\n%include " + more + "\n");
  BOOST_TEST(loaded(file)->options.default_pool_size == 7);
}

BOOST_AUTO_TEST_CASE(an_entry_cannot_lose_its_forced_user) {
  test::Sandbox sandbox;
  auto file = sandbox.write("x.ini", "[pgbouncer]\n[databases]\na = user=u password=p\nb = host=x\n");
  auto first = loaded(file);
  sandbox.write("x.ini", "[pgbouncer]\n[databases]\na = host=y\nb = host=x\n");
  auto second = loaded(file, first);
  BOOST_TEST(second->databases.at("a").user.value() == "u");
  BOOST_TEST(second->databases.at("a").password.value() == "p");
  BOOST_TEST(second->databases.at("a").hosts[0] == "y");
  BOOST_TEST(!second->databases.at("b").user.has_value());
  BOOST_TEST(sandbox.logged(" WARNING losing forced user not supported, keeping old setting\n"));
}

BOOST_AUTO_TEST_CASE(set_changes_a_copy) {
  test::Sandbox sandbox;
  auto config = loaded(sandbox.write("x.ini", "[pgbouncer]\n"));
  auto changed = config_with_option(config, "pool_mode", "statement");
  BOOST_REQUIRE(static_cast<bool>(changed));
  BOOST_CHECK((*changed)->options.pool_mode == PoolMode::Statement);
  BOOST_CHECK(config->options.pool_mode == PoolMode::Session);
}

BOOST_AUTO_TEST_CASE(set_of_a_key_that_counts_at_start_changes_nothing) {
  test::Sandbox sandbox;
  auto config = loaded(sandbox.write("x.ini", "[pgbouncer]\n"));
  for (auto value : {"1", "garbage"}) {
    auto changed = config_with_option(config, "listen_port", value);
    BOOST_REQUIRE(static_cast<bool>(changed));
    BOOST_CHECK(*changed == config);
  }
}

BOOST_AUTO_TEST_CASE(set_of_nonsense_fails_and_the_log_says_why) {
  test::Sandbox sandbox;
  auto config = loaded(sandbox.write("x.ini", "[pgbouncer]\n"));
  struct {
    const char *key, *value, *line;
  } cases[] = {
      {"nope", "1", "unknown parameter: pgbouncer/nope"},
      {"pool_mode", "x", "invalid value \"x\" for parameter pool_mode"},
      {"auth_dbname", "pgbouncer", "cannot use the reserved \"pgbouncer\" database as an auth_dbname"},
  };
  for (const auto& one : cases) {
    auto result = config_with_option(config, one.key, one.value);
    BOOST_REQUIRE(!result);
    BOOST_TEST(result.error().to_client == "SET failed");
    BOOST_TEST(result.error().log_text() == one.line);
    BOOST_TEST(sandbox.logged(std::string(" ERROR ") + one.line + "\n"));
  }
}

BOOST_AUTO_TEST_CASE(set_of_the_auth_file_reads_it) {
  test::Sandbox sandbox;
  auto config = loaded(sandbox.write("x.ini", "[pgbouncer]\nauth_type = any\n"));
  auto users = sandbox.write("users", "\"a\" \"1\"\n");
  auto named = config_with_option(config, "auth_file", users);
  BOOST_REQUIRE(static_cast<bool>(named));
  BOOST_TEST(secret(*named, "a") == "(none)");
  auto wanted = config_with_option(*named, "auth_type", "md5");
  BOOST_REQUIRE(static_cast<bool>(wanted));
  BOOST_TEST(secret(*wanted, "a") == "1");
}

BOOST_AUTO_TEST_SUITE_END()
