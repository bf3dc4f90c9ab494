/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute each element of those at the same place. */
#include "onnx/operators.h"

#include <math.h>
#include <stdlib.h>

/* The number of an attribute that a formula names, which ends where its letters do. */
static void put_attribute(const struct onnx_op *o, struct str *s, const char **p)
{
	size_t length = strspn(*p, "abcdefghijklmnopqrstuvwxyz_");
	const char *name = arena_text(o->arena, *p, length);
	*p += length;
	const char *at = strstr(o->row->attributes, onnx_format(o, "%s:", name));
	double number = at && at[length + 1] == 'i' ? (double)onnx_int(o, name) : onnx_float(o, name);
	str_puts(s, number < 0 ? "(" : "");
	str_float(s, fmax(-0x1.fffffep127, fmin(0x1.fffffep127, number)));
	str_puts(s, number < 0 ? ")" : "");
}

const char *onnx_fill_in(const struct onnx_op *o, const char *text)
{
	struct str s = str_in(o->arena);
	while (*text) {
		size_t plain = strcspn(text, "$");
		str_add(&s, text, plain);
		text += plain;
		if (*text == '$')
			text++, put_attribute(o, &s, &text);
	}
	return str_text(&s);
}

/* Until version 6 the axes of the second argument began where an attribute says, or at the end. */
static void align_axes(const struct onnx_op *o, struct onnx_operand *b, int rank)
{
	struct onnx_shape shape = b->shape;
	int64_t axis = onnx_int(o, "axis");
	if (!onnx_has(o, "axis") || axis < 0 || axis + shape.rank >= rank)
		return;
	while (axis + shape.rank < rank)
		shape.dim[shape.rank++] = 1;
	*b = onnx_reshape(o, *b, &shape);
}

/* Keeps what was computed of i8, u8 or i16 as i32 in its type, modulo 2^8 or 2^16.  Once would do below 2^24,
 * where the quotient is exact. */
static struct onnx_operand wrap_narrow(const struct onnx_op *o, struct onnx_operand x)
{
	int bits = onnx_type_traits_of(x.type)->bits;
	if (!x.given || onnx_computed(x.type) != DTYPE_I32 || bits == 32)
		return x;
	long long modulus = 1ll << bits, shift = x.type == ONNX_UINT8 ? 0 : modulus / 2;
	const char *once = onnx_format(o, "a - %lld * cast(floor((cast(a, f32) + %lld) / %lld), i32)",
				       modulus, shift, modulus);
	return onnx_map(o, onnx_map(o, x, x.type, once), x.type, once);
}

bool onnx_write_formula(struct onnx_op *o)
{
	enum { MOST = 8 };
	struct onnx_operand *arg[MOST];
	if (o->ins < 1 || o->ins > MOST)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it has %d inputs, not 1 to %d", o->ins, MOST);
	struct onnx_shape shape = o->in[0].shape;
	if (o->ins == 2)
		align_axes(o, &o->in[1], shape.rank);
	for (int i = 0; i < o->ins; i++) {
		arg[i] = &o->in[i];
		if (!onnx_broadcast(o, &shape, &o->in[i].shape, &shape))
			return false;
	}
	enum onnx_type type = o->row->gives == ONNX_TRUTH ? ONNX_BOOL : o->in[o->ins - 1].type;
	o->out[0] = onnx_formula(o, type, &shape, arg, o->ins, onnx_fill_in(o, o->row->text));
	if (o->row->takes == ONNX_NUMBERS || o->row->takes == ONNX_INTEGERS)
		o->out[0] = wrap_narrow(o, o->out[0]);
	return true;
}

bool onnx_write_fold_pairs(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	for (int i = 1; i < o->ins && x.given; i++)
		x = onnx_two(o, x, o->in[i], x.type, o->row->text);
	o->out[0] = wrap_narrow(o, x);
	return x.given;
}

/* With the sign of the divisor, or by `fmod` with that of the dividend, which is the only one of floats. */
bool onnx_write_modulo(struct onnx_op *o)
{
	bool like_dividend = onnx_int(o, "fmod"), whole = onnx_computed(o->in[0].type) != DTYPE_F32;
	if (!whole && !like_dividend)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "set fmod to 1",
				      "floats have a remainder with the sign of the dividend alone");
	const char *text = !whole ? "fmod(a, b)" : like_dividend ? "remainder(a, b)" : "modulo(a, b)";
	o->out[0] = onnx_two(o, o->in[0], o->in[1], o->in[0].type, text);
	return o->out[0].given;
}

bool onnx_write_mean(struct onnx_op *o)
{
	if (!onnx_write_fold_pairs(o))
		return false;
	o->out[0] = onnx_map(o, o->out[0], o->out[0].type, onnx_format(o, "a / %d", o->ins));
	return true;
}

bool onnx_write_identity(struct onnx_op *o)
{
	o->out[0] = o->in[0];
	return true;
}

bool onnx_write_clip(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	if (onnx_given(o, 1))
		x = onnx_two(o, x, o->in[1], x.type, "maximum(a, b)");
	if (onnx_given(o, 2) && x.given)
		x = onnx_two(o, x, o->in[2], x.type, "minimum(a, b)");
	o->out[0] = x;
	return x.given;
}

