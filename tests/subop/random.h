/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random programs of sub-operators over small forests, valid by construction: values are made from values
 * that are there, by every operator, until states and outputs are made of some of them.
 *
 * Tame ones stay small and within the domain of their operators; wild ones do not care. */
#ifndef ESPALIER_TESTS_SUBOP_RANDOM_H
#define ESPALIER_TESTS_SUBOP_RANDOM_H

#include "tests/subop/run.h"

enum { POOL = 200, ROWS = 5, MOST_ELEMENTS = 200, MOST_DIMS = 4 };

struct generator {
	struct bench *b;
	bool wild, rational; /* rational: every operator is rounded once */
	sub_ref pool[POOL]; /* of the body at hand */
	bool positive[POOL];
	int n, leading;
	sub_ref state[3], table; /* sources */
	sub_ref param[6];
	bool param_positive[6];
	int states, params, token, vector;
};

static inline int any_of(int n, const int *from)
{
	return from[random_below(n)];
}
#define ANY(...) any_of((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static inline int random_extent(void)
{
	return ANY(1, 2, 2, 3, 3, 4, 4, 5, 6);
}

static inline bool is_dim(const struct generator *g, int var)
{
	return g->b->p.vars.at[var].set == SUB_DIM;
}

static inline int64_t extent_of(const struct generator *g, int var)
{
	return g->b->p.vars.at[var].extent;
}

/* Elements of a row; 0 = too many, or too many dimensions. */
static inline int64_t size_of(const struct generator *g, int vars, const int *var)
{
	int64_t n = 1;
	int dims = 0;
	for (int i = 0; i < vars; i++)
		if (is_dim(g, var[i]))
			n *= extent_of(g, var[i]), dims++;
		else if (g->b->p.vars.at[var[i]].set == SUB_EDGE)
			n *= 2;
	return n > MOST_ELEMENTS || dims > MOST_DIMS ? 0 : n;
}

static inline sub_ref keep(struct generator *g, sub_ref r, bool positive)
{
	if (!r.i)
		return r;
	const struct sub_value *v = sub_at(&g->b->p, r);
	if (g->n < POOL && size_of(g, v->vars, v->var)) {
		g->pool[g->n] = r;
		g->positive[g->n++] = positive;
	}
	return r;
}

static inline sub_ref add_value(struct generator *g, struct sub_value v)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	sub_ref r = v.vars <= SUB_MAX_VARS ? sub_add(&g->b->p, v, &d) : (sub_ref){0};
	diags_free(&d);
	return r;
}

static inline struct sub_use use_of(const struct generator *g, sub_ref r)
{
	return sub_as_is(&g->b->p, r);
}

/* A variable of this extent that is none of those. */
static inline int fresh_var(struct generator *g, int64_t extent, const int *taken, int n)
{
	for (int ordinal = 0;; ordinal++) {
		int var = sub_dim(&g->b->p, extent, ordinal), i = 0;
		while (i < n && taken[i] != var)
			i++;
		if (i == n)
			return var;
	}
}

/* --- steps: each makes a value of what is in the pool, or none --- */

static inline int pick(const struct generator *g)
{
	return random_below(3) && g->n > 4 ? g->n - 1 - random_below(4) : random_below(g->n);
}

/* Between -1 and 1, whatever it was. */
static inline sub_ref bounded(struct generator *g, sub_ref r)
{
	if (!g->rational)
		return unary_of(g->b, SUB_TANH, r);
	sub_ref size = unary_of(g->b, SUB_ABS, r);
	sub_ref above = binary_of(g->b, SUB_ADD, sub_as_is(&g->b->p, size), sub_as_is(&g->b->p, constant_of(g->b, 1)));
	return binary_of(g->b, SUB_DIVIDE, sub_as_is(&g->b->p, r), sub_as_is(&g->b->p, above));
}

static inline bool rounds_once(enum sub_op op)
{
	return op == SUB_NEG || op == SUB_ABS || op == SUB_REC || op == SUB_SQRT || op == SUB_NOP;
}

