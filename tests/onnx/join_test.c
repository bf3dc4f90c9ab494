/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operators on floats between DequantizeLinear and QuantizeLinear are operators on quantised values after reading, where
 * these say so; that results are equal is among the cases (tests/onnx/qlinear/QDQ, of which this is). */
#include "onnx/graph.h"
#include "tests/ra/read.h"
#include "tests/tap.h"

#include <string.h>

static const struct {
	const char *op;
	int times;
} joined[] = {
    {"QLinearConv", 3}, {"QLinearMatMul", 1},		{"QGemm", 2},		{"QLinearAdd", 1},	{"QLinearMul", 1},
    {"QLinearConcat", 1}, {"QLinearAveragePool", 1},	{"QLinearGlobalAveragePool", 1}, {"QLinearSigmoid", 1}, {"QLinearLeakyRelu", 1},
    {"MaxPool", 2},	 {"Reshape", 1},		{"Transpose", 1},	{"Conv", 2},		{"Gemm", 2},
    {"MatMul", 2},	 {"Mul", 1},			{"Relu", 1},		{"QuantizeLinear", 8},	{"Add", 0},
    {"Concat", 0},	 {"AveragePool", 1},		{"GlobalAveragePool", 0}, {"Sigmoid", 0},	{"LeakyRelu", 0},
};

static struct arena arena;
static struct diags diags;

static int count_nodes(const struct onnx_graph *g, const char *op)
{
	int n = 0;
	for (size_t i = 0; i < g->nodes; i++)
		n += strcmp(g->node[i].op, op) == 0;
	return n;
}

/* Whether a node takes what a dequantisation was of: bytes that the graph takes. */
static bool takes_bytes(const struct onnx_graph *g, const char *op)
{
	for (size_t i = 0; i < g->nodes; i++)
		if (strcmp(g->node[i].op, op) == 0 && g->value[g->node[i].input[0]].type == ONNX_UINT8)
			return true;
	return false;
}

static bool read_graph(const void *bytes, size_t n, struct onnx_graph **g)
{
	jmp_buf escape;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	return !arena_guard(&arena, &escape) && onnx_read_graph(&arena, &diags, "model.onnx", bytes, n, NULL, g);
}

int main(void)
{
	size_t n;
	struct onnx_graph *g;
	char *bytes = read_text(source_path("tests/onnx/qlinear/QDQ/model.onnx"), &n);
	if (!bytes || !read_graph(bytes, n, &g))
		return 99;
	for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
		tap_ok(count_nodes(g, joined[i].op) == joined[i].times, "%d nodes are %s", joined[i].times, joined[i].op);
	static const char *const moved[] = {"MaxPool", "Reshape", "Transpose"};
	for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
		tap_ok(takes_bytes(g, moved[i]), "%s moves quantised values", moved[i]);
	free(bytes);
	arena_free(&arena);
	diags_free(&diags);
	return tap_done();
}
