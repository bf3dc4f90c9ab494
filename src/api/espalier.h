/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier.h - run recursive deep-learning models at the lowest latency the machine allows.
 *
 *   context  what all share: threads, memory, cache     esp_context_create
 *   model    what a .ra text or a builder says          esp_model_read, esp_builder_finish
 *   weights  a safetensors file, or one in memory       esp_weights_open, esp_weights_from_memory
 *   program  the model compiled for the sizes of its    esp_program_create, or of a file that
 *            weights; their values are no part of it    was saved: esp_program_load
 *   binding  weights packed as the program wants them;  esp_binding_create, esp_binding_swap
 *            can be exchanged while it is in use
 *   forest   a minibatch of structures                  esp_forest_create, esp_forest_add
 *   session  one caller's working memory and results    esp_session_create, esp_session_run
 *   arrays   models of ONNX files, calls by arrays      espalier_arrays.h, which is included here
 *   builder  a model made by calls                      espalier_builder.h, which is included here
 *   profile  where the time of a run went               espalier_profile.h, which is included here
 *   treebank structures from files                      espalier_treebank.h, which is included here
 *   quantise weights in 8 bits, by a calibration        espalier_quantise.h, which is included here
 *   service  many callers' requests, computed together  espalier_service.h
 *   stream   what an accelerator runs                   espalier_vta.h
 *
 * Errors.  Functions that can fail return an esp_status.  `error` may be NULL; otherwise *error is set to
 * NULL on success and else to an esp_error that names the fault, its place and a remedy; the caller frees
 * it with esp_error_free.  On failure *out parameters are set to NULL and nothing else is changed.  The
 * library never prints and never ends the process; LLVM ends it when memory is out while it compiles, unless it
 * runs in another one (esp_context_options.compile_in).  Any function that returns a status may fail with
 * ESP_ERROR_MEMORY, ESP_ERROR_CLOSED and ESP_ERROR_FORKED, and with ESP_ERROR_ARGUMENT when an argument is
 * NULL that must not be, or is of another context; its comment lists what else a function may return.
 *
 * Ownership.  Each object is freed by its esp_*_free, which accepts NULL.  An object keeps alive what it was
 * made from, so objects can be freed in any order.  All objects of one call are of one context.  Texts
 * and arrays that are passed in are copied unless a comment says otherwise; those that are returned belong to the
 * object that returned them.
 *
 * Threads.  Contexts, models, weights, programs, bindings and vocabularies can be used by any number of
 * threads at once.  A builder, a forest, a treebank, an export or a session belongs to one thread at a time;
 * any number of sessions may read one forest at once as long as nobody changes it.  An object must not be
 * freed while another thread calls a function with it.
 *
 * Processes.  After fork() the child may free the objects it inherited and must not use them otherwise: calls
 * that return a status return ESP_ERROR_FORKED.  It can make a context of its own.
 *
 * Numbers.  Elements have the types of esp_dtype, in native byte order; tensors are row-major.  Arithmetic is done
 * in IEEE 754 binary32, in integers of 32 and 64 bits that wrap, and in truth values.  A result has the same bits
 * whatever other structures share its minibatch, however many threads compute it, whatever the schedule and the
 * target are.  Calls round
 * to nearest and trap nothing, whatever the calling thread is set to; it finds its settings, and its flags, as
 * they were.
 *
 * Growth.  A struct that the caller fills begins with `size`, which must be its sizeof: members that a caller
 * does not know are taken as zero.  A struct that the library fills is only ever returned by pointer, and may
 * grow at its end. */
#ifndef ESPALIER_H
#define ESPALIER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define ESP_VERSION "0.2.0"

/* The version of the library that is running, in the form of ESP_VERSION. */
const char *esp_version(void);

/* --- status and errors --- */

/* Numbers never change their meaning; more may come.  Those marked * may go away by themselves: the same call
 * can be made again (but for esp_builder_finish, which leaves no builder to call it with). */
typedef enum esp_status {
	ESP_OK = 0,
	ESP_ERROR_INPUT = 1,	/* a file, model, structure or weight is not as it must be */
	ESP_ERROR_ARGUMENT = 2, /* the call itself is wrong; see the function's documentation */
	ESP_ERROR_MEMORY = 3,	/* * memory ran out, or the context's cap is reached */
	ESP_ERROR_BACKEND = 4,	/* code could not be made: no back end, or it failed */
	ESP_ERROR_SYSTEM = 5,	/* * the system refused: a file could not be written */
	ESP_ERROR_BUSY = 6,	/* * another thread is in a call with this session, or a service is full */
	ESP_ERROR_CLOSED = 7,	/* the context was closed */
	ESP_ERROR_FORKED = 8,	/* the object belongs to the process that forked this one */
	ESP_ERROR_EXPIRED = 9,	/* the deadline of a request passed */
	ESP_ERROR_CANCELLED = 10 /* the request was cancelled */
} esp_status;

/* "ok", "input", "argument", ...; NULL when there is no such status. */
const char *esp_status_name(esp_status);
/* Whether the same call may succeed when it is made again. */
int esp_status_is_transient(esp_status);

typedef struct esp_error esp_error;

/* One diagnostic.  `id` is stable ("shape-mismatch"). */
typedef struct esp_diagnostic {
	const char *id, *message;
	/* May be NULL: what to do; where; the line itself or, of a builder, the text that was passed. */
	const char *hint, *file, *source;
	int line, column;	 /* 0 = unknown; columns in bytes, both from 1 */
	int64_t structure, node; /* of a minibatch, in the caller's numbers; -1 = none */
} esp_diagnostic;

size_t esp_error_count(const esp_error *);
/* The i-th diagnostic, NULL past the last; belongs to the error. */
const esp_diagnostic *esp_error_get(const esp_error *, size_t i);
/* All diagnostics as the command prints them, lines ended by newlines; belongs to the error. */
const char *esp_error_text(const esp_error *);
void esp_error_free(esp_error *);

