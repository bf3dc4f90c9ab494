/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* LSTMs in integers: inputs and hidden states of 8 bits, states of cells and gates of 16, and sums of
 * products in i32.  The input's share of all steps is computed before the scan. */
#include "tflite/requantise.h"

#include <math.h>

/* Inputs, as the schema numbers them: weights for each gate, then what a file may leave out. */
enum {
	X,
	FROM_INPUT,
	FROM_STATE = 5,
	PEEPHOLE = 9,
	BIAS = 12,
	PROJECTION = 16,
	PROJECTION_BIAS,
	STATE,
	CELL,
	NORM
};
enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };
enum { HIDDEN_SCALE = 5, OUTPUTS }; /* outputs: the result, and five that carry scales */

static const struct onnx_operand none;

struct lstm {
	const struct onnx_op *o;
	int64_t steps, batch, inputs, cells, hidden; /* hidden: numbers of the state that is the result */
	bool coupled, projected;
	int cell_bits;		       /* of the state of cells, before the point */
	int64_t cell_clip, state_clip; /* 0 = there is none */
	struct fixed_factor from_input[GATES], from_state[GATES], to_hidden, projection;
	struct lite_scale state, between;		  /* of the state, and of what is projected */
	struct onnx_operand share[GATES];		  /* the input's: [steps, batch, cells] */
	struct onnx_operand logistic, tanh, tanh_of_cell; /* lists of 2^16 numbers */
};

static bool is_used(const struct lstm *l, int gate)
{
	return gate != INPUT_GATE || !l->coupled;
}

/* --- checks --- */

static bool check_type(const struct lstm *l, int input, enum onnx_type type, int64_t rows, int64_t columns)
{
	const struct onnx_op *o = l->o;
	if (!onnx_given(o, input))
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "input %d, which it needs, is left out",
				      input);
	const struct onnx_shape *s = &o->in[input].shape;
	if (o->in[input].type != type)
		return onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "input %d is of type %s, and in its form for integers of type %s",
				      input, onnx_type_traits_of(o->in[input].type)->name,
				      onnx_type_traits_of(type)->name);
	if (columns ? s->rank == 2 && s->dim[0] == rows && s->dim[1] == columns
		    : s->rank == 1 && s->dim[0] == rows)
		return true;
	return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
			      "input %d does not fit %lld inputs, %lld cells and %lld numbers of the state",
			      input, (long long)l->inputs, (long long)l->cells, (long long)l->hidden);
}

/* One scale, with a zero point of 0 unless it may be another. */
static bool check_scale(const struct lstm *l, int input, bool shifted)
{
	const struct onnx_quantisation *q = lite_input_scales(l->o, input);
	return (q && q->n == 1 && (shifted || !q->zero[0])) ||
	       onnx_op_refuse(l->o, DIAG_ONNX_SCALE, NULL, "input %d has not one scale%s", input,
			      shifted ? "" : " and the zero point 0");
}

static bool check_matrix(const struct lstm *l, int input, int64_t rows, int64_t columns)
{
	return check_type(l, input, ONNX_INT8, rows, columns) && check_scale(l, input, false);
}

static bool check_variable(const struct lstm *l, int input)
{
	const struct onnx_op *o = l->o;
	return o->graph->value[o->node->input[input]].variable ||
	       onnx_op_refuse(o, DIAG_ONNX_GRAPH, NULL,
			      "its input %d is a state, which the file must call a variable", input);
}

static bool check_gates(const struct lstm *l)
{
	for (int g = 0; g < GATES; g++) {
		if (!is_used(l, g))
			continue;
		if (!check_matrix(l, FROM_INPUT + g, l->cells, l->inputs) ||
		    !check_matrix(l, FROM_STATE + g, l->cells, l->hidden) ||
		    !check_type(l, BIAS + g, ONNX_INT32, l->cells, 0))
			return false;
	}
	if (l->projected && (!check_matrix(l, PROJECTION, l->hidden, l->cells) ||
			     (onnx_given(l->o, PROJECTION_BIAS) &&
			      !check_type(l, PROJECTION_BIAS, ONNX_INT32, l->hidden, 0))))
		return false;
	return check_type(l, STATE, ONNX_INT8, l->batch, l->hidden) &&
	       check_type(l, CELL, ONNX_INT16, l->batch, l->cells) && check_variable(l, STATE) &&
	       check_variable(l, CELL) && check_scale(l, STATE, true) && check_scale(l, CELL, false);
}

