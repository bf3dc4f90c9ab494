/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Padding: the windows of a convolution read a copy of the image with a border.
 *
 *     %1[n,c,i,j,u,v] = assign x[n,c,i+u-1,j+v-1] else 0       %1[n,c,p,q] = assign x[n,c,p-1,q-1] else 0
 *     %2[n,k,i,j] = accumulate_c,u,v 0, W[k,c,u,v], %1    ->   %2[n,c,i,j,u,v] = assign %1[n,c,i+u,j+v]
 *                                                              %3[n,k,i,j] = accumulate_c,u,v 0, W[k,c,u,v], %2
 *
 * Inside of the sum nothing is compared any more, and vectors run along the columns of an image.  The copy is stored
 * (sched/plan.c), and has the elements that some window reads.  So are the windows of a maximum, whose border is least.
 * Where each element is read a few times only, as by a depthwise convolution, there is no copy. */
#include "move/moved_program.h"

#include <math.h>

/* How often each element of a copy is read where it pays, if vectors can read it.  Its border does not
 * count where no vector would read the windows without it. */
enum { LEAST_READS = 2 };

/* Windows that vectors can read are read in place, within the image, where no element of it is read more often. */
enum { MOST_IN_PLACE = 32 };

struct padding {
	struct sub_program *to;
	const struct sub_program *from;
	sub_ref *now;  /* by value: its copy */
	double *reads; /* by value: how often reductions read its elements */
	bool *stored;  /* by value: too expensive to be computed in each window, so that a group stores it */
	enum move_extent how;
};

/* --- which values --- */

/* The first dimension of the argument of an ASSIGN that is no leading one. */
static int first_dim(const struct sub_program *p, const struct sub_value *v)
{
	return sub_leading_dims(p, v->arg[0].value);
}

/* Sets the extents of the copy; whether the value may read outside of what it moves, by maps of dimensions only. */
static bool find_extents(const struct sub_program *p, const struct sub_value *v, int64_t *least, int64_t *extent)
{
	bool leaves = false;
	for (int i = first_dim(p, v); i < v->arg[0].vars; i++) {
		int64_t most, whole = p->vars.at[sub_at(p, v->arg[0].value)->var[i]].extent;
		if (!sub_map_range(p, &v->map[i], &least[i], &most))
			return false;
		bool outside = sub_map_leaves(p, v, i);
		leaves |= outside;
		least[i] = outside ? least[i] : 0;
		extent[i] = outside ? most - least[i] + 1 : whole;
	}
	return leaves;
}

static double count_elements(const int64_t *extent, int from, int to)
{
	double n = 1;
	for (int i = from; i < to; i++)
		n *= (double)extent[i];
	return n;
}

/* The elements of a row of what is moved. */
static double count_moved(const struct sub_program *p, const struct sub_value *v)
{
	const struct sub_value *from = sub_at(p, v->arg[0].value);
	double n = 1;
	for (int i = first_dim(p, v); i < from->vars; i++)
		n *= (double)p->vars.at[from->var[i]].extent;
	return n;
}

/* Whether vectors can read what is moved: in its last dimension, in order, perhaps by a step. */
static bool reads_in_order(const struct sub_value *v)
{
	const struct sub_map *last = &v->map[v->arg[0].vars - 1];
	return last->scale >= 1 && last->scale <= SUB_LONGEST_STEP && (!last->scale2 || last->scale2 == 1);
}

/* Whether what windows read is in memory without a copy: it is given; or it would cost too much to be computed in each window
 * (sched/plan.c), so that a group stores it.  Which dimension is the last in memory is not known then: where windows leave the
 * last one of the value, as in an image, vectors can run along another; where they leave others only, as those of a
 * normalisation over channels, these may be the ones. */
static bool is_in_memory(const struct padding *w, const struct sub_value *v)
{
	sub_ref r = v->arg[0].value;
	bool stored = w->stored[r.i] && sub_map_leaves(w->from, v, v->arg[0].vars - 1);
	return stored || sub_class_of(sub_at(w->from, r)->op) == SUB_SOURCE;
}

/* Whether windows are read in place, within what they read (ilir/peel_borders.c): it is in memory, and none of its elements is
 * read so often that a copy pays. */
static bool is_read_in_place(const struct padding *w, const struct sub_value *v, uint32_t i)
{
	const struct sub_program *p = w->from;
	const struct sub_map *last = &v->map[v->arg[0].vars - 1];
	return is_in_memory(w, v) && reads_in_order(v) && last->scale <= 2 && w->reads[i] <= MOST_IN_PLACE * count_moved(p, v);
}

/* Whether a copy with a border pays for a value: one of a row that reductions read often. */
static bool is_padded(const struct padding *w, uint32_t i)
{
	const struct sub_program *p = w->from;
	const struct sub_value *v = &p->values.at[i];
	int64_t least[SUB_MAX_VARS], extent[SUB_MAX_VARS];
	if (v->op != SUB_ASSIGN || !v->fills || sub_leading_dims(p, (sub_ref){i}) != 1 || first_dim(p, v) != 1 ||
	    !find_extents(p, v, least, extent))
		return false;
	double elements = count_elements(extent, first_dim(p, v), v->arg[0].vars);
	bool ordered = reads_in_order(v);
	if (w->how == MOVE_ON && is_read_in_place(w, v, i))
		return false;
	if (ordered && sub_map_leaves(p, v, v->arg[0].vars - 1))
		elements = fmin(elements, count_moved(p, v));
	int often = ordered ? LEAST_READS : MOVE_LEAST_WORK;
	return w->reads[i] >= (w->how == MOVE_ALL ? 1 : often * elements);
}

