/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams for the Versatile Tensor Accelerator, as callers see them. */
#include "api/objects.h"
#include "espalier_vta.h"
#include "io/file.h"
#include "io/write.h"
#include "vta/vta.h"

#include <string.h>

struct esp_vta_stream {
	struct object object;
	struct arena arena;
	struct vta_stream stream;
	struct vta_cost cost;
	esp_vta_segment *segment;
};

static void destroy_stream(void *object)
{
	esp_vta_stream *s = object;
	arena_free(&s->arena);
}

/* --- opening --- */

struct opening {
	struct diags *diags;
	const char *path;
	esp_vta_stream *out;
};

static bool read_stream(struct opening *o, struct arena *a)
{
	size_t n;
	const char *bytes = io_read_file(a, o->diags, o->path, &n);
	if (!bytes)
		return false;
	if (n >= 7 && !memcmp(bytes, "VTASTRM", 7))
		return vta_read(a, o->diags, o->path, (const uint8_t *)bytes, n, &o->out->stream);
	if (memchr(bytes, 0, n))
		return diag_add(o->diags, DIAG_VTA_TEXT, (struct diag_at){.file = o->path},
				"doc/vta.md has both forms", "'%s' is neither a text nor a file of a stream",
				o->path);
	return vta_parse(a, o->diags, o->path, bytes, &o->out->stream);
}

/* What the verifier needs is given back. */
static bool verify_stream(struct opening *o, struct arena *a)
{
	struct arena before = *a;
	bool ok = vta_verify(a, o->diags, &o->out->stream, &o->out->cost);
	arena_rewind(a, &before);
	return ok;
}

static bool open_stream(void *job)
{
	struct opening *o = job;
	struct arena *a = &o->out->arena;
	if (!read_stream(o, a) || !verify_stream(o, a))
		return false;
	const struct vta_stream *s = &o->out->stream;
	o->out->segment = ARENA_ARRAY(a, esp_vta_segment, s->segments);
	for (size_t i = 0; i < s->segments; i++)
		o->out->segment[i] = (esp_vta_segment){s->segment[i].name, vta_role_name(s->segment[i].role),
						       s->segment[i].begin, s->segment[i].bytes};
	return true;
}

static esp_vta_stream *new_stream(esp_context *context, const char *path, struct diags *diags)
{
	esp_vta_stream *s = object_new(context, sizeof *s, destroy_stream, diags);
	if (!s)
		return NULL;
	arena_init(&s->arena, &context->allocator);
	if (api_guarded(&s->arena, diags, open_stream, &(struct opening){diags, path, s}))
		return s;
	object_release(s);
	return NULL;
}

esp_status esp_vta_open(esp_context *context, const char *path, esp_vta_stream **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_vta_stream *s = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		s = new_stream(context, path, &call.diags);
	if (out)
		*out = s;
	return api_end(&call, s, error);
}

void esp_vta_free(esp_vta_stream *s)
{
	object_release(s);
}

size_t esp_vta_memory(const esp_vta_stream *s)
{
	return s ? s->stream.bytes : 0;
}

const esp_vta_segment *esp_vta_segment_at(const esp_vta_stream *s, size_t i)
{
	return s && i < s->stream.segments ? &s->segment[i] : NULL;
}

/* --- what takes memory of its own --- */

struct using
{
	const esp_vta_stream *s;
	struct diags *diags;
	struct arena arena;
	int form;
	char *text;
	const char *path;
	uint8_t *memory;
};

static bool print_stream(void *job)
{
	struct using *u = job;
	struct str out = str_in(&u->arena);
	if (u->form == ESP_VTA_TEXT)
		vta_print(&u->s->stream, &out);
	else
		vta_print_cost(&u->s->cost, &out);
	u->text = api_text(u->s->object.context, str_text(&out), u->diags);
	return u->text;
}

static bool save_stream(void *job)
{
	struct using *u = job;
	size_t n;
	const uint8_t *bytes = vta_write(&u->arena, &u->s->stream, &n);
	return io_write_file(&u->arena, u->diags, u->path, &(struct io_piece){bytes, (int64_t)n}, 1);
}

static bool run_stream(void *job)
{
	struct using *u = job;
	vta_execute(&u->arena, &u->s->stream, NULL, u->memory);
	return true;
}

static bool use_stream(struct using *u, bool (*work)(void *job))
{
	arena_init(&u->arena, &u->s->object.context->allocator);
	bool ok = api_guarded(&u->arena, u->diags, work, u);
	arena_free(&u->arena);
	return ok;
}

esp_status esp_vta_print(const esp_vta_stream *stream, int form, char **text, esp_error **error)
{
	struct api_call call = api_begin(stream);
	struct using u = {.s = stream, .diags = &call.diags, .form = form};
	bool ok = api_need(&call, stream) && api_need(&call, text) &&
		  (form == ESP_VTA_TEXT || form == ESP_VTA_COST ||
		   api_bad_argument(&call.diags, "esp_vta_print", "form",
				    "must be ESP_VTA_TEXT or ESP_VTA_COST")) &&
		  use_stream(&u, print_stream);
	if (text)
		*text = ok ? u.text : NULL;
	return api_end(&call, ok, error);
}

esp_status esp_vta_save(const esp_vta_stream *stream, const char *path, esp_error **error)
{
	struct api_call call = api_begin(stream);
	struct using u = {.s = stream, .diags = &call.diags, .path = path};
	bool ok = api_need(&call, stream) && api_need(&call, path) && use_stream(&u, save_stream);
	return api_end(&call, ok, error);
}

esp_status esp_vta_run(const esp_vta_stream *stream, void *memory, size_t bytes, esp_error **error)
{
	struct api_call call = api_begin(stream);
	struct using u = {.s = stream, .diags = &call.diags, .memory = memory};
	bool ok =
	    api_need(&call, stream) && api_need(&call, memory) &&
	    (bytes == stream->stream.bytes ||
	     api_bad_argument(&call.diags, "esp_vta_run", "bytes", "is not esp_vta_memory of the stream")) &&
	    use_stream(&u, run_stream);
	return api_end(&call, ok, error);
}
