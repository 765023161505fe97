/* Correct, and built against the frozen header of version 1.0: what was built then must be taken for ever. It uses
   every function of the host and implements every function of a plugin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lokadb_plugin-1.0.h"

struct settings {
  char setting[64];
  unsigned organizations;
};

struct session {
  unsigned statements;
};

enum { NO_ORGANIZATION, KNOWN, FOREIGN };
static const lokadb_reason reasons[] = {
    {"no-organization", "Nothing names the organization; set the setting."},
    {"known", "The setting names the organization, and it has a place."},
    {"foreign", "The organization is another's; name your own."},
};
static const lokadb_option options[] = {{"setting", "app.organization", "Setting that names the organization."}};
static const lokadb_option place_options[] = {{"user", NULL, "Role for all places."}};
static const lokadb_more_section sections[] = {{"places", place_options, 1, 1}};

static const lokadb_host *host;

static lokadb_string text(const char *s) {
  lokadb_string out = {s, strlen(s)};
  return out;
}

static int read_section(struct settings *to, const lokadb_section *section) {
  lokadb_string setting = host->option(section, text("setting")), user = host->option(section, text("places.user"));
  lokadb_string name, value;
  if (user.data == NULL) return host->fail("F0000", text("places has no user"));
  if (setting.size >= sizeof to->setting) return host->fail("F0000", text("setting is too long"));
  memcpy(to->setting, setting.data, setting.size);
  to->setting[setting.size] = '\0';
  to->organizations = 0;
  for (uint32_t i = 0; host->line(section, text("places"), i, &name, &value) == LOKADB_OK; ++i)
    if (name.size != 4 || memcmp(name.data, "user", 4) != 0) ++to->organizations;
  host->log(3, text("section read"));
  return LOKADB_OK;
}

static int init(const lokadb_section *section, void **self) {
  struct settings *made = calloc(1, sizeof *made);
  if (made == NULL) return host->fail("53200", text("out of memory"));
  if (read_section(made, section) != LOKADB_OK) {
    free(made);
    return LOKADB_FAILED;
  }
  *self = made;
  return LOKADB_OK;
}

static int reload(void *self, const lokadb_section *section) {
  struct settings next;
  if (read_section(&next, section) != LOKADB_OK) return LOKADB_FAILED;
  *(struct settings *)self = next;
  return LOKADB_OK;
}

static void destroy(void *self) { free(self); }

static void *session_begin(void *self, lokadb_string database, lokadb_string role) {
  (void)self, (void)database, (void)role;
  return calloc(1, sizeof(struct session));
}

static void session_end(void *self, void *slot) {
  (void)self;
  free(slot);
}

/* A Query of two statements is cut at its first semicolon. Each Bind with a value wants its key looked up. */
static int inspect(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)verdict;
  lokadb_batch_info info = {.struct_size = sizeof info};
  host->batch_info(batch, &info);
  for (uint32_t i = 0; i < info.statement_count; ++i) {
    lokadb_statement statement = {.struct_size = sizeof statement};
    if (host->statement(batch, i, &statement) != LOKADB_OK) return LOKADB_FAILED;
    const char *end = statement.form == LOKADB_SIMPLE ? memchr(statement.text.data, ';', statement.text.size) : NULL;
    if (end != NULL && end + 1 < statement.text.data + statement.text.size) {
      size_t begins[2] = {0, (size_t)(end - statement.text.data) + 1};
      if (host->split(batch, i, begins, 2) != LOKADB_OK) return LOKADB_FAILED;
      ++i;
      ++info.statement_count;
    }
    for (uint32_t k = 0; k < statement.parameter_count; ++k) {
      lokadb_parameter parameter = {.struct_size = sizeof parameter};
      if (host->parameter(batch, i, k, &parameter) != LOKADB_OK) return LOKADB_FAILED;
      lokadb_fact fact = {.struct_size = sizeof fact,
                          .kind = LOKADB_FACT_KEY_WANTED,
                          .statement = i,
                          .name = text("public.documents"),
                          .value = parameter.value,
                          .type = parameter.declared_type,
                          .is_binary = parameter.is_binary};
      if (!parameter.is_null && host->publish(batch, &fact) != LOKADB_OK) return LOKADB_FAILED;
    }
  }
  return LOKADB_OK;
}

/* What this batch has asked for so far: the facts of kind KEY_WANTED, one step for each, numbered alike. */
static uint32_t wanted(lokadb_batch *batch, uint32_t *facts) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < host->fact_count(batch); ++i) {
    lokadb_fact fact = {.struct_size = sizeof fact};
    if (host->fact(batch, i, &fact) == LOKADB_OK && fact.kind == LOKADB_FACT_KEY_WANTED) facts[count++] = i;
  }
  return count;
}

static int look_up(lokadb_batch *batch, const uint32_t *facts, uint32_t count, lokadb_verdict *verdict) {
  for (uint32_t i = 0; i < count; ++i) {
    lokadb_fact fact = {.struct_size = sizeof fact};
    if (host->fact(batch, facts[i], &fact) != LOKADB_OK) return LOKADB_FAILED;
    lokadb_step_value key = {0, fact.is_binary, fact.type, fact.value};
    lokadb_step step = {.struct_size = sizeof step,
                        .leg = LOKADB_LEG_CLOUD,
                        .moment = LOKADB_BEFORE,
                        .sql = text("select organization from keys where key = $1"),
                        .value_count = 1,
                        .values = &key};
    if (host->add_step(batch, &step) != i) return host->fail(NULL, text("steps are not numbered as expected"));
  }
  verdict->kind = LOKADB_ASK;
  return LOKADB_OK;
}

