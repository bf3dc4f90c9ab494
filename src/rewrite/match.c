/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matching a pattern at a value.
 *
 * All variables in a match have names in one namespace, that of the value at the root.  Each use renames the
 * dimensions of its argument, and so on down; variables that occur only inside (those that a reduction
 * reduces, of the sides of a cond, and inside of an assign) get names that are not in use yet.  So the values
 * that a pattern binds can be combined in any way.
 *
 * There is only one variable for nodes.  So inside of an assign that reads other nodes it names those, and
 * values from there must not be used outside of the assign (may_move in replace.c). */
#include "rewrite/rule_engine.h"

static bool in_scope(const struct rewrite_match *m, int var)
{
	for (int i = 0; i < m->in_scope; i++)
		if (m->scope[i] == var)
			return true;
	return false;
}

static bool enter_scope(struct rewrite_match *m, int var)
{
	if (m->in_scope == REWRITE_MAX_SCOPE)
		return false;
	m->scope[m->in_scope++] = var;
	return true;
}

int rewrite_new_var(struct rewrite_match *m, int64_t extent)
{
	for (int ordinal = 0; ordinal <= REWRITE_MAX_SCOPE; ordinal++) {
		int var = sub_dim(m->w->p, extent, ordinal);
		if (!in_scope(m, var))
			return enter_scope(m, var) ? var : -1;
	}
	return -1;
}

int rewrite_new_var_like(struct rewrite_match *m, int like)
{
	const struct sub_var *v = &m->w->p->vars.at[like];
	if (v->set == SUB_DIM)
		return rewrite_new_var(m, v->extent);
	return !in_scope(m, like) && enter_scope(m, like) ? like : -1;
}

/* --- names of arguments --- */

static const struct sub_vars no_vars = {0};

/* The use of argument `a` of `v` with its variables named as in `u`, a use of `v`.  `own`, variables that
 * `v` itself lacks, are named `as`. */
static struct sub_use argument_use(const struct sub_value *v, const struct sub_use *u, int a,
				   const struct sub_vars *own, const struct sub_vars *as)
{
	struct sub_use arg = v->arg[a];
	for (int i = 0; i < arg.vars; i++) {
		int var = arg.var[i], at = sub_position_in(own, var);
		arg.var[i] = at < 0 ? -1 : as->var[at];
		for (int j = 0; at < 0 && j < v->vars; j++)
			if (v->var[j] == var)
				arg.var[i] = u->var[j];
	}
	return arg;
}

static bool same_ranges(const struct sub_program *p, const struct sub_vars *a, const struct sub_vars *b)
{
	bool same = a->n == b->n;
	for (int i = 0; same && i < a->n; i++)
		same = sub_same_range(p, a->var[i], b->var[i]);
	return same;
}

/* Binds the variables of a reduction to names; false if the index is bound to other ranges. */
static bool bind_reduced(struct rewrite_match *m, int index, const struct sub_vars *reduced)
{
	struct rewrite_bound_index *k = &m->index[index];
	if (k->bound)
		return same_ranges(m->w->p, &k->over, reduced);
	*k = (struct rewrite_bound_index){true, {0}, {-1, -1}};
	for (int i = 0; i < reduced->n; i++) {
		k->over.var[k->over.n] = rewrite_new_var_like(m, reduced->var[i]);
		if (k->over.var[k->over.n++] < 0)
			return false;
	}
	return true;
}

/* Binds the axis of a cond, and gives it a name in each side. */
static bool bind_axis(struct rewrite_match *m, int index, const struct sub_value *v, const struct sub_use *u)
{
	struct rewrite_bound_index *k = &m->index[index];
	int axis = u->var[v->axis];
	if (k->bound && (k->over.n != 1 || k->over.var[0] != axis || k->side[0] >= 0))
		return false;
	*k = (struct rewrite_bound_index){true, sub_one_var(axis), {-1, -1}};
	for (int a = 0; a < 2; a++) {
		const struct sub_use *side = &v->arg[a];
		k->side[a] = rewrite_new_var_like(m, side->var[side->vars - (v->vars - v->axis)]);
	}
	return k->side[0] >= 0 && k->side[1] >= 0;
}

