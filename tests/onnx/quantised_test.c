/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Quantised operators refuse scales, zero points and types that fit no value, each with the node and its operator. */
#include "tests/onnx/imports.h"

#include <math.h>

enum { INPUTS = 9, LIST = 3 };

/* An input of the node: a value of a type, [2, 3, 4, 4] or a matrix, that comes when the model runs; or a list of scales or
 * zero points that is known. */
struct given {
	enum onnx_type type;
	int64_t n; /* of the list; 0 = it is no list */
	float scale[LIST];
	int ones; /* axes of extent 1 before that of the list */
};

static const struct given value = {ONNX_UINT8, 0, {0}, 0}, good_scale = {ONNX_FLOAT, 1, {0.5f}, 0}, good_zero = {ONNX_UINT8, 1, {0}, 0},
			  left_out = {ONNX_UNKNOWN_TYPE, 0, {0}, 0};

struct small {
	struct onnx_value value[INPUTS + 1];
	struct onnx_tensor tensor[INPUTS];
	uint8_t zeros[16];
	struct onnx_attribute attribute;
	struct onnx_node node;
	struct onnx_graph graph;
	struct given given[INPUTS];
	int in[INPUTS], inputs[INPUTS], output[1];
};

static const char *const names[INPUTS] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

static void set_input(struct small *s, int i, int rank)
{
	const struct given *from = &s->given[i];
	struct onnx_value *v = &s->value[i];
	*v = (struct onnx_value){.name = names[i], .what_name = "tensor", .type = from->type, .rank = rank, .producer = -1, .input = -1, .outer = -1};
	for (int d = 0; d < rank; d++)
		v->dim[d].size = rank == 2 ? 3 : d < 2 ? 2 + d : 4;
	s->in[i] = from->type == ONNX_UNKNOWN_TYPE ? -1 : i;
	if (!from->n) {
		v->input = (int)s->graph.inputs;
		s->inputs[s->graph.inputs++] = i;
		return;
	}
	s->tensor[i] = (struct onnx_tensor){.name = names[i], .type = from->type, .rank = 1 + from->ones, .dim = {from->n}, .elements = (size_t)from->n};
	for (int d = 0; d < from->ones; d++)
		s->tensor[i].dim[d] = 1, s->tensor[i].dim[d + 1] = from->n;
	s->tensor[i].bytes = (size_t)from->n * (onnx_type_traits_of(from->type)->bits / 8);
	s->tensor[i].data = from->type == ONNX_FLOAT ? (const void *)from->scale : s->zeros;
	v->constant = &s->tensor[i];
}

/* A graph of one node; its inputs are those of the array. */
static const struct onnx_graph *make_graph(struct small *s, const char *op, const char *domain, int n)
{
	int rank = strcmp(op, "QGemm") == 0 || strcmp(op, "QLinearMatMul") == 0 ? 2 : 4;
	s->graph = (struct onnx_graph){.file = "small.onnx", .name = "small", .node = &s->node, .nodes = 1, .value = s->value, .values = (size_t)n + 1, .input = s->inputs, .output = s->output, .outputs = 1};
	for (int i = 0; i < n; i++)
		set_input(s, i, rank);
	s->value[n] = (struct onnx_value){.name = "y", .what_name = "tensor", .producer = 0, .input = -1, .outer = -1};
	s->output[0] = n;
	s->node = (struct onnx_node){.op = op, .domain = domain, .name = "the_node", .opset = *domain ? 1 : 13, .input = s->in, .inputs = (size_t)n, .output = s->output, .outputs = 1};
	if (strcmp(op, "QLinearSoftmax") == 0) {
		s->attribute = (struct onnx_attribute){.name = "opset", .kind = ONNX_KIND_INT, .kind_name = "INT", .i = 13, .n = 1};
		s->node.attribute = &s->attribute, s->node.attributes = 1;
	}
	return &s->graph;
}

/* What an operator takes: values v, scales s, zero points z, and i left out. */
static const struct {
	const char *op, *domain, *inputs;
} operators[] = {
    {"QLinearAdd", "com.microsoft", "vszvszsz"},	 {"QLinearMul", "com.microsoft", "vszvszsz"},
    {"QLinearAveragePool", "com.microsoft", "vszsz"},	 {"QLinearGlobalAveragePool", "com.microsoft", "vszsz"},
    {"QLinearSigmoid", "com.microsoft", "vszsz"},	 {"QLinearLeakyRelu", "com.microsoft", "vszsz"},
    {"QLinearSoftmax", "com.microsoft", "vszsz"},	 {"QLinearConcat", "com.microsoft", "szvszvsz"},
    {"QGemm", "com.microsoft", "vszvszisz"},		 {"QLinearMatMul", "", "vszvszsz"},
    {"QLinearConv", "", "vszvszszi"},			 {"DequantizeLinear", "", "vsz"},
    {"QuantizeLinear", "", "fsz"},			 {"MatMulInteger", "", "vvzz"},
    {"ConvInteger", "", "vvzz"},
};

