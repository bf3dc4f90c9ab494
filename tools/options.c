/* One table makes the parser and the help. */
#include "tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, COUNT, CHOICE };

enum { ALL = COMMAND_RUN | COMMAND_CHECK | COMMAND_DUMP, CODE = COMMAND_RUN | COMMAND_DUMP };

/* A choice sets the index of its word among `argument`, which is separated by bars. */
static const struct row {
	const char *name;
	unsigned commands;
	enum kind kind;
	size_t offset;
	const char *argument, *help;
} rows[] = {
    {"weights", ALL, TEXT, offsetof(struct options, weights), "FILE",
     "weights of the model, a safetensors file"},
    {"vocab", COMMAND_RUN | COMMAND_CHECK, TEXT, offsetof(struct options, vocab), "FILE",
     "vocabulary, one word a line; needed when the model reads words"},
    {"format", COMMAND_RUN, CHOICE, offsetof(struct options, format), "text|json",
     "form of the output; text is the default"},
    {"at", COMMAND_RUN, CHOICE, offsetof(struct options, at), "root|all",
     "outputs of the root (the default) or of all nodes, in post order"},
    {"output", CODE, TEXT, offsetof(struct options, output), "FILE",
     "where to write; the file appears when it is complete"},
    {"batch", COMMAND_RUN, COUNT, offsetof(struct options, batch), "N",
     "trees that run together, 64 by default"},
    {"backend", CODE, TEXT, offsetof(struct options, backend), "NAME", "llvm (the default) or interpreter"},
    {"target", CODE, TEXT, offsetof(struct options, target), "NAME",
     "machine to compile for: native (the default), generic, avx2, avx512"},
    {"schedule", CODE, TEXT, offsetof(struct options, schedule), "FILE",
     "schedule to compile with, as 'espalier dump sched' writes it"},
    {"timing", COMMAND_RUN, FLAG, offsetof(struct options, timing), NULL, "say on stderr what it cost"},
    {"help", ALL, FLAG, offsetof(struct options, help), NULL, "this text"},
};

enum { ROWS = sizeof rows / sizeof *rows };

bool complain(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("espalier: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

static bool set_choice(const struct row *row, const char *word, int *to)
{
	size_t length = strlen(word);
	int i = 0;
	for (const char *p = row->argument; *p; i++) {
		size_t n = strcspn(p, "|");
		if (n == length && memcmp(p, word, n) == 0) {
			*to = i;
			return true;
		}
		p += n + (p[n] == '|');
	}
	return complain("--%s is %s, not '%s'", row->name, row->argument, word);
}

static bool set_count(const struct row *row, const char *word, long *to)
{
	char *end;
	*to = strtol(word, &end, 10);
	if (end != word && !*end && *to >= 1 && *to <= 1000000)
		return true;
	return complain("--%s is a number from 1 to 1000000, not '%s'", row->name, word);
}

static bool set(const struct row *row, const char *word, struct options *o)
{
	void *to = (char *)o + row->offset;
	switch (row->kind) {
	case FLAG:
		return *(bool *)to = true;
	case TEXT:
		*(const char **)to = word;
		return true;
	case COUNT:
		return set_count(row, word, to);
	case CHOICE:
		return set_choice(row, word, to);
	}
	return false;
}

/* Numbers in getopt's `val` are rows, from 1 so that they cannot be its own '?'. */
enum { FIRST = 256 };

static void getopt_table(const struct command *c, struct option *table)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i].commands & c->bit)
			*table++ = (struct option){rows[i].name,
						   rows[i].kind == FLAG ? no_argument : required_argument,
						   NULL, FIRST + i};
	*table = (struct option){0};
}

static bool check_operands(const struct command *c, const struct options *o)
{
	if (o->help || (o->operands >= c->least && o->operands <= c->most))
		return true;
	return complain("usage: espalier %s %s (see 'espalier help %s')", c->name, c->operands, c->name);
}

/* `word` is what getopt read last; in a bundle of letters it may still stand before them. */
static bool unknown(const struct command *c, const char *word)
{
	char letter[] = {'-', optopt, 0};
	bool is_letter = optopt > 0 && optopt < FIRST;
	return complain("%s is no option of '%s', or takes no argument (see 'espalier help %s')",
			is_letter ? letter : word, c->name, c->name);
}

bool options_read(const struct command *c, int argc, char **argv, struct options *o)
{
	struct option table[ROWS + 1];
	int found;
	*o = (struct options){.batch = 64};
	getopt_table(c, table);
	opterr = 0;
	optind = 0;
	while ((found = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (found == ':')
			return complain("%s needs an argument (see 'espalier help %s')", argv[optind - 1],
					c->name);
		if (found == '?')
			return unknown(c, argv[optind - 1]);
		if (!set(&rows[found - FIRST], optarg, o))
			return false;
	}
	o->operands = argc - optind;
	o->operand = argv + optind;
	return check_operands(c, o);
}

void options_help(const struct command *c, FILE *to)
{
	fprintf(to, "usage: espalier %s %s [OPTION]...\n%s\n\n", c->name, c->operands, c->summary);
	for (int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		int n = 0;
		if (!(r->commands & c->bit))
			continue;
		fprintf(to, "  --%s%s%s%n", r->name, r->argument ? " " : "", r->argument ? r->argument : "",
			&n);
		fprintf(to, "%*s%s\n", 22 - n, "", r->help);
	}
}
