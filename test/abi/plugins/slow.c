/* Takes 60 milliseconds to decide. */
#include <time.h>

#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch, (void)verdict;
  struct timespec pause = {0, 60 * 1000 * 1000};
  nanosleep(&pause, NULL);
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("slow"), .decide = decide};
TINY_ENTRY(plugin)
