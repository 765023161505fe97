#include "pool/rows_mark.h"

#include <functional>
#include <string>

#include "pool/sql_lexer.h"
#include "proto/message.h"

namespace lokadb {

RowsMark mark_of_rows(Bytes description) {
  MessageReader reader(description);
  std::string columns;
  for (std::size_t count = reader.u16(); count > 0 && reader.ok(); --count) {
    columns += reader.cstring();
    columns += '\0';
    reader.u32();  // table
    reader.u16();  // its column
    columns += as_text(reader.take(4));
    reader.u16();  // size, which goes with the type
    columns += as_text(reader.take(4));
    reader.u16();  // format
  }
  if (!reader.finished()) return kUnknownRows;
  RowsMark mark = std::hash<std::string>()(columns);
  return mark > kNoRows ? mark : kNoRows + 1;
}

RowsMark form_of_statement(Bytes parameters, RowsMark rows) {
  if (rows == kUnknownRows || parameters.empty()) return kUnknownRows;
  RowsMark mark = std::hash<std::string>()(std::string(as_text(parameters)) + std::to_string(rows));
  return mark > kNoRows ? mark : kNoRows + 1;
}

bool has_settled_rows(std::string_view sql) {
  SqlLexer lexer(sql);
  Token first = lexer.next();
  while (first.is_symbol('(')) first = lexer.next();
  for (std::string_view word : {"select", "insert", "update", "delete", "merge", "with", "values", "table"})
    if (first.is(word)) return true;
  return false;
}

}  // namespace lokadb
