// What the template cache costs: nanoseconds of processor time per statement, for texts that it has and for those that
// it must parse. No test: the figures are for people. `script/bench --sql` builds and runs it.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "sql/parse.h"
#include "sql/rewrite.h"
#include "sql/template_cache.h"

using namespace lokadb::sql;

namespace {

const std::vector<std::string> kTexts = {
    "SELECT id, title, body FROM documents WHERE organization_id = 42 AND id = 4711",
    "SELECT d.id, d.title, count(p.id) FROM documents d JOIN pages p ON p.document_id = d.id AND p.organization_id = "
    "d.organization_id WHERE d.organization_id = $1 AND d.state IN ('open', 'new') GROUP BY d.id, d.title ORDER BY "
    "d.title LIMIT 20",
    "INSERT INTO documents (id, organization_id, title, body, created_at) VALUES (1, 42, 'a title', 'some text that is "
    "a "
    "little longer', now()), (2, 42, 'another', 'and one more', now()) RETURNING id",
    "UPDATE documents SET title = 'x', updated_at = now() WHERE id = 4711 AND organization_id = 42",
    "/* controller=documents,action=show */ SELECT \"documents\".* FROM \"documents\" WHERE \"documents\".\"id\" = $1 "
    "LIMIT $2",
};

// Of this thread, in nanoseconds.
double processor_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Best of many short rounds, which the other work of the machine disturbs least.
template <class Function>
double nanoseconds(int times, Function f) {
  double best = 1e18;
  for (int round = 0; round < 100; ++round) {
    double start = processor_time();
    for (int i = 0; i < times; ++i) f();
    double took = processor_time() - start;
    best = std::min(best, took / times);
  }
  return best;
}

}  // namespace

int main() {
  std::printf("%6s %6s %8s %8s %8s %8s %8s   statement\n", "bytes", "kept", "lift", "hit", "parse", "miss", "rewrite");
  for (const std::string& text : kTexts) {
    TemplateCache cache(TemplateCache::Limits{});
    TemplateCache none({.bytes = 0, .text_bytes = 1u << 20});
    Lifted lifted;
    auto kept = cache.get(text, true, lifted);
    const Statement& facts = kept->parsed.statements[0];
    double lift_time = nanoseconds(200, [&] { lift(text, true, lifted); });
    double hit = nanoseconds(200, [&] { (void)cache.get(text, true, lifted); });
    double parse = nanoseconds(5, [&] { (void)parse_sql(text); });
    double miss = nanoseconds(5, [&] { (void)none.get(text, true, lifted); });
    double rewrite = nanoseconds(5, [&] { (void)rename_relation(text, facts, 0, "public", "documents__local"); });
    std::printf("%6zu %6zu %8.0f %8.0f %8.0f %8.0f %8.0f   %.50s\n", text.size(), kept->bytes, lift_time, hit, parse,
                miss, rewrite, text.c_str());
  }
  return 0;
}
