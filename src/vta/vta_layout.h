/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Where the tensors and constants of operations lie in the memory of a stream. */
#ifndef ESPALIER_VTA_VTA_LAYOUT_H
#define ESPALIER_VTA_VTA_LAYOUT_H

#include "vta/vta_generate.h"

/* Bytes from the beginning of the memory. */
struct vta_places {
	uint64_t input, output, residual, weights, bias, residual_weights, rounding;
};

/* Checks the operations, and lays out all but micro-ops: fills the segments and the bytes of the stream, and
 * the places of each operation.  False after `vta-operation`. */
bool vta_lay_out(struct arena *, struct diags *, const struct vta_operation *, size_t n, struct vta_stream *,
		 struct vta_places *);

#endif
