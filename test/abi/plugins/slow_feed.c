/* Takes its time with each answer of its feed, and says when it has taken it in. */
#include <time.h>

#include "tiny.h"

static int feed(void *self, lokadb_string database, lokadb_feed *out) {
  (void)self, (void)database;
  out->user = text("postgres");
  out->query = text("select 'news'");
  return LOKADB_OK;
}
static void feed_changed(void *self, lokadb_string database, lokadb_string value, int is_fresh) {
  (void)self, (void)database, (void)value;
  struct timespec pause = {0, 300 * 1000 * 1000};
  nanosleep(&pause, NULL);
  host->log(2, text(is_fresh ? "news taken in" : "lost"));
}
static const lokadb_plugin plugin = {TINY_HEAD("slow_feed"), .feed = feed, .feed_changed = feed_changed};
TINY_ENTRY(plugin)
