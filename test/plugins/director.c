/* A plugin for tests: what is to become of a batch stands in a comment of its first statement.
 *
 *   / *refuse SQLSTATE text* /      refused
 *   / *direct NAME* /               goes to the target of this name
 *   / *check SQL* /                 with direct: the check in the cloud
 *   / *greet SQL* /                 with direct: the greeting of the target
 *   / *ask SQL* /                   asks first; the value of the answer is the name of a target, or "cloud"
 *
 * (without the blanks between star and slash). Its section has one option, targets =
 * name,host,port,database,user,password, and more of them behind semicolons; a target's generation is the number of
 * reloads.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/lokadb_plugin.h"

static const lokadb_host *host;

struct director {
  char *targets;
  uint64_t generation;
};

static const lokadb_option options[] = {{"targets", "", "Where batches can go."}};
static const lokadb_reason reasons[] = {{"told-so", "A comment of the statement says so."}};

/* What follows the word in a comment, up to its end. */
static lokadb_string find(lokadb_string text, const char *word) {
  lokadb_string found = {NULL, 0};
  size_t n = strlen(word);
  for (size_t i = 0; i + n + 2 <= text.size; i++) {
    if (memcmp(text.data + i, "/*", 2) != 0 || memcmp(text.data + i + 2, word, n) != 0) continue;
    found.data = text.data + i + 2 + n;
    while (found.data + found.size + 1 < text.data + text.size && memcmp(found.data + found.size, "*/", 2) != 0)
      found.size++;
    break;
  }
  return found;
}

static lokadb_string take_until(lokadb_string *rest, char end) {
  lokadb_string part = {rest->data, 0};
  while (part.size < rest->size && part.data[part.size] != end) part.size++;
  size_t used = part.size < rest->size ? part.size + 1 : part.size;
  rest->data += used;
  rest->size -= used;
  return part;
}

static int to_target(const struct director *self, lokadb_batch *batch, lokadb_string name, lokadb_string greeting,
                     lokadb_verdict *verdict) {
  lokadb_string all = {self->targets, strlen(self->targets)};
  while (all.size > 0) {
    lokadb_string one = take_until(&all, ';');
    lokadb_target t;
    memset(&t, 0, sizeof t);
    t.struct_size = sizeof t;
    t.name = take_until(&one, ',');
    if (t.name.size != name.size || memcmp(t.name.data, name.data, name.size) != 0) continue;
    t.host = take_until(&one, ',');
    lokadb_string port = take_until(&one, ',');
    char number[16] = "";
    memcpy(number, port.data, port.size < sizeof number - 1 ? port.size : sizeof number - 1);
    t.port = (uint32_t)atoi(number);
    t.database = take_until(&one, ',');
    t.user = take_until(&one, ',');
    t.password = one;
    t.generation = self->generation;
    t.greeting = greeting;
    verdict->kind = LOKADB_DIRECT;
    verdict->organization = name;
    verdict->target = host->add_target(batch, &t);
    return LOKADB_OK;
  }
  lokadb_string text = {"no such target", 14};
  return host->fail("XX000", text);
}

static int add_step(lokadb_batch *batch, lokadb_string sql, uint32_t moment, uint32_t *number) {
  lokadb_step step;
  memset(&step, 0, sizeof step);
  step.struct_size = sizeof step;
  step.leg = LOKADB_LEG_CLOUD;
  step.moment = moment;
  step.sql = sql;
  *number = host->add_step(batch, &step);
  return *number == UINT32_MAX ? LOKADB_FAILED : LOKADB_OK;
}

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  lokadb_statement s;
  s.struct_size = sizeof s;
  if (host->statement(batch, 0, &s) != LOKADB_OK) return LOKADB_FAILED;
  uint32_t step = 0;
  lokadb_string found = find(s.text, "refuse ");
  if (found.data != NULL) {
    verdict->kind = LOKADB_REFUSE;
    memcpy(verdict->sqlstate, found.data, 5);
    verdict->message.data = found.data + 6;
    verdict->message.size = found.size - 6;
    return LOKADB_OK;
  }
  found = find(s.text, "ask ");
  if (found.data != NULL) {
    if (host->fact_count(batch) == 0) { /* a fact of ours says that it has been asked */
      lokadb_fact asked;
      memset(&asked, 0, sizeof asked);
      asked.struct_size = sizeof asked;
      asked.kind = LOKADB_FACT_NOT_ELIGIBLE;
      asked.statement = LOKADB_WHOLE_BATCH;
      verdict->kind = LOKADB_ASK;
      return host->publish(batch, &asked) != LOKADB_OK ? LOKADB_FAILED : add_step(batch, found, LOKADB_BEFORE, &step);
    }
    uint32_t rows = host->step_rows(batch, 0);
    lokadb_cell cell = {0};
    if (rows != 1 || host->step_cell(batch, 0, 0, 0, &cell) != LOKADB_OK) return LOKADB_FAILED;
    if (cell.value.size == 5 && memcmp(cell.value.data, "cloud", 5) == 0) {
      verdict->kind = LOKADB_CLOUD;
      return LOKADB_OK;
    }
    if (to_target(self, batch, cell.value, find(s.text, "greet "), verdict) != LOKADB_OK) return LOKADB_FAILED;
  }
  found = find(s.text, "direct ");
  if (found.data != NULL && to_target(self, batch, found, find(s.text, "greet "), verdict) != LOKADB_OK)
    return LOKADB_FAILED;
  if (verdict->kind != LOKADB_DIRECT) return LOKADB_OK;
  found = find(s.text, "check ");
  if (found.data != NULL) return add_step(batch, found, LOKADB_CHECK, &step);
  return LOKADB_OK;
}

static int take_options(struct director *self, const lokadb_section *section) {
  static const char name[] = "targets";
  lokadb_string value = host->option(section, (lokadb_string){name, sizeof name - 1});
  char *copy = calloc(1, value.size + 1);
  if (copy == NULL) return LOKADB_FAILED;
  if (value.size > 0) memcpy(copy, value.data, value.size);
  free(self->targets);
  self->targets = copy;
  self->generation++;
  return LOKADB_OK;
}

static int init(const lokadb_section *section, void **self) {
  *self = calloc(1, sizeof(struct director));
  return *self == NULL ? LOKADB_FAILED : take_options(*self, section);
}

static int reload(void *self, const lokadb_section *section) { return take_options(self, section); }

static void destroy(void *self) {
  free(((struct director *)self)->targets);
  free(self);
}

static const lokadb_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = LOKADB_ABI_MAJOR,
    .abi_minor = LOKADB_ABI_MINOR,
    .name = "director",
    .version = "1",
    .options = options,
    .option_count = 1,
    .reasons = reasons,
    .reason_count = 1,
    .init = init,
    .reload = reload,
    .destroy = destroy,
    .decide = decide,
};

const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *the_host) {
  host = the_host;
  return &plugin;
}