/* What there is to know of a diagnostic before it happens: the registry behind `espalier explain-error`. */
typedef struct esp_message {
	const char *id, *message, *explanation, *fix;
	esp_status status; /* of a call that fails with it; ESP_OK = it is only logged */
} esp_message;

/* NULL when there is no such id. */
const esp_message *esp_message_find(const char *id);
/* All of them, by stage; NULL past the last. */
const esp_message *esp_message_at(size_t i);

/* --- types of elements --- */

/* What an element of a tensor is in memory, in native byte order.  Numbers never change their meaning; more may
 * come. */
typedef enum esp_dtype {
	ESP_F32 = 1,  /* IEEE 754 binary32: float */
	ESP_F16 = 2,  /* IEEE 754 binary16 */
	ESP_BF16 = 3, /* the upper half of a binary32 */
	ESP_I8 = 4,   /* two's complement: int8_t */
	ESP_U8 = 5,   /* uint8_t */
	ESP_I16 = 6,  /* int16_t */
	ESP_I32 = 7,  /* int32_t */
	ESP_I64 = 8,  /* int64_t */
	ESP_BOOL = 9  /* a byte, 0 or 1 */
} esp_dtype;

/* "f32", "f16", "bf16", "i8", ...; NULL when there is no such type. */
const char *esp_dtype_name(esp_dtype);
/* Bytes of an element; 0 when there is no such type. */
size_t esp_dtype_size(esp_dtype);

/* --- context --- */

/* What all objects made from it share. */
typedef struct esp_context esp_context;

enum { ESP_CACHE_ON = 0, ESP_CACHE_OFF = 1 };

typedef struct esp_context_options {
	size_t size; /* sizeof(esp_context_options) */
	/* All memory of the library's own (neither the compiler's nor that of code and thread stacks) is
	 * taken and given back here: new_size == 0 frees, p == NULL takes; NULL is returned when memory is
	 * out, the old block then being untouched.  Called from any thread.  NULL = realloc and free. */
	void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
	/* Receives what went wrong without failing a call: a cache that cannot be used, and why.  Each id
	 * comes once.  Called from any thread; must not call the library; the diagnostic is valid until it
	 * returns.  NULL = such diagnostics are dropped. */
	void (*log)(void *user, const esp_diagnostic *);
	void *user;	   /* first argument of these, and of cancel */
	size_t memory_cap; /* bytes in use at a time, counted as `resize` sees them; 0 = no cap */
	/* How many threads may compute one run: the caller's own and threads - 1 of a team that all callers
	 * share, and that is made when it is first needed.  A run that is too small to gain, or that finds
	 * the team at work for another caller, is computed by its caller alone.  1 = no team; 0 = one for
	 * each processor that the process may run on, or as many as the processor time comes to that its
	 * control groups allow, rounded up (doc/limits.md), if these are fewer, counted when it is first
	 * needed; at most ESP_THREADS_MAX. */
	int threads;
	/* Programs that were compiled are kept in files: ESP_CACHE_ON or ESP_CACHE_OFF.  `cache_dir` = NULL:
	 * $XDG_CACHE_HOME/espalier or ~/.cache/espalier.  Files are used from a folder only that is private
	 * to the user and that others cannot exchange (doc/limits.md); whatever is wrong with it is logged,
	 * and fails no call.  `cache_limit`: bytes that are kept, the files that were not used for longest go
	 * first; 0 = 256 MiB. */
	int cache;
	const char *cache_dir;
	uint64_t cache_limit;
	/* 1: the threads of the team are bound to a processor each, those that the calling thread may run on
	 * now in ascending order, but for the first, which is left to the callers: a thread of the caller's
	 * is never moved, so one that runs often binds itself to that one.  A host that binds OpenMP's
	 * threads (OMP_PROC_BIND) decides instead.  0: they may run where the calling thread may. */
	int pin;
	/* Not 0: names and addresses of kernels are added to /tmp/perf-PID.map, for `perf report` to show.
	 * ESPALIER_PERF_MAP=1 in the environment does the same, unless the process runs with raised rights.
	 * What is wrong with the file is logged, and fails no call; removing it is left to the user. */
	int perf_map;
	/* A model of more operators than these, functions expanded, is not compiled: compiling takes time and
	 * memory in proportion (doc/limits.md).  0 = 20000. */
	size_t operators;
	/* Where back ends work.  ESP_COMPILE_IN_PROCESS: in this process.  When memory is
	 * out, LLVM ends the process (std::bad_alloc, or a message of its own, and abort), and the library cannot
	 * prevent that.  ESP_COMPILE_IN_HELPER: in espalier-compile, a program that is installed with the library
	 * and started (posix_spawn) for each compilation; it is looked for in the folders of
	 * ESPALIER_BACKEND_PATH, as plug-ins are, then in the folder "espalier" beside the library and where it was installed.
	 * Whatever happens to it, this process goes on: the call fails with a diagnostic,
	 * ESP_ERROR_MEMORY or ESP_ERROR_BACKEND, and may be made again.  The code is the same to the byte. */
	int compile_in;
	/* The most data the helper may have [bytes], whatever it is compiling with; 0 = no limit but the process's
	 * own.  Must be 0 when there is no helper. */
	uint64_t compile_memory;
	/* How long the code of one program may take to make in one call, from when the call finds that it must be made
	 * [seconds]; 0 = no limit.  esp_program_create is such a call: it gives up between two passes.  A helper is ended at that time; in the process LLVM is, before its next kernel (a
	 * kernel takes from milliseconds to some seconds), and libgccjit, which is a process of its own, at that
	 * time.  The call fails with ESP_ERROR_BACKEND. */
	double compile_seconds;
	/* Called while code is made, before each kernel and about a hundred times a second while another process
	 * works: when it does not return 0, the compilation is given up and the call fails with
	 * ESP_ERROR_BACKEND (compile-cancelled).  Called from any thread, several at once among them; must not call
	 * the library.  NULL = never.  esp_context_close gives up all compilations of a context. */
	int (*cancel)(void *user);
	/* What schedules are chosen by for the target "native", and how runs are divided among threads: the
	 * caches, peak and bandwidths of this machine.  No bit of a result depends on it.
	 *   ESP_MACHINE_MEASURED  as kept in the cache folder with the processor's name; where nothing is kept there,
	 *                         the first program that is compiled has the machine measured and the description
	 *                         kept (0.2 s, 128 MiB beside `memory_cap`, up to four threads for as long)
	 *   ESP_MACHINE_KEPT      as kept there; where nothing is, by the processor where it is known, else as a
	 *                         usual machine of its best target, but for the caches, which the system tells.  So
	 *                         it is without a cache folder, too
	 *   ESP_MACHINE_DEFAULTS  as a usual machine of its best target
	 * ESPALIER_MACHINE in the environment (measured, kept, defaults) decides in place of 0, unless it is empty or
	 * the process runs with raised rights; another word is a bad-argument. */
	int machine;
	/* Not 0: code that is compiled has a table of its lines, which are those of `espalier dump ilir`
	 * (esp_program_dump). gdb shows them: the text is kept beside the compiled programs, in the folder
	 * `listings` of the cache.  Compiling takes longer and programs are larger (doc/profiling.md); the
	 * code is the same.  ESPALIER_LINES=1 in the environment does the same, unless the process runs with
	 * raised rights. */
	int lines;
	/* Not 0: code is written to $JITDUMPDIR/.debug/jit/espalier-XXXXXX/jit-PID.dump ($HOME when
	 * JITDUMPDIR is not set), with its lines, for `perf inject --jit`.  ESPALIER_JITDUMP=1 does the same,
	 * unless the process runs with raised rights.  What is wrong with the file is logged, and fails no
	 * call; removing it is left to the user. */
	int jitdump;
} esp_context_options;