bool onnx_write_gelu(struct onnx_op *o)
{
	bool approximate = strcmp(onnx_string(o, "approximate"), "tanh") == 0;
	o->out[0] = onnx_map(o, o->in[0], o->in[0].type, approximate ? "gelu_tanh(a)" : "gelu(a)");
	return true;
}

/* A slope for each channel, axis 1. */
bool onnx_write_channel_slopes(struct onnx_op *o)
{
	struct onnx_operand *slope = &o->in[1];
	struct onnx_shape shape = {o->in[0].shape.rank - 1, {1, 1, 1, 1, 1, 1, 1, 1}};
	if (slope->shape.rank == 1 && shape.rank > 0) {
		shape.dim[0] = slope->shape.dim[0];
		*slope = onnx_reshape(o, *slope, &shape);
	}
	return onnx_write_formula(o);
}

/* --- powers --- */

/* x^n for a whole n of at least 1, by squares. */
static struct onnx_operand multiply_out(const struct onnx_op *o, struct onnx_operand x, int n)
{
	struct onnx_operand product = {0};
	for (; n; n /= 2) {
		if (n % 2)
			product = product.given ? onnx_two(o, product, x, x.type, "a * b") : x;
		if (n > 1)
			x = onnx_map(o, x, x.type, "a * a");
	}
	return product;
}

/* The power c of |a| with its sign, that of an odd exponent b; a number below 0 has no other power. */
static const char *const signed_power =
    "where(b == 0, 1, where(a < 0, where(floor(b) == b, where(floor(b / 2) * 2 != b, -c, c), 0 / (a - a)), "
    "c))";

static struct onnx_operand general(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand n)
{
	enum onnx_type type = x.type;
	bool whole = onnx_computed(type) != DTYPE_F32;
	x = onnx_cast(o, x, whole ? ONNX_FLOAT : type);
	n = onnx_cast(o, n, ONNX_FLOAT);
	struct onnx_operand power = onnx_two(o, x, n, x.type, "exp(b * log(abs(a)))");
	if (!power.given)
		return power;
	x = onnx_formula(o, x.type, &power.shape, (struct onnx_operand *[]){&x, &n, &power}, 3,
			 whole ? onnx_format(o, "round(%s)", signed_power) : signed_power);
	return onnx_cast(o, x, type);
}

/* An exponent that is known, a whole number, 0.5 or a negative one of these, takes products and roots alone.
 */
bool onnx_write_power(struct onnx_op *o)
{
	enum { MOST = 16 };
	struct onnx_operand x = o->in[0];
	const struct onnx_tensor *t = o->in[1].constant;
	align_axes(o, &o->in[1], x.shape.rank);
	double n = t && t->elements == 1 && t->rank <= x.shape.rank ? onnx_number_at(t, 0) : 0;
	bool whole = onnx_computed(x.type) != DTYPE_F32;
	if (n == floor(n) && n >= 1 && n <= MOST)
		o->out[0] = multiply_out(o, x, (int)n);
	else if (fabs(n) == 0.5 && !whole)
		o->out[0] = onnx_map(o, x, x.type, n > 0 ? "sqrt(a)" : "1 / sqrt(a)");
	else
		o->out[0] = general(o, x, o->in[1]);
	return o->out[0].given;
}

/* Without training a mask keeps everything. */
bool onnx_write_dropout(struct onnx_op *o)
{
	bool training = onnx_given(o, 2) && !(o->in[2].constant && !onnx_integer_at(o->in[2].constant, 0));
	bool ratio = onnx_given(o, 1) && !(o->in[1].constant && onnx_number_at(o->in[1].constant, 0) == 0);
	if (training && ratio)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, "export the model for inference",
				      "training draws numbers at random");
	o->out[0] = o->in[0];
	if (o->outs > 1 && o->node->opset < 10)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "masks are bool from version 10 on");
	if (o->outs > 1)
		o->out[1] = onnx_map(o, o->in[0], ONNX_BOOL, "a == a or a != a");
	return true;
}

/* --- types --- */

/* A number beyond the type is wrapped, as C does. */
struct onnx_operand onnx_cast_to(const struct onnx_op *o, struct onnx_operand x, enum onnx_type type)
{
	if (onnx_type_traits_of(type)->dtype == DTYPES) {
		onnx_op_refuse(o, DIAG_ONNX_TYPE, "export the model in 32-bit types",
			       "there are no values of the type %s here", onnx_type_traits_of(type)->name);
		return (struct onnx_operand){0};
	}
	x = onnx_cast(o, x, type);
	return wrap_narrow(o, x);
}

bool onnx_write_cast(struct onnx_op *o)
{
	o->out[0] = onnx_cast_to(o, o->in[0], onnx_int(o, "to"));
	return o->out[0].given;
}

bool onnx_write_cast_like(struct onnx_op *o)
{
	o->out[0] = onnx_cast_to(o, o->in[0], o->in[1].type);
	return o->out[0].given;
}
