/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the interpreter: its state, and the cells that compute expressions (interpret_cells.c) for statements
 * (interpret.c). */
#ifndef ESPALIER_ILIR_INTERPRET_H
#define ESPALIER_ILIR_INTERPRET_H

#include "ilir/spelling.h"

#include <setjmp.h>

struct cell;
typedef void compute(struct ilir_interpreter *, struct cell *);

struct cell {
	compute *run;
	uint64_t stamp; /* number of the evaluation that set it; ALWAYS for constants, sizes and variables */
	void *value;
	struct cell *arg[ILIR_MAX_RANK];
	uint32_t lanes, args;
	int element;	    /* bytes of a lane */
	bool truth;	    /* the type is bool */
	ilir_buffer buffer; /* of a load */
	int64_t step;	    /* of a ramp */
};

static const uint64_t ALWAYS = UINT64_MAX;

/* The memory of a buffer in the current run. */
struct place {
	void *data;
	int64_t extent[ILIR_MAX_RANK];
	int element; /* bytes */
	const struct place *table; /* of rows below 0; NULL = there are none */
};

struct code;

struct ilir_interpreter {
	struct ilir_module *m;
	struct cell *cells;   /* by expression */
	struct place *places; /* by buffer */
	struct code **kernels;
	uint64_t now;
	/* the current run */
	struct diags *diags;
	int kernel;
	const struct image_range *range;
	jmp_buf stop;
};

/* The value of a cell, which is computed once in an evaluation. */
static inline void *value_of(struct ilir_interpreter *r, struct cell *c)
{
	if (c->stamp < r->now) {
		c->run(r, c);
		c->stamp = r->now;
	}
	return c->value;
}

/* The address of the element at some indices, the last of which is the first of `reach`.  Stops the run where there is none. */
void *ilir_locate_element(struct ilir_interpreter *, ilir_buffer, struct cell *const *index, int n, int64_t reach);
/* The arguments that are evaluated before an expression: from *first to *end - 1. */
void ilir_find_evaluated(const struct ilir_module *, ilir_expr, int *first, int *end);
/* Makes the cell of an expression, behind those of its arguments. */
void ilir_fill_cell(struct ilir_interpreter *, ilir_expr);

#endif
