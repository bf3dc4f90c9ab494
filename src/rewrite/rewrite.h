/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rewriting of programs: the rules and their engine, and the passes that need no schedule.
 *
 * A pass reads one program and writes another, which must be empty (sub_init with the same arena). */
#ifndef ESPALIER_REWRITE_REWRITE_H
#define ESPALIER_REWRITE_REWRITE_H

#include "subop/subop.h"

/* How far results may differ from those of the model text as it is written. */
enum rewrite_math {
	REWRITE_EXACT,	     /* not at all */
	REWRITE_REASSOCIATE, /* in rounding */
	REWRITE_FAST	     /* also where operands are special: zero, infinite, NaN, near overflow */
};

enum rewrite_family {
#define REWRITE_FAMILY(name, spelling, meaning) REWRITE_FAMILY_##name,
#include "rewrite/families.def"
#undef REWRITE_FAMILY
	REWRITE_FAMILIES
};

/* What a calibration says of a product, by its name (products.h): there is a bound of what its weights multiply, or it is
 * kept in f32. */
struct rewrite_calibrated {
	const char *name;
	bool kept;
	float bound; /* what rewrite_find_weight_scales needs; programs have it with their weights */
};

struct rewrite_calibration {
	size_t n;
	const struct rewrite_calibrated *product;
	bool unfit; /* the bounds hold for other options, so that none is listed */
};

struct rewrite_options {
	enum rewrite_math math;
	unsigned off;	       /* families that do not run, 1u << REWRITE_FAMILY_... */
	int64_t table_bytes;   /* the most that all tables of a binding may take together [bytes] */
	enum dtype weights_as; /* f16, bf16, i8; f32 = as the model says */
	enum precision precision; /* of products with weights */
	const struct rewrite_calibration *calibration; /* NULL = there is none */
	bool observing; /* what products with weights multiply, and their sums, are results (observe.c) */
	const char *on_host; /* quantised products that the host keeps, by number: ",-0,-3"; NULL or "" = none */
	bool finite;	       /* inputs and weights are, and so are sums, products and quotients of what is */
	bool matrices;	       /* the target multiplies matrices of bytes, so that halves become limbs (split_limbs.c) */
};

/* The name of a family; NULL past the last. */
const char *rewrite_family_spelling(int family);
/* Reads which families run, and sets `off` to the others.  The text is "all", "none", or names with commas
 * between: those that run, "tables,constants", or after "-" those that do not, "-tables,-constants".  False
 * after a diagnostic. */
bool rewrite_read_families(const char *text, unsigned *off, struct diags *);
/* Reads a type that weights can be kept in: "f32", "f16", "bf16" or "i8".  False after a diagnostic. */
bool rewrite_read_weight_type(const char *text, enum dtype *, struct diags *);
/* Reads what products can be computed in (base/precision.def).  False after a diagnostic. */
bool rewrite_read_precision(const char *text, enum precision *, struct diags *);
/* Reads what is assumed of numbers: "nothing" or "finite".  False after a diagnostic. */
bool rewrite_read_assumption(const char *text, bool *finite, struct diags *);
const char *rewrite_assumption_spelling(bool finite);
/* "exact", "reassociate", "fast"; NULL past the last.  Reading is false after a diagnostic. */
const char *rewrite_math_spelling(int math);
bool rewrite_read_math(const char *text, enum rewrite_math *, struct diags *);

/* One application of a rule. */
struct rewrite_change {
	const char *rule;
	const char *body;	    /* that it was applied in */
	const char *before, *after; /* as text; NULL unless the trace has texts */
	double saved;		    /* operations per row; moving an element counts as a quarter of one */
};

/* The work of rewriting; its time is proportional to the attempts. */
struct rewrite_effort {
	long attempts, applications; /* of rules */
	int sweeps;
	size_t bytes; /* of the arena */
};

/* The derivation of a program from the one that was written. */
struct rewrite_trace {
	bool texts; /* set by the caller: changes have their texts */
	VEC(struct rewrite_change) changes;
	VEC(const char *)
	notes; /* decisions: tables that were made, or were too large, and their bytes */
	struct rewrite_effort effort; /* of rewrite_optimize */
};

