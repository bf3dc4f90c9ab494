/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Instances of a rule's pattern: its names, index variables and maps stand for random ones.  A pattern is
 * data, so one generator serves all rules; what cannot be put together is given up, and another is tried. */
#ifndef ESPALIER_TESTS_SUBOP_INSTANCE_H
#define ESPALIER_TESTS_SUBOP_INSTANCE_H

#include "rewrite/rule_engine.h"
#include "tests/subop/random.h"

enum { MOST_AVAILABLE = 6 };

/* What is seen where a term stands: dimensions, and whether rows and edges are. */
struct scene {
	int n, dim[MOST_AVAILABLE];
	bool rows, edges;
};

struct instance_move {
	bool bound;
	struct scene around, inside;
	struct sub_map map[MOST_AVAILABLE]; /* by dimension inside */
	int repeated; /* a dimension around, or the edge, that no map looks at; -1 = none */
	bool fills;
	double fill;
};

struct instance {
	struct generator g;
	struct bench *b;
	const struct rewrite_parsed *rule;
	bool value_bound[REWRITE_MAX_NAMES], op_bound[3];
	struct sub_use value[REWRITE_MAX_NAMES];
	struct sub_vars index[REWRITE_MAX_NAMES]; /* n = 0: unbound */
	int side[REWRITE_MAX_NAMES][2];		  /* -1 = unbound */
	struct instance_move move[REWRITE_MAX_NAMES];
	enum sub_op op[3];
	int names;	   /* of dimensions, so far */
	struct rewriter w; /* gives values the names that rules give them */
	struct rewrite_options options;
	bool failed, pattern; /* pattern: what is being made is it, and no part of a replacement */
};

static inline struct sub_use give_up(struct instance *in)
{
	in->failed = true;
	return (struct sub_use){0};
}

/* A variable that has no meaning in the instance yet. */
static inline int new_dim(struct instance *in, int64_t extent)
{
	return sub_dim(&in->b->p, extent, in->names++);
}

static inline struct sub_use made(struct instance *in, struct sub_value v)
{
	struct sub_use u =
	    in->failed || v.vars > SUB_MAX_VARS ? (struct sub_use){0} : rewrite_add_value(&in->w, v);
	return u.value.i ? u : give_up(in);
}

static inline bool uses_var(const struct sub_use *u, int var)
{
	for (int i = 0; i < u->vars; i++)
		if (u->var[i] == var)
			return true;
	return false;
}

static inline bool sees(const struct instance *in, const struct scene *s, const struct sub_use *u)
{
	for (int i = 0; i < u->vars; i++) {
		bool seen = u->var[i] == in->b->p.node ? s->rows : u->var[i] == in->b->p.edge && s->edges;
		for (int d = 0; d < s->n; d++)
			seen |= s->dim[d] == u->var[i];
		if (!seen)
			return false;
	}
	return true;
}

/* --- leaves --- */

/* The dimensions of the scene, all or some of them, as a shape. */
static inline int choose_dims(const struct instance *in, const struct scene *s, int *vars, int64_t *shape)
{
	int n = 0, all = random_below(5) < 3;
	for (int d = 0; d < s->n && n < TENSOR_MAX_RANK; d++)
		if (all || random_below(2)) {
			shape[n] = extent_of(&in->g, s->dim[d]);
			vars[n++] = s->dim[d];
		}
	return n;
}

/* As it is, or repeated over dimensions, rows and edges. */
static inline struct sub_use leaf_number(struct instance *in, const struct scene *s, double number, int n,
					 const int *vars)
{
	sub_ref c = constant_of(in->b, number);
	int all[TENSOR_MAX_RANK + 2], leading = 0;
	if (random_below(2))
		return use_of(&in->g, c);
	if (s->rows && random_below(2))
		all[leading++] = in->b->p.node;
	if (leading && s->edges && random_below(3))
		all[leading++] = in->b->p.edge;
	memcpy(all + leading, vars, n * sizeof *vars);
	return made(in, move_of(in->b, SUB_ASSIGN, c, leading + n, all));
}

