/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/graphs.h"

#include "ra/ra.h"

#include <string.h>

enum { MOST_NODES = 24, MOST_ELEMENTS = 1 << 14 };

static void check_value(struct fuzz *f, const struct onnx_graph *g, const struct onnx_value *v)
{
	fuzz_check(f, v->producer < (int)g->nodes && v->input < (int)g->inputs,
		   "a value knows where it comes from");
	if (v->producer >= 0)
		fuzz_check(f, g->node[v->producer].output[v->result] == v - g->value,
			   "a value is an output of its producer");
	if (!v->constant)
		return;
	const struct onnx_tensor *t = v->constant;
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->dim[d];
	fuzz_check(f, n == t->elements && t->data, "a constant has the elements of its extents");
	fuzz_hash(t->data, t->bytes);
}

static void check_order(struct fuzz *f, const struct onnx_graph *g, const struct onnx_node *n)
{
	for (size_t i = 0; i < n->inputs; i++)
		fuzz_check(f, n->input[i] < 0 || g->value[n->input[i]].producer < n - g->node,
			   "a producer comes before its users");
	for (size_t i = 0; i < n->outputs; i++)
		fuzz_check(f, n->output[i] < (int)g->values, "an output is a value");
}

void fuzz_check_graph(struct fuzz *f, const struct onnx_graph *g)
{
	for (size_t i = 0; i < g->values; i++)
		check_value(f, g, &g->value[i]);
	for (size_t i = 0; i < g->nodes; i++)
		check_order(f, g, &g->node[i]);
	for (size_t i = 0; i < g->outputs; i++)
		fuzz_check(f, g->output[i] >= 0 && g->output[i] < (int)g->values, "an output is a value");
}

static bool is_small(const struct onnx_graph *g)
{
	int64_t elements = 0;
	for (size_t i = 0; i < g->values; i++)
		elements += g->value[i].constant ? g->value[i].constant->elements : 0;
	return g->nodes <= MOST_NODES && elements <= MOST_ELEMENTS;
}

static const char *print_model(struct fuzz *f, const struct ra_model *m)
{
	struct str s = str_in(&f->arena);
	ra_print(m, &s);
	return str_text(&s);
}

static void check_model(struct fuzz *f, const struct onnx_model *m)
{
	const char *text = print_model(f, m->model);
	const struct ra_model *again = ra_parse(&f->arena, &f->diags, "again.ra", text, strlen(text));
	fuzz_check(f, again && strcmp(print_model(f, again), text) == 0,
		   "a printed model reads back as itself");
	struct tensor_info *t = ARENA_ARRAY(&f->arena, struct tensor_info, m->weights + 1);
	int64_t *sizes = ARENA_ARRAY(&f->arena, int64_t, m->model->symbols.n + 1);
	for (size_t i = 0; i < m->weights; i++) {
		const struct onnx_tensor *w = &m->weight[i];
		t[i] = (struct tensor_info){
		    .name = w->name, .dtype = onnx_type_traits_of(w->type)->dtype, .rank = w->rank};
		memcpy(t[i].shape, w->dim, sizeof *w->dim * w->rank);
	}
	fuzz_check(f, ra_bind(m->model, &f->diags, "file", t, m->weights, sizes),
		   "a model takes the tensors of its file");
}

bool fuzz_import_graph(struct fuzz *f, const struct onnx_graph *g)
{
	struct onnx_model m;
	fuzz_check_graph(f, g);
	if (!is_small(g))
		return true;
	if (!onnx_import(&f->arena, &f->diags, g, &m))
		return false;
	fuzz_check(f, !f->diags.n, "a model comes without diagnostics");
	check_model(f, &m);
	return true;
}
