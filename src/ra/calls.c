/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions that are operators, and of definitions, which are expanded at each call. */
#include "ra/syntax.h"

static const ra_ref none = {0};

/* --- built-in functions --- */

/* Builds the node of a call; axis -1 is the last one. */
typedef ra_ref builder(struct ra_graph *, enum ra_op, const ra_ref *args, size_t n, int axis, struct ra_span);

static ra_ref build_map(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			struct ra_span span)
{
	(void)n, (void)axis;
	return ra_build_map(g, op, args[0], span);
}

static ra_ref build_reduce(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			   struct ra_span span)
{
	(void)n;
	return ra_build_reduce(g, op, args[0], axis, span);
}

static ra_ref build_scan(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			 struct ra_span span)
{
	(void)n;
	return ra_build_scan(g, op, args[0], axis, span);
}

static ra_ref build_elementwise(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
				struct ra_span span)
{
	(void)n, (void)axis;
	return ra_build_elementwise(g, op, args[0], args[1], span);
}

/* The axis, below `rank`, that a constant argument specifies; -1 = it is no such number. */
static int axis_number(const struct ra_graph *g, ra_ref r, int rank)
{
	const struct ra_node *n = ra_at(g->model, r);
	bool whole = r.i && n->op == RA_CONST && n->constant >= 0 && n->constant < rank;
	return whole && n->constant == (int)n->constant ? (int)n->constant : -1;
}

/* Numbers after the value specify the order of its axes. */
static ra_ref build_transpose(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			      struct ra_span span)
{
	int order[RA_MAX_RANK], rank = args[0].i ? ra_at(g->model, args[0])->shape.rank : 0;
	unsigned seen = 0;
	(void)op, (void)axis;
	if (n == 1 || !args[0].i)
		return ra_build_transpose(g, args[0], span);
	for (size_t d = 1; d < n && (int)n == 1 + rank; d++) {
		order[d - 1] = axis_number(g, args[d], rank);
		seen |= order[d - 1] < 0 ? 0 : 1u << order[d - 1];
	}
	if (rank > 0 && (int)n == 1 + rank && seen == (1u << rank) - 1)
		return ra_build_reorder(g, args[0], order, span);
	ra_refuse(g, DIAG_MODEL_RANK, span.at, "transpose(x, 2, 0, 1): of three axes the last comes first",
		  "'%s' does not name each of %d axes by its number, from 0, once", ra_excerpt(g->arena, span), rank);
	return none;
}

static ra_ref build_concat(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			   struct ra_span span)
{
	(void)op;
	ra_ref joined = args[0];
	for (size_t i = 1; i < n; i++)
		joined = ra_build_concat(g, joined, args[i], axis, span);
	return joined;
}

/* The number of elements along the axis. */
static ra_ref build_extent(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			   struct ra_span span)
{
	(void)op, (void)n;
	if (!args[0].i)
		return none;
	struct ra_shape shape = ra_at(g->model, args[0])->shape;
	if (shape.rank) {
		int at = ra_find_axis(g, args[0], axis, span);
		return at < 0 ? none : ra_build_extent(g, &shape.dim[at], span);
	}
	ra_refuse(g, DIAG_MODEL_RANK, span.at, NULL, "'%s': a number has no axis",
		  ra_excerpt(g->arena, span));
	return none;
}

/* The number of axes, which is known whatever the sizes. */
static ra_ref build_rank(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			 struct ra_span span)
{
	(void)op, (void)n, (void)axis;
	return args[0].i ? ra_build_constant(g, ra_at(g->model, args[0])->shape.rank, span) : none;
}

static ra_ref build_spread(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			   struct ra_span span)
{
	(void)op, (void)n, (void)axis;
	return ra_build_spread(g, args[0], args[1], span);
}

static ra_ref build_where(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			  struct ra_span span)
{
	(void)op, (void)n, (void)axis;
	return ra_build_where(g, args, span);
}

static ra_ref build_at_step(struct ra_graph *g, enum ra_op op, const ra_ref *args, size_t n, int axis,
			    struct ra_span span)
{
	(void)op, (void)n, (void)axis;
	return ra_build_at_step(g, args[0], span);
}

enum { ANY_NUMBER = 1 << 16 };

/* zeros and dimension, whose arguments are dimensions, are parsed as other expressions.  The second argument
 * of cast is a type. */
