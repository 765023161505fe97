/* Refuses with a message of 20 MB that has a zero byte in it. */
#include "tiny.h"

static char message[20 * 1000 * 1000];

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  memset(message, 'm', sizeof message);
  message[100] = '\0';
  verdict->kind = LOKADB_REFUSE;
  memcpy(verdict->sqlstate, "42501", 6);
  verdict->message.data = message;
  verdict->message.size = sizeof message;
  return LOKADB_OK;
}
static const lokadb_plugin plugin = {TINY_HEAD("huge_message"), .decide = decide};
TINY_ENTRY(plugin)
