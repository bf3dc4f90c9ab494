/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a model means, straight from its graph, f32 in binary64 and integers as they are: shares nothing with
 * the compiler but the parser.  All are held in doubles, of which an integer has the bytes. */
#ifndef ESPALIER_TESTS_MODELS_REFERENCE_H
#define ESPALIER_TESTS_MODELS_REFERENCE_H

#include "tests/models/reference_operators.h"

/* --- index notation --- */

static inline int64_t extent_of_index(const struct reference *r, int index)
{
	return ra_dim_value(&r->t->model->indices.at[index].extent, r->t->sizes);
}

/* Steps indices to their next values, the last one the fastest; false after the last. */
static inline bool next_indices(struct reference *r, const struct ra_indices *all)
{
	for (int i = all->n; i-- > 0;) {
		if (++r->index[all->index[i]] < extent_of_index(r, all->index[i]))
			return true;
		r->index[all->index[i]] = 0;
	}
	return false;
}

static inline void refer_element(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_node *from = ra_at(r->t->model, n->arg[0]);
	const double *a = refer(r, n->arg[0]);
	int64_t at = 0;
	bool outside = false;
	for (int d = 0; d < from->shape.rank; d++) {
		const struct ra_index_form *f = &n->element->at[d];
		int64_t i = ra_dim_value(&f->offset, r->t->sizes), extent = dim_of(r, from, d);
		for (int t = 0; t < f->terms; t++)
			i += f->term[t].scale * r->index[f->term[t].index];
		if (ra_is_gathered(n, d)) /* without a fill the nearest element */
			i = sub_integer(*refer(r, n->arg[1]));
		if (ra_is_gathered(n, d) && !n->element->written && !n->element->reduced)
			i = i < 0 ? 0 : i < extent ? i : extent - 1;
		outside |= i < 0 || i >= extent;
		at = at * extent + i;
	}
	double fill = n->element->fill;
	*to = !outside ? a[at] : n->dtype == DTYPE_F32 ? (float)fill : refer_cast(DTYPE_F32, n->dtype, fill);
}

static inline void add_up(const struct ra_node *, double *to, double x, bool first);

static inline void refer_over(struct reference *r, const struct ra_node *n, double *to)
{
	bool first = true;
	for (int i = 0; i < n->indices->n; i++)
		r->index[n->indices->index[i]] = 0;
	do {
		add_up(n, to, *refer(r, n->arg[0]), first);
		first = false;
	} while (next_indices(r, n->indices));
}

static inline void refer_nest(struct reference *r, const struct ra_node *n, double *to)
{
	for (int i = 0; i < n->indices->n; i++)
		r->index[n->indices->index[i]] = 0;
	do
		*to++ = *refer(r, n->arg[0]);
	while (next_indices(r, n->indices));
}

static inline int64_t edge_of(const struct reference *r, int slot)
{
	return slot == RA_EACH_CHILD ? r->each : r->f->minibatch.forest.child_begin[r->node] + slot;
}

/* The row of what is carried: that of the node, or of an edge of it, or of the node that a sum is at. */
static inline int64_t data_row(const struct reference *r, const struct ra_node *n)
{
	if (r->t->model->inputs.at[n->input].edge)
		return edge_of(r, n->slot);
	return n->slot == RA_EACH_MEMBER ? r->each : r->node;
}

/* An element that memory has in a type, widened. */
static inline double widened(enum dtype dtype, const void *from, int64_t i)
{
	switch (dtype) {
	case DTYPE_F16:
		return f32_of_f16(((const c_F16 *)from)[i]);
	case DTYPE_BF16:
		return f32_of_bf16(((const c_BF16 *)from)[i]);
	case DTYPE_I8:
		return sub_element_of(((const c_I8 *)from)[i]);
	case DTYPE_U8:
		return sub_element_of(((const c_U8 *)from)[i]);
	case DTYPE_I16:
		return sub_element_of(((const c_I16 *)from)[i]);
	default:
		return read_result(dtype, from, i);
	}
}

static inline double weight_of(const struct reference *r, int param, int64_t i)
{
	int64_t element = 0;
	enum dtype dtype = r->t->model->params.at[param].dtype;
	put_element(dtype, param, i, &element, 0);
	return widened(dtype, &element, 0);
}

