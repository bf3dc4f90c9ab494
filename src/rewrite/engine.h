/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the rewrite engine share: facts about values, the state of a match, the measure. */
#ifndef ESPALIER_REWRITE_ENGINE_H
#define ESPALIER_REWRITE_ENGINE_H

#include "rewrite/rules.h"

/* --- facts about a value, found once when it is made (value_range.c) --- */

/* Every element is within low..high, or NaN if `nan` allows for it. */
struct rewrite_range {
	double low, high;
	bool nan;
};

/* The terms of a sum that the lowering may add up in another order than the text, a rounding for each; a
 * value that is no sum is one term. */
struct rewrite_chain {
	double terms;
	double low, high; /* magnitudes of their least values together, and of their largest */
};

enum { REWRITE_OPERATION = 4 }; /* what a multiplication costs, against an element that is moved */

struct rewrite_fact {
	bool constant; /* depends on weights alone, and has no lead variable */
	bool uniform;  /* every element is `number` */
	bool barred;   /* made from a parameter whose look-ups do not become tables */
	double number;
	struct rewrite_range range;
	struct rewrite_chain chain;
	double cost; /* of computing it once for a row */
	double disorder;
	double pieces; /* of the concatenation that it is */
};

/* Steps from the root of a pattern down to what it binds. */
enum { REWRITE_REACH = 5 };

/* What is known of a value in the body at hand. */
struct rewrite_note {
	struct rewrite_fact fact;
	uint32_t forward; /* what replaced it; 0 = it stands */
	int uses;	  /* by live values and stores, each resolved; 0 = dead */
	int settled;	  /* the sweep in which no rule applied to it any more */
	long visited;	  /* by this walk */
	/* when, by the rewriter's clock */
	long touched;			/* its uses last changed */
	long tried;			/* rules were last tried at it */
	long recent[REWRITE_REACH + 1]; /* what is so many steps down was touched */
};

/* In the order in which they count.  Rebuilding a value on replaced arguments can change its disorder alone,
 * and only when an argument became a move or a concatenation; a rule that changes disorder alone does not
 * make one of what was none, so all applications together end. */
struct rewrite_measure {
	double cost;
	double constants; /* operations on weights, which cost nothing; a number repeated is none */
	double disorder;
};

/* A value whose uses changed while an application is on trial. */
struct rewrite_touched {
	uint32_t value;
	int uses;
	long touched;
};

struct rewriter {
	struct sub_program *p;
	struct arena *arena;
	const struct rewrite_options *options;
	struct rewrite_trace *trace; /* NULL = nobody wants to know */
	const char *body;
	VEC(struct rewrite_note) notes; /* by value of p */
	struct rewrite_measure measure; /* of what lives */
	VEC(uint32_t) stack;		/* of keep and release */
	bool trial;
	VEC(struct rewrite_touched) touched;
	const struct rewrite_range *states; /* what each is within; NULL = nothing is known */
	bool *barred;			    /* by parameter: its look-ups do not become tables */
	bool importing;	   /* what is made stood there before: no question whether it should */
	uint32_t root;	   /* what is being replaced: no part of its replacement */
	bool met_replaced; /* what was made had been replaced: its replacement was taken */
	bool finding;	   /* what is there already is found, and nothing made */
	long attempts, applications, walks, clock;
	int sweep;
};

struct rewrite_note *rewrite_note_of(struct rewriter *, sub_ref);
struct rewrite_fact rewrite_facts_of(const struct rewriter *, const struct sub_value *);
/* By state: what all bodies that compute it say, whatever the states are that they read. */
const struct rewrite_range *rewrite_find_state_ranges(const struct sub_program *, const struct rewrite_options *,
						 struct arena *);
/* The value that stands for this one now. */
sub_ref rewrite_resolve(struct rewriter *, sub_ref);
/* Elements for a row, as the measure counts them. */
double rewrite_count_elements(const struct sub_program *, const struct sub_value *);

/* --- the measure (cost.c) --- */

/* One use more, one use less: a value's first use makes it and what it needs live, its last one lets them go.
 */
void rewrite_add_use(struct rewriter *, sub_ref);
void rewrite_drop_use(struct rewriter *, sub_ref);
/* All uses of one value become uses of another; the first is then dead. */
void rewrite_transfer_uses(struct rewriter *, sub_ref from, sub_ref to);
void rewrite_return_uses(struct rewriter *, sub_ref from, sub_ref to, int uses);
bool rewrite_is_lower(struct rewrite_measure, struct rewrite_measure);

/* --- a match (match.c) --- */

/* An assign as a mapping: the index of each of the argument's dimensions, which are named `inner`, by the
 * variables around. */
