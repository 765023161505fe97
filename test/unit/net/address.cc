// Addresses: literals, unix sockets, and how they are shown.
#include "net/address.h"

#include <netinet/in.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstring>

namespace data = boost::unit_test::data;
using namespace lokadb;

BOOST_AUTO_TEST_SUITE(net_address)

struct Shown {
  const char *text, *ip, *host, *whole;
};
std::ostream& operator<<(std::ostream& out, const Shown& s) { return out << s.text; }

const Shown kShown[] = {
    {"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1:5432"},
    {"::1", "::1", "[::1]", "[::1]:5432"},
    {"[::1]", "::1", "[::1]", "[::1]:5432"},
    {"2001:DB8:0::5", "2001:db8::5", "[2001:db8::5]", "[2001:db8::5]:5432"},
    {"fe80::1%lo", "fe80::1%lo", "[fe80::1%lo]", "[fe80::1%lo]:5432"},
    {"/tmp/.s.PGSQL.5432", "/tmp/.s.PGSQL.5432", "/tmp/.s.PGSQL.5432", "/tmp/.s.PGSQL.5432"},
    {"@pool/.s.PGSQL.5432", "@pool/.s.PGSQL.5432", "@pool/.s.PGSQL.5432", "@pool/.s.PGSQL.5432"},
};

BOOST_DATA_TEST_CASE(literals_are_parsed_and_shown, data::make(kShown), shown) {
  auto address = parse_address(shown.text, 5432);
  BOOST_REQUIRE(address.has_value());
  BOOST_TEST(ip_text(*address) == shown.ip);
  BOOST_TEST(host_text(*address) == shown.host);
  BOOST_TEST(to_text(*address) == shown.whole);
  BOOST_TEST(address->port() == (address->is_unix() ? 0 : 5432));
  BOOST_TEST((parse_address(ip_text(*address), 5432) == *address));
}

const char* const kNames[] = {"",       "localhost", "127.1",       "1.2.3", "256.0.0.1", "127.0.0.1 ",
                              "::1%no", "[::1",      "[127.0.0.1]", "1:2",   ":::",       "db.example.org"};
BOOST_DATA_TEST_CASE(names_and_broken_literals_are_no_addresses, data::make(kNames), text) {
  BOOST_TEST(!parse_address(text, 1).has_value());
}

BOOST_AUTO_TEST_CASE(a_zero_byte_does_not_end_a_literal) {
  BOOST_TEST(!parse_ip(std::string_view("127.0.0.1\0x", 11), 1).has_value());
}

BOOST_AUTO_TEST_CASE(unix_paths_must_fit_with_their_zero_byte) {
  BOOST_TEST(unix_address("/" + std::string(106, 'x')).has_value());
  BOOST_TEST(!unix_address("/" + std::string(107, 'x')).has_value());
  BOOST_TEST(!unix_address("").has_value());
}

BOOST_AUTO_TEST_CASE(abstract_names_have_no_zero_byte_at_the_end) {
  auto address = unix_address("@ab");
  BOOST_REQUIRE(address.has_value());
  BOOST_TEST(address->length == sizeof(sa_family_t) + 3);
  BOOST_TEST(std::memcmp(reinterpret_cast<const char*>(&address->storage) + sizeof(sa_family_t), "\0ab", 3) == 0);
  BOOST_TEST(unix_address("/ab")->length == sizeof(sa_family_t) + 4);
}

BOOST_AUTO_TEST_CASE(a_unix_socket_without_a_name_is_shown_as_unix) {
  sa_family_t family = AF_UNIX;
  auto address = socket_address(reinterpret_cast<sockaddr*>(&family), sizeof(family));
  BOOST_TEST(ip_text(address) == "unix");
  BOOST_TEST(address.is_unix());
}

BOOST_AUTO_TEST_CASE(equal_means_family_address_port_and_scope) {
  auto a = *parse_ip("10.0.0.1", 1);
  BOOST_TEST((a == *parse_ip("10.0.0.1", 1)));
  BOOST_TEST(!(a == *parse_ip("10.0.0.1", 2)));
  BOOST_TEST(!(a == *parse_ip("10.0.0.2", 1)));
  BOOST_TEST(!(a == *parse_ip("::ffff:10.0.0.1", 1)));
  BOOST_TEST(!(*parse_ip("fe80::1", 1) == *parse_ip("fe80::1%lo", 1)));
  BOOST_TEST(!(*unix_address("/a") == *unix_address("@a")));
  BOOST_TEST((SocketAddress{} == SocketAddress{}));
}

BOOST_AUTO_TEST_CASE(the_port_can_be_changed) {
  for (const char* text : {"10.0.0.1", "2001:db8::1"}) {
    auto address = *parse_ip(text, 0);
    address.set_port(65535);
    BOOST_TEST(address.port() == 65535);
    BOOST_TEST(ip_text(address) == text);
  }
}

BOOST_AUTO_TEST_CASE(an_impossible_length_gives_no_address) {
  sockaddr_storage storage{};
  BOOST_TEST(socket_address(reinterpret_cast<sockaddr*>(&storage), sizeof(storage) + 1).empty());
  BOOST_TEST(to_text(SocketAddress{}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
