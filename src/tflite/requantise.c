/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tflite/requantise.h"

#include <math.h>

static const struct onnx_operand none;

/* --- types and scales --- */

static const struct onnx_value *input_of(const struct onnx_op *o, int i)
{
	return &o->graph->value[o->node->input[i]];
}

static const struct onnx_value *output_of(const struct onnx_op *o, int i)
{
	return &o->graph->value[o->node->output[i]];
}

const struct onnx_quantisation *lite_input_scales(const struct onnx_op *o, int i)
{
	return input_of(o, i)->quantisation;
}

const struct onnx_quantisation *lite_output_scales(const struct onnx_op *o, int i)
{
	return output_of(o, i)->quantisation;
}

struct lite_scale lite_input(const struct onnx_op *o, int i)
{
	const struct onnx_quantisation *q = lite_input_scales(o, i);
	return (struct lite_scale){q->scale[0], q->zero[0]};
}

struct lite_scale lite_output(const struct onnx_op *o, int i)
{
	const struct onnx_quantisation *q = lite_output_scales(o, i);
	return (struct lite_scale){q->scale[0], q->zero[0]};
}

static bool check_value(const struct onnx_op *o, const struct onnx_value *v, enum onnx_type type)
{
	if (v->type != type)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "'%.120s' is of type %s, and it computes in %s here", v->name,
				      onnx_type_traits_of(v->type)->name, onnx_type_traits_of(type)->name);
	if (type != ONNX_INT8 || (v->quantisation && v->quantisation->n == 1))
		return true;
	return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
			      "'%.120s' is of type int8 and has %zu scales, not one", v->name,
			      v->quantisation ? v->quantisation->n : (size_t)0);
}

enum lite_kind lite_find_input_kind(const struct onnx_op *o, unsigned inputs)
{
	for (int i = 0; i < 32; i++)
		if (inputs >> i & 1 && !onnx_given(o, i))
			return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL,
					      "input %d, which it needs, is left out", i),
			       LITE_REFUSED;
	if (!o->outs)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "it has no output"), LITE_REFUSED;
	const enum onnx_type type = input_of(o, 0)->type;
	if (type != ONNX_FLOAT && type != ONNX_INT8)
		return onnx_op_refuse(
			   o, DIAG_ONNX_TYPE,
			   "convert the model with full integer quantisation to int8, or keep it in f32",
			   "it takes float and int8 here, not %s%s", onnx_type_traits_of(type)->name,
			   type == ONNX_UINT8 ? ", which is of the legacy scheme of quantisation" : ""),
		       LITE_REFUSED;
	for (int i = 0; i < 32; i++)
		if (inputs >> i & 1 && !check_value(o, input_of(o, i), type))
			return LITE_REFUSED;
	return type == ONNX_FLOAT ? LITE_FLOATS : LITE_BYTES;
}

bool lite_check_output(const struct onnx_op *o, enum lite_kind kind)
{
	return check_value(o, output_of(o, 0), kind == LITE_BYTES ? ONNX_INT8 : ONNX_FLOAT);
}

enum lite_kind lite_find_kind(const struct onnx_op *o, unsigned inputs)
{
	enum lite_kind kind = lite_find_input_kind(o, inputs);
	return kind && lite_check_output(o, kind) ? kind : LITE_REFUSED;
}

bool lite_check_same_scale(const struct onnx_op *o, int i)
{
	struct lite_scale x = lite_input(o, i), y = lite_output(o, 0);
	return (x.scale == y.scale && x.zero == y.zero) ||
	       onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
			      "input %d has the scale %g and the zero point %lld, its result %g and %lld, "
			      "and it changes neither",
			      i, (double)x.scale, (long long)x.zero, (double)y.scale, (long long)y.zero);
}

struct onnx_operand lite_subtract_zero(const struct onnx_op *o, int i)
{
	struct onnx_operand x = o->in[i];
	int64_t zero = lite_input(o, i).zero;
	x.type = ONNX_INT32;
	return zero ? onnx_map(o, x, ONNX_INT32,
			       onnx_format(o, zero < 0 ? "a + %lld" : "a - %lld",
					   (long long)(zero < 0 ? -zero : zero)))
		    : x;
}

