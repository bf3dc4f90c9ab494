/* espalier bench: models timed over structures that are read or made, with weights that are given or made,
 * beside what the machine allows. */
#ifndef ESPALIER_TOOLS_BENCH_H
#define ESPALIER_TOOLS_BENCH_H

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
enum form { FORM_PARSE, FORM_PERFECT, FORM_SEQUENCE, FORMS };

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

/* Makes so many.  `length`: leaves of a tree as of a parser, the mean; height of a perfect binary tree; nodes
 * of a sequence. False without memory. */
bool shapes_make(struct shapes *, enum form, int length, size_t n, struct random *);
/* Reads the first trees of a file of bracketed trees, `most` at most: only their form and, as numbers, their
 * words.  False after a message. */
bool shapes_read(struct shapes *, const char *path, size_t most);
void shapes_free(struct shapes *);

/* --- weights --- */

/* The sizes of a model's dimensions. */
struct sizes {
	int n;
	int64_t at[32];
};

/* From a text "D=256,V=1000"; what it does not name has the size 256.  False after a message. */
bool sizes_read(struct sizes *, const esp_model *, const char *text);
/* Writes random weights to a safetensors file: matrices so that products stay near 1.  False after a message.
 */
bool weights_write(const esp_model *, const struct sizes *, struct random *, const char *path);

/* --- a model that is ready to run --- */

enum { MOST_INPUTS = 8 };

struct subject {
	struct objects objects;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	const struct shapes *shapes;
	long threads;
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
int subject_open(struct subject *, const struct options *, long threads, const struct shapes *);
void subject_close(struct subject *);
/* Makes the minibatch of the structures first .. first + count - 1; after the last comes the first again. */
int subject_fill(struct subject *, size_t first, size_t count);
int subject_run(struct subject *, struct timing *);
size_t subject_nodes(const struct subject *);
/* What the machine needs at least for the minibatch that ran last: its work, and the seconds. */
int subject_floor(struct subject *, const struct machine *, double *seconds, double *operations);

/* What a run takes where nothing else disturbs it: from so many runs, each level's least time, summed.  A run
 * of milliseconds is rarely undisturbed as a whole on a machine that is shared, its levels are. */
int subject_undisturbed(struct subject *, long runs, double *seconds);

/* Answers requests on standard input until its end.
 *     run FIRST COUNT REPEATS	   REPEATS times in microseconds, on one line
 *     quiet FIRST COUNT REPEATS  microseconds undisturbed, from so many runs
 *     root FIRST COUNT		   the outputs of COUNT roots, on one line
 *     floor FIRST COUNT	   microseconds of the floor, operations, nodes, microseconds of linearizing
 *     machine			   measures it, and says what was found
 *     limits GFLOPS US GBS...	   takes these for the machine's: a core's peak, the barrier, reading by
 * working set
 */
int bench_serve(struct subject *);

#endif
