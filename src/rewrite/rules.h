/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrite rules: one table, rules.def, under one engine, optimize.c.
 *
 * A rule replaces what its pattern matches when its condition holds.  Every application lowers the measure
 * (cost.c): first the elements computed per row, weighed by operator, where constants cost nothing; then the
 * operators on constants; then the disorder.  So rewriting ends. */
#ifndef ESPALIER_REWRITE_RULES_H
#define ESPALIER_REWRITE_RULES_H

#include "rewrite/rewrite.h"

/* What a rule may change in results; `math` decides which rules run. */
enum rewrite_exactness {
	REWRITE_BITS,	  /* nothing; runs in every mode */
	REWRITE_ROUNDING, /* rounding, the sign of a zero; runs in reassociate and fast */
	REWRITE_SPECIAL,  /* results where an operand is special (0, inf, NaN), or overflow; runs in fast */
};

/* The types of values that a rule holds for. */
enum rewrite_types {
	REWRITE_FLOATS,	  /* f32 */
	REWRITE_INTEGERS, /* f32, and i32 and i64 in two's complement, where nothing changes */
	REWRITE_ALL	  /* every type */
};

/* The cost of a replacement compared with what it replaces. */
enum rewrite_cost {
	REWRITE_CHEAPER, /* always lower */
	REWRITE_EQUAL,	 /* the same unless values are shared or become constant, where it is lower */
	REWRITE_COSTLIER /* higher unless values are shared or become constant */
};

/* Patterns are text: `sum[k](multiply(a, b))`.
 *
 *   sum[k](t)      The spelling of an operator with its arguments.  In brackets stands the variable that a
 *                  reduction reduces or that a cond joins along: of a reduction of several variables all,
 *                  in order.  In a replacement sum[k,j](t) reduces those of k and then those of j.  The arguments of operators that commute,
 *                  and the factors of fma and accumulate, match in either order.
 *   unary(t), binary(t, u), reduce[k](t)
 *                  Any operator of the class; in the replacement the same one.
 *   A(t)           A capital letter: an assign.  A is its maps, from its variables to the dimensions of its
 *                  argument.
 *   x              Any value.  Named twice, it is one value under the same index variables.
 *   2              A value all of whose elements are this number; in a replacement, a number of the type of what is
 *                  replaced.
 *
 * A second A must have the same maps as the first.  Index variables inside of A(...) are not those outside.
 * Along the axis k of a cond its sides have variables of their own, k0 and k1; so a name that stands under
 * both sides lacks the axis.
 *
 * A replacement is written likewise, and may call the functions of replace.c: compose(A, B, x).  kA is the
 * variable of the dimension inside of A(...) that k indexes.  If a replacement lacks variables of what it
 * replaces, or has them in another order, an assign is put around it.
 *
 * A condition is a list of predicates of condition.c over these names: `lacks(b, k), constant(a)`.  In `fast`
 * mode a predicate with a question mark, `positive?(x)`, is assumed to hold. */
struct rewrite_rule {
	const char *name;
	enum rewrite_family family;
	enum rewrite_cost cost;
	enum rewrite_exactness exactness;
	enum rewrite_types types;
	const char *pattern, *condition, *replacement;
};

extern const struct rewrite_rule rewrite_rules[];
extern const int rewrite_rule_count;

/* --- rules as trees --- */

enum rewrite_term_kind {
	REWRITE_TERM_NAME,	 /* x */
	REWRITE_TERM_NUMBER, /* 2 */
	REWRITE_TERM_OP,	 /* an operator of sub_ops.def: op */
	REWRITE_TERM_CLASS,	 /* unary, binary, reduce: class */
	REWRITE_TERM_MOVE,	 /* A(t) */
	REWRITE_TERM_CALL,	 /* replacements only: function */
	REWRITE_TERM_INDEX	 /* an index variable, an argument of a call */
};

enum { REWRITE_MAX_ARGS = 6, REWRITE_MAX_NAMES = 8, REWRITE_MAX_PREDICATES = 6 };

struct rewrite_term {
	enum rewrite_term_kind kind;
	enum sub_op op;
	enum sub_class class;
	int function;
	double number;
	int name;   /* NAME, MOVE, INDEX: the number of the name among those of its kind */
	int index;  /* OP, CLASS: the variable in brackets, -1 = none */
	int second; /* the one after a comma, -1 = none */
	int side;   /* of a variable: -1 = itself, 0 or 1 = that of a side of the cond along it */
	int inside; /* the move inside of which the variable is meant (kA); -1 = outside of moves */
	int args;
	const struct rewrite_term *arg[REWRITE_MAX_ARGS];
};

struct rewrite_predicate {
	int function; /* of condition.c */
	bool assumed; /* it has a question mark: in `fast` mode it is assumed to hold */
	const char *text;
	int args;
	const struct rewrite_term *arg[REWRITE_MAX_ARGS];
};

struct rewrite_parsed {
	const struct rewrite_rule *rule;
	bool floats; /* it may change values of f32; cleared where `math` admits it for other types alone */
	const struct rewrite_term *pattern, *replacement;
	int predicates;
	struct rewrite_predicate predicate[REWRITE_MAX_PREDICATES];
	int values, indices, moves; /* the number of names of each kind; these are their letters */
	char value[REWRITE_MAX_NAMES], index[REWRITE_MAX_NAMES], move[REWRITE_MAX_NAMES];
};

/* Parses the texts of a rule.  NULL, with the reason in `error`, if a text is not well-formed or uses a name
 * that the pattern does not bind. */
struct rewrite_parsed *rewrite_parse_rule(struct arena *, const struct rewrite_rule *, struct str *error);

/* --- one application --- */

enum rewrite_outcome {
	REWRITE_APPLIED,
	REWRITE_NO_MATCH, /* the pattern does not match */
	REWRITE_REFUTED,  /* a predicate of the condition does not hold */
	REWRITE_UNBUILT	  /* the replacement is the value itself, or cannot be built: its orders of variables
			   * contradict, or it reads a computed value of other nodes */
};

/* Applies one rule at a value of a program all of whose values count as live, whatever the measure becomes
 * and whether or not `math` admits the rule: `math` only decides which predicates are assumed to hold, as is
 * predicate number `ignore` (-1 = none).  Adds values to the program.  Sets `*to` to the replacement under
 * the value's own names, or `*failed` to the first predicate that does not hold. */
enum rewrite_outcome rewrite_apply_rule(struct sub_program *, sub_ref at, const struct rewrite_parsed *,
					enum rewrite_math, int ignore, sub_ref *to, int *failed);

#endif