enum { OPERATORS = sizeof operators / sizeof *operators, AVERAGE_POOL = 2, SOFTMAX = 6, CONCAT, QGEMM, MATMUL, CONV };

static void start(struct small *s, int op)
{
	*s = (struct small){0};
	for (int i = 0; operators[op].inputs[i]; i++) {
		char what = operators[op].inputs[i];
		s->given[i] = what == 's' ? good_scale : what == 'z' ? good_zero : what == 'i' ? left_out : value;
		if (what == 'f')
			s->given[i].type = ONNX_FLOAT;
	}
}

/* Whether the operator is refused with its name and what is said of it. */
static bool is_refused(struct small *s, int op, enum diag_id id, const char *part)
{
	const char *text = import_graph(make_graph(s, operators[op].op, operators[op].domain, (int)strlen(operators[op].inputs)));
	const char *said = diags.n ? diags.at[0].message : "";
	bool good = !text && diags.n && diags.at[0].id == id && strstr(said, part) && strstr(said, "'the_node'") && strstr(said, operators[op].op);
	if (!good)
		printf("# %s: %s\n", operators[op].op, text ? text : said);
	return good;
}

static void refuses_scales(void)
{
	static const float bad[] = {0, -0.0f, -0.5f, INFINITY, -INFINITY, NAN};
	for (int op = 0; op < OPERATORS; op++) {
		bool good = true;
		if (!strchr(operators[op].inputs, 's'))
			continue;
		for (int i = 0; operators[op].inputs[i]; i++)
			for (size_t k = 0; operators[op].inputs[i] == 's' && k < sizeof bad / sizeof *bad; k++) {
				struct small s;
				start(&s, op);
				s.given[i].scale[0] = bad[k];
				good &= is_refused(&s, op, DIAG_ONNX_SCALE, "scales are positive and finite");
			}
		tap_ok(good, "%s refuses scales that are zero, negative, infinite or no number", operators[op].op);
	}
}

/* Changes each input of a kind in turn. */
static void refuses(char kind, struct given changed, enum diag_id id, const char *part, const char *what)
{
	for (int op = 0; op < OPERATORS; op++) {
		bool good = true, some = false;
		for (int i = 0; operators[op].inputs[i]; i++) {
			struct small s;
			/* The zero point of a result says the type of these. */
			bool decides = !*operators[op].domain && kind == 'z' && changed.type != ONNX_UINT8 &&
				       (i == 7 || operators[op].inputs[0] == 'f');
			/* The axis of a scale or zero point of weights, of which there may be several. */
			bool axis = changed.n > 1 && (!*operators[op].domain || (strcmp(operators[op].op, "QGemm") == 0 && (i == 4 || i == 5)));
			bool by_table = !i && changed.type == ONNX_UINT8; /* which takes no integers there */
			if (operators[op].inputs[i] != kind || decides || axis || by_table)
				continue;
			start(&s, op);
			s.given[i] = changed;
			good &= is_refused(&s, op, id, part);
			some = true;
		}
		if (some)
			tap_ok(good, "%s refuses %s", operators[op].op, what);
	}
}

static void refuses_types(void)
{
	refuses('z', (struct given){ONNX_INT32, 1, {0}, 0}, DIAG_ONNX_TYPE, "zero point of type int32", "zero points that bytes do not hold");
	refuses('z', (struct given){ONNX_INT8, 1, {0}, 0}, DIAG_ONNX_TYPE, "zero point of type int8 for values of type uint8", "zero points of the other sign");
	refuses('s', (struct given){ONNX_UINT8, 1, {0}, 0}, DIAG_ONNX_TYPE, "scales are floats", "scales of integers");
}

static void refuses_values(void)
{
	for (int op = 0; op < OPERATORS; op++)
		for (int i = 0; *operators[op].domain && operators[op].inputs[i]; i++) {
			struct small s;
			if (operators[op].inputs[i] != 'v')
				continue;
			start(&s, op);
			s.given[i].type = ONNX_INT32;
			s.given[i + 2].type = ONNX_INT32;
			tap_ok(is_refused(&s, op, DIAG_ONNX_TYPE, "values are uint8 or int8"), "%s refuses input %d of int32", operators[op].op, i);
		}
}

static void refuses_counts(void)
{
	struct small s;
	refuses('s', (struct given){ONNX_FLOAT, 3, {1, 1, 1}, 0}, DIAG_ONNX_SHAPE, "3 scales or zero points, and there is one", "several scales");
	refuses('z', (struct given){ONNX_UINT8, 3, {0}, 0}, DIAG_ONNX_SHAPE, "3 scales or zero points, and there is one", "several zero points");
	for (int op = QGEMM; op < OPERATORS && strchr(operators[op].inputs, 's'); op++) {
		int scale = operators[op].inputs[3] == 'v' ? 4 : 1;
		for (int i = scale; i < scale + 2; i++) {
			start(&s, op);
			s.given[i] = i == scale ? (struct given){ONNX_FLOAT, 2, {1, 1, 1}, 0} : (struct given){ONNX_UINT8, 4, {0}, 0};
			if (op >= 11 && i == scale + 1)
				continue; /* an axis has a list of scales first */
			if (strcmp(operators[op].op, "QLinearConv") == 0 && i == scale)
				s.given[i].n = 3;
			tap_ok(is_refused(&s, op, DIAG_ONNX_SHAPE, "scales or zero points, and its axis"), "%s refuses a count in input %d that is not that of the axis",
			       operators[op].op, i);
		}
	}
}

