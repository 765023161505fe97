/* The plugin interface of lokadb-proxy, version 1.0.
 *
 * A plugin is a shared object with one exported function, lokadb_plugin_entry. It looks at each batch of a client (a
 * simple Query, or the messages of the extended protocol up to Sync or Flush; PostgreSQL manual, chapter
 * "Frontend/Backend Protocol") and says where it is to run. doc/plugin-api.md is the manual; this file is the
 * contract.
 *
 * Rules that hold for everything below:
 *
 * - Plain C. Every struct that grows begins with its size in bytes as the side knows it that fills it in; fields are
 *   only ever added at the end, behind the padding too. A reader takes a field as absent (zero) where the size does not
 *   reach it. Adding raises the minor version, anything else the major version.
 * - Strings are pointer and length, not ended by a zero byte, unless the comment says "static". A null pointer with
 *   size 0 is an empty string, too.
 * - What the host passes to a call is borrowed for that call. What the plugin passes to the host is copied before the
 *   call of the host returns; what a verdict or a feed points to, as soon as the plugin has returned (so not to its
 *   stack). No memory changes its owner; lokadb_host.allocate gives memory that lives as long as the batch.
 * - Calls of a plugin come from the worker threads of the proxy, several at once, but never two at once for the same
 *   session. They must not block, start threads that touch sessions, or throw.
 * - A call returns LOKADB_OK or, after lokadb_host.fail, LOKADB_FAILED. A failure of a required plugin refuses the
 *   batch; one of an advisory plugin counts as "no opinion".
 * - Using the host wrongly (an index that does not exist, a call at a moment it is not for, a struct_size that no
 *   version has, a verdict of an unknown kind) fails the call of the plugin, whatever it returns. So does an exception.
 *
 * History
 *   1.0  first version
 */
#ifndef LOKADB_PLUGIN_H
#define LOKADB_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOKADB_ABI_MAJOR 1
#define LOKADB_ABI_MINOR 0

#if defined(__GNUC__)
#define LOKADB_EXPORT __attribute__((visibility("default")))
#else
#define LOKADB_EXPORT
#endif

typedef struct lokadb_string {
  const char *data;
  size_t size;
} lokadb_string;

enum { LOKADB_OK = 0, LOKADB_FAILED = 1 };

/* Opaque to plugins. */
typedef struct lokadb_batch lokadb_batch;     /* one batch while it is decided and run */
typedef struct lokadb_session lokadb_session; /* one client, from login to its end */
typedef struct lokadb_section lokadb_section; /* the plugin's section of the configuration file */

/* ------------------------------------------------------------------ what a batch has */

enum lokadb_form {
  LOKADB_SIMPLE = 1,       /* Query; or one statement of a Query, after lokadb_host.split */
  LOKADB_BIND = 2,         /* a Bind, with the Execute and Describe that belong to it */
  LOKADB_PARSE = 3,        /* a Parse or Describe whose Bind is not in this batch */
  LOKADB_OTHER = 4,        /* a Close, an Execute of an earlier portal, and what cannot be read: text is empty */
  LOKADB_FUNCTION_CALL = 5 /* unless it is one of PostgreSQL's for large objects (LOKADB_OTHER): text is empty */
};

typedef struct lokadb_statement {
  uint32_t struct_size; /* filled in by the plugin before the call */
  uint32_t form;        /* enum lokadb_form */
  lokadb_string text;   /* SQL in the encoding of the client */
  /* Of a prepared statement: the same number as long as the proxy knows this text with these parameter types, never
     used for another; 0 = none. */
  uint64_t known_as;
  uint32_t parameter_count;    /* of a Bind, else 0 */
  uint32_t row_limit;          /* of Execute; 0 = all */
  uint8_t is_described;        /* the client asks for the row description */
  uint8_t is_executed;         /* there is an Execute for this Bind */
  uint8_t is_standard_strings; /* standard_conforming_strings is on, as far as the session has been told */
  uint8_t has_named_portal;    /* of a Bind; the portal without a name lasts until the next Bind of it, or Query */
  /* What runs may run behind statements that come after this one: a Bind without Execute, or with one that stands
     behind another statement. (A row limit says the same of a portal that is not at its end.) */
  uint8_t is_kept;
  /* LOKADB_OTHER, and the only statement: the batch has SQL of its own that cannot be told, for instance because its
     portals are executed in another order than they are bound in. */
  uint8_t is_unread;
} lokadb_statement;

