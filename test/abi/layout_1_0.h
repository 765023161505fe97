/* The layout of version 1.0, pinned for machines with 64-bit pointers: what a plugin was built with then is where it
   was then. For C and C++, and for whichever header LAYOUT_OF names: the current one and the frozen one. Structs
   without a struct_size cannot grow; lines for fields that a minor version adds to the others go into a file of its
   own. */
#include <stddef.h>

#include LAYOUT_OF

#ifdef __cplusplus
#define PIN(condition) static_assert(condition, "the layout of the plugin interface has changed")
#else
#define PIN(condition) _Static_assert(condition, "the layout of the plugin interface has changed")
#endif
#define AT(type, field, offset) PIN(sizeof(void *) != 8 || offsetof(type, field) == (offset))
#define SIZE(type, size) PIN(sizeof(void *) != 8 || sizeof(type) == (size))
#define LEAST(type, size) PIN(sizeof(void *) != 8 || sizeof(type) >= (size))

AT(lokadb_string, data, 0);
AT(lokadb_string, size, 8);
SIZE(lokadb_string, 16);

AT(lokadb_statement, struct_size, 0);
AT(lokadb_statement, form, 4);
AT(lokadb_statement, text, 8);
AT(lokadb_statement, known_as, 24);
AT(lokadb_statement, parameter_count, 32);
AT(lokadb_statement, row_limit, 36);
AT(lokadb_statement, is_described, 40);
AT(lokadb_statement, is_executed, 41);
AT(lokadb_statement, is_standard_strings, 42);
AT(lokadb_statement, has_named_portal, 43);
AT(lokadb_statement, is_kept, 44);
AT(lokadb_statement, is_unread, 45);
LEAST(lokadb_statement, 48);

AT(lokadb_parameter, struct_size, 0);
AT(lokadb_parameter, declared_type, 4);
AT(lokadb_parameter, is_null, 8);
AT(lokadb_parameter, is_binary, 9);
AT(lokadb_parameter, value, 16);
LEAST(lokadb_parameter, 32);

AT(lokadb_batch_info, struct_size, 0);
AT(lokadb_batch_info, statement_count, 4);
AT(lokadb_batch_info, transaction_status, 8);
AT(lokadb_batch_info, ends_in_flush, 9);
AT(lokadb_batch_info, is_whole, 10);
AT(lokadb_batch_info, database, 16);
AT(lokadb_batch_info, role, 32);
AT(lokadb_batch_info, client_encoding, 48);
AT(lokadb_batch_info, is_session_pooled, 64);
AT(lokadb_batch_info, attempt, 68);
AT(lokadb_batch_info, target_fault, 72);
AT(lokadb_batch_info, servers, 88);
LEAST(lokadb_batch_info, 96);

AT(lokadb_fact, struct_size, 0);
AT(lokadb_fact, kind, 4);
AT(lokadb_fact, statement, 8);
AT(lokadb_fact, about, 12);
AT(lokadb_fact, name, 16);
AT(lokadb_fact, value, 32);
AT(lokadb_fact, type, 48);
AT(lokadb_fact, is_binary, 52);
AT(lokadb_fact, reason, 56);
LEAST(lokadb_fact, 64);

AT(lokadb_verdict, struct_size, 0);
AT(lokadb_verdict, kind, 4);
AT(lokadb_verdict, reason, 8);
AT(lokadb_verdict, organization, 16);
AT(lokadb_verdict, sqlstate, 32);
AT(lokadb_verdict, message, 40);
AT(lokadb_verdict, detail, 56);
AT(lokadb_verdict, hint, 72);
AT(lokadb_verdict, target, 88);
AT(lokadb_verdict, commits, 92);
LEAST(lokadb_verdict, 96);

AT(lokadb_reason, id, 0);
AT(lokadb_reason, text, 8);
SIZE(lokadb_reason, 16);

