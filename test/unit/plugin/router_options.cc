// Section [control_plane] of the plugin router: what is refused, at the start and by a reload, and that neither keeps
// the proxy waiting.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>

#include "secret/key_file.h"
#include "support.h"

using namespace lokadb;
using namespace lokadb::test;

namespace {

// A port that takes connections and never says a word.
class SilentPort {
 public:
  SilentPort() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    bool ok = bind(fd_, reinterpret_cast<sockaddr*>(&address_), size) == 0 && listen(fd_, 8) == 0 &&
              getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size) == 0;
    if (!ok) throw std::runtime_error("no port");
  }
  ~SilentPort() { ::close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  std::string dsn() const {
    return "host=127.0.0.1 user=x password=hidden dbname=x port=" + std::to_string(ntohs(address_.sin_port));
  }
  // Whether somebody came within five seconds.
  bool is_visited() const {
    timeval limit{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int guest = accept(fd_, nullptr, nullptr);
    if (guest >= 0) ::close(guest);
    return guest >= 0;
  }

 private:
  int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
};

struct Keyed {
  Keyed() {
    if (!secret::make_key_file(key)) throw std::runtime_error("no key file");
  }
  std::string fault(const std::string& dsn, const std::string& file) const {
    return load_fault({"router"}, {{"control_plane", {{"dsn", dsn}, {"key_file", file}}}});
  }
  Sandbox folder;
  std::string key = folder.path("key");
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_router_options)

BOOST_AUTO_TEST_CASE(one_option_without_the_other_is_refused) {
  Keyed k;
  BOOST_TEST(has(load_fault({"router"}, {{"control_plane", {{"key_file", k.key}}}}), "has key_file, but no dsn"));
  BOOST_TEST(has(load_fault({"router"}, {{"control_plane", {{"dsn", "dbname=x"}}}}), "has dsn, but no key_file"));
  BOOST_TEST(has(load_fault({"router"}, {{"control_plane", {{"password", "x"}}}}), "unknown parameter"));
  BOOST_TEST(load_fault({"router"}, {{"control_plane", {}}}) == "loaded");
}

BOOST_AUTO_TEST_CASE(a_dsn_that_libpq_does_not_understand_is_refused_without_showing_it) {
  Keyed k;
  for (const char* dsn : {"control", "dbname=x password=hidden words", "host=a hidden=1", "postgresql://u:hidden@[::1",
                          "dbname='hidden"}) {
    std::string fault = k.fault(dsn, k.key);
    BOOST_TEST(has(fault, "[control_plane] dsn is no connection string"));
    BOOST_TEST(!has(fault, "hidden"));
  }
}

BOOST_AUTO_TEST_CASE(a_key_file_that_is_none_or_open_to_others_is_refused) {
  Keyed k;
  const std::string dsn = SilentPort().dsn();
  BOOST_TEST(has(k.fault(dsn, k.folder.path("none")), "[control_plane] key_file " + k.folder.path("none")));
  std::string other = k.folder.write("other", "no key\n");
  BOOST_REQUIRE(chmod(other.c_str(), 0600) == 0);
  BOOST_TEST(has(k.fault(dsn, other), "not a key file of lokadb keygen"));
  BOOST_REQUIRE(chmod(k.key.c_str(), 0640) == 0);
  BOOST_TEST(has(k.fault(dsn, k.key), "others may read the key file"));
  BOOST_REQUIRE(chmod(k.key.c_str(), 0600) == 0);
  BOOST_TEST(k.fault(dsn, k.key) == "loaded");
  BOOST_TEST(!k.folder.logged("hidden"));
}

BOOST_AUTO_TEST_CASE(a_control_plane_that_says_nothing_holds_neither_a_reload_nor_the_end) {
  Keyed k;
  SilentPort first, second;
  auto sections = [&k](const SilentPort& port) {
    return std::map<std::string, Lines>{{"control_plane", {{"dsn", port.dsn()}, {"key_file", k.key}}}};
  };
  auto chain = load({"router"}, sections(first));
  BOOST_TEST(first.is_visited());
  auto begun = std::chrono::steady_clock::now();
  BOOST_TEST(static_cast<bool>(chain->reload(sections_of({"router"}, sections(second)))));
  BOOST_TEST(second.is_visited());
  BOOST_TEST(!chain->reload(sections_of({"router"}, {{"control_plane", {{"dsn", "dbname=x"}}}})));
  chain.reset();
  auto took = std::chrono::steady_clock::now() - begun;
  BOOST_TEST(took < std::chrono::seconds(4));
  BOOST_TEST(!k.folder.logged("hidden"));
}

BOOST_AUTO_TEST_SUITE_END()
