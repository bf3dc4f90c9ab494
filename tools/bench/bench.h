/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier bench: times models over given or random structures, with given or random weights, and compares
 * the times with what the machine allows. */
#ifndef ESPALIER_TOOLS_BENCH_H
#define ESPALIER_TOOLS_BENCH_H

#include "floor.h"
#include "machine.h"
#include "tool.h"

/* --- random numbers, the same on every machine --- */

struct random {
	uint64_t state;
};

uint32_t random_bits(struct random *);
int random_below(struct random *, int n);
/* Between -1 and 1. */
float random_float(struct random *);

/* --- structures --- */

/* In the order of the words of options.def. */
enum form { FORM_PARSE, FORM_PERFECT, FORM_GRID, FORM_SEQUENCE, FORMS };

/* A structure. Children come before their parents, the root last; node i has children[begin[i]] ..
 * children[begin[i + 1] - 1]. */
struct shape {
	int nodes;
	int32_t *begin, *children;
	uint32_t *word; /* any number; modulo the limit of an input it is a token */
};

struct shapes {
	struct shape *at;
	size_t n;
};

/* How to make structures. Inner nodes of trees have `children`. `length` is the mean number of leaves of a
 * parser's tree, the height of a perfect tree, the side of a grid, or the nodes of a sequence. */
struct making {
	enum form form;
	int children, length;
};

/* Makes n structures. False after a message. */
bool shapes_make(struct shapes *, const struct making *, size_t n, struct random *);
/* Reads the first structures of a file, `most` at most, with the reading options of `objects`. Only their
 * shape is read; words are random. Nodes are renumbered in the order above. False after a message. */
bool shapes_read(struct shapes *, const struct objects *, const char *path, size_t most, struct random *);
void shapes_free(struct shapes *);
/* The word of an edge: that of the child that it leads to. */
uint32_t shape_edge_word(const struct shape *, int edge);
/* Allocates arrays for so many nodes and edges; false when memory is out. */
bool shape_init(struct shape *, size_t nodes, size_t edges);

/* A file of structures, which is read once for each minibatch. Standard input (-) and pipes, which can be
 * read only once, are copied. */
struct input {
	const char *path;
	char own[32]; /* the path of the copy */
	FILE *copy;   /* NULL = there is none */
};

/* False after a message. Close the input in any case. */
bool input_open(struct input *, const char *path);
/* Opens the file of an input at its first structure, with the reading options of `objects`. */
esp_status input_begin(const char *path, const struct objects *, esp_treebank **, esp_error **);
void input_close(struct input *);

/* --- weights --- */

/* The sizes of a model's dimensions. */
struct sizes {
	int n;
	int64_t at[32];
};

/* Reads a text "D=256,V=1000"; dimensions that it does not name have the size 256. False after a message. */
bool sizes_read(struct sizes *, const esp_model *, const char *text);
/* Whether the model has the dimension that `size`, such as "D=256,...", begins with. */
bool sizes_has(const esp_model *, const char *size);
/* Writes random weights as safetensors, matrices such that products stay near 1. False after a message;
 * write errors are left for ferror(to). */
bool weights_write(const esp_model *, const struct sizes *, struct random *, FILE *to);

/* --- subjects: models that are ready to run --- */

enum { MOST_INPUTS = 8 };

struct subject {
	struct objects objects;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	const struct shapes *shapes;
	const char *trees; /* a file of structures, read with the reading options; NULL = `shapes` */
	struct arrays *arrays; /* rows in place of both, the caller's; NULL = none */
	size_t first;	   /* of the minibatch, among `shapes` */
	size_t structures; /* in the file or the arrays, which then start again; 0 = they are read once */
	int at;		   /* where outputs are computed, ESP_AT_... */
	long threads;
	bool joined;	 /* it owns only the program of its objects */
	struct carried { /* values of each input, for the nodes or edges of one structure */
		void *values;
		size_t bytes;
	} carried[MOST_INPUTS];
};

/* Seconds. */
struct timing {
	double whole, linearize;
};

/* Returns the exit status, like those below, after a message when it is not 0. Close the subject in any
 * case. */
int subject_open(struct subject *, const struct options *, int at, long threads, const struct shapes *);
void subject_close(struct subject *);
/* Makes another program of the model and weights of `with`, with a schedule as text (NULL = chosen); the
 * same threads run both. Close this subject before `with`. On failure there is nothing to close. */
esp_status subject_join(struct subject *, const struct subject *with, const struct options *,
			const char *schedule, esp_error **);
/* Moves its weights and working memory to other addresses. */
int subject_move(struct subject *);
/* *can: whether the file holds the values of all inputs, so that none must be drawn: it has no words, or
 * there are vocabularies. A file without them is refused when the options name a column or a vocabulary. */
int subject_can_read(struct subject *, const char *path, bool *can);
/* Makes the minibatch of the structures first .. first + count - 1; after the last structure the first
 * follows. */
int subject_fill(struct subject *, size_t first, size_t count);
int subject_run(struct subject *, struct timing *);
size_t subject_nodes(const struct subject *);
/* The floor of the minibatch that ran last. */
int subject_floor(struct subject *, const struct machine *, struct floor *);

/* The least seconds of each stretch of a run, over several runs: up to the end of the first floor span,
 * from there to the end of the next, ..., and the rest. `whole` is the least of entire runs. On a shared
 * machine a run of milliseconds is rarely undisturbed from end to end, but its levels are. */
struct stretches {
	size_t n;
	double *least, whole;
};

/* Runs `runs` times and lowers the least times. */
int subject_stretches(struct subject *, long runs, struct stretches *);
/* The seconds of an undisturbed run. */
double stretches_sum(const struct stretches *);
void stretches_free(struct stretches *);
/* Of a run: ordering the nodes, with all checks; laying out buffers and what nodes carry; all of it. */
struct phases {
	double linearize, fill, whole;
};

/* The least seconds of each phase, over so many runs. */
int subject_phases(struct subject *, long runs, struct phases *);
/* The seconds of an undisturbed run, from so many runs. */
int subject_undisturbed(struct subject *, long runs, double *seconds);

/* --- the command --- */

enum { MOST_CHOICES = 16 };

/* A text "1,10". */
struct list {
	int n;
	long at[MOST_CHOICES];
};

struct bench {
	const struct options *options;
	struct sizes sizes;
	struct input input; /* path NULL = structures are random */
	struct shapes shapes;
	struct list batches, threads;
	struct subject subject[MOST_CHOICES]; /* one for each number of threads */
	struct machine machine[MOST_CHOICES]; /* limits with as many threads */
	int subjects;			      /* opened so far */
	char weights[4096];		      /* path of the random weights, "" = none */
};

/* Sums over all minibatches of one size: seconds of linearizing and of runs (least, median, 95th
 * percentile), the floor with the work that it is computed from, and nodes. */
struct sums {
	double least, median, p95, linearize;
	double floor, operations, bytes;
	size_t nodes;
};

/* Write a table or lines of JSON, as the options say: the machine, the results of one size of minibatch
 * for each number of threads, and the end. */
void report_machines(const struct bench *);
void report_batch(const struct bench *, long batch, const struct sums *);
void report_end(const struct bench *);

/* Makes weights and structures, and opens the model once for each number of threads. Close in any case. */
int bench_open(struct bench *, const struct options *);
void bench_close(struct bench *);

/* Times primitives of the schedule, turned on one after the other, with the model of the options or else
 * with well-known models of the field. */
int bench_ablation(struct bench *, const struct options *);
/* Times the tiles that the cost model chose for the first subject against all others that it may choose. */
int bench_exhaustive(struct bench *);

#endif