enum { ESP_MACHINE_MEASURED = 0, ESP_MACHINE_KEPT = 1, ESP_MACHINE_DEFAULTS = 2 };

enum { ESP_COMPILE_IN_PROCESS = 0, ESP_COMPILE_IN_HELPER = 1 };

enum { ESP_THREADS_MAX = 256 };

/* `options` may be NULL. */
esp_status esp_context_create(const esp_context_options *options, esp_context **out, esp_error **error);
/* Refuses all calls with objects of this context from now on (ESP_ERROR_CLOSED), waits for those that have
 * begun, and ends the team.  Calls that make code give up as soon as they notice (see compile_seconds), and those that wait
 * for bytes of a pipe within some 20 ms, and fail with ESP_ERROR_CLOSED.  Objects must still be freed, results can still be read.  Closing again does
 * nothing.  Must not be called from the context's hooks. */
esp_status esp_context_close(esp_context *, esp_error **error);
/* The context lives as long as objects that were made from it; the last of them ends the team. */
void esp_context_free(esp_context *);
/* How many threads may compute one run: what the options say, or what 0 came to when the context was made. */
int esp_context_threads(const esp_context *);
/* The description of this machine that the context goes by, as text for people: lines "NAME VALUE UNIT meaning", the
 * first of which say the processor, its target and where the numbers are from.  `measure` not 0: measures it anew
 * (0.2 s; nothing else should run meanwhile) and keeps that in the cache folder; contexts that have no program yet
 * go by it, and programs are compiled anew.  ESP_ERROR_MEMORY: it could not be measured; a folder that cannot be
 * written is only logged.  The text is the caller's: esp_text_free. */
esp_status esp_context_machine(esp_context *, int measure, char **text, esp_error **error);
/* The i-th name that esp_program_options.target takes: "native" first.  NULL past the last. */
const char *esp_target(size_t i);
/* Bytes in use now, and the most there were (`peak` may be NULL). */
size_t esp_context_memory(const esp_context *, size_t *peak);

/* --- model --- */

typedef struct esp_model esp_model;

/* Reads and checks a model text (doc/model-text.md).  ESP_ERROR_INPUT: the file cannot be read, or the text
 * is not a model; all its faults are in the error. */
esp_status esp_model_read(esp_context *, const char *path, esp_model **out, esp_error **error);
/* The same from memory; `name` stands for the file in diagnostics. */
esp_status esp_model_parse(esp_context *, const char *name, const char *text, size_t length, esp_model **out,
			   esp_error **error);
void esp_model_free(esp_model *);

/* What a model declares.  Texts belong to the model. */
typedef struct esp_model_facts {
	const char *name;
	const char *structure; /* "sequence", "tree", "dag", "none" */
	int children;	       /* of every inner node; -1 = any number of at least one; 0 = there is no structure */
	size_t inputs, params, states, outputs;
} esp_model_facts;
/* NULL when the model is. */
const esp_model_facts *esp_model_describe(const esp_model *);
/* The model as canonical text, functions expanded; to be freed with esp_text_free. */
esp_status esp_model_print(const esp_model *, char **text, esp_error **error);
void esp_text_free(char *text);

/* The dimensions that a model names in its shapes, "D", in the order in which it does; NULL past the last. */
const char *esp_model_dimension(const esp_model *, size_t i);
/* The i-th parameter by name, NULL past the last, and its shape: `sizes` has the size of each dimension, in the
 * order of esp_model_dimension.  *rank, which may be NULL, is the number of its axes; `shape` has space for `capacity`
 * numbers and takes the first extents.  An extent that is impossible with these sizes is below 1.  `sizes` = NULL: only
 * the rank is set. */
const char *esp_model_param(const esp_model *, size_t i, const int64_t *sizes, int64_t *shape, size_t capacity,
			    size_t *rank);
