/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of api/ share: counted objects, the shape of an entry point, and what the objects hold. */
#ifndef ESPALIER_API_OBJECTS_H
#define ESPALIER_API_OBJECTS_H

#include "api/read_options.h"
#include "base/floats.h"
#include "base/fork.h"
#include "compile/cache.h"
#include "compile/compile.h"
#include "io/safetensors.h"
#include "io/vocab.h"
#include "linearize/walk.h"
#include "runtime/runtime.h"
#include "runtime/team.h"

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

/* A zeroed object with one use; NULL after a diagnostic. */
void *object_new(struct esp_context *, size_t size, void (*destroy)(void *), struct diags *);
/* Another use of an object; returns it.  A count may change in an object that its holder may not. */
void *object_hold(const void *object);
/* NULL is legal. */
void object_release(void *object);
struct esp_context *object_context(const void *object);

/* --- the context --- */

struct esp_context {
	struct object object;
	struct allocator allocator; /* counts, then asks the hooks */
	struct allocator hooks;	    /* of errors and texts, which may outlive the context */
	void (*log)(void *user, const esp_diagnostic *);
	void *hooks_user;
	struct rt_team team;
	size_t cap;		 /* 0 = none */
	size_t operators;	 /* that a model may have at most to be compiled */
	bool compile_apart;	 /* in a helper program */
	uint64_t compile_memory; /* 0 = no limit, as of the next */
	double compile_seconds;
	int (*cancel)(void *user); /* NULL = nobody is asked */
	atomic_size_t used, peak, refused;
	int cache;
	char *cache_dir;
	uint64_t cache_limit;
	bool perf_map;
	int machine_from;	      /* ESP_MACHINE_... */
	struct machine_known machine; /* once it is known: see context_machine */
	char processor[512];	      /* of it */
	const char *machine_source;   /* a word for people: where its numbers are from */
	pthread_mutex_t machine_lock;
	bool has_machine_lock;
	atomic_bool machine_known;
	uint64_t process;     /* the fork generation it belongs to */
	atomic_uint builders; /* that were made */
	atomic_size_t calls;
	atomic_bool closed;
	atomic_bool said[DIAG_COUNT]; /* to the log */
};

/* A call begins and ends, whether it is refused or not; the first is false when the context was closed. */
bool context_enter(struct esp_context *);
void context_leave(struct esp_context *);
/* Tells the log when the team could not be made. */
void context_check_team(struct esp_context *);
/* Tells the log, once for each id. */
__attribute__((format(printf, 4, 5))) void context_log(struct esp_context *, enum diag_id, const char *hint,
						       const char *format, ...);

/* find_machine.c: where compiled programs and descriptions of machines are kept. */
struct cache context_cache(const struct esp_context *);
/* The description of the machine at hand, which is the context's from the first call on.  Where the cache has
 * none it is measured and kept, if it may be. */
const struct machine_known *context_machine(struct esp_context *, bool may_measure);

/* --- entry points --- */

/* One call of the interface. */
struct api_call {
	struct diags diags;
	struct esp_context *context; /* that it has entered, and is to leave; or NULL */
	size_t refused;		     /* what the context's cap had refused before */
	bool open;		     /* false: the object's context does not take calls */
	struct float_mode mode;	     /* of the caller's arithmetic, who gets it back */
};

/* Begins a call on an object, which may be NULL. */
struct api_call api_begin(const void *object);
/* Ends it: makes an error of the diagnostics, and returns the status. */
esp_status api_end(struct api_call *, bool ok, esp_error **error);
/* error.c: the status of a call with these diagnostics, which are taken. */
esp_status error_from(struct diags *, bool ok, esp_error **error);

/* Always false. */
bool api_bad_argument(struct diags *, const char *function, const char *argument, const char *what);
/* Whether the call may go on, and the argument is there. */
#define api_need(call, argument)                                                                             \
	((call)->open && ((argument) || diag_false(api_bad_argument(&(call)->diags, __func__, #argument,     \
								    "must not be NULL"))))

/* Whether an argument is of the context that the call has entered: only that one is kept open for it.  False
 * after a diagnostic. */
bool api_belongs(struct api_call *, const void *object, const char *function, const char *argument);
#define api_share(call, argument) api_belongs(call, argument, __func__, #argument)

/* Copies a struct that begins with its size, of any version, to one of ours.  False after a diagnostic. */
bool api_take_struct(struct diags *, const char *function, const char *argument, const void *from, void *to,
		     size_t size);

/* Calls `work`, with the arena's escape leading here: then a diagnostic is added and false returned.  The
 * arena is left to its owner. */
bool api_guarded(struct arena *, struct diags *, bool (*work)(void *job), void *job);

/* A copy of a text that esp_text_free takes; NULL after a diagnostic. */
char *api_text(const struct esp_context *, const char *text, struct diags *);

/* --- tensor.c --- */

esp_dtype api_dtype(enum dtype);
/* The extents as callers see them, in the arena. */
const size_t *api_shape(struct arena *, const int64_t *shape, int rank);

