#include "check/script.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace lokadb::check {

namespace {

struct Words {
  std::string_view rest;
  std::string_view next() {
    rest = trim(rest);
    std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    std::string_view word = rest.substr(0, end);
    rest = trim(rest.substr(end));
    return word;
  }
};

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    auto value = parse_c_int("0x" + std::string(hex.substr(i, 2)));
    if (!value) return std::nullopt;
    out += static_cast<char>(*value);
  }
  return out;
}

class ScriptReader {
 public:
  // Empty, or what is wrong with the line.
  std::string read(std::string_view line);
  std::vector<Case> take() { return std::move(cases_); }

 private:
  std::string begin(std::string_view name);
  std::string statement(std::string_view keyword, std::string_view text);
  std::string parameter(Words words);
  std::string row(std::string_view cells);
  std::string context(std::string_view keyword, Words words);
  Case& now() { return cases_.back(); }

  std::vector<Case> cases_;
};

std::string ScriptReader::begin(std::string_view name) {
  cases_.emplace_back();
  now().name = name.empty() ? "batch " + std::to_string(cases_.size()) : std::string(name);
  return {};
}

std::string ScriptReader::statement(std::string_view keyword, std::string_view text) {
  Statement s;
  s.form = keyword == "simple"  ? LOKADB_SIMPLE
           : keyword == "bind"  ? LOKADB_BIND
           : keyword == "parse" ? LOKADB_PARSE
           : keyword == "call"  ? LOKADB_FUNCTION_CALL
                                : LOKADB_OTHER;
  s.text = text;
  now().statements.push_back(std::move(s));
  return {};
}

std::string ScriptReader::parameter(Words words) {
  if (now().statements.empty() || now().statements.back().form != LOKADB_BIND) return "param without bind";
  auto type = parse_c_int(words.next());
  if (!type || *type < 0 || *type > INT32_MAX) return "param without the OID of its type";
  Statement::Parameter p;
  p.type = static_cast<std::uint32_t>(*type);
  auto kind = words.next();
  if (kind == "null") {
    p.is_null = true;
  } else if (kind == "text") {
    p.value = words.rest;
  } else if (kind == "binary") {
    auto bytes = from_hex(words.rest);
    if (!bytes) return "binary wants pairs of hexadecimal digits";
    p.is_binary = true;
    p.value = *bytes;
  } else {
    return "param is text, binary or null";
  }
  now().statements.back().parameters.push_back(std::move(p));
  return {};
}

std::string ScriptReader::row(std::string_view cells) {
  if (now().answers.empty()) return "row without answer";
  auto& row = now().answers.back().emplace_back();
  for (;;) {
    std::size_t end = std::min(cells.find('|'), cells.size());
    std::string cell(cells.substr(0, end));
    bool is_null = cell == "\\N";
    row.emplace_back(is_null, is_null ? std::string() : cell);
    if (end == cells.size()) return {};
    cells.remove_prefix(end + 1);
  }
}

std::string ScriptReader::context(std::string_view keyword, Words words) {
  Case& c = now();
  if (keyword == "database") return c.database = words.rest, std::string();
  if (keyword == "role") return c.role = words.rest, std::string();
  if (keyword == "encoding") return c.encoding = words.rest, std::string();
  if (keyword == "flush") return c.ends_in_flush = true, std::string();
  if (keyword == "partial") return c.is_whole = false, std::string();
  if (keyword == "expect") return c.expected = words.rest, std::string();
  if (keyword == "answer") return c.answers.emplace_back(), std::string();
  if (keyword == "setting") {
    auto name = words.next();
    c.settings[std::string(name)] = words.rest;
    return {};
  }
  if (keyword == "status") {
    if (words.rest != "I" && words.rest != "T" && words.rest != "E") return "status is I, T or E";
    c.status = words.rest[0];
    return {};
  }
  if (keyword == "known") {
    auto number = parse_c_int(words.rest);
    if (!number || *number <= 0 || c.statements.empty()) return "known wants a number, behind a statement";
    c.statements.back().known_as = static_cast<std::uint64_t>(*number);
    return {};
  }
  return "unknown keyword " + std::string(keyword);
}

std::string ScriptReader::read(std::string_view line) {
  Words words{line};
  auto keyword = words.next();
  if (keyword.empty() || keyword.starts_with('#')) return {};
  if (keyword == "batch") return begin(words.rest);
  if (cases_.empty()) return "the first line must be batch";
  if (keyword == "simple" || keyword == "bind" || keyword == "parse" || keyword == "other" || keyword == "call")
    return statement(keyword, words.rest);
  if (keyword == "param") return parameter(words);
  if (keyword == "row") return row(words.rest);
  return context(keyword, words);
}

}  // namespace

Result<std::vector<Case>> parse_script(std::string_view text) {
  ScriptReader reader;
  for (int number = 1; !text.empty(); ++number) {
    std::size_t end = std::min(text.find('\n'), text.size());
    if (auto fault = reader.read(trim(text.substr(0, end))); !fault.empty())
      return fatal("line " + std::to_string(number) + ": " + fault);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.take();
}

std::vector<Case> built_in_cases() {
  constexpr std::string_view kScript = R"(
batch a simple statement
simple select 1
batch an empty text
simple
batch text that is no SQL
simple )}] 'open " $$ /* ;
batch several statements in one Query
simple begin; insert into t values (1, 'a;b'); commit
batch a large batch that is not whole
partial
simple select 'the beginning of something long
batch inside of a transaction
status T
simple select 1
batch inside of a failed transaction
status E
simple rollback
batch a bound statement
bind select $1, $2, $3
known 17
param 25 text some text
param 23 binary 0000002a
param 0 null
batch a pipeline
bind insert into t values ($1)
known 18
param 23 text 1
bind insert into t values ($1)
known 18
param 23 text 2
parse select 1
batch a Parse without its Bind, up to a Flush
flush
parse select $1
batch what has no text
other
call
batch nothing but a Sync
batch nobody in particular
database
role
encoding
simple select 1
batch another encoding
encoding LATIN1
simple select '\xe4'
)";
  auto cases = parse_script(kScript);
  return *cases;
}

}  // namespace lokadb::check
