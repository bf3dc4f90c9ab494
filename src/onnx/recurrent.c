/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN as scans: the input's share of all steps is one product before the scan, and each step
 * adds the product with the state before it. */
#include "onnx/operators.h"

#include <strings.h>

enum kind { LSTM, GRU, RNN };

static const struct cell {
	int gates, activations;
	const char *functions[3]; /* the defaults */
} cells[] = {
    [LSTM] = {4, 3, {"Sigmoid", "Tanh", "Tanh"}},
    [GRU] = {3, 2, {"Sigmoid", "Tanh"}},
    [RNN] = {1, 1, {"Tanh"}},
};

/* A direction while it is written.  States and gates are [batch, hidden]. */
struct recurrence {
	const struct onnx_op *o;
	enum kind kind;
	int direction;
	int64_t steps, batch, hidden, inputs;
	struct onnx_operand x; /* [steps, batch, gates * hidden]: the input's share, with biases */
	struct onnx_operand R, bias,
	    peephole; /* [hidden, gates * hidden]; [gates * hidden] of the recurrence; [3 * hidden] */
	struct onnx_operand h, c;	     /* of the step before */
	struct onnx_operand lengths, places; /* [batch, 1]; the number of each step, [steps] */
	const char *function[3];
	struct onnx_operand weight[8]; /* by input: that of the only direction, where it is a constant */
};

/* --- activations --- */

static const struct activation {
	const char *name, *text; /* A and B stand for alpha and beta */
	double alpha, beta;
} activations[] = {
    {"Relu", "maximum(a, 0)", 0, 0},
    {"Tanh", "tanh(a)", 0, 0},
    {"Sigmoid", "sigmoid(a)", 0, 0},
    {"Affine", "A * a + B", 1, 0},
    {"LeakyRelu", "where(a < 0, A * a, a)", 0.01, 0},
    {"ThresholdedRelu", "where(a > A, a, 0)", 1, 0},
    {"ScaledTanh", "A * tanh(B * a)", 1, 1},
    {"HardSigmoid", "maximum(0, minimum(1, A * a + B))", 0.2, 0.5},
    {"Elu", "where(a < 0, A * (exp(a) - 1), a)", 1, 0},
    {"Softsign", "a / (1 + abs(a))", 0, 0},
    {"Softplus", "softplus(a)", 0, 0},
};

static const struct activation *find_activation(const struct onnx_op *o, struct onnx_text name)
{
	for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
		if (strlen(activations[i].name) == name.length &&
		    strncasecmp(activations[i].name, name.text, name.length) == 0)
			return &activations[i];
	onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "there is no activation '%.60s'", name.text);
	return NULL;
}

static void put_number(struct str *s, double number)
{
	str_puts(s, number < 0 ? "(" : "");
	str_float(s, (float)number);
	str_puts(s, number < 0 ? ")" : "");
}

/* The text of an activation, with the numbers that the node gives to it. */
static bool read_activations(struct recurrence *r)
{
	const struct onnx_op *o = r->o;
	const struct onnx_attribute *a = onnx_attribute(o, "activations"),
				    *alphas = onnx_attribute(o, "activation_alpha"),
				    *betas = onnx_attribute(o, "activation_beta");
	int n = cells[r->kind].activations;
	for (int i = 0; i < n; i++) {
		size_t at = (size_t)(r->direction * n + i);
		struct onnx_text name = {cells[r->kind].functions[i], strlen(cells[r->kind].functions[i])};
		const struct activation *f = find_activation(o, a && at < a->n ? a->strings[at] : name);
		if (!f)
			return false;
		struct str s = str_in(o->arena);
		for (const char *p = f->text; *p; p++)
			if (*p == 'A')
				put_number(&s, alphas && at < alphas->n ? alphas->floats[at] : f->alpha);
			else if (*p == 'B')
				put_number(&s, betas && at < betas->n ? betas->floats[at] : f->beta);
			else
				str_add(&s, p, 1);
		r->function[i] = str_text(&s);
	}
	return true;
}

