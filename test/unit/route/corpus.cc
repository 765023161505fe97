// test/route/corpus.txt: every statement goes where the file says, for the reason that it says.
#include <boost/test/unit_test.hpp>
#include <map>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "route/literals.h"
#include "route/support.h"
#include "sql/parse.h"

namespace lokadb::route {
namespace {

struct Entry {
  int line = 0;
  std::string path, reason, organization, statement;
  std::vector<std::string> values;
  std::map<std::string, std::string> context;
};

std::map<std::string, std::string> read_context(std::string_view inside) {
  std::map<std::string, std::string> context;
  for (const std::string& word : split_list(inside)) {
    std::size_t equals = word.find('=');
    context[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return context;
}

std::vector<std::string> split(std::string text, const std::string& by) {
  std::vector<std::string> parts;
  for (std::size_t at = text.find(by); at != text.npos; at = text.find(by)) {
    parts.push_back(std::string(trim(text.substr(0, at))));
    text.erase(0, at + by.size());
  }
  parts.push_back(std::string(trim(text)));
  return parts;
}

std::vector<Entry> read_corpus() {
  std::vector<Entry> all;
  std::map<std::string, std::string> context;
  std::istringstream in(test_file("corpus.txt"));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (trim(line).empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      context = read_context(std::string_view(line).substr(1, line.find(']') - 1));
      continue;
    }
    std::size_t bar = line.find(" | ");
    BOOST_REQUIRE_MESSAGE(bar != line.npos, "corpus.txt:" << number << ": no |");
    std::vector<std::string> head = split_list(line.substr(0, bar));
    std::vector<std::string> rest = split(line.substr(bar + 3), " :: ");
    BOOST_REQUIRE_MESSAGE(head.size() == 2 || head.size() == 3, "corpus.txt:" << number);
    Entry entry{number, head[0], head[1], head.size() == 3 ? head[2] : "", rest[0], {rest.begin() + 1, rest.end()},
                context};
    all.push_back(std::move(entry));
  }
  return all;
}

Session session_of(const Entry& entry) {
  Session session;
  session.sends_writes = session.sends_locking_reads = session.sends_user_types = true;
  if (auto found = entry.context.find("tenant"); found != entry.context.end()) {
    session.naming = found->second == "*" ? Session::Naming::All : Session::Naming::One;
    session.named = found->second;
  }
  if (auto found = entry.context.find("profile"); found != entry.context.end())
    session.profile = catalog::profile_of(found->second);
  session.is_rejecting = entry.context.contains("policy");
  return session;
}

std::string path_word(const Verdict& v) {
  if (v.path == Path::LookUp) return "look-up";
  if (v.path == Path::Refuse) return "refused";
  if (v.path == Path::Cloud) return "cloud";
  return v.access == Access::Read ? "direct" : v.access == Access::Write ? "write" : "locks";
}

std::string organization_word(const Verdict& v) {
  return v.whose == Verdict::Whose::One ? v.organization : v.whose == Verdict::Whose::Nobody ? "-" : "";
}

BOOST_AUTO_TEST_SUITE(route_corpus)

BOOST_AUTO_TEST_CASE(every_statement_goes_where_the_corpus_says) {
  std::vector<Entry> corpus = read_corpus();
  BOOST_TEST(corpus.size() >= 400u);
  for (const Entry& entry : corpus) {
    sql::Parsed parsed = sql::parse_sql(entry.statement);
    BOOST_REQUIRE_MESSAGE(parsed.statements.size() == 1, "corpus.txt:" << entry.line << ": " << parsed.error);
    Analysis analysis = analyse(test_catalog(), parsed.statements[0], usual_path());
    LiteralList literals(entry.statement);
    std::vector<catalog::Parameter> parameters;
    for (const std::string& value : entry.values) parameters.push_back({value, 0, false, value == "\\N"});
    Session session = session_of(entry);
    Verdict v = decide(analysis, {literals.view(), parameters}, session, TestKeys());
    std::string is = path_word(v) + " " + std::string(info(v.reason).id) + " " + organization_word(v);
    std::string wanted = entry.path + " " + entry.reason + " " + entry.organization;
    BOOST_CHECK_MESSAGE(is == wanted, "corpus.txt:" << entry.line << ": " << is
                                                    << (analysis.detail.empty() ? "" : " (" + analysis.detail + ")")
                                                    << ", not " << wanted << ": " << entry.statement);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb::route
