#include "pool/batch_watch.h"

#include <utility>

#include "plugin/abi.h"
#include "proto/message.h"

namespace lokadb {

void BatchWatch::begin(const BatchEnds& ends) {
  tell();
  ends_ = ends;
  count_ = 0;
}

std::uint32_t BatchWatch::next() {
  std::size_t n = count_++;
  if (n < ends_.executed.size()) return ends_.executed[n];
  n -= ends_.executed.size();
  return ends_.query ? *ends_.query + static_cast<std::uint32_t>(n) : UINT32_MAX;
}

void BatchWatch::note(Ended ended) {
  if (!ended.sqlstate.empty())
    outcome_ = LOKADB_ROLLED_BACK;
  else if (!ended.tag.empty())
    outcome_ = ended.tag == "ROLLBACK" ? LOKADB_ROLLED_BACK : LOKADB_COMMITTED;
  noted_.push_back(std::move(ended));
}

void BatchWatch::failed(std::string_view sqlstate) {
  note({next(), {}, std::string(sqlstate.empty() ? std::string_view("XX000") : sqlstate)});
}

void BatchWatch::answered(Bytes message) {
  auto head = peek_head(message);
  if (!head) return;
  bool is_whole = message.size() >= kHeaderSize + head->body;
  Bytes body = is_whole ? message.subspan(kHeaderSize, head->body) : Bytes{};
  switch (head->type) {
    case 'C': {
      MessageReader reader(body);
      return completed(reader.cstring());
    }
    case 'I':
    case 's':
      return completed({});
    case 'E': {
      auto fields = parse_error_fields(body);
      return failed(fields ? fields->code : std::string_view());
    }
    default:
      return;
  }
}

void BatchWatch::forget(bool has_failed) {
  noted_.clear();
  count_ = 0;
  outcome_ = has_failed ? LOKADB_ROLLED_BACK : LOKADB_COMMITTED;
}

void BatchWatch::tell() {
  for (const Ended& ended : std::exchange(noted_, {})) {
    lokadb_event event{};
    event.kind = LOKADB_STATEMENT_ENDED;
    event.statement = ended.statement;
    event.tag = string_of(ended.tag);
    event.sqlstate = string_of(ended.sqlstate);
    chain_.observe(nullptr, slots_, event);
  }
}

void BatchWatch::ready(char status) {
  tell();
  if (status != 'I') return;
  lokadb_event event{};
  event.kind = LOKADB_TRANSACTION_ENDED;
  event.outcome = std::exchange(outcome_, LOKADB_COMMITTED);
  chain_.observe(nullptr, slots_, event);
}

}  // namespace lokadb
