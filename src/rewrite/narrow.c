/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Keeping the weights of products in a narrow type, widened where they are read.
 *
 *     leaf [n without children]                          W_f16 at binding
 *       %2[n,i] = accumulate_k b[i], W[i,k], x[n,k]        store W_f16[r0,k] : f16 = W[r0,k]
 *                                                  ->    leaf [n without children]
 *                                                          %2[n,i] = accumulate_k b[i], W_f16[i,k], x[n,k]
 *
 * The narrow parameter is computed at binding, like a folded constant; so a binding holds it alone, unless
 * the wide one is read elsewhere.  For i8 there are two parameters: the numbers, and the scale by which each
 * row of them is multiplied where it is read:
 *
 *     W_scale[i] = max_k abs W[i,k] / 127        W_i8[i,k] = round(W[i,k] / W_scale[i])
 *     W[i,k]  ->  W_scale[i] * cast W_i8[i,k]
 *
 * A row is the axis that a product reduces: if several products reduce different axes of a parameter, that of
 * the first. */
#include "rewrite/products.h"

#include <stdio.h>

/* The parameters that are read instead of a wide one; -1 = none yet. */
struct narrowed {
	int number, scale;
	int reduced; /* the axis that has no scale of its own */
};

struct narrowing {
	struct sub_program *to;
	const struct sub_program *from;
	struct rewrite_trace *trace; /* may be NULL */
	enum dtype dtype;
	struct narrowed *params;
	sub_ref *now, *narrow;	     /* by value: its copy, and the copy that products read */
	VEC(struct sub_body) bodies; /* at binding */
};

/* --- values --- */

static sub_ref add_value(struct narrowing *w, struct sub_value v)
{
	return sub_add(w->to, v, NULL);
}

/* A parameter with these variables. */
static sub_ref add_param(struct narrowing *w, int which, const int *var, int vars)
{
	struct sub_value v = {.op = SUB_PARAM, .which = which, .vars = vars};
	memcpy(v.var, var, vars * sizeof *var);
	return add_value(w, v);
}

static sub_ref add_unary(struct narrowing *w, enum sub_op op, sub_ref r)
{
	return add_value(w, (struct sub_value){.op = op, .arg = {sub_as_is(w->to, r)}});
}

static sub_ref add_binary(struct narrowing *w, enum sub_op op, struct sub_use a, struct sub_use b)
{
	return add_value(w, (struct sub_value){.op = op, .arg = {a, b}});
}

static sub_ref add_cast(struct narrowing *w, enum dtype dtype, sub_ref r)
{
	return add_value(w, (struct sub_value){.op = SUB_CAST, .dtype = dtype, .arg = {sub_as_is(w->to, r)}});
}

static sub_ref copy_value(struct narrowing *w, uint32_t i)
{
	struct sub_value v = w->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a].value = w->now[v.arg[a].value.i];
	return add_value(w, v);
}

/* --- at binding --- */

/* A tensor without one axis: the shape of its scale. */
static struct sub_tensor drop_axis(const struct sub_tensor *t, int axis)
{
	struct sub_tensor s = *t;
	for (int d = axis; d + 1 < t->rank; d++) {
		s.var[d] = t->var[d + 1];
		s.shape[d] = t->shape[d + 1];
	}
	s.rank--;
	return s;
}

static const char *name_of(struct narrowing *w, const char *param, const char *ending)
{
	struct str s = str_in(w->to->arena);
	str_printf(&s, "%s_%s", param, ending);
	return sub_find_free_name(w->to, SUB_NAME_TENSOR | SUB_NAME_BODY, str_text(&s));
}

static int declare_param(struct narrowing *w, const struct sub_tensor *like, enum dtype dtype,
			 const char *ending)
{
	struct sub_tensor t = *like;
	t.name = name_of(w, like->name, ending);
	t.dtype = dtype;
	t.folded = true;
	vec_push(w->to->arena, &w->to->params, t);
	return w->to->params.n - 1;
}

/* Adds a body that computes a parameter row by row: the first dimension of its value is the row. */
static void add_body(struct narrowing *w, int param, sub_ref value)
{
	struct sub_body b = {.name = w->to->params.at[param].name, .domain = SUB_AT_BINDING};
	vec_push(w->to->arena, &b.stores,
		 (struct sub_store){.to = SUB_TO_PARAM, .which = param, .value = sub_as_is(w->to, value)});
	vec_push(w->to->arena, &w->bodies, b);
}

