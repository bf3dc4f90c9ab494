/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrite rules: one table, rules.def, under one engine, optimize.c.
 *
 * A rule replaces what its pattern matches when its condition holds.  Every application lowers the measure (cost.c):
 * the volume of what is computed for each row, weighed by operator, values that depend on weights alone counting
 * nothing; of programs that cost the same, the one that is more normal.  So rewriting ends. */
#ifndef ESPALIER_REWRITE_RULES_H
#define ESPALIER_REWRITE_RULES_H

#include "subop/subop.h"

/* What a rule may change: a rule runs when `math` admits it. */
enum sub_exactness {
	SUB_BITS,     /* nothing: exact */
	SUB_ROUNDING, /* rounding, the sign of a zero: reassociate */
	SUB_DOMAIN,   /* results where an operand is special (0, inf, NaN), overflow: fast */
};

/* The cost of a replacement against what it replaces, for the same result. */
enum sub_cost {
	SUB_CHEAPER, /* always */
	SUB_EQUAL,   /* as it is; it pays by what it makes possible */
	SUB_DEARER   /* only where the condition brings constants together */
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
struct sub_rule {
	const char *name;
	enum sub_family law;
	enum sub_cost cost;
	enum sub_exactness exactness;
	const char *pattern, *condition, *replacement;
};

extern const struct sub_rule sub_rules[];
extern const int sub_rule_count;

/* --- rules as trees --- */

enum sub_term_kind {
	SUB_TERM_NAME,	 /* x */
	SUB_TERM_NUMBER, /* 2 */
	SUB_TERM_OP,	 /* an operator of sub_ops.def: op */
	SUB_TERM_CLASS,	 /* unary, binary, reduce: class */
	SUB_TERM_MOVE,	 /* A(t) */
	SUB_TERM_CALL,	 /* replacements only: function */
	SUB_TERM_INDEX	 /* an index variable, an argument of a call */
};

enum { SUB_MAX_ARGS = 6, SUB_MAX_NAMES = 8, SUB_MAX_PREDICATES = 6 };

struct sub_term {
	enum sub_term_kind kind;
	enum sub_op op;
	enum sub_class class;
	int function;
	double number;
	int name;  /* NAME: which value; MOVE: which map; INDEX: which variable */
	int index; /* OP, CLASS: the variable in brackets, -1 = none */
	int side;  /* of the variable: -1 = itself, 0 or 1 = that of a side of the cond along it */
	int inside; /* that of the dimension inside of this move which it indexes; -1 = itself */
	int args;
	const struct sub_term *arg[SUB_MAX_ARGS];
};

struct sub_predicate {
	int function;	      /* of condition.c */
	bool assumed;	      /* in `fast` mode: it has a question mark */
	const char *text;
	int args;
	const struct sub_term *arg[SUB_MAX_ARGS];
};

struct sub_parsed {
	const struct sub_rule *rule;
	const struct sub_term *pattern, *replacement;
	int predicates;
	struct sub_predicate predicate[SUB_MAX_PREDICATES];
	int values, indices, moves; /* names of each kind; their letters are in these */
	char value[SUB_MAX_NAMES], index[SUB_MAX_NAMES], move[SUB_MAX_NAMES];
};

/* A rule's texts as trees.  NULL, and `error` says why, when a text is not well-formed or names what no pattern binds. */
const struct sub_parsed *sub_parse_rule(struct arena *, const struct sub_rule *, struct str *error);

/* --- one application --- */

enum sub_outcome {
	SUB_APPLIED,
	SUB_NO_MATCH,  /* the pattern does not match */
	SUB_REFUTED,   /* the condition does not hold: which predicate is said */
	SUB_UNBUILT    /* what would replace it cannot be built (orders of variables that contradict, a move of a computed
			* value through the structure) or is what stands there */
};

/* Applies one rule at a value, all values of the program being alive, whatever that does to the measure, and however the rule's exactness and `math` relate
 * (`math` says what may be taken for granted).  The predicate number `ignore` is taken to hold (-1 = none).  Values are
 * added to the program; `*to` is the replacement under the value's own names, `*failed` the first predicate that does
 * not hold. */
enum sub_outcome sub_apply_rule(struct sub_program *, sub_ref at, const struct sub_parsed *, enum sub_math, int ignore,
				sub_ref *to, int *failed);

#endif
