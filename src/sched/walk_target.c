/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Walks from a target down through its operands, with the loops that the index of each dimension depends
 * on. */
#include "sched/plan.h"

#include <math.h>

static uint64_t mix_ids(uint64_t a, uint64_t b)
{
	uint64_t both[] = {a, b};
	return hash_bytes(HASH_START, both, sizeof both);
}

static const struct sched_values *values_of(const struct sched_walk *w)
{
	return &w->plan->values[w->body];
}

static bool is_stored(const struct sched_walk *w, sub_ref r)
{
	return sched_is_stored(w->plan, w->body, r);
}

bool sched_is_inside(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	const struct sub_value *v = sub_at(w->p, r), *t = sub_at(w->p, w->target);
	if (v->vars != t->vars)
		return false;
	for (int i = 0; i < v->vars; i++)
		if (index[i].id != (uint64_t)i + 1 ||
		    sub_loop_extent(w->p, v->var[i]) != sub_loop_extent(w->p, t->var[i]))
			return false;
	return true;
}

/* The iterations of the loops in a mask. */
static double count_iterations(const struct sched_walk *w, uint64_t loops)
{
	double n = 1;
	for (int l = 0; l < w->loops; l++)
		if (loops >> l & 1 && w->extent[l])
			n *= w->extent[l];
	return n;
}

/* Adds to a mask of loops all others that an index has in common with them, and so on. */
static uint64_t add_common_loops(const struct sched_index *index, int n, uint64_t loops)
{
	for (uint64_t before = 0; before != loops;) {
		before = loops;
		for (int i = 0; i < n; i++)
			loops |= index[i].loops & loops ? index[i].loops : 0;
	}
	return loops;
}

/* How many iterations of these loops come to an element, on average: at least one. */
static double count_visits(const struct sched_walk *w, const struct sched_index *index, int n, uint64_t loops)
{
	double elements = 1;
	for (int i = 0; i < n; i++)
		elements *= index[i].loops & loops ? index[i].span : 1;
	return elements ? fmax(1, count_iterations(w, loops) / elements) : 1;
}

double sched_times_computed(const struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	int vars = sub_at(w->p, r)->vars;
	uint64_t used = 0;
	double n = 1;
	for (int i = 0; i < vars; i++)
		if (index[i].loops & ~used) {
			uint64_t loops = add_common_loops(index, vars, index[i].loops);
			n *= count_visits(w, index, vars, loops);
			used |= loops;
		}
	return n * count_iterations(w, ~used);
}

static void walk_value(struct sched_walk *, sub_ref, const struct sched_index *);

static void note_read(struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	struct sched_read read = {r, sched_is_inside(w, r, index)};
	vec_push(w->arena, &w->reads, read);
}

/* Variables of a use alone, with their indices. */
struct own_indices {
	struct sub_vars vars;
	struct sched_index index[SUB_MAX_VARS];
};

