/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the rewrite engine share: facts about values, the state of a match, the measure. */
#ifndef ESPALIER_REWRITE_ENGINE_H
#define ESPALIER_REWRITE_ENGINE_H

#include "rewrite/rules.h"

/* --- facts about a value, found once when it is made (value_range.c) --- */

/* Every element is within low..high, or NaN if `nan` allows for it. */
struct sub_range {
	double low, high;
	bool nan;
};

/* The terms of a sum that the lowering may add up in another order than the text, a rounding for each; a value
 * that is no sum is one term. */
struct sub_chain {
	double terms;
	double low, high; /* magnitudes of their least values together, and of their largest */
};

enum { SUB_OPERATION = 4 }; /* what a multiplication costs, against an element that is moved */

struct sub_fact {
	bool constant; /* depends on weights alone, and has no lead variable */
	bool uniform;  /* every element is `number` */
	bool barred;   /* made from a parameter whose look-ups do not become tables */
	double number;
	struct sub_range range;
	struct sub_chain chain;
	double cost; /* of computing it once for a row */
	double disorder;
	double pieces; /* of the concatenation that it is */
};

/* Steps from the root of a pattern down to what it binds. */
enum { SUB_REACH = 5 };

/* What is known of a value in the body at hand. */
struct sub_note {
	struct sub_fact fact;
	uint32_t forward; /* what replaced it; 0 = it stands */
	int uses;	  /* by live values and stores, each resolved; 0 = dead */
	int settled;	  /* the sweep in which no rule applied to it any more */
	long visited;	  /* by this walk */
	/* when, by the rewriter's clock */
	long touched;		    /* its uses last changed */
	long tried;		    /* rules were last tried at it */
	long recent[SUB_REACH + 1]; /* what is so many steps down was touched */
};

/* In the order in which they count.  Rebuilding a value on replaced arguments can change its disorder alone,
 * and only when an argument became a move or a concatenation; a rule that changes disorder alone does not
 * make one of what was none, so all applications together end. */
struct sub_measure {
	double cost;
	double constants; /* operations on weights, which cost nothing; a number repeated is none */
	double disorder;
};

/* A value whose uses changed while an application is on trial. */
struct sub_touched {
	uint32_t value;
	int uses;
	long touched;
};

struct rewriter {
	struct sub_program *p;
	struct arena *arena;
	const struct sub_options *options;
	struct sub_trace *trace; /* NULL = nobody wants to know */
	const char *body;
	VEC(struct sub_note) notes; /* by value of p */
	struct sub_measure measure; /* of what lives */
	VEC(uint32_t) stack;	    /* of keep and release */
	bool trial;
	VEC(struct sub_touched) touched;
	const struct sub_range *states; /* what each is within; NULL = nothing is known */
	bool *barred;	   /* by parameter: its look-ups do not become tables */
	bool importing;	   /* what is made stood there before: no question whether it should */
	uint32_t root;	   /* what is being replaced: no part of its replacement */
	bool met_replaced; /* what was made had been replaced: its replacement was taken */
	bool finding;	   /* what is there already is found, and nothing made */
	long attempts, applications, walks, clock;
	int sweep;
};

struct sub_note *sub_note_of(struct rewriter *, sub_ref);
struct sub_fact sub_facts_of(const struct rewriter *, const struct sub_value *);
/* By state: what all bodies that compute it say, whatever the states are that they read. */
const struct sub_range *sub_state_ranges(const struct sub_program *, const struct sub_options *, struct arena *);
/* The value that stands for this one now. */
sub_ref sub_resolve(struct rewriter *, sub_ref);
/* Elements for a row, as the measure counts them. */
double sub_volume(const struct sub_program *, const struct sub_value *);

/* --- the measure (cost.c) --- */

/* One use more, one use less: a value's first use makes it and what it needs live, its last one lets them go.
 */
void sub_keep(struct rewriter *, sub_ref);
void sub_release(struct rewriter *, sub_ref);
/* All uses of one value become uses of another; the first is then dead. */
void sub_pass_on(struct rewriter *, sub_ref from, sub_ref to);
void sub_pass_back(struct rewriter *, sub_ref from, sub_ref to, int uses);
bool sub_less(struct sub_measure, struct sub_measure);

/* --- a match (match.c) --- */

/* An assign as a mapping: the index of each of the argument's dimensions, which are named `inner`, by the
 * variables around. */
struct sub_move {
	bool bound;
	int n, inner[SUB_MAX_VARS];
	struct sub_map map[SUB_MAX_VARS];
	bool fills; /* a map may leave its dimension: what is there is `fill` */
	double fill;
};

struct sub_bound_index {
	bool bound;
	int var, side[2]; /* side: under which the two sides of a cond have the axis, -1 = it is that of a
			     reduction */
};

enum { SUB_MAX_SCOPE = 48 };

