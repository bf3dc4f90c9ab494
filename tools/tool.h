/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the command share.  It uses the public header only. */
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

/* What an option was given that may be given several times. */
struct words {
	const char *word[16];
	int n;
};

/* One member for each row of options.def, and the operands. */
struct options {
	struct words vocab, column;
	const char *weights, *output, *backend, *target, *schedule, *cache_dir, *export, *tensor, *ref, *math,
	    *rules, *weights_as;
	const char *sizes, *batches, *thread_list, *keep, *name;
	const char *model_text; /* set by commands: the model itself, operand[0] being its name; NULL = a file */
	int kind, format, at, rows, structures;
	int from, graph, binarize; /* as those of esp_treebank_options */
	long table_bytes; /* 0 = the default */
	long memory_cap, operators; /* 0 = as usual */
	long length;	  /* 0 = as usual */
	long minibatches, runs, seed, seconds; /* seconds: 0 = as usual */
	long batch, threads; /* threads: 0 = as many as there are processors */
	double atol, rtol;
	int compile_in;
	long compile_memory;
	double compile_seconds;
	bool collapse, cut_labels, skip;
	bool no_cache, timing, time_passes, changed, ablation, exhaustive, pin, pack, measure, help;
	int operands;
	char **operand;
};

/* Reads the options and operands of a command; argv[0] is its name.  False after a message on stderr. */
bool options_read(enum command_id, int argc, char **argv, struct options *);
/* Usage, operands and options of a command. */
void options_help(enum command_id, FILE *);

/* A message of the command itself, on stderr; always false. */
__attribute__((format(printf, 1, 2))) bool complain(const char *format, ...);
/* So that also who sees this file alone, a compiler or an analyser, knows the answer. */
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

/* Writes a text that may hold parts of a file: but for its newlines and tabs, what a terminal would obey is
 * shown as question marks. */
void put_masked(FILE *, const char *text);
/* Writes a text in lines of at most 80 columns, each after `indent` spaces. */
void put_wrapped(FILE *, int indent, const char *text);
/* Of words that are offered one by one, the one that is most like what was written, if any is. */
struct nearest {
	const char *wanted, *word; /* word: NULL = none so far */
	size_t distance;
};
void nearest_offer(struct nearest *, const char *word);
/* Says that there is no `what` of that name, and which might have been meant; always false. */
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
	const int64_t *sizes; /* instead of weights; NULL = none are told */
	esp_program *program;
	struct reading reading;
	int status; /* of the command, when opening failed */
};

/* Prints the diagnostics of a failed call and frees them.  Returns the command's exit status. */
int report_failure(esp_status, esp_error *);
/* Opens a context, and nothing in it. */
bool objects_open_context(struct objects *, const struct options *);
/* Opens what the options name: the model always; weights and the program when there are weights.  False when
 * it failed, which was then said on stderr. */
bool objects_open(struct objects *, const struct options *, const char *model, int at);
/* The same for a model that may also be a program compiled before: then there is no model. */
bool objects_open_any(struct objects *, const struct options *, const char *model, int at);
/* What a file is, by its first bytes; of one that cannot be read the library says why. */
enum origin { ORIGIN_MODEL, ORIGIN_PROGRAM, ORIGIN_UNREADABLE };
enum origin origin_of(const char *path);
/* Where --at has the outputs computed, ESP_AT_... */
int place_of(const struct options *);
/* Whether there are weights to run with, given or in the program. */
bool has_weights(const struct objects *, const struct options *);
/* Makes another program of what is open, with a schedule as text, NULL = chosen by the library. */
esp_status objects_program(const struct objects *, const struct options *, const char *schedule, int at, esp_program **,
			   esp_error **);
/* Makes the program again, of a model that was put in place of the first. */
bool objects_compile(struct objects *, const struct options *, int at);
/* With --pin: binds this thread, the caller, to the processor that the context leaves to it.  Threads that it
 * makes later are bound there, too: those that compile have done so before. */
