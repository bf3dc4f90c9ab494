/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Declarations: the names of a model, its dimensions, shapes and structure. */
#include "ra/syntax.h"

#include <float.h>
#include <math.h>

const char *ra_name_kind_text(enum ra_name_kind kind)
{
	static const char *const texts[] = {
	    [RA_N_SYMBOL] = "a dimension", [RA_N_PARAM] = "a parameter", [RA_N_INPUT] = "an input",
	    [RA_N_STATE] = "a state",	   [RA_N_OUTPUT] = "an output",	 [RA_N_DEF] = "a function",
	    [RA_N_SLOT] = "a child",	   [RA_N_PARENT] = "the parent", [RA_N_CASE] = "a case",
	};
	return texts[kind];
}

const struct ra_name *ra_find_name(const struct ra_graph *g, const char *name, size_t length)
{
	int i = map_get(&g->names, name, length);
	return i < 0 ? NULL : &g->name.at[i];
}

int ra_find_slot(const struct ra_graph *g, const char *name, size_t length)
{
	const struct ra_name *n = ra_find_name(g, name, length);
	return n && n->kind == RA_N_SLOT ? n->index : -1;
}

enum ra_word ra_case_word(bool down, enum ra_case which)
{
	static const enum ra_word words[2][RA_CASES] = {
	    {[RA_LEAF] = RA_WORD_LEAF, [RA_INNER] = RA_WORD_INNER},
	    {[RA_ROOT] = RA_WORD_ROOT, [RA_BELOW] = RA_WORD_BELOW},
	};
	return words[down][which];
}

const char *ra_parent_name(enum ra_structure_kind kind)
{
	return kind == RA_SEQUENCE || kind == RA_NONE ? "next" : kind == RA_TREE ? "parent" : NULL;
}

static bool is_before(struct diag_at a, struct diag_at b)
{
	if (a.call || b.call)
		return a.call < b.call;
	return a.line < b.line || (a.line == b.line && a.column < b.column);
}

/* The later of two declarations is at fault.  The meaning of the name is then uncertain, so nothing is
 * expanded. */
static void refuse_twice(struct ra_graph *g, const struct ra_name *a, const struct ra_name *b)
{
	const struct ra_name *first = is_before(b->span.at, a->span.at) ? b : a, *second = first == a ? b : a;
	ra_report(g->report, DIAG_MODEL_DUPLICATE, second->span.at, "give one of them another name",
		  "'%s' is already %s%s", ra_excerpt(g->arena, second->span), ra_name_kind_text(first->kind),
		  ra_line_text(g->arena, first->span.at));
	g->syntax->incomplete = true;
}

static void add_name(struct ra_graph *g, enum ra_name_kind kind, size_t index, struct ra_span span)
{
	const struct ra_name *old = ra_find_name(g, span.text, span.length);
	struct ra_name name = {.kind = kind, .index = (int)index, .span = span};
	if (old) {
		refuse_twice(g, old, &name);
		return;
	}
	map_add(&g->names, span.text, span.length, (int)g->name.n);
	vec_push(g->arena, &g->name, name);
}

static void mark_broken(struct ra_graph *g, struct ra_span span)
{
	int i = map_get(&g->names, span.text, span.length);
	if (i >= 0)
		g->name.at[i].broken = true;
}

/* --- dimensions --- */

static int add_symbol(struct ra_graph *g, struct ra_span span)
{
	int symbol = (int)g->model->symbols.n;
	add_name(g, RA_N_SYMBOL, (size_t)symbol, span);
	vec_push(g->arena, &g->model->symbols, (struct ra_symbol){.name = ra_span_string(g->arena, span)});
	return symbol;
}

