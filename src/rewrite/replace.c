/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Building the replacement of a match.
 *
 * Only rewrite_add_value adds values: it gives their variables canonical names (each dimension has the
 * variable of its extent that no earlier dimension has), so values that differ in names alone are one. */
#include "rewrite/rule_engine.h"

static const struct sub_use none = {.value = {0}};

/* --- canonical names --- */

static int canonical_var(struct sub_program *p, int var, const int *taken, int n)
{
	int ordinal = 0;
	if (p->vars.at[var].set != SUB_DIM)
		return var;
	for (int i = 0; i < n; i++)
		ordinal += p->vars.at[taken[i]].set == SUB_DIM &&
			   p->vars.at[taken[i]].extent == p->vars.at[var].extent;
	return sub_dim(p, p->vars.at[var].extent, ordinal);
}

struct renaming {
	int n, from[2 * SUB_MAX_VARS], to[2 * SUB_MAX_VARS];
};

static int renamed_var(const struct renaming *r, int var)
{
	for (int i = 0; i < r->n; i++)
		if (r->from[i] == var)
			return r->to[i];
	return -1;
}

static void rename_maps(struct sub_map *map, int n, const struct renaming *r)
{
	for (int i = 0; i < n; i++) {
		if (map[i].var >= 0)
			map[i].var = renamed_var(r, map[i].var);
		if (map[i].scale2)
			map[i].var2 = renamed_var(r, map[i].var2);
	}
}

static void rename_args(const struct sub_program *p, struct sub_value *v, const struct renaming *r,
			struct sub_map *maps)
{
	bool moves = v->op == SUB_ASSIGN;
	for (int a = 0; a < v->args && !moves; a++)
		for (int i = 0; i < v->arg[a].vars; i++)
			v->arg[a].var[i] = renamed_var(r, v->arg[a].var[i]);
	if (!moves)
		return;
	if (v->op == SUB_ASSIGN)
		rename_maps(sub_copy_maps(v, maps), v->arg[0].vars, r);
	v->arg[0] = sub_as_is(p, v->arg[0].value);
}

/* The position of the axis in a side of a cond. */
static int side_axis(const struct sub_value *v, int a)
{
	return v->arg[a].vars - (v->vars - v->axis);
}

/* Renames the variables of the sides of a cond, the axis of each to a canonical variable of its extent. */
static void rename_sides(struct sub_program *p, struct sub_value *v, const struct renaming *r)
{
	for (int a = 0; a < 2; a++) {
		int axis = side_axis(v, a), var = canonical_var(p, v->arg[a].var[axis], r->to, v->vars);
		for (int i = 0; i < v->arg[a].vars; i++)
			v->arg[a].var[i] = i == axis ? var : renamed_var(r, v->arg[a].var[i]);
	}
}

static void make_canonical(struct sub_program *p, struct sub_value *v, struct sub_map *maps)
{
	struct renaming r = {0};
	for (; r.n < v->vars; r.n++) {
		r.from[r.n] = v->var[r.n];
		r.to[r.n] = canonical_var(p, v->var[r.n], r.to, r.n);
	}
	if (v->op == SUB_COND) {
		rename_sides(p, v, &r);
	} else {
		for (int i = 0; i < v->reduced.n; i++, r.n++) {
			r.from[r.n] = v->reduced.var[i];
			v->reduced.var[i] = r.to[r.n] = canonical_var(p, r.from[r.n], r.to, r.n);
		}
		rename_args(p, v, &r, maps);
	}
	memcpy(v->var, r.to, v->vars * sizeof *v->var);
}

/* --- what may be added --- */

/* Whether a token may select rows of a value: of a computed one only if it may become a table. */
static bool may_look_up(struct rewriter *w, const struct sub_value *v)
{
	const struct sub_value *from = sub_at(w->p, v->arg[0].value);
	if (from->op == SUB_PARAM || from->op == SUB_CONST)
		return true;
	const struct rewrite_fact *f = &rewrite_note_of(w, v->arg[0].value)->fact;
	return f->constant && !f->barred && !(w->options->off & 1u << REWRITE_FAMILY_TABLES);
}

