// Facts by template: a statement that differs from an earlier one in its literals and comments alone is not parsed
// again. Shared by all workers; each shard has its own short lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sql/statement.h"
#include "sql/template_key.h"

namespace lokadb::sql {

// Immutable; lives as long as somebody has it, also when the cache has dropped it.
struct Template {
  Parsed parsed;
  std::uint64_t fingerprint = 0;  // see fingerprint_of(); of all statements together, 0 if there are none
  std::size_t bytes = 0;          // of memory, as the cache counts it

  // Of the text it was made from, to whose bytes the positions in `parsed` refer.
  std::vector<Token> literals;
  std::vector<Token> comments;
  std::uint32_t text_size = 0;

  // Where a byte of that text is in another text of the template, of which `lifted` was made. A position within a
  // literal or comment becomes its beginning.
  std::uint32_t position_in(const Lifted& lifted, std::uint32_t position) const;
};
using TemplatePtr = std::shared_ptr<const Template>;

class TemplateCache {
 public:
  struct Limits {
    std::size_t bytes = 32u << 20;
    std::size_t text_bytes = 64u << 10;  // longer texts are parsed each time
  };
  struct Counters {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
  };

  explicit TemplateCache(Limits limits);
  ~TemplateCache();
  TemplateCache(const TemplateCache&) = delete;
  TemplateCache& operator=(const TemplateCache&) = delete;

  // Never null. `lifted` is scratch, to be reused by the caller: afterwards it has the literals of this text.
  // Errors of the parser are kept, too, for the very text.
  TemplatePtr get(std::string_view text, bool has_standard_strings, Lifted& lifted);

  Counters counters() const;

 private:
  struct Shard;
  static constexpr std::size_t kShards = 16;

  TemplatePtr find(std::uint64_t hash, std::string_view key);
  void keep(std::uint64_t hash, std::string_view key, TemplatePtr made);
  void count(std::uint64_t hash, bool is_hit);

  const Limits limits_;
  std::unique_ptr<std::array<Shard, kShards>> shards_;
};

}  // namespace lokadb::sql
