/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Completions for shells, made from the tables. */
#include "manual.h"

#include <string.h>

/* --- the kinds of operands and arguments --- */

enum offer { WORDS, FILES, FOLDERS, NUMBERS, COMMAND_NAMES, STAGES, IDS };

static const struct {
	const char *word;
	enum offer offer;
} places[] = {
    {"DIR", FOLDERS}, {"N", NUMBERS}, {"LIST", NUMBERS}, {"COMMAND", COMMAND_NAMES}, {"STAGE", STAGES}, {"ID", IDS},
};

static bool is_word(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* An argument in lower case lists its words, separated by bars; other arguments are files. */
static enum offer offer_of(const char *text, size_t n)
{
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (is_word(text, n, places[i].word))
			return places[i].offer;
	return memchr(text, '|', n) ? WORDS : FILES;
}

/* An operand as the usage shows it, without brackets; its suffix from the point on, or nothing. */
struct operand {
	const char *text;
	size_t n;
	enum offer offer;
	const char *suffix;
	size_t suffix_length;
};

/* The next operand of a usage; false after the last. Dots, which say that it may come again, are no part of it. */
static bool next_operand(const char **usage, struct operand *o)
{
	const char *p = *usage + strspn(*usage, "[ ].");
	*o = (struct operand){.text = p, .n = strcspn(p, "[ ]")};
	*usage = p + o->n;
	o->suffix = memchr(p, '.', o->n);
	o->suffix_length = o->suffix ? (size_t)(p + o->n - o->suffix) : 0;
	o->offer = offer_of(p, o->n);
	return o->n;
}

/* The words of a choice, separated by spaces. */
static void put_words(FILE *to, const char *choice)
{
	for (; *choice; choice++)
		fputc(*choice == '|' ? ' ' : *choice, to);
}

static void put_commands(FILE *to)
{
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "%s%s", i ? " " : "", commands[i].name);
}

/* A text between single quotes, which none of the shells can have inside; \ ' [ ] : are preceded by what is
 * given. */
