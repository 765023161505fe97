#include "proto/message.h"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>

namespace lokadb {
namespace {

namespace data = boost::unit_test::data;
using namespace std::string_literals;
using namespace std::string_view_literals;

// An exact heap copy of a prefix: a sanitizer then sees a read past its end.
struct Prefix {
  Prefix(std::string_view text, std::size_t length) : copy(new char[length]), view(copy.get(), length) {
    std::copy_n(text.begin(), length, copy.get());
  }
  std::unique_ptr<char[]> copy;
  std::string_view view;
};

constexpr auto kErrorBody =
    "SFEHLER\0"
    "VERROR\0"
    "C42P01\0"
    "Mrelation \"x\" does not exist\0"
    "P15\0"
    "\0"sv;

BOOST_AUTO_TEST_SUITE(message)

BOOST_AUTO_TEST_CASE(head_needs_five_bytes) {
  for (std::size_t n = 0; n < 5; ++n) BOOST_TEST(!peek_head(as_bytes("Q\0\0\0\x09rest"sv.substr(0, n))));
  auto head = peek_head(as_bytes("Q\0\0\0\x09rest"sv));
  BOOST_REQUIRE(head);
  BOOST_TEST(head->type == 'Q');
  BOOST_TEST(head->body == 5u);
}

BOOST_AUTO_TEST_CASE(impossible_lengths_are_bad) {
  BOOST_TEST(peek_head(as_bytes("Q\0\0\0\x03"sv))->body == kBadLength);
  BOOST_TEST(peek_head(as_bytes("Q\0\0\0\0"sv))->body == kBadLength);
  BOOST_TEST(peek_head(as_bytes("Q\x80\0\0\0"sv))->body == kBadLength);
  BOOST_TEST(peek_head(as_bytes("Q\xff\xff\xff\xff"sv))->body == kBadLength);
  BOOST_TEST(peek_head(as_bytes("Q\0\0\0\x04"sv))->body == 0u);
  BOOST_TEST(peek_head(as_bytes("Q\x7f\xff\xff\xff"sv))->body == 0x7ffffffbu);
}

BOOST_AUTO_TEST_CASE(a_run_ends_where_the_type_changes_or_a_head_is_bad_or_missing) {
  constexpr auto run = [](std::string_view bytes, std::uint32_t max = 100) { return run_length(as_bytes(bytes), max); };
  constexpr auto two =
      "d\0\0\0\x06"
      "ab"
      "d\0\0\0\x04"sv;
  BOOST_TEST(run(two) == 12u);
  BOOST_TEST(run(std::string(two) + "c") == 12u);
  BOOST_TEST(run(std::string(two) + "d\0\0"s) == 12u);                // head not all there
  BOOST_TEST(run(std::string(two) + "d\0\0\0\x09zz"s) == 22u);        // goes on beyond the end
  BOOST_TEST(run(std::string(two) + "d\0\0\0\x03zz"s) == 12u);        // impossible length
  BOOST_TEST(run(std::string(two) + "d\xff\xff\xff\xffzz"s) == 12u);  // likewise
  BOOST_TEST(run(two, 1) == 0u);
  BOOST_TEST(run(two, 2) == 12u);
  for (std::size_t n = 0; n <= two.size(); ++n) {
    Prefix prefix(two, n);
    BOOST_TEST(run(prefix.view) == (n < 5 ? 0u : n < 12 ? 7u : 12u));
  }
}

BOOST_AUTO_TEST_CASE(reader_reads_fields_in_order) {
  MessageReader reader(as_bytes("\x01\x02\x03\x04\x05\x06\x07name\0\0ab"sv));
  BOOST_TEST(reader.u8() == 1);
  BOOST_TEST(reader.u16() == 0x0203);
  BOOST_TEST(reader.u32() == 0x04050607u);
  BOOST_TEST(reader.cstring() == "name");
  BOOST_TEST(reader.cstring() == "");
  BOOST_TEST(as_text(reader.take(2)) == "ab");
  BOOST_TEST(reader.ok());
  BOOST_TEST(reader.finished());
}

BOOST_AUTO_TEST_CASE(reader_stays_failed_after_a_short_read) {
  MessageReader reader(as_bytes("abc"sv));
  BOOST_TEST(reader.u32() == 0u);
  BOOST_TEST(!reader.ok());
  BOOST_TEST(reader.u8() == 0);
  BOOST_TEST(reader.cstring() == "");
  BOOST_TEST(reader.take(0).empty());
  BOOST_TEST(!reader.ok());
  BOOST_TEST(!reader.finished());
}

BOOST_AUTO_TEST_CASE(reader_refuses_an_unterminated_string) {
  Prefix text("name", 4);
  MessageReader reader(as_bytes(text.view));
  BOOST_TEST(reader.cstring() == "");
  BOOST_TEST(!reader.ok());
}

BOOST_AUTO_TEST_CASE(reader_cannot_be_talked_past_the_end_by_a_huge_count) {
  MessageReader reader(as_bytes("abc"sv));
  BOOST_TEST(reader.take(static_cast<std::size_t>(-1)).empty());
  BOOST_TEST(!reader.ok());
}

BOOST_AUTO_TEST_CASE(unread_bytes_are_not_finished) {
  MessageReader reader(as_bytes("ab"sv));
  reader.u8();
  BOOST_TEST(reader.ok());
  BOOST_TEST(!reader.finished());
  BOOST_TEST(as_text(reader.rest()) == "b");
}

BOOST_AUTO_TEST_CASE(an_empty_body_has_no_fields) {
  MessageReader reader(Bytes{});
  BOOST_TEST(reader.finished());
  BOOST_TEST(reader.cstring() == "");
  BOOST_TEST(!reader.ok());
}

BOOST_AUTO_TEST_CASE(writer_fills_in_the_length_and_appends) {
  ByteBuffer out;
  out.text("before");
  {
    MessageWriter message(out, 'B');
    message->u16(7);
    message->cstring("x");
  }
  { MessageWriter message(out, 'S'); }
  BOOST_TEST(as_text(out.bytes()) == "beforeB\0\0\0\x08\0\x07x\0S\0\0\0\x04"sv);
}

BOOST_AUTO_TEST_CASE(error_response_has_severity_code_and_message) {
  ByteBuffer out;
  write_error(out, fatal("no such database: x", "with host and port"));
  BOOST_TEST(as_text(out.bytes()) == "E\0\0\0\x28SFATAL\0C08P01\0Mno such database: x\0\0"sv);
  out.clear();
  write_error(out, {sqlstate::kReloadFailed, Severity::Error, "no", {}});
  BOOST_TEST(as_text(out.bytes()) == "E\0\0\0\x17SERROR\0CF0000\0Mno\0\0"sv);
}

BOOST_AUTO_TEST_CASE(notice_has_a_detail_only_if_there_is_one) {
  ByteBuffer out;
  write_notice(out, "00000", "hello");
  BOOST_TEST(as_text(out.bytes()) == "N\0\0\0\x1bSNOTICE\0C00000\0Mhello\0\0"sv);
  out.clear();
  write_notice(out, "00000", "hello", "world");
  BOOST_TEST(as_text(out.bytes()) == "N\0\0\0\x22SNOTICE\0C00000\0Mhello\0Dworld\0\0"sv);
}

BOOST_AUTO_TEST_CASE(small_messages) {
  ByteBuffer out;
  write_ready_for_query(out, 'I');
  write_parameter_status(out, "TimeZone", "GMT");
  write_query(out, "select 1");
  BOOST_TEST(as_text(out.bytes()) == "Z\0\0\0\x05IS\0\0\0\x11TimeZone\0GMT\0Q\0\0\0\x0dselect 1\0"sv);
}

BOOST_AUTO_TEST_CASE(error_fields_prefer_the_severity_that_is_not_translated) {
  auto fields = parse_error_fields(as_bytes(kErrorBody));
  BOOST_REQUIRE(fields);
  BOOST_TEST(fields->severity == "ERROR");
  BOOST_TEST(fields->code == "42P01");
  BOOST_TEST(fields->message == "relation \"x\" does not exist");
  BOOST_TEST(parse_error_fields(as_bytes("SFEHLER\0\0"sv))->severity == "FEHLER");
}

BOOST_AUTO_TEST_CASE(written_errors_can_be_read) {
  ByteBuffer out;
  write_error(out, fatal("text"));
  auto fields = parse_error_fields(out.bytes().subspan(kHeaderSize));
  BOOST_REQUIRE(fields);
  BOOST_TEST(fields->severity == "FATAL");
  BOOST_TEST(fields->code == "08P01");
  BOOST_TEST(fields->message == "text");
}

BOOST_AUTO_TEST_CASE(a_body_without_known_fields_is_none) {
  BOOST_TEST(!parse_error_fields(Bytes{}));
  BOOST_TEST(!parse_error_fields(as_bytes("\0"sv)));
  BOOST_TEST(!parse_error_fields(as_bytes("P15\0\0"sv)));
  BOOST_TEST(!parse_error_fields(as_bytes("no terminator"sv)));
}

// Of a body that breaks off, whole fields are kept and the broken one is empty.
BOOST_DATA_TEST_CASE(every_short_prefix_gives_whole_fields_only, data::xrange(kErrorBody.size()), length) {
  Prefix prefix(kErrorBody, length);
  auto fields = parse_error_fields(as_bytes(prefix.view));
  BOOST_TEST(fields.has_value() == (length >= 8));
  if (!fields) return;
  BOOST_TEST(fields->severity == (length >= 15 ? "ERROR" : "FEHLER"));
  BOOST_TEST(fields->code == (length >= 22 ? "42P01" : ""));
  BOOST_TEST(fields->message == (length >= 51 ? "relation \"x\" does not exist" : ""));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace lokadb
