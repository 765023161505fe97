// lokadb_host: steps, their answers, and targets.
#include <algorithm>
#include <utility>

#include "plugin/host_functions.h"

namespace lokadb {

std::uint32_t HostCalls::add_step(lokadb_batch* handle, const lokadb_step* given) {
  return guarded<std::uint32_t>(UINT32_MAX, [&]() -> std::uint32_t {
    Batch* batch = nullptr;
    PluginCall* call = call_about("add_step", kDeciding, handle, batch);
    lokadb_step step;
    if (call == nullptr || !take(*call, "add_step", given, step)) return UINT32_MAX;
    if (step.leg > LOKADB_LEG_DIRECT || step.moment > LOKADB_CHECK || batch->steps_.size() >= kMostSteps ||
        (step.values == nullptr && step.value_count > 0) || step.value_count > UINT16_MAX ||
        step.statement >= std::max<std::size_t>(batch->statements_.size(), 1)) {
      call->fault("added a step of an unknown leg, moment or statement, without its values, or too many");
      return UINT32_MAX;
    }
    BatchStep copy;
    copy.plugin = batch->calling_plugin_;
    copy.leg = step.leg;
    copy.moment = step.moment;
    copy.statement = step.statement;
    std::size_t bytes = 0;
    if (!take_sql(*call, step.sql, copy.sql) ||
        !take_values(*call, "add_step", step.values, step.value_count, copy.values, bytes) ||
        !pay_for(*call, *batch, bytes + copy.sql.size()))
      return UINT32_MAX;
    batch->steps_.push_back(std::move(copy));
    return static_cast<std::uint32_t>(batch->steps_.size() - 1);
  });
}

bool HostCalls::take_sql(PluginCall& call, const lokadb_string& from, std::string& to) {
  if (!take_text(call, "add_step", from, to)) return false;
  if (!to.empty() && to.find('\0') == std::string::npos) return true;
  call.fault("added a step without SQL, or with a zero byte in it");
  return false;
}

bool HostCalls::take_values(PluginCall& call, const char* function, const lokadb_step_value* values,
                            std::uint32_t count, std::vector<BatchStep::Value>& to, std::size_t& bytes) {
  to.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const lokadb_step_value& from = values[i];
    to[i].is_null = from.is_null != 0;
    to[i].is_binary = from.is_binary != 0;
    to[i].type = from.type;
    if (!take_text(call, function, from.value, to[i].value)) return false;
    bytes += to[i].value.size();
  }
  return true;
}

// Whether they follow each other in a text of so many bytes.
static bool are_edits(const lokadb_edit* edits, std::uint32_t count, std::size_t size) {
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (edits[i].at < at || edits[i].at > size || edits[i].removed > size - edits[i].at) return false;
    at = edits[i].at + edits[i].removed;
  }
  return true;
}

int HostCalls::replace(lokadb_batch* handle, const lokadb_replacement* given) {
  return guarded<int>(LOKADB_FAILED, [&]() -> int {
    Batch* batch = nullptr;
    PluginCall* call = call_about("replace", kDeciding, handle, batch);
    lokadb_replacement r;
    if (call == nullptr || !take(*call, "replace", given, r) ||
        !is_in_range(*call, "replace", "statement", r.statement, batch->statements_.size()))
      return LOKADB_FAILED;
    const BatchStatement& statement = batch->statements_[r.statement];
    bool is_bind = statement.form == LOKADB_BIND;
    bool is_there = std::any_of(batch->replacements_.begin(), batch->replacements_.end(),
                                [&](const BatchReplacement& other) { return other.statement == r.statement; });
    bool may_have_values = is_bind && r.with_parse == 0;
    bool has_text = statement.form != LOKADB_OTHER && statement.form != LOKADB_FUNCTION_CALL;
    if (!has_text || is_there || (r.value_count > 0 && !may_have_values) ||
        (r.has_two != 0 && (statement.form != LOKADB_SIMPLE || batch->statements_.size() != 1)) ||
        (r.values == nullptr && r.value_count > 0) || (r.edits == nullptr && r.edit_count > 0) ||
        r.value_count + statement.parameters.size() > UINT16_MAX) {
      call->fault("replaced what is no statement, a statement twice, or with values it cannot have");
      return LOKADB_FAILED;
    }
    if (!are_edits(r.edits, r.edit_count, statement.text.size())) {
      call->fault("replaced a statement with edits that do not follow each other in it");
      return LOKADB_FAILED;
    }
    BatchReplacement copy;
    copy.plugin = batch->calling_plugin_;
    copy.statement = r.statement;
    copy.with_parse = r.with_parse != 0 || statement.form == LOKADB_PARSE;
    copy.has_two = r.has_two != 0;
    copy.edits.assign(r.edits, r.edits + r.edit_count);
    std::size_t bytes = copy.edits.size() * sizeof(lokadb_edit);
    if (!take_text(*call, "replace", r.text, copy.text) ||
        !take_values(*call, "replace", r.values, r.value_count, copy.values, bytes) ||
        !pay_for(*call, *batch, bytes + copy.text.size()))
      return LOKADB_FAILED;
    if (copy.text.empty() || copy.text.find('\0') != std::string::npos) {
      call->fault("replaced a statement by none, or by one with a zero byte");
      return LOKADB_FAILED;
    }
    batch->replacements_.push_back(std::move(copy));
    return LOKADB_OK;
  });
}