AT(lokadb_target, struct_size, 0);
AT(lokadb_target, name, 8);
AT(lokadb_target, host, 24);
AT(lokadb_target, port, 40);
AT(lokadb_target, database, 48);
AT(lokadb_target, user, 64);
AT(lokadb_target, password, 80);
AT(lokadb_target, generation, 96);
AT(lokadb_target, greeting, 104);
AT(lokadb_target, known_as, 120);
LEAST(lokadb_target, 128);

AT(lokadb_step, struct_size, 0);
AT(lokadb_step, leg, 4);
AT(lokadb_step, moment, 8);
AT(lokadb_step, sql, 16);
AT(lokadb_step, value_count, 32);
AT(lokadb_step, values, 40);
AT(lokadb_step, statement, 48);
LEAST(lokadb_step, 56);

AT(lokadb_edit, at, 0);
AT(lokadb_edit, removed, 8);
AT(lokadb_edit, added, 16);
SIZE(lokadb_edit, 24);

AT(lokadb_replacement, struct_size, 0);
AT(lokadb_replacement, statement, 4);
AT(lokadb_replacement, text, 8);
AT(lokadb_replacement, value_count, 24);
AT(lokadb_replacement, values, 32);
AT(lokadb_replacement, edit_count, 40);
AT(lokadb_replacement, edits, 48);
AT(lokadb_replacement, with_parse, 56);
AT(lokadb_replacement, has_two, 57);
LEAST(lokadb_replacement, 64);

AT(lokadb_step_value, is_null, 0);
AT(lokadb_step_value, is_binary, 1);
AT(lokadb_step_value, type, 4);
AT(lokadb_step_value, value, 8);
SIZE(lokadb_step_value, 24);

AT(lokadb_cell, is_null, 0);
AT(lokadb_cell, value, 8);
SIZE(lokadb_cell, 24);

AT(lokadb_event, struct_size, 0);
AT(lokadb_event, kind, 4);
AT(lokadb_event, statement, 8);
AT(lokadb_event, outcome, 12);
AT(lokadb_event, tag, 16);
AT(lokadb_event, sqlstate, 32);
AT(lokadb_event, name, 48);
AT(lokadb_event, value, 64);
LEAST(lokadb_event, 80);

AT(lokadb_feed, struct_size, 0);
AT(lokadb_feed, user, 8);
AT(lokadb_feed, password, 24);
AT(lokadb_feed, channel, 40);
AT(lokadb_feed, query, 56);
AT(lokadb_feed, heartbeat_ms, 72);
LEAST(lokadb_feed, 80);

AT(lokadb_host, struct_size, 0);
AT(lokadb_host, abi_major, 4);
AT(lokadb_host, abi_minor, 8);
AT(lokadb_host, product, 16);
AT(lokadb_host, log, 24);
AT(lokadb_host, fail, 32);
AT(lokadb_host, option, 40);
AT(lokadb_host, batch_info, 48);
AT(lokadb_host, statement, 56);
AT(lokadb_host, parameter, 64);
AT(lokadb_host, split, 72);
AT(lokadb_host, allocate, 80);
AT(lokadb_host, publish, 88);
AT(lokadb_host, fact_count, 96);
AT(lokadb_host, fact, 104);
AT(lokadb_host, add_step, 112);
AT(lokadb_host, step_rows, 120);
AT(lokadb_host, step_cell, 128);
AT(lokadb_host, add_target, 136);
AT(lokadb_host, slot, 144);
AT(lokadb_host, setting, 152);
AT(lokadb_host, line, 160);
AT(lokadb_host, replace, 168);
AT(lokadb_host, add_row, 176);
AT(lokadb_host, own_setting, 184);
LEAST(lokadb_host, 192);

AT(lokadb_option, name, 0);
AT(lokadb_option, default_value, 8);
AT(lokadb_option, text, 16);
SIZE(lokadb_option, 24);

