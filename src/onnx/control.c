/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan, whose graphs are written in place: a loop's as the steps of a scan, or, where that cannot be,
 * once for each of its iterations, the number of which must be known. */
#include "onnx/iterate.h"

/* The graph of an attribute with at least so many inputs and outputs.  NULL after a diagnostic. */
static const struct onnx_graph *find_graph(const struct onnx_op *o, const char *name, size_t inputs, size_t outputs)
{
	const struct onnx_attribute *a = onnx_attribute(o, name);
	if (a && a->graph->inputs >= inputs && a->graph->outputs >= outputs)
		return a->graph;
	onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
		       a ? "the graph '%s' has fewer than %zu inputs or %zu outputs"
			 : "the attribute '%s' is missing, a graph of %zu inputs and %zu outputs",
		       name, inputs, outputs);
	return NULL;
}

static bool check_type(const struct onnx_op *o, const struct onnx_operand *x, enum onnx_type type,
		       const char *decides)
{
	return x->type == type ||
	       onnx_op_refuse(o, DIAG_ONNX_TYPE, NULL, "%s is of type %s, not %s", decides,
			      onnx_type_traits_of(x->type)->name, onnx_type_traits_of(type)->name);
}

/* A single element of a type, known; false after a diagnostic that says what it decides. */
static bool find_known(const struct onnx_op *o, const struct onnx_operand *x, enum onnx_type type,
		       const char *decides, int64_t *value)
{
	static const char hint[] = "give it when the graph is read, as the constant of an input (--constant)";
	if (!check_type(o, x, type, decides))
		return false;
	if (!x->constant)
		return onnx_op_refuse(o, DIAG_ONNX_CONSTANT, hint, "%s is computed when the model runs", decides);
	if (x->constant->elements != 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "%s is not a single element", decides);
	*value = onnx_integer_at(x->constant, 0);
	return true;
}

/* --- If --- */

/* Both branches, and of each output the one that the condition selects. */
static bool write_branches(struct onnx_op *o, const struct onnx_graph *then, const struct onnx_graph *otherwise)
{
	struct onnx_operand *a = ARENA_ARRAY(o->arena, struct onnx_operand, then->outputs + 1),
			    *b = ARENA_ARRAY(o->arena, struct onnx_operand, otherwise->outputs + 1);
	if (!check_type(o, &o->in[0], ONNX_BOOL, "its condition"))
		return false;
	if (onnx_elements(&o->in[0].shape) != 1)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its condition is not a single element");
	struct onnx_operand condition = onnx_reshape(o, o->in[0], &(struct onnx_shape){0});
	if (!onnx_write_graph(o, then, NULL, 0, a) || !onnx_write_graph(o, otherwise, NULL, 0, b))
		return false;
	for (int i = 0; i < o->outs; i++) {
		if (a[i].type != b[i].type || !onnx_same_shape(&a[i].shape, &b[i].shape))
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
					      "output %d differs in type or shape between the branches, and the "
					      "condition is computed when the model runs",
					      i);
		o->out[i] = onnx_formula(o, a[i].type, &a[i].shape,
					 (struct onnx_operand *[]){&condition, &a[i], &b[i]}, 3, "where(a, b, c)");
	}
	return true;
}

bool onnx_write_if(struct onnx_op *o)
{
	const struct onnx_graph *then = find_graph(o, "then_branch", 0, o->outs),
				*otherwise = then ? find_graph(o, "else_branch", 0, o->outs) : NULL;
	int64_t holds;
	if (!otherwise || !onnx_given(o, 0))
		return false;
	if (!o->in[0].constant)
		return write_branches(o, then, otherwise);
	const struct onnx_graph *branch = NULL;
	if (find_known(o, &o->in[0], ONNX_BOOL, "its condition", &holds))
		branch = holds ? then : otherwise;
	struct onnx_operand *out = branch ? ARENA_ARRAY(o->arena, struct onnx_operand, branch->outputs + 1) : NULL;
	if (!out || !onnx_write_graph(o, branch, NULL, 0, out))
		return false;
	memcpy(o->out, out, sizeof *out * o->outs);
	return true;
}

/* --- iterations --- */

/* A body that is written again and again.  Its inputs are `first` values of the operator's own, then states,
 * then elements of scanned inputs; its outputs `lead` such values, states, and elements of scanned outputs. */
struct iteration {
	struct onnx_op *o;
	const struct onnx_graph *body;
	int first, lead, states, scanned;
	struct onnx_operand *in, *out; /* of the body */
	VEC(struct onnx_operand) made; /* scanned outputs: all of an iteration, then those of the next */
	int64_t n;		       /* iterations that were written */
};

