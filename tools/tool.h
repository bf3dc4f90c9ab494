/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the command share. Of the library it includes the public header only. */
#ifndef ESPALIER_TOOLS_TOOL_H
#define ESPALIER_TOOLS_TOOL_H

#include "espalier.h"
#include "tables.h"

#include <signal.h>
#include <stdio.h>

enum { EXIT_INPUT = 1, EXIT_USAGE = 2 }; /* 0 is success */

/* --- options --- */

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_TRACE, FORMAT_SVG };
enum place { PLACE_ROOT, PLACE_ALL, PLACE_MODEL };
enum rows { ROWS_AUTO, ROWS_ROOT, ROWS_ALL };

/* The arguments of an option that may be given several times. */
struct words {
	const char *word[16];
	int n;
};

/* One member for each row of options.def, and the operands. */
struct options {
	struct words vocab, column, listen, input, constant, kept;
	const char *weights, *output, *backend, *target, *schedule, *cache_dir, *export, *tensor, *ref, *math,
	    *rules, *weights_as, *precision, *assume, *accelerator;
	const char *models, *access_log, *trace;
	struct words calibrate, evaluate; /* of quantise */
	const char *label;
	char **arguments; /* all of them, behind the name of the command */
	const char *sizes, *outputs, *batches, *thread_list, *keep, *name;
	const char *input_option; /* set by commands: the option whose words are in `input`; NULL = --input */
	const char *model_text; /* set by commands: the model itself, operand[0] being its name; NULL = a file */
	int kind, format, at, rows, structures, as;
	int from, graph, binarize; /* as those of esp_treebank_options */
	long table_bytes; /* 0 = the default */
	long memory_cap, operators; /* 0 = as usual */
	long length;	  /* 0 = as usual */
	long minibatches, runs, seed, seconds; /* seconds: 0 = as usual */
	long batch, threads; /* threads: 0 = as many as there are processors */
	double atol, rtol;
	double margin, within, above; /* percent; within: 0 = no limit */
	int compile_in;
	long compile_memory;
	double compile_seconds;
	long requests, service_rows, connections, body_bytes; /* of serve; 0 = the default */
	double timeout, drain;
	const char *socket_mode; /* in octal; NULL = the default */
	bool collapse, cut_labels, skip;
	bool weights_only, no_cache, timing, time_passes, changed, ablation, exhaustive, precisions, mutants, check_mutants, pin, pack, measure, continuous, layers, help;
	int operands;
	char **operand;
};

/* Reads the options and operands of a command; argv[0] is its name.  False after a message on stderr. */
bool options_read(enum command_id, int argc, char **argv, struct options *);
/* Usage, operands and options of a command. */
void options_help(enum command_id, FILE *);

/* A message of the command itself, on stderr; always false. */
__attribute__((format(printf, 1, 2))) bool complain(const char *format, ...);
/* Shows compilers and analysers that see one file alone that complain() is always false. */
static inline bool answer_false(bool said)
{
	(void)said;
	return false;
}
#define complain(...) answer_false(complain(__VA_ARGS__))

/* The commands: each returns the exit status. */
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	int command_##function(const struct options *);
#include "commands.def"
#undef COMMAND

/* init/skeleton.c: writes a model whose parameters are the tensors of the weights; the exit status. */
int skeleton_write(const struct options *, FILE *);

/* --- words --- */

/* Writes a text that may quote a file: control characters other than newlines and tabs become question
 * marks. */
void put_masked(FILE *, const char *text);
/* Writes a text in lines of at most 80 columns, each after `indent` spaces. */
void put_wrapped(FILE *, int indent, const char *text);
/* Finds among words that are offered one by one the one most similar to what was written. */
struct nearest {
	const char *wanted, *word; /* word: NULL = none so far */
	size_t distance;
};
void nearest_offer(struct nearest *, const char *word);
/* Prints that there is no `what` of that name, and which may have been meant; always false. */
bool complain_unknown(const char *what, const struct nearest *, const char *list);

/* --- objects of the library --- */

/* How files of structures are read. */
struct reading {
	esp_treebank_options options;
	esp_column column[2 * 16];
	esp_vocab *vocab[16];
	int vocabs;
};

/* Opens the vocabularies that the options name; the exit status, after a message when it is not 0. */
int reading_open(struct reading *, esp_context *, const struct options *);
void reading_close(struct reading *);
/* The vocabulary of an input; NULL = there is none. */
const esp_vocab *vocab_of(const struct reading *, const char *input);

