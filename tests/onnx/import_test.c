/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The importer: what models it makes of small graphs, what it refuses, and that doc/onnx.md lists its
 * operators. */
#include "onnx/import.h"
#include "tests/onnx/imports.h"

#include <stdlib.h>

enum { VALUES = 5 };

/* x of [2, 3] goes through at most two nodes; value 3 is the output. */
struct small {
	struct onnx_value value[VALUES];
	struct onnx_node node[2];
	struct onnx_graph graph;
	struct onnx_attribute attribute;
	struct onnx_tensor list;
	int64_t numbers[4];
	int in[2][3], out[2], inputs[2], outputs[1];
};

enum { X, Y, MIDDLE, RESULT, LIST };

static void set_value(struct small *s, int i, const char *name, enum onnx_type type, int input)
{
	s->value[i] = (struct onnx_value){.name = name,
					  .what_name = "tensor",
					  .type = type,
					  .rank = 2,
					  .producer = -1,
					  .input = input,
					  .outer = -1};
	s->value[i].dim[0].size = 2, s->value[i].dim[1].size = 3;
}

static void start(struct small *s)
{
	*s = (struct small){.inputs = {X, Y}, .outputs = {RESULT}};
	set_value(s, X, "x", ONNX_FLOAT, 0);
	set_value(s, Y, "y", ONNX_FLOAT, 1);
	set_value(s, MIDDLE, "middle", ONNX_UNKNOWN_TYPE, -1);
	set_value(s, RESULT, "result", ONNX_UNKNOWN_TYPE, -1);
	set_value(s, LIST, "list", ONNX_INT64, -1);
	s->list = (struct onnx_tensor){.name = "list", .type = ONNX_INT64, .rank = 1, .data = s->numbers};
	s->value[LIST].constant = &s->list;
	s->graph = (struct onnx_graph){.file = "small.onnx",
				       .name = "small",
				       .node = s->node,
				       .value = s->value,
				       .values = VALUES,
				       .input = s->inputs,
				       .output = s->outputs,
				       .inputs = 2,
				       .outputs = 1};
}

static void set_list(struct small *s, int n, const int64_t *numbers)
{
	memcpy(s->numbers, numbers, sizeof *numbers * n);
	s->list.dim[0] = s->list.elements = n;
	s->list.bytes = sizeof *numbers * n;
}

static struct onnx_node *put(struct small *s, const char *op, int n, const int *in, int out)
{
	size_t i = s->graph.nodes++;
	memcpy(s->in[i], in, sizeof *in * n);
	s->out[i] = out;
	s->node[i] = (struct onnx_node){.op = op,
					.domain = "",
					.name = "the_node",
					.opset = 13,
					.input = s->in[i],
					.output = &s->out[i],
					.inputs = n,
					.outputs = 1,
					.number = (int)i};
	return &s->node[i];
}

static void writes_models(void)
{
	struct small s;
	start(&s);
	put(&s, "Relu", 1, (int[]){X}, RESULT);
	check_text(&s.graph, "maximum(x, 0)", -1, "a formula is written in full");
	start(&s);
	put(&s, "Transpose", 1, (int[]){X}, MIDDLE);
	put(&s, "MatMul", 2, (int[]){X, MIDDLE}, RESULT);
	check_text(&s.graph, "@", -1, "values are used by the nodes behind them");
	start(&s);
	set_list(&s, 2, (int64_t[]){-1, 2});
	put(&s, "Reshape", 2, (int[]){X, LIST}, RESULT);
	check_text(&s.graph, "reshape(x, 3, 2)", -1, "an extent of -1 is what the others leave");
	start(&s);
	put(&s, "Shape", 1, (int[]){X}, MIDDLE);
	put(&s, "Reshape", 2, (int[]){Y, MIDDLE}, RESULT);
	check_text(&s.graph, "input y[2, 3]", -1,
		   "what depends on shapes alone is known, and inputs that are not used are not declared");
	start(&s);
	s.value[X].name = "i0";
	put(&s, "ReduceSum", 1, (int[]){X}, RESULT);
	check_text(&s.graph, "sum(", -1, "indices have other names than values");
	start(&s);
	s.value[X].name = "a", s.value[Y].name = "p";
	put(&s, "Pow", 2, (int[]){X, Y}, RESULT);
	check_text(&s.graph, "exp(p * log(abs(a)))", -1, "names of arguments may be names of the graph");
	start(&s);
	s.value[X].type = s.value[Y].type = ONNX_UINT8;
	put(&s, "Add", 2, (int[]){X, Y}, RESULT);
	check_text(&s.graph, "/ 256", -1, "sums of narrow integers are wrapped");
}