static void refuse_symbol(struct ra_graph *g, struct ra_span span)
{
	if (!ra_is_news(g->report, DIAG_MODEL_UNKNOWN, ra_place_of(g, span.at)))
		return;
	struct ra_nearest near = ra_nearest_to(span.text, span.length);
	for (size_t i = 0; i < g->model->symbols.n; i++)
		ra_consider_name(&near, g->model->symbols.at[i].name, strlen(g->model->symbols.at[i].name));
	ra_refuse(
	    g, DIAG_MODEL_UNKNOWN, span.at,
	    ra_did_you_mean(g->arena, &near,
			    "dimensions are those that a parameter, an input or a state is declared with"),
	    "no dimension is named '%s'", ra_excerpt(g->arena, span));
}

/* -1 after a diagnostic. */
static int find_symbol(struct ra_graph *g, struct ra_span span, bool declare)
{
	const struct ra_name *n = ra_find_name(g, span.text, span.length);
	if (n && n->kind == RA_N_SYMBOL)
		return n->index;
	if (n) {
		ra_refuse(g, DIAG_MODEL_DIMENSION, span.at, "dimensions have names of their own",
			  "'%s' is %s%s, no dimension", ra_excerpt(g->arena, span),
			  ra_name_kind_text(n->kind), ra_line_text(g->arena, n->span.at));
		return -1;
	}
	if (declare)
		return add_symbol(g, span);
	refuse_symbol(g, span);
	return -1;
}

/* The dimension that a value is: a whole number, one below 0, or an extent. */
static bool dim_of_value(const struct ra_graph *g, ra_ref value, struct ra_dim *out)
{
	const struct ra_node *n = ra_at(g->model, value);
	int sign = 1;
	if (value.i && n->op == RA_NEG) {
		n = ra_at(g->model, n->arg[0]);
		sign = -1;
	}
	if (value.i && n->op == RA_EXTENT && sign > 0)
		return *out = n->begin, true;
	if (!value.i || n->op != RA_CONST || fabs(n->constant) > INT32_MAX || n->constant != floor(n->constant))
		return false;
	*out = ra_dim_constant(sign * (int64_t)n->constant);
	return true;
}

bool ra_find_number(const struct ra_graph *g, const struct ra_scope *scope, struct ra_span name, struct ra_dim *out)
{
	for (const struct ra_scope *s = scope; s; s = s->outer) {
		int i = s->names ? map_get(s->names, name.text, name.length) : -1;
		if (i >= 0)
			return !s->index && dim_of_value(g, s->values[i], out);
	}
	return false;
}

bool ra_refuse_factor(struct ra_graph *g, struct ra_span name)
{
	return ra_refuse(g, DIAG_MODEL_DIMENSION, name.at,
			 "dimensions are sums of numbers, names and multiples of names: 4*D, D + E, 2*D + 1; "
			 "so are indices, 2*i + u - 1",
			 "a dimension cannot be computed with '%s', which is no whole number", ra_excerpt(g->arena, name));
}

/* Where names of dimensions are resolved: in a declaration, which introduces symbols, or among local names. */
struct dim_place {
	bool declare;
	const struct ra_scope *scope;
};

static bool resolve_dim(struct ra_graph *, const struct ra_dim_text *, const struct dim_place *, struct ra_dim *out);

/* What a term counts: a symbol, a local name, or what is in parentheses; or the number that it is. */
static bool resolve_factor(struct ra_graph *g, const struct ra_dim_term *t, const struct dim_place *place,
			   struct ra_dim *out)
{
	if (t->group)
		return resolve_dim(g, t->group, place, out);
	if (!t->symbol.length)
		return *out = ra_dim_constant(t->coefficient), true;
	if (ra_find_number(g, place->scope, t->symbol, out))
		return true;
	int symbol = find_symbol(g, t->symbol, place->declare);
	*out = ra_dim_symbol(symbol);
	return symbol >= 0;
}

