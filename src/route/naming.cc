#include "route/naming.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "sql/parse.h"

namespace lokadb::route {

namespace {

using sql::Value;
using Kind = NamingEffect::Kind;

constexpr std::uint32_t kBoolOid = 16, kNameOid = 19, kBpcharOid = 1042;

struct Text {
  // Missing: not bound yet. Foreign: of another encoding than UTF8.
  enum class Kind : std::uint8_t { Unknown, Missing, Null, Foreign, Known } kind = Kind::Unknown;
  std::string text{};
};

constexpr char kForeign[] = "its value has other characters than ASCII, and client_encoding is not UTF8";

Text known(std::string text) { return {Text::Kind::Known, std::move(text)}; }

// As PostgreSQL prints the constant of SET.
std::string text_of_number(std::string_view digits, bool is_negated) {
  std::int32_t value = 0;
  auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool is_integer = fault == std::errc() && end == digits.data() + digits.size();
  std::string text = is_integer ? std::to_string(value) : std::string(digits);
  return is_negated ? "-" + text : text;
}

bool is_text_type(std::uint32_t oid) {
  return oid == 0 || oid == catalog::kTextOid || oid == catalog::kVarcharOid || oid == catalog::kUnknownOid ||
         oid == kNameOid || oid == kBpcharOid;
}

bool is_cast_to_text(std::string_view cast) { return cast.empty() || cast == "text" || cast == "varchar"; }

class Reader {
 public:
  Reader(const sql::Statement& statement, const Values& values, std::string_view setting, bool is_bound, bool has_utf8)
      : statement_(statement), values_(values), setting_(setting), is_bound_(is_bound), has_utf8_(has_utf8) {}

  NamingEffect read() const {
    using Class = sql::StatementClass;
    switch (statement_.kind) {
      case Class::Set:
        return statement_.setting ? of_set(*statement_.setting) : NamingEffect{};
      case Class::Transaction:
        return statement_.transaction ? of_transaction(*statement_.transaction) : NamingEffect{};
      case Class::Discard:
        return statement_.name == "all" ? NamingEffect{Kind::Default} : NamingEffect{};
      case Class::Explain:
        return statement_.explain_analyzes ? of_calls() : NamingEffect{};
      default:
        return of_calls();
    }
  }

 private:
  bool is_ours(std::string_view name) const { return iequals(name, setting_); }

  static NamingEffect not_understood(std::string why) { return {Kind::NotUnderstood, false, false, std::move(why)}; }

  NamingEffect of_set(const sql::Setting& set) const {
    using SetKind = sql::Setting::Kind;
    if (set.kind == SetKind::ResetAll) return {Kind::Default};
    if (!is_ours(set.name)) return {};
    switch (set.kind) {
      case SetKind::Default:
      case SetKind::Reset:
        return {Kind::Default, set.is_local};
      case SetKind::Current:
        return {Kind::Current, set.is_local};
      case SetKind::Value:
        break;
      default:
        return {};
    }
    if (set.values.size() != 1) return {};  // an error of the server
    Text value = text_of(set.values.front(), true);
    if (value.kind == Text::Kind::Foreign) return not_understood(kForeign);
    if (value.kind != Text::Kind::Known) return not_understood("its value is not written plainly");
    return {Kind::Set, set.is_local, set.is_local, std::move(value.text)};
  }

  static NamingEffect of_transaction(const sql::TransactionControl& control) {
    using Control = sql::TransactionControl::Kind;
    switch (control.kind) {
      case Control::Commit:
      case Control::PrepareTransaction:
        return {Kind::Commit};
      case Control::Rollback:
        return {Kind::Rollback};
      case Control::Savepoint:
        return {Kind::Savepoint, false, false, control.savepoint};
      case Control::Release:
        return {Kind::Release, false, false, control.savepoint};
      case Control::RollbackTo:
        return {Kind::RollbackTo, false, false, control.savepoint};
      default:
        return {};
    }
  }