/* --- objects --- */

struct esp_model {
	struct object object;
	struct arena arena;
	struct ra_model *graph;
	const char *text; /* NULL = it was built by calls */
	size_t length;
	esp_model_facts facts;
	esp_local *locals; /* graph->locals.n of them */
};

/* The model of the same text with locals as states; NULL after a diagnostic. */
struct esp_model *model_keeping(const struct esp_model *, const struct ra_keep *, size_t n, struct diags *);

/* A model of a graph that lives in the arena, which it takes over; NULL after a diagnostic. */
struct esp_model *model_of(struct esp_context *, const struct arena *, struct ra_model *, struct diags *);

struct esp_weights {
	struct object object;
	struct arena arena;
	struct io_safetensors *file;
	esp_tensor *tensors; /* file->n of them */
};

struct esp_program {
	struct object object;
	struct esp_model *model; /* NULL = it was saved, and loaded again */
	struct compile_options options;
	int64_t *sizes;
	struct arena arena;	/* the interface, the sizes, the key and texts of the options */
	struct image interface; /* inputs and outputs; never changes */
	const char *key;	/* under which the cache keeps it; NULL = it is not kept */
	bool found;		/* in the cache or a file: `interface` is all of the image but its code */
	void *file;		/* its bytes, which it points to; NULL = none */
	double looking;		/* seconds that it took to look there */
	double deadline;	/* of the compilation under way, by times_clock; 0 = none */
	esp_input *inputs;	/* what is told of them */
	esp_output *outputs;
	esp_state *states;
	pthread_mutex_t lock; /* of all below, until `ready` */
	bool has_lock;
	atomic_bool ready;
	struct arena code_arena;
	bool made; /* the image is complete, but perhaps for loading its code */
	struct image image;
	double seconds;
	const struct compilation *begun; /* NULL = found */
	struct times early,
	    times; /* of the parts of the first half of a compilation, and of making the code */
};

/* A program of a model, or without one, that has nothing else yet; NULL after a diagnostic. */
struct esp_program *program_new(struct esp_context *, const struct esp_model *, struct diags *);
/* Fills what is told of the interface; escapes from the program's arena. */
void program_describe(struct esp_program *);
/* Whether code of the program is still wanted: its context is open, and nobody has cancelled.  Of a struct
 * jit_watch. */
bool program_is_wanted(void *program, struct diags *);
/* Makes the program's code unless it is there. */
bool program_prepare(struct esp_program *, struct diags *);
/* The same but for loading it, which this machine need not be able to: tells the image, without code. */
bool program_make(struct esp_program *, struct image *, struct diags *);

/* Weights as they were packed at one time; freed with the last run that uses them. */
struct packed {
	struct object object;
	struct rt_binding weights;
	uint64_t generation;
	double seconds;
};

struct esp_binding {
	struct object object;
	struct esp_program *program;
	pthread_mutex_t lock; /* of `current` */
	bool has_lock;
	struct packed *current;
};

/* Whether weights are those of the program's parameters. */
bool binding_check(const struct esp_program *, const struct esp_weights *, struct diags *);
/* Packs weights that are for an image of the program, which can be called if it has steps at binding. */
bool binding_pack(struct rt_binding *, const struct esp_program *, const struct image *,
		  const struct esp_weights *, struct diags *);
/* The weights that a run is to use, held. */
struct packed *binding_hold(const struct esp_binding *);

/* The name of a file, which forests keep for diagnostics. */
struct file_name {
	struct object object;
	char text[];
};
struct file_name *file_name_new(struct esp_context *, const char *text, struct diags *);

struct esp_forest {
	struct object object;
	struct esp_program *program;
	struct lin_collect collect;
	void **data;	    /* by input of the program */
	size_t *capacities; /* of `data`, in bytes */
	struct lin_walk walk;
	struct file_name **file; /* held, of the structures that were read */
	size_t files, file_capacity;
};

/* esp_forest_add with arguments that are known to be there.  The origin may be NULL; otherwise the forest
 * holds its file. */
bool forest_add(struct esp_forest *, const esp_structure *, const struct lin_origin *, struct diags *);
bool forest_hold_file(struct esp_forest *, struct file_name *, struct diags *);
/* Bytes that a node or an edge carries of an input. */
size_t forest_row_bytes(const struct image_input *);
/* Reserves so many more rows of data, a row for each node or edge; what is there stays. */
bool forest_reserve(struct esp_forest *, int input, size_t rows, struct diags *);
/* Where they begin. */
void *forest_rows_end(const struct esp_forest *, int input);
struct rt_minibatch forest_minibatch(const struct esp_forest *);

/* session.c: what the last run was over; false when it has no results. */
bool session_structures(const struct esp_session *, size_t *structures);
size_t session_nodes(const struct esp_session *, size_t structure);
const struct esp_program *session_program(const struct esp_session *);

struct esp_vocab {
	struct object object;
	struct arena arena;
	struct io_vocab *words;
};

#endif
