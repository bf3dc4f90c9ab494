/* What depends on a child's state alone belongs to the child: the recursion's back edge moves.
 *
 *     inner                                          leaf, inner
 *       %1[n,e,k] = assign h[child(e),k]               ...
 *       %2[n,e,j,k] = multiply U[j,k], %1[n,e,k]       %8[n,j,k] = multiply U[j,k], %7[n,k]
 *       %3[n,e,j] = sum_k %2[n,e,j,k]         ->       %9[n,j] = sum_k %8[n,j,k]
 *       ... %3[n,e,j] ...                              store h[n,j] = %7[n,j]
 *                                                      store refactor0[n,j] = %9[n,j]
 *                                                    inner
 *                                                      ... refactor0[child(e),j] ...
 *
 * The parent multiplies by weights edge by edge, level by level, a child once for each of its parents.  At
 * the child it is one product of rows, for leaves one over all of them; and where the states of leaves are
 * looked up, so is it: in a table that is made at binding.  What the child keeps for its parents is a state
 * that nobody else sees.
 *
 * As in hoist.c no bit changes: of a sum its chains leave with the parameter that they go on from, all or
 * none, and what is part of another value's arithmetic must be so in the new bodies as it was in the old. */
#include "sched/plan.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_SLOTS = 31 }; /* of which something leaves */

/* What of a node a value depends on: nothing; one child alone, that of an edge or in a slot; or more. */
enum { NOTHING, OF_EDGE, OF_SLOT, MORE = -1 };

/* A value of the inner body, as it is for a child; `at` is the sum that it is part of, or itself. */
struct leaver {
	sub_ref value, at;
	int reach, derived;
};

/* A state that is computed of other states. */
struct derived {
	sub_ref key;   /* the value, of these states; the same for all children */
	sub_ref value; /* one of those that it is for parents */
	int which;
	unsigned slots;
};

struct refactoring {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values in the same places, then others */
	enum sched_moving how;
	const struct sub_options *options;
	const struct sub_body *leaf, *inner;
	struct sched_values values; /* of the inner body */
	int *reach;
	const double *work;
	bool *seen, *barred;
	int *leaver_of; /* by value: number + 1 */
	VEC(struct leaver) leavers;
	VEC(struct sched_terms) sums; /* of which something leaves */
	VEC(struct derived) derived;
	VEC(struct sub_body) tables; /* at binding */
	bool changed;		     /* arithmetic: all stays */
};

static const struct sub_value *value_of(const struct refactoring *f, sub_ref r)
{
	return sub_at(f->to, r);
}

/* --- what depends on one child --- */

static const struct sub_store *find_store(const struct sub_body *b, int state)
{
	for (size_t i = 0; i < b->stores.n; i++)
		if (b->stores.at[i].to == SUB_TO_STATE && b->stores.at[i].which == state)
			return &b->stores.at[i];
	return NULL;
}

/* Each node has a value of its own for it. */
static bool is_kept(const struct refactoring *f, const struct sub_body *b, int state)
{
	const struct sub_store *s = find_store(b, state);
	const struct sub_value *v = s ? sub_at(f->from, s->value.value) : NULL;
	return v && v->vars == f->from->states.at[state].rank + 1 && v->var[0] == f->from->node;
}

static bool is_child(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && sub_at(p, v->arg[0].value)->op == SUB_STATE;
}

static int reach_of_child(const struct refactoring *f, const struct sub_value *v)
{
	int state = sub_at(f->from, v->arg[0].value)->which;
	if (!is_kept(f, f->leaf, state) || !is_kept(f, f->inner, state))
		return MORE;
	const struct sub_map *m = &v->map[0];
	return m->function == SUB_EDGE_CHILD			   ? OF_EDGE
	       : m->function == SUB_CHILD && m->which < MOST_SLOTS ? OF_SLOT + m->which
								   : MORE;
}

/* A row of the value is made of the same row of its argument. */
static bool keeps_rows(const struct refactoring *f, const struct sub_value *v)
{
	int leads = sched_leads(f->from, v->arg[0].value);
	for (int i = 0; v->op == SUB_ASSIGN && i < leads; i++)
		if (v->map[i].function != SUB_AFFINE || v->map[i].var != v->var[i])
			return false;
	return true;
}

