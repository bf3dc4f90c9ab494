/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Iterations of Loop and Scan as steps of a scan, which carries states and scanned outputs.  The first step reads
 * initial states, each other one those of the step before.
 *
 * Whether a body can be a step shows when it is written: states must keep types and shapes, what decides shapes must
 * not depend on states or on the number of the iteration, and a loop must go on to its trip count whatever they are. */
#include "onnx/iterate.h"
#include "onnx/import.h"

/* A scan writes the body twice, and keeps the states of all steps; so few iterations are unrolled. */
enum { FEW_ITERATIONS = 4 };

static bool is_unrolled(const struct onnx_attempts *t, const struct onnx_node *n)
{
	for (int i = 0; i < t->n; i++)
		if (t->unrolled[i] == n)
			return true;
	return t->unroll;
}

bool onnx_can_scan(const struct onnx_op *o, const struct onnx_iterations *s)
{
	return s->n > FEW_ITERATIONS && s->n <= ONNX_MAX_WRITTEN && !o->target->scanning &&
	       !is_unrolled(&o->importer->attempts, o->node) && !(s->loop && onnx_is_foldable(o));
}

/* The iterations while they are written. */
struct steps {
	struct onnx_scan scan;
	const struct onnx_iterations *s;
	const bool *needed;	      /* by value of the body */
	const struct onnx_operand *x; /* states, then scanned inputs, the scanned axis first, as the scan goes */
	struct onnx_operand count;    /* of Loop: the numbers of iterations */
	struct onnx_operand *in, *out; /* of the body */
	struct onnx_carried *carried; /* states, then scanned outputs */
	int outputs;		      /* of the body that are carried, those of Loop behind the condition */
};

/* --- axes --- */

/* The elements of the first axis in the opposite order. */
static struct onnx_operand reverse_elements(const struct onnx_op *o, struct onnx_operand x)
{
	int64_t n = x.shape.dim[0];
	return onnx_stride(o, x, 0, n - 1, -1, n);
}

static struct onnx_operand move_axis(const struct onnx_op *o, struct onnx_operand x, int from, int to)
{
	int order[RA_MAX_RANK], n = 0;
	for (int d = 0; d < x.shape.rank; d++) {
		n += n == to;
		if (d != from)
			order[n++] = d;
	}
	order[to] = from;
	return onnx_transpose(o, x, order);
}

static bool needs_input(const struct steps *t, int input)
{
	return t->needed[t->s->body->input[input]];
}

/* Inputs as the scan reads them; what the body does not need is not read, as no parameter may be declared in vain. */
static const struct onnx_operand *order_inputs(const struct steps *t, const struct onnx_operand *x)
{
	const struct onnx_op *o = t->scan.o;
	const struct onnx_iterations *s = t->s;
	struct onnx_operand *ordered = ARENA_ARRAY(o->arena, struct onnx_operand, s->states + s->inputs + 1);
	memcpy(ordered, x, sizeof *x * s->states);
	for (int i = 0; i < s->inputs; i++) {
		if (!needs_input(t, s->states + i))
			continue;
		struct onnx_operand in = move_axis(o, x[s->states + i], (int)s->axis[i], 0);
		ordered[s->states + i] = (s->backward[i] != 0) == t->scan.down ? in : reverse_elements(o, in);
	}
	return ordered;
}

/* --- steps --- */

static void set_inputs(struct steps *t)
{
	const struct onnx_iterations *s = t->s;
	const int first = s->loop ? 2 : 0;
	if (s->loop && needs_input(t, 0))
		t->in[0] = onnx_at_step(&t->scan, t->count);
	if (s->loop)
		t->in[1] = onnx_make_truth(t->scan.o);
	for (int i = 0; i < s->states; i++)
		t->in[first + i] = t->scan.first ? t->x[i] : onnx_carried_before(&t->scan, &t->carried[i]);
	for (int i = s->states; i < s->states + s->inputs; i++)
		if (needs_input(t, first + i))
			t->in[first + i] = onnx_at_step(&t->scan, t->x[i]);
}

/* Whether a value can be carried as what was declared, or is declared by it. */
static bool can_carry(const struct onnx_operand *x, const struct onnx_carried *c)
{
	return x->given && onnx_elements(&x->shape) && x->shape.rank < RA_MAX_RANK &&
	       (!c->name || (x->type == c->type && onnx_same_shape(&x->shape, &c->shape)));
}

