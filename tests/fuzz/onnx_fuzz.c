/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: the graph that is read holds together, also with all extents given, and the model that it
 * becomes prints, reads back as itself and takes the tensors of the file as its weights.  Elements may lie in
 * a file of 64 bytes. */
#include "onnx/graph.h"
#include "ra/ra.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is larger takes too long to be one execution of many; memory is refused earlier than import does. */
enum { MOST_BYTES = 64 << 20, MOST_NODES = 24, MOST_ELEMENTS = 1 << 14, MOST_SIZES = 8 };

/* --- the folder of the file --- */

static char folder[] = "/tmp/espalier-fuzz-XXXXXX";

static void remove_folder(void)
{
	char path[sizeof folder + 8];
	snprintf(path, sizeof path, "%s/data", folder);
	unlink(path);
	rmdir(folder);
}

/* The path that files are said to have: beside it is `data`. */
static const char *path_of_model(void)
{
	static char path[sizeof folder + 8];
	if (*path)
		return path;
	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof path, "%s/data", folder);
	FILE *data = fopen(path, "w");
	for (int i = 0; data && i < 64; i++)
		fputc(i % 4 == 3 ? 0x3f : i, data);
	if (!data || fclose(data) != 0 || atexit(remove_folder) != 0)
		abort();
	snprintf(path, sizeof path, "%s/m.onnx", folder);
	return path;
}

/* --- the graph --- */

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

static void check_graph(struct fuzz *f, const struct onnx_graph *g)
{
	for (size_t i = 0; i < g->values; i++)
		check_value(f, g, &g->value[i]);
	for (size_t i = 0; i < g->nodes; i++)
		check_order(f, g, &g->node[i]);
	for (size_t i = 0; i < g->outputs; i++)
		fuzz_check(f, g->output[i] >= 0 && g->output[i] < (int)g->values, "an output is a value");
}

/* Sizes for the extents of inputs that the file leaves open, 2 each. */
static size_t choose_sizes(struct fuzz *f, const struct onnx_graph *g, struct onnx_size *size)
{
	size_t n = 0;
	for (size_t i = 0; i < g->inputs; i++) {
		const struct onnx_value *v = &g->value[g->input[i]];
		for (int d = 0; d < v->rank && n < MOST_SIZES; d++) {
			struct str name = str_in(&f->arena);
			str_printf(&name, "%s[%d]", v->name, d);
			if (v->dim[d].size < 0)
				size[n++] = (struct onnx_size){
				    v->dim[d].param ? v->dim[d].param : str_text(&name), 2};
		}
	}
	return n;
}

static bool is_small(const struct onnx_graph *g)
{
	int64_t elements = 0;
	for (size_t i = 0; i < g->values; i++)
		elements += g->value[i].constant ? g->value[i].constant->elements : 0;
	return g->nodes <= MOST_NODES && elements <= MOST_ELEMENTS;
}

/* --- the model --- */

static const char *printed(struct fuzz *f, const struct ra_model *m)
{
	struct str s = str_in(&f->arena);
	ra_print(m, &s);
	return str_text(&s);
}

static void check_model(struct fuzz *f, const struct onnx_model *m)
{
	const char *text = printed(f, m->model);
	const struct ra_model *again = ra_parse(&f->arena, &f->diags, "again.ra", text, strlen(text));
	fuzz_check(f, again && strcmp(printed(f, again), text) == 0, "a printed model reads back as itself");
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

static bool import(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct onnx_graph *g;
	struct onnx_model m;
	struct onnx_size size[MOST_SIZES];
	f->most = MOST_BYTES;
	if (!onnx_read_graph(&f->arena, &f->diags, path_of_model(), bytes, n, NULL, &g))
		return false;
	check_graph(f, g);
	const struct onnx_choices choices = {.size = size, .sizes = choose_sizes(f, g, size)};
	if (choices.sizes && !onnx_read_graph(&f->arena, &f->diags, path_of_model(), bytes, n, &choices, &g))
		return false;
	check_graph(f, g);
	if (!is_small(g))
		return true;
	if (!onnx_import(&f->arena, &f->diags, g, &m))
		return false;
	fuzz_check(f, !f->diags.n, "a model comes without diagnostics");
	check_model(f, &m);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(import, bytes, n);
}