/* A use of a parameter whose first dimension is the row of the body. */
static struct sub_use use_rows(struct narrowing *w, int param, const struct sub_tensor *t)
{
	struct sub_use u = sub_as_is(w->to, add_param(w, param, t->var, t->rank));
	u.var[0] = sub_row(w->to, t->shape[0]);
	return u;
}

static sub_ref copy_rows(struct narrowing *w, int param, const struct sub_tensor *t)
{
	return add_value(w, (struct sub_value){.op = SUB_NOP, .arg = {use_rows(w, param, t)}});
}

/* A copy of a parameter with the reduced axis last; its first dimension is the row of the body. */
static sub_ref copy_reduced_last(struct narrowing *w, int param, const struct sub_tensor *t, int axis)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_tensor left = drop_axis(t, axis);
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .vars = t->rank, .map = map};
	memcpy(v.var, left.var, left.rank * sizeof *left.var);
	v.var[0] = sub_row(w->to, left.shape[0]);
	v.var[left.rank] = t->var[axis];
	for (int d = 0; d < t->rank; d++)
		map[d] = (struct sub_map){.function = SUB_AFFINE,
					  .var = v.var[d == axis  ? left.rank
						       : d < axis ? d
								  : d - 1],
					  .scale = 1};
	v.arg[0] = sub_as_is(w->to, add_param(w, param, t->var, t->rank));
	return add_value(w, v);
}

static struct sub_use add_number(struct narrowing *w, double x)
{
	return sub_as_is(w->to, add_value(w, (struct sub_value){.op = SUB_CONST, .constant = x}));
}

static int add_scale(struct narrowing *w, int param, int axis)
{
	enum { MOST = 127 };
	const struct sub_tensor t = w->to->params.at[param], left = drop_axis(&t, axis);
	sub_ref size = add_unary(w, SUB_ABS, copy_reduced_last(w, param, &t, axis));
	struct sub_value most = {.op = SUB_MAX, .arg = {sub_as_is(w->to, size)}, .reduced = sub_one_var(t.var[axis])};
	sub_ref largest = add_value(w, most);
	sub_ref scale = add_binary(w, SUB_DIVIDE, sub_as_is(w->to, largest), add_number(w, MOST));
	int made = declare_param(w, &left, DTYPE_F32, "scale");
	add_body(w, made, scale);
	return made;
}

/* The scale of each element of a parameter whose axes have these names. */
static struct sub_use use_scale(struct narrowing *w, const struct narrowed *n, const struct sub_tensor *t,
				const int *var)
{
	struct sub_tensor left = drop_axis(t, n->reduced), named = *t;
	struct sub_use u = sub_as_is(w->to, add_param(w, n->scale, left.var, left.rank));
	memcpy(named.var, var, t->rank * sizeof *var);
	named = drop_axis(&named, n->reduced);
	memcpy(u.var, named.var, left.rank * sizeof *u.var);
	return u;
}

static sub_ref divide_rows(struct narrowing *w, int param, const struct narrowed *n)
{
	const struct sub_tensor t = w->to->params.at[param];
	struct sub_use rows = use_rows(w, param, &t);
	sub_ref quotient = add_binary(w, SUB_DIVIDE, rows, use_scale(w, n, &t, rows.var));
	return add_cast(w, DTYPE_I32, add_unary(w, SUB_ROUND, quotient));
}

static void add_narrow(struct narrowing *w, int param, int reduced)
{
	struct narrowed *n = &w->params[param];
	const struct sub_tensor t = w->to->params.at[param];
	n->reduced = reduced;
	if (w->dtype == DTYPE_I8)
		n->scale = add_scale(w, param, reduced);
	sub_ref rows = w->dtype == DTYPE_I8 ? divide_rows(w, param, n) : copy_rows(w, param, &t);
	n->number = declare_param(w, &t, w->dtype, dtype_traits_of(w->dtype)->spelling);
	add_body(w, n->number, rows);
}

static void add_note(struct narrowing *w, int param)
{
	struct str s = str_in(w->to->arena);
	str_printf(&s, "products read %s as %s", w->from->params.at[param].name,
		   dtype_traits_of(w->dtype)->spelling);
	if (w->trace)
		vec_push(w->to->arena, &w->trace->notes, str_text(&s));
}

/* --- products --- */

static bool is_narrowed(const struct narrowing *w, const struct sub_value *v)
{
	return v->op == SUB_PARAM && v->vars > 1 && w->from->params.at[v->which].dtype == DTYPE_F32;
}