struct objects {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	const int64_t *sizes; /* instead of weights; NULL = without --sizes */
	esp_program *program;
	struct reading reading;
	int status; /* exit status of the command, when opening failed */
};

/* Prints the diagnostics of a failed call and frees them.  Returns the command's exit status. */
int report_failure(esp_status, esp_error *);
/* A context as the options say; `cancel` and `user` as those of esp_context_options. */
esp_status create_context(const struct options *, int (*cancel)(void *user), void *user, esp_context **, esp_error **);
/* Opens a context alone, without a model. */
bool objects_open_context(struct objects *, const struct options *);
/* Opens the model and, when the options name weights, the weights and the program. False after a message
 * on stderr. */
bool objects_open(struct objects *, const struct options *, const char *model, int at);
/* Opens the model and its weights alone; with the program that the caller makes of them, reading_check is to be called. */
bool objects_open_model(struct objects *, const struct options *, const char *model);
/* The same, where `model` may also be a compiled program; then objects->model is NULL. */
bool objects_open_any(struct objects *, const struct options *, const char *model, int at);
/* The same in a context that is open, which is not closed when that fails; NULL = one of its own. */
bool objects_open_in(struct objects *, const struct options *, const char *model, int at, esp_context *);
/* The kind of a file, by its first bytes. Opening an unreadable one makes the library say why. */
enum origin { ORIGIN_MODEL, ORIGIN_PROGRAM, ORIGIN_UNREADABLE };
enum origin origin_of(const char *path);
/* Where outputs are computed according to --at: ESP_AT_... */
int place_of(const struct options *);
/* Whether a file is of a graph, of ONNX or TensorFlow Lite, by its name: it has weights of its own. */
bool is_graph(const char *path);
/* onnx.c: reads it, with the sizes, constants and outputs of the options. */
esp_status read_graph(esp_context *, const char *path, const struct options *, esp_model **, esp_error **);
/* Whether weights must be given for a model: it has none of its own, and none are given. */
bool needs_weights(const struct options *, const char *model);
/* Whether there are weights to run with, given or in the program. */
bool has_weights(const struct objects *, const struct options *);
/* Makes another program of the open model and weights, with a schedule as text, NULL = chosen by the
 * library. */
esp_status objects_program(const struct objects *, const struct options *, const char *schedule, int at, esp_program **,
			   esp_error **);
/* Makes the program again, after the model was replaced. */
bool objects_compile(struct objects *, const struct options *, int at);
/* With --pin: binds the calling thread to the processor that the context leaves to it. Call it after
 * compiling: threads that it creates later are bound there, too. */
void pin_caller(const struct objects *, const struct options *);
/* For commands that bind weights to run one file: turns tables of embeddings off unless the options ask
 * for some. Making a table costs as much as running over the whole vocabulary. The choice must not depend
 * on the file's contents, since tables may change the last bits of results. */
void leave_out_tables(struct options *);
void objects_close(struct objects *);
/* Whether the model has all inputs that --vocab and --column name; prints which it lacks. */
bool reading_check(const struct reading *, const struct objects *);

/* --- rows of arrays, for models without a structure (arrays.c) --- */

struct arrays;
/* Whether the options give structures in a file or rows in arrays, and not both; a file of a graph may need neither.  False after a
 * message. */
bool arrays_check(const struct options *);
/* Opens the files NAME=FILE of an option, .npy or .pb, one for each input of the program, and reads them whole; files for inputs of
 * a graph that no output depends on are only checked.  A program without inputs takes none, and computes one row, or as many as
 * such files have.  False after a message, which names the option, without its dashes; *out is to be closed in any case. */
bool arrays_open(struct arrays **out, const char *option, const struct words *files, const struct objects *);
size_t arrays_rows(const struct arrays *);
/* Appends the rows from `first` on, which must be there, to a forest of the program or of another one of its model. */
esp_status arrays_add(struct arrays *, esp_forest *, size_t first, size_t count, esp_error **error);
/* Appends the next rows, `most` at most, to a forest. */
esp_status arrays_next(struct arrays *, esp_forest *, size_t most, size_t *added, esp_error **error);
bool arrays_have_more(const struct arrays *);
/* Whether they have no axis of rows, and are one; `NULL` is none. */
bool arrays_are_single(const struct arrays *);
/* How much was appended, 0 to 1. */
double arrays_progress(const struct arrays *);
void arrays_close(struct arrays *);

/* --- minibatches of a file --- */

struct batch {
	esp_forest *forest;
	char **sentence; /* of each tree */
	size_t *tree;	 /* which of the file it is */
	char **words;	 /* of its nodes, as esp_treebank_words gives them; NULL unless batches.words */
	size_t sentences, first; /* first: how many were read before */
};