/* Multiplies what a term counts by the name after it: one of the two must be a number. */
static bool multiply_by_name(struct ra_graph *g, const struct ra_dim_term *t, const struct dim_place *place,
			     struct ra_dim *counted, int64_t *coefficient)
{
	struct ra_dim second;
	if (!t->by.length)
		return true;
	if (!ra_find_number(g, place->scope, t->by, &second)) {
		const struct ra_name *n = ra_find_name(g, t->by.text, t->by.length);
		if (place->declare || counted->terms || !n || n->kind != RA_N_SYMBOL)
			return ra_refuse_factor(g, t->by);
		second = ra_dim_symbol(n->index);
	}
	if (second.terms && counted->terms)
		return ra_refuse_factor(g, t->by);
	int64_t by = second.terms ? counted->constant : second.constant;
	if (second.terms)
		*counted = second;
	*coefficient = ra_multiply_factors(*coefficient, by);
	return true;
}

/* The number that a term is divided by; 0 = none. */
static bool find_divisor(struct ra_graph *g, const struct ra_dim_term *t, const struct dim_place *place, int *divisor)
{
	struct ra_dim named;
	*divisor = t->divisor;
	if (!t->divisor_name.length)
		return true;
	if (!ra_find_number(g, place->scope, t->divisor_name, &named) || named.terms || named.constant < 1 ||
	    named.constant > RA_COEFFICIENT_LIMIT)
		return ra_refuse_factor(g, t->divisor_name);
	*divisor = (int)named.constant;
	return true;
}

static bool resolve_dim(struct ra_graph *g, const struct ra_dim_text *text, const struct dim_place *place,
			struct ra_dim *out)
{
	struct ra_dim sum = {0};
	for (size_t i = 0; i < text->terms.n; i++) {
		const struct ra_dim_term *t = &text->terms.at[i];
		int64_t coefficient = t->symbol.length || t->group ? t->coefficient : 1;
		struct ra_dim term = {0};
		int divisor;
		if (!resolve_factor(g, t, place, &term) || !multiply_by_name(g, t, place, &term, &coefficient) ||
		    !find_divisor(g, t, place, &divisor))
			return false;
		bool fits = !divisor || ra_dim_divide(g, &term, divisor, &term);
		if (!fits || !ra_dim_add(&sum, coefficient, &term, &sum))
			return ra_refuse(g, DIAG_MODEL_DIMENSION, text->span.at,
					 "at most 4 names, and factors up to 1048576",
					 "the dimension '%s' is too complex",
					 ra_excerpt(g->arena, text->span));
	}
	*out = sum;
	return true;
}

bool ra_resolve_dim(struct ra_graph *g, const struct ra_scope *scope, const struct ra_dim_text *text,
		    struct ra_dim *out)
{
	return resolve_dim(g, text, &(struct dim_place){.scope = scope}, out);
}

static bool resolve_extent(struct ra_graph *g, const struct ra_dim_text *text, const struct dim_place *place,
			   struct ra_dim *out)
{
	if (!resolve_dim(g, text, place, out))
		return false;
	return !ra_dim_below(g->model, out, 1) ||
	       ra_refuse(g, DIAG_MODEL_DIMENSION, text->span.at, "extents are at least 1",
			 "the extent '%s' is not positive", ra_excerpt(g->arena, text->span));
}

static bool resolve_shape(struct ra_graph *g, const ra_dim_texts *dims, const struct dim_place *place,
			  struct ra_shape *shape)
{
	bool good = true;
	*shape = (struct ra_shape){.rank = (int)dims->n};
	if (dims->n > RA_MAX_RANK)
		return ra_refuse(g, DIAG_MODEL_RANK, dims->at[RA_MAX_RANK]->span.at, NULL,
				 "values have at most %d axes, not %zu", RA_MAX_RANK, dims->n);
	for (size_t i = 0; i < dims->n; i++)
		good &= resolve_extent(g, dims->at[i], place, &shape->dim[i]);
	return good;
}

bool ra_resolve_shape(struct ra_graph *g, const struct ra_scope *scope, const ra_dim_texts *dims,
		      struct ra_shape *shape)
{
	return resolve_shape(g, dims, &(struct dim_place){.scope = scope}, shape);
}

static const struct dim_place declared = {.declare = true};