static inline void step_unary(struct generator *g)
{
	static const enum sub_op ops[] = {SUB_NEG, SUB_ABS,  SUB_EXP,	  SUB_LOG,  SUB_REC,   SUB_ERF,
					  SUB_NEG, SUB_SQRT, SUB_SIGMOID, SUB_TANH, SUB_NOP,   SUB_LOG1P};
	int at = pick(g);
	enum sub_op op = ops[random_below(sizeof ops / sizeof *ops)];
	bool positive = g->positive[at], inside = op == SUB_LOG || op == SUB_LOG1P || op == SUB_REC || op == SUB_SQRT;
	sub_ref x = g->pool[at];
	if (g->rational && (!rounds_once(op) || (inside && !positive))) {
		keep(g, bounded(g, x), false);
		return;
	}
	if (!g->wild && inside && !positive)
		op = SUB_TANH;
	if (!g->wild && op == SUB_EXP && random_below(3))
		x = keep(g, unary_of(g->b, SUB_TANH, x), false);
	keep(g, unary_of(g->b, op, x),
	     op == SUB_EXP || op == SUB_SIGMOID ||
		 ((op == SUB_REC || op == SUB_SQRT || op == SUB_ABS || op == SUB_NOP) && positive));
}

/* The dimensions of a use under the names of another one's, of spare ones, or as they are. */
static inline void rename_use(struct generator *g, struct sub_use *u, const struct sub_use *like)
{
	for (int i = 0; i < u->vars; i++) {
		int64_t extent = is_dim(g, u->var[i]) ? extent_of(g, u->var[i]) : 0;
		if (!extent)
			continue;
		int var = fresh_var(g, extent, u->var, u->vars),
		    start = like->vars ? random_below(like->vars) : 0;
		bool found = random_below(6) == 0;
		for (int k = 0; k < like->vars && !found; k++) {
			int other = like->var[(start + k) % like->vars], j = 0;
			while (j < u->vars && (j == i || u->var[j] != other))
				j++;
			if (is_dim(g, other) && extent_of(g, other) == extent && j == u->vars)
				var = other, found = true;
		}
		u->var[i] = random_below(8) ? var : u->var[i];
	}
}

/* Of the pool, or a number in its place. */
static inline bool is_positive(const struct generator *g, sub_ref r, int at)
{
	const struct sub_value *v = sub_at(&g->b->p, r);
	return v->op == SUB_CONST ? v->constant > 0 : g->positive[at];
}

static inline void step_binary(struct generator *g)
{
	static const enum sub_op ops[] = {SUB_ADD, SUB_ADD, SUB_MULTIPLY, SUB_MULTIPLY, SUB_SMAX, SUB_DIVIDE};
	enum sub_op op = ops[random_below(sizeof ops / sizeof *ops)];
	int a = pick(g), c = random_below(3) ? random_below(g->n) : pick(g);
	struct sub_use x = use_of(g, g->pool[a]), y = use_of(g, g->pool[c]);
	if (random_below(8) == 0)
		y = use_of(g, constant_of(g->b, ANY(0, 1, -1, 2, 3) / (double)ANY(1, 1, 2)));
	else
		rename_use(g, &y, &x);
	bool positive =
	    (g->positive[a] && g->positive[c]) || (op == SUB_SMAX && (g->positive[a] || g->positive[c]));
	struct sub_value v = {.op = op, .arg = {x, y}};
	bool turned = random_below(2);
	if (turned)
		v.arg[0] = y, v.arg[1] = x;
	if (!g->wild && op == SUB_DIVIDE && !(turned ? g->positive[a] : is_positive(g, y.value, c)))
		v.op = SUB_MULTIPLY;
	positive &= sub_at(&g->b->p, y.value)->op != SUB_CONST;
	keep(g, add_value(g, v), positive);
}

/* One or more dimensions of a value, in any order, the given one first. */
static inline struct sub_vars random_dims(struct generator *g, const struct sub_value *v, int first)
{
	struct sub_vars over = sub_one_var(first);
	int start = random_below(v->vars);
	for (int i = 0; i < v->vars && is_dim(g, first); i++) {
		int var = v->var[(start + i) % v->vars];
		if (is_dim(g, var) && sub_position_in(&over, var) < 0 && random_below(3) == 0)
			over.var[over.n++] = var;
	}
	return over;
}

