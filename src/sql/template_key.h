// The template of a text: its bytes with every literal and comment replaced by a mark. Texts of one template differ in
// nothing else, so one set of facts serves them all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sql/lexer.h"

namespace lokadb::sql {

// What lift() finds. Reuse one object: its buffers are then big enough and nothing is allocated.
struct Lifted {
  Lifted() = default;
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;

  std::string_view key;         // in `buffer`
  std::uint64_t hash = 0;       // of the key
  std::vector<Token> literals;  // numbered as Value::index
  std::vector<Token> comments;
  // The meaning may hang on what a literal says (UESCAPE): the key is the text itself.
  bool is_exact = false;
  bool is_error = false;  // the scanner refuses the text; the same key then
  // No parse tree of the text is deeper.
  std::uint32_t depth_bound = 0;

  std::vector<char> buffer;  // never shrinks
};

// Fills the key and its hash with the text as it is; no template has such a key.
void make_exact_key(std::string_view text, bool has_standard_strings, Lifted& lifted);

void lift(std::string_view text, bool has_standard_strings, Lifted& lifted);

std::uint64_t hash_bytes(std::string_view bytes);

}  // namespace lokadb::sql
