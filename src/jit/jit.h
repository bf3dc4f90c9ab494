/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Back ends: compile a finished loop module to objects that image/link.h can link.
 *
 * A compiling back end is a shared object of its own, loaded when something must be compiled, so that neither
 * the library nor the command links a compiler.  The plug-in exports one symbol, `espalier_backend`; it has
 * its own copy of base/ and of the constructors of ilir/, and shares with the library only the data that passes through
 * this boundary. */
#ifndef ESPALIER_JIT_JIT_H
#define ESPALIER_JIT_JIT_H

#include "base/diag.h"
#include "base/target.h"
#include "ilir/ilir.h"
#include "image/link.h"
#include "jit/units.h"

#include <pthread.h>
#include <sched.h>

enum { JIT_ABI = 16 };

enum jit_text { JIT_TEXT_IR, JIT_TEXT_ASM };

/* Decides whether a compilation goes on: called before each kernel, and repeatedly by threads that wait for
 * another process.  When it returns false, after a diagnostic, the compilation is given up.  Any number of
 * threads may call it at once. */
struct jit_watch {
	bool (*goes_on)(void *context, struct diags *);
	void *context;
};

struct jit_options {
	const struct target *target;
	bool native;		       /* the code runs on this machine only: use all of its features */
	const struct jit_watch *watch; /* NULL = nothing ends the compilation early */
	int lines; /* objects have a table of lines, by which a module begins that was numbered; 0 = they have
		      none */
};

/* The phases of a back end, in order. */
enum jit_phase { JIT_EMIT, JIT_CHECK, JIT_OPTIMIZE, JIT_GENERATE, JIT_PHASES };

/* Code of a module in this process, of which a back end compiles and links a unit when it is asked for. */
struct jit_process;

/* Where a process puts what it compiled: the object of a unit, and the seconds of its phases.  Called by the
 * threads that compile, for each unit once. */
struct jit_sink {
	void (*put)(void *context, const struct jit_unit *, const void *bytes, size_t size,
		    const double seconds[JIT_PHASES]);
	void *context;
};

struct jit_backend {
	int abi;
	const char *name;
	bool compiles_all; /* all kernels at once, since starting is expensive: the unit is NULL */
	bool cuts_rows;	   /* compiles the variants of a kernel apart from it */
	/* Compiles a unit of an outlined, vectorised, unrolled, primitive module, or all kernels: appends a
	 * relocatable ELF64 object with a function of the unit's name, or of each kernel's, which imports
	 * nothing but variants of the kernel, and returns the seconds that each phase took.  Any number of threads
	 * may call at once. */
	bool (*compile)(const struct ilir_module *, const struct jit_options *, const struct jit_unit *,
			struct str *object, double seconds[JIT_PHASES], struct diags *);
	/* The back end's own IR before code generation, or assembly, as text. */
	bool (*print)(const struct ilir_module *, const struct jit_options *, enum jit_text, struct str *,
		      struct diags *);
	/* The file that the compiler itself was loaded from; NULL = unknown. */
	const char *(*compiler)(void);
	/* NULL, with the two after it: the back end only makes objects.  The module and the units stay as they are while the
	 * process is open, which compiles nothing yet. */
	struct jit_process *(*open)(const struct ilir_module *, const struct jit_options *,
				    const struct jit_unit *, int units, struct jit_sink, struct diags *);
	/* The function of a unit, compiled and linked if it was not, with the variants that it calls; NULL after
	 * diagnostics, and another call tries again.  Any number of threads may ask for different units. */
	void *(*find)(struct jit_process *, const struct jit_unit *, struct diags *);
	/* Frees the code, which nobody calls any more. */
	void (*close)(struct jit_process *);
};

#define JIT_BACKEND_SYMBOL "espalier_backend"

/* The names of back ends, the preferred one first; NULL past the last. */
const char *jit_backend_name(int i);
/* The first of them that jit_backend_load would find; the first of all if there is none. */
const char *jit_backend_usual(struct arena *);

/* Loads espalier-NAME.so from the folders of ESPALIER_BACKEND_PATH (colons between them; ignored in a process
 * with raised rights), then from the folder "espalier" beside the library, then from where it is installed.  It stays loaded until the process ends; loading it again
 * is cheap and returns the same.  NULL after diagnostics.  Any number of threads may call at once. */