typedef struct lokadb_parameter {
  uint32_t struct_size;   /* filled in by the plugin before the call */
  uint32_t declared_type; /* type OID from Parse, or as the client was told it; 0: left to the server */
  uint8_t is_null;
  uint8_t is_binary;
  lokadb_string value;
} lokadb_parameter;

typedef struct lokadb_batch_info {
  uint32_t struct_size; /* filled in by the plugin before the call */
  uint32_t statement_count;
  uint8_t transaction_status; /* 'I', 'T' or 'E' before the batch, as ReadyForQuery told the client */
  uint8_t ends_in_flush;      /* not in Sync: the client waits for answers with the batch still open */
  uint8_t is_whole; /* 0: larger than the proxy gathers (max_routed_message): one statement, LOKADB_OTHER, no text */
  lokadb_string database; /* as the client named it */
  lokadb_string role;     /* user of the client */
  lokadb_string client_encoding;
  uint8_t is_session_pooled; /* the client keeps its server: what it was set to is not all known */
  uint32_t attempt; /* how many times the batch has been decided already: an answer proved out of date (LK001) */
  lokadb_string target_fault; /* not empty: the target of the last verdict cannot be used, and why; LOKADB_DIRECT said
                                 at once again is the client's error */
  /* Another number whenever a connection to the client's own database, as its role, was made or has ended: what was
     learnt from one of them (the settings of the role) may be old. */
  uint64_t servers;
} lokadb_batch_info;

/* ------------------------------------------------------------------ facts */

/* What one plugin tells the others, and the host, about a statement of the batch. */
enum lokadb_fact_kind {
  /* The application named the organization for this statement: `value`, as it was written; "*": all of them. A fact
     about the statement itself counts before one about the whole batch. `name`: the setting, if it was named for more
     than the transaction, so that a server that is shared does not have the value; else empty. */
  LOKADB_FACT_NAMED = 1,
  /* The organization of the key `value` in table `name` ("schema.table") must be found out. is_binary and type as in
     lokadb_parameter. */
  LOKADB_FACT_KEY_WANTED = 2,
  /* The answer to the fact number `about`: organization `value`; an empty one: no organization has the key. */
  LOKADB_FACT_KEY_FOUND = 3,
  /* The session is not eligible for the direct path, and why: `reason`. */
  LOKADB_FACT_NOT_ELIGIBLE = 4,
  /* The statement names organization `value` by itself, by a condition or a new row, while the application has named
     `name`; both in the canonical text of their type. */
  LOKADB_FACT_ABOUT = 5,
  /* The statement does nothing but name the organization for those behind it: it may go wherever they go. */
  LOKADB_FACT_NAMING = 6,
  /* A statement that names another organization by itself is to be run under the named one, in the cloud, all the
     same. */
  LOKADB_FACT_MISMATCH_LOGGED = 7,
  /* The client's role may name all organizations ("*") even where statements without an organization are refused. */
  LOKADB_FACT_ALL_ALLOWED = 8,
  /* The statement sets `name`, by which the application names the organization, and the publisher knows what follows
     from it. */
  LOKADB_FACT_FOLLOWED = 9
};

#define LOKADB_WHOLE_BATCH UINT32_MAX

typedef struct lokadb_fact {
  uint32_t struct_size;
  uint32_t kind;      /* enum lokadb_fact_kind */
  uint32_t statement; /* its number in the batch, or LOKADB_WHOLE_BATCH */
  uint32_t about;     /* number of another fact */
  lokadb_string name;
  lokadb_string value;
  uint32_t type;
  uint8_t is_binary;
  uint32_t reason; /* number in the plugin's table of reasons */
} lokadb_fact;

/* ------------------------------------------------------------------ verdicts and reasons */

enum lokadb_verdict_kind {
  LOKADB_NO_OPINION = 0,
  LOKADB_CLOUD = 1,  /* the database the client is connected to */
  LOKADB_DIRECT = 2, /* the database of one organization */
  LOKADB_ASK = 3,    /* run the steps that were added in this call, then call decide again; with none, but facts that
                        were published in it, decide is called again at once */
  LOKADB_REFUSE = 4  /* an error to the client, nothing is run */
};

