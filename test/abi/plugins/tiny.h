/* What the plugins of this folder share: each is correct but for one thing, which its first line names. */
#ifndef LOKADB_TEST_TINY_H
#define LOKADB_TEST_TINY_H

#include <string.h>

#include "plugin/lokadb_plugin.h"

static const lokadb_host *host;

static inline lokadb_string text(const char *s) {
  lokadb_string out = {s, strlen(s)};
  return out;
}

#ifdef __cplusplus
#define TINY_C extern "C"
#else
#define TINY_C
#endif

/* The entry function; `table` is a static lokadb_plugin. */
#define TINY_ENTRY(table)                                                                   \
  TINY_C LOKADB_EXPORT const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *given) { \
    host = given;                                                                           \
    return &table;                                                                          \
  }

/* The first fields of a table. */
#define TINY_HEAD(its_name)                                                                           \
  .struct_size = sizeof(lokadb_plugin), .abi_major = LOKADB_ABI_MAJOR, .abi_minor = LOKADB_ABI_MINOR, \
  .name = (its_name), .version = "1"

#endif