/* Whether an assign may read its argument: a computed value has only the rows of its own body, so other nodes
 * are read through states and inputs. */
static bool may_move(struct rewriter *w, const struct sub_value *v)
{
	for (int d = 0; d < v->arg[0].vars; d++) {
		const struct sub_map *m = &v->map[d];
		if (m->function == SUB_TOKEN ? !may_look_up(w, v)
					     : !sub_is_arithmetic(m) && m->function != SUB_STEP &&
						   sub_at(w->p, v->arg[0].value)->op != SUB_STATE &&
						   sub_at(w->p, v->arg[0].value)->op != SUB_VECTOR)
			return false;
	}
	return true;
}

static bool are_distinct(const int *var, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (var[i] == var[j])
				return false;
	return true;
}

struct sub_use rewrite_add_value(struct rewriter *w, struct sub_value v)
{
	struct sub_use u = none;
	struct sub_map maps[SUB_MAX_VARS];
	for (v.args = 0; v.args < sub_traits_of(v.op)->arity; v.args++)
		if (!v.arg[v.args].value.i || v.arg[v.args].value.i == w->root)
			return none;
	if (!sub_infer_vars(w->p, &v) || !are_distinct(v.var, v.vars) ||
	    (v.op == SUB_ASSIGN && !w->importing && !may_move(w, &v)))
		return none;
	u.vars = v.vars;
	memcpy(u.var, v.var, sizeof u.var);
	make_canonical(w->p, &v, maps);
	u.value = w->finding ? sub_find_value(w->p, v) : sub_add(w->p, v, NULL);
	if (!u.value.i)
		return none;
	sub_ref current = rewrite_resolve(w, u.value);
	w->met_replaced |= current.i != u.value.i;
	u.value = current;
	return u;
}

/* --- terms --- */

/* A number of the type of what is replaced. */
static struct sub_use add_number(struct rewrite_match *m, double value)
{
	enum dtype dtype = sub_at(m->w->p, m->root.value)->dtype;
	return rewrite_add_value(m->w, (struct sub_value){.op = SUB_CONST, .dtype = dtype, .constant = value});
}

/* What a variable indexes inside of a move; -1 = nothing. */
static int index_inside(const struct rewrite_move *move, int var)
{
	for (int i = 0; i < move->n; i++)
		if (sub_map_uses(&move->map[i], var))
			return move->inner[i];
	return -1;
}

static void add_indices(const struct rewrite_match *m, const struct rewrite_term *t, int index,
			struct sub_vars *all)
{
	const struct rewrite_bound_index *k = &m->index[index];
	struct sub_vars of = t->side < 0 ? k->over : sub_one_var(k->side[t->side]);
	for (int i = 0; i < of.n && all->n < SUB_MAX_VARS; i++)
		all->var[all->n++] = t->inside < 0 ? of.var[i] : index_inside(&m->move[t->inside], of.var[i]);
}

struct sub_vars rewrite_indices_of(const struct rewrite_match *m, const struct rewrite_term *t)
{
	struct sub_vars all = {0};
	add_indices(m, t, t->kind == REWRITE_TERM_INDEX ? t->name : t->index, &all);
	if (t->second >= 0)
		add_indices(m, t, t->second, &all);
	return all;
}

int rewrite_index_of(const struct rewrite_match *m, const struct rewrite_term *t)
{
	struct sub_vars all = rewrite_indices_of(m, t);
	return all.n == 1 ? all.var[0] : -1;
}

/* The position of a variable in a use; -1 = it is not there. */
static int find_position(const struct sub_use *u, int var)
{
	for (int i = 0; i < u->vars; i++)
		if (u->var[i] == var)
			return i;
	return -1;
}

/* The result has the leading dimensions of both sides, then the dimensions of the first, which must be those
 * of the second. */
