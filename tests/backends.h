/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which back ends are here: tests run over what there is.  Nothing is loaded to find out. */
#ifndef ESPALIER_TESTS_BACKENDS_H
#define ESPALIER_TESTS_BACKENDS_H

#include "jit/jit.h"
#include "tests/tap.h"

static inline bool has_backend(const char *name)
{
	struct arena a;
	jmp_buf escape;
	arena_init(&a, &allocator_default);
	bool there = !arena_guard(&a, &escape) && jit_backend_path(&a, name);
	arena_free(&a);
	return there;
}

/* The i-th back end that is here, NULL past the last. */
static inline const char *backend_at(int i)
{
	for (int k = 0; jit_backend_name(k); k++)
		if (has_backend(jit_backend_name(k)) && i-- == 0)
			return jit_backend_name(k);
	return NULL;
}

/* Once in a test of all back ends: what is missing counts as skipped. */
static inline void skip_backends(void)
{
	for (int i = 0; jit_backend_name(i); i++)
		if (!has_backend(jit_backend_name(i)))
			tap_skip("it is not here", "all with back end %s", jit_backend_name(i));
}

/* What tests of one back end run with: the one that is preferred of those that are here, else the
 * interpreter. */
static inline const char *usual_backend(void)
{
	return backend_at(0) ? backend_at(0) : "interpreter";
}

/* Whether there is one; if not, what needs it counts as skipped. */
__attribute__((format(printf, 1, 2))) static inline bool need_backend(const char *format, ...)
{
	char what[200];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	if (!backend_at(0))
		tap_skip("no back end", "%s", what);
	return backend_at(0);
}

#endif
