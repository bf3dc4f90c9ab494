/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checks operations and gives their tensors and constants places. */
#include "vta/vta_layout.h"
#include "base/vec.h"

#include <string.h>

/* Activations, by name; the extents are planes, images, blocks, rows and columns. */
struct tensor {
	const char *name;
	int64_t extent[5];
	bool computed, read;
	size_t segment;
};

struct layout {
	struct arena *arena;
	struct diags *diags;
	VEC(struct tensor) tensors;
	VEC(struct vta_segment) segments;
	uint64_t end;
};

static bool refuse_operation(struct layout *l, const struct vta_operation *op, const char *what)
{
	return diag_add(l->diags, DIAG_VTA_OPERATION, (struct diag_at){0}, NULL, "operation '%.64s': %s",
			op->name, what);
}

int64_t vta_output_size(const struct vta_operation *op, int axis)
{
	return (op->size[axis] + op->before[axis] + op->after[axis] - op->kernel[axis]) / op->stride[axis] +
	       1;
}

static int64_t count_groups(const struct vta_operation *op)
{
	return op->groups > 1 ? op->groups : 1;
}

int64_t vta_inputs_of_group(const struct vta_operation *op)
{
	return op->in_blocks / count_groups(op);
}

int64_t vta_outputs_of_group(const struct vta_operation *op)
{
	return op->out_blocks / count_groups(op);
}

/* --- checks --- */

enum { MOST_EXTENT = 1 << 24, MOST_KERNEL = 16 };

static bool is_extent(int64_t n)
{
	return n > 0 && n <= MOST_EXTENT;
}

static const char *check_axis(const struct vta_operation *op, int axis)
{
	if (!is_extent(op->size[axis]) || !is_extent(op->stride[axis]) || op->kernel[axis] < 1 ||
	    op->kernel[axis] > MOST_KERNEL)
		return "its sizes, strides or kernel are out of range";
	if (op->before[axis] < 0 || op->before[axis] >= op->kernel[axis] || op->after[axis] < 0 ||
	    op->after[axis] >= op->kernel[axis])
		return "there are as many zeros beside an image as the kernel has places";
	if (op->size[axis] + op->before[axis] + op->after[axis] < op->kernel[axis])
		return "its kernel is larger than the image";
	return NULL;
}

/* Rows of more than one lie apart by a number of 16 bits. */
static bool can_step(const int64_t rows, const int64_t columns)
{
	return rows == 1 || columns <= UINT16_MAX;
}

static const char *find_fault(const struct vta_operation *op)
{
	if (!is_extent(op->images) || !is_extent(op->in_blocks) || !is_extent(op->out_blocks))
		return "its sizes, strides or kernel are out of range";
	if (op->groups < 0 || (op->groups > 1 && (op->in_blocks % op->groups || op->out_blocks % op->groups)))
		return "its groups have not as many blocks each";
	for (int axis = 0; axis < 2; axis++) {
		const char *fault = check_axis(op, axis);
		if (fault)
			return fault;
	}
	if (vta_inputs_of_group(op) * op->kernel[0] * op->kernel[1] > UINT16_MAX ||
	    !can_step(op->size[0], op->size[1]) || !can_step(vta_output_size(op, 0), vta_output_size(op, 1)))
		return "its rows are too long: loads count up to 65535 entries from one to the next";
	if (op->shift < 0 || op->shift > 31 || op->residual_shift < 0 || op->residual_shift > 6)
		return "it shifts by more than an accumulator has bits, or its residual by more than 6";
	if (op->offset < -256 || op->offset > 256 || (op->planes == 4 && op->offset))
		return "it adds to quotients what is no difference of bytes, or to sums that are stored as they are";
	if (op->planes == 4 && (op->shift || (op->residual && !op->residual_first)))
		return "it shifts sums that are stored as they are, or adds a residual behind them";
	if (op->planes < 0 || (op->planes > 1 && op->planes != 4) || op->rounding > VTA_HALF_TWICE)
		return "it stores neither one plane of bytes nor four, or rounds in a way that is not known";
	if (op->low < INT8_MIN || op->high > INT8_MAX || op->low > op->high)
		return "its bounds are none of int8";
	if (op->bound && (op->weights || op->bias))
		return "its weights come both with it and with a binding";
	return op->weights || op->bound ? NULL : "it has no weights";
}

/* --- segments --- */