const BatchStep* HostCalls::run_step(const char* function, const lokadb_batch* handle, std::uint32_t index,
                                     PluginCall*& call) {
  Batch* batch = nullptr;
  call = call_about(function, kLooking, handle, batch);
  if (call == nullptr || !is_in_range(*call, function, "step", index, batch->steps_.size())) return nullptr;
  const BatchStep& step = batch->steps_[index];
  return step.is_done && !step.is_dropped ? &step : nullptr;
}

std::uint32_t HostCalls::step_rows(const lokadb_batch* handle, std::uint32_t index) {
  PluginCall* call = nullptr;
  const BatchStep* step = run_step("step_rows", handle, index, call);
  return step != nullptr ? static_cast<std::uint32_t>(step->rows.size()) : UINT32_MAX;
}

int HostCalls::step_cell(const lokadb_batch* handle, std::uint32_t index, std::uint32_t row, std::uint32_t column,
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

std::uint32_t HostCalls::add_target(lokadb_batch* handle, const lokadb_target* given) {
  return guarded<std::uint32_t>(UINT32_MAX, [&]() -> std::uint32_t {
    Batch* batch = nullptr;
    PluginCall* call = call_about("add_target", kDeciding, handle, batch);
    lokadb_target target;
    if (call == nullptr || !take(*call, "add_target", given, target)) return UINT32_MAX;
    TargetTable* kept = call->subject.targets;
    bool has_number = target.known_as != 0 && kept != nullptr;
    BatchTargetPtr made = has_number ? kept->find(target.known_as) : nullptr;
    if (made == nullptr) {
      made = take_target(*call, target);
      if (made == nullptr) return UINT32_MAX;
      if (has_number) kept->keep(target.known_as, made);
    }
    return number_of(*call, *batch, std::move(made));
  });
}

BatchTargetPtr HostCalls::take_target(PluginCall& call, const lokadb_target& target) {
  BatchTarget copy;
  copy.port = target.port;
  copy.generation = target.generation;
  for (auto [from, to] : {std::pair(&target.name, &copy.name), std::pair(&target.host, &copy.host),
                          std::pair(&target.database, &copy.database), std::pair(&target.user, &copy.user),
                          std::pair(&target.password, &copy.password), std::pair(&target.greeting, &copy.greeting)})
    if (!take_text(call, "add_target", *from, *to)) return nullptr;
  for (const std::string* text : {&copy.host, &copy.database, &copy.user, &copy.password, &copy.greeting})
    if (text->find('\0') != std::string::npos) {  // it would end the text in the middle of a message
      call.fault("added a target with a zero byte in one of its texts");
      return nullptr;
    }
  if (copy.name.empty() || copy.host.empty() || copy.database.empty() || copy.user.empty() || copy.port == 0 ||
      copy.port > UINT16_MAX) {
    call.fault("added a target without name, host, port, database or user");
    return nullptr;
  }
  return std::make_shared<const NamedTarget>(std::move(copy));
}

std::uint32_t HostCalls::number_of(PluginCall& call, Batch& batch, BatchTargetPtr target) {
  for (std::size_t i = 0; i < batch.targets_.size(); ++i)
    if (batch.targets_[i] == target || *batch.targets_[i] == *target) return static_cast<std::uint32_t>(i);
  if (batch.targets_.size() >= kMostTargets) {
    call.fault("added too many targets");
    return UINT32_MAX;
  }
  batch.targets_.push_back(std::move(target));
  return static_cast<std::uint32_t>(batch.targets_.size() - 1);
}

}  // namespace lokadb
