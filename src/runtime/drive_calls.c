/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The driver of the accelerator: packs what a call reads, runs its stream, and unpacks what it computes, row
 * by row.  The device is the executor of vta/, which gives the bytes that the published one gives.
 *
 * All calls use one block of memory, as large as the largest stream wants it, and one device.  Nothing stays
 * there from one range to the next: a stream reads nothing that was not put there or that it did not write
 * itself. */
#include "runtime/drive_calls.h"

#include "runtime/shared.h"

#include <string.h>

void rt_driver_free(struct rt_driver *d)
{
	rt_free(d->allocator, d->memory);
	rt_free(d->allocator, d->device);
	d->memory = NULL;
	d->device = NULL;
	d->bytes = 0;
}

bool rt_reserve_driver(struct rt_driver *d, const struct image *image, struct diags *diags)
{
	int64_t most = 0;
	for (int i = 0; i < image->calls; i++)
		most = (int64_t)image->call[i].opened->bytes > most ? (int64_t)image->call[i].opened->bytes
								    : most;
	if (!image->calls)
		return true;
	if (!d->device)
		d->device = rt_allocate_zeroed(d->allocator, vta_device_bytes());
	return (d->device || rt_out_of_memory(diags, "the accelerator")) &&
	       rt_reserve_memory(d->allocator, &d->memory, &d->bytes, most, rt_allocate_zeroed,
				 "the accelerator", diags);
}

/* Where a row of an operand lies; of a constant the whole. */
static char *find_row(const struct image *image, const struct image_operand *o, const struct image_frame *f,
		      int64_t row)
{
	const struct image_buffer *b = &image->buffer[o->buffer];
	char *first = f->buffers[o->buffer];
	bool constant = o->role == IMAGE_OPERAND_CONSTANT;
	return constant ? first : first + row * b->row_elements * dtype_traits_of(b->dtype)->bytes;
}

/* Moves what an operand has of a row between its buffer and its segment. */
static void move_operand(const struct image_operand *o, const struct vta_segment *s, uint8_t *memory,
			 char *row)
{
	int8_t *segment = (int8_t *)memory + s->begin;
	if (o->role == IMAGE_OPERAND_CONSTANT)
		memcpy(segment, row, s->bytes);
	else if (o->role == IMAGE_OPERAND_INPUT)
		vta_pack_activations(o->extent, o->stride, o->zero, (const int8_t *)row, segment);
	else if (o->planes == 4)
		vta_unpack_sums(o->extent, o->stride, o->zero, segment, (int32_t *)row);
	else
		vta_unpack_activations(o->extent, o->stride, o->zero, segment, (int8_t *)row);
}

static void move_operands(const struct rt_driver *d, const struct image *image, const struct image_call *c,
			  enum image_role role, const struct image_frame *f, int64_t row)
{
	for (int i = 0; i < c->operands; i++) {
		const struct image_operand *o = &c->operand[i];
		if (o->role == role)
			move_operand(o, vta_find_segment(c->opened, o->segment), d->memory,
				     find_row(image, o, f, row));
	}
}

void rt_drive_call(struct rt_driver *d, const struct image *image, int call,
		   const struct image_frame *f, int64_t begin, int64_t end)
{
	const struct image_call *c = &image->call[call];
	move_operands(d, image, c, IMAGE_OPERAND_CONSTANT, f, 0);
	for (int64_t row = begin; row < end; row++) {
		move_operands(d, image, c, IMAGE_OPERAND_INPUT, f, row);
		vta_execute_on(d->device, c->opened, NULL, d->memory);
		move_operands(d, image, c, IMAGE_OPERAND_OUTPUT, f, row);
	}
	d->cycles += c->cost.cycles * (uint64_t)(end - begin);
}
