// SQL of any bytes: our lexer against PostgreSQL's scanner; the parser and the walk over its tree; and that the facts
// of a template do not depend on its literals.
#include <cstdio>
#include <cstdlib>

#include "sql/literal.h"
#include "sql/parse.h"
#include "sql_oracle.h"

using namespace lokadb::sql;

namespace {

void require(bool claim, const std::string& why) {
  if (claim) return;
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// Positions differ from text to text of a template; dump() has none.
void check_facts(const std::string& text, const Lifted& lifted) {
  Parsed parsed = parse_sql(text);
  for (const Statement& statement : parsed.statements) {
    require(statement.relations.size() <= kMaxRelations, "too many relations");
    for (const Relation& relation : statement.relations)
      require(relation.location < static_cast<std::int32_t>(text.size()), "location outside");
    if (statement.depends_on_literals) return;
  }
  (void)parse_sql(text, false);
  if (lifted.is_exact || !parsed.error.empty()) return;
  std::string other = with_other_literals(text, lifted);
  Lifted again;
  lift(other, true, again);
  require(again.key == lifted.key, "another key: " + other);
  Parsed changed = parse_sql(other);
  require(!changed.error.empty() || dump(changed) == dump(parsed), "other facts: " + other);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size > 20000 || text.find('\0') != text.npos) return 0;
  Lifted lifted;
  lift(text, false, lifted);
  lift(text, true, lifted);
  if (lifted.depth_bound > 1000) return 0;
  std::string difference = disagreement(text);
  require(difference.empty(), difference);
  for (const Token& token : lifted.literals) {
    std::string value;
    if (!lifted.is_error && decode_literal(text, token, value)) require(value.size() <= size, "a value too long");
  }
  check_facts(text, lifted);
  return 0;
}
