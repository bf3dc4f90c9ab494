/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Goes over the elements of the weights of a product, and finds of which parameter each is, through data movement. */
#include "rewrite/weight_elements.h"

/* --- one element --- */

static int64_t index_of(const struct rewrite_element *e, int var)
{
	for (int i = 0; i < e->value->vars; i++)
		if (e->value->var[i] == var)
			return e->at[i];
	return 0;
}

static int64_t compute_index(const struct rewrite_element *e, const struct sub_map *m)
{
	int64_t i = m->offset + (m->var >= 0 ? m->scale * index_of(e, m->var) : 0);
	i += m->scale2 ? m->scale2 * index_of(e, m->var2) : 0;
	if (m->function == SUB_DIGIT)
		i = m->modulus ? i / m->divisor % m->modulus : i / m->divisor;
	return i;
}

static struct rewrite_element enter_argument(const struct sub_program *p, const struct rewrite_element *e, int a)
{
	const struct sub_use *u = &e->value->arg[a];
	struct rewrite_element to = {.value = sub_at(p, u->value)};
	for (int d = 0; d < u->vars; d++)
		to.at[d] = e->value->op == SUB_ASSIGN ? compute_index(e, &e->value->map[d]) : index_of(e, u->var[d]);
	return to;
}

/* The element of one of the two values that are concatenated. */
static struct rewrite_element enter_side(const struct sub_program *p, const struct rewrite_element *e)
{
	const struct sub_value *v = e->value;
	int joined[2];
	for (int a = 0; a < 2; a++)
		joined[a] = v->arg[a].vars - (v->vars - v->axis);
	int64_t first = p->vars.at[v->arg[0].var[joined[0]]].extent;
	int side = e->at[v->axis] >= first;
	struct rewrite_element to = enter_argument(p, e, side);
	to.at[joined[side]] = e->at[v->axis] - (side ? first : 0);
	return to;
}

/* Whether an operator only moves elements, each to places that the program knows. */
static bool is_movement(const struct sub_value *v)
{
	bool moves = v->op == SUB_NOP || v->op == SUB_COND || (v->op == SUB_ASSIGN && !v->fills);
	for (int d = 0; moves && v->op == SUB_ASSIGN && d < v->arg[0].vars; d++)
		moves = sub_is_arithmetic(&v->map[d]);
	return moves;
}

/* Finds the parameter that a value's element is of, and the number of the element in it; -1 = it is computed. */
static int find_element(const struct sub_program *p, struct rewrite_element e, int64_t *number)
{
	while (is_movement(e.value))
		e = e.value->op == SUB_COND ? enter_side(p, &e) : enter_argument(p, &e, 0);
	if (e.value->op != SUB_PARAM || e.value->dtype != DTYPE_F32)
		return -1;
	*number = 0;
	for (int d = 0; d < e.value->vars; d++)
		*number = *number * p->params.at[e.value->which].shape[d] + e.at[d];
	return e.value->which;
}

/* --- all elements of a product --- */

static bool is_reduced(const struct sub_value *sum, int var)
{
	return sub_position_in(&sum->reduced, var) >= 0;
}

int64_t rewrite_count_weight_rows(const struct sub_program *p, const struct sub_value *sum, const struct sub_use *w)
{
	int64_t n = 1;
	for (int d = 0; d < w->vars; d++)
		n *= is_reduced(sum, w->var[d]) ? 1 : p->vars.at[w->var[d]].extent;
	return n;
}

bool rewrite_visit_weight(const struct sub_program *p, const struct sub_value *sum, const struct sub_use *w, int64_t i,
			  struct rewrite_weight *to)
{
	int64_t rows = 1;
	to->element.value = sub_at(p, w->value);
	to->row = 0;
	for (int d = w->vars; d-- > 0;) {
		int64_t extent = p->vars.at[w->var[d]].extent;
		to->element.at[d] = i % extent;
		i /= extent;
		if (is_reduced(sum, w->var[d]))
			continue;
		to->row += rows * to->element.at[d];
		rows *= extent;
	}
	to->param = find_element(p, to->element, &to->number);
	return to->param >= 0;
}

int64_t rewrite_count_weights(const struct sub_program *p, const struct sub_use *w)
{
	int64_t n = 1;
	for (int d = 0; d < w->vars; d++)
		n *= p->vars.at[w->var[d]].extent;
	return n;
}

int64_t rewrite_count_param(const struct sub_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* --- what stays in f32 --- */

void rewrite_mark_params(const struct sub_program *p, sub_ref r, bool *wide, struct arena *a)
{
	bool *live = ARENA_ARRAY(a, bool, r.i + 1);
	live[r.i] = true;
	for (uint32_t i = r.i; i > 0; i--) {
		const struct sub_value *v = &p->values.at[i];
		for (int k = 0; live[i] && k < v->args; k++)
			live[v->arg[k].value.i] = true;
		if (live[i] && v->op == SUB_PARAM)
			wide[v->which] = true;
	}
}

void rewrite_mark_other_params(const struct rewrite_products *all, bool *wide, struct arena *a)
{
	const struct sub_program *p = all->p;
	bool *live = ARENA_ARRAY(a, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		for (size_t i = 0; i < p->bodies.at[b].stores.n; i++)
			live[p->bodies.at[b].stores.at[i].value.value.i] = true;
	for (uint32_t i = p->values.n; i-- > 1;) {
		const struct sub_value *v = &p->values.at[i];
		bool product = all->at[i].refusal == REWRITE_QUANTISED;
		if (live[i] && v->op == SUB_PARAM)
			wide[v->which] = true;
		for (int k = 0; live[i] && k < v->args; k++)
			live[v->arg[k].value.i] |= !(product && v->arg[k].value.i == all->at[i].w.value.i);
	}
}