const struct jit_backend *jit_backend_load(const char *name, struct diags *);
/* The file that jit_backend_load would load, without loading it; NULL = there is none. */
const char *jit_backend_path(struct arena *, const char *name);

/* How many threads compile, and the processors of the new ones: without these they would be bound to the
 * caller's processor, which is busy. */
struct jit_threads {
	int most;		/* with the caller's */
	const cpu_set_t *where; /* NULL = those of the caller */
	size_t where_bytes;
};
/* Binds the calling thread to these processors, if it can. */
void jit_settle(const struct jit_threads *);

/* Loads a back end in a thread of its own while the caller prepares the module.  Errors are reported by
 * jit_backend_load, which waits for the thread if it must. */
struct jit_ahead {
	const char *name;
	struct jit_threads threads;
	pthread_t thread;
	bool begun;
};
/* The name must live until the end.  Every call of begin is followed by one of end, in the same function. */
void jit_ahead_begin(struct jit_ahead *, const char *name, struct jit_threads);
void jit_ahead_end(struct jit_ahead *);

/* Back ends are only called through the functions below: a fork during one of them, or while a back end is
 * loaded, leaves the child with locks that nobody releases.  In such a child jit_backend_load refuses. */

/* One object for each unit, or one for all. */
struct jit_objects {
	int n;
	const struct jit_unit *unit; /* NULL = all kernels are in one object */
	struct image_object *object;
	double (*seconds)[JIT_PHASES];
};

/* Compiles all units, each into an object of its own unless the back end compiles them together, on these
 * threads.  The objects are in the arena, and do not depend on the number of threads.  False after the
 * diagnostics of all units that failed. */
bool jit_compile(const struct jit_backend *, const struct ilir_module *, const struct jit_options *,
		 struct jit_threads, struct arena *, struct jit_objects *, struct diags *);
/* Code that is compiled when it is needed. */
struct jit_code {
	const struct jit_backend *backend;
	const struct ilir_module *module;
	struct jit_options options;
	struct jit_process *process;
	int units;
	struct jit_unit *unit;
	struct jit_made *made; /* by unit */
};

/* What became of a unit.  `address` is set last, and read by any thread while others compile. */
struct jit_made {
	void *address; /* NULL = not compiled yet */
	double seconds[JIT_PHASES];
	struct arena arena; /* of the object, which is missing when memory was out */
	struct str object;
};

/* Opens the code of a module, which must stay as it is; nothing is compiled.  False after diagnostics, or, without
 * any, when the back end only makes objects. */
bool jit_open(struct arena *, const struct jit_backend *, const struct ilir_module *, const struct jit_options *,
	      struct jit_code *, struct diags *);
/* Compiles these units, those that are not, as jit_compile does; one caller at a time.  Objects that are missing are
 * made again.  False after the diagnostics of all that failed. */
bool jit_need(struct jit_code *, const int *units, int n, struct jit_threads, struct arena *, struct diags *);
static inline void *jit_address(const struct jit_code *c, int unit)
{
	return __atomic_load_n(&c->made[unit].address, __ATOMIC_ACQUIRE);
}
void jit_close(struct jit_code *);

/* As jit_compile, in a process of its own (helper.h): this process goes on even if the compiler ends its own.
 * The back end is loaded there only, and works on as many threads.  `memory`: the most bytes of data that the
 * process may have, 0 = no limit.  *compiler: as jit_backend.compiler, in the arena. */
bool jit_compile_apart(const char *backend, const struct ilir_module *, const struct jit_options *,
		       struct jit_threads, uint64_t memory, struct arena *, struct jit_objects *,
		       const char **compiler, struct diags *);
/* The helper program that jit_compile_apart starts; NULL = there is none in the folders that are added. */
#define JIT_HELPER_FILE "espalier-compile"
const char *jit_helper_path(struct arena *, struct str *looked);

bool jit_print(const struct jit_backend *, const struct ilir_module *, const struct jit_options *,
	       enum jit_text, struct str *, struct diags *);

#endif