static bool begin_iterations(struct iteration *t)
{
	t->in = ARENA_ARRAY(t->o->arena, struct onnx_operand, t->body->inputs + 1);
	t->out = ARENA_ARRAY(t->o->arena, struct onnx_operand, t->body->outputs + 1);
	t->scanned = (int)t->body->outputs - t->lead - t->states;
	return (t->scanned >= 0 && t->o->outs <= t->states + t->scanned) ||
	       onnx_op_refuse(t->o, DIAG_ONNX_GRAPH, NULL, "its graph has %zu outputs, too few for the operator's",
				    t->body->outputs);
}

/* Writes the body with the inputs that are set; its states become the next one's. */
static bool write_iteration(struct iteration *t)
{
	if (!onnx_write_graph(t->o, t->body, t->in, (int)t->body->inputs, t->out))
		return false;
	for (int i = 0; i < t->states; i++)
		t->in[t->first + i] = t->out[t->lead + i];
	for (int i = 0; i < t->scanned; i++)
		vec_push(t->o->arena, &t->made, t->out[t->lead + t->states + i]);
	t->n++;
	return true;
}

/* Joins what all iterations made of a scanned output, along a new axis. */
static bool join_scanned(const struct iteration *t, int scanned, int64_t axis, bool backward, struct onnx_operand *out)
{
	const struct onnx_op *o = t->o;
	if (!t->made.at)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "a scanned output of no iterations has no elements");
	const struct onnx_shape shape = t->made.at[scanned].shape;
	struct onnx_operand *part = ARENA_ARRAY(o->arena, struct onnx_operand, t->n);
	int at = onnx_axis(o, axis, shape.rank + 1);
	for (int64_t i = 0; at >= 0 && i < t->n; i++) {
		struct onnx_operand x = t->made.at[(backward ? t->n - 1 - i : i) * t->scanned + scanned];
		if (!onnx_same_shape(&x.shape, &shape) || shape.rank == RA_MAX_RANK)
			return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
					      "the scanned output %d has other shapes in other iterations, or %d axes",
					      scanned, RA_MAX_RANK);
		part[i] = onnx_insert_axis(o, x, at);
	}
	if (at >= 0)
		*out = onnx_concat(o, part, (int)t->n, at);
	return at >= 0;
}

static bool put_outputs(const struct iteration *t, const struct onnx_iterations *s, struct onnx_operand *out)
{
	for (int i = 0; i < t->o->outs; i++) {
		int scanned = i - t->states;
		if (scanned < 0)
			out[i] = t->in[t->first + i];
		else if (!join_scanned(t, scanned, s->out_axis[scanned], s->out_backward[scanned], &out[i]))
			return false;
	}
	return true;
}

/* --- Loop --- */

/* Whether there is another iteration.  False after a diagnostic. */
static bool find_end(const struct iteration *t, int64_t trips, bool *goes_on)
{
	int64_t holds = 1;
	if (*goes_on && t->in[1].given &&
	    !find_known(t->o, &t->in[1], ONNX_BOOL, "whether it goes on", &holds))
		return false;
	*goes_on = t->n < trips && holds;
	return true;
}

struct onnx_operand onnx_make_truth(const struct onnx_op *o)
{
	struct onnx_tensor *t = onnx_new_tensor(o, ONNX_BOOL, &(struct onnx_shape){0});
	*(uint8_t *)t->data = 1;
	return onnx_constant(o, t);
}

static bool write_iterations(struct iteration *t, int64_t trips)
{
	bool goes_on = t->n < trips;
	if (!find_end(t, trips, &goes_on))
		return false;
	while (goes_on) {
		t->in[0] = onnx_integers(t->o, &(struct onnx_shape){0}, &t->n);
		if (!t->in[1].given)
			t->in[1] = onnx_make_truth(t->o);
		if (!write_iteration(t))
			return false;
		t->in[1] = t->out[0];
		goes_on = t->n < trips;
		if (!find_end(t, trips, &goes_on))
			return false;
	}
	return true;
}

bool onnx_write_loop(struct onnx_op *o)
{
	const int states = o->node->inputs > 2 ? (int)o->node->inputs - 2 : 0;
	const struct onnx_graph *body = find_graph(o, "body", 2 + states, 1 + states);
	struct iteration t = {.o = o, .body = body, .first = 2, .lead = 1, .states = states};
	int64_t trips = INT64_MAX;
	if (!t.body || !begin_iterations(&t) ||
	    (onnx_given(o, 0) && !find_known(o, &o->in[0], ONNX_INT64, "its trip count", &trips)))
		return false;
	if (onnx_given(o, 1))
		t.in[1] = o->in[1];
	memcpy(&t.in[2], &o->in[2], sizeof *o->in * states);
	const struct onnx_iterations loop = {.body = body, .loop = true, .states = states, .n = trips};
	bool goes_on = true;
	if (!find_end(&t, trips, &goes_on))
		return false;
	if (goes_on && onnx_can_scan(o, &loop))
		return onnx_write_steps(o, &loop, &o->in[2], o->out);
	if (!write_iterations(&t, trips))
		return false;
	return put_outputs(&t, &loop, o->out);
}

