/* espalier.h - run recursive deep-learning models at the lowest latency the machine allows.
 *
 *   model    what a .ra text says                       esp_model_read
 *   weights  a safetensors file                         esp_weights_open
 *   program  the model compiled for the sizes of its    esp_program_create
 *            weights; their values are no part of it
 *   binding  weights packed as the program wants them   esp_binding_create
 *   forest   a minibatch of structures                  esp_forest_create, esp_forest_add
 *   session  one caller's working memory and results    esp_session_create, esp_session_run
 *
 * Errors.  Functions that can fail return an esp_status.  `error` may be NULL; otherwise *error is set to
 * NULL on success and else to an esp_error that says what was wrong, where, and what to do; the caller frees
 * it with esp_error_free.  On failure *out parameters are set to NULL and nothing else is changed.  The
 * library never prints and never ends the process.
 *
 * Ownership.  Each object is freed by its esp_*_free, which accepts NULL.  An object keeps alive what it was
 * made from, so objects can be freed in any order.
 *
 * Threads.  Contexts, models, weights, programs and bindings can be used by any number of threads at once.  A
 * forest, a treebank or a session belongs to one thread at a time.
 *
 * Numbers.  All values are IEEE 754 binary32 in native byte order; matrices are row-major.  A result has the
 * same bits whatever other structures share its minibatch. */
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

#define ESP_VERSION "0.1.0"

/* The version of the library that is running, in the form of ESP_VERSION. */
const char *esp_version(void);

/* --- status and errors --- */

/* Numbers never change their meaning; more may come.  Those marked * may go away by themselves: the same call
 * can be made again. */
typedef enum esp_status {
	ESP_OK = 0,
	ESP_ERROR_INPUT = 1,	/* a file, model, structure or weight is not as it must be */
	ESP_ERROR_ARGUMENT = 2, /* the call itself is wrong; see the function's documentation */
	ESP_ERROR_MEMORY = 3,	/* * memory ran out, or the context's cap is reached */
	ESP_ERROR_BACKEND = 4,	/* code could not be made: no back end, or it failed */
	ESP_ERROR_SYSTEM = 5,	/* * the system refused: a file could not be written */
	ESP_ERROR_BUSY = 6,	/* * another thread is in a call with this session */
	ESP_ERROR_CLOSED = 7,	/* the context was closed */
	ESP_ERROR_FORKED = 8	/* the object belongs to the process that forked this one */
} esp_status;

/* "ok", "input", "argument", ...; NULL when there is no such status. */
const char *esp_status_name(esp_status);
/* Whether the same call may succeed when it is made again. */
int esp_status_is_transient(esp_status);

typedef struct esp_error esp_error;

/* One diagnostic.  Texts belong to the error.  `id` is stable ("shape-mismatch"); `hint`, `file` and `source`
 * may be NULL, `line` and `column` (in bytes, from 1) may be 0. */
typedef struct esp_diagnostic {
	const char *id, *message, *hint, *file, *source;
	int line, column;
} esp_diagnostic;

size_t esp_error_count(const esp_error *);
/* The i-th diagnostic, i < esp_error_count. */
esp_diagnostic esp_error_get(const esp_error *, size_t i);
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
/* All of them, by room; NULL past the last. */
const esp_message *esp_message_at(size_t i);

/* --- context --- */

/* What all objects made from it share. */
typedef struct esp_context esp_context;

typedef struct esp_context_options {
	/* All memory of the library's own (not the compiler's) is taken and given back here: new_size == 0
	 * frees, p == NULL takes; NULL is returned when memory is out, the old block then being untouched.
	 * Called from any thread. NULL = realloc and free. */
	void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
	void *user;
} esp_context_options;

/* `options` may be NULL. */
esp_status esp_context_create(const esp_context_options *options, esp_context **out, esp_error **error);
void esp_context_free(esp_context *);

/* --- model --- */

typedef struct esp_model esp_model;

