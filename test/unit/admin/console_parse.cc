// Which lines are commands, and what is in them.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>

#include "admin/console.h"

namespace lokadb {
namespace {

using namespace std::string_view_literals;
namespace data = boost::unit_test::data;

// "word", "word(argument)" or "set(key=value)"; "refused".
std::string parsed(std::string_view sql) {
  auto command = parse_console_command(sql);
  if (!command) return "refused";
  std::string text = command->word;
  if (command->has_argument) text += "(" + command->argument;
  if (command->word == "set") text += "=" + command->value;
  if (command->has_argument) text += ")";
  BOOST_TEST((command->has_argument || command->argument.empty()));
  BOOST_TEST((command->word == "set" || command->value.empty()));
  return text;
}

BOOST_AUTO_TEST_SUITE(admin_console_parse)

BOOST_AUTO_TEST_CASE(a_command_alone) {
  for (auto sql : {"reload", "RELOAD", "ReLoad", "reload;", "reload ;", "  reload\t\n", "\n reload \r\n;  \n"})
    BOOST_TEST(parsed(sql) == "reload");
}

BOOST_AUTO_TEST_CASE(a_command_with_a_word) {
  BOOST_TEST(parsed("show clients") == "show(clients)");
  BOOST_TEST(parsed("SHOW\tCLIENTS;") == "show(CLIENTS)");
  BOOST_TEST(parsed("  pause\n my_db_1 ; ") == "pause(my_db_1)");
  BOOST_TEST(parsed("kill_client 12") == "kill_client(12)");
  BOOST_TEST(parsed("SHUTDOWN WAIT_FOR_CLIENTS") == "shutdown(WAIT_FOR_CLIENTS)");
  BOOST_TEST(parsed("select version") == "select(version)");
}

BOOST_AUTO_TEST_CASE(a_command_with_a_quoted_name) {
  BOOST_TEST(parsed("pause \"My DB-1;\"") == "pause(My DB-1;)");
  BOOST_TEST(parsed("pause \"a\"\"b\";") == "pause(a\"b)");
  BOOST_TEST(parsed("pause \"\"\"\"") == "pause(\")");
  BOOST_TEST(parsed("pause \"it's\" ; ") == "pause(it's)");
  BOOST_TEST(parsed("pause \"\"") == "pause");  // as if nothing stood there
  BOOST_TEST(parsed("kill \"d\xc3\xb6ner\"") == "kill(d\xc3\xb6ner)");
}

BOOST_AUTO_TEST_CASE(set_with_a_word) {
  for (auto sql : {"set verbose=2", "SET verbose = 2", "set verbose =2;", "set verbose to 2", "set verbose TO 2 ;",
                   "\nset\tverbose\n=\n2\n;\n"})
    BOOST_TEST(parsed(sql) == "set(verbose=2)");
  BOOST_TEST(parsed("set pool_mode = Transaction") == "set(pool_mode=Transaction)");
  BOOST_TEST(parsed("set Query_Timeout=1") == "set(Query_Timeout=1)");
}

BOOST_AUTO_TEST_CASE(set_with_a_fraction) {
  BOOST_TEST(parsed("set query_timeout = 1.5") == "set(query_timeout=1.5)");
  BOOST_TEST(parsed("set query_timeout to 0.25;") == "set(query_timeout=0.25)");
}

BOOST_AUTO_TEST_CASE(set_with_a_quoted_value) {
  BOOST_TEST(parsed("set a='b c'") == "set(a=b c)");
  BOOST_TEST(parsed("set a = 'it''s';") == "set(a=it's)");
  BOOST_TEST(parsed("set a = ''") == "set(a=)");
  BOOST_TEST(parsed("set a = ''''") == "set(a=')");
  BOOST_TEST(parsed("set a to 'x=1; \"y\"' ;") == "set(a=x=1; \"y\")");
  BOOST_TEST(parsed("set a to'x'") == "set(a=x)");
}

BOOST_AUTO_TEST_CASE(set_with_names_in_double_quotes) {
  BOOST_TEST(parsed("set \"pool_mode\" = session") == "set(pool_mode=session)");
  BOOST_TEST(parsed("set pool_mode=\"session\";") == "set(pool_mode=session)");
  BOOST_TEST(parsed("set \"a b\" to \"c \"\"d\"\"\"") == "set(a b=c \"d\")");
}

BOOST_AUTO_TEST_CASE(everything_else_is_refused) {
  for (auto sql : {"",
                   " ",
                   ";",
                   ";;",
                   "reload;;",
                   "reload; reload",
                   "-- x",
                   "/* x */",
                   "show a b",
                   "show 'a'",
                   "show \"a",
                   "show \"a\"\"",
                   "show \"a\"b",
                   "show a\"b\"",
                   "show a-b",
                   "show a.b",
                   "show *",
                   "\"show\" clients",
                   "'show'",
                   "(show)",
                   "select 1 + 1",
                   "select 'x'",
                   "begin work;x",
                   "set",
                   "set a",
                   "set a 1",
                   "set a=",
                   "set a to",
                   "set a=;",
                   "set = 1",
                   "set a==1",
                   "set a= =1",
                   "set a='x",
                   "set a='x'y",
                   "set a='x' 'y'",
                   "set a=1 2",
                   "set a=-1",
                   "set \"\"=1",
                   "set a=\"x",
                   "set \"a=1",
                   "set 'a'=1",
                   "set a=1;;",
                   "set a tox",
                   "set a is 1",
                   "d\xc3\xb6ner"})
    BOOST_TEST(parsed(sql) == "refused", "taken for a command: " << sql);
  BOOST_TEST(parsed("show\0clients"sv) == "refused");
}

BOOST_AUTO_TEST_CASE(what_is_said_is_not_judged_here) {
  BOOST_TEST(parsed("nonsense 42") == "nonsense(42)");
  BOOST_TEST(parsed("42") == "42");
}

// --- no text may lead the parser past its end ---

constexpr std::string_view kWhole[] = {"show clients;", "PAUSE \"a \"\"quoted\"\" name\" ;",
                                       "set query_timeout = '1''5' ;", "set query_timeout to 12.50 ;",
                                       "SHUTDOWN WAIT_FOR_SERVERS"};

BOOST_DATA_TEST_CASE(prefixes_end_where_they_end, data::make(kWhole), sql) {
  BOOST_TEST(parsed(sql) != "refused");
  for (std::size_t size = 0; size <= sql.size(); ++size) {
    // An exact heap copy: a sanitizer then sees a read past its end.
    std::unique_ptr<char[]> copy(new char[size]);
    std::copy_n(sql.begin(), size, copy.get());
    auto command = parse_console_command({copy.get(), size});
    if (size == 0) BOOST_TEST(!command);
    if (!command) continue;
    BOOST_TEST(command->word.size() <= size);
    BOOST_TEST(command->argument.size() + command->value.size() < size);
  }
}

BOOST_DATA_TEST_CASE(suffixes_and_changed_bytes_do_no_harm, data::make(kWhole), sql) {
  for (std::size_t at = 0; at < sql.size(); ++at) {
    std::string text(sql.substr(at));
    for (int c = 0; c < 256; ++c) {
      text[0] = static_cast<char>(c);
      auto command = parse_console_command(text);
      if (command) BOOST_TEST(!command->word.empty());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
