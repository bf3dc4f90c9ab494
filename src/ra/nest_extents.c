/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The extents of index variables, which follow from where they stand. */
#include "ra/nest.h"

bool ra_index_range(const struct ra_model *m, const struct ra_index_form *form, struct ra_dim *least,
		    struct ra_dim *most)
{
	const struct ra_dim one = ra_dim_constant(1);
	*least = *most = form->offset;
	for (int t = 0; t < form->terms; t++) {
		struct ra_dim last, *end = form->term[t].scale < 0 ? least : most;
		if (!ra_dim_add(&m->indices.at[form->term[t].index].extent, -1, &one, &last) ||
		    !ra_dim_add(end, form->term[t].scale, &last, end))
			return false;
	}
	return true;
}

static struct ra_nest_variable *variable_of(const struct ra_nest *nest, int index)
{
	for (size_t i = 0; i < nest->variables.n; i++)
		if (nest->variables.at[i].index == index)
			return &nest->variables.at[i];
	return NULL;
}

static struct ra_dim *extent_of(struct ra_graph *g, const struct ra_nest_variable *v)
{
	return &g->model->indices.at[v->index].extent;
}

static bool refuse_extents(struct ra_graph *g, const struct ra_nest_variable *v, const struct ra_dim *other,
			   struct ra_span from)
{
	g->nest->failed = true;
	return ra_refuse(g, DIAG_MODEL_SHAPE, from.at, "dimensions are equal when they are written equal",
			 "the index '%s' goes to %s in '%s', and to %s in '%s'",
			 ra_excerpt(g->arena, v->span), ra_dim_text_of(g->arena, g->model, extent_of(g, v)),
			 ra_excerpt(g->arena, v->from), ra_dim_text_of(g->arena, g->model, other),
			 ra_excerpt(g->arena, from));
}

/* Sets the extent of a variable, or compares it with the one that is known. */
static bool tell_extent(struct ra_graph *g, struct ra_nest_variable *v, const struct ra_dim *extent,
			struct ra_span from)
{
	if (v->known)
		return ra_dim_equal(extent_of(g, v), extent) || refuse_extents(g, v, extent, from);
	*extent_of(g, v) = *extent;
	v->known = true;
	v->from = from;
	return true;
}

static bool is_plain(const struct ra_index_form *f)
{
	return f->terms == 1 && f->term[0].scale == 1 && !f->offset.terms && !f->offset.constant;
}

/* The extent of an axis that variables index as they are is theirs. */
static void tell_plain_extents(struct ra_graph *g, struct ra_nest *nest)
{
	for (size_t i = 0; i < nest->elements.n; i++) {
		const struct ra_node *n = ra_at(g->model, nest->elements.at[i].node);
		const struct ra_shape *from = &ra_at(g->model, n->arg[0])->shape;
		for (int d = 0; d < from->rank; d++)
			if (is_plain(&n->element->at[d]) &&
			    !tell_extent(g, variable_of(nest, n->element->at[d].term[0].index), &from->dim[d],
					 nest->elements.at[i].span))
				return;
	}
}

/* The largest extent with which an index scale*v + ... runs as far above an axis as below it: of -below ..
 * H-1+above, above = max(0, below).  The extents of the other variables are known.  False where it cannot be
 * told. */
static bool derive_extent(struct ra_graph *g, const struct ra_index_form *f, int which,
			  const struct ra_dim *axis, struct ra_dim *extent)
{
	struct ra_index_form rest = *f;
	struct ra_dim least, most, space;
	rest.term[which] = rest.term[rest.terms - 1];
	rest.terms--;
	if (f->term[which].scale < 1 || !ra_index_range(g->model, &rest, &least, &most) || least.terms ||
	    !ra_dim_add(axis, -1, &most, &space))
		return false;
	space.constant += (least.constant < 0 ? -least.constant : 0) - 1;
	if (!ra_dim_divide(g, &space, f->term[which].scale, extent))
		return false;
	extent->constant++;
	return true;
}

/* The one variable of an index whose extent is not known, if `derived` tells it in this round; -1 = there is
 * none. */
static int find_unknown(const struct ra_nest *nest, const struct ra_index_form *f, const bool *derived)
{
	int which = -1;
	for (int t = 0; t < f->terms; t++) {
		const struct ra_nest_variable *v = variable_of(nest, f->term[t].index);
		if (v->known && !derived[v - nest->variables.at])
			continue;
		if (which >= 0)
			return -1;
		which = t;
	}
	return which;
}

/* Derives extents from one element; true if there is a new one. */
static bool derive_from_element(struct ra_graph *g, struct ra_nest *nest, const struct ra_nest_element *e,
				bool *derived)
{
	const struct ra_node *n = ra_at(g->model, e->node);
	const struct ra_shape from = ra_at(g->model, n->arg[0])->shape;
	bool any = false;
	for (int d = 0; d < from.rank && !nest->failed; d++) {
		const struct ra_index_form *f = &n->element->at[d];
		int which = find_unknown(nest, f, derived);
		struct ra_dim extent;
		if (which < 0 || !derive_extent(g, f, which, &from.dim[d], &extent))
			continue;
		struct ra_nest_variable *v = variable_of(nest, f->term[which].index);
		if (ra_dim_below(g->model, &extent, 1))
			return ra_refuse_index(g, e->span, "the window is longer than the axis",
					       "has no element inside");
		any |= !v->known;
		tell_extent(g, v, &extent, e->span);
		derived[v - nest->variables.at] = true;
	}
	return any;
}

static void derive_extents(struct ra_graph *g, struct ra_nest *nest)
{
	bool *derived = ARENA_ARRAY(g->arena, bool, nest->variables.n + 1), any = true;
	while (any && !nest->failed) {
		any = false;
		for (size_t i = 0; i < nest->elements.n; i++)
			any |= derive_from_element(g, nest, &nest->elements.at[i], derived);
	}
}

/* Finds all extents.  False after a diagnostic. */
bool ra_find_extents(struct ra_graph *g, struct ra_nest *nest)
{
	if (!nest->failed)
		tell_plain_extents(g, nest);
	if (!nest->failed)
		derive_extents(g, nest);
	for (size_t i = 0; i < nest->variables.n && !nest->failed; i++)
		if (!nest->variables.at[i].known)
			ra_refuse_index(g, nest->variables.at[i].span,
					"write the extent: y[i in N] = ..., or sum(... for u in 3)",
					"has no extent: no axis has it as its index");
	for (size_t i = 0; i < nest->elements.n && !nest->failed; i++)
		ra_check_inside(g, &nest->elements.at[i]);
	return !nest->failed;
}