/* Reads and checks a model text (doc/model-text.md). */
esp_status esp_model_read(esp_context *, const char *path, esp_model **out, esp_error **error);
/* The same from memory; `name` stands for the file in diagnostics. */
esp_status esp_model_parse(esp_context *, const char *name, const char *text, size_t length, esp_model **out,
			   esp_error **error);
void esp_model_free(esp_model *);

/* What a model declares.  Texts belong to the model. */
typedef struct esp_model_facts {
	const char *name;
	const char *structure; /* "sequence", "tree", "dag" */
	int children;	       /* of every inner node; -1 = any number of at least one */
	size_t inputs, params, states, outputs;
} esp_model_facts;
/* All zero when the model is NULL. */
esp_model_facts esp_model_describe(const esp_model *);
/* The model as canonical text, functions expanded; to be freed with esp_text_free. */
esp_status esp_model_print(const esp_model *, char **text, esp_error **error);
void esp_text_free(char *text);

/* --- weights --- */

typedef struct esp_weights esp_weights;

/* Opens a safetensors file (F32, F16, BF16) and validates its header; values are read when a binding is made,
 * so the file must stay as it is until then. */
esp_status esp_weights_open(esp_context *, const char *path, esp_weights **out, esp_error **error);
void esp_weights_free(esp_weights *);

/* --- program --- */

typedef struct esp_program esp_program;

enum { ESP_AT_MODEL = 0, ESP_AT_ROOT = 1, ESP_AT_EVERY_NODE = 2 };

typedef struct esp_program_options {
	int at;		      /* where outputs are computed: ESP_AT_MODEL = as the model says */
	const char *backend;  /* "llvm", "interpreter"; NULL = llvm */
	const char *target;   /* "native", "generic", "avx2", "avx512"; NULL = native */
	const char *schedule; /* schedule text (espalier dump sched); NULL = chosen by the library */
} esp_program_options;

/* Checks that the weights have the parameters that the model names (all mismatches are reported at once) and
 * takes the model's sizes from their shapes.  `options` may be NULL.  Code is made when the first binding
 * needs it, or by esp_program_prepare; threads that need it at the same time wait for one compilation.  A
 * compilation that failed is tried again when code is needed again. */
esp_status esp_program_create(const esp_model *, const esp_weights *, const esp_program_options *options,
			      esp_program **out, esp_error **error);
esp_status esp_program_prepare(esp_program *, esp_error **error);
void esp_program_free(esp_program *);

/* The i-th dimension of the model by name, with its size (`size` may be NULL); NULL past the last. */
const char *esp_program_size(const esp_program *, size_t i, int64_t *size);

/* Inputs carried by nodes, in the order of their declaration. */
size_t esp_program_inputs(const esp_program *);
/* The name of an input, NULL past the last.  *elements: floats per node, 0 = a token.  May be NULL. */
const char *esp_program_input(const esp_program *, size_t input, size_t *elements);

typedef struct esp_output {
	const char *name;
	size_t elements; /* floats of one row: the product of the shape */
	size_t rank, shape[3];
	int at_root;   /* a row per structure; otherwise a row per node */
	size_t labels; /* 0, or `elements` names of classes */
	const char *const *label;
} esp_output;

size_t esp_program_outputs(const esp_program *);
/* All zero past the last.  Texts belong to the program. */
esp_output esp_program_output(const esp_program *, size_t output);

/* The IR after a stage of the compiler as text, to be freed with esp_text_free.  esp_dump_stage(i) names the
 * stages in order and is NULL past the last. */
esp_status esp_program_dump(esp_program *, const char *stage, char **text, esp_error **error);
const char *esp_dump_stage(size_t i);

/* --- binding --- */

typedef struct esp_binding esp_binding;

/* Packs weights for a program.  They need not be those the program was made with, but must have the same
 * shapes. */
esp_status esp_binding_create(esp_program *, const esp_weights *, esp_binding **out, esp_error **error);
void esp_binding_free(esp_binding *);