/* The type of the i-th parameter's weights; 0 past the last. */
esp_dtype esp_model_param_dtype(const esp_model *, size_t i);

/* How the i-th traversal of the model goes, "up" or "down"; NULL past the last. */
const char *esp_model_traversal(const esp_model *, size_t i);
/* The i-th state by name, in the order of esp_program_state, NULL past the last; *traversal, which may be NULL, is the
 * number of the traversal that computes it, from 0. */
const char *esp_model_state(const esp_model *, size_t i, size_t *traversal);

/* Bodies.  A `node:` of a text is two of them, LEAF and INNER, or ROOT and BELOW.  The i-th case that a model names
 * has the number ESP_BODY_CASE + i. */
enum {
	ESP_BODY_LEAF = 1,
	ESP_BODY_INNER = 2,
	ESP_BODY_NODE = 3,   /* of a builder: both */
	ESP_BODY_OUTPUT = 4, /* where outputs are computed: states are those of the node */
	ESP_BODY_ROOT = 5,   /* of a traversal down: nodes without parents, and all others */
	ESP_BODY_BELOW = 6,
	ESP_BODY_CASE = 256
};
/* The line of the model text that assigns a state in a body (of a case without a body of its own: in that of
 * leaves or inner nodes) or, with ESP_BODY_OUTPUT, computes an output.  *line, which may be NULL, is its number,
 * 0 = unknown.  NULL when there is none, or the model was not made from a text; belongs to the model. */
const char *esp_model_statement(const esp_model *, const char *name, int body, int *line);

/* A name that a body of the text assigns and that is no state.  Texts belong to the model. */
typedef struct esp_local {
	const char *name;
	size_t traversal; /* from 0 */
	int body;
	const char *shape; /* as it would be declared, "[D]"; "" = a number */
	const char *statement;
	int line; /* of the statement */
} esp_local;
/* By traversal and body; NULL past the last.  A model that was built by calls has none. */
const esp_local *esp_model_local(const esp_model *, size_t i);
/* Another model of the same text in which locals are states, so that runs show what bodies compute on the way:
 * state[i] is the name of the state that keeps local[i], a number of esp_model_local.  Locals of one traversal and
 * shape, one of a body, may be kept in one state; in bodies that have none of them it is zeros, and
 * esp_model_statement knows no line for it.  ESP_ERROR_ARGUMENT: the model was not made from a text, there is no such
 * local, the name is none of the language or something in the model has it already, or locals of one name cannot be kept in one
 * state. */
esp_status esp_model_keep(const esp_model *, const size_t *local, const char *const *state, size_t n, esp_model **out,
			  esp_error **error);

/* --- weights --- */

typedef struct esp_weights esp_weights;

/* Opens a safetensors file (F32, F16, BF16) and validates its header; values are read when a binding is made,
 * so the file must stay as it is until then.  Of a path that ends in .pb, the single tensor of a file of ONNX (TensorProto).
 * ESP_ERROR_INPUT: it does not exist, or violates the format. */
esp_status esp_weights_open(esp_context *, const char *path, esp_weights **out, esp_error **error);
/* The same of the bytes of such a file in memory, from a container, a network or a mapping.  They are not
 * copied: they belong to the caller and must stay as they are, at any alignment, until the weights are freed, and
 * bindings that esp_binding_open made of them; other bindings and programs that were made with them do not need them.  They are checked as a file is, so their
 * origin need not be trusted. */
esp_status esp_weights_from_memory(esp_context *, const void *bytes, size_t n, esp_weights **out,
				   esp_error **error);
/* What the file holds under a name; belongs to the weights. */
typedef struct esp_tensor {
	const char *name;
	esp_dtype dtype;
	size_t rank;	     /* axes; 0 = a number */
	const size_t *shape; /* an extent for each */
} esp_tensor;
/* In the order of their values in the file; NULL past the last. */
const esp_tensor *esp_weights_tensor(const esp_weights *, size_t i);
/* Bytes of all elements of a type that the file keeps; *tensors, which may be NULL, is how many tensors are of it.  Of quantised
 * weights, which esp_weights_tensor describes as they are read, these are the integers, scales and bounds. */
uint64_t esp_weights_bytes(const esp_weights *, esp_dtype, size_t *tensors);
void esp_weights_free(esp_weights *);

/* --- program --- */

typedef struct esp_program esp_program;

enum { ESP_AT_MODEL = 0, ESP_AT_ROOT = 1, ESP_AT_EVERY_NODE = 2 };