/* --- Scan --- */

static bool read_scan(const struct onnx_op *o, int given, struct onnx_iterations *s)
{
	int64_t scanned = onnx_int(o, "num_scan_inputs");
	bool first = o->node->opset < 9;
	if (scanned < 1 || scanned > given || scanned > ONNX_OUTPUT_LIMIT)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL, "it scans %lld of %d inputs", (long long)scanned, given);
	*s = (struct onnx_iterations){.states = given - (int)scanned, .inputs = (int)scanned};
	return onnx_ints(o, first ? "directions" : "scan_input_directions", s->inputs, 0, s->backward) &&
	       onnx_ints(o, "scan_input_axes", s->inputs, 0, s->axis) &&
	       onnx_ints(o, "scan_output_directions", ONNX_OUTPUT_LIMIT, 0, s->out_backward) &&
	       onnx_ints(o, "scan_output_axes", ONNX_OUTPUT_LIMIT, 0, s->out_axis);
}

/* The extent that all scanned inputs have along their axes; sets axes from 0.  -1 after a diagnostic. */
static int64_t find_length(const struct onnx_op *o, struct onnx_iterations *s, const struct onnx_operand *x)
{
	int64_t n = -1;
	for (int i = 0; i < s->inputs; i++) {
		int axis = onnx_axis(o, s->axis[i], x[i].shape.rank);
		if (axis < 0)
			return -1;
		s->axis[i] = axis;
		if (i && x[i].shape.dim[axis] != n) {
			onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its scanned inputs have %lld and %lld elements",
				       (long long)n, (long long)x[i].shape.dim[axis]);
			return -1;
		}
		n = x[i].shape.dim[axis];
	}
	return n;
}

/* Scans the inputs: states, then those that are scanned, which have no batch. */
static bool run_scan(struct onnx_op *o, struct onnx_iterations s, const struct onnx_operand *x, struct onnx_operand *out)
{
	const size_t inputs = s.states + s.inputs;
	struct iteration t = {.o = o, .body = find_graph(o, "body", inputs, s.states), .states = s.states};
	int64_t n = t.body ? find_length(o, &s, x + s.states) : -1;
	if (n < 0 || !begin_iterations(&t))
		return false;
	s.body = t.body;
	s.n = n;
	if (onnx_can_scan(o, &s))
		return onnx_write_steps(o, &s, x, out);
	memcpy(t.in, x, sizeof *x * s.states);
	for (int64_t i = 0; i < n; i++) {
		for (int k = 0; k < s.inputs; k++)
			t.in[s.states + k] = onnx_select(o, x[s.states + k], (int)s.axis[k], s.backward[k] ? n - 1 - i : i);
		if (!write_iteration(&t))
			return false;
	}
	return put_outputs(&t, &s, out);
}

/* Until version 8 inputs begin with lengths, and have a batch before the axis that is scanned. */
static bool scan_batch(struct onnx_op *o, const struct onnx_iterations *s, const struct onnx_operand *x)
{
	const int inputs = s->states + s->inputs;
	int64_t batch = x[0].shape.rank ? x[0].shape.dim[0] : 0;
	struct onnx_operand *one = ARENA_ARRAY(o->arena, struct onnx_operand, inputs + 1),
			    *out = ARENA_ARRAY(o->arena, struct onnx_operand, batch * o->outs + 1),
			    *part = ARENA_ARRAY(o->arena, struct onnx_operand, batch + 1);
	if (!batch)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "its input 1 has no batch, or one of no elements");
	for (int64_t b = 0; b < batch; b++) {
		for (int i = 0; i < inputs; i++) {
			if (!x[i].shape.rank || x[i].shape.dim[0] != batch)
				return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "its input %d has no batch of %lld", i + 1,
						      (long long)batch);
			one[i] = onnx_select(o, x[i], 0, b);
		}
		if (!run_scan(o, *s, one, out + b * o->outs))
			return false;
	}
	for (int i = 0; i < o->outs; i++) {
		for (int64_t b = 0; b < batch; b++)
			part[b] = onnx_insert_axis(o, out[b * o->outs + i], 0);
		o->out[i] = onnx_concat(o, part, (int)batch, 0);
	}
	return true;
}

bool onnx_write_scan(struct onnx_op *o)
{
	struct onnx_iterations s;
	const int first = o->node->opset < 9, given = (int)o->node->inputs - first;
	if (!read_scan(o, given, &s))
		return false;
	if (first && onnx_given(o, 0))
		return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "lengths of sequences are not supported");
	for (int i = 0; i < given; i++)
		if (!onnx_given(o, first + i))
			return false;
	if (first)
		return scan_batch(o, &s, &o->in[1]);
	return run_scan(o, s, o->in, o->out);
}
