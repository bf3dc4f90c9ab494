/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of errors: what the files of it share. */
#ifndef ESPALIER_REWRITE_ERROR_BOUND_H
#define ESPALIER_REWRITE_ERROR_BOUND_H

#include "rewrite/rule_engine.h"

/* Numbers of one value: of its dimensions alone, as a bound is the same for all nodes, edges and inputs. */
struct error_tensor {
	double *element;
	bool known; /* computed for the current body */
};

/* The bounds of the states that a body reads. */
struct error_states {
	double **error, **size; /* by state: of all elements */
};

struct rewrite_bounding {
	struct arena *arena;
	struct diags *diags;
	const struct sub_program *p;
	const struct rewrite_weights *weights;
	const struct rewrite_integers *integers; /* by value, like all up to `size` */
	const double *function_error; /* that a sigmoid or tanh has of itself; see rewrite_find_function_errors */
	const struct rewrite_range *range;
	const uint32_t *source; /* see rewrite_find_sources */
	const bool *constant;
	double **magnitude; /* of constants; NULL = not read yet */
	double **integer_error;	    /* that integers add to a sum, for one edge; NULL = not computed yet */
	struct error_tensor *error; /* how far the value may be from that in f32; `known` is false where it is not */
	struct error_tensor *size;  /* magnitudes that the value keeps to in both programs */
	const void **param;	    /* by parameter: its elements; NULL = not read yet */
	bool trusted;		    /* ranges hold in both programs */
	bool failed;
	uint32_t *cause;	    /* by state: the value whose error is infinite of itself; 0 = none is */
	double exponents;	    /* the largest error of those of the softmax that is computed */
	struct error_states states, next; /* that the current body reads; that it stores */
	const struct rewrite_range *kept; /* by state: the range of what is stored */
	bool **live;			  /* by body: the values that it needs */
	double edges, open_edges;   /* of a node, in the current body; of one whose number the model leaves open */
	int64_t *env;		    /* by variable: its current index */
};

/* The elements of a value's dimensions. */
int64_t error_elements(const struct rewrite_bounding *, const struct sub_value *);
int64_t error_state_elements(const struct sub_tensor *);
/* The length of a range, which no error exceeds; infinite where ranges say nothing. */
double error_longest(const struct rewrite_bounding *, const struct rewrite_range *);
/* The largest magnitude in a range; infinite where ranges say nothing. */
double error_most(const struct rewrite_bounding *, const struct rewrite_range *);
/* Forgets the bounds of values, which were those of another body or other states. */
void error_forget(struct rewrite_bounding *);
/* Computes the errors of the values that a body needs. */
void error_evaluate(struct rewrite_bounding *, const bool *live);
/* The first value, from the arguments on, without which an infinite error of this one would be finite; 0 = its error is
 * finite. */
uint32_t error_find_cause(const struct rewrite_bounding *, uint32_t value);
/* By element of a sum in integers, f16 or bf16: the error that it has of its own, by the bounds of what it multiplies, for one
 * edge if these are. */
const double *error_find_own(struct rewrite_bounding *, uint32_t value);
/* The magnitudes of a constant; a NaN counts as infinite (error_constant.c). */
const double *error_find_magnitude(struct rewrite_bounding *, uint32_t value);
/* The magnitudes of a value. */
const double *error_find_size(struct rewrite_bounding *, uint32_t value);

#endif