  static bool is_set_config(const sql::FunctionCall& call) {
    return call.name == "set_config" && (call.schema.empty() || call.schema == "pg_catalog");
  }

  NamingEffect of_calls() const {
    NamingEffect sum;
    std::size_t ours = 0, all = 0;
    for (const sql::FunctionCall& call : statement_.functions) {
      if (!is_set_config(call)) continue;
      ++all;
      NamingEffect one = of_call(call);
      if (one.kind == Kind::None) continue;
      if (one.kind == Kind::NotUnderstood) return one;
      if (one.kind == Kind::Unseen) {
        if (sum.kind == Kind::None) sum = std::move(one);
        continue;
      }
      if (ours++ > 0 && one.is_local != sum.is_local) return not_understood("it is set twice in one statement");
      sum = std::move(one);
    }
    if (ours == 0) return sum;
    // Otherwise it would depend on rows whether and when it is called.
    bool is_certain = statement_.kind == sql::StatementClass::Select && all == statement_.functions.size() &&
                      statement_.relations.empty() && statement_.not_understood.empty() &&
                      std::all_of(statement_.functions.begin(), statement_.functions.end(),
                                  [](const sql::FunctionCall& call) { return call.runs_once; });
    if (!is_certain) return not_understood("set_config does not stand in a SELECT of its own");
    bool is_alone = ours == all && statement_.operators.empty() && statement_.columns.empty();
    bool is_literal =
        std::all_of(statement_.functions.begin(), statement_.functions.end(),
                    [](const sql::FunctionCall& c) { return c.arguments[2].kind == Value::Kind::Boolean; });
    sum.names_only = sum.kind == Kind::Set && sum.is_local && is_alone && is_literal;
    return sum;
  }

  NamingEffect of_call(const sql::FunctionCall& call) const {
    if (call.arguments.size() != 3) return {};  // an error of the server
    Text name = text_of(call.arguments[0], false);
    if (name.kind == Text::Kind::Missing || name.kind == Text::Kind::Null) return {};
    if (name.kind != Text::Kind::Known) return {Kind::Unseen};
    if (!is_ours(name.text)) return {};
    Text value = text_of(call.arguments[1], false);
    auto is_local = truth_of(call.arguments[2]);
    bool is_missing = !is_bound_ && call.arguments[2].kind == Value::Kind::Parameter;
    if (is_missing) return {};
    if (!is_local) return not_understood("it cannot be known whether it is set for the transaction alone");
    switch (value.kind) {
      case Text::Kind::Missing:
        // Of a value that is to come only this is known: for how long it will be set.
        return *is_local ? NamingEffect{} : NamingEffect{Kind::Current, false};
      case Text::Kind::Null:
        return {Kind::Default, *is_local};
      case Text::Kind::Known:
        return {Kind::Set, *is_local, false, std::move(value.text)};
      case Text::Kind::Foreign:
        return not_understood(kForeign);
      default:
        return not_understood("its value is not a plain literal or parameter");
    }
  }

  // --- values

  Text readable(std::string text) const {
    bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    return has_utf8_ || is_ascii ? known(std::move(text)) : Text{Text::Kind::Foreign};
  }

  Text text_of(const Value& value, bool is_in_set) const {
    switch (value.kind) {
      case Value::Kind::Null:
        return {Text::Kind::Null};
      case Value::Kind::Word:
        return is_in_set ? readable(value.word) : Text{};
      case Value::Kind::Literal:
        return of_literal(value, is_in_set);
      case Value::Kind::Parameter:
        return of_parameter(value);
      default:
        return {};
    }
  }

