#include "api/internal.h"

#include <string.h>
#include <time.h>

const char *esp_version(void)
{
	return ESP_VERSION;
}

/* --- counted objects --- */

static const struct esp_context *context_of(const void *object)
{
	const struct object *o = object;
	return o->context ? o->context : object;
}

void *object_new(struct esp_context *context, size_t size, void (*destroy)(void *), struct diags *diags)
{
	const struct allocator *a = &context->allocator;
	struct object *o = a->resize(a->context, NULL, 0, size);
	if (!o) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for an object");
		return NULL;
	}
	memset(o, 0, size);
	atomic_init(&o->uses, 1);
	o->size = size;
	o->context = object_hold(context);
	o->destroy = destroy;
	return o;
}

void *object_hold(const void *object)
{
	struct object *o = (struct object *)object;
	atomic_fetch_add_explicit(&o->uses, 1, memory_order_relaxed);
	return o;
}

/* The last use must see what other threads did to the object before they let go of it. */
void object_release(void *object)
{
	struct object *o = object;
	if (!o || atomic_fetch_sub_explicit(&o->uses, 1, memory_order_acq_rel) != 1)
		return;
	struct allocator a = context_of(o)->allocator;
	struct esp_context *context = o->context;
	if (o->destroy)
		o->destroy(o);
	a.resize(a.context, o, o->size, 0);
	object_release(context);
}

/* --- entry points --- */

struct diags api_begin(const void *object)
{
	struct diags d;
	diags_init(&d, object ? &context_of(object)->allocator : &allocator_default);
	return d;
}

bool api_bad_argument(struct diags *diags, const char *function, const char *argument, const char *what)
{
	return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, "see espalier.h", "%s: '%s' %s",
			function, argument, what);
}

bool api_guarded(struct arena *arena, struct diags *diags, bool (*work)(void *job), void *job)
{
	jmp_buf escape;
	if (arena_guard(arena, &escape)) {
		arena->escape = NULL;
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "memory ran out");
	}
	bool ok = work(job);
	arena->escape = NULL;
	return ok;
}

double api_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- texts --- */

/* A text knows where its memory came from: it may outlive its context. */
struct owned_text {
	struct allocator allocator;
	size_t size;
	char text[];
};

char *api_text(const struct esp_context *context, const char *text, struct diags *diags)
{
	struct allocator a = context->allocator;
	size_t size = sizeof(struct owned_text) + strlen(text) + 1;
	struct owned_text *t = a.resize(a.context, NULL, 0, size);
	if (!t) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a text");
		return NULL;
	}
	*t = (struct owned_text){a, size};
	return strcpy(t->text, text);
}

void esp_text_free(char *text)
{
	if (!text)
		return;
	struct owned_text *t = (struct owned_text *)(text - offsetof(struct owned_text, text));
	struct allocator a = t->allocator;
	a.resize(a.context, t, t->size, 0);
}

/* --- contexts --- */

esp_status esp_context_create(const esp_context_options *options, esp_context **out, esp_error **error)
{
	struct diags diags = api_begin(NULL);
	struct esp_context seed = {.allocator = allocator_default};
	if (options && options->resize)
		seed.allocator = (struct allocator){options->resize, options->user};
	struct esp_context *c = NULL;
	if (api_need(&diags, out) && (c = object_new(&seed, sizeof *c, NULL, &diags))) {
		c->object.context = NULL;
		c->allocator = seed.allocator;
	}
	if (out)
		*out = c;
	return api_end(&diags, c, error);
}

void esp_context_free(esp_context *c)
{
	object_release(c);
}
