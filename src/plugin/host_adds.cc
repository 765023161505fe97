// lokadb_host: memory, splits and facts of a batch.
#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "plugin/host_functions.h"

namespace lokadb {

void* HostCalls::allocate(lokadb_batch* handle, std::size_t size) {
  return guarded<void*>(nullptr, [&]() -> void* {
    Batch* batch = nullptr;
    PluginCall* call = call_about("allocate", kLooking, handle, batch);
    if (call == nullptr || !pay_for(*call, *batch, size)) return nullptr;
    batch->memory_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(size, 1)));
    return batch->memory_.back().get();
  });
}

bool HostCalls::pay_for(PluginCall& call, Batch& batch, std::size_t bytes) {
  if (bytes > kMostPluginMemory || batch.memory_bytes_ + bytes > kMostPluginMemory) {
    call.fault(format("more than %zu bytes for one batch", kMostPluginMemory));
    return false;
  }
  batch.memory_bytes_ += bytes;
  return true;
}

int HostCalls::split(lokadb_batch* handle, std::uint32_t index, const std::size_t* begins, std::uint32_t count) {
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

int HostCalls::split_checked(PluginCall& call, Batch& batch, std::uint32_t index, std::vector<std::size_t> begins) {
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

void HostCalls::replace_by_pieces(Batch& batch, std::uint32_t index, const std::vector<std::size_t>& begins) {
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
  batch.statements_.insert(at + 1, std::make_move_iterator(pieces.begin() + 1), std::make_move_iterator(pieces.end()));
}

int HostCalls::publish(lokadb_batch* handle, const lokadb_fact* given) {
  return guarded<int>(LOKADB_FAILED, [&]() -> int {
    Batch* batch = nullptr;
    PluginCall* call = call_about("publish", kTelling, handle, batch);
    lokadb_fact fact;
    if (call == nullptr || !take(*call, "publish", given, fact) || !is_sound(*call, *batch, fact)) return LOKADB_FAILED;
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

bool HostCalls::is_sound(PluginCall& call, const Batch& batch, const lokadb_fact& fact) {
  const char* fault = nullptr;
  if (batch.facts_.size() >= kMostFacts)
    fault = "published too many facts";
  else if (fact.kind < LOKADB_FACT_NAMED || fact.kind > LOKADB_FACT_FOLLOWED)
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

std::uint32_t HostCalls::fact_count(const lokadb_batch* handle) {
  Batch* batch = nullptr;
  if (call_about("fact_count", kLooking, handle, batch) == nullptr) return 0;
  return static_cast<std::uint32_t>(batch->facts_.size());
}

int HostCalls::fact(const lokadb_batch* handle, std::uint32_t index, lokadb_fact* out) {
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

}  // namespace lokadb