static int reach_of(const struct refactoring *f, sub_ref r)
{
	const struct sub_value *v = sub_at(f->from, r);
	int leads = sched_leads(f->from, r), reach = leads ? MORE : NOTHING;
	if (is_child(f->from, v))
		return reach_of_child(f, v);
	for (int a = 0, first = 1; a < v->args; a++) {
		int of = f->reach[v->arg[a].value.i];
		if (of == NOTHING)
			continue;
		reach = first || of == reach ? of : MORE;
		first = 0;
	}
	bool same = reach == OF_EDGE ? leads == 2 : reach == NOTHING ? !leads : leads == 1;
	return same && keeps_rows(f, v) ? reach : MORE;
}

static void find_reach(struct refactoring *f)
{
	f->reach = ARENA_ARRAY(f->arena, int, f->from->values.n);
	for (uint32_t i = 1; i < f->from->values.n; i++)
		f->reach[i] = reach_of(f, (sub_ref){i});
}

/* --- who leaves --- */

/* Slot by slot it pays where all children have it, and then to say it once. */
static bool pays(const struct refactoring *f, double work, sub_ref r, int reach)
{
	if (f->how == SCHED_MOVE_ALL)
		return work > 0;
	return work > 0 && work >= SCHED_LEAST_WORK * sched_row_elements(f->from, sub_at(f->from, r)) &&
	       !f->barred[r.i] && (reach == OF_EDGE || f->from->children > 1);
}

static int add_leaver(struct refactoring *f, sub_ref value, sub_ref at, int reach)
{
	vec_push(f->arena, &f->leavers, (struct leaver){.value = value, .at = at, .reach = reach});
	return f->leavers.n;
}

static bool fits(const struct refactoring *f, sub_ref r)
{
	return sub_at(f->from, r)->vars - sched_leads(f->from, r) <= TENSOR_MAX_RANK;
}

static bool stands_alone(const struct refactoring *f, sub_ref r)
{
	const struct sched_fact *fact = sched_fact(&f->values, r);
	return sub_class_of(value_of(f, r)->op) != SUB_MOVE && !fact->part_of.i && !fact->product &&
	       fits(f, r);
}

/* A value of one child is wanted by one of more: it leaves, or what it is computed from. */
static void leave(struct refactoring *f, sub_ref r)
{
	if (f->seen[r.i] || f->reach[r.i] <= NOTHING)
		return;
	f->seen[r.i] = true;
	if (stands_alone(f, r) && pays(f, f->work[r.i], r, f->reach[r.i])) {
		f->leaver_of[r.i] = add_leaver(f, r, r, f->reach[r.i]);
		return;
	}
	for (int a = 0; a < value_of(f, r)->args; a++)
		leave(f, value_of(f, r)->arg[a].value);
}

static bool is_sum(const struct refactoring *f, sub_ref r)
{
	return value_of(f, r)->op == SUB_ADD && !sched_fact(&f->values, r)->part_of.i;
}

/* Marks the chains of a sum and the parameter that they go on from; returns of which child all of them are,
 * else MORE. */
static int mark_chains(const struct refactoring *f, struct sched_terms *t, double *work)
{
	int reach = NOTHING;
	size_t start = 0;
	for (size_t i = 0; i < t->all.n; i++) {
		sub_ref r = t->all.at[i].value;
		t->ahead[i] = value_of(f, r)->op == SUB_SUM && sched_fact(&f->values, r)->part_of.i;
		if (t->ahead[i]) {
			reach = reach == NOTHING || reach == f->reach[r.i] ? f->reach[r.i] : MORE;
			*work += f->work[r.i];
		}
	}
	while (start < t->all.n && value_of(f, t->all.at[start].value)->op != SUB_PARAM)
		start++;
	if (reach != NOTHING && start < t->all.n)
		t->ahead[start] = true;
	return reach == NOTHING ? MORE : reach;
}

static void leave_sum(struct refactoring *f, sub_ref sum)
{
	struct sched_terms t = sched_terms_of(f->arena, f->from, &f->values, sum);
	double work = 0;
	int reach = mark_chains(f, &t, &work);
	if (reach > NOTHING && pays(f, work, sum, reach) && fits(f, sum)) {
		t.leaver = sched_first_part(f->to, &t, false);
		f->changed |= t.leaver.i < f->from->values.n && f->leaver_of[t.leaver.i];
		add_leaver(f, t.leaver, sum, reach);
		vec_push(f->arena, &f->sums, t);
	}
	for (size_t i = 0; i < t.all.n; i++)
		if (!t.leaver.i || !t.ahead[i])
			leave(f, t.all.at[i].value);
}

