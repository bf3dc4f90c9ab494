/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: the graph that is read holds together, also with all extents given, and the model that it
 * becomes prints, reads back as itself and takes the tensors of the file as its weights.  Elements may lie in
 * a file of 64 bytes. */
#include "tests/fuzz/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SIZES = 8 };

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

static bool import(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct onnx_graph *g;
	struct onnx_size size[MOST_SIZES];
	f->most = FUZZ_GRAPH_BYTES;
	if (!onnx_read_graph(&f->arena, &f->diags, path_of_model(), bytes, n, NULL, &g))
		return false;
	fuzz_check_graph(f, g);
	const struct onnx_choices choices = {.size = size, .sizes = choose_sizes(f, g, size)};
	if (choices.sizes && !onnx_read_graph(&f->arena, &f->diags, path_of_model(), bytes, n, &choices, &g))
		return false;
	return fuzz_import_graph(f, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run(import, bytes, n);
}
