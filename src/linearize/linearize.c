#include "linearize/linearize.h"

#include <string.h>

enum { ALIGNMENT = 64 };

void lin_order_init(struct lin_order *o, const struct allocator *allocator)
{
	*o = (struct lin_order){.allocator = allocator};
}

void lin_order_free(struct lin_order *o)
{
	if (o->block)
		o->allocator->resize(o->allocator->context, o->block, o->bytes, 0);
	lin_order_init(o, o->allocator);
}

/* Forgets what the last call left; the memory stays. */
static void reset(struct lin_order *o)
{
	*o = (struct lin_order){.allocator = o->allocator, .block = o->block, .bytes = o->bytes};
}

/* --- memory: one block, carved anew by every call --- */

struct piece {
	int32_t **array;
	size_t count, copies; /* `copies` arrays of `count`, each aligned */
};

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The block's size with room for its own alignment; false when it overflows. */
static bool measure(const struct piece *p, size_t n, size_t *bytes)
{
	*bytes = ALIGNMENT;
	for (size_t i = 0; i < n; i++) {
		size_t piece;
		if (__builtin_mul_overflow(aligned(p[i].count * sizeof(int32_t)), p[i].copies, &piece) ||
		    __builtin_add_overflow(*bytes, piece, bytes))
			return false;
	}
	return *bytes <= PTRDIFF_MAX / 2;
}

/* What is in the block need not survive.  Half as much again, so that a slowly growing load settles soon. */
static bool reserve(struct lin_order *o, size_t bytes)
{
	if (bytes <= o->bytes)
		return true;
	const struct allocator *a = o->allocator;
	if (o->block)
		a->resize(a->context, o->block, o->bytes, 0);
	o->bytes = bytes + bytes / 2;
	o->block = a->resize(a->context, NULL, 0, o->bytes);
	if (!o->block) {
		o->bytes = bytes;
		o->block = a->resize(a->context, NULL, 0, o->bytes);
	}
	if (!o->block)
		o->bytes = 0;
	return o->block;
}

static void carve(struct lin_order *o, const struct piece *p, size_t n)
{
	char *at = (char *)aligned((uintptr_t)o->block);
	for (size_t i = 0; i < n; i++) {
		*p[i].array = p[i].copies ? (int32_t *)at : NULL;
		at += aligned(p[i].count * sizeof(int32_t)) * p[i].copies;
	}
}

/* There are at most as many batches as nodes; `batch_begin` has a place to spare, which lin_frontier counts
 * in.  `number` and `height` have two, for the children of leaves (see scan.c). */
static bool prepare(struct lin_order *o, struct lin_rules rules, struct diags *diags)
{
	bool fixed = rules.children >= 0, list = !fixed || rules.edges;
	size_t nodes = o->nodes, slots = fixed && !rules.unlinked ? rules.children : 0, bytes;
	struct piece pieces[] = {
	    {&o->order, nodes, 1},
	    {&o->number, nodes + 2, 1},
	    {&o->height, nodes + 2, 1},
	    {&o->batch_begin, nodes + 2, 1},
	    {&o->root, o->inputs, 1},
	    {&o->child, nodes, slots},
	    {&o->child_begin, nodes + 1, list},
	    {&o->child_list, o->edges, list && !rules.unlinked},
	    {&o->place, nodes, rules.places && !rules.shared},
	};
	enum { PIECES = sizeof pieces / sizeof *pieces };
	if (!measure(pieces, PIECES, &bytes) || !reserve(o, bytes))
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "run fewer inputs at a time",
				"no memory for the index arrays of %zu nodes", nodes);
	carve(o, pieces, PIECES);
	o->slots = slots;
	o->stride = aligned(nodes * sizeof(int32_t)) / sizeof(int32_t);
	return true;
}

/* Without edges nothing is read from `children`, which may then be NULL, but pointers into it are still made. */
static bool linearize(struct lin_order *o, const struct lin_forest *given, struct lin_rules rules,
		      struct diags *diags)
{
	static const int32_t none;
	struct lin_forest forest = *given;
	const struct lin_forest *f = &forest;
	if (!lin_check_sizes(f, diags))
		return false;
	if (!forest.children)
		forest.children = &none;
	o->nodes = f->nodes;
	o->inputs = f->inputs;
	o->edges = f->nodes ? f->child_begin[f->nodes] - f->child_begin[0] : 0;
	if (!prepare(o, rules, diags) || !lin_scan(o, f, rules, diags) || !lin_frontier(o, f, diags))
		return false;
	lin_fill(o, f);
	return true;
}

bool lin_linearize(struct lin_order *o, const struct lin_forest *f, struct lin_rules rules,
		   struct diags *diags)
{
	reset(o);
	if (linearize(o, f, rules, diags))
		return true;
	reset(o);
	return false;
}
