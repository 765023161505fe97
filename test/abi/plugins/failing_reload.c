/* Refuses every reload that has "bad = 1" in its section. Its verdict shows what it was loaded with: cloud about the
   organization `value`. */
#include <stdio.h>

#include "tiny.h"

static char value[32];

static int load(const lokadb_section *section) {
  lokadb_string bad = host->option(section, text("bad"));
  if (bad.size == 1 && bad.data[0] == '1') return host->fail("F0000", text("bad is 1"));
  lokadb_string given = host->option(section, text("value"));
  snprintf(value, sizeof value, "%.*s", (int)given.size, given.data);
  return LOKADB_OK;
}
static int init(const lokadb_section *section, void **self) {
  (void)self;
  return load(section);
}
static int reload(void *self, const lokadb_section *section) {
  (void)self;
  return load(section);
}
static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  verdict->kind = LOKADB_CLOUD;
  verdict->organization = text(value);
  return LOKADB_OK;
}
static const lokadb_option options[] = {{"bad", "0", "1: a reload fails."}, {"value", "none", "Shown."}};
static const lokadb_plugin plugin = {TINY_HEAD("failing_reload"),
                                     .options = options,
                                     .option_count = 2,
                                     .init = init,
                                     .reload = reload,
                                     .decide = decide};
TINY_ENTRY(plugin)
