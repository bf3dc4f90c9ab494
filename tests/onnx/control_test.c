/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan: what their graphs are written as, and what is refused. */
#include "tests/onnx/imports.h"

enum { VALUES = 16, NODES = 4, ARGUMENTS = 64 };

/* A graph that a test puts together. */
struct parts {
	struct onnx_graph graph;
	struct onnx_value value[VALUES];
	struct onnx_node node[NODES];
	struct onnx_attribute attribute[NODES][2];
	struct onnx_tensor tensor[VALUES];
	int inputs[VALUES], outputs[VALUES], arguments[ARGUMENTS], used;
};

static void open_graph(struct parts *p, const struct parts *around)
{
	*p = (struct parts){0};
	p->graph = (struct onnx_graph){.file = "parts.onnx",
				       .name = around ? "body" : "whole",
				       .outer = around ? &around->graph : NULL,
				       .node = p->node,
				       .value = p->value,
				       .input = p->inputs,
				       .output = p->outputs};
}

static int put_value(struct parts *p, const char *name, enum onnx_type type)
{
	int i = (int)p->graph.values++;
	p->value[i] = (struct onnx_value){
	    .name = name, .what_name = "tensor", .type = type, .rank = 0, .producer = -1, .input = -1, .outer = -1};
	return i;
}

static int put_input(struct parts *p, const char *name, enum onnx_type type, int rank, int64_t n)
{
	int i = put_value(p, name, type);
	p->value[i].input = (int)p->graph.inputs;
	p->value[i].rank = rank;
	for (int d = 0; d < rank; d++)
		p->value[i].dim[d].size = n + d;
	p->inputs[p->graph.inputs++] = i;
	return i;
}

/* The value of the graph around, in this one. */
static int capture(struct parts *p, const char *name, int outer)
{
	int i = put_value(p, name, ONNX_UNKNOWN_TYPE);
	p->value[i].outer = outer;
	return i;
}

static int put_constant(struct parts *p, const char *name, enum onnx_type type, const void *element)
{
	int i = put_value(p, name, type);
	p->tensor[i] = (struct onnx_tensor){.name = name,
					    .type = type,
					    .elements = 1,
					    .data = element,
					    .bytes = onnx_type_traits_of(type)->bits / 8};
	p->value[i].constant = &p->tensor[i];
	return i;
}

static int *put_arguments(struct parts *p, int n, const int *values)
{
	int *at = p->arguments + p->used;
	p->used += n;
	return n ? memcpy(at, values, n * sizeof *at) : at;
}

static struct onnx_node *put_node(struct parts *p, const char *op, int inputs, const int *in, int outputs,
				  const int *out)
{
	int i = (int)p->graph.nodes++;
	for (int k = 0; k < outputs; k++)
		p->value[out[k]].producer = i, p->value[out[k]].result = k;
	p->node[i] = (struct onnx_node){.op = op,
					.domain = "",
					.name = "",
					.opset = 13,
					.input = put_arguments(p, inputs, in),
					.output = put_arguments(p, outputs, out),
					.inputs = inputs,
					.outputs = outputs,
					.attribute = p->attribute[i],
					.number = i};
	return &p->node[i];
}

static void put_graph(struct parts *p, struct onnx_node *n, const char *name, const struct parts *body)
{
	p->attribute[n->number][n->attributes++] = (struct onnx_attribute){
	    .name = name, .kind = ONNX_KIND_GRAPH, .kind_name = "GRAPH", .graph = &body->graph, .n = 1};
}

static void put_output(struct parts *p, int value)
{
	p->outputs[p->graph.outputs++] = value;
}

/* --- Loop --- */

/* y = Loop(trips, condition, x) { s = tanh(s * x); condition = i < last }; negative trips or last: left out, and then
 * the condition stays. */