/* Terms of sums are looked at with their sum. */
static void leave_arguments(struct refactoring *f, const struct sub_value *v)
{
	for (int a = 0; a < v->args; a++)
		if (!sched_fact(&f->values, v->arg[a].value)->part_of.i)
			leave(f, v->arg[a].value);
}

static void find_leavers(struct refactoring *f)
{
	size_t n = f->from->values.n;
	f->seen = ARENA_ARRAY(f->arena, bool, n);
	f->leaver_of = ARENA_ARRAY(f->arena, int, n);
	f->leavers.n = f->sums.n = f->derived.n = 0;
	for (int i = 0; i < f->values.n; i++) {
		sub_ref r = f->values.value[i];
		struct sub_value v = *value_of(f, r);
		if (f->reach[r.i] == MORE && is_sum(f, r))
			leave_sum(f, r);
		else if (f->reach[r.i] == MORE && v.op != SUB_ADD)
			leave_arguments(f, &v);
	}
	for (size_t i = 0; i < f->inner->stores.n; i++)
		leave(f, f->inner->stores.at[i].value.value);
}

/* --- at another place --- */

/* Where a value is computed that was one of a child. */
struct place {
	int lead;	      /* the variable of its rows */
	const sub_ref *state; /* by state: what it is there */
	sub_ref *moved;	      /* by value */
};

static struct place new_place(const struct refactoring *f, int lead)
{
	return (struct place){lead, ARENA_ARRAY(f->arena, sub_ref, f->from->states.n),
			      ARENA_ARRAY(f->arena, sub_ref, f->to->values.n)};
}

/* Variables without the edge, the row under its name at the place. */
static int put_vars(const struct refactoring *f, const struct place *to, int *var, int n)
{
	int kept = 0;
	for (int i = 0; i < n; i++)
		if (var[i] != f->from->edge)
			var[kept++] = var[i] == f->from->node ? to->lead : var[i];
	return kept;
}

/* The same maps of dimensions, behind the row itself. */
static void put_maps(const struct refactoring *f, const struct place *to, struct sub_value *v)
{
	int leads = sched_leads(f->from, v->arg[0].value), dims = v->arg[0].vars - leads;
	struct sub_map maps[SUB_MAX_VARS];
	memcpy(maps, v->map, sizeof maps);
	memset(v->map, 0, sizeof v->map);
	v->map[0] = (struct sub_map){.function = SUB_AFFINE, .var = to->lead, .scale = 1};
	memcpy(&v->map[1], &maps[leads], dims * sizeof *maps);
}

static bool is_whole(const struct sub_program *p, const struct sub_value *v)
{
	int leads = v->vars - (v->arg[0].vars - 1);
	for (int i = 1; i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		int of = sub_at(p, v->arg[0].value)->var[i];
		if (m->function != SUB_AFFINE || leads + i - 1 >= v->vars ||
		    m->var != v->var[leads + i - 1] || m->scale != 1 || m->offset || m->scale2 ||
		    p->vars.at[of].extent != p->vars.at[m->var].extent)
			return false;
	}
	return !v->fills;
}

static sub_ref move_to(struct refactoring *, struct place *, sub_ref);

/* What is read of a child's state is read of what the state is there. */
static sub_ref move_child(struct refactoring *f, const struct place *to, struct sub_value v)
{
	sub_ref state = to->state[sub_at(f->from, v.arg[0].value)->which];
	if (is_whole(f->from, &v))
		return state;
	put_maps(f, to, &v);
	v.vars = put_vars(f, to, v.var, v.vars);
	v.arg[0] = sub_as_is(f->to, state);
	return sub_add(f->to, v, NULL);
}

static sub_ref move_value(struct refactoring *f, struct place *to, struct sub_value v)
{
	bool as_is = v.op == SUB_ASSIGN || v.op == SUB_RESHAPE;
	int vars = v.vars;
	if (v.op == SUB_ASSIGN)
		put_maps(f, to, &v);
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = move_to(f, to, v.arg[a].value);
		v.arg[a].vars = put_vars(f, to, v.arg[a].var, v.arg[a].vars);
		if (as_is)
			v.arg[a] = sub_as_is(f->to, v.arg[a].value);
	}
	v.vars = put_vars(f, to, v.var, v.vars);
	v.axis -= v.op == SUB_COND ? vars - v.vars : 0;
	return sub_add(f->to, v, NULL);
}

