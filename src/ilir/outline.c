/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: makes each step a kernel, called over the rows of its domain.  A step that is a sequence of loops
 * over columns becomes a kernel for each, because a call may run only some of the columns.  The loop over
 * batches and the barriers around the steps are dropped: the order and the domains of kernels tell the
 * runtime the same.  Kernels at binding, which precede the program in the module, are unchanged. */
#include "ilir/passes.h"

#include <string.h>

/* The domain of a step in the loop `around`, or at the top (NULL), by its range: a traversal down counts
 * the loop's variable from the end. */
static enum image_domain domain_of(struct ilir_module *m, const struct ilir_stmt *step, const struct ilir_stmt *around)
{
	if (around) {
		ilir_expr read = ilir_loaded_index(m, step->step.begin);
		bool batch = read.i, all = ilir_is_const(m, around->loop.begin, 0);
		ilir_expr first = batch ? ilir_arg(m, read, 0) : step->step.begin;
		if (ilir_at(m, first)->op != ILIR_VAR)
			return batch ? IMAGE_DOMAIN_BATCH_DOWN : IMAGE_DOMAIN_NODE_DOWN;
		return batch ? (all ? IMAGE_DOMAIN_BATCH : IMAGE_DOMAIN_INNER)
			     : (all ? IMAGE_DOMAIN_NODE : IMAGE_DOMAIN_INNER_NODE);
	}
	const struct ilir_node *end = ilir_at(m, step->step.end);
	if (end->op != ILIR_SIZE)
		return IMAGE_DOMAIN_ONCE;
	if (!ilir_is_const(m, step->step.begin, 0))
		return IMAGE_DOMAIN_PAST_LEAVES;
	return end->size == IMAGE_LEAVES   ? IMAGE_DOMAIN_LEAVES
	       : end->size == IMAGE_INPUTS ? IMAGE_DOMAIN_INPUTS
					   : IMAGE_DOMAIN_NODES;
}

/* Whether a block is a sequence of loops with constant bounds, which share nothing but what they store. */
static bool is_columns(const struct ilir_module *m, const struct ilir_stmt *s)
{
	for (; s; s = s->next)
		if (s->kind != ILIR_FOR || !ilir_trip_count(m, s))
			return false;
	return true;
}

static bool is_taken(const struct ilir_module *m, const char *name)
{
	for (size_t k = 0; k < m->kernels.n; k++)
		if (strcmp(m->kernels.at[k].name, name) == 0)
			return true;
	return false;
}

/* Adds a kernel with a unique name, by which its code is found: steps of several traversals may have the
 * same one, and become cases, cases.1. */
static void add_kernel(struct ilir_module *m, struct ilir_kernel k)
{
	const char *name = k.name;
	for (int suffix = 1; is_taken(m, k.name); suffix++) {
		struct str s = str_in(m->arena);
		str_printf(&s, "%s.%d", name, suffix);
		k.name = s.text;
	}
	vec_push(m->arena, &m->kernels, k);
}

static void outline_step(struct ilir_module *m, const struct ilir_stmt *step, enum image_domain domain)
{
	struct ilir_stmt *s = step->step.body;
	struct ilir_kernel k = {.name = step->step.name,
				.domain = domain,
				.body = s,
				.group = step->step.group,
				.cases = step->step.cases};
	if (!s || !s->next || !is_columns(m, s)) {
		add_kernel(m, k);
		return;
	}
	for (const struct ilir_stmt *at = s; at; at = at->next)
		k.parts++;
	while (s) {
		struct str name = str_in(m->arena);
		str_printf(&name, "%s.part%d", step->step.name, ++k.part);
		k.name = name.text;
		k.body = s;
		s = s->next;
		k.body->next = NULL;
		add_kernel(m, k);
	}
}

static void outline_block(struct ilir_module *m, const struct ilir_stmt *s, const struct ilir_stmt *around)
{
	for (; s; s = s->next)
		if (s->kind == ILIR_FOR)
			outline_block(m, s->loop.body, s);
		else if (s->kind == ILIR_STEP)
			outline_step(m, s, domain_of(m, s, around));
}

void ilir_outline(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	const struct ilir_stmt *program = m->kernels.at[m->kernels.n - 1].body;
	m->kernels.n--;
	outline_block(m, program, NULL);
}