static int go(lokadb_batch *batch, lokadb_string organization, lokadb_verdict *verdict) {
  lokadb_target target = {.struct_size = sizeof target,
                          .name = organization,
                          .host = text("127.0.0.1"),
                          .port = 5432,
                          .database = text("shop"),
                          .user = text("customers_app"),
                          .password = text("secret"),
                          .generation = 3,
                          .greeting = text("select '', ''"),
                          .known_as = 1000 + (uint64_t)(unsigned char)organization.data[0]};
  char *kept = host->allocate(batch, organization.size + 1);
  if (kept == NULL) return LOKADB_FAILED;
  memcpy(kept, organization.data, organization.size);
  verdict->kind = LOKADB_DIRECT;
  verdict->reason = KNOWN;
  verdict->organization.data = kept;
  verdict->organization.size = organization.size;
  verdict->target = host->add_target(batch, &target);
  return LOKADB_OK;
}

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  struct settings *settings = self;
  struct session *session = host->slot(batch);
  if (session != NULL) ++session->statements;
  uint32_t *facts = host->allocate(batch, (host->fact_count(batch) + 1) * sizeof *facts);
  if (facts == NULL) return LOKADB_FAILED;
  uint32_t count = wanted(batch, facts);
  lokadb_string organization = host->setting(batch, text(settings->setting));
  if (count > 0 && host->fact_count(batch) == count) {
    lokadb_fact named = {.struct_size = sizeof named,
                         .kind = LOKADB_FACT_NAMED,
                         .statement = LOKADB_WHOLE_BATCH,
                         .value = text("asked")};
    return host->publish(batch, &named) == LOKADB_OK ? look_up(batch, facts, count, verdict) : LOKADB_FAILED;
  }
  for (uint32_t i = 0; i < count; ++i) {
    lokadb_cell cell;
    uint32_t rows = host->step_rows(batch, i);
    if (rows == UINT32_MAX) return host->fail(NULL, text("a step was not run"));
    if (rows == 0) continue;
    if (host->step_cell(batch, i, 0, 0, &cell) != LOKADB_OK) return LOKADB_FAILED;
    lokadb_fact found = {.struct_size = sizeof found,
                         .kind = LOKADB_FACT_KEY_FOUND,
                         .statement = LOKADB_WHOLE_BATCH,
                         .about = facts[i],
                         .value = cell.value};
    if (host->publish(batch, &found) != LOKADB_OK) return LOKADB_FAILED;
    organization = cell.value;
  }
  if (organization.size > 0) return go(batch, organization, verdict);
  verdict->kind = LOKADB_CLOUD;
  verdict->reason = NO_ORGANIZATION;
  return LOKADB_OK;
}

static int review(void *self, lokadb_batch *batch, const lokadb_verdict *settled, lokadb_verdict *verdict) {
  (void)self, (void)batch;
  if (settled->organization.size != 2 || memcmp(settled->organization.data, "13", 2) != 0) return LOKADB_OK;
  verdict->kind = LOKADB_REFUSE;
  verdict->reason = FOREIGN;
  memcpy(verdict->sqlstate, "42501", 6);
  verdict->message = text("organization 13 is not yours");
  verdict->detail = text("It never was.");
  verdict->hint = text("Name your own.");
  return LOKADB_OK;
}

static void observe(void *self, lokadb_batch *batch, void *slot, const lokadb_event *event) {
  (void)self, (void)batch;
  struct session *session = slot;
  if (session != NULL && event->kind == LOKADB_TRANSACTION_ENDED) session->statements = 0;
}

static int feed(void *self, lokadb_string database, lokadb_feed *out) {
  (void)self;
  if (database.size == 0) return LOKADB_OK;
  out->user = text("lokadb_control");
  out->channel = text("lokadb");
  out->query = text("select lokadb.catalog()");
  return LOKADB_OK;
}

static void feed_changed(void *self, lokadb_string database, lokadb_string value, int is_fresh) {
  (void)self, (void)database, (void)value, (void)is_fresh;
}

static const lokadb_show shows[] = {{"places", "setting t, organizations i"}, {"statements", "organization t"}};

static int show(void *self, uint32_t which, lokadb_rows *rows) {
  struct settings *settings = self;
  char count[12];
  if (which == 1) {
    lokadb_string nothing = {NULL, 0};
    return host->add_row(rows, &nothing, 1);
  }
  snprintf(count, sizeof count, "%u", settings->organizations);
  lokadb_string cells[2] = {text(settings->setting), text(count)};
  return host->add_row(rows, cells, 2);
}

/* After three statements it has seen enough. */
static int session_state(void *self, void *slot, lokadb_session_state *out) {
  (void)self;
  struct session *session = slot;
  if (session == NULL || session->statements < 3) return LOKADB_OK;
  out->is_off = 1;
  out->reason = FOREIGN;
  out->details = text("three statements");
  return LOKADB_OK;
}

static const lokadb_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = LOKADB_ABI_MAJOR,
    .abi_minor = LOKADB_ABI_MINOR,
    .name = "frozen_1_0",
    .version = "1.0",
    .options = options,
    .option_count = 1,
    .reasons = reasons,
    .reason_count = 3,
    .init = init,
    .reload = reload,
    .destroy = destroy,
    .session_begin = session_begin,
    .session_end = session_end,
    .inspect = inspect,
    .decide = decide,
    .review = review,
    .observe = observe,
    .feed = feed,
    .feed_changed = feed_changed,
    .sections = sections,
    .section_count = 1,
    .shows = shows,
    .show_count = 2,
    .show = show,
    .session_state = session_state,
};

LOKADB_EXPORT const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *given) {
  host = given;
  if (given->abi_major != 1) return NULL;
  return &plugin;
}
