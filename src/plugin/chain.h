// The plugins that are loaded, in the order of the option `plugins`, and their four moments. Calls come from the
// workers, several at once; loading, reload and the end come while the workers stand still.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plugin/batch.h"

namespace lokadb {

class Plugin;  // one loaded library (plugin/library.h)

class PluginChain {
 public:
  // Loads all, or nothing. `sections` gives the options of a plugin's section of the configuration file.
  // static Result<std::unique_ptr<PluginChain>> load(...): see the implementation
  ~PluginChain();

  std::size_t size() const { return plugins_.size(); }

  // inspect of all, then the first round of decide.
  BatchVerdict begin(Batch& batch);
  // After LOKADB_ASK, when its steps have been run: the next round.
  BatchVerdict go_on(Batch& batch);
  // The last word. Kind LOKADB_NO_OPINION: go on; else a refusal.
  BatchVerdict review(Batch& batch, const BatchVerdict& settled);
  void observe(Batch* batch, std::vector<void*>& slots, const lokadb_event& event);

  std::vector<void*> begin_session(std::string_view database, std::string_view role);
  void end_session(std::vector<void*>& slots);

 private:
  std::vector<std::unique_ptr<Plugin>> plugins_;
};

}  // namespace lokadb
