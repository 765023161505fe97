#include "route/safe.h"

#include <algorithm>

#include "base/text.h"

namespace lokadb::route {

namespace {

// Each list is sorted, for the binary search.
constexpr std::string_view kFunctions[] = {"abs",
                                           "acos",
                                           "age",
                                           "array_agg",
                                           "array_append",
                                           "array_cat",
                                           "array_dims",
                                           "array_length",
                                           "array_lower",
                                           "array_ndims",
                                           "array_position",
                                           "array_positions",
                                           "array_prepend",
                                           "array_remove",
                                           "array_replace",
                                           "array_to_json",
                                           "array_to_string",
                                           "array_upper",
                                           "ascii",
                                           "asin",
                                           "atan",
                                           "atan2",
                                           "avg",
                                           "bit_and",
                                           "bit_count",
                                           "bit_length",
                                           "bit_or",
                                           "bit_xor",
                                           "bool_and",
                                           "bool_or",
                                           "btrim",
                                           "cardinality",
                                           "cbrt",
                                           "ceil",
                                           "ceiling",
                                           "char_length",
                                           "character_length",
                                           "chr",
                                           "concat",
                                           "concat_ws",
                                           "corr",
                                           "cos",
                                           "count",
                                           "covar_pop",
                                           "covar_samp",
                                           "cume_dist",
                                           "current_date",
                                           "current_time",
                                           "current_timestamp",
                                           "date",
                                           "date_bin",
                                           "date_part",
                                           "date_trunc",
                                           "decode",
                                           "degrees",
                                           "dense_rank",
                                           "div",
                                           "encode",
                                           "every",
                                           "exp",
                                           "extract",
                                           "factorial",
                                           "first_value",
                                           "floor",
                                           "format",
                                           "gcd",
                                           "get_bit",
                                           "get_byte",
                                           "greatest",
                                           "initcap",
                                           "isfinite",
                                           "json_agg",
                                           "json_array_elements",
                                           "json_array_elements_text",
                                           "json_array_length",
                                           "json_build_array",
                                           "json_build_object",
                                           "json_each",
                                           "json_each_text",
                                           "json_extract_path",
                                           "json_extract_path_text",
                                           "json_object",
                                           "json_object_agg",
                                           "json_object_keys",
                                           "json_strip_nulls",
                                           "json_typeof",
                                           "jsonb_agg",
                                           "jsonb_array_elements",
                                           "jsonb_array_elements_text",
                                           "jsonb_array_length",
                                           "jsonb_build_array",
                                           "jsonb_build_object",
                                           "jsonb_each",
                                           "jsonb_each_text",
                                           "jsonb_extract_path",
                                           "jsonb_extract_path_text",
                                           "jsonb_insert",
                                           "jsonb_object",
                                           "jsonb_object_agg",
                                           "jsonb_object_keys",
                                           "jsonb_pretty",
                                           "jsonb_set",
                                           "jsonb_set_lax",
                                           "jsonb_strip_nulls",
                                           "jsonb_typeof",
                                           "justify_days",
                                           "justify_hours",
                                           "justify_interval",
                                           "lag",
                                           "last_value",
                                           "lcm",
                                           "lead",
                                           "least",
                                           "left",
                                           "length",
                                           "like_escape",
                                           "ln",
                                           "localtime",
                                           "localtimestamp",
                                           "log",
                                           "log10",
                                           "lower",
                                           "lpad",
                                           "ltrim",
                                           "make_date",
                                           "make_interval",
                                           "make_time",
                                           "make_timestamp",
                                           "make_timestamptz",
                                           "max",
                                           "md5",
                                           "min",
                                           "mod",
                                           "mode",
                                           "not_like_escape",
                                           "now",
                                           "nth_value",
                                           "ntile",
                                           "nullif",
                                           "num_nonnulls",
                                           "num_nulls",
                                           "octet_length",
                                           "overlay",
                                           "percent_rank",
                                           "percentile_cont",
                                           "percentile_disc",
                                           "pi",
                                           "position",
                                           "power",
                                           "quote_ident",
                                           "quote_literal",
                                           "quote_nullable",
                                           "radians",
                                           "rank",
                                           "regexp_count",
                                           "regexp_instr",
                                           "regexp_like",
                                           "regexp_match",
                                           "regexp_matches",
                                           "regexp_replace",
                                           "regexp_split_to_array",
                                           "regexp_split_to_table",
                                           "regexp_substr",
                                           "repeat",
                                           "replace",
                                           "reverse",
                                           "right",
                                           "round",
                                           "row_number",
                                           "rpad",
                                           "rtrim",
                                           "scale",
                                           "sha224",
                                           "sha256",
                                           "sha384",
                                           "sha512",
                                           "sign",
                                           "similar_to_escape",
                                           "sin",
                                           "split_part",
                                           "sqrt",
                                           "starts_with",
                                           "statement_timestamp",
                                           "stddev",
                                           "stddev_pop",
                                           "stddev_samp",
                                           "string_agg",
                                           "string_to_array",
                                           "string_to_table",
                                           "strpos",
                                           "substr",
                                           "substring",
                                           "sum",
                                           "tan",
                                           "timezone",
                                           "to_hex",
                                           "transaction_timestamp",
                                           "translate",
                                           "trim",
                                           "trim_array",
                                           "trim_scale",
                                           "trunc",
                                           "upper",
                                           "var_pop",
                                           "var_samp",
                                           "variance",
                                           "width_bucket"};

constexpr std::string_view kInFrom[] = {
    "generate_series", "generate_subscripts", "json_array_elements",  "json_array_elements_text",  "json_each",
    "json_each_text",  "json_object_keys",    "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_each",
    "jsonb_each_text", "jsonb_object_keys",   "regexp_matches",       "regexp_split_to_table",     "string_to_table",
    "unnest"};

constexpr std::string_view kOperators[] = {"!=", "!~", "!~*", "!~~", "!~~*", "#",  "#-",  "#>", "#>>", "%",
                                           "&",  "&&", "*",   "+",   "-",    "->", "->>", "/",  "<",   "<<",
                                           "<=", "<>", "<@",  "=",   ">",    ">=", ">>",  "?",  "?&",  "?|",
                                           "@>", "^",  "^@",  "|",   "||",   "~",  "~*",  "~~", "~~*"};

constexpr std::string_view kTypes[] = {
    "bit",  "bool",  "bpchar",  "bytea", "date", "float4",    "float8",      "int2",   "int4", "int8",   "interval",
    "json", "jsonb", "numeric", "text",  "time", "timestamp", "timestamptz", "timetz", "uuid", "varbit", "varchar"};

constexpr std::string_view kCollations[] = {"C", "POSIX", "default", "ucs_basic"};

// Why others are out: what people ask first.
struct Unsafe {
  std::string_view name, why;
};
constexpr Unsafe kUnsafe[] = {
    {"clock_timestamp", "is volatile: it differs from call to call"},
    {"current_database", "differs from database to database"},
    {"current_query", "depends on the session"},
    {"current_role", "names the login of the organization's database"},
    {"current_schema", "depends on the database"},
    {"current_setting", "depends on settings that are not repeated"},
    {"current_user", "names the login of the organization's database"},
    {"currval", "reads a sequence of the cloud"},
    {"gen_random_uuid", "is volatile"},
    {"lastval", "reads a sequence of the cloud"},
    {"nextval", "draws from a sequence of the cloud"},
    {"pg_backend_pid", "depends on the connection"},
    {"random", "is volatile"},
    {"row_to_json", "takes a whole row"},
    {"session_user", "names the login of the organization's database"},
    {"set_config", "changes a setting"},
    {"setval", "changes a sequence of the cloud"},
    {"to_char", "depends on lc_time and lc_numeric"},
    {"to_date", "depends on lc_time"},
    {"to_number", "depends on lc_numeric"},
    {"to_timestamp", "depends on lc_time"},
    {"to_tsquery", "depends on default_text_search_config and the dictionaries"},
    {"to_tsvector", "depends on default_text_search_config and the dictionaries"},
    {"user", "names the login of the organization's database"},
    {"version", "differs from server to server"},
};

template <class List>
bool has(const List& list, std::string_view word) {
  return std::binary_search(std::begin(list), std::end(list), word);
}
static_assert(std::is_sorted(std::begin(kFunctions), std::end(kFunctions)));
static_assert(std::is_sorted(std::begin(kInFrom), std::end(kInFrom)));
static_assert(std::is_sorted(std::begin(kOperators), std::end(kOperators)));
static_assert(std::is_sorted(std::begin(kTypes), std::end(kTypes)));

// "pg_catalog.x" is x, and nobody's own.
bool strip_pg_catalog(std::string_view& name) {
  constexpr std::string_view kSchema = "pg_catalog.";
  if (!name.starts_with(kSchema)) return false;
  name.remove_prefix(kSchema.size());
  return true;
}

bool hides(catalog::Shadow shadow, bool names_user_types) {
  return shadow == catalog::Shadow::Any || (shadow == catalog::Shadow::Typed && names_user_types);
}

Fault judge(const catalog::Catalog& catalog, const sql::FunctionCall& call, bool names_user_types) {
  if (!call.schema.empty() && call.schema != "pg_catalog") return {Reason::Function, call.schema + "." + call.name};
  if (!is_safe_function(call.name) && !(call.is_in_from && is_safe_in_from(call.name)) && call.name != "unnest" &&
      call.name != "generate_series") {
    std::string_view why = why_unsafe(call.name);
    return {Reason::Function, call.name + "()" + (why.empty() ? "" : " " + std::string(why))};
  }
  if (call.schema.empty() && hides(catalog.function_shadow(call.name), names_user_types))
    return {Reason::FunctionShadowed, call.name};
  return {};
}

}  // namespace

bool is_safe_function(std::string_view name) { return has(kFunctions, name); }
bool is_safe_in_from(std::string_view name) { return has(kInFrom, name); }
bool is_safe_operator(std::string_view name) { return has(kOperators, name); }

bool is_safe_type(std::string_view name) {
  strip_pg_catalog(name);
  while (name.ends_with("[]")) name.remove_suffix(2);
  return has(kTypes, name);
}

std::string_view why_unsafe(std::string_view name) {
  for (const Unsafe& u : kUnsafe)
    if (u.name == name) return u.why;
  return {};
}

Fault find_unsafe(const catalog::Catalog& catalog, const sql::Statement& statement, bool names_user_types) {
  if (!catalog.casts().empty()) return {Reason::Cast, catalog.casts().front()};
  for (const sql::FunctionCall& call : statement.functions)
    if (Fault fault = judge(catalog, call, names_user_types)) return fault;
  for (std::string_view name : statement.operators) {
    std::string_view bare = name;
    bool is_qualified = strip_pg_catalog(bare);
    if (!is_safe_operator(bare) || (!is_qualified && hides(catalog.operator_shadow(bare), names_user_types)))
      return {Reason::Operator, std::string(name)};
  }
  for (const std::string& type : statement.types)
    if (!is_safe_type(type)) return {Reason::Type, type};
  for (std::string_view name : statement.collations) {
    std::string_view bare = name;
    strip_pg_catalog(bare);
    if (!has(kCollations, bare)) return {Reason::Collation, std::string(name)};
  }
  return {};
}

// The tenant column's own foreign key is guarded in another way.
Fault table_fault(const catalog::Table& t) {
  for (const catalog::Trigger& trigger : t.triggers)
    if (trigger.for_row) return {Reason::RowTrigger, t.name + ": " + trigger.name};
  for (const catalog::CloudKey& key : t.cloud_keys)
    if (!key.is_tenant) return {Reason::CloudKey, t.name + ": " + key.constraint};
  if (!t.policies.empty()) return {Reason::Policy, t.name + ": " + t.policies.front()};
  if (!t.rules.empty()) return {Reason::Rule, t.name + ": " + t.rules.front()};
  for (const catalog::Column& c : t.columns) {
    if (c.is_identity) return {Reason::IdentityColumn, t.name + ": " + c.name};
    if (c.is_generated) return {Reason::GeneratedColumn, t.name + ": " + c.name};
  }
  return {};
}

}  // namespace lokadb::route
