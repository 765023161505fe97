// SHOW PLUGINS; SHOW LOKADB_ROUTES and LOKADB_REASONS: what plugins decided, and all that they may say.
#include "admin/show.h"
#include "plugin/chain.h"
#include "plugin/plugin.h"
#include "pool/pooler.h"

namespace lokadb {

namespace {

// "id=count, id=count": the reasons that verdicts have had so far.
std::string reasons_text(const PluginFigures& figures) {
  std::string all;
  for (const auto& reason : figures.reasons) {
    if (reason.count == 0) continue;
    all.append(all.empty() ? "" : ", ").append(reason.id).append("=").append(std::to_string(reason.count));
  }
  return all;
}

}  // namespace

void show_plugins(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures()) {
    auto& row = table.add_row();
    row.text(f.name).text(f.version);
    row.text(std::to_string(f.abi_major) + "." + std::to_string(f.abi_minor)).text(f.library).number(f.is_required);
    for (std::uint64_t n : {f.calls, f.refused, f.failed, f.slow, f.total_us, f.max_us})
      row.number(static_cast<std::int64_t>(n));
    row.text(reasons_text(f));
  }
}

void show_routes(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures())
    for (const auto& reason : f.reasons)
      if (reason.count > 0)
        table.add_row().text(f.name).text(reason.id).number(static_cast<std::int64_t>(reason.count)).text(reason.text);
}

void show_reasons(Pooler& pooler, ResultTable& table) {
  if (pooler.plugins == nullptr) return;
  for (const PluginFigures& f : pooler.plugins->figures())
    for (const auto& reason : f.reasons) table.add_row().text(f.name).text(reason.id).text(reason.text);
}

}  // namespace lokadb