static inline double random_number(void)
{
	static const double numbers[] = {0, 1, -1, 2, 0.5, -3, -0.0, 0.1, 100, 1e-3, -0.7, 1.3};
	return numbers[random_below(sizeof numbers / sizeof *numbers)];
}

static inline sub_ref leaf_source(struct instance *in, const struct scene *s, int n, const int *vars,
				  const int64_t *shape)
{
	struct bench *b = in->b;
	struct sub_value v = {.op = SUB_ASSIGN, .vars = 1, .var = {b->p.node}};
	struct sub_map *map = new_maps(b, &v);
	map[0] = map_of(b->p.node, 1, 0);
	int64_t rows[TENSOR_MAX_RANK] = {ROWS};
	bool edges = s->edges && random_below(3);
	if (!s->rows || random_below(5) < 2 || (!edges && n == TENSOR_MAX_RANK))
		return make_param(b, random_below(3) ? "W" : "+", n, shape);
	if (edges || random_below(3) == 0) {
		v.arg[0].value =
		    in->g.state[0].i && random_below(2) ? in->g.state[0] : make_state(b, "s", n, shape);
		in->g.state[0] = v.arg[0].value;
		if (sub_at(&b->p, v.arg[0].value)->vars != n + 1)
			return (sub_ref){0};
	} else if (random_below(3) == 0 && in->g.token >= 0) {
		memcpy(rows + 1, shape, n * sizeof *shape);
		v.arg[0].value = make_param(b, "T", n + 1, rows);
		map[0] = (struct sub_map){.function = SUB_TOKEN, .which = in->g.token, .var = b->p.node};
	} else {
		return make_input(b, "x", n, shape);
	}
	if (edges) {
		v.var[v.vars++] = b->p.edge;
		map[0] = (struct sub_map){.function = SUB_EDGE_CHILD, .var = b->p.edge};
	}
	for (int d = 0; d < n; d++) {
		map[1 + d] = map_of(vars[d], 1, 0);
		v.var[v.vars++] = vars[d];
	}
	v.arg[0] = use_of(&in->g, v.arg[0].value);
	for (int d = 0; d < n; d++)
		if (extent_of(&in->g, v.arg[0].var[1 + d]) != shape[d])
			return (sub_ref){0};
	return add_value(&in->g, v);
}

/* Something computed, so that ranges and shapes of products are met. */
static inline sub_ref leaf_computed(struct instance *in, sub_ref x)
{
	static const enum sub_op around[][3] = {
	    {SUB_EXP, SUB_NOP, SUB_NOP},   {SUB_SIGMOID, SUB_NOP, SUB_NOP}, {SUB_TANH, SUB_NOP, SUB_NOP},
	    {SUB_TANH, SUB_EXP, SUB_NOP},  {SUB_TANH, SUB_EXP, SUB_NEG},    {SUB_SIGMOID, SUB_NEG, SUB_NOP},
	    {SUB_TANH, SUB_EXP, SUB_SQRT}, {SUB_NEG, SUB_NOP, SUB_NOP},	    {SUB_SIGMOID, SUB_LOG, SUB_NOP},
	    {SUB_EXP, SUB_EXP, SUB_NOP},   {SUB_ERF, SUB_NOP, SUB_NOP},	    {SUB_LOG1P, SUB_EXP, SUB_NOP}};
	enum { AROUND = sizeof around / sizeof *around };
	int which = random_below(AROUND + 4);
	struct sub_use u = use_of(&in->g, x);
	if (which > AROUND + 1)
		return add_value(&in->g, (struct sub_value){.op = SUB_MULTIPLY, .arg = {u, u}});
	if (which >= AROUND)
		return add_value(
		    &in->g,
		    (struct sub_value){.op = SUB_ADD, .arg = {u, use_of(&in->g, constant_of(in->b, 2))}});
	for (int i = 0; i < 3; i++)
		if (around[which][i] != SUB_NOP)
			x = unary_of(in->b, around[which][i], x);
	return x;
}