static sub_ref move_to(struct refactoring *f, struct place *to, sub_ref r)
{
	struct sub_value v = *value_of(f, r);
	if (!sched_has_lead(f->to, r))
		return r;
	if (!to->moved[r.i].i)
		to->moved[r.i] = is_child(f->to, &v) ? move_child(f, to, v) : move_value(f, to, v);
	return to->moved[r.i];
}

/* What leaves, at a place; its dimensions must stand as they stood. */
static sub_ref move_leaver(struct refactoring *f, struct place *to, sub_ref r)
{
	sub_ref moved = move_to(f, to, r);
	int leads = sched_leads(f->to, r), dims = value_of(f, r)->vars - leads;
	f->changed |=
	    !moved.i || value_of(f, moved)->vars != dims + 1 ||
	    memcmp(&value_of(f, moved)->var[1], &value_of(f, r)->var[leads], dims * sizeof(int)) != 0;
	return moved;
}

/* --- the states --- */

static sub_ref state_value(struct sub_program *p, int which)
{
	const struct sub_tensor *t = &p->states.at[which];
	struct sub_value v = {.op = SUB_STATE, .which = which, .vars = t->rank + 1, .var = {p->node}};
	memcpy(&v.var[1], t->var, t->rank * sizeof *t->var);
	return sub_add(p, v, NULL);
}

static void find_derived(struct refactoring *f, struct place *keys, struct leaver *l)
{
	sub_ref key = move_leaver(f, keys, l->value);
	size_t i = 0;
	while (i < f->derived.n && f->derived.at[i].key.i != key.i)
		i++;
	if (i == f->derived.n)
		vec_push(f->arena, &f->derived, (struct derived){.key = key, .value = l->value});
	f->derived.at[i].slots |= l->reach >= OF_SLOT ? 1u << (l->reach - OF_SLOT) : 0;
	l->derived = i;
}

static void find_all_derived(struct refactoring *f)
{
	struct place keys = new_place(f, f->from->node);
	sub_ref *state = ARENA_ARRAY(f->arena, sub_ref, f->from->states.n);
	for (size_t s = 0; s < f->from->states.n; s++)
		state[s] = state_value(f->to, s);
	keys.state = state;
	for (size_t i = 0; !f->changed && i < f->leavers.n; i++)
		find_derived(f, &keys, &f->leavers.at[i]);
}

/* Bars what not all children have. */
static bool bar(struct refactoring *f)
{
	bool any = false;
	for (size_t i = 0; f->how == SCHED_MOVE_ON && i < f->leavers.n; i++) {
		const struct leaver *l = &f->leavers.at[i];
		unsigned slots = f->derived.at[l->derived].slots;
		if (l->reach == OF_EDGE ||
		    (f->from->children <= MOST_SLOTS && slots == (1u << f->from->children) - 1))
			continue;
		any = f->barred[l->at.i] = true;
	}
	return any;
}

static void declare(struct refactoring *f)
{
	for (size_t i = 0; i < f->derived.n; i++) {
		const struct sub_value *v = value_of(f, f->derived.at[i].key);
		struct str s = str_in(f->arena);
		str_printf(&s, "refactor%zu", i);
		struct sub_tensor t = {.name = s.text, .rank = v->vars - 1, .derived = true};
		for (int d = 0; d < t.rank; d++) {
			t.var[d] = v->var[d + 1];
			t.shape[d] = f->to->vars.at[t.var[d]].extent;
		}
		f->derived.at[i].which = f->to->states.n;
		vec_push(f->arena, &f->to->states, t);
	}
}

/* --- tables --- */

/* Rows of a parameter, by a token. */
static bool is_look_up(const struct sub_program *p, const struct sub_value *v)
{
	return v->op == SUB_ASSIGN && sub_at(p, v->arg[0].value)->op == SUB_PARAM &&
	       v->vars == v->arg[0].vars && v->map[0].function == SUB_TOKEN && is_whole(p, v);
}