typedef struct esp_program_options {
	size_t size;	      /* sizeof(esp_program_options) */
	int at;		      /* where outputs are computed: ESP_AT_MODEL = as the model says */
	const char *backend;  /* "llvm", "gccjit", "interpreter"; NULL = llvm, else gccjit */
	const char *target;   /* of esp_target; NULL = native, the machine at hand */
	const char *schedule; /* schedule text (espalier dump sched); NULL = chosen by the library */
	/* How the model may be rewritten before it is compiled (doc/algebra.md).  `math`, what results may
	 * differ in from the text read literally: "exact" nothing, "reassociate" rounding, "fast" also where
	 * operands are special (zero, infinite, not a number, near overflow) or a sigmoid is below e^-69, and
	 * denormals count as zeros in bindings and runs, on every thread; NULL = reassociate.  `rules`: the
	 * families that run, "all", "none", names with commas between ("tables,constants", the only ones) or
	 * names after a minus ("-tables", all but these); NULL = all.  `table_bytes`: the most that tables of one
	 * binding, made of embeddings, may take together; 0 = 64 MiB. */
	const char *math, *rules;
	uint64_t table_bytes;
	/* When `weights` is NULL: the sizes of the dimensions, in the order of esp_model_dimension. */
	const int64_t *sizes;
	/* What weights that are multiplied are kept as, those of two and more dimensions: "f16", "bf16", or "i8" with a
	 * scale for each row; they are widened where they are read (doc/algebra.md).  It changes results.  NULL or "f32" =
	 * as the model says. */
	const char *weights_as;
	/* Not 0: a program for esp_service_create; sessions run it as well, some models 1 to 4 % slower than without.  Bits are the
	 * same. */
	int continuous;
	/* What products of weights with states and inputs are computed in: "i16" or "i8", integers whose sums are exact, by
	 * scales of weights and bounds of what they multiply; "i8x3", integers of 16 bits
	 * that are multiplied as three sums of products of bytes, which are exact, too, and nearer to f32 than "i16"; "f16", factors and short sums of 11 binary digits, by the same bounds; or
	 * "bf16", both factors rounded to 8 binary digits, for which no bound is needed, "bf16x1", the same added by blocks, as tiles of
	 * AMX do, or "bf16x3", three such products for each, near to f32; other products stay in f32 (doc/precision.md).  It changes results, to the same bits on every machine.  NULL or "f32" = all in f32. */
	const char *precision;
	/* What is assumed of numbers: "finite", that inputs and weights are neither infinite nor NaN, and that no sum, product or
	 * quotient of finite numbers overflows.  Rules whose only risk that is then run, within what `math` permits
	 * (doc/algebra.md).  Where it does not hold, elements of results that depend on such a number can be any
	 * number; nothing else changes.  NULL or "nothing" = nothing is. */
	const char *assume;
	/* What computes quantised products that it can compute to the bit, "vta": the Versatile Tensor Accelerator, of which an
	 * executor runs the instructions (doc/vta.md); all else is computed by the host.  Bits are the same.  Behind it may stand
	 * products that the host keeps, by their numbers in `espalier dump split`: "vta,-0,-3"; a number of no product is refused
	 * (`no-product`).
	 * NULL or "host" = the host computes all. */
	const char *accelerator;
} esp_program_options;

/* Checks that the weights have the parameters that the model names (all mismatches are reported at once) and
 * takes the model's sizes from their shapes; or takes the sizes that the options give, when `weights` is NULL.
 * `options` may be NULL.  Loops are made when the first binding needs them, and code of kernels when a binding or a run
 * does, as far as they do: kernels have code for few rows and for many.  esp_program_prepare makes all of it; back ends that
 * compile at once, and helpers, make all of it when the first binding needs some.  Threads that need code
 * at the same time wait for one compilation.  A compilation that failed is tried again when code is needed again.
 * A program that is to be kept in the cache is kept whole: when all of its code is there, which is made, if some was, by
 * the call that frees the last object that uses the program.
 * ESP_ERROR_INPUT: the weights do not fit the model, or the schedule is illegal; ESP_ERROR_ARGUMENT: an
 * option has a value that it cannot have; ESP_ERROR_BACKEND: there is no code for that target on this
 * machine, or no back end, or it failed (all three when code is made, also by esp_binding_create and
 * esp_session_run). */
esp_status esp_program_create(const esp_model *, const esp_weights *, const esp_program_options *options,
			      esp_program **out, esp_error **error);
/* Makes all code of the program, by all threads of the context, so that no run will wait for a compiler; and keeps the
 * program in the cache.  For servers, before the first request.  Fails as esp_program_create says. */
esp_status esp_program_prepare(esp_program *, esp_error **error);
void esp_program_free(esp_program *);

/* --- programs in files: compiled ahead of time (doc/ahead.md) ---
 *
 * A saved program runs without the model, the back end and the compiler it needs, on machines that have what its
 * target has.  It is read by libraries that have the same format and calling convention of it (doc/compatibility.md);
 * others refuse it.  Tables and weights in it are checked when it is loaded, as all files are; its code cannot
 * be checked and is executed, so load only programs that you would load as a shared library. */

/* The first 8 bytes of a saved program. */
#define ESP_PROGRAM_MAGIC "espimg\r\n"

/* As a file that is loaded as it is; as an object of the target's machine for a linker: read-only data
 * SYMBOL_program, and its length, the size_t SYMBOL_size; or as C11 that needs no library, of a model without a
 * structure: files SYMBOL.h, SYMBOL.c and others in a folder, of the function SYMBOL_run (doc/c-source.md); parts that
 * an accelerator computes call SYMBOL_device_run, which is among them in C. */
enum { ESP_SAVE_PROGRAM = 0, ESP_SAVE_OBJECT = 1, ESP_SAVE_SOURCE = 2 };

typedef struct esp_save_options {
	size_t size; /* sizeof(esp_save_options) */
	int form;
	const char *symbol; /* of an object and of source: an identifier of C, SYMBOL */
	/* Saved with the program as a binding would hold them, so that it needs no other weights; NULL = none, or
	 * those that it was loaded with.  What weights alone decide is computed now, not when the program starts;
	 * for a target that this machine cannot run, by the interpreter.  Source has its weights in it. */
	const esp_weights *weights;
} esp_save_options;

/* Makes the program's code if there is none yet, also for a target that this machine cannot run, and writes it; source
 * needs no back end, and `path` is its folder, which is made if it is not there.
 * `options` may be NULL.  Each file appears when it is complete and on the disk, in place of one that was
 * there.
 * ESP_ERROR_SYSTEM: it could not be written; ESP_ERROR_ARGUMENT: an option has a value that it cannot have, or the
 * program is interpreted, or cannot be written as C; ESP_ERROR_INPUT: as esp_binding_create; ESP_ERROR_BACKEND: as esp_program_prepare. */
esp_status esp_program_save(esp_program *, const char *path, const esp_save_options *options, esp_error **error);
/* Reads a saved program.  ESP_ERROR_INPUT: it cannot be read, is damaged, or has the format of another version;
 * ESP_ERROR_BACKEND: it is for another machine, or needs more than this processor has. */