struct sub_use rewrite_concatenate(struct rewrite_match *m, int axis, const int *sides, struct sub_use x,
				   struct sub_use y)
{
	struct sub_value v = {.op = SUB_COND, .arg = {x, y}};
	const struct sub_program *p = m->w->p;
	int at[2] = {find_position(&x, sides[0]), find_position(&y, sides[1])};
	if (!x.value.i || !y.value.i || at[0] < 0 || at[1] < 0 || x.vars - at[0] != y.vars - at[1])
		return none;
	for (int a = 0; a < 2; a++)
		for (int i = 0; i < v.arg[a].vars; i++) {
			int var = v.arg[a].var[i];
			struct sub_use so_far = {.vars = v.vars};
			memcpy(so_far.var, v.var, sizeof so_far.var);
			if (p->vars.at[var].set == SUB_DIM || sub_use_has(&so_far, var))
				continue;
			if (v.vars == SUB_MAX_VARS)
				return none;
			v.var[v.vars++] = var;
		}
	int leading = v.vars, n[2] = {0, 0};
	for (int i = 0; i < x.vars; i++) {
		if (p->vars.at[x.var[i]].set != SUB_DIM)
			continue;
		if (v.vars == SUB_MAX_VARS)
			return none;
		if (i == at[0])
			v.axis = v.vars;
		v.var[v.vars++] = i == at[0] ? axis : x.var[i];
		n[0]++;
	}
	for (int i = 0; i < y.vars; i++)
		if (p->vars.at[y.var[i]].set == SUB_DIM &&
		    (leading + n[1] >= v.vars || v.var[leading + n[1]++] != (i == at[1] ? axis : y.var[i])))
			return none;
	return n[0] == n[1] ? rewrite_add_value(m->w, v) : none;
}

/* The position of argument `a` of a term in the value built from it. */
static int place_of(const struct rewrite_match *m, const struct rewrite_term *t, int a)
{
	return t->kind == REWRITE_TERM_CLASS && t->class == SUB_BINARY && m->reversed ? !a : a;
}

/* Whether the elements of a reduction have all variables that it reduces. */
static bool can_reduce(const struct sub_value *v)
{
	bool product = sub_class_of(v->op) == SUB_CONTRACTION;
	for (int i = 0; i < v->reduced.n; i++)
		if (!sub_use_has(&v->arg[product], v->reduced.var[i]) &&
		    !(product && sub_use_has(&v->arg[2], v->reduced.var[i])))
			return false;
	return v->reduced.n > 0;
}

static struct sub_use build_operator(struct rewrite_match *m, const struct rewrite_term *t)
{
	struct sub_value v = {.op = t->kind == REWRITE_TERM_OP ? t->op : m->op[t->class - SUB_UNARY]};
	for (int a = 0; a < t->args; a++)
		v.arg[place_of(m, t, a)] = rewrite_build_term(m, t->arg[a]);
	if (v.op == SUB_COND)
		return rewrite_concatenate(m, rewrite_index_of(m, t), m->index[t->index].side, v.arg[0],
					   v.arg[1]);
	if (sub_reduces(v.op)) {
		v.reduced = rewrite_indices_of(m, t);
		if (!can_reduce(&v))
			return none;
	}
	return rewrite_add_value(m->w, v);
}

struct sub_use rewrite_build_term(struct rewrite_match *m, const struct rewrite_term *t)
{
	switch (t->kind) {
	case REWRITE_TERM_NAME:
		return m->value[t->name];
	case REWRITE_TERM_NUMBER:
		return add_number(m, t->number);
	case REWRITE_TERM_MOVE:
		return rewrite_move_value(m, &m->move[t->name], rewrite_build_term(m, t->arg[0]));
	case REWRITE_TERM_CALL:
		return rewrite_function_at(t->function)(m, t);
	case REWRITE_TERM_INDEX:
		return none;
	default:
		return build_operator(m, t);
	}
}

/* A use with exactly the variables of `as`, in this order; adds an assign if they differ. */
static struct sub_use arrange_use(struct rewrite_match *m, struct sub_use u, const struct sub_use *as)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .vars = as->vars, .map = map};
	if (u.vars == as->vars && memcmp(u.var, as->var, u.vars * sizeof *u.var) == 0)
		return u;
	memcpy(v.var, as->var, sizeof v.var);
	for (int i = 0; i < u.vars; i++) {
		if (!sub_use_has(as, u.var[i]))
			return none;
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = u.var[i], .scale = 1};
	}
	return rewrite_add_value(m->w, v);
}