struct look_up {
	struct sub_map map; /* of the row; function SUB_AFFINE = there is none */
	int64_t rows;
	bool ok;
};

/* Whether all that a value needs of a leaf is looked up by one token, in rows that are not taken apart. */
static void find_look_up(const struct refactoring *f, sub_ref r, bool *seen, struct look_up *l)
{
	const struct sub_value *v = value_of(f, r);
	if (seen[r.i] || !sched_has_lead(f->to, r))
		return;
	seen[r.i] = true;
	l->ok &= v->op != SUB_COND && v->op != SUB_RESHAPE && !v->fills;
	for (int a = 0; a < v->args && !is_child(f->to, v); a++)
		find_look_up(f, v->arg[a].value, seen, l);
	if (!l->ok || !is_child(f->to, v))
		return;
	int state = value_of(f, v->arg[0].value)->which;
	const struct sub_value *leaf = value_of(f, find_store(f->leaf, state)->value.value);
	const struct sub_value *table = value_of(f, leaf->arg[0].value);
	bool first = l->map.function == SUB_AFFINE;
	l->ok = is_look_up(f->to, leaf) && (first || l->map.which == leaf->map[0].which);
	if (!l->ok)
		return;
	int64_t rows = f->to->vars.at[table->var[0]].extent;
	l->ok = first || l->rows == rows;
	l->map = leaf->map[0];
	l->rows = rows;
}

/* Bytes of tables that are made at binding, and of one more. */
static double table_bytes(const struct refactoring *f, double more)
{
	bool *counted = ARENA_ARRAY(f->arena, bool, f->to->params.n);
	for (size_t b = 0; b < f->from->bodies.n; b++) {
		bool *live = ARENA_ARRAY(f->arena, bool, f->from->values.n);
		sub_mark_live(f->from, &f->from->bodies.at[b], live);
		for (uint32_t i = 1; i < f->from->values.n; i++)
			if (live[i] && is_look_up(f->from, sub_at(f->from, (sub_ref){i})))
				counted[sub_at(f->from, f->from->values.at[i].arg[0].value)->which] = true;
	}
	for (size_t i = 0; i < f->to->params.n; i++) {
		const struct sub_tensor *t = &f->to->params.at[i];
		double bytes = t->folded && (i >= f->from->params.n || counted[i]) ? sizeof(float) : 0;
		for (int d = 0; d < t->rank; d++)
			bytes *= t->shape[d];
		more += bytes;
	}
	return more;
}

/* Declares what a row of a table holds as a parameter. */
static int declare_table(struct refactoring *f, const struct sub_tensor *row, int64_t rows)
{
	struct sub_tensor t = {.rank = row->rank + 1, .folded = true};
	struct str s = str_in(f->arena);
	int number = 0;
	for (size_t i = 0; i < f->to->params.n; i++)
		number += f->to->params.at[i].folded;
	str_printf(&s, "fold%d", number);
	t.name = s.text;
	t.shape[0] = rows;
	memcpy(&t.shape[1], row->shape, row->rank * sizeof *row->shape);
	memcpy(&t.var[1], row->var, row->rank * sizeof *row->var);
	t.var[0] = sub_dim(f->to, rows, 0);
	for (int d = 1, ordinal = 1; d < t.rank; d++)
		if (t.var[d] == t.var[0]) {
			t.var[0] = sub_dim(f->to, rows, ordinal++);
			d = 0;
		}
	vec_push(f->arena, &f->to->params, t);
	return f->to->params.n - 1;
}

/* The states of leaves as tables have them: a value for each row. */
static struct place table_place(struct refactoring *f, int64_t rows)
{
	struct place at = new_place(f, sub_row(f->to, rows));
	sub_ref *state = ARENA_ARRAY(f->arena, sub_ref, f->from->states.n);
	for (size_t s = 0; s < f->from->states.n; s++) {
		const struct sub_store *leaf = find_store(f->leaf, s);
		if (leaf && is_look_up(f->to, value_of(f, leaf->value.value)))
			state[s] = value_of(f, leaf->value.value)->arg[0].value;
	}
	at.state = state;
	return at;
}

static void compare_moved(struct refactoring *, const struct sub_body *, const struct place *);