esp_status esp_program_load(esp_context *, const char *path, esp_program **out, esp_error **error);
/* The same of bytes in memory, which are used where they are: they must stay as they are as long as the program and
 * all that is made of it, and begin at a multiple of 64 bytes, as linked ones and those of a file that the caller
 * maps do.  Processes that map one file share its weights. */
esp_status esp_program_load_memory(esp_context *, const void *bytes, size_t n, esp_program **out, esp_error **error);
/* Whether it was loaded with weights, or has no parameters: then esp_binding_create and esp_binding_open take NULL for
 * them. */
int esp_program_has_weights(const esp_program *);

/* The i-th dimension of the model by name, with its size (`size` may be NULL); NULL past the last. */
const char *esp_program_size(const esp_program *, size_t i, int64_t *size);

/* Shapes have an extent for each of `rank` axes, rows and matrices are row-major; they belong to the program as the
 * description does. */

/* Inputs carried by nodes, and by the edges to their children, in the order of their declaration. */
typedef struct esp_input {
	const char *name;
	int is_token; /* an index that parameters are looked up with; otherwise values */
	esp_dtype dtype;
	size_t elements; /* of a node or edge: the product of the shape, 1 for a number and a token */
	size_t rank;	 /* axes; 0 = a number or a token */
	const size_t *shape;
	int64_t limit; /* a token must lie in 0 .. limit - 1; 0 = it only tells cases apart, by any value */
	int on_edges;  /* carried by edges: a row for each of `children`, not for each node */
	int at_leaves, at_inner; /* whether it is read at leaves, and at nodes with children; 0 and 0 of one on edges */
	float within; /* the largest magnitude of an element of floats, as the model declares; runs refuse others, and NaNs
			 ("input-beyond-bound"); 0 = none is declared */
} esp_input;

/* Which structures the program takes: how many children every inner node has, -1 = any number of at least one, 1 also of a
 * sequence, 0 = the model has no structure; *shared, which may be NULL, is 1 when a node may be the child of several, as in a DAG. */
int esp_program_children(const esp_program *, int *shared);

size_t esp_program_inputs(const esp_program *);
/* NULL past the last; belongs to the program. */
const esp_input *esp_program_input(const esp_program *, size_t input);
/* The i-th input of a graph, read of a file (esp_model_read_with), that no output depends on, so that programs lack it; NULL past
 * the last.  Of its members name, dtype, rank, shape and elements count; an extent of 0 is one that the file leaves open, and then
 * so are the elements.  It belongs to the model.  Inputs of a type that arrays cannot have are not listed. */
const esp_input *esp_model_unread_input(const esp_model *, size_t i);

typedef struct esp_output {
	const char *name;
	esp_dtype dtype;
	size_t elements; /* of one row: the product of the shape */
	size_t rank;
	const size_t *shape;
	int at_root;   /* a row per structure; otherwise a row per node */
	size_t labels; /* 0, or `elements` names of classes */
	const char *const *label;
} esp_output;

size_t esp_program_outputs(const esp_program *);
/* NULL past the last; belongs to the program. */
const esp_output *esp_program_output(const esp_program *, size_t output);

typedef struct esp_state {
	const char *name;
	esp_dtype dtype;
	size_t elements; /* of one row: the product of the shape */
	size_t rank;
	const size_t *shape;
} esp_state;

size_t esp_program_states(const esp_program *);
/* NULL past the last; belongs to the program. */
const esp_state *esp_program_state(const esp_program *, size_t state);

/* ESP_ERROR_ARGUMENT, of the next and of esp_program_dump: the program was loaded, its model is not at hand.
 *
 * What the model was rewritten to, and what that saves: each body as it was written and as it is computed, the
 * rules that were applied, what was decided.  ESP_FORM_LAYERS: the operators of the graph that the model was made of, or of its
 * text, and the loop nests that fusion leaves of them, as text; JSON has these, too.  To be freed with esp_text_free. */
enum { ESP_FORM_TEXT = 0, ESP_FORM_JSON = 1, ESP_FORM_LAYERS = 2 };
esp_status esp_program_explain(esp_program *, int form, char **text, esp_error **error);
/* The same and, where products are computed in integers or bf16 (`precision`), how far the states and outputs may be from those in
 * f32 with these weights, which must have the sizes that the program was made for (doc/precision.md).  NULL: no weights, as
 * esp_program_explain. */
esp_status esp_program_explain_weights(esp_program *, const esp_weights *, int form, char **text, esp_error **error);
/* Where the time went until the program had code, which is made if there is none yet: a line for each step, of
 * milliseconds, the stage of the compiler and what it did, for people to read.  What is indented is part of the
 * line above, or was done at the same time by several threads and is summed over them.  A program that was in
 * the cache has few lines.  The text is the caller's: esp_text_free. */
esp_status esp_program_times(esp_program *, char **text, esp_error **error);

/* The IR after a stage of the compiler as text, to be freed with esp_text_free.  esp_dump_stage(i) names the
 * stages in order and is NULL past the last.  Where `cancel` ends the search of the stage "mutants", the text has
 * those that were found. */
esp_status esp_program_dump(esp_program *, const char *stage, char **text, esp_error **error);
const char *esp_dump_stage(size_t i);

/* --- binding --- */

typedef struct esp_binding esp_binding;

/* Packs weights for a program, and computes what of it depends on weights alone: tables made of embeddings
 * are such, and large ones are divided among the context's threads.  They need not be those the program was
 * made with, but must have the same shapes. Makes the program's code when there is none.  ESP_ERROR_INPUT:
 * other shapes, or a file that changed; ESP_ERROR_BACKEND: as esp_program_prepare.
 * `weights` may be NULL for a program that has weights: these are used where they are. */
esp_status esp_binding_create(esp_program *, const esp_weights *, esp_binding **out, esp_error **error);
/* The same, but tables that only tokens select from, such as embeddings, stay where they are, and a run reads those of
 * their rows that it is the first to select.  So the first result comes sooner, and rows that nobody selects take no
 * memory; later runs wait a little for each new word.  The binding keeps the weights, whose file or bytes must stay as
 * they are as long as it: a run that must read from a file which was written to since fails with ESP_ERROR_INPUT.  Weights
 * that the binding is given later (esp_binding_swap) are treated likewise. */
