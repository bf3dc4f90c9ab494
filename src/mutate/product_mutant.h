/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants of sums of products of any body: several computed as one, or one as several, by the operators of products.def.
 *
 *     %5[n,i] = accumulate_j b[i], W[i,j], x[n,j]        %7[n,k] = accumulate_j c[k], V[k,j], x[n,j]
 *
 * joined along their dimension 0 are parts of one product, with V below W:
 *
 *     %9[n,l] = accumulate_j cond(b, c)[l], cond(W, V)[l,j], x[n,j]
 *
 * What the first value reads in a place that is not joined, all are supposed to read: where that is not so, the mutant is wrong, and
 * the proof says where. */
#ifndef ESPALIER_MUTATE_PRODUCT_MUTANT_H
#define ESPALIER_MUTATE_PRODUCT_MUTANT_H

#include "mutate/mutate.h"

enum mutate_operator {
	MUTATE_NO_OPERATOR,
#define MUTATE_OPERATOR(name, spelling, dim, number, values, meaning) MUTATE_##name,
#include "mutate/products.def"
#undef MUTATE_OPERATOR
	MUTATE_OPERATORS
};

enum {
	MUTATE_MAX_JOINED = 8,		/* values of one mutant */
	MUTATE_PRODUCTS_KEPT = 64,	/* mutants of a body that are kept */
	MUTATE_MAX_PRODUCTS = 4000,	/* mutants of a body that are built */
	MUTATE_MAX_CHECKED_WORK = 1 << 23 /* work of a mutant and its originals, all of whose elements are computed as a check */
};

/* A row of products.def. */
struct mutate_operator_traits {
	const char *spelling;
	bool dim, number, values; /* what follows it in a line */
};
extern const struct mutate_operator_traits mutate_operators[];

/* What is done with which values. */
struct mutate_regroup {
	enum mutate_operator op;
	int dim;    /* of the result, leading dimensions not counted */
	int number; /* a multiple, or a number of parts */
	int n;
	sub_ref value[MUTATE_MAX_JOINED]; /* APPEND: each begins with the one behind it */
};

/* How many values are replaced: all, or the first one alone. */
int mutate_count_replaced(const struct mutate_regroup *);
/* What questions about many groups of values share, made once for a program.  Values that are added to it later have no part in it. */
struct mutate_relations {
	const struct sub_program *p;
	uint32_t *bodies; /* by value: the least value that the same bodies compute */
	int *leaf, *inner; /* by value: the number + 1 of the traversal up in which leaves compute it, and nothing else does, and of one
			    * in which inner nodes do; 0 = there is none */
	uint32_t *seen;	  /* by value: the last question that came by */
	uint32_t asked;	  /* questions so far */
};
struct mutate_relations mutate_relate_values(const struct sub_program *);
/* Whether values may be of one mutant at all: sums of products in f32 that the same bodies compute, none of which needs another,
 * or each of which begins with the one behind it.  NULL, or why not; takes no memory. */
const char *mutate_refuse_regroup(struct mutate_relations *, const struct mutate_regroup *);
/* Adds the mutant to the program: whole[k] is an assign with the variables of value k.  NULL, or why there is none. */
const char *mutate_build_products(struct sub_program *, const struct mutate_regroup *, sub_ref *whole);
/* Products of a row, and elements that are moved, each for a quarter of one; what depends on weights alone is computed when they are
 * bound, and counts for nothing. */
double mutate_count_row_work(const struct sub_program *, sub_ref);
/* The operands of the values, which proofs count as leaves; `leaf` has room for three of each value.  Returns how many. */
int mutate_list_operands(const struct sub_program *, const struct mutate_regroup *, sub_ref *leaf);

/* What is known of a mutant, over all of its values. */
struct mutate_products {
	struct mutate_regroup r;
	struct mutate_comparison proof[MUTATE_MAX_JOINED];
	bool same_bits; /* the same numbers are added in the same order, so that no bit of a result changes */
	double work, original; /* products and moved elements of a row: of the mutant with its correction, and of the originals */
	double recomputed;
};

/* Why there is no mutant that may be used, NULL = there is one: adds it, corrected, to the program, and now[k] is what stands in
 * place of value k.  `exact`: its bits must be those of the originals.  `rounds` of each comparison, at most MUTATE_ROUNDS.
 * `forms` has room for all values of the program and MUTATE_ROOM further ones. */
const char *mutate_make_products(struct sub_program *, const struct mutate_regroup *, bool exact, int rounds, struct mutate_form *forms,
				 struct mutate_products *, sub_ref *now);

/* The same of a value of leaves that is computed as another one is of inner nodes: where that differs anywhere there is none.  Unless
 * it is NULL, *census counts all elements of the linear values that the proof compares. */
const char *mutate_make_like(struct sub_program *, const struct mutate_regroup *, bool exact, int rounds, struct mutate_form *forms,
			     struct mutate_products *, struct mutate_census *census, sub_ref *now);

/* Mutants of one body. */
struct mutate_product_search {
	int products; /* sums of products of the body */
	long built;   /* mutants that were built */
	bool ended;   /* before all were: as many as are built, or kept, were found */
	int n;
	struct mutate_products *found; /* in the arena */
};
/* Searches them, but for those of values that are `done`, which has an entry for each value and gets those of the body; the program,
 * whose relations are given, is as before.  False if the search was given up: then there are those that were found. */
bool mutate_find_products(struct sub_program *, const struct sub_body *, bool exact, const struct mutate_watch *,
			  struct mutate_relations *, bool *done, struct mutate_product_search *);

/* Prints the mutants of products of all bodies as mutate_print_mutants prints others.  False if the search was given up. */
bool mutate_print_products(struct sub_program *, const uint32_t *number, bool exact, bool every, const struct mutate_watch *,
			   struct str *);

#endif
