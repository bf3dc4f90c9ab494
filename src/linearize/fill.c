/* The index arrays that kernels read, in the new numbers. */
#include "linearize/linearize.h"

#include <string.h>

static void fill_roots(struct lin_order *o, const struct lin_forest *f)
{
	for (int32_t i = 0; i < o->inputs; i++)
		o->root[i] = o->number[f->root[i]];
}

static void fill_slots(struct lin_order *o, const struct lin_forest *f)
{
	for (int32_t slot = 0; slot < o->slots; slot++)
		memset(lin_child(o, slot), -1, o->leaves * sizeof *o->child);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		const int32_t *from = f->children + f->child_begin[o->order[n]];
		int32_t *to = o->child + n;
		for (int32_t slot = 0; slot < o->slots; slot++, to += o->stride)
			*to = o->number[from[slot]];
	}
}

/* Leaves come first, so that their part of child_begin is zero. */
static void fill_list(struct lin_order *o, const struct lin_forest *f)
{
	int32_t edges = 0;
	memset(o->child_begin, 0, (o->leaves + (size_t)1) * sizeof *o->child_begin);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		int32_t old = o->order[n], first = edges;
		edges += f->child_begin[old + 1] - f->child_begin[old];
		for (int32_t e = first; o->child_list && e < edges; e++)
			o->child_list[e] = o->number[f->children[f->child_begin[old] + e - first]];
		o->child_begin[n + 1] = edges;
	}
}

/* No node has two parents, so that every rank is taken once.  Those without one mostly are the last. */
static void fill_places(struct lin_order *o, const struct lin_forest *f)
{
	int32_t rank = 0;
	memset(o->place, -1, o->nodes * sizeof *o->place);
	for (int32_t n = o->leaves; n < o->nodes; n++) {
		const int32_t *begin = f->child_begin + o->order[n];
		for (int32_t i = begin[0]; i < begin[1]; i++)
			o->place[o->number[f->children[i]]] = rank++;
	}
	for (int32_t n = o->nodes, last = o->nodes; last > rank;)
		if (o->place[--n] < 0)
			o->place[n] = --last;
}

void lin_fill(struct lin_order *o, const struct lin_forest *f)
{
	fill_roots(o, f);
	if (o->child_begin)
		fill_list(o, f);
	if (o->slots)
		fill_slots(o, f);
	if (o->place)
		fill_places(o, f);
}
