// Errors as values: what went wrong, with the SQLSTATE the client is told, from the place that knows.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace lokadb {

// Severity field of an ErrorResponse. Error keeps the session, Fatal ends it.
enum class Severity { Error, Fatal };

// SQLSTATEs the proxy itself raises (PostgreSQL manual, appendix A). Static storage.
namespace sqlstate {
inline constexpr std::string_view kProtocolViolation = "08P01";
inline constexpr std::string_view kConnectionFailure = "08006";
inline constexpr std::string_view kInvalidPassword = "28P01";
inline constexpr std::string_view kInvalidAuthorization = "28000";
inline constexpr std::string_view kFeatureNotSupported = "0A000";
inline constexpr std::string_view kTooManyConnections = "53300";
inline constexpr std::string_view kUndefinedStatement = "26000";
inline constexpr std::string_view kDuplicateStatement = "42P05";
inline constexpr std::string_view kInvalidCatalogName = "3D000";
inline constexpr std::string_view kResolutionUnknown = "08007";
inline constexpr std::string_view kCompletionUnknown = "40003";
inline constexpr std::string_view kProgramLimitExceeded = "54000";
inline constexpr std::string_view kReloadFailed = "F0000";
}  // namespace sqlstate

// Five characters, by value.
class SqlState {
 public:
  constexpr SqlState(std::string_view code) {
    for (std::size_t i = 0; i < sizeof code_; ++i) code_[i] = i < code.size() ? code[i] : '0';
  }
  constexpr std::string_view text() const { return {code_, sizeof code_}; }
  constexpr operator std::string_view() const { return text(); }
  constexpr bool operator==(std::string_view other) const { return text() == other; }

 private:
  char code_[5];
};

struct Error {
  SqlState state = sqlstate::kProtocolViolation;
  Severity severity = Severity::Fatal;
  std::string to_client;    // field M; no host names, no secrets
  std::string to_log;       // everything we know; empty: the same as to_client
  std::string detail = {};  // fields D and H, if any
  std::string hint = {};

  const std::string& log_text() const { return to_log.empty() ? to_client : to_log; }
};

// A fault that ends the session with PgBouncer's usual SQLSTATE 08P01.
inline Error fatal(std::string text, std::string to_log = {}) {
  return {sqlstate::kProtocolViolation, Severity::Fatal, std::move(text), std::move(to_log)};
}

// Value or Error. Reading the wrong side is a bug of the caller (asserted).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&held_); }
  const T& operator*() const { return *std::get_if<0>(&held_); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  Error& error() { return *std::get_if<1>(&held_); }
  const Error& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<T, Error> held_;
};

struct Done {};  // Result<Done>: success carries nothing

}  // namespace lokadb
