/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whether a program that computes something else almost everywhere is right, and where: partially equivalent programs
 * (Wang et al., PET, OSDI 2021).
 *
 * A value is linear if it is a sum of terms, each a whole number times a product of elements of leaves, at most one
 * element of each leaf.  Leaves are what other operators compute, or nothing does: inputs, weights, states.
 *
 * The positions of a linear value fall into boxes, products of intervals, in each of which the terms are the same but for
 * where their factors are read: from one position to the next each factor moves by a fixed step.  So two linear values
 * that are equal at a few positions of a box that is one of both are equal in all of it.  That they are equal at a position
 * is found by computing both of random leaves modulo a prime.
 *
 * Nothing here depends on threads, on time or on addresses: what is random is a hash of the leaf, the index and the
 * round. */
#ifndef ESPALIER_MUTATE_MUTATE_H
#define ESPALIER_MUTATE_MUTATE_H

#include "subop/subop.h"

enum {
	MUTATE_MAX_CUTS = 4096,	   /* of a variable */
	MUTATE_MAX_WORK = 1 << 22, /* crossings that are looked for to find the cuts of a value */
	MUTATE_MAX_CONDITION = 256, /* operators of a condition of indices */
	MUTATE_MAX_MOTIONS = 16,   /* of a value */
	MUTATE_MAX_BOXES = 1 << 16,
	MUTATE_MAX_NUMBER = 1024,  /* the largest number that counts as a coefficient; others are leaves */
	MUTATE_ROUNDS = 4,
	MUTATE_MAX_REGIONS = 16, /* regions that a correction is joined of */
	MUTATE_ROOM = 256	 /* values that a mutant and its correction take at most */
};

/* A row of more elements is not computed as a whole, nor one that takes more elements of intermediate values. */
enum { MUTATE_MAX_CENSUS = 1 << 14, MUTATE_MAX_CENSUS_STEPS = 1 << 25 };
/* The most elements that a comparison computes, those of intermediate values counted each time. */
#define MUTATE_MAX_STEPS (1l << 28)

/* Where the intervals of a variable begin, rising, without the first one, which begins at 0. */
typedef VEC(int64_t) mutate_cuts;

/* A factor of terms: an element of the leaf, whose index along dimension d moves by step[d * vars + i] when the index of
 * the value along its i-th of `vars` variables rises by one. */
struct mutate_factor {
	sub_ref leaf;
	const int64_t *step;
};

/* Terms whose factors are of the same leaves, rising, and move alike. */
struct mutate_motion {
	int factors;
	struct mutate_factor *factor;
};

enum mutate_kind {
	MUTATE_UNKNOWN, /* no value of the program before it needs it */
	MUTATE_LINEAR,
	MUTATE_LEAF
};

/* What is known of a value.  That of a leaf has one motion, of itself. */
struct mutate_form {
	enum mutate_kind kind;
	const char *why; /* LEAF: what makes a value of linear operators one, NULL = it is none */
	mutate_cuts cuts[SUB_MAX_VARS]; /* by position of its variables */
	int motions;
	struct mutate_motion motion[MUTATE_MAX_MOTIONS];
	double weight; /* at least the sum of the coefficients' magnitudes at any position */
};

/* The forms of all values of a program, by value; in its arena. */
struct mutate_form *mutate_find_forms(const struct sub_program *);
/* Finds the form of a value, and of what it is computed by, with these values as leaves; `forms` has an entry for each value of the
 * program, MUTATE_UNKNOWN where none was found before. */
void mutate_find_forms_over(const struct sub_program *, const sub_ref *leaf, int n, struct mutate_form *forms, sub_ref);
/* The leaves of a value, rising; `leaf` has room for as many as the program has values.  Returns how many. */
int mutate_list_leaves(const struct sub_program *, const struct mutate_form *forms, sub_ref, sub_ref *leaf);
/* How many operators lie between a value and its leaves; `seen` has room for each value of the program. */
int mutate_count_operators(const struct sub_program *, const struct mutate_form *forms, sub_ref, bool *seen);
/* The number of boxes; more than MUTATE_MAX_BOXES are not counted further. */
long mutate_count_boxes(const struct sub_program *, const struct mutate_form *, sub_ref);

