/* Uses the host wrongly, in the way that the option `how` names. It returns LOKADB_OK all the same. */
#include "tiny.h"

static char how[64];

static int is(const char *what) { return strcmp(how, what) == 0; }

static int init(const lokadb_section *section, void **self) {
  (void)self;
  lokadb_string given = host->option(section, text("how"));
  size_t size = given.size < sizeof how - 1 ? given.size : sizeof how - 1;
  memcpy(how, given.data, size);
  return LOKADB_OK;
}

static int inspect(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self, (void)verdict;
  static const size_t backwards[] = {0, 5, 3}, outside[] = {0, 5000};
  lokadb_step step = {.struct_size = sizeof step, .sql = text("select 1")};
  if (is("step in inspect")) host->add_step(batch, &step);
  if (is("split backwards")) host->split(batch, 0, backwards, 3);
  if (is("split outside")) host->split(batch, 0, outside, 2);
  if (is("split nothing")) host->split(batch, 0, NULL, 0);
  return LOKADB_OK;
}

static void look(lokadb_batch *batch) {
  lokadb_statement statement = {.struct_size = sizeof statement};
  lokadb_parameter parameter = {.struct_size = sizeof parameter};
  lokadb_fact fact = {.struct_size = sizeof fact};
  lokadb_cell cell;
  if (is("statement index")) host->statement(batch, 99, &statement);
  if (is("parameter statement")) host->parameter(batch, 99, 0, &parameter);
  if (is("parameter index")) host->parameter(batch, 0, 99, &parameter);
  if (is("fact index")) host->fact(batch, 99, &fact);
  if (is("step index")) host->step_rows(batch, 99);
  if (is("cell of no step")) host->step_cell(batch, 0, 0, 0, &cell);
  statement.struct_size = 0;
  if (is("no struct_size")) host->statement(batch, 0, &statement);
  statement.struct_size = 4000;
  if (is("huge struct_size")) host->statement(batch, 0, &statement);
  if (is("null struct")) host->statement(batch, 0, NULL);
  if (is("null batch")) host->fact_count(NULL);
  if (is("other batch")) host->fact_count((const lokadb_batch *)&statement);
}

static void add(lokadb_batch *batch) {
  static const size_t whole[] = {0};
  lokadb_fact fact = {.struct_size = sizeof fact, .kind = LOKADB_FACT_NAMED, .value = text("7")};
  lokadb_step step = {.struct_size = sizeof step, .sql = text("select 1")};
  lokadb_target target = {.struct_size = sizeof target, .name = text("7")};
  lokadb_string cell = text("a");
  if (is("row in decide")) host->add_row((lokadb_rows *)&cell, &cell, 1);
  if (is("option in decide")) host->option(NULL, text("how"));
  if (is("line in decide")) host->line(NULL, text("more"), 0, NULL, NULL);
  if (is("split in decide")) host->split(batch, 0, whole, 1);
  if (is("greedy")) host->allocate(batch, (size_t)1 << 40);
  fact.kind = 99;
  if (is("fact kind")) host->publish(batch, &fact);
  fact.kind = LOKADB_FACT_NAMED;
  fact.statement = 99;
  if (is("fact statement")) host->publish(batch, &fact);
  fact.statement = 0;
  fact.kind = LOKADB_FACT_KEY_FOUND;
  if (is("answer to nothing")) host->publish(batch, &fact);
  fact.kind = LOKADB_FACT_NOT_ELIGIBLE;
  fact.reason = 99;
  if (is("fact reason")) host->publish(batch, &fact);
  fact.kind = LOKADB_FACT_NAMED;
  fact.value.data = NULL;
  if (is("null string")) host->publish(batch, &fact);
  step.leg = 9;
  if (is("step leg")) host->add_step(batch, &step);
  step.leg = LOKADB_LEG_CLOUD;
  step.moment = 9;
  if (is("step moment")) host->add_step(batch, &step);
  step.moment = LOKADB_BEFORE;
  step.value_count = 1;
  if (is("step values")) host->add_step(batch, &step);
  step.value_count = 0;
  step.sql = text("");
  if (is("step sql")) host->add_step(batch, &step);
  lokadb_replacement other = {.struct_size = sizeof other, .text = text("select 2")};
  if (is("replaced twice")) host->replace(batch, &other), host->replace(batch, &other);
  other.statement = 99;
  if (is("replaced nothing")) host->replace(batch, &other);
  other.statement = 0;
  other.value_count = 1;
  if (is("replaced with values")) host->replace(batch, &other);
  other.value_count = 0;
  other.edit_count = 1;
  if (is("replaced without edits")) host->replace(batch, &other);
  static const lokadb_edit outside[] = {{100, 1, 1}}, overlapping[] = {{4, 3, 1}, {5, 1, 1}},
                           endless[] = {{4, SIZE_MAX, 1}};
  other.edits = outside;
  if (is("edit outside")) host->replace(batch, &other);
  other.edits = endless;
  if (is("edit without an end")) host->replace(batch, &other);
  other.edits = overlapping;
  other.edit_count = 2;
  if (is("edits overlap")) host->replace(batch, &other);
  other.edit_count = 0;
  other.text = text("");
  if (is("replaced by none")) host->replace(batch, &other);
  step.sql = text("select 1");
  step.statement = 99;
  if (is("step statement")) host->add_step(batch, &step);
  if (is("target")) host->add_target(batch, &target);
  target.host = target.database = text("here");
  target.user.data = "alice\0database\0other";
  target.user.size = 20;
  target.port = 5432;
  if (is("target with a zero byte")) host->add_target(batch, &target);
  if (is("log level")) host->log(17, text("what is this"));
  if (is("fail and OK")) host->fail("57014", text("changed my mind"));
  if (is("fail with no SQLSTATE")) host->fail("no", text("said so"));
}