static void build_loop(struct parts *p, struct parts *body, const int64_t *trips, const int64_t *last)
{
	open_graph(p, NULL);
	open_graph(body, p);
	int x = put_input(p, "x", ONNX_FLOAT, 2, 2), y = put_value(p, "y", ONNX_UNKNOWN_TYPE),
	    m = trips ? put_constant(p, "trips", ONNX_INT64, trips) : -1,
	    end = last ? put_constant(p, "last", ONNX_INT64, last) : -1;
	int i = put_input(body, "i", ONNX_INT64, 0, 0), condition = put_input(body, "on", ONNX_BOOL, 0, 0),
	    s = put_input(body, "s", ONNX_FLOAT, 2, 2), factor = capture(body, "x", x),
	    product = put_value(body, "product", ONNX_UNKNOWN_TYPE), next = put_value(body, "next", ONNX_UNKNOWN_TYPE);
	put_node(body, "Mul", 2, (int[]){s, factor}, 1, &product);
	put_node(body, "Tanh", 1, &product, 1, &next);
	if (last) {
		int limit = capture(body, "last", end);
		condition = put_value(body, "goes_on", ONNX_UNKNOWN_TYPE);
		put_node(body, "Less", 2, (int[]){i, limit}, 1, &condition);
	}
	put_output(body, condition);
	put_output(body, next);
	put_graph(p, put_node(p, "Loop", 3, (int[]){m, -1, x}, 1, &y), "body", body);
	put_output(p, y);
}

static void test_loops(void)
{
	static struct parts p, body;
	static const int64_t three = 3, two = 2, most = INT64_MAX, none = 0;
	build_loop(&p, &body, &three, NULL);
	check_text(&p.graph, "tanh(", 3, "the body of a loop is written for each iteration");
	build_loop(&p, &body, NULL, &two);
	check_text(&p.graph, "tanh(", 3,
		   "a loop ends when its condition, which is computed from constants, fails");
	build_loop(&p, &body, &two, &most);
	check_text(&p.graph, "tanh(", 2, "or when the trip count is reached");
	build_loop(&p, &body, &none, NULL);
	check_text(&p.graph, "tanh(", 0, "without iterations states are what they were");
	build_loop(&p, &body, NULL, NULL);
	check_refusal(&p.graph, DIAG_MODEL_LARGE, "it writes more than", "a loop without end is refused");
	build_loop(&p, &body, &most, NULL);
	check_refusal(&p.graph, DIAG_MODEL_LARGE, "node 0 (Loop, opset 13)",
		      "so is one with too many iterations");
	build_loop(&p, &body, &three, NULL);
	body.node[1].op = "NonZero";
	check_refusal(&p.graph, DIAG_ONNX_OPERATOR, "graph 'body', node 1 (NonZero",
		      "a fault in a body is told with the body");
	build_loop(&p, &body, &three, NULL);
	p.value[0].name = "i0";
	check_text(&p.graph, "tanh(", 3, "names of the graph around may be those of indices");
	build_loop(&p, &body, &three, NULL);
	body.graph.outputs = 1;
	check_refusal(&p.graph, DIAG_ONNX_ATTRIBUTE, "fewer than 3 inputs or 2 outputs",
		      "a body needs an output for each state");
}

static void test_run_time_ends(void)
{
	static struct parts p, body;
	build_loop(&p, &body, NULL, NULL);
	int trips = put_input(&p, "trips", ONNX_INT64, 0, 0);
	p.arguments[0] = trips;
	check_refusal(&p.graph, DIAG_ONNX_CONSTANT, "its trip count is computed when the model runs",
		      "a trip count must be known when the graph is read");
	build_loop(&p, &body, &(int64_t){3}, NULL);
	int smaller = put_value(&body, "smaller", ONNX_UNKNOWN_TYPE);
	put_node(&body, "Less", 2, (int[]){2, 3}, 1, &smaller);
	body.outputs[0] = smaller;
	check_refusal(&p.graph, DIAG_ONNX_CONSTANT, "whether it goes on is computed",
		      "and so must the condition of going on");
}

/* --- Loop as a scan --- */

/* Puts a node of one output in front of an output of the body, which it becomes. */
static void put_before_output(struct parts *body, int output, const char *op, int inputs, const int *in)
{
	int out = put_value(body, "before", ONNX_UNKNOWN_TYPE);
	put_node(body, op, inputs, in, 1, &out);
	body->outputs[output] = out;
}

