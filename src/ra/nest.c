/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Index notation: values element by element, y[i, j] = sum(W[i, u] * x[2*j + u - 1] for u).
 *
 * Inside of it every value is a number that may depend on index variables.  Their extents follow from where they
 * stand, once the whole of it has been expanded. */
#include "ra/nest.h"

#include <math.h>

static const ra_ref none = {0};

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

bool ra_find_neutral(enum ra_op op, double *neutral)
{
	for (int i = 0; i < REDUCTIONS; i++)
		if (reductions[i].op == op)
			return *neutral = reductions[i].neutral, true;
	return false;
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
	double neutral;
	return n->op == RA_NEST || ra_find_neutral(n->op, &neutral);
}

bool ra_refuse_index(struct ra_graph *g, struct ra_span span, const char *hint, const char *message)
{
	if (g->nest)
		g->nest->failed = true;
	return ra_refuse(g, DIAG_MODEL_INDEX, span.at, hint, "'%s' %s", ra_excerpt(g->arena, span), message);
}

static void add_variable(struct ra_graph *g, struct group *v, struct ra_span name)
{
	struct ra_nest *nest = g->nest;
	int position = nest->first + (int)nest->variables.n;
	struct ra_nest_variable x = {.index = (int)g->model->indices.n, .span = name};
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
	struct ra_nest_variable *v = &g->nest->variables.at[g->nest->variables.n - 1];
	struct ra_dim *extent = &g->model->indices.at[v->index].extent;
	if (!text->extent)
		return;
	v->known = ra_resolve_dim(g, scope, text->extent, extent);
	v->from = text->extent->span;
	g->nest->failed |= !v->known;
	if (v->known && ra_dim_below(g->model, extent, 1))
		ra_refuse_index(g, text->extent->span, "extents are at least 1", "is no extent");
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
			return ra_refuse_index(g, name, "write i, j, u", "is no index: its name has dots");
		if (g->nest->around + (int)i >= RA_MAX_INDICES || g->positions == RA_MAX_POSITIONS)
			return ra_refuse_index(
			    g, name, "compute a part of it first and give that a name",
			    str_format(g->arena, "is one index too many: %d are possible around a value",
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
const struct ra_scope *ra_find_scope(const struct ra_scope *scope, struct ra_span name, int *which)
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
	const struct ra_scope *s = ra_find_scope(scope, name, &which);
	if (s)
		return s->index;
	const struct ra_name *n = ra_find_name(g, name.text, name.length);
	return g->nest && !memchr(name.text, '.', name.length) && (!n || n->kind == RA_N_SYMBOL);
}

/* The variable of the current nest that has this name; -1 = none.  Those of a nest around it are out of reach. */
int ra_find_variable(struct ra_graph *g, const struct ra_scope *scope, struct ra_span name, bool *foreign)
{
	int which;
	const struct ra_scope *s = ra_find_scope(scope, name, &which);
	*foreign = s;
	if (!s || !s->index)
		return -1;
	for (size_t i = 0; g->nest && i < g->nest->variables.n; i++)
		if (g->nest->variables.at[i].index == s->index[which])
			return s->index[which];
	return -1;
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
	bool good = ra_find_extents(g, nest);
	g->positions = nest->first;
	g->nest = NULL;
	return good ? value : none;
}

bool ra_is_number(struct ra_graph *g, ra_ref value, const struct ra_expr *e)
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
	return ra_is_number(g, value, e->base) ? value : none;
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