static inline struct sub_use leaf(struct instance *in, const struct scene *s)
{
	int vars[TENSOR_MAX_RANK], other = random_below(REWRITE_MAX_NAMES);
	int64_t shape[TENSOR_MAX_RANK];
	int n = choose_dims(in, s, vars, shape);
	if (in->value_bound[other] && random_below(3) == 0) { /* one that is there, under these names */
		struct sub_use u = in->value[other];
		for (int i = 0, d = 0; i < u.vars; i++)
			if (is_dim(&in->g, u.var[i]) && d < n && shape[d] == extent_of(&in->g, u.var[i]))
				u.var[i] = vars[d++];
		return sees(in, s, &u) ? u : give_up(in);
	}
	if (random_below(7) == 0)
		return leaf_number(in, s, random_number(), n, vars);
	sub_ref x = leaf_source(in, s, n, vars, shape);
	if (!x.i)
		return give_up(in);
	if (random_below(2))
		x = leaf_computed(in, x);
	struct sub_use u = use_of(&in->g, x);
	for (int i = 0, d = 0; i < u.vars; i++)
		if (is_dim(&in->g, u.var[i]))
			u.var[i] = vars[d++];
	return u;
}

/* --- terms --- */

static inline struct sub_use instantiate(struct instance *, const struct rewrite_term *,
					 const struct scene *);

/* Whether an operator takes f32, and gives them. */
static inline bool is_of_floats(enum sub_op op)
{
	enum sub_types types = sub_traits_of(op)->types;
	return types == SUB_FLOAT || types == SUB_NUMBER || types == SUB_SAME;
}

static inline enum sub_op operator_of(struct instance *in, const struct rewrite_term *t)
{
	int class = t->class - SUB_UNARY;
	if (t->kind == REWRITE_TERM_OP)
		return t->op;
	while (!in->op_bound[class]) {
		in->op[class] = random_below(SUB_OPS);
		in->op_bound[class] = sub_class_of(in->op[class]) == t->class && is_of_floats(in->op[class]);
	}
	return in->op[class];
}

/* The variables that an index stands for: edges, or one or two dimensions. */
static inline struct sub_vars pick_reduced(struct instance *in, const struct scene *s)
{
	if (s->rows && !s->edges && random_below(6) == 0)
		return sub_one_var(in->b->p.edge);
	struct sub_vars k = sub_one_var(new_dim(in, ANY(1, 2, 3, 4)));
	if (random_below(3) == 0)
		k.var[k.n++] = new_dim(in, ANY(1, 2, 3));
	return k;
}

static inline bool uses_all(const struct sub_use *u, int n, const struct sub_vars *k)
{
	for (int i = 0; i < k->n; i++) {
		bool used = false;
		for (int a = 0; a < n; a++)
			used |= uses_var(&u[a], k->var[i]);
		if (!used)
			return false;
	}
	return true;
}

static inline struct sub_use instantiate_reduce(struct instance *in, const struct rewrite_term *t,
						const struct scene *s)
{
	struct sub_vars *k = &in->index[t->index];
	struct scene inside = *s;
	if (!k->n)
		*k = pick_reduced(in, s);
	bool edges = k->var[0] == in->b->p.edge;
	inside.edges |= edges;
	for (int i = 0; i < k->n && !edges && inside.n < MOST_AVAILABLE; i++) {
		int at = random_below(inside.n + 1);
		memmove(inside.dim + at + 1, inside.dim + at, (inside.n - at) * sizeof *inside.dim);
		inside.dim[at] = k->var[i];
		inside.n++;
	}
	struct sub_value v = {.op = operator_of(in, t), .reduced = *k};
	bool product = t->class == SUB_CONTRACTION;
	for (int a = 0; a < t->args; a++) {
		bool start = product && a == 0;
		v.arg[a] = instantiate(in, t->arg[a], start ? s : &inside);
	}
	return in->failed || !uses_all(v.arg + product, t->args - product, k) ? give_up(in) : made(in, v);
}

