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

static bool open_file(void *job)
{
	struct opening *o = job;
	struct arena *arena = &o->weights->arena;
	o->weights->file = io_safetensors_open(arena, o->diags, arena_string(arena, o->path));
	return o->weights->file;
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

void esp_weights_free(esp_weights *w)
{
	object_release(w);
}
