/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random operations for the generator of streams, and what they compute by plain loops. */
#ifndef ESPALIER_TESTS_VTA_OPERATIONS_H
#define ESPALIER_TESTS_VTA_OPERATIONS_H

#include "tests/vta/streams.h"
#include "vta/vta_generate.h"

#include <stdlib.h>
#include <string.h>

struct drawn_sizes {
	int64_t images, in_blocks, out_blocks, size[2], kernel[2], stride[2], before[2], after[2];
};

/* An operation as plain loops compute it, and its activations, packed. */
struct drawn_operation {
	struct vta_operation op;
	const int8_t *x, *residual;
	bool bound; /* the stream gets its weights and its bias as inputs */
};

static inline int8_t *draw_bytes(struct arena *a, int64_t n)
{
	int8_t *p = ARENA_ARRAY(a, int8_t, n);
	for (int64_t i = 0; i < n; i++)
		p[i] = (int8_t)draw();
	return p;
}

static inline int64_t count_inputs(const struct vta_operation *op)
{
	return op->images * op->in_blocks * op->size[0] * op->size[1] * VTA_BLOCK;
}

static inline int64_t count_outputs(const struct vta_operation *op)
{
	return op->images * op->out_blocks * vta_output_size(op, 0) * vta_output_size(op, 1) * VTA_BLOCK;
}

/* With a bias, a residual and bounds, or without. */
static inline void draw_sized(struct arena *a, struct drawn_operation *d, struct drawn_sizes s)
{
	struct vta_operation *op = &d->op;
	*op = (struct vta_operation){.name = "op",
				     .input = "x",
				     .output = "y",
				     .images = s.images,
				     .in_blocks = s.in_blocks,
				     .out_blocks = s.out_blocks};
	for (int axis = 0; axis < 2; axis++) {
		op->size[axis] = s.size[axis];
		op->kernel[axis] = s.kernel[axis];
		op->stride[axis] = s.stride[axis];
		op->before[axis] = s.before[axis];
		op->after[axis] = s.after[axis];
	}
	op->shift = draw() % 4 ? (int)draw_between(6, 16) : 0;
	op->low = draw() % 2 ? 0 : (int)draw_between(-128, -1);
	op->high = draw() % 2 ? 127 : (int)draw_between(op->low, 127);
	op->weights = draw_bytes(a, s.out_blocks * s.in_blocks * s.kernel[0] * s.kernel[1] * 256);
	if (draw() % 3)
		op->bias = (const int32_t *)draw_bytes(a, s.out_blocks * VTA_BLOCK * 4);
	d->x = draw_bytes(a, s.images * s.in_blocks * s.size[0] * s.size[1] * VTA_BLOCK);
	d->residual = draw_bytes(a, count_outputs(op));
	op->residual = draw() % 2 ? "r" : NULL;
	op->residual_shift = (int)(draw() % 7);
	d->bound = false;
}

/* Sums that are far enough from the limits of int32. */
static inline int32_t *draw_bias(struct arena *a, int64_t n)
{
	int32_t *p = ARENA_ARRAY(a, int32_t, n);
	for (int64_t i = 0; i < n; i++)
		p[i] = (int32_t)draw_between(-(1 << 29), 1 << 29);
	return p;
}

/* Weights of fewer blocks are the first ones of those that are there. */
static inline void draw_groups(struct drawn_operation *d)
{
	int64_t groups = draw_between(2, 4);
	bool depthwise = draw() % 2 && d->op.in_blocks == d->op.out_blocks;
	if (depthwise)
		d->op.groups = d->op.in_blocks;
	else if (d->op.in_blocks % groups == 0 && d->op.out_blocks % groups == 0)
		d->op.groups = groups;
}

/* How sums are rounded, or that they are stored, and whose the weights are. */
static inline void draw_ending(struct arena *a, struct drawn_operation *d)
{
	struct vta_operation *op = &d->op;
	op->rounding = (enum vta_rounding)(draw() % 3);
	op->shift = draw() % 4 ? (int)draw_between(draw() % 2 ? 1 : 6, 16) : 0;
	op->bias = op->rounding == VTA_HALF_UP ? op->bias : draw_bias(a, op->out_blocks * VTA_BLOCK);
	d->bound = draw() % 2;
	op->residual_first = draw() % 2;
	op->offset = draw() % 2 ? (int)draw_between(-256, 256) : 0;
	draw_groups(d);
	if (draw() % 5)
		return;
	op->planes = 4;
	op->shift = op->offset = 0;
	op->residual = op->residual_first ? op->residual : NULL;
}

