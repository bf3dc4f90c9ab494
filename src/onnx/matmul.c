/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, and sums of products in general. */
#include "onnx/quantised_values.h"

static struct onnx_operand refuse_product(const struct onnx_op *o, struct onnx_operand a,
					  struct onnx_operand b)
{
	onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
		       "values of %d and %d axes, or of these extents, have no product", a.shape.rank,
		       b.shape.rank);
	return (struct onnx_operand){0};
}

/* As NumPy's matmul. */
static struct onnx_operand multiply(const struct onnx_op *o, struct onnx_operand a, struct onnx_operand b)
{
	bool row = a.shape.rank == 1, column = b.shape.rank == 1;
	if (!a.shape.rank || !b.shape.rank)
		return refuse_product(o, a, b);
	if (row)
		a = onnx_reshape(o, a, &(struct onnx_shape){2, {1, a.shape.dim[0]}});
	if (column)
		b = onnx_reshape(o, b, &(struct onnx_shape){2, {b.shape.dim[0], 1}});
	int ra = a.shape.rank, rb = b.shape.rank;
	struct onnx_shape left = a.shape, right = b.shape, shape;
	left.rank = ra - 2, right.rank = rb - 2;
	if (a.shape.dim[ra - 1] != b.shape.dim[rb - 2])
		return refuse_product(o, a, b);
	if (!onnx_broadcast(o, &left, &right, &shape))
		return (struct onnx_operand){0};
	shape.dim[shape.rank++] = a.shape.dim[ra - 2];
	shape.dim[shape.rank++] = b.shape.dim[rb - 1];
	struct onnx_operand y =
	    onnx_formula(o, a.type, &shape, (struct onnx_operand *[]){&a, &b}, 2, "a @ b");
	if (!row && !column)
		return y;
	struct onnx_shape kept = shape;
	kept.rank -= row + column;
	if (row && !column)
		kept.dim[kept.rank - 1] = shape.dim[shape.rank - 1];
	return onnx_reshape(o, y, &kept);
}

bool onnx_write_matmul(struct onnx_op *o)
{
	o->out[0] = multiply(o, o->in[0], o->in[1]);
	return o->out[0].given;
}

bool onnx_write_gemm(struct onnx_op *o)
{
	struct onnx_operand a = o->in[0], b = o->in[1], y;
	double alpha = onnx_float(o, "alpha"), beta = onnx_float(o, "beta");
	if (a.shape.rank != 2 || b.shape.rank != 2)
		return refuse_product(o, a, b).given;
	a = onnx_int(o, "transA") ? onnx_transpose(o, a, (int[]){1, 0}) : a;
	b = onnx_int(o, "transB") ? onnx_transpose(o, b, (int[]){1, 0}) : b;
	y = multiply(o, a, b);
	if (y.given && alpha != 1)
		y = onnx_two(o, y, onnx_number(o, y.type, alpha), y.type, "a * b");
	if (y.given && onnx_given(o, 2) && beta != 0) {
		struct onnx_operand c = o->in[2];
		c = beta == 1 ? c : onnx_two(o, c, onnx_number(o, c.type, beta), c.type, "a * b");
		y = onnx_two(o, y, c, y.type, "a + b");
	}
	o->out[0] = y;
	return y.given;
}

/* An argument of integers less its zero point, as i32; a zero point of each row stands before the last axis. */
static struct onnx_operand centre(const struct onnx_op *o, int input, int zero, bool rows)
{
	struct onnx_operand x = o->in[input], z = o->in[zero];
	x.type = ONNX_INT32;
	if (!onnx_given(o, zero))
		return x;
	if (!onnx_check_zero(o, zero, o->in[input].type, 0))
		return (struct onnx_operand){0};
	if (rows && z.shape.rank == 1 && z.shape.dim[0] > 1)
		z = onnx_reshape(o, z, &(struct onnx_shape){2, {z.shape.dim[0], 1}});
	return onnx_subtract_zero(o, x, z);
}

bool onnx_write_matmul_integer(struct onnx_op *o)
{
	struct onnx_operand a = centre(o, 0, 2, true), b = centre(o, 1, 3, false);
	if (a.given && b.given)
		o->out[0] = multiply(o, a, b);
	return o->out[0].given;
}

/* --- Einstein's sums --- */

/* A subscript: its letters, and where an ellipsis stands, which is so many axes. */
struct subscript {
	char letter[RA_MAX_RANK];
	int n;
};

struct einsum {
	const struct onnx_op *o;
	struct subscript arg[8], result;
	int args, dots; /* axes of an ellipsis */
	int64_t extent[128];
};

/* Axes of an ellipsis are named by '0' to '7', aligned at the last one. */
static const char *read_subscript(struct einsum *e, const char *p, int dots, struct subscript *s)
{
	for (; *p && *p != ',' && *p != '-'; p++) {
		if (*p == ' ')
			continue;
		int count = *p == '.' ? dots : 1;
		for (int d = 0; d < count && s->n < RA_MAX_RANK; d++)
			s->letter[s->n++] = *p == '.' ? (char)('0' + e->dots - dots + d) : *p;
		p += *p == '.' && p[1] == '.' && p[2] == '.' ? 2 : 0;
	}
	return p;
}

