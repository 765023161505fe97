// Throws, in the call that the option `in` names.
#include <stdexcept>
#include <string>

#include "tiny.h"

namespace {

std::string g_in;

void throw_in(const char* call) {
  if (g_in == call) throw std::runtime_error("thrown on purpose");
  if (g_in == std::string(call) + "-int") throw 1;
}

int init(const lokadb_section* section, void**) {
  lokadb_string in = host->option(section, text("in"));
  g_in.assign(in.data, in.size);
  throw_in("init");
  return LOKADB_OK;
}
void* session_begin(void*, lokadb_string, lokadb_string) {
  throw_in("session_begin");
  return &g_in;
}
void session_end(void*, void*) { throw_in("session_end"); }
int inspect(void*, lokadb_batch*, lokadb_verdict*) { return throw_in("inspect"), LOKADB_OK; }
int decide(void*, lokadb_batch*, lokadb_verdict*) { return throw_in("decide"), LOKADB_OK; }
int review(void*, lokadb_batch*, const lokadb_verdict*, lokadb_verdict*) { return throw_in("review"), LOKADB_OK; }
void observe(void*, lokadb_batch*, void*, const lokadb_event*) { throw_in("observe"); }

const lokadb_option kOptions[] = {{"in", "decide", "The call that throws; with -int: a number."}};

lokadb_plugin table() {
  lokadb_plugin p = {};
  p.struct_size = sizeof p;
  p.abi_major = LOKADB_ABI_MAJOR;
  p.abi_minor = LOKADB_ABI_MINOR;
  p.name = "throwing";
  p.version = "1";
  p.options = kOptions;
  p.option_count = 1;
  p.init = init;
  p.session_begin = session_begin;
  p.session_end = session_end;
  p.inspect = inspect;
  p.decide = decide;
  p.review = review;
  p.observe = observe;
  return p;
}
const lokadb_plugin g_plugin = table();

}  // namespace

TINY_ENTRY(g_plugin)
