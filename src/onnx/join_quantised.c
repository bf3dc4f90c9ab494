/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Graphs that say of an operator on floats what its quantised values are (QDQ): DequantizeLinear before each of its
 * inputs, QuantizeLinear behind its output.  Such an operator becomes the one on quantised values, which computes in
 * integers; what nothing needs afterwards is dropped when nodes are ordered. */
#include "onnx/reading.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define RUNTIME "com.microsoft"

/* `inputs` says what the quantised operator takes: a digit is an input of the operator, with its scale and its zero
 * point; 'b' the integers of a summand that may be left out; 'y' the scale and the zero point of the result; '*' all
 * inputs, as digits; '=' input 0 alone, which has the scale of the result, and the others as they are. */
static const struct pattern {
	const char *op, *quantised, *domain, *inputs;
	int axis;	     /* of input 1, a matrix or kernels, that may have a scale for each index; -1 = none */
	bool one_type;	     /* inputs, but for that one, and the result are of one type */
	const char *without; /* an attribute that the quantised operator lacks, and that may be 1 */
} patterns[] = {
    {"Conv", "QLinearConv", "", "01yb", 0, false, ""},
    {"MatMul", "QLinearMatMul", "", "01y", 1, false, ""},
    {"Gemm", "QGemm", RUNTIME, "01by", 1, true, "beta"},
    {"Add", "QLinearAdd", RUNTIME, "01y", -1, true, ""},
    {"Mul", "QLinearMul", RUNTIME, "01y", -1, true, ""},
    {"Concat", "QLinearConcat", RUNTIME, "y*", -1, true, ""},
    {"AveragePool", "QLinearAveragePool", RUNTIME, "0y", -1, true, "dilations"},
    {"GlobalAveragePool", "QLinearGlobalAveragePool", RUNTIME, "0y", -1, true, ""},
    {"Sigmoid", "QLinearSigmoid", RUNTIME, "0y", -1, true, ""},
    {"LeakyRelu", "QLinearLeakyRelu", RUNTIME, "0y", -1, true, ""},
    {"MaxPool", "MaxPool", "", "=", -1, true, ""},
    {"Reshape", "Reshape", "", "=", -1, true, ""},
    {"Flatten", "Flatten", "", "=", -1, true, ""},
    {"Transpose", "Transpose", "", "=", -1, true, ""},
    {"Squeeze", "Squeeze", "", "=", -1, true, ""},
    {"Unsqueeze", "Unsqueeze", "", "=", -1, true, ""},
    {"Slice", "Slice", "", "=", -1, true, ""},
};

enum { VALUE, SCALE, ZERO, SUMMAND = 2 };

/* A node between others while it is looked at. */
struct joining {
	const struct onnx_making *g;
	int *uses; /* by value */
	const struct pattern *pattern;
	const struct onnx_node *node, *quantise;
};

static const struct onnx_value *value_at(const struct joining *j, int value)
{
	return &j->g->values.at[value];
}

/* The node that computes a value, if it is the one of that name. */
static const struct onnx_node *find_producer(const struct joining *j, int value, const char *op)
{
	int producer = value < 0 ? -1 : value_at(j, value)->producer;
	const struct onnx_node *n = producer < 0 ? NULL : &j->g->graph->node[producer];
	return n && !*n->domain && strcmp(n->op, op) == 0 ? n : NULL;
}

static const struct onnx_tensor *constant_at(const struct joining *j, const struct onnx_node *n, size_t input)
{
	const struct onnx_tensor *t =
	    input < n->inputs && n->input[input] >= 0 ? value_at(j, n->input[input])->constant : NULL;
	return t && t->elements > 0 ? t : NULL;
}

static int64_t int_of(const struct onnx_node *n, const char *name, int64_t otherwise)
{
	const struct onnx_attribute *a = onnx_find_attribute(n, name);
	return a && a->kind == ONNX_KIND_INT ? a->i : otherwise;
}

