/* Sound. Counts on what it is promised: that what it was lent stays where it is for the call, and that nothing else is
   under way during a reload. */
#include <time.h>

#include "tiny.h"

static volatile int is_busy;

static int inspect(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)verdict;
  lokadb_fact fact = {.struct_size = sizeof fact, .kind = LOKADB_FACT_NAMED, .value = text("first")};
  if (host->publish(batch, &fact) != LOKADB_OK || host->fact(batch, 0, &fact) != LOKADB_OK) return LOKADB_FAILED;
  lokadb_string lent = fact.value;
  for (int i = 0; i < 100; ++i)
    if (host->publish(batch, &fact) != LOKADB_OK) return LOKADB_FAILED;
  if (host->fact(batch, 0, &fact) != LOKADB_OK) return LOKADB_FAILED;
  return fact.value.data == lent.data ? LOKADB_OK : host->fail(NULL, text("what it was lent has moved"));
}

static int be_busy(void) {
  struct timespec pause = {0, 20 * 1000 * 1000};
  if (is_busy) return host->fail(NULL, text("something else is under way"));
  is_busy = 1;
  nanosleep(&pause, NULL);
  is_busy = 0;
  return LOKADB_OK;
}

static int reload(void *self, const lokadb_section *section) {
  (void)self, (void)section;
  return be_busy();
}
static int feed(void *self, lokadb_string database, lokadb_feed *out) {
  (void)self, (void)database, (void)out;
  return be_busy();
}
static void feed_changed(void *self, lokadb_string database, lokadb_string value, int is_fresh) {
  (void)self, (void)database, (void)value, (void)is_fresh;
  be_busy();
}
static const lokadb_show shows[] = {{"steady", "name t"}};
static int show(void *self, uint32_t which, lokadb_rows *rows) {
  (void)self, (void)which, (void)rows;
  return be_busy();
}
static const lokadb_plugin plugin = {TINY_HEAD("steady"),          .inspect = inspect, .reload = reload, .feed = feed,
                                     .feed_changed = feed_changed, .shows = shows,     .show_count = 1,  .show = show};
TINY_ENTRY(plugin)
