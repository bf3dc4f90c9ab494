/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Unstacking: where a row is a stack of instances, each computed without the others, the instances become rows.
 *
 *     input x[8,3,224,224]                                     input x[3,224,224], 8 rows for one
 *     %1[n,b,k,i,j] = accumulate_c 0, W[k,c], x[n,b,c,i,j]  ->  %1[n,k,i,j] = accumulate_c 0, W[k,c], x[n,c,i,j]
 *
 * Rows lie in memory as the instances did.  They can be divided among threads without a barrier between loop nests, and a thread
 * can run all nests for some rows before the next, while their intermediates are in its cache. */
#include "move/moved_program.h"

/* What find_axis says of a value besides the position of the variable of instances. */
enum { SAME_FOR_ALL = -1, REFUSED = -2 };

/* The position of the dimension of instances in what is carried by nodes and in results, behind the node. */
enum { AXIS = 1 };

struct unstacking {
	const struct sub_program *from;
	struct sub_program *to;
	int64_t instances;
	int *axis; /* by value: the position of the variable of instances, or SAME_FOR_ALL */
	sub_ref *now; /* by value: the new one */
	bool *moved_only; /* by value: it moved instances and nothing else, and is its argument now */
};

/* --- whether instances are independent --- */

static bool has_instances(const struct sub_tensor *t, int64_t instances)
{
	return t->rank && t->shape[0] == instances;
}

/* The instances that all inputs and results are stacks of; below 2: they are none. */
static int64_t count_instances(const struct sub_program *p)
{
	int64_t n = p->inputs.n ? p->inputs.at[0].row.shape[0] : 0;
	bool all = !p->children && !p->states.n && !p->calls.n && p->stacked < 2;
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_input *in = &p->inputs.at[i];
		all &= !in->token && !in->on_edge && !in->hoisted && has_instances(&in->row, n);
	}
	for (size_t i = 0; i < p->outputs.n; i++)
		all &= has_instances(&p->outputs.at[i].row, n);
	return all ? n : 0;
}

/* Whether a movement leaves each instance where it is. */
static bool keeps_instances(const struct sub_program *p, const struct sub_value *v, int axis)
{
	const struct sub_map *m = &v->map[axis];
	bool kept = sub_is_identity(m) && sub_same_range(p, m->var, v->arg[0].var[axis]);
	for (int i = 0; kept && i < v->arg[0].vars; i++)
		kept = i == axis || (v->map[i].function <= SUB_DIGIT && !sub_map_uses(&v->map[i], m->var));
	return kept;
}

/* The variable that a value has for the instances of an argument; REFUSED = it mixes them. */
static int name_instances(const struct unstacking *w, const struct sub_value *v, int arg)
{
	const struct sub_use *u = &v->arg[arg];
	int axis = w->axis[u->value.i];
	if (v->op != SUB_ASSIGN)
		return u->var[axis];
	return keeps_instances(w->from, v, axis) ? v->map[axis].var : REFUSED;
}

static int find_position(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return i;
	return REFUSED;
}

/* Whether what is the same for all instances is read by their number. */
static bool tells_instances_apart(const struct unstacking *w, const struct sub_value *v, int var)
{
	bool tells = v->op == SUB_COND && v->var[v->axis] == var;
	for (int a = 0; a < v->args; a++)
		tells |= w->axis[v->arg[a].value.i] == SAME_FOR_ALL && sub_use_has(&v->arg[a], var);
	return tells;
}

/* The position of the variable of instances in a value; SAME_FOR_ALL, or REFUSED if it mixes instances. */
static int find_axis(const struct unstacking *w, const struct sub_value *v)
{
	int var = SAME_FOR_ALL;
	if (v->op == SUB_VECTOR)
		return AXIS;
	for (int a = 0; a < v->args; a++) {
		int axis = w->axis[v->arg[a].value.i];
		int own = axis >= 0 ? name_instances(w, v, a) : axis == REFUSED ? REFUSED : var;
		if (own == REFUSED || (var >= 0 && own != var))
			return REFUSED;
		var = own;
	}
	if (var < 0)
		return SAME_FOR_ALL;
	return sub_class_of(v->op) == SUB_GATHERING || tells_instances_apart(w, v, var) ? REFUSED : find_position(v, var);
}

/* Whether a body stores results, each instance at its own place; a body at binding knows no instances. */
static bool stores_instances(const struct unstacking *w, const struct sub_body *b)
{
	bool stores = b->domain == SUB_EVERY_NODE || b->domain == SUB_EVERY_INPUT;
	for (size_t i = 0; stores && i < b->stores.n; i++)
		stores = b->stores.at[i].to == SUB_TO_OUTPUT && w->axis[b->stores.at[i].value.value.i] == AXIS;
	return stores || b->domain == SUB_AT_BINDING;
}

static bool are_independent(struct unstacking *w)
{
	bool independent = true;
	for (uint32_t i = 1; i < w->from->values.n; i++)
		w->axis[i] = find_axis(w, &w->from->values.at[i]);
	for (size_t b = 0; b < w->from->bodies.n; b++)
		independent &= stores_instances(w, &w->from->bodies.at[b]);
	return independent;
}

/* --- whether it pays --- */

/* Whether results take so many products with weights for each element that is given: rows then share what is read of weights, and
 * an instance is enough for the vectors of a loop. */
static bool is_profitable(const struct sub_program *p)
{
	const double *work = move_count_products(p->arena, p);
	double given = 0, products = 0;
	for (size_t i = 0; i < p->inputs.n; i++) {
		double elements = 1;
		for (int d = 0; d < p->inputs.at[i].row.rank; d++)
			elements *= (double)p->inputs.at[i].row.shape[d];
		given += elements;
	}
	for (size_t b = 0; b < p->bodies.n; b++)
		for (size_t i = 0; p->bodies.at[b].domain != SUB_AT_BINDING && i < p->bodies.at[b].stores.n; i++)
			products += work[p->bodies.at[b].stores.at[i].value.value.i];
	return products >= MOVE_LEAST_WORK * given;
}

