/* A plugin to begin with: refuses statements that match a pattern of its list.

       [pgbouncer]
       plugins = example

       [example]
       refuse = truncate*, drop table*, *pg_sleep*

   README.md walks through it, doc/plugin-api.md is the manual of the interface. */
#define _GNU_SOURCE /* FNM_CASEFOLD */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lokadb_plugin.h"

static const lokadb_option options[] = {
    {"refuse", "", "Patterns of statements that are refused, separated by commas; * is any text, case does not count."},
};

/* Shown and counted by the console. The enum numbers them as they stand in the table. */
enum { LISTED, NOT_WHOLE };
static const lokadb_reason reasons[] = {
    {"listed", "The statement matches a pattern of the option refuse; take the pattern out if it should run."},
    {"not-whole", "The statement is longer than what the proxy gathers, so it could not be searched; make it shorter."},
};

/* What *self is for all calls. Nothing in it changes but in reload, when no other call is under way: so no locks. */
struct example {
  char *list;      /* the option, with zero bytes in place of the commas */
  char **patterns; /* into list */
  size_t count;
};

static const lokadb_host *host;

static lokadb_string text(const char *s) {
  lokadb_string out = {s, strlen(s)};
  return out;
}

/* Reads the section into an example of its own, so that a reload that fails leaves the old one as it is. */
static int read_section(const lokadb_section *section, struct example *out) {
  lokadb_string refuse = host->option(section, text("refuse"));
  char *rest, *pattern;
  out->count = 0;
  out->list = strndup(refuse.data, refuse.size); /* borrowed for this call, so it is copied */
  out->patterns = calloc(refuse.size + 1, sizeof *out->patterns);
  if (out->list == NULL || out->patterns == NULL) return host->fail("53200", text("out of memory"));
  for (pattern = strtok_r(out->list, ",", &rest); pattern != NULL; pattern = strtok_r(NULL, ",", &rest)) {
    size_t size;
    pattern += strspn(pattern, " \t");
    for (size = strlen(pattern); size > 0 && strchr(" \t", pattern[size - 1]) != NULL;) pattern[--size] = '\0';
    if (size == 0) return host->fail("F0000", text("option refuse of [example] has an empty pattern"));
    out->patterns[out->count++] = pattern;
  }
  return LOKADB_OK;
}

static void release(struct example *e) {
  free(e->list);
  free(e->patterns);
}

static int reload(void *self, const lokadb_section *section) {
  struct example next, *e = self;
  if (read_section(section, &next) != LOKADB_OK) {
    release(&next);
    return LOKADB_FAILED;
  }
  release(e);
  *e = next;
  return LOKADB_OK;
}

static void destroy(void *self) {
  release(self);
  free(self);
}

static int init(const lokadb_section *section, void **self) {
  struct example *e = calloc(1, sizeof *e);
  if (e == NULL) return host->fail("53200", text("out of memory"));
  *self = e;
  if (reload(e, section) == LOKADB_OK) return LOKADB_OK;
  destroy(e); /* the host does not, after an init that failed */
  return LOKADB_FAILED;
}

static int matches(lokadb_batch *batch, const struct example *e, lokadb_string sql) {
  char *copy;
  while (sql.size > 0 && strchr(" \t\r\n", *sql.data) != NULL) ++sql.data, --sql.size;
  copy = host->allocate(batch, sql.size + 1); /* strings of the host do not end in a zero byte, fnmatch wants one */
  if (copy == NULL) return 0;                 /* too much for one batch: the host fails this call */
  memcpy(copy, sql.data, sql.size);
  copy[sql.size] = '\0';
  for (size_t i = 0; i < e->count; ++i)
    if (fnmatch(e->patterns[i], copy, FNM_CASEFOLD) == 0) return 1;
  return 0;
}

static int refuse(lokadb_verdict *verdict, uint32_t reason, const char *message, const char *hint) {
  verdict->kind = LOKADB_REFUSE;
  verdict->reason = reason;
  memcpy(verdict->sqlstate, "42501", 6); /* insufficient_privilege */
  verdict->message = text(message);
  verdict->hint = text(hint);
  return LOKADB_OK;
}

/* The first moment of a batch: it is here as the client sent it, and may be refused. */
static int inspect(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  const struct example *e = self;
  lokadb_batch_info info = {.struct_size = sizeof info};
  if (e->count == 0) return LOKADB_OK;
  host->batch_info(batch, &info);
  for (uint32_t i = 0; i < info.statement_count; ++i) {
    lokadb_statement statement = {.struct_size = sizeof statement};
    if (host->statement(batch, i, &statement) != LOKADB_OK) return LOKADB_FAILED;
    if (matches(batch, e, statement.text))
      return refuse(verdict, LISTED, "this statement is not allowed here", "The option refuse of [example] lists it.");
  }
  if (!info.is_whole)
    return refuse(verdict, NOT_WHOLE, "this statement is too long to be searched", "Make it shorter.");
  return LOKADB_OK;
}

static const lokadb_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = LOKADB_ABI_MAJOR,
    .abi_minor = LOKADB_ABI_MINOR,
    .name = "example",
    .version = "1.0",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .reasons = reasons,
    .reason_count = sizeof reasons / sizeof *reasons,
    .init = init,
    .reload = reload,
    .destroy = destroy,
    .inspect = inspect,
};

LOKADB_EXPORT const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *given) {
  host = given;
  return &plugin;
}