/* The rows of a table, in a body at binding; returns what a leaf looks up. */
static sub_ref make_table(struct refactoring *f, const struct derived *d, const struct look_up *l)
{
	const struct sub_tensor *row = &f->to->states.at[d->which];
	struct place at = table_place(f, l->rows);
	sub_ref value = move_leaver(f, &at, d->value);
	int param = declare_table(f, row, l->rows);
	const struct sub_tensor *t = &f->to->params.at[param];
	struct sub_body b = {.name = t->name, .domain = SUB_AT_BINDING};
	struct sub_value table = {.op = SUB_PARAM, .which = param, .vars = t->rank};
	struct sub_value read = {.op = SUB_ASSIGN, .args = 1, .vars = t->rank, .var = {f->to->node}};
	memcpy(table.var, t->var, t->rank * sizeof *t->var);
	memcpy(&read.var[1], row->var, row->rank * sizeof *row->var);
	read.map[0] = l->map;
	for (int i = 1; i < t->rank; i++)
		read.map[i] = (struct sub_map){.function = SUB_AFFINE, .var = read.var[i], .scale = 1};
	if (f->changed)
		return value;
	vec_push(f->arena, &b.stores, (struct sub_store){SUB_TO_PARAM, param, sub_as_is(f->to, value)});
	vec_push(f->arena, &f->tables, b);
	compare_moved(f, &b, &at);
	read.arg[0] = sub_as_is(f->to, sub_add(f->to, table, NULL));
	return sub_add(f->to, read, NULL);
}

static bool find_table(const struct refactoring *f, const struct derived *d, struct look_up *l)
{
	const struct sub_tensor *row = &f->to->states.at[d->which];
	double bytes = sizeof(float);
	*l = (struct look_up){.ok =
				  !(f->options->off >> SUB_FAMILY_TABLES & 1) && row->rank < TENSOR_MAX_RANK};
	find_look_up(f, d->value, ARENA_ARRAY(f->arena, bool, f->to->values.n), l);
	for (int i = 0; i < row->rank; i++)
		bytes *= row->shape[i];
	return l->ok && l->map.function == SUB_TOKEN &&
	       table_bytes(f, bytes * l->rows) <= f->options->table_bytes;
}

/* --- the bodies --- */

static sub_ref read_derived(struct refactoring *f, const struct leaver *l, const struct sub_value *like)
{
	sub_ref state = state_value(f->to, f->derived.at[l->derived].which);
	bool edge = l->reach == OF_EDGE;
	struct sub_value read = {.op = SUB_ASSIGN, .args = 1, .vars = like->vars};
	memcpy(read.var, like->var, sizeof read.var);
	read.arg[0] = sub_as_is(f->to, state);
	read.map[0] =
	    (struct sub_map){.function = edge ? SUB_EDGE_CHILD : SUB_CHILD, .var = read.var[edge ? 1 : 0]};
	read.map[0].which = edge ? 0 : l->reach - OF_SLOT;
	for (int i = 1; i < read.arg[0].vars; i++)
		read.map[i] = (struct sub_map){.function = SUB_AFFINE, .var = read.var[i + edge], .scale = 1};
	return sub_add(f->to, read, NULL);
}

static const struct sched_terms *leaving_terms(const struct refactoring *f, sub_ref r)
{
	for (size_t i = 0; i < f->sums.n; i++)
		if (f->sums.at[i].sum.i == r.i)
			return &f->sums.at[i];
	return NULL;
}

static const struct leaver *leaver_at(const struct refactoring *f, sub_ref r)
{
	size_t i = 0;
	while (f->leavers.at[i].at.i != r.i)
		i++;
	return &f->leavers.at[i];
}

static sub_ref copy_value(struct refactoring *f, sub_ref r, const sub_ref *now)
{
	struct sub_value v = *value_of(f, r);
	for (int a = 0; a < v.args; a++) {
		v.arg[a].value = now[v.arg[a].value.i];
		if (v.op == SUB_ASSIGN || v.op == SUB_RESHAPE)
			v.arg[a] = sub_as_is(f->to, v.arg[a].value);
	}
	return sub_add(f->to, v, NULL);
}

static sub_ref rewrite(struct refactoring *f, sub_ref r, const sub_ref *now)
{
	const struct sched_terms *t = leaving_terms(f, r);
	struct sub_value v = *value_of(f, r);
	if (!t && !f->leaver_of[r.i])
		return copy_value(f, r, now);
	sub_ref read = read_derived(f, leaver_at(f, r), &v);
	return t ? sched_rest_of(f->to, t, read, now) : read;
}

