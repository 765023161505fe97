#include "pool/replaced_text.h"

#include <algorithm>
#include <charconv>

#include "proto/message.h"

namespace lokadb {

namespace {

bool begins_character(char c, bool is_utf8) { return !is_utf8 || (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t byte_of(std::string_view text, std::size_t character, bool is_utf8) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (begins_character(text[at], is_utf8) && character-- == 0) return at;
  return text.size();
}

std::size_t character_of(std::string_view text, std::size_t byte, bool is_utf8) {
  std::string_view before = text.substr(0, std::min(byte, text.size()));
  return static_cast<std::size_t>(
      std::count_if(before.begin(), before.end(), [is_utf8](char c) { return begins_character(c, is_utf8); }));
}

}  // namespace

ReplacedText::ReplacedText(std::string old_text, std::string new_text, const std::vector<lokadb_edit>& edits,
                           bool is_utf8)
    : old_text_(std::move(old_text)), new_text_(std::move(new_text)), is_utf8_(is_utf8) {
  for (const lokadb_edit& e : edits) positions_.replace(e.at, e.removed, e.added);
}

std::vector<std::byte> ReplacedText::with_own_position(Bytes error) const {
  return with_position(error, [this](std::size_t position) { return own_position(position); });
}

std::size_t ReplacedText::own_position(std::size_t position) const {
  std::size_t byte = positions_.to_old(byte_of(new_text_, position - 1, is_utf8_));
  return character_of(old_text_, byte, is_utf8_) + 1;
}

// Manual, "Error and Notice Message Fields": field P counts characters from 1.
std::vector<std::byte> with_position(Bytes error, const std::function<std::size_t(std::size_t)>& own_position) {
  ByteBuffer out;
  MessageReader reader(error.subspan(kHeaderSize));
  {
    MessageWriter m(out, 'E');
    for (std::uint8_t field = reader.u8(); field != 0 && reader.ok(); field = reader.u8()) {
      std::string_view value = reader.cstring();
      std::size_t position = 0;
      bool is_number = std::from_chars(value.data(), value.data() + value.size(), position).ec == std::errc{};
      m->u8(field);
      m->cstring(field == 'P' && is_number && position > 0 ? std::to_string(own_position(position))
                                                           : std::string(value));
    }
    m->u8(0);
  }
  return std::move(out.storage());
}

}  // namespace lokadb