static struct onnx_operand activate(const struct recurrence *r, int which, struct onnx_operand x)
{
	double clip = onnx_float(r->o, "clip");
	struct str s = str_in(r->o->arena);
	str_puts(&s, "maximum(-");
	put_number(&s, clip);
	str_puts(&s, ", minimum(");
	put_number(&s, clip);
	str_puts(&s, ", a))");
	if (onnx_has(r->o, "clip"))
		x = onnx_map(r->o, x, x.type, str_text(&s));
	return onnx_map(r->o, x, x.type, r->function[which]);
}

/* --- arguments --- */

static struct onnx_operand add(const struct onnx_op *o, struct onnx_operand a, struct onnx_operand b)
{
	return a.given && b.given ? onnx_two(o, a, b, a.type, "a + b") : a.given ? a : b;
}

static struct onnx_operand multiply_values(const struct onnx_op *o, struct onnx_operand a, struct onnx_operand b)
{
	return onnx_two(o, a, b, a.type, "a * b");
}

static struct onnx_operand product(const struct onnx_op *o, struct onnx_operand a, struct onnx_operand b)
{
	struct onnx_shape shape = a.shape;
	shape.dim[shape.rank - 1] = b.shape.dim[b.shape.rank - 1];
	return onnx_formula(o, a.type, &shape, (struct onnx_operand *[]){&a, &b}, 2, "a @ b");
}

/* An initial state of a direction, [batch, hidden]; zeros if it is not given. */
static struct onnx_operand initial(const struct recurrence *r, int input)
{
	const struct onnx_op *o = r->o;
	bool batch_first = onnx_int(o, "layout");
	struct onnx_shape shape = {2, {r->batch, r->hidden}};
	if (onnx_given(o, input))
		return onnx_select(o, o->in[input], batch_first, r->direction);
	return onnx_expand(o, onnx_number(o, o->in[0].type, 0), &shape);
}

static bool check_shapes(const struct recurrence *r)
{
	const struct onnx_op *o = r->o;
	const struct onnx_shape *w = &o->in[1].shape, *u = &o->in[2].shape;
	int64_t rows = cells[r->kind].gates * r->hidden;
	return (o->in[0].shape.rank == 3 && w->rank == 3 && u->rank == 3 && w->dim[1] == rows &&
		w->dim[2] == r->inputs && u->dim[1] == rows && u->dim[2] == r->hidden &&
		w->dim[0] == u->dim[0]) ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
			      "the weights do not fit the input and %lld hidden units", (long long)r->hidden);
}

/* The part of a weight that is of the direction.  A constant is reshaped once, so that it is one parameter.
 */
static struct onnx_operand weight_of(struct recurrence *r, int input)
{
	const struct onnx_operand *x = &r->o->in[input];
	struct onnx_operand *once = &r->weight[input];
	if (!x->constant || x->shape.dim[0] > 1)
		return onnx_select(r->o, *x, 0, r->direction);
	if (!once->given)
		*once = onnx_select(r->o, *x, 0, 0);
	return *once;
}

/* What depends on the weights of the recurrence is written in the bodies of the steps, which need no copy of
 * it. */
static void read_recurrence(struct recurrence *r)
{
	const struct onnx_op *o = r->o;
	int64_t rows = cells[r->kind].gates * r->hidden;
	r->R = onnx_transpose(o, weight_of(r, 2), (int[]){1, 0});
	if (onnx_given(o, 3))
		r->bias = onnx_slice(o, weight_of(r, 3), 0, rows, 2 * rows);
	if (r->kind == LSTM && onnx_given(o, 7))
		r->peephole = weight_of(r, 7);
}

static bool read_direction(struct recurrence *r)
{
	const struct onnx_op *o = r->o;
	struct onnx_operand x = o->in[0];
	bool batch_first = onnx_int(o, "layout");
	if (batch_first)
		x = onnx_transpose(o, x, (int[]){1, 0, 2});
	r->steps = x.shape.dim[0], r->batch = x.shape.dim[1], r->inputs = x.shape.dim[2];
	r->hidden = o->in[2].shape.rank == 3 ? o->in[2].shape.dim[2] : 0;
	if (!check_shapes(r) || !read_activations(r))
		return false;
	int64_t rows = cells[r->kind].gates * r->hidden;
	r->x = product(o, x, onnx_transpose(o, weight_of(r, 1), (int[]){1, 0}));
	if (onnx_given(o, 3))
		r->x = add(o, r->x, onnx_slice(o, weight_of(r, 3), 0, 0, rows));
	if (onnx_given(o, 4)) {
		r->lengths = onnx_reshape(o, o->in[4], &(struct onnx_shape){2, {r->batch, 1}});
		r->places = onnx_count(o, o->in[4].type, r->steps);
	}
	return true;
}