/* The type of a declaration, of which nothing is said: f32. */
static bool resolve_type(struct ra_graph *g, const struct ra_declaration *d, enum dtype *dtype)
{
	*dtype = d->token ? DTYPE_I32 : DTYPE_F32;
	return d->token || !d->type.length || ra_read_type(g->report, d->type, dtype);
}

/* In what products with a parameter are computed, if its declaration says so. */
static bool resolve_products(struct ra_graph *g, const struct ra_declaration *d, struct ra_param *param)
{
	struct str hint = str_in(g->arena);
	param->declared = d->products.length;
	if (!param->declared || precision_read(ra_span_string(g->arena, d->products), &param->products))
		return true;
	str_printf(&hint, "products are computed in one of %s", precision_list());
	return ra_report(g->report, DIAG_MODEL_UNKNOWN_TYPE, d->products.at, str_text(&hint), "products cannot be computed in '%s'",
			 ra_excerpt(g->arena, d->products));
}

/* The bound of an input, if its declaration has one. */
static bool resolve_bound(struct ra_graph *g, const struct ra_declaration *d, struct ra_input *input)
{
	float bound = (float)d->bound;
	input->within = d->within.length ? d->bound : 0;
	if (!d->within.length)
		return true;
	if (d->token || ra_widened(input->dtype) != DTYPE_F32)
		return ra_report(g->report, DIAG_MODEL_TYPE, d->within.at,
				 "leave out 'within': integers are bounded by their type",
				 "'%s' is no input of floats, which alone are declared within a bound", input->name);
	return (bound >= FLT_MIN && bound <= FLT_MAX) ||
	       ra_report(g->report, DIAG_MODEL_NUMBER, d->within.at,
			 "a bound is the largest magnitude of an element, from 1.2e-38 to 3.4e38",
			 "'%s' cannot bound an input", ra_excerpt(g->arena, d->within));
}

static bool resolve_state_type(struct ra_graph *g, const struct ra_declaration *d, enum dtype *dtype)
{
	if (!resolve_type(g, d, dtype))
		return false;
	return ra_widened(*dtype) == *dtype ||
	       ra_report(g->report, DIAG_MODEL_TYPE, d->type.at,
			 "declare it f32, i32, i64 or bool; narrower types are what parameters and inputs have",
			 "a state cannot be %s", ra_excerpt(g->arena, d->type));
}

/* --- the model's tables: symbols are numbered in the order of the canonical text --- */

static void declare_inputs(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->inputs.n; i++) {
		const struct ra_declaration *d = &g->syntax->inputs.at[i];
		struct ra_input input = {.name = ra_span_string(g->arena, d->name),
					 .token = d->token,
					 .edge = d->edge,
					 .at = d->name.at};
		bool typed = resolve_type(g, d, &input.dtype), good = typed && resolve_bound(g, d, &input);
		if (!resolve_shape(g, &d->dims, &declared, &input.shape) || !good)
			mark_broken(g, d->name);
		vec_push(g->arena, &g->model->inputs, input);
	}
}

static void declare_params(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->params.n; i++) {
		const struct ra_declaration *d = &g->syntax->params.at[i];
		struct ra_param param = {.name = ra_span_string(g->arena, d->name), .at = d->name.at};
		bool typed = resolve_type(g, d, &param.dtype), good = resolve_products(g, d, &param) && typed;
		if (!resolve_shape(g, &d->dims, &declared, &param.shape) || !good)
			mark_broken(g, d->name);
		vec_push(g->arena, &g->model->params, param);
	}
}

/* --- traversals --- */

/* Whether the first traversal has a statement: states or bodies before any are of an implicit one, which goes
 * up. */
static bool is_first_explicit(const struct ra_syntax *s)
{
	for (size_t i = 0; i < s->states.n; i++)
		if (!s->states.at[i].traversal)
			return false;
	for (size_t i = 0; i < s->bodies.n; i++)
		if (!s->bodies.at[i].traversal)
			return false;
	return s->traversals.n;
}