struct rewrite_move {
	bool bound;
	int n, inner[SUB_MAX_VARS];
	struct sub_map map[SUB_MAX_VARS];
	bool fills; /* a map may leave its dimension: what is there is `fill` */
	double fill;
};

struct rewrite_bound_index {
	bool bound;
	int var, side[2]; /* side: under which the two sides of a cond have the axis, -1 = it is that of a
			     reduction */
};

enum { REWRITE_MAX_SCOPE = 48 };

struct rewrite_match {
	struct rewriter *w;
	const struct rewrite_parsed *rule;
	struct sub_use root;
	int scope[REWRITE_MAX_SCOPE], in_scope; /* variables that have a meaning in it */
	bool value_bound[REWRITE_MAX_NAMES];
	struct sub_use value[REWRITE_MAX_NAMES];
	struct rewrite_bound_index index[REWRITE_MAX_NAMES];
	struct rewrite_move move[REWRITE_MAX_NAMES];
	enum sub_op op[3]; /* that unary, binary, reduce stand for; by class */
	bool op_bound[3];
	bool turn_bound,
	    turned; /* what `binary` stands for has its arguments in the other order than the pattern */
	/* which order the arguments of each commutative operator are taken in, in the order they are met */
	unsigned swapped;
	int choices;
};

/* Whether the operators at a value are those of a pattern: what is quickly seen. */
bool rewrite_may_match(struct rewriter *, const struct rewrite_term *, sub_ref);
/* Matches a rule's pattern at a value, in its own names; then in the next order of the arguments of
 * commutative operators, until there is none that matches. */
bool rewrite_find_match(struct rewrite_match *, struct rewriter *, const struct rewrite_parsed *, sub_ref at);
bool rewrite_next_match(struct rewrite_match *, bool first);
/* A variable of the range of this one that has no meaning in the match yet; -1 = there is none. */
int rewrite_new_var_like(struct rewrite_match *, int like);
int rewrite_new_var(struct rewrite_match *, int64_t extent);

/* Whether an index of a dimension, which is named `inner`, may be outside of it. */
bool rewrite_index_leaves(const struct sub_program *, const struct sub_map *, int inner);

/* Whether any of a move's does, so that its fill is read. */
bool rewrite_reads_fill(const struct rewrite_match *, const struct rewrite_move *);

/* --- conditions (condition.c) --- */

int rewrite_find_predicate(const char *name, size_t length);
/* The first predicate that does not hold; -1 = the condition holds. */
int rewrite_find_refuted(struct rewrite_match *, int ignore);

/* --- replacements (replace.c, compose.c) --- */

/* Values as used in the names of a match; value.i = 0: it cannot be built. */
typedef struct sub_use rewrite_function(struct rewrite_match *, const struct rewrite_term *call);

int rewrite_find_function(const char *name, size_t length);
rewrite_function *rewrite_function_at(int);
/* The variable that an index of a rule stands for; -1 = there is none. */
int rewrite_index_of(const struct rewrite_match *, const struct rewrite_term *);
struct sub_use rewrite_build_term(struct rewrite_match *, const struct rewrite_term *);
/* The replacement of a match, with the dimensions of what was matched, in its names; value.i = 0: there is
 * none. */
struct sub_use rewrite_build_replacement(struct rewrite_match *);
/* Adds a value whose variables are a match's, or a program's, under canonical names; found again however its
 * variables were named.  None when it cannot be: see REWRITE_UNBUILT. */
struct sub_use rewrite_add_value(struct rewriter *, struct sub_value);
/* The concatenation along `axis` of values that have it as sides[0] and sides[1]. */
struct sub_use rewrite_concatenate(struct rewrite_match *, int axis, const int *sides, struct sub_use,
				   struct sub_use);
/* The value moved: variables that the move does not know stay what they are. */
struct sub_use rewrite_move_value(struct rewrite_match *, const struct rewrite_move *, struct sub_use);

rewrite_function rewrite_compose_moves, rewrite_rename_outside, rewrite_rename_inside, rewrite_select_side, rewrite_join_slices,
    rewrite_join_arguments, rewrite_slice_first, rewrite_slice_second, rewrite_regroup_sides, rewrite_find_concatenation;

/* --- the rest --- */

/* Whether the tables of a rewritten program keep to the budget; else parameters are barred, as few as may be.
 */
bool rewrite_check_tables(const struct sub_program *, const struct sub_program *from,
			const struct rewrite_options *, struct rewrite_trace *, bool *barred);
/* A value as text, as deep as a term. */
const char *rewrite_describe_value(struct rewriter *, sub_ref, const struct rewrite_term *as);

#endif