/* --- assigns --- */

static struct sub_map renamed_map(const struct sub_value *v, const struct sub_use *u, int d)
{
	struct sub_map map = v->map[d];
	for (int j = 0; j < v->vars; j++) {
		if (v->map[d].var == v->var[j])
			map.var = u->var[j];
		if (map.scale2 && v->map[d].var2 == v->var[j])
			map.var2 = u->var[j];
	}
	return map;
}

/* The name of a dimension in a move that is bound already: that of a dimension with the same map; -1 = there
 * is none. */
static int find_dimension(const struct rewrite_match *m, const struct rewrite_move *move,
			  const struct sub_map *map, int like, const struct sub_use *so_far)
{
	for (int i = 0; i < move->n; i++)
		if (sub_same_map(&move->map[i], map) && sub_same_range(m->w->p, move->inner[i], like) &&
		    !sub_use_has(so_far, move->inner[i]))
			return move->inner[i];
	return -1;
}

/* Adds a dimension to a move and returns its name.  A second use may add only dimensions that its maps leave
 * as they are and that the first use lacks; -1 for others. */
static int add_dimension(struct rewrite_match *m, struct rewrite_move *move, struct sub_map map, int like,
			 bool first)
{
	bool dim = m->w->p->vars.at[like].set == SUB_DIM;
	if (move->n == SUB_MAX_VARS || (!first && (!dim || !sub_is_identity(&map))))
		return -1;
	for (int i = 0; i < move->n; i++)
		if (!first && sub_map_uses(&move->map[i], map.var))
			return -1;
	int name = dim ? rewrite_new_var_like(m, like) : like;
	move->inner[move->n] = name;
	move->map[move->n] = map;
	move->n += name >= 0;
	return name;
}

/* Binds a move to an assign, and names the argument's dimensions; false if it is bound to other maps. */
static bool bind_move(struct rewrite_match *m, struct rewrite_move *move, const struct sub_value *v,
		      const struct sub_use *u, struct sub_use *inside)
{
	bool first = !move->bound, fills = v->fills;
	if (!first && (move->fills != fills || (fills && memcmp(&move->fill, &v->fill, sizeof v->fill) != 0)))
		return false;
	move->bound = true;
	move->fills = fills;
	move->fill = v->fill;
	*inside = (struct sub_use){.value = v->arg[0].value};
	for (int d = 0; d < v->arg[0].vars; d++) {
		struct sub_map map = renamed_map(v, u, d);
		int like = v->arg[0].var[d], name = first ? -1 : find_dimension(m, move, &map, like, inside);
		if (name < 0)
			name = add_dimension(m, move, map, like, first);
		if (name < 0)
			return false;
		inside->var[inside->vars++] = name;
	}
	return true;
}

/* --- terms --- */

static bool match_term(struct rewrite_match *, const struct rewrite_term *, struct sub_use);

static bool match_name(struct rewrite_match *m, int name, const struct sub_use *u)
{
	if (m->value_bound[name])
		return sub_same_use(&m->value[name], u);
	m->value_bound[name] = true;
	m->value[name] = *u;
	return true;
}

/* The first of two adjacent arguments that match in either order; -1 = the order of all is fixed. */
static int first_of_pair(const struct rewrite_term *t)
{
	bool either = t->class == SUB_BINARY && (t->kind == REWRITE_TERM_CLASS || sub_commutes(t->op));
	return either || t->op == SUB_FMA ? 0 : t->class == SUB_CONTRACTION ? 1 : -1;
}

static bool matches_either_order(const struct rewrite_term *t)
{
	return first_of_pair(t) >= 0;
}

/* The position in a value of argument `a` of a pattern. */
static int argument_place(const struct rewrite_term *t, int a, bool reversed)
{
	int first = first_of_pair(t), second = first + 1;
	return reversed && first >= 0 ? a == first ? second : a == second ? first : a : a;
}

