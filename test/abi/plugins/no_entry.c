/* Has no entry symbol. */
int lokadb_plugin_entry_misspelt(void);
int lokadb_plugin_entry_misspelt(void) { return 0; }
