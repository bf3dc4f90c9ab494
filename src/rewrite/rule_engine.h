/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of the rewrite engine share: facts about values, the state of a match, the measure. */
#ifndef ESPALIER_REWRITE_RULE_ENGINE_H
#define ESPALIER_REWRITE_RULE_ENGINE_H

#include "rewrite/rules.h"

/* --- facts about a value, found once when it is added (value_range.c) --- */

/* The terms of a sum that the lowering may add in another order than the text, with a rounding for each.  A
 * value that is no sum is one term. */
struct rewrite_chain {
	double terms;
	double low, high; /* magnitudes of their least values together, and of their largest */
};

enum { REWRITE_OPERATION = 8, REWRITE_MOVE = 2 }; /* the cost of a multiplication, and of moving an element */

struct rewrite_fact {
	bool constant; /* depends on weights alone, and has no leading dimension */
	bool uniform;  /* every element is `number` */
	bool barred;   /* depends on a parameter whose look-ups must not become tables */
	double number;
	struct rewrite_range range;
	struct rewrite_chain chain;
	double cost; /* of computing it once for a row */
	double disorder;
	double pieces; /* the number of values that it concatenates */
};

/* The most steps from the root of a pattern down to what it binds. */
enum { REWRITE_REACH = 5 };

/* The state of a value in the current body. */
struct rewrite_note {
	struct rewrite_fact fact;
	uint32_t forward; /* the value that replaced it; 0 = none */
	int uses;	  /* by live values and stores, each resolved; 0 = dead */
	int settled;	  /* the sweep in which no rule applied to it any more */
	long visited;	  /* the last walk that came to it */
	/* times, by the rewriter's clock */
	long touched;			/* when its uses last changed */
	long tried;			/* when rules were last tried at it */
	long recent[REWRITE_REACH + 1]; /* when a value so many steps down was last touched */
};

/* Compared lexicographically in this order.  Rebuilding a value on replaced arguments changes at most its
 * disorder, and only if an argument became a move or a concatenation; a rule that changes disorder alone does
 * not turn another operator into one of these.  So all applications together end. */
struct rewrite_measure {
	double cost;
	double constants; /* operators on weights, which cost nothing; a repeated number counts as none */
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
	struct rewrite_trace *trace; /* may be NULL */
	const char *body;
	double runs; /* of the body, for a row */
	VEC(struct rewrite_note) notes; /* by value of p */
	struct rewrite_measure measure; /* of the live values */
	VEC(uint32_t) stack;		/* scratch of walks over values */
	bool trial;			/* changes of uses go to `touched`, too */
	VEC(struct rewrite_touched) touched;
	const struct rewrite_range *states; /* by state; NULL = nothing is known */
	bool rounded; /* the program says how sums are rounded, so that no operator is computed otherwise */
	bool *barred;			    /* by parameter: its look-ups do not become tables */
	bool importing;	   /* values of the source program are added, which may look up what rules may not */
	uint32_t root;	   /* the value being replaced, which its replacement must not use */
	bool met_replaced; /* an added value had been replaced before, and its replacement was returned */
	bool finding;	   /* values are only found, none is added */
	long attempts, applications, walks, clock;
	int sweep;
};

struct rewrite_note *rewrite_note_of(struct rewriter *, sub_ref);
struct rewrite_fact rewrite_facts_of(const struct rewriter *, const struct sub_value *);
struct rewrite_range rewrite_join_ranges(struct rewrite_range, struct rewrite_range);
/* Narrows the range of a value that is a mean of two others with weights t and 1 - t (mean_range.c). */
void rewrite_bound_mean(const struct rewriter *, const struct sub_value *, struct rewrite_range *);
/* By state: a range that all bodies which compute it keep to, whatever states they read (state_range.c). */
const struct rewrite_range *rewrite_find_state_ranges(const struct sub_program *,
						      const struct rewrite_options *, struct arena *);
