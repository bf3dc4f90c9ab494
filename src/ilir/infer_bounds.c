/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: infers the bounds of producers from the regions that their consumers read.
 *
 * Needs: loops with INFERRED bounds store to intermediates only, at their own variable.  Consumers come after
 * producers, so bounds are found from the last consumer back, one producer in each round. */
#include "ilir/passes.h"

struct regions {
	struct ilir_range (*read)[ILIR_MAX_RANK]; /* by buffer */
	/* a bound was inferred in this round; no more can be, so that full extents are used */
	bool progress, give_up;
};

static void note_read(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct regions *regions = context;
	for (int d = 0; a->load.i && d < a->indices; d++) {
		struct ilir_range r;
		ilir_range_of(m, a->index[d], a->known, &r);
		ilir_widen(&regions->read[a->buffer.i][d], r);
	}
}

static void find_regions(const struct ilir_module *m, struct regions *r)
{
	r->read = arena_take(m->arena, m->buffers.n, sizeof *r->read);
	for (size_t b = 0; b < m->buffers.n; b++)
		for (int d = 0; d < ILIR_MAX_RANK; d++)
			r->read[b][d] = (struct ilir_range){INT64_MAX, INT64_MIN};
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_accesses(m, m->kernels.at[k].body, note_read, r);
}

/* The region that a loop must produce: the union of those read of all buffers that it stores to at its
 * own variable. */
struct region {
	const struct regions *regions;
	ilir_var var;
	struct ilir_range range;
	int64_t extent;
};

static void add_region(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct region *w = context;
	if (s->kind != ILIR_STORE || ilir_buffer_at(m, s->store.buffer)->kind == ILIR_REGISTER)
		return;
	for (int d = 0; d < s->store.indices; d++) {
		const struct ilir_node *n = ilir_at(m, s->store.index[d]);
		if (n->op != ILIR_VAR || n->var.i != w->var.i)
			continue;
		ilir_widen(&w->range, w->regions->read[s->store.buffer.i][d]);
		w->extent = ilir_buffer_at(m, s->store.buffer)->dim[d].extent;
	}
}

static struct ilir_stmt *bound_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct regions *regions = context;
	if (s->kind != ILIR_FOR || ilir_at(m, s->loop.end)->op != ILIR_INFERRED)
		return s;
	struct region w = {regions, s->loop.var, {INT64_MAX, INT64_MIN}, 0};
	struct ilir_visit visit = {.stmt = add_region, .context = &w};
	ilir_visit_block(m, s->loop.body, &visit);
	bool known = w.range.low >= 0 && w.range.high < w.extent && w.range.low <= w.range.high;
	if (!known && !regions->give_up)
		return s;
	s->loop.begin = ilir_index(m, known ? w.range.low : 0);
	s->loop.end = ilir_index(m, known ? w.range.high + 1 : w.extent);
	regions->progress = true;
	return s;
}

static void note_inferred(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	bool *any = context;
	*any |= s->kind == ILIR_FOR && ilir_at(m, s->loop.end)->op == ILIR_INFERRED;
}

static bool any_inferred(const struct ilir_module *m)
{
	bool any = false;
	struct ilir_visit visit = {.stmt = note_inferred, .context = &any};
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_block(m, m->kernels.at[k].body, &visit);
	return any;
}

void ilir_infer_bounds(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	struct regions regions = {.progress = true};
	while (any_inferred(m)) {
		/* without progress, no region read of the remaining buffers has known bounds */
		regions.give_up = !regions.progress;
		regions.progress = false;
		find_regions(m, &regions);
		ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = bound_loop, .context = &regions});
	}
}