/* What is lost with the connection to the server while the batch runs there: nothing that was not undone, or perhaps a
   commit, which the client is then told (40003). */
enum lokadb_commits {
  LOKADB_COMMITS_NOTHING = 0,
  LOKADB_COMMITS_ITSELF = 1,     /* its own statements, outside of a transaction block */
  LOKADB_COMMITS_TRANSACTION = 2 /* COMMIT is among them: no cancel request is passed on, either */
};

/* Verdicts of several plugins are combined by strictness: refuse, ask, direct or cloud, no opinion. Direct against
   cloud is cloud; two different organizations (or targets) are a refusal (XX000), since one of the plugins must be
   wrong. Steps of a plugin whose verdict did not prevail in a round are dropped. */
typedef struct lokadb_verdict {
  uint32_t struct_size;       /* filled in by the host before the call */
  uint32_t kind;              /* enum lokadb_verdict_kind */
  uint32_t reason;            /* number in the plugin's table of reasons (0 without one); counted */
  lokadb_string organization; /* LOKADB_DIRECT; for LOKADB_CLOUD the organization it is about, if known */
  char sqlstate[6];           /* LOKADB_REFUSE: five digits and capitals, not of class 00, and a zero byte */
  lokadb_string message;      /* LOKADB_REFUSE: not empty. These three are cut at 8000 bytes */
  lokadb_string detail;
  lokadb_string hint;
  /* LOKADB_DIRECT: number from lokadb_host.add_target. */
  uint32_t target;
  uint32_t commits; /* LOKADB_CLOUD: enum lokadb_commits; of several plugins the highest */
} lokadb_verdict;

typedef struct lokadb_reason {
  const char *id;   /* static; lower case with dashes, never changed once released */
  const char *text; /* static; one sentence for people, with what to do about it */
} lokadb_reason;

/* A database that statements can be sent to directly. The host keeps a pool of connections for each different one. */
typedef struct lokadb_target {
  uint32_t struct_size;
  lokadb_string name; /* shown in SHOW tables: the organization */
  lokadb_string host;
  uint32_t port;
  lokadb_string database;
  lokadb_string user;
  lokadb_string password;
  uint64_t generation; /* connections of another generation are closed */
  /* SQL that each new connection is asked before it is used; empty: none. One row of two texts: what is wrong with the
     database or the role (empty: nothing; else the connection is closed, and the batch decided again with this as
     target_fault), and which columns its results are described by, as "oid.number=oid.number ...": a table's OID and a
     column's number there, and those in the client's own database. */
  lokadb_string greeting;
  /* A number that the plugin uses for exactly this target, all fields included, as long as it is loaded: the host need
     not copy and compare what it has seen under it. 0: none. */
  uint64_t known_as;
} lokadb_target;

/* ------------------------------------------------------------------ steps */

enum lokadb_leg {
  LOKADB_LEG_CLOUD = 0,
  LOKADB_LEG_DIRECT = 1 /* none are run there: a step of this leg fails the call */
};

/* When a step is run. With LOKADB_ASK always at once; else a moment that is not the verdict's fails the call. */
enum lokadb_moment {
  LOKADB_BEFORE = 0, /* LOKADB_CLOUD: in front of the client's statements */
  LOKADB_CHECK = 1   /* LOKADB_DIRECT: when the first bytes of the answer are there; the client gets nothing before it
                        has passed */
};

/* One statement of ours with values, in the extended protocol; its rows are for the plugin. An error with SQLSTATE
   LK001 starts the decision anew (a few times, then 40001; inside of a transaction block 40001 at once); any other is
   the client's answer. */
typedef struct lokadb_step {
  uint32_t struct_size;
  uint32_t leg;    /* enum lokadb_leg */
  uint32_t moment; /* enum lokadb_moment */
  lokadb_string sql;
  uint32_t value_count;
  const struct lokadb_step_value *values;
  /* LOKADB_CLOUD with LOKADB_BEFORE: in front of this statement of the batch, in the same transaction and packet; its
     rows are not kept. Where it is one of several of a Query, in front of them all. An error fails what follows. */
  uint32_t statement;
} lokadb_step;

