/* Says direct, to organization 7. */
#include "tiny.h"

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self;
  lokadb_target target = {.struct_size = sizeof target,
                          .name = text("7"),
                          .host = text("127.0.0.1"),
                          .port = 5432,
                          .database = text("org7"),
                          .user = text("customers_app")};
  verdict->kind = LOKADB_DIRECT;
  verdict->reason = 0;
  verdict->organization = text("7");
  verdict->target = host->add_target(batch, &target);
  return LOKADB_OK;
}
static const lokadb_reason reasons[] = {{"always-7", "Everything belongs to organization 7."}};
static const lokadb_plugin plugin = {TINY_HEAD("organization_one"), .reasons = reasons, .reason_count = 1,
                                     .decide = decide};
TINY_ENTRY(plugin)
