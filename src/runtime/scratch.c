/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The memory of intermediates.  Each home gets the first offset where it overlaps none that is live at the
 * same time. */
#include "runtime/shared.h"

enum { LINE = 64 };

static bool is_home(const struct image_buffer *b, int i)
{
	return b->kind == IMAGE_SCRATCH && !b->at_binding && b->home == i;
}

static bool bytes_of(const struct image_buffer *b, const int64_t *sizes, int64_t *bytes)
{
	*bytes = dtype_traits_of(b->dtype)->bytes;
	if (__builtin_mul_overflow(*bytes, b->row_elements, bytes) ||
	    __builtin_mul_overflow(*bytes, sizes[b->rows], bytes) ||
	    __builtin_add_overflow(*bytes, LINE - 1, bytes))
		return false;
	*bytes -= *bytes % LINE;
	return true;
}

/* The end of a home that overlaps offset .. offset + bytes while buffer i is live; 0 = there is none. */
static int64_t end_of_other(const struct image *image, const int64_t *sizes, int i, const int64_t *at,
			    int64_t offset, int64_t bytes)
{
	const struct image_buffer *b = &image->buffer[i];
	for (int k = 0; k < i; k++) {
		const struct image_buffer *other = &image->buffer[k];
		int64_t has;
		if (!is_home(other, k) || other->last < b->first || b->last < other->first)
			continue;
		bytes_of(other, sizes, &has);
		if (at[k] < offset + bytes && offset < at[k] + has)
			return at[k] + has;
	}
	return 0;
}

bool rt_lay_out_scratch(const struct image *image, const int64_t *sizes, int64_t *offset, int64_t *bytes)
{
	*bytes = 0;
	for (int i = 0; i < image->buffers; i++) {
		const struct image_buffer *b = &image->buffer[i];
		int64_t own, end, all;
		if (!is_home(b, i))
			continue;
		if (!bytes_of(b, sizes, &own) || __builtin_add_overflow(*bytes, own, &all))
			return false;
		for (offset[i] = 0; own && (end = end_of_other(image, sizes, i, offset, offset[i], own));)
			offset[i] = end;
		if (offset[i] + own > *bytes)
			*bytes = offset[i] + own;
	}
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].kind == IMAGE_SCRATCH && !image->buffer[i].at_binding)
			offset[i] = offset[image->buffer[i].home];
	return true;
}
