/* Its entry function says why it cannot work here. */
#include "tiny.h"

LOKADB_EXPORT const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *given) {
  host = given;
  host->fail(NULL, text("the moon is in the wrong place"));
  return NULL;
}