/* Two values with the same dimensions but for the axis, joined along it. */
static inline struct sub_use join_sides(struct instance *in, int axis, const int *sides, struct sub_use x,
					struct sub_use y)
{
	struct sub_value v = {.op = SUB_COND, .arg = {x, y}};
	int dims[2] = {0, 0};
	for (int a = 0; a < 2 && !in->failed; a++)
		for (int i = 0; i < v.arg[a].vars; i++) {
			int var = v.arg[a].var[i];
			bool is_leading = !is_dim(&in->g, var), there = false;
			for (int k = 0; k < v.vars; k++)
				there |= v.var[k] == var;
			if (is_leading && !there)
				v.var[v.vars++] = var;
			dims[a] += !is_leading;
		}
	if (in->failed || dims[0] != dims[1] || !dims[0] || v.vars + dims[0] > SUB_MAX_VARS)
		return give_up(in);
	for (int d = 0; d < dims[0]; d++) {
		int left = x.var[x.vars - dims[0] + d], right = y.var[y.vars - dims[1] + d];
		bool here = left == sides[0];
		if (here ? right != sides[1] : left != right)
			return give_up(in);
		v.axis = here ? v.vars : v.axis;
		v.var[v.vars++] = here ? axis : left;
	}
	return made(in, v);
}

/* Both sides must have the same dimensions but for the axis. */
static inline struct sub_use instantiate_cond(struct instance *in, const struct rewrite_term *t,
					      const struct scene *s)
{
	struct sub_vars *bound = &in->index[t->index];
	int at = 0;
	struct sub_value v = {0};
	if (!bound->n && s->n)
		*bound = sub_one_var(s->dim[random_below(s->n)]);
	int j = bound->var[0];
	while (at < s->n && s->dim[at] != j)
		at++;
	if (at == s->n || bound->n > 1 || extent_of(&in->g, j) < 2 || in->side[t->index][0] >= 0)
		return give_up(in);
	int64_t all = extent_of(&in->g, j), first = 1 + random_below(all - 1);
	for (int a = 0; a < 2 && !in->failed; a++) {
		struct scene side = *s;
		side.dim[at] = in->side[t->index][a] = new_dim(in, a ? all - first : first);
		v.arg[a] = instantiate(in, t->arg[a], &side);
		if (!in->failed && v.arg[a].vars == 0) { /* a number, wanted as a tensor */
			struct sub_value wide = move_of(in->b, SUB_ASSIGN, v.arg[a].value, side.n, side.dim);
			v.arg[a] = made(in, wide);
		}
	}
	struct sub_use u = join_sides(in, j, in->side[t->index], v.arg[0], v.arg[1]);
	return !in->failed && uses_var(&u, j) ? u : give_up(in);
}

/* A dimension inside, and how it is reached: by a token, by one around as it is, a part of it or shifted, or
 * anyhow. */
static inline void add_inside(struct instance *in, struct instance_move *m, int kind, bool token)
{
	const struct scene *s = &m->around;
	struct sub_value around = {.vars = s->n};
	int64_t extent = ANY(1, 2, 3, 4, 5);
	int like = s->n ? s->dim[random_below(s->n)] : -1, d = m->inside.n;
	bool leaves = random_below(2);
	memcpy(around.var, s->dim, s->n * sizeof *s->dim);
	if (token) {
		extent = ROWS;
		m->map[d] =
		    (struct sub_map){.function = SUB_TOKEN, .which = in->g.token, .var = in->b->p.node};
	} else if (kind && like >= 0) {
		for (int i = 0; i < d; i++)
			if (m->map[i].function == SUB_AFFINE && m->map[i].var == like)
				return;
		int64_t more = kind == 2 ? random_below(4) : 0;
		extent = extent_of(&in->g, like) + more;
		m->map[d] = map_of(like, 1, more ? random_below(1 + more) : 0);
		m->map[d].offset -= kind == 2 && random_below(6) == 0;
	} else {
		m->map[d] = random_map(&in->g, &around, extent, &leaves);
	}
	m->inside.dim[m->inside.n++] = new_dim(in, extent);
}

/* --- windows, for rules that put the kernel of one product into that of another --- */

static inline bool wants_windows(const struct instance *in)
{
	return strstr(in->rule->rule->replacement, "embed(") != NULL;
}