struct sub_use rewrite_build_replacement(struct rewrite_match *m)
{
	struct sub_use u = rewrite_build_term(m, m->rule->replacement);
	return u.value.i ? arrange_use(m, u, &m->root) : none;
}

/* --- functions --- */

/* Applies an operator to arguments that are numbers.  The result is that of binary32 arithmetic (one
 * operation in binary64 on binary32 operands, rounded once more), or a binary64 number that rounds to it.
 * `exact`: every implementation computes this result. */
static double fold_operator(struct rewrite_match *m, const struct rewrite_term *call, bool *exact)
{
	const struct rewrite_term *t = call->arg[0];
	enum sub_op op = t->kind == REWRITE_TERM_OP ? t->op : m->op[t->class - SUB_UNARY];
	double x[2] = {0, 0};
	for (int a = 0; a < t->args; a++)
		x[place_of(m, t, a)] = rewrite_note_of(m->w, m->value[t->arg[a]->name].value)->fact.number;
	double here = sub_apply_op(op, (float)x[0], (float)x[1], 0), wide = sub_apply_op(op, x[0], x[1], 0);
	*exact = op == SUB_NEG || op == SUB_ABS || op == SUB_SMAX || op == SUB_REC || op == SUB_DIVIDE ||
		 ((op == SUB_ADD || op == SUB_MULTIPLY) && here == (float)here);
	return (float)wide == (float)here ? wide : (float)here;
}

/* there(t): t, if it is live already. */
static struct sub_use find_existing(struct rewrite_match *m, const struct rewrite_term *call)
{
	m->w->finding = true;
	struct sub_use u = rewrite_build_term(m, call->arg[0]);
	m->w->finding = false;
	return u.value.i && rewrite_note_of(m->w, u.value)->uses ? u : none;
}

/* fold(binary(a, b)): the result for two numbers. */
static struct sub_use build_folded(struct rewrite_match *m, const struct rewrite_term *call)
{
	bool exact;
	return add_number(m, fold_operator(m, call, &exact));
}

/* fold_exact(t): the same, only where the result is certain.  A product that contraction will add is not
 * rounded, and the expansions of compounds may differ from the host's library. */
static struct sub_use build_folded_exact(struct rewrite_match *m, const struct rewrite_term *call)
{
	bool exact;
	double x = fold_operator(m, call, &exact);
	return exact ? add_number(m, x) : none;
}

/* value(a): the number that every element of a is. */
static struct sub_use build_value(struct rewrite_match *m, const struct rewrite_term *call)
{
	return add_number(m, rewrite_note_of(m->w, m->value[call->arg[0]->name].value)->fact.number);
}

/* extent(k): as a number. */
static struct sub_use build_extent(struct rewrite_match *m, const struct rewrite_term *call)
{
	double extent = 1;
	struct sub_vars all = rewrite_indices_of(m, call->arg[0]);
	for (int i = 0; i < all.n; i++) {
		const struct sub_var *var = &m->w->p->vars.at[all.var[i]];
		if (var->set != SUB_DIM)
			return none;
		extent *= (double)var->extent;
	}
	return add_number(m, extent);
}

static const struct {
	const char *name;
	rewrite_function *build;
} functions[] = {
    {"there", find_existing},
    {"fold", build_folded},
    {"value", build_value},
    {"regroup", rewrite_regroup_sides},
    {"concatenated", rewrite_find_concatenation},
    {"fold_exact", build_folded_exact},
    {"extent", build_extent},
    {"compose", rewrite_compose_moves},
    {"under", rewrite_rename_outside},
    {"through", rewrite_rename_inside},
    {"side", rewrite_select_side},
    {"join", rewrite_join_slices},
    {"first", rewrite_slice_first},
    {"second", rewrite_slice_second},
    {"join_moved", rewrite_join_arguments},
    {"embed", rewrite_embed_kernel},
    {"inside", rewrite_drop_border},
    {"border", rewrite_make_border},
};

int rewrite_find_function(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (strlen(functions[i].name) == length && strncmp(functions[i].name, name, length) == 0)
			return i;
	return -1;
}

rewrite_function *rewrite_function_at(int i)
{
	return functions[i].build;
}
