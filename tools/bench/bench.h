/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier bench: models timed over structures that are read or made, with weights that are given or made,
 * beside what the machine allows. */
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

/* Children come before their parents, the root last; children[begin[i]] .. children[begin[i + 1] - 1] are
 * those of node i. */
struct shape {
	int nodes;
	int32_t *begin, *children;
	uint32_t *word; /* any number: a token, once it is taken modulo their limit */
};

struct shapes {
	struct shape *at;
	size_t n;
};

/* What is made: inner nodes of trees have `children`; `length`: leaves of a tree as of a parser, the mean;
 * height of a perfect tree; side of a grid; nodes of a sequence. */
struct making {
	enum form form;
	int children, length;
};

/* Makes so many.  False after a message. */
bool shapes_make(struct shapes *, const struct making *, size_t n, struct random *);
/* Reads the first structures of a file, `most` at most, as the options of what is open say: only their form;
 * words are drawn.  Nodes are numbered anew, as above.  False after a message. */
bool shapes_read(struct shapes *, const struct objects *, const char *path, size_t most, struct random *);
void shapes_free(struct shapes *);
/* Room for so many nodes and edges; false when memory is out. */
bool shape_init(struct shape *, size_t nodes, size_t edges);

/* A file of structures, which is read once for each minibatch: what can be read only once, as standard input
 * (-), is copied. */
struct input {
	const char *path;
	char own[32]; /* the path of a copy */
	FILE *copy;   /* NULL = there is none */
};

/* False after a message; in any case to be closed. */
bool input_open(struct input *, const char *path);
/* Reads the file of an input from its first structure, as the options of what is open say. */
esp_status input_begin(const char *path, const struct objects *, esp_treebank **, esp_error **);
void input_close(struct input *);

/* --- weights --- */

/* The sizes of a model's dimensions. */
struct sizes {
	int n;
	int64_t at[32];
};

/* From a text "D=256,V=1000"; what it does not name has the size 256.  False after a message. */
bool sizes_read(struct sizes *, const esp_model *, const char *text);
/* Whether the model has the dimension that a part of such a text begins with. */
bool sizes_has(const esp_model *, const char *part);
/* Writes random weights as safetensors: matrices so that products stay near 1.  False after a message; what
 * could not be written, the file says. */
bool weights_write(const esp_model *, const struct sizes *, struct random *, FILE *to);

/* --- a model that is ready to run --- */

enum { MOST_INPUTS = 8 };

struct subject {
	struct objects objects;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	const struct shapes *shapes;
	const char *trees; /* a file of structures, read as the options say; NULL = `shapes` */
	size_t structures; /* that the file has, after the last of which the first comes again; 0 = it ends */
	int at;		   /* where outputs are computed, ESP_AT_... */
	long threads;
	bool joined;	 /* of its objects only the program is its own */
	struct carried { /* by the nodes of one structure, of each input */
		void *values;
		size_t bytes;
	} carried[MOST_INPUTS];
};

/* Seconds. */
struct timing {
	double whole, linearize;
};

/* As those below, the exit status, after a message when it is not 0; in any case to be closed. */
int subject_open(struct subject *, const struct options *, int at, long threads, const struct shapes *);
void subject_close(struct subject *);
/* Another program of what a subject has opened, with a schedule as text (NULL = chosen); runs of both are by
 * the same threads.  The other one must be closed later.  On failure there is nothing to close. */
esp_status subject_join(struct subject *, const struct subject *with, const struct options *,
			const char *schedule, esp_error **);
/* Puts what it works in and its weights elsewhere in memory. */
int subject_move(struct subject *);
/* Whether a file says what nodes carry, so that it can be read as it is: it has no texts, or there are
 * vocabularies; with a column or a vocabulary it must. */
int subject_can_read(struct subject *, const char *path, bool *can);
/* Makes the minibatch of the structures first .. first + count - 1; after the last comes the first again. */
int subject_fill(struct subject *, size_t first, size_t count);
int subject_run(struct subject *, struct timing *);
size_t subject_nodes(const struct subject *);
/* What the machine needs at least for the minibatch that ran last. */
int subject_floor(struct subject *, const struct machine *, struct floor *);

/* The least seconds of each stretch of a run: from its beginning to the end of its first part, from there to
 * the end of the next, and what is left; `whole`: of a run.  A run of milliseconds is rarely undisturbed as a
 * whole on a machine that is shared, its levels are. */
struct stretches {
	size_t n;
	double *least, whole;
};

/* Runs so many times, and keeps the least. */
int subject_stretches(struct subject *, long runs, struct stretches *);
/* What a run takes where nothing else disturbs it. */
double stretches_sum(const struct stretches *);
void stretches_free(struct stretches *);
/* All of this, from so many runs. */
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
	struct input input; /* path NULL = structures are made */
	struct shapes shapes;
	struct list batches, threads;
	struct subject subject[MOST_CHOICES]; /* one for each number of threads */
	struct machine machine[MOST_CHOICES]; /* with as many */
	int subjects;			      /* that were opened */
	char weights[4096];		      /* "" = none were written */
};

/* Of all minibatches of a size: sums of the least time, the median and so on; of what they are judged by; and
 * of what they have. */
struct sums {
	double least, median, p95, linearize;
	double floor, operations, bytes;
	size_t nodes;
};

/* As the options say, a table or lines of JSON: what comes first, the results of one size of minibatch by
 * number of threads, and what comes last. */
void report_machines(const struct bench *);
void report_batch(const struct bench *, long batch, const struct sums *);
void report_end(const struct bench *);

/* Makes weights and structures, and opens the model once for each number of threads; to be closed in any
 * case. */
int bench_open(struct bench *, const struct options *);
void bench_close(struct bench *);

/* What the first subject takes when primitives of the schedule are turned on one after the other: of the
 * model that the options name, or of some that the field compares. */
int bench_ablation(struct bench *, const struct options *);
/* The tiles of the first subject that the cost model chose, against all that it chooses from. */
int bench_exhaustive(struct bench *);

#endif
