/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { USUAL_OPERATORS = 20000 };

_Static_assert((int)ESP_THREADS_MAX == (int)RT_THREADS_MAX, "a team of the runtime has as many threads as a context");

const char *esp_version(void)
{
	return ESP_VERSION;
}

/* --- memory: the caller's hook, counted --- */

static void note_peak(struct esp_context *c, size_t used)
{
	size_t peak = atomic_load_explicit(&c->peak, memory_order_relaxed);
	while (used > peak && !atomic_compare_exchange_weak_explicit(
				  &c->peak, &peak, used, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Charges bytes to the cap; false if it would be exceeded. */
static bool charge_bytes(struct esp_context *c, size_t bytes)
{
	size_t used = atomic_fetch_add_explicit(&c->used, bytes, memory_order_relaxed) + bytes;
	if (!c->cap || used <= c->cap) {
		note_peak(c, used);
		return true;
	}
	atomic_fetch_sub_explicit(&c->used, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->refused, 1, memory_order_relaxed);
	return false;
}

static void discharge_bytes(struct esp_context *c, size_t bytes)
{
	atomic_fetch_sub_explicit(&c->used, bytes, memory_order_relaxed);
}

/* Charges growth before it calls the hook, and discharges shrinkage after. */
static void *counted_resize(void *context, void *p, size_t old_size, size_t new_size)
{
	struct esp_context *c = context;
	size_t more = new_size > old_size ? new_size - old_size : 0;
	if (more && !charge_bytes(c, more))
		return NULL;
	void *result = c->hooks.resize(c->hooks.context, p, old_size, new_size);
	if (!result && new_size)
		discharge_bytes(c, more);
	else if (new_size < old_size)
		discharge_bytes(c, old_size - new_size);
	return result;
}

size_t esp_context_memory(const esp_context *c, size_t *peak)
{
	if (peak)
		*peak = c ? atomic_load_explicit(&c->peak, memory_order_relaxed) : 0;
	return c ? atomic_load_explicit(&c->used, memory_order_relaxed) : 0;
}

/* --- calls in flight --- */

/* Increments the counter before it reads `closed`; closing sets `closed` before it reads the counter.  So
 * either the call sees that the context is closed, or closing waits for the call. */
bool context_enter(struct esp_context *c)
{
	atomic_fetch_add(&c->calls, 1);
	return !atomic_load(&c->closed);
}

/* The context must not be used after this: the thread that closes it may free it at once. */
void context_leave(struct esp_context *c)
{
	atomic_fetch_sub(&c->calls, 1);
}

/* Polls, at most a millisecond apart: to release a lock, the last call would use the context after it may be
 * freed. */
static void wait_for_calls(struct esp_context *c)
{
	struct timespec pause = {.tv_nsec = 20000};
	atomic_store(&c->closed, true);
	while (atomic_load(&c->calls)) {
		nanosleep(&pause, NULL);
		pause.tv_nsec = pause.tv_nsec < 500000 ? 2 * pause.tv_nsec : 1000000;
	}
}

/* Logs that a team has no threads: runs are correct without them, only slower. */
void context_check_team(struct esp_context *c)
{
	int trouble = rt_team_error(&c->team);
	if (trouble)
		context_log(
		    c, DIAG_TEAM_UNUSABLE,
		    "raise the limit on threads, or set esp_context_options.threads to 1",
		    "no threads could be made for the team (%s); runs are computed by their callers alone",
		    strerror(trouble));
}

/* Does not call context_enter: it would wait for itself. */
esp_status esp_context_close(esp_context *context, esp_error **error)
{
	struct api_call call = {.open = true, .mode = float_mode_enter(false)};
	diags_init(&call.diags, &allocator_default);
	bool ok = api_need(&call, context);
	if (ok && context->process != fork_generation())
		ok = diag_add(&call.diags, DIAG_FORKED, (struct diag_at){0},
			      "free the objects; the process that made the context closes it",
			      "the context belongs to the process that forked this one");
	else if (ok) {
		wait_for_calls(context);
		rt_team_stop(&context->team);
	}
	return api_end(&call, ok, error);
}

/* --- the log --- */

/* Each id is logged once.  Several threads may call the hook at the same time. */
void context_log(struct esp_context *c, enum diag_id id, const char *hint, const char *format, ...)
{
	if (!c->log || atomic_exchange(&c->said[id], true))
		return;
	char message[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	c->log(c->hooks_user,
	       &(esp_diagnostic){
		   .id = diag_spelling(id), .message = message, .hint = hint, .structure = -1, .node = -1});
}

/* --- making and freeing --- */

static void destroy_context(void *object)
{
	esp_context *c = object;
	rt_team_stop(&c->team);
	if (c->has_machine_lock)
		pthread_mutex_destroy(&c->machine_lock);
	if (c->cache_dir)
		c->hooks.resize(c->hooks.context, c->cache_dir, strlen(c->cache_dir) + 1, 0);
}

/* Source of the machine's description, by the options or else the environment; -1 = an unknown name. */
static int source_of_machine(const esp_context_options *o)
{
	static const char *const words[] = {[ESP_MACHINE_MEASURED] = "measured",
					    [ESP_MACHINE_KEPT] = "kept",
					    [ESP_MACHINE_DEFAULTS] = "defaults"};
	const char *asked = o->machine ? NULL : secure_getenv("ESPALIER_MACHINE");
	if (!asked || !*asked)
		return o->machine;
	for (int i = 0; i <= ESP_MACHINE_DEFAULTS; i++)
		if (strcmp(asked, words[i]) == 0)
			return i;
	return -1;
}

static bool check_options(const esp_context_options *o, struct diags *diags)
{
	const char *function = "esp_context_create";
	if (o->threads < 0 || o->threads > ESP_THREADS_MAX)
		return api_bad_argument(diags, function, "options->threads",
					"must be from 0 to ESP_THREADS_MAX");
	if (o->cache != ESP_CACHE_ON && o->cache != ESP_CACHE_OFF)
		return api_bad_argument(diags, function, "options->cache", "must be one of ESP_CACHE_...");
	if (o->pin != 0 && o->pin != 1)
		return api_bad_argument(diags, function, "options->pin", "must be 0 or 1");
	if (o->compile_in != ESP_COMPILE_IN_PROCESS && o->compile_in != ESP_COMPILE_IN_HELPER)
		return api_bad_argument(diags, function, "options->compile_in",
					"must be one of ESP_COMPILE_IN_...");
	if (o->machine < ESP_MACHINE_MEASURED || o->machine > ESP_MACHINE_DEFAULTS)
		return api_bad_argument(diags, function, "options->machine",
					"must be one of ESP_MACHINE_...");
	if (source_of_machine(o) < 0)
		return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0},
				"set it to one of these, or unset it",
				"%s: ESPALIER_MACHINE is '%.80s', which is none of measured, kept, defaults",
				function, secure_getenv("ESPALIER_MACHINE"));
	if (!(o->compile_seconds >= 0))
		return api_bad_argument(diags, function, "options->compile_seconds",
					"must not be negative");
	if (o->compile_memory && o->compile_in != ESP_COMPILE_IN_HELPER)
		return api_bad_argument(diags, function, "options->compile_memory",
					"limits a helper only, and compile_in does not ask for one");
	return true;
}

static bool copy_cache_dir(esp_context *c, const char *path)
{
	size_t bytes = path ? strlen(path) + 1 : 0;
	if (path && !(c->cache_dir = c->hooks.resize(c->hooks.context, NULL, 0, bytes)))
		return false;
	if (path)
		memcpy(c->cache_dir, path, bytes);
	return true;
}

/* Whether a variable of the environment asks for something. */
static bool asks_for(const char *variable)
{
	const char *asked = secure_getenv(variable);
	return asked && *asked && strcmp(asked, "0") != 0;
}

static bool fill_context(esp_context *c, const esp_context_options *o)
{
	atomic_init(&c->object.uses, 1);
	c->object.size = sizeof *c;
	c->object.destroy = destroy_context;
	c->allocator = (struct allocator){counted_resize, c};
	c->log = o->log;
	c->hooks_user = o->user;
	c->cap = o->memory_cap;
	c->operators = o->operators ? o->operators : USUAL_OPERATORS;
	c->compile_apart = o->compile_in == ESP_COMPILE_IN_HELPER;
	c->compile_memory = o->compile_memory;
	c->compile_seconds = o->compile_seconds;
	c->cancel = o->cancel;
	c->cache = o->cache;
	c->cache_limit = o->cache_limit;
	c->perf_map = o->perf_map || asks_for("ESPALIER_PERF_MAP");
	c->jitdump = o->jitdump || asks_for("ESPALIER_JITDUMP");
	c->lines = o->lines || c->jitdump || asks_for("ESPALIER_LINES");
	c->machine_from = source_of_machine(o);
	c->process = fork_generation();
	rt_team_init(&c->team, &c->allocator, o->threads);
	c->team.pinned = o->pin;
	c->has_machine_lock = pthread_mutex_init(&c->machine_lock, NULL) == 0;
	return c->has_machine_lock && copy_cache_dir(c, o->cache_dir);
}

static esp_context *new_context(const esp_context_options *o, struct diags *diags)
{
	struct allocator hooks = o->resize ? (struct allocator){o->resize, o->user} : allocator_default;
	esp_context *c = hooks.resize(hooks.context, NULL, 0, sizeof *c);
	if (c) {
		memset(c, 0, sizeof *c);
		c->hooks = hooks;
		if (fill_context(c, o))
			return c;
		object_release(c);
	}
	diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a context");
	return NULL;
}

esp_status esp_context_create(const esp_context_options *options, esp_context **out, esp_error **error)
{
	struct api_call call = api_begin(NULL);
	esp_context_options o = {0};
	esp_context *c = NULL;
	if (api_need(&call, out) &&
	    (!options ||
	     api_take_struct(&call.diags, "esp_context_create", "options", options, &o, sizeof o)) &&
	    check_options(&o, &call.diags))
		c = new_context(&o, &call.diags);
	if (out)
		*out = c;
	return api_end(&call, c, error);
}

int esp_context_threads(const esp_context *c)
{
	return c ? rt_team_threads(&((esp_context *)c)->team) : 0;
}

void esp_context_free(esp_context *c)
{
	object_release(c);
}
