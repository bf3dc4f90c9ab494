/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Elements of index notation: their indices, which are sums of variables or a value, and what is read
 * outside. */
#include "ra/nest.h"

static const ra_ref none = {0};

static bool names_variable(const struct ra_scope *scope, const struct ra_dim_term *t)
{
	const struct ra_span name[] = {t->symbol, t->by};
	for (int i = 0, which; i < 2; i++) {
		const struct ra_scope *s = name[i].length ? ra_find_scope(scope, name[i], &which) : NULL;
		if (s && s->index)
			return true;
	}
	for (size_t i = 0; t->group && i < t->group->terms.n; i++)
		if (names_variable(scope, &t->group->terms.at[i]))
			return true;
	return false;
}

static bool refuse_name(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name, bool foreign)
{
	if (foreign)
		return ra_refuse_index(g, name,
				       "give the value whose elements are taken a name of its own, before",
				       "is no index of this value");
	if (!ra_is_news(g->report, DIAG_MODEL_UNKNOWN, ra_place_of(g, name.at)))
		return false;
	struct ra_nearest near = ra_nearest_to(name.text, name.length);
	for (const struct ra_scope *s = scope; s; s = s->outer)
		for (size_t i = 0; s->index && i < s->n; i++)
			ra_consider_name(&near, s->spans[i].text, s->spans[i].length);
	return ra_refuse(
	    g, DIAG_MODEL_UNKNOWN, name.at,
	    ra_did_you_mean(g->arena, &near, "indices are those of y[i, j] = ... and of sum(... for u)"),
	    "no index and no size is named '%s' here", ra_excerpt(g->arena, name));
}

/* Adds scale * variable to an index. */
static bool add_variable_term(struct ra_graph *g, struct ra_index_form *form, int index, int64_t scale,
			      struct ra_span span)
{
	int at = 0;
	while (at < form->terms && form->term[at].index != index)
		at++;
	if (at == 2)
		return ra_refuse_index(g, span,
				       "give a part of it a name: t[i, j] = x[i + j], then t[i, u + v]",
				       "has more than two variables");
	if (at == form->terms) {
		form->term[form->terms].index = index;
		form->term[form->terms++].scale = 0;
	}
	scale += form->term[at].scale;
	form->term[at].scale = (int32_t)scale;
	if (scale > RA_COEFFICIENT_LIMIT || scale < -RA_COEFFICIENT_LIMIT)
		return ra_refuse_index(g, span, "factors are at most 1048576", "has too large a factor");
	if (!scale)
		form->term[at] = form->term[--form->terms];
	return true;
}

/* The variable of a term and what it is multiplied by: a number, perhaps one with a name.  -1 = there is no
 * variable, -2 after a diagnostic. */
static int find_term_variable(struct ra_graph *g, const struct ra_scope *scope, const struct ra_dim_term *t,
			      int64_t *scale, bool *foreign)
{
	struct ra_span by = t->by;
	struct ra_dim factor;
	bool unused;
	int index = t->symbol.length ? ra_find_variable(g, scope, t->symbol, foreign) : -1;
	*scale = t->coefficient;
	if (index < 0 && by.length && (index = ra_find_variable(g, scope, by, &unused)) >= 0)
		by = t->symbol;
	if (index < 0 || !by.length)
		return index;
	if (!ra_find_number(g, scope, by, &factor) || factor.terms)
		return ra_refuse_factor(g, t->by), -2;
	*scale = ra_multiply_factors(*scale, factor.constant);
	return index;
}

/* Reads an index: the terms that are variables, and the rest, a dimension. */
static bool resolve_form(struct ra_graph *g, const struct ra_scope *scope, const struct ra_dim_text *text,
			 struct ra_index_form *form)
{
	struct ra_dim_text rest = {.span = text->span};
	*form = (struct ra_index_form){0};
	for (size_t i = 0; i < text->terms.n; i++) {
		const struct ra_dim_term *t = &text->terms.at[i];
		bool foreign = false;
		int64_t scale;
		struct ra_dim number;
		int index = find_term_variable(g, scope, t, &scale, &foreign);
		if (index == -2)
			return false;
		if ((t->group || t->divisor || t->divisor_name.length) && names_variable(scope, t))
			return ra_refuse(
			    g, DIAG_MODEL_DIMENSION, text->span.at,
			    "an index is a sum of variables, multiples of them and sizes: 2*i + u - 1",
			    "'%s' is no sum of variables", ra_excerpt(g->arena, text->span));
		const struct ra_name *n = ra_find_name(g, t->symbol.text, t->symbol.length);
		bool known = index >= 0 || !t->symbol.length || ra_find_number(g, scope, t->symbol, &number);
		if (!known && (foreign || !n || n->kind != RA_N_SYMBOL))
			return refuse_name(g, scope, t->symbol, foreign);
		if (index < 0)
			vec_push(g->arena, &rest.terms, *t);
		else if (!add_variable_term(g, form, index, scale, text->span))
			return false;
	}
	return ra_resolve_dim(g, scope, &rest, &form->offset);
}

/* What an element reads outside: the number that is written, or the neutral element of the reduction. */
static bool find_fill(struct ra_graph *g, struct ra_element *x, const struct ra_expr *fill, enum dtype dtype)
{
	double neutral = 0;
	if (fill) {
		ra_ref number = ra_build_constant(g, fill->number, fill->span);
		x->written = true;
		x->fill = fill->number;
		return number.i && ra_build_typed_number(g, number, dtype, fill->span.at).i;
	}
	x->reduced = g->nest && ra_find_neutral(g->nest->reduction, &neutral);
	if (dtype != DTYPE_BOOL)
		x->fill = neutral;
	return true;
}

