/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds steps that need not wait for all threads behind the step before them.
 *
 * Where threads divide columns, a chunk of a step has the same columns as the chunk of the step before.  If
 * the step uses of what that one stores only the elements in its own columns, the thread that needs them has
 * stored them itself: so the gates of one level can follow the products that the level below keeps for its
 * parents. What a step stores must not be read by the step before in other columns either; a row of a state
 * is stored once, before anything reads it. */
#include "ilir/passes.h"

#include <string.h>

/* What one step does with a buffer: masks of the dimensions in which all its accesses stay in their block. */
struct block_use {
	bool loads, stores;
	unsigned own;
};

struct block_uses {
	struct block_use *of; /* by buffer */
	const struct ilir_stmt *loop;
	int64_t begin;
};

/* A mask of the dimensions in which an access of the first block is in it, and moves with the loop. */
static unsigned own_dimensions(const struct ilir_module *m, const struct ilir_access *a,
			       const struct block_uses *uses)
{
	unsigned own = 0;
	for (int d = 0; d < a->indices; d++) {
		struct ilir_range r;
		bool in_block = ilir_range_of(m, a->index[d], a->known, &r) && r.low >= uses->begin &&
				r.high < uses->begin + uses->loop->loop.step;
		own |=
		    in_block && ilir_moves_with(m, a->index[d], uses->loop->loop.var, a->known) ? 1u << d : 0;
	}
	return own;
}

static void note_use(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct block_uses *uses = context;
	struct block_use *use = &uses->of[a->buffer.i];
	unsigned own = own_dimensions(m, a, uses);
	if (ilir_is_prefetch(a))
		return;
	use->own = use->loads || use->stores ? use->own & own : own;
	use->loads |= a->load.i != 0;
	use->stores |= !a->load.i;
}

/* What stands before the loop is in no block. */
static void note_head(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct block_use *use = &((struct block_uses *)context)->of[a->buffer.i];
	(void)m;
	if (ilir_is_prefetch(a))
		return;
	use->own = 0;
	use->loads |= a->load.i != 0;
	use->stores |= !a->load.i;
}

/* False if the kernel has no blocks, or blocks of rows as well. */
static bool find_uses(struct ilir_module *m, const struct ilir_kernel *k, struct block_uses *uses)
{
	const struct ilir_stmt *loop = ilir_swept_loop(k);
	if (!loop || ilir_blocks(m, loop->loop.body) > 1 || !ilir_constant(m, loop->loop.begin, &uses->begin) ||
	    uses->begin)
		return false;
	struct ilir_stmt first = *loop;
	first.loop.end = ilir_index(m, first.loop.step);
	uses->loop = loop;
	uses->of = ARENA_ARRAY(m->arena, struct block_use, m->buffers.n);
	ilir_visit_accesses(m, &first, note_use, uses);
	for (const struct ilir_stmt *s = k->body; s->next; s = s->next) {
		struct ilir_stmt alone = *s;
		alone.next = NULL;
		ilir_visit_accesses(m, &alone, note_head, uses);
	}
	return true;
}

/* Whether intermediates share memory with others: then a buffer is not all that is stored to there. */
static bool has_own_place(const struct ilir_module *m, ilir_buffer b, const struct image *image)
{
	int slot = ilir_buffer_slot(m, b);
	const struct image_buffer *at = slot < 0 ? NULL : &image->buffer[slot];
	for (int i = 0; at && at->kind == IMAGE_SCRATCH && i < image->buffers; i++)
		if (i != slot && image->buffer[i].kind == IMAGE_SCRATCH && image->buffer[i].home == at->home)
			return false;
	return true;
}

static bool uses_agree(const struct ilir_module *m, ilir_buffer b, const struct block_use *x,
		  const struct block_use *y, const struct image *image)
{
	int kind = ilir_buffer_at(m, b)->kind;
	bool after = x->stores && (y->loads || y->stores),
	     before = x->loads && y->stores && kind != IMAGE_STATE;
	if (kind == IMAGE_LOCAL || kind == ILIR_REGISTER)
		return true;
	if ((x->stores || y->stores) && !has_own_place(m, b, image))
		return false;
	return (!after && !before) || (x->own & y->own);
}

bool ilir_can_join(struct ilir_module *m, const struct ilir_kernel *before, const struct ilir_kernel *after,
		   const struct image *image)
{
	struct block_uses x = {0}, y = {0};
	if (!find_uses(m, before, &x) || !find_uses(m, after, &y))
		return false;
	bool can = true;
	for (uint32_t b = 1; can && b < m->buffers.n; b++)
		can = uses_agree(m, (ilir_buffer){b}, &x.of[b], &y.of[b], image);
	return can;
}