static uint64_t align_bytes(uint64_t bytes)
{
	return (bytes + VTA_MEMORY_ALIGNMENT - 1) / VTA_MEMORY_ALIGNMENT * VTA_MEMORY_ALIGNMENT;
}

static bool add_segment(struct layout *l, const struct vta_operation *op, const char *name,
			const char *ending, uint64_t bytes, const uint8_t *data, uint64_t *place)
{
	struct vta_segment segment = {
	    .role = data ? VTA_ROLE_CONSTANT : VTA_ROLE_INPUT, .begin = l->end, .bytes = bytes, .data = data};
	struct vta_stream so_far = {.segment = l->segments.at, .segments = l->segments.n};
	size_t n = strlen(name), more = strlen(ending);
	if (!n || n + more >= VTA_NAME_BYTES)
		return refuse_operation(l, op, "a name is empty or has more than 29 bytes");
	memcpy(segment.name, name, n);
	memcpy(segment.name + n, ending, more);
	if (vta_find_segment(&so_far, segment.name) || !strcmp(segment.name, "uops"))
		return refuse_operation(l, op, "a name is taken");
	if (bytes > VTA_MEMORY_LIMIT - l->end)
		return refuse_operation(l, op, "the memory of a stream ends at 256 MiB");
	*place = l->end;
	l->end = align_bytes(l->end + bytes);
	vec_push(l->arena, &l->segments, segment);
	return true;
}

static struct tensor *find_tensor(struct layout *l, const char *name)
{
	for (size_t i = 0; i < l->tensors.n; i++)
		if (!strcmp(l->tensors.at[i].name, name))
			return &l->tensors.at[i];
	return NULL;
}

/* The product of extents; what no memory holds is the limit and more. */
static uint64_t count_bytes(const int64_t *extent, int n)
{
	uint64_t bytes = VTA_BLOCK;
	for (int i = 0; i < n; i++)
		bytes = (uint64_t)extent[i] > VTA_MEMORY_LIMIT / bytes ? VTA_MEMORY_LIMIT + 1
								       : bytes * (uint64_t)extent[i];
	return bytes;
}

/* A tensor that an operation reads or computes; it is the same in all that name it. */
static bool use_tensor(struct layout *l, const struct vta_operation *op, const char *name,
		       const int64_t extent[5], bool computes, uint64_t *place)
{
	struct tensor *t = find_tensor(l, name);
	if (t && memcmp(t->extent, extent, sizeof t->extent) != 0)
		return refuse_operation(l, op, "it reads activations with other sizes than those they have");
	if (t && computes)
		return refuse_operation(l, op, "it computes what was there before");
	if (!t) {
		struct tensor fresh = {.name = name, .segment = l->segments.n};
		memcpy(fresh.extent, extent, sizeof fresh.extent);
		if (!add_segment(l, op, name, "", count_bytes(extent, 5), NULL, place))
			return false;
		vec_push(l->arena, &l->tensors, fresh);
		t = &l->tensors.at[l->tensors.n - 1];
	}
	t->computed |= computes;
	t->read |= !computes;
	*place = l->segments.at[t->segment].begin;
	return true;
}

/* A residual has one plane, whatever the output has. */
static bool use_tensors(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	int64_t in[5] = {1, op->images, op->in_blocks, op->size[0], op->size[1]};
	int64_t out[5] = {1, op->images, op->out_blocks, vta_output_size(op, 0), vta_output_size(op, 1)};
	if (!use_tensor(l, op, op->input, in, false, &to->input) ||
	    (op->residual && !use_tensor(l, op, op->residual, out, false, &to->residual)))
		return false;
	out[0] = op->planes == 4 ? 4 : 1;
	return use_tensor(l, op, op->output, out, true, &to->output);
}

/* --- constants --- */

/* Whether a division is more than the first one of two, which adds 1. */
static bool divides_further(const struct vta_operation *op)
{
	return op->shift > (op->rounding == VTA_HALF_TWICE);
}

bool vta_copies_sums(const struct vta_operation *op)
{
	return divides_further(op) && op->rounding != VTA_HALF_UP;
}

/* Where halves are rounded up half of the last place is part of a constant bias. */
static bool has_half_in_bias(const struct vta_operation *op)
{
	return op->shift && op->rounding == VTA_HALF_UP && !op->bound;
}

bool vta_adds_half(const struct vta_operation *op)
{
	return divides_further(op) && !has_half_in_bias(op);
}

bool vta_adds_bias(const struct vta_operation *op)
{
	return op->bound || op->bias || has_half_in_bias(op);
}