/* A product of matrices, or a convolution. */
static inline void draw_operation(struct arena *a, struct drawn_operation *d, bool product)
{
	struct drawn_sizes s = {
	    1, draw_between(1, 9), draw_between(1, 9), {1, draw_between(1, 200)}, {1, 1}, {1, 1}, {0}, {0}};
	if (!product)
		s.images = draw_between(1, 3);
	for (int axis = 0; axis < 2 && !product; axis++) {
		s.kernel[axis] = draw_between(1, draw() % 4 ? 3 : 7);
		s.stride[axis] = draw_between(1, 3);
		s.before[axis] = draw_between(0, s.kernel[axis] - 1);
		s.after[axis] = draw_between(0, s.kernel[axis] - 1);
		s.size[axis] = draw_between(s.kernel[axis], draw() % 4 ? 12 : 40);
	}
	draw_sized(a, d, s);
	draw_ending(a, d);
}

/* --- by plain loops --- */

static inline int64_t activation_at(int64_t image, int64_t blocks, int64_t channel, const int64_t size[2],
				    int64_t y, int64_t x)
{
	return (((image * blocks + channel / VTA_BLOCK) * size[0] + y) * size[1] + x) * VTA_BLOCK +
	       channel % VTA_BLOCK;
}

static inline uint32_t plain_sum(const struct vta_operation *op, const int8_t *x, int64_t n, int64_t o,
				 int64_t oy, int64_t ox)
{
	uint32_t sum = 0;
	int64_t groups = op->groups > 1 ? op->groups : 1, blocks = op->in_blocks / groups;
	int64_t first = o / (op->out_blocks / groups * VTA_BLOCK) * blocks * VTA_BLOCK;
	for (int64_t c = 0; c < blocks * VTA_BLOCK; c++)
		for (int64_t ky = 0; ky < op->kernel[0]; ky++)
			for (int64_t kx = 0; kx < op->kernel[1]; kx++) {
				int64_t y = oy * op->stride[0] + ky - op->before[0],
					at = ox * op->stride[1] + kx - op->before[1];
				if (y < 0 || y >= op->size[0] || at < 0 || at >= op->size[1])
					continue;
				int64_t block =
				    ((o / VTA_BLOCK * blocks + c / VTA_BLOCK) * op->kernel[0] + ky) *
					op->kernel[1] +
				    kx;
				int w = op->weights[(block * VTA_BLOCK + o % VTA_BLOCK) * VTA_BLOCK +
						    c % VTA_BLOCK];
				sum += (uint32_t)(w * x[activation_at(n, op->in_blocks, first + c, op->size, y, at)]);
			}
	return sum;
}

static inline int64_t divide_down(int64_t v, int64_t divisor)
{
	return v >= 0 ? v / divisor : -((-v + divisor - 1) / divisor);
}

/* TensorFlow Lite's SaturatingRoundingDoublingHighMul by 2^30, then its RoundingDivideByPOT. */
static inline int64_t divide_twice(int64_t v, int shift)
{
	int64_t product = v * (1 << 30), nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
	int64_t high = (product + nudge) / ((int64_t)1 << 31), mask = ((int64_t)1 << (shift - 1)) - 1;
	int64_t rest = high & mask, threshold = (mask >> 1) + (high < 0);
	return divide_down(high, mask + 1) + (rest > threshold);
}

/* v / 2^shift to the nearest, in integers of 64 bits. */
static inline int64_t divide_nearest(int64_t v, int shift, enum vta_rounding rounding)
{
	int64_t divisor = (int64_t)1 << shift, below = divide_down(v, divisor), twice = 2 * (v - below * divisor);
	if (!shift)
		return v;
	if (rounding == VTA_HALF_TWICE)
		return divide_twice(v, shift);
	if (rounding == VTA_HALF_EVEN && twice == divisor)
		return below + (below & 1);
	return below + (twice >= divisor);
}

/* A sum with its bias, and a residual that comes first; it wraps around. */
static inline uint32_t add_all(const struct vta_operation *op, uint32_t sum, int64_t o, int residual)
{
	bool first = op->residual && op->residual_first;
	return sum + (op->bias ? (uint32_t)op->bias[o] : 0) +
	       (first ? (uint32_t)(residual * (1 << op->residual_shift)) : 0);
}