static void refuses_nodes(void)
{
	struct small s;
	start(&s);
	put(&s, "NonZero", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_OPERATOR, "node 0 'the_node' (NonZero, opset 13)",
		      "an operator that is not imported is refused with its node");
	start(&s);
	put(&s, "Mish", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_OPERATOR, "not imported from this version",
		      "so is one in a version without it");
	start(&s);
	s.attribute = (struct onnx_attribute){.name = "slope", .kind = ONNX_KIND_FLOAT, .kind_name = "FLOAT"};
	*put(&s, "LeakyRelu", 1, (int[]){X}, RESULT) = (struct onnx_node){.op = "LeakyRelu",
									  .domain = "",
									  .name = "",
									  .opset = 13,
									  .input = s.in[0],
									  .output = &s.out[0],
									  .inputs = 1,
									  .outputs = 1,
									  .attribute = &s.attribute,
									  .attributes = 1};
	check_refusal(&s.graph, DIAG_ONNX_ATTRIBUTE, "'slope'",
		      "an attribute that the operator lacks is refused");
	start(&s);
	s.value[X].type = ONNX_DOUBLE;
	put(&s, "Relu", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_TYPE, "'x' has elements of type double",
		      "a type that values cannot have is refused");
	start(&s);
	s.value[X].type = ONNX_INT32;
	put(&s, "Exp", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_TYPE, "no inputs of type int32",
		      "so is one that the operator does not take");
	start(&s);
	s.value[X].dim[1] = (struct onnx_dim){-1, "width"};
	put(&s, "Relu", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "'x' has an axis 1 of unknown size",
		      "a size that is not known is refused");
	tap_ok(diags.n && diags.at[0].hint && strstr(diags.at[0].hint, "--sizes width="),
	       "and it is said how to give it");
	start(&s);
	s.value[Y].dim[0].size = 5;
	put(&s, "Add", 2, (int[]){X, Y}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "[2, 3] and [5, 3]",
		      "shapes that cannot be broadcast are refused");
	start(&s);
	s.value[Y] = s.value[LIST];
	s.value[Y].constant = NULL, s.value[Y].input = 1, s.value[Y].rank = 1;
	put(&s, "Reshape", 2, (int[]){X, Y}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_CONSTANT, "decides a shape",
		      "an input that decides a shape must be known");
	start(&s);
	s.value[X].name = "a/b", s.value[Y].name = "a_b";
	put(&s, "Add", 2, (int[]){X, Y}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_NAME, "'a_b'", "two inputs that are spelled alike are refused");
}

/* A small file can ask for any extent: what is made of constants at import is bounded, and the node told. */
static void refuses_large(const struct small *s, const char *node)
{
	size_t before = arena.bytes;
	struct str what = str_in(&arena);
	str_printf(&what, "more than the bound is refused: %s", node);
	check_refusal(&s->graph, DIAG_MODEL_LARGE, node, str_text(&what));
	tap_ok(arena.bytes - before <= (size_t)ONNX_IMPORT_LEAST + ONNX_IMPORT_OF_NODE + (1 << 20), "and no more memory was taken");
	arena_free(&arena);
	arena.escape = &escape;
}

