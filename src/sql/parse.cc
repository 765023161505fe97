#include "sql/parse.h"

#include <pg_query.h>

#include <memory>

#include "sql/reader.h"
#include "sql/template_key.h"

namespace lokadb::sql {
namespace {

// libpg_query and protobuf recurse with the tree, some kilobytes a level, on the stack of a worker thread.
constexpr std::uint32_t kMaxTreeDepth = 1000;

struct FreeTree {
  void operator()(PgQuery__ParseResult* tree) const { pg_query__parse_result__free_unpacked(tree, nullptr); }
};
using Tree = std::unique_ptr<PgQuery__ParseResult, FreeTree>;

Parsed failure(std::string message, std::int32_t position) {
  Parsed parsed;
  parsed.error = message.empty() ? "not valid SQL" : std::move(message);
  parsed.error_position = position;
  return parsed;
}

// Positions of errors are told in characters.
std::int32_t byte_position(std::string_view text, int character) {
  std::size_t i = 0;
  for (int n = 1; n < character && i < text.size(); ++n) do
      ++i;
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80);
  return static_cast<std::int32_t>(i + 1);
}

// libpg_query knows standard strings only. Facts do not depend on what a string says, so one with a backslash in it is
// blanked: every position stays the same.
std::string with_standard_strings(std::string_view text, const std::vector<Token>& literals) {
  std::string plain(text);
  for (const Token& token : literals) {
    if (token.kind != TokenKind::EscapeString || text[token.start] != '\'') continue;
    if (text.substr(token.start, token.end - token.start).find('\\') == text.npos) continue;
    for (std::size_t i = token.start + 1; i + 1 < token.end; ++i) plain[i] = 'x';
  }
  return plain;
}

// libpg_query's fingerprint does see the literals of statements that are no queries; here all of a template have one.
std::string with_same_literals(std::string_view text, const Lifted& lifted) {
  if (lifted.is_exact) return std::string(text);
  std::string same;
  std::size_t done = 0;
  for (const Token& token : lifted.literals) {
    same.append(text.substr(done, token.start - done));
    done = token.end;
    switch (token.kind) {
      case TokenKind::Integer:
        same += "1";
        break;
      case TokenKind::Number:
        same += "1.5";
        break;
      case TokenKind::Bits:
        same += "B'1'";
        break;
      case TokenKind::HexBits:
        same += "X'1'";
        break;
      case TokenKind::UnicodeString:
        same += "U&'x'";
        break;
      default:
        same += "'x'";
    }
  }
  return same.append(text.substr(done));
}

// Counted in the text, so that none is missed wherever it stands.
void count_parameters(std::string_view text, bool has_standard_strings, Statement& statement) {
  text = text.substr(static_cast<std::size_t>(statement.location));
  if (statement.length > 0) text = text.substr(0, static_cast<std::size_t>(statement.length));
  Lexer lexer(text, has_standard_strings);
  for (Token token = lexer.next(); token.kind != TokenKind::End && token.kind != TokenKind::Error;
       token = lexer.next()) {
    if (token.kind != TokenKind::Parameter) continue;
    std::size_t number = 0;
    for (char c : text.substr(token.start + 1, token.end - token.start - 1))
      number = number * 10 + static_cast<std::size_t>(c - '0');
    if (number == 0 || number > 0xffff) continue;
    if (statement.parameter_uses.size() < number) statement.parameter_uses.resize(number);
    ++statement.parameter_uses[number - 1];
  }
}

Parsed read_tree(std::string_view text, const PgQuery__ParseResult& tree, const std::vector<Token>& literals,
                 bool has_standard_strings) {
  Parsed parsed;
  for (const PgQuery__RawStmt* raw : std::span(tree.stmts, tree.n_stmts)) {
    Statement statement;
    statement.location = raw->stmt_location;
    statement.length = raw->stmt_len;
    count_parameters(text, has_standard_strings, statement);
    StatementReader(text, literals, statement).read(raw->stmt);
    parsed.statements.push_back(std::move(statement));
  }
  return parsed;
}

}  // namespace

Parsed parse_sql(std::string_view text, bool has_standard_strings) {
  if (text.find('\0') != text.npos) return failure("zero byte in the text", 0);
  Lifted lifted;
  lift(text, has_standard_strings, lifted);
  if (lifted.is_error) return failure("the text does not end well", 0);
  // libpg_query would read this in its own way.
  if (!has_standard_strings && lifted.is_exact) return failure("UESCAPE without standard_conforming_strings", 0);
  if (lifted.depth_bound > kMaxTreeDepth) {
    Parsed parsed;
    Statement& statement = parsed.statements.emplace_back();
    statement.kind = StatementClass::Call;
    statement.not_understood.push_back("too deeply nested");
    return parsed;
  }
  std::string plain = has_standard_strings ? std::string(text) : with_standard_strings(text, lifted.literals);
  PgQueryProtobufParseResult result = pg_query_parse_protobuf(plain.c_str());
  Parsed parsed;
  if (result.error) {
    parsed = failure(result.error->message, byte_position(text, result.error->cursorpos));
  } else {
    Tree tree(pg_query__parse_result__unpack(nullptr, result.parse_tree.len,
                                             reinterpret_cast<const std::uint8_t*>(result.parse_tree.data)));
    parsed =
        tree ? read_tree(text, *tree, lifted.literals, has_standard_strings) : failure("parse tree cannot be read", 0);
  }
  pg_query_free_protobuf_parse_result(result);
  return parsed;
}

std::uint64_t fingerprint_of(std::string_view text, bool has_standard_strings) {
  if (text.find('\0') != text.npos) return 0;
  Lifted lifted;
  lift(text, has_standard_strings, lifted);
  if (lifted.is_error || lifted.depth_bound > kMaxTreeDepth || (!has_standard_strings && lifted.is_exact)) return 0;
  PgQueryFingerprintResult result = pg_query_fingerprint(with_same_literals(text, lifted).c_str());
  std::uint64_t fingerprint = result.error ? 0 : result.fingerprint;
  pg_query_free_fingerprint_result(result);
  return fingerprint;
}

bool may_be_several(std::string_view text) {
  std::size_t at = text.find(';');
  return at != text.npos && text.find_first_not_of("; \t\r\n\f\v", at) != text.npos;
}

std::vector<std::size_t> begins_of(const Parsed& parsed) {
  std::vector<std::size_t> begins;
  for (const Statement& s : parsed.statements)
    begins.push_back(begins.empty() ? 0 : static_cast<std::size_t>(s.location));
  return begins;
}

}  // namespace lokadb::sql
