/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Index notation: values element by element, y[i, j] = sum(W[i, u] * x[2*j + u - 1] for u).
 *
 * Inside of it every value is a number that may depend on index variables.  Their extents follow from where they
 * stand, once the whole of it has been expanded. */
#include "ra/syntax.h"

#include <math.h>

static const ra_ref none = {0};

/* An index variable of the current nest. */
struct variable {
	int index; /* of the model's */
	struct ra_span span;
	bool known; /* the extent */
	struct ra_span from; /* what told it */
};

struct element {
	ra_ref node;
	struct ra_span span;
};

/* Index notation while it is expanded: of one value, or one reduction outside of any. */
struct ra_nest {
	int first, number; /* the position of its first variable in ra_node.free; which nest of the model it is */
	VEC(struct variable) variables;
	VEC(struct element) elements;
	enum ra_op reduction; /* the innermost around; RA_CONST = none */
	int around;	      /* variables in scope */
	bool failed;
};

/* --- variables --- */

/* Index variables of one left side, or of one reduction. */
struct group {
	struct map names;
	ra_spans spans;
	struct ra_indices indices;
	struct ra_scope scope;
	uint64_t mask;
};

int ra_count_nests(const struct ra_model *m)
{
	int nests = 0;
	for (size_t i = 0; i < m->indices.n; i++)
		nests = m->indices.at[i].nest >= nests ? m->indices.at[i].nest + 1 : nests;
	return nests;
}

/* What is reduced over indices, and what an element outside is to each. */
static const struct reduction {
	enum ra_op op;
	double neutral;
} reductions[] = {{RA_SUM_OVER, 0}, {RA_MAX_OVER, -INFINITY}, {RA_MIN_OVER, INFINITY}, {RA_PROD_OVER, 1}};

enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

static const struct reduction *find_reduction(enum ra_op op)
{
	for (int i = 0; i < REDUCTIONS; i++)
		if (reductions[i].op == op)
			return &reductions[i];
	return NULL;
}

enum ra_op ra_reduction_named(struct ra_span function)
{
	for (int i = 0; i < REDUCTIONS; i++)
		if (ra_span_is(function, ra_op_spelling(reductions[i].op)))
			return reductions[i].op;
	return RA_CONST;
}

bool ra_introduces_indices(const struct ra_node *n)
{
	return n->op == RA_NEST || find_reduction(n->op);
}

static bool refuse_index(struct ra_graph *g, struct ra_span span, const char *hint, const char *message)
{
	if (g->nest)
		g->nest->failed = true;
	return ra_refuse(g, DIAG_MODEL_INDEX, span.at, hint, "'%s' %s", ra_excerpt(g->arena, span), message);
}

static void add_variable(struct ra_graph *g, struct group *v, struct ra_span name)
{
	struct ra_nest *nest = g->nest;
	int position = nest->first + (int)nest->variables.n;
	struct variable x = {.index = (int)g->model->indices.n, .span = name};
	struct ra_index index = {.name = ra_span_string(g->arena, name), .nest = nest->number, .position = position};
	index.at = ra_place_of(g, name.at);
	vec_push(g->arena, &g->model->indices, index);
	vec_push(g->arena, &nest->variables, x);
	vec_push(g->arena, &v->spans, name);
	v->indices.index[v->indices.n++] = x.index;
	v->mask |= 1ull << position;
	g->positions = position + 1;
}

/* The extent that the text gives to a variable. */
static void give_extent(struct ra_graph *g, const struct ra_scope *scope, const struct ra_index_text *text)
{
	struct variable *v = &g->nest->variables.at[g->nest->variables.n - 1];
	struct ra_dim *extent = &g->model->indices.at[v->index].extent;
	if (!text->extent)
		return;
	v->known = ra_resolve_dim(g, scope, text->extent, extent);
	v->from = text->extent->span;
	g->nest->failed |= !v->known;
	if (v->known && ra_dim_below(g->model, extent, 1))
		refuse_index(g, text->extent->span, "extents are at least 1", "is no extent");
}