/* What is not here: connections from cells to gates, normalisation, other activations. */
static bool check_form(const struct onnx_op *o)
{
	static const struct {
		int input, n;
		const char *what;
	} extras[] = {{PEEPHOLE, 3, "connections from its cells to its gates"},
		      {NORM, 4, "layer normalisation"}};
	for (size_t e = 0; e < sizeof extras / sizeof *extras; e++)
		for (int i = 0; i < extras[e].n; i++)
			if (onnx_given(o, extras[e].input + i))
				return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL,
						      "it has %s, which are not supported", extras[e].what);
	if (onnx_int(o, "activation") != 4 || onnx_int(o, "diagonal_recurrent_tensors"))
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "its activation is not TANH (4), or its weights are diagonals");
	if (o->target->scanning)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "a step of a scan has no scans");
	if (o->node->outputs != OUTPUTS || !lite_output_scales(o, HIDDEN_SCALE) ||
	    lite_output_scales(o, HIDDEN_SCALE)->n != 1)
		return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
				      "it has not five intermediates, of which the last has one scale");
	return true;
}

/* --- sizes and scales --- */

static bool read_sizes(struct lstm *l)
{
	const struct onnx_op *o = l->o;
	const struct onnx_shape *x = &o->in[X].shape, *w = &o->in[FROM_INPUT + FORGET_GATE].shape,
				*u = &o->in[FROM_STATE + FORGET_GATE].shape;
	bool time_major = onnx_int(o, "time_major");
	if (x->rank != 3 || w->rank != 2 || u->rank != 2)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its input has %d axes, not three, or its weights are no matrices",
				      x->rank);
	l->steps = x->dim[!time_major], l->batch = x->dim[time_major], l->inputs = x->dim[2];
	l->cells = w->dim[0], l->hidden = u->dim[1];
	l->coupled = !onnx_given(o, FROM_INPUT + INPUT_GATE), l->projected = onnx_given(o, PROJECTION);
	return l->projected || l->hidden == l->cells ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
			      "it has %lld cells, %lld numbers of the state, and no projection",
			      (long long)l->cells, (long long)l->hidden);
}

/* Gates are of scale 2^-12, and what they become of 2^-15. */
static bool find_factors(struct lstm *l)
{
	const struct onnx_op *o = l->o;
	const float gate = 0x1p-12f, x = lite_input(o, X).scale;
	for (int g = 0; g < GATES; g++) {
		float u = is_used(l, g) ? lite_input(o, FROM_INPUT + g).scale * x / gate : 1;
		float v = is_used(l, g) ? lite_input(o, FROM_STATE + g).scale * l->state.scale / gate : 1;
		if (!lite_find_factor(o, (double)u, &l->from_input[g]) ||
		    !lite_find_factor(o, (double)v, &l->from_state[g]))
			return false;
	}
	float projection =
	    l->projected ? lite_input(o, PROJECTION).scale * l->between.scale / l->state.scale : 1;
	return lite_find_factor(o, (double)(float)(0x1p-15 / (double)l->between.scale * 0x1p-15),
				&l->to_hidden) &&
	       lite_find_factor(o, (double)projection, &l->projection);
}

/* The scale of cells is a power of two. */
static bool find_cell_bits(struct lstm *l)
{
	float scale = lite_input(l->o, CELL).scale;
	int exponent;
	if (frexpf(scale, &exponent) == 0.5f && exponent >= -14 && exponent <= -8) {
		l->cell_bits = 15 + exponent - 1;
		return l->cell_bits >= 0 && l->cell_bits <= 6;
	}
	return onnx_op_refuse(l->o, DIAG_ONNX_SCALE, NULL,
			      "its cells have the scale %g, which is no power of two from 2^-15 to 2^-9",
			      (double)scale);
}

static int64_t find_clip(const struct onnx_op *o, const char *name, float scale, int64_t most)
{
	float clip = (float)onnx_float(o, name) / scale;
	return !(clip > 0) ? 0 : clip >= (float)most ? most : (int64_t)clip;
}