esp_status esp_binding_open(esp_program *, const esp_weights *, esp_binding **out, esp_error **error);
/* Packs other weights of the same shapes and exchanges them for those there are: at once, without a
 * compilation, while sessions run.  A run computes with the weights that it began with, and the states of its leaves may be
 * rows of them; those that are no longer used are freed, at the latest when each session has run again, is trimmed or freed.  After a failure the old ones stay.  Needs memory for both.  ESP_ERROR_INPUT:
 * as esp_binding_create. */
esp_status esp_binding_swap(esp_binding *, const esp_weights *, esp_error **error);
/* 1, and one more with every swap. */
uint64_t esp_binding_generation(const esp_binding *);
void esp_binding_free(esp_binding *);

/* --- structures --- */

/* One tree, DAG or sequence.  Node i has children children[child_begin[i]] .. children[child_begin[i + 1] -
 * 1], in the order of their slots, given as node numbers of this structure.  Nodes may stand in any order.  Those that
 * the root does not reach are computed, too, but its outputs know nothing of them. */
typedef struct esp_structure {
	size_t size; /* sizeof(esp_structure) */
	size_t nodes;
	const int32_t *child_begin; /* nodes + 1; may be NULL when the model has no structure: its rows are one node each */
	const int32_t *children;
	int32_t root;		 /* the node whose outputs are those of the structure */
	const void *const *data; /* for each input of the program: int32_t[nodes] tokens (-1 = none) or
				    elements of its dtype [nodes][elements], floats unless the model says another
				    type; of one on edges a row for each of `children`, in
				    their order: row e belongs to children[e].  Without any it may be NULL */
} esp_structure;

/* A minibatch: structures that run together. */
typedef struct esp_forest esp_forest;

esp_status esp_forest_create(esp_program *, esp_forest **out, esp_error **error);
/* Copies the structure into the minibatch.  Whether its arrays make sense is checked here, whether it is a
 * structure that the model takes (arity, cycles, shared children, data) when the forest runs.
 * ESP_ERROR_INPUT: what is wrong with it; ESP_ERROR_ARGUMENT: an array is missing. */
esp_status esp_forest_add(esp_forest *, const esp_structure *, esp_error **error);

/* Structures whose arrays stand one after the other, as data sets and other languages keep them.  Structure i has the nodes
 * node_begin[i] .. node_begin[i + 1] - 1 of the arrays; its children and its root are named by their numbers within it, from
 * 0.  node_begin[0] may be above 0: then the structures are a part of larger arrays. */
typedef struct esp_structures {
	size_t size; /* sizeof(esp_structures) */
	size_t structures;
	/* Both may be NULL when the model has no structure: then structure i is row i of the data, which are arrays of
	 * [structures, shape...] in row-major order. */
	const int32_t *node_begin;  /* structures + 1, ascending from 0 or more */
	const int32_t *child_begin; /* node_begin[structures] + 1; node n has children[child_begin[n]] and so on */
	const int32_t *children;
	const int32_t *root;	 /* of each structure; NULL = its last node */
	const void *const *data; /* as of esp_structure: row n belongs to node n of the arrays, row e to children[e] */
} esp_structures;

/* Copies all of the structures into the minibatch, or none when one is wrong: by one call for each structure
 * (esp_forest_add), the same minibatch takes longer.  Errors are those of esp_forest_add; ESP_ERROR_ARGUMENT also when
 * node_begin does not ascend. */
esp_status esp_forest_add_many(esp_forest *, const esp_structures *, esp_error **error);

/* A structure as the caller has it: nodes linked by pointers, which mean nothing to the library but their
 * identity.  The functions are called for each node that the root reaches, once; `user` is passed through.
 * They must not call the library. */
typedef struct esp_walk {
	size_t size; /* sizeof(esp_walk) */
	void *user;
	/* How many children a node has, and the one in a slot. */
	size_t (*children)(void *user, const void *node);
	const void *(*child)(void *user, const void *node, size_t slot);
	/* What a node carries of an input of the program: a token (-1 = none), or esp_program_input's
	 * elements (NULL = none), read before the next call; where these are not ESP_F32, their address as if they
	 * were.  Needed as far as the program has such inputs. */
	int32_t (*token)(void *user, const void *node, size_t input);
	const float *(*vector)(void *user, const void *node, size_t input);
	/* Receives the number of a node, which is its index in results.  May be NULL. */
	void (*number)(void *user, const void *node, size_t number);
	/* The same as `token` and `vector`, of the edge to the child in a slot: for inputs on edges. */
	int32_t (*edge_token)(void *user, const void *node, size_t slot, size_t input);
	const float *(*edge_vector)(void *user, const void *node, size_t slot, size_t input);
} esp_walk;

/* Appends what `root` reaches.  Children come before their parents in the numbering, the root is the last.  A
 * node that is reached twice is one node with two parents; a cycle is reported when the forest runs.
 * ESP_ERROR_INPUT: a child is NULL, there are more nodes than 2^31 - 2, or a leaf carries no vector that the model reads in
 * some leaf, or an inner node one that it reads in some inner node. */
esp_status esp_forest_add_linked(esp_forest *, const void *root, const esp_walk *, esp_error **error);
/* Whether esp_session_run would take the forest, without running it. */
esp_status esp_forest_check(const esp_forest *, esp_error **error);
/* Empties it; its memory is kept for the next minibatch. */
void esp_forest_clear(esp_forest *);
/* Empties it and frees that memory, after a minibatch that was much larger than others. */
void esp_forest_trim(esp_forest *);
/* Leaves out one of its structures, such as one that a run refused; those behind it move up, each by one.  Of a
 * number that none has, nothing happens. */