static double float_of(const struct onnx_node *n, const char *name, double otherwise)
{
	const struct onnx_attribute *a = onnx_find_attribute(n, name);
	return a && a->kind == ONNX_KIND_FLOAT ? (double)a->f : otherwise;
}

static float scale_at(const struct onnx_tensor *t, int64_t i)
{
	float scale;
	memcpy(&scale, (const char *)t->data + (t->elements == 1 ? 0 : i) * (int64_t)sizeof scale, sizeof scale);
	return scale;
}

/* --- what surrounds a node --- */

static bool is_byte(enum onnx_type type)
{
	return type == ONNX_UINT8 || type == ONNX_INT8;
}

static bool are_positive(const struct onnx_tensor *scale)
{
	for (int64_t i = 0; i < scale->elements; i++)
		if (!(scale_at(scale, i) > 0 && scale_at(scale, i) <= FLT_MAX))
			return false;
	return true;
}

/* Whether scales of a dequantised tensor are along an axis of it. */
static bool are_along(const struct onnx_node *n, const struct onnx_tensor *x, int axis)
{
	int64_t along = int_of(n, "axis", 1);
	return (along < 0 ? along + x->rank : along) == axis;
}

/* Whether a node has a known scale and a known zero point of bytes: one, or one for each index of an axis. */
static bool has_scale(const struct joining *j, const struct onnx_node *n, int axis)
{
	const struct onnx_tensor *scale = constant_at(j, n, SCALE), *zero = constant_at(j, n, ZERO);
	if (!scale || !zero || scale->type != ONNX_FLOAT || !is_byte(zero->type) || !are_positive(scale) ||
	    int_of(n, "block_size", 0))
		return false;
	if (scale->elements == 1 && zero->elements == 1)
		return true;
	const struct onnx_tensor *x = constant_at(j, n, VALUE);
	return axis >= 0 && x && (axis == 0 || x->rank == 2) && are_along(n, x, axis);
}

static enum onnx_type type_of(const struct joining *j, const struct onnx_node *n)
{
	return constant_at(j, n, ZERO)->type;
}

/* The axis of input 1 whose indices the columns of the result are. */
static int axis_of(const struct joining *j, int input)
{
	if (input != 1 || j->pattern->axis < 0)
		return -1;
	return int_of(j->node, "transB", 0) ? !j->pattern->axis : j->pattern->axis;
}

static bool is_dequantised(const struct joining *j, int input)
{
	const struct onnx_node *n = find_producer(j, j->node->input[input], "DequantizeLinear");
	int axis = axis_of(j, input);
	return n && n->input[VALUE] >= 0 && has_scale(j, n, axis) &&
	       (!j->pattern->one_type || axis >= 0 || type_of(j, n) == type_of(j, j->quantise));
}

static bool has_summand(const struct joining *j)
{
	return strchr(j->pattern->inputs, 'b') && j->node->inputs > SUMMAND && j->node->input[SUMMAND] >= 0;
}

