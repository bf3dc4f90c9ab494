/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs calls of the accelerator (struct image_call). */
#ifndef ESPALIER_RUNTIME_DRIVE_CALLS_H
#define ESPALIER_RUNTIME_DRIVE_CALLS_H

#include "base/memory.h"
#include "image/image.h"

/* The device, and the memory that its streams work on: one caller's. */
struct rt_driver {
	const struct allocator *allocator;
	struct vta_device *device; /* NULL = there was no run */
	void *memory;
	size_t bytes; /* of the memory */
	uint64_t cycles; /* of all rows so far, estimated */
};

/* Memory for all calls of an image, whose streams were opened; none where it has no calls.  False after
 * `out-of-memory`. */
bool rt_reserve_driver(struct rt_driver *, const struct image *, struct diags *);
/* Frees it; it can be reserved again. */
void rt_driver_free(struct rt_driver *);
/* Runs a call for the rows begin .. end - 1 of its operands' buffers.  Memory was reserved. */
void rt_drive_call(struct rt_driver *, const struct image *, int call, const struct image_frame *,
		   int64_t begin, int64_t end);

#endif
