/* The rewrite rules: one table, rules.def, under one engine, optimize.c.
 *
 * A rule replaces what its pattern matches when its condition holds.  Every application lowers the measure (measure.c):
 * the volume of what is computed for each row, weighed by operator, values that depend on weights alone counting
 * nothing; of programs that cost the same, the one that is more normal.  So rewriting ends. */
#ifndef ESPALIER_SUBOP_RULES_H
#define ESPALIER_SUBOP_RULES_H

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

/* Patterns are text: `sum[k](multiply(a, b))`.  An operator's spelling with its arguments in parentheses, a reduction's
 * variable in brackets, a number, or a name.  A name stands for any value; named twice, for one value under the same index
 * variables.  The arguments of add, multiply and smax match in either order.
 * A condition is a list of predicates over these names: `lacks(b, k), constant(a)`.  In `fast` mode a predicate with a
 * question mark, `positive?(x)`, is taken for granted. */
struct sub_rule {
	const char *name;
	enum sub_family law;
	enum sub_cost cost;
	enum sub_exactness exactness;
	const char *pattern, *condition, *replacement;
};

extern const struct sub_rule sub_rules[];
extern const int sub_rule_count;

#endif