typedef struct lokadb_step_value {
  uint8_t is_null;
  uint8_t is_binary;
  uint32_t type; /* OID; 0 = text of a type that the server infers */
  lokadb_string value;
} lokadb_step_value;

/* With LOKADB_CLOUD: a statement is sent in other words. Its parameters are the client's, with further ones behind.
   With LOKADB_DIRECT: the target gets the client's words, and the client's own database is asked by the other ones what
   the statement takes and gives, since it would not take the client's; no values then. */
typedef struct lokadb_edit {
  size_t at; /* byte of the old text; they ascend, and do not overlap */
  size_t removed;
  size_t added;
} lokadb_edit;

typedef struct lokadb_replacement {
  uint32_t struct_size;
  uint32_t statement;   /* its number in the batch; it has a text */
  lokadb_string text;   /* without a zero byte */
  uint32_t value_count; /* LOKADB_BIND: these follow its own parameters */
  const struct lokadb_step_value *values;
  uint32_t edit_count; /* where the texts differ; error positions are put right by this */
  const lokadb_edit *edits;
  /* LOKADB_BIND: its Parse and Describe in this batch, too, because the server would not take the old text; with
     LOKADB_PARSE it is about these alone. No further values then. */
  uint8_t with_parse;
  /* LOKADB_SIMPLE: the text is two statements, and the client gets the command tag of the first when the second has
     ended. */
  uint8_t has_two;
} lokadb_replacement;

/* Of a step that has been run. Row and column from 0. */
typedef struct lokadb_cell {
  uint8_t is_null;
  lokadb_string value; /* text format */
} lokadb_cell;

/* ------------------------------------------------------------------ observing */

enum lokadb_event_kind {
  /* `statement`: its number in the batch (one that the batch does not have: the server has run more than was seen);
     tag or SQLSTATE. Both empty: it was an empty statement, or its portal has been suspended. */
  LOKADB_STATEMENT_ENDED = 1,
  LOKADB_TRANSACTION_ENDED = 2, /* outcome */
  LOKADB_PARAMETER_STATUS = 3   /* name, value */
};

enum lokadb_outcome { LOKADB_COMMITTED = 1, LOKADB_ROLLED_BACK = 2, LOKADB_UNKNOWN = 3 };

typedef struct lokadb_event {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t statement;
  uint32_t outcome;
  lokadb_string tag;      /* CommandComplete; empty after an error */
  lokadb_string sqlstate; /* empty: no error */
  lokadb_string name;
  lokadb_string value;
} lokadb_event;

/* ------------------------------------------------------------------ feeds */

/* A connection of the proxy's own to a database, on which it runs one query at the start and after each notification,
   and hands its answer to the plugin. */
typedef struct lokadb_feed {
  uint32_t struct_size; /* filled in by the host before the call */
  lokadb_string user;   /* empty: no feed wanted */
  lokadb_string password;
  lokadb_string channel; /* LISTEN */
  lokadb_string query;   /* one row, one column */
  uint32_t heartbeat_ms; /* a connection that does not answer within this time is lost; 0: 5000 */
} lokadb_feed;

/* ------------------------------------------------------------------ the console */

/* A SHOW command of the plugin. */
typedef struct lokadb_show {
  const char *name;    /* static; what stands behind SHOW: a-z, 0-9, _ */
  const char *columns; /* static; "organization t, generation q": names, each with the letter of its type: t text, i and
                          q whole numbers of 32 and 64 bits */
} lokadb_show;

typedef struct lokadb_rows lokadb_rows; /* opaque: the answer to one SHOW command */

/* A line of SHOW LOKADB_SESSIONS. */
typedef struct lokadb_session_state {
  uint32_t struct_size;  /* filled in by the host before the call */
  uint32_t reason;       /* number in the plugin's table of reasons */
  uint8_t is_off;        /* none of the session's statements goes direct, until something changes, for that reason */
  lokadb_string details; /* to the reason, for people */
} lokadb_session_state;

/* ------------------------------------------------------------------ the host */

