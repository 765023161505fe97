#include "config/ini_reader.h"

#include <boost/test/unit_test.hpp>

#include "support.h"

using namespace lokadb;

namespace {

// Writes down what it is told; refuses what is named "bad".
class Recorder : public IniHandler {
 public:
  bool section(std::string_view name, Faults&) override {
    told += "[" + std::string(name) + "]\n";
    return name != "bad";
  }
  bool value(std::string_view key, std::string_view value, Faults&) override {
    told += std::string(key) + "=" + std::string(value) + "|\n";
    return key != "bad";
  }
  std::string told;
};

struct Outcome {
  bool ok;
  std::string told;
  Faults faults;
};

Outcome read(const std::string& text, std::map<std::string, std::string> others = {}) {
  others["x.ini"] = text;
  Recorder recorder;
  Faults faults;
  bool ok = read_ini("x.ini", test::texts(std::move(others)), recorder, faults);
  return {ok, recorder.told, faults};
}

std::string told(const std::string& text) {
  auto outcome = read(text);
  BOOST_TEST(outcome.ok);
  return outcome.told;
}

std::string fault(const std::string& text, std::map<std::string, std::string> others = {}) {
  auto outcome = read(text, std::move(others));
  BOOST_TEST(!outcome.ok);
  return outcome.faults.size() == 1 ? outcome.faults[0] : std::to_string(outcome.faults.size()) + " faults";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_ini_reader)

BOOST_AUTO_TEST_CASE(a_value_is_the_rest_of_the_line) {
  BOOST_TEST(told("a = b ; c # d") == "a=b ; c # d|\n");
  BOOST_TEST(told("a=p;w;=x\n") == "a=p;w;=x|\n");
  BOOST_TEST(told("a\t =\t 'x y'  \t\r\n") == "a='x y'|\n");
  BOOST_TEST(told("a=") == "a=|\n");
  BOOST_TEST(told("a= = b") == "a== b|\n");
}

BOOST_AUTO_TEST_CASE(lines_of_ten_kilobytes_are_whole) {
  std::string value(10000, 'v');
  BOOST_TEST(told("k = " + value + "\nz=1") == "k=" + value + "|\nz=1|\n");
  std::string key(10000, 'k');
  BOOST_TEST(told(key + "=1") == key + "=1|\n");
}

BOOST_AUTO_TEST_CASE(indented_lines_are_lines_of_their_own) {
  BOOST_TEST(told("\n  [s]\n  a = 1\n\t b = 2\n    c = 3\n") == "[s]\na=1|\nb=2|\nc=3|\n");
}

BOOST_AUTO_TEST_CASE(comments_and_empty_lines_are_skipped) {
  BOOST_TEST(told("; x = 1\n# y = 2\n  ;z\n\n \t\n\r\na=1\n#") == "a=1|\n");
  BOOST_TEST(told("[s] ; remark\na=1") == "[s]\na=1|\n");
}

BOOST_AUTO_TEST_CASE(keys_may_be_quoted) {
  BOOST_TEST(told("'any name' = 1") == "any name=1|\n");
  BOOST_TEST(told("'it''s'=1") == "it's=1|\n");
  BOOST_TEST(told("\"a\"\"b ]\" = 1") == "a\"b ]=1|\n");
  BOOST_TEST(told("az_AZ.09*- = 1") == "az_AZ.09*-=1|\n");
  BOOST_TEST(fault("'open = 1") == "syntax error in configuration (x.ini:1), stopping loading");
}

BOOST_AUTO_TEST_CASE(syntax_errors_name_the_line) {
  BOOST_TEST(fault("a=1\n\nnothing\n") == "syntax error in configuration (x.ini:3), stopping loading");
  BOOST_TEST(fault("[open") == "syntax error in configuration (x.ini:1), stopping loading");
  BOOST_TEST(fault("a+b = 1") == "syntax error in configuration (x.ini:1), stopping loading");
  BOOST_TEST(fault("a\n= 1") == "syntax error in configuration (x.ini:1), stopping loading");
  BOOST_TEST(fault("%includes x") == "syntax error in configuration (x.ini:1), stopping loading");
  BOOST_TEST(fault(std::string("a=b\0c", 5)) == "syntax error in configuration (x.ini:1), stopping loading");
}

BOOST_AUTO_TEST_CASE(refusals_name_the_place_but_no_password) {
  BOOST_TEST(fault("a=1\n[bad]") == "invalid section \"bad\" in configuration (x.ini:2)");
  BOOST_TEST(fault("\n\nbad = x y\na=1") == "invalid value \"x y\" for parameter bad in configuration (x.ini:3)");
  BOOST_TEST(fault("bad = Password=s3") == "invalid value \"...\" for parameter bad in configuration (x.ini:1)");
}

BOOST_AUTO_TEST_CASE(nothing_is_told_after_a_refusal) { BOOST_TEST(read("a=1\nbad=2\nc=3").told == "a=1|\nbad=2|\n"); }

BOOST_AUTO_TEST_CASE(include_continues_with_another_file) {
  auto outcome = read("[s]\n %include \t other.ini \na=2", {{"other.ini", "a=1\n[t]\n"}});
  BOOST_TEST(outcome.ok);
  BOOST_TEST(outcome.told == "[s]\na=1|\n[t]\na=2|\n");
}

BOOST_AUTO_TEST_CASE(include_errors_stop_the_load) {
  BOOST_TEST(fault("a=1\n%include gone.ini\nb=1") == "could not load file \"gone.ini\": No such file or directory");
  BOOST_TEST(fault("%include o", {{"o", "\nx"}}) == "syntax error in configuration (o:2), stopping loading");
  BOOST_TEST(fault("%include x.ini") == "include nesting level too deep (x.ini), maximum is 10");
}

BOOST_AUTO_TEST_CASE(ten_files_inside_each_other_are_allowed) {
  std::map<std::string, std::string> files;
  for (int i = 1; i < 10; ++i) files["f" + std::to_string(i)] = "%include f" + std::to_string(i + 1);
  files["f10"] = "a=1";
  auto outcome = read("%include f1", files);
  BOOST_TEST(outcome.ok);
  BOOST_TEST(outcome.told == "a=1|\n");
  files["f10"] = "%include f11";
  files["f11"] = "a=1";
  BOOST_TEST(fault("%include f1", files) == "include nesting level too deep (f11), maximum is 10");
}

BOOST_AUTO_TEST_SUITE_END()