struct batches {
	const struct objects *objects;
	long size; /* trees of a minibatch */
	esp_treebank *treebank;
	struct arrays *arrays; /* rows of arrays, in place of a treebank; or NULL */
	esp_binding *binding;
	esp_session *session;
	size_t read, skipped; /* trees so far */
	size_t refused;	      /* of those that were skipped, the ones that the model does not take */
	bool skip;	      /* leave out trees that are refused */
	bool hold;	      /* keep a failure for batches_tell, until the trees before it were run */
	bool words;	      /* read the words of nodes, too */
	const char *texts;    /* read this column in place of words; NULL = words */
	struct failure {
		esp_status status; /* 0 = no failure is kept */
		esp_error *error;
	} failure;
	bool quiet; /* show no progress */
	bool times; /* tell in the end how long each step of compiling took */
	double begin, shown;
};

/* Opens the file, or with --input the arrays, and compiles the program. Like those below it returns the exit status, after a message
 * when it is not 0.  Lazily, rows of tables are read by the runs that select them. */
int batches_open(struct batches *, const struct options *, const struct objects *, const char *input, bool lazy);
/* Reads the next trees into a batch, which is zeroed or comes from an earlier call; *more is 0 at the end
 * of the file. */
int batches_read(struct batches *, struct batch *, int *more);
/* How much of the file was read, 0 to 1. */
double batches_progress(const struct batches *);
int batches_run(struct batches *, struct batch *);
/* Reports the failure that was kept; returns its exit status, 0 = there was none. */
int batches_tell(struct batches *);
/* Erases the progress line and calls report_failure(). */
int batches_refuse(struct batches *, esp_status, esp_error *);
void batch_free(struct batch *);
void batches_close(struct batches *);
/* Shows progress: `trees` so far, and the `fraction` of the file (0 = unknown). batches_hide erases it. */
void batches_show(struct batches *, size_t trees, double fraction);
void batches_hide(struct batches *);

/* --- output --- */

/* Standard output or a file. A regular file is replaced only when it is complete and on the disk. */
struct output {
	FILE *file;
	const char *path;
	char *target, *temporary; /* NULL = written in place */
};

bool output_open(struct output *, const char *path);
/* Whether everything was written so far; prints on stderr why not. */
bool output_flush(struct output *);
/* Writes a text of any length; on failure prints why and ends the output. */
bool output_puts(struct output *, const char *text);
/* Both end the output; output_commit returns false when something could not be written. */
bool output_commit(struct output *);
void output_abort(struct output *);

/* Makes sure that an interrupt leaves no temporary file. Hold signals while the file is created, then
 * release them with its path (NULL = it was not created): a signal that ends the process then removes it,
 * until interrupt_forget. One file at a time. */
void interrupt_hold(sigset_t *before);
void interrupt_release(const sigset_t *before, const char *path);
void interrupt_forget(void);
/* For esp_context_options.cancel: whether a held signal is pending, or interrupt_give_up wants it. */
int interrupt_waits(void *user);
/* Holds signals while the library writes a file, so that none leaves it incomplete. False, and nothing to
 * release, for a path that is no regular file: writing to it may block for ever. */
bool interrupt_hold_writing(const char *path, sigset_t *before);
/* From now on the first SIGINT, SIGHUP or SIGTERM only makes interrupt_noted true; the second ends the
 * process. */
void interrupt_note(void);
bool interrupt_noted(void);
/* Seconds of CLOCK_MONOTONIC. */
double read_clock(void);
/* Whether the library is to give up what it does when an interrupt is noted, or from a time of read_clock on; false at
 * first, so that what follows an interrupt can be finished. */
void interrupt_give_up(bool on, double from);

/* One structure of the last run. */
struct result {
	const esp_program *program;
	const esp_session *session;
	const esp_forest *forest;
	size_t structure; /* in the minibatch */
	size_t tree;	  /* in the file */
	size_t nodes;
	const char *sentence;
	const char *words; /* with PLACE_ALL: a line for each node */
	enum place at;
};

/* The index of the greatest of `n` numbers, the first of equal ones. */
size_t find_greatest(const float *row, size_t n);
/* Writes words of a sentence; control characters become question marks. */
void write_words(FILE *, const char *words, size_t length);
void write_json_string(FILE *, const char *text);
void write_json_number(FILE *, double);
void write_text(FILE *, const struct result *);
void write_json(FILE *, const struct result *);

#endif