/* One input of the node is another than a good one. */
static bool refuses_input(int op, int at, struct given changed, enum diag_id id, const char *part)
{
	struct small s;
	start(&s, op);
	s.given[at] = changed;
	return is_refused(&s, op, id, part);
}

static void refuses_summands(void)
{
	const struct given floats = {ONNX_FLOAT, 1, {0.5f}, 0}, several = {ONNX_INT32, 3, {0}, 0}, two = {ONNX_INT32, 2, {0}, 0};
	tap_ok(refuses_input(QGEMM, 6, floats, DIAG_ONNX_TYPE, "input 6 is of type float"), "QGemm refuses an offset of floats");
	tap_ok(refuses_input(QGEMM, 6, two, DIAG_ONNX_SHAPE, "cannot be broadcast"), "and one that is not as long as a row");
	tap_ok(refuses_input(CONV, 8, floats, DIAG_ONNX_TYPE, "input 8 is of type float"), "QLinearConv refuses a bias of floats");
	tap_ok(refuses_input(CONV, 8, several, DIAG_ONNX_SHAPE, "other elements"), "and one without a number for each channel");
}

static void refuses_the_rest(void)
{
	struct small s;
	const struct given three = {ONNX_FLOAT, 3, {1, 1, 1}, 0};
	tap_ok(refuses_input(QGEMM, 8, left_out, DIAG_ONNX_OPERATOR, "without the other"), "QGemm refuses a scale of the result without a zero point");
	for (int op = MATMUL; op <= CONV; op++)
		tap_ok(refuses_input(op, 6, three, DIAG_ONNX_SHAPE, "there is one"), "%s refuses several scales of the result", operators[op].op);
	start(&s, CONV);
	s.given[4] = (struct given){ONNX_FLOAT, 2, {1, 1}, 3};
	tap_ok(is_refused(&s, CONV, DIAG_ONNX_SHAPE, "2 scales or zero points"), "QLinearConv refuses scales of weights that are no list");
	start(&s, 0);
	s.given[3].type = s.given[5].type = ONNX_INT8;
	tap_ok(is_refused(&s, 0, DIAG_ONNX_TYPE, "types uint8 and int8"), "QLinearAdd refuses values of two types");
	start(&s, CONCAT);
	s.given[5].type = s.given[7].type = ONNX_INT8;
	tap_ok(is_refused(&s, CONCAT, DIAG_ONNX_TYPE, "types uint8 and int8"), "and so does QLinearConcat");
	start(&s, SOFTMAX);
	make_graph(&s, "QLinearSoftmax", "com.microsoft", 5);
	s.attribute.name = "axis";
	check_refusal(&s.graph, DIAG_ONNX_ATTRIBUTE, "no attribute 'opset'", "QLinearSoftmax refuses an axis without its meaning");
}

/* Windows of one element in a border have no elements to average. */
static void refuses_pads(void)
{
	static const int64_t pads[] = {0, 1, 0, 0};
	static const char *const op[] = {"QLinearAveragePool", "AveragePool"};
	for (int i = 0; i < 2; i++) {
		struct small s;
		start(&s, AVERAGE_POOL);
		s.given[0].type = i ? ONNX_FLOAT : ONNX_UINT8;
		make_graph(&s, op[i], i ? "" : "com.microsoft", i ? 1 : 5);
		s.attribute = (struct onnx_attribute){.name = "pads", .kind = ONNX_KIND_INTS, .kind_name = "INTS", .ints = pads, .n = 4};
		s.node.attribute = &s.attribute, s.node.attributes = 1;
		check_refusal(&s.graph, DIAG_ONNX_ATTRIBUTE, "a window lies in the pads of axis 3 alone", op[i]);
	}
}

/* Scales and zero points that are one element are the same numbers, whatever their axes. */
static void joins_single_elements(void)
{
	for (int op = 0; op < OPERATORS; op++) {
		struct small s;
		int n = (int)strlen(operators[op].inputs);
		start(&s, op);
		const char *text = import_graph(make_graph(&s, operators[op].op, operators[op].domain, n));
		start(&s, op);
		for (int i = 0; i < n; i++)
			s.given[i].ones = s.given[i].n ? 5 : 0;
		const char *same = import_graph(make_graph(&s, operators[op].op, operators[op].domain, n));
		tap_ok(text && same && strcmp(text, same) == 0, "%s takes a scale or zero point of six axes", operators[op].op);
	}
}

int main(void)
{
	static void (*const tests[])(void) = {refuses_scales, refuses_types, refuses_values, refuses_counts, refuses_summands, refuses_the_rest, refuses_pads, joins_single_elements};
	return run_imports(tests, sizeof tests / sizeof *tests);
}