static void count_reads(struct padding *w)
{
	const struct sub_program *p = w->from;
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		for (int a = v->args > 1; sub_reduces(v->op) && !sub_reduces_ragged(p, v) && a < v->args; a++)
			w->reads[v->arg[a].value.i] += sub_reduced_elements(p, v);
	}
}

/* Whether a movement leaves all variables of more than one value in their order. */
static bool keeps_order(const struct sub_program *p, const struct sub_value *v)
{
	int last = 0;
	for (int i = 0; i < v->arg[0].vars; i++)
		for (int at = 0; v->map[i].var >= 0 && at < v->vars; at++) {
			if (v->var[at] != v->map[i].var || p->vars.at[v->var[at]].extent == 1)
				continue;
			if (at < last)
				return false;
			last = at;
		}
	return true;
}

/* What is computed in another order than the sum in it is of another group, and is not stored. */
static void mark_stored(struct padding *w)
{
	const struct sub_program *p = w->from;
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool kept = v->op != SUB_ASSIGN || keeps_order(p, v);
		w->stored[i] = sub_traits_of(v->op)->price == SUB_EXPENSIVE;
		for (int a = 0; a < v->args; a++)
			w->stored[i] |= kept && w->stored[v->arg[a].value.i];
	}
}

/* --- the copy --- */

static sub_ref add_copy(struct padding *w, const struct sub_value *v, const int64_t *least, const int64_t *extent)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value copy = {.op = SUB_ASSIGN, .arg = {v->arg[0]}, .map = map, .fills = true, .fill = v->fill};
	copy.arg[0].value = w->now[v->arg[0].value.i];
	copy.vars = 1, copy.var[0] = v->var[0];
	map[0] = v->map[0];
	for (int i = 1; i < v->arg[0].vars; i++) {
		int var = sub_other_dim(w->to, extent[i], copy.var, copy.vars);
		copy.var[copy.vars++] = var;
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1, .offset = least[i]};
	}
	return sub_add(w->to, copy, NULL);
}

static sub_ref read_copy(struct padding *w, const struct sub_value *v, sub_ref copy, const int64_t *least)
{
	struct sub_map map[SUB_MAX_VARS] = {0};
	struct sub_value read = *v;
	sub_copy_maps(&read, map);
	read.arg[0] = sub_as_is(w->to, copy);
	read.fills = false;
	read.fill = 0;
	map[0] = (struct sub_map){.function = SUB_AFFINE, .var = v->var[0], .scale = 1};
	for (int i = 1; i < v->arg[0].vars; i++)
		map[i].offset -= least[i];
	return sub_add(w->to, read, NULL);
}

static sub_ref pad_value(struct padding *w, uint32_t i)
{
	const struct sub_value *v = &w->from->values.at[i];
	int64_t least[SUB_MAX_VARS] = {0}, extent[SUB_MAX_VARS] = {0};
	find_extents(w->from, v, least, extent);
	return read_copy(w, v, add_copy(w, v, least, extent), least);
}

static sub_ref copy_value(struct padding *w, uint32_t i)
{
	struct sub_value v = w->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = w->now[v.arg[a].value.i];
	return sub_add(w->to, v, NULL);
}

void move_pad(struct sub_program *to, const struct sub_program *from, enum move_extent how,
	      const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct padding w = {.to = to, .from = from, .how = how};
	(void)options;
	(void)trace;
	w.now = ARENA_ARRAY(to->arena, sub_ref, from->values.n);
	w.reads = ARENA_ARRAY(to->arena, double, from->values.n);
	w.stored = ARENA_ARRAY(to->arena, bool, from->values.n);
	sub_clear(to);
	sub_copy_declarations(to, from);
	if (how != MOVE_OFF) {
		count_reads(&w);
		mark_stored(&w);
	}
	for (uint32_t i = 1; i < from->values.n; i++)
		w.now[i] = is_padded(&w, i) ? pad_value(&w, i) : copy_value(&w, i);
	for (size_t b = 0; b < from->bodies.n; b++)
		vec_push(to->arena, &to->bodies, sub_map_body(to->arena, &from->bodies.at[b], w.now));
}

bool move_is_padded(const struct sub_program *p)
{
	bool any = false;
	for (uint32_t i = 1; i < p->values.n; i++)
		any |= p->values.at[i].op == SUB_ASSIGN && move_is_padded_copy(p, p->values.at[i].arg[0].value);
	return any;
}

bool move_is_padded_copy(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	bool leaves = false;
	if (v->op != SUB_ASSIGN || sub_leading_dims(p, r) != 1)
		return false;
	for (int i = 1; i < v->arg[0].vars; i++) {
		const struct sub_map *m = &v->map[i];
		if (m->function != SUB_AFFINE || m->var < 0 || m->scale != 1 || m->scale2)
			return false;
		leaves |= sub_map_leaves(p, v, i);
	}
	return leaves;
}
