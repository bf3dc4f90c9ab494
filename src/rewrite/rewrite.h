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

struct rewrite_options {
	enum rewrite_math math;
	unsigned off;	       /* families that do not run, 1u << REWRITE_FAMILY_... */
	int64_t table_bytes;   /* the most that all tables of a binding may take together [bytes] */
	enum dtype weights_as; /* f16, bf16, i8; f32 = as the model says */
	enum dtype precision;  /* of products with weights: f32, i16, i8 */
};

/* The name of a family; NULL past the last. */
const char *rewrite_family_spelling(int family);
/* Reads which families run, and sets `off` to the others.  The text is "all", "none", or names with commas
 * between: those that run, "tables,constants", or after "-" those that do not, "-tables,-constants".  False
 * after a diagnostic. */
bool rewrite_read_families(const char *text, unsigned *off, struct diags *);
/* Reads a type that weights can be kept in: "f32", "f16", "bf16" or "i8".  False after a diagnostic. */
bool rewrite_read_weight_type(const char *text, enum dtype *, struct diags *);
/* Reads what products can be computed in: "f32", "i16" or "i8".  False after a diagnostic. */
bool rewrite_read_precision(const char *text, enum dtype *, struct diags *);
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
/* Computes sums of products with weights in the integers of options->precision (quantise.c).  `from` must have been
 * contracted.  The trace, which may be NULL, gets a note for each product: in what it is computed, and why. */
void rewrite_quantise(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* Writes sums of products of narrow integers, one factor of which depends on weights alone, as dot products
 * of words of several parts, whose ranges say that they are exact (group.c).  The trace may be NULL. */
void rewrite_group(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		   struct rewrite_trace *);
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