static inline void refer_source(struct reference *r, const struct ra_node *n, double *to)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	int64_t all = count_of(r, &n->shape);
	for (int64_t i = 0; i < all; i++)
		switch (n->op) {
		case RA_CONST:
			to[i] = refer_cast(DTYPE_F32, n->dtype, n->constant);
			break;
		case RA_EXTENT:
			to[i] = refer_cast(DTYPE_F32, n->dtype, (double)ra_dim_value(&n->begin, r->t->sizes));
			break;
		case RA_PARAM:
			to[i] = weight_of(r, n->param, i);
			break;
		case RA_INPUT:
			to[i] = widened(r->t->model->inputs.at[n->input].dtype, r->f->data[n->input],
					data_row(r, n) * all + i);
			break;
		case RA_LOOKUP:
			to[i] =
			    refer(r, n->arg[0])[((const int32_t *)r->f->data[n->input])[data_row(r, n)] * all + i];
			break;
		case RA_STATE:
			to[i] = r->state[n->state.state]
					[(n->state.slot == RA_EACH_MEMBER ? r->each : r->node) * all + i];
			break;
		case RA_CHILD:
			to[i] = r->state[n->state.state][f->children[edge_of(r, n->state.slot)] * all + i];
			break;
		case RA_PARENT: {
			int32_t parent = n->state.slot == RA_EACH_CHILD ? r->each : parent_of(f, r->node);
			to[i] = r->state[n->state.state][parent * all + i];
			break;
		}
		default:
			to[i] = 0;
		}
}

/* A state of a scan at the step before: rows have all of its steps. */
static inline void refer_step_before(struct reference *r, const struct ra_node *n, double *to)
{
	const struct ra_shape outer = ra_outer_shape(r->t->model, n->state.state);
	int64_t all = count_of(r, &n->shape), row = r->node * count_of(r, &outer);
	int64_t before = r->step + (n->op == RA_PARENT ? 1 : -1);
	memcpy(to, r->state[n->state.state] + row + before * all, (size_t)all * sizeof *to);
}

static inline void refer_anew(struct reference *r, const struct ra_node *n, double *to)
{
	switch (n->op) {
	case RA_MATMUL:
		refer_product(r, n, to);
		break;
	case RA_SUM:
	case RA_MAX:
	case RA_MIN:
	case RA_PROD:
		refer_reduction(r, n, to);
		break;
	case RA_CUMSUM:
		refer_cumsum(r, n, to);
		break;
	case RA_ARGMAX:
	case RA_ARGMIN:
		refer_argmax(r, n, to);
		break;
	case RA_WHERE:
		refer_choice(r, n, to);
		break;
	case RA_CHILD_SUM:
	case RA_CHILD_MAX:
		refer_children(r, n, to);
		break;
	case RA_PARENT_SUM:
	case RA_PARENT_MAX:
		refer_parents(r, n, to);
		break;
	case RA_ELEMENT:
	case RA_GATHER:
		refer_element(r, n, to);
		break;
	case RA_SUM_OVER:
	case RA_MAX_OVER:
	case RA_MIN_OVER:
	case RA_PROD_OVER:
		refer_over(r, n, to);
		break;
	case RA_NEST:
		refer_nest(r, n, to);
		break;
	case RA_SLICE:
		refer_slice(r, n, to);
		break;
	case RA_ROW:
		refer_row(r, n, to);
		break;
	case RA_AT_STEP:
		refer_at_step(r, n, to);
		break;
	case RA_CONCAT:
		refer_concat(r, n, to);
		break;
	case RA_TRANSPOSE:
		refer_transpose(r, n, to);
		break;
	case RA_RESHAPE:
		memcpy(to, refer(r, n->arg[0]), (size_t)count_of(r, &n->shape) * sizeof *to);
		break;
	case RA_CONST:
	case RA_ZERO:
	case RA_EXTENT:
	case RA_PARAM:
	case RA_INPUT:
	case RA_LOOKUP:
	case RA_STATE:
		refer_source(r, n, to);
		break;
	case RA_CHILD:
	case RA_PARENT:
		(r->t->model->structure.kind == RA_NONE ? refer_step_before : refer_source)(r, n, to);
		break;
	default:
		refer_elementwise(r, n, to);
	}
}

/* The elements of a value at the node at hand. */
static inline const double *refer(struct reference *r, ra_ref ref)
{
	const struct ra_node *n = ra_at(r->t->model, ref);
	if (!r->value[ref.i])
		r->value[ref.i] = ARENA_ARRAY(r->arena, double, count_of(r, &n->shape));
	if (r->stamp[ref.i] == r->epoch && !n->free)
		return r->value[ref.i];
	refer_anew(r, n, r->value[ref.i]);
	r->stamp[ref.i] = r->epoch;
	return r->value[ref.i];
}

/* --- a whole run --- */

/* That of the first case that fits, or of its base. */
static inline int body_up(const struct reference *r, int traversal, int64_t node, int children)
{
	const struct ra_model *m = r->t->model;
	int base = children ? RA_INNER : RA_LEAF;
	for (size_t i = 0; i < m->cases.n; i++) {
		const struct ra_named_case *c = &m->cases.at[i];
		bool fits = (int)c->base == base && (c->children < 0 || c->children == children);
		for (size_t t = 0; t < c->tokens.n; t++)
			fits &= ((const int32_t *)r->f->data[c->tokens.at[t].input])[node] == c->tokens.at[t].value;
		if (fits)
			return ra_has_own_body(m, traversal, RA_CASES + i) ? (int)(RA_CASES + i) : base;
	}
	return base;
}

