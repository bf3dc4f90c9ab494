/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "mutate/mutant_lines.h"

#include <stdlib.h>
#include <string.h>

static bool same_name(const struct mutate_name *a, const struct mutate_name *b)
{
	return a->length == b->length && memcmp(a->text, b->text, (size_t)a->length) == 0;
}

bool mutate_same_choice(const struct mutate_choice *a, const struct mutate_choice *b)
{
	bool same = same_name(&a->value, &b->value) && a->regroup.op == b->regroup.op && a->others == b->others;
	for (int i = 0; same && i < a->others; i++)
		same = same_name(&a->other[i], &b->other[i]);
	return same && (a->regroup.op ? a->regroup.dim == b->regroup.dim && a->regroup.number == b->regroup.number
				      : mutate_same_layout(&a->layout, &b->layout));
}

/* --- text --- */

void mutate_print_choice(const struct mutate_choice *c, struct str *to)
{
	const struct mutate_operator_traits *t = &mutate_operators[c->regroup.op];
	str_printf(to, "%.*s", c->value.length, c->value.text);
	if (!c->regroup.op) {
		mutate_print_layout(&c->layout, to);
		return;
	}
	str_printf(to, " %s", t->spelling);
	if (t->dim)
		str_printf(to, " %d", c->regroup.dim);
	if (t->number)
		str_printf(to, " %d", c->regroup.number);
	for (int i = 0; i < c->others; i++)
		str_printf(to, " %.*s", c->other[i].length, c->other[i].text);
}

static enum mutate_operator find_operator(const char *word)
{
	for (int op = MUTATE_NO_OPERATOR + 1; op < MUTATE_OPERATORS; op++)
		if (strcmp(mutate_operators[op].spelling, word) == 0)
			return (enum mutate_operator)op;
	return MUTATE_NO_OPERATOR;
}

/* Reads a number from `low` up to `high`; false if the word is none. */
static bool read_number(char *const *word, int n, int at, int low, int high, int *number)
{
	char *end = "x";
	long x = at < n ? strtol(word[at], &end, 10) : 0;
	*number = (int)x;
	return *end == 0 && at < n && *word[at] && x >= low && x <= high;
}

static int read_regroup(char *const *word, const char *const *text, int n, struct mutate_choice *c)
{
	const struct mutate_operator_traits *t = &mutate_operators[c->regroup.op];
	int at = 1;
	if (t->dim && !read_number(word, n, at++, 0, SUB_MAX_VARS - 1, &c->regroup.dim))
		return at - 1 < n ? at - 1 : n - 1;
	if (t->number && !read_number(word, n, at++, 2, INT32_MAX / 2, &c->regroup.number))
		return at - 1 < n ? at - 1 : n - 1;
	for (; t->values && at < n && c->others < MUTATE_MAX_JOINED - 1; at++)
		c->other[c->others++] = (struct mutate_name){text[at], (int)strlen(word[at])};
	return t->values && !c->others ? n - 1 : at;
}

int mutate_read_choice(char *const *word, const char *const *text, int n, struct mutate_choice *c)
{
	c->others = 0;
	c->regroup = (struct mutate_regroup){.op = find_operator(word[0])};
	return c->regroup.op ? read_regroup(word, text, n, c) : mutate_read_layout(word, n, &c->layout);
}
