// The functions of lokadb_host, and what they share. Each looks first whether it may be called now, and for this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "plugin/abi.h"
#include "plugin/batch.h"
#include "plugin/call.h"
#include "plugin/host_calls.h"

namespace lokadb {

using Entries = std::uint32_t;
constexpr Entries bit(PluginEntry e) { return static_cast<Entries>(e); }
constexpr Entries kConfiguring = bit(PluginEntry::Init) | bit(PluginEntry::Reload);
constexpr Entries kDeciding = bit(PluginEntry::Decide);
constexpr Entries kTelling = bit(PluginEntry::Inspect) | kDeciding;
constexpr Entries kLooking = kTelling | bit(PluginEntry::Review) | bit(PluginEntry::Observe);

// The call that the host is called from, or null (and the fault is noted, where there is a call to note it at).
inline PluginCall* call_for(const char* function, Entries allowed) {
  PluginCall* call = PluginCall::current();
  if (call == nullptr) {
    log_line(LogLevel::Error, "a plugin called %s outside of its own functions", function);
    return nullptr;
  }
  if ((bit(call->entry) & allowed) == 0) {
    call->fault(format("called %s in %s", function, name_of(call->entry)));
    return nullptr;
  }
  return call;
}

// The same for a function that is about a batch. `batch` is where the result goes, null after a fault.
inline PluginCall* call_about(const char* function, Entries allowed, const lokadb_batch* handle, Batch*& batch) {
  batch = nullptr;
  PluginCall* call = call_for(function, allowed);
  if (call == nullptr) return nullptr;
  if (handle == nullptr || reinterpret_cast<const Batch*>(handle) != call->subject.batch) {
    call->fault(format("called %s for a batch that this call is not about", function));
    return nullptr;
  }
  batch = call->subject.batch;
  return call;
}

// Nothing of ours may be thrown through a plugin.
template <class T, class F>
T guarded(T after_fault, F&& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    if (PluginCall* call = PluginCall::current()) call->fault(std::string("the host ran into: ") + e.what());
    return after_fault;
  }
}

inline bool is_in_range(PluginCall& call, const char* function, const char* what, std::size_t index,
                        std::size_t count) {
  if (index < count) return true;
  call.fault(format("called %s with %s %zu of %zu", function, what, index, count));
  return false;
}

// A string of the plugin; false after a fault.
inline bool take_text(PluginCall& call, const char* function, const lokadb_string& from, std::string& to) {
  if (from.data == nullptr && from.size != 0) {
    call.fault(format("called %s with a string of %zu bytes at address 0", function, from.size));
    return false;
  }
  to = std::string(view_of(from));
  return true;
}

// A struct that the plugin fills, or wants filled: `size` is its struct_size. False after a fault.
template <class T>
bool has_size_of(PluginCall& call, const char* function, const T* given) {
  if (given == nullptr) {
    call.fault(format("called %s with a null pointer", function));
    return false;
  }
  if (given->struct_size >= first_size<T>() && given->struct_size <= sizeof(T)) return true;
  call.fault(format("called %s with a struct_size of %u (1.0: %zu, now: %zu)", function, given->struct_size,
                    first_size<T>(), sizeof(T)));
  return false;
}

// Fills `out` as far as the plugin knows the struct.
template <class T>
bool give(PluginCall& call, const char* function, T* out, T value) {
  if (!has_size_of(call, function, out)) return false;
  value.struct_size = out->struct_size;
  std::memcpy(static_cast<void*>(out), &value, out->struct_size);
  return true;
}

// What the plugin filled in; fields that its version lacks are zero.
template <class T>
bool take(PluginCall& call, const char* function, const T* given, T& value) {
  if (!has_size_of(call, function, given)) return false;
  value = T{};
  std::memcpy(static_cast<void*>(&value), given, given->struct_size);
  return true;
}

struct HostCalls {  // a friend of Batch
  // log and failure
  static void log(int level, lokadb_string text);
  static int fail(const char* sqlstate, lokadb_string text);

  // configuration
  static lokadb_string option(const lokadb_section* handle, lokadb_string name);
  static int line(const lokadb_section* handle, lokadb_string of, std::uint32_t index, lokadb_string* name,
                  lokadb_string* value);
  static bool is_own(PluginCall& call, const char* function, const lokadb_section* handle);

  // the console
  static int add_row(lokadb_rows* handle, const lokadb_string* cells, std::uint32_t count);

  // what the batch is
  static void batch_info(const lokadb_batch* handle, lokadb_batch_info* out);
  static int statement(const lokadb_batch* handle, std::uint32_t index, lokadb_statement* out);
  static int parameter(const lokadb_batch* handle, std::uint32_t statement, std::uint32_t index, lokadb_parameter* out);
  static void* slot(const lokadb_batch* handle);
  static lokadb_string setting(const lokadb_batch* handle, lokadb_string name);
  static lokadb_string own_setting(const lokadb_batch* handle, lokadb_string name);

  // what plugins add
  static void* allocate(lokadb_batch* handle, std::size_t size);
  static bool pay_for(PluginCall& call, Batch& batch, std::size_t bytes);
  static int split(lokadb_batch* handle, std::uint32_t index, const std::size_t* begins, std::uint32_t count);
  static int split_checked(PluginCall& call, Batch& batch, std::uint32_t index, std::vector<std::size_t> begins);
  // Numbers behind the statement go up.
  static void replace_by_pieces(Batch& batch, std::uint32_t index, const std::vector<std::size_t>& begins);
  static int publish(lokadb_batch* handle, const lokadb_fact* given);
  static bool is_sound(PluginCall& call, const Batch& batch, const lokadb_fact& fact);
  static std::uint32_t fact_count(const lokadb_batch* handle);
  static int fact(const lokadb_batch* handle, std::uint32_t index, lokadb_fact* out);

  // steps and targets
  static std::uint32_t add_step(lokadb_batch* handle, const lokadb_step* given);
  static bool take_sql(PluginCall& call, const lokadb_string& from, std::string& to);
  static bool take_values(PluginCall& call, const char* function, const lokadb_step_value* values, std::uint32_t count,
                          std::vector<BatchStep::Value>& to, std::size_t& bytes);
  static int replace(lokadb_batch* handle, const lokadb_replacement* given);
  // The step if it has been run, else null; a number that does not exist is a fault.
  static const BatchStep* run_step(const char* function, const lokadb_batch* handle, std::uint32_t index,
                                   PluginCall*& call);
  static std::uint32_t step_rows(const lokadb_batch* handle, std::uint32_t index);
  static int step_cell(const lokadb_batch* handle, std::uint32_t index, std::uint32_t row, std::uint32_t column,
                       lokadb_cell* out);
  static std::uint32_t add_target(lokadb_batch* handle, const lokadb_target* given);
  static BatchTargetPtr take_target(PluginCall& call, const lokadb_target& target);
  static std::uint32_t number_of(PluginCall& call, Batch& batch, BatchTargetPtr target);
};

}  // namespace lokadb
