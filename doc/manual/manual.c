/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* manual PAGE [MODEL-TEXT.md]: writes a page of the manual, or a completion, to standard output.  The build
 * calls it for each file that it installs. */
#include "manual.h"

#include "espalier.h"

#include <stdlib.h>
#include <string.h>

/* --- espalier(1) --- */

static void put_option(FILE *to, const struct option_row *row)
{
	fputs(".TP\n\\fB\\-\\-", to);
	roff_text(to, row->name);
	fputs("\\fR", to);
	if (row->argument) {
		fputs(" \\fI", to);
		roff_text(to, row->argument);
		fputs("\\fR", to);
	}
	fputc('\n', to);
	roff_text(to, row->help);
	fputs(".\n", to);
}

static void put_command(FILE *to, enum command_id id)
{
	const struct command *c = &commands[id];
	fputs(".SS \"espalier ", to);
	roff_text(to, c->name);
	fputc(' ', to);
	roff_text(to, c->operands);
	fputs(" [OPTION]...\"\n", to);
	roff_text(to, c->summary);
	fputs("\n.PP\n", to);
	roff_text(to, c->description);
	fputc('\n', to);
	for (int i = 0; i < option_count; i++)
		if (takes_option(id, &option_rows[i]))
			put_option(to, &option_rows[i]);
	fputs(".PP\nExample:\n.PP\n.in +4n\n.EX\nespalier ", to);
	roff_text(to, c->example);
	fputs("\n.EE\n.in\n", to);
}

/* The families that --rules accepts. */
static void put_families(FILE *to)
{
	static const char *const families[][2] = {
#define REWRITE_FAMILY(name, spelling, meaning) {spelling, meaning},
#include "rewrite/families.def"
#undef REWRITE_FAMILY
	};
	fputs(
	    ".SH FAMILIES OF RULES\nBefore a model is compiled it is rewritten by rules, which come in "
	    "families; "
	    "\\fB\\-\\-rules\\fR says which of them run; see espalier\\-algebra(7).\n",
	    to);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		fprintf(to, ".TP\n.B %s\n", families[i][0]);
		roff_text(to, families[i][1]);
		fputs(".\n", to);
	}
}

static bool put_espalier(FILE *to, const char *unused)
{
	(void)unused;
	roff_begin(to, "espalier", 1, "run recursive deep-learning models, compiled for this machine");
	fputs(
	    ".SH SYNOPSIS\n\\fBespalier\\fR \\fICOMMAND\\fR [\\fIOPERAND\\fR]... [\\fIOPTION\\fR]...\n"
	    ".br\n\\fBespalier \\-\\-version\\fR\n"
	    ".SH DESCRIPTION\n",
	    to);
	roff_text(to, tool_about);
	fputs("\n.SH COMMANDS\n", to);
	for (int i = 0; i < COMMANDS; i++)
		put_command(to, i);
	put_families(to);
	fputs(".SH EXIT STATUS\n", to);
	roff_text(to, tool_exit_status);
	fputs("\n.SH ENVIRONMENT\n", to);
	for (const struct tool_variable *v = tool_environment; v->name; v++) {
		fprintf(to, ".TP\n.B %s\n", v->name);
		roff_text(to, v->meaning);
		fputc('\n', to);
	}
	fputs(
	    ".SH SEE ALSO\n.BR espalier\\-algebra (7),\n.BR espalier\\-diagnostics (7),\n.BR "
	    "espalier\\-model (7)\n",
	    to);
	return true;
}

/* --- espalier-diagnostics(7) --- */

struct message {
	const char *id, *status, *message, *explanation, *fix;
};

static const struct message messages[] = {
#define DIAG(name, status, spelling, message, explanation, fix)                                              \
	{spelling, #status, message, explanation, fix},
#include "base/diag.def"
#undef DIAG
};

enum { MESSAGES = sizeof messages / sizeof *messages };

static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct message *const *)a)->id, (*(const struct message *const *)b)->id);
}

static void put_message(FILE *to, const struct message *m)
{
	fputs(".TP\n.B ", to);
	roff_text(to, m->id);
	fputs("\n.I \"", to);
	roff_text(to, m->message);
	fputs("\"\n.br\n", to);
	roff_text(to, m->explanation);
	fputs("\n.br\nWhat to do: ", to);
	roff_text(to, m->fix);
	if (strcmp(m->status, "NOTICE") == 0)
		fputs("\n.br\nA notice; no call fails with it.\n", to);
	else
		fprintf(to, "\n.br\nStatus: ESP_ERROR_%s\n", m->status);
}