static bool read_scales(struct lstm *l)
{
	const struct onnx_op *o = l->o;
	l->state = lite_input(o, STATE);
	l->between = lite_output(o, HIDDEN_SCALE);
	struct lite_scale y = lite_output(o, 0);
	if (y.scale != l->state.scale || y.zero != l->state.zero)
		return onnx_op_refuse(o, DIAG_ONNX_SCALE, NULL,
				      "its scales disagree: its result has %g and its state %g",
				      (double)y.scale, (double)l->state.scale);
	if (!find_cell_bits(l))
		return false;
	l->cell_clip = find_clip(o, "cell_clip", lite_input(o, CELL).scale, INT16_MAX);
	l->state_clip = find_clip(o, "proj_clip", l->state.scale, INT8_MAX);
	return find_factors(l);
}

/* --- values --- */

static struct onnx_operand list_numbers(const struct onnx_op *o, int16_t (*function)(int16_t, int),
					int integer_bits)
{
	struct onnx_tensor *t = onnx_new_tensor(o, ONNX_INT16, &(struct onnx_shape){1, {1 << 16}});
	for (int x = INT16_MIN; x <= INT16_MAX; x++)
		((int16_t *)t->data)[x - INT16_MIN] = function((int16_t)x, integer_bits);
	return onnx_constant(o, t);
}

static struct onnx_operand look_up_gate(const struct lstm *l, struct onnx_operand list, struct onnx_operand x)
{
	return lite_look_up(l->o, x, list, INT16_MIN, ONNX_INT32);
}

static struct onnx_operand clamp_value(const struct lstm *l, struct onnx_operand x, int64_t least,
				       int64_t most)
{
	return lite_clamp(l->o, x, 0, least, most, ONNX_INT32);
}

static struct onnx_operand subtract_zero(const struct lstm *l, struct onnx_operand x, int64_t zero)
{
	x.type = ONNX_INT32;
	return zero ? onnx_map(l->o, x, ONNX_INT32,
			       onnx_format(l->o, zero < 0 ? "a + %lld" : "a - %lld",
					   (long long)(zero < 0 ? -zero : zero)))
		    : x;
}

/* Rows times a matrix, with a bias where there is one, scaled. */
static struct onnx_operand multiply_weights(const struct lstm *l, struct onnx_operand x, int weights,
					    int bias, const struct fixed_factor *f)
{
	const struct onnx_op *o = l->o;
	struct onnx_shape shape = x.shape;
	int last = x.shape.rank - 1;
	struct str s = str_in(o->arena);
	shape.dim[last] = o->in[weights].shape.dim[0];
	str_puts(&s, "sum(a[");
	for (int d = 0; d < last; d++)
		str_printf(&s, "@%d, ", d);
	str_printf(&s, "#0] * b[@%d, #0] for #0 in %lld)", last, (long long)x.shape.dim[last]);
	struct onnx_operand sum =
	    onnx_nest(o, ONNX_INT32, &shape, (struct onnx_operand *[]){&x, &o->in[weights]}, 2,
		      onnx_name_indices(o, str_text(&s)));
	if (bias && onnx_given(o, bias))
		sum = onnx_two(o, sum, o->in[bias], ONNX_INT32, "a + b");
	return lite_scale_integers(o, sum, f, 1, 0);
}

static void share_input(struct lstm *l)
{
	const struct onnx_op *o = l->o;
	struct onnx_operand x = lite_subtract_zero(o, X);
	if (!onnx_int(o, "time_major"))
		x = onnx_transpose(o, x, (int[]){1, 0, 2});
	for (int g = 0; g < GATES; g++)
		if (is_used(l, g))
			l->share[g] = clamp_value(
			    l, multiply_weights(l, x, FROM_INPUT + g, BIAS + g, &l->from_input[g]), INT16_MIN,
			    INT16_MAX);
	l->logistic = list_numbers(o, fixed_logistic16, 3);
	l->tanh = list_numbers(o, fixed_tanh16, 3);
	l->tanh_of_cell = list_numbers(o, fixed_tanh16, l->cell_bits);
}

/* --- a step --- */

/* The first step has a state of zeros before it, which gives nothing. */
static struct onnx_operand write_gate(const struct lstm *l, const struct onnx_scan *scan,
				      struct onnx_operand state, int gate)
{
	struct onnx_operand x = onnx_at_step(scan, l->share[gate]);
	if (state.given)
		x = clamp_value(
		    l,
		    onnx_two(l->o, multiply_weights(l, state, FROM_STATE + gate, 0, &l->from_state[gate]), x,
			     ONNX_INT32, "a + b"),
		    INT16_MIN, INT16_MAX);
	return look_up_gate(l, gate == CELL_GATE ? l->tanh : l->logistic, x);
}