static sub_ref read_narrow(struct narrowing *w, const struct sub_value *v, int reduced)
{
	const struct sub_tensor *t = &w->from->params.at[v->which];
	struct narrowed *n = &w->params[v->which];
	if (n->number < 0) {
		add_narrow(w, v->which, reduced);
		add_note(w, v->which);
	}
	sub_ref r = add_param(w, n->number, v->var, v->vars);
	if (w->dtype != DTYPE_I8)
		return r;
	sub_ref wide = add_cast(w, DTYPE_F32, r);
	return add_binary(w, SUB_MULTIPLY, sub_as_is(w->to, wide), use_scale(w, n, t, v->var));
}

/* The narrow copy of weights that a product reads, through data movement.  `reduced` is the axis that the
 * product reduces; behind a movement the last one is assumed. */
static sub_ref narrow_weight(struct narrowing *w, sub_ref r, int reduced)
{
	struct sub_value v = *sub_at(w->from, r);
	if (is_narrowed(w, &v))
		return read_narrow(w, &v, reduced);
	if (sub_class_of(v.op) != SUB_MOVE || !sub_may_be_constant(w->from, &v))
		return w->now[r.i];
	if (w->narrow[r.i].i)
		return w->narrow[r.i];
	for (int a = 0; a < v.args; a++) {
		const struct sub_value *arg = sub_at(w->from, v.arg[a].value);
		v.arg[a].value = narrow_weight(w, v.arg[a].value, arg->vars - 1);
	}
	return w->narrow[r.i] = add_value(w, v);
}

/* The longest axis of a use that the product reduces. */
static int find_axis(const struct sub_program *p, const struct sub_use *u, const struct sub_vars *reduced)
{
	int axis = -1;
	for (int d = 0; d < u->vars; d++)
		if (sub_position_in(reduced, u->var[d]) >= 0 &&
		    (axis < 0 || sub_loop_extent(p, u->var[d]) > sub_loop_extent(p, u->var[axis])))
			axis = d;
	return axis < 0 ? u->vars - 1 : axis;
}

int rewrite_find_row_axis(const struct sub_program *p, const struct sub_use *w, const struct sub_vars *reduced, int rank)
{
	return sub_at(p, w->value)->op == SUB_PARAM ? find_axis(p, w, reduced) : rank - 1;
}

static sub_ref copy_product(struct narrowing *w, uint32_t i)
{
	struct sub_value v = w->from->values.at[i];
	v.arg[0].value = w->now[v.arg[0].value.i];
	for (int a = 1; a < v.args; a++)
		v.arg[a].value = narrow_weight(w, v.arg[a].value, find_axis(w->from, &v.arg[a], &v.reduced));
	return add_value(w, v);
}

/* --- the pass --- */

static void copy_body(struct narrowing *w, const struct sub_body *b)
{
	vec_push(w->to->arena, &w->to->bodies, sub_map_body(w->to->arena, b, w->now));
}

/* Copies the bodies in their order, with the new ones after all others at binding. */
static void copy_bodies(struct narrowing *w)
{
	const struct sub_body *b = w->from->bodies.at, *end = b + w->from->bodies.n;
	for (; b < end && b->domain == SUB_AT_BINDING; b++)
		copy_body(w, b);
	for (size_t i = 0; i < w->bodies.n; i++)
		vec_push(w->to->arena, &w->to->bodies, w->bodies.at[i]);
	for (; b < end; b++)
		copy_body(w, b);
}

static bool *find_used(const struct narrowing *w)
{
	bool *used = ARENA_ARRAY(w->to->arena, bool, w->from->values.n);
	for (size_t b = 0; b < w->from->bodies.n; b++)
		if (w->from->bodies.at[b].domain != SUB_AT_BINDING)
			sub_mark_live(w->from, &w->from->bodies.at[b], used);
	return used;
}

void rewrite_narrow(struct sub_program *to, const struct sub_program *from,
		    const struct rewrite_options *options, struct rewrite_trace *trace)
{
	struct narrowing w = {.to = to, .from = from, .trace = trace, .dtype = options->weights_as};
	w.params = ARENA_ARRAY(to->arena, struct narrowed, from->params.n);
	for (size_t i = 0; i < from->params.n; i++)
		w.params[i] = (struct narrowed){-1, -1, -1};
	w.now = ARENA_ARRAY(to->arena, sub_ref, from->values.n);
	w.narrow = ARENA_ARRAY(to->arena, sub_ref, from->values.n);
	sub_copy_declarations(to, from);
	bool *used = find_used(&w);
	for (uint32_t i = 1; i < from->values.n; i++)
		w.now[i] = used[i] && from->values.at[i].op == SUB_ACCUMULATE ? copy_product(&w, i)
									      : copy_value(&w, i);
	copy_bodies(&w);
}
