/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants: a sum of products that reads an image through windows, computed of a reorganised image and brought back to its
 * shape; corrected, where it is not equal, by the original on these positions alone.
 *
 *     %3[n,j,x,k]   = assign x[n,j,2*x+k-1] else 0          of a reorganised image, of its windows,
 *     %6[n,i,x]     = accumulate_j,k b[i], W[i,j,k], %3     with kernels that may be reorganised likewise,
 *                                                           and brought back: the mutant */
#ifndef ESPALIER_MUTATE_IMAGE_MUTANT_H
#define ESPALIER_MUTATE_IMAGE_MUTANT_H

#include "mutate/mutate.h"

enum mutate_piece {
	MUTATE_WHOLE, /* the dimension stays as it is */
#define MUTATE_PIECE(name, spelling, meaning) MUTATE_##name,
#include "mutate/mutants.def"
#undef MUTATE_PIECE
	MUTATE_PIECES
};

enum mutate_place {
#define MUTATE_PLACE(name, spelling, meaning) MUTATE_##name,
#include "mutate/mutants.def"
#undef MUTATE_PLACE
	MUTATE_PLACES
};

enum {
	MUTATE_MAX_DEPTH = 4,		/* changes of one mutant */
	MUTATE_MAX_CANDIDATES = 20000,	/* layouts of a value that are built */
	MUTATE_KEPT = 16		/* mutants of a value that are kept */
};

/* What becomes of one dimension of the image, those of rows not counted. */
struct mutate_change {
	bool border; /* what windows read outside of it is stored with it */
	enum mutate_piece piece;
	int by; /* how many parts or phases */
	enum mutate_place place;
	int before; /* BEFORE: the dimension */
};

struct mutate_layout {
	struct mutate_change of[TENSOR_MAX_RANK];
};

/* How a dimension of the image is read: by what position of the result, and of the kernel. */
struct mutate_dim {
	bool free;	  /* only this dimension is read by `out`, and nothing but the image: it may be changed */
	int out, reduced; /* variables; -1 = there is none */
	int64_t step, dilation, offset; /* of windows: the index is step*out + dilation*reduced + offset */
	int64_t extent, outs, kernel;
	struct sub_map map; /* the same, in the names of the value */
};

/* A value that has mutants. */
struct mutate_site {
	sub_ref value;
	int operand; /* the argument that reads the image */
	int leading, dims;
	struct mutate_dim dim[TENSOR_MAX_RANK];
};

/* False if it is none: a sum of products in f32 of which one factor is read through windows. */
bool mutate_find_site(const struct sub_program *, sub_ref, struct mutate_site *);

/* What a layout makes of a dimension. */
struct mutate_shape {
	int64_t main, main_step, extra, extra_step, first; /* index in the image = main_step*main + extra_step*extra + first */
	int64_t outs, divisor, modulus; /* of results in the main part; the digits of a result's position that main and extra are */
	int64_t step, dilation, offset, kernel, shift; /* windows in the main part; of channels the kernel's first element */
	int joined; /* the dimension whose extra part stands before it; -1 = none */
};

/* False if the layout does not fit the sizes, changes nothing, or changes a dimension that the image has not. */
bool mutate_find_shapes(const struct mutate_site *, const struct mutate_layout *, struct mutate_shape *);
/* The number of changes. */
int mutate_count_changes(const struct mutate_site *, const struct mutate_layout *);
/* Whether kernels are reorganised, so that sums have further terms: zeros. */
bool mutate_changes_kernel(const struct mutate_site *, const struct mutate_layout *);
/* Adds the mutant to the program, which has the site; an assign with the variables of the original.  None if it takes too many
 * variables. */
sub_ref mutate_build(struct sub_program *, const struct mutate_site *, const struct mutate_layout *,
		     const struct mutate_shape *);
/* Finds the forms of a site's value and of a mutant of it, in which what the site reads counts as leaves. */
void mutate_extend_forms(const struct sub_program *, const struct mutate_site *, struct mutate_form *forms, sub_ref mutant);

/* A mutant that was found, or that a schedule names. */
struct mutate_mutant {
	struct mutate_layout layout;
	struct mutate_comparison proof;
	bool same_bits; /* the same numbers are added in the same order, so that no bit of a result changes */
	double work;	/* products and moved elements of a row, the correction's with them; an element counts as a quarter */
	double recomputed;
};

/* Why a layout has no mutant that may be used, NULL = there is one, which `m` describes and *corrected is; adds it to the
 * program.  `exact`: its bits must be those of the original. */
const char *mutate_make(struct sub_program *, const struct mutate_site *, bool exact, struct mutate_mutant *m,
			sub_ref *corrected);

/* The mutants of a value, those of least work first. */
struct mutate_search {
	long candidates, built, likely; /* layouts; those that fit; those equal at most of a few positions */
	bool ended; /* before all were tried */
	int n;
	struct mutate_mutant mutant[MUTATE_KEPT];
	double work; /* of the original */
};
/* Searches the mutants of a site; the program is as before.  False if the search was given up: then those that were found have
 * perhaps been compared by one round. */
bool mutate_find_mutants(struct sub_program *, const struct mutate_site *, bool exact, const struct mutate_watch *,
			 struct mutate_search *);

/* Prints `part 0 4 before 3 border 2`: the arguments of a schedule's line. */
void mutate_print_layout(const struct mutate_layout *, struct str *);
bool mutate_same_layout(const struct mutate_layout *, const struct mutate_layout *);
/* Reads such words, n > 0; returns the position of the first that is wrong, or of the last where one is missing behind it;
 * n = none is wrong. */
int mutate_read_layout(char *const *word, int n, struct mutate_layout *);

#endif