static void refuses_large_constants(void)
{
	static const struct {
		const char *op;
		int ins, in[3], n;
		int64_t list[2];
	} cases[] = {
	    {"ConstantOfShape", 1, {LIST}, 2, {1 << 20, 1 << 20}},
	    {"ConstantOfShape", 1, {LIST}, 1, {INT32_MAX}},
	    {"Range", 3, {MIDDLE, LIST, X}, 1, {INT32_MAX}},
	    {"OneHot", 3, {X, LIST, Y}, 1, {INT32_MAX}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct small s;
		struct onnx_tensor ends[2];
		int64_t zero = 0, one = 1;
		start(&s);
		set_list(&s, cases[i].n, cases[i].list);
		s.value[MIDDLE].type = ONNX_INT64;
		ends[0] = ends[1] = (struct onnx_tensor){.name = "", .type = ONNX_INT64, .elements = 1, .data = &zero};
		ends[1].data = &one;
		if (strcmp(cases[i].op, "Range") == 0) {
			s.list.rank = 0;
			s.value[MIDDLE].constant = &ends[0];
			s.value[X].constant = &ends[1];
		}
		put(&s, cases[i].op, cases[i].ins, cases[i].in, RESULT);
		struct str node = str_in(&arena);
		str_printf(&node, "node 0 'the_node' (%s, opset 13)", cases[i].op);
		refuses_large(&s, str_text(&node));
	}
}

/* A transform of x[n, parts] along its first axis. */
static struct onnx_node *put_transform(struct small *s, int64_t n, int64_t parts, int64_t axis)
{
	s->value[X].dim[0].size = n, s->value[X].dim[1].size = parts;
	s->attribute = (struct onnx_attribute){
	    .name = "axis", .kind = ONNX_KIND_INT, .kind_name = "INT", .i = axis, .n = 1};
	struct onnx_node *node = put(s, "DFT", 1, (int[]){X}, RESULT);
	node->opset = 17, node->attribute = &s->attribute, node->attributes = 1;
	return node;
}

static void test_signals(void)
{
	struct small s;
	start(&s);
	put_transform(&s, 8, 2, 0);
	check_text(&s.graph, "constant[i1, i0, r0, r1] * x[r0, r1] for r0, r1", -1, "a transform is a sum over samples and their parts");
	start(&s);
	put_transform(&s, 8, 3, 0);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "8 samples of 3 parts", "a sample has one part or two");
	start(&s);
	put_transform(&s, 8, 2, 1);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "the last axis is that of the parts",
		      "which are not transformed");
	start(&s);
	put_transform(&s, 1 << 20, 2, 0);
	refuses_large(&s, "node 0 'the_node' (DFT, opset 17)");
	start(&s);
	put(&s, "GridSample", 2, (int[]){X, Y}, RESULT)->opset = 16;
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "images [N, C, H, W]", "samples are taken of images");
}

/* x[rows, 3] with each axis `scales` times as long. */
static void put_upsample(struct small *s, int64_t rows, const float *scales)
{
	s->value[X].dim[0].size = rows;
	s->attribute =
	    (struct onnx_attribute){.name = "scales", .kind = ONNX_KIND_FLOATS, .kind_name = "FLOATS", .floats = scales, .n = 2};
	struct onnx_node *node = put(s, "Upsample", 1, (int[]){X}, RESULT);
	node->opset = 7, node->attribute = &s->attribute, node->attributes = 1;
}

static void test_resizing(void)
{
	static const float scales[][2] = {{2, 1}, {1, 0.25F}};
	struct small s;
	start(&s);
	put_upsample(&s, 2, scales[0]);
	check_text(&s.graph, "param constant[4] : i64", -1, "an axis is twice as long");
	start(&s);
	put_upsample(&s, 0, scales[0]);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "axis 0 has no element", "nothing is made of an empty axis");
	start(&s);
	put_upsample(&s, 2, scales[1]);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "axis 1 is resized to nothing", "no axis is made empty");
}

