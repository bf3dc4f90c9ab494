/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: makes each step a kernel, called over the rows of its domain.  A step that is a sequence of loops
 * over columns becomes a kernel for each, because a call may run only some of the columns; loops over rows
 * before them, which compute local groups, are at the head of each.  The loop over batches and the barriers
 * around the steps are dropped: the order and the domains of kernels tell the runtime the same.  Kernels at
 * binding, which precede the program in the module, are unchanged. */
#include "ilir/passes.h"

#include <string.h>

/* Whether a step in a loop has the same rows in each iteration: the loop is over the steps of a scan. */
static bool is_scan(const struct ilir_module *m, const struct ilir_stmt *step)
{
	return ilir_at(m, step->step.end)->op == ILIR_SIZE;
}

/* The domain of a step in the loop `around`, or at the top (NULL), by its range: a traversal down counts
 * the loop's variable from the end. */
static enum image_domain domain_of(struct ilir_module *m, const struct ilir_stmt *step, const struct ilir_stmt *around)
{
	if (around && is_scan(m, step))
		return IMAGE_DOMAIN_SCAN;
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

/* Cuts a block behind its head, the loops over rows that it begins with; returns the rest. */
static struct ilir_stmt *cut_head(const struct ilir_module *m, struct ilir_stmt **block)
{
	struct ilir_stmt **link = block, *rest;
	while (*link && (*link)->kind == ILIR_FOR && !ilir_trip_count(m, *link))
		link = &(*link)->next;
	rest = *link;
	*link = NULL;
	return rest;
}

/* Makes each loop of a sequence a kernel behind a copy of the head. */
static void outline_parts(struct ilir_module *m, struct ilir_kernel k, const char *step, struct ilir_stmt *head,
			  struct ilir_stmt *s, struct ilir_tiling *tiling)
{
	for (const struct ilir_stmt *at = s; at; at = at->next)
		k.parts++;
	for (struct ilir_stmt *next; s; s = next) {
		struct str name = str_in(m->arena);
		str_printf(&name, "%s.part%d", step, ++k.part);
		k.name = name.text;
		next = s->next;
		s->next = NULL;
		k.body = ilir_append(next ? ilir_clone_block(m, head, tiling) : head, s);
		add_kernel(m, k);
		k.apart = false;
	}
}

/* Reads the step of a scan, which is the variable of a loop around its kernels, from the memory of the
 * thread.  The range stays known. */
static struct ilir_stmt *read_scan_step(struct ilir_module *m, struct ilir_stmt *body,
					const struct ilir_stmt *loop)
{
	if (ilir_trip_count(m, loop) == 1)
		return ilir_substitute_block(m, body, loop->loop.var, loop->loop.begin);
	ilir_expr none = ilir_index(m, 0), one = ilir_index(m, 1),
		  at = ilir_load_index(m, ilir_find_buffer(m, IMAGE_STEP), &none, 1);
	at = ilir_binary(m, ILIR_MAX, at, loop->loop.begin);
	at = ilir_binary(m, ILIR_MIN, at, ilir_binary(m, ILIR_SUB, loop->loop.end, one));
	return ilir_substitute_block(m, body, loop->loop.var, at);
}

static void outline_step(struct ilir_module *m, const struct ilir_stmt *step, const struct ilir_stmt *around,
			 struct ilir_tiling *tiling)
{
	enum image_domain domain = domain_of(m, step, around);
	int64_t begin = 0, end = 0;
	if (domain == IMAGE_DOMAIN_SCAN) {
		ilir_constant(m, around->loop.begin, &begin);
		ilir_constant(m, around->loop.end, &end);
	}
	struct ilir_stmt *body =
	    domain == IMAGE_DOMAIN_SCAN ? read_scan_step(m, step->step.body, around) : step->step.body;
	struct ilir_stmt *head = body, *rest = cut_head(m, &head);
	struct ilir_kernel k = {.name = step->step.name,
				.domain = domain,
				.first = (int)begin,
				.last = (int)end,
				.group = step->step.group,
				.cases = step->step.cases,
				.sort = step->step.sort,
				.apart = step->step.apart,
				.call = step->step.call};
	if (rest && rest->next && is_columns(m, rest)) {
		outline_parts(m, k, step->step.name, head, rest, tiling);
		return;
	}
	k.body = ilir_append(head, rest);
	add_kernel(m, k);
}

static void outline_block(struct ilir_module *m, const struct ilir_stmt *s, const struct ilir_stmt *around,
			  struct ilir_tiling *tiling)
{
	for (; s; s = s->next)
		if (s->kind == ILIR_FOR)
			outline_block(m, s->loop.body, s, tiling);
		else if (s->kind == ILIR_STEP)
			outline_step(m, s, around, tiling);
}

void ilir_outline(struct ilir_module *m, struct ilir_tiling *tiling)
{
	const struct ilir_stmt *program = m->kernels.at[m->kernels.n - 1].body;
	m->kernels.n--;
	outline_block(m, program, NULL, tiling);
}