/* Goes to a target, with a step that does not fit. */
static void go(lokadb_batch *batch, lokadb_step *step, lokadb_verdict *verdict) {
  lokadb_target target = {.struct_size = sizeof target, .name = text("7"), .host = text("here"), .port = 5432};
  target.database = target.user = text("app");
  if (!is("direct step") && !is("step in front of direct")) return;
  if (!is("direct step")) step->leg = LOKADB_LEG_CLOUD;
  verdict->kind = LOKADB_DIRECT;
  verdict->organization = text("7");
  verdict->target = host->add_target(batch, &target);
  host->add_step(batch, step);
}

static int decide(void *self, lokadb_batch *batch, lokadb_verdict *verdict) {
  (void)self;
  lokadb_step step = {.struct_size = sizeof step, .sql = text("select 1"), .leg = LOKADB_LEG_DIRECT};
  look(batch);
  add(batch);
  verdict->kind = LOKADB_CLOUD;
  if (is("verdict kind")) verdict->kind = 5;
  if (is("verdict commits")) verdict->commits = 3;
  if (is("verdict reason")) verdict->reason = 7;
  if (is("verdict string")) verdict->organization.size = 10;
  if (is("direct nowhere")) verdict->kind = LOKADB_DIRECT, verdict->organization = text("7"), verdict->target = 3;
  if (is("direct nobody")) verdict->kind = LOKADB_DIRECT;
  go(batch, &step, verdict);
  if (is("direct step for cloud")) host->add_step(batch, &step);
  step.leg = LOKADB_LEG_CLOUD, step.moment = LOKADB_CHECK;
  if (is("check for cloud")) host->add_step(batch, &step);
  if (is("silent")) return LOKADB_FAILED;
  if (strncmp(how, "refuse", 6) == 0) verdict->kind = LOKADB_REFUSE, verdict->message = text("no");
  if (is("refuse with a bad sqlstate")) memcpy(verdict->sqlstate, "4250a", 6);
  if (is("refuse with success")) memcpy(verdict->sqlstate, "00000", 6);
  if (is("refuse with six")) memcpy(verdict->sqlstate, "425011", 6);
  if (is("refuse silently")) memcpy(verdict->sqlstate, "42501", 6), verdict->message = text("");
  return LOKADB_OK;
}

static int review(void *self, lokadb_batch *batch, const lokadb_verdict *settled, lokadb_verdict *verdict) {
  (void)self, (void)settled;
  lokadb_fact fact = {.struct_size = sizeof fact, .kind = LOKADB_FACT_NAMED, .value = text("7")};
  if (is("direct in review")) verdict->kind = LOKADB_DIRECT;
  if (is("publish in review")) host->publish(batch, &fact);
  return LOKADB_OK;
}

static const lokadb_show shows[] = {{"misuse", "name t, count q"}};

static int show(void *self, uint32_t which, lokadb_rows *rows) {
  (void)self, (void)which;
  lokadb_string cells[3] = {text("a"), text("1"), text("more")};
  if (is("too many cells")) host->add_row(rows, cells, 3);
  if (is("no cells")) host->add_row(rows, NULL, 2);
  if (is("no rows")) host->add_row(NULL, cells, 2);
  cells[1] = text("many");
  if (is("no number")) host->add_row(rows, cells, 2);
  cells[1] = text("99999999999999999999");
  if (is("too large a number")) host->add_row(rows, cells, 2);
  cells[0].data = NULL;
  if (is("null cell")) host->add_row(rows, cells, 2);
  if (is("show fails")) return host->fail("55000", text("not now"));
  return LOKADB_OK;
}

static int startup(void *self, lokadb_string name, lokadb_string value, uint8_t *takes) {
  (void)self, (void)name, (void)value, (void)takes;
  if (is("slot in startup")) host->slot(NULL);
  if (is("startup fails")) return host->fail("28000", text("not with this parameter"));
  return LOKADB_OK;
}

static int session_state(void *self, void *slot, lokadb_session_state *out) {
  (void)self, (void)slot;
  out->is_off = 1;
  out->reason = 7;
  return LOKADB_OK;
}

static const lokadb_option options[] = {{"how", "not at all", "What is done wrongly."}};
static const lokadb_plugin plugin = {TINY_HEAD("misuse"),
                                     .options = options,
                                     .option_count = 1,
                                     .init = init,
                                     .inspect = inspect,
                                     .decide = decide,
                                     .review = review,
                                     .shows = shows,
                                     .show_count = 1,
                                     .show = show,
                                     .session_state = session_state,
                                     .startup = startup};
TINY_ENTRY(plugin)