static inline void step_reduce(struct generator *g)
{
	int at = pick(g);
	const struct sub_value *v = sub_at(&g->b->p, g->pool[at]);
	if (!v->vars)
		return;
	int var = v->var[random_below(v->vars)];
	enum sub_op op = random_below(3) ? SUB_SUM : SUB_MAX;
	if (is_dim(g, var) || g->b->p.vars.at[var].set == SUB_EDGE)
		keep(g, reduce_over(g->b, op, g->pool[at], random_dims(g, v, var)), g->positive[at]);
}

/* An index of a dimension of this extent, from one or two variables of the value; may leave when `fills`. */
static inline struct sub_map random_map(struct generator *g, const struct sub_value *v, int64_t extent,
					bool *leaves)
{
	int dims[SUB_MAX_VARS], n = 0;
	int64_t least, most;
	for (int i = 0; i < v->vars; i++)
		if (is_dim(g, v->var[i]))
			dims[n++] = v->var[i];
	for (int attempt = 0; attempt < 8 && n; attempt++) {
		int var = dims[random_below(n)], scale = ANY(1, 1, 1, 1, 2, -1, -2);
		struct sub_map m = map_of(var, scale, 0);
		if (random_below(4) == 0 && n > 1)
			m.var2 = dims[random_below(n)], m.scale2 = ANY(1, 1, 2, -1);
		if (m.scale2 && m.var2 == var)
			continue;
		sub_map_range(&g->b->p, &m, &least, &most);
		int64_t space = extent - 1 - (most - least);
		m.offset = -least + (space > 0 ? random_below(space + 1) : 0);
		if (random_below(3) == 0)
			m.offset += ANY(-1, 1, -2, 2);
		bool out = least + m.offset < 0 || most + m.offset >= extent;
		if (out && !*leaves)
			continue;
		return m;
	}
	*leaves = false;
	return map_of(-1, 0, random_below(extent));
}

/* A value moved to these variables, with its leading dimensions unchanged. */
static inline sub_ref moved_to(struct generator *g, sub_ref from, int vars, const int *var)
{
	struct sub_value v = move_of(g->b, SUB_ASSIGN, from, vars, var);
	const struct sub_value *source = sub_at(&g->b->p, from);
	struct sub_map *map = new_maps(g->b, &v);
	bool may_leave = random_below(3) == 0;
	for (int i = 0; i < source->vars; i++) {
		bool leaves = may_leave;
		map[i] = is_dim(g, source->var[i])
			       ? random_map(g, &v, extent_of(g, source->var[i]), &leaves)
			       : map_of(source->var[i], 1, 0);
		v.fills |= leaves;
	}
	v.fill = v.fills ? (g->wild ? ANY(0, 0, 1, -3) : ANY(0, 0, 0, 1, 2)) : 0;
	if (v.fills && g->wild && random_below(4) == 0)
		v.fill = random_below(2) ? -INFINITY : NAN;
	return add_value(g, v);
}

/* As often as not a permutation of what is there, with a variable more or less. */
static inline void step_assign(struct generator *g)
{
	int at = pick(g), var[SUB_MAX_VARS], n = 0;
	const struct sub_value *v = sub_at(&g->b->p, g->pool[at]);
	for (int i = 0; i < v->vars; i++)
		if (!is_dim(g, v->var[i]) || random_below(6))
			var[n++] = v->var[i];
	int leading = 0;
	while (leading < n && !is_dim(g, var[leading]))
		leading++;
	if (random_below(3) == 0 && n < MOST_DIMS) {
		var[n] = fresh_var(g, random_extent(), var, n);
		n++;
	}
	for (int i = leading; i < n; i++) {
		int j = leading + random_below(n - leading);
		if (random_below(4) == 0) {
			int swap = var[i];
			var[i] = var[j], var[j] = swap;
		}
		if (random_below(6) == 0)
			var[i] = fresh_var(g, random_extent(), var, n);
	}
	if (size_of(g, n, var))
		keep(g, moved_to(g, g->pool[at], n, var), false);
}

