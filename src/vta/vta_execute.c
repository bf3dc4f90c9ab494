/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The device in C: runs streams in an order that its queues permit. */
#include "vta/vta_device.h"

/* A walk over the stream lies behind the device. */
size_t vta_device_bytes(void)
{
	return sizeof(struct vta_device) + vta_walk_bytes();
}

void vta_execute_on(struct vta_device *d, const struct vta_stream *stream, const enum vta_module order[VTA_MODULES],
		    uint8_t *memory)
{
	struct vta_walk *walk = (struct vta_walk *)(d + 1);
	vta_walk_start(walk, stream, order);
	for (size_t i = 0; i < stream->segments; i++)
		if (stream->segment[i].data)
			memcpy(memory + stream->segment[i].begin, stream->segment[i].data,
			       stream->segment[i].bytes);
	for (struct vta_event event; vta_walk_next(walk, &event);)
		run_insn(d, &stream->insn[event.insn], memory);
}

void vta_execute(struct arena *a, const struct vta_stream *stream, const enum vta_module order[VTA_MODULES],
		 uint8_t *memory)
{
	vta_execute_on(arena_take(a, 1, vta_device_bytes()), stream, order, memory);
}
