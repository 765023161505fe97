// The resolver: names of /etc/hosts, and a name server of our own on the loopback that counts what it is asked.
#include "net/dns.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/text.h"

using namespace lokadb;

namespace {

// Answers A questions for names under "test." from a list that tests change; all else with NXDOMAIN. Other types of
// records get an empty answer. Runs on the loop under test.
class NameServer {
 public:
  explicit NameServer(EventLoop& loop) {
    fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    auto address = *parse_ip("127.0.0.1", 0);
    BOOST_REQUIRE(bind(fd_, address.data(), address.length) == 0);
    BOOST_REQUIRE(getsockname(fd_, address.data(), &address.length) == 0);
    char path[] = "/tmp/resolv.XXXXXX";
    close(mkstemp(path));
    resolv_conf = path;
    servers = to_text(address);
    // Short waits, in the words of old and new versions of c-ares.
    std::ofstream(path) << "options retrans:100 retry:1 timeout:1 attempts:1\n";
    event_.reset(event_new(
        loop.base(), fd_, EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* self) { static_cast<NameServer*>(self)->answer(); }, this));
    event_add(event_.get(), nullptr);
  }
  ~NameServer() {
    event_.reset();
    close(fd_);
    unlink(resolv_conf.c_str());
  }

  std::string resolv_conf, servers;
  std::vector<std::string> addresses;
  int questions = 0;    // of type A
  unsigned serial = 0;  // of the zone "test"; 0: nobody knows
  bool is_silent = false;

 private:
  void answer() {
    unsigned char packet[1024];
    SocketAddress from;
    from.length = sizeof(from.storage);
    auto n = recvfrom(fd_, packet, 512, 0, from.data(), &from.length);
    if (n < 17) return;
    std::size_t end = 12;
    while (packet[end] != 0) end += packet[end] + 1u;
    bool is_ours = end >= 17 && std::string_view(reinterpret_cast<char*>(packet) + end - 5, 5) == "\4test";
    bool is_a = packet[end + 2] == 1;
    bool is_soa = packet[end + 2] == 6 && serial != 0;
    end += 5;
    questions += is_a;
    if (is_silent) return;
    packet[2] = 0x85;  // a response, authoritative
    packet[3] = is_ours ? 0 : 3;
    std::size_t count = is_ours && is_a ? addresses.size() : 0;
    packet[7] = static_cast<unsigned char>(count);
    std::fill(packet + 8, packet + 12, static_cast<unsigned char>(0));
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned char head[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4};
      std::copy(std::begin(head), std::end(head), packet + end);
      auto address = *parse_ip(addresses[i], 0);
      std::memcpy(packet + end + 12, &reinterpret_cast<sockaddr_in*>(address.data())->sin_addr, 4);
      end += 16;
    }
    if (is_ours && is_soa) {
      packet[7] = 1;
      const unsigned char head[] = {0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 1, 0, 22, 0, 0};
      std::copy(std::begin(head), std::end(head), packet + end);
      end += sizeof head;
      for (unsigned number : {serial, 1u, 1u, 1u, 1u})
        for (int shift = 24; shift >= 0; shift -= 8) packet[end++] = static_cast<unsigned char>(number >> shift);
    }
    sendto(fd_, packet, end, 0, from.data(), from.length);
  }

  int fd_;
  EventPtr event_;
};

struct Fixture {
  EventLoop loop{4096};
  NameServer server{loop};
  std::unique_ptr<DnsResolver> dns;
  std::vector<DnsAnswer> answers;
  DnsCallback keep = [this](const DnsAnswer& answer) { answers.push_back(answer); };

