/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What print_model.c and print_nest.c share: a model being printed. */
#ifndef ESPALIER_RA_PRINT_H
#define ESPALIER_RA_PRINT_H

#include "ra/syntax.h"

struct ra_printer {
	const struct ra_model *m;
	struct str *s;
	struct arena *arena;
	const char **name; /* of a node; NULL = written where it is used */
	uint32_t *uses;	   /* of a node: by others, states and outputs */
	bool *named;	   /* shared or deep: needs a name */
	uint32_t *home; /* of a node that depends on index variables: the innermost node that introduces one; else 0 */
	const char **index; /* names of index variables, where they are introduced */
	VEC(const char *) open; /* the names of those that are introduced around */
	bool *plain;	    /* by index variable: an axis tells its extent */
	bool *each;	   /* depends on the child that a sum is at: its name lives inside that sum */
	uint32_t *stamp, walk; /* the last walk that visited it; walks so far */
	struct map taken;  /* names that locals must not have: those of the model, and of index variables */
	struct map declared; /* those of the model */
	int locals;
	const char *child; /* the name for a sum's child */
};

/* How tightly operators bind, the loosest first. */
enum ra_precedence { ANY, OR, AND, COMPARE, SUM, PRODUCT, SIGN, PRIMARY };

/* --- print_model.c --- */

/* Prints a value by its name or, in brackets where its operator binds more loosely than `least`, as it is defined. */
void ra_print_use(struct ra_printer *, ra_ref, enum ra_precedence least);
/* Prints the value of a root, in parentheses with the names that it needs, if any: of what is inside a sum over children,
 * of what the node `home` introduces index variables for (0 = none). */
void ra_print_with_names(struct ra_printer *, uint32_t root, bool inside, uint32_t home);

/* --- print_nest.c: index notation --- */

/* Finds where nodes that depend on index variables have their names, and the variables whose extents axes tell. */
void ra_find_homes(struct ra_printer *);
void ra_print_element(struct ra_printer *, const struct ra_node *);
/* Prints `sum(number for i, j)`, max or min. */
void ra_print_over(struct ra_printer *, uint32_t);
/* Prints `[i, j] = number`. */
void ra_print_nest(struct ra_printer *, uint32_t);

#endif