void pin_caller(const struct objects *, const struct options *);
/* Of commands that bind weights to run one file: they make no tables of embeddings unless the options ask for
 * some.  A table costs as much as running over as many words as the vocabulary has, whatever the file.  What is
 * in the file must not decide: tables may change the last bits of results. */
void leave_out_tables(struct options *);
void objects_close(struct objects *);
/* Whether the model has all inputs that --vocab and --column name; says which it has not. */
bool reading_check(const struct reading *, const struct objects *);

/* --- minibatches of a file --- */

struct batch {
	esp_forest *forest;
	char **sentence; /* of each tree */
	size_t *tree;	 /* which of the file it is */
	char **words;	 /* of its nodes, when they are wanted: as esp_treebank_words gives them */
	size_t sentences, first; /* first: how many were read before */
};

struct batches {
	const struct objects *objects;
	long size; /* trees of a minibatch */
	esp_treebank *treebank;
	esp_binding *binding;
	esp_session *session;
	size_t read, skipped; /* trees so far */
	size_t refused;	      /* of those that were skipped, structures that the model does not take */
	bool skip;	      /* what is refused is left out */
	bool hold;	      /* what is wrong is told by batches_tell, after what stands before it was run */
	bool words;	      /* those of nodes are wanted */
	struct failure {
		esp_status status; /* 0 = nothing is held */
		esp_error *error;
	} failure;
	bool quiet;  /* progress is not shown */
	double begin, shown;
};

/* Opens the file and makes the code.  As those below: the exit status, after a message when it is not 0. */
int batches_open(struct batches *, const struct options *, const struct objects *, const char *input);
/* Reads the next trees into a batch, which is zero or of an earlier call; *more is 0 at the end of the file.
 */
int batches_read(struct batches *, struct batch *, int *more);
int batches_run(struct batches *, struct batch *);
/* Says what was held back; its exit status, 0 when nothing was. */
int batches_tell(struct batches *);
/* As report_failure(), after the progress is gone. */
int batches_refuse(struct batches *, esp_status, esp_error *);
void batch_free(struct batch *);
void batches_close(struct batches *);
/* Progress: so many trees, which part of all; and none. */
void batches_show(struct batches *, size_t trees, double part);
void batches_hide(struct batches *);

/* --- output --- */

/* Standard output or a file.  A regular file appears complete and on the disk, or what was there before
 * stays. */
struct output {
	FILE *file;
	const char *path;
	char *target, *temporary; /* NULL = written in place */
};

bool output_open(struct output *, const char *path);
/* Whether all has been written so far; says on stderr why not. */
bool output_flush(struct output *);
/* Writes a text of any length; on failure says why and ends it. */
bool output_puts(struct output *, const char *text);
/* Either of these ends it; output_commit is false when something could not be written. */
bool output_commit(struct output *);
void output_abort(struct output *);

/* Makes interruption leave no temporary file: signals are held while it is made, and released with its path
 * (NULL when there is none), which is then removed when one of them ends the process, until it is forgotten.
 * One at a time. */
void interrupt_hold(sigset_t *before);
void interrupt_release(const sigset_t *before, const char *path);
void interrupt_forget(void);
/* As esp_context_options.cancel: whether a signal that is held waits to end the command. */
int interrupt_waits(void *user);
/* Holds signals while the library writes a file, so that none leaves a part of it; what may never be read is not
 * waited for: then false, and there is nothing to release. */
bool interrupt_hold_writing(const char *path, sigset_t *before);
/* From now on the first wish to end the process (an interrupt from the keyboard, a hang-up, a polite request) is only
 * noted, for who looks; the second ends it as usual. */
void interrupt_note(void);
bool interrupt_noted(void);

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

/* A part of a sentence. */
void write_words(FILE *, const char *words, size_t length);
void write_json_string(FILE *, const char *text);
void write_json_number(FILE *, double);
void write_text(FILE *, const struct result *);
void write_json(FILE *, const struct result *);

#endif