/* Finds the index of each dimension of an argument from the names of its variables. */
static void find_use_index(const struct sub_value *v, const struct sched_index *index,
			   const struct sub_use *u, const struct own_indices *own, struct sched_index *out)
{
	for (int i = 0; i < u->vars; i++) {
		int at = own ? sub_position_in(&own->vars, u->var[i]) : -1;
		out[i] = at >= 0 ? own->index[at] : (struct sched_index){0};
		for (int j = 0; at < 0 && j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = index[j];
	}
}

static void walk_arguments(struct sched_walk *w, const struct sub_value *v, const struct sched_index *index)
{
	for (int a = 0; a < v->args; a++) {
		struct sched_index out[SUB_MAX_VARS] = {{0}};
		find_use_index(v, index, &v->arg[a], NULL, out);
		walk_value(w, v->arg[a].value, out);
	}
}

/* A mask with the loop over the last dimension of the current target; 0 if it has none. */
static uint64_t columns_loop(const struct sched_walk *w)
{
	int vars = sub_at(w->p, w->target)->vars;
	return vars > sub_leading_dims(w->p, w->target) ? 1ull << (vars - 1) : 0;
}

/* Identifies an operand of a product, and says whether it depends on the target's columns. */
static uint64_t identify_operand(const struct sched_walk *w, const struct sub_value *v, const struct sched_index *index,
				 const struct own_indices *own, int a, bool *columns)
{
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	uint64_t used = 0, id = v->arg[a].value.i;
	find_use_index(v, index, &v->arg[a], own, out);
	for (int i = 0; i < v->arg[a].vars; i++) {
		used |= out[i].loops;
		id = mix_ids(id, out[i].id);
	}
	*columns = used & columns_loop(w);
	return id;
}

/* Sets the operands of a product that other reductions of the group may share: the one that does not depend on the
 * target's columns, and in products for matrix registers the other one; 0 = none. */
static void set_shared_operands(const struct sched_walk *w, const struct sub_value *v, const struct sched_index *index,
				const struct own_indices *own, struct sched_reduction *r)
{
	for (int a = 1; a < v->args; a++) {
		bool columns, others;
		uint64_t id = identify_operand(w, v, index, own, a, &columns);
		if (columns)
			continue;
		r->shared = id;
		r->columns = sub_fits_matrices(v->op) ? identify_operand(w, v, index, own, 3 - a, &others) : 0;
		return;
	}
}

/* What an operand of a reduction depends on: a mask of the dimensions of a row, and SCHED_ROW if it differs
 * from row to row, or from edge to edge. */
static unsigned dims_of_operand(const struct sched_walk *w, const struct sub_value *v,
				const struct sched_index *index, const struct own_indices *reduced, int a)
{
	int vars = sub_at(w->p, w->target)->vars, leading = sub_leading_dims(w->p, w->target);
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	uint64_t used = 0;
	find_use_index(v, index, &v->arg[a], reduced, out);
	for (int i = 0; i < v->arg[a].vars; i++)
		used |= out[i].loops;
	unsigned dims = (unsigned)(used >> leading) & ((1u << (vars - leading)) - 1);
	return dims | (used & w->leading ? SCHED_ROW : 0);
}

/* Walks the operands that are read once for each reduced element; the value that a chain continues is read
 * once. */
static void walk_reduced(struct sched_walk *w, const struct sub_value *v, const struct sched_index *index,
			 const struct own_indices *own)
{
	for (int a = v->args > 1; a < v->args; a++) {
		struct sched_index out[SUB_MAX_VARS] = {{0}};
		find_use_index(v, index, &v->arg[a], own, out);
		walk_value(w, v->arg[a].value, out);
	}
}

/* Opens the loops of a reduction, and returns its indices. */
static struct own_indices open_reduced(struct sched_walk *w, const struct sub_value *v)
{
	struct own_indices own = {.vars = v->reduced};
	for (int i = 0; i < v->reduced.n; i++, w->loops++) {
		int var = v->reduced.var[i];
		int64_t extent = sub_is_ragged(w->p, var) ? 0 : w->p->vars.at[var].extent;
		own.index[i] = (struct sched_index){1ull << w->loops, 1ull << w->loops, mix_ids(w->loops, extent), (double)extent};
		w->extent[w->loops] = sub_loop_extent(w->p, var);
	}
	return own;
}

/* The index of a variable of the value. */
static struct sched_index index_of(const struct sub_value *v, const struct sched_index *index, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return index[i];
	return (struct sched_index){0};
}

/* The place of the loops of an index among those of a reduction; -1 = it is not that of one of them alone. */
static int find_reduced(const struct own_indices *reduced, struct sched_index at)
{
	for (int i = 0; i < reduced->vars.n; i++)
		if (reduced->index[i].loops == at.loops)
			return i;
	return -1;
}

/* Notes that an index is `step` times that of an element plus `scale` times that of a reduction. */
static void note_window(const struct sched_walk *w, struct sched_reduction *r,
			const struct own_indices *reduced, struct sched_index element, int64_t step,
			struct sched_index window, int64_t scale)
{
	int leading = sub_leading_dims(w->p, w->target), dims = sub_at(w->p, w->target)->vars - leading;
	int at = find_reduced(reduced, window);
	if (at < 0 || !step || !scale || step % scale || step / scale < 0)
		return;
	int64_t shift = step / scale;
	if (shift >= w->p->vars.at[reduced->vars.var[at]].extent)
		return;
	for (int i = at + 1; i < reduced->vars.n; i++)
		shift *= w->p->vars.at[reduced->vars.var[i]].extent;
	for (int d = 0; d < dims; d++)
		if (element.loops == 1ull << (leading + d))
			r->shift[d] = shift;
}

/* Notes through which windows a reduction reads an operand. */
static void note_windows(const struct sched_walk *w, struct sched_reduction *r,
			 const struct sched_index *index, const struct own_indices *reduced, int a)
{
	const struct sub_value *v = sub_at(w->p, r->value), *read = sub_at(w->p, v->arg[a].value);
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	find_use_index(v, index, &v->arg[a], reduced, out);
	for (int i = 0; read->op == SUB_ASSIGN && i < read->arg[0].vars; i++) {
		const struct sub_map *m = &read->map[i];
		if (m->function != SUB_AFFINE || !m->scale2)
			continue;
		struct sched_index first = index_of(read, out, m->var), second = index_of(read, out, m->var2);
		note_window(w, r, reduced, first, m->scale, second, m->scale2);
		note_window(w, r, reduced, second, m->scale2, first, m->scale);
	}
}

/* The span of the index that a map computes. */
static double span_of_map(const struct sub_value *v, const struct sched_index *index, const struct sub_map *m)
{
	double first = m->var < 0 ? 1 : index_of(v, index, m->var).span;
	double second = m->scale2 ? index_of(v, index, m->var2).span : 1;
	bool known = (m->function == SUB_AFFINE || m->function == SUB_DIGIT) && first && second;
	double span = fabs((double)m->scale) * (first - 1) + fabs((double)m->scale2) * (second - 1) + 1;
	if (known && m->function == SUB_DIGIT)
		span = fmin((double)m->modulus, floor((span - 1) / (double)m->divisor) + 1);
	return known ? span : 0;
}

static struct sched_index index_of_map(const struct sub_value *v, const struct sched_index *index,
				       const struct sub_map *m)
{
	struct sched_index at = index_of(v, index, m->var);
	if (m->function == SUB_AFFINE && m->scale == 1 && !m->offset && !m->scale2)
		return at;
	at.span = span_of_map(v, index, m);
	at.id = mix_ids(mix_ids(at.id, m->function), mix_ids(m->which, mix_ids(m->scale, m->offset)));
	if (m->function == SUB_DIGIT)
		at.id = mix_ids(at.id, mix_ids(m->divisor, m->modulus));
	at.next = m->function == SUB_AFFINE && m->scale == 1 ? at.next : 0;
	if (m->scale2) {
		struct sched_index second = index_of(v, index, m->var2);
		uint64_t both = at.loops & second.loops;
		at.next |= m->function == SUB_AFFINE && m->scale2 == 1 ? second.next : 0;
		at.next &= ~both;
		at.loops |= second.loops;
		at.id = mix_ids(at.id, mix_ids(second.id, m->scale2));
	}
	return at;
}

/* The elements by which neighbours along the innermost dimension of what an operand reads are apart; 0 where the first
 * reduced variable runs along it. */
static int64_t step_of_operand(const struct sched_walk *w, const struct sub_value *v, const struct sched_index *index,
			       const struct own_indices *reduced, int a)
{
	const struct sub_value *read = sub_at(w->p, v->arg[a].value);
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	if (!read->vars)
		return 0;
	find_use_index(v, index, &v->arg[a], reduced, out);
	if (read->op != SUB_ASSIGN || !read->arg[0].vars)
		return !(out[read->vars - 1].loops & reduced->index[0].loops);
	const struct sub_map *m = &read->map[read->arg[0].vars - 1];
	if (index_of_map(read, out, m).loops & reduced->index[0].loops)
		return 0;
	return m->function == SUB_AFFINE && m->scale > 0 ? m->scale : 1;
}

static void walk_reduction(struct sched_walk *w, sub_ref r, const struct sched_index *index,
			   uint64_t instance)
{
	const struct sub_value *v = sub_at(w->p, r);
	bool edge = sub_reduces_ragged(w->p, v);
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	if (v->args > 1) {
		find_use_index(v, index, &v->arg[0], NULL, out);
		walk_value(w, v->arg[0].value, out);
	}
	struct own_indices own = open_reduced(w, v);
	w->reducing += !edge;
	if (edge)
		w->leading |= 1ull << (w->loops - 1);
	walk_reduced(w, v, index, &own);
	w->reducing -= !edge;
	w->loops -= v->reduced.n;
	w->leading &= (1ull << w->loops) - 1;
	if (!edge) {
		struct sched_reduction found = {.value = r, .instance = instance};
		set_shared_operands(w, v, index, &own, &found);
		int first = v->args > 1;
		for (int a = first; a < v->args && a <= 2; a++) {
			found.operand[a - first] = dims_of_operand(w, v, index, &own, a);
			note_windows(w, &found, index, &own, a);
			found.step[a - first] = step_of_operand(w, v, index, &own, a);
		}
		vec_push(w->arena, &w->reductions, found);
	}
}

static void walk_chosen(struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	if (w->reducing && w->visit_choice)
		w->visit_choice(w, r);
	walk_value(w, r, index);
}

static void walk_assign(struct sched_walk *w, const struct sub_value *v, const struct sched_index *index)
{
	struct sched_index out[SUB_MAX_VARS] = {{0}};
	bool leaves = false;
	for (int i = 0; i < v->arg[0].vars; i++) {
		out[i] = index_of_map(v, index, &v->map[i]);
		leaves |= sub_map_leaves(w->p, v, i);
	}
	(leaves ? walk_chosen : walk_value)(w, v->arg[0].value, out);
}

/* The operands of a concatenation are read at shifted positions along its axis. */
static void walk_cond(struct sched_walk *w, const struct sub_value *v, const struct sched_index *index)
{
	for (int a = 0; a < 2; a++) {
		struct sched_index out[SUB_MAX_VARS] = {{0}};
		struct own_indices own = {sub_one_var(sub_joined_var(v, a)), {index[v->axis]}};
		own.index[0].id = mix_ids(own.index[0].id, a + 1);
		find_use_index(v, index, &v->arg[a], &own, out);
		walk_chosen(w, v->arg[a].value, out);
	}
}

/* What is gathered is read at an index that moves with all loops of the index. */
static void walk_gather(struct sched_walk *w, const struct sub_value *v, const struct sched_index *index)
{
	struct sched_index by[SUB_MAX_VARS] = {{0}}, out[SUB_MAX_VARS] = {{0}};
	struct own_indices own = {.vars = v->reduced};
	find_use_index(v, index, &v->arg[1], NULL, by);
	own.index[0].id = mix_ids(v->arg[1].value.i, v->op); /* its span is not known */
	for (int i = 0; i < v->arg[1].vars; i++) {
		own.index[0].loops |= by[i].loops;
		own.index[0].id = mix_ids(own.index[0].id, by[i].id);
	}
	walk_value(w, v->arg[1].value, by);
	find_use_index(v, index, &v->arg[0], &own, out);
	walk_value(w, v->arg[0].value, out);
}

static void walk_into(struct sched_walk *w, sub_ref r, const struct sched_index *index, uint64_t instance)
{
	const struct sub_value *v = sub_at(w->p, r);
	if (sub_reduces(v->op))
		walk_reduction(w, r, index, instance);
	else if (v->op == SUB_ASSIGN)
		walk_assign(w, v, index);
	else if (v->op == SUB_COND)
		walk_cond(w, v, index);
	else if (v->op == SUB_GATHER)
		walk_gather(w, v, index);
	else
		walk_arguments(w, v, index);
}

static void count_instance(struct sched_walk *w, sub_ref r)
{
	if (w->counted_in[r.i] != w->number)
		w->instances[r.i] = 0;
	w->counted_in[r.i] = w->number;
	w->instances[r.i]++;
}

static void walk_value(struct sched_walk *w, sub_ref r, const struct sched_index *index)
{
	const struct sub_value *v = sub_at(w->p, r);
	uint64_t instance = r.i;
	if (sub_class_of(v->op) == SUB_SOURCE)
		return;
	for (int i = 0; i < v->vars; i++)
		instance = mix_ids(instance, index[i].id);
	if (!map_add(&w->visited, (const char *)&instance, sizeof instance, 1))
		return;
	count_instance(w, r);
	if (r.i != w->target.i && w->visit && !is_stored(w, r) && !sched_fact(values_of(w), r)->chain_end.i)
		w->visit(w, r, index);
	if (r.i != w->target.i && is_stored(w, r))
		note_read(w, r, index);
	else if (w->loops < SCHED_MAX_LOOPS + 8)
		walk_into(w, r, index, instance);
}

void sched_walk_init(struct sched_walk *w, struct arena *a, const struct sched_plan *plan)
{
	*w = (struct sched_walk){.plan = plan, .p = plan->p, .arena = a};
	w->instances = ARENA_ARRAY(a, int, w->p->values.n);
	w->counted_in = ARENA_ARRAY(a, int, w->p->values.n);
}

void sched_walk_target(struct sched_walk *w, int body, sub_ref target)
{
	const struct sub_value *v = sub_at(w->p, target);
	struct sched_index index[SUB_MAX_VARS] = {{0}};
	w->body = body;
	w->target = target;
	w->number++;
	w->reducing = 0;
	memset(&w->reads, 0, sizeof w->reads); /* the caller owns those of the last walk */
	memset(&w->reductions, 0, sizeof w->reductions);
	w->visited = map_in(w->arena);
	w->leading = (1ull << sub_leading_dims(w->p, target)) - 1;
	for (w->loops = 0; w->loops < v->vars; w->loops++) {
		int var = v->var[w->loops];
		w->extent[w->loops] = sub_loop_extent(w->p, var);
		index[w->loops] = (struct sched_index){1ull << w->loops, 1ull << w->loops, w->loops + 1,
						       sub_is_ragged(w->p, var) ? 0 : w->extent[w->loops]};
	}
	walk_value(w, target, index);
}
