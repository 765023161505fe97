#include "plugin/abi.h"

#include <algorithm>

namespace lokadb {

std::string told_text(std::string_view text) {
  std::size_t end = std::min(text.size(), kMostToldText);
  // Not in the middle of a character, should it be UTF-8.
  for (int i = 0; i < 3 && end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++i)
    --end;
  std::string told(text.substr(0, end));
  std::replace(told.begin(), told.end(), '\0', '?');
  if (end < text.size()) told += " ...";
  return told;
}

}  // namespace lokadb
