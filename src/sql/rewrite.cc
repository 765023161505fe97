#include "sql/rewrite.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sql/compare.h"
#include "sql/lexer.h"
#include "sql/parse.h"

namespace lokadb::sql {
namespace {

bool is_name(TokenKind kind) { return kind == TokenKind::Word || kind == TokenKind::QuotedName; }

// The next token that is no comment.
Token next_token(Lexer& lexer) {
  Token token = lexer.next();
  while (token.kind == TokenKind::Comment) token = lexer.next();
  return token;
}

// A relation in the text: `schema.name * AS alias`.
struct Mention {
  std::size_t start = 0;
  std::size_t name_end = 0;
  std::size_t alias_start = 0;  // where an alias is, or would be written
  std::size_t end = 0;
};

class TokensFrom {
 public:
  TokensFrom(std::string_view text, std::size_t start) : text_(text), start_(start), lexer_(text.substr(start)) {}

  Token next() {
    Token token = next_token(lexer_);
    token.start += static_cast<std::uint32_t>(start_);
    token.end += static_cast<std::uint32_t>(start_);
    return token;
  }
  std::string_view text_of(const Token& token) const { return text_.substr(token.start, token.end - token.start); }

 private:
  std::string_view text_;
  std::size_t start_;
  Lexer lexer_;
};

std::optional<Mention> find_mention(std::string_view text, const Relation& relation) {
  if (relation.kind != Relation::Kind::Named || relation.location < 0 || relation.has_column_aliases) return {};
  Mention mention;
  mention.start = static_cast<std::size_t>(relation.location);
  if (mention.start >= text.size()) return {};
  TokensFrom tokens(text, mention.start);
  std::size_t parts = 1 + !relation.schema.empty() + !relation.catalog.empty();
  Token token = tokens.next();
  for (std::size_t i = 0; i < parts; ++i) {
    if (i > 0) {
      if (tokens.text_of(token) != ".") return {};
      token = tokens.next();
    }
    if (!is_name(token.kind)) return {};
    mention.name_end = mention.alias_start = mention.end = token.end;
    token = tokens.next();
  }
  if (tokens.text_of(token) == "*" && relation.use != Use::Insert) {
    mention.alias_start = mention.end = token.end;
    token = tokens.next();
  }
  if (!relation.has_alias) return mention;
  if (iequals(tokens.text_of(token), "as")) token = tokens.next();
  if (!is_name(token.kind)) return {};
  mention.end = token.end;
  return mention;
}

// Edits in ascending order.
class Editor {
 public:
  explicit Editor(std::string_view text) : text_(text) {}

  void replace(std::size_t start, std::size_t end, std::string_view with) {
    result_.text.append(text_.substr(done_, start - done_)).append(with);
    result_.positions.replace(start, end - start, with.size());
    done_ = end;
  }
  Rewritten finish() {
    result_.text.append(text_.substr(done_));
    return std::move(result_);
  }

