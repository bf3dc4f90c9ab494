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

/* First member of every public object.  An object holds its context and the objects that it was made from;
 * `destroy` releases these and must accept an object of which only this header is filled. */
struct object {
	atomic_size_t uses;
	size_t size;
	struct esp_context *context; /* NULL in a context */
	void (*destroy)(void *object);
};

/* A zeroed object with one use; NULL after a diagnostic. */
void *object_new(struct esp_context *, size_t size, void (*destroy)(void *), struct diags *);
/* Adds a use of an object and returns it.  The count changes even if the object is const for its holder. */
void *object_hold(const void *object);
/* Removes a use; the last one destroys the object.  NULL is legal. */
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
	size_t operators;	 /* the most that a model to compile may have */
	bool compile_apart;	 /* compile in a helper program */
	uint64_t compile_memory; /* 0 = no limit; so is 0 of the next */
	double compile_seconds;
	int (*cancel)(void *user); /* NULL = no hook */
	atomic_size_t used, peak, refused;
	int cache;
	char *cache_dir;
	uint64_t cache_limit;
	bool perf_map, jitdump;	      /* names of kernels for profilers */
	bool lines;		      /* programs have tables of lines */
	int machine_from;	      /* ESP_MACHINE_... */
	struct machine_known machine; /* valid once machine_known is set: see context_machine */
	char processor[512];	      /* text of cpu_print, which `machine` refers to */
	const char *machine_source;   /* a word for people: the source of its numbers */
	pthread_mutex_t machine_lock;
	bool has_machine_lock;
	atomic_bool machine_known;
	uint64_t process;     /* the fork generation it belongs to */
	atomic_uint builders; /* how many were made */
	atomic_size_t calls;
	atomic_bool closed;
	atomic_bool said[DIAG_COUNT]; /* by id: the log has it */
};

/* Enters and leaves a call, which are counted even if it is refused; entering returns false when the context
 * was closed. */
bool context_enter(struct esp_context *);
void context_leave(struct esp_context *);
/* Logs a notice if the team could not be made. */
void context_check_team(struct esp_context *);
/* Logs a notice, once for each id. */
__attribute__((format(printf, 4, 5))) void context_log(struct esp_context *, enum diag_id, const char *hint,
						       const char *format, ...);

/* find_machine.c: where compiled programs and descriptions of machines are kept. */
struct cache context_cache(const struct esp_context *);
/* The description of this machine, which is found by the first call and kept in the context.  If the cache
 * has none and `may_measure`, it is measured and cached. */
const struct machine_known *context_machine(struct esp_context *, bool may_measure);

/* --- entry points --- */

/* One call of the interface. */
struct api_call {
	struct diags diags;
	struct esp_context *context; /* entered, and left by api_end; or NULL */
	size_t refused;		     /* requests that the context's cap had refused before */
	bool open;		     /* false: the object's context accepts no calls */
	struct float_mode mode;	     /* the caller's arithmetic, which api_end restores */
};

/* Begins a call on an object, which may be NULL. */
struct api_call api_begin(const void *object);
/* Ends it: makes an error of the diagnostics, and returns the status. */
esp_status api_end(struct api_call *, bool ok, esp_error **error);
/* error.c: makes an error of the diagnostics, which it takes over, and returns the status of the call. */
esp_status error_from(struct diags *, bool ok, esp_error **error);

/* Refuses an argument.  Always false. */
bool api_bad_argument(struct diags *, const char *function, const char *argument, const char *what);
/* Whether the call may go on and the argument is not NULL. */
#define api_need(call, argument)                                                                             \
	((call)->open && ((argument) || diag_false(api_bad_argument(&(call)->diags, __func__, #argument,     \
								    "must not be NULL"))))

/* Whether an argument is of the context that the call has entered: only that one is kept open for it.  False
 * after a diagnostic. */
bool api_belongs(struct api_call *, const void *object, const char *function, const char *argument);
#define api_share(call, argument) api_belongs(call, argument, __func__, #argument)

/* Copies a struct that begins with its size, of any version of the library, to one of this version.  False
 * after a diagnostic. */
bool api_take_struct(struct diags *, const char *function, const char *argument, const void *from, void *to,
		     size_t size);

/* Calls `work`.  When the arena escapes, adds a diagnostic and returns false.  The arena's owner frees it. */
bool api_guarded(struct arena *, struct diags *, bool (*work)(void *job), void *job);
/* The same for work that passes over a model (NULL: none): with a stack that is deep enough for its longest chain of
 * operators, by a thread of its own where the caller's may not be. */
