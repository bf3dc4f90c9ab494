/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models and weights of ONNX files. */
#include "api/objects.h"
#include "io/file.h"
#include "onnx/graph.h"

#include <string.h>

bool model_is_onnx(const char *file, const char *bytes, size_t n)
{
	static const char ending[] = ".onnx";
	size_t length = strlen(file), wanted = sizeof ending - 1;
	/* The tag of a model's first field; a text has no such character. */
	return (length >= wanted && strcmp(file + length - wanted, ending) == 0) || (n && *bytes == 8);
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

bool model_read_onnx(esp_model *m, struct diags *diags, const char *file, const char *bytes, size_t n,
		     const esp_read_options *options)
{
	struct onnx_choices choices = {0};
	struct onnx_graph *graph;
	struct onnx_model *onnx = ARENA_NEW(&m->arena, struct onnx_model);
	if ((options && !copy_options(&m->arena, diags, options, &choices)) ||
	    !onnx_read_graph(&m->arena, diags, file, bytes, n, &choices, &graph) ||
	    !onnx_import(&m->arena, diags, graph, onnx))
		return false;
	m->graph = onnx->model;
	m->onnx = onnx;
	m->locals = ARENA_ARRAY(&m->arena, esp_local, 1);
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
	    .path = path, .fd = -1, .elements = elements, .n = (int)n, .tensor = info};
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
