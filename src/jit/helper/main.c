/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The helper program: compiles one module for the process that started it (helper.h). */
#include "jit/helper.h"

#include "base/str.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET = STDIN_FILENO };

/* One request, and its objects. */
struct service {
	struct helper_request request;
	struct arena arena;
	struct diags diags;
	const struct jit_backend *backend;
	struct jit_objects objects;
};

/* --- requests of the host --- */

static volatile sig_atomic_t dismissed;

static void note_dismissal(int signal)
{
	(void)signal;
	dismissed = 1;
}

static bool goes_on(void *context, struct diags *d)
{
	(void)context;
	return !dismissed || diag_add(d, DIAG_COMPILE_CANCELLED, (struct diag_at){0}, NULL, "dismissed");
}

/* Ends with the host, and leaves no core file. */
static void follow_host(void)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

/* Limits data only: reserved address space, which depends on the number of threads, and the code of the
 * compiler do not count. */
static void limit_memory(uint64_t bytes)
{
	struct rlimit data;
	if (!bytes || getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur <= bytes)
		return;
	data.rlim_cur = bytes;
	setrlimit(RLIMIT_DATA, &data);
}

/* --- the stream --- */

static bool receive_bytes(void *to, size_t bytes)
{
	while (bytes) {
		ssize_t n = recv(SOCKET, to, bytes, MSG_WAITALL);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		to = (char *)to + (n > 0 ? n : 0);
		bytes -= n > 0 ? n : 0;
	}
	return true;
}

static bool send_bytes(const void *from, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(SOCKET, from, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return false;
		from = (const char *)from + (n > 0 ? n : 0);
		bytes -= n > 0 ? n : 0;
	}
	return true;
}

/* Sends a record in two pieces, of which the first is a multiple of HELPER_ALIGNMENT. */
static bool put_record(enum helper_kind kind, uint32_t which, const void *first, size_t first_bytes,
		       const void *bytes, size_t n)
{
	static const char zeros[HELPER_ALIGNMENT];
	struct helper_record r = {kind, which, first_bytes + n};
	return send_bytes(&r, sizeof r) && send_bytes(first, first_bytes) && send_bytes(bytes, n) &&
	       send_bytes(zeros, helper_padded(n) - n);
}

static bool put_diag(enum diag_id id, const char *message, const char *hint)
{
	char text[4000];
	int n = snprintf(text, sizeof text, "%s%c%.3000s%c%.800s", diag_spelling(id), 0, message, 0,
			 hint ? hint : "");
	return put_record(HELPER_DIAGNOSTIC, 0, NULL, 0, text, n + 1);
}

static bool put_end(int objects)
{
	return put_record(HELPER_END, objects, NULL, 0, NULL, 0);
}

/* --- the work --- */

/* NULL after diagnostics, or when the host has gone. */
static struct ilir_module *receive_module(struct service *s)
{
	size_t n = s->request.text_bytes;
	char *text = arena_take(&s->arena, n, 1);
	if (!receive_bytes(text, n))
		return NULL;
	struct ilir_module *m = ilir_parse(&s->arena, &s->diags, "the helper's request", text, n);
	struct str again = str_in(&s->arena);
	if (m && s->request.lines)
		ilir_print_numbered(m, &again);
	return m;
}

static bool serve_request(struct service *s)
{
	struct jit_watch watch = {.goes_on = goes_on};
	struct jit_options options = {target_find(s->request.target), s->request.native, &watch,
				      s->request.lines};
	struct jit_threads threads = {s->request.threads, NULL, s->request.where_bytes};
	cpu_set_t *where = arena_take(&s->arena, s->request.where_bytes, 1);
	if (!options.target || !receive_bytes(where, s->request.where_bytes))
		return false;
	if (s->request.where_bytes)
		sched_setaffinity(0, s->request.where_bytes, where);
	s->backend = jit_backend_load(s->request.backend, &s->diags);
	if (!s->backend)
		return false;
	/* Such a back end has temporary files, which must be removed before the process ends. */
	if (s->backend->compiles_all)
		signal(SIGTERM, note_dismissal);
	limit_memory(s->request.memory);
	struct ilir_module *m = receive_module(s);
	return m && jit_compile(s->backend, m, &options, threads, &s->arena, &s->objects, &s->diags);
}

static bool guarded_serve(struct service *s)
{
	jmp_buf escape;
	if (arena_guard(&s->arena, &escape))
		return diag_add(&s->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"memory ran out in the helper");
	return serve_request(s);
}

static bool put_objects(const struct service *s)
{
	const char *compiler = s->backend->compiler();
	bool ok = !compiler || put_record(HELPER_COMPILER, 0, NULL, 0, compiler, strlen(compiler) + 1);
	for (int i = 0; ok && i < s->objects.n; i++) {
		struct helper_seconds seconds;
		memcpy(seconds.phase, s->objects.seconds[i], sizeof seconds.phase);
		ok = put_record(HELPER_OBJECT, i, &seconds, sizeof seconds, s->objects.object[i].bytes,
				s->objects.object[i].size);
	}
	return ok && put_end(s->objects.n);
}

/* When no diagnostic could be kept, memory was out. */
static bool put_failure(const struct service *s)
{
	bool ok = true;
	for (size_t i = 0; ok && i < s->diags.n; i++)
		ok = put_diag(s->diags.at[i].id, s->diags.at[i].message, s->diags.at[i].hint);
	if (ok && s->diags.lost && !s->diags.n)
		ok = put_diag(DIAG_OUT_OF_MEMORY, "memory ran out in the helper", NULL);
	return ok && put_end(0);
}

static bool put_refusal(void)
{
	return put_diag(DIAG_COMPILE_HELPER, "the helper was made for another version of the library",
			"install the helper program that belongs to this version") &&
	       put_end(0);
}

/* Ends without handlers: those of compilers and sanitizers take time. */
int main(void)
{
	struct service s = {0};
	follow_host();
	arena_init(&s.arena, &allocator_default);
	diags_init(&s.diags, &allocator_default);
	if (!receive_bytes(&s.request, sizeof s.request))
		_exit(1);
	if (s.request.abi != JIT_ABI)
		_exit(!put_refusal());
	s.request.backend[HELPER_NAME - 1] = s.request.target[HELPER_NAME - 1] = 0;
	_exit(!(guarded_serve(&s) ? put_objects(&s) : put_failure(&s)));
}
