/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The parts of refactor.c: what depends on one child (refactor_child.c), how it is computed at another place
 * (refactor_place.c). */
#ifndef ESPALIER_MOVE_REFACTOR_H
#define ESPALIER_MOVE_REFACTOR_H

#include "move/moved_program.h"

enum { REFACTOR_MOST_SLOTS = 31 }; /* of which something leaves */

/* What of a node a value depends on: nothing; one child alone, that of an edge or in a slot; or more. */
enum { NOTHING, OF_EDGE, OF_SLOT, MORE = -1 };

/* A value of the inner body, as it is for a child. */
struct moved_value {
	sub_ref value;
	int reach, derived;
};

/* A state that is computed of other states. */
struct derived {
	sub_ref key;   /* the value, of these states; the same for all children */
	sub_ref value; /* one of those that it is for parents */
	int which;
	unsigned slots, readers; /* of which children, and which inner bodies want it */
};

/* An inner body, and what of it leaves. */
struct reader {
	const struct sub_body *body;
	struct sub_values values;
	bool *seen;
	int *moved_of; /* by value: number + 1 */
	VEC(struct moved_value) moved;
};

struct refactoring {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values in the same places, then others */
	enum move_extent how;
	const struct rewrite_options *options;
	struct move_bodies leaves;
	const struct sub_body *leaf; /* the one at hand */
	VEC(struct reader) readers;
	struct reader *in; /* the one at hand */
	int *reach;
	const double *work;
	bool *excluded;
	VEC(struct derived) derived;
	VEC(struct sub_body) tables; /* at binding */
	bool misfit;		     /* a value does not stand elsewhere as it stood: all stays */
};

static inline const struct sub_value *refactor_value(const struct refactoring *f, sub_ref r)
{
	return sub_at(f->to, r);
}

/* --- what depends on one child --- */

/* The store of a state in a body; NULL = it has none. */
const struct sub_store *refactor_store(const struct sub_body *, int state);
/* A state as it is read of other nodes. */
bool refactor_is_child(const struct sub_program *, const struct sub_value *);
void refactor_find_reach(struct refactoring *);
/* What leaves, of all that is not barred. */
void refactor_select_values(struct refactoring *);

/* --- at another place --- */

/* Where a value is computed that was one of a child. */
struct place {
	int row;	/* the variable of its rows */
	sub_ref *state; /* by state: what it is there */
	sub_ref *value; /* by value */
};

/* What the states are there is for the caller to say. */
struct place refactor_new_place(const struct refactoring *, int row);
/* What leaves, at a place; its dimensions must stand as they stood. */
sub_ref refactor_move(struct refactoring *, struct place *, sub_ref);
/* Dimensions of what is read from one on are those of the value, all of them. */
bool refactor_is_whole(const struct sub_program *, const struct sub_value *assign);

/* --- tables --- */

/* Rows of a parameter, looked up by a token. */
struct look_up {
	struct sub_map map; /* of the row; function SUB_AFFINE = there is none */
	int64_t rows;
	bool ok;
};

/* Whether leaves can look up what they keep for their parents. */
bool refactor_find_table(const struct refactoring *, const struct derived *, struct look_up *);
/* Adds the body that makes the rows, unless leaves of another case have it, and says where it computes them;
 * returns what a leaf looks up. */
sub_ref refactor_make_table(struct refactoring *, const struct derived *, const struct look_up *,
			    struct place *);

#endif
