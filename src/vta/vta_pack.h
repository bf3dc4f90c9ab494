/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Layouts in blocks: vectors of 16 channels, and blocks of 16 x 16 weights.  Channels of a last block that is
 * not full are zeros, and are left out when unpacked. */
#ifndef ESPALIER_VTA_VTA_PACK_H
#define ESPALIER_VTA_VTA_PACK_H

#include <stdint.h>

/* Elements between neighbours of the host's array. */
struct vta_strides {
	int64_t image, channel, row, column;
};

struct vta_activations {
	int64_t images, channels, size[2];
};

int64_t vta_blocks(int64_t channels);
/* Of each element `zero` is subtracted, modulo 256: so the elements may be unsigned, with their zero point.
 */
void vta_pack_activations(struct vta_activations, struct vta_strides, int zero, const int8_t *from,
			  int8_t *packed);
/* The inverse: adds `zero`. */
void vta_unpack_activations(struct vta_activations, struct vta_strides, int zero, const int8_t *packed,
			    int8_t *to);
/* Sums from four planes, which follow each other. */
void vta_unpack_sums(struct vta_activations, struct vta_strides, int zero, const int8_t *planes, int32_t *to);
/* From [outputs][inputs][rows][columns]. */
void vta_pack_weights(int64_t outputs, int64_t inputs, const int64_t kernel[2], const int8_t *from,
		      int8_t *packed);

#endif
