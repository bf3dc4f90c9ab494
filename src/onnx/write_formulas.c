/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What operators are written with: formulas, index notation, and the movements that many of them need. */
#include "onnx/operators.h"

static const struct onnx_operand none;

bool(onnx_op_refuse)(const struct onnx_op *o, enum diag_id id, const char *hint, const char *format, ...)
{
	struct str s = str_in(o->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return onnx_refuse(o->diags, o->graph, o->node, id, hint, "%s", str_text(&s));
}

const char *onnx_format(const struct onnx_op *o, const char *format, ...)
{
	struct str s = str_in(o->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return str_text(&s);
}

/* --- texts --- */

/* What a body says of a value: the builder's number, or none after a fault, which the builder reports. */
static struct onnx_operand make_written(enum onnx_type type, const struct onnx_shape *shape, uint32_t id)
{
	struct onnx_operand x = {.given = true, .type = type, .id = id};
	x.shape = *shape;
	return x;
}

static void put_arguments(struct str *s, int n)
{
	str_puts(s, "(");
	for (int i = 0; i < n; i++)
		str_printf(s, "%s%c", i ? ", " : "", 'a' + i);
	str_puts(s, ")");
}

static const char *shape_text(const struct onnx_op *o, const struct onnx_shape *shape)
{
	struct str s = str_in(o->arena);
	for (int d = 0; d < shape->rank; d++)
		str_printf(&s, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
	return str_text(&s);
}

/* A value without a number, but with its shape, where an argument has none: a fault was reported, or an input is left
 * out. */
static struct onnx_operand call_text(const struct onnx_op *o, enum onnx_type type,
				     const struct onnx_shape *shape, struct onnx_operand *const *arg, int n,
				     const char *text)
{
	uint32_t id[26];
	for (int i = 0; i < n; i++)
		if (!arg[i]->source && !arg[i]->id)
			return make_written(type, shape, 0);
	if (!onnx_check_extents(o, shape))
		return make_written(type, shape, 0);
	for (int i = 0; i < n; i++)
		id[i] = onnx_use(o, arg[i]);
	return make_written(type, shape, ra_builder_indexed(o->target->builder, text, id, n));
}

struct onnx_operand onnx_formula(const struct onnx_op *o, enum onnx_type type, const struct onnx_shape *shape,
				 struct onnx_operand *const *arg, int n, const char *text)
{
	struct str s = str_in(o->arena);
	put_arguments(&s, n);
	str_printf(&s, " = %s", text);
	return call_text(o, type, shape, arg, n, str_text(&s));
}

struct onnx_operand onnx_nest(const struct onnx_op *o, enum onnx_type type, const struct onnx_shape *shape,
			      struct onnx_operand *const *arg, int n, const char *text)
{
	struct str s = str_in(o->arena);
	put_arguments(&s, n);
	for (int d = 0; d < shape->rank; d++)
		str_printf(&s, "%s%s%d in %lld", d ? ", " : "[", o->target->axis, d,
			   (long long)shape->dim[d]);
	str_printf(&s, "%s = %s", shape->rank ? "]" : "", text);
	return call_text(o, type, shape, arg, n, str_text(&s));
}

struct onnx_operand onnx_map(const struct onnx_op *o, struct onnx_operand x, enum onnx_type type,
			     const char *text)
{
	return onnx_formula(o, type, &x.shape, (struct onnx_operand *[]){&x}, 1, text);
}

struct onnx_operand onnx_two(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand y,
			     enum onnx_type type, const char *text)
{
	struct onnx_shape shape;
	if (!onnx_broadcast(o, &x.shape, &y.shape, &shape))
		return none;
	return onnx_formula(o, type, &shape, (struct onnx_operand *[]){&x, &y}, 2, text);
}

const char *onnx_name_indices(const struct onnx_op *o, const char *text)
{
	struct str s = str_in(o->arena);
	for (; *text; text++)
		if (*text == '@' || *text == '#')
			str_puts(&s, *text == '@' ? o->target->axis : o->target->reduced);
		else
			str_add(&s, text, 1);
	return str_text(&s);
}

void onnx_put_axes(const struct onnx_op *o, struct str *s, int rank)
{
	for (int d = 0; d < rank; d++)
		str_printf(s, "%s%s%d", d ? ", " : "[", o->target->axis, d);
	str_puts(s, rank ? "]" : "");
}

void onnx_put_broadcast(const struct onnx_op *o, struct str *s, const struct onnx_shape *from,
			const struct onnx_shape *to)
{
	for (int d = 0; d < from->rank; d++) {
		int at = d + to->rank - from->rank;
		str_puts(s, d ? ", " : "[");
		if (from->dim[d] == 1 && to->dim[at] != 1)
			str_puts(s, "0");
		else
			str_printf(s, "%s%d", o->target->axis, at);
	}
	str_puts(s, from->rank ? "]" : "");
}

bool onnx_check_extents(const struct onnx_op *o, const struct onnx_shape *shape)
{
	return onnx_has_extents(shape) ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "[%s] has an extent over %d, or more than 2^40 elements",
			      shape_text(o, shape), INT32_MAX);
}

bool onnx_broadcast(const struct onnx_op *o, const struct onnx_shape *a, const struct onnx_shape *b,
		    struct onnx_shape *out)
{
	const struct onnx_shape *more = a->rank >= b->rank ? a : b, *less = more == a ? b : a;
	struct onnx_shape joined = *more;
	for (int d = 0; d < less->rank; d++) {
		int64_t *extent = &joined.dim[d + more->rank - less->rank];
		if (*extent != less->dim[d] && *extent != 1 && less->dim[d] != 1)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE,
					      "shapes are aligned at the last axis; extents are equal, or 1",
					      "[%s] and [%s] cannot be broadcast", shape_text(o, a),
					      shape_text(o, b));
		*extent = *extent == 1 ? less->dim[d] : *extent;
	}
	*out = joined;
	return true;
}

/* --- movements --- */

/* Whether a shape is another one with axes of extent 1 added or left out. */
static bool differs_in_ones(const struct onnx_shape *a, const struct onnx_shape *b)
{
	int i = 0, j = 0;
	for (;; i++, j++) {
		while (i < a->rank && a->dim[i] == 1)
			i++;
		while (j < b->rank && b->dim[j] == 1)
			j++;
		if (i == a->rank || j == b->rank)
			return i == a->rank && j == b->rank;
		if (a->dim[i] != b->dim[j])
			return false;
	}
}

/* Index notation for axes of extent 1 that come or go. */
static struct onnx_operand change_ones(const struct onnx_op *o, struct onnx_operand x,
				       const struct onnx_shape *shape)
{
	struct str s = str_in(o->arena);
	str_puts(&s, x.shape.rank ? "a[" : "a");
	for (int d = 0, to = 0; d < x.shape.rank; d++) {
		str_puts(&s, d ? ", " : "");
		if (x.shape.dim[d] == 1) {
			str_puts(&s, "0");
			continue;
		}
		while (shape->dim[to] == 1)
			to++;
		str_printf(&s, "%s%d", o->target->axis, to++);
	}
	str_puts(&s, x.shape.rank ? "]" : "");
	return onnx_nest(o, x.type, shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

struct onnx_operand onnx_reshape(const struct onnx_op *o, struct onnx_operand x,
				 const struct onnx_shape *shape)
{
	if (onnx_elements(&x.shape) != onnx_elements(shape)) {
		onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "[%s] has other elements than [%s]",
			       shape_text(o, &x.shape), shape_text(o, shape));
		return none;
	}
	if (onnx_same_shape(&x.shape, shape))
		return x;
	if (x.constant) {
		struct onnx_tensor *t = arena_copy(o->arena, x.constant, sizeof *t);
		t->rank = shape->rank;
		memcpy(t->dim, shape->dim, sizeof shape->dim[0] * shape->rank);
		return onnx_constant(o, t);
	}
	if (differs_in_ones(&x.shape, shape))
		return change_ones(o, x, shape);
	return onnx_formula(o, x.type, shape, (struct onnx_operand *[]){&x}, 1,
			    onnx_format(o, "reshape(a, %s)", shape_text(o, shape)));
}

struct onnx_operand onnx_transpose(const struct onnx_op *o, struct onnx_operand x, const int *order)
{
	struct onnx_shape shape = {.rank = x.shape.rank};
	struct str s = str_in(o->arena);
	bool moved = false;
	str_puts(&s, "transpose(a");
	for (int d = 0; d < shape.rank; d++) {
		shape.dim[d] = x.shape.dim[order[d]];
		moved |= order[d] != d;
		str_printf(&s, ", %d", order[d]);
	}
	str_puts(&s, ")");
	return moved ? onnx_formula(o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, str_text(&s)) : x;
}

struct onnx_operand onnx_stride(const struct onnx_op *o, struct onnx_operand x, int axis, int64_t begin,
				int64_t step, int64_t n)
{
	struct str s = str_in(o->arena);
	struct onnx_shape shape = x.shape;
	shape.dim[axis] = n;
	for (int d = 0; d < shape.rank; d++) {
		str_puts(&s, d ? ", " : "a[");
		if (d == axis && n == 1)
			str_printf(&s, "%lld", (long long)begin);
		else if (d == axis)
			str_printf(&s, "%lld*%s%d + %lld", (long long)step, o->target->axis, d,
				   (long long)begin);
		else
			str_printf(&s, "%s%d", o->target->axis, d);
	}
	str_puts(&s, "]");
	return onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

struct onnx_operand onnx_slice(const struct onnx_op *o, struct onnx_operand x, int axis, int64_t begin,
			       int64_t end)
{
	struct onnx_shape shape = x.shape;
	if (begin == 0 && end == shape.dim[axis])
		return x;
	shape.dim[axis] = end - begin;
	uint32_t id = ra_builder_slice(o->target->builder, onnx_use(o, &x), axis,
				       onnx_format(o, "%lld", (long long)begin),
				       onnx_format(o, "%lld", (long long)end));
	return make_written(x.type, &shape, id);
}

struct onnx_operand onnx_select(const struct onnx_op *o, struct onnx_operand x, int axis, int64_t at)
{
	struct onnx_operand one = onnx_slice(o, x, axis, at, at + 1);
	struct onnx_shape shape = one.shape;
	memmove(&shape.dim[axis], &shape.dim[axis + 1], sizeof shape.dim[0] * (shape.rank - axis - 1));
	shape.rank--;
	return onnx_reshape(o, one, &shape);
}

struct onnx_operand onnx_insert_axis(const struct onnx_op *o, struct onnx_operand x, int axis)
{
	struct onnx_shape shape = x.shape;
	memmove(&shape.dim[axis + 1], &shape.dim[axis], sizeof shape.dim[0] * (shape.rank - axis));
	shape.dim[axis] = 1;
	shape.rank++;
	return onnx_reshape(o, x, &shape);
}

struct onnx_operand onnx_concat(const struct onnx_op *o, struct onnx_operand *x, int n, int axis)
{
	struct onnx_operand y = x[0];
	uint32_t *id = ARENA_ARRAY(o->arena, uint32_t, n);
	for (int i = 0; i < n; i++) {
		id[i] = onnx_use(o, &x[i]);
		y.shape.dim[axis] += i ? x[i].shape.dim[axis] : 0;
	}
	return n == 1 ? y
		      : make_written(y.type, &y.shape,
				ra_builder_call_along(o->target->builder, "concat", axis, id, n));
}

struct onnx_operand onnx_expand(const struct onnx_op *o, struct onnx_operand x,
				const struct onnx_shape *shape)
{
	struct str s = str_in(o->arena);
	if (onnx_same_shape(&x.shape, shape))
		return x;
	str_puts(&s, "a");
	onnx_put_broadcast(o, &s, &x.shape, shape);
	return onnx_nest(o, x.type, shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

struct onnx_operand onnx_cast(const struct onnx_op *o, struct onnx_operand x, enum onnx_type type)
{
	if (onnx_computed(x.type) == onnx_computed(type)) {
		x.type = type;
		return x;
	}
	return onnx_map(o, x, type,
			onnx_format(o, "cast(a, %s)", dtype_traits_of(onnx_computed(type))->spelling));
}

struct onnx_operand onnx_number(const struct onnx_op *o, enum onnx_type type, double number)
{
	struct onnx_shape single = {0};
	struct onnx_operand x = onnx_computed(type) == DTYPE_F32
				    ? onnx_floats(o, &single, (float[]){(float)number})
				    : onnx_integers(o, &single, (int64_t[]){(int64_t)number});
	return onnx_cast(o, x, type);
}

/* --- reductions --- */

/* Writes an element, of an argument whose axes in the mask are reduced. */
static void put_reduced(const struct onnx_op *o, struct str *s, int rank, unsigned mask)
{
	str_puts(s, rank ? "a[" : "a");
	for (int d = 0; d < rank; d++)
		str_printf(s, "%s%s%d", d ? ", " : "", mask >> d & 1 ? o->target->reduced : o->target->axis,
			   d);
	str_puts(s, rank ? "]" : "");
}

/* Copies a text with another one for each `$` that no letter follows. */
static const char *put_in(const struct onnx_op *o, const char *text, const char *element)
{
	struct str s = str_in(o->arena);
	for (; *text; text++)
		if (*text == '$')
			str_puts(&s, element);
		else
			str_add(&s, text, 1);
	return str_text(&s);
}

struct onnx_operand onnx_reduce(const struct onnx_op *o, struct onnx_operand x, const char *function,
				unsigned mask, const char *text)
{
	struct str s = str_in(o->arena), element = str_in(o->arena);
	struct onnx_shape shape = x.shape;
	put_reduced(o, &element, x.shape.rank, mask);
	text = put_in(o, text, str_text(&element));
	str_printf(&s, mask ? "%s(%s for " : "%.0s%s", function, text);
	for (int d = 0, n = 0; d < x.shape.rank; d++)
		if (mask >> d & 1) {
			str_printf(&s, "%s%s%d", n++ ? ", " : "", o->target->reduced, d);
			shape.dim[d] = 1;
		}
	str_puts(&s, mask ? ")" : "");
	return onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, str_text(&s));
}

struct onnx_operand onnx_softmax(const struct onnx_op *o, struct onnx_operand x, unsigned mask,
				 bool logarithm)
{
	if (!(mask & (mask - 1)) && mask) {
		uint32_t id = onnx_use(o, &x);
		id = ra_builder_call_along(o->target->builder, logarithm ? "log_softmax" : "softmax",
					   __builtin_ctz(mask), &id, 1);
		return make_written(x.type, &x.shape, id);
	}
	struct onnx_operand shifted = onnx_two(o, x, onnx_reduce(o, x, "max", mask, "$"), x.type, "a - b");
	if (logarithm)
		return onnx_two(o, shifted, onnx_reduce(o, shifted, "sum", mask, "exp($)"), x.type,
				"a - log(b)");
	struct onnx_operand powers = onnx_map(o, shifted, x.type, "exp(a)");
	return onnx_two(o, powers, onnx_reduce(o, powers, "sum", mask, "$"), x.type, "a / b");
}