/* Which of the two arguments of the value matches first, in the current order. */
static int first_argument(struct rewrite_match *m, const struct rewrite_term *t)
{
	return matches_either_order(t) ? m->swapped >> m->choices++ & 1 : 0;
}

/* Binds the order in which arguments of `binary` match; false if it is bound to the other one.  The order
 * matters to a quotient, and to smax of two zeros. */
static bool bind_order(struct rewrite_match *m, enum sub_op op, bool reversed)
{
	if (!m->order_bound)
		m->reversed = reversed;
	m->order_bound = true;
	return m->reversed == reversed || op == SUB_ADD || op == SUB_MULTIPLY;
}

static bool match_binary(struct rewrite_match *m, const struct rewrite_term *t, const struct sub_value *v,
			 const struct sub_use *u)
{
	int first = first_argument(m, t);
	if (t->kind == REWRITE_TERM_CLASS && !bind_order(m, v->op, first))
		return false;
	return match_term(m, t->arg[0], argument_use(v, u, first, &no_vars, &no_vars)) &&
	       match_term(m, t->arg[1], argument_use(v, u, !first, &no_vars, &no_vars));
}

/* Matches fma or accumulate, whose factors commute. */
static bool match_accumulation(struct rewrite_match *m, const struct rewrite_term *t,
			       const struct sub_value *v, const struct sub_use *u)
{
	bool reversed = first_argument(m, t);
	bool reduces = t->class == SUB_CONTRACTION;
	if (reduces && !bind_reduced(m, t->index, &v->reduced))
		return false;
	struct sub_vars k = reduces ? m->index[t->index].over : no_vars;
	for (int a = 0; a < t->args; a++)
		if (!match_term(m, t->arg[a],
				argument_use(v, u, argument_place(t, a, reversed), &v->reduced, &k)))
			return false;
	return true;
}

static bool match_reduce(struct rewrite_match *m, const struct rewrite_term *t, const struct sub_value *v,
			 const struct sub_use *u)
{
	if (!bind_reduced(m, t->index, &v->reduced))
		return false;
	struct sub_vars k = m->index[t->index].over;
	return match_term(m, t->arg[0], argument_use(v, u, 0, &v->reduced, &k));
}

static bool match_cond(struct rewrite_match *m, const struct rewrite_term *t, const struct sub_value *v,
		       const struct sub_use *u)
{
	if (!bind_axis(m, t->index, v, u))
		return false;
	for (int a = 0; a < 2; a++) {
		const struct sub_use *side = &v->arg[a];
		struct sub_vars own = sub_one_var(side->var[side->vars - (v->vars - v->axis)]),
				as = sub_one_var(m->index[t->index].side[a]);
		if (!match_term(m, t->arg[a], argument_use(v, u, a, &own, &as)))
			return false;
	}
	return true;
}

static bool match_op(struct rewrite_match *m, const struct rewrite_term *t, const struct sub_use *u)
{
	const struct sub_value *v = sub_at(m->w->p, u->value);
	if (t->kind == REWRITE_TERM_CLASS) {
		int class = t->class - SUB_UNARY;
		if (v->op == SUB_CAST || sub_class_of(v->op) != t->class ||
		    (m->op_bound[class] && m->op[class] != v->op))
			return false;
		m->op_bound[class] = true;
		m->op[class] = v->op;
	} else if (v->op != t->op) {
		return false;
	}
	switch (t->class) {
	case SUB_UNARY:
		return match_term(m, t->arg[0], argument_use(v, u, 0, &no_vars, &no_vars));
	case SUB_BINARY:
		return match_binary(m, t, v, u);
	case SUB_REDUCE:
		return match_reduce(m, t, v, u);
	case SUB_TERNARY:
	case SUB_CONTRACTION:
		return match_accumulation(m, t, v, u);
	default:
		return match_cond(m, t, v, u);
	}
}

static bool match_move(struct rewrite_match *m, const struct rewrite_term *t, const struct sub_use *u)
{
	const struct sub_value *v = sub_at(m->w->p, u->value);
	struct sub_use inside;
	return v->op == SUB_ASSIGN && bind_move(m, &m->move[t->name], v, u, &inside) &&
	       match_term(m, t->arg[0], inside);
}