void esp_forest_remove(esp_forest *, size_t structure);
size_t esp_forest_structures(const esp_forest *);
/* Nodes of one structure of it, or 0. */
size_t esp_forest_nodes(const esp_forest *, size_t structure);
/* The number of its root; 0 also of a structure that is not there. */
size_t esp_forest_root(const esp_forest *, size_t structure);
/* The child in a slot of a node, by their numbers in the structure; -1 = there is none. */
int32_t esp_forest_child(const esp_forest *, size_t structure, size_t node, size_t slot);
/* The body of traversals up that a node is of: ESP_BODY_LEAF, ESP_BODY_INNER or, when it fits a case that the model names,
 * the number of the first.  0: there is no such node. */
int esp_model_body(const esp_model *, const esp_forest *, size_t structure, size_t node);
void esp_forest_free(esp_forest *);

/* --- session --- */

typedef struct esp_session esp_session;

esp_status esp_session_create(esp_binding *, esp_session **out, esp_error **error);
/* Linearizes the forest, which is one of the binding's program, and runs the program over it.  Results stay
 * until the next run that begins, or a trim, whatever becomes of the forest; after a run that fails there are
 * none.
 * Allocates only while minibatches grow, and keeps what the largest needed (esp_session_trim); compiles the kernels that
 * no run has needed so far, unless the program was prepared.
 * ESP_ERROR_INPUT: the forest is not what the model takes; ESP_ERROR_ARGUMENT: it is of another program;
 * ESP_ERROR_BUSY: another thread runs the session; ESP_ERROR_BACKEND: as esp_program_prepare. */
esp_status esp_session_run(esp_session *, const esp_forest *, esp_error **error);
/* Frees what runs have taken: states, intermediates, the order of nodes, profiles, and the results, which can
 * no longer be read.  The next run takes what it needs.  For sessions that live on after a minibatch that was
 * much larger than others.  ESP_ERROR_BUSY: another thread runs the session. */
esp_status esp_session_trim(esp_session *, esp_error **error);
/* Output `output` of a structure of the last run: esp_output.elements elements of esp_output.dtype, at `node` (the caller's
 * number) or, for an output at the root, whatever `node` is.  NULL when there is no such row. */
const void *esp_session_output_elements(const esp_session *, size_t output, size_t structure, size_t node);
/* State `state` of a node of the last run: esp_state.elements elements of esp_state.dtype.  NULL when there is no such
 * row. */
const void *esp_session_state_elements(const esp_session *, size_t state, size_t structure, size_t node);
/* The root's row of an output, wherever the output is computed. */
const void *esp_session_root_elements(const esp_session *, size_t output, size_t structure);
/* The same of what is ESP_F32; NULL also when it is of another type. */
const float *esp_session_output(const esp_session *, size_t output, size_t structure, size_t node);
const float *esp_session_state(const esp_session *, size_t state, size_t structure, size_t node);
const float *esp_session_root(const esp_session *, size_t output, size_t structure);
/* All rows of an output of the last run at once: *stride bytes from the row of a structure to that of the next, each an
 * array of esp_output.shape in row-major order.  *stride is never less than a row has, and often more.  Of outputs at the
 * root, and of all outputs of a model without a structure; NULL of others, and when there are no rows.  Belongs to the
 * session, until its next run.  It may have to copy rows: one thread at a time. */
const void *esp_session_rows(const esp_session *, size_t output, size_t *stride);
/* The generation of the binding's weights that the last run was computed with; 0 = none. */
uint64_t esp_session_generation(const esp_session *);
void esp_session_free(esp_session *);

/* Seconds spent, by phase, and what for. */
typedef struct esp_costs {
	double compile;	  /* making the program's code, as far as it is made */
	double bind;	  /* packing the binding's weights, once, and `fold` */
	double linearize; /* of all runs of this session */
	double run;	  /* of all runs of this session */
	uint64_t runs, structures, nodes, batches;
	double fold; /* seconds of `bind`: computing what depends on weights alone */
	uint64_t folded_bytes,
	    weight_bytes; /* of what was so computed; of all that the binding holds for runs */
	/* Of all runs of this session, what an accelerator is estimated to take for its functions (doc/vta.md); `run` has
	 * the time of its executor. */
	uint64_t cycles;
} esp_costs;
/* Belongs to the session, whose runs change it. */
const esp_costs *esp_session_costs(const esp_session *);

/* --- export: results as tensors in files --- */

/* Collects the states and outputs of runs, all structures one after the other, nodes in the caller's numbers.
 */
typedef struct esp_export esp_export;

/* ESP_ERROR_INPUT: a state or an output is named "structure_begin" or "__metadata__". */
esp_status esp_export_create(esp_program *, esp_export **out, esp_error **error);
/* Appends the results of the session's last run, of which a copy is kept in memory.  ESP_ERROR_ARGUMENT:
 * there are none, or the session belongs to another program. */
esp_status esp_export_add(esp_export *, const esp_session *, esp_error **error);
/* Writes a safetensors file: each state and output under its name, [nodes, shape...] or, at the root,
 * [structures, shape...], F32, and "structure_begin", I64[structures + 1], the first node of each structure.
 * The file appears when it is complete and on the disk.  ESP_ERROR_SYSTEM: it could not be written. */
esp_status esp_export_safetensors(const esp_export *, const char *path, esp_error **error);
/* Writes one of these tensors as an .npy file (NumPy format 1.0).  ESP_ERROR_ARGUMENT: there is none of the
 * name. */
esp_status esp_export_npy(const esp_export *, const char *tensor, const char *path, esp_error **error);
void esp_export_free(esp_export *);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#include "espalier_arrays.h"
#include "espalier_builder.h"
#include "espalier_profile.h"
#include "espalier_quantise.h"
#include "espalier_treebank.h"

#endif