/* A value, and it or a part of it once more, joined along one dimension. */
static inline void step_cond(struct generator *g)
{
	int at = pick(g), c = pick(g);
	const struct sub_value *v = sub_at(&g->b->p, g->pool[at]);
	int leading = 0, vars = v->vars, var[SUB_MAX_VARS], under[SUB_MAX_VARS];
	memcpy(var, v->var, sizeof var);
	while (leading < vars && !is_dim(g, var[leading]))
		leading++;
	if (leading == vars)
		return;
	int axis = leading + random_below(vars - leading), part = fresh_var(g, random_extent(), var, vars);
	memcpy(under, var, sizeof under);
	under[axis] = part;
	const struct sub_value *other = sub_at(&g->b->p, g->pool[c]);
	bool same_leading = true;
	for (int i = 0; i < other->vars; i++)
		same_leading &= is_dim(g, other->var[i]) || (i < leading && other->var[i] == var[i]);
	sub_ref second = moved_to(g, same_leading ? g->pool[c] : g->pool[at], vars, under);
	if (!second.i)
		return;
	if (random_below(2))
		second = random_below(2) ? unary_of(g->b, SUB_NEG, second) : bounded(g, second);
	struct sub_value cond = {
	    .op = SUB_COND, .arg = {use_of(g, g->pool[at]), use_of(g, second)}, .vars = vars, .axis = axis};
	memcpy(cond.var, var, sizeof cond.var);
	int64_t extent = extent_of(g, var[axis]) + extent_of(g, part);
	int taken[SUB_MAX_VARS + 1];
	memcpy(taken, var, sizeof var);
	taken[vars] = part;
	cond.var[axis] = fresh_var(g, extent, taken, vars + 1);
	cond.arg[0].var[axis] = var[axis];
	cond.arg[1].var[axis] = part;
	if (random_below(2)) {
		struct sub_use swap = cond.arg[0];
		cond.arg[0] = cond.arg[1], cond.arg[1] = swap;
	}
	if (size_of(g, cond.vars, cond.var))
		keep(g, add_value(g, cond), false);
}

static inline void take_steps(struct generator *g, int n)
{
	static void (*const steps[])(struct generator *) = {
	    step_unary,	 step_unary,  step_unary,  step_binary, step_binary, step_binary,
	    step_binary, step_reduce, step_reduce, step_assign, step_assign, step_cond};
	while (n-- > 0)
		steps[random_below(sizeof steps / sizeof *steps)](g);
}

/* --- bodies --- */

/* Rows of `from` that a function of the structure picks. */
static inline sub_ref rows_of(struct generator *g, sub_ref from, enum sub_function function, int which,
			      bool edges)
{
	const struct sub_value *source = sub_at(&g->b->p, from);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {use_of(g, from)}};
	v.var[v.vars++] = g->leading;
	if (edges)
		v.var[v.vars++] = g->b->p.edge;
	struct sub_map *map = new_maps(g->b, &v);
	map[0] =
	    (struct sub_map){.function = function, .which = which, .var = edges ? g->b->p.edge : g->leading};
	for (int i = 1; i < source->vars; i++) {
		int var = fresh_var(g, extent_of(g, source->var[i]), v.var, v.vars);
		map[i] = map_of(var, 1, 0);
		v.var[v.vars++] = var;
	}
	return add_value(g, v);
}

static inline void add_sources(struct generator *g, enum sub_domain domain)
{
	struct sub_program *p = &g->b->p;
	g->n = 0;
	g->leading = domain == SUB_EVERY_INPUT ? p->input : p->node;
	for (int i = 0; i < g->params; i++)
		keep(g, g->param[i], g->param_positive[i]);
	keep(g, constant_of(g->b, random_below(2) ? 0.5 : 2), true);
	if (domain != SUB_EVERY_INPUT && g->token >= 0)
		keep(g, rows_of(g, g->table, SUB_TOKEN, g->token, false), false);
	if (domain == SUB_LEAF || (domain == SUB_INNER && random_below(2)))
		keep(g, source_of(g->b, SUB_VECTOR, g->vector, &p->inputs.at[g->vector].row), false);
	for (int s = 0; s < g->states && domain != SUB_LEAF; s++) {
		if (domain == SUB_EVERY_NODE)
			keep(g, g->state[s], false);
		else if (domain == SUB_EVERY_INPUT)
			keep(g, rows_of(g, g->state[s], SUB_ROOT, 0, false), false);
		else if (p->children < 0)
			keep(g, rows_of(g, g->state[s], SUB_EDGE_CHILD, 0, true), false);
		else
			for (int c = 0; c < p->children; c++)
				keep(g, rows_of(g, g->state[s], SUB_CHILD, c, false), false);
	}
}

