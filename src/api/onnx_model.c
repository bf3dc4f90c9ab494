/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models and weights of files of graphs: of ONNX, of TensorFlow Lite. */
#include "api/objects.h"
#include "io/file.h"
#include "onnx/graph.h"
#include "tflite/lite.h"

#include <string.h>

typedef bool read_graph(struct arena *, struct diags *, const char *file, const void *bytes, size_t n, const esp_read_options *,
			struct onnx_graph **);
static read_graph read_onnx, read_tflite;

static const struct graph_format {
	const char *ending, *bytes;
	size_t at;
	read_graph *read;
} formats[] = {
#define GRAPH_FILE(format, ending, at, bytes) {ending, bytes, at, read_##format},
#include "base/graph_files.def"
};

static bool ends_with(const char *text, const char *ending)
{
	size_t n = strlen(text), wanted = strlen(ending);
	return n >= wanted && strcmp(text + n - wanted, ending) == 0;
}

const struct graph_format *model_find_format(const char *file, const char *bytes, size_t n)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (ends_with(file, formats[i].ending))
			return &formats[i];
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		size_t length = strlen(formats[i].bytes);
		if (n >= formats[i].at + length && memcmp(bytes + formats[i].at, formats[i].bytes, length) == 0)
			return &formats[i];
	}
	return NULL;
}

/* --- options --- */

static enum onnx_type type_of(esp_dtype dtype)
{
	for (int t = 1; t < ONNX_TYPES; t++) {
		int own = onnx_type_traits_of(t)->dtype;
		if (own != DTYPES && api_dtype(own) == dtype)
			return t;
	}
	return ONNX_UNKNOWN_TYPE;
}

static bool bad_option(struct diags *diags, const char *what)
{
	return api_bad_argument(diags, "esp_model_read_with", "options", what);
}

static bool copy_array(struct arena *arena, struct diags *diags, const esp_array *from,
		       struct onnx_tensor *to)
{
	size_t bytes = esp_dtype_size(from->dtype), elements = 1;
	if (!from->name || !from->elements || !bytes || (from->rank && !from->shape))
		return bad_option(diags, "has an array without a name, a type, a shape or elements");
	if (from->rank > TENSOR_MAX_RANK)
		return bad_option(diags, "has an array of more than eight axes");
	*to = (struct onnx_tensor){
	    .name = arena_string(arena, from->name), .type = type_of(from->dtype), .rank = (int)from->rank};
	for (size_t d = 0; d < from->rank; d++) {
		to->dim[d] = (int64_t)from->shape[d];
		if (__builtin_mul_overflow(elements, from->shape[d], &elements))
			return bad_option(diags, "has an array that is larger than memory");
	}
	if (__builtin_mul_overflow(elements, bytes, &to->bytes) || to->bytes > ONNX_MAX_BYTES)
		return bad_option(diags, "has an array that is larger than 2 GiB");
	to->elements = (int64_t)elements;
	to->data = arena_copy(arena, from->elements, to->bytes);
	return true;
}

static bool copy_options(struct arena *arena, struct diags *diags, const esp_read_options *o,
			 struct onnx_choices *c)
{
	struct onnx_size *size = ARENA_ARRAY(arena, struct onnx_size, o->extents + 1);
	struct onnx_tensor *constant = ARENA_ARRAY(arena, struct onnx_tensor, o->constants + 1);
	const char **exported = ARENA_ARRAY(arena, const char *, o->exports + 1);
	if ((o->extents && !o->extent) || (o->constants && !o->constant) || (o->exports && !o->exported))
		return bad_option(diags, "says that there are more of something than it has");
	for (size_t i = 0; i < o->extents; i++) {
		if (!o->extent[i].name)
			return bad_option(diags, "has a size without a name");
		size[i] = (struct onnx_size){arena_string(arena, o->extent[i].name), o->extent[i].size};
	}
	for (size_t i = 0; i < o->constants; i++)
		if (!copy_array(arena, diags, &o->constant[i], &constant[i]))
			return false;
	for (size_t i = 0; i < o->exports; i++) {
		if (!o->exported[i])
			return bad_option(diags, "has an output without a name");
		exported[i] = arena_string(arena, o->exported[i]);
	}
	*c = (struct onnx_choices){size, o->extents, constant, o->constants, exported, o->exports};
	return true;
}

static bool read_onnx(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n, const esp_read_options *options,
		      struct onnx_graph **graph)
{
	struct onnx_choices choices = {0};
	return (!options || copy_options(arena, diags, options, &choices)) && onnx_read_graph(arena, diags, file, bytes, n, &choices, graph);
}