/* Positions, by variable of a value: first up to, but not, end.  A variable without an extent (nodes, edges) has one
 * interval, 0 up to INT32_MAX. */
struct mutate_box {
	int64_t first[SUB_MAX_VARS], end[SUB_MAX_VARS];
};

/* Decides whether a search goes on: asked before each candidate and each proof; when it returns false, the search is given up. */
struct mutate_watch {
	bool (*goes_on)(void *context); /* NULL = always */
	void *context;
};

/* Two values with the same variables, the original and the mutant. */
struct mutate_comparison {
	const char *refused; /* why they were not compared, NULL = they were; the rest is then of no use */
	int vars;
	int rounds;	/* each with random leaves of its own */
	int degree;	/* the most factors of a term */
	int classes;	/* the most motions of terms of the same leaves: it says how many positions are needed */
	long boxes;
	long positions;	/* at which they were computed, in all boxes */
	VEC(struct mutate_box) differ; /* joined where they are neighbours */
	double elements, wrong;	       /* of a row of the value, and of these in boxes that differ */
};

/* The bound on the probability that a box is called equal which is not. */
double mutate_bound_error(const struct mutate_comparison *);
/* Compares two values of one program.  What it calls equal is equal at every position, with that probability. */
void mutate_compare(const struct sub_program *, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
		    struct mutate_comparison *);

/* The same by another number of rounds, which is the power of the probability; `ordered`: of one accumulation and values that
 * move its elements, which are equal only if the same terms are added in the same order. */
void mutate_compare_by(const struct sub_program *, const struct mutate_form *forms, sub_ref original, sub_ref mutant, bool ordered,
		       int rounds, struct mutate_comparison *);

/* Adds what is equal to the original, a sum of products, everywhere: the mutant, an assign with the same variables, and in the boxes
 * in which it differs the original.  *recomputed: how many elements of a row that is.  None if it takes too many regions. */
sub_ref mutate_correct(struct sub_program *, sub_ref original, sub_ref mutant, const struct mutate_comparison *, double *recomputed);

/* What is found by computing every element of a row of two values that were compared, of further random leaves. */
struct mutate_census {
	long elements, differ;
	long missed; /* of those that differ, in boxes that are called equal: there are none, but by chance */
};

/* False if there are more elements than `most`, or they take more elements of intermediate values than `most_steps`.
 * Variables without an extent have one index. */
bool mutate_compute_most(const struct sub_program *, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
			 const struct mutate_comparison *, double most, long most_steps, struct mutate_census *);
/* The same for as many as a comparison that is printed computes. */
bool mutate_compute_all(const struct sub_program *, const struct mutate_form *forms, sub_ref original, sub_ref mutant,
			const struct mutate_comparison *, struct mutate_census *);

/* An element of a linear value modulo SUB_FIELD_PRIME, of leaves that are random and differ from round to round. */
struct mutate_sampler {
	const struct sub_program *p;
	const struct mutate_form *forms;
	uint64_t round;
	bool ordered; /* a sum's elements count by their place in it, so that sums in another order are other values */
	long steps; /* elements computed so far; from MUTATE_MAX_STEPS on they are all 0 */
};
uint64_t mutate_sample(struct mutate_sampler *, sub_ref, const int64_t *index);

/* Prints a blank and [*, 0..2, 7..9]: all nodes, indices below 2, those from 7 to 8. */
void mutate_print_box(const struct mutate_box *, int vars, struct str *);
/* Prints the linear values that each body stores or other operators use, their leaves and boxes, and where each result
 * differs from the first one of the same shape and leaves. */
void mutate_print_boxes(const struct sub_program *, struct str *);

#endif
