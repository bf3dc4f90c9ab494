/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "io/quantised.h"

#include <string.h>

static void destroy_weights(void *object)
{
	esp_weights *w = object;
	io_safetensors_close(w->file);
	arena_free(&w->arena);
	object_release((void *)w->model);
}

/* Of a model, of a file, or of `n` bytes in memory. */
struct opening {
	struct diags *diags;
	const esp_model *model;
	const char *path;
	const void *bytes;
	size_t n;
	esp_weights *weights;
};

static esp_tensor describe_tensor(struct arena *a, const struct tensor_info *t)
{
	return (esp_tensor){.name = t->name,
			    .dtype = api_dtype(t->dtype),
			    .rank = t->rank,
			    .shape = api_shape(a, t->shape, t->rank)};
}

static bool is_single_tensor(const char *path)
{
	size_t n = strlen(path);
	return n >= 3 && strcmp(path + n - 3, ".pb") == 0;
}

/* The list of tensors is allocated last: that may escape, and by then the object owns the file and closes it.
 */
static bool open_weights(void *job)
{
	struct opening *o = job;
	esp_weights *w = o->weights;
	if (o->model)
		w->file = weights_of_model(w, o->model);
	else if (!o->path)
		w->file = io_safetensors_open_memory(&w->arena, o->diags, "weights in memory", o->bytes, o->n);
	else if (is_single_tensor(o->path))
		w->file = weights_read_tensor(w, o->diags, o->path);
	else
		w->file = io_safetensors_open(&w->arena, o->diags, arena_string(&w->arena, o->path));
	if (!w->file || !io_complete_quantised(&w->arena, o->diags, w->file))
		return false;
	w->tensors = ARENA_ARRAY(&w->arena, esp_tensor, w->file->own + 1);
	for (int i = 0; i < w->file->own; i++)
		w->tensors[i] = describe_tensor(&w->arena, &w->file->tensor[i]);
	return true;
}

static esp_weights *new_weights(esp_context *context, struct opening o)
{
	esp_weights *w = o.weights = object_new(context, sizeof *w, destroy_weights, o.diags);
	if (!w)
		return NULL;
	arena_init(&w->arena, &context->allocator);
	if (api_guarded(&w->arena, o.diags, open_weights, &o))
		return w;
	object_release(w);
	return NULL;
}

esp_status esp_weights_open(esp_context *context, const char *path, esp_weights **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_weights *w = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		w = new_weights(context, (struct opening){.diags = &call.diags, .path = path});
	if (out)
		*out = w;
	return api_end(&call, w, error);
}

esp_status esp_model_weights(const esp_model *model, esp_weights **out, esp_error **error)
{
	struct api_call call = api_begin(model);
	esp_weights *w = NULL;
	if (api_need(&call, model) && api_need(&call, out) &&
	    (model->onnx || api_bad_argument(&call.diags, __func__, "model", "is a text, which has no weights")))
		w = new_weights(model->object.context, (struct opening){.diags = &call.diags, .model = model});
	if (out)
		*out = w;
	return api_end(&call, w, error);
}

/* No object is larger than pointers can be apart. */
static bool check_length(size_t n, struct diags *diags)
{
	return n <= PTRDIFF_MAX ||
	       api_bad_argument(diags, "esp_weights_from_memory", "n", "is more than memory can have");
}

esp_status esp_weights_from_memory(esp_context *context, const void *bytes, size_t n, esp_weights **out,
				   esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_weights *w = NULL;
	if (api_need(&call, context) && api_need(&call, bytes) && api_need(&call, out) &&
	    check_length(n, &call.diags))
		w = new_weights(context, (struct opening){.diags = &call.diags, .bytes = bytes, .n = n});
	if (out)
		*out = w;
	return api_end(&call, w, error);
}

const esp_tensor *esp_weights_tensor(const esp_weights *w, size_t i)
{
	return w && i < (size_t)w->file->own ? &w->tensors[i] : NULL;
}

/* The type that the file keeps a tensor in. */
static esp_dtype find_kept_type(const struct io_safetensors *file, int i)
{
	return api_dtype(file->scale && file->scale[i].at ? DTYPE_I8 : file->tensor[i].dtype);
}

uint64_t esp_weights_bytes(const esp_weights *w, esp_dtype dtype, size_t *tensors)
{
	uint64_t bytes = 0;
	size_t n = 0;
	for (int i = 0; w && i < w->file->n; i++)
		if (find_kept_type(w->file, i) == dtype) {
			bytes += (uint64_t)tensor_elements(&w->file->tensor[i]) * esp_dtype_size(dtype);
			n++;
		}
	if (tensors)
		*tensors = n;
	return bytes;
}

const void *esp_weights_elements(const esp_weights *w, size_t i)
{
	return w && w->file->elements && i < (size_t)w->file->own ? w->file->elements[i] : NULL;
}

void esp_weights_free(esp_weights *w)
{
	object_release(w);
}