static void put_quoted(FILE *to, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("\"", to);
		else
			fprintf(to, "%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* --- bash --- */

static void bash_options(FILE *to)
{
	for (int c = 0; c < COMMANDS; c++) {
		fprintf(to, "\t%s) options='", commands[c].name);
		for (int i = 0, n = 0; i < option_count; i++)
			if (takes_option(c, &option_rows[i]))
				fprintf(to, "%s--%s", n++ ? " " : "", option_rows[i].name);
		fputs("' ;;\n", to);
	}
}

static void bash_offer(FILE *to, enum offer offer, const char *words, const char *suffix, int length)
{
	switch (offer) {
	case WORDS:
		fputs("_espalier_words '", to);
		put_words(to, words);
		fputs("'", to);
		break;
	case FILES:
		fprintf(to, "_espalier_files '%.*s'", length, suffix ? suffix : "");
		break;
	case FOLDERS:
		fputs("_espalier_folders", to);
		break;
	case NUMBERS:
		fputs(":", to);
		break;
	case COMMAND_NAMES:
		fputs("_espalier_words '", to);
		put_commands(to);
		fputs("'", to);
		break;
	case STAGES:
		fputs("_espalier_words \"$(\"$1\" dump 2>/dev/null)\"", to);
		break;
	case IDS:
		fputs("_espalier_words \"$(\"$1\" explain-error 2>/dev/null | cut -d ' ' -f 1)\"", to);
		break;
	}
	fputs(" ;;\n", to);
}

static void bash_arguments(FILE *to)
{
	for (int i = 0; i < option_count; i++) {
		const struct option_row *r = &option_rows[i];
		if (!r->argument)
			continue;
		fprintf(to, "\t--%s) ", r->name);
		bash_offer(to, offer_of(r->argument, strlen(r->argument)), r->argument, NULL, 0);
	}
}

static void bash_operands(FILE *to)
{
	for (int c = 0; c < COMMANDS; c++) {
		const char *usage = commands[c].operands;
		struct operand o;
		for (int k = 0; next_operand(&usage, &o); k++) {
			fprintf(to, "\t%s.%d) ", commands[c].name, k);
			bash_offer(to, o.offer, NULL, o.suffix, (int)o.suffix_length);
		}
	}
}

/* The script's constant beginning. */
static const char bash_head[] =
    "# Completion of espalier for bash, made from the tables of the command.\n\n"
    "_espalier_words()\n{\n\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n}\n\n"
    "_espalier_folders()\n{\n\tcompopt -o filenames 2>/dev/null\n"
    "\tmapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n}\n\n"
    "# Files with an ending, or any, and folders on the way to them.\n"
    "_espalier_files()\n{\n\tcompopt -o filenames 2>/dev/null\n"
    "\tmapfile -t COMPREPLY < <(compgen -f -X \"${1:+!*$1}\" -- \"$cur\"; [ -z \"$1\" ] || "
    "compgen -d -- \"$cur\")\n}\n\n";

static const char bash_begin[] =
    "_espalier()\n{\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
    "\tlocal options= operands=0 i\n"
    "\tCOMPREPLY=()\n"
    "\tif [ \"$cur\" = = ]; then\n\t\tcur=\n"
    "\telif [ \"$before\" = = ]; then\n\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}\n\tfi\n"
    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\t_espalier_words '";

static const char bash_count[] =
    "\t*) false ;;\n\tesac && return\n"
    "\tif [[ $cur == -* ]]; then\n\t\t_espalier_words \"$options\"\n\t\treturn\n\tfi\n"
    "\t# Operands before this word: neither options nor the arguments of options.\n"
    "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
    "\t\tcase ${COMP_WORDS[i]} in\n\t\t";

static void bash_skipped(FILE *to)
{
	for (int i = 0, n = 0; i < option_count; i++)
		if (option_rows[i].argument)
			fprintf(to, "%s--%s", n++ ? " | " : "", option_rows[i].name);
	fputs(
	    ")\n\t\t\t[ \"${COMP_WORDS[i + 1]}\" = = ] && i=$((i + 1))\n\t\t\ti=$((i + 1))\n\t\t\t;;\n"
	    "\t\t-?*) ;;\n\t\t*) operands=$((operands + 1)) ;;\n\t\tesac\n\tdone\n",
	    to);
}

void completion_bash(FILE *to)
{
	fputs(bash_head, to);
	fputs(bash_begin, to);
	put_commands(to);
	fputs(" --version --help'\n\t\treturn\n\tfi\n\tcase $command in\n", to);
	bash_options(to);
	fputs("\tesac\n\tcase $before in\n", to);
	bash_arguments(to);
	fputs(bash_count, to);
	bash_skipped(to);
	fputs("\tcase $command.$operands in\n", to);
	bash_operands(to);
	fputs("\tesac\n}\n\ncomplete -F _espalier espalier\n", to);
}

/* --- fish --- */

static void fish_offer(FILE *to, const struct operand *o)
{
	switch (o->offer) {
	case COMMAND_NAMES:
		fputs(" -a '", to);
		put_commands(to);
		fputs("'", to);
		break;
	case STAGES:
		fputs(" -a '(espalier dump)'", to);
		break;
	case IDS:
		fputs(" -a '(espalier explain-error | string replace -r \" +\" \\t)'", to);
		break;
	default:
		if (o->suffix)
			fprintf(to, " -k -a '(__fish_complete_suffix %.*s)'", (int)o->suffix_length,
				o->suffix);
		else
			fputs(" -F", to);
	}
}

static void fish_argument(FILE *to, const char *argument)
{
	switch (offer_of(argument, strlen(argument))) {
	case WORDS:
		fputs(" -x -a '", to);
		put_words(to, argument);
		fputs("'", to);
		break;
	case FOLDERS:
		fputs(" -x -a '(__fish_complete_directories)'", to);
		break;
	case NUMBERS:
		fputs(" -x", to);
		break;
	default:
		fputs(" -r -F", to);
	}
}

static void fish_command(FILE *to, enum command_id c)
{
	static const char seen[] = "complete -c espalier -n '__fish_seen_subcommand_from %s'";
	const char *usage = commands[c].operands;
	struct operand o;
	fprintf(to, "\ncomplete -c espalier -n __fish_use_subcommand -a %s -d '", commands[c].name);
	put_quoted(to, commands[c].summary, "\\");
	fputs("'\n", to);
	while (next_operand(&usage, &o)) {
		fprintf(to, seen, commands[c].name);
		fish_offer(to, &o);
		fputc('\n', to);
	}
	for (int i = 0; i < option_count; i++) {
		const struct option_row *r = &option_rows[i];
		if (!takes_option(c, r))
			continue;
		fprintf(to, seen, commands[c].name);
		fprintf(to, " -l %s", r->name);
		if (r->argument)
			fish_argument(to, r->argument);
		fputs(" -d '", to);
		put_quoted(to, r->help, "\\");
		fputs("'\n", to);
	}
}

void completion_fish(FILE *to)
{
	fputs(
	    "# Completion of espalier for fish, made from the tables of the command.\n"
	    "complete -c espalier -f\n"
	    "complete -c espalier -n __fish_use_subcommand -l version\n"
	    "complete -c espalier -n __fish_use_subcommand -l help\n",
	    to);
	for (int c = 0; c < COMMANDS; c++)
		fish_command(to, c);
}

/* --- zsh --- */

static void zsh_offer(FILE *to, enum offer offer, const char *words, const struct operand *o)
{
	switch (offer) {
	case WORDS:
		fputs("(", to);
		put_words(to, words);
		fputs(")", to);
		break;
	case FOLDERS:
		fputs("_files -/", to);
		break;
	case NUMBERS:
		break;
	case COMMAND_NAMES:
		fputs("(", to);
		put_commands(to);
		fputs(")", to);
		break;
	case STAGES:
		fputs("($(espalier dump 2>/dev/null))", to);
		break;
	case IDS:
		fputs("($(espalier explain-error 2>/dev/null | cut -d \" \" -f 1))", to);
		break;
	case FILES:
		if (o && o->suffix)
			fprintf(to, "_files -g \"*%.*s\"", (int)o->suffix_length, o->suffix);
		else
			fputs("_files", to);
	}
}

static void zsh_command(FILE *to, enum command_id c)
{
	const char *usage = commands[c].operands;
	struct operand o;
	fprintf(to, "\t%s)\n\t\t_arguments", commands[c].name);
	for (int i = 0; i < option_count; i++) {
		const struct option_row *r = &option_rows[i];
		if (!takes_option(c, r))
			continue;
		fprintf(to, " \\\n\t\t\t'--%s%s[", r->name, r->argument ? "=" : "");
		put_quoted(to, r->help, "\\[]:");
		fputs("]", to);
		if (r->argument) {
			fputs(":argument:", to);
			zsh_offer(to, offer_of(r->argument, strlen(r->argument)), r->argument, NULL);
		}
		fputs("'", to);
	}
	for (int k = 1; next_operand(&usage, &o); k++) {
		fprintf(to, " \\\n\t\t\t'%d:%s%.*s:", k, k > commands[c].least ? ":" : "", (int)o.n, o.text);
		zsh_offer(to, o.offer, NULL, &o);
		fputs("'", to);
	}
	fputs("\n\t\t;;\n", to);
}

void completion_zsh(FILE *to)
{
	fputs(
	    "#compdef espalier\n# Completion of espalier for zsh, made from the tables of the command.\n\n"
	    "local -a commands=(\n",
	    to);
	for (int c = 0; c < COMMANDS; c++) {
		fprintf(to, "\t'%s:", commands[c].name);
		put_quoted(to, commands[c].summary, "\\:");
		fputs("'\n", to);
	}
	fputs(
	    ")\n\nif ((CURRENT == 2)); then\n\t_describe command commands\n\treturn\nfi\n"
	    "local command=$words[2]\nshift words\n((CURRENT--))\ncase $command in\n",
	    to);
	for (int c = 0; c < COMMANDS; c++)
		zsh_command(to, c);
	fputs("esac\n", to);
}