static const struct builtin {
	const char *name;
	size_t least, most;
	builder *build;
	enum ra_op op;
	bool along; /* an axis */
} builtins[] = {
#define BUILTIN_NONE(name, spelling)
#define BUILTIN_MAP(name, spelling) {spelling, 1, 1, build_map, RA_##name, false},
#define BUILTIN_ELEMENTWISE(name, spelling) {spelling, 2, 2, build_elementwise, RA_##name, false},
#define BUILTIN_REDUCE(name, spelling) {spelling, 1, 1, build_reduce, RA_##name, true},
#define BUILTIN_SCAN(name, spelling) {spelling, 1, 1, build_scan, RA_##name, true},
#define BUILTIN_TRANSPOSE(name, spelling) {spelling, 1, 1 + RA_MAX_RANK, build_transpose, RA_##name, false},
#define BUILTIN_SELECT(name, spelling) {spelling, 3, 3, build_where, RA_##name, false},
#define BUILTIN_CAST(name, spelling) {spelling, 2, 2, NULL, RA_##name, false},
#define BUILTIN_CONCAT(name, spelling) {spelling, 2, ANY_NUMBER, build_concat, RA_##name, true},
#define BUILTIN_AT_STEP(name, spelling) {spelling, 1, 1, build_at_step, RA_##name, false},
#define BUILTIN_EXTENT(name, spelling) {spelling, 1, 1, build_extent, RA_##name, true},
#define BUILTIN_DIMENSIONS(name, spelling) {spelling, 0, 0, NULL, RA_##name, false},
#define RA_OP(name, arity, spelling, types, function, lowering, sub) BUILTIN_##function(name, spelling)
#include "ra/ra_ops.def"
    {"spread", 2, 2, build_spread, RA_ADD, false},
    {"rank", 1, 1, build_rank, RA_CONST, false},
    {"dimension", 0, 0, NULL, RA_EXTENT, false},
};

const char *ra_builtin_name(int i)
{
	return i < (int)(sizeof builtins / sizeof *builtins) ? builtins[i].name : NULL;
}

static const struct builtin *find_builtin(struct ra_span name)
{
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (ra_span_is(name, builtins[i].name))
			return &builtins[i];
	return NULL;
}

/* --- calls --- */

static bool check_count(struct ra_graph *g, const struct ra_expr *e, size_t least, size_t most)
{
	size_t n = e->args.n;
	if (n >= least && n <= most)
		return true;
	return ra_refuse(g, DIAG_MODEL_ARGUMENTS, e->span.at, NULL, "'%s' takes %s%zu argument%s, not %zu",
			 ra_excerpt(g->arena, e->name),
			 least == most ? ""
			 : n < least   ? "at least "
				       : "at most ",
			 n < least ? least : most, (n < least ? least : most) == 1 ? "" : "s", n);
}

/* The position of an argument that is given by its name; -1 after a diagnostic. */
static int find_keyword(struct ra_graph *g, const struct ra_def *def, const struct ra_expr *e, struct ra_span keyword)
{
	int i = map_get(&def->param, keyword.text, keyword.length);
	if (i >= 0)
		return i;
	struct ra_nearest near = ra_nearest_to(keyword.text, keyword.length);
	for (size_t k = 0; k < def->params.n; k++)
		ra_consider_name(&near, def->params.at[k].text, def->params.at[k].length);
	ra_refuse(g, DIAG_MODEL_ARGUMENTS, keyword.at, ra_did_you_mean(g->arena, &near, "give it by its place"),
		  "'%s' has no argument '%s'", ra_excerpt(g->arena, e->name), ra_excerpt(g->arena, keyword));
	return -1;
}

/* Puts the arguments of a call in the order of the definition.  False after a diagnostic. */
static bool place_arguments(struct ra_graph *g, const struct ra_def *def, const struct ra_expr *e, const ra_ref *args,
			    ra_ref *bound, bool *given)
{
	bool named = false;
	for (size_t i = 0; i < e->args.n; i++) {
		struct ra_span keyword = i < e->keywords.n ? e->keywords.at[i] : (struct ra_span){0};
		int at = keyword.length ? find_keyword(g, def, e, keyword) : (int)i;
		if (at < 0)
			return false;
		if (named && !keyword.length)
			return ra_refuse(g, DIAG_MODEL_ARGUMENTS, e->args.at[i]->span.at, "give it by its name, too",
					 "an argument that is given by its place follows one that is given by its name");
		if (given[at])
			return ra_refuse(g, DIAG_MODEL_ARGUMENTS, keyword.at, NULL, "'%s' is given twice",
					 ra_excerpt(g->arena, keyword));
		named |= keyword.length > 0;
		bound[at] = args[i];
		given[at] = true;
	}
	return true;
}

