/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of inputs, which a model declares: integers of products are scaled by them, so numbers beyond them, infinities
 * and NaNs are refused before anything is computed.  Magnitudes are compared as the integers that their bits are, which
 * rise with them and are the largest for NaNs, so that one pass over the data takes no branches. */
#include "runtime/shared.h"

#include "base/convert.h"

enum { PIECE = 64 }; /* elements, by a loop of so many iterations: it becomes one of vectors */

typedef int32_t word __attribute__((may_alias));
typedef int16_t half __attribute__((may_alias));

#define DEFINE_SEARCH(type, most_of_type)                                                                    \
	static inline bool exceeds_##type(const type *x, int64_t n, type most)                               \
	{                                                                                                    \
		type beyond = 0;                                                                             \
		for (int64_t i = 0; i < n; i++)                                                              \
			beyond |= (type)-((x[i] & most_of_type) > most);                                     \
		return beyond;                                                                               \
	}                                                                                                    \
                                                                                                             \
	/* The first element with a magnitude that exceeds the bound; n = there is none. */                  \
	static int64_t find_##type(const type *x, int64_t n, type most)                                      \
	{                                                                                                    \
		int64_t i = 0;                                                                               \
		while (i + PIECE <= n && !exceeds_##type(x + i, PIECE, most))                                \
			i += PIECE;                                                                          \
		while (i < n && !exceeds_##type(x + i, 1, most))                                             \
			i++;                                                                                 \
		return i;                                                                                    \
	}

DEFINE_SEARCH(word, INT32_MAX)
DEFINE_SEARCH(half, INT16_MAX)

/* The bits of the largest binary16 that is not above a bound. */
static int16_t floor_to_f16(float bound)
{
	uint16_t bits = f16_of_f32(bound);
	return (int16_t)(f32_of_f16(bits) > bound ? bits - 1 : bits);
}

static int64_t find_beyond(const struct image_input *in, const void *data, int64_t n)
{
	switch (in->dtype) {
	case DTYPE_F16:
		return find_half(data, n, floor_to_f16(in->within));
	case DTYPE_BF16:
		return find_half(data, n, (int16_t)(bits_of_f32(in->within) >> 16));
	default:
		return find_word(data, n, (int32_t)bits_of_f32(in->within));
	}
}

int64_t rt_find_beyond(const struct image_input *in, const void *data, int64_t rows)
{
	int64_t n = rows * in->elements, at = find_beyond(in, data, n);
	return at < n ? at : -1;
}

float rt_read_element(const struct image_input *in, const void *data, int64_t at)
{
	uint16_t narrow = in->dtype == DTYPE_F32 ? 0 : ((const uint16_t *)data)[at];
	return in->dtype == DTYPE_F16	 ? f32_of_f16(narrow)
	       : in->dtype == DTYPE_BF16 ? f32_of_bf16(narrow)
					 : ((const float *)data)[at];
}