/* Some value of the pool over the variables of a tensor. */
static inline sub_ref result_of(struct generator *g, const struct sub_tensor *t)
{
	int at = g->n - 1 - random_below(g->n < 6 ? g->n : 6), var[SUB_MAX_VARS] = {g->leading};
	sub_ref r = g->pool[at];
	for (int d = 0; d < t->rank; d++)
		var[1 + d] = t->var[d];
	for (int i = 0; i < sub_at(&g->b->p, r)->vars; i++)
		if (sub_at(&g->b->p, r)->var[i] == g->b->p.edge)
			r = reduce_of(g->b, random_below(2) ? SUB_SUM : SUB_MAX, r, g->b->p.edge);
	return moved_to(g, r, 1 + t->rank, var);
}

/* Makes the results of a body one after the other, then the body. */
static inline void make_states(struct generator *g, const char *name, enum sub_domain domain, int steps)
{
	sub_ref results[3];
	add_sources(g, domain);
	take_steps(g, steps);
	for (int s = 0; s < g->states; s++) {
		results[s] = result_of(g, &g->b->p.states.at[s]);
		if (!g->wild || random_below(2))
			results[s] = bounded(g, results[s]);
	}
	struct sub_body *body = make_body(g->b, name, domain);
	for (int s = 0; s < g->states; s++)
		store_state(g->b, body, s, results[s]);
}

static inline void make_outputs(struct generator *g, const char *name, enum sub_domain domain, int steps)
{
	struct sub_program *p = &g->b->p;
	sub_ref results[3];
	int n = 1 + random_below(3);
	add_sources(g, domain);
	take_steps(g, steps);
	for (int o = 0; o < n; o++) {
		int64_t shape[2] = {random_extent(), random_extent()};
		struct sub_tensor t = tensor_of(p, "y", random_below(3), shape);
		results[o] = result_of(g, &t);
	}
	struct sub_body *body = make_body(g->b, name, domain);
	for (int o = 0; o < n; o++)
		make_output(g->b, body, "y", results[o], domain == SUB_EVERY_INPUT);
}

static inline void declare_sources(struct generator *g)
{
	struct bench *b = g->b;
	int64_t shape[3];
	g->vector = b->p.inputs.n;
	make_input(b, "x", SHAPE(random_extent()));
	g->token = random_below(3) ? (int)b->p.inputs.n : -1;
	if (g->token >= 0)
		vec_push(&b->arena, &b->p.inputs, (struct sub_input){.name = "word", .token = true});
	g->table = make_param(b, "T", SHAPE(ROWS, random_extent()));
	g->params = 1 + random_below(5);
	for (int i = 0; i < g->params; i++) {
		for (int d = 0; d < 3; d++)
			shape[d] = random_extent();
		g->param_positive[i] = random_below(2);
		g->param[i] =
		    make_param(b, g->param_positive[i] ? "+" : "W", ANY(0, 1, 1, 2, 2, 2, 3), shape);
	}
	g->states = 1 + random_below(2);
	for (int s = 0; s < g->states; s++) {
		shape[0] = random_extent(), shape[1] = random_extent();
		g->state[s] = make_state(b, "s", ANY(1, 1, 1, 2, 0), shape);
	}
}

/* A program in an open bench. */
static inline void generate_program(struct bench *b, struct generator *g, uint64_t seed, bool wild,
				    bool rational)
{
	random_state = seed * 0x9E3779B97F4A7C15u + 1;
	random_bits();
	*g = (struct generator){.b = b, .wild = wild, .rational = rational};
	b->p.children = ANY(1, 2, 2, -1, -1);
	declare_sources(g);
	make_states(g, "leaf", SUB_LEAF, 2 + random_below(10));
	make_states(g, "inner", SUB_INNER, 4 + random_below(25));
	bool root = random_below(2);
	make_outputs(g, "output", SUB_EVERY_NODE, 2 + random_below(12));
	if (root)
		make_outputs(g, "output.root", SUB_EVERY_INPUT, 2 + random_below(10));
}

