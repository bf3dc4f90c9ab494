/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier compare: the model's states and outputs against those that another program computed. */
#ifndef ESPALIER_TOOLS_COMPARE_H
#define ESPALIER_TOOLS_COMPARE_H

#include "reference/reference.h"
#include "tool.h"

/* A state or an output. */
struct quantity {
	const char *name;   /* in the reference */
	const char *source; /* of the state or output of the model: no two have the same */
	bool is_state;
	bool is_local;	  /* a state only for the sake of comparison; not all bodies compute it */
	size_t traversal; /* that computes it, from 0; of an output the last */
	bool down;	  /* that goes from parents to children */
	size_t index, elements, rank;
	const size_t *shape;
};

/* An element of a row, as it was found and as the reference has it. */
struct spot {
	size_t tree, node, element;
	size_t traversal, level; /* level: up, the node's height; down, its depth */
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
	struct spot first;   /* the row that is beyond first, in the order of execution: its worst */
	size_t first_beyond; /* values of that row */
};

/* All trees of the input. */
struct trees {
	struct batch *batch;
	size_t batches, n;
	uint64_t *begin; /* n + 1: where their nodes begin */
};

/* Of the nodes of one tree. */
struct levels {
	size_t *height, *depth;
	size_t *order; /* nodes, after their children */
	struct climb *climb;
	size_t room, tree; /* room: nodes, 0 = there is no tree */
};

struct comparison {
	const struct options *options;
	const char *model, *input;
	struct objects objects;
	struct batches batches;
	struct trees trees;
	struct reference reference;
	struct locals *locals; /* of the model that are compared, or NULL */
	esp_model *first;      /* the model without them, which their texts belong to */
	struct quantity *quantity;
	size_t quantities;
	struct pair *pair;
	size_t pairs;
	const char **ignored; /* tensors that the model does not have */
	size_t ignored_n;
	size_t covered;			/* trees that a tensor has rows of */
	size_t classes, classes_beyond; /* predicted classes that were compared, and differ */
	struct levels levels;
};

/* locals.c: makes locals of bodies that the reference has states, of another model; the exit status. */
int locals_show(struct comparison *);
/* The tensor that a state which keeps locals is compared with; NULL when it is a state of the model. */
const char *locals_tensor(const struct comparison *, const char *state);
void locals_free(struct comparison *);

/* levels.c: finds heights and depths of a tree's nodes, unless they are those at hand.  False after a message. */
bool levels_find(struct comparison *, const struct batch *, size_t structure);
void levels_free(struct levels *);
/* Of a node of the tree whose levels are at hand: its level in the quantity's traversal. */
size_t level_of(const struct comparison *, const struct quantity *, size_t node);

/* match.c: finds the pairs and loads their values.  False after a message. */
bool match_reference(struct comparison *);
/* Of a node of the tree whose levels are at hand: the body that computes the quantity there, and whether that does. */
int body_of(const struct comparison *, const struct quantity *, const struct batch *, size_t structure, size_t node);
bool computes_quantity(const struct comparison *, const struct quantity *, const struct batch *, size_t structure, size_t node);
/* The output of the text's values, whose largest element is the class. */
const struct pair *match_classes(const struct comparison *);

/* measure.c: compares the trees of a minibatch that was run.  False after a message. */
bool measure_batch(struct comparison *, const struct batch *);
/* In the order of execution: by traversal, then by level. */
int compare_spots(const struct spot *, const struct spot *);

/* --- find.c: where the first difference comes from --- */

struct finding {
	const struct pair *pair;
	const struct spot *place;
	const struct batch *batch;
	size_t structure; /* in the batch */
	const char *statement; /* of the model, NULL = unknown */
	int line;
	const char *words; /* that the node covers, in its sentence; all of it where that is not known */
	size_t length;
};

bool is_equal(const struct comparison *);
/* "state", "output" or "local". */
const char *kind_of(const struct quantity *);
/* The minibatch of a tree. */
const struct batch *batch_of(const struct comparison *, size_t tree);
/* False when no value is beyond the tolerance.  Then levels of its tree are at hand. */
bool find_first(struct comparison *, struct finding *);
/* Whether the pair has a row of the node, and whether that is beyond the tolerance. */
bool has_node(const struct comparison *, const struct pair *, const struct spot *);
bool differs_at(const struct pair *, const struct spot *);
/* Whether what comes before a place in the order of execution is known to agree in the pair. */
bool agrees_before(const struct pair *, const struct spot *);
/* The next of the nodes that the place's traversal sees, its children or, down, its parents, from *position on, which
 * is 0 for the first; -1 past the last. */
int32_t next_neighbour(const struct finding *, size_t *position);
/* Whether the quantity is in the reference. */
bool is_compared(const struct comparison *, const struct quantity *);

/* say.c, json.c */
void say_text(struct comparison *, FILE *);
void say_json(struct comparison *, FILE *);
/* Floats between two values; SIZE_MAX = one of them is not a number. */
uint64_t count_ulps(double, double);

#endif
