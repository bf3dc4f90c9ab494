/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier compare: compares the model's states and outputs with those that another program computed. */
#ifndef ESPALIER_TOOLS_COMPARE_H
#define ESPALIER_TOOLS_COMPARE_H

#include "reference/reference.h"
#include "tool.h"

/* A state or an output. */
struct quantity {
	const char *name;   /* in the reference */
	const char *source; /* of the state or output of the model: no two have the same */
	bool is_state;
	bool is_local;	  /* a local, made a state to be compared; not all bodies compute it */
	size_t traversal; /* the traversal that computes it, from 0; for an output the last */
	bool down;	  /* the traversal goes from parents to children */
	size_t index, elements, rank;
	const size_t *shape;
};

/* An element of a row, in our results and in the reference. */
struct spot {
	size_t tree, node, element;
	size_t traversal, level; /* level: the node's height, in a traversal down its depth */
	double ours, theirs;
};

/* A tensor of the reference and the quantity that it is compared with. */
struct pair {
	struct quantity quantity;
	size_t tensor; /* in the reference */
	bool roots;    /* the tensor has a row for each tree, not for each node */
	size_t trees;  /* the tensor has rows of so many trees of the input */
	/* measured: */
	size_t rows, values, beyond; /* values beyond the tolerance */
	double absolute;	     /* the largest difference */
	struct spot largest;	     /* where it is */
	struct spot first;   /* worst element of the first row that is beyond, in the order of execution */
	size_t first_beyond; /* values of that row */
	/* how far products in integers or bf16 may take a value from f32 (doc/precision.md), INFINITY = nothing says; if there are any */
	bool bounded;
	double bound;
};

/* The trees of the input. */
struct trees {
	struct batch *batch;
	size_t batches, n;
	uint64_t *begin; /* n + 1: where their nodes begin */
};

/* Heights and depths of one tree's nodes. */
struct levels {
	size_t *height, *depth;
	size_t *order; /* nodes, after their children */
	struct climb *climb;
	size_t capacity, tree; /* capacity: nodes; 0 = no tree yet */
};

struct comparison {
	const struct options *options;
	const char *model, *input;
	struct objects objects;
	struct batches batches;
	struct trees trees;
	struct reference reference;
	struct locals *locals; /* locals of the model that are compared; NULL = none */
	esp_model *first;      /* the model without these locals, which owns their texts */
	struct quantity *quantity;
	size_t quantities;
	struct pair *pair;
	size_t pairs;
	const char **ignored; /* tensors that the model does not have */
	size_t ignored_n;
	size_t covered;			/* trees that some tensor has rows of */
	size_t classes, classes_beyond; /* predicted classes that were compared, and differ */
	struct levels levels;
};

/* locals.c: replaces the model by one in which the locals that the reference has are states. The exit
 * status. */
int locals_show(struct comparison *);
/* The tensor that is compared with a state made of locals; NULL = the state is the model's own. */
const char *locals_tensor(const struct comparison *, const char *state);
void locals_free(struct comparison *);

/* levels.c: computes heights and depths of a tree's nodes, unless they are those computed last. False
 * after a message. */
bool levels_find(struct comparison *, const struct batch *, size_t structure);
void levels_free(struct levels *);
/* Level of a node in the quantity's traversal, in the tree whose levels were computed last. */
size_t level_of(const struct comparison *, const struct quantity *, size_t node);

/* match.c: finds the pairs and loads their values.  False after a message. */
bool match_reference(struct comparison *);
/* For a node of the tree whose levels were computed last: the body that runs there, and whether it
 * computes the quantity. */
int body_of(const struct comparison *, const struct quantity *, const struct batch *, size_t structure, size_t node);
bool computes_quantity(const struct comparison *, const struct quantity *, const struct batch *,
		       size_t structure, size_t node);
/* The output that a reference in text form is compared with; its largest element is the predicted class.
 * NULL = the reference has no classes. */
const struct pair *match_classes(const struct comparison *);

/* measure.c: compares the trees of a minibatch that was run.  False after a message. */
bool measure_batch(struct comparison *, const struct batch *);
/* Compares in the order of execution: by traversal, then by level, tree and node. */
int compare_spots(const struct spot *, const struct spot *);

/* bounds.c: finds the bounds of what is compared, in trees as high as those of the input. The exit status. */
int bounds_find(struct comparison *);

/* --- find.c: where the first difference comes from --- */

struct finding {
	const struct pair *pair;
	const struct spot *place;
	const struct batch *batch;
	size_t structure; /* in the batch */
	const char *statement; /* of the model, NULL = not known */
	int line;
	const char *words; /* the words below the node, or the entire sentence where these are not known */
	size_t length;
};

bool is_equal(const struct comparison *);
/* "state", "output" or "local". */
const char *kind_of(const struct quantity *);
/* The minibatch that has a tree. */
const struct batch *batch_of(const struct comparison *, size_t tree);
/* Finds the first difference and computes the levels of its tree. False when no value is beyond the
 * tolerance. */
bool find_first(struct comparison *, struct finding *);
/* Whether the pair has a row of the node, and whether that row is beyond the tolerance. */
bool has_node(const struct comparison *, const struct pair *, const struct spot *);
bool differs_at(const struct pair *, const struct spot *);
/* Whether all rows of the pair before a place, in the order of execution, are known to agree. */
bool agrees_before(const struct pair *, const struct spot *);
/* The next node whose values the place's node reads: a child or, in a traversal down, a parent. *position
 * is 0 for the first; returns -1 past the last. */
int32_t next_neighbour(const struct finding *, size_t *position);
/* Whether the quantity is in the reference. */
bool is_compared(const struct comparison *, const struct quantity *);

/* say.c, json.c */
void say_text(struct comparison *, FILE *);
void say_json(struct comparison *, FILE *);
/* How many floats lie between two values; UINT64_MAX = one of them is NaN. */
uint64_t count_ulps(double, double);

#endif