/* A dimension around that has the extent of one inside; -1 = there is none. */
static inline int find_alike(struct instance *in, const struct scene *s, int64_t extent)
{
	for (int i = 0, first = s->n ? random_below(s->n) : 0; i < s->n; i++)
		if (extent_of(&in->g, s->dim[(first + i) % s->n]) == extent)
			return s->dim[(first + i) % s->n];
	return -1;
}

/* Dimensions that are read through a window of two variables, or as one; or each by one of the two that are reduced. */
static inline void bind_window(struct instance *in, struct instance_move *m, const struct scene *s)
{
	*m = (struct instance_move){.bound = true, .around = *s, .repeated = -1, .fills = true, .fill = ANY(0, 0, 0, 1)};
	m->inside.rows = s->rows && random_below(2) == 0;
	bool plane = in->index[0].n == 2 && random_below(2);
	for (int n = plane ? 2 : 1 + random_below(2); s->n && m->inside.n < n;) {
		int at = plane ? in->index[0].var[m->inside.n] : s->dim[random_below(s->n)], by = s->dim[random_below(s->n)], d = m->inside.n;
		m->map[d] = map_of(at, 1, 0);
		if (at != by && random_below(2)) {
			m->map[d].var2 = by;
			m->map[d].scale2 = ANY(1, 1, -1);
			m->map[d].offset = -random_below(extent_of(&in->g, by));
		}
		m->inside.dim[m->inside.n++] = new_dim(in, extent_of(&in->g, at));
	}
}

/* Dimensions like those of the first move: windows of another variable, or of none; or all by the one that is reduced, as on a
 * diagonal. */
static inline void bind_smaller_window(struct instance *in, struct instance_move *m, const struct scene *s)
{
	const struct instance_move *first = &in->move[0];
	*m = (struct instance_move){.bound = true, .around = *s, .repeated = -1, .fills = true, .fill = first->fill};
	m->inside.rows = first->inside.rows;
	bool diagonal = in->index[1].n == 1 && is_dim(&in->g, in->index[1].var[0]) && random_below(3) == 0;
	for (int d = 0; d < first->inside.n; d++) {
		int64_t extent = extent_of(&in->g, first->inside.dim[d]);
		int at = diagonal ? in->index[1].var[0] : find_alike(in, s, extent), by = s->dim[random_below(s->n)];
		m->map[d] = map_of(at, at >= 0, 0);
		if (at >= 0 && at != by && random_below(2)) {
			m->map[d].var2 = by;
			m->map[d].scale2 = 1;
			m->map[d].offset = -random_below(extent_of(&in->g, by));
		}
		in->failed |= at < 0;
		m->inside.dim[m->inside.n++] = new_dim(in, extent);
	}
}

/* The value x under the variables that a scene has for its dimensions: those inside of the second move, or others of their
 * extents, at times one for two. */
static inline struct sub_use twin_of(struct instance *in, const struct scene *s)
{
	struct sub_use u = in->value[0];
	for (int i = 0; i < u.vars; i++) {
		int d = 0, alike;
		while (d < in->move[0].inside.n && in->move[0].inside.dim[d] != u.var[i])
			d++;
		if (d == in->move[0].inside.n)
			continue;
		alike = s->n == in->move[1].inside.n && s->dim[d] == in->move[1].inside.dim[d]
			    ? s->dim[d]
			    : find_alike(in, s, extent_of(&in->g, u.var[i]));
		bool again = uses_var(&(struct sub_use){.vars = i, .var = {u.var[0], u.var[1], u.var[2]}}, alike);
		if (alike < 0 || (again && random_below(2)))
			return give_up(in);
		u.var[i] = alike;
	}
	return sees(in, s, &u) ? u : give_up(in);
}

