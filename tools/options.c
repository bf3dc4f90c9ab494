/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line and prints help, both from tables.h. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool(complain)(const char *format, ...)
{
	va_list args;
	char *text = NULL;
	va_start(args, format);
	int n = vasprintf(&text, format, args);
	va_end(args);
	fputs("espalier: ", stderr);
	put_masked(stderr, n < 0 ? "no memory for a message" : text);
	fputc('\n', stderr);
	if (n >= 0)
		free(text);
	return false;
}

static bool set_choice(const struct option_row *row, const char *word, int *to)
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

/* errno tells saturation from LONG_MAX itself, which `most` may allow. */
static bool set_count(const struct option_row *row, const char *word, long *to)
{
	char *end;
	errno = 0;
	*to = strtol(word, &end, 10);
	if (end != word && !*end && !errno && *to >= 1 && *to <= row->most)
		return true;
	return complain("--%s is a number from 1 to %ld, not '%s'", row->name, row->most, word);
}

static bool set_number(const struct option_row *row, const char *word, double *to)
{
	char *end;
	*to = strtod(word, &end);
	if (end != word && !*end && *to >= 0 && isfinite(*to))
		return true;
	return complain("--%s is a number, 0 or larger, not '%s'", row->name, word);
}

static bool add_word(const struct option_row *row, const char *word, struct words *to)
{
	if (to->n == (int)(sizeof to->word / sizeof *to->word))
		return complain("--%s is given %d times at most", row->name, to->n);
	to->word[to->n++] = word;
	return true;
}

static bool set_option(const struct option_row *row, const char *word, struct options *o)
{
	void *to = (char *)o + row->offset;
	switch (row->kind) {
	case FLAG:
		return *(bool *)to = true;
	case TEXT:
		*(const char **)to = word;
		return true;
	case TEXTS:
		return add_word(row, word, to);
	case COUNT:
		return set_count(row, word, to);
	case NUMBER:
		return set_number(row, word, to);
	case CHOICE:
		return set_choice(row, word, to);
	case WORD:
		*(const char **)to = word;
		return set_choice(row, word, &(int){0});
	}
	return false;
}

/* getopt's `val` is FIRST plus the option's row, so that it is never a letter. */
enum { FIRST = 256 };

/* The row of --output, which also has the letter -o; -1 = the command does not take it. */
static int output_row(enum command_id c)
{
	for (int i = 0; i < option_count; i++)
		if (takes_option(c, &option_rows[i]) && strcmp(option_rows[i].name, "output") == 0)
			return i;
	return -1;
}

static void getopt_table(enum command_id c, struct option *table)
{
	for (int i = 0; i < option_count; i++)
		if (takes_option(c, &option_rows[i]))
			*table++ = (struct option){
			    option_rows[i].name,
			    option_rows[i].kind == FLAG ? no_argument : required_argument, NULL, FIRST + i};
	*table = (struct option){0};
}

static bool check_operands(const struct command *c, const struct options *o)
{
	if (o->help || (o->operands >= c->least && o->operands <= c->most))
		return true;
	return complain("usage: espalier %s %s (see 'espalier help %s')", c->name, c->operands, c->name);
}

/* The option of the command most similar to a word; NULL = none is similar. */
static const char *meant_option(const struct command *c, const char *word)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	struct nearest nearest = {.wanted = name};
	for (int i = 0; i < option_count; i++)
		if (takes_option((enum command_id)(c - commands), &option_rows[i]))
			nearest_offer(&nearest, option_rows[i].name);
	return nearest.word;
}

/* `word` is the argument that getopt read last; in a bundle of letters it may be the one before them. */
static bool refuse_option(const struct command *c, const char *word)
{
	char letter[] = {'-', optopt, 0};
	bool is_letter = optopt > 0 && optopt < FIRST;
	const char *meant = is_letter || optopt ? NULL : meant_option(c, word);
	if (meant)
		return complain("%s is no option of '%s'; did you mean '--%s'?", word, c->name, meant);
	return complain("%s is no option of '%s', or takes no argument (see 'espalier help %s')",
			is_letter ? letter : word, c->name, c->name);
}

bool options_read(enum command_id id, int argc, char **argv, struct options *o)
{
	struct option table[option_count + 1];
	const struct command *c = &commands[id];
	int found;
	*o = (struct options){.batch = 64,
			      .batches = "1,10",
			      .thread_list = "1,2",
			      .minibatches = 10,
			      .runs = 20,
			      .seed = 1,
			      .atol = 1e-5,
			      .rtol = 1.3e-6,
			      .margin = 25};
	getopt_table(id, table);
	opterr = 0;
	optind = 0;
	const char *letters = output_row(id) < 0 ? ":" : ":o:";
	while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		if (found == ':')
			return complain("%s needs an argument (see 'espalier help %s')", argv[optind - 1],
					c->name);
		if (found == '?')
			return refuse_option(c, argv[optind - 1]);
		if (!set_option(&option_rows[found == 'o' ? output_row(id) : found - FIRST], optarg, o))
			return false;
	}
	o->operands = argc - optind;
	o->operand = argv + optind;
	return check_operands(c, o);
}

/* The column of the help texts; an option that is longer gets a line of its own. */
enum { HELP_COLUMN = 24 };

static void option_help(const struct option_row *r, FILE *to)
{
	int n = 0;
	fprintf(to, "  --%s%s%s%n", r->name, r->argument ? " " : "", r->argument ? r->argument : "", &n);
	if (n >= HELP_COLUMN) {
		fputc('\n', to);
		n = 0;
	}
	fprintf(to, "%*s%s\n", HELP_COLUMN - n, "", r->help);
}

void options_help(enum command_id id, FILE *to)
{
	const struct command *c = &commands[id];
	fprintf(to, "usage: espalier %s%s%s [OPTION]...\n%s\n\n", c->name, *c->operands ? " " : "", c->operands, c->summary);
	put_wrapped(to, 0, c->description);
	fputs("\nOptions:\n", to);
	for (int i = 0; i < option_count; i++)
		if (takes_option(id, &option_rows[i]))
			option_help(&option_rows[i], to);
	fprintf(to, "\nExample:\n  espalier %s\n", c->example);
}
