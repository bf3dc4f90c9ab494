/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The shape of an entry point: who may call, and what went wrong. */
#include "api/objects.h"

#include <string.h>

/* A forked child has none of the threads that may have held the caller's locks when it was made: errors come
 * from the process itself. */
static bool is_forked(const struct esp_context *c)
{
	return c->process != fork_generation();
}

static bool refuse_forked(struct diags *diags)
{
	return diag_add(diags, DIAG_FORKED, (struct diag_at){0}, "create a context in this process",
			"the object belongs to the process that forked this one");
}

static bool refuse_closed(struct diags *diags)
{
	return diag_add(diags, DIAG_CLOSED, (struct diag_at){0}, "create another context",
			"the context has been closed");
}

struct api_call api_begin(const void *object)
{
	struct api_call call = {.open = true, .mode = float_mode_enter(false)};
	struct esp_context *c = object ? object_context(object) : NULL;
	bool forked = c && is_forked(c);
	diags_init(&call.diags, c && !forked ? &c->hooks : &allocator_default);
	if (forked)
		call.open = refuse_forked(&call.diags);
	else if ((call.context = c) && !context_enter(c))
		call.open = refuse_closed(&call.diags);
	call.refused = call.context ? atomic_load_explicit(&c->refused, memory_order_relaxed) : 0;
	return call;
}

/* A request that the cap refused, in this call as far as one can tell, is why memory was out. */
static void blame_cap(struct api_call *call)
{
	struct esp_context *c = call->context;
	if (!c || !c->cap || !call->diags.n || call->diags.at[0].id != DIAG_OUT_OF_MEMORY ||
	    atomic_load_explicit(&c->refused, memory_order_relaxed) == call->refused)
		return;
	diag_add(&call->diags, DIAG_MEMORY_CAP, (struct diag_at){0},
		 "free objects, run smaller minibatches, or raise esp_context_options.memory_cap",
		 "the context may use %zu bytes, of which %zu are in use", c->cap,
		 esp_context_memory(c, NULL));
}

esp_status api_end(struct api_call *call, bool ok, esp_error **error)
{
	if (!ok)
		blame_cap(call);
	esp_status status = error_from(&call->diags, ok, error);
	float_mode_leave(&call->mode);
	if (call->context)
		context_leave(call->context);
	return status;
}

bool api_bad_argument(struct diags *diags, const char *function, const char *argument, const char *what)
{
	return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0}, "see espalier.h", "%s: '%s' %s",
			function, argument, what);
}

bool api_belongs(struct api_call *call, const void *object, const char *function, const char *argument)
{
	return object_context(object) == call->context ||
	       api_bad_argument(&call->diags, function, argument, "belongs to another context");
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

/* Members that this version does not know must be zero. */
static bool is_zero(const char *p, size_t n)
{
	while (n && !*p)
		p++, n--;
	return n == 0;
}

bool api_take_struct(struct diags *diags, const char *function, const char *argument, const void *from,
		     void *to, size_t size)
{
	size_t theirs = *(const size_t *)from;
	if (theirs < 2 * sizeof(size_t) || theirs > 1 << 16)
		return api_bad_argument(diags, function, argument, "has a 'size' that is not its sizeof");
	if (theirs > size && !is_zero((const char *)from + size, theirs - size))
		return api_bad_argument(diags, function, argument,
					"uses members that this version of the library does not know");
	memset(to, 0, size);
	memcpy(to, from, theirs < size ? theirs : size);
	return true;
}
