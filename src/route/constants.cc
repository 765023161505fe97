#include "route/constants.h"

#include <algorithm>

#include "base/text.h"

namespace lokadb::route {

namespace {

using catalog::Parameter;
using catalog::ValueType;
using Kind = Constant::Kind;

bool is_integer(ValueType type) { return type == ValueType::Int || type == ValueType::BigInt; }

bool is_string_type(std::uint32_t oid) { return oid == catalog::kTextOid || oid == catalog::kVarcharOid; }

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Constant made(std::optional<std::string> text) {
  if (!text) return {};
  return {Kind::Text, std::move(*text)};
}

// The type that the value has when it is compared. nullopt: a cast that leads elsewhere.
std::optional<ValueType> cast_type(std::string_view cast, ValueType type) {
  if (cast.empty()) return type;
  if (is_integer(type)) {
    if (cast == "int8") return ValueType::BigInt;
    if (cast == "int4") return ValueType::Int;
    return std::nullopt;
  }
  if (cast == (type == ValueType::Uuid ? "uuid" : "text")) return type;
  return std::nullopt;
}

Constant of_literal(const sql::Value& value, ValueType type, const Values& values) {
  if (value.index >= values.literals.size()) return {};
  const Literal& literal = values.literals[value.index];
  if (literal.kind == Literal::Kind::String)
    return value.is_negated ? Constant{} : made(canonical_text(type, literal.text));
  if (literal.kind != Literal::Kind::Number || !is_integer(type)) return {};
  if (!std::all_of(literal.text.begin(), literal.text.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  return made(canonical_text(type, value.is_negated ? "-" + std::string(literal.text) : std::string(literal.text)));
}

Constant of_parameter(const Analysis& analysis, const sql::Value& value, ValueType type, const Values& values) {
  if (value.index == 0 || value.index > values.parameters.size() || value.is_negated) return {};
  Parameter p = values.parameters[value.index - 1];
  if (p.is_null) return {Kind::Null};
  bool is_only_use = value.index <= analysis.is_used_once.size() && analysis.is_used_once[value.index - 1];
  // $1::bigint of a text is what bigint makes of that text.
  if (!value.cast.empty() && is_string_type(p.type)) return made(canonical_text(type, p.bytes));
  return made(canonical_parameter(type, p, is_only_use));
}

// --- arrays

std::uint32_t element_type(std::uint32_t array) {
  switch (array) {
    case 1016:
      return catalog::kInt8Oid;
    case 1007:
      return catalog::kInt4Oid;
    case 1005:
      return catalog::kInt2Oid;
    case 1009:
      return catalog::kTextOid;
    case 1015:
      return catalog::kVarcharOid;
    case 2951:
      return catalog::kUuidOid;
    default:
      return 0;
  }
}

// {a,"b \" c",NULL}, one dimension. nullopt: anything else.
std::optional<std::vector<std::optional<std::string>>> split_array(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::optional<std::string>> elements;
  if (trim(text).empty()) return elements;
  std::size_t i = 0;
  while (true) {
    while (i < text.size() && is_space(text[i])) ++i;
    std::string element;
    bool is_quoted = i < text.size() && text[i] == '"';
    if (is_quoted) {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && ++i == text.size()) return std::nullopt;
        element += text[i];
      }
      if (i++ >= text.size()) return std::nullopt;
      while (i < text.size() && is_space(text[i])) ++i;
    } else {
      for (; i < text.size() && text[i] != ','; ++i) {
        if (text[i] == '\\' || text[i] == '"' || text[i] == '{' || text[i] == '}') return std::nullopt;
        element += text[i];
      }
      element = rtrim(element);
      if (element.empty()) return std::nullopt;
    }
    elements.push_back(!is_quoted && iequals(element, "null") ? std::nullopt : std::optional(element));
    if (i == text.size()) return elements;
    if (text[i++] != ',') return std::nullopt;
  }
}

// The binary form: dimensions, flags, element type; for each dimension length and lower bound; then the elements.
class ArrayReader {
 public:
  explicit ArrayReader(std::string_view bytes) : rest_(bytes) {}

  bool read(std::vector<Parameter>& elements) {
    std::uint32_t dimensions = word();
    word();  // whether there are NULLs
    std::uint32_t type = word();
    if (failed_ || dimensions > 1) return false;
    if (dimensions == 0) return rest_.empty();
    std::uint32_t count = word();
    word();
    for (std::uint32_t i = 0; i < count && !failed_; ++i) {
      std::uint32_t size = word();
      Parameter p;
      p.type = type;
      p.is_binary = true;
      p.is_null = size == 0xffffffff;
      if (!p.is_null) p.bytes = take(size);
      elements.push_back(p);
    }
    return !failed_ && rest_.empty();
  }

