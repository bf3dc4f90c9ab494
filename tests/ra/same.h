/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whether two graphs are one: the same nodes in the same order, wherever they came from. */
#ifndef ESPALIER_TESTS_RA_SAME_H
#define ESPALIER_TESTS_RA_SAME_H

#include "ra/ra.h"

static inline bool same_dim(const struct ra_dim *a, const struct ra_dim *b)
{
	bool same = a->constant == b->constant && a->terms == b->terms;
	for (int i = 0; same && i < a->terms; i++)
		same = a->term[i].symbol == b->term[i].symbol &&
		       a->term[i].coefficient == b->term[i].coefficient;
	return same;
}

static inline int arity(enum ra_op op)
{
	static const int arities[] = {
#define RA_OP(name, arity, spelling, types, function, lowering, sub) arity,
#include "ra/ra_ops.def"
	};
	return arities[op];
}

static inline bool same_payload(const struct ra_node *a, const struct ra_node *b)
{
	switch (a->op) {
	case RA_CONST:
		return a->constant == b->constant;
	case RA_PARAM:
		return a->param == b->param;
	case RA_INPUT:
	case RA_LOOKUP:
		return a->input == b->input && a->slot == b->slot;
	case RA_STATE:
	case RA_CHILD:
	case RA_PARENT:
		return a->state.state == b->state.state && a->state.slot == b->state.slot;
	case RA_SUM:
	case RA_MAX:
	case RA_MIN:
	case RA_PROD:
	case RA_CUMSUM:
	case RA_ARGMAX:
	case RA_ARGMIN:
	case RA_CONCAT:
	case RA_GATHER:
		return a->axis == b->axis;
	case RA_TRANSPOSE:
		return memcmp(a->order, b->order, (size_t)a->shape.rank) == 0;
	case RA_SLICE:
		return a->axis == b->axis && same_dim(&a->begin, &b->begin);
	case RA_ROW:
	case RA_EXTENT:
		return same_dim(&a->begin, &b->begin);
	case RA_SUM_OVER:
	case RA_MAX_OVER:
	case RA_MIN_OVER:
	case RA_PROD_OVER:
	case RA_NEST:
		return a->indices->n == b->indices->n &&
		       memcmp(a->indices->index, b->indices->index,
			      (size_t)a->indices->n * sizeof *a->indices->index) == 0;
	default:
		return true;
	}
}

static inline bool same_form(const struct ra_index_form *a, const struct ra_index_form *b)
{
	bool same = a->terms == b->terms && same_dim(&a->offset, &b->offset);
	for (int t = 0; same && t < a->terms; t++)
		same = a->term[t].index == b->term[t].index && a->term[t].scale == b->term[t].scale;
	return same;
}

static inline bool same_element(const struct ra_element *a, const struct ra_element *b, int rank)
{
	bool same = a->written == b->written && a->reduced == b->reduced && a->fill == b->fill;
	for (int d = 0; same && d < rank; d++)
		same = same_form(&a->at[d], &b->at[d]);
	return same;
}

static inline bool same_index(const struct ra_index *a, const struct ra_index *b)
{
	return same_dim(&a->extent, &b->extent);
}

static inline bool same_symbol(const struct ra_symbol *a, const struct ra_symbol *b)
{
	return strcmp(a->name, b->name) == 0 && a->divisor == b->divisor && same_dim(&a->of, &b->of);
}

static inline bool same_node(const struct ra_node *a, const struct ra_node *b)
{
	bool same = a->op == b->op && a->dtype == b->dtype && a->shape.rank == b->shape.rank && same_payload(a, b);
	for (int i = 0; same && i < a->shape.rank; i++)
		same = same_dim(&a->shape.dim[i], &b->shape.dim[i]);
	for (int i = 0; same && i < arity(a->op); i++)
		same = a->arg[i].i == b->arg[i].i;
	return same;
}

static inline bool same_graph(const struct ra_model *a, const struct ra_model *b)
{
	bool same = a->nodes.n == b->nodes.n && a->states.n == b->states.n && a->outputs.n == b->outputs.n;
	same &= a->symbols.n == b->symbols.n && a->indices.n == b->indices.n;
	for (size_t i = 0; same && i < a->symbols.n; i++)
		same = same_symbol(&a->symbols.at[i], &b->symbols.at[i]);
	for (size_t i = 0; same && i < a->indices.n; i++)
		same = same_index(&a->indices.at[i], &b->indices.at[i]);
	for (size_t i = 1; same && i < a->nodes.n; i++)
		same = same_node(&a->nodes.at[i], &b->nodes.at[i]) &&
		       (!ra_is_element(&a->nodes.at[i]) ||
			same_element(a->nodes.at[i].element, b->nodes.at[i].element,
				     a->nodes.at[a->nodes.at[i].arg[0].i].shape.rank));
	same &= a->traversals.n == b->traversals.n;
	for (size_t i = 0; same && i < a->traversals.n; i++)
		same = a->traversals.at[i].down == b->traversals.at[i].down;
	for (size_t i = 0; same && i < a->states.n; i++)
		same = a->states.at[i].traversal == b->states.at[i].traversal &&
		       memcmp(a->states.at[i].value, b->states.at[i].value, sizeof a->states.at[i].value) == 0;
	for (size_t i = 0; same && i < a->outputs.n; i++)
		same = a->outputs.at[i].value.i == b->outputs.at[i].value.i;
	return same;
}

#endif