AT(lokadb_more_section, name, 0);
AT(lokadb_more_section, options, 8);
AT(lokadb_more_section, option_count, 16);
AT(lokadb_more_section, takes_any, 20);
SIZE(lokadb_more_section, 24);

AT(lokadb_plugin, struct_size, 0);
AT(lokadb_plugin, abi_major, 4);
AT(lokadb_plugin, abi_minor, 8);
AT(lokadb_plugin, name, 16);
AT(lokadb_plugin, version, 24);
AT(lokadb_plugin, options, 32);
AT(lokadb_plugin, option_count, 40);
AT(lokadb_plugin, reasons, 48);
AT(lokadb_plugin, reason_count, 56);
AT(lokadb_plugin, init, 64);
AT(lokadb_plugin, reload, 72);
AT(lokadb_plugin, destroy, 80);
AT(lokadb_plugin, session_begin, 88);
AT(lokadb_plugin, session_end, 96);
AT(lokadb_plugin, inspect, 104);
AT(lokadb_plugin, decide, 112);
AT(lokadb_plugin, review, 120);
AT(lokadb_plugin, observe, 128);
AT(lokadb_plugin, feed, 136);
AT(lokadb_plugin, feed_changed, 144);
AT(lokadb_plugin, sections, 152);
AT(lokadb_plugin, section_count, 160);
AT(lokadb_plugin, startup, 168);
AT(lokadb_plugin, session_save, 176);
AT(lokadb_plugin, session_restore, 184);
AT(lokadb_plugin, show_count, 192);
AT(lokadb_plugin, shows, 200);
AT(lokadb_plugin, show, 208);
AT(lokadb_plugin, session_state, 216);
LEAST(lokadb_plugin, 224);

AT(lokadb_show, name, 0);
AT(lokadb_show, columns, 8);
SIZE(lokadb_show, 16);

AT(lokadb_session_state, struct_size, 0);
AT(lokadb_session_state, reason, 4);
AT(lokadb_session_state, is_off, 8);
AT(lokadb_session_state, details, 16);
LEAST(lokadb_session_state, 32);

PIN(LOKADB_OK == 0);
PIN(LOKADB_FAILED == 1);
PIN(LOKADB_SIMPLE == 1);
PIN(LOKADB_BIND == 2);
PIN(LOKADB_PARSE == 3);
PIN(LOKADB_OTHER == 4);
PIN(LOKADB_FUNCTION_CALL == 5);
PIN(LOKADB_FACT_NAMED == 1);
PIN(LOKADB_FACT_KEY_WANTED == 2);
PIN(LOKADB_FACT_KEY_FOUND == 3);
PIN(LOKADB_FACT_NOT_ELIGIBLE == 4);
PIN(LOKADB_FACT_ABOUT == 5);
PIN(LOKADB_FACT_NAMING == 6);
PIN(LOKADB_FACT_MISMATCH_LOGGED == 7);
PIN(LOKADB_FACT_ALL_ALLOWED == 8);
PIN(LOKADB_FACT_FOLLOWED == 9);
PIN(LOKADB_NO_OPINION == 0);
PIN(LOKADB_CLOUD == 1);
PIN(LOKADB_DIRECT == 2);
PIN(LOKADB_ASK == 3);
PIN(LOKADB_REFUSE == 4);
PIN(LOKADB_LEG_CLOUD == 0);
PIN(LOKADB_LEG_DIRECT == 1);
PIN(LOKADB_BEFORE == 0);
PIN(LOKADB_CHECK == 1);
PIN(LOKADB_STATEMENT_ENDED == 1);
PIN(LOKADB_TRANSACTION_ENDED == 2);
PIN(LOKADB_PARAMETER_STATUS == 3);
PIN(LOKADB_COMMITTED == 1);
PIN(LOKADB_ROLLED_BACK == 2);
PIN(LOKADB_UNKNOWN == 3);
PIN(LOKADB_ABI_MAJOR == 1);

#undef PIN
#undef AT
#undef SIZE
#undef LEAST
