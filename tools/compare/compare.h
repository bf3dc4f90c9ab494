/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier compare: the model's states and outputs against those that another program computed. */
#ifndef ESPALIER_TOOLS_COMPARE_H
#define ESPALIER_TOOLS_COMPARE_H

#include "reference/reference.h"
#include "tool.h"

/* A state or an output. */
struct quantity {
	const char *name;
	bool is_state;
	bool is_local; /* a state only for the sake of comparison */
	int only;      /* of a local, the body that computes it; 0 = all */
	size_t index, elements, rank;
	const size_t *shape;
};

/* An element of a row, as it was found and as the reference has it. */
struct spot {
	size_t tree, node, element;
	size_t height; /* 0 = a leaf */
	double ours, theirs;
};

/* A tensor of the reference and the quantity that it is compared with. */
struct pair {
	struct quantity quantity;
	size_t tensor; /* in the reference */
	bool roots;    /* a row for each tree, not for each node */
	size_t trees;  /* how many of the input's it has rows of */
	/* what was measured */
	size_t rows, values, beyond; /* values beyond the tolerance */
	double absolute;	     /* the largest difference */
	struct spot largest;	     /* where it is */
	struct spot first;   /* the row that is beyond first, leaves before their parents: its worst */
	size_t first_beyond; /* values of that row */
};

/* All trees of the input. */
struct trees {
	struct batch *batch;
	size_t batches, n;
	uint64_t *begin; /* n + 1: where their nodes begin */
};

struct comparison {
	const struct options *options;
	const char *model, *input;
	struct objects objects;
	struct batches batches;
	struct trees trees;
	struct reference reference;
	struct source *source; /* of the model when locals are compared, else NULL */
	struct quantity *quantity;
	size_t quantities;
	struct pair *pair;
	size_t pairs;
	const char **ignored; /* tensors that the model does not have */
	size_t ignored_n;
	size_t covered;			/* trees that a tensor has rows of */
	size_t classes, classes_beyond; /* predicted classes that were compared, and differ */
	size_t *height;			/* of the nodes of tree `height_of` */
	struct climb *climb;		/* for finding them */
	size_t heights, height_of;	/* heights: how many there is room for */
};

/* locals.c: makes locals of bodies that the reference has states, of another model; the exit status. */
int locals_show(struct comparison *);
/* Whether a state is such a local, and the body that computes it, 0 = all. */
int locals_only(const struct comparison *, const char *state, bool *is_local);
/* The line of the model's text that became the given one. */
int locals_line(const struct comparison *, int line);
void locals_free(struct comparison *);

/* match.c: finds the pairs and loads their values.  False after a message. */
bool match_reference(struct comparison *);
/* The output of the text's values, whose largest element is the class. */
const struct pair *match_classes(const struct comparison *);

/* measure.c: compares the trees of a minibatch that was run.  False after a message. */
bool measure_batch(struct comparison *, const struct batch *);
/* In the order of execution: a node has the height of its batch. */
int compare_spots(const struct spot *, const struct spot *);

/* --- find.c: where the first difference comes from --- */

struct finding {
	const struct pair *pair;
	const struct spot *place;
	const struct batch *batch;
	size_t structure; /* in the batch */
	bool is_leaf;
	const char *statement; /* of the model, NULL = unknown */
	int line;
	const char *words; /* that the node covers, in its sentence; all of it where that is not known */
	size_t length;
};

bool is_equal(const struct comparison *);
/* Whether leaves, or inner nodes, have the quantity. */
bool computes(const struct quantity *, bool is_leaf);
/* "state", "output" or "local". */
const char *kind_of(const struct quantity *);
/* The minibatch of a tree. */
const struct batch *batch_of(const struct comparison *, size_t tree);
/* False when no value is beyond the tolerance. */
bool find_first(const struct comparison *, struct finding *);
/* Whether the pair has a row of the node, and whether that is beyond the tolerance. */
bool has_node(const struct comparison *, const struct pair *, const struct spot *);
bool differs_at(const struct pair *, const struct spot *);
/* Whether the quantity is in the reference. */
bool is_compared(const struct comparison *, const struct quantity *);

/* say.c, json.c */
void say_text(const struct comparison *, FILE *);
void say_json(const struct comparison *, FILE *);
/* Floats between two values; SIZE_MAX = one of them is not a number. */
uint64_t ulps(double, double);

#endif
