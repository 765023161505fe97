#include "plugin/host_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "build_config.h"
#include "plugin/abi.h"
#include "plugin/call.h"

namespace lokadb {

namespace {

using Entries = std::uint32_t;
constexpr Entries bit(PluginEntry e) { return static_cast<Entries>(e); }
constexpr Entries kConfiguring = bit(PluginEntry::Init) | bit(PluginEntry::Reload);
constexpr Entries kDeciding = bit(PluginEntry::Decide);
constexpr Entries kTelling = bit(PluginEntry::Inspect) | kDeciding;
constexpr Entries kLooking = kTelling | bit(PluginEntry::Review) | bit(PluginEntry::Observe);

// The call that the host is called from, or null (and the fault is noted, where there is a call to note it at).
PluginCall* call_for(const char* function, Entries allowed) {
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
PluginCall* call_about(const char* function, Entries allowed, const lokadb_batch* handle, Batch*& batch) {
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

bool is_in_range(PluginCall& call, const char* function, const char* what, std::size_t index, std::size_t count) {
  if (index < count) return true;
  call.fault(format("called %s with %s %zu of %zu", function, what, index, count));
  return false;
}

// A string of the plugin; false after a fault.
bool take_text(PluginCall& call, const char* function, const lokadb_string& from, std::string& to) {
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

}  // namespace

// The functions of lokadb_host; a friend of Batch.
struct HostCalls {
  // ---------------------------------------------------------------- log and failure

  static void log(int level, lokadb_string text) {
    constexpr LogLevel kLevels[] = {LogLevel::Error, LogLevel::Warning, LogLevel::Log, LogLevel::Debug};
    PluginCall* call = PluginCall::current();
    if (level < 0 || level >= static_cast<int>(std::size(kLevels)) || (text.data == nullptr && text.size != 0)) {
      if (call != nullptr) call->fault(format("called log with level %d", level));
      return;
    }
    if (!log_enabled(kLevels[level])) return;
    int size = static_cast<int>(std::min<std::size_t>(text.size, 2000));
    int name_size = call != nullptr ? static_cast<int>(call->name.size()) : 0;
    log_line(kLevels[level], "plugin%s%.*s: %.*s", name_size > 0 ? " " : "", name_size,
             name_size > 0 ? call->name.data() : "", size, size > 0 ? text.data : "");
  }

  static int fail(const char* sqlstate, lokadb_string text) {
    return guarded<int>(LOKADB_FAILED, [&]() -> int {
      PluginCall* call = PluginCall::current();
      if (call == nullptr) {
        log_line(LogLevel::Error, "a plugin called fail outside of its own functions");
        return LOKADB_FAILED;
      }
      std::string why;
      if (take_text(*call, "fail", text, why)) call->fail(sqlstate != nullptr ? sqlstate : "", told_text(why));
      return LOKADB_FAILED;
    });
  }

  // ---------------------------------------------------------------- configuration

  static lokadb_string option(const lokadb_section* handle, lokadb_string name) {
    return guarded<lokadb_string>({}, [&]() -> lokadb_string {
      PluginCall* call = call_for("option", kConfiguring);
      std::string wanted;
      if (call == nullptr || !take_text(*call, "option", name, wanted) || !is_own(*call, "option", handle)) return {};
      auto value = call->subject.section->option(wanted);
      if (!value) {
        call->fault("asked for option " + wanted + ", which it does not declare");
        return {};
      }
      return string_of(*value);
    });
  }

  static int line(const lokadb_section* handle, lokadb_string of, std::uint32_t index, lokadb_string* name,
                  lokadb_string* value) {
    return guarded<int>(LOKADB_FAILED, [&]() -> int {
      PluginCall* call = call_for("line", kConfiguring);
      std::string section;
      if (call == nullptr || !take_text(*call, "line", of, section) || !is_own(*call, "line", handle))
        return LOKADB_FAILED;
      std::string_view key, text;
      switch (call->subject.section->line(section, index, key, text)) {
        case SectionView::Line::Found:
          break;
        case SectionView::Line::NoMore:
          return LOKADB_FAILED;
        case SectionView::Line::NotDeclared:
          call->fault("asked for lines of section " + section + ", which it does not declare");
          return LOKADB_FAILED;
      }
      if (name != nullptr) *name = string_of(key);
      if (value != nullptr) *value = string_of(text);
      return LOKADB_OK;
    });
  }

  static bool is_own(PluginCall& call, const char* function, const lokadb_section* handle) {
    if (handle != nullptr && reinterpret_cast<const SectionView*>(handle) == call.subject.section) return true;
    call.fault(format("called %s for a section that is not that of this call", function));
    return false;
  }

  // ---------------------------------------------------------------- what the batch is

  static void batch_info(const lokadb_batch* handle, lokadb_batch_info* out) {
    Batch* batch = nullptr;
    PluginCall* call = call_about("batch_info", kLooking, handle, batch);
    if (call == nullptr) return;
    const BatchContext& context = batch->context_;
    lokadb_batch_info info{};
    info.statement_count = static_cast<std::uint32_t>(batch->statements_.size());
    info.transaction_status = static_cast<std::uint8_t>(context.transaction_status);
    info.ends_in_flush = context.ends_in_flush;
    info.is_whole = context.is_whole;
    info.database = string_of(context.database);
    info.role = string_of(context.role);
    info.client_encoding = string_of(context.client_encoding);
    info.is_session_pooled = context.is_session_pooled;
    info.attempt = context.attempt;
    info.target_fault = string_of(context.target_fault);
    give(*call, "batch_info", out, info);
  }

  static int statement(const lokadb_batch* handle, std::uint32_t index, lokadb_statement* out) {
    Batch* batch = nullptr;
    PluginCall* call = call_about("statement", kLooking, handle, batch);
    if (call == nullptr || !is_in_range(*call, "statement", "statement", index, batch->statements_.size()))
      return LOKADB_FAILED;
    const BatchStatement& s = batch->statements_[index];
    lokadb_statement value{};
    value.form = s.form;
    value.text = string_of(s.text);
    value.known_as = s.known_as;
    value.parameter_count = static_cast<std::uint32_t>(s.parameters.size());
    value.row_limit = s.row_limit;
    value.is_described = s.is_described;
    value.is_executed = s.is_executed;
    value.is_standard_strings = batch->context_.has_standard_strings;
    return give(*call, "statement", out, value) ? LOKADB_OK : LOKADB_FAILED;
  }

  static int parameter(const lokadb_batch* handle, std::uint32_t statement, std::uint32_t index,
                       lokadb_parameter* out) {
    Batch* batch = nullptr;
    PluginCall* call = call_about("parameter", kLooking, handle, batch);
    if (call == nullptr || !is_in_range(*call, "parameter", "statement", statement, batch->statements_.size()))
      return LOKADB_FAILED;
    const auto& parameters = batch->statements_[statement].parameters;
    if (!is_in_range(*call, "parameter", "parameter", index, parameters.size())) return LOKADB_FAILED;
    const BatchStatement::Parameter& p = parameters[index];
    lokadb_parameter value{};
    value.declared_type = p.declared_type;
    value.is_null = p.is_null;
    value.is_binary = p.is_binary;
    value.value = string_of(p.value);
    return give(*call, "parameter", out, value) ? LOKADB_OK : LOKADB_FAILED;
  }

  static void* slot(const lokadb_batch* handle) {
    Batch* batch = nullptr;
    if (call_about("slot", kLooking, handle, batch) == nullptr) return nullptr;
    const std::vector<void*>* slots = batch->context_.slots;
    return slots != nullptr && batch->calling_plugin_ < slots->size() ? (*slots)[batch->calling_plugin_] : nullptr;
  }

  static lokadb_string setting(const lokadb_batch* handle, lokadb_string name) {
    return guarded<lokadb_string>({}, [&]() -> lokadb_string {
      Batch* batch = nullptr;
      PluginCall* call = call_about("setting", kLooking, handle, batch);
      std::string wanted;
      if (call == nullptr || !take_text(*call, "setting", name, wanted) || !batch->context_.setting) return {};
      return string_of(batch->context_.setting(wanted));
    });
  }

  // ---------------------------------------------------------------- what plugins add

  static void* allocate(lokadb_batch* handle, std::size_t size) {
    return guarded<void*>(nullptr, [&]() -> void* {
      Batch* batch = nullptr;
      PluginCall* call = call_about("allocate", kLooking, handle, batch);
      if (call == nullptr || !pay_for(*call, *batch, size)) return nullptr;
      batch->memory_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(size, 1)));
      return batch->memory_.back().get();
    });
  }

  static bool pay_for(PluginCall& call, Batch& batch, std::size_t bytes) {
    if (bytes > kMostPluginMemory || batch.memory_bytes_ + bytes > kMostPluginMemory) {
      call.fault(format("more than %zu bytes for one batch", kMostPluginMemory));
      return false;
    }
    batch.memory_bytes_ += bytes;
    return true;
  }

  static int split(lokadb_batch* handle, std::uint32_t index, const std::size_t* begins, std::uint32_t count) {
    return guarded<int>(LOKADB_FAILED, [&]() -> int {
      Batch* batch = nullptr;
      PluginCall* call = call_about("split", bit(PluginEntry::Inspect), handle, batch);
      if (call == nullptr || !is_in_range(*call, "split", "statement", index, batch->statements_.size()))
        return LOKADB_FAILED;
      if (begins == nullptr || count == 0 || count > kMostPieces) {
        call->fault(format("called split with %u pieces", count));
        return LOKADB_FAILED;
      }
      return split_checked(*call, *batch, index, std::vector<std::size_t>(begins, begins + count));
    });
  }

  static int split_checked(PluginCall& call, Batch& batch, std::uint32_t index, std::vector<std::size_t> begins) {
    for (const Batch::Split& s : batch.splits_) {
      if (index < s.first || index >= s.first + s.begins.size()) continue;
      if (index == s.first && begins == s.begins) return LOKADB_OK;
      call.fault("split a statement in another way than a plugin before it");
      return LOKADB_FAILED;
    }
    std::string_view text = batch.statements_[index].text;
    bool rises =
        begins.front() == 0 && std::adjacent_find(begins.begin(), begins.end(), std::greater_equal<>()) == begins.end();
    if (batch.statements_[index].form != LOKADB_SIMPLE || !rises ||
        begins.back() >= std::max<std::size_t>(text.size(), 1)) {
      call.fault("called split for what is no simple statement, or with pieces that do not follow each other in it");
      return LOKADB_FAILED;
    }
    if (batch.splits_.empty()) batch.unsplit_ = batch.statements_;
    replace_by_pieces(batch, index, begins);
    batch.splits_.push_back({index, std::move(begins)});
    return LOKADB_OK;
  }

  // Numbers behind the statement go up.
  static void replace_by_pieces(Batch& batch, std::uint32_t index, const std::vector<std::size_t>& begins) {
    auto more = static_cast<std::uint32_t>(begins.size() - 1);
    for (auto& s : batch.splits_)
      if (s.first > index) s.first += more;
    for (auto& f : batch.facts_)
      if (f.statement != LOKADB_WHOLE_BATCH && f.statement > index) f.statement += more;
    std::string_view text = batch.statements_[index].text;
    std::vector<BatchStatement> pieces(begins.size(), batch.statements_[index]);
    for (std::size_t i = 0; i < begins.size(); ++i)
      pieces[i].text = text.substr(begins[i], (i + 1 < begins.size() ? begins[i + 1] : text.size()) - begins[i]);
    auto at = batch.statements_.begin() + index;
    *at = std::move(pieces.front());
    batch.statements_.insert(at + 1, std::make_move_iterator(pieces.begin() + 1),
                             std::make_move_iterator(pieces.end()));
  }

  static int publish(lokadb_batch* handle, const lokadb_fact* given) {
    return guarded<int>(LOKADB_FAILED, [&]() -> int {
      Batch* batch = nullptr;
      PluginCall* call = call_about("publish", kTelling, handle, batch);
      lokadb_fact fact;
      if (call == nullptr || !take(*call, "publish", given, fact) || !is_sound(*call, *batch, fact))
        return LOKADB_FAILED;
      Batch::Fact copy{};
      if (!take_text(*call, "publish", fact.name, copy.name) || !take_text(*call, "publish", fact.value, copy.value) ||
          !pay_for(*call, *batch, copy.name.size() + copy.value.size()))
        return LOKADB_FAILED;
      copy.kind = fact.kind;
      copy.statement = fact.statement;
      copy.about = fact.about;
      copy.type = fact.type;
      copy.reason = fact.reason;
      copy.is_binary = fact.is_binary != 0;
      batch->facts_.push_back(std::move(copy));
      return LOKADB_OK;
    });
  }

  static bool is_sound(PluginCall& call, const Batch& batch, const lokadb_fact& fact) {
    const char* fault = nullptr;
    if (batch.facts_.size() >= kMostFacts)
      fault = "published too many facts";
    else if (fact.kind < LOKADB_FACT_NAMED || fact.kind > LOKADB_FACT_NOT_ELIGIBLE)
      fault = "published a fact of an unknown kind";
    else if (fact.statement != LOKADB_WHOLE_BATCH && fact.statement >= batch.statements_.size())
      fault = "published a fact about a statement that does not exist";
    else if (fact.kind == LOKADB_FACT_KEY_FOUND &&
             (fact.about >= batch.facts_.size() || batch.facts_[fact.about].kind != LOKADB_FACT_KEY_WANTED))
      fault = "published the answer to a fact that asks for nothing";
    else if (fact.kind == LOKADB_FACT_NOT_ELIGIBLE && !is_reason(*call.plugin, fact.reason))
      fault = "published a fact with an unknown reason";
    if (fault != nullptr) call.fault(fault);
    return fault == nullptr;
  }

  static std::uint32_t fact_count(const lokadb_batch* handle) {
    Batch* batch = nullptr;
    if (call_about("fact_count", kLooking, handle, batch) == nullptr) return 0;
    return static_cast<std::uint32_t>(batch->facts_.size());
  }

  static int fact(const lokadb_batch* handle, std::uint32_t index, lokadb_fact* out) {
    Batch* batch = nullptr;
    PluginCall* call = call_about("fact", kLooking, handle, batch);
    if (call == nullptr || !is_in_range(*call, "fact", "fact", index, batch->facts_.size())) return LOKADB_FAILED;
    const Batch::Fact& f = batch->facts_[index];
    lokadb_fact value{};
    value.kind = f.kind;
    value.statement = f.statement;
    value.about = f.about;
    value.name = string_of(f.name);
    value.value = string_of(f.value);
    value.type = f.type;
    value.is_binary = f.is_binary;
    value.reason = f.reason;
    return give(*call, "fact", out, value) ? LOKADB_OK : LOKADB_FAILED;
  }

  // ---------------------------------------------------------------- steps and targets

  static std::uint32_t add_step(lokadb_batch* handle, const lokadb_step* given) {
    return guarded<std::uint32_t>(UINT32_MAX, [&]() -> std::uint32_t {
      Batch* batch = nullptr;
      PluginCall* call = call_about("add_step", kDeciding, handle, batch);
      lokadb_step step;
      if (call == nullptr || !take(*call, "add_step", given, step)) return UINT32_MAX;
      if (step.leg > LOKADB_LEG_DIRECT || step.moment > LOKADB_CHECK || batch->steps_.size() >= kMostSteps ||
          (step.values == nullptr && step.value_count > 0) || step.value_count > UINT16_MAX) {
        call->fault("added a step of an unknown leg or moment, without its values, or too many");
        return UINT32_MAX;
      }
      BatchStep copy;
      copy.plugin = batch->calling_plugin_;
      copy.leg = step.leg;
      copy.moment = step.moment;
      std::size_t bytes = 0;
      if (!take_sql(*call, step.sql, copy.sql) || !take_values(*call, step, copy.values, bytes) ||
          !pay_for(*call, *batch, bytes + copy.sql.size()))
        return UINT32_MAX;
      batch->steps_.push_back(std::move(copy));
      return static_cast<std::uint32_t>(batch->steps_.size() - 1);
    });
  }

  static bool take_sql(PluginCall& call, const lokadb_string& from, std::string& to) {
    if (!take_text(call, "add_step", from, to)) return false;
    if (!to.empty() && to.find('\0') == std::string::npos) return true;
    call.fault("added a step without SQL, or with a zero byte in it");
    return false;
  }

  static bool take_values(PluginCall& call, const lokadb_step& step, std::vector<BatchStep::Value>& to,
                          std::size_t& bytes) {
    to.resize(step.value_count);
    for (std::uint32_t i = 0; i < step.value_count; ++i) {
      const lokadb_step_value& from = step.values[i];
      to[i].is_null = from.is_null != 0;
      to[i].is_binary = from.is_binary != 0;
      to[i].type = from.type;
      if (!take_text(call, "add_step", from.value, to[i].value)) return false;
      bytes += to[i].value.size();
    }
    return true;
  }

  // The step if it has been run, else null; a number that does not exist is a fault.
  static const BatchStep* run_step(const char* function, const lokadb_batch* handle, std::uint32_t index,
                                   PluginCall*& call) {
    Batch* batch = nullptr;
    call = call_about(function, kLooking, handle, batch);
    if (call == nullptr || !is_in_range(*call, function, "step", index, batch->steps_.size())) return nullptr;
    const BatchStep& step = batch->steps_[index];
    return step.is_done && !step.is_dropped ? &step : nullptr;
  }

  static std::uint32_t step_rows(const lokadb_batch* handle, std::uint32_t index) {
    PluginCall* call = nullptr;
    const BatchStep* step = run_step("step_rows", handle, index, call);
    return step != nullptr ? static_cast<std::uint32_t>(step->rows.size()) : UINT32_MAX;
  }

  static int step_cell(const lokadb_batch* handle, std::uint32_t index, std::uint32_t row, std::uint32_t column,
                       lokadb_cell* out) {
    PluginCall* call = nullptr;
    const BatchStep* step = run_step("step_cell", handle, index, call);
    if (step == nullptr) {
      if (call != nullptr) call->fault("asked for the answer to a step that has not been run");
      return LOKADB_FAILED;
    }
    if (!is_in_range(*call, "step_cell", "row", row, step->rows.size()) ||
        !is_in_range(*call, "step_cell", "column", column, step->rows[row].size()))
      return LOKADB_FAILED;
    if (out == nullptr) {
      call->fault("called step_cell with a null pointer");
      return LOKADB_FAILED;
    }
    const auto& [is_null, text] = step->rows[row][column];
    *out = lokadb_cell{static_cast<std::uint8_t>(is_null), is_null ? lokadb_string{} : string_of(text)};
    return LOKADB_OK;
  }

  static std::uint32_t add_target(lokadb_batch* handle, const lokadb_target* given) {
    return guarded<std::uint32_t>(UINT32_MAX, [&]() -> std::uint32_t {
      Batch* batch = nullptr;
      PluginCall* call = call_about("add_target", kDeciding, handle, batch);
      lokadb_target target;
      if (call == nullptr || !take(*call, "add_target", given, target)) return UINT32_MAX;
      BatchTarget copy;
      copy.port = target.port;
      copy.generation = target.generation;
      for (auto [from, to] : {std::pair(&target.name, &copy.name), std::pair(&target.host, &copy.host),
                              std::pair(&target.database, &copy.database), std::pair(&target.user, &copy.user),
                              std::pair(&target.password, &copy.password), std::pair(&target.greeting, &copy.greeting)})
        if (!take_text(*call, "add_target", *from, *to)) return UINT32_MAX;
      if (copy.name.empty() || copy.host.empty() || copy.database.empty() || copy.user.empty() || copy.port == 0 ||
          copy.port > UINT16_MAX) {
        call->fault("added a target without name, host, port, database or user");
        return UINT32_MAX;
      }
      return number_of(*call, *batch, std::move(copy));
    });
  }

  static std::uint32_t number_of(PluginCall& call, Batch& batch, BatchTarget target) {
    for (std::size_t i = 0; i < batch.targets_.size(); ++i)
      if (batch.targets_[i] == target) return static_cast<std::uint32_t>(i);
    if (batch.targets_.size() >= kMostTargets) {
      call.fault("added too many targets");
      return UINT32_MAX;
    }
    batch.targets_.push_back(std::move(target));
    return static_cast<std::uint32_t>(batch.targets_.size() - 1);
  }
};

const lokadb_host* plugin_host() {
  static constexpr lokadb_host kHost = {
      sizeof(lokadb_host),  LOKADB_ABI_MAJOR,      LOKADB_ABI_MINOR,      "lokadb-proxy " PACKAGE_VERSION,
      HostCalls::log,       HostCalls::fail,       HostCalls::option,     HostCalls::batch_info,
      HostCalls::statement, HostCalls::parameter,  HostCalls::split,      HostCalls::allocate,
      HostCalls::publish,   HostCalls::fact_count, HostCalls::fact,       HostCalls::add_step,
      HostCalls::step_rows, HostCalls::step_cell,  HostCalls::add_target, HostCalls::slot,
      HostCalls::setting,   HostCalls::line,
  };
  return &kHost;
}

}  // namespace lokadb
