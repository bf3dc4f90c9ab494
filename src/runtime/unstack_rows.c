/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rows of a minibatch of which each row of the caller's is several: nodes without edges, an input each.  Their data lie in the
 * caller's arrays one after the other, so nothing but the structure is written. */
#include "runtime/shared.h"

/* Whether each input is one node; what is not is left as it is, and refused when it is linearized. */
static bool are_rows(const struct lin_forest *f)
{
	bool rows = f->nodes == f->inputs && f->nodes > 0 && f->root && f->child_begin && f->child_begin[0] == f->child_begin[f->nodes];
	for (int64_t i = 0; rows && i < f->inputs; i++)
		rows = f->root[i] >= 0 && f->root[i] < f->nodes;
	return rows;
}

static bool refuse_rows(int64_t given, int64_t stack, struct diags *diags)
{
	return diag_add(diags, DIAG_TOO_MANY_NODES, (struct diag_at){0}, "run fewer rows at once",
			"the minibatch has %lld rows of %lld instances each, and more than %d in all", (long long)given,
			(long long)stack, INT32_MAX);
}

static void fill_rows(struct lin_forest *rows, const struct lin_forest *given, int64_t stack, int32_t *at)
{
	int32_t *root = at + rows->nodes + 1;
	for (int64_t n = 0; n <= rows->nodes; n++)
		at[n] = 0;
	for (int64_t i = 0; i < given->inputs; i++)
		for (int64_t k = 0; k < stack; k++)
			root[i * stack + k] = (int32_t)(given->root[i] * stack + k);
	rows->child_begin = at;
	rows->root = root;
	rows->input_begin = NULL;
	rows->origins = 0;
}

bool rt_unstack_rows(struct rt_unstacked *u, const struct allocator *a, const struct image *image,
		     const struct rt_minibatch *given, struct rt_minibatch *rows, struct diags *diags)
{
	int64_t stack = image_stack(image), nodes;
	*rows = *given;
	if (stack < 2 || !are_rows(&given->forest))
		return true;
	if (__builtin_mul_overflow(given->forest.nodes, stack, &nodes) || nodes > INT32_MAX)
		return refuse_rows(given->forest.nodes, stack, diags);
	if (!rt_reserve_memory(a, (void **)&u->at, &u->capacity, (2 * nodes + 1) * (int64_t)sizeof *u->at, rt_allocate,
			       "a session", diags))
		return false;
	rows->forest.nodes = rows->forest.inputs = nodes;
	fill_rows(&rows->forest, &given->forest, stack, u->at);
	return true;
}