/* What the host offers. Filled in by the proxy, static, valid as long as the plugin is loaded. */
typedef struct lokadb_host {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char *product; /* static: name and version of the proxy, for logs */

  /* Log line at the level of the proxy's own; level 0 error, 1 warning, 2 log, 3 debug. Any thread. */
  void (*log)(int level, lokadb_string text);
  /* Why this call is about to return LOKADB_FAILED. sqlstate: five characters, or null for XX000. The text goes to the
     log and to the client, so without secrets. Returns LOKADB_FAILED. In every call of the plugin, entry too. */
  int (*fail)(const char *sqlstate, lokadb_string text);

  /* --- configuration: in init and reload only. Value of a declared option as written, else its default; null data:
     neither. "customers_app.user" is option `user` of the further section customers_app. */
  lokadb_string (*option)(const lokadb_section *section, lokadb_string name);

  /* --- a batch */
  void (*batch_info)(const lokadb_batch *batch, lokadb_batch_info *out);
  int (*statement)(const lokadb_batch *batch, uint32_t index, lokadb_statement *out);
  int (*parameter)(const lokadb_batch *batch, uint32_t statement, uint32_t index, lokadb_parameter *out);
  /* In inspect: the text of this simple statement is several, which begin at these bytes; the first at its first.
     Those behind it get higher numbers. The same again is no fault, something else fails. */
  int (*split)(lokadb_batch *batch, uint32_t statement, const size_t *begins, uint32_t count);
  /* Memory aligned for anything, until the batch has ended. Null only after a fault: more than 64 MiB in a batch. */
  void *(*allocate)(lokadb_batch *batch, size_t size);
  /* In inspect and decide. */
  int (*publish)(lokadb_batch *batch, const lokadb_fact *fact);
  uint32_t (*fact_count)(const lokadb_batch *batch);
  int (*fact)(const lokadb_batch *batch, uint32_t index, lokadb_fact *out);
  /* In decide: returns the number of the step in this batch, UINT32_MAX after a fault. */
  uint32_t (*add_step)(lokadb_batch *batch, const lokadb_step *step);
  /* Rows of a step that has been run; UINT32_MAX: it has not been run. */
  uint32_t (*step_rows)(const lokadb_batch *batch, uint32_t step);
  int (*step_cell)(const lokadb_batch *batch, uint32_t step, uint32_t row, uint32_t column, lokadb_cell *out);
  uint32_t (*add_target)(lokadb_batch *batch, const lokadb_target *target);
  /* What session_begin returned for the session of this batch. */
  void *(*slot)(const lokadb_batch *batch);
  /* The value of a server setting for this session, as far as the proxy follows it (those that the server reports,
     and those in track_extra_parameters); null data: not known. */
  lokadb_string (*setting)(const lokadb_batch *batch, lokadb_string name);

  /* In init and reload: the lines of a further section of the plugin one by one, in the order of the file; of a name
     that is written twice the last line counts. LOKADB_FAILED (which is no fault): there are no more. */
  int (*line)(const lokadb_section *section, lokadb_string of, uint32_t index, lokadb_string *name,
              lokadb_string *value);
  /* In decide, with LOKADB_CLOUD; one for each statement. */
  int (*replace)(lokadb_batch *batch, const lokadb_replacement *replacement);
  /* In show: one row, with as many cells as the command has columns, numbers in digits that fit
     the column; a cell of null data is NULL. */
  int (*add_row)(lokadb_rows *rows, const lokadb_string *cells, uint32_t count);
  /* As `setting`, but only what this client has asked for, at its start or since; null data: nothing, so that the
     default of the server's session is in force. */
  lokadb_string (*own_setting)(const lokadb_batch *batch, lokadb_string name);
} lokadb_host;

/* ------------------------------------------------------------------ the plugin */

typedef struct lokadb_option {
  const char *name;          /* static */
  const char *default_value; /* static; null: none */
  const char *text;          /* static; one sentence for the manual */
} lokadb_option;

/* A section of the configuration file, beside the plugin's own, that it reads; several plugins may read the same. */
typedef struct lokadb_more_section {
  const char *name;             /* static */
  const lokadb_option *options; /* as of the plugin's own section */
  uint32_t option_count;
  uint32_t
      takes_any; /* 1: lines of other names are allowed, too; lokadb_host.line has them, and the plugin checks them */
} lokadb_more_section;

