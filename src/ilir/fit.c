/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sets the padded extents of buffers to the least that covers all accesses, and is the same in a state and its table. */
#include "ilir/passes.h"

static void extend_padding(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	(void)context;
	struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	for (int d = 0; d < a->indices; d++) {
		struct ilir_range r;
		ilir_range_of(m, a->index[d], a->known, &r);
		if (b->kind != ILIR_REGISTER && b->dim[d].rows == IMAGE_ONE && r.high != INT64_MAX && r.high >= b->dim[d].padded)
			b->dim[d].padded = r.high + 1;
	}
}

/* Makes the extents of a recipe those of its buffer. */
static void fit_recipe(struct ilir_module *m, struct ilir_buffer_decl *b)
{
	struct image_recipe *r = arena_copy(m->arena, b->recipe, sizeof *r);
	for (int d = 0; d < b->rank; d++)
		r->dim[d].extent = b->dim[d].padded;
	b->recipe = r;
}

/* Gives the rows of a state and those of its table one padding. */
static void match_table(struct ilir_module *m, struct ilir_buffer_decl *b)
{
	struct ilir_buffer_decl *t = ilir_buffer_at(m, b->table);
	for (int d = 1; d < b->rank; d++) {
		int64_t most = b->dim[d].padded > t->dim[d].padded ? b->dim[d].padded : t->dim[d].padded;
		b->dim[d].padded = t->dim[d].padded = most;
	}
}

void ilir_fit_buffers(struct ilir_module *m)
{
	for (size_t b = 1; b < m->buffers.n; b++)
		for (int d = 0; d < m->buffers.at[b].rank; d++)
			m->buffers.at[b].dim[d].padded = m->buffers.at[b].dim[d].extent;
	for (size_t k = 0; k < m->kernels.n; k++)
		ilir_visit_accesses(m, m->kernels.at[k].body, extend_padding, NULL);
	for (size_t b = 1; b < m->buffers.n; b++)
		if (m->buffers.at[b].table.i)
			match_table(m, &m->buffers.at[b]);
	for (size_t b = 1; b < m->buffers.n; b++)
		if (m->buffers.at[b].recipe && m->buffers.at[b].recipe->dims == m->buffers.at[b].rank)
			fit_recipe(m, &m->buffers.at[b]);
}