static bool put_diagnostics(FILE *to, const char *unused)
{
	(void)unused;
	const struct message *sorted[MESSAGES];
	for (int i = 0; i < MESSAGES; i++)
		sorted[i] = &messages[i];
	qsort(sorted, MESSAGES, sizeof *sorted, by_id);
	roff_begin(to, "espalier-diagnostics", 7,
		   "what the errors of espalier mean and what to do about them");
	fputs(
	    ".SH DESCRIPTION\n"
	    "An error names what is wrong, where, and mostly what to do; it ends with an id in square "
	    "brackets.\n"
	    "Ids are stable, so that scripts and programs may test for them.\n"
	    ".B espalier explain\\-error \\fIID\\fR\n"
	    "shows one of the entries below; a C program gets them from esp_message_find, and with an error "
	    "from\n"
	    "esp_error_get. The status is what the call that failed returned.\n"
	    ".SH DIAGNOSTICS\n",
	    to);
	for (int i = 0; i < MESSAGES; i++)
		put_message(to, sorted[i]);
	fputs(".SH SEE ALSO\n.BR espalier (1),\n.BR espalier\\-model (7)\n", to);
	return true;
}

/* --- espalier-model(7) --- */

static bool put_model(FILE *to, const char *markdown)
{
	if (!markdown)
		return false;
	roff_begin(to, "espalier-model", 7, "the language of the models that espalier runs");
	bool ok = roff_markdown(to, markdown);
	fputs(".SH SEE ALSO\n.BR espalier (1),\n.BR espalier\\-diagnostics (7)\n", to);
	return ok;
}

/* --- espalier-algebra(7) --- */

struct rule {
	const char *name, *law, *exactness, *types, *pattern, *condition, *replacement;
};

static const struct rule rules[] = {
#define RULE(name, law, cost, exactness, types, pattern, condition, replacement)                             \
	{name, #law, #exactness, #types, pattern, condition, replacement},
#include "rewrite/rules.def"
#undef RULE
};

static void put_rule(FILE *to, const struct rule *r)
{
	static const struct {
		const char *exactness, *math;
	} maths[] = {{"BITS", "exact"}, {"ROUNDING", "reassociate"}, {"SPECIAL", "fast"}};
	fputs(".TP\n.B ", to);
	roff_text(to, r->name);
	fputc('\n', to);
	roff_text(to, r->pattern);
	fputs("\n.br\n\\(-> ", to);
	roff_text(to, r->replacement);
	fputs("\n.br\n", to);
	for (size_t i = 0; i < sizeof maths / sizeof *maths; i++)
		if (strcmp(maths[i].exactness, r->exactness) == 0)
			fputs(maths[i].math, to);
	if (strcmp(r->types, "FLOATS") != 0)
		fputs(strcmp(r->types, "ALL") == 0 ? "; all types" : "; also integers", to);
	if (*r->condition) {
		fputs("; when ", to);
		roff_text(to, r->condition);
	}
	fputc('\n', to);
}

static void put_rules(FILE *to)
{
	static const char *const laws[][2] = {
#define REWRITE_FAMILY(name, spelling, meaning) {#name, spelling},
#include "rewrite/families.def"
#undef REWRITE_FAMILY
	};
	for (size_t f = 0; f < sizeof laws / sizeof *laws; f++) {
		bool any = false;
		for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
			if (strcmp(rules[i].law, laws[f][0]) != 0)
				continue;
			if (!any)
				fprintf(to, ".SS %s\n", laws[f][1]);
			put_rule(to, &rules[i]);
			any = true;
		}
	}
}

static bool put_algebra(FILE *to, const char *markdown)
{
	if (!markdown)
		return false;
	roff_begin(to, "espalier-algebra", 7, "how espalier rewrites models before it compiles them");
	bool ok = roff_markdown(to, markdown);
	fputs(
	    ".SH ALL RULES\nA small letter is any value, a capital one an assign; k is an index variable. "
	    "The word after the\n"
	    "replacement is the strictest arithmetic that admits the rule. A condition with a question mark "
	    "is\n"
	    "assumed to hold in fast arithmetic.\n",
	    to);
	put_rules(to);
	fputs(".SH SEE ALSO\n.BR espalier (1),\n.BR espalier\\-model (7)\n", to);
	return ok;
}

/* --- all of them --- */

static bool put_bash(FILE *to, const char *unused)
{
	(void)unused;
	completion_bash(to);
	return true;
}

static bool put_fish(FILE *to, const char *unused)
{
	(void)unused;
	completion_fish(to);
	return true;
}

static bool put_zsh(FILE *to, const char *unused)
{
	(void)unused;
	completion_zsh(to);
	return true;
}

static const struct {
	const char *name;
	bool (*put)(FILE *, const char *source);
} pages[] = {
    {"espalier.1", put_espalier},
    {"espalier-algebra.7", put_algebra},
    {"espalier-diagnostics.7", put_diagnostics},
    {"espalier-model.7", put_model},
    {"bash", put_bash},
    {"fish", put_fish},
    {"zsh", put_zsh},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof pages / sizeof *pages; i++)
		if (strcmp(pages[i].name, argv[1]) == 0)
			return pages[i].put(stdout, argv[2]) && fflush(stdout) == 0 ? 0 : 1;
	fputs("usage: manual PAGE [SOURCE]\n", stderr);
	return 2;
}
