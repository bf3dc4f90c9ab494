/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds values that the host can compute in the accelerator's blocks of channels.  An operator on elements gives the same elements
 * however they lie, so what is computed element by element of results of functions, of numbers and of weights needs no other
 * layout than these results have; and a function that reads it packs nothing.  The last block may have more channels than the
 * value: what is computed of them is never read as a result. */
#include "split/target_split.h"

static int position_of(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return i;
	return -1;
}

static int64_t extent_of(const struct sub_program *p, const struct sub_value *v, int dim)
{
	return dim < 0 ? 1 : p->vars.at[v->var[dim]].extent;
}

static bool has_axis(const struct split_layout *l, int dim)
{
	for (int a = 0; a < SPLIT_AXES; a++)
		if (l->axis[a] == dim)
			return true;
	return false;
}

/* Whether rows of nodes are what the layout says: no other dimension has more than one element. */
static bool covers_value(const struct sub_program *p, const struct sub_value *v, const struct split_layout *l)
{
	if (!v->vars || v->var[0] != p->node)
		return false;
	for (int d = 1; d < v->vars; d++)
		if (p->vars.at[v->var[d]].set != SUB_DIM || (extent_of(p, v, d) != 1 && !has_axis(l, d)))
			return false;
	return true;
}

/* The layout of a value under the names of a use in another one; false if an axis is none of its dimensions. */
static bool rename_layout(const struct split_products *s, const struct sub_value *v, const struct sub_use *u, struct split_layout *to)
{
	const struct split_layout *l = &s->layout[u->value.i];
	*to = *l;
	if (!l->extent[SPLIT_CHANNEL] || u->var[0] != s->p->node)
		return false;
	for (int a = 0; a < SPLIT_AXES; a++) {
		int var = l->axis[a] < 0 ? -1 : u->var[l->axis[a]];
		to->axis[a] = var < 0 ? -1 : position_of(v, var);
		if (extent_of(s->p, v, to->axis[a]) != l->extent[a])
			return false;
	}
	return true;
}

static bool is_elementwise(enum sub_op op)
{
	enum sub_class class = sub_class_of(op);
	return class == SUB_UNARY || class == SUB_BINARY || class == SUB_TERNARY;
}

/* The layout that all arguments of an operator have that are no constants. */
static bool join_layouts(const struct split_products *s, const struct sub_value *v, struct split_layout *to)
{
	struct split_layout other;
	bool found = false;
	for (int a = 0; a < v->args; a++) {
		if (s->constant[v->arg[a].value.i])
			continue;
		if (!rename_layout(s, v, &v->arg[a], &other) || (found && memcmp(&other, to, sizeof other) != 0))
			return false;
		*to = other;
		found = true;
	}
	return found;
}

/* The layout of what a product computes. */
static struct split_layout layout_of_result(const struct split_product *q)
{
	struct split_layout l = {.extent = {q->images, q->outputs, split_count_sums(q, 0), split_count_sums(q, 1)}};
	memcpy(l.axis, q->result_axis, sizeof l.axis);
	return l;
}

static bool find_layout(const struct split_products *s, uint32_t i, struct split_layout *to)
{
	sub_ref r = {i};
	const struct sub_value *v = &s->p->values.at[i];
	if (s->of_result[i]) {
		*to = layout_of_result(&s->all.at[s->of_result[i] - 1]);
		return true;
	}
	if (v->op != SUB_ASSIGN)
		return is_elementwise(v->op) && join_layouts(s, v, to);
	struct sub_use from = split_see_through(s->p, sub_as_is(s->p, r));
	return from.value.i != i && rename_layout(s, v, &from, to);
}

bool split_reads_layout(const struct split_products *s, const struct split_product *q)
{
	const struct split_layout *l = &s->layout[q->input.i];
	const struct sub_value *v = sub_at(s->p, q->input);
	bool same = l->extent[SPLIT_CHANNEL] > 0;
	for (int a = 0; a < SPLIT_AXES; a++)
		same = same && (l->axis[a] == q->input_axis[a] ||
				(l->extent[a] == 1 && extent_of(s->p, v, q->input_axis[a]) == 1));
	return same;
}

void split_find_layouts(struct split_products *s)
{
	s->layout = ARENA_ARRAY(s->arena, struct split_layout, s->p->values.n);
	for (uint32_t i = 1; i < s->p->values.n; i++) {
		struct split_layout l = {.axis = {0}};
		if (!s->constant[i] && find_layout(s, i, &l) && covers_value(s->p, &s->p->values.at[i], &l))
			s->layout[i] = l;
	}
}