static inline void bind_instance_move(struct instance *in, struct instance_move *m, const struct scene *s)
{
	if (wants_windows(in) && s->n)
		return m == in->move ? bind_window(in, m, s) : bind_smaller_window(in, m, s);
	bool token = s->rows && in->g.token >= 0 && random_below(3) == 0;
	int kind = random_below(3);
	*m = (struct instance_move){.bound = true, .around = *s, .repeated = -1, .fills = true};
	m->inside.rows = s->rows && random_below(token ? 6 : 2) == 0;
	for (int n = 1 + random_below(2) + token; n > 0; n--)
		add_inside(in, m, random_below(3) ? kind : random_below(3), token && !m->inside.n);
	if (s->n && random_below(3) == 0)
		m->repeated = s->dim[random_below(s->n)];
	if (s->edges && random_below(2))
		m->repeated = in->b->p.edge;
	m->fill = ANY(0, 0, 0, 1, -2);
	if (random_below(6) == 0)
		m->fill = random_below(3) ? -INFINITY : INFINITY;
}

/* Under the other side of a cond the axis is another variable, and so is a dimension inside that follows it.
 */
static inline void follow_axis(struct instance *in, struct instance_move *m, const struct scene *s)
{
	for (int k = 0; k < s->n && k < m->around.n; k++) {
		int old = m->around.dim[k];
		for (int d = 0; d < m->inside.n && old != s->dim[k]; d++)
			if (m->map[d].function == SUB_AFFINE && m->map[d].var == old &&
			    m->map[d].scale == 1 && !m->map[d].offset && !m->map[d].scale2 &&
			    extent_of(&in->g, m->inside.dim[d]) == extent_of(&in->g, old)) {
				m->map[d].var = s->dim[k];
				m->inside.dim[d] = new_dim(in, extent_of(&in->g, s->dim[k]));
			}
		m->around.dim[k] = s->dim[k];
	}
}

static inline bool map_uses(const struct sub_map *m, int var)
{
	return m->function == SUB_AFFINE && ((m->var == var && m->scale) || (m->scale2 && m->var2 == var));
}

static inline struct sub_use instantiate_move(struct instance *in, const struct rewrite_term *t,
					      const struct scene *s)
{
	struct instance_move *m = &in->move[t->name];
	struct sub_value v = {.op = SUB_ASSIGN};
	struct sub_map *map = new_maps(in->b, &v);
	bool wanted[MOST_AVAILABLE] = {false}, rows = false;
	if (!m->bound)
		bind_instance_move(in, m, s);
	else
		follow_axis(in, m, s);
	v.arg[0] = instantiate(in, t->arg[0], &m->inside);
	for (int i = 0; i < v.arg[0].vars && !in->failed; i++) {
		int d = 0;
		while (d < m->inside.n && m->inside.dim[d] != v.arg[0].var[i])
			d++;
		bool is_leading = v.arg[0].var[i] == in->b->p.node;
		map[i] = is_leading	   ? map_of(in->b->p.node, 1, 0)
			 : d < m->inside.n ? m->map[d]
					   : map_of(-1, 0, 0);
		rows |= is_leading || v.map[i].function == SUB_TOKEN;
		for (int k = 0; k < s->n; k++)
			wanted[k] |= map_uses(&v.map[i], s->dim[k]) || s->dim[k] == m->repeated;
	}
	if (rows || m->repeated == in->b->p.edge)
		v.var[v.vars++] = in->b->p.node;
	if (m->repeated == in->b->p.edge)
		v.var[v.vars++] = in->b->p.edge;
	for (int k = 0; k < s->n; k++)
		if (wanted[k])
			v.var[v.vars++] = s->dim[k];
	const struct sub_use around = {.vars = v.vars, .var = {v.var[0], v.var[1], v.var[2], v.var[3], v.var[4], v.var[5]}};
	for (int i = 0; i < v.arg[0].vars; i++) {
		const struct sub_map *by = &v.map[i];
		bool affine = by->function == SUB_AFFINE;
		if (affine && ((by->scale && !uses_var(&around, by->var)) || (by->scale2 && !uses_var(&around, by->var2))))
			return give_up(in);
	}
	v.fills = m->fills;
	v.fill = m->fill;
	return made(in, v);
}

