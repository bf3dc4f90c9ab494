/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Explains how a program was rewritten, and what that saves. */
#ifndef ESPALIER_COMPILE_EXPLAIN_H
#define ESPALIER_COMPILE_EXPLAIN_H

#include "compile/compile.h"

/* The counts of a body. */
enum explain_count {
	EXPLAIN_SUB_OPS,
	EXPLAIN_REDUCTIONS,
	EXPLAIN_OPERATIONS,
	EXPLAIN_BYTES,
	EXPLAIN_WEIGHTS,
	EXPLAIN_GROUPS,
	EXPLAIN_BARRIERS,
	EXPLAIN_STORED,
	EXPLAIN_COUNTS
};

struct explain_column {
	const char *heading; /* with its width */
	const char *key;     /* of JSON */
	const char *meaning;
};
extern const struct explain_column explain_columns[EXPLAIN_COUNTS];

/* The name of a domain in explanations, by number and in the order of the run; NULL past the last. */
const char *explain_domain(int domain);
/* Counts all bodies of a domain together, those at binding for all their rows.  False when there are none. */
bool explain_count(const struct sched_plan *, int domain, double count[EXPLAIN_COUNTS]);

/* Writes the counts of bodies as written and as computed, the rules with their savings, and notes. */
bool compile_explain(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		     const struct compile_options *, bool json, struct str *);

#endif
