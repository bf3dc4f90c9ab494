/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the dump of the stage `choices`, and keeps directives by their keys. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- directives --- */

/* Keeps the order of the others: a later directive may override an earlier one. */
static void remove_directive(struct directives *d, size_t i)
{
	free(d->at[i].key);
	free(d->at[i].line);
	memmove(&d->at[i], &d->at[i + 1], (--d->n - i) * sizeof *d->at);
}

static void remove_superseded(struct directives *d, const char *key, bool plan)
{
	for (size_t i = d->n; i-- > 0;)
		if (strcmp(d->at[i].key, key) == 0 || (plan && !d->at[i].plan))
			remove_directive(d, i);
}

bool directives_set(struct directives *d, const char *key, const char *line, bool plan)
{
	struct directive *more = realloc(d->at, (d->n + 1) * sizeof *more);
	struct directive one = {strdup(key), strdup(line), plan};
	if (more)
		d->at = more;
	if (!more || !one.key || !one.line) {
		free(one.key);
		free(one.line);
		return complain("no memory for a schedule");
	}
	remove_superseded(d, key, plan);
	d->at[d->n++] = one;
	return true;
}

bool directives_copy(struct directives *d, const struct directives *from)
{
	*d = (struct directives){0};
	for (size_t i = 0; i < from->n; i++)
		if (!directives_set(d, from->at[i].key, from->at[i].line, false)) {
			directives_free(d);
			return false;
		}
	for (size_t i = 0; i < d->n; i++)
		d->at[i].plan = from->at[i].plan;
	return true;
}

char *directives_text(const struct directives *d)
{
	size_t length = 0;
	for (size_t i = 0; i < d->n; i++)
		length += strlen(d->at[i].line) + 1;
	char *text = calloc(1, length + 1), *to = text;
	if (!text)
		complain("no memory for a schedule");
	for (size_t i = 0; text && i < d->n; i++)
		to += sprintf(to, "%s\n", d->at[i].line);
	return text;
}

void directives_free(struct directives *d)
{
	while (d->n)
		remove_directive(d, d->n - 1);
	free(d->at);
	*d = (struct directives){0};
}

/* --- reading --- */

bool block_is_plan(const struct block *b)
{
	return strcmp(b->scope, "plan") == 0;
}

const char *block_group(const struct block *b)
{
	const char *space = strchr(b->key, ' ');
	return strcmp(b->scope, "group") == 0 && space ? space + 1 : NULL;
}

const struct block *space_find(const struct space *s, const char *key)
{
	for (size_t i = 0; i < s->blocks; i++)
		if (strcmp(s->block[i].key, key) == 0)
			return &s->block[i];
	return NULL;
}

/* "# SCOPE KEY" */
static bool begin_block(struct space *s, char *line)
{
	char *key = strchr(line + 2, ' ');
	struct block *more = key ? realloc(s->block, (s->blocks + 1) * sizeof *more) : NULL;
	if (!more)
		return false;
	*key++ = 0;
	s->block = more;
	s->block[s->blocks++] = (struct block){.scope = line + 2, .key = key};
	return true;
}

/* "DIRECTIVE  # PREDICTION"; the prediction may be missing. */
static bool add_option(struct block *b, char *line)
{
	struct option *more = realloc(b->option, (b->options + 1) * sizeof *more);
	char *comment = strstr(line, "  # ");
	if (!more)
		return false;
	if (comment)
		*comment = 0;
	b->option = more;
	b->option[b->options++] = (struct option){line, comment ? strtod(comment + 4, NULL) : NAN};
	return true;
}

/* Blocks begin after empty lines; the lines before the first block are for people. */
static bool read_blocks(struct space *s)
{
	bool empty = false, ok = true;
	for (char *line = s->text, *next; ok && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (*line == '#' && empty)
			ok = begin_block(s, line);
		else if (*line && *line != '#' && s->blocks)
			ok = add_option(&s->block[s->blocks - 1], line);
		empty = !*line;
	}
	return ok || complain("no memory for the choices of a schedule");
}

int space_of(struct space *s, esp_program *program)
{
	char *text;
	esp_error *error;
	*s = (struct space){0};
	esp_status status = esp_program_dump(program, "choices", &text, &error);
	if (status)
		return report_failure(status, error);
	s->text = strdup(text);
	esp_text_free(text);
	if (s->text && read_blocks(s))
		return 0;
	space_free(s);
	return EXIT_INPUT;
}

void space_free(struct space *s)
{
	for (size_t i = 0; i < s->blocks; i++)
		free(s->block[i].option);
	free(s->block);
	free(s->text);
	*s = (struct space){0};
}
