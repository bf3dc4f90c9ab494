/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random expressions in index notation, and those that are about elements' places. */
#ifndef ESPALIER_TESTS_MODELS_INDEX_NOTATION_H
#define ESPALIER_TESTS_MODELS_INDEX_NOTATION_H

#include "tests/models/atoms.h"

/* --- index notation --- */

/* `yN[iNx0 in D, ...] = ` of a form. */
static inline void put_left_side(struct generator *g, const struct form *f, int name)
{
	put(&g->body, "((y%d[", name); /* `not (` would be a call */
	for (int d = 0; d < f->rank; d++) {
		put(&g->body, "%si%dx%d in ", d ? ", " : "", name, d);
		put_extent(&g->body, &f->dim[d]);
	}
	put(&g->body, "] = ");
}

/* The elements of a value with its axes turned, each perhaps from its end. */
static inline bool put_turned(struct generator *g, const struct form *f, int depth)
{
	struct form turned = *f;
	int name = g->names++, by = f->rank ? random_below(f->rank) : 0;
	if (!f->rank)
		return false;
	for (int d = 0; d < f->rank; d++)
		turned.dim[d] = f->dim[(d + by) % f->rank];
	put_left_side(g, f, name);
	put(&g->body, "(");
	put_value(g, &turned, depth);
	for (int d = 0; d < f->rank; d++) {
		put(&g->body, d ? ", " : ")[");
		if (random_below(3) == 0) {
			put_extent(&g->body, &turned.dim[d]);
			put(&g->body, " - 1 - ");
		}
		put(&g->body, "i%dx%d", name, (d + by) % f->rank);
	}
	put(&g->body, "]; y%d))", name);
	return true;
}

/* The elements beside those of a value, and a number where there are none. */
static inline bool put_shifted(struct generator *g, const struct form *f, int depth)
{
	int name = g->names++;
	if (!f->rank)
		return false;
	put_left_side(g, f, name);
	put(&g->body, "((");
	put_value(g, f, depth);
	for (int d = 0; d < f->rank; d++)
		put(&g->body, "%si%dx%d%s", d ? ", " : ")[", name, d,
		    random_below(2)   ? " - 1"
		    : random_below(2) ? " + 1"
				      : "");
	put(&g->body, "] else %s); y%d))", random_below(2) ? "1" : "-1", name);
	return true;
}

