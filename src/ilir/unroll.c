/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: replaces unrolled loops by a copy of the body for each iteration. */
#include "ilir/passes.h"

static struct ilir_stmt *unroll_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)context;
	int64_t begin, end;
	struct ilir_stmt *block = NULL, **link = &block;
	if (s->kind != ILIR_FOR || s->loop.kind != ILIR_UNROLLED || !ilir_constant(m, s->loop.begin, &begin) ||
	    !ilir_constant(m, s->loop.end, &end))
		return s;
	for (int64_t i = begin; i < end; i += s->loop.step) {
		*link = ilir_substitute_block(m, ilir_clone_block(m, s->loop.body, NULL), s->loop.var, ilir_index(m, i));
		while (*link)
			link = &(*link)->next;
	}
	return block;
}

void ilir_unroll(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = unroll_loop});
}