/* --- the program of one instance --- */

/* A use of the new value, whose variables may stand in another order, with the names that a use of the old one has. */
static struct sub_use convert_use(const struct unstacking *w, const struct sub_use *u)
{
	const struct sub_value *old = sub_at(w->from, u->value);
	struct sub_use use = sub_as_is(w->to, w->now[u->value.i]);
	int axis = w->axis[u->value.i];
	for (int i = 0; i < use.vars; i++)
		use.var[i] = u->var[w->moved_only[u->value.i] ? i + (i >= axis) : find_position(old, use.var[i])];
	return use;
}

/* Drops one of n elements of a list. */
static void drop_var(int *var, int *n, int at)
{
	memmove(&var[at], &var[at + 1], (size_t)(--*n - at) * sizeof *var);
}

/* Drops the map of the dimension of instances, and sets the others to the order of the new argument's variables. */
static void convert_maps(const struct unstacking *w, const struct sub_value *v, struct sub_map *map)
{
	const struct sub_use named = sub_as_is(w->from, v->arg[0].value), now = convert_use(w, &named);
	for (int i = 0; i < now.vars; i++)
		map[i] = v->map[find_position(sub_at(w->from, v->arg[0].value), now.var[i])];
}

/* Whether a value that moves rows of instances leaves all elements of an instance where they are. */
static bool moves_nothing(const struct unstacking *w, const struct sub_value *v, int axis)
{
	const struct sub_value *from = sub_at(w->to, v->arg[0].value);
	bool nothing = v->op == SUB_ASSIGN && axis >= 0 && from->vars == v->vars;
	for (int i = 0; nothing && i < v->vars; i++)
		nothing = sub_is_identity(&v->map[i]) && v->map[i].var == v->var[i] &&
			  sub_same_range(w->to, v->var[i], from->var[i]);
	return nothing;
}

static sub_ref convert_value(struct unstacking *w, uint32_t i)
{
	struct sub_map map[SUB_MAX_VARS] = {{0}};
	struct sub_value v = w->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a] = convert_use(w, &w->from->values.at[i].arg[a]);
	if (v.op == SUB_ASSIGN) {
		convert_maps(w, &w->from->values.at[i], map);
		v.map = map;
	}
	if (w->axis[i] >= 0) {
		v.axis -= v.op == SUB_COND && v.axis > w->axis[i];
		drop_var(v.var, &v.vars, w->axis[i]);
	}
	w->moved_only[i] = moves_nothing(w, &v, w->axis[i]);
	return w->moved_only[i] ? v.arg[0].value : sub_add(w->to, v, NULL);
}

static void drop_instances(struct sub_tensor *t)
{
	int rank = t->rank;
	drop_var(t->var, &t->rank, 0);
	memmove(t->shape, t->shape + 1, (size_t)(rank - 1) * sizeof *t->shape);
}

static void declare_instance(struct unstacking *w)
{
	sub_copy_declarations(w->to, w->from);
	w->to->stacked = w->instances;
	for (size_t i = 0; i < w->to->inputs.n; i++)
		drop_instances(&w->to->inputs.at[i].row);
	for (size_t i = 0; i < w->to->outputs.n; i++)
		drop_instances(&w->to->outputs.at[i].row);
}

/* Converts the values that bodies need; false if the variables of one have no order without that of instances. */
static bool convert_values(struct unstacking *w)
{
	bool *live = ARENA_ARRAY(w->to->arena, bool, w->from->values.n), ok = true;
	for (size_t b = 0; b < w->from->bodies.n; b++)
		sub_mark_live(w->from, &w->from->bodies.at[b], live);
	for (uint32_t i = 1; ok && i < w->from->values.n; i++)
		if (live[i])
			ok = (w->now[i] = convert_value(w, i)).i;
	return ok;
}

static struct sub_body convert_body(const struct unstacking *w, const struct sub_body *b)
{
	struct sub_body body = sub_body_like(b);
	for (size_t i = 0; i < b->stores.n; i++) {
		struct sub_store s = b->stores.at[i];
		s.value = convert_use(w, &s.value);
		vec_push(w->to->arena, &body.stores, s);
	}
	return body;
}

/* False where a store does not have the dimensions of its target in their order. */
static bool make_rows_of_instances(struct unstacking *w)
{
	sub_clear(w->to);
	declare_instance(w);
	if (!convert_values(w))
		return false;
	for (size_t b = 0; b < w->from->bodies.n; b++)
		vec_push(w->to->arena, &w->to->bodies, convert_body(w, &w->from->bodies.at[b]));
	return true;
}

void move_unstack(struct sub_program *to, const struct sub_program *from, enum move_extent how,
		  const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct unstacking w = {.from = from, .to = to, .instances = count_instances(from)};
	(void)options;
	(void)trace;
	w.axis = ARENA_ARRAY(to->arena, int, from->values.n);
	w.now = ARENA_ARRAY(to->arena, sub_ref, from->values.n);
	w.moved_only = ARENA_ARRAY(to->arena, bool, from->values.n);
	bool wanted = how != MOVE_OFF && w.instances > 1 && are_independent(&w) && (how == MOVE_ALL || is_profitable(from));
	if (!wanted || !make_rows_of_instances(&w))
		move_keep_program(to, from);
}

bool move_is_unstacked(const struct sub_program *p)
{
	return p->stacked > 1;
}
