#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "config/support.h"

namespace lokadb {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The line without its time and process id.
std::string message_of(const std::string& line) {
  auto at = line.find("] ");
  BOOST_REQUIRE(at != line.npos);
  return line.substr(at + 2);
}

// Standard error goes to a file while this lives.
class StandardError {
 public:
  explicit StandardError(const std::string& path) : saved_(dup(STDERR_FILENO)) {
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
  }
  ~StandardError() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

 private:
  int saved_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct LogFixture {
  test::Sandbox sandbox;
  ~LogFixture() { log_set_verbosity(0); }
};

BOOST_FIXTURE_TEST_SUITE(base_log, LogFixture)

BOOST_AUTO_TEST_CASE(a_line_has_time_zone_process_and_level) {
  log_line(LogLevel::Log, "hello %d %s", 5, "world");
  std::regex form("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} [A-Za-z0-9+-]+ \\[(\\d+)\\] LOG hello 5 world\n");
  std::smatch match;
  std::string text = sandbox.log();
  BOOST_REQUIRE_MESSAGE(std::regex_match(text, match, form), text);
  BOOST_TEST(match[1] == std::to_string(getpid()));
}

BOOST_AUTO_TEST_CASE(levels_are_named) {
  log_set_verbosity(2);
  for (auto level :
       {LogLevel::Fatal, LogLevel::Error, LogLevel::Warning, LogLevel::Log, LogLevel::Debug, LogLevel::Noise})
    log_line(level, "x");
  std::string seen;
  for (const auto& line : lines_of(sandbox.log())) seen += message_of(line) + ",";
  BOOST_TEST(seen == "FATAL x,ERROR x,WARNING x,LOG x,DEBUG x,NOISE x,");
}

BOOST_AUTO_TEST_CASE(verbosity_decides_what_is_written) {
  auto written = [this](LogLevel level) {
    auto before = sandbox.log().size();
    log_line(level, "x");
    bool is_written = sandbox.log().size() > before;
    BOOST_TEST(is_written == log_enabled(level));
    return is_written;
  };
  for (int verbosity : {-1, 0, 1, 2, 3}) {
    log_set_verbosity(verbosity);
    BOOST_TEST(written(LogLevel::Fatal));
    BOOST_TEST(written(LogLevel::Log));
    BOOST_TEST(written(LogLevel::Debug) == (verbosity >= 1));
    BOOST_TEST(written(LogLevel::Noise) == (verbosity >= 2));
  }
}

// Nobody can forge a line of the log: a newline is followed by a tab.
BOOST_AUTO_TEST_CASE(a_newline_continues_the_line) {
  log_line(LogLevel::Log, "one\ntwo\n\nthree");
  auto text = sandbox.log();
  BOOST_TEST(text.ends_with("LOG one\n\ttwo\n\t\n\tthree\n"));
}

BOOST_AUTO_TEST_CASE(long_messages_are_cut_at_two_kilobytes) {
  std::string all(2047, 'x');
  log_line(LogLevel::Log, "%s", all.c_str());
  log_line(LogLevel::Log, "%sy", all.c_str());
  log_line(LogLevel::Log, "%s", std::string(100000, 'z').c_str());
  auto lines = lines_of(sandbox.log());
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(message_of(lines[0]) == "LOG " + all);
  BOOST_TEST(message_of(lines[1]) == "LOG " + all);
  BOOST_TEST(message_of(lines[2]) == "LOG " + std::string(2047, 'z'));
}

BOOST_AUTO_TEST_CASE(an_empty_message_is_a_line) {
  log_line(LogLevel::Log, "%s", "");
  BOOST_TEST(sandbox.log().ends_with("] LOG \n"));
}

BOOST_AUTO_TEST_CASE(the_file_is_opened_anew_when_it_is_configured_again) {
  log_line(LogLevel::Log, "before");
  std::filesystem::rename(sandbox.path("log"), sandbox.path("log.1"));
  log_line(LogLevel::Log, "still the old one");
  LogTargets targets;
  targets.to_stderr = false;
  targets.file = sandbox.path("log");
  BOOST_TEST(log_configure(targets) == "");
  log_line(LogLevel::Log, "after");
  BOOST_TEST(lines_of(sandbox.log()).size() == 1u);
  BOOST_TEST(sandbox.logged("LOG after"));
  BOOST_TEST(log_configure(targets) == "");  // and is appended to
  log_line(LogLevel::Log, "more");
  BOOST_TEST(lines_of(sandbox.log()).size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_opened_changes_nothing) {
  LogTargets targets;
  targets.to_stderr = false;
  targets.file = sandbox.path("no such folder/log");
  BOOST_TEST(log_configure(targets) == "Cannot open logfile: '" + targets.file + "': No such file or directory");
  log_line(LogLevel::Log, "goes on");
  BOOST_TEST(sandbox.logged("goes on"));
}

BOOST_AUTO_TEST_CASE(standard_error_gets_the_same_line_as_the_file) {
  StandardError redirected(sandbox.path("stderr"));
  LogTargets targets;
  targets.file = sandbox.path("log");
  BOOST_TEST(log_configure(targets) == "");
  log_line(LogLevel::Warning, "both");
  BOOST_TEST(text_of(sandbox.path("stderr")) == sandbox.log());
  BOOST_TEST(sandbox.log().ends_with("WARNING both\n"));
}

BOOST_AUTO_TEST_CASE(the_journal_gets_its_own_prefix_instead_of_the_time) {
  StandardError redirected(sandbox.path("stderr"));
  struct stat st;
  BOOST_REQUIRE(fstat(STDERR_FILENO, &st) == 0);
  setenv("JOURNAL_STREAM", (std::to_string(st.st_dev) + ":" + std::to_string(st.st_ino)).c_str(), 1);
  BOOST_TEST(log_configure({}) == "");
  log_line(LogLevel::Error, "one");
  log_line(LogLevel::Log, "two\nthree");
  unsetenv("JOURNAL_STREAM");
  BOOST_TEST(text_of(sandbox.path("stderr")) == "<3>ERROR one\n<6>LOG two\n\tthree\n");
}

BOOST_AUTO_TEST_CASE(lines_of_several_threads_stay_whole) {
  constexpr int kThreads = 4, kLines = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      std::string text(300, static_cast<char>('a' + t));
      for (int i = 0; i < kLines; ++i) log_line(LogLevel::Log, "%s", text.c_str());
    });
  for (auto& thread : threads) thread.join();
  auto lines = lines_of(sandbox.log());
  BOOST_TEST(lines.size() == static_cast<std::size_t>(kThreads * kLines));
  for (const auto& line : lines) {
    std::string message = message_of(line);
    BOOST_TEST(message == "LOG " + std::string(300, message.back()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
