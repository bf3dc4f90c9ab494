/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

static void destroy(void *object)
{
	esp_weights *w = object;
	io_safetensors_close(w->file);
	arena_free(&w->arena);
}

struct opening {
	esp_weights *weights;
	struct diags *diags;
	const char *path;
};

static esp_tensor describe_tensor(const struct tensor_info *t)
{
	esp_tensor told = {.name = t->name, .type = io_safetensors_type(t->dtype), .rank = t->rank};
	for (int i = 0; i < t->rank; i++)
		told.shape[i] = t->shape[i];
	return told;
}

/* Room for what is told of the tensors comes last: it may escape, when the file is already the object's to close. */
static bool open_file(void *job)
{
	struct opening *o = job;
	esp_weights *w = o->weights;
	w->file = io_safetensors_open(&w->arena, o->diags, arena_string(&w->arena, o->path));
	if (!w->file)
		return false;
	w->tensors = ARENA_ARRAY(&w->arena, esp_tensor, w->file->n + 1);
	for (int i = 0; i < w->file->n; i++)
		w->tensors[i] = describe_tensor(&w->file->tensor[i]);
	return true;
}

static esp_weights *new_weights(esp_context *context, const char *path, struct diags *diags)
{
	esp_weights *w = object_new(context, sizeof *w, destroy, diags);
	if (!w)
		return NULL;
	arena_init(&w->arena, &context->allocator);
	if (api_guarded(&w->arena, diags, open_file, &(struct opening){w, diags, path}))
		return w;
	object_release(w);
	return NULL;
}

esp_status esp_weights_open(esp_context *context, const char *path, esp_weights **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_weights *w = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		w = new_weights(context, path, &call.diags);
	if (out)
		*out = w;
	return api_end(&call, w, error);
}

_Static_assert((int)TENSOR_MAX_RANK <= (int)ESP_TENSOR_RANK_MAX, "shapes fit into what callers see");

const esp_tensor *esp_weights_tensor(const esp_weights *w, size_t i)
{
	return w && i < (size_t)w->file->n ? &w->tensors[i] : NULL;
}

void esp_weights_free(esp_weights *w)
{
	object_release(w);
}