/* --- steps --- */

/* The part of a gate: of columns, [batch, hidden], or of a vector. */
static struct onnx_operand gate_of(const struct recurrence *r, struct onnx_operand x, int gate)
{
	return onnx_slice(r->o, x, x.shape.rank - 1, gate * r->hidden, (gate + 1) * r->hidden);
}

/* Adds a state that looks at a gate. */
static struct onnx_operand look(const struct recurrence *r, struct onnx_operand gate,
				struct onnx_operand state, int which)
{
	return r->peephole.given ? add(r->o, gate, multiply_values(r->o, state, gate_of(r, r->peephole, which))) : gate;
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void step_lstm(struct recurrence *r, struct onnx_operand x)
{
	const struct onnx_op *o = r->o;
	struct onnx_operand sum = add(o, add(o, x, product(o, r->h, r->R)), r->bias);
	struct onnx_operand i = activate(r, 0, look(r, gate_of(r, sum, 0), r->c, 0)), f;
	if (onnx_int(o, "input_forget"))
		f = onnx_map(o, i, i.type, "1 - a");
	else
		f = activate(r, 0, look(r, gate_of(r, sum, 2), r->c, 2));
	struct onnx_operand candidate = activate(r, 1, gate_of(r, sum, 3));
	r->c = add(o, multiply_values(o, f, r->c), multiply_values(o, i, candidate));
	struct onnx_operand out = activate(r, 0, look(r, gate_of(r, sum, 1), r->c, 1));
	r->h = multiply_values(o, out, onnx_map(o, r->c, r->c.type, r->function[2]));
}

/* Gates z, r, h. */
static void step_gru(struct recurrence *r, struct onnx_operand x)
{
	const struct onnx_op *o = r->o;
	struct onnx_operand own = add(o, product(o, r->h, r->R), r->bias), hidden = gate_of(r, x, 2);
	struct onnx_operand z = activate(r, 0, add(o, gate_of(r, x, 0), gate_of(r, own, 0)));
	struct onnx_operand reset = activate(r, 0, add(o, gate_of(r, x, 1), gate_of(r, own, 1)));
	if (onnx_int(o, "linear_before_reset"))
		hidden = add(o, hidden, multiply_values(o, reset, gate_of(r, own, 2)));
	else {
		hidden = add(o, hidden, product(o, multiply_values(o, reset, r->h), gate_of(r, r->R, 2)));
		hidden = r->bias.given ? add(o, hidden, gate_of(r, r->bias, 2)) : hidden;
	}
	hidden = activate(r, 1, hidden);
	r->h = add(o, multiply_values(o, onnx_map(o, z, z.type, "1 - a"), hidden), multiply_values(o, z, r->h));
}

static void step_rnn(struct recurrence *r, struct onnx_operand x)
{
	const struct onnx_op *o = r->o;
	r->h = activate(r, 0, add(o, add(o, x, product(o, r->h, r->R)), r->bias));
}

/* Beyond the end of its sequence an entry of the batch keeps its state; its output is 0. */
static struct onnx_operand select_within(const struct recurrence *r, struct onnx_operand place,
					 struct onnx_operand x, struct onnx_operand otherwise)
{
	struct onnx_operand lengths = r->lengths;
	return onnx_formula(r->o, x.type, &x.shape,
			    (struct onnx_operand *[]){&x, &otherwise, &lengths, &place}, 4,
			    "where(c > d, a, b)");
}

/* What the steps of a direction carry: outputs apart from states where some are 0. */
struct carried {
	struct onnx_carried h, c, y;
};

static void write_step(struct recurrence *r, const struct onnx_scan *scan, const struct carried *carried)
{
	static void (*const step_of[])(struct recurrence *, struct onnx_operand) = {step_lstm, step_gru,
										    step_rnn};
	const struct onnx_op *o = r->o;
	r->h = scan->first ? initial(r, 5) : onnx_carried_before(scan, &carried->h);
	if (r->kind == LSTM)
		r->c = scan->first ? initial(r, 6) : onnx_carried_before(scan, &carried->c);
	struct onnx_operand h = r->h, c = r->c;
	read_recurrence(r);
	step_of[r->kind](r, onnx_at_step(scan, r->x));
	if (r->lengths.given) {
		struct onnx_operand place = onnx_at_step(scan, r->places), y;
		y = select_within(r, place, r->h, onnx_number(o, o->in[0].type, 0));
		r->h = select_within(r, place, r->h, h);
		r->c = r->kind == LSTM ? select_within(r, place, r->c, c) : r->c;
		onnx_carry(scan, &carried->y, y);
	}
	onnx_carry(scan, &carried->h, r->h);
	if (r->kind == LSTM)
		onnx_carry(scan, &carried->c, r->c);
}

/* The state behind the last step that runs, [1, batch, hidden]. */
static struct onnx_operand last_of(const struct recurrence *r, const struct onnx_scan *scan,
				   const struct onnx_carried *carried)
{
	struct onnx_operand all = onnx_carried_all(scan, carried);
	return onnx_slice(r->o, all, 0, scan->down ? 0 : r->steps - 1, scan->down ? 1 : r->steps);
}

/* Writes a direction: its outputs by step, [steps, 1, batch, hidden], and its last states. */
static void run_direction(struct recurrence *r, bool down, struct onnx_operand *y, struct onnx_operand *h,
			  struct onnx_operand *c)
{
	struct onnx_scan scan = {.o = r->o, .steps = r->steps, .down = down};
	struct onnx_operand state = {.type = r->x.type, .shape = {2, {r->batch, r->hidden}}};
	struct carried carried;
	onnx_begin_scan(&scan);
	carried.h = onnx_declare_carried(&scan, "h", &state);
	if (r->kind == LSTM)
		carried.c = onnx_declare_carried(&scan, "c", &state);
	carried.y = r->lengths.given ? onnx_declare_carried(&scan, "y", &state) : carried.h;
	for (int first = 1; first >= 0; first--) {
		onnx_begin_step(&scan, first);
		write_step(r, &scan, &carried);
	}
	onnx_end_scan(&scan);
	*y = onnx_insert_axis(r->o, onnx_carried_all(&scan, &carried.y), 1);
	*h = last_of(r, &scan, &carried.h);
	*c = r->kind == LSTM ? last_of(r, &scan, &carried.c) : *h;
}

/* --- results --- */

/* Joins what directions give, along an axis of them, and moves the batch to the front where the node says so.
 */
static struct onnx_operand join(const struct onnx_op *o, struct onnx_operand *part, int directions, int axis,
				int *order)
{
	struct onnx_operand all = onnx_concat(o, part, directions, axis);
	return onnx_int(o, "layout") ? onnx_transpose(o, all, order) : all;
}

static bool write_recurrence(struct onnx_op *o, enum kind kind)
{
	const char *direction = onnx_string(o, "direction");
	int directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
	struct onnx_operand y[2], h[2], c[2];
	if (o->target->scanning)
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "a step of a scan has no scans");
	for (int d = 0; d < directions; d++) {
		struct recurrence r = {.o = o, .kind = kind, .direction = d};
		if (!read_direction(&r))
			return false;
		run_direction(&r, d || strcmp(direction, "reverse") == 0, &y[d], &h[d], &c[d]);
	}
	o->out[0] = join(o, y, directions, 1, (int[]){2, 0, 1, 3});
	if (o->outs > 1)
		o->out[1] = join(o, h, directions, 0, (int[]){1, 0, 2});
	if (o->outs > 2)
		o->out[2] = join(o, c, directions, 0, (int[]){1, 0, 2});
	return true;
}

bool onnx_write_lstm(struct onnx_op *o)
{
	return write_recurrence(o, LSTM);
}

bool onnx_write_gru(struct onnx_op *o)
{
	return write_recurrence(o, GRU);
}

bool onnx_write_rnn(struct onnx_op *o)
{
	return write_recurrence(o, RNN);
}