static inline int body_of_node(const struct reference *r, int traversal, int32_t node)
{
	const struct lin_forest *f = &r->f->minibatch.forest;
	if (r->t->model->structure.kind == RA_NONE)
		return RA_LEAF;
	if (r->t->model->traversals.at[traversal].down)
		return parent_of(f, node) < 0 ? RA_ROOT : RA_BELOW;
	return body_up(r, traversal, node, f->child_begin[node + 1] - f->child_begin[node]);
}

/* A value in the elements of a shape that may have more axes. */
static inline void copy_value(struct reference *r, ra_ref value, int64_t elements, double *to)
{
	int64_t n = count_of(r, &ra_at(r->t->model, value)->shape);
	const double *from = refer(r, value);
	for (int64_t i = 0; i < elements; i++)
		to[i] = from[i % n];
}

static inline void refer_states(struct reference *r, int traversal, int32_t node)
{
	const struct ra_model *m = r->t->model;
	r->node = node;
	r->epoch = ++r->epochs;
	int body = body_of_node(r, traversal, node);
	for (size_t s = 0; s < m->states.n; s++) {
		int64_t n = count_of(r, &m->states.at[s].shape);
		if (m->states.at[s].traversal == traversal)
			copy_value(r, m->states.at[s].value[body], n, r->state[s] + node * n);
	}
}

/* The steps of a scan in one row. */
static inline void refer_scan(struct reference *r, int traversal, int32_t node)
{
	const struct ra_model *m = r->t->model;
	const struct ra_traversal *t = &m->traversals.at[traversal];
	int64_t steps = ra_dim_value(&t->steps, r->t->sizes);
	for (int64_t i = 0; i < steps; i++) {
		r->node = node;
		r->step = t->down ? steps - 1 - i : i;
		r->epoch = ++r->epochs;
		for (size_t s = 0; s < m->states.n; s++) {
			int64_t n = count_of(r, &m->states.at[s].shape);
			if (m->states.at[s].traversal == traversal)
				copy_value(r, m->states.at[s].value[i ? RA_INNER : RA_LEAF], n,
					   r->state[s] + (node * steps + r->step) * n);
		}
	}
}

/* Children have smaller ids than their parents. */
static inline void refer_traversal(struct reference *r, int traversal)
{
	if (ra_is_scan(&r->t->model->traversals.at[traversal])) {
		for (int32_t n = 0; n < r->f->nodes; n++)
			refer_scan(r, traversal, n);
		return;
	}
	bool down = r->t->model->traversals.at[traversal].down;
	for (int32_t n = 0; n < r->f->nodes; n++)
		refer_states(r, traversal, down ? r->f->nodes - 1 - n : n);
}

/* All outputs in the order of gather_outputs, `count` of them; NULL when there are not that many. */
static inline double *refer_outputs(struct arena *a, const struct test_model *t, const struct test_forest *f,
				    int64_t count)
{
	const struct ra_model *m = t->model;
	struct reference r = {.t = t, .f = f, .arena = a};
	double *all = ARENA_ARRAY(a, double, count + 1);
	int64_t at = 0;
	r.value = ARENA_ARRAY(a, double *, m->nodes.n);
	r.stamp = ARENA_ARRAY(a, unsigned, m->nodes.n);
	r.index = ARENA_ARRAY(a, int64_t, m->indices.n + 1);
	r.state = ARENA_ARRAY(a, double *, m->states.n);
	for (size_t s = 0; s < m->states.n; s++) {
		const struct ra_shape outer = ra_outer_shape(m, (int)s);
		r.state[s] = ARENA_ARRAY(a, double, f->nodes *count_of(&r, &outer));
	}
	for (size_t i = 0; i < m->traversals.n; i++)
		refer_traversal(&r, (int)i);
	for (size_t o = 0; o < m->outputs.n; o++) {
		bool at_root = m->outputs.at[o].at_root;
		int64_t n = count_of(&r, &ra_at(m, m->outputs.at[o].value)->shape);
		int64_t rows = at_root ? f->minibatch.forest.inputs : f->nodes;
		for (int64_t row = 0; row < rows && at + n <= count; row++, at += n) {
			r.node = at_root ? f->minibatch.forest.root[row] : row;
			r.epoch = ++r.epochs;
			copy_value(&r, m->outputs.at[o].value, n, all + at);
		}
	}
	return at == count ? all : NULL;
}

#endif