/* The arguments of a definition, those that the call leaves out by their defaults; NULL after a diagnostic. */
static ra_ref *bind_arguments(struct ra_graph *g, const struct ra_def *def, const struct ra_expr *e, const ra_ref *args)
{
	size_t n = def->params.n, least = 0;
	while (least < n && !def->defaults.at[least])
		least++;
	ra_ref *bound = ARENA_ARRAY(g->arena, ra_ref, n + 1);
	bool *given = ARENA_ARRAY(g->arena, bool, n + 1);
	if (!check_count(g, e, least, n) || !place_arguments(g, def, e, args, bound, given))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct ra_expr *value = def->defaults.at[i];
		if (!given[i] && !value)
			return ra_refuse(g, DIAG_MODEL_ARGUMENTS, e->span.at, NULL, "'%s' lacks the argument '%s'",
					 ra_excerpt(g->arena, e->name), ra_excerpt(g->arena, def->params.at[i])),
			       NULL;
		if (!given[i])
			bound[i] = value->kind == RA_E_NUMBER
				       ? ra_build_constant(g, value->number, value->span)
				       : bound[map_get(&def->param, value->name.text, value->name.length)];
	}
	return bound;
}

static ra_ref expand_def(struct ra_graph *g, struct ra_def *def, ra_ref *args, const struct ra_expr *e)
{
	if (def->active)
		return ra_refuse(g, DIAG_MODEL_RECURSIVE, e->span.at,
				 "recursion follows the structure: states of children are left.h, right.h",
				 "'%s' calls itself", ra_excerpt(g->arena, e->name)),
		       none;
	struct ra_scope scope = {
	    .names = &def->param, .spans = def->params.at, .values = args, .n = def->params.n};
	struct ra_call call = {g->call, def, e->span.at};
	g->call = &call;
	def->active = true;
	ra_ref value = ra_expand_expr(g, &scope, def->body);
	def->active = false;
	g->call = call.outer;
	return value;
}

static int rank_of(const struct ra_graph *g, ra_ref r)
{
	return r.i ? ra_at(g->model, r)->shape.rank : -1;
}

/* Definitions work along the last axis: the axis is moved there in all arguments of the first one's rank, and
 * back in a value that still has that rank. */
static ra_ref expand_along(struct ra_graph *g, struct ra_def *def, ra_ref *args, const struct ra_expr *e)
{
	int rank = def->params.n ? rank_of(g, args[0]) : -1;
	int axis = rank < 0 ? -1 : ra_find_axis(g, args[0], e->axis, e->span);
	if (axis < 0)
		return none;
	for (size_t i = 0; i < def->params.n; i++)
		if (rank_of(g, args[i]) == rank)
			args[i] = ra_build_moved_axis(g, args[i], axis, rank - 1, e->span);
	ra_ref value = expand_def(g, def, args, e);
	return rank_of(g, value) == rank ? ra_build_moved_axis(g, value, rank - 1, axis, e->span) : value;
}

static ra_ref call_builtin(struct ra_graph *g, const struct builtin *b, const ra_ref *args, const struct ra_expr *e)
{
	if (!check_count(g, e, b->least, b->most))
		return none;
	if (e->along && !b->along)
		return ra_refuse(g, DIAG_MODEL_ARGUMENTS, e->span.at, "leave 'axis=' out", "'%s' works along no axis",
				 ra_excerpt(g->arena, e->name)),
		       none;
	return b->build(g, b->op, args, e->args.n, e->along ? e->axis : -1, e->span);
}

/* A function of the model or, which is read when it is first called, of the prelude; NULL = there is none. */
static struct ra_def *find_function(struct ra_graph *g, struct ra_span name)
{
	int def = map_get(&g->functions, name.text, name.length), known = def < 0 ? ra_find_prelude(name) : -1;
	if (known < 0)
		return def < 0 ? NULL : g->syntax->defs.at[def];
	map_add(&g->functions, name.text, name.length, (int)g->syntax->defs.n);
	return ra_parse_prelude(g->arena, g->report, g->syntax, known);
}

