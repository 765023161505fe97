#include "proto/startup.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;
using namespace std::string_view_literals;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr auto kStartup = "\0\0\0\x2c\0\x03\0\x02user\0ann\0_pq_.grease\0on\0database\0d\0\0"sv;

std::string packet(std::string_view after_length) {
  ByteBuffer out;
  out.u32(static_cast<std::uint32_t>(after_length.size() + 4));
  out.text(after_length);
  return std::string(as_text(out.bytes()));
}

std::string error_of(const auto& result) { return result ? "no error" : result.error().to_client; }

std::string layout_error_of(std::string_view body) {
  return error_of(parse_startup(as_bytes(packet(std::string("\0\x03\0\0"sv) + std::string(body)))));
}

constexpr auto kLayoutError = "invalid startup packet layout: expected terminator as last byte";
constexpr auto kOptionsError =
    "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed";

BOOST_AUTO_TEST_SUITE(startup)

BOOST_AUTO_TEST_CASE(length_is_that_of_the_whole_packet) {
  auto length = startup_packet_length(as_bytes(kStartup.substr(0, 4)));
  BOOST_REQUIRE(length);
  BOOST_TEST(*length == kStartup.size());
  BOOST_TEST(*startup_packet_length(as_bytes("\0\0\0\x08"sv)) == 8u);
  BOOST_TEST(*startup_packet_length(as_bytes("\0\1\0\0"sv)) == kMaxStartupPacket);
}

BOOST_AUTO_TEST_CASE(impossible_lengths_show_the_header) {
  BOOST_TEST(error_of(startup_packet_length(as_bytes("\0\0\0\x07\0\x03\0\0user"sv))) ==
             "bad packet header: '0000000700030000'");
  BOOST_TEST(error_of(startup_packet_length(as_bytes("\0\x01\0\x01"sv))) == "bad packet header: '00010001'");
  BOOST_TEST(error_of(startup_packet_length(as_bytes("\xff\xff\xff\xff"sv))) == "bad packet header: 'ffffffff'");
  BOOST_TEST(error_of(startup_packet_length(as_bytes("\0\0"sv))) == "bad packet header: '0000'");
  BOOST_TEST(startup_packet_length(as_bytes("\0\0\0\0"sv)).error().state.text() == "08P01");
}

BOOST_AUTO_TEST_CASE(request_codes_tell_first_packets_apart) {
  auto kind = [](std::string_view after_length) { return *classify_first_packet(as_bytes(packet(after_length))); };
  BOOST_CHECK(kind("\x04\xd2\x16\x2f"sv) == FirstPacket::Ssl);
  BOOST_CHECK(kind("\x04\xd2\x16\x30"sv) == FirstPacket::GssEnc);
  BOOST_CHECK(kind("\x04\xd2\x16\x2e\0\0\0\x01\x12\x34\x56\x78"sv) == FirstPacket::Cancel);
  BOOST_CHECK(kind("\x04\xd2\x16\x2e\0\0\0\x01"sv) == FirstPacket::Cancel);
  BOOST_CHECK(kind("\0\x03\0\0\0"sv) == FirstPacket::Startup);
  BOOST_CHECK(kind("\0\x03\x27\x0f\0"sv) == FirstPacket::Startup);
}

BOOST_AUTO_TEST_CASE(requests_of_a_wrong_size_are_refused) {
  BOOST_TEST(error_of(classify_first_packet(as_bytes(packet("\x04\xd2\x16\x2fx"sv)))) ==
             "bad packet header: '0000000904d2162f'");
  BOOST_TEST(error_of(classify_first_packet(as_bytes(packet("\x04\xd2\x16\x30x"sv)))) ==
             "bad packet header: '0000000904d21630'");
  BOOST_TEST(error_of(classify_first_packet(as_bytes(packet("\x04\xd2\x16\x2e\0\0\0"sv)))) == "bad cancel request");
  BOOST_TEST(error_of(classify_first_packet(as_bytes("\0\0\0\x09\x04\xd2\x16\x2f"sv))) ==
             "bad packet header: '0000000904d2162f'");
}

BOOST_AUTO_TEST_CASE(other_protocol_versions_are_not_supported) {
  auto v2 = classify_first_packet(as_bytes(packet("\0\x02\0\0user"sv)));
  BOOST_TEST(error_of(v2) == "old V2 protocol not supported");
  BOOST_TEST(v2.error().state.text() == "0A000");
  auto v4 = classify_first_packet(as_bytes(packet("\0\x04\0\0"sv)));
  BOOST_TEST(error_of(v4) == "bad packet header: '0000000800040000'");
  BOOST_TEST(v4.error().state.text() == "0A000");
}

BOOST_AUTO_TEST_CASE(parameters_keep_their_order_and_protocol_options_are_apart) {
  auto parsed = parse_startup(as_bytes(kStartup));
  BOOST_REQUIRE(parsed);
  BOOST_TEST(parsed->version == 0x30002u);
  BOOST_REQUIRE(parsed->parameters.size() == 2u);
  BOOST_TEST(parsed->parameters[0].first == "user");
  BOOST_TEST(parsed->parameters[0].second == "ann");
  BOOST_TEST(parsed->parameters[1].first == "database");
  BOOST_TEST(parsed->parameters[1].second == "d");
  BOOST_REQUIRE(parsed->protocol_options.size() == 1u);
  BOOST_TEST(parsed->protocol_options[0] == "_pq_.grease");
}

