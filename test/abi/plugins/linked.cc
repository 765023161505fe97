// Correct, and linked with libplugin.a: parts of the proxy's own sources, compiled once more for shared objects. Its
// verdict is cloud about the option `word`, in lower case.
#include "base/text.h"
#include "tiny.h"

namespace {

std::string g_word;

int init(const lokadb_section* section, void**) {
  lokadb_string word = host->option(section, text("word"));
  g_word = lokadb::lower(std::string_view(word.data, word.size));
  return LOKADB_OK;
}

int decide(void*, lokadb_batch*, lokadb_verdict* verdict) {
  verdict->kind = LOKADB_CLOUD;
  verdict->organization = {g_word.data(), g_word.size()};
  return LOKADB_OK;
}

const lokadb_option kOptions[] = {{"word", "NONE", "Any word."}};

lokadb_plugin table() {
  lokadb_plugin p = {};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "linked";
  p.version = "1";
  p.options = kOptions;
  p.option_count = 1;
  p.init = init;
  p.decide = decide;
  return p;
}
const lokadb_plugin g_plugin = table();

}  // namespace

TINY_ENTRY(g_plugin)
