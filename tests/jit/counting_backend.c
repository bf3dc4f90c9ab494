/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The back end named by COUNTED_BACKEND behind a counter, slow enough for others to come while it compiles.
 */
#include "jit/jit.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) atomic_int compilations;
__attribute__((visibility("default"))) struct jit_backend espalier_backend;

static const struct jit_backend *counted;

/* The unit of the first kernel that every range needs counts for all. */
static void count(const struct jit_unit *unit)
{
	if (unit && (unit->kernel || unit->rows > 1))
		return;
	atomic_fetch_add(&compilations, 1);
	usleep(50000);
}

static void *find(struct jit_process *p, const struct jit_unit *unit, struct diags *d)
{
	count(unit);
	return counted->find(p, unit, d);
}

static bool compile(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
		    struct str *object, double seconds[JIT_PHASES], struct diags *d)
{
	count(unit);
	return counted->compile(m, o, unit, object, seconds, d);
}

/* Everything but compiling is the other's own. */
__attribute__((constructor)) static void find_counted(void)
{
	char path[4096];
	const char *build = getenv("builddir"), *name = getenv("COUNTED_BACKEND");
	snprintf(path, sizeof path, "%s/.libs/espalier-%s.so", build ? build : ".", name ? name : "");
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle || !(counted = dlsym(handle, JIT_BACKEND_SYMBOL)))
		return;
	espalier_backend = *counted;
	espalier_backend.name = "counting";
	espalier_backend.compile = compile;
	espalier_backend.find = counted->find ? find : NULL;
}