BOOST_AUTO_TEST_CASE(an_empty_value_is_a_value) {
  auto body = packet("\0\x03\0\0application_name\0\0user\0u\0\0"sv);
  auto parsed = parse_startup(as_bytes(body));
  BOOST_REQUIRE(parsed);
  BOOST_TEST(parsed->parameters[0].second == "");
  BOOST_TEST(parsed->parameters[1].second == "u");
}

BOOST_AUTO_TEST_CASE(a_packet_without_parameters_is_well_formed) {
  auto parsed = parse_startup(as_bytes(packet("\0\x03\0\0\0"sv)));
  BOOST_REQUIRE(parsed);
  BOOST_TEST(parsed->parameters.empty());
}

BOOST_AUTO_TEST_CASE(the_terminator_must_be_the_last_byte) {
  BOOST_TEST(layout_error_of("") == kLayoutError);
  BOOST_TEST(layout_error_of("user\0ann\0"sv) == kLayoutError);
  BOOST_TEST(layout_error_of("user\0ann"sv) == kLayoutError);
  BOOST_TEST(layout_error_of("user\0\0"sv) == kLayoutError);
  BOOST_TEST(layout_error_of("user\0ann\0\0\0"sv) == kLayoutError);
  BOOST_TEST(layout_error_of("user\0ann\0\0database\0d\0\0"sv) == kLayoutError);
}

BOOST_DATA_TEST_CASE(every_short_prefix_is_refused, data::xrange(kStartup.size()), length) {
  std::unique_ptr<char[]> copy(new char[length]);  // exact, so that a sanitizer sees an over-read
  std::copy_n(kStartup.begin(), length, copy.get());
  Bytes prefix = as_bytes({copy.get(), length});
  BOOST_TEST(error_of(parse_startup(prefix)) == kLayoutError);
  BOOST_TEST(error_of(classify_first_packet(prefix)).starts_with("bad packet header: "));
  BOOST_TEST(static_cast<bool>(startup_packet_length(prefix)) == (length >= 4));
}

BOOST_AUTO_TEST_CASE(options_in_all_three_forms) {
  auto parsed = parse_startup_options("-c search_path=a -cTimeZone=GMT --extra-float-digits=2");
  BOOST_REQUIRE(parsed);
  BOOST_TEST((*parsed == Settings{{"search_path", "a"}, {"TimeZone", "GMT"}, {"extra_float_digits", "2"}}));
}

BOOST_AUTO_TEST_CASE(options_are_words_with_escapes) {
  auto parsed = parse_startup_options(" \t-c\n a=two\\ words \r\v\f --b=back\\\\slash\\ \t-c\tc-d=x=y\\");
  BOOST_REQUIRE(parsed);
  BOOST_TEST((*parsed == Settings{{"a", "two words"}, {"b", "back\\slash "}, {"c-d", "x=y"}}));
}

BOOST_AUTO_TEST_CASE(options_may_be_empty_or_long) {
  BOOST_TEST(parse_startup_options("")->empty());
  BOOST_TEST(parse_startup_options(" \n ")->empty());
  BOOST_TEST((*parse_startup_options("-c a=") == Settings{{"a", ""}}));
  std::string value(40000, 'v');
  BOOST_TEST((*parse_startup_options("-c a=" + value) == Settings{{"a", value}}));
}

BOOST_DATA_TEST_CASE(other_options_are_refused,
                     data::make({"-c", "-c ", "--", "-", "-x", "-d 3", "word", "a=b", "-c name", "-cname", "--name",
                                 "-c =v", "-c=v", "--=v", "-c a=b c=d", "-ca=b -B 3", "\\", "-C a=b"}),
                     text) {
  BOOST_TEST(error_of(parse_startup_options(text)) == kOptionsError);
}

BOOST_DATA_TEST_CASE(replication_booleans_mean_physical,
                     data::make({"true", "on", "yes", "1", "t", "tr", "tru", "y", "ye", "TRUE", "On", "YES"}), text) {
  BOOST_CHECK(parse_replication(text) == ReplicationMode::Physical);
}

BOOST_DATA_TEST_CASE(other_replication_values_mean_none,
                     data::make({"false", "off", "no",  "0",        "f",       "n",         "of",
                                 "o",     "",    "2",   "11",       "10",      "truee",     "onn",
                                 "yess",  " on", "on ", "Database", "databas", "databases", "garbage"}),
                     text) {
  BOOST_CHECK(parse_replication(text) == ReplicationMode::None);
}

BOOST_AUTO_TEST_CASE(only_versions_that_exist_are_spoken) {
  for (std::uint32_t minor : {0u, 1u}) BOOST_TEST(spoken_version(kProtocol30 + minor) == kProtocol30);
  for (std::uint32_t minor : {2u, 3u, 9999u}) BOOST_TEST(spoken_version(kProtocol30 + minor) == kProtocol32);
}

BOOST_AUTO_TEST_CASE(a_negotiation_is_read_as_a_whole) {
  const std::string whole("\0\3\0\0\0\0\0\2_pq_.a\0_pq_.b\0", 22);
  BOOST_TEST(parse_negotiation(as_bytes(whole)).value() == kProtocol30);
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(!parse_negotiation(as_bytes(whole).first(size)).has_value());
  BOOST_TEST(!parse_negotiation(as_bytes(whole + "x")).has_value());
  BOOST_TEST(!parse_negotiation(as_bytes(std::string_view("\0\3\0\0\xff\xff\xff\xff", 8))).has_value());
}

BOOST_AUTO_TEST_CASE(replication_database_means_logical) {
  BOOST_CHECK(parse_replication("database") == ReplicationMode::Logical);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