/* --- factors --- */

bool lite_find_factor(const struct onnx_op *o, double real, struct fixed_factor *f)
{
	if (!(real < 0x1p30))
		return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
				      "its scales disagree: its sums would be multiplied by %g", real);
	*f = fixed_of_real(real);
	return true;
}

static int64_t power_of_two(int exponent)
{
	return (int64_t)1 << exponent;
}

/* Quotients are rounded toward zero, and these are to be rounded down: so a multiple of the divisor is added
 * that leaves no negative number, and what it gives is taken off again. */

/* x / 2^shift, rounded to the nearest, halves away from zero; x is of 32 bits in i64, and 0 < shift < 32. */
static const char *print_division(const struct onnx_op *o, int shift)
{
	return onnx_format(o, "cast(quotient(a - cast(a < 0, i64) + %lld, %lld) - %lld, i32)",
			   (long long)(power_of_two(32) + power_of_two(shift - 1)),
			   (long long)power_of_two(shift), (long long)power_of_two(32 - shift));
}

struct onnx_operand lite_shift_integers(const struct onnx_op *o, struct onnx_operand x, int shift)
{
	return onnx_map(o, onnx_cast(o, x, ONNX_INT64), ONNX_INT32, print_division(o, shift));
}

static struct onnx_operand look_up_each(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand list,
					int least, enum onnx_type type)
{
	struct str s = str_in(o->arena);
	struct onnx_operand place = least ? onnx_map(o, x, ONNX_INT32, onnx_format(o, "a + %d", -least)) : x;
	str_puts(&s, "b[a");
	onnx_put_axes(o, &s, x.shape.rank);
	str_puts(&s, "]");
	return onnx_nest(o, type, &x.shape, (struct onnx_operand *[]){&place, &list}, 2, str_text(&s));
}

/* A model text has elements as computed places, and no value without axes. */
struct onnx_operand lite_look_up(const struct onnx_op *o, struct onnx_operand x, struct onnx_operand list,
				 int least, enum onnx_type type)
{
	static const struct onnx_shape scalar = {0}, single = {1, {1}};
	if (x.shape.rank)
		return look_up_each(o, x, list, least, type);
	return onnx_reshape(o, look_up_each(o, onnx_reshape(o, x, &single), list, least, type), &scalar);
}

static struct onnx_operand scale_by_one(const struct onnx_op *o, struct onnx_operand x,
					const struct fixed_factor *f, int left)
{
	int up = left + (f->shift > 0 ? f->shift : 0), down = f->shift < 0 ? -f->shift : 0;
	if (up > 30) {
		onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
			       "its scales disagree: its sums would be multiplied by 2^%d and more", up - 1);
		return none;
	}
	const char *multiply = onnx_format(
	    o, "quotient((cast(a, i64) + %lld) * %d * %lld + 1073741824, 2147483648) - %d",
	    (long long)power_of_two(31 - up), f->multiplier, (long long)power_of_two(up), f->multiplier);
	if (!down)
		return onnx_map(o, x, ONNX_INT32, onnx_format(o, "cast(%s, i32)", multiply));
	return onnx_map(o, onnx_map(o, x, ONNX_INT64, multiply), ONNX_INT32, print_division(o, down));
}

/* The numbers of the formulas of scale_by_each, along the last axis. */
enum { MULTIPLIER, OFFSET, TAKEN, POWER, HALF, NEGATIVE, LISTS };

/* The shift to the right is a product by 2^(31 - shift), of which the quotient by 2^31 is taken: so that all
 * divide by one number. */
static void set_factor(int64_t *const list[LISTS], size_t i, const struct fixed_factor *f, int left)
{
	int up = left + (f->shift > 0 ? f->shift : 0), down = f->shift < 0 ? -f->shift : 0;
	list[MULTIPLIER][i] = f->multiplier * power_of_two(up);
	list[OFFSET][i] = f->multiplier * power_of_two(31) + power_of_two(30);
	list[TAKEN][i] = f->multiplier;
	list[POWER][i] = power_of_two(31 - down);
	list[HALF][i] = (power_of_two(31) + (down ? power_of_two(down - 1) : 0)) * power_of_two(31 - down);
	list[NEGATIVE][i] = down ? power_of_two(31 - down) : 0;
}