  Fixture() { make(DnsSettings()); }
  void make(DnsSettings settings) {
    settings.resolv_conf = server.resolv_conf;
    settings.servers = server.servers;
    dns = std::move(*DnsResolver::create(loop, settings));
  }
  void make(Micros max_ttl, Micros nxdomain_ttl) {
    DnsSettings settings;
    settings.max_ttl = max_ttl;
    settings.nxdomain_ttl = nxdomain_ttl;
    make(settings);
  }
  // Runs the loop until so many answers are there; at most some seconds.
  void wait_for(std::size_t count) {
    for (auto until = now_us() + 10'000'000; answers.size() < count && now_us() < until;) turn();
    BOOST_REQUIRE(answers.size() == count);
  }
  void turn() {
    timeval most{0, 20'000};
    event_base_loopexit(loop.base(), &most);
    event_base_loop(loop.base(), EVLOOP_ONCE);
  }
  DnsAnswer ask(const std::string& name, int port = 5432) {
    auto ticket = dns->resolve(name, port, keep);
    BOOST_TEST(ticket.is_waiting());
    wait_for(answers.size() + 1);
    BOOST_TEST(!ticket.is_waiting());
    return answers.back();
  }
};

std::string texts(const std::vector<SocketAddress>& addresses) {
  std::set<std::string> sorted;
  for (const auto& address : addresses) sorted.insert(to_text(address));
  std::string out;
  for (const auto& text : sorted) out += (out.empty() ? "" : " ") + text;
  return out;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(net_dns, Fixture)

BOOST_AUTO_TEST_CASE(localhost_comes_from_the_hosts_file) {
  auto answer = ask("localhost");
  BOOST_TEST(bool(answer));
  BOOST_TEST(texts(answer.addresses).find("127.0.0.1:5432") != std::string::npos);
  BOOST_TEST(server.questions == 0);
}

BOOST_AUTO_TEST_CASE(answers_never_come_from_inside_resolve) {
  ask("localhost");
  for (const char* name : {"localhost", "127.0.0.1", "/tmp/x"}) {
    auto before = answers.size();
    auto ticket = dns->resolve(name, 1, keep);
    BOOST_TEST(answers.size() == before);
    wait_for(before + 1);
  }
}

BOOST_AUTO_TEST_CASE(literals_and_unix_sockets_need_no_lookup) {
  BOOST_TEST(texts(ask("10.1.2.3").addresses) == "10.1.2.3:5432");
  BOOST_TEST(texts(ask("::1", 7).addresses) == "[::1]:7");
  BOOST_TEST(texts(ask("/tmp/.s.PGSQL.5432").addresses) == "/tmp/.s.PGSQL.5432");
  BOOST_TEST(texts(ask("@pool").addresses) == "@pool");
  BOOST_TEST(dns->name_count() == 0u);
}

BOOST_AUTO_TEST_CASE(an_unknown_name_gives_an_error_that_is_kept) {
  auto answer = ask("nowhere.invalid");
  BOOST_TEST(!answer);
  BOOST_TEST(answer.addresses.empty());
  BOOST_TEST(answer.error == ares_strerror(ARES_ENOTFOUND));
  int asked = server.questions;
  BOOST_TEST(asked > 0);
  BOOST_TEST(ask("nowhere.invalid").error == answer.error);
  BOOST_TEST(server.questions == asked);
  BOOST_REQUIRE(dns->entries().size() == 1u);
  BOOST_TEST(dns->entries()[0].addresses.empty());
}

BOOST_AUTO_TEST_CASE(an_answer_is_kept_beyond_its_own_ttl_and_shown) {
  server.addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.1"};
  BOOST_TEST(texts(ask("b.db.test").addresses) == "10.0.0.1:5432 10.0.0.2:5432");
  BOOST_TEST(answers.back().addresses.size() == 2u);
  BOOST_TEST(texts(ask("b.db.test", 6).addresses) == "10.0.0.1:6 10.0.0.2:6");
  BOOST_TEST(server.questions == 1);
  ask("a.db.test");
  auto shown = dns->entries();
  BOOST_REQUIRE(shown.size() == 2u);
  BOOST_TEST(shown[0].name == "a.db.test");
  BOOST_TEST(shown[1].name == "b.db.test");
  BOOST_TEST((shown[1].seconds_left == 14 || shown[1].seconds_left == 15));
  BOOST_TEST(texts(shown[1].addresses) == "10.0.0.1:0 10.0.0.2:0");
}

BOOST_AUTO_TEST_CASE(expiry_is_checked_on_use) {
  make(Micros(30'000), Micros(0));
  server.addresses = {"10.0.0.1"};
  ask("db.test");
  ask("db.test");
  BOOST_TEST(server.questions == 1);
  std::this_thread::sleep_for(Micros(40'000));
  BOOST_TEST(dns->entries()[0].seconds_left == 0);
  server.addresses = {"10.0.0.2"};
  BOOST_TEST(texts(ask("db.test").addresses) == "10.0.0.2:5432");
  BOOST_TEST(server.questions == 2);
}

BOOST_AUTO_TEST_CASE(times_can_be_changed_for_later_answers) {
  server.addresses = {"10.0.0.1"};
  dns->set_ttls(Micros(0), Micros(0));
  ask("db.test");
  ask("db.test");
  BOOST_TEST(server.questions == 2);
  dns->set_ttls(Micros(60'000'000), Micros(0));
  ask("db.test");
  ask("db.test");
  BOOST_TEST(server.questions == 3);
  BOOST_TEST(dns->entries()[0].seconds_left > 50);
}

BOOST_AUTO_TEST_CASE(requests_for_one_name_share_one_lookup) {
  server.addresses = {"10.0.0.1"};
  auto one = dns->resolve("db.test", 1, keep), two = dns->resolve("db.test", 2, keep);
  BOOST_TEST(dns->lookup_count() == 1u);
  wait_for(2);
  BOOST_TEST(texts(answers[0].addresses) == "10.0.0.1:1");
  BOOST_TEST(texts(answers[1].addresses) == "10.0.0.1:2");
  BOOST_TEST(server.questions == 1);
  BOOST_TEST(dns->lookup_count() == 0u);
}

BOOST_AUTO_TEST_CASE(several_addresses_take_turns_at_being_first) {
  server.addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  std::set<std::string> first;
  for (int i = 0; i < 3; ++i) first.insert(ip_text(ask("db.test").addresses.at(0)));
  BOOST_TEST(first.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_destroyed_ticket_stops_the_call_and_frees_what_it_holds) {
  server.addresses = {"10.0.0.1"};
  auto held = std::make_shared<int>(1);
  {
    auto ticket = dns->resolve("db.test", 1, [held](const DnsAnswer&) { BOOST_ERROR("called after cancel"); });
    BOOST_TEST(held.use_count() == 2);
  }
  BOOST_TEST(held.use_count() == 1);
  auto other = dns->resolve("db.test", 1, keep);
  wait_for(1);
  // An answer that is ready already is held back too.
  auto late = dns->resolve("db.test", 1, [](const DnsAnswer&) { BOOST_ERROR("called after cancel"); });
  auto after = dns->resolve("db.test", 1, keep);
  late = DnsTicket();
  wait_for(2);
}

BOOST_AUTO_TEST_CASE(a_callback_may_drop_its_own_ticket_and_those_of_others) {
  server.addresses = {"10.0.0.1"};
  DnsTicket mine, other;
  mine = dns->resolve("db.test", 1, [&, self = std::string(100, 'x')](const DnsAnswer& answer) {
    mine = DnsTicket();
    other = DnsTicket();
    BOOST_TEST(self.size() == 100u);
    answers.push_back(answer);
  });
  other = dns->resolve("db.test", 1, [](const DnsAnswer&) { BOOST_ERROR("called after cancel"); });
  wait_for(1);
  turn();
}

BOOST_AUTO_TEST_CASE(a_callback_may_ask_again) {
  DnsTicket ticket, next;
  ticket = dns->resolve("127.0.0.1", 1, [&](const DnsAnswer&) { next = dns->resolve("127.0.0.2", 2, keep); });
  wait_for(1);
  BOOST_TEST(texts(answers[0].addresses) == "127.0.0.2:2");
}

BOOST_AUTO_TEST_CASE(a_callback_may_destroy_the_resolver) {
  auto one = dns->resolve("127.0.0.1", 1, [&](const DnsAnswer& answer) {
    dns.reset();
    answers.push_back(answer);
  });
  auto two = dns->resolve("127.0.0.1", 1, [](const DnsAnswer&) { BOOST_ERROR("called after the resolver's end"); });
  wait_for(1);
  turn();
}

BOOST_AUTO_TEST_CASE(a_resolver_may_end_while_lookups_are_under_way) {
  server.is_silent = true;
  auto ticket = dns->resolve("db.test", 1, [](const DnsAnswer&) { BOOST_ERROR("called after the resolver's end"); });
  turn();
  BOOST_TEST(server.questions == 1);
  dns.reset();
  turn();
}

BOOST_AUTO_TEST_CASE(a_silent_name_server_ends_in_an_error) {
  server.is_silent = true;
  BOOST_TEST(ask("db.test").error == ares_strerror(ARES_ETIMEOUT));
}

BOOST_AUTO_TEST_CASE(lost_addresses_are_reported_before_the_answer_and_across_failures) {
  make(Micros(0), Micros(0));
  std::vector<std::string> lost;
  dns->on_lost_address([&](const std::string& name, const SocketAddress& address) {
    lost.push_back(format("%s %s %zu", name.c_str(), ip_text(address).c_str(), answers.size()));
  });
  server.addresses = {"10.0.0.1", "10.0.0.2"};
  ask("db.test");
  server.addresses = {"10.0.0.2", "10.0.0.3"};
  ask("db.test");
  BOOST_REQUIRE(lost.size() == 1u);
  BOOST_TEST(lost[0] == "db.test 10.0.0.1 1");
  server.addresses = {};
  BOOST_TEST(!ask("db.test"));
  BOOST_TEST(lost.size() == 1u);
  server.addresses = {"10.0.0.2"};
  ask("db.test");
  BOOST_REQUIRE(lost.size() == 2u);
  BOOST_TEST(lost[1] == "db.test 10.0.0.3 3");
}

BOOST_AUTO_TEST_CASE(the_cache_forgets_the_oldest_name_when_full) {
  DnsSettings settings;
  settings.max_names = 2;
  make(settings);
  server.addresses = {"10.0.0.1"};
  for (const char* name : {"a.test", "b.test", "c.test"}) ask(name);
  BOOST_TEST(dns->name_count() == 2u);
  BOOST_TEST(dns->entries()[0].name == "b.test");
  BOOST_TEST(server.questions == 3);
}

BOOST_AUTO_TEST_CASE(a_cache_full_of_lookups_refuses_more_names) {
  DnsSettings settings;
  settings.max_names = 2;
  make(settings);
  server.addresses = {"10.0.0.1"};
  auto a = dns->resolve("a.test", 1, keep), b = dns->resolve("b.test", 1, keep), c = dns->resolve("c.test", 1, keep);
  wait_for(3);
  BOOST_TEST(answers[0].error == "too many DNS lookups");
  BOOST_TEST(bool(answers[1]));
  BOOST_TEST(bool(answers[2]));
  BOOST_TEST(bool(ask("c.test")));
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_callback_stays_inside) {
  auto one = dns->resolve("127.0.0.1", 1, [](const DnsAnswer&) { throw std::runtime_error("meant to be thrown"); });
  auto two = dns->resolve("127.0.0.1", 1, keep);
  wait_for(1);
}

BOOST_AUTO_TEST_CASE(a_zone_that_has_changed_has_its_names_looked_up_anew) {
  std::vector<std::string> lost;
  dns->on_lost_address(
      [&](const std::string& name, const SocketAddress& a) { lost.push_back(name + " " + ip_text(a)); });
  auto turn_until = [this](auto&& is_so) {
    for (auto until = now_us() + 10'000'000; !is_so() && now_us() < until;) turn();
    BOOST_REQUIRE(is_so());
  };
  server.addresses = {"10.0.0.1"};
  server.serial = 7;
  auto ticket = dns->resolve("db.test", 5432, keep);
  wait_for(1);
  BOOST_TEST(dns->zones().empty());
  dns->check_zones();
  turn_until([this] { return !dns->zones().empty() && dns->zones()[0].serial == 7; });
  BOOST_TEST(dns->zones()[0].name == "test");
  BOOST_TEST(dns->zones()[0].names == 1u);
  int questions = server.questions;
  server.addresses = {"10.0.0.2"};
  dns->check_zones();  // the same serial
  for (int i = 0; i < 5; ++i) turn();
  BOOST_TEST(server.questions == questions);
  server.serial = 8;
  dns->check_zones();
  turn_until([&] { return !lost.empty(); });
  BOOST_TEST(lost[0] == "db.test 10.0.0.1");
  server.serial = 0;  // an answer that says nothing changes nothing
  dns->check_zones();
  for (int i = 0; i < 5; ++i) turn();
  BOOST_TEST(dns->zones()[0].serial == 8u);
}

BOOST_AUTO_TEST_SUITE_END()
