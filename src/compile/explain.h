/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What rewriting made of a program and what that saves. */
#ifndef ESPALIER_COMPILE_EXPLAIN_H
#define ESPALIER_COMPILE_EXPLAIN_H

#include "compile/compile.h"

/* What is counted of a body. */
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

/* The bodies of a domain by its number, in the order in which they run; NULL past the last. */
const char *explain_domain(int domain);
/* All bodies of a domain together; of those at binding, for all their rows.  False when there are none. */
bool explain_count(const struct sched_plan *, int domain, double count[EXPLAIN_COUNTS]);

/* Bodies as they were written and as they are computed, rules with what each saved, notes. */
bool compile_explain(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		     const struct compile_options *, bool json, struct str *);

#endif