static const uint8_t *make_bias(struct layout *l, const struct vta_operation *op)
{
	int64_t n = op->out_blocks * VTA_BLOCK;
	uint32_t half = has_half_in_bias(op) ? 1u << (op->shift - 1) : 0;
	uint8_t *bias = ARENA_ARRAY(l->arena, uint8_t, n * 4);
	for (int64_t i = 0; i < n; i++)
		vta_put_u32(bias + 4 * i, (op->bias ? (uint32_t)op->bias[i] : 0) + half);
	return bias;
}

/* What is added to round: half of the last place, and the last place.  Of two roundings, those of the second
 * one. */
static const uint8_t *make_rounding(struct layout *l, const struct vta_operation *op)
{
	uint8_t *entries = ARENA_ARRAY(l->arena, uint8_t, VTA_ROUNDING_ENTRIES * VTA_BLOCK * 4);
	uint32_t place = 1u << (op->shift - (op->rounding == VTA_HALF_TWICE));
	for (int i = 0; i < VTA_BLOCK; i++) {
		vta_put_u32(entries + 4 * i, place >> 1);
		vta_put_u32(entries + 4 * (VTA_BLOCK + i), place);
	}
	return entries;
}

/* A block that multiplies a vector by 2^shift. */
static const uint8_t *make_diagonal(struct layout *l, int shift)
{
	uint8_t *block = ARENA_ARRAY(l->arena, uint8_t, VTA_BLOCK * VTA_BLOCK);
	for (int i = 0; i < VTA_BLOCK; i++)
		block[i * VTA_BLOCK + i] = (uint8_t)(1 << shift);
	return block;
}

/* Weights: constants, or an input that a binding has. */
static bool add_weights(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	const int64_t blocks[] = {VTA_BLOCK, op->out_blocks, vta_inputs_of_group(op), op->kernel[0],
				  op->kernel[1]};
	uint64_t bytes = count_bytes(blocks, 5);
	if (bytes > VTA_MEMORY_LIMIT)
		return refuse_operation(l, op, "the memory of a stream ends at 256 MiB");
	const uint8_t *weights = op->bound ? NULL : arena_copy(l->arena, op->weights, bytes);
	return add_segment(l, op, op->name, ".w", bytes, weights, &to->weights);
}

static bool add_bias(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	const uint8_t *bias = op->bound ? NULL : make_bias(l, op);
	return !vta_adds_bias(op) ||
	       add_segment(l, op, op->name, ".b", (uint64_t)op->out_blocks * VTA_BLOCK * 4, bias, &to->bias);
}

static bool add_residual(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	return !op->residual || add_segment(l, op, op->name, ".r", VTA_BLOCK * VTA_BLOCK,
					    make_diagonal(l, op->residual_shift), &to->residual_weights);
}

static bool add_rounding(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	return !vta_adds_half(op) || add_segment(l, op, op->name, ".h", VTA_ROUNDING_ENTRIES * VTA_BLOCK * 4,
						 make_rounding(l, op), &to->rounding);
}

static bool add_constants(struct layout *l, const struct vta_operation *op, struct vta_places *to)
{
	return add_weights(l, op, to) && add_residual(l, op, to) && add_bias(l, op, to) &&
	       add_rounding(l, op, to);
}

/* --- the whole --- */

/* What is bound is an input already. */
static void give_roles(struct layout *l)
{
	for (size_t i = 0; i < l->tensors.n; i++) {
		const struct tensor *t = &l->tensors.at[i];
		l->segments.at[t->segment].role = !t->computed ? VTA_ROLE_INPUT
						  : t->read    ? VTA_ROLE_SCRATCH
							       : VTA_ROLE_OUTPUT;
	}
}

bool vta_lay_out(struct arena *a, struct diags *diags, const struct vta_operation *op, size_t n,
		 struct vta_stream *stream, struct vta_places *places)
{
	struct layout l = {.arena = a, .diags = diags};
	for (size_t i = 0; i < n; i++) {
		const char *fault = find_fault(&op[i]);
		if (fault)
			return refuse_operation(&l, &op[i], fault);
		if (!add_constants(&l, &op[i], &places[i]) || !use_tensors(&l, &op[i], &places[i]))
			return false;
	}
	give_roles(&l);
	*stream = (struct vta_stream){.segment = l.segments.at, .segments = l.segments.n, .bytes = l.end};
	return true;
}