 private:
  std::string_view text_;
  std::size_t done_ = 0;
  Rewritten result_;
};

std::optional<Statement> only_statement(std::string_view text) {
  Parsed parsed = parse_sql(text);
  if (!parsed.error.empty() || parsed.statements.size() != 1) return {};
  return std::move(parsed.statements[0]);
}

std::string condition_text(const TenantCondition& condition, std::string_view alias) {
  // Always qualified: without, a column that the table lacks would be one of a query around it.
  std::string text = quoted_name(alias) + "." + quoted_name(condition.column) + " = " + condition.value;
  if (condition.has_c_collation) text += " COLLATE \"C\"";
  return text;
}

bool is_system_column(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// What a subquery in the relation's place would not have.
bool needs_the_table_itself(const Statement& facts, const Relation& relation) {
  if (!facts.group_by.empty()) return true;
  return std::any_of(facts.columns.begin(), facts.columns.end(), [&relation](const ColumnUse& use) {
    return is_system_column(use.column.name) || use.column.name == relation.alias;
  });
}

}  // namespace

std::string quoted_name(std::string_view name) {
  std::string quoted = "\"";
  for (char c : name) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

std::string quoted_literal(std::string_view value) {
  bool has_backslash = value.find('\\') != value.npos;
  std::string quoted = has_backslash ? "E'" : "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

std::optional<Rewritten> rename_relation(std::string_view text, const Statement& facts, std::uint16_t relation,
                                         std::string_view schema, std::string_view name) {
  if (relation >= facts.relations.size() || !facts.not_understood.empty()) return {};
  const Relation& old = facts.relations[relation];
  if (old.use > Use::Delete && old.use != Use::CopyFrom) return {};
  auto mention = find_mention(text, old);
  if (!mention) return {};
  Editor editor(text);
  std::string full_name = quoted_name(name);
  if (!schema.empty()) full_name = quoted_name(schema) + "." + full_name;
  editor.replace(mention->start, mention->name_end, full_name);
  if (!old.has_alias && old.use != Use::CopyFrom)
    editor.replace(mention->alias_start, mention->alias_start, " AS " + quoted_name(old.alias));
  Rewritten rewritten = editor.finish();
  auto now = only_statement(rewritten.text);
  if (!now || now->relations.size() != facts.relations.size()) return {};
  Relation& renamed = now->relations[relation];
  if (renamed.schema != schema || renamed.name != name) return {};
  if (old.use == Use::CopyFrom)
    renamed.alias = old.alias;
  else if (renamed.alias != old.alias)
    return {};
  renamed.catalog = old.catalog;
  renamed.schema = old.schema;
  renamed.name = old.name;
  renamed.has_alias = old.has_alias;
  if (!are_equal_facts(facts, *now)) return {};
  return rewritten;
}

std::optional<Rewritten> wrap_relations(std::string_view text, const Statement& facts,
                                        std::vector<std::uint16_t> relations, const TenantCondition& condition) {
  if (!facts.not_understood.empty()) return {};
  std::sort(relations.begin(), relations.end(), [&facts](std::uint16_t a, std::uint16_t b) {
    return a < facts.relations.size() && b < facts.relations.size() &&
           facts.relations[a].location < facts.relations[b].location;
  });
  Editor editor(text);
  for (std::uint16_t index : relations) {
    if (index >= facts.relations.size() || facts.relations[index].use != Use::Read) return {};
    const Relation& relation = facts.relations[index];
    auto mention = find_mention(text, relation);
    if (!mention || needs_the_table_itself(facts, relation)) return {};
    std::size_t start = mention->start;
    std::string only;
    if (relation.is_only) {  // ONLY stands in front, and may have parentheses
      std::string_view before = rtrim(text.substr(0, start));
      if (before.size() < 4 || !iequals(before.substr(before.size() - 4), "only")) return {};
      start = before.size() - 4;
      only = "ONLY ";
    }
    std::string wrapped =
        "(SELECT * FROM " + only + std::string(text.substr(mention->start, mention->name_end - mention->start));
    wrapped += " WHERE " + condition_text(condition, relation.name) + ") AS " + quoted_name(relation.alias);
    editor.replace(start, mention->end, wrapped);
  }
  Rewritten rewritten = editor.finish();
  auto now = only_statement(rewritten.text);
  if (!now) return {};
  if (!take_out_wraps(*now, facts, relations, condition.column)) return {};
  take_out_literals(*now, text, rewritten);
  if (!are_equal_facts(facts, *now)) return {};
  return rewritten;
}

std::optional<Rewritten> restrict_target(std::string_view text, const Statement& facts,
                                         const TenantCondition& condition) {
  bool is_update = facts.kind == StatementClass::Update;
  auto target = std::find_if(facts.relations.begin(), facts.relations.end(), [is_update](const Relation& relation) {
    return relation.use == (is_update ? Use::Update : Use::Delete);
  });
  if ((!is_update && facts.kind != StatementClass::Delete) || !facts.not_understood.empty() || facts.modifies_in_with ||
      facts.has_current_of || target == facts.relations.end())
    return {};
  std::size_t where_end = 0, end = 0;  // behind WHERE; behind the condition
  int depth = 0;
  bool is_behind_dot = false;
  TokensFrom tokens(text, 0);
  for (Token token = tokens.next(); token.kind > TokenKind::Error; token = tokens.next()) {
    std::string_view word = tokens.text_of(token);
    bool is_keyword = token.kind == TokenKind::Word && depth == 0 && !is_behind_dot;
    if (word == ";" || (is_keyword && iequals(word, "returning"))) break;
    if (is_keyword && iequals(word, "where") && where_end == 0) where_end = token.end;
    if (word == "(" || word == "[") ++depth;
    if (word == ")" || word == "]") --depth;
    is_behind_dot = word == ".";
    end = token.end;
  }
  Editor editor(text);
  std::string added = condition_text(condition, target->alias);
  if (where_end) editor.replace(where_end, where_end, " (");
  editor.replace(end, end, (where_end ? ") AND " : " WHERE ") + added);
  Rewritten rewritten = editor.finish();
  auto now = only_statement(rewritten.text);
  auto relation = static_cast<std::uint16_t>(target - facts.relations.begin());
  if (!now || !take_out_condition(*now, facts, relation, condition.column)) return {};
  take_out_literals(*now, text, rewritten);
  if (!are_equal_facts(facts, *now)) return {};
  return rewritten;
}

}  // namespace lokadb::sql