static void store_derived(struct refactoring *f, struct sub_body *b, size_t i, sub_ref value)
{
	int which = f->derived.at[i].which;
	vec_push(f->arena, &b->stores, (struct sub_store){SUB_TO_STATE, which, sub_as_is(f->to, value)});
}

/* A place in a body: states are what it stores. */
static struct place place_in(struct refactoring *f, const struct sub_body *b)
{
	struct place at = new_place(f, f->from->node);
	sub_ref *state = ARENA_ARRAY(f->arena, sub_ref, f->from->states.n);
	for (size_t s = 0; s < f->from->states.n; s++)
		if (find_store(b, s))
			state[s] = find_store(b, s)->value.value;
	at.state = state;
	return at;
}

static struct sub_body new_inner(struct refactoring *f, const sub_ref *now)
{
	struct sub_body b = {.name = f->inner->name, .domain = SUB_INNER};
	for (size_t i = 0; i < f->inner->stores.n; i++) {
		struct sub_store s = f->inner->stores.at[i];
		s.value.value = now[s.value.value.i];
		vec_push(f->arena, &b.stores, s);
	}
	return b;
}

static struct sub_body new_leaf(struct refactoring *f)
{
	struct sub_body b = {.name = f->leaf->name, .domain = SUB_LEAF};
	for (size_t i = 0; i < f->leaf->stores.n; i++)
		vec_push(f->arena, &b.stores, f->leaf->stores.at[i]);
	return b;
}

/* --- bits --- */

static bool leaves(const struct refactoring *f, sub_ref r)
{
	for (size_t i = 0; i < f->leavers.n; i++)
		if (f->leavers.at[i].value.i == r.i)
			return true;
	return false;
}

/* Facts of a body that is not part of the program yet. */
static struct sched_values values_of(struct refactoring *f, const struct sub_body *b)
{
	struct sched_values values;
	vec_push(f->arena, &f->to->bodies, *b);
	sched_find_values(&values, f->arena, f->to, --f->to->bodies.n,
			  ARENA_ARRAY(f->arena, bool, f->to->values.n));
	return values;
}

/* What was computed in the inner body, and now is elsewhere; what leaves is a result there. */
static void compare(struct refactoring *f, const struct sched_values *new, const sub_ref *now)
{
	for (int i = 0; i < f->values.n; i++) {
		sub_ref r = f->values.value[i], n = now[r.i];
		if (!n.i || leaves(f, r) || value_of(f, n)->op != value_of(f, r)->op ||
		    sub_class_of(value_of(f, r)->op) == SUB_SOURCE || is_child(f->to, value_of(f, r)))
			continue;
		const struct sched_fact *fact = new->n ? sched_fact(new, n) : NULL;
		if (fact && new->value[fact - new->fact].i == n.i)
			f->changed |= !sched_same_part(sched_fact(&f->values, r), fact);
	}
}

static void compare_moved(struct refactoring *f, const struct sub_body *b, const struct place *at)
{
	struct sched_values new = values_of(f, b);
	compare(f, &new, at->moved);
}

/* What is left of a sum is one sum. */
static void check_sum(struct refactoring *f, const struct sched_values *new, const struct sched_terms *t,
		      sub_ref r)
{
	int left = 0;
	for (size_t i = 0; i < t->all.n; i++)
		left += !t->ahead[i];
	for (r = value_of(f, r)->arg[0].value; left-- > 1; r = value_of(f, r)->arg[0].value)
		f->changed |= !sched_fact(new, r)->part_of.i;
}

static void compare_inner(struct refactoring *f, const struct sub_body *b, const sub_ref *now)
{
	struct sched_values new = values_of(f, b);
	compare(f, &new, now);
	for (size_t i = 0; i < f->sums.n; i++)
		check_sum(f, &new, &f->sums.at[i], now[f->sums.at[i].sum.i]);
}

/* --- the new program --- */