/* A product of numbers with 15 bits behind the point, or of such a one with a state of cells. */
static struct onnx_operand multiply_gates(const struct lstm *l, struct onnx_operand a, struct onnx_operand b,
					  int shift)
{
	return lite_shift_integers(l->o, onnx_two(l->o, a, b, ONNX_INT32, "a * b"), shift);
}

static struct onnx_operand write_cell(const struct lstm *l, const struct onnx_scan *scan,
				      struct onnx_operand state, struct onnx_operand cell)
{
	const struct onnx_op *o = l->o;
	struct onnx_operand forget = write_gate(l, scan, state, FORGET_GATE);
	struct onnx_operand input = l->coupled ? onnx_map(o, forget, ONNX_INT32, "32767 - a")
					       : write_gate(l, scan, state, INPUT_GATE);
	struct onnx_operand next =
	    multiply_gates(l, input, write_gate(l, scan, state, CELL_GATE), 15 + l->cell_bits);
	if (cell.given)
		next = clamp_value(
		    l, onnx_two(o, multiply_gates(l, forget, cell, 15), next, ONNX_INT32, "a + b"), INT16_MIN,
		    INT16_MAX);
	return l->cell_clip ? clamp_value(l, next, -l->cell_clip, l->cell_clip) : next;
}

static struct onnx_operand write_state(const struct lstm *l, struct onnx_operand output,
				       struct onnx_operand cell)
{
	const struct onnx_op *o = l->o;
	struct onnx_operand hidden =
	    onnx_two(o, output, look_up_gate(l, l->tanh_of_cell, cell), ONNX_INT32, "a * b");
	hidden = lite_clamp(o, lite_scale_integers(o, hidden, &l->to_hidden, 1, 0), l->between.zero, INT8_MIN,
			    INT8_MAX, ONNX_INT32);
	if (!l->projected)
		return hidden;
	struct onnx_operand y = multiply_weights(l, subtract_zero(l, hidden, l->between.zero), PROJECTION,
						 PROJECTION_BIAS, &l->projection);
	y = lite_clamp(o, y, l->state.zero, INT8_MIN, INT8_MAX, ONNX_INT32);
	return l->state_clip ? clamp_value(l, y, -l->state_clip, l->state_clip) : y;
}

static struct onnx_operand write_scan(const struct lstm *l)
{
	struct onnx_scan scan = {.o = l->o, .steps = l->steps};
	const struct onnx_operand h = {.type = ONNX_INT32, .shape = {2, {l->batch, l->hidden}}},
				  c = {.type = ONNX_INT32, .shape = {2, {l->batch, l->cells}}};
	onnx_begin_scan(&scan);
	struct onnx_carried states = onnx_declare_carried(&scan, "h", &h),
			    cells = onnx_declare_carried(&scan, "c", &c);
	for (int first = 1; first >= 0; first--) {
		onnx_begin_step(&scan, first);
		struct onnx_operand state =
		    first ? none : subtract_zero(l, onnx_carried_before(&scan, &states), l->state.zero);
		struct onnx_operand cell =
		    write_cell(l, &scan, state, first ? none : onnx_carried_before(&scan, &cells));
		onnx_carry(&scan, &cells, cell);
		onnx_carry(&scan, &states, write_state(l, write_gate(l, &scan, state, OUTPUT_GATE), cell));
	}
	onnx_end_scan(&scan);
	return onnx_carried_all(&scan, &states);
}

bool onnx_write_tflite_lstm(struct onnx_op *o)
{
	struct lstm l = {.o = o};
	enum lite_kind kind = lite_find_kind(o, 1);
	if (kind != LITE_BYTES)
		return kind &&
		       onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL,
				      "it computes in f32, and is imported in its form for integers alone");
	if (!check_form(o) || !read_sizes(&l) || !check_gates(&l) || !read_scales(&l))
		return false;
	share_input(&l);
	struct onnx_operand y = write_scan(&l);
	if (!onnx_int(o, "time_major"))
		y = onnx_transpose(o, y, (int[]){1, 0, 2});
	y.type = ONNX_INT8;
	o->out[0] = y;
	return y.given;
}