bool api_guarded_deep(const struct ra_model *, struct arena *, struct diags *, bool (*work)(void *job), void *job);

/* A copy of a text that esp_text_free takes; NULL after a diagnostic. */
char *api_text(const struct esp_context *, const char *text, struct diags *);

/* --- tensor.c --- */

esp_dtype api_dtype(enum dtype);
/* Converts extents to the type of the interface, in the arena. */
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
	const struct onnx_model *onnx; /* of a file of a graph: its tensors; else NULL */
	esp_input *unread;	       /* of such a file: inputs of the graph that the model lacks */
	size_t unreads;
};

/* onnx_model.c: the format of a file that is to be read as a graph, NULL = it is no graph; and reads it into a new model,
 * under its arena's guard; `options` may be NULL. */
struct graph_format;
const struct graph_format *model_find_format(const char *file, const char *bytes, size_t n);
bool model_read_graph(struct esp_model *, struct diags *, const struct graph_format *, const char *file, const char *bytes, size_t n,
		      const esp_read_options *options);

/* Makes a model of the same text with locals as states; NULL after a diagnostic. */
struct esp_model *model_keeping(const struct esp_model *, const struct ra_keep *, size_t n, struct diags *);

/* Makes a model of a graph and takes over the arena that holds it; NULL after a diagnostic. */
struct esp_model *model_of(struct esp_context *, const struct arena *, struct ra_model *, struct diags *);

struct esp_weights {
	struct object object;
	struct arena arena;
	struct io_safetensors *file;
	esp_tensor *tensors;	       /* file->n of them */
	const struct esp_model *model; /* whose tensors these are; NULL = they are of a file of their own */
};

/* quantised_weights.c: whether weights were not quantised, or for this model.  False after a diagnostic; may escape. */
bool weights_fit_model(struct arena *, const struct esp_weights *, const struct ra_model *, struct diags *);
/* A checksum of the text of a model. */
const char *weights_model_key(struct arena *, const struct ra_model *);
/* Sets what quantised weights say of how they are computed, unless the caller's options do.  False after a diagnostic. */
bool weights_set_options(struct arena *, const struct esp_weights *, const esp_program_options *from,
			 struct compile_options *, struct diags *);

/* onnx_model.c: the tensors of a model, or the single tensor of a file of ONNX; under the guard of the weights' arena. */
struct io_safetensors *weights_of_model(struct esp_weights *, const struct esp_model *);
struct io_safetensors *weights_read_tensor(struct esp_weights *, struct diags *, const char *path);

struct esp_program {
	struct object object;
	struct esp_model *model; /* NULL = loaded from a saved program */
	struct compile_options options;
	int64_t *sizes;
	struct arena arena;	/* the interface, the sizes, the key and texts of the options */
	struct image interface; /* inputs and outputs; never changes */
	const char *key;	/* key in the cache; NULL = it is not kept there */
	bool found;		/* in the cache or a file: `interface` is all of the image but its code */
	void *file;		/* the bytes that `interface` points into; NULL = none */
	double looking;		/* seconds to search the cache */
	double deadline;	/* of the compilation under way, by times_clock; 0 = none */
	esp_input *inputs;	/* descriptions for the interface's callers */
	esp_output *outputs;
	esp_state *states;
	pthread_mutex_t lock; /* guards all below, until `ready` */
	bool has_lock;
	atomic_bool ready;    /* runs can begin */
	atomic_bool complete; /* all that runs may need is compiled, and the image has it */
	struct arena code_arena;
	bool made; /* the image is complete but perhaps for code that is compiled later; it may not be loaded yet */
	struct image image;
	struct gdb_entry *named; /* functions that debuggers know */
	const char *listing;	 /* the file of their lines, NULL = it was not needed yet */
	_Atomic double seconds;
	const struct compilation *begun; /* the first half of its compilation; NULL = found */
	struct times early, times; /* steps of the first half of a compilation, and of making the code */
};

/* Makes an empty program of a model, or without one (NULL); NULL after a diagnostic. */
struct esp_program *program_new(struct esp_context *, const struct esp_model *, struct diags *);
/* Makes a program of which the states and outputs, behind those of the model, are what products with weights multiply and
 * their sums; NULL after a diagnostic. */
struct esp_program *program_create_observed(const esp_model *, const esp_weights *, const esp_program_options *,
					    struct diags *);