/* The definition; half of the last place wraps around as well where halves are rounded up. */
static inline int8_t plain_output(const struct vta_operation *op, uint32_t all, int residual)
{
	uint32_t half = op->shift ? 1u << (op->shift - 1) : 0;
	int64_t v = op->rounding == VTA_HALF_UP ? divide_down((int32_t)(all + half), (int64_t)1 << op->shift)
						: divide_nearest((int32_t)all, op->shift, op->rounding);
	v += op->offset;
	v += op->residual && !op->residual_first ? residual * (1 << op->residual_shift) : 0;
	return (int8_t)(v < op->low ? op->low : v > op->high ? op->high : v);
}

/* The number of an output's planes, and what is in one. */
static inline int count_planes(const struct vta_operation *op)
{
	return op->planes == 4 ? 4 : 1;
}

static inline void put_output(const struct vta_operation *op, uint32_t sum, int64_t o, int residual, int64_t at,
			      int8_t *out)
{
	uint32_t all = add_all(op, sum, o, residual);
	if (op->planes != 4)
		out[at] = plain_output(op, all, residual);
	for (int plane = 0; plane < 4 && op->planes == 4; plane++)
		out[plane * count_outputs(op) + at] = (int8_t)(uint8_t)(all >> 8 * plane);
}

static inline int8_t *plain_operation(struct arena *a, const struct vta_operation *op, const int8_t *x,
				      const int8_t *residual)
{
	int8_t *out = ARENA_ARRAY(a, int8_t, count_outputs(op) * count_planes(op));
	int64_t size[2] = {vta_output_size(op, 0), vta_output_size(op, 1)};
	for (int64_t n = 0; n < op->images; n++)
		for (int64_t o = 0; o < op->out_blocks * VTA_BLOCK; o++)
			for (int64_t y = 0; y < size[0]; y++)
				for (int64_t c = 0; c < size[1]; c++) {
					int64_t at = activation_at(n, op->out_blocks, o, size, y, c);
					put_output(op, plain_sum(op, x, n, o, y, c), o, residual ? residual[at] : 0,
						   at, out);
				}
	return out;
}

/* --- running --- */

/* The operation as its stream is made. */
static inline struct vta_operation stream_operation(const struct drawn_operation *d)
{
	struct vta_operation op = d->op;
	op.bound = d->bound;
	if (d->bound)
		op.weights = NULL, op.bias = NULL;
	return op;
}

/* Fills the weights and the bias of a stream that has them as inputs. */
static inline void bind_operation(const struct vta_stream *stream, const struct drawn_operation *d, uint8_t *memory)
{
	const struct vta_segment *w = vta_find_segment(stream, "op.w"), *b = vta_find_segment(stream, "op.b");
	if (!d->bound)
		return;
	memcpy(memory + w->begin, d->op.weights, w->bytes);
	for (int64_t i = 0; i < d->op.out_blocks * VTA_BLOCK; i++)
		vta_put_u32(memory + b->begin + 4 * i, d->op.bias ? (uint32_t)d->op.bias[i] : 0);
}

/* The memory of a stream of one operation, with its activations; the rest is garbage that `seed` chooses. */
static inline uint8_t *operation_memory(struct arena *a, const struct vta_stream *stream,
					const struct drawn_operation *d, int seed)
{
	uint8_t *memory = ARENA_ARRAY(a, uint8_t, stream->bytes);
	memset(memory, seed, stream->bytes);
	const struct vta_segment *x = vta_find_segment(stream, "x"), *r = vta_find_segment(stream, "r");
	if ((x && (int64_t)x->bytes != count_inputs(&d->op)) || (r && (int64_t)r->bytes != count_outputs(&d->op)))
		abort();
	if (x)
		memcpy(memory + x->begin, d->x, x->bytes);
	if (r)
		memcpy(memory + r->begin, d->residual, r->bytes);
	bind_operation(stream, d, memory);
	return memory;
}

static inline bool check_operation(const struct vta_stream *stream, const struct drawn_operation *d,
				   const uint8_t *memory)
{
	struct arena scratch;
	const struct vta_segment *y = vta_find_segment(stream, "y");
	arena_init(&scratch, &allocator_default);
	jmp_buf jump;
	if (arena_guard(&scratch, &jump))
		return false;
	const int8_t *plain = plain_operation(&scratch, &d->op, d->x, d->residual);
	bool same = !memcmp(memory + y->begin, plain, y->bytes);
	arena_free(&scratch);
	return same;
}

#endif
