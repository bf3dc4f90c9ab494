/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies: from words to tokens. */
#include "api/objects.h"

static void destroy_vocab(void *object)
{
	esp_vocab *v = object;
	arena_free(&v->arena);
}

struct opening {
	struct diags *diags;
	const char *path;
	esp_vocab *vocab;
};

static bool open_vocab(void *job)
{
	struct opening *o = job;
	o->vocab->words = io_vocab_open(&o->vocab->arena, o->diags, o->path);
	return o->vocab->words;
}

static esp_vocab *new_vocab(esp_context *context, const char *path, struct diags *diags)
{
	esp_vocab *v = object_new(context, sizeof *v, destroy_vocab, diags);
	if (!v)
		return NULL;
	arena_init(&v->arena, &context->allocator);
	if (api_guarded(&v->arena, diags, open_vocab, &(struct opening){diags, path, v}))
		return v;
	object_release(v);
	return NULL;
}

esp_status esp_vocab_open(esp_context *context, const char *path, esp_vocab **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_vocab *v = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		v = new_vocab(context, path, &call.diags);
	if (out)
		*out = v;
	return api_end(&call, v, error);
}

size_t esp_vocab_words(const esp_vocab *v)
{
	return v ? (size_t)v->words->n : 0;
}

int32_t esp_vocab_find(const esp_vocab *v, const char *word, size_t length)
{
	return v && (word || !length) ? io_vocab_find(v->words, word ? word : "", length) : -1;
}

void esp_vocab_free(esp_vocab *v)
{
	object_release(v);
}
