/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions of the accelerator in an image: opens their streams, and checks that what the driver packs and unpacks lies
 * inside of segments and buffers. */
#include "image/image_file.h"

#include <string.h>

/* Cycles of a call at most, so that a file does not let runs last for ever. */
#define MAX_CYCLES ((uint64_t)1 << 36)

/* Memory of the proof is given back. */
static bool verify_call(struct arena *a, struct image_call *c, const struct vta_stream *stream, struct diags *diags)
{
	struct arena before = *a;
	bool ok = vta_verify(a, diags, stream, &c->cost);
	arena_rewind(a, &before);
	if (ok && c->cost.cycles > MAX_CYCLES)
		return diag_add(diags, DIAG_BAD_IMAGE, (struct diag_at){0}, "compile the model again",
				"%.64s: it takes more than 2^36 cycles", c->name);
	return ok;
}

bool image_open_calls(struct arena *a, struct image *image, struct diags *diags)
{
	for (int i = 0; i < image->calls; i++) {
		struct image_call *c = &image->call[i];
		struct vta_stream *stream = ARENA_NEW(a, struct vta_stream);
		if (!vta_read(a, diags, c->name, c->stream, (size_t)c->bytes, stream) ||
		    !verify_call(a, c, stream, diags))
			return false;
		c->opened = stream;
	}
	return true;
}

/* --- operands --- */

/* The product of numbers that are not negative; -1 when one is 0, or it does not fit 64 bits. */
static int64_t multiply_extents(const int64_t *extent, int n)
{
	int64_t product = 1;
	for (int i = 0; i < n; i++)
		if (extent[i] < 1 || __builtin_mul_overflow(product, extent[i], &product))
			return -1;
	return product;
}

static int64_t packed_bytes(const struct image_operand *o)
{
	const struct vta_activations *e = &o->extent;
	const int64_t extent[] = {e->images,  e->channels < 1 ? 0 : vta_blocks(e->channels),
				  e->size[0], e->size[1],
				  VTA_BLOCK,  o->planes};
	return multiply_extents(extent, 6);
}

/* Whether all elements that the driver touches lie inside of a row.  Extents are at least 1. */
static bool stays_in_row(const struct image_operand *o, const struct image_buffer *b)
{
	const struct vta_activations *e = &o->extent;
	const int64_t walk[][2] = {{e->images, o->stride.image},
				   {e->channels, o->stride.channel},
				   {e->size[0], o->stride.row},
				   {e->size[1], o->stride.column}};
	int64_t last = 0, reach;
	for (int d = 0; d < 4; d++)
		if (walk[d][1] < 0 || __builtin_mul_overflow(walk[d][0] - 1, walk[d][1], &reach) ||
		    __builtin_add_overflow(last, reach, &last))
			return false;
	return last < b->row_elements;
}

static const char *check_activations(const struct image_operand *o, const struct image_buffer *b,
				     const struct vta_segment *s)
{
	const struct image_buffer_traits *t = image_traits_of(b->kind);
	bool output = o->role == IMAGE_OPERAND_OUTPUT;
	if (t->content != IMAGE_HOLDS_RESULTS && (output || t->content != IMAGE_HOLDS_DATA))
		return "an operand is in a buffer that has no activations";
	if (t->memory == IMAGE_IN_THREAD || b->at_binding || b->table || b->read_row)
		return "an operand is in a buffer that has no activations";
	if (o->planes == 4 ? !output || b->dtype != DTYPE_I32 : b->dtype != DTYPE_I8 && b->dtype != DTYPE_U8)
		return "an operand has elements of another type than its segment";
	if (o->planes != 1 && o->planes != 4)
		return "an operand has not one plane of bytes, or four";
	if (packed_bytes(o) < 0 || (uint64_t)packed_bytes(o) != s->bytes)
		return "an operand is not as large as its segment";
	return stays_in_row(o, b) ? NULL : "an operand goes beyond a row of its buffer";
}

static const char *check_constant(const struct image *image, const struct image_operand *o,
				  const struct image_buffer *b, const struct vta_segment *s)
{
	if (b->kind != IMAGE_WEIGHT || b->at_binding)
		return "a constant is in a buffer that no binding keeps";
	if (o->planes != 1 || o->zero)
		return "a constant has a zero point, or planes";
	return (uint64_t)image_recipe_bytes(&image->recipe[b->which]) >= s->bytes
		   ? NULL
		   : "a constant is smaller than its segment";
}

static const char *check_operand(const struct image *image, const struct vta_stream *stream,
				 const struct image_operand *o)
{
	const struct vta_segment *s = vta_find_segment(stream, o->segment);
	if (!s || o->buffer >= image->buffers)
		return "an operand has a segment or a buffer that does not exist";
	if (s->role != (o->role == IMAGE_OPERAND_OUTPUT ? VTA_ROLE_OUTPUT : VTA_ROLE_INPUT))
		return "an operand has a segment of another role";
	const struct image_buffer *b = &image->buffer[o->buffer];
	return o->role == IMAGE_OPERAND_CONSTANT ? check_constant(image, o, b, s) : check_activations(o, b, s);
}

/* How many operands have a segment. */
static int count_operands(const struct image_call *c, const char *segment)
{
	int n = 0;
	for (int i = 0; i < c->operands; i++)
		n += !strcmp(c->operand[i].segment, segment);
	return n;
}

const char *image_find_call_fault(const struct image *image, int call)
{
	const struct image_call *c = &image->call[call];
	if (!c->opened)
		return "its stream was not opened";
	for (int i = 0; i < c->operands; i++) {
		const char *fault = check_operand(image, c->opened, &c->operand[i]);
		if (fault)
			return fault;
	}
	for (size_t i = 0; i < c->opened->segments; i++) {
		const struct vta_segment *s = &c->opened->segment[i];
		bool filled = s->role == VTA_ROLE_INPUT;
		if (filled && count_operands(c, s->name) != 1)
			return "a segment is filled twice, or an input never";
	}
	return NULL;
}

/* --- steps --- */

/* Whether the rows of a step are rows of the buffer, and begin at its first. */
static bool has_rows_of(const struct image_step *s, const struct image_buffer *b)
{
	return b->rows == (s->domain == IMAGE_DOMAIN_INPUTS ? IMAGE_INPUTS : IMAGE_NODES);
}

const char *image_find_target_fault(const struct image *image, int step)
{
	const struct image_step *s = &image->step[step];
	if (s->target == IMAGE_TARGET_HOST)
		return s->kernel < image->kernels ? s->call ? "a step of the host makes a call" : NULL
						  : "a step runs a kernel that does not exist";
	if (s->call >= image->calls || s->kernel)
		return "a step of the accelerator makes no call, or runs a kernel";
	if (s->domain == IMAGE_DOMAIN_BINDING || s->domain == IMAGE_DOMAIN_SCAN || s->sort || s->blocks != 1)
		return "a step of the accelerator is of another domain than nodes and inputs";
	for (int i = 0; i < image->call[s->call].operands; i++) {
		const struct image_operand *o = &image->call[s->call].operand[i];
		if (o->role != IMAGE_OPERAND_CONSTANT && !has_rows_of(s, &image->buffer[o->buffer]))
			return "a step of the accelerator runs over other rows than its operands have";
	}
	return NULL;
}