static struct sub_body make_inner(struct refactoring *f)
{
	sub_ref *now = ARENA_ARRAY(f->arena, sub_ref, f->from->values.n);
	for (int i = 0; i < f->values.n; i++)
		now[f->values.value[i].i] = rewrite(f, f->values.value[i], now);
	struct sub_body b = new_inner(f, now);
	struct place at = place_in(f, &b);
	for (size_t i = 0; i < f->derived.n; i++)
		store_derived(f, &b, i, move_leaver(f, &at, f->derived.at[i].value));
	if (!f->changed) {
		compare_inner(f, &b, now);
		compare_moved(f, &b, &at);
	}
	return b;
}

static struct sub_body make_leaf(struct refactoring *f)
{
	struct sub_body b = new_leaf(f);
	struct place at = place_in(f, &b);
	for (size_t i = 0; !f->changed && i < f->derived.n; i++) {
		const struct derived *d = &f->derived.at[i];
		struct look_up l;
		store_derived(f, &b, i,
			      find_table(f, d, &l) ? make_table(f, d, &l) : move_leaver(f, &at, d->value));
	}
	if (!f->changed)
		compare_moved(f, &b, &at);
	return b;
}

/* Bodies at binding, then all others. */
static void add_bodies(struct refactoring *f, const struct sub_body *leaf, const struct sub_body *inner)
{
	size_t i = 0;
	for (; i < f->from->bodies.n && f->from->bodies.at[i].domain == SUB_AT_BINDING; i++)
		vec_push(f->arena, &f->to->bodies, f->from->bodies.at[i]);
	for (size_t k = 0; k < f->tables.n; k++)
		vec_push(f->arena, &f->to->bodies, f->tables.at[k]);
	for (; i < f->from->bodies.n; i++) {
		const struct sub_body *b = &f->from->bodies.at[i];
		vec_push(f->arena, &f->to->bodies, b == f->leaf ? *leaf : b == f->inner ? *inner : *b);
	}
}

/* What leaves is found anew until all children have it. */
static void choose(struct refactoring *f)
{
	do {
		sched_copy_program(f->to, f->from);
		find_leavers(f);
		find_all_derived(f);
	} while (!f->changed && bar(f));
}

static void note_derived(const struct refactoring *f, struct sub_trace *trace)
{
	for (size_t i = 0; trace && i < f->derived.n; i++) {
		const struct sub_tensor *t = &f->to->states.at[f->derived.at[i].which];
		struct str s = str_in(f->arena);
		str_printf(&s, "%s is computed at the node whose parents want it: %.0f bytes each", t->name,
			   sizeof(float) * sched_row_elements(f->to, value_of(f, f->derived.at[i].key)));
		vec_push(f->arena, &trace->notes, s.text);
	}
	for (size_t i = 0; trace && i < f->tables.n; i++) {
		struct str s = str_in(f->arena);
		str_printf(&s, "%s is computed at binding: what leaves keep for their parents",
			   f->tables.at[i].name);
		vec_push(f->arena, &trace->notes, s.text);
	}
}

/* False when all stays. */
static bool refactor(struct refactoring *f)
{
	size_t inner = f->inner - f->from->bodies.at;
	sched_find_values(&f->values, f->arena, f->from, inner,
			  ARENA_ARRAY(f->arena, bool, f->from->values.n));
	f->barred = ARENA_ARRAY(f->arena, bool, f->from->values.n);
	f->work = sched_weigh(f->arena, f->from);
	find_reach(f);
	choose(f);
	if (f->changed || !f->leavers.n)
		return false;
	declare(f);
	struct sub_body new_inner = make_inner(f), new_leaf = make_leaf(f);
	if (!f->changed)
		add_bodies(f, &new_leaf, &new_inner);
	return !f->changed;
}

void sched_refactor(struct sub_program *to, const struct sub_program *from, enum sched_moving how,
		    const struct sub_options *options, struct sub_trace *trace)
{
	struct refactoring f = {.arena = to->arena, .from = from, .to = to, .how = how, .options = options};
	f.leaf = sched_find_body(from, SUB_LEAF);
	f.inner = sched_find_body(from, SUB_INNER);
	if (how != SCHED_MOVE_OFF && f.leaf && f.inner && refactor(&f)) {
		note_derived(&f, trace);
		return;
	}
	sched_copy_program(to, from);
	for (size_t i = 0; i < from->bodies.n; i++)
		vec_push(to->arena, &to->bodies, from->bodies.at[i]);
}

bool sched_is_refactored(const struct sub_program *p)
{
	return p->states.n && p->states.at[p->states.n - 1].derived;
}
