#include "admin/result_table.h"

#include <cassert>

#include "base/text.h"
#include "proto/message.h"

namespace lokadb {

namespace {

struct TypeSpec {
  ColumnType type;
  std::uint32_t oid;  // of pg_type
  std::int16_t size;  // typlen
};
constexpr TypeSpec kTypes[] = {{ColumnType::Text, 25, -1},
                               {ColumnType::Int, 23, 4},
                               {ColumnType::BigInt, 20, 8},
                               {ColumnType::Numeric, 1700, -1},
                               {ColumnType::Bytea, 17, -1}};

const TypeSpec& spec_of(ColumnType type) {
  for (const auto& spec : kTypes)
    if (spec.type == type) return spec;
  return kTypes[0];
}

}  // namespace

ResultTable::ResultTable(std::string_view columns) {
  auto words = split_list(columns);
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    columns_.push_back({words[i], static_cast<ColumnType>(words[i + 1][0])});
}

void ResultTable::write_description(ByteBuffer& out) const {
  MessageWriter m(out, 'T');
  m->u16(static_cast<std::uint16_t>(columns_.size()));
  for (const auto& column : columns_) {
    const TypeSpec& spec = spec_of(column.type);
    m->cstring(column.name);
    m->u32(0);  // no table
    m->u16(0);
    m->u32(spec.oid);
    m->u16(static_cast<std::uint16_t>(spec.size));
    m->u32(0xffffffff);  // no type modifier
    m->u16(0);           // text format
  }
}

void ResultTable::write_rows(ByteBuffer& out) const {
  for (const auto& row : rows_) {
    assert(row.values_.size() == columns_.size());
    MessageWriter m(out, 'D');
    m->u16(static_cast<std::uint16_t>(row.values_.size()));
    for (const auto& value : row.values_) {
      if (!value) {
        m->u32(0xffffffff);
        continue;
      }
      m->u32(static_cast<std::uint32_t>(value->size()));
      m->text(*value);
    }
  }
}

}  // namespace lokadb