static ra_ref refuse_function(struct ra_graph *g, const struct ra_expr *e)
{
	if (!ra_is_news(g->report, DIAG_MODEL_FUNCTION, ra_place_of(g, e->span.at)))
		return none;
	struct ra_nearest near = ra_nearest_to(e->name.text, e->name.length);
	for (int i = 0; ra_builtin_name(i); i++)
		ra_consider_name(&near, ra_builtin_name(i), strlen(ra_builtin_name(i)));
	for (int i = 0; i < ra_prelude_functions; i++)
		ra_consider_name(&near, ra_prelude_name(i).text, ra_prelude_name(i).length);
	for (size_t i = 0; i < g->syntax->defs.n; i++)
		ra_consider_name(&near, g->syntax->defs.at[i]->name.text, g->syntax->defs.at[i]->name.length);
	ra_refuse(g, DIAG_MODEL_FUNCTION, e->span.at,
		  ra_did_you_mean(g->arena, &near, "define it with def; a product is written with *"),
		  "there is no function '%s'", ra_excerpt(g->arena, e->name));
	return none;
}

static bool refuse_cast(struct ra_graph *g, struct ra_span type)
{
	return ra_refuse(g, DIAG_MODEL_TYPE, type.at,
			 "cast to f32, i32, i64 or bool; narrower types are what parameters and inputs have",
			 "no value is %s", ra_excerpt(g->arena, type));
}

/* cast(x, i32) */
static ra_ref expand_cast(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	enum dtype dtype;
	if (!check_count(g, e, 2, 2))
		return none;
	const struct ra_expr *type = e->args.at[1];
	if (type->kind != RA_E_NAME)
		return ra_refuse(g, DIAG_MODEL_TYPE, type->span.at, "write cast(x, i32)", "'%s' is no type",
				 ra_excerpt(g->arena, type->span)),
		       none;
	ra_ref value = ra_expand_expr(g, scope, e->args.at[0]);
	if (!ra_read_type(g->report, type->name, &dtype) || (ra_widened(dtype) != dtype && !refuse_cast(g, type->name)))
		return none;
	return ra_build_cast(g, value, dtype, e->span);
}

/* Whether a condition compares two numbers that are known, and if so what it is. */
static bool is_known(const struct ra_graph *g, ra_ref condition, bool *truth)
{
	const struct ra_node *n = ra_at(g->model, condition);
	const struct ra_node *a = condition.i && n->op == RA_EQUAL ? ra_at(g->model, n->arg[0]) : NULL;
	const struct ra_node *b = a ? ra_at(g->model, n->arg[1]) : NULL;
	if (!b || a->op != RA_CONST || b->op != RA_CONST)
		return false;
	*truth = a->constant == b->constant;
	return true;
}

/* where(groups == 1, ...) in the prelude: of a condition that is known, only the side that it chooses is expanded,
 * as the other may have no shape.  False = it is no such call. */
static bool expand_known_choice(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e,
				ra_ref *value)
{
	bool truth;
	if (!g->call || !g->call->def->prelude || !ra_span_is(e->name, "where") || e->args.n != 3 ||
	    !is_known(g, ra_expand_expr(g, scope, e->args.at[0]), &truth))
		return false;
	*value = ra_expand_expr(g, scope, e->args.at[truth ? 1 : 2]);
	return true;
}

/* Arguments of operators are given by their places. */
static bool refuse_keywords(struct ra_graph *g, const struct ra_expr *e)
{
	for (size_t i = 0; i < e->keywords.n; i++)
		if (e->keywords.at[i].length)
			return !ra_refuse(g, DIAG_MODEL_ARGUMENTS, e->keywords.at[i].at, "give it by its place",
					  "'%s' has no argument '%s'", ra_excerpt(g->arena, e->name),
					  ra_excerpt(g->arena, e->keywords.at[i]));
	return false;
}

/* Each argument is expanded once, however often the function uses it. */
ra_ref ra_expand_call(struct ra_graph *g, const struct ra_scope *scope, const struct ra_expr *e)
{
	const struct builtin *b = find_builtin(e->name);
	if (b && refuse_keywords(g, e))
		return none;
	ra_ref chosen;
	if (b && b->op == RA_CAST)
		return expand_cast(g, scope, e);
	if (b && expand_known_choice(g, scope, e, &chosen))
		return chosen;
	ra_ref *args = ARENA_ARRAY(g->arena, ra_ref, e->args.n + 1);
	for (size_t i = 0; i < e->args.n; i++)
		args[i] = ra_expand_expr(g, scope, e->args.at[i]);
	if (b)
		return call_builtin(g, b, args, e);
	struct ra_def *def = find_function(g, e->name);
	if (!def)
		return refuse_function(g, e);
	ra_ref *bound = bind_arguments(g, def, e, args);
	return bound ? (e->along ? expand_along : expand_def)(g, def, bound, e) : none;
}
