/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What rules derive from small models, for tests of them. */
#ifndef ESPALIER_TESTS_DERIVATION_H
#define ESPALIER_TESTS_DERIVATION_H

#include "rewrite/rules.h"
#include "tests/models/generate.h"

struct derivation {
	struct test_model model;
	struct sub_program from, to;
	struct rewrite_trace trace;
	struct rewrite_options options;
};

static inline void derive(struct derivation *d, const char *text, const char *sizes)
{
	d->trace = (struct rewrite_trace){.texts = true};
	if (!tap_ok(load_text(&d->model, "test", text, strlen(text), sizes), "a model"))
		return;
	struct arena *a = &d->model.arena;
	struct sub_program lowered;
	sub_init(&lowered, a, "test");
	sub_init(&d->from, a, "test");
	sub_init(&d->to, a, "test");
	bool exact = d->options.math == REWRITE_EXACT;
	bool ok = sub_lower_model(exact ? &lowered : &d->from, d->model.model, d->model.sizes, SUB_AT_MODEL,
				  &d->model.diags);
	if (ok && exact)
		rewrite_contract(&d->from, &lowered, NULL, NULL);
	if (ok)
		rewrite_optimize(&d->to, &d->from, &d->options, &d->trace);
	sub_verify(&d->to, &d->model.diags);
	print_diags(&d->model.diags);
}

static inline struct derivation with(enum rewrite_math math, unsigned off, int64_t bytes)
{
	return (struct derivation){.options = {.math = math, .off = off, .table_bytes = bytes}};
}

/* The rules that were applied in a body, in order. */
static inline const char *rules_of(struct derivation *d, const char *body)
{
	struct str s = str_in(&d->model.arena);
	for (size_t i = 0; i < d->trace.changes.n; i++)
		if (strcmp(d->trace.changes.at[i].body, body) == 0)
			str_printf(&s, "%s%s", s.n ? " " : "", d->trace.changes.at[i].rule);
	return str_text(&s);
}

static inline void says(const char *is, const char *should, const char *what)
{
	if (!tap_ok(strcmp(is, should) == 0, "%s", what))
		printf("# '%s', not '%s'\n", is, should);
}

#endif