static inline struct sub_use instantiate_name(struct instance *in, int name, const struct scene *s)
{
	if (in->value_bound[name])
		return sees(in, s, &in->value[name]) ? in->value[name] : give_up(in);
	bool twin = wants_windows(in) && in->rule->value[name] == 'y' && random_below(8);
	struct sub_use u = twin ? twin_of(in, s) : leaf(in, s);
	in->value_bound[name] = !in->failed;
	in->value[name] = u;
	return u;
}

static inline struct sub_use instantiate(struct instance *in, const struct rewrite_term *t,
					 const struct scene *s)
{
	struct sub_value v = {0};
	if (in->failed)
		return (struct sub_use){0};
	switch (t->kind) {
	case REWRITE_TERM_NAME:
		return instantiate_name(in, t->name, s);
	case REWRITE_TERM_NUMBER: {
		int vars[TENSOR_MAX_RANK];
		int64_t shape[TENSOR_MAX_RANK];
		int n = choose_dims(in, s, vars, shape);
		return leaf_number(in, s, t->number, n, vars);
	}
	case REWRITE_TERM_MOVE:
		return instantiate_move(in, t, s);
	default:
		if (t->class == SUB_REDUCE || t->class == SUB_CONTRACTION)
			return instantiate_reduce(in, t, s);
		if (t->class == SUB_MOVE)
			return instantiate_cond(in, t, s);
		v.op = operator_of(in, t);
		/* a pattern's arguments match in either order, as a rule */
		bool either =
		    t->class == SUB_BINARY && (t->kind == REWRITE_TERM_CLASS || sub_commutes(t->op));
		bool turned = in->pattern && either && random_below(2);
		for (int a = 0; a < t->args; a++)
			v.arg[turned ? !a : a] = instantiate(in, t->arg[a], s);
		return made(in, v);
	}
}

/* What a replacement looks for: the argument of there(...), the concatenation of concatenated(...). */
static inline void make_wanted(struct instance *in, const struct rewrite_term *t, const struct scene *s)
{
	if (t->kind == REWRITE_TERM_CALL && t->function == rewrite_find_function("there", 5)) {
		instantiate(in, t->arg[0], s);
	} else if (t->kind == REWRITE_TERM_CALL && t->function == rewrite_find_function("concatenated", 12)) {
		int sides[2] = {in->index[t->arg[0]->name].var[0], in->index[t->arg[1]->name].var[0]};
		int64_t extent = 0;
		for (int a = 0; a < 2; a++)
			if (is_dim(&in->g, sides[a]))
				extent += extent_of(&in->g, sides[a]);
			else
				in->failed = true;
		join_sides(in, new_dim(in, extent), sides, in->value[t->arg[2]->name],
			   in->value[t->arg[4]->name]);
	} else {
		for (int a = 0; a < t->args; a++)
			make_wanted(in, t->arg[a], s);
	}
}

/* A value that the rule's pattern was made for; none when this try did not come out. */
static inline sub_ref make_instance(struct instance *in, struct bench *b, const struct rewrite_parsed *rule,
				    uint64_t seed)
{
	struct scene s = {.rows = true};
	random_state = seed * 0x9E3779B97F4A7C15u + 7;
	random_bits();
	*in = (struct instance){.g = {.b = b, .wild = true}, .b = b, .rule = rule, .names = 20};
	memset(in->side, -1, sizeof in->side);
	b->p.children = -1;
	in->g.token = b->p.inputs.n;
	vec_push(&b->arena, &b->p.inputs, (struct sub_input){.name = "word", .token = true});
	for (s.n = 0; s.n < 1 + random_below(3); s.n++)
		s.dim[s.n] = new_dim(in, ANY(1, 2, 3, 4, 5, 6));
	in->w = (struct rewriter){.p = &b->p, .arena = &b->arena, .options = &in->options, .importing = true};
	in->pattern = true;
	struct sub_use u = instantiate(in, rule->pattern, &s);
	in->pattern = false;
	if (!in->failed && random_below(8))
		make_wanted(in, rule->replacement, &s);
	bool fits = !in->failed && !uses_var(&u, b->p.edge) && size_of(&in->g, u.vars, u.var);
	return fits ? u.value : (sub_ref){0};
}

#endif