/* Introduces variables.  False after a diagnostic. */
static bool open_variables(struct ra_graph *g, struct group *v, const struct ra_scope *outer,
			   const ra_index_texts *texts)
{
	*v = (struct group){.names = map_in(g->arena), .scope.outer = outer};
	for (size_t i = 0; i < texts->n; i++) {
		struct ra_span name = texts->at[i].name;
		if (ra_name_taken(g, outer, name))
			return false;
		if (memchr(name.text, '.', name.length))
			return refuse_index(g, name, "write i, j, u", "is no index: its name has dots");
		if (g->nest->around + (int)i >= RA_MAX_INDICES || g->positions == RA_MAX_POSITIONS)
			return refuse_index(g, name, "compute a part of it first and give that a name",
					    ra_format(g->arena, "is one index too many: %d are possible around a value",
						      RA_MAX_INDICES));
		if (!map_add(&v->names, name.text, name.length, (int)i))
			return ra_refuse(g, DIAG_MODEL_DUPLICATE, name.at, "give one of them another name",
					 "'%s' is already an index", ra_excerpt(g->arena, name));
		add_variable(g, v, name);
		give_extent(g, outer, &texts->at[i]);
	}
	v->scope.names = &v->names;
	v->scope.spans = v->spans.at;
	v->scope.n = v->spans.n;
	v->scope.index = v->indices.index;
	return true;
}

/* The scope in which a name is introduced, and which of its names it is; NULL = it is no local name. */
static const struct ra_scope *find_scope(const struct ra_scope *scope, struct ra_span name, int *which)
{
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		*which = s->names ? map_get(s->names, name.text, name.length) : -1;
		if (*which >= 0)
			return s;
	}
	return NULL;
}

bool ra_is_index_name(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name)
{
	int which;
	const struct ra_scope *s = find_scope(scope, name, &which);
	if (s)
		return s->index;
	const struct ra_name *n = ra_find_name(g, name.text, name.length);
	return g->nest && !memchr(name.text, '.', name.length) && (!n || n->kind == RA_N_SYMBOL);
}

/* The variable of the current nest that has this name; -1 = none.  Those of a nest around it are out of reach. */
static int find_variable(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name, bool *foreign)
{
	int which;
	const struct ra_scope *s = find_scope(scope, name, &which);
	*foreign = s;
	if (!s || !s->index)
		return -1;
	for (size_t i = 0; g->nest && i < g->nest->variables.n; i++)
		if (g->nest->variables.at[i].index == s->index[which])
			return s->index[which];
	return -1;
}

/* --- elements --- */