/* Rewrites a program by the rules of rules.def, without values that no store needs. */
void rewrite_optimize(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* Prints the changes in the order in which they were made, then the notes. */
void rewrite_print_trace(const struct rewrite_trace *, struct str *);
/* Makes the rounding of sums explicit: products that only a sum uses become terms of chains of fused
 * multiply-adds (contract.c).  Afterwards no sum of products is left.  Options and trace may be NULL. */
void rewrite_contract(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* Computes sums of products with weights in the integers, in f16 or in bf16, as the model declares for their parameters, or else as
 * options->precision says (quantise.c).  `from` must have been contracted.  The trace, which may be NULL, gets a note for each product: in what it is computed, and why. */
void rewrite_quantise(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* Whether a program is observed that computes all products in f32, those of which the model declares something else, too: what
 * they multiply is to become known, and it is the reference that others are compared with. */
bool rewrite_observes_f32(const struct rewrite_options *);
/* Appends the name of the parameter that is the calibrated bound of a product. */
void rewrite_put_bound_name(struct str *, const char *product);
/* Adds what products multiply and what their sums are to the results of a program (observe.c), for calibrations. */
void rewrite_observe(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		     struct rewrite_trace *);
/* What is observed of a product: in a row, the largest magnitude that its weights multiply; the sums; and, in f32 alone, the sum of
 * the squares that each column of the weights multiplies in a row. */
enum rewrite_observation { REWRITE_LARGEST, REWRITE_SUM, REWRITE_SQUARES, REWRITE_OBSERVATIONS };
/* The product that a state or output of this name is of, which rewrite_observe added, and what of it; NULL: it is none of
 * these. */
const char *rewrite_read_observed(const char *name, enum rewrite_observation *);
/* A product with weights. */
struct rewrite_listed {
	const char *name;  /* "W*x" */
	const bool *reads; /* by parameter, of which there are `params`: its weights are computed of it */
	size_t params;
	const char *why; /* it stays in f32; NULL = it need not */
	const char *bound_of; /* the product whose calibrated bound it takes, as all that multiply the same value do; or NULL */
	enum precision precision; /* that it is computed in */
	bool calibrated, per_edge;
	double bound; /* of what the weights multiply, infinite if it is not known; see struct rewrite_bound */
	double terms, sums;
	int64_t columns; /* that its weights tell apart, of what they multiply */
};

struct rewrite_listed_products {
	VEC(struct rewrite_listed) all; /* in the order of the program */
};

/* Lists the products of a program that was contracted as the options have them computed. */
void rewrite_list_products(const struct sub_program *, const struct rewrite_options *, struct rewrite_listed_products *);
/* By parameter of a program that was contracted: what each element can be divided by, to be the integer of the products
 * that read it (weight_scales.c); NULL = it must stay in f32.  `params` has the elements of those of f32. */
float **rewrite_find_weight_scales(const struct sub_program *, const struct rewrite_options *, const float *const *params,
				   struct arena *);
/* What was observed of a product, and what rewrite_find_row_scales makes of it: sums over all that was observed, as if columns of
 * what is multiplied were not correlated. */
struct rewrite_row_errors {
	const char *name;
	const double *squares; /* by column: of what is multiplied; NULL = nothing was observed */
	int64_t columns;
	double reference;      /* of the squares of the product's sums; 0 = its weights stay as they are */
	double plain, chosen;  /* of the squares of their errors, with scales of the largest of each row, and with those chosen */
};

/* By parameter of a program that was contracted: the scale of each element, by which a calibration keeps it in i8 with the least
 * error of the sums that read it (row_scales.c); NULL = it stays as it is.  `options` are those of the calibration; completes
 * the `n` errors. */
float **rewrite_find_row_scales(const struct sub_program *, const struct rewrite_options *options, const float *const *params,
				struct rewrite_row_errors *, size_t n, struct arena *);
/* Reads `count` elements of a parameter of the model from `first` on, in its type in memory.  False after a
 * diagnostic. */
struct rewrite_weights {
	bool (*read)(void *context, int param, int64_t first, int64_t count, void *to, struct diags *);
	void *context;
};

/* The structures that bounds of errors hold for. */
struct rewrite_extent {
	int height; /* the most edges of a path, at most 64; REWRITE_ANY_HEIGHT */
	int edges;  /* the most of a node whose number the model leaves open */
};
enum { REWRITE_ANY_HEIGHT = -1 };

/* How far results of a program in the integers, f16 or bf16 of options->precision may be from those of the same program in f32,
 * if both were computed without rounding to f32 and no result is a NaN. */
struct rewrite_errors {
	const double *state, *output; /* by number: the largest of all elements; infinite = there is no bound */
	const char *unbounded;	      /* why one is infinite: the first operator that has no bound; NULL = none is */
};

/* What integers, f16 or bf16 add to one sum of products, before it is used. */
struct rewrite_sum_error {
	const char *weights; /* names of the parameters that its weights are computed of */
	double most;	     /* the largest of all elements */
	bool per_edge;	     /* for each edge of a node */
};

/* Bounds of errors, for extents one after the other; in the arena (error_bound.c).  The program, which must have been
 * contracted, and the weights are referred to. */
struct rewrite_bounding *rewrite_begin_bounding(const struct sub_program *, const struct rewrite_options *,
						const struct rewrite_weights *, struct arena *, struct diags *);
/* False after the diagnostic of weights that cannot be read. */
bool rewrite_bound_errors(struct rewrite_bounding *, struct rewrite_extent, struct rewrite_errors *);
/* Returns whether there is a sum in integers, f16 or bf16 with this number, and sets its error; false also where a diagnostic says that
 * its weights cannot be read. */
bool rewrite_bound_sum(struct rewrite_bounding *, int number, struct rewrite_sum_error *);

/* A parameter of which the model declares that products are computed in integers, f16 or bf16, and why they cannot be. */
struct rewrite_refused {
	int param;
	const char *why;
	const char *value; /* the source of what is multiplied; NULL = it is not the reason */
	const char *hint;
};
/* Whether there is one; `from` as for rewrite_quantise. */
bool rewrite_find_refused(const struct sub_program *from, const struct rewrite_options *, struct arena *,
			  struct rewrite_refused *);
/* Writes sums of products of narrow integers, one factor of which depends on weights alone, as dot products
 * of words of several parts, whose ranges say that they are exact (group_words.c).  The trace may be NULL. */
void rewrite_group(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		   struct rewrite_trace *);
/* Every element is within low..high or, if `nan`, a NaN. */
struct rewrite_range {
	double low, high;
	bool nan;
};

/* By value of a program that was contracted: its range, whatever the structure and the inputs are. */
const struct rewrite_range *rewrite_find_ranges(const struct sub_program *, const struct rewrite_options *,
						struct arena *);
/* Moves constants, where that is profitable, into bodies that run in their order when weights are bound,
 * before all others; their results are parameters for the bodies that follow.  `from` must not have been
 * folded.  Afterwards every expensive value has a leading dimension. */
void rewrite_fold(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		  struct rewrite_trace *);
/* Keeps parameters of f32 with two or more dimensions that products read in the type of the options
 * (narrow.c): bodies at binding convert them.  `from` must have been folded. */
void rewrite_narrow(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		    struct rewrite_trace *);

#endif
