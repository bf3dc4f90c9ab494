/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of refactoring: dependence on one child (refactor_child.c), moving values to another
 * place (refactor_place.c) or to the parents (refactor_tail.c), and the pass (refactor.c). */
#ifndef ESPALIER_MOVE_REFACTOR_H
#define ESPALIER_MOVE_REFACTOR_H

#include "move/moved_program.h"

enum { REFACTOR_MOST_SLOTS = 31 }; /* of children whose values are moved */

/* Which children a value depends on: none; one alone, that of an edge or in a slot; or more. */
enum { NOTHING, OF_EDGE, OF_SLOT, MORE = -1 };

/* A value of an inner body that is moved to the child that it depends on. */
struct moved_value {
	sub_ref value;
	int reach, derived;
};

/* A state that is computed from other states. */
struct derived {
	sub_ref key;   /* the value in terms of a node's own states: the same for all children */
	sub_ref value; /* one of the parents' values that it replaces */
	int which;
	unsigned slots, readers; /* masks: slots of the children, and inner bodies that read it */
};

/* An inner body, and the values that are moved from it. */
struct reader {
	const struct sub_body *body;
	struct sub_values values;
	bool *seen;
	int *moved_of; /* by value: its number in `moved` + 1 */
	VEC(struct moved_value) moved;
};

struct refactoring {
	struct arena *arena;
	const struct sub_program *from;
	struct sub_program *to; /* has the same values under the same numbers, then new ones */
	enum move_extent how;
	const struct rewrite_options *options;
	struct move_bodies leaves;
	const struct sub_body *leaf; /* the current one */
	VEC(struct reader) readers;
	struct reader *in; /* the current one */
	int *reach;
	const double *work;
	bool *excluded;
	VEC(struct derived) derived;
	VEC(struct sub_body) tables; /* bodies that compute tables at binding */
	bool misfit;		     /* a value has other dimensions at the other place: nothing is moved */
};

static inline const struct sub_value *refactor_value(const struct refactoring *f, sub_ref r)
{
	return sub_at(f->to, r);
}

/* --- what depends on one child --- */

/* The store of a state in a body; NULL = it has none. */
const struct sub_store *refactor_store(const struct sub_body *, int state);
/* Whether a value reads a state of other nodes. */
bool refactor_is_child(const struct sub_program *, const struct sub_value *);
void refactor_find_reach(struct refactoring *);
/* Selects the values of the current reader to move, except for excluded ones. */
void refactor_select_values(struct refactoring *);

/* --- at another place --- */

/* A place to compute a moved value at: a child's body or a table. */
struct place {
	int row;	/* the variable of its rows */
	sub_ref *state; /* by state: its value there */
	sub_ref *value; /* by value: its counterpart there */
};

/* Makes a place without states; the caller sets them. */
struct place refactor_new_place(const struct refactoring *, int row);
/* Computes a value at a place; sets `misfit` if its dimensions change. */
sub_ref refactor_move(struct refactoring *, struct place *, sub_ref);
/* Whether a read takes all dimensions of its argument but the first as they are. */
bool refactor_is_whole(const struct sub_program *, const struct sub_value *assign);

/* --- tables --- */

/* A look-up of rows of a parameter by a token. */
struct look_up {
	struct sub_map map; /* of the row; function SUB_AFFINE = none found yet */
	int64_t rows;
	bool ok;
};

/* Whether leaves can look up a derived state in a table. */
bool refactor_find_table(const struct refactoring *, const struct derived *, struct look_up *);
/* Adds the body that makes the rows, unless leaves of another case have it, and sets the place where it
 * computes them; returns the look-up. */
sub_ref refactor_make_table(struct refactoring *, const struct derived *, const struct look_up *,
			    struct place *);

/* --- tails --- */

/* Moves the last operators of states to the parents that read them, where that is legal. */
void refactor_tails(struct sub_program *to, const struct sub_program *from, struct rewrite_trace *);

#endif