/* A reduction over one more axis and over a window along another one. */
static inline bool put_window(struct generator *g, const struct form *f, int depth)
{
	static const char *const reductions[] = {"max", "min", "sum", "prod"};
	struct form more = *f;
	struct extent k = random_extent();
	int name = g->names++, at = f->rank ? random_below(f->rank) : -1;
	if (f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	more.dim[more.rank++] = k;
	if (f->rank)
		put_left_side(g, f, name);
	put(&g->body, "%s((", reductions[random_below(kind_of(f) == INTEGER ? 4 : has_sums(f) ? 3 : 2)]);
	put_value(g, &more, depth);
	put(&g->body, ")[");
	for (int d = 0; d < f->rank; d++) {
		put(&g->body, "i%dx%d", name, d);
		if (d == at)
			put(&g->body, " + %d*w%d - %d", 1 + random_below(2), name, 1 + random_below(2));
		put(&g->body, ", ");
	}
	put(&g->body, "u%d] for u%d", name, name);
	if (at >= 0)
		put(&g->body, ", w%d in %d", name, 1 + random_below(3));
	put(&g->body, f->rank ? "); y%d))" : ")", name);
	return true;
}

/* --- other shapes, indices that are values, reductions after each other --- */

/* Half of an extent that is even; false otherwise. */
static inline bool halve_extent(struct extent *e)
{
	bool even = e->plus % 2 == 0;
	for (int i = 0; i < SYMBOLS; i++)
		even &= e->of[i] % 2 == 0;
	for (int i = 0; even && i < SYMBOLS; i++)
		e->of[i] /= 2;
	e->plus /= even ? 2 : 1;
	return even;
}

/* The elements of a value that has the axes in another order, not turned, with an axis of 1 or one that is taken apart. */
static inline bool put_reshaped(struct generator *g, const struct form *f, int depth)
{
	static const struct extent one = {{0}, 1}, two = {{0}, 2};
	struct form from = *f;
	int by = f->rank ? random_below(f->rank) : 0, at = f->rank ? random_below(f->rank) : 0;
	for (int d = 0; d < f->rank; d++)
		from.dim[d] = f->dim[(d + by) % f->rank];
	if (f->rank && f->rank < RA_MAX_RANK && halve_extent(&from.dim[at]))
		insert_axis(&from, random_below(from.rank + 1), two);
	else if (f->rank < RA_MAX_RANK && random_below(2))
		insert_axis(&from, random_below(from.rank + 1), one);
	put(&g->body, "reshape(");
	put_value(g, &from, depth);
	put(&g->body, f->rank ? ", " : ", 1)[0]");
	put_dims(&g->body, f);
	put(&g->body, f->rank ? ")" : "");
	return true;
}

/* Elements whose index along an axis is that of another value: outside of the axis a number, or the nearest one. */
static inline bool put_gathered(struct generator *g, const struct form *f, int depth)
{
	int axis = f->rank ? random_below(f->rank) : 0, name = g->names++;
	struct form from = *f, index = with_type(g, f, DTYPE_I32);
	struct extent k = random_extent();
	if (!g->typed || !f->rank || form_elements(g, f) * extent_of(g, &k) > 3000)
		return false;
	from.dim[axis] = k;
	put_left_side(g, f, name);
	put(&g->body, "(");
	put_value(g, &from, depth);
	for (int d = 0; d < f->rank; d++) {
		put(&g->body, d ? ", " : ")[");
		if (d == axis) {
			put(&g->body, "(");
			put_value(g, &index, depth < 1 ? depth : 1);
			for (int e = 0; e < f->rank; e++)
				put(&g->body, "%si%dx%d", e ? ", " : ")[", name, e);
			put(&g->body, "]");
		} else {
			put(&g->body, "i%dx%d", name, d);
		}
	}
	put(&g->body, "]%s; y%d))", f->dtype == DTYPE_BOOL || random_below(2) ? "" : " else 1", name);
	return true;
}

/* `[i0, i1, ...LAST]` of the axes on the left, and perhaps of one more. */
static inline void put_indices(struct generator *g, const struct form *f, int name, const char *last)
{
	for (int d = 0; d < f->rank; d++)
		put(&g->body, "%si%dx%d", d ? ", " : "[", name, d);
	if (*last)
		put(&g->body, "%s%s%d", f->rank ? ", " : "[", last, name);
	put(&g->body, f->rank || *last ? "]" : "");
}

/* A reduction over an axis, of what a reduction over the same axis gives before. */
static inline bool put_after(struct generator *g, const struct form *f, int depth)
{
	struct form more = *f;
	struct extent k = random_extent();
	int name = g->names++;
	bool sums = has_sums(f), rounded = kind_of(f) == ROUNDED, last = random_below(2);
	if (f->rank == RA_MAX_RANK || too_large(g, f, &k))
		return false;
	more.dim[more.rank++] = k;
	put(&g->body, "((z%d = ", name);
	put_value(g, &more, depth);
	put(&g->body, "; m%d", name);
	for (int d = 0; d < f->rank; d++) {
		put(&g->body, "%si%dx%d in ", d ? ", " : "[", name, d);
		put_extent(&g->body, &f->dim[d]);
	}
	put(&g->body, "%s = %s(z%d", f->rank ? "]" : "", last ? "max" : "min", name);
	put_indices(g, f, name, "w");
	put(&g->body, " for w%d); ", name);
	if (f->rank)
		put_left_side(g, f, name);
	put(&g->body, "%s(%s(z%d", sums ? "sum" : last ? "min" : "max", rounded ? "tanh" : sums ? "" : "minimum", name);
	put_indices(g, f, name, "u");
	put(&g->body, sums ? " - m%d" : ", -m%d", name);
	put_indices(g, f, name, "");
	put(&g->body, ") for u%d)", name);
	put(&g->body, f->rank ? "; y%d))))" : "))", name);
	return true;
}

#endif
