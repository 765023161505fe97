#include "pool/result_forms.h"

#include <algorithm>

#include "plugin/batch.h"

namespace lokadb {

namespace {

constexpr char kNoParameters[] = {0, 0};

}  // namespace

RowsMark KnownForms::find(std::string_view body) const {
  std::lock_guard guard(mutex_);
  for (const Map* map : {&young_, &old_})
    if (auto it = map->find(body); it != map->end()) return it->second;
  return kUnknownRows;
}

void KnownForms::keep(std::string_view body, RowsMark form) {
  std::lock_guard guard(mutex_);
  if (auto [it, is_new] = young_.try_emplace(std::string(body), form); !is_new) {
    it->second = form;
    return;
  }
  young_bytes_ += body.size();
  if (young_bytes_ < kLimit) return;
  old_ = std::move(young_);
  young_.clear();
  young_bytes_ = 0;
}

ResultForms::ResultForms(const std::vector<BatchStatement>& statements,
                         const std::vector<BatchReplacement>& replacements, KnownForms& known)
    : statements_(statements), replacements_(replacements), known_(known) {}

void ResultForms::begin() {
  unnamed_sent_ = 0;
  used_.clear();
  unnamed_.clear();
  simple_.clear();
  named_.clear();
  of_query_ = kNoRows;
  has_failed_ = false;
  asked_.clear();
  is_known_ = is_expected_ = true;
}

void ResultForms::unnamed_sent() { ++unnamed_sent_; }

void ResultForms::statement_used(std::uint64_t statement) { used_.push_back({statement, unnamed_sent_}); }

void ResultForms::answered(char type, Bytes body) {
  if (type == 'E') has_failed_ = true;
  bool is_of_query = !statements_.empty() && statements_[0].form == LOKADB_SIMPLE;
  if (!is_of_query) return;  // of portals: what they show is known from their statements
  if (type == 'T') of_query_ = mark_of_rows(body);
  if (type != 'C' && type != 'I') return;
  simple_.push_back(of_query_);
  of_query_ = kNoRows;
}

void ResultForms::described(std::uint64_t statement, RowsMark form, RowsMark rows) {
  if (statement == 0)
    unnamed_.push_back({form, rows});
  else
    named_[statement] = {form, rows};
}

void ResultForms::client_expects(RowsMark rows) {
  if (!used_.empty()) used_.back().expected = rows;
}

ResultForms::Described ResultForms::described_as(const Used& used) const {
  if (used.statement == 0) {
    bool is_there = used.unnamed > 0 && used.unnamed <= unnamed_.size();
    return is_there ? unnamed_[used.unnamed - 1] : Described();
  }
  auto it = named_.find(used.statement);
  return it != named_.end() ? it->second : Described();
}

// Statements stand in the order of their Binds, and then those without; or are those of one Query.
RowsMark ResultForms::form_of(std::size_t statement) const {
  if (statements_[statement].form == LOKADB_SIMPLE) {
    RowsMark rows = statement < simple_.size() ? simple_[statement] : of_query_;
    return form_of_statement(as_bytes({kNoParameters, sizeof kNoParameters}), rows);
  }
  return statement < used_.size() ? described_as(used_[statement]).form : kUnknownRows;
}

std::string ResultForms::parse_body(std::size_t statement) const {
  const BatchStatement& s = statements_[statement];
  auto r = std::find_if(replacements_.begin(), replacements_.end(),
                        [statement](const BatchReplacement& other) { return other.statement == statement; });
  ByteBuffer out;
  out.cstring(r != replacements_.end() ? std::string_view(r->text) : s.text);
  out.u16(static_cast<std::uint16_t>(s.parameters.size()));
  for (const auto& parameter : s.parameters) out.u32(parameter.declared_type);
  return std::string(as_text(out.bytes()));
}

std::vector<std::string> ResultForms::to_ask() {
  asked_.clear();
  for (const Used& used : used_) {
    RowsMark rows = described_as(used).rows;
    if (used.expected != kUnknownRows && rows != kUnknownRows && rows != used.expected) is_expected_ = false;
  }
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    RowsMark form = form_of(i);
    // A Parse that nobody describes shows nothing.
    if (form == kUnknownRows && statements_[i].form != LOKADB_PARSE) is_known_ = false;
    std::string body = parse_body(i);
    if (form == kUnknownRows || known_.find(body) == form) continue;
    bool is_asked =
        std::any_of(asked_.begin(), asked_.end(), [&](const Asked& a) { return a.form == form && a.body == body; });
    if (is_asked) continue;
    bodies.push_back(body);
    asked_.push_back({std::move(body), form});
  }
  return bodies;
}

bool ResultForms::settle(const std::vector<RowsMark>& told) {
  bool is_same = told.size() == asked_.size() && (is_known_ || has_failed_) && is_expected_;
  for (std::size_t i = 0; i < told.size() && i < asked_.size(); ++i) {
    if (told[i] != kUnknownRows) known_.keep(asked_[i].body, told[i]);
    is_same = is_same && told[i] == asked_[i].form;
  }
  return is_same;
}

}  // namespace lokadb
