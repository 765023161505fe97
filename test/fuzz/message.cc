// Framing and fields of messages. Input: a message, type byte first; its body is also read as fields in an order that
// its own bytes choose.
#include "proto/message.h"

#include <cstdlib>

using namespace lokadb;

namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

// One field, as `choice` tells; returns how many bytes it says it has read.
std::size_t read_field(MessageReader& reader, std::uint8_t choice) {
  switch (choice % 5) {
    case 0:
      reader.u8();
      return 1;
    case 1:
      reader.u16();
      return 2;
    case 2:
      reader.u32();
      return 4;
    case 3:
      return reader.cstring().size() + 1;
    default:
      return reader.take(choice / 5).size();
  }
}

void check_reader(Bytes body) {
  MessageReader reader(body);
  for (std::byte choice : body) {
    std::size_t before = reader.rest().size();
    std::size_t claimed = read_field(reader, static_cast<std::uint8_t>(choice));
    if (!reader.ok()) return require(!reader.finished() && reader.rest().size() == before && reader.u32() == 0);
    require(claimed <= before && reader.rest().size() == before - claimed);
  }
}

void check_error_fields(Bytes body) {
  auto fields = parse_error_fields(body);
  if (!fields) return;
  require(!fields->severity.empty() || !fields->code.empty() || !fields->message.empty());
  ByteBuffer out;
  write_notice(out, fields->code, fields->message);
  auto head = peek_head(out.bytes());
  require(head && head->type == 'N' && head->body + kHeaderSize == out.size());
  auto again = parse_error_fields(out.bytes().subspan(kHeaderSize));
  require(again && again->code == fields->code && again->message == fields->message && again->severity == "NOTICE");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes input(reinterpret_cast<const std::byte*>(data), size);
  auto head = peek_head(input);
  require(head.has_value() == (size >= kHeaderSize));
  if (!head) return 0;
  require(head->body == kBadLength || head->body <= 0x7fffffff - 4);
  Bytes body = input.subspan(kHeaderSize);
  check_reader(body);
  check_error_fields(body);
  return 0;
}