/* The number of the traversal to which a declaration after so many statements 'traversal' belongs. */
static int traversal_at(const struct ra_graph *g, int statements)
{
	return statements - (g->syntax->traversals.n == g->model->traversals.n);
}

static void declare_traversals(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	if (!is_first_explicit(s))
		vec_push(g->arena, &g->model->traversals, (struct ra_traversal){.at = {.file = g->model->file}});
	for (size_t i = 0; i < s->traversals.n; i++)
		vec_push(g->arena, &g->model->traversals,
			 (struct ra_traversal){.down = s->traversals.at[i].down,
					       .at = s->traversals.at[i].span.at});
	for (size_t i = 0; i < s->bodies.n; i++)
		s->bodies.at[i].traversal = traversal_at(g, s->bodies.at[i].traversal);
}

/* The steps of scans: of dimensions that parameters and inputs declare. */
static void declare_steps(struct ra_graph *g)
{
	size_t implicit = g->model->traversals.n - g->syntax->traversals.n;
	for (size_t i = 0; i < g->syntax->traversals.n; i++) {
		const struct ra_traversal_text *t = &g->syntax->traversals.at[i];
		struct ra_dim *steps = &g->model->traversals.at[implicit + i].steps;
		if (t->steps && !resolve_extent(g, t->steps, &(struct dim_place){0}, steps))
			g->syntax->incomplete = true;
	}
}

/* The child of a step is the step before it. */
static void name_previous_step(struct ra_graph *g)
{
	struct ra_span previous = {"previous", strlen("previous"), g->syntax->structure.span.at};
	if (ra_is_graph(g) && ra_scans(g->syntax))
		vec_push(g->arena, &g->syntax->structure.names, previous);
}

/* The name of a node's parent, in models with a traversal down: others may use the name. */
static void add_parent(struct ra_graph *g)
{
	const char *name = ra_parent_name(g->model->structure.kind);
	for (size_t i = 0; name && i < g->syntax->traversals.n; i++)
		if (g->syntax->traversals.at[i].down) {
			struct ra_span span = {name, strlen(name), g->syntax->structure.span.at};
			add_name(g, RA_N_PARENT, 0, span);
			return;
		}
}

static void declare_states(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->states.n; i++) {
		const struct ra_declaration *d = &g->syntax->states.at[i];
		struct ra_state state = {.name = ra_span_string(g->arena, d->name),
					 .traversal = traversal_at(g, d->traversal),
					 .at = d->name.at};
		bool good = resolve_state_type(g, d, &state.dtype);
		if (!resolve_shape(g, &d->dims, &declared, &state.shape) || !good)
			mark_broken(g, d->name);
		if (state.shape.rank == RA_MAX_RANK && ra_is_scan(&g->model->traversals.at[state.traversal])) {
			ra_refuse(g, DIAG_MODEL_RANK, d->name.at,
				  "the states of all steps are one value with an axis more",
				  "a state of a scan has at most %d axes", RA_MAX_RANK - 1);
			state.shape.rank--;
			mark_broken(g, d->name);
		}
		vec_push(g->arena, &g->model->states, state);
	}
}

static void declare_structure(struct ra_graph *g)
{
	struct ra_structure *s = &g->model->structure;
	const ra_spans *names = &g->syntax->structure.names;
	s->kind = g->syntax->structure.kind;
	s->children = g->syntax->structure.children;
	if (!names->n)
		return;
	const char **child = ARENA_ARRAY(g->arena, const char *, names->n);
	for (size_t i = 0; i < names->n; i++)
		child[i] = ra_span_string(g->arena, names->at[i]);
	s->child = child;
}

/* --- names --- */