static bool names_variable(const struct ra_scope *scope, const struct ra_dim_term *t)
{
	const struct ra_span name[] = {t->symbol, t->by};
	for (int i = 0, which; i < 2; i++) {
		const struct ra_scope *s = name[i].length ? find_scope(scope, name[i], &which) : NULL;
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
		return refuse_index(g, name, "give the value whose elements are taken a name of its own, before",
				    "is no index of this value");
	if (!ra_is_news(g->report, DIAG_MODEL_UNKNOWN, ra_place_of(g, name.at)))
		return false;
	struct ra_nearest near = ra_nearest_to(name.text, name.length);
	for (const struct ra_scope *s = scope; s; s = s->outer)
		for (size_t i = 0; s->index && i < s->n; i++)
			ra_consider_name(&near, s->spans[i].text, s->spans[i].length);
	return ra_refuse(g, DIAG_MODEL_UNKNOWN, name.at,
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
		return refuse_index(g, span, "give a part of it a name: t[i, j] = x[i + j], then t[i, u + v]",
				    "has more than two variables");
	if (at == form->terms) {
		form->term[form->terms].index = index;
		form->term[form->terms++].scale = 0;
	}
	scale += form->term[at].scale;
	form->term[at].scale = (int32_t)scale;
	if (scale > RA_COEFFICIENT_LIMIT || scale < -RA_COEFFICIENT_LIMIT)
		return refuse_index(g, span, "factors are at most 1048576", "has too large a factor");
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
	int index = t->symbol.length ? find_variable(g, scope, t->symbol, foreign) : -1;
	*scale = t->coefficient;
	if (index < 0 && by.length && (index = find_variable(g, scope, by, &unused)) >= 0)
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
			return ra_refuse(g, DIAG_MODEL_DIMENSION, text->span.at,
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
	const struct reduction *reduction = g->nest ? find_reduction(g->nest->reduction) : NULL;
	if (fill) {
		ra_ref number = ra_build_constant(g, fill->number, fill->span);
		x->written = true;
		x->fill = fill->number;
		return number.i && ra_build_typed_number(g, number, dtype, fill->span.at).i;
	}
	x->reduced = reduction;
	if (reduction && dtype != DTYPE_BOOL)
		x->fill = reduction->neutral;
	return true;
}

static bool is_number(struct ra_graph *, ra_ref, const struct ra_expr *);

static uint64_t mask_of(const struct ra_model *m, const struct ra_index_form *form)
{
	uint64_t mask = 0;
	for (int t = 0; t < form->terms; t++)
		mask |= 1ull << m->indices.at[form->term[t].index].position;
	return mask;
}

/* Whether an element without a fill is outside whatever the sizes, which is reported. */
static bool check_inside(struct ra_graph *g, const struct element *e)
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
			return refuse_index(g, e->span, "say what is read there: x[i - 1] else 0",
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
	const struct ra_scope *s = find_scope(scope, name, &which);
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
		return refuse_index(g, value->span,
				    "give the elements by one of them a name: t[i, k] = x[a[i], k]",
				    "is a second index that is a value");
	if (nest)
		nest->reduction = RA_CONST;
	n->op = RA_GATHER;
	n->axis = axis;
	n->arg[1] = ra_expand_expr(g, scope, value);
	if (nest)
		nest->reduction = reduction;
	return n->arg[1].i && is_number(g, n->arg[1], value);
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
	struct element element = {ra_build_indexed(g, n), e->span};
	if (element.node.i && nest)
		vec_push(g->arena, &nest->elements, element);
	return element.node.i && (nest || check_inside(g, &element)) ? element.node : none;
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

/* --- extents --- */

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

static struct variable *variable_of(const struct ra_nest *nest, int index)
{
	for (size_t i = 0; i < nest->variables.n; i++)
		if (nest->variables.at[i].index == index)
			return &nest->variables.at[i];
	return NULL;
}

static struct ra_dim *extent_of(struct ra_graph *g, const struct variable *v)
{
	return &g->model->indices.at[v->index].extent;
}

static bool refuse_extents(struct ra_graph *g, const struct variable *v, const struct ra_dim *other,
			   struct ra_span from)
{
	g->nest->failed = true;
	return ra_refuse(g, DIAG_MODEL_SHAPE, from.at, "dimensions are equal when they are written equal",
			 "the index '%s' goes to %s in '%s', and to %s in '%s'", ra_excerpt(g->arena, v->span),
			 ra_dim_text_of(g->arena, g->model, extent_of(g, v)), ra_excerpt(g->arena, v->from),
			 ra_dim_text_of(g->arena, g->model, other), ra_excerpt(g->arena, from));
}

/* Sets the extent of a variable, or compares it with the one that is known. */
static bool tell_extent(struct ra_graph *g, struct variable *v, const struct ra_dim *extent, struct ra_span from)
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

/* The largest extent with which an index scale*v + ... runs as far above an axis as below it: of -below .. H-1+above,
 * above = max(0, below).  The extents of the other variables are known.  False where it cannot be told. */
static bool derive_extent(struct ra_graph *g, const struct ra_index_form *f, int which, const struct ra_dim *axis,
			  struct ra_dim *extent)
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

/* The one variable of an index whose extent is not known, if `derived` tells it in this round; -1 = there is none. */
static int find_unknown(const struct ra_nest *nest, const struct ra_index_form *f, const bool *derived)
{
	int which = -1;
	for (int t = 0; t < f->terms; t++) {
		const struct variable *v = variable_of(nest, f->term[t].index);
		if (v->known && !derived[v - nest->variables.at])
			continue;
		if (which >= 0)
			return -1;
		which = t;
	}
	return which;
}

/* Derives extents from one element; true if there is a new one. */
static bool derive_from_element(struct ra_graph *g, struct ra_nest *nest, const struct element *e, bool *derived)
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
		struct variable *v = variable_of(nest, f->term[which].index);
		if (ra_dim_below(g->model, &extent, 1))
			return refuse_index(g, e->span, "the window is longer than the axis", "has no element inside");
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
static bool find_extents(struct ra_graph *g, struct ra_nest *nest)
{
	if (!nest->failed)
		tell_plain_extents(g, nest);
	if (!nest->failed)
		derive_extents(g, nest);
	for (size_t i = 0; i < nest->variables.n && !nest->failed; i++)
		if (!nest->variables.at[i].known)
			refuse_index(g, nest->variables.at[i].span, "write the extent: y[i in N] = ..., or sum(... for u in 3)",
				     "has no extent: no axis has it as its index");
	for (size_t i = 0; i < nest->elements.n && !nest->failed; i++)
		check_inside(g, &nest->elements.at[i]);
	return !nest->failed;
}

/* --- values and reductions --- */

static void start_nest(struct ra_graph *g, struct ra_nest *nest)
{
	*nest = (struct ra_nest){.first = g->positions, .number = g->nests++, .reduction = RA_CONST};
	g->nest = nest;
}

/* Ends the nest; 0 if anything in it was refused. */
static ra_ref end_nest(struct ra_graph *g, struct ra_nest *nest, ra_ref value)
{
	nest->failed |= !value.i;
	bool good = find_extents(g, nest);
	g->positions = nest->first;
	g->nest = NULL;
	return good ? value : none;
}

static bool is_number(struct ra_graph *g, ra_ref value, const struct ra_expr *e)
{
	return !value.i || !ra_at(g->model, value)->shape.rank ||
	       ra_refuse(g, DIAG_MODEL_RANK, e->span.at, "write its element, with an index for each axis",
			 "index notation computes numbers, and '%s' is %s", ra_excerpt(g->arena, e->span),
			 ra_shape_text(g->arena, g->model, &ra_at(g->model, value)->shape));
}

/* Expands the number that variables are introduced for. */
static ra_ref expand_number(struct ra_graph *g, const struct group *v, const struct ra_expr *e)
{
	g->nest->around += v->indices.n;
	ra_ref value = ra_expand_expr(g, &v->scope, e->base);
	g->nest->around -= v->indices.n;
	return is_number(g, value, e->base) ? value : none;
}

static const struct ra_indices *keep_indices(struct ra_graph *g, const struct group *v)
{
	return arena_copy(g->arena, &v->indices, sizeof v->indices);
}

/* y[i, j] = base */
ra_ref ra_expand_nest(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_nest nest;
	struct group v;
	if (g->nest)
		return ra_refuse(g, DIAG_MODEL_NESTED, e->span.at, "compute the inner one first and give it a name",
				 "'%s' stands inside index notation", ra_excerpt(g->arena, e->span)),
		       none;
	if (e->indices.n > RA_MAX_RANK)
		return ra_refuse(g, DIAG_MODEL_RANK, e->indices.at[RA_MAX_RANK].name.at, NULL,
				 "values have at most %d axes, not %zu", RA_MAX_RANK, e->indices.n),
		       none;
	start_nest(g, &nest);
	ra_ref value = open_variables(g, &v, scope, &e->indices) ? expand_number(g, &v, e) : none;
	value = end_nest(g, &nest, value);
	if (!value.i)
		return none;
	struct ra_node n = {.op = RA_NEST, .arg = {value}, .at = e->span.at, .indices = keep_indices(g, &v)};
	n.free = ra_at(g->model, value)->free & ~v.mask;
	for (n.shape.rank = 0; n.shape.rank < v.indices.n; n.shape.rank++)
		n.shape.dim[n.shape.rank] = g->model->indices.at[v.indices.index[n.shape.rank]].extent;
	return ra_build_indexed(g, n);
}

static ra_ref build_over(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	enum ra_op outer = g->nest->reduction;
	struct group v;
	g->nest->reduction = ra_reduction_named(e->name);
	ra_ref value = open_variables(g, &v, scope, &e->indices) ? expand_number(g, &v, e) : none;
	g->nest->reduction = outer;
	if (!value.i)
		return none;
	struct ra_node n = {.op = ra_reduction_named(e->name),
			    .arg = {value},
			    .at = e->span.at,
			    .indices = keep_indices(g, &v)};
	n.free = ra_at(g->model, value)->free & ~v.mask;
	return ra_build_indexed(g, n);
}

/* sum(base for i, j): a nest of its own where there is none around. */
ra_ref ra_expand_over(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	struct ra_nest nest;
	if (g->nest)
		return build_over(g, scope, e);
	start_nest(g, &nest);
	ra_ref value = build_over(g, scope, e);
	return end_nest(g, &nest, value);
}
