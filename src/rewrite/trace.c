/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The derivation of a program, as text. */
#include "rewrite/rule_engine.h"

#include <inttypes.h>

static int depth_of(const struct rewrite_term *t)
{
	int most = 0;
	for (int a = 0; a < t->args; a++) {
		int depth = depth_of(t->arg[a]);
		most = depth > most ? depth : most;
	}
	return most + (t->kind != REWRITE_TERM_NAME && t->kind != REWRITE_TERM_NUMBER);
}

static void describe_value(struct rewriter *w, sub_ref r, int depth, struct str *s)
{
	r = rewrite_resolve(w, r);
	const struct sub_value *v = sub_at(w->p, r);
	if (sub_class_of(v->op) == SUB_SOURCE || depth == 0) {
		sub_print_name(w->p, r, s);
		return;
	}
	str_puts(s, sub_spelling(v->op));
	if (sub_reduces(v->op))
		sub_print_reduced(w->p, v, s);
	str_puts(s, "(");
	for (int a = 0; a < v->args; a++) {
		str_puts(s, a ? ", " : "");
		describe_value(w, v->arg[a].value, depth - 1, s);
		if (v->op == SUB_ASSIGN)
			sub_print_maps(w->p, v, s);
	}
	str_puts(s, ")");
}

const char *rewrite_describe_value(struct rewriter *w, sub_ref r, const struct rewrite_term *as)
{
	struct str s = str_in(w->arena);
	int depth = depth_of(as);
	describe_value(w, r, depth ? depth + 1 : 1, &s);
	return str_text(&s);
}

static void print_change(const struct rewrite_change *c, struct str *s)
{
	str_printf(s, "%s: %s saves %.10g\n", c->body, c->rule, c->saved);
	if (c->before)
		str_printf(s, "    %s\n -> %s\n", c->before, c->after);
}

void rewrite_print_trace(const struct rewrite_trace *t, struct str *s)
{
	for (size_t i = 0; i < t->changes.n; i++)
		print_change(&t->changes.at[i], s);
	if (!t->changes.n)
		str_puts(s, "no rule was applied\n");
	for (size_t i = 0; i < t->notes.n; i++)
		str_printf(s, "%s\n", t->notes.at[i]);
}