/* What is computed of constants, and is large, is computed when the model is bound. */
static void leaves_large_values(void)
{
	struct small s;
	start(&s);
	set_list(&s, 1, (int64_t[]){1 << 30});
	put(&s, "Expand", 2, (int[]){LIST, LIST}, RESULT);
	check_text(&s.graph, "i0 in 1073741824", -1, "a constant that is expanded far is left to the model");
	start(&s);
	set_list(&s, 1, (int64_t[]){1 << 30});
	put(&s, "Tile", 2, (int[]){LIST, LIST}, RESULT);
	check_text(&s.graph, "in 1073741824", -1, "so is one that is repeated often");
	tap_ok(arena.bytes < 8 << 20, "and takes no memory of its size");
	start(&s);
	set_list(&s, 2, (int64_t[]){INT32_MAX, INT32_MAX - 1});
	put(&s, "Pad", 2, (int[]){LIST, LIST}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE,
		      "node 0 'the_node' (Pad, opset 13): [4294967295] has an extent over 2147483647",
		      "an extent that no value has is refused with its node");
	start(&s);
	s.value[X].dim[0].size = s.value[X].dim[1].size = (1 << 20) + 1;
	put(&s, "Relu", 1, (int[]){X}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE,
		      "'x' has an extent over 2147483647, or more than 2^40 elements",
		      "so is an input of more elements than values have");
	start(&s);
	set_list(&s, 2, (int64_t[]){-1, -1});
	put(&s, "ConstantOfShape", 1, (int[]){LIST}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "negative extent", "two negative extents are no shape");
	start(&s);
	set_list(&s, 2, (int64_t[]){3, 4});
	put(&s, "Add", 2, (int[]){LIST, LIST}, MIDDLE);
	put(&s, "Expand", 2, (int[]){LIST, MIDDLE}, RESULT);
	check_refusal(&s.graph, DIAG_ONNX_SHAPE, "[2] and [6, 8]", "what is small is computed");
}

/* The line of an operator in the page. */
static const char *row_of(const struct onnx_operator *op)
{
	static const char *const types[] = {[ONNX_ANY] = "any",
					    [ONNX_FLOATS] = "floats",
					    [ONNX_INTEGERS] = "integers",
					    [ONNX_NUMBERS] = "numbers",
					    [ONNX_TRUTHS] = "bool"};
	struct str s = str_in(&arena);
	str_printf(&s, "| `%s%s%s` | %d to %d | %s | ", op->domain, *op->domain ? "." : "", op->name, op->since, op->last, types[op->takes]);
	for (const char *p = op->attributes; *p;) {
		size_t name = strcspn(p, ":"), all = strcspn(p, " ");
		str_printf(&s, "%s`%.*s`", p == op->attributes ? "" : ", ", (int)name, p);
		p += all + (p[all] == ' ');
	}
	str_puts(&s, " |\n");
	return str_text(&s);
}

static void lists_operators(void)
{
	const char *folder = getenv("srcdir");
	struct str path = str_in(&arena);
	str_printf(&path, "%s/doc/onnx.md", folder ? folder : ".");
	FILE *f = fopen(str_text(&path), "rb");
	char *page = arena_take(&arena, 1 << 20, 1);
	size_t n = f ? fread(page, 1, (1 << 20) - 1, f) : 0;
	if (f)
		fclose(f);
	page[n] = 0;
	int missing = 0;
	for (int i = 0; i < onnx_operator_count; i++)
		if (!strstr(page, row_of(&onnx_operators[i])) && missing++ < 200)
			printf("# %s", row_of(&onnx_operators[i]));
	tap_ok(!missing, "doc/onnx.md has a line for each of %d rows of the table of operators",
	       onnx_operator_count);
}

int main(void)
{
	static void (*const tests[])(void) = {writes_models,	   refuses_nodes, refuses_large_constants,
					      leaves_large_values, test_signals, test_resizing, lists_operators};
	return run_imports(tests, sizeof tests / sizeof *tests);
}