struct sub_match {
	struct rewriter *w;
	const struct sub_parsed *rule;
	struct sub_use root;
	int scope[SUB_MAX_SCOPE], in_scope; /* variables that have a meaning in it */
	bool value_bound[SUB_MAX_NAMES];
	struct sub_use value[SUB_MAX_NAMES];
	struct sub_bound_index index[SUB_MAX_NAMES];
	struct sub_move move[SUB_MAX_NAMES];
	enum sub_op op[3]; /* that unary, binary, reduce stand for; by class */
	bool op_bound[3];
	bool turn_bound,
	    turned; /* what `binary` stands for has its arguments in the other order than the pattern */
	/* which order the arguments of each commutative operator are taken in, in the order they are met */
	unsigned swapped;
	int choices;
};

/* Whether the operators at a value are those of a pattern: what is quickly seen. */
bool sub_fits(struct rewriter *, const struct sub_term *, sub_ref);
/* Matches a rule's pattern at a value, in its own names; then in the next order of the arguments of
 * commutative operators, until there is none that matches. */
bool sub_match_at(struct sub_match *, struct rewriter *, const struct sub_parsed *, sub_ref at);
bool sub_match_next(struct sub_match *, bool first);
/* A variable of the range of this one that has no meaning in the match yet; -1 = there is none. */
int sub_fresh(struct sub_match *, int like);
int sub_fresh_extent(struct sub_match *, int64_t extent);

/* Whether an index of a dimension, which is named `inner`, may be outside of it. */
bool sub_leaves(const struct sub_program *, const struct sub_map *, int inner);

/* Whether any of a move's does, so that its fill is read. */
bool sub_fills(const struct sub_match *, const struct sub_move *);

/* --- conditions (condition.c) --- */

int sub_find_predicate(const char *name, size_t length);
/* The first predicate that does not hold; -1 = the condition holds. */
int sub_refuted(struct sub_match *, int ignore);

/* --- replacements (replace.c, compose.c) --- */

/* Values as used in the names of a match; value.i = 0: it cannot be built. */
typedef struct sub_use sub_function(struct sub_match *, const struct sub_term *call);

int sub_find_function(const char *name, size_t length);
sub_function *sub_function_at(int);
/* The variable that an index of a rule stands for; -1 = there is none. */
int sub_index_of(const struct sub_match *, const struct sub_term *);
struct sub_use sub_build(struct sub_match *, const struct sub_term *);
/* The replacement of a match, with the dimensions of what was matched, in its names; value.i = 0: there is
 * none. */
struct sub_use sub_build_replacement(struct sub_match *);
/* Adds a value whose variables are a match's, or a program's, under canonical names; found again however its
 * variables were named.  None when it cannot be: see SUB_UNBUILT. */
struct sub_use sub_make(struct rewriter *, struct sub_value);
/* The concatenation along `axis` of values that have it as sides[0] and sides[1]. */
struct sub_use sub_concatenate(struct sub_match *, int axis, const int *sides, struct sub_use,
			       struct sub_use);
/* The value moved: variables that the move does not know stay what they are. */
struct sub_use sub_moved(struct sub_match *, const struct sub_move *, struct sub_use);

sub_function sub_compose, sub_under, sub_through, sub_side, sub_join, sub_join_moved, sub_first, sub_second,
    sub_regroup, sub_concatenated;

/* --- the rest --- */

/* Whether the tables of a rewritten program keep to the budget; else parameters are barred, as few as may be.
 */
bool sub_tables_fit(const struct sub_program *, const struct sub_program *from, const struct sub_options *,
		    struct sub_trace *, bool *barred);
/* A value as text, as deep as a term. */
const char *sub_describe(struct rewriter *, sub_ref, const struct sub_term *as);

static inline bool sub_is_identity(const struct sub_map *m)
{
	return m->function == SUB_AFFINE && m->var >= 0 && m->scale == 1 && m->offset == 0 && !m->scale2;
}

static inline bool sub_map_uses(const struct sub_map *m, int var)
{
	return m->var == var || (m->scale2 && m->var2 == var);
}

static inline bool sub_same_map(const struct sub_map *a, const struct sub_map *b)
{
	return a->function == b->function && a->which == b->which && a->slot == b->slot && a->var == b->var &&
	       a->scale == b->scale && a->offset == b->offset && a->scale2 == b->scale2 &&
	       (!a->scale2 || a->var2 == b->var2);
}

static inline bool sub_use_has(const struct sub_use *u, int var)
{
	for (int i = 0; i < u->vars; i++)
		if (u->var[i] == var)
			return true;
	return false;
}

static inline bool sub_same_use(const struct sub_use *a, const struct sub_use *b)
{
	return a->value.i == b->value.i && a->vars == b->vars &&
	       memcmp(a->var, b->var, a->vars * sizeof *a->var) == 0;
}

#endif