  Text of_literal(const Value& value, bool is_in_set) const {
    if (value.index >= values_.literals.size()) return {};
    const Literal& literal = values_.literals[value.index];
    if (literal.kind == Literal::Kind::String) {
      bool is_plain = !value.is_negated && is_cast_to_text(value.cast);
      return is_plain ? readable(std::string(literal.text)) : Text{};
    }
    bool is_text = is_in_set ? value.cast.empty() : value.cast == "text" || value.cast == "varchar";
    if (literal.kind != Literal::Kind::Number || !is_text) return {};
    return known(text_of_number(literal.text, value.is_negated));
  }

  Text of_parameter(const Value& value) const {
    if (!is_bound_) return {Text::Kind::Missing};
    if (value.index == 0 || value.index > values_.parameters.size()) return {};
    const catalog::Parameter& p = values_.parameters[value.index - 1];
    if (value.is_negated || !is_cast_to_text(value.cast)) return {};
    if (p.is_null) return {Text::Kind::Null};
    if (is_text_type(p.type)) return readable(std::string(p.bytes));
    if (value.cast.empty()) return {};
    auto type = p.type == catalog::kUuidOid ? catalog::ValueType::Uuid : catalog::ValueType::BigInt;
    auto text = catalog::canonical_parameter(type, p, true);
    return text ? known(std::move(*text)) : Text{};
  }

  // What bool makes of it; NULL is false for set_config.
  static std::optional<bool> boolean(std::string_view text) {
    std::string word = lower(trim(text));
    auto begins = [&word](std::string_view whole, std::size_t least) {
      return word.size() >= least && whole.starts_with(word);
    };
    if (begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1") return true;
    if (begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0") return false;
    return std::nullopt;
  }

  std::optional<bool> truth_of(const Value& value) const {
    if (!value.cast.empty() && value.cast != "bool") return std::nullopt;
    switch (value.kind) {
      case Value::Kind::Boolean:
        return value.index != 0;
      case Value::Kind::Null:
        return false;
      case Value::Kind::Literal: {
        if (value.index >= values_.literals.size() || value.is_negated) return std::nullopt;
        const Literal& literal = values_.literals[value.index];
        return literal.kind == Literal::Kind::String ? boolean(literal.text) : std::nullopt;
      }
      case Value::Kind::Parameter: {
        if (value.index == 0 || value.index > values_.parameters.size()) return std::nullopt;
        const catalog::Parameter& p = values_.parameters[value.index - 1];
        if (p.is_null) return false;
        if (!p.is_binary) return p.type == kBoolOid || is_text_type(p.type) ? boolean(p.bytes) : std::nullopt;
        if (p.type != kBoolOid && p.type != 0) return std::nullopt;
        return p.bytes.size() == 1 ? std::optional(p.bytes.front() != '\0') : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  const sql::Statement& statement_;
  const Values& values_;
  std::string_view setting_;
  bool is_bound_, has_utf8_;
};

// Statements that begin so have an effect only by a call.
bool begins_quietly(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  for (std::string_view word : {"select", "insert", "update", "delete", "with", "values", "copy", "create", "table"})
    if (text.size() > word.size() && iequals(text.substr(0, word.size()), word)) return true;
  return text.empty();
}

bool spells_set_config(std::string_view text) {
  constexpr std::string_view kName = "set_config";
  for (std::size_t at = text.find('_'); at != text.npos; at = text.find('_', at + 1))
    if (at >= 3 && iequals(text.substr(at - 3, kName.size()), kName)) return true;
  // A name in escapes.
  for (std::size_t at = text.find("&\""); at != text.npos; at = text.find("&\"", at + 1))
    if (at > 0 && lower(text[at - 1]) == 'u') return true;
  return false;
}

}  // namespace

NamingEffect naming_effect(const sql::Statement& statement, const Values& values, std::string_view setting,
                           bool is_bound, bool has_utf8) {
  return Reader(statement, values, setting, is_bound, has_utf8).read();
}

bool may_name(std::string_view text) {
  return !begins_quietly(text) || sql::may_be_several(text) || spells_set_config(text);
}

bool has_set_config(std::string_view text) { return spells_set_config(text); }

}  // namespace lokadb::route
