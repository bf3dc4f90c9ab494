/* What the files of api/ share: counted objects, the shape of an entry point, and what the objects hold. */
#ifndef ESPALIER_API_INTERNAL_H
#define ESPALIER_API_INTERNAL_H

#include "api/compile.h"
#include "api/espalier.h"
#include "io/ptb.h"
#include "io/safetensors.h"
#include "io/vocab.h"
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- counted objects --- */

/* First member of every public object.  An object holds its context and what it was made from; `destroy` lets
 * go of these and must accept an object of which only this header is filled. */
struct object {
	atomic_size_t uses;
	size_t size;
	struct esp_context *context; /* NULL in a context */
	void (*destroy)(void *object);
};

struct esp_context {
	struct object object;
	struct allocator allocator;
};

/* A zeroed object with one use; NULL after a diagnostic. */
void *object_new(struct esp_context *, size_t size, void (*destroy)(void *), struct diags *);
/* Another use of an object; returns it.  A count may change in an object that its holder may not. */
void *object_hold(const void *object);
/* NULL is legal. */
void object_release(void *object);

/* --- entry points --- */

/* Begins a call: diagnostics in the memory of an object or, when the caller gave none, of the process. */
struct diags api_begin(const void *object);
/* Ends it: frees the diagnostics or turns them into an error, and says the status. */
esp_status api_end(struct diags *, bool ok, esp_error **error);
/* Always false. */
bool api_bad_argument(struct diags *, const char *function, const char *argument, const char *what);
#define api_need(diags, argument)                                                                            \
	((argument) || api_bad_argument(diags, __func__, #argument, "must not be NULL"))

/* Calls `work`, with the arena's escape leading here: then a diagnostic is added and false returned.  The
 * arena is left to its owner. */
bool api_guarded(struct arena *, struct diags *, bool (*work)(void *job), void *job);

double api_clock(void);

/* A copy of a text that esp_text_free takes; NULL after a diagnostic. */
char *api_text(const struct esp_context *, const char *text, struct diags *);

/* --- objects --- */

struct esp_model {
	struct object object;
	struct arena arena;
	struct ra_model *graph;
};

struct esp_weights {
	struct object object;
	struct arena arena;
	struct io_safetensors *file;
};

struct esp_program {
	struct object object;
	struct esp_model *model;
	struct compile_options options;
	int64_t *sizes;
	struct arena arena;	/* the interface, the sizes and texts of the options */
	struct image interface; /* inputs and outputs; never changes */
	pthread_mutex_t lock;	/* of all below, until `ready` */
	bool has_lock;
	atomic_bool ready;
	struct arena code_arena;
	struct image image;
	double seconds;
};

/* Makes the program's code unless it is there. */
bool program_prepare(struct esp_program *, struct diags *);

struct esp_binding {
	struct object object;
	struct esp_program *program;
	struct rt_binding packed;
	double seconds;
};

struct esp_forest {
	struct object object;
	struct esp_program *program;
	struct lin_collect collect;
	void **data;	    /* by input of the program */
	size_t *capacities; /* of `data`, in bytes */
};

/* esp_forest_add with arguments that are known to be there. */
bool forest_add(struct esp_forest *, const esp_structure *, struct diags *);
struct rt_minibatch forest_minibatch(const struct esp_forest *);

struct esp_vocab {
	struct object object;
	struct arena arena;
	struct io_vocab *words;
};

#endif