static bool read_tflite(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n, const esp_read_options *options,
			struct onnx_graph **graph)
{
	if (options && (options->extents || options->constants || options->exports))
		return diag_add(diags, DIAG_ONNX_CHOICE, (struct diag_at){.file = file}, "its shapes and outputs are those that its converter wrote",
				"'%s' is a model of TensorFlow Lite, of which no sizes, constants or outputs are chosen", file);
	return tflite_read_graph(arena, diags, file, bytes, n, graph);
}

static bool describe_unread(struct arena *arena, const struct onnx_value *v, esp_input *in)
{
	enum dtype dtype = onnx_type_traits_of(v->type)->dtype;
	size_t *shape = ARENA_ARRAY(arena, size_t, ONNX_MAX_RANK);
	if (dtype == DTYPES || v->rank < 0)
		return false;
	*in = (esp_input){.name = arena_string(arena, v->name), .dtype = api_dtype(dtype), .rank = (size_t)v->rank, .shape = shape, .elements = 1};
	for (int d = 0; d < v->rank; d++) {
		shape[d] = v->dim[d].size > 0 ? (size_t)v->dim[d].size : 0;
		if (__builtin_mul_overflow(in->elements, shape[d], &in->elements))
			return false;
	}
	return true;
}

static void describe_all_unread(esp_model *m)
{
	m->unread = ARENA_ARRAY(&m->arena, esp_input, m->onnx->unreads + 1);
	for (size_t i = 0; i < m->onnx->unreads; i++)
		m->unreads += describe_unread(&m->arena, m->onnx->unread[i], &m->unread[m->unreads]);
}

const esp_input *esp_model_unread_input(const esp_model *m, size_t i)
{
	return m && i < m->unreads ? &m->unread[i] : NULL;
}

bool model_read_graph(esp_model *m, struct diags *diags, const struct graph_format *format, const char *file, const char *bytes, size_t n,
		      const esp_read_options *options)
{
	struct onnx_graph *graph;
	struct onnx_model *onnx = ARENA_NEW(&m->arena, struct onnx_model);
	if (!format->read(&m->arena, diags, file, bytes, n, options, &graph) || !onnx_import(&m->arena, diags, graph, onnx))
		return false;
	m->graph = onnx->model;
	m->onnx = onnx;
	m->locals = ARENA_ARRAY(&m->arena, esp_local, 1);
	describe_all_unread(m);
	return true;
}

/* --- weights --- */

static struct io_safetensors *describe_tensors(struct arena *arena, const char *path,
					       const struct onnx_tensor *t, size_t n)
{
	struct io_safetensors *w = ARENA_NEW(arena, struct io_safetensors);
	struct tensor_info *info = ARENA_ARRAY(arena, struct tensor_info, n + 1);
	const void **elements = ARENA_ARRAY(arena, const void *, n + 1);
	for (size_t i = 0; i < n; i++) {
		info[i] = (struct tensor_info){
		    .name = t[i].name, .dtype = onnx_type_traits_of(t[i].type)->dtype, .rank = t[i].rank};
		for (int d = 0; d < t[i].rank; d++)
			info[i].shape[d] = t[i].dim[d];
		elements[i] = t[i].data;
	}
	*w = (struct io_safetensors){
	    .path = path, .fd = -1, .elements = elements, .n = (int)n, .own = (int)n, .tensor = info};
	return w;
}

struct io_safetensors *weights_of_model(esp_weights *w, const esp_model *m)
{
	w->model = object_hold(m);
	return describe_tensors(&w->arena, m->graph->file ? m->graph->file : m->graph->name, m->onnx->weight,
				m->onnx->weights);
}

struct io_safetensors *weights_read_tensor(esp_weights *w, struct diags *diags, const char *path)
{
	struct onnx_tensor *t = ARENA_NEW(&w->arena, struct onnx_tensor);
	const char *file = arena_string(&w->arena, path);
	size_t n;
	const char *bytes = io_read_file(&w->arena, diags, file, &n);
	if (!bytes || !onnx_read_tensor(&w->arena, diags, file, bytes, n, t))
		return NULL;
	if (onnx_type_traits_of(t->type)->dtype == DTYPES || t->rank > TENSOR_MAX_RANK) {
		diag_add(diags, DIAG_UNKNOWN_DTYPE, (struct diag_at){.file = file},
			 "save it as one of the types f32, f16, bf16, i8, u8, i16, i32, i64 and bool",
			 "its elements are %s, it has %d axes", onnx_type_traits_of(t->type)->name, t->rank);
		return NULL;
	}
	return describe_tensors(&w->arena, file, t, 1);
}
