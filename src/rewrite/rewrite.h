/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Rewriting of programs: the rules and their engine, and the passes that need no schedule.
 *
 * A pass makes of one program another one, in an empty program of the same arena (sub_init). */
#ifndef ESPALIER_REWRITE_REWRITE_H
#define ESPALIER_REWRITE_REWRITE_H

#include "subop/subop.h"

/* How far results may differ from the text read literally. */
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
	int64_t table_bytes;   /* most that the tables of one binding may take together */
	enum dtype weights_as; /* f16, bf16, i8; f32 = as the model says */
};

/* The name of a family; NULL past the last. */
const char *rewrite_family_spelling(int family);
/* Which families run, as a text: "all", "none", or their names with commas between.  Names alone are the only
 * ones that run; after "-" come those that do not: "tables,constants", "-tables,-constants".  `off` is set to
 * the others.  False after a diagnostic. */
bool rewrite_read_families(const char *text, unsigned *off, struct diags *);
/* "f32", "f16", "bf16", "i8": a type that weights can be kept in.  False after a diagnostic. */
bool rewrite_read_weight_type(const char *text, enum dtype *, struct diags *);
/* "exact", "reassociate", "fast"; NULL past the last.  Reading is false after a diagnostic. */
const char *rewrite_math_spelling(int math);
bool rewrite_read_math(const char *text, enum rewrite_math *, struct diags *);

/* One application of a rule. */
struct rewrite_change {
	const char *rule;
	const char *body;	    /* where it was met first */
	const char *before, *after; /* as text; NULL when nobody asked */
	double saved;		    /* operations of a row; a moved element counts as a quarter of one */
};

/* What rewriting took: time is proportional to the attempts. */
struct rewrite_effort {
	long attempts, applications; /* of rules */
	int sweeps;
	size_t bytes; /* of the arena */
};

/* The derivation of a program from the one that was written. */
struct rewrite_trace {
	bool texts; /* in: say before and after */
	VEC(struct rewrite_change) changes;
	VEC(const char *)
	notes; /* what was decided: tables that were made, or were too large, and their bytes */
	struct rewrite_effort effort; /* of rewrite_optimize */
};

/* Rewrites a program into an empty one (sub_init with the same arena); what nothing needs is left behind. */
void rewrite_optimize(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* The derivation, a rule after another. */
void rewrite_print_trace(const struct rewrite_trace *, struct str *);
/* Writes down how sums are rounded, into an empty program as above: products that a sum alone wants become
 * terms of chains of fused multiply-adds (contract.c).  Afterwards no sum of products is left; options and
 * trace may be NULL. */
void rewrite_contract(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		      struct rewrite_trace *);
/* Moves what depends on weights alone, and is worth it, into bodies that run when weights are bound, in their
 * order, before all others; their results are parameters for those that follow.  Into an empty program, as
 * above; `from` must not have been folded.  Afterwards no dear value is without a lead variable. */
void rewrite_fold(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		  struct rewrite_trace *);
/* Parameters of f32 that products read, those of two and more dimensions, are kept in the type that the
 * options say (narrow.c): bodies at binding convert them.  Into an empty program, as above, of one that was
 * folded. */
void rewrite_narrow(struct sub_program *to, const struct sub_program *from, const struct rewrite_options *,
		    struct rewrite_trace *);

#endif