static bool carry_outputs(struct steps *t)
{
	const struct onnx_graph *body = t->s->body;
	const int lead = t->s->loop;
	for (int i = 0; i < t->outputs; i++) {
		const struct onnx_operand *x = &t->out[lead + i];
		struct onnx_carried *c = &t->carried[i];
		if (!can_carry(x, c))
			return false;
		if (!c->name)
			*c = onnx_declare_carried(&t->scan, body->value[body->output[lead + i]].name, x);
		onnx_carry(&t->scan, c, *x);
	}
	return true;
}

/* Whether a loop goes on whatever its states are. */
static bool goes_on(const struct steps *t)
{
	const struct onnx_tensor *c = t->out[0].constant;
	return !t->s->loop || (c && c->type == ONNX_BOOL && c->elements == 1 && onnx_integer_at(c, 0));
}

static bool write_step(struct steps *t, bool first)
{
	const struct onnx_op *o = t->scan.o;
	onnx_begin_step(&t->scan, first);
	set_inputs(t);
	return onnx_write_graph(o, t->s->body, t->in, (int)t->s->body->inputs, t->out) && goes_on(t) &&
	       carry_outputs(t) && !o->diags->n;
}

/* States are declared by their initial values, scanned outputs by what the first step makes of them. */
static bool write_both_steps(struct steps *t)
{
	const struct onnx_graph *body = t->s->body;
	bool good = true;
	onnx_begin_scan(&t->scan);
	for (int i = 0; good && i < t->s->states; i++) {
		good = can_carry(&t->x[i], &t->carried[i]);
		if (good)
			t->carried[i] = onnx_declare_carried(
			    &t->scan, body->value[body->output[t->s->loop + i]].name, &t->x[i]);
	}
	good = good && write_step(t, true) && write_step(t, false);
	onnx_end_scan(&t->scan);
	return good;
}

/* --- the whole --- */

static bool put_outputs(const struct steps *t, struct onnx_operand *out)
{
	const struct onnx_op *o = t->scan.o;
	const struct onnx_iterations *s = t->s;
	for (int i = 0; i < o->outs; i++) {
		struct onnx_operand all = onnx_carried_all(&t->scan, &t->carried[i]);
		if (i < s->states) {
			out[i] = onnx_select(o, all, 0, t->scan.down ? 0 : s->n - 1);
			continue;
		}
		int axis = onnx_axis(o, s->out_axis[i - s->states], all.shape.rank);
		if (axis < 0)
			return false;
		if ((s->out_backward[i - s->states] != 0) != t->scan.down)
			all = reverse_elements(o, all);
		out[i] = move_axis(o, all, 0, axis);
	}
	return true;
}

static const bool *find_needed(const struct onnx_op *o, const struct onnx_graph *g)
{
	bool *needed = ARENA_ARRAY(o->arena, bool, g->values + 1);
	onnx_mark_needed(g, needed);
	return needed;
}

/* Lets the next attempt unroll the iterations. */
static bool ask_to_unroll(const struct onnx_op *o)
{
	struct onnx_attempts *t = &o->importer->attempts;
	t->unrolled[t->n++] = o->node;
	t->again = true;
	return false;
}

bool onnx_write_steps(const struct onnx_op *o, const struct onnx_iterations *s, const struct onnx_operand *x,
		      struct onnx_operand *out)
{
	const size_t outputs = s->body->outputs;
	struct steps t = {.scan = {.o = o, .steps = s->n, .down = s->inputs && s->backward[0]},
			  .s = s,
			  .needed = find_needed(o, s->body),
			  .in = ARENA_ARRAY(o->arena, struct onnx_operand, s->body->inputs + 1),
			  .out = ARENA_ARRAY(o->arena, struct onnx_operand, outputs + 1),
			  .carried = ARENA_ARRAY(o->arena, struct onnx_carried, outputs + 1),
			  .outputs = s->states > o->outs ? s->states : o->outs};
	t.x = order_inputs(&t, x);
	if (s->loop && needs_input(&t, 0))
		t.count = onnx_count(o, ONNX_INT64, s->n);
	o->importer->attempts.scans = true;
	return (write_both_steps(&t) || ask_to_unroll(o)) && put_outputs(&t, out);
}
