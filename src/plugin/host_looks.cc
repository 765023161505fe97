// lokadb_host: what a plugin may see of a batch.
#include "plugin/host_functions.h"

namespace lokadb {

void HostCalls::batch_info(const lokadb_batch* handle, lokadb_batch_info* out) {
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
  info.servers = context.servers;
  give(*call, "batch_info", out, info);
}

int HostCalls::statement(const lokadb_batch* handle, std::uint32_t index, lokadb_statement* out) {
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
  value.has_named_portal = s.has_named_portal;
  value.is_kept = s.is_kept;
  value.is_unread = s.is_unread;
  value.is_standard_strings = batch->context_.has_standard_strings;
  return give(*call, "statement", out, value) ? LOKADB_OK : LOKADB_FAILED;
}

int HostCalls::parameter(const lokadb_batch* handle, std::uint32_t statement, std::uint32_t index,
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

void* HostCalls::slot(const lokadb_batch* handle) {
  Batch* batch = nullptr;
  if (call_about("slot", kLooking, handle, batch) == nullptr) return nullptr;
  const std::vector<void*>* slots = batch->context_.slots;
  return slots != nullptr && batch->calling_plugin_ < slots->size() ? (*slots)[batch->calling_plugin_] : nullptr;
}

lokadb_string HostCalls::setting(const lokadb_batch* handle, lokadb_string name) {
  return guarded<lokadb_string>({}, [&]() -> lokadb_string {
    Batch* batch = nullptr;
    PluginCall* call = call_about("setting", kLooking, handle, batch);
    std::string wanted;
    if (call == nullptr || !take_text(*call, "setting", name, wanted) || !batch->context_.setting) return {};
    return string_of(batch->context_.setting(wanted));
  });
}

lokadb_string HostCalls::own_setting(const lokadb_batch* handle, lokadb_string name) {
  return guarded<lokadb_string>({}, [&]() -> lokadb_string {
    Batch* batch = nullptr;
    PluginCall* call = call_about("own_setting", kLooking, handle, batch);
    std::string wanted;
    if (call == nullptr || !take_text(*call, "own_setting", name, wanted) || !batch->context_.own_setting) return {};
    return string_of(batch->context_.own_setting(wanted));
  });
}

}  // namespace lokadb