static void test_scans(void)
{
	static struct parts p, body;
	static const int64_t ten = 10, four = 4, many = 60000;
	build_loop(&p, &body, &ten, NULL);
	check_text(&p.graph, "tanh(", 2, "the body of many iterations is written for the first of them and for the others");
	check_text(&p.graph, "over 10\n", 1, "which are steps");
	build_loop(&p, &body, &many, NULL);
	check_text(&p.graph, "tanh(", 2, "of any number");
	build_loop(&p, &body, &four, NULL);
	check_text(&p.graph, "over", 0, "few iterations are unrolled");
	build_loop(&p, &body, &ten, NULL);
	body.value[5].name = "late";
	int late = put_input(&p, "late", ONNX_FLOAT, 2, 2), sum = put_value(&p, "sum", ONNX_UNKNOWN_TYPE);
	put_node(&p, "Add", 2, (int[]){1, late}, 1, &sum);
	p.outputs[0] = sum;
	check_text(&p.graph, "over 10\n", 1, "an input that is used behind the scan may have the name of a state");
	build_loop(&p, &body, &many, NULL);
	int last = put_value(&p, "last", ONNX_UNKNOWN_TYPE);
	put_node(&p, "NonZero", 1, (int[]){1}, 1, &last);
	p.outputs[0] = last;
	check_refusal(&p.graph, DIAG_ONNX_OPERATOR, "node 1 (NonZero",
		      "what is at fault behind a scan is told, although the loop is too long to be unrolled");
	tap_ok(diags.n == 1, "with one diagnostic");
}

/* What cannot be a step is unrolled. */
static void test_unrolled(void)
{
	static struct parts p, body;
	static const int64_t six = 6, far = 20, near = 3;
	build_loop(&p, &body, &six, &far);
	check_text(&p.graph, "tanh(", 6, "a condition that depends on the number of the iteration is known when it is unrolled");
	build_loop(&p, &body, &six, &near);
	check_text(&p.graph, "tanh(", 4, "and ends the loop where it fails");
	build_loop(&p, &body, &six, NULL);
	put_before_output(&body, 1, "ReduceSum", 1, (int[]){5});
	check_text(&p.graph, "over", 0, "a state that gets another shape is unrolled");
	build_loop(&p, &body, &six, NULL);
	put_before_output(&body, 0, "Less", 2, (int[]){2, 3});
	check_refusal(&p.graph, DIAG_ONNX_CONSTANT, "whether it goes on is computed",
		      "a loop that ends by what it computes is refused");
	build_loop(&p, &body, &(int64_t){60000}, NULL);
	put_before_output(&body, 1, "ReduceSum", 1, (int[]){5});
	check_refusal(&p.graph, DIAG_MODEL_LARGE, "more than 100000", "what cannot be a step may be too long");
}

/* Bytes that the import of three loops takes, one after the other, whose condition depends on the iteration. */
static size_t count_bytes(const int64_t *trips)
{
	static struct parts p, body;
	static const int64_t far = 20;
	build_loop(&p, &body, trips, &far);
	for (int i = 0; i < 2; i++) {
		int y = put_value(&p, i ? "third" : "second", ONNX_UNKNOWN_TYPE);
		put_graph(&p, put_node(&p, "Loop", 3, (int[]){2, -1, p.outputs[0]}, 1, &y), "body", &body);
		p.outputs[0] = y;
	}
	const size_t before = arena.bytes;
	check_text(&p.graph, "tanh(", 3 * (int)*trips, "loops that cannot be scans are unrolled one by one");
	return arena.bytes - before;
}

static void test_memory(void)
{
	const size_t few = count_bytes(&(int64_t){4}), more = count_bytes(&(int64_t){6});
	tap_ok(more < 2 * few, "memory of attempts is given back");
}