/* --- data --- */

enum { MOST_NODES = 24 };

/* Structures that the program takes: nodes by ascending number are a topological order. */
static inline void random_forest(const struct sub_program *p, struct arena *a, struct sub_forest *f)
{
	int32_t *begin = ARENA_ARRAY(a, int32_t, MOST_NODES + 1),
		*children = ARENA_ARRAY(a, int32_t, MOST_NODES);
	int32_t *root = ARENA_ARRAY(a, int32_t, MOST_NODES), *order = ARENA_ARRAY(a, int32_t, MOST_NODES);
	int nodes = 0, edges = 0, inputs = 0, open[MOST_NODES], n = 0, trees = 1 + random_below(3);
	while (inputs < trees) {
		int want = p->children < 0 ? 1 + random_below(3) : p->children;
		bool join = n >= want && random_below(2);
		begin[nodes] = edges;
		order[nodes] = nodes;
		for (int i = 0; join && i < want; i++)
			children[edges++] = open[--n];
		open[n++] = nodes++;
		bool full = nodes > MOST_NODES - 6 || (n == 1 && join);
		if (full || (n == 1 && random_below(4) == 0)) {
			while (n)
				root[inputs++] = open[--n];
			if (full && nodes > MOST_NODES - 6)
				break;
		}
	}
	begin[nodes] = edges;
	*f = (struct sub_forest){nodes, inputs, begin, children, root, order, NULL, NULL};
}

/* Of these the expansions of exp, sigmoid and tanh make pairs that fall where they should rise. */
static inline float falling_number(void)
{
	static const float pairs[] = {-0x1.f9b25cp-6f, -0x1.f9b25ep-6f, 0x1.fab694p-5f,
				      0x1.fab696p-5f,  0x1.7ffffap-23f, 0x1.7ffffcp-23f};
	return pairs[random_below(6)];
}

/* Numbers that are hard on arithmetic, among others. */
static inline float wild_number(void)
{
	static const float hard[] = {0,	    -0.f,   INFINITY, -INFINITY, NAN,	 1e-40f, -1e-42f,
				     1e38f, -3e38f, 1,	      -1,	 1e-20f, 88,	 -90};
	return random_below(3) ? (int)random_below(4001) / 1000.f - 2
			       : hard[random_below(sizeof hard / sizeof *hard)];
}

static inline float *random_numbers(struct arena *a, int64_t n, bool wild, bool positive)
{
	float *x = ARENA_ARRAY(a, float, n + 1);
	for (int64_t i = 0; i < n; i++) {
		x[i] = wild ? wild_number() : (int)random_below(2001) / 1000.f - 1;
		if (positive)
			x[i] = fabsf(x[i]) + (wild ? 0 : 0.1f);
	}
	return x;
}

static inline void random_data(const struct sub_program *p, struct arena *a, bool wild, struct data *d)
{
	random_forest(p, a, &d->forest);
	const void **data = ARENA_ARRAY(a, const void *, p->inputs.n + 1);
	for (size_t i = 0; i < p->inputs.n; i++) {
		int32_t *token = ARENA_ARRAY(a, int32_t, d->forest.nodes);
		for (int64_t n = 0; n < d->forest.nodes; n++)
			token[n] = random_below(ROWS);
		data[i] = token;
		if (!p->inputs.at[i].token)
			data[i] =
			    random_numbers(a, d->forest.nodes * row_of(&p->inputs.at[i].row), wild, false);
	}
	d->forest.data = data;
	d->params = ARENA_ARRAY(a, const void *, p->params.n + 1);
	for (size_t i = 0; i < p->params.n; i++)
		d->params[i] =
		    random_numbers(a, row_of(&p->params.at[i]), wild, p->params.at[i].name[0] == '+');
	d->results = count_results(p, &d->forest);
}

#endif
