/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The iterations of Loop and Scan, which are the steps of a scan where their body permits. */
#ifndef ESPALIER_ONNX_ITERATE_H
#define ESPALIER_ONNX_ITERATE_H

#include "onnx/operators.h"

/* Along which axes inputs are scanned and outputs are joined, and in which direction.  A body of Scan takes states
 * and elements of scanned inputs, and gives states and elements of scanned outputs.  One of Loop also takes the number
 * of the iteration and a condition before them, and gives a condition. */
struct onnx_iterations {
	const struct onnx_graph *body;
	bool loop;
	int states, inputs; /* inputs: those that are scanned */
	int64_t n;
	int64_t axis[ONNX_OUTPUT_LIMIT], backward[ONNX_OUTPUT_LIMIT], out_axis[ONNX_OUTPUT_LIMIT],
	    out_backward[ONNX_OUTPUT_LIMIT];
};

/* Whether iterations are to be written as a scan.  They are unrolled when there are few of them, inside of a step of
 * another scan, when all that the loop depends on are small constants, so that its states become constants, too, and
 * when an earlier attempt has found that their body cannot be a step. */
bool onnx_can_scan(const struct onnx_op *, const struct onnx_iterations *);
/* Writes them; x: states, then scanned inputs, whose axes count from 0.  False also without a diagnostic, where the
 * body cannot be a step; then import makes another attempt, with these iterations unrolled. */
bool onnx_write_steps(const struct onnx_op *, const struct onnx_iterations *, const struct onnx_operand *x,
		      struct onnx_operand *out);

/* The condition that always holds. */
struct onnx_operand onnx_make_truth(const struct onnx_op *);

#endif