/* Fills the descriptions of inputs, outputs and states.  Escapes as the program's arena does. */
void program_describe(struct esp_program *);
/* The function of a struct jit_watch: whether the compilation goes on, because the context is open and the
 * hook has not cancelled it. */
bool program_is_wanted(void *program, struct diags *);
/* Makes the code of the program such that runs can begin, which may compile more (image_code.need).  False after a
 * diagnostic. */
bool program_begin(struct esp_program *, struct diags *);
/* Makes and loads all code of the program. */
bool program_prepare(struct esp_program *, struct diags *);
/* The same without loading, so that the code may be for another machine: sets `image`, without functions. */
bool program_make(struct esp_program *, struct image *, struct diags *);
/* save_source.c: writes the program as C with these weights; NULL = it has no parameters.  False after a diagnostic. */
bool program_save_source(struct esp_program *, const char *folder, const char *name, const esp_weights *, struct diags *);
/* Completes a program that the cache keeps, and frees its code. */
void program_release_code(struct esp_program *);
/* Sends notices of the cache to the log, with those that it got from the file system, and frees them all. */
void program_log_notices(const struct esp_program *, struct diags *notices);
/* Sets the deadline of a compilation that begins now, by the context's limit. */
void program_begin_deadline(struct esp_program *);

/* Reads parameters of a program from weights. */
struct weights_reader {
	const struct esp_program *program;
	const struct io_safetensors *file;
};
/* The function of a source, with a struct weights_reader as its context. */
bool binding_read_param(void *reader, int param, int64_t first, int64_t count, void *to, struct diags *);

/* Packed weights of one generation; freed with the last run that uses them. */
struct packed {
	struct object object;
	struct rt_binding weights;
	const struct esp_weights *source; /* of a binding whose runs read rows: a use; NULL = none is needed */
	struct weights_reader reader;
	uint64_t generation;
	double seconds;
};

struct esp_binding {
	struct object object;
	struct esp_program *program;
	pthread_mutex_t lock; /* guards `current` */
	bool has_lock;
	bool lazy; /* runs read the rows of tables that they select */
	struct packed *current;
};

/* Whether weights have the program's parameters, with their shapes.  False after diagnostics. */
bool binding_check(const struct esp_program *, const struct esp_weights *, struct diags *);
/* Packs checked weights for an image of the program; its code must be loaded if it has steps at binding. */
bool binding_pack(struct rt_binding *, const struct esp_program *, const struct image *,
		  const struct esp_weights *, struct diags *);
/* The current weights, with a use for the caller, who releases it. */
struct packed *binding_hold(const struct esp_binding *);

/* The name of a file, which forests hold for diagnostics. */
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
	size_t *capacities; /* of `data` [bytes] */
	struct lin_walk walk;
	struct file_name **file; /* files that structures were read from, held */
	size_t files, file_capacity;
};

/* Makes an empty forest; NULL after a diagnostic. */
esp_forest *forest_new(esp_program *, struct diags *);
/* esp_forest_add with arguments that were checked for NULL.  The origin may be NULL; otherwise the forest
 * holds its file. */
bool forest_add(struct esp_forest *, const esp_structure *, const struct lin_origin *, struct diags *);
bool forest_hold_file(struct esp_forest *, struct file_name *, struct diags *);
/* Bytes of an input per node or edge. */
size_t forest_row_bytes(const struct image_input *);
/* Reserves memory for so many more rows of data, one for each node or edge; existing rows stay. */
bool forest_reserve(struct esp_forest *, int input, size_t rows, struct diags *);
/* Where reserved rows of an input begin, behind the existing ones. */
void *forest_rows_end(const struct esp_forest *, int input);
/* add_structures.c: appends rows of a model without a structure, of an array for each input. */
bool forest_add_rows(struct esp_forest *, size_t rows, const void *const *data, struct diags *);
/* call_arrays.c: the same of arrays with names. */
bool forest_add_called(struct esp_forest *, const esp_array *, size_t n, struct diags *);
struct rt_minibatch forest_minibatch(const struct esp_forest *);

/* session.c: the number of structures of the last run; false when the session has no results. */
bool session_structures(const struct esp_session *, size_t *structures);
size_t session_nodes(const struct esp_session *, size_t structure);
const struct esp_program *session_program(const struct esp_session *);

struct esp_vocab {
	struct object object;
	struct arena arena;
	struct io_vocab *words;
};

#endif