/* Filled in by the plugin, static. A null pointer: the plugin has no part in that. */
typedef struct lokadb_plugin {
  uint32_t struct_size;
  uint32_t abi_major; /* LOKADB_ABI_MAJOR and _MINOR as they were when the plugin was built: another major or a */
  uint32_t abi_minor; /* minor above the host's is refused */
  const char *name;   /* as in the option `plugins`, and the name of its section: a-z, 0-9, _ */
  const char *version;
  const lokadb_option *options; /* of its section; one that is not here is refused at start. No dots; `library` and
                                   `required` are the host's */
  uint32_t option_count;
  const lokadb_reason *reasons;
  uint32_t reason_count;

  /* Once at start. *self is passed to all the others. */
  int (*init)(const lokadb_section *section, void **self);
  /* RELOAD and SIGHUP, while no other call is under way. Failed: everything stays as it was. If the reload fails
     elsewhere afterwards, it is called again with the section as it was before. Null: changes need a restart. */
  int (*reload)(void *self, const lokadb_section *section);
  void (*destroy)(void *self);

  /* The slot of a session; may be null. */
  void *(*session_begin)(void *self, lokadb_string database, lokadb_string role);
  void (*session_end)(void *self, void *slot);

  /* The four moments of a batch, each called in the order of the option `plugins`. */
  /* 1. Sees the batch as it came and publishes facts. A verdict other than LOKADB_REFUSE is ignored. */
  int (*inspect)(void *self, lokadb_batch *batch, lokadb_verdict *verdict);
  /* 2. Says where it is to run. In rounds: called again after LOKADB_ASK, with the answers to the steps. */
  int (*decide)(void *self, lokadb_batch *batch, lokadb_verdict *verdict);
  /* 3. The last word, once the path is settled: may only refuse. *settled has kind (LOKADB_NO_OPINION: the cloud, as
     nobody had one), organization, target and commits. */
  int (*review)(void *self, lokadb_batch *batch, const lokadb_verdict *settled, lokadb_verdict *verdict);
  /* 4. What came of it: each statement in the order of their ends (LOKADB_STATEMENT_ENDED; none of those that an error
     before them has made the server skip), then, if it has ended, the transaction. Called before the session's next
     batch is inspected. batch is null where the host does not keep it so long: what went to the cloud as it came. */
  void (*observe)(void *self, lokadb_batch *batch, void *slot, const lokadb_event *event);

  /* Asked for each line of [databases] at start and after a reload: whether the plugin wants a feed from it. For "*",
     too, but the databases that it stands for have none. */
  int (*feed)(void *self, lokadb_string database, lokadb_feed *out);
  /* The answer of the feed's query; with is_fresh = 0 (and an empty value) the feed has been lost, and what it said
     may not be true any more. Called on a thread of the feed's own, one call at a time, while batches are decided; not
     while the plugin is reloaded or asked for what the console shows. */
  void (*feed_changed)(void *self, lokadb_string database, lokadb_string value, int is_fresh);

  const lokadb_more_section *sections;
  uint32_t section_count;

  /* A run-time parameter that a client has given when it connected, by itself or in `options`; before it is known who
     it is. *takes = 1: it is this plugin's, the host keeps it for the session, and lokadb_host.setting has it by its
     name in lower case. A failure refuses the login. */
  int (*startup)(void *self, lokadb_string name, lokadb_string value, uint8_t *takes);
  /* Online restart: what the next process must know of this session, whose transaction has ended. The string is copied
     before the next call of the plugin. There session_restore gets it, after session_begin. */
  int (*session_save)(void *self, void *slot, lokadb_string *state);
  int (*session_restore)(void *self, void *slot, lokadb_string state);
  /* Both while no other call is under way. */
  uint32_t show_count;
  const lokadb_show *shows;
  int (*show)(void *self, uint32_t which, lokadb_rows *rows);
  int (*session_state)(void *self, void *slot, lokadb_session_state *out);
} lokadb_plugin;

/* The one symbol. Returns null, after host->fail, if it cannot work with this host. */
LOKADB_EXPORT const lokadb_plugin *lokadb_plugin_entry(const lokadb_host *host);

#ifdef __cplusplus
}
#endif

#endif
