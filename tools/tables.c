#include "tables.h"
#include "tool.h"

const struct command commands[COMMANDS] = {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	{spelling, operands, least, most, summary, description, example},
#include "commands.def"
#undef COMMAND
};

_Static_assert(COMMANDS < 32, "a command has a bit of an int");

/* A bit for each command, by its name alone, so that options.def can be read. */
enum bits {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	NAME = 1 << COMMAND_##NAME,
#include "commands.def"
#undef COMMAND
};

const struct option_row option_rows[] = {
#define OPTION(spelling, commands, kind, member, argument, most, help)                                       \
	{spelling, commands, kind, offsetof(struct options, member), argument, most, help},
#include "options.def"
#undef OPTION
};

const int option_count = sizeof option_rows / sizeof *option_rows;