static struct onnx_operand scale_by_each(const struct onnx_op *o, struct onnx_operand x,
					 const struct fixed_factor *f, size_t n, int left)
{
	const struct onnx_shape shape = {1, {(int64_t)n}};
	int64_t *list[LISTS];
	struct onnx_operand number[LISTS];
	for (int k = 0; k < LISTS; k++)
		list[k] = ARENA_ARRAY(o->arena, int64_t, n);
	for (size_t i = 0; i < n; i++)
		set_factor(list, i, &f[i], left);
	for (int k = 0; k < LISTS; k++)
		number[k] = onnx_integers(o, &shape, list[k]);
	struct onnx_operand *first[] = {&x, &number[MULTIPLIER], &number[OFFSET], &number[TAKEN]};
	struct onnx_operand y =
	    onnx_formula(o, ONNX_INT64, &x.shape, first, 4, "quotient(cast(a, i64) * b + c, 2147483648) - d");
	struct onnx_operand *second[] = {&y, &number[POWER], &number[HALF], &number[NEGATIVE]};
	return onnx_formula(o, ONNX_INT32, &x.shape, second, 4,
			    "cast(quotient(a * b + c - cast(a < 0, i64) * d, 2147483648) - b, i32)");
}

struct onnx_operand lite_scale_integers(const struct onnx_op *o, struct onnx_operand x,
					const struct fixed_factor *f, size_t n, int left)
{
	bool equal = true;
	for (size_t i = 1; i < n; i++)
		equal &= f[i].multiplier == f[0].multiplier && f[i].shift == f[0].shift;
	if (!x.given)
		return none;
	return equal ? scale_by_one(o, x, f, left) : scale_by_each(o, x, f, n, left);
}

/* --- activations: NONE, RELU, RELU_N1_TO_1, RELU6 --- */

static const struct activation {
	float least, most;
	const char *text;
} activations[] = {{-INFINITY, INFINITY, "a"},
		   {0, INFINITY, "maximum(a, 0)"},
		   {-1, 1, "minimum(maximum(a, -1), 1)"},
		   {0, 6, "minimum(maximum(a, 0), 6)"}};

static const struct activation *find_activation(const struct onnx_op *o, int64_t number)
{
	if (number >= 0 && number < (int64_t)(sizeof activations / sizeof *activations))
		return &activations[number];
	onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
		       "the activation %lld is none of NONE, RELU, RELU_N1_TO_1 and RELU6",
		       (long long)number);
	return NULL;
}

/* The nearest byte of a number, halves away from zero. */
static int64_t quantise_bound(struct lite_scale s, float x)
{
	float q = roundf(x / s.scale) + (float)s.zero;
	return q <= INT8_MIN ? INT8_MIN : q >= INT8_MAX ? INT8_MAX : (int64_t)q;
}

bool lite_find_range(const struct onnx_op *o, int64_t activation, int64_t *least, int64_t *most)
{
	const struct activation *a = find_activation(o, activation);
	if (a) {
		*least = quantise_bound(lite_output(o, 0), a->least);
		*most = quantise_bound(lite_output(o, 0), a->most);
	}
	return a != NULL;
}

struct onnx_operand lite_clamp(const struct onnx_op *o, struct onnx_operand x, int64_t zero, int64_t least,
			       int64_t most, enum onnx_type type)
{
	if (!x.given)
		return none;
	const char *sum =
	    !zero ? "a"
		  : onnx_format(o, zero < 0 ? "a - %lld" : "a + %lld", (long long)(zero < 0 ? -zero : zero));
	return onnx_map(
	    o, x, type,
	    onnx_format(o, "minimum(maximum(%s, %lld), %lld)", sum, (long long)least, (long long)most));
}

struct onnx_operand lite_activate(const struct onnx_op *o, struct onnx_operand x, int64_t activation)
{
	const struct activation *a = find_activation(o, activation);
	return !a || !x.given ? none : activation ? onnx_map(o, x, x.type, a->text) : x;
}