/* Whether the rule holds for the type of a value. */
static bool fits_type(const struct rewrite_match *m, sub_ref r)
{
	enum rewrite_types types = m->rule->rule->types;
	enum dtype dtype = sub_at(m->w->p, r)->dtype;
	if (dtype == DTYPE_F32)
		return m->rule->floats;
	return types == REWRITE_ALL || (types == REWRITE_INTEGERS && (dtype == DTYPE_I32 || dtype == DTYPE_I64));
}

static bool match_term(struct rewrite_match *m, const struct rewrite_term *t, struct sub_use u)
{
	u.value = rewrite_resolve(m->w, u.value);
	if (!fits_type(m, u.value))
		return false;
	switch (t->kind) {
	case REWRITE_TERM_NAME:
		return match_name(m, t->name, &u);
	case REWRITE_TERM_NUMBER: {
		const struct rewrite_fact *f = &rewrite_note_of(m->w, u.value)->fact;
		return f->uniform && f->number == t->number;
	}
	case REWRITE_TERM_MOVE:
		return match_move(m, t, &u);
	default:
		return match_op(m, t, &u);
	}
}

/* Goes on to the next order of arguments: reverses the last pair that is not reversed yet and resets those
 * after it. False after the last order. */
static bool next_order(struct rewrite_match *m)
{
	for (int c = m->choices; c-- > 0;) {
		if (!(m->swapped >> c & 1)) {
			m->swapped = (m->swapped & ((1u << c) - 1)) | 1u << c;
			return true;
		}
	}
	return false;
}

static bool fits_args(struct rewriter *w, const struct rewrite_term *t, const struct sub_value *v,
		      bool swapped)
{
	for (int a = 0; a < t->args; a++)
		if (!rewrite_may_match(w, t->arg[a], v->arg[argument_place(t, a, swapped)].value))
			return false;
	return true;
}

bool rewrite_may_match(struct rewriter *w, const struct rewrite_term *t, sub_ref r)
{
	r = rewrite_resolve(w, r);
	const struct sub_value *v = sub_at(w->p, r);
	switch (t->kind) {
	case REWRITE_TERM_NAME:
		return true;
	case REWRITE_TERM_NUMBER:
		return w->notes.at[r.i].fact.uniform && w->notes.at[r.i].fact.number == t->number;
	case REWRITE_TERM_MOVE:
		return v->op == SUB_ASSIGN && fits_args(w, t, v, false);
	case REWRITE_TERM_CLASS:
		if (sub_class_of(v->op) != t->class)
			return false;
		break;
	default:
		if (v->op != t->op)
			return false;
	}
	return fits_args(w, t, v, false) || (matches_either_order(t) && fits_args(w, t, v, true));
}

/* Clears all bindings; the variables of the root are in use. */
static void start_over(struct rewrite_match *m)
{
	m->in_scope = m->choices = 0;
	memset(m->value_bound, 0, sizeof m->value_bound);
	memset(m->op_bound, 0, sizeof m->op_bound);
	m->order_bound = m->reversed = false;
	for (int i = 0; i < m->rule->indices; i++)
		m->index[i] = (struct rewrite_bound_index){false, {0}, {-1, -1}};
	for (int i = 0; i < m->rule->moves; i++)
		m->move[i].bound = false, m->move[i].n = 0;
	for (int i = 0; i < m->root.vars; i++)
		enter_scope(m, m->root.var[i]);
}

bool rewrite_next_match(struct rewrite_match *m, bool first)
{
	do {
		if (!first && !next_order(m))
			return false;
		first = false;
		start_over(m);
	} while (!match_term(m, m->rule->pattern, m->root));
	return true;
}

bool rewrite_find_match(struct rewrite_match *m, struct rewriter *w, const struct rewrite_parsed *rule,
			sub_ref at)
{
	m->w = w;
	m->rule = rule;
	m->root = sub_as_is(w->p, at);
	m->swapped = 0;
	return rewrite_next_match(m, true);
}