 private:
  std::string_view take(std::size_t n) {
    if (failed_ || n > rest_.size()) {
      failed_ = true;
      return {};
    }
    std::string_view head = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return head;
  }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (char c : take(4)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool failed_ = false;
};

using Constants = std::optional<std::vector<Constant>>;

Constants of_array_text(std::string_view text, ValueType type) {
  auto elements = split_array(text);
  if (!elements) return std::nullopt;
  std::vector<Constant> all;
  for (auto& element : *elements) all.push_back(element ? made(canonical_text(type, *element)) : Constant{Kind::Null});
  return all;
}

Constants of_array_parameter(const Parameter& p, ValueType type, bool is_only_use) {
  if (p.is_null) return std::vector<Constant>{};
  bool is_declared = p.type != 0 && p.type != catalog::kUnknownOid;
  if (!p.is_binary) {
    if (!is_declared) return is_only_use ? of_array_text(p.bytes, type) : std::nullopt;
    std::uint32_t element = element_type(p.type);
    bool is_fitting = type == ValueType::Uuid   ? element == catalog::kUuidOid
                      : type == ValueType::Text ? is_string_type(element)
                                                : element == catalog::kInt8Oid || element == catalog::kInt4Oid;
    if (!is_fitting) return std::nullopt;
    return of_array_text(p.bytes, element == catalog::kInt8Oid ? ValueType::BigInt : type);
  }
  std::vector<Parameter> elements;
  if (!is_declared || !ArrayReader(p.bytes).read(elements)) return std::nullopt;
  std::vector<Constant> all;
  for (const Parameter& e : elements)
    all.push_back(e.is_null ? Constant{Kind::Null} : made(canonical_parameter(type, e, false)));
  return all;
}

Constants of_array(const Analysis& analysis, const sql::Value& value, ValueType type, const Values& values) {
  if (value.kind == sql::Value::Kind::Null) return std::vector<Constant>{};
  std::string_view cast = value.cast;
  if (!cast.empty()) {
    if (!cast.ends_with("[]")) return std::nullopt;
    cast.remove_suffix(2);
    auto element = cast_type(cast, type);
    if (!element) return std::nullopt;
    type = *element;
  }
  if (value.kind == sql::Value::Kind::Literal) {
    if (value.index >= values.literals.size() || values.literals[value.index].kind != Literal::Kind::String)
      return std::nullopt;
    return of_array_text(values.literals[value.index].text, type);
  }
  if (value.index == 0 || value.index > values.parameters.size()) return std::nullopt;
  bool is_only_use = value.index <= analysis.is_used_once.size() && analysis.is_used_once[value.index - 1];
  const Parameter& p = values.parameters[value.index - 1];
  if (!cast.empty() && is_string_type(p.type) && !p.is_null) return of_array_text(p.bytes, type);
  return of_array_parameter(p, type, is_only_use);
}

// Organizations and text keys reach the server in its own encoding; in another one the same bytes are another text.
bool is_readable(const Constant& c, ValueType type, bool has_utf8) {
  return has_utf8 || type != ValueType::Text || is_ascii(c.text);
}

}  // namespace

Constant constant(const Analysis& analysis, const sql::Value& value, ValueType type, const Values& values,
                  bool has_utf8) {
  if (value.kind == sql::Value::Kind::Null) return {Kind::Null};
  auto compared_as = cast_type(value.cast, type);
  if (!compared_as) return {};
  Constant c = value.kind == sql::Value::Kind::Literal     ? of_literal(value, *compared_as, values)
               : value.kind == sql::Value::Kind::Parameter ? of_parameter(analysis, value, *compared_as, values)
                                                           : Constant{};
  return is_readable(c, type, has_utf8) ? c : Constant{};
}

Constants constants(const Analysis& analysis, const Source& source, const Values& values, bool has_utf8) {
  std::vector<Constant> all;
  if (source.is_array) {
    auto elements = of_array(analysis, source.values.front(), source.type, values);
    if (!elements) return std::nullopt;
    all = std::move(*elements);
  } else {
    for (const sql::Value& value : source.values)
      all.push_back(constant(analysis, value, source.type, values, has_utf8));
  }
  for (const Constant& c : all)
    if (c.kind == Kind::Unknown || !is_readable(c, source.type, has_utf8)) return std::nullopt;
  return all;
}

}  // namespace lokadb::route
