// The settings that follow a client from server to server: client_encoding, DateStyle, TimeZone,
// standard_conforming_strings, application_name, those of track_extra_parameters, and a list of our own (kFollowed in
// parameters.cc).
//
// A set of values is immutable and interned: equal sets are one object, so that "has this server the client's
// settings" is a comparison of two pointers in nearly every case.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lokadb {

// The names, fixed at start. Any thread.
class TrackedNames {
 public:
  explicit TrackedNames(const std::vector<std::string>& extra);
  std::optional<std::size_t> index(std::string_view name) const;  // compares without case
  const std::string& name(std::size_t i) const { return names_[i]; }
  // Whether two texts are the same value of it. Where case may count (a name, quoted parts of a path, what
  // track_extra_parameters added) only the same text is.
  bool same_value(std::size_t i, std::string_view one, std::string_view other) const;
  std::size_t size() const { return names_.size(); }
  // PgBouncer would not know it: refused at start-up with strict_startup_parameters, and only in effect if it is not
  // among the ignore_startup_parameters.
  bool is_addition(std::size_t i) const { return i >= addition_begin_; }

  static constexpr std::size_t kClientEncoding = 0, kDateStyle = 1, kTimeZone = 2, kStandardStrings = 3,
                               kApplicationName = 4;

 private:
  std::vector<std::string> names_;
  std::size_t addition_begin_;
};

using ParameterValues = std::vector<std::optional<std::string>>;  // one per tracked name; nullopt: not known

class ParameterSet {
 public:
  explicit ParameterSet(ParameterValues values) : values_(std::move(values)) {}
  const ParameterValues& values() const { return values_; }

 private:
  const ParameterValues values_;
};
using ParameterSetPtr = std::shared_ptr<const ParameterSet>;

// The one object for these values. Any thread (a short lock).
ParameterSetPtr intern_parameters(ParameterValues values);

// `set` with one value replaced.
ParameterSetPtr with_parameter(const ParameterSetPtr& set, std::size_t index, std::string_view value);

// "SET name='value';..." for every value that is wanted and that is another there or not known, in order; empty if
// nothing is to be done. What `wanted` leaves open is wanted as in `defaults`; what is open there,
// too, is RESET if it is known to have a value.
std::string set_statements(const TrackedNames& names, const ParameterSet& wanted, const ParameterSet& defaults,
                           const ParameterSet& there);

// `wanted` with the spelling of `there`: the same values stay open.
ParameterSetPtr in_spelling_of(const ParameterSet& there, const ParameterSet& wanted);

}  // namespace lokadb