/* y = Expand(x, Loop(trips, , s) { s = s + by }), in which x of one element comes from the graph's input. */
static void build_shape_loop(struct parts *p, struct parts *body, const int64_t *trips, const int64_t *s)
{
	open_graph(p, NULL);
	open_graph(body, p);
	int x = put_input(p, "x", ONNX_FLOAT, 0, 0), m = put_constant(p, "trips", ONNX_INT64, trips),
	    from = put_constant(p, "from", ONNX_INT64, s), shape = put_value(p, "shape", ONNX_UNKNOWN_TYPE),
	    y = put_value(p, "y", ONNX_UNKNOWN_TYPE);
	p->value[from].rank = p->tensor[from].rank = 1;
	p->tensor[from].dim[0] = 1;
	put_input(body, "i", ONNX_INT64, 0, 0);
	int on = put_input(body, "on", ONNX_BOOL, 0, 0), state = put_input(body, "s", ONNX_INT64, 1, 1),
	    by = capture(body, "from", from), next = put_value(body, "next", ONNX_UNKNOWN_TYPE);
	put_node(body, "Add", 2, (int[]){state, by}, 1, &next);
	put_output(body, on);
	put_output(body, next);
	put_graph(p, put_node(p, "Loop", 3, (int[]){m, -1, from}, 1, &shape), "body", body);
	put_node(p, "Expand", 2, (int[]){x, shape}, 1, &y);
	put_output(p, y);
}

static void test_constant_loops(void)
{
	static struct parts p, body;
	static const int64_t nine = 9, two = 2;
	build_shape_loop(&p, &body, &nine, &two);
	check_text(&p.graph, "in 20]", -1, "what a loop computes from constants may decide a shape");
	build_shape_loop(&p, &body, &nine, &two);
	int shown = put_value(&body, "shown", ONNX_UNKNOWN_TYPE), x = capture(&body, "x", 0);
	put_node(&body, "Tanh", 1, &x, 1, &shown);
	put_output(&body, shown);
	int all = put_value(&p, "all", ONNX_UNKNOWN_TYPE);
	p.node[0].output = put_arguments(&p, 2, (int[]){p.node[0].output[0], all});
	p.node[0].outputs = 2;
	p.value[all].producer = 0, p.value[all].result = 1;
	put_output(&p, all);
	check_text(&p.graph, "in 20]", -1, "also where it computes other things");
	check_text(&p.graph, "tanh(", 9, "and then is unrolled");
}

/* --- If --- */

/* A branch that applies an operator to x of the graph around. */
static void build_branch(struct parts *branch, const struct parts *around, const char *op, int x)
{
	open_graph(branch, around);
	int in = capture(branch, "x", x), out = put_value(branch, "out", ONNX_UNKNOWN_TYPE);
	put_node(branch, op, 1, &in, 1, &out);
	put_output(branch, out);
}

static void build_if(struct parts *p, struct parts branch[2], const bool *holds)
{
	open_graph(p, NULL);
	int x = put_input(p, "x", ONNX_FLOAT, 2, 2), y = put_value(p, "y", ONNX_UNKNOWN_TYPE),
	    condition = holds ? put_constant(p, "condition", ONNX_BOOL, holds)
			      : put_input(p, "condition", ONNX_BOOL, 0, 0);
	build_branch(&branch[0], p, "Tanh", x);
	build_branch(&branch[1], p, "Exp", x);
	struct onnx_node *n = put_node(p, "If", 1, &condition, 1, &y);
	put_graph(p, n, "then_branch", &branch[0]);
	put_graph(p, n, "else_branch", &branch[1]);
	put_output(p, y);
}

static void test_branches(void)
{
	static struct parts p, branch[2];
	static const bool truth = true, lie = false;
	build_if(&p, branch, &truth);
	check_text(&p.graph, "tanh(", 1, "a condition that is known selects a branch");
	check_text(&p.graph, "exp(", 0, "and the other is not written");
	build_if(&p, branch, &lie);
	check_text(&p.graph, "exp(", 1, "the second branch stands for a condition that fails");
	build_if(&p, branch, NULL);
	check_text(&p.graph, "where(condition, ", 1,
		   "a condition of the run selects between the outputs of both");
	build_if(&p, branch, NULL);
	branch[1].node[0].op = "Transpose";
	check_refusal(&p.graph, DIAG_ONNX_SHAPE, "differs in type or shape", "these must have one shape");
	build_if(&p, branch, &truth);
	p.node[0].attributes = 1;
	check_refusal(&p.graph, DIAG_ONNX_ATTRIBUTE, "'else_branch' is missing",
		      "a branch that is missing is told");
}