static void add_names(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	for (size_t i = 0; i < s->structure.names.n; i++)
		add_name(g, RA_N_SLOT, i, s->structure.names.at[i]);
	for (size_t i = 0; i < s->inputs.n; i++)
		add_name(g, RA_N_INPUT, i, s->inputs.at[i].name);
	for (size_t i = 0; i < s->params.n; i++)
		add_name(g, RA_N_PARAM, i, s->params.at[i].name);
	for (size_t i = 0; i < s->states.n; i++)
		add_name(g, RA_N_STATE, i, s->states.at[i].name);
	for (size_t i = 0; i < s->cases.n; i++)
		add_name(g, RA_N_CASE, i, s->cases.at[i].name);
	for (size_t i = 0; i < s->defs.n; i++)
		add_name(g, RA_N_DEF, i, s->defs.at[i]->name);
	for (size_t i = 0; i < s->outputs.n; i++)
		add_name(g, RA_N_OUTPUT, i, s->outputs.at[i].name);
}

static bool is_builtin(struct ra_span name)
{
	for (int i = 0; ra_builtin_name(i); i++)
		if (ra_span_is(name, ra_builtin_name(i)))
			return true;
	return false;
}

static void add_functions(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->defs.n; i++) {
		const struct ra_def *d = g->syntax->defs.at[i];
		if (is_builtin(d->name) || ra_find_prelude(d->name) >= 0)
			ra_report(g->report, DIAG_MODEL_DUPLICATE, d->name.at, "choose another name",
				  "'%s' is already a function of the language",
				  ra_excerpt(g->arena, d->name));
		map_add(&g->functions, d->name.text, d->name.length, (int)i);
	}
}

/* Refuses arguments of functions that would hide a name of the model. */
static void check_arguments(struct ra_graph *g, const struct ra_def *d)
{
	for (size_t i = 0; i < d->params.n; i++)
		ra_name_taken(g, NULL, d->params.at[i]);
}

/* The name of a child or of the parent; NULL = it is neither. */
static const struct ra_name *find_neighbour(const struct ra_graph *g, const char *name, size_t length)
{
	const struct ra_name *n = ra_find_name(g, name, length);
	return n && (n->kind == RA_N_SLOT || n->kind == RA_N_PARENT) ? n : NULL;
}

/* 'left.h' is a field of a child: nothing else may have that name. */
static void check_child_states(struct ra_graph *g)
{
	for (size_t i = 0; i < g->name.n; i++) {
		struct ra_span s = g->name.at[i].span;
		const char *dot = memchr(s.text, '.', s.length);
		const struct ra_name *of = dot ? find_neighbour(g, s.text, (size_t)(dot - s.text)) : NULL;
		if (!of)
			continue;
		const struct ra_name *field = ra_find_name(g, dot + 1, s.length - (size_t)(dot + 1 - s.text));
		if (field && ra_is_child_field(g, field))
			ra_report(g->report, DIAG_MODEL_DUPLICATE, s.at, "give one of them another name",
				  field->kind == RA_N_STATE
				      ? "'%s' is the state of %s and cannot be %s"
				      : "'%s' is carried by the edge to %s and cannot be %s",
				  ra_excerpt(g->arena, s), ra_name_kind_text(of->kind),
				  ra_name_kind_text(g->name.at[i].kind));
	}
}

void ra_declare(struct ra_graph *g)
{
	g->names = g->functions = g->bodies = map_in(g->arena);
	g->leaves = g->computed = map_in(g->arena);
	g->model->name = ra_span_string(g->arena, g->syntax->model);
	name_previous_step(g);
	add_names(g);
	add_functions(g);
	declare_structure(g);
	declare_traversals(g);
	add_parent(g);
	declare_inputs(g);
	declare_params(g);
	declare_steps(g);
	declare_states(g);
	ra_declare_cases(g);
	for (size_t i = 0; i < g->syntax->defs.n && !g->syntax->built; i++)
		check_arguments(g, g->syntax->defs.at[i]);
	check_child_states(g);
	ra_add_bodies(g);
	if (ra_is_graph(g))
		ra_check_graph(g);
	else
		ra_refuse_scans(g);
	if (!g->syntax->incomplete)
		ra_check_directions(g);
	if (!g->syntax->incomplete) {
		ra_check_complete(g);
		ra_check_case_bodies(g);
	}
}
