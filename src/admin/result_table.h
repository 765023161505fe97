// An answer of the console: columns, rows, and how they become messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace lokadb {

// The types the console uses, with their letter in column lists.
enum class ColumnType : char { Text = 't', Int = 'i', BigInt = 'q', Numeric = 'n', Bytea = 'b' };

struct Column {
  std::string name;
  ColumnType type;
};

class ResultTable {
 public:
  // "name t, port i": each column's name and the letter of its type.
  explicit ResultTable(std::string_view columns);

  class Row {
   public:
    Row& text(std::string_view v) {
      values_.emplace_back(v);
      return *this;
    }
    // NULL if there is no value.
    Row& maybe(const std::optional<std::string>& v) {
      values_.push_back(v);
      return *this;
    }
    Row& number(std::int64_t v) { return text(std::to_string(v)); }
    Row& null() {
      values_.emplace_back(std::nullopt);
      return *this;
    }

   private:
    friend class ResultTable;
    std::vector<std::optional<std::string>> values_;
  };

  Row& add_row() { return rows_.emplace_back(); }
  Row& last_row() { return rows_.back(); }
  std::size_t column_count() const { return columns_.size(); }
  std::size_t row_count() const { return rows_.size(); }

  void write_description(ByteBuffer& out) const;
  void write_rows(ByteBuffer& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace lokadb
