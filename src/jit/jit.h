/* Back ends: from a finished loop module to an object that image/link.h can link.
 *
 * A compiling back end is a shared object of its own, loaded when something must be compiled, so that neither
 * the library nor the command links a compiler.  The plug-in exports one symbol, `espalier_backend`; it has
 * its own copy of base/ and ilir/build.c, and shares with the library only the data that passes through this
 * boundary. */
#ifndef ESPALIER_JIT_JIT_H
#define ESPALIER_JIT_JIT_H

#include "base/diag.h"
#include "base/target.h"
#include "ilir/ilir.h"
#include "image/image.h"

enum { JIT_ABI = 4 };

enum jit_text { JIT_TEXT_IR, JIT_TEXT_ASM };

struct jit_options {
	const struct target *target;
	bool native; /* the code runs on this machine only: use all of its features */
};

struct jit_backend {
	int abi;
	const char *name;
	/* Compiles every kernel of an outlined, vectorised, unrolled, primitive module: appends a relocatable
	 * ELF64 object whose functions have the kernels' names, and which imports nothing.  Any number of
	 * threads may call at once. */
	bool (*compile)(const struct ilir_module *, const struct jit_options *, struct str *object,
			struct diags *);
	/* The back end's own IR before code generation, or assembly, as text. */
	bool (*print)(const struct ilir_module *, const struct jit_options *, enum jit_text, struct str *,
		      struct diags *);
	/* The file that the compiler itself was loaded from, NULL = not known. */
	const char *(*compiler)(void);
};

#define JIT_BACKEND_SYMBOL "espalier_backend"

/* Loads espalier-NAME.so from the folders of ESPALIER_BACKEND_PATH (colons between them; ignored in a process
 * with raised rights), then from the library's own.  It stays for the life of the process; loading it again
 * is cheap and gives the same.  NULL after diagnostics.  Any number of threads may call at once. */
const struct jit_backend *jit_backend_load(const char *name, struct diags *);
/* The file that jit_backend_load would load, without loading it; NULL = there is none. */
const char *jit_backend_path(struct arena *, const char *name);

/* What a back end does is done through these: while another thread is in them, or loads, a fork leaves the
 * child with locks that nobody opens.  There jit_backend_load refuses. */
bool jit_compile(const struct jit_backend *, const struct ilir_module *, const struct jit_options *,
		 struct str *object, struct diags *);
bool jit_print(const struct jit_backend *, const struct ilir_module *, const struct jit_options *,
	       enum jit_text, struct str *, struct diags *);

#endif