/* A bound of the magnitudes of a value, infinite if none is known. */
struct rewrite_bound {
	double most;
	bool per_edge; /* it is `most` for each edge of the row: sums of so many terms may be larger by rounding */
};
/* By value of a program that was contracted, likewise. */
const struct rewrite_bound *rewrite_find_bounds(const struct sub_program *, const struct rewrite_options *,
						struct arena *);
/* A product with weights that is, perhaps with others, one sum of integers. */
struct rewrite_integer_link {
	const struct sub_value *sum; /* the accumulation */
	struct sub_use w;	     /* its weights */
	double bound;		     /* of the magnitudes of what they multiply; for each edge, if the sum is */
};
/* How a sum is computed in integers, in f16, or in bf16 (doc/precision.md). */
struct rewrite_integers {
	int links; /* 0 = the value is no such sum */
	struct rewrite_integer_link *link;
	double terms, levels, most, limit;
	double relative; /* in bf16: the largest error of a product, of its size; 0 = in integers */
	double dropped; /* what is left out of a product of integers, in steps of the weights */
	bool per_edge;
};
/* By value: the first source that it is computed of, numbers aside, or 0; in the arena. */
const uint32_t *rewrite_find_sources(const struct sub_program *, struct arena *);
/* By value of a program that was contracted: the sums of integers, or in bf16, that quantisation makes of it. */
const struct rewrite_integers *rewrite_find_integers(const struct sub_program *, const struct rewrite_options *,
						     struct arena *);
/* A bound of the error of a sigmoid or tanh of fewer places; 0 of other operators. */
double rewrite_function_error(enum sub_op);
/* By value, likewise: a bound of the error of the sigmoid or tanh of fewer places that it becomes; 0 = none. */
const double *rewrite_find_function_errors(const struct sub_program *, const struct rewrite_options *,
					   struct arena *);
/* The value that stands for this one now. */
sub_ref rewrite_resolve(struct rewriter *, sub_ref);

/* --- the measure (cost.c) --- */

/* Adds or removes one use.  The first use of a value makes it and what it needs live, the last one dead. */
void rewrite_add_use(struct rewriter *, sub_ref);
void rewrite_drop_use(struct rewriter *, sub_ref);
/* Makes all uses of one value uses of another, so that the first is dead. */
void rewrite_transfer_uses(struct rewriter *, sub_ref from, sub_ref to);
void rewrite_return_uses(struct rewriter *, sub_ref from, sub_ref to, int uses);
bool rewrite_is_lower(struct rewrite_measure, struct rewrite_measure);

/* --- a match (match.c) --- */

/* The maps of an assign: for each dimension of the argument, named inner[i], its index by the variables
 * outside. */
struct rewrite_move {
	bool bound;
	int n, inner[SUB_MAX_VARS];
	struct sub_map map[SUB_MAX_VARS];
	bool fills; /* a map may leave its dimension, where elements are `fill` */
	double fill;
};

struct rewrite_bound_index {
	bool bound;
	struct sub_vars over; /* what a reduction reduces, or the axis of a cond */
	int side[2];	      /* the names that the two sides of a cond have for the axis; -1 = no cond */
};

enum { REWRITE_MAX_SCOPE = 48 };

struct rewrite_match {
	struct rewriter *w;
	const struct rewrite_parsed *rule;
	struct sub_use root;
	int scope[REWRITE_MAX_SCOPE], in_scope; /* the variables in use, and their number */
	bool value_bound[REWRITE_MAX_NAMES];
	struct sub_use value[REWRITE_MAX_NAMES];
	struct rewrite_bound_index index[REWRITE_MAX_NAMES];
	struct rewrite_move move[REWRITE_MAX_NAMES];
	enum sub_op op[3]; /* what unary, binary, reduce stand for; by class */
	bool op_bound[3];
	/* what `binary` stands for has its arguments in the other order than the pattern */
	bool order_bound, reversed;
	unsigned swapped; /* by commutative operator, as they are met: a bit = its arguments match in the
			     other order */
	int choices;	  /* commutative operators met so far */
};