/* What is computed of z and a weight for the second branch alone. */
static void test_branch_not_taken(void)
{
	static struct parts p, branch[2];
	static const bool truth = true, lie = false;
	for (int taken = 0; taken < 2; taken++) {
		build_if(&p, branch, taken ? &lie : &truth);
		int z = put_input(&p, "z", ONNX_FLOAT, 2, 2), w = put_input(&p, "w", ONNX_FLOAT, 0, 0),
		    sum = put_value(&p, "sum", ONNX_UNKNOWN_TYPE);
		put_node(&p, "Add", 2, (int[]){z, w}, 1, &sum);
		p.node[2] = p.node[0], p.node[0] = p.node[1], p.node[1] = p.node[2];
		p.value[sum].producer = 0, p.value[p.graph.output[0]].producer = 1;
		branch[1].value[0].outer = sum;
		check_text(&p.graph, "input z", taken,
			   taken ? "a branch that is taken needs what is computed for it"
				 : "inputs that only the other branch needs are none of the model");
		check_text(&p.graph, "input w", taken, "nor is the second one there without need");
	}
}

static void test_types(void)
{
	static struct parts p, body, branch[2];
	build_loop(&p, &body, &(int64_t){3}, NULL);
	int trips = put_constant(&p, "trips", ONNX_FLOAT, &(float){3});
	p.arguments[0] = trips;
	check_refusal(&p.graph, DIAG_ONNX_TYPE, "its trip count is of type float, not int64",
		"a trip count is an integer");
	build_if(&p, branch, NULL);
	p.value[2].type = ONNX_FLOAT;
	check_refusal(&p.graph, DIAG_ONNX_TYPE, "its condition is of type float, not bool", "a condition is a truth");
}

/* --- outputs --- */

static void test_outputs(void)
{
	static struct parts p;
	open_graph(&p, NULL);
	int x = put_input(&p, "x", ONNX_FLOAT, 2, 2);
	check_refusal(&p.graph, DIAG_ONNX_GRAPH, "the graph has no outputs", "a graph without outputs is refused");
	put_output(&p, x);
	check_refusal(&p.graph, DIAG_ONNX_NAME, "the name of another input or output",
		"an output that is an input is refused");
	tap_ok(diags.n == 1, "with one diagnostic");
	p.value[x].dim[0].size = 0;
	p.value[x].name = "z";
	check_refusal(&p.graph, DIAG_ONNX_SHAPE, "has an axis without elements", "so is an input without elements");
}

/* Until version 8 each input of Scan has a batch. */
static void test_scan_without_batch(void)
{
	static struct parts p, body;
	open_graph(&p, NULL);
	open_graph(&body, &p);
	int x = put_input(&p, "x", ONNX_FLOAT, 0, 0), y = put_value(&p, "y", ONNX_UNKNOWN_TYPE);
	put_output(&body, put_input(&body, "element", ONNX_FLOAT, 0, 0));
	struct onnx_node *n = put_node(&p, "Scan", 2, (int[]){-1, x}, 1, &y);
	n->opset = 8;
	put_graph(&p, n, "body", &body);
	p.attribute[0][n->attributes++] = (struct onnx_attribute){
	    .name = "num_scan_inputs", .kind = ONNX_KIND_INT, .kind_name = "INT", .i = 1, .n = 1};
	put_output(&p, y);
	check_refusal(&p.graph, DIAG_ONNX_SHAPE, "its input 1 has no batch", "an input without a batch is told");
}

int main(void)
{
	static void (*const tests[])(void) = {test_loops, test_scans, test_unrolled, test_constant_loops, test_memory, test_run_time_ends, test_branches, test_branch_not_taken,
					      test_types, test_outputs,	      test_scan_without_batch};
	return run_imports(tests, sizeof tests / sizeof *tests);
}
