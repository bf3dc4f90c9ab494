/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrite rules: one table, rules.def, under one engine, optimize.c.
 *
 * A rule replaces what its pattern matches when its condition holds.  Every application lowers the measure (cost.c):
 * the volume of what is computed for each row, weighed by operator, values that depend on weights alone counting
 * nothing; of programs that cost the same, the one that is more normal.  So rewriting ends. */
#ifndef ESPALIER_REWRITE_RULES_H
#define ESPALIER_REWRITE_RULES_H

#include "rewrite/rewrite.h"

/* What a rule may change: a rule runs when `math` admits it. */
enum rewrite_exactness {
	REWRITE_BITS,     /* nothing: exact */
	REWRITE_ROUNDING, /* rounding, the sign of a zero: reassociate */
	REWRITE_DOMAIN,   /* results where an operand is special (0, inf, NaN), overflow: fast */
};

/* The cost of a replacement against what it replaces, for the same result. */
enum rewrite_cost {
	REWRITE_CHEAPER, /* always */
	REWRITE_EQUAL,   /* as it is; it pays by what it makes possible */
	REWRITE_DEARER   /* only where the condition brings constants together */
};

/* Patterns are text: `sum[k](multiply(a, b))`.
 *
 *   sum[k](t)      an operator's spelling with its arguments; in brackets the variable that a reduction reduces or that
 *                  a cond joins along.  The arguments of add, multiply and smax match in either order
 *   unary(t) binary(t, u) reduce[k](t)   any operator of the class; the replacement means the same one
 *   A(t)           a capital letter: an assign, A being how it maps its variables to those of its argument
 *   x              any value; named twice, one value under the same index variables
 *   2              a value all of whose elements are this number
 *
 * A second A must map as the first one does.  What is inside of A(...) has index variables of its own.  Along the axis k
 * of a cond its sides have variables of their own, k0 and k1; so a name that stands under both sides lacks the axis.
 *
 * A replacement is written alike, and may call the functions of replace.c: compose(A, B, x).  kA is the variable that
 * the dimension inside of A(...) has which k indexes.  When it lacks variables
 * of what it replaces, or has them in another order, it is put in an assign.
 *
 * A condition is a list of predicates of condition.c over these names: `lacks(b, k), constant(a)`.  In `fast` mode a
 * predicate with a question mark, `positive?(x)`, is taken for granted. */
struct rewrite_rule {
	const char *name;
	enum rewrite_family law;
	enum rewrite_cost cost;
	enum rewrite_exactness exactness;
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
	int name;  /* NAME: which value; MOVE: which map; INDEX: which variable */
	int index; /* OP, CLASS: the variable in brackets, -1 = none */
	int side;  /* of the variable: -1 = itself, 0 or 1 = that of a side of the cond along it */
	int inside; /* that of the dimension inside of this move which it indexes; -1 = itself */
	int args;
	const struct rewrite_term *arg[REWRITE_MAX_ARGS];
};

struct rewrite_predicate {
	int function;	      /* of condition.c */
	bool assumed;	      /* in `fast` mode: it has a question mark */
	const char *text;
	int args;
	const struct rewrite_term *arg[REWRITE_MAX_ARGS];
};

struct rewrite_parsed {
	const struct rewrite_rule *rule;
	const struct rewrite_term *pattern, *replacement;
	int predicates;
	struct rewrite_predicate predicate[REWRITE_MAX_PREDICATES];
	int values, indices, moves; /* names of each kind; their letters are in these */
	char value[REWRITE_MAX_NAMES], index[REWRITE_MAX_NAMES], move[REWRITE_MAX_NAMES];
};

/* A rule's texts as trees.  NULL, and `error` says why, when a text is not well-formed or names what no pattern binds. */
const struct rewrite_parsed *rewrite_parse_rule(struct arena *, const struct rewrite_rule *, struct str *error);

/* --- one application --- */

enum rewrite_outcome {
	REWRITE_APPLIED,
	REWRITE_NO_MATCH,  /* the pattern does not match */
	REWRITE_REFUTED,   /* the condition does not hold: which predicate is said */
	REWRITE_UNBUILT    /* what would replace it cannot be built (orders of variables that contradict, a move of a computed
			* value through the structure) or is what stands there */
};

/* Applies one rule at a value, all values of the program being alive, whatever that does to the measure, and however the rule's exactness and `math` relate
 * (`math` says what may be taken for granted).  The predicate number `ignore` is taken to hold (-1 = none).  Values are
 * added to the program; `*to` is the replacement under the value's own names, `*failed` the first predicate that does
 * not hold. */
enum rewrite_outcome rewrite_apply_rule(struct sub_program *, sub_ref at, const struct rewrite_parsed *, enum rewrite_math, int ignore,
				sub_ref *to, int *failed);

#endif
