/* The LLVM back end behind a counter, slow enough for others to come while it compiles. */
#include "jit/jit.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) atomic_int compilations;

static const struct jit_backend *real(void)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/.libs/espalier-llvm.so", getenv("builddir"));
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return handle ? dlsym(handle, JIT_BACKEND_SYMBOL) : NULL;
}

/* The first kernel counts for all. */
static bool compile(const struct ilir_module *m, const struct jit_options *o, int kernel, struct str *object,
		    double seconds[JIT_PARTS], struct diags *d)
{
	if (kernel == 0) {
		atomic_fetch_add(&compilations, 1);
		usleep(50000);
	}
	return real()->compile(m, o, kernel, object, seconds, d);
}

static bool print(const struct ilir_module *m, const struct jit_options *o, enum jit_text what, struct str *s,
		  struct diags *d)
{
	return real()->print(m, o, what, s, d);
}

static const char *compiler(void)
{
	return real()->compiler();
}

__attribute__((visibility("default"))) const struct jit_backend espalier_backend = {
    .abi = JIT_ABI, .name = "counting", .compile = compile, .print = print, .compiler = compiler};