/* The axes of an argument that its letters do not name. */
static int dots_of(const char *p, int rank)
{
	int letters = 0;
	bool dots = false;
	for (; *p && *p != ',' && *p != '-'; p++) {
		letters += (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
		dots |= *p == '.';
	}
	return dots && rank > letters ? rank - letters : 0;
}

static const char *next_argument(const char *p)
{
	p += strcspn(p, ",-");
	return *p == ',' ? p + 1 : p;
}

static bool read_arguments(struct einsum *e, const char *p)
{
	const struct onnx_op *o = e->o;
	const char *at = p;
	for (int i = 0; i < o->ins; i++, at = next_argument(at)) {
		int dots = dots_of(at, o->in[i].shape.rank);
		e->dots = dots > e->dots ? dots : e->dots;
	}
	for (e->args = 0; e->args < o->ins; e->args++, p = next_argument(p)) {
		struct subscript *s = &e->arg[e->args];
		const struct onnx_shape *shape = &o->in[e->args].shape;
		read_subscript(e, p, dots_of(p, shape->rank), s);
		if (s->n != shape->rank)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
					      "the equation names %d axes of input %d, which has %d", s->n,
					      e->args, shape->rank);
		for (int d = 0; d < s->n; d++) {
			int64_t *extent = &e->extent[s->letter[d] & 127];
			*extent = *extent > 1 ? *extent : shape->dim[d];
		}
	}
	return true;
}

static bool occurs_in(const struct subscript *s, char letter)
{
	return memchr(s->letter, letter, s->n) != NULL;
}

/* Without an arrow: the ellipsis, then letters that occur once, in the order of the alphabet. */
static void find_result(struct einsum *e, const char *equation)
{
	const char *arrow = strstr(equation, "->");
	if (arrow) {
		read_subscript(e, arrow + 2, e->dots, &e->result);
		return;
	}
	for (int d = 0; d < e->dots; d++)
		e->result.letter[e->result.n++] = (char)('0' + d);
	for (int letter = 'A'; letter <= 'z'; letter++) {
		int times = 0;
		for (int i = 0; i < e->args; i++)
			for (int d = 0; d < e->arg[i].n; d++)
				times += e->arg[i].letter[d] == letter;
		if (times == 1 && e->result.n < RA_MAX_RANK)
			e->result.letter[e->result.n++] = (char)letter;
	}
}

static void put_index(const struct einsum *e, struct str *s, char letter)
{
	const char *in_result = memchr(e->result.letter, letter, e->result.n);
	if (in_result)
		str_printf(s, "%s%d", e->o->target->axis, (int)(in_result - e->result.letter));
	else
		str_printf(s, "%s%d", e->o->target->reduced, letter);
}

static void put_products(const struct einsum *e, struct str *s)
{
	for (int i = 0; i < e->args; i++) {
		str_printf(s, "%s%c", i ? " * " : "", 'a' + i);
		for (int d = 0; d < e->arg[i].n; d++) {
			str_puts(s, d ? ", " : "[");
			if (e->o->in[i].shape.dim[d] == 1 && e->extent[e->arg[i].letter[d] & 127] > 1)
				str_puts(s, "0");
			else
				put_index(e, s, e->arg[i].letter[d]);
		}
		str_puts(s, e->arg[i].n ? "]" : "");
	}
}

static const char *einsum_text(const struct einsum *e)
{
	struct str s = str_in(e->o->arena), over = str_in(e->o->arena);
	for (int letter = '0'; letter <= 'z'; letter++)
		if (e->extent[letter] && !occurs_in(&e->result, (char)letter)) {
			str_puts(&over, over.n ? ", " : "");
			put_index(e, &over, (char)letter);
			str_printf(&over, " in %lld", (long long)e->extent[letter]);
		}
	str_puts(&s, over.n ? "sum(" : "");
	put_products(e, &s);
	if (over.n)
		str_printf(&s, " for %s)", str_text(&over));
	return str_text(&s);
}

bool onnx_write_einsum(struct onnx_op *o)
{
	struct einsum e = {.o = o};
	struct onnx_operand *arg[8];
	struct onnx_shape shape = {0};
	const char *equation = onnx_string(o, "equation");
	if (o->ins > 8)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it has more than eight inputs");
	if (!read_arguments(&e, equation))
		return false;
	find_result(&e, equation);
	for (int i = 0; i < o->ins; i++)
		arg[i] = &o->in[i];
	for (shape.rank = 0; shape.rank < e.result.n; shape.rank++) {
		shape.dim[shape.rank] = e.extent[e.result.letter[shape.rank] & 127];
		if (!shape.dim[shape.rank])
			return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
					      "the equation '%s' names an axis that no input has", equation);
	}
	o->out[0] = onnx_nest(o, o->in[0].type, &shape, arg, o->ins, einsum_text(&e));
	return true;
}