static uint64_t mask_of(const struct ra_model *m, const struct ra_index_form *form)
{
	uint64_t mask = 0;
	for (int t = 0; t < form->terms; t++)
		mask |= 1ull << m->indices.at[form->term[t].index].position;
	return mask;
}

/* Whether an element without a fill is outside whatever the sizes, which is reported. */
bool ra_check_inside(struct ra_graph *g, const struct ra_nest_element *e)
{
	const struct ra_node *n = ra_at(g->model, e->node);
	const struct ra_shape *from = &ra_at(g->model, n->arg[0])->shape;
	for (int d = 0; d < from->rank && !n->element->written && !n->element->reduced; d++) {
		struct ra_dim least, most, beyond;
		if (ra_is_gathered(n, d))
			continue;
		if (!ra_index_range(g->model, &n->element->at[d], &least, &most) ||
		    !ra_dim_add(&from->dim[d], -1, &most, &beyond))
			continue;
		if (ra_dim_below(g->model, &least, 0) || ra_dim_below(g->model, &beyond, 1))
			return ra_refuse_index(
			    g, e->span, "say what is read there: x[i - 1] else 0",
			    "reads outside, and stands in no sum(...), max(...) or min(...)");
	}
	return true;
}

/* The expression of an index that is a value: any but a sum of indices and dimensions, or the name of a
 * number.  NULL = it is none. */
static const struct ra_expr *find_value(struct ra_graph *g, const struct ra_scope *scope,
					const struct ra_dim_text *t)
{
	if (t->value || t->terms.n != 1 || t->terms.at[0].symbol.length != t->span.length)
		return t->value;
	struct ra_span name = t->terms.at[0].symbol;
	int which;
	const struct ra_scope *s = ra_find_scope(scope, name, &which);
	const struct ra_name *n = s ? NULL : ra_find_name(g, name.text, name.length);
	bool input = n && n->kind == RA_N_INPUT && !g->model->inputs.at[n->index].shape.rank;
	struct ra_dim number;
	if (s ? s->index || ra_find_number(g, scope, name, &number) : !input)
		return NULL;
	struct ra_expr *e = ARENA_NEW(g->arena, struct ra_expr);
	*e = (struct ra_expr){.kind = RA_E_NAME, .span = name, .name = name};
	return e;
}

/* Makes the index along an axis the second argument.  What it reads must be inside, whatever it stands in. */
static bool gather_along(struct ra_graph *g, const struct ra_scope *scope, struct ra_node *n, int axis,
			 const struct ra_expr *value)
{
	struct ra_nest *nest = g->nest;
	enum ra_op reduction = nest ? nest->reduction : RA_CONST;
	if (n->op == RA_GATHER)
		return ra_refuse_index(g, value->span,
				       "give the elements by one of them a name: t[i, k] = x[a[i], k]",
				       "is a second index that is a value");
	if (nest)
		nest->reduction = RA_CONST;
	n->op = RA_GATHER;
	n->axis = axis;
	n->arg[1] = ra_expand_expr(g, scope, value);
	if (nest)
		nest->reduction = reduction;
	return n->arg[1].i && ra_is_number(g, n->arg[1], value);
}

static ra_ref build_element(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e,
			    const ra_dim_texts *at, const struct ra_expr *fill)
{
	struct ra_element *x = ARENA_NEW(g->arena, struct ra_element);
	struct ra_node n = {.op = RA_ELEMENT, .at = e->span.at, .element = x};
	struct ra_nest *nest = g->nest;
	g->nest = NULL;
	n.arg[0] = ra_expand_expr(g, scope, e->base);
	g->nest = nest;
	if (!n.arg[0].i)
		return none;
	const struct ra_node from = *ra_at(g->model, n.arg[0]);
	if (from.shape.rank != (int)at->n)
		return ra_refuse(g, DIAG_MODEL_RANK, e->span.at, "an element has an index for each axis",
				 "'%s' has %zu ind%s, and '%s' is %s", ra_excerpt(g->arena, e->span), at->n,
				 at->n == 1 ? "ex" : "ices", ra_excerpt(g->arena, e->base->span),
				 ra_shape_text(g->arena, g->model, &from.shape)),
		       none;
	for (size_t d = 0; d < at->n; d++) {
		const struct ra_expr *value = find_value(g, scope, at->at[d]);
		if (value ? !gather_along(g, scope, &n, (int)d, value)
			  : !resolve_form(g, scope, at->at[d], &x->at[d]))
			return none;
		n.free |= mask_of(g->model, &x->at[d]);
	}
	if (!find_fill(g, x, fill, from.dtype))
		return none;
	struct ra_nest_element element = {ra_build_indexed(g, n), e->span};
	if (element.node.i && nest)
		vec_push(g->arena, &nest->elements, element);
	return element.node.i && (nest || ra_check_inside(g, &element)) ? element.node : none;
}

ra_ref ra_expand_element(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	return build_element(g, scope, e, &e->element.at, e->element.fill);
}

ra_ref ra_expand_indexed(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_dim_text *d = ARENA_NEW(g->arena, struct ra_dim_text);
	ra_dim_texts at = {0};
	d->span = e->index->name;
	vec_push(g->arena, &d->terms, (struct ra_dim_term){.coefficient = 1, .symbol = e->index->name});
	vec_push(g->arena, &at, d);
	return build_element(g, scope, e, &at, NULL);
}