static bool is_zero(const struct onnx_tensor *t)
{
	const char *bytes = t->data;
	for (size_t i = 0; i < t->bytes; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Whether the summand is of integers at the scale that the sums of products have, but for rounding: of other ones, and
 * of floats, the operator stays as it is. */
static bool fits_sums(const struct joining *j)
{
	const struct onnx_node *a = find_producer(j, j->node->input[0], "DequantizeLinear"),
			       *b = find_producer(j, j->node->input[1], "DequantizeLinear"),
			       *c = find_producer(j, j->node->input[SUMMAND], "DequantizeLinear");
	const struct onnx_tensor *x = c ? constant_at(j, c, VALUE) : NULL, *scale = c ? constant_at(j, c, SCALE) : NULL;
	if (!x || x->type != ONNX_INT32 || !scale || scale->type != ONNX_FLOAT || int_of(c, "block_size", 0))
		return false;
	if (c->inputs > ZERO && c->input[ZERO] >= 0 && (!constant_at(j, c, ZERO) || !is_zero(constant_at(j, c, ZERO))))
		return false;
	if (scale->elements > 1 && !are_along(c, x, x->rank - 1))
		return false;
	const struct onnx_tensor *s = constant_at(j, a, SCALE), *t = constant_at(j, b, SCALE);
	double factor = float_of(j->node, "alpha", 1);
	int64_t n = t->elements > scale->elements ? t->elements : scale->elements;
	if ((t->elements != 1 && t->elements != n) || (scale->elements != 1 && scale->elements != n))
		return false;
	for (int64_t i = 0; i < n; i++) {
		double wanted = factor * scale_at(s, 0) * scale_at(t, i);
		if (!(fabs(scale_at(scale, i) - wanted) <= 1e-6 * fabs(wanted)))
			return false;
	}
	return true;
}

/* Whether an attribute is a number 1, or such numbers. */
static bool is_one(const struct onnx_attribute *a)
{
	if (a->kind == ONNX_KIND_FLOAT || a->kind == ONNX_KIND_INT)
		return a->kind == ONNX_KIND_INT ? a->i == 1 : a->f == 1;
	bool one = a->kind == ONNX_KIND_INTS;
	for (size_t i = 0; one && i < a->n; i++)
		one = a->ints[i] == 1;
	return one;
}

/* A last window that leaves the padded image counts as a whole one in the average of quantised values. */
static bool has_attributes(const struct joining *j)
{
	if (int_of(j->node, "ceil_mode", 0) && int_of(j->node, "count_include_pad", 0))
		return false;
	for (size_t i = 0; i < j->node->attributes; i++)
		if (strcmp(j->node->attribute[i].name, j->pattern->without) == 0 && !is_one(&j->node->attribute[i]))
			return false;
	return true;
}

static bool is_moved(const struct joining *j)
{
	return *j->pattern->inputs == '=';
}

static bool keeps_scale(const struct joining *j)
{
	const struct onnx_node *x = find_producer(j, j->node->input[0], "DequantizeLinear");
	const char *from = constant_at(j, x, ZERO)->data, *to = constant_at(j, j->quantise, ZERO)->data;
	return *from == *to && scale_at(constant_at(j, x, SCALE), 0) == scale_at(constant_at(j, j->quantise, SCALE), 0);
}

/* How many inputs are to be dequantised; 0 = the node has others than its operator. */
static size_t count_factors(const struct joining *j)
{
	const char *in = j->pattern->inputs;
	size_t given = j->node->inputs, wanted = strchr(in, '1') ? 2 : 1;
	if (strchr(in, '*'))
		return given;
	if (is_moved(j))
		return given ? 1 : 0;
	return given == wanted || (strchr(in, 'b') && given == SUMMAND + 1) ? wanted : 0;
}

/* Whether all inputs and the result are quantised as the operator on quantised values takes them. */
static bool is_surrounded(const struct joining *j)
{
	size_t inputs = count_factors(j);
	if (j->node->outputs != 1 || j->uses[j->node->output[0]] != 1 || !has_scale(j, j->quantise, -1))
		return false;
	if (!inputs || !has_attributes(j))
		return false;
	for (size_t i = 0; i < inputs; i++)
		if (j->node->input[i] < 0 || !is_dequantised(j, (int)i))
			return false;
	return is_moved(j) ? keeps_scale(j) : !has_summand(j) || fits_sums(j);
}

/* --- the node that takes its place --- */

static int *put_input(const struct joining *j, int input, int *to)
{
	const struct onnx_node *n = find_producer(j, j->node->input[input], "DequantizeLinear");
	memcpy(to, n->input, 3 * sizeof *to);
	return to + 3;
}

static size_t put_inputs(const struct joining *j, int *to)
{
	int *const begin = to;
	if (is_moved(j)) {
		memcpy(to, j->node->input, j->node->inputs * sizeof *to);
		*to = find_producer(j, *to, "DequantizeLinear")->input[VALUE];
		return j->node->inputs;
	}
	for (const char *c = j->pattern->inputs; *c; c++) {
		if (*c == 'y')
			*to++ = j->quantise->input[SCALE], *to++ = j->quantise->input[ZERO];
		else if (*c == 'b')
			*to++ = has_summand(j) ? find_producer(j, j->node->input[SUMMAND], "DequantizeLinear")->input[VALUE] : -1;
		else if (*c == '*')
			for (size_t i = 0; i < j->node->inputs; i++)
				to = put_input(j, (int)i, to);
		else
			to = put_input(j, *c - '0', to);
	}
	return to - begin;
}

/* The attributes that the operator has. */
static size_t put_attributes(const struct joining *j, struct onnx_attribute *to)
{
	size_t n = 0;
	for (size_t i = 0; i < j->node->attributes; i++)
		if (strcmp(j->node->attribute[i].name, j->pattern->without) != 0)
			to[n++] = j->node->attribute[i];
	return n;
}

static struct onnx_node join_node(const struct joining *j)
{
	struct arena *arena = j->g->reading->arena;
	struct onnx_node made = *j->node;
	int *input = ARENA_ARRAY(arena, int, 3 * j->node->inputs + 3);
	struct onnx_attribute *attribute = ARENA_ARRAY(arena, struct onnx_attribute, made.attributes + 1);
	made.op = j->pattern->quantised;
	made.domain = j->pattern->domain;
	made.opset = *made.domain ? 1 : made.opset;
	made.inputs = put_inputs(j, input);
	made.input = input;
	made.attributes = put_attributes(j, attribute);
	made.attribute = attribute;
	made.output = j->quantise->output;
	made.outputs = j->quantise->outputs;
	return made;
}

/* --- the whole --- */

/* How often each value is used: by nodes, by graphs in them, as an output. */
static int *count_uses(const struct onnx_making *g)
{
	const struct onnx_graph *graph = g->graph;
	struct arena *arena = g->reading->arena;
	int *uses = ARENA_ARRAY(arena, int, g->values.n + 1);
	for (size_t i = 0; i < graph->outputs; i++)
		uses[graph->output[i]]++;
	for (size_t n = 0; n < graph->nodes; n++) {
		int *need = ARENA_ARRAY(arena, int, onnx_needed_values(&graph->node[n], NULL) + 1);
		size_t needs = onnx_needed_values(&graph->node[n], need);
		for (size_t i = 0; i < needs; i++)
			if (need[i] >= 0)
				uses[need[i]]++;
	}
	return uses;
}

static const struct pattern *find_pattern(const struct onnx_node *n)
{
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (!*n->domain && strcmp(n->op, patterns[i].op) == 0)
			return &patterns[i];
	return NULL;
}

/* The node that a QuantizeLinear quantises the result of, NULL = it is no operator of the table. */
static const struct onnx_node *find_quantised(struct joining *j)
{
	int value = j->quantise->inputs > ZERO ? j->quantise->input[VALUE] : -1;
	int producer = value < 0 ? -1 : value_at(j, value)->producer;
	const struct onnx_node *n = producer < 0 ? NULL : &j->g->graph->node[producer];
	j->pattern = n ? find_pattern(n) : NULL;
	return j->pattern ? n : NULL;
}

void onnx_join_quantised(struct onnx_making *g)
{
	struct joining j = {.g = g, .uses = count_uses(g)};
	for (size_t i = 0; i < g->graph->nodes; i++) {
		struct onnx_node *n = &g->graph->node[i];
		j.quantise = n;
		if (*n->domain || strcmp(n->op, "QuantizeLinear") != 0 || !(j.node = find_quantised(&j)))
			continue;
		if (is_surrounded(&j))
			*n = join_node(&j);
	}
}