/* --- structures --- */

/* One tree, DAG or sequence.  Node i has children children[child_begin[i]] .. children[child_begin[i + 1] -
 * 1], in the order of their slots, given as node numbers of this structure.  Nodes may stand in any order. */
typedef struct esp_structure {
	size_t nodes;
	const int32_t *child_begin; /* nodes + 1 */
	const int32_t *children;
	int32_t root;		 /* the node whose outputs are those of the structure */
	const void *const *data; /* for each input of the program: int32_t[nodes] tokens (-1 = none) or
				    float[nodes][elements] */
} esp_structure;

/* A minibatch: structures that run together. */
typedef struct esp_forest esp_forest;

esp_status esp_forest_create(esp_program *, esp_forest **out, esp_error **error);
/* Copies the structure into the minibatch.  Whether its arrays make sense is checked here, whether it is a
 * structure that the model takes (arity, cycles, shared children, data) when the forest runs. */
esp_status esp_forest_add(esp_forest *, const esp_structure *, esp_error **error);
/* Whether esp_session_run would take the forest, without running it. */
esp_status esp_forest_check(const esp_forest *, esp_error **error);
/* Empties it; its memory is kept for the next minibatch. */
void esp_forest_clear(esp_forest *);
size_t esp_forest_structures(const esp_forest *);
/* Nodes of one structure of it, or 0. */
size_t esp_forest_nodes(const esp_forest *, size_t structure);
void esp_forest_free(esp_forest *);

/* --- treebanks: bracketed trees, (3 (2 It) (4 (2 works) (2 .))) --- */

typedef struct esp_vocab esp_vocab;
typedef struct esp_treebank esp_treebank;

/* One word a line, the line number (from 0) being its token; A-Z are lower-cased before the look-up, a word
 * that is not there is "<unk>". */
esp_status esp_vocab_open(esp_context *, const char *path, esp_vocab **out, esp_error **error);
void esp_vocab_free(esp_vocab *);

/* `vocab` may be NULL when no tree goes to a program that reads a token. */
esp_status esp_treebank_open(esp_context *, const char *path, const esp_vocab *vocab, esp_treebank **out,
			     esp_error **error);
/* Appends the next tree to the forest; its nodes are numbered in post order.  Its words are the program's
 * token input. *more is 0, and nothing is added, after the last; after a failure as well. */
esp_status esp_treebank_next(esp_treebank *, esp_forest *, int *more, esp_error **error);
/* The words of the tree read last, separated by spaces; valid until the next call. */
const char *esp_treebank_sentence(const esp_treebank *);
/* How much of the file was read, 0 to 1. */
double esp_treebank_progress(const esp_treebank *);
void esp_treebank_free(esp_treebank *);

/* --- session --- */

typedef struct esp_session esp_session;

esp_status esp_session_create(esp_binding *, esp_session **out, esp_error **error);
/* Linearizes the forest, which is one of the binding's program, and runs the program over it.  Results stay
 * until the next run, whatever becomes of the forest.  Allocates only while minibatches grow. */
esp_status esp_session_run(esp_session *, const esp_forest *, esp_error **error);
/* Output `output` of a structure of the last run: esp_output.elements floats, at `node` (the caller's number)
 * or, for an output at the root, whatever `node` is.  NULL when there is no such row. */
const float *esp_session_output(const esp_session *, size_t output, size_t structure, size_t node);
/* The root's row of an output, wherever the output is computed. */
const float *esp_session_root(const esp_session *, size_t output, size_t structure);
void esp_session_free(esp_session *);

/* Seconds spent, by phase. */
typedef struct esp_costs {
	double compile;	  /* making the program's code, once */
	double bind;	  /* packing the binding's weights, once */
	double linearize; /* of all runs of this session */
	double run;	  /* of all runs of this session */
	uint64_t runs, structures, nodes, batches;
} esp_costs;
esp_costs esp_session_costs(const esp_session *);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
