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

/* Layers (layers.c): the operators of the graph that the model was made of, or of its text, and the loop nests of a run. */
void explain_put_layers(const struct ra_model *, const struct sched_plan *, struct str *);
void explain_put_json_layers(const struct ra_model *, const struct sched_plan *, struct str *);

/* What a function of an accelerator takes for a row, and all of them together, of which only sums are set. */
struct explain_call {
	const char *name;
	struct vta_cost cost;
};

struct explain_calls {
	int n;
	struct explain_call *call;
	struct vta_cost all;
};

/* Finds it of the calls of a program; false after diagnostics. */
bool explain_find_calls(struct arena *, struct diags *, const struct sub_program *, struct explain_calls *);
/* As a table, where there are calls; and as JSON. */
void explain_put_calls(struct explain_calls *, struct str *);
void explain_put_json_calls(struct explain_calls *, struct str *);

/* What an explanation is: the counts of bodies as written and as computed, the rules with their savings, and notes, as text or
 * as JSON, which has the layers as well; or the layers as text.  With weights (NULL = none), where products are computed in
 * integers, also bounds of what that changes. */
enum explain_form { EXPLAIN_TEXT, EXPLAIN_JSON, EXPLAIN_LAYERS };
bool compile_explain(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		     const struct compile_options *, const struct rewrite_weights *, enum explain_form, struct str *);
/* Writes the bounds: tables, or the elements of a JSON array (report_errors.c). */
bool explain_errors(struct arena *, struct diags *, const struct ra_model *, const int64_t *sizes,
		    const struct compile_options *, const struct rewrite_weights *, bool json, struct str *);

#endif
