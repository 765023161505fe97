#include "check/runner.h"

#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "plugin/plugin.h"

namespace lokadb::check {

namespace {

std::vector<BatchStatement> statements_of(const Case& c) {
  std::vector<BatchStatement> all;
  for (const Statement& from : c.statements) {
    BatchStatement s;
    s.form = from.form;
    s.text = from.text;
    s.known_as = from.known_as;
    s.is_executed = from.form == LOKADB_SIMPLE || from.form == LOKADB_BIND;
    s.is_described = from.form == LOKADB_PARSE;
    for (const auto& p : from.parameters) s.parameters.push_back({p.type, p.is_null, p.is_binary, p.value});
    all.push_back(std::move(s));
  }
  return all;
}

BatchContext context_of(const Case& c, std::vector<void*>& slots) {
  BatchContext context;
  context.database = c.database;
  context.role = c.role;
  context.client_encoding = c.encoding;
  context.transaction_status = c.status;
  context.ends_in_flush = c.ends_in_flush;
  context.is_whole = c.is_whole;
  context.slots = &slots;
  context.setting = context.own_setting = [&c](std::string_view name) -> std::string_view {
    auto it = c.settings.find(std::string(name));
    return it != c.settings.end() ? std::string_view(it->second) : std::string_view();
  };
  return context;
}

std::string words_of(const PluginChain& chain, const BatchVerdict& verdict) {
  std::string words;
  switch (verdict.kind) {
    case LOKADB_CLOUD:
      words = verdict.organization.empty() ? "cloud" : "cloud " + verdict.organization;
      break;
    case LOKADB_DIRECT:
      words = "direct " + verdict.organization;
      break;
    case LOKADB_REFUSE:
      words = "refuse " + verdict.sqlstate;
      break;
    default:
      return "no opinion";
  }
  const lokadb_reason* reason = chain.reason(verdict);
  return reason != nullptr ? words + " because " + reason->id : words;
}

// Decides, with the case's answers to what is asked for.
BatchVerdict decide(PluginChain& chain, const Case& c, Batch& batch, Outcome& outcome) {
  std::size_t answered = 0;
  BatchVerdict verdict = chain.begin(batch);
  while (verdict.kind == LOKADB_ASK) {
    for (BatchStep& step : batch.steps()) {
      if (step.is_done) continue;
      step.is_done = true;
      if (answered < c.answers.size()) step.rows = c.answers[answered];
      ++answered;
      outcome.trace.push_back(
          format("asked: %s (%zu values, %zu rows)", step.sql.c_str(), step.values.size(), step.rows.size()));
    }
    verdict = chain.go_on(batch);
  }
  if (answered < c.answers.size())
    outcome.faults.push_back(format("asked for %zu steps, but there are %zu answers", answered, c.answers.size()));
  return verdict;
}

void tell(PluginChain& chain, Batch& batch, std::vector<void*>& slots, const BatchVerdict& verdict) {
  lokadb_event event{};
  for (std::uint32_t i = 0; i < batch.statements().size(); ++i) {
    event = {};
    event.kind = LOKADB_STATEMENT_ENDED;
    event.statement = i;
    if (verdict.kind == LOKADB_REFUSE)
      event.sqlstate = {verdict.sqlstate.data(), verdict.sqlstate.size()};
    else
      event.tag = {"SELECT 1", 8};
    chain.observe(&batch, slots, event);
  }
  for (std::uint32_t outcome : {LOKADB_COMMITTED, LOKADB_ROLLED_BACK, LOKADB_UNKNOWN}) {
    event = {};
    event.kind = LOKADB_TRANSACTION_ENDED;
    event.outcome = outcome;
    chain.observe(&batch, slots, event);
  }
  event = {};
  event.kind = LOKADB_PARAMETER_STATUS;
  event.name = {"TimeZone", 8};
  event.value = {"UTC", 3};
  chain.observe(nullptr, slots, event);
}

bool is_as_expected(const std::string& expected, const std::string& verdict) {
  if (expected.empty() || expected == verdict) return true;
  return expected.find(" because ") == std::string::npos && verdict.starts_with(expected + " because ");
}

}  // namespace

Outcome run_case(PluginChain& chain, const Case& c) {
  Outcome outcome;
  std::uint64_t failed_before = chain.figures().front().failed;
  std::vector<void*> slots = chain.begin_session(c.database, c.role);
  {
    Batch batch(context_of(c, slots), statements_of(c));
    BatchVerdict verdict = decide(chain, c, batch, outcome);
    // A gate that turns out stale lets everything begin again.
    batch.start_anew();
    Outcome again;
    verdict = decide(chain, c, batch, again);
    if (verdict.kind != LOKADB_REFUSE)
      if (BatchVerdict last = chain.review(batch, verdict); last.kind == LOKADB_REFUSE) verdict = last;
    outcome.verdict = words_of(chain, verdict);
    if (verdict.kind == LOKADB_REFUSE) outcome.trace.push_back("refused: " + verdict.message);
    tell(chain, batch, slots, verdict);
  }
  chain.end_session(slots);
  if (std::uint64_t failed = chain.figures().front().failed - failed_before; failed > 0)
    outcome.faults.push_back(format("%llu of its calls failed", static_cast<unsigned long long>(failed)));
  if (!is_as_expected(c.expected, outcome.verdict))
    outcome.faults.push_back("expected " + c.expected + ", but it said " + outcome.verdict);
  return outcome;
}

std::string run_together(PluginChain& chain, const std::vector<Case>& cases, int threads) {
  constexpr std::int64_t kTime = 1'000'000;  // microseconds
  std::uint64_t failed_before = chain.figures().front().failed;
  std::int64_t end = now_us() + kTime;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&chain, &cases, t, end] {
      for (auto i = static_cast<std::size_t>(t); now_us() < end; ++i) run_case(chain, cases[i % cases.size()]);
    });
  for (auto& thread : running) thread.join();
  std::uint64_t failed = chain.figures().front().failed - failed_before;
  return failed == 0 ? std::string() : format("%llu calls failed", static_cast<unsigned long long>(failed));
}

}  // namespace lokadb::check
