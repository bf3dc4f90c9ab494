/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The command line as data: commands and options. The generator of the manual (doc/manual/) uses it too,
 * so nothing here may need the library. */
#ifndef ESPALIER_TOOLS_TABLES_H
#define ESPALIER_TOOLS_TABLES_H

#include <stdbool.h>
#include <stddef.h>

enum command_id {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	COMMAND_##NAME,
#include "commands.def"
#undef COMMAND
	COMMANDS
};

struct command {
	const char *name;
	const char *operands; /* as usage shows them */
	int least, most;      /* operands */
	const char *summary, *description, *example;
};

extern const struct command commands[COMMANDS];

enum option_kind { FLAG, TEXT, TEXTS, COUNT, NUMBER, CHOICE, WORD };

struct option_row {
	const char *name;
	unsigned long long commands; /* a bit for each, 1 << enum command_id */
	enum option_kind kind;
	size_t offset;	      /* of the member of struct options */
	const char *argument; /* NULL = none */
	long most;	      /* the largest value of a COUNT */
	const char *help;
};

extern const struct option_row option_rows[];
extern const int option_count;

/* Texts for the overview and the manual. */
extern const char tool_summary[], tool_about[], tool_exit_status[];

/* Environment variables; the last has no name. */
struct tool_variable {
	const char *name, *meaning;
};
extern const struct tool_variable tool_environment[];

/* Whether a command takes an option. */
static inline bool takes_option(enum command_id command, const struct option_row *row)
{
	return row->commands >> command & 1;
}

#endif
