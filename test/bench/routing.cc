// What a decision of the plugins refs and router costs with warm caches: nanoseconds of processor time from the batch
// as it was read to its verdict, the host's part of the work included. No test: the figures are for people.
// `script/bench --routing` builds and runs it: bench_routing PLUGIN_FOLDER CATALOG.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plugin/chain.h"

using namespace lokadb;

namespace {

// Of this thread, in nanoseconds.
double processor_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The catalog of the tests, with a database for organization 1.
std::string catalog_document(const char* path) {
  std::ifstream file(path);
  auto document = nlohmann::json::parse(file);
  for (auto& organization : document.at("organizations"))
    if (organization.at("org") == "1")
      organization.update({{"host", "127.0.0.1"}, {"port", "5432"}, {"dbname", "org1"}, {"database_id", "d1"}});
  return document.dump();
}

std::unique_ptr<PluginChain> load_plugins(const std::string& folder) {
  PluginSections sections;
  auto add = [&](const std::string& section, const std::string& key, const std::string& value) {
    sections[section].place = "in the bench";
    sections[section].lines.push_back({key, value, "in the bench"});
  };
  add("refs", "library", folder + "/refs/refs.so");
  add("router", "library", folder + "/router/router.so");
  add("router", "control_user", "control");
  add("customers_app", "user", "customers_app");
  add("customers_app", "password", "secret");
  auto chain = PluginChain::load({"refs", "router"}, sections);
  if (!chain) throw std::runtime_error(chain.error().log_text());
  return std::move(*chain);
}

BatchStatement statement(std::string_view text, std::vector<std::string_view> values = {}, std::uint64_t known_as = 0) {
  BatchStatement s;
  s.form = values.empty() && known_as == 0 ? LOKADB_SIMPLE : LOKADB_BIND;
  s.text = text;
  s.known_as = known_as;
  s.is_executed = true;
  for (auto value : values) s.parameters.push_back({0, false, false, value});
  return s;
}

class Bench {
 public:
  Bench(const std::string& folder, const char* catalog) : chain_(load_plugins(folder)) {
    std::string document = catalog_document(catalog);
    chain_->feed_changed(1, "app", document, true);
    slots_ = chain_->begin_session("app", "alice");
  }
  ~Bench() { chain_->end_session(slots_); }

  // `make` gives the statement for the n-th time; its batch is part of the time, its making is not.
  void run(const char* title, std::function<BatchStatement(int)> make) {
    constexpr int kTimes = 50, kRounds = 400;  // the best of many short ones: the least disturbed
    double best = 1e18;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<BatchStatement> statements;
      for (int i = 0; i < kTimes; ++i) statements.push_back(make(round * kTimes + i));
      double start = processor_time();
      for (auto& s : statements) decide({s});
      best = std::min(best, (processor_time() - start) / kTimes);
    }
    std::printf("%8.0f   %s\n", best, title);
  }

 private:
  void decide(std::vector<BatchStatement> statements) {
    Batch batch(context(), std::move(statements));
    BatchVerdict verdict = chain_->begin(batch);
    while (verdict.kind == LOKADB_ASK) {  // settings and keys, the first time
      for (BatchStep& step : batch.steps()) {
        if (step.is_done) continue;
        step.is_done = true;
        if (step.sql.find("find_refs") == std::string::npos) continue;
        std::string key = step.values[1].value;
        key.erase(std::remove_if(key.begin(), key.end(), [](char c) { return c < '0' || c > '9'; }), key.end());
        step.rows = {{{false, key}, {false, "1"}}};
      }
      verdict = chain_->go_on(batch);
    }
    if (verdict.kind != LOKADB_DIRECT) {
      const lokadb_reason* why = chain_->reason(verdict);
      throw std::runtime_error(std::string("not direct: ") + (why != nullptr ? why->id : verdict.message.c_str()));
    }
    verdict = chain_->review(batch, verdict);
  }

  BatchContext context() {
    BatchContext c;
    c.database = "app";
    c.role = "alice";
    c.client_encoding = "UTF8";
    c.slots = &slots_;
    c.setting = [](std::string_view) { return std::string_view(); };
    return c;
  }

  std::unique_ptr<PluginChain> chain_;
  std::vector<void*> slots_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_routing PLUGIN_FOLDER CATALOG\n");
    return 2;
  }
  try {
    Bench bench(argv[1], argv[2]);
    const std::string by_tenant = "SELECT id, title FROM documents WHERE organization_id = $1 AND id > $2 LIMIT 10";
    const std::string by_key = "SELECT id, title FROM documents WHERE id = $1";
    std::vector<std::string> texts;
    for (int i = 0; i < 20000; ++i)
      texts.push_back("SELECT id, title FROM documents WHERE organization_id = 1 AND id > " + std::to_string(i) +
                      " AND title <> 'x" + std::to_string(i) + "' LIMIT 10");
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(1000 + i));
    std::printf("%8s   decision\n", "ns");
    bench.run("prepared, organization known", [&](int n) { return statement(by_tenant, {"1", keys[n % 100]}, 7); });
    bench.run("prepared, key in memory", [&](int n) { return statement(by_key, {keys[n % 100]}, 8); });
    bench.run("unnamed, organization known", [&](int n) { return statement(by_tenant, {"1", keys[n % 100]}); });
    bench.run("simple, new literals", [&](int n) { return statement(texts[n]); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
