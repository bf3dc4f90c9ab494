/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Forms while they are made: over the variables of a scope, those of a value and those that it reduces. */
#ifndef ESPALIER_MUTATE_FORMS_H
#define ESPALIER_MUTATE_FORMS_H

#include "mutate/mutate.h"

enum { MUTATE_MAX_SCOPE = 2 * SUB_MAX_VARS };

struct mutate_scope {
	int n, var[MUTATE_MAX_SCOPE];
};

/* A form over a scope. */
struct mutate_draft {
	const struct sub_program *p;
	struct mutate_scope scope;
	mutate_cuts cuts[MUTATE_MAX_SCOPE];
	int motions;
	struct mutate_motion motion[MUTATE_MAX_MOTIONS];
	double weight;
	long work;	 /* crossings that were looked for */
	const char *why; /* what cannot be expressed, NULL = nothing so far */
};

/* The position of a variable; -1 = it is not in the scope. */
static inline int mutate_find_var(const struct mutate_scope *scope, int var)
{
	for (int i = 0; i < scope->n; i++)
		if (scope->var[i] == var)
			return i;
	return -1;
}

/* The variables of a value and those that it reduces. */
struct mutate_scope mutate_scope_of(const struct sub_program *, const struct sub_value *);
/* The same, with the variable of an argument of a COND in place of the joined one. */
struct mutate_scope mutate_joined_scope(const struct sub_program *, const struct sub_value *, int argument);

/* --- cuts.c --- */

/* A sum of one or two variables, given by their positions in a scope; scale 0 = there is none. */
struct mutate_sum {
	int at[2];
	int64_t scale[2];
};

/* Lets an interval of the variable begin at an index; does nothing where none can, or one does. */
void mutate_cut(struct mutate_draft *, int position, int64_t index);
/* Cuts such that in no box a sum is below a bound here and at least the bound there. */
void mutate_cut_at_bound(struct mutate_draft *, const struct mutate_sum *, int64_t bound);
/* The least and the greatest value of a sum. */
void mutate_bound_sum(const struct mutate_draft *, const struct mutate_sum *, int64_t *least, int64_t *most);

/* --- motions.c --- */

/* Adds terms without factors: numbers. */
void mutate_add_number(struct mutate_draft *, double number);
/* Adds the motions of an argument, whose variable i moves by step[i * scope.n + j] when that at position j of the
 * scope rises by one. */
void mutate_add_motions(struct mutate_draft *, const struct sub_value *, const struct mutate_form *, const int64_t *step);
/* Makes `draft` the product of itself and another draft of the same scope. */
void mutate_multiply_motions(struct mutate_draft *, const struct mutate_draft *by);
/* Makes the form's motions of the draft's, over the first `vars` variables of its scope. */
void mutate_take_motions(const struct mutate_draft *, int vars, struct mutate_form *);
/* Adds a motion to a list unless it is there; false if there is no room. */
bool mutate_insert_motion(const struct sub_program *, int vars, struct mutate_motion *list, int *n, int room,
			  const struct mutate_motion *);
bool mutate_same_leaves(const struct mutate_motion *, const struct mutate_motion *);

/* --- index_conditions.c --- */

/* Cuts where a condition of indices and numbers alone changes; false if it is another. */
bool mutate_cut_at_condition(struct mutate_draft *, const struct sub_use *condition);
/* Its value at a position of the scope. */
bool mutate_holds(const struct sub_program *, const struct mutate_scope *, const struct sub_use *condition,
		  const int64_t *index);

#endif