/* Whether the operators at a value are those of a pattern: a quick test before matching. */
bool rewrite_may_match(struct rewriter *, const struct rewrite_term *, sub_ref);
/* Matches the pattern of a rule at a value, in the value's own names; then again with the next order of the
 * arguments of commutative operators, until no further order matches. */
bool rewrite_find_match(struct rewrite_match *, struct rewriter *, const struct rewrite_parsed *, sub_ref at);
bool rewrite_next_match(struct rewrite_match *, bool first);
/* A variable of the range of `like`, or of this extent, that the match does not use; -1 = there is none. */
int rewrite_new_var_like(struct rewrite_match *, int like);
int rewrite_new_var(struct rewrite_match *, int64_t extent);

/* Whether a move reads its fill: an index may be outside of its dimension. */
bool rewrite_reads_fill(const struct rewrite_match *, const struct rewrite_move *);

/* --- conditions (condition.c) --- */

int rewrite_find_predicate(const char *name, size_t length);
/* Finds the first predicate that does not hold, but for number `ignore`; -1 = the condition holds. */
int rewrite_find_refuted(struct rewrite_match *, int ignore);

/* --- replacements (replace.c, compose.c, embed.c) --- */

/* A function of replacements: builds a value, under names of the match; value.i = 0: it cannot be built. */
typedef struct sub_use rewrite_function(struct rewrite_match *, const struct rewrite_term *call);

int rewrite_find_function(const char *name, size_t length);
rewrite_function *rewrite_function_at(int);
/* The variables that an index of a rule stands for; -1 = one is nothing inside of a move. */
struct sub_vars rewrite_indices_of(const struct rewrite_match *, const struct rewrite_term *);
/* The one variable that it stands for; -1 = none, or several. */
int rewrite_index_of(const struct rewrite_match *, const struct rewrite_term *);
struct sub_use rewrite_build_term(struct rewrite_match *, const struct rewrite_term *);
/* Builds the replacement of a match with the dimensions, in order, of the matched value; value.i = 0: it
 * cannot be built. */
struct sub_use rewrite_build_replacement(struct rewrite_match *);
/* Adds a value, renaming its variables canonically, so that values that differ in names alone are one;
 * returns its use under the given names.  None if it cannot be added: see REWRITE_UNBUILT. */
struct sub_use rewrite_add_value(struct rewriter *, struct sub_value);
/* The concatenation along `axis` of values that have it as sides[0] and sides[1]. */
struct sub_use rewrite_concatenate(struct rewrite_match *, int axis, const int *sides, struct sub_use,
				   struct sub_use);
/* Applies a move to a value; variables that the move does not map stay. */
struct sub_use rewrite_move_value(struct rewrite_match *, const struct rewrite_move *, struct sub_use);

rewrite_function rewrite_compose_moves, rewrite_rename_outside, rewrite_rename_inside, rewrite_select_side,
    rewrite_join_slices, rewrite_join_arguments, rewrite_slice_first, rewrite_slice_second,
    rewrite_regroup_sides, rewrite_find_concatenation, rewrite_embed_kernel, rewrite_drop_border, rewrite_make_border;

/* --- the rest --- */

/* Checks that the tables of a rewritten program keep to the budget.  If not, bars the parameters of the
 * largest table and returns false: the program must be rewritten again.  True if there is nothing left to
 * bar. */
bool rewrite_check_tables(const struct sub_program *, const struct sub_program *from,
			  const struct rewrite_options *, struct rewrite_trace *, bool *barred);
/* Prints a value as text, as deep as a term. */
const char *rewrite_describe_value(struct rewriter *, sub_ref, const struct rewrite_term *as);

#endif
